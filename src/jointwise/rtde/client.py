"""An RTDE client that subscribes to outputs of a controller; it never sends anything that moves a robot."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

from jointwise.errors import DataError
from jointwise.rtde.protocol import (
    IN_USE,
    NOT_FOUND,
    PORT,
    VERSION,
    Framer,
    Message,
    MessageKind,
    ProtocolError,
    Recipe,
    Text,
    pack,
    unpack_text,
)

TIMEOUT = 5.0
"""Time (s) within which a controller must answer; answers take milliseconds, a loaded controller some more."""
RECEIVE_BYTES = 1 << 16
BUFFER_BYTES = 1 << 22
"""Receive buffer of the operating system: a minute of messages at 500 Hz, so that a stall here loses nothing."""
LARGEST_HANDSHAKE = 10_000
"""Messages (texts, old data) to skip while waiting for an answer; more means that the other side misbehaves."""


class ConnectionLostError(DataError):
    """The controller closed the connection or stopped sending."""


@dataclass(frozen=True)
class Subscription:
    """Fields that a controller sends: the recipe, and the requested names that it does not have."""

    recipe: Recipe
    missing: tuple[str, ...]


class Client:
    """A connection to the RTDE port of a controller; use it in a ``with`` statement.

    Attributes:
        version: Version of the controller, such as "5.12.2.1101"; "" for controllers that do not state it.
        texts: Texts that the controller sent.

    """

    def __init__(self, host: str, port: int = PORT, timeout: float = TIMEOUT) -> None:
        """Store the address; `connect` opens the connection."""
        self.host, self.port, self.timeout = host, port, timeout
        self.version = ""
        self.texts: list[Text] = []
        self._socket: socket.socket | None = None
        self._framer = Framer()
        self._pending: list[Message] = []

    @property
    def address(self) -> str:
        """Address for messages."""
        return f"{self.host}:{self.port}"

    def __enter__(self) -> Client:
        """Connect."""
        try:
            self.connect()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def connect(self) -> None:
        """Open the connection and agree on protocol version 2.

        Raises:
            DataError: If nobody answers, or the other side is not a controller that speaks version 2.

        """
        self._framer, self._pending = Framer(), []
        try:
            self._socket = socket.create_connection((self.host, self.port), self.timeout)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        except (OSError, UnicodeError) as problem:
            raise DataError(f"{self.address}: {_unreachable(problem, self.timeout)}") from None
        accepted = self._request(MessageKind.VERSION, struct.pack(">H", VERSION)).payload
        if accepted != b"\x01":
            self.close()
            raise DataError(
                f"{self.address}: the controller must support RTDE protocol version {VERSION} (software 3.3 or later)."
            )
        self.version = self._controller_version()

    def close(self) -> None:
        """Close the connection; does nothing if it is closed."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def subscribe(self, fields: Sequence[str], rate: float) -> Subscription:
        """Request output fields at a rate (Hz); fields that the controller does not have are left out.

        Args:
            fields: Names of output fields, `timestamp` among them.
            rate: Rate in Hz; e-Series controllers send at most 500 messages per second, earlier ones 125.

        Returns:
            The recipe of the data messages and the missing fields.

        Raises:
            DataError: If none of the fields exists, a field is in use elsewhere, or the answer is damaged.

        """
        wanted, missing = list(fields), list[str]()
        while True:
            number, types = self._set_up(wanted, rate)
            unknown = [name for name, type_ in zip(wanted, types, strict=True) if type_ == NOT_FOUND]
            if not unknown:
                break
            missing += unknown
            wanted = [name for name in wanted if name not in unknown]
            if not wanted:
                raise DataError(f"{self.address}: the controller has none of the fields {', '.join(fields[:6])}.")
        if IN_USE in types:
            raise DataError(f"{self.address}: field '{wanted[types.index(IN_USE)]}' is in use by another client.")
        try:
            return Subscription(Recipe(number, tuple(wanted), tuple(types)), tuple(missing))
        except ProtocolError as problem:
            raise DataError(f"{self.address}: {problem}") from None

    def start(self) -> None:
        """Let the controller send data.

        Raises:
            DataError: If the controller refuses.

        """
        if self._request(MessageKind.START).payload[:1] != b"\x01":
            raise DataError(f"{self.address}: the controller refuses to send data. Use fewer fields or a lower rate.")

    def pause(self) -> None:
        """Let the controller stop sending; errors are ignored because the connection ends anyway."""
        if self._socket is not None:
            try:
                self._socket.sendall(pack(MessageKind.PAUSE))
            except OSError:
                self.close()

    def packets(self) -> Iterator[bytes]:
        """Yield the payloads of data messages as they arrive, until the connection ends.

        Raises:
            ConnectionLostError: If the connection ends or nothing arrives within the timeout.

        """
        while True:
            for message in self._received():
                if message.kind == MessageKind.DATA:
                    yield message.payload
                else:
                    self._note(message)

    def _set_up(self, names: Sequence[str], rate: float) -> tuple[int, list[str]]:
        """Request fields and return the number of the recipe and the types."""
        payload = self._request(MessageKind.OUTPUTS, struct.pack(">d", rate) + ",".join(names).encode()).payload
        types = payload[1:].decode("ascii", "replace").split(",")
        if len(types) != len(names):
            raise DataError(
                f"{self.address}: the answer to the set-up must list {len(names)} types. Got {len(types)} instead."
            )
        return payload[0], types

    def _controller_version(self) -> str:
        """Return the version of the controller as text."""
        payload = self._request(MessageKind.CONTROLLER).payload
        return ".".join(map(str, struct.unpack(">4I", payload))) if len(payload) == 16 else ""

    def _request(self, kind: MessageKind, payload: bytes = b"") -> Message:
        """Send a message and return the answer, the next message of the same type."""
        assert self._socket is not None, "connect first"
        try:
            self._socket.sendall(pack(kind, payload))
        except OSError as problem:
            raise DataError(f"{self.address}: the connection broke ({problem.strerror or problem}).") from None
        deadline = time.monotonic() + self.timeout
        for _ in range(LARGEST_HANDSHAKE):
            messages = self._received()
            for k, message in enumerate(messages):
                if message.kind == kind:
                    self._pending = messages[k + 1 :]  # data may follow the answer in the same bytes
                    return message
                self._note(message)
            if time.monotonic() > deadline:
                break
        raise DataError(f"{self.address}: no answer to message '{chr(kind)}' within {self.timeout:g} s.")

    def _received(self) -> list[Message]:
        """Return the messages that arrived: those that wait, else those of one call to the network."""
        if self._pending:
            waiting, self._pending = self._pending, []
            return waiting
        assert self._socket is not None, "connect first"
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except TimeoutError:
            raise ConnectionLostError(f"{self.address}: nothing arrived for {self.timeout:g} s.") from None
        except OSError as problem:
            raise ConnectionLostError(
                f"{self.address}: the connection broke ({problem.strerror or problem})."
            ) from None
        if not data:
            raise ConnectionLostError(f"{self.address}: the controller closed the connection.")
        try:
            return list(self._framer.feed(data))
        except ProtocolError as problem:
            raise DataError(f"{self.address}: {problem}") from None

    def _note(self, message: Message) -> None:
        """Keep a text of the controller; other messages are late answers."""
        if message.kind == MessageKind.TEXT and len(self.texts) < LARGEST_HANDSHAKE:
            try:
                self.texts.append(unpack_text(message.payload))
            except ProtocolError as problem:
                raise DataError(f"{self.address}: {problem}") from None


def _unreachable(problem: OSError | UnicodeError, timeout: float) -> str:
    """Return why no connection was made and what to check; a UnicodeError is a name that no host can have."""
    if isinstance(problem, socket.gaierror | UnicodeError):
        return "unknown host name. Use the address shown on the robot under Settings > System > Network."
    reason = f"no answer within {timeout:g} s" if isinstance(problem, TimeoutError) else problem.strerror or problem
    return (
        f"no controller answers ({reason}). Is the robot switched on, the address right, and RTDE enabled under "
        "Settings > Security > Services?"
    )


def check_fields(fields: Sequence[str]) -> None:
    """Reject names that cannot be output fields, and names given twice.

    Raises:
        DataError: If a name is empty, has characters that the protocol reserves, or appears twice.

    """
    for name in fields:
        if not name.replace("_", "a").isalnum() or not name.isascii():
            raise DataError(f"a field must be a name of letters, digits and '_'. Got '{name[:40]}' instead.")
        if list(fields).count(name) > 1:
            raise DataError(f"field '{name}' must appear once. Got {list(fields).count(name)} times instead.")
