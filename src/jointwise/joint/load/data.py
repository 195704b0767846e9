"""Data of load-dependent friction: pairs of runs, forward and back at the same positions.

Half the difference of the two torques is friction, half their sum the load: an error of the gravity model cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.estimation.jackknife import MIN_BLOCKS
from jointwise.joint.checks import refuse
from jointwise.joint.friction.data import Flags, Indices, Plateaus, find_plateaus, opposite_runs
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

BINS = 60
"""Positions at which the two runs of a pair are compared."""
BLOCK_BINS = 5
"""Consecutive positions that form a block: the unit of standard errors and of held-out data."""
MIN_BIN_SAMPLES = 5
"""Samples of each run that a position needs."""
MIN_PAIRS_TO_SPLIT = 4
"""Pairs from which on whole pairs are held out instead of blocks of positions."""


@dataclass(frozen=True, eq=False)
class RunPairs:
    """Positions (points,) of pairs of runs: `friction`, `total` (half the sum) and modelled `load`, Nm.

    `level` numbers the speed, `speed` is its size (rad/s); `block` numbers the block of positions within one pair,
    `pair` the pair; `weight` is proportional to the square root of the samples, with a mean square of 1.
    """

    friction: Array
    total: Array
    load: Array
    speed: Array
    level: Indices
    block: Indices
    pair: Indices
    weight: Array

    @property
    def levels(self) -> int:
        """Number of speeds."""
        return int(self.level.max()) + 1

    @property
    def held_out(self) -> Flags:
        """Flags of the points held out for the test: every second pair, or every second block of few pairs."""
        pairs = np.unique(self.pair)
        unit = np.searchsorted(pairs, self.pair) if len(pairs) >= MIN_PAIRS_TO_SPLIT else self.block
        return np.asarray(unit % 2 == 1)


@dataclass(frozen=True)
class _Binned:
    """Means over the bins of position (bins,): torque and modelled load, Nm; and the number of samples."""

    torque: Array
    load: Array
    count: Indices


def run_pairs(record: JointRecord) -> RunPairs:
    """Return the pairs of runs of a record at the same positions; raises if there are too few."""
    plateaus = find_plateaus(record)
    found = [_pair(record, plateaus, k, *pair) for k, pair in enumerate(opposite_runs(plateaus))]
    pieces = [piece for piece in found if piece is not None]
    if not pieces or sum(len(np.unique(piece.block)) for piece in pieces) < MIN_BLOCKS:
        raise refuse(record, "load", "no run at constant speed forward and back over the same positions in the log")
    names = RunPairs.__dataclass_fields__
    joined = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in names}
    for name in ("level", "block"):
        joined[name] = np.unique(joined[name], return_inverse=True)[1]
    joined["weight"] = joined["weight"] / np.sqrt(np.mean(joined["weight"] ** 2))
    return RunPairs(**joined)


def _pair(record: JointRecord, plateaus: Plateaus, number: int, forward: int, back: int) -> RunPairs | None:
    """Return one pair of runs, None if they have no position in common."""
    runs = [slice(int(plateaus.first[k]), int(plateaus.last[k])) for k in (forward, back)]
    low, high = max(record.q[run].min() for run in runs), min(record.q[run].max() for run in runs)
    if high <= low:
        return None
    edges = np.linspace(low, high, BINS + 1)
    there, home = (_binned(record, run, edges) for run in runs)
    count = np.minimum(there.count, home.count)
    used = np.flatnonzero(count >= MIN_BIN_SAMPLES)
    speed = 0.5 * (plateaus.speed[forward] - plateaus.speed[back])
    return RunPairs(
        friction=0.5 * (there.torque - home.torque)[used],
        total=0.5 * (there.torque + home.torque)[used],
        load=0.5 * (there.load + home.load)[used],
        speed=np.full(len(used), speed),
        level=np.full(len(used), plateaus.levels[forward]),
        block=number * BINS + used // BLOCK_BINS,
        pair=np.full(len(used), number),
        weight=np.sqrt(count[used]),
    )


def _binned(record: JointRecord, run: slice, edges: Array) -> _Binned:
    """Return the means of a run between edges of position."""
    bins = len(edges) - 1
    index: NDArray[np.intp] = np.searchsorted(edges, record.q[run]) - 1
    inside = (index >= 0) & (index < bins)
    count = np.bincount(index[inside], minlength=bins)

    def mean(values: Array) -> Array:
        return np.bincount(index[inside], values[run][inside], minlength=bins) / np.maximum(count, 1)

    return _Binned(mean(record.friction + record.load), mean(record.load), count)
