"""Data of a transmission: strokes of a slow reciprocation with direction and travel since the last reversal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.data.statistics import group_means
from jointwise.joint.checks import MIN_REVERSALS, few_reversals, refuse
from jointwise.joint.record import JointRecord
from jointwise.model.periodic_table import TURN
from jointwise.spatial import Array

Flags = NDArray[np.bool_]

MAX_SPEED = 0.3
"""Speed (rad/s) above which inertia and damping hide the errors of the gear."""
TOP_PERCENTILE = 95.0
"""Percentile of |ω| and of the steps of θ that counts as the usual largest: peaks and outliers do not."""
MIN_RANGE = 0.2
"""Smallest range of motion, rad."""
MIN_SPEED_SHARE = 0.02
"""Fraction of the usual top speed below which the direction is not defined."""
CYCLE_FOLDS = 4
"""Parts of the cycles, in turn: two for the selection of the model, two for the test."""


@dataclass(frozen=True)
class Strokes:
    """Samples of a reciprocation, (samples,) each.

    Attributes:
        theta: Position of the rotor after the gear where it was measured, else of the joint, rad.
        phi: Deflection, rad.
        load: Load torque, Nm.
        side: Direction of motion, +1 or -1.
        travel: Travel since the last reversal, rad.
        stroke: Number of the stroke, from 0.
        width: Travel over which a row was averaged, rad.
    """

    theta: Array
    phi: Array
    load: Array
    side: Array
    travel: Array
    stroke: NDArray[np.intp]
    width: Array

    def take(self, which: Flags) -> Strokes:
        """Return a selection of samples."""
        return Strokes(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    @property
    def fold(self) -> NDArray[np.intp]:
        """Fold of each sample: cycles (two strokes) in turn."""
        return (self.stroke // 2) % CYCLE_FOLDS

    @property
    def held_out(self) -> Flags:
        """Flags of the samples held out for the test: every other cycle."""
        result: Flags = self.fold % 2 == 1
        return result

    @property
    def usual_stroke(self) -> float:
        """Median travel of a stroke, rad."""
        starts = np.flatnonzero(np.diff(self.stroke, prepend=-1))
        return float(np.median(np.maximum.reduceat(self.travel, starts)))

    @property
    def span(self) -> tuple[float, float]:
        """Range (low, high) of angles that were passed in both directions, at most a turn, rad."""
        sides = [self.theta[self.side > 0.0], self.theta[self.side < 0.0]]
        low, high = float(max(side.min() for side in sides)), float(min(side.max() for side in sides))
        return low, min(high, low + TURN)

    def passed_both_directions(self, points: int) -> Flags:
        """Return flags of the angles (points,) of a turn that were passed in both directions."""
        counts = [np.bincount(cells(self.theta[s], points), minlength=points) for s in (self.side > 0, self.side < 0)]
        return np.minimum(*counts) > 0

    def averaged(self, size: int) -> Strokes:
        """Return means over `size` samples of the same stroke."""
        if size <= 1 or not len(self.stroke):
            return self
        cuts, counts = group_means(self.stroke, size)

        def mean(values: Array) -> Array:
            return np.add.reduceat(values, cuts) / counts

        last = np.append(cuts[1:], len(self.stroke)) - 1
        width = np.abs(self.theta[last] - self.theta[cuts]) * counts / np.maximum(counts - 1, 1)
        theta, phi, load, side = (mean(values) for values in (self.theta, self.phi, self.load, self.side))
        return Strokes(theta, phi, load, side, mean(self.travel), self.stroke[cuts], width)


def cells(theta: Array, points: int) -> NDArray[np.intp]:
    """Return the point of a table with `points` per turn before each angle (samples,), rad."""
    return np.floor(np.mod(theta, TURN) * (points / TURN)).astype(np.intp) % points


def usual_top_speed(record: JointRecord) -> float:
    """Return the usual top speed of a reciprocation, rad/s."""
    return float(np.percentile(np.abs(record.speed), TOP_PERCENTILE))


def find_strokes(record: JointRecord) -> Strokes:
    """Return the strokes of a record; raises if it is not a slow reciprocation with rotor positions."""
    if record.phi is None or record.theta is None:
        raise refuse(record, "transmission", "no rotor position (theta) in the log, so θ - q is not known")
    _check_motion(record)
    pieces, first = [], 0
    for number in np.unique(record.segment):
        piece = _strokes(record.take(record.segment == number), MIN_SPEED_SHARE * usual_top_speed(record), first)
        first = int(piece.stroke[-1]) + 2 + int(piece.stroke[-1]) % 2  # a new cycle after a gap
        pieces.append(piece)
    names = Strokes.__dataclass_fields__
    strokes = Strokes(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in names))
    reversals = len(np.unique(strokes.stroke)) - len(pieces)
    if reversals < MIN_REVERSALS:
        raise refuse(record, "transmission", few_reversals(reversals))
    return strokes


def _check_motion(record: JointRecord) -> None:
    speed, travel = usual_top_speed(record), float(np.ptp(record.position))
    if speed > MAX_SPEED:
        reason = f"the joint moves at up to {speed:.2g} rad/s: too fast, inertia hides the gear"
        raise refuse(record, "transmission", reason)
    if travel < MIN_RANGE:
        raise refuse(record, "transmission", f"the joint moves over {travel:.2g} rad only")


def _strokes(record: JointRecord, min_speed: float, first: int) -> Strokes:
    """Return the strokes of a gap-free segment; a direction lasts until the joint moves in the other one."""
    assert record.phi is not None
    moving = np.abs(record.speed) > min_speed
    latest = np.maximum.accumulate(np.where(moving, np.arange(record.samples), 0))
    side = np.where(record.speed[latest] < 0.0, -1.0, 1.0)
    turns = np.concatenate([[0], np.flatnonzero(np.diff(side)) + 1])
    stroke = np.searchsorted(turns, np.arange(record.samples), side="right") - 1
    reversal = _reversal_positions(record.position, turns, side[turns] > 0.0)
    travel = np.abs(record.position - reversal[stroke])
    return Strokes(record.position, record.phi, record.load, side, travel, stroke + first, np.zeros(record.samples))


def _reversal_positions(position: Array, turns: NDArray[np.intp], is_forward: Flags) -> Array:
    """Return the extreme position at the start of every stroke, (strokes,): near its sign change of the speed."""
    lows, highs = np.minimum.reduceat(position, turns), np.maximum.reduceat(position, turns)
    lowest = np.minimum(lows, np.append(np.inf, lows[:-1]))
    highest = np.maximum(highs, np.append(-np.inf, highs[:-1]))
    result: Array = np.where(is_forward, lowest, highest)
    return result
