"""A log: what was measured, in SI units, with the raw stamps and the origin of every number."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.data.channels import CHANNELS, OPTIONAL, POSITION, TIME, channel_named, default_names
from jointwise.data.spool import Spool
from jointwise.errors import DataError, ShapeError
from jointwise.spatial import Array


@dataclass(frozen=True)
class Origin:
    """Where a log came from.

    `path` as it was given; `sha256` and `size` (bytes) of the file; `reader` "csv", "parquet" or "memory";
    `rows` samples read; `notes` what the reader left out or converted; `first_line` the 1-based line of the first
    sample in a text file, None where samples are not lines; `start` the first sample of this log in the file;
    `gravity` (3,) under which it was recorded, m/s² in the base, None where the file does not tell.
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
    """Immutable recording of a robot: raw stamps and channels of shape (samples, joints), None where absent.

    `t` (samples,) s exactly as in the file; units of the rest in `channels`. `names` the file's own column names
    of each channel. Arrays are read-only; a large log's channels are views of a file on disk (see `release`),
    only its stamps stay in memory.
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
    origin: Origin = field(default_factory=Origin)
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
        if self.origin.rows == 0:
            object.__setattr__(self, "origin", replace(self.origin, rows=self.samples))

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

    @property
    def available(self) -> tuple[str, ...]:
        """Names of the channels that this log has, `t` and `q` first."""
        return tuple(name for name in CHANNELS if getattr(self, name) is not None)

    def channel(self, name: str) -> Array:
        """Return a channel by its name or column stem ("current" or "i"), or say that this log lacks it."""
        known = channel_named(name, self.origin.path).name
        values: Array | None = getattr(self, known)
        if values is None:
            raise DataError(f"{self.origin.path}: no channel '{known}'. Found: {', '.join(self.available)}.")
        return values

    def slice(self, start: int, stop: int) -> Log:
        """Return the samples start..stop-1 as a log; views, nothing is copied."""
        first, last, _ = slice(start, stop).indices(self.samples)
        parts = {name: getattr(self, name)[first:last] for name in self.available}
        return replace(self, **parts, origin=replace(self.origin, start=self.origin.start + first))

    def select(self, **channels: bool) -> Log:
        """Return the log without the channels set to False: ``log.select(torque=False)``."""
        for name in channels:
            if name not in OPTIONAL:
                raise DataError(
                    f"{self.origin.path}: only {', '.join(OPTIONAL)} can be left out. Got '{name}' instead."
                )
        dropped: dict[str, Any] = {name: None for name, keep in channels.items() if not keep}
        return replace(self, **dropped)

    def without(self, channels: Collection[str]) -> Log:
        """Return the log without some optional channels."""
        return self.select(**dict.fromkeys(channels, False)) if channels else self

    def take(self, index: NDArray[np.intp], note: str) -> Log:
        """Return the samples of `index` (ascending) as a log; spooled to disk if this log is.

        Lines of the file are not lines of the result any more, so places are then told as samples.
        """
        spool = Spool(sum(self._widths().values()), None if self.pages is None else 0)
        for part in np.array_split(index, max(1, len(index) // 65536)):
            spool.append(np.column_stack([getattr(self, name)[part] for name in self.available]))
            self.release()
        matrix, pages = spool.finish()
        origin = replace(self.origin, notes=(*self.origin.notes, note), first_line=None)
        return log_from_matrix(matrix, self._widths(), self.names, origin, pages)

    def chunks(self, samples: int, margin: int = 0) -> Iterator[Chunk]:
        """Yield the log in pieces of `samples`, each with up to `margin` more on both sides; releases after each."""
        if samples < 1 or margin < 0:
            raise ShapeError(f"chunks need samples >= 1 and margin >= 0. Got {samples} and {margin} instead.")
        for start in range(0, self.samples, samples):
            stop = min(start + samples, self.samples)
            first = max(0, start - margin)
            part = self.slice(first, min(self.samples, stop + margin))
            yield Chunk(part, slice(start - first, stop - first), start)
            self.release()

    def release(self) -> None:
        """Drop the pages of a large log from memory; they are read again from disk when touched."""
        _release(self.pages)

    def _widths(self) -> dict[str, int]:
        """Return the number of columns of each available channel."""
        return {name: 1 if name == TIME else self.joints for name in self.available}


@dataclass(frozen=True)
class Chunk:
    """A piece of a log with its margins: `log`, the `inner` part without margins, `start` of inner in the whole."""

    log: Log
    inner: slice
    start: int


def log_from_matrix(
    matrix: Array,
    widths: Mapping[str, int],
    names: Mapping[str, tuple[str, ...]],
    origin: Origin,
    pages: mmap.mmap | None = None,
) -> Log:
    """Return the log of a matrix (samples, columns) whose channels stand side by side, `widths` columns each."""
    parts: dict[str, Any] = {}
    column = 0
    for name, width in widths.items():
        part = matrix[:, column : column + width]
        if name == TIME:
            parts[name] = _stamps(part, pages)
        else:
            parts[name] = part if pages is not None else _owned(part)
        column += width
    return Log(**parts, names=names, origin=origin, pages=pages)


def _stamps(column: Array, pages: mmap.mmap | None) -> Array:
    """Return the stamps (samples,) as an array of their own: a walk over mapped stamps would touch every page."""
    stamps = np.empty(len(column))
    for start in range(0, len(column), 65536):
        stamps[start : start + 65536] = column[start : start + 65536, 0]
        _release(pages)
    stamps.setflags(write=False)
    return stamps


def _release(pages: mmap.mmap | None) -> None:
    """Drop mapped pages from memory where the system can."""
    if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


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
