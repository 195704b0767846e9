"""A log: what was measured, in SI units, with the raw stamps and the origin of every number."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked
from jointwise.data.channels import (
    CHANNELS,
    OPTIONAL,
    OUTPUTS,
    POSITION,
    TIME,
    channel_named,
    complete_names,
    default_names,
)
from jointwise.data.clock import Clock, examine_clock
from jointwise.data.spool import Spool, release_pages, stamps_of
from jointwise.description.robot import Payload, Robot
from jointwise.errors import DataError, ModelError, ShapeError
from jointwise.spatial import Array

RUN_IN = 10.0
"""Duration (s) before a part of a log in which hysteresis and filters settle; it is not counted."""


@dataclass(frozen=True)
class Origin:
    """Origin of a log.

    Attributes:
        path: Path as passed to the reader.
        sha256: Hash of the file.
        size: Size of the file, bytes.
        reader: `csv`, `parquet` or `memory`.
        rows: Number of samples that were read.
        notes: What the reader omitted or converted.
        first_line: Line (from 1) of the first sample in a text file; None if samples are not lines.
        start: Index of the first sample of this log in the file.
        gravity: Gravity in the base frame, (3,), m/s²; None if the file does not state it.

    """

    path: str = "memory"
    sha256: str = ""
    size: int = 0
    reader: str = "memory"
    rows: int = 0
    notes: tuple[str, ...] = ()
    first_line: int | None = None
    start: int = 0
    gravity: tuple[float, ...] | None = None

    def where(self, sample: int) -> str:
        """Return the place of a sample for a message: "row 17" (1-based line of the file), else "sample 16"."""
        if self.first_line is None:
            return f"sample {self.start + sample}"
        return f"row {self.first_line + self.start + sample}"


@dataclass(frozen=True, eq=False)
class Log:
    """Immutable recording of a robot, as it was measured, in SI units.

    Channels have the shape (samples, joints) and are None where absent. Arrays are read-only. The channels of a large
    log are views of a file on disk (see `release`); only its time stamps stay in memory.

    Attributes:
        t: Time stamps as in the file, (samples,), s.
        q: Joint positions, rad or m.
        qd: Measured speeds, rad/s or m/s.
        theta: Rotor positions divided by the gear ratio, rad.
        current: Motor currents, A.
        torque: Joint torques, Nm or N.
        temperature: Joint temperatures, °C.
        q_des: Reference positions, rad or m.
        qd_des: Reference speeds, rad/s or m/s.
        qdd_des: Reference accelerations, rad/s² or m/s².
        current_des: Target currents, A.
        torque_des: Target torques, Nm or N.
        names: Column names of the file for each channel.
        extra: Other columns of the file by name, (samples,), in the units of the file (see `read_log`).
        origin: File and reader.
        payload: Payload of this log; None for that of the model (see `with_payload`).
        run_in: This log with the samples before it, in which the hysteresis of a prediction settles.
        original: Log with the same stamps that this one was made from (see `with_channels`); None if there is none.
        pages: Memory map of a large log.

    """

    t: Array
    q: Array
    qd: Array | None = None
    theta: Array | None = None
    current: Array | None = None
    torque: Array | None = None
    temperature: Array | None = None
    q_des: Array | None = None
    qd_des: Array | None = None
    qdd_des: Array | None = None
    current_des: Array | None = None
    torque_des: Array | None = None
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: Mapping[str, Array] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)
    payload: Payload | None = None
    run_in: Log | None = field(default=None, repr=False)
    original: Log | None = field(default=None, repr=False)
    pages: mmap.mmap | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Freeze the arrays, check their shapes and complete the names."""
        object.__setattr__(self, TIME, _frozen(self.t, TIME))
        object.__setattr__(self, POSITION, _frozen(self.q, POSITION))
        if self.t.ndim != 1 or self.q.ndim != 2 or len(self.q) != len(self.t):
            raise ShapeError(
                f"a log needs t of shape (samples,) and q of shape (samples, joints). "
                f"Got {self.t.shape} and {self.q.shape} instead."
            )
        for name in OPTIONAL:
            self._freeze(name)
        names = {name: tuple(self.names.get(name, default_names(name, self.joints))) for name in self.available}
        object.__setattr__(self, "names", MappingProxyType(names))
        object.__setattr__(self, "extra", MappingProxyType({k: _frozen(v, k) for k, v in self.extra.items()}))
        if self.origin.rows == 0:
            object.__setattr__(self, "origin", replace(self.origin, rows=self.samples))
        if self.original is not None and (self.original.t is not self.t or self.original.origin is not self.origin):
            object.__setattr__(self, "original", None)  # other stamps, or other rows of the file

    def __repr__(self) -> str:
        """Return file, size, duration and channels in one line."""
        file = "" if self.origin.path == "memory" else f"{self.origin.path!r}, "
        time = f"{self.duration:.1f} s"
        if self.duration > 0.0:
            time += f" at {(self.samples - 1) / self.duration:.4g} Hz"
        channels = " ".join(name for name in self.available if name != TIME)
        return f"Log({file}{self.samples} samples, {self.joints} joints, {time}, channels {channels})"

    def _freeze(self, name: str) -> None:
        """Freeze one optional channel and check its shape."""
        if getattr(self, name) is None:
            return
        values = _frozen(getattr(self, name), name)
        if values.shape != self.q.shape:
            raise ShapeError(f"log channel '{name}' must have shape {self.q.shape}. Got {values.shape} instead.")
        object.__setattr__(self, name, values)

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.q.shape[1])

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.t)

    @property
    def duration(self) -> float:
        """Last stamp minus first, s; 0 for fewer than two samples."""
        return float(self.t[-1] - self.t[0]) if self.samples else 0.0

    @cached_property
    def clock(self) -> Clock:
        """How the stamps run: rate, jitter, gaps, repeated and reversed stamps.

        It is computed once for the same stamps.
        """
        return examine_clock(self) if self.original is None else self.original.clock

    @property
    def available(self) -> tuple[str, ...]:
        """Names of the channels that this log has, `t` and `q` first."""
        return tuple(name for name in CHANNELS if getattr(self, name) is not None)

    @checked
    def channel(self, name: str) -> Array:
        """Return a channel by its name or column stem ("current" or "i"), or say that this log lacks it."""
        known = channel_named(name, self.origin.path).name
        values: Array | None = getattr(self, known)
        if values is None:
            raise DataError(f"{self.origin.path}: no channel '{known}'. Found: {', '.join(self.available)}.")
        return values

    def unmeasured(self, name: str) -> NDArray[np.bool_]:
        """Return which joints have no values of a channel, (joints,): their columns are NaN."""
        missing: NDArray[np.bool_] = np.isnan(self.channel(name)[0])
        return missing

    def with_channels(self, **changed: Any) -> Log:
        """Return the log with other fields at the same stamps; its clock is that of this log and not examined again.

        Args:
            **changed: Channels and other fields of a log, except `t`, by name.
        """
        return replace(self, **changed, original=self.original or self)

    @checked
    def ignore_output(self, joints: Collection[int]) -> Log:
        """Return the log without current and torque of some joints (0-based): these columns become NaN.

        Positions and speeds of the joints remain: they move the bodies behind them.

        Args:
            joints: Joints whose outputs were not measured or are useless.

        Returns:
            The log.

        Raises:
            DataError: There is no such joint.
        """
        wrong = [joint + 1 for joint in joints if not 0 <= joint < self.joints]
        if wrong:
            raise DataError(f"{self.origin.path}: an ignored joint must be from 1 to {self.joints}. Got {wrong[0]}.")
        if not joints:
            return self
        here = np.isin(np.arange(self.joints), list(joints))
        changed: dict[str, Any] = {
            name: np.where(here, np.nan, getattr(self, name)) for name in OUTPUTS if getattr(self, name) is not None
        }
        return self.with_channels(**changed, run_in=None if self.run_in is None else self.run_in.ignore_output(joints))

    @checked
    def with_payload(self, payload: Payload | None) -> Log:
        """Return the log with what the tool carries in it.

        A calibration removes the known payload of a log, and a prediction adds it, so that loaded and unloaded logs
        can be mixed.

        Args:
            payload: The payload; ``Payload(0.0)`` for none, None for that of the model.

        Returns:
            The log.
        """
        before = None if self.run_in is None else self.run_in.with_payload(payload)
        return self.with_channels(payload=payload, run_in=before)

    @checked
    def with_temperature(self, temperature: float) -> Log:
        """Return the log with one temperature (degC) of all joints, where none was recorded."""
        if self.temperature is not None:
            raise DataError(f"{self.origin.path}: the log has temperatures of its joints.")
        if not np.isfinite(temperature):
            raise DataError(f"{self.origin.path}: a temperature must be finite. Got {temperature} instead.")
        before = None if self.run_in is None else self.run_in.with_temperature(temperature)
        return self.with_channels(temperature=np.full(self.q.shape, temperature), run_in=before)

    @checked
    def slice(self, start: int, stop: int) -> Log:
        """Return the samples start..stop-1 as a log; views, nothing is copied."""
        first, last, _ = slice(start, stop).indices(self.samples)
        parts: dict[str, Any] = {name: getattr(self, name)[first:last] for name in self.available}
        parts["extra"] = {name: values[first:last] for name, values in self.extra.items()}
        parts["run_in"] = None
        return replace(self, **parts, origin=replace(self.origin, start=self.origin.start + first))

    def select(self, **channels: bool) -> Log:
        """Return the log without the channels set to False: ``log.select(torque=False)``."""
        for name in channels:
            if name not in OPTIONAL:
                raise DataError(
                    f"{self.origin.path}: only {', '.join(OPTIONAL)} can be left out. Got '{name}' instead."
                )
        dropped: dict[str, Any] = {name: None for name, keep in channels.items() if not keep}
        return self.with_channels(**dropped, run_in=None if self.run_in is None else self.run_in.select(**channels))

    @checked
    def without(self, channels: Collection[str]) -> Log:
        """Return the log without some optional channels."""
        return self.select(**dict.fromkeys(channels, False)) if channels else self

    def take(self, index: NDArray[np.intp], note: str) -> Log:
        """Return the samples of `index` (ascending) as a log; spooled to disk if this log is.

        Lines of the file are not lines of the result any more, so messages then count samples.
        """
        spool = Spool(sum(self._widths().values()), None if self.pages is None else 0)
        for part in np.array_split(index, max(1, len(index) // 65536)):
            spool.append(np.column_stack([getattr(self, name)[part] for name in self.available]))
            self.release()
        matrix, pages = spool.finish()
        origin = replace(self.origin, notes=(*self.origin.notes, note), first_line=None)
        extra = {name: values[index] for name, values in self.extra.items()}
        taken = log_from_matrix(matrix, self._widths(), self.names, origin, pages)
        return replace(taken, extra=extra, payload=self.payload)

    def chunks(self, samples: int) -> Iterator[Log]:
        """Yield the log in pieces of `samples`; releases after each."""
        for start in range(0, self.samples, samples):
            yield self.slice(start, min(start + samples, self.samples))
            self.release()

    def release(self) -> None:
        """Drop the pages of a large log from memory; they are read again from disk when touched."""
        release_pages(self.pages)

    def _widths(self) -> dict[str, int]:
        """Return the number of columns of each available channel."""
        return {name: 1 if name == TIME else self.joints for name in self.available}


def log_list(logs: Log | Iterable[Log]) -> list[Log]:
    """Return one log or several as a list; raise `ModelError` if there is none, `DataError` if one is empty."""
    found = [logs] if isinstance(logs, Log) else list(logs)
    if not found:
        raise ModelError("logs must have at least one log. Got none instead.")
    for log in found:
        if not log.samples:
            raise DataError(f"{log.origin.path}: the log has no samples.")
    return found


def check_joints(log: Log, robot: Robot) -> None:
    """Raise `DataError` unless a log has as many joints as a robot."""
    if log.joints != robot.dof:
        raise DataError(f"{log.origin.path}: the log has {log.joints} joints, {robot.name} has {robot.dof}.")


@checked
def holdout(log: Log, fraction: float) -> tuple[Log, Log]:
    """Return the first part of a log for training and its last `fraction` (0 < fraction < 1) for test.

    The test part keeps up to `RUN_IN` s before it as `run_in`: a cut in mid-motion does not lose the hysteresis state.
    """
    if not 0.0 < fraction < 1.0:
        raise DataError(f"holdout must be between 0 and 1. Got {fraction} instead.")
    cut = round(log.samples * (1.0 - fraction))
    if not 2 <= cut <= log.samples - 2:
        raise DataError(f"{log.origin.path}: {log.samples} samples are too few to hold out {fraction:g} of them.")
    first = int(np.searchsorted(log.t, log.t[cut] - RUN_IN)) if (np.diff(log.t[: cut + 1]) >= 0.0).all() else cut
    return log.slice(0, cut), replace(log.slice(cut, log.samples), run_in=log.slice(first, log.samples))


def log_from_matrix(
    matrix: Array,
    widths: Mapping[str, int],
    names: Mapping[str, tuple[str, ...]],
    origin: Origin,
    pages: mmap.mmap | None = None,
    measured: Mapping[str, tuple[int, ...]] | None = None,
) -> Log:
    """Return the log of a matrix whose channels stand side by side.

    Args:
        matrix: Values (samples, columns) in SI units.
        widths: Number of columns by channel, in the order of the matrix.
        names: Names of the columns by channel.
        origin: Where the values come from.
        pages: Memory map that holds the matrix; None for plain memory.
        measured: Joints (0-based) of the columns of channels that lack some; the others become NaN.
    """
    parts: dict[str, Any] = {}
    measured = measured or {}
    column = 0
    for name, width in widths.items():
        part = matrix[:, column : column + width]
        if name == TIME:
            parts[name] = stamps_of(part, pages)
        elif name in measured:
            parts[name] = np.full((len(matrix), widths[POSITION]), np.nan)
            parts[name][:, measured[name]] = part
        else:
            parts[name] = part if pages is not None else _owned(part)
        column += width
    names = {name: complete_names(name, texts, measured.get(name), widths[POSITION]) for name, texts in names.items()}
    return Log(**parts, names=names, origin=origin, pages=pages)


def _owned(values: Array) -> Array:
    """Return a read-only contiguous copy."""
    copy = np.array(values, order="C")
    copy.setflags(write=False)
    return copy


def _frozen(values: object, name: str) -> Array:
    """Return `values` as a read-only float array; copied only if somebody else could write to it."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"log channel '{name}' must be an array of numbers.") from None
    return _owned(array) if array.flags.writeable else array
