"""To and fro at the same positions: what is left of friction when gravity cancels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.friction.plateaus import Indices, Plateaus, find_plateaus, opposite_runs
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.spatial import Array

BINS = 60
"""Positions at which the ways to and fro are compared."""
BLOCK = 5
"""Positions that make a block: the unit of deviations and of held-out data."""
LEAST_BIN = 5
"""Samples of either way that a position needs."""
FEWEST_BLOCKS = 6
"""Blocks that a comparison needs."""


@dataclass(frozen=True, eq=False)
class Ways:
    """To and fro at the same positions, (points,): half their difference is friction, half their sum the load.

    `friction`, `total`, `load` (modelled) in Nm; `level` numbers the speed, `speed` its size; `block` the block of
    positions within one way to and fro, `way` that way; `weight` goes with the root of the samples, its mean is 1.
    """

    friction: Array
    total: Array
    load: Array
    speed: Array
    level: Indices
    block: Indices
    way: Indices
    weight: Array


def to_and_fro(record: JointRecord) -> Ways:
    """Return the runs to and fro of a record at the same positions."""
    plateaus = find_plateaus(record)
    pieces = [_pair(record, plateaus, way, *pair) for way, pair in enumerate(opposite_runs(plateaus))]
    rows = [piece for piece in pieces if piece is not None]
    if not rows or len(np.unique(np.concatenate([row[:, 5] for row in rows]))) < FEWEST_BLOCKS:
        raise refuse(record, "load", "no run at a constant speed to and fro over the same positions in the log")
    table = np.concatenate(rows)
    weight = np.sqrt(table[:, 7] / table[:, 7].mean())
    levels = np.unique(table[:, 4], return_inverse=True)[1]
    blocks = np.unique(table[:, 5], return_inverse=True)[1]
    return Ways(table[:, 0], table[:, 1], table[:, 2], table[:, 3], levels, blocks, table[:, 6].astype(np.intp), weight)


def held_out(points: Ways) -> NDArray[np.bool_]:
    """Tell which points are kept for the test: every second way where there are four, else every second block."""
    ways = np.unique(points.way)
    unit = np.searchsorted(ways, points.way) if len(ways) >= 4 else points.block
    return np.asarray(unit % 2 == 1)


def _pair(record: JointRecord, plateaus: Plateaus, way: int, forwards: int, back: int) -> Array | None:
    """Return rows (friction, sum, load, speed, level, block, way, samples) of a way to and fro, or None."""
    runs = [slice(int(plateaus.first[k]), int(plateaus.last[k])) for k in (forwards, back)]
    low, high = max(record.q[own].min() for own in runs), min(record.q[own].max() for own in runs)
    if high <= low:
        return None
    edges = np.linspace(low, high, BINS + 1)
    torque = record.friction + record.load
    (there, load_there, n), (home, load_home, m) = (_binned(record, own, edges, torque) for own in runs)
    good = (n >= LEAST_BIN) & (m >= LEAST_BIN)
    speed = 0.5 * (plateaus.speed[forwards] - plateaus.speed[back])
    block = way * BINS + np.arange(BINS) // BLOCK
    columns = (0.5 * (there - home), 0.5 * (there + home), 0.5 * (load_there + load_home))
    level = plateaus.levels[forwards]
    rest = np.column_stack([np.full(BINS, speed), np.full(BINS, level), block, np.full(BINS, way), np.minimum(n, m)])
    return np.column_stack([*columns, rest])[good]


def _binned(record: JointRecord, run: slice, edges: Array, torque: Array) -> tuple[Array, Array, Indices]:
    """Return mean torque, mean load and number of samples between the edges of position."""
    place = np.searchsorted(edges, record.q[run]) - 1
    inside = (place >= 0) & (place < len(edges) - 1)
    count = np.bincount(place[inside], minlength=len(edges) - 1)
    means = [
        np.bincount(place[inside], values[run][inside], minlength=len(edges) - 1) / np.maximum(count, 1)
        for values in (torque, record.load)
    ]
    return means[0], means[1], count
