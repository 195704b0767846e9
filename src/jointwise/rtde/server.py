"""An RTDE server on the loopback interface, as a controller provides it: the other side of `client`.

A `FieldSource` gives the value of every output field at a tick of the controller's clock. Clients subscribe and receive
data messages in real time; a tick that comes late is sent late, never dropped, unless a fault is requested.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jointwise.call_settings import FaultSettings
from jointwise.errors import DataError, ModelError, nearest
from jointwise.rtde import protocol

LOOPBACK = "127.0.0.1"
TICK_RATE = 500.0
"""Rate (Hz) of an e-Series controller."""
LATEST_FAULT = 1e5
"""Latest time (s) of a fault, more than a day."""
MOST_CLIENTS = 16
"""Number of connections at a time."""
MOST_FIELDS = 512
"""Number of fields in a subscription."""
SEND_BUFFER = 1 << 22
"""Send buffer of a connection in bytes; a client that does not read for longer loses its connection."""


class FieldSource(Protocol):
    """What the controller measures and commands."""

    def values(self, tick: int) -> Mapping[str, Sequence[float]]:
        """Return the values of the output fields at a tick; a field that is absent is zero."""
        ...

    def started(self, tick: int) -> None:
        """Note that a client starts to receive data at a tick."""
        ...


@dataclass(frozen=True)
class Faults(FaultSettings):
    """Faults of a controller, to test clients.

    Attributes:
        stall: Times (s after the start of a subscription) at which nothing is sent for `stall_seconds`; the samples of
            that time are lost.
        stall_seconds: Length of a stall in s.
        lose: Every n-th data message is lost; 0 for none.
        late: Time (s) by which every data message is sent too late.
        hide: Fields that are answered with NOT_FOUND.
        version: Version of the controller's software.
        protocol: Highest protocol version that is accepted.

    """

    stall_seconds: float = 1.0
    version: tuple[int, int, int, int] = (5, 12, 0, 0)
    protocol: int = protocol.VERSION

    def __post_init__(self) -> None:
        """Reject times and counts that are not possible."""
        if not all(0.0 <= time <= LATEST_FAULT for time in (*self.stall, self.stall_seconds, self.late)):
            raise ModelError(f"times of faults must be from 0 to {LATEST_FAULT:g} s.")
        unknown = next((name for name in self.hide if name not in protocol.FIELDS), None)
        if unknown is not None:
            raise ModelError(
                f"hide: a controller has no field '{unknown}'. {nearest(unknown, protocol.FIELDS, most=5)}"
            )
        if self.lose < 0:
            raise ModelError(f"lose must be 0 or the number of messages of which one is lost. Got {self.lose} instead.")


@dataclass
class _Connection:
    """A client: its socket, what it subscribed to, and since which tick it receives."""

    socket: socket.socket
    framer: protocol.Framer = field(default_factory=protocol.Framer)
    recipe: protocol.Recipe | None = None
    every: int = 1
    start: int | None = None
    sent: int = 0


class Server:
    """Serves a source to RTDE clients; `run` loops until `stop` returns True."""

    def __init__(self, source: FieldSource, port: int = protocol.PORT, faults: Faults | None = None) -> None:
        """Listen on the loopback interface; port 0 chooses a free port (see `port`).

        Raises:
            DataError: If the port is in use.

        """
        self._source, self._faults = source, faults or Faults()
        try:
            self._listener = socket.create_server((LOOPBACK, port))
        except OSError as problem:
            raise DataError(f"{LOOPBACK}:{port}: cannot listen ({problem.strerror}). Choose another port.") from None
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._connections: list[_Connection] = []
        self._tick = 0

    @property
    def tick(self) -> int:
        """Ticks since the start."""
        return self._tick

    @property
    def receiving(self) -> bool:
        """Whether a client receives data."""
        return any(connection.start is not None for connection in self._connections)

    def run(self, stop: Callable[[], bool]) -> None:
        """Serve in real time until `stop` returns True."""
        began = time.monotonic()
        try:
            while not stop():
                due = began + self._tick / TICK_RATE
                self._answer(max(due - time.monotonic(), 0.0))
                if time.monotonic() >= due:
                    self._publish()
                    self._tick += 1
        finally:
            self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._connections):
            self._drop(connection)
        self._selector.close()
        self._listener.close()

    def _answer(self, seconds: float) -> None:
        """Accept clients and answer their requests, for at most `seconds`."""
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._listener:
                self._accept()
            else:
                self._read(key.data)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if len(self._connections) >= MOST_CLIENTS:
            client.close()
            return
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setblocking(False)
        connection = _Connection(client)
        self._connections.append(connection)
        self._selector.register(client, selectors.EVENT_READ, connection)

    def _drop(self, connection: _Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._selector.unregister(connection.socket)
            connection.socket.close()

    def _read(self, connection: _Connection) -> None:
        """Read requests; a client that closes or sends something else is dropped."""
        try:
            data = connection.socket.recv(1 << 16)
            if not data:
                self._drop(connection)
                return
            for message in connection.framer.feed(data):
                self._send(connection, message.kind, self._reply(connection, message))
        except (OSError, protocol.ProtocolError, struct.error, UnicodeDecodeError):
            self._drop(connection)

    def _reply(self, connection: _Connection, message: protocol.Message) -> bytes:
        """Return the answer to a request."""
        if message.kind == protocol.MessageKind.VERSION:
            return bytes([struct.unpack(">H", message.payload)[0] <= self._faults.protocol])
        if message.kind == protocol.MessageKind.CONTROLLER:
            return struct.pack(">4I", *self._faults.version)
        if message.kind == protocol.MessageKind.OUTPUTS:
            return self._subscribe(connection, message.payload)
        if message.kind == protocol.MessageKind.START and connection.recipe is not None:
            connection.start = self._tick
            self._source.started(self._tick)
            return b"\x01"
        if message.kind == protocol.MessageKind.PAUSE:
            connection.start = None
            return b"\x01"
        text = protocol.Text("only outputs can be subscribed to here", "virtual controller", 2)
        self._send(connection, protocol.MessageKind.TEXT, protocol.pack_text(text))
        return b"\x00"

    def _subscribe(self, connection: _Connection, payload: bytes) -> bytes:
        """Set the fields of a client; unknown names are answered with NOT_FOUND and nothing is set."""
        (rate,) = struct.unpack_from(">d", payload)
        names = payload[8:].decode("ascii").rstrip(",").split(",")[:MOST_FIELDS]  # some clients end with a comma
        types = [
            protocol.NOT_FOUND if name in self._faults.hide else protocol.FIELDS.get(name, protocol.NOT_FOUND)
            for name in names
        ]
        connection.recipe, connection.start = None, None
        if protocol.NOT_FOUND in types or not 0.0 < rate <= TICK_RATE:
            return bytes([0]) + ",".join(types).encode()
        connection.recipe, connection.every = (
            protocol.Recipe(1, tuple(names), tuple(types)),
            max(round(TICK_RATE / rate), 1),
        )
        return bytes([1]) + ",".join(types).encode()

    def _publish(self) -> None:
        """Send the values of this tick to every client that receives data."""
        due = [c for c in self._connections if c.start is not None and (self._tick - c.start) % c.every == 0]
        if not due:
            return
        values = self._source.values(self._tick)
        for connection in due:
            connection.sent += 1
            if not self._lost(connection):
                assert connection.recipe is not None
                self._send(
                    connection,
                    protocol.MessageKind.DATA,
                    connection.recipe.pack(flat_values(connection.recipe, values)),
                )

    def _lost(self, connection: _Connection) -> bool:
        """Return whether a fault loses the message of this tick."""
        faults, start = self._faults, connection.start or 0
        if faults.late:
            time.sleep(faults.late)
        elapsed = (self._tick - start) / TICK_RATE
        stalled = any(begin <= elapsed < begin + faults.stall_seconds for begin in faults.stall)
        return stalled or bool(faults.lose and connection.sent % faults.lose == 0)

    def _send(self, connection: _Connection, kind: protocol.MessageKind, payload: bytes) -> None:
        """Send a message; a client whose buffer is full is dropped."""
        message = protocol.pack(kind, payload)
        try:
            sent = connection.socket.send(message)
        except OSError:
            sent = 0
        if sent < len(message):
            self._drop(connection)


def flat_values(recipe: protocol.Recipe, values: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the values of a recipe one after the other; fields without a value are zero."""
    flat: list[float] = []
    for name, type_ in zip(recipe.names, recipe.types, strict=True):
        count = protocol.elements(type_)
        found = list(values.get(name, (0,) * count))
        flat += (
            [float(value) for value in found]
            if protocol.TYPES[type_].endswith("d")
            else [int(value) for value in found]
        )
    return flat
