"""Parts of a record: samples in motion, runs at constant speed, and pairs of runs forward and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d, uniform_filter1d

from jointwise.data.statistics import intervals
from jointwise.joint.record import SLIDING_SHARE, JointRecord
from jointwise.spatial import Array

Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

STANDSTILL_SHARE = 0.005
"""Fraction of the top speed below which the joint counts as standing: runs at a hundredth of it are usable data."""
PRESLIDING_TRAVEL = 0.01
"""Travel (rad) after a standstill or reversal at which presliding is over: about ten times the backlash of a gear."""
STEADY_SHARE = 0.05
"""Fraction of the largest acceleration up to which a joint counts as moving at constant speed."""
VISIBLE_WARMING = 3.0
"""Change of temperature (K) from which friction changes by some percent."""


def moving(record: JointRecord) -> Flags:
    """Return flags of the samples in motion."""
    return np.abs(record.speed) > STANDSTILL_SHARE * record.top_speed


def settled(record: JointRecord) -> Flags:
    """Return flags of the samples past presliding since the last standstill, reversal or gap."""
    direction = np.sign(record.speed) * moving(record)
    turns = np.diff(direction, prepend=np.nan) != 0
    turns |= np.diff(record.segment, prepend=-1) != 0
    start = np.maximum.accumulate(np.where(turns, np.arange(record.samples), 0))
    result: Flags = (direction != 0) & (np.abs(record.position - record.position[start]) >= PRESLIDING_TRAVEL)
    return result


TWO_SIDED_SHARE = 0.1
"""Smallest fraction of samples on either side, such as directions of motion, for the sides to be compared."""


def has_both(flags: Flags) -> bool:
    """Return whether enough of the flags are true and enough are false for the two sides to be compared."""
    return TWO_SIDED_SHARE <= float(np.mean(flags)) <= 1.0 - TWO_SIDED_SHARE


def unaccelerated(record: JointRecord) -> Flags:
    """Return flags of the samples at constant speed, where the load is weight and not inertia."""
    acceleration = np.abs(record.acceleration)
    result: Flags = acceleration <= STEADY_SHARE * acceleration.max()
    return result


LOAD_VARIATION = 0.5
"""A load that varies by more than this fraction of the friction is visible in it."""
LOAD_QUANTILES = (0.05, 0.95)
"""Quantiles of the load of steady samples, and of the speed of sliding ones, that count as their range: ramps that look
steady do not."""

# -- runs at constant speed --

AVERAGING_TIMES = ((0.2, 0.0), (0.8, 1.5))
"""(averaging time of the speed, shortest run), s: any run, and longer ones whose speed oscillates."""
WINDOW = 0.3
"""Time (s) within which a constant speed hardly changes, and the shortest run without ramps and settling."""
MAX_CHANGE = 0.1
"""Relative difference up to which speeds count as the same, within a run and between runs; noise is as large where the
direction of motion is uncertain (`SLIDING_SHARE`), so slower runs may change as much as one at that speed."""


@dataclass(frozen=True, eq=False)
class Plateaus:
    """Runs at constant speed, (runs,) each.

    Attributes:
        speed: Mean speed, rad/s.
        duration: Duration, s.
        segment: Number of the gap-free segment.
        first: First sample of a run.
        last: Sample after its last one.
    """

    speed: Array
    duration: Array
    segment: Indices
    first: Indices
    last: Indices

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.speed)

    @property
    def levels(self) -> Indices:
        """Rank of the speed of each run by size, 0, 1, ..., (runs,).

        Speeds within `MAX_CHANGE` share one.
        """
        order = np.argsort(np.abs(self.speed))
        sizes = np.abs(self.speed)[order]
        steps = np.diff(np.log(sizes)) > np.log1p(MAX_CHANGE)
        levels = np.empty(len(sizes), dtype=np.intp)
        levels[order] = np.concatenate([[0], np.cumsum(steps)]) if len(sizes) else 0
        return levels

    def means(self, values: Array) -> Array:
        """Return the mean of values (samples,) over every run, (runs,)."""
        return _means(values, self.first, self.last)

    def opposite(self) -> Indices:
        """Return pairs (forward, backward) of consecutive runs at the same speed, (pairs, 2); none is used twice."""
        pairs: list[tuple[int, int]] = []
        levels, k = self.levels, 0
        while k + 1 < self.runs:
            same = levels[k] == levels[k + 1] and self.segment[k] == self.segment[k + 1]
            if same and self.speed[k] * self.speed[k + 1] < 0.0:
                pairs.append((k, k + 1) if self.speed[k] > 0.0 else (k + 1, k))
                k += 1
            k += 1
        return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def find_plateaus(record: JointRecord) -> Plateaus:
    """Return the runs of a record at constant speed; there may be none."""
    found: list[tuple[int, int]] = []
    for k in np.unique(record.segment):
        index = np.flatnonzero(record.segment == k)
        start = int(index[0])
        piece = record.take(slice(start, int(index[-1]) + 1))  # type: ignore[arg-type]
        constant: Flags = np.any([_is_constant(piece, record.top_speed, *times) for times in AVERAGING_TIMES], axis=0)
        flat = constant & settled(piece) & moving(piece)
        found += [(start + a, start + b) for a, b in intervals(flat) if b - a >= WINDOW * record.rate]
    first, last = np.array(found, dtype=np.intp).reshape(-1, 2).T
    return Plateaus(_means(record.speed, first, last), (last - first) / record.rate, record.segment[first], first, last)


def _is_constant(piece: JointRecord, top: float, averaging: float, shortest: float) -> Flags:
    """Return flags of the samples at which the averaged speed hardly changes within `WINDOW`."""
    speed = uniform_filter1d(piece.speed, max(1, int(averaging * piece.rate)), mode="nearest")
    window = max(1, int(WINDOW * piece.rate))
    change = maximum_filter1d(speed, window) - minimum_filter1d(speed, window)
    allowed = MAX_CHANGE * np.maximum(np.abs(speed), SLIDING_SHARE * top)
    flat: Flags = (change <= allowed) & (np.abs(speed) > STANDSTILL_SHARE * top)
    for first, last in intervals(flat):
        flat[first:last] = last - first >= shortest * piece.rate
    return flat


def _means(values: Array, first: Indices, last: Indices) -> Array:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    result: Array = (sums[last] - sums[first]) / (last - first)
    return result


def level_columns(level: Indices) -> Array:
    """Return a column of ones and zeros for every speed, (rows, levels), of rows with the ranks of their speed."""
    columns: Array = (level[:, None] == np.arange(level.max() + 1)).astype(float)
    return columns
