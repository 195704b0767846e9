"""Which rows of a table become samples: missing values, channels without any, and what is refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jointwise.data.channels import OUTPUTS, POSITION, TIME
from jointwise.data.columns import TableLayout
from jointwise.data.mapping import Wanted
from jointwise.errors import DataError
from jointwise.spatial import Array

NEEDED = (TIME, POSITION, "current", "torque")
"""Channels whose missing values reject the log; any other channel with missing values is left out, with a note."""


@dataclass(frozen=True)
class ReadOptions:
    """How a file becomes a log, as `read_log` describes it.

    Attributes:
        wanted: Columns that the user stated.
        joints: Number of joints; None for any.
        needed: Channels that must have no missing values.
        spool_bytes: Bytes of a log that stay in memory; None for the default.
        extra: Names or patterns of other columns to read.
        ignored: Joints (0-based) whose output is ignored.
    """

    wanted: Wanted
    joints: int | None
    needed: Collection[str]
    spool_bytes: int | None
    extra: Sequence[str] = ()
    ignored: Collection[int] = ()


@dataclass
class Gate:
    """Passes blocks of values; counts, per column, how many were missing.

    Missing values of an output (current, torque) are accepted of the ignored joints, and where a joint has no values at
    all.

    Attributes:
        layout: Columns of the file.
        needed: Channels that must have no missing values.
        ignored: Joints (0-based) whose output is ignored.
        largest: Largest plausible magnitude of every column, (columns,), SI units.
        channels: Channel of every column.
        joints: Joint (0-based) of every column.
        rows: Number of rows so far.
        missing: Number of missing values of every column so far, (columns,).
    """

    layout: TableLayout
    needed: Collection[str] = NEEDED
    ignored: Collection[int] = ()
    largest: Array = field(init=False)
    channels: list[str] = field(init=False)
    joints: list[int] = field(init=False)
    rows: int = 0
    missing: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the limits of each column."""
        self.largest, self.channels, self.joints = self.layout.largest, self.layout.channels, self.layout.joints
        self.missing = np.zeros(len(self.channels), dtype=np.intp)

    def passes(self, matrix: Array) -> bool:
        """Take a block of SI values (rows, columns); False if it holds garbage, which the reader then locates.

        Garbage is a magnitude out of the range of its channel. Non-finite values only count as missing (see `verdict`).
        """
        self.rows += len(matrix)
        if len(matrix) == 0 or bool(
            ((matrix.min(axis=0) >= -self.largest) & (matrix.max(axis=0) <= self.largest)).all()
        ):
            return True
        lost = ~np.isfinite(matrix)
        self.missing += lost.sum(axis=0)
        return bool(((np.abs(matrix) <= self.largest) | lost).all())

    def lost(self) -> set[str]:
        """Return the channels to leave out: not needed and holed, or altogether empty (never t and q)."""
        empty = {channel for channel in self.channels if self._empty(channel)}
        holed = {c for k, c in enumerate(self.channels) if self._holed(k) and c not in self.needed}
        return (empty | holed) - {TIME, POSITION}

    def fatal(self) -> list[int]:
        """Return the columns, as positions in the log's matrix, whose missing values refuse the log."""
        lost = self.lost()
        return [k for k, channel in enumerate(self.channels) if channel not in lost and self._holed(k)]

    def _holed(self, k: int) -> bool:
        """Return whether a column has missing values that are not accepted."""
        accepted = self.channels[k] in OUTPUTS and (self.joints[k] in self.ignored or self.missing[k] == self.rows)
        return bool(self.missing[k]) and not accepted

    def _unmeasured(self) -> list[int]:
        """Return the columns of outputs that have no values, of channels that are kept."""
        lost = self.lost()
        named = enumerate(self.channels)
        return [k for k, c in named if c in OUTPUTS and c not in lost and 0 < self.missing[k] == self.rows]

    def notes(self) -> tuple[str, ...]:
        """Return a note for each channel left out, and for each output without values."""
        unmeasured = (f"{self.layout.labels[k]} has no values: this output is ignored" for k in self._unmeasured())
        return (*unmeasured, *self._left_out())

    def _left_out(self) -> tuple[str, ...]:
        return tuple(
            f"{channel} left out: {self.count(channel)} of its values are missing or not finite"
            for channel in self.layout.positions
            if channel in self.lost()
        )

    def count(self, channel: str) -> int:
        """Return how many values of a channel are missing."""
        return sum(int(n) for c, n in zip(self.channels, self.missing, strict=True) if c == channel)

    def _empty(self, channel: str) -> bool:
        """Return whether a channel has no value at all."""
        return self.rows > 0 and self.count(channel) == self.rows * self.channels.count(channel)


def refuse_short(rows: int, where: str) -> None:
    """Refuse a log of no or one sample."""
    if rows < 2:
        found = "no rows below the header" if rows == 0 else "only one row"
        raise DataError(f"{where}: {found}. A log needs at least two samples, and seconds of motion to be of use.")


def refuse_missing(channel: str, label: str, count: int, place: str, where: str) -> None:
    """Refuse a log because a needed value is missing."""
    more = f" and {count - 1} more values of {channel}" if count > 1 else ""
    raise DataError(
        f"{where}: {place}, column '{label}' is missing or not finite{more}. "
        "Cut those rows out, or leave the column out."
    )
