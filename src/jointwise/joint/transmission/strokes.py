"""Strokes of a slow reciprocation: direction, travel since the last reversal, and how the lag builds up after it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import few_reversals, refuse
from jointwise.spatial import Array

FASTEST = 0.3
"""Speed (rad/s) above which inertia and damping hide what the gear does."""
LEAST_REVERSALS = 4
LEAST_RANGE = 0.2
"""Smallest range of motion, rad."""
SLOW = 0.02
"""Part of the usual speed below which no direction is told."""


@dataclass(frozen=True)
class Strokes:
    """Samples (samples,) of a reciprocation: `theta`, `phi` (rad), `load` (Nm), `side` (+1 or -1, the direction).

    `travel` since the last reversal (rad); `stroke` the number of the stroke, from 0; `width` the way (rad) over which
    a row was averaged.
    """

    theta: Array
    phi: Array
    load: Array
    side: Array
    travel: Array
    stroke: NDArray[np.intp]
    width: Array

    def take(self, which: NDArray[np.bool_]) -> Strokes:
        """Return some samples."""
        return Strokes(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Samples of every other cycle."""
        result: NDArray[np.bool_] = (self.stroke // 2) % 2 == 1
        return result

    def averaged(self, size: int) -> Strokes:
        """Return means over `size` samples of the same stroke."""
        if size <= 1 or not len(self.stroke):
            return self
        change = np.flatnonzero(np.diff(self.stroke)) + 1
        edges = np.array([0, *change, len(self.stroke)])
        cuts = np.concatenate([np.arange(a, b, size) for a, b in pairwise(edges)])
        counts = np.diff(np.append(cuts, len(self.stroke)))

        def mean(values: Array) -> Array:
            return np.add.reduceat(values, cuts) / counts

        last = np.append(cuts[1:], len(self.stroke)) - 1
        width = np.abs(self.theta[last] - self.theta[cuts]) * counts / np.maximum(counts - 1, 1)
        theta, phi, load, side = (mean(values) for values in (self.theta, self.phi, self.load, self.side))
        return Strokes(theta, phi, load, side, mean(self.travel), self.stroke[cuts], width)


def strokes_of(record: JointRecord) -> Strokes:
    """Return the strokes of a record, or refuse what is none."""
    if record.phi is None or record.theta is None:
        raise refuse(record, "transmission", "no rotor position (theta) in the log, so θ - q is not known")
    _refuse_motion(record)
    usual = float(np.percentile(np.abs(record.speed), 95.0))
    pieces, first = [], 0
    for number in np.unique(record.stretch):
        own = record.stretch == number
        piece = _strokes(record.take(own), SLOW * usual, first)
        first = int(piece.stroke[-1]) + 2 + int(piece.stroke[-1]) % 2
        pieces.append(piece)
    names = Strokes.__dataclass_fields__
    strokes = Strokes(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in names))
    reversals = len(np.unique(strokes.stroke)) - len(pieces)
    if reversals < LEAST_REVERSALS:
        raise refuse(record, "transmission", few_reversals(reversals, LEAST_REVERSALS))
    return strokes


def _refuse_motion(record: JointRecord) -> None:
    fast = float(np.percentile(np.abs(record.speed), 95.0))
    if fast > FASTEST:
        raise refuse(
            record, "transmission", f"the joint moves at up to {fast:.2g} rad/s: too fast, inertia hides the gear"
        )
    if np.ptp(record.position) < LEAST_RANGE:
        raise refuse(record, "transmission", f"the joint moves over {np.ptp(record.position):.2g} rad only")


def _strokes(record: JointRecord, least: float, first: int) -> Strokes:
    """Return the strokes of one gap-free stretch; a direction lasts until the joint moves the other way."""
    assert record.phi is not None
    moving = np.abs(record.speed) > least
    latest = np.maximum.accumulate(np.where(moving, np.arange(record.samples), 0))
    side = np.where(record.speed[latest] < 0.0, -1.0, 1.0)
    turns = np.concatenate([[0], np.flatnonzero(np.diff(side)) + 1])
    stroke = np.searchsorted(turns, np.arange(record.samples), side="right") - 1
    turned = _turning_points(record.position, turns, side)
    travel = np.abs(record.position - turned[stroke])
    return Strokes(record.position, record.phi, record.load, side, travel, stroke + first, np.zeros(record.samples))


def _turning_points(position: Array, turns: NDArray[np.intp], side: Array) -> Array:
    """Return the farthest position before every change of direction, (strokes,)."""
    ends = np.append(turns[1:], len(position))
    lows, highs = np.minimum.reduceat(position, turns), np.maximum.reduceat(position, turns)
    start = np.where(side[turns] > 0.0, lows, highs)
    before = np.where(side[turns] > 0.0, np.append(np.inf, lows[:-1]), np.append(-np.inf, highs[:-1]))
    assert len(ends) == len(turns)
    result: Array = np.where(side[turns] > 0.0, np.minimum(start, before), np.maximum(start, before))
    return result
