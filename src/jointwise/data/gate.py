"""The gate between a file and a log: what is missing may cost a channel, what is garbage refuses the file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jointwise.data.channels import POSITION, TIME
from jointwise.data.columns import Layout
from jointwise.errors import DataError
from jointwise.spatial import Array

NEEDED = (TIME, POSITION, "current", "torque")
"""Channels in which a missing value refuses the log; in the others it costs the channel, with a note."""


@dataclass
class Gate:
    """Passes blocks of values; counts, per column, how many were missing."""

    layout: Layout
    needed: Collection[str] = NEEDED
    largest: Array = field(init=False)
    channels: list[str] = field(init=False)
    rows: int = 0
    missing: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the limits of each column."""
        self.largest, self.channels = self.layout.largest, self.layout.channels
        self.missing = np.zeros(len(self.channels), dtype=np.intp)

    def passes(self, matrix: Array) -> bool:
        """Take a block of SI values (rows, columns); False if it holds garbage, which the reader then locates.

        Garbage is a magnitude beyond belief. Non-finite values only count as missing here (see `verdict`).
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
        holed = {c for c, count in zip(self.channels, self.missing, strict=True) if count and c not in self.needed}
        return (empty | holed) - {TIME, POSITION}

    def fatal(self) -> set[str]:
        """Return the channels whose missing values refuse the log."""
        return {c for c, count in zip(self.channels, self.missing, strict=True) if count} - self.lost()

    def notes(self) -> tuple[str, ...]:
        """Return a note for each channel left out."""
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
