"""Constant-speed runs, found in any log of a joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d, uniform_filter1d

from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

SMOOTH = (0.2, 0.8)
"""Times (s) over which a speed is averaged before it is judged: any run, and long ones that swing..."""
LONG = (0.0, 1.5)
"""...for at least so long (s)."""
WINDOW = 0.3
"""Time (s) over which a constant speed may not change..."""
CHANGE = 0.1
"""...by more than this part of itself..."""
FLOOR = 0.002
"""...or this part of the top speed, whichever is more."""
SLOWEST = 0.005
"""Parts of the top speed below which the joint stands."""
SHORTEST = 0.1
"""Time (s) that a run lasts at least, ramps and settling taken off."""
SETTLED = 0.01
"""Way (rad) after a standstill or reversal at which presliding is over."""


@dataclass(frozen=True, eq=False)
class Plateaus:
    """Runs at constant speed, means over each as (runs,): rad/s, Nm, rad, °C, s; `first`, `last` samples of each."""

    speed: Array
    friction: Array
    load: Array
    time: Array
    duration: Array
    temperature: Array | None
    stretch: Indices
    first: Indices
    last: Indices

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.speed)

    @property
    def levels(self) -> Indices:
        """Which speed (0, 1, ... by size) each run has: speeds within a tenth of each other are the same."""
        order = np.argsort(np.abs(self.speed))
        sizes = np.abs(self.speed)[order]
        rank = np.concatenate([[0], np.cumsum(np.diff(np.log(sizes)) > np.log(1.1))]) if len(sizes) else sizes
        levels = np.empty(len(sizes), dtype=np.intp)
        levels[order] = rank
        return levels


def find_plateaus(record: JointRecord) -> Plateaus:
    """Return the constant-speed runs of a record, none where there are none."""
    found = [run for k in np.unique(record.stretch) for run in _runs(record, np.flatnonzero(record.stretch == k))]
    first, last = (np.array([run[side] for run in found], dtype=np.intp) for side in (0, 1))
    means = {name: _means(getattr(record, name), first, last) for name in ("speed", "friction", "load", "t")}
    warmth = None if record.temperature is None else _means(record.temperature, first, last)
    return Plateaus(
        speed=means["speed"],
        friction=means["friction"],
        load=means["load"],
        time=means["t"],
        duration=(last - first) / record.rate,
        temperature=warmth,
        stretch=record.stretch[first],
        first=first,
        last=last,
    )


def opposite_runs(plateaus: Plateaus) -> list[tuple[int, int]]:
    """Return runs (forwards, backwards) of the same speed that follow each other; every run is used once."""
    pairs, levels, k = [], plateaus.levels, 0
    while k + 1 < plateaus.runs:
        same = levels[k] == levels[k + 1] and plateaus.stretch[k] == plateaus.stretch[k + 1]
        if same and plateaus.speed[k] * plateaus.speed[k + 1] < 0.0:
            pairs.append((k, k + 1) if plateaus.speed[k] > 0.0 else (k + 1, k))
            k += 1
        k += 1
    return pairs


def run_means(values: Array, plateaus: Plateaus) -> Array:
    """Return the mean of values (samples,) over every run, (runs,)."""
    return _means(values, plateaus.first, plateaus.last)


def moving(record: JointRecord) -> Flags:
    """Tell at which samples the joint moves."""
    result: Flags = np.abs(record.speed) > SLOWEST * top_speed(record)
    return result


def top_speed(record: JointRecord) -> float:
    """Return the speed (rad/s) that is exceeded in a thousandth of the time only."""
    return float(np.quantile(np.abs(record.speed), 0.999))


def settled(record: JointRecord, way: float = SETTLED) -> Flags:
    """Tell which samples are at least a `way` (rad) past the last standstill, reversal or gap."""
    direction = np.sign(record.speed) * moving(record)
    turns = np.diff(direction, prepend=np.nan) != 0
    turns |= np.diff(record.stretch, prepend=-1) != 0
    start = np.maximum.accumulate(np.where(turns, np.arange(record.samples), 0))
    result: Flags = (direction != 0) & (np.abs(record.position - record.position[start]) >= way)
    return result


def intervals(flags: Flags) -> list[tuple[int, int]]:
    """Return where flags are up, as (first, one past last)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _runs(record: JointRecord, index: Indices) -> list[tuple[int, int]]:
    """Return the runs (first, one past last) of one gap-free stretch, which lies at `index`."""
    piece = record.take(slice(int(index[0]), int(index[-1]) + 1))  # type: ignore[arg-type]
    flat = _flat(piece, top_speed(record)) & settled(piece) & moving(piece)
    shortest = SHORTEST * record.rate
    return [(int(index[0]) + a, int(index[0]) + b) for a, b in intervals(flat) if b - a >= shortest]


def _flat(piece: JointRecord, top: float) -> Flags:
    """Tell where the speed, averaged over one of `SMOOTH`, changes little within `WINDOW`."""
    flat: Flags = np.any([_constant(piece, top, *kind) for kind in zip(SMOOTH, LONG, strict=True)], axis=0)
    return flat


def _constant(piece: JointRecord, top: float, time: float, least: float) -> Flags:
    speed = uniform_filter1d(piece.speed, max(1, int(time * piece.rate)), mode="nearest")
    window = max(3, int(WINDOW * piece.rate))
    spread = maximum_filter1d(speed, window) - minimum_filter1d(speed, window)
    flat: Flags = (spread <= np.maximum(CHANGE * np.abs(speed), FLOOR * top)) & (np.abs(speed) > SLOWEST * top)
    for first, last in intervals(flat):
        flat[first:last] = last - first >= least * piece.rate
    return flat


def _means(values: Array, first: Indices, last: Indices) -> Array:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    result: Array = (sums[last] - sums[first]) / (last - first)
    return result
