"""Recording of a UR controller over RTDE: every data message is kept, gaps are reported with their exact length."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked
from jointwise.call_settings import RecordingSettings
from jointwise.data.parquet import RECORDING_KEY, convert_stream
from jointwise.data.write import check_suffix
from jointwise.errors import DataError, JointwiseError, OutputError, nearest
from jointwise.rtde.client import TIMEOUT, Client, ConnectionLostError, Subscription, check_fields
from jointwise.rtde.protocol import FIELDS, PRESETS, TYPES, UNITS, Recipe, elements
from jointwise.spatial import Array

SUFFIX = ".recording"
_DTYPES = {"?": "u1", "B": "u1", "I": ">u4", "Q": ">u8", "i": ">i4", "d": ">f8"}
"""Format of `struct` -> type of NumPy, big-endian as on the wire."""


def journal_path(output: str | Path) -> Path:
    """Return the journal of an output file."""
    path = Path(output)
    return path.with_name(path.name + SUFFIX)


def decode(recipe: Recipe, payloads: bytes) -> dict[str, NDArray[Any]]:
    """Return data messages of one recipe as columns, (samples,) each, in the byte order of this machine.

    Args:
        recipe: The recipe of all messages.
        payloads: The payloads of the messages, one after the other.

    """
    formats = [TYPES[type_][-1] for type_ in recipe.types for _ in range(elements(type_))]
    fields = [("recipe", "u1"), *((name, _DTYPES[code]) for name, code in zip(recipe.columns, formats, strict=True))]
    rows = np.frombuffer(payloads, dtype=np.dtype(fields))
    return {
        name: np.ascontiguousarray(rows[name]).astype(rows.dtype[name].newbyteorder("=")) for name in recipe.columns
    }


class RecordingJournal:
    """Appends batches of samples to the journal of an output file."""

    def __init__(self, output: str | Path, recipe: Recipe, metadata: Mapping[str, Any]) -> None:
        """Create the journal; `metadata` describes the recording.

        Raises:
            OutputError: If a journal of this name exists, or the file cannot be created.

        """
        import pyarrow as pa

        self.path, self._recipe = journal_path(output), recipe
        empty = decode(recipe, b"")
        schema = pa.schema([(name, pa.from_numpy_dtype(column.dtype)) for name, column in empty.items()])
        self._schema = schema.with_metadata({RECORDING_KEY: json.dumps(metadata).encode()})
        try:
            self._file = self.path.open("xb")
        except FileExistsError:
            raise OutputError(
                f"{self.path}: an interrupted recording exists. Keep it with 'jointwise convert {self.path} "
                f"{output}', or delete it."
            ) from None
        except OSError as problem:
            raise OutputError(f"{self.path}: cannot be written ({problem.strerror}).") from None
        self._writer = self._guarded(lambda: pa.ipc.new_stream(self._file, self._schema))

    def append(self, payloads: bytes) -> None:
        """Append data messages; they are readable when this returns.

        Raises:
            OutputError: If the disk is full. The samples before stay readable.

        """
        import pyarrow as pa

        batch = pa.record_batch(list(decode(self._recipe, payloads).values()), schema=self._schema)
        self._guarded(lambda: self._writer.write_batch(batch))
        self._guarded(self._file.flush)

    def close(self) -> None:
        """Close the file; the journal stays. What `append` wrote is complete, so a full disk matters no more."""
        with suppress(OSError):
            self._writer.close()
        with suppress(OSError):
            self._file.close()

    def _guarded(self, action: Any) -> Any:
        """Run a write, and report a full disk in one line."""
        try:
            return action()
        except OSError as problem:
            raise OutputError(
                f"{self.path}: cannot be written ({problem.strerror or problem}). What was recorded before stays there."
            ) from None


FLUSH = 0.25
"""Time (s) between two batches of the journal: what a killed program loses."""
HIGHEST_RATE = 500.0
"""Largest rate (Hz) of an e-Series controller."""
RECONNECT = 30.0
"""Time (s) during which a lost connection is opened again."""
RETRY = 0.2
"""Time (s) between two attempts to connect again."""
MODES = {
    -1: "no controller", 0: "disconnected", 1: "confirm safety", 2: "booting", 3: "power off", 4: "power on",
    5: "idle", 6: "backdrive", 7: "running", 8: "updating firmware",
}  # fmt: skip
"""Values of `robot_mode`."""


@dataclass(frozen=True)
class Gap:
    """Samples that are missing.

    Attributes:
        index: First sample after the gap, 0-based.
        missing: Number of missing samples.
        seconds: Length of the gap, s.
    """

    index: int
    missing: int
    seconds: float


@dataclass(frozen=True)
class RecordingStatus:
    """State of a running recording, for a progress line.

    Attributes:
        samples: Number of samples so far.
        rate: Mean rate of the samples, Hz.
        lost: Number of lost samples.
        seconds: Time since the first sample, s.
        mode: Mode of the robot.
    """

    samples: int
    rate: float
    lost: int
    seconds: float
    mode: str


@dataclass(frozen=True)
class Recording:
    """A finished recording.

    Attributes:
        path: The file that was written.
        controller: Version of the controller's software.
        samples: Number of samples.
        seconds: Time from the first to the last sample, by the clock of the controller.
        rate: Requested rate, Hz.
        gaps: Where samples are missing.
        reconnects: Index of the first sample after each reconnection.
        missing_fields: Requested fields that the controller does not have.

    """

    path: str
    controller: str
    samples: int
    seconds: float
    rate: float
    gaps: tuple[Gap, ...]
    reconnects: tuple[int, ...]
    missing_fields: tuple[str, ...]

    @property
    def lost(self) -> int:
        """Number of missing samples."""
        return sum(gap.missing for gap in self.gaps)

    def to_dict(self) -> dict[str, Any]:
        """Return the recording as a document."""
        return asdict(self) | {"lost": self.lost}

    def summary(self) -> str:
        """Return the recording in a few lines of text."""
        lines = [
            f"{self.path}: {self.samples} samples in {self.seconds:.3f} s at {self.rate:g} Hz, {self.lost} lost",
            f"controller {self.controller or 'of unknown version'}",
        ]
        if self.missing_fields:
            lines.append(f"not available on this controller: {', '.join(self.missing_fields)}")
        lines += [
            f"gap of {gap.seconds:.3f} s before sample {gap.index}: {gap.missing} samples missing" for gap in self.gaps
        ]
        lines += [f"connection lost and opened again before sample {index}" for index in self.reconnects]
        return "\n".join(lines)


def find_gaps(stamps: Array, rate: float) -> tuple[Gap, ...]:
    """Return where samples are missing, from the stamps of the controller (samples,) s and the rate in Hz."""
    steps = np.diff(stamps)
    missing = np.rint(steps * rate).astype(np.int64) - 1
    return tuple(Gap(int(k) + 1, int(missing[k]), float(steps[k])) for k in np.flatnonzero(missing > 0))


@checked
def record(
    host: str,
    output: str | Path,
    *,
    duration: float | None = None,
    rate: float = RecordingSettings.rate,
    preset: str = RecordingSettings.preset,
    fields: Sequence[str] = RecordingSettings.fields,
    port: int = RecordingSettings.port,
    timeout: float = TIMEOUT,
    progress: Callable[[RecordingStatus], None] | None = None,
    stop: threading.Event | None = None,
) -> Recording:
    """Record the outputs of a UR controller to a CSV or Parquet file.

    The samples are written to ``OUTPUT.recording`` while they arrive and to the output at the end. The function only
    subscribes to outputs; it cannot move the robot.

    Args:
        host: Name or address of the controller.
        output: File to write, `.csv` or `.parquet`; it must not exist.
        duration: Time in s by the clock of the controller; None to record until `stop` is set or Ctrl-C.
        rate: Rate in Hz, at most 500.
        preset: Set of fields: calibration, energy or all.
        fields: More output fields by name.
        port: TCP port.
        timeout: Time in s within which the controller must answer or send.
        progress: Called about four times a second.
        stop: Ends the recording when set.

    Returns:
        What was recorded, with every gap.

    Raises:
        DataError: If no controller answers, it does not speak RTDE, or the connection is lost for good.
        OutputError: If the output exists or cannot be written.

    """
    names = _names(preset, fields)
    _check(output, duration, rate)
    with Client(host, port, timeout) as client:
        subscription = client.subscribe(names, rate)
        if "timestamp" not in subscription.recipe.names:
            raise DataError(f"{client.address}: the controller sends no 'timestamp', which a recording needs.")
        facts = _facts(client, subscription, rate)
        session = _Session(client, subscription, names, rate, stop or threading.Event())
        kept = session.run(
            RecordingJournal(output, subscription.recipe, facts), duration, progress or (lambda status: None)
        )
    result = Recording(
        str(output), client.version, kept.samples, kept.seconds, rate, kept.gaps, kept.reconnects, subscription.missing
    )
    convert_stream(journal_path(output), output, facts | {"gaps": [asdict(gap) for gap in kept.gaps]})
    journal_path(output).unlink()
    return result


def _facts(client: Client, subscription: Subscription, rate: float) -> dict[str, Any]:
    """Return what a recording at a rate (Hz) states about itself in its file."""
    return {
        "host": client.address,
        "controller": client.version,
        "rate": rate,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "units": {name: UNITS[name] for name in subscription.recipe.names if name in UNITS},
        "missing_fields": list(subscription.missing),
    }


def _names(preset: str, fields: Sequence[str]) -> tuple[str, ...]:
    """Return the fields of a preset and others, each once, `timestamp` first."""
    if preset not in PRESETS:
        raise DataError(f"preset must be one of {', '.join(PRESETS)}. Got '{preset}' instead.")
    names = tuple(dict.fromkeys(("timestamp", *PRESETS[preset], *fields)))
    check_fields(names)
    return names


def _check(output: str | Path, duration: float | None, rate: float) -> None:
    """Reject an output that exists, and a duration or rate out of range."""
    check_suffix(output)
    if Path(output).exists():
        raise OutputError(f"{output}: exists. A recording does not replace a file; choose another name.")
    if duration is not None and not 0.0 < duration < float("inf"):
        raise DataError(f"duration must be a positive number of seconds. Got {duration} instead.")
    if not 0.0 < rate <= HIGHEST_RATE:
        raise DataError(f"rate must be at most {HIGHEST_RATE:g} Hz and positive. Got {rate:g} instead.")


@dataclass
class _Kept:
    """What a recording has kept so far."""

    samples: int = 0
    first: float = 0.0
    last: float = 0.0
    gaps: tuple[Gap, ...] = ()
    reconnects: tuple[int, ...] = ()
    ended: bool = False

    @property
    def seconds(self) -> float:
        return self.last - self.first

    def add(self, stamps: Array, rate: float) -> None:
        """Count samples by their stamps."""
        before = stamps[:1] if self.samples == 0 else np.array([self.last])
        found = find_gaps(np.concatenate([before, stamps]), rate)
        shift = self.samples - 1
        self.gaps += tuple(Gap(gap.index + shift, gap.missing, gap.seconds) for gap in found)
        if self.samples == 0:
            self.first = float(stamps[0])
        self.samples += len(stamps)
        self.last = float(stamps[-1])


_Event = bytes | JointwiseError | None
"""What the receiving thread reports: the payload of a message, a final error, or None for a new connection."""


class _Session:
    """A thread that receives, and a loop that writes: the network is read while the disk is busy."""

    def __init__(
        self, client: Client, subscription: Subscription, names: Sequence[str], rate: float, stop: threading.Event
    ) -> None:
        self._client, self._recipe, self._names, self._rate = client, subscription.recipe, names, rate
        self._stop = stop
        self._last_payload = b""
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()

    def run(
        self, journal: RecordingJournal, duration: float | None, progress: Callable[[RecordingStatus], None]
    ) -> _Kept:
        """Record until the duration is over or `stop` is set; return what was kept."""
        kept, began = _Kept(), time.monotonic()
        thread = threading.Thread(target=self._receive, daemon=True)
        try:
            self._client.start()
            thread.start()
            while not self._stop.is_set() and not kept.ended:
                time.sleep(FLUSH)
                self._write(journal, kept, duration)
                progress(self._status(kept, time.monotonic() - began))
        except KeyboardInterrupt:
            self._write(journal, kept, duration)
        except ConnectionLostError as problem:
            if kept.samples == 0:
                raise
            kept_in = f"{kept.samples} samples are in {journal.path}: complete them with 'jointwise convert'."
            raise ConnectionLostError(f"{problem} {kept_in}") from None
        finally:
            self._stop.set()
            self._client.pause()
            journal.close()
        if kept.samples == 0:
            journal.path.unlink()
            raise DataError(
                f"{self._client.address}: the recording ended before the first sample. Nothing was written."
            )
        return kept

    def _write(self, journal: RecordingJournal, kept: _Kept, duration: float | None) -> None:
        """Move what was received to the journal."""
        payloads = list[bytes]()
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                break
            if isinstance(event, bytes):
                payloads.append(event)
                continue
            self._append(journal, kept, payloads, duration)
            payloads = []
            if isinstance(event, JointwiseError):
                raise event
            kept.reconnects += (kept.samples,)
        self._append(journal, kept, payloads, duration)

    def _append(self, journal: RecordingJournal, kept: _Kept, payloads: list[bytes], duration: float | None) -> None:
        """Append messages, without those after the end of the recording."""
        if not payloads:
            return
        stamps = decode(self._recipe, b"".join(payloads))["timestamp"]
        if duration is not None:
            begin = kept.first if kept.samples else float(stamps[0])
            count = int((stamps - begin < duration - 0.5 / self._rate).sum())
            kept.ended = float(stamps[-1]) - begin >= duration - 1.5 / self._rate
            payloads, stamps = payloads[:count], stamps[:count]
        if payloads:
            journal.append(b"".join(payloads))
            kept.add(stamps, self._rate)
            self._last_payload = payloads[-1]

    def _status(self, kept: _Kept, elapsed: float) -> RecordingStatus:
        mode = "unknown"
        if kept.samples and "robot_mode" in self._recipe.columns:
            values = self._recipe.unpack(self._last_payload)
            number = int(values[self._recipe.columns.index("robot_mode")])
            mode = MODES.get(number, f"mode {number}")
        lost = sum(gap.missing for gap in kept.gaps)
        return RecordingStatus(kept.samples, kept.samples / max(elapsed, FLUSH), lost, kept.seconds, mode)

    def _receive(self) -> None:
        """Receive until the recording stops; a lost connection is opened again."""
        while not self._stop.is_set():
            try:
                for payload in self._client.packets():
                    self._check(payload)
                    self._events.put(payload)
                    if self._stop.is_set():
                        return
            except ConnectionLostError as problem:
                if self._stop.is_set() or not self._connect_again(problem):
                    return
            except JointwiseError as problem:
                self._events.put(problem)
                return

    def _check(self, payload: bytes) -> None:
        """Reject a data message that does not fit the recipe."""
        if len(payload) != self._recipe.layout.size or payload[0] != self._recipe.number:
            raise DataError(
                f"{self._client.address}: a data message must have {self._recipe.layout.size} bytes of recipe "
                f"{self._recipe.number}. Got {len(payload)} bytes instead."
            )

    def _connect_again(self, problem: ConnectionLostError) -> bool:
        """Open the connection again within `RECONNECT` seconds; False if that fails, which is reported."""
        deadline = time.monotonic() + RECONNECT
        while not self._stop.is_set() and time.monotonic() < deadline:
            try:
                self._client.close()
                self._client.connect()
                self._recipe_again()
                self._client.start()
                self._events.put(None)
                return True
            except (DataError, ConnectionLostError):
                time.sleep(RETRY)
        self._events.put(ConnectionLostError(f"{problem} It was not available again within {RECONNECT:g} s."))
        return False

    def _recipe_again(self) -> None:
        """Subscribe to the same fields as before."""
        again = self._client.subscribe(self._names, self._rate).recipe
        if again != Recipe(again.number, self._recipe.names, self._recipe.types):
            raise DataError(f"{self._client.address}: the controller sends other fields than before.")
        self._recipe = again


def missing_field_notes(missing: Sequence[str]) -> list[str]:
    """Return one line for every requested field that the controller does not have."""
    return [f"the controller has no field '{name}'. {nearest(name, FIELDS)}" for name in missing]
