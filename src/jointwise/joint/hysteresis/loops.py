"""The data of a hysteresis fit: path, friction and speed, cut into swings between reversals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from jointwise.data import statistics
from jointwise.errors import ModelError
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import few_reversals, refuse
from jointwise.joint.saturation import refuse_saturated
from jointwise.spatial import Array

SMALLEST_SWING = 1e-4
"""Way (rad) after which a change of direction counts as a reversal."""
LARGEST_LIMIT = 0.02
"""Deformation (rad) above which a force that follows the position is no hysteresis of a gear."""
FEWEST_REVERSALS = 4
MOST_BLOCKS = 40
REST = 1.0
"""Time (s) without motion after which a joint stands still."""
CHUNK = 2048
"""Samples that are worked on together: they stay in the cache."""
COUNTS = 4.0
"""Steps of the encoder that a limit must have, and that two limits must differ by, to be told."""
MOST_SAMPLES = 40_000
"""Samples on which widths, scales and rates are searched; forces are then solved on all of them."""

Steady = Callable[[Array, Array | None], Array]
"""From speed (samples,) rad/s and temperature (°C or None) to the viscous friction (samples,), Nm: no dry part."""


@dataclass(frozen=True)
class Piece:
    """Samples start .. stop - 1; `fresh` where a stretch begins; `block` they belong to, -1 for none (not used)."""

    start: int
    stop: int
    block: int
    fresh: bool

    @property
    def rows(self) -> slice:
        """The samples."""
        return slice(self.start, self.stop)


@dataclass(frozen=True, eq=False)
class Loops:
    """Signals (samples,): `x` rad, `friction` Nm, `speed` rad/s, `load` Nm, `scale` b(θ) or None, `period` s.

    `acceleration` rad/s² where the rotor's inertia is not described and is estimated along, else zeros.
    `pieces` follow each other; those of one block (a group of swings, `blocks` in all) are held out together.
    `starts`: the samples at which swings begin. `smallest`, `largest`: the range of deformation limits (rad) that the
    swings can tell; `resolution`: the difference (rad) below which two limits cannot be told apart.
    """

    x: Array
    friction: Array
    speed: Array
    acceleration: Array
    load: Array
    scale: Array | None
    period: float
    pieces: tuple[Piece, ...]
    blocks: int
    reversals: int
    starts: frozenset[int]
    smallest: float
    largest: float
    resolution: float = 0.0

    @cached_property
    def others(self) -> Array:
        """Acceleration, speed, ones and friction, (samples, 4): what every set of columns ends with."""
        return np.column_stack([self.acceleration, self.speed, np.ones(len(self.x)), self.friction])

    def walk(self) -> Iterator[Piece]:
        """Yield the pieces in order."""
        yield from self.pieces

    @property
    def used(self) -> NDArray[np.bool_]:
        """Tell which samples belong to a block, (samples,)."""
        mask = np.zeros(len(self.x), dtype=bool)
        for piece in self.pieces:
            mask[piece.rows] = piece.block >= 0
        return mask


def make_loops(record: JointRecord, backlash: Array | None, steady: Steady | Part | None) -> Loops:
    """Return the data of a fit, or refuse where it cannot tell hysteresis.

    `backlash` (points,): B(θ) over one turn, only its shape counts. The state of the elements at the start of a
    stretch is not known, nor what becomes of it at rest: samples are left out until the path has covered twice the
    largest limit, after which it is.
    """
    turns = [_turning_points(own.path) for own in record.stretches()]
    swings = _swings(record, turns)
    if (reversals := sum(len(own) for own in turns)) < FEWEST_REVERSALS:
        raise refuse(record, "hysteresis", few_reversals(reversals, FEWEST_REVERSALS))
    refuse_saturated(record, "hysteresis")
    largest = min(LARGEST_LIMIT, 0.5 * float(np.quantile(swings, 0.75)))
    resolution = COUNTS * _quantum(record)
    pieces, blocks = _pieces(record, turns, largest)
    if blocks < FEWEST_REVERSALS:
        raise refuse(record, "hysteresis", "too few swings after the elements have settled")
    return Loops(
        x=np.ascontiguousarray(record.path),
        friction=record.friction - steady_torque(steady, record.speed, record.temperature),
        speed=record.speed,
        acceleration=record.acceleration if record.inertia == 0.0 else np.zeros(record.samples),
        load=record.load,
        scale=None if backlash is None else relative_backlash(backlash, record.path),
        period=1.0 / record.rate,
        pieces=pieces,
        blocks=blocks,
        reversals=reversals,
        starts=_starts(record, turns),
        smallest=max(_smallest(record, turns, largest), min(resolution, largest / 100.0)),
        largest=largest,
        resolution=resolution,
    )


def beginning(loops: Loops, samples: int) -> Loops:
    """Return the first blocks, up to a number of samples."""
    if len(loops.x) <= samples:
        return loops
    pieces = tuple(piece for piece in loops.pieces if piece.stop <= samples)
    blocks = 1 + max((piece.block for piece in pieces), default=-1)
    return loops if blocks < 1 else replace(loops, pieces=pieces, blocks=blocks)


def relative_backlash(values: Array, theta: Array) -> Array:
    """Return B(θ) / mean B of a map (points,) over one turn from 0 on, periodic and linear: (samples,)."""
    own = np.asarray(values, dtype=float)
    place = np.mod(theta / (2.0 * np.pi), 1.0) * len(own)
    result: Array = np.interp(place, np.arange(len(own) + 1), np.append(own, own[0])) / own.mean()
    return result


def steady_torque(steady: Steady | Part | None, speed: Array, temperature: Array | None) -> Array:
    """Return the known viscous friction (samples,), Nm; that of a part is ``F_V1 ω + F_V2 |ω| ω + F_V3 ω³``."""
    if steady is None:
        return np.zeros_like(speed)
    if not isinstance(steady, Part):
        return steady(speed, temperature)
    known = {value.name: value.value for value in steady.values}
    factors = [known.get(name, 0.0) for name in ("F_V1", "F_V2", "F_V3")]
    if steady.phenomenon != "friction":
        raise ModelError(f"steady must be a friction part or a function of speed. Got '{steady.phenomenon}' instead.")
    result: Array = (factors[0] + factors[1] * np.abs(speed) + factors[2] * speed**2) * speed
    return result


def known_rise(steady: Steady | Part | None) -> tuple[float, float] | None:
    """Return (F_S - F_C) / F_C and V_S (rad/s) of a friction part with an exponential rise, None without one."""
    if not isinstance(steady, Part):
        return None
    known = {value.name: value.value for value in steady.values}
    if not {"F_C", "F_S-F_C", "V_S"} <= known.keys() or "mu" in known or not known["F_C"] > 0.0:
        return None
    return known["F_S-F_C"] / known["F_C"], known["V_S"]


def _turning_points(x: Array) -> NDArray[np.intp]:
    """Return where a path (samples,) turns back by more than the smallest swing."""
    coarse = _extremes(x)
    turns: list[int] = []
    if len(coarse) < 2:
        return np.array(turns, dtype=np.intp)
    high = low = coarse[0]
    way = 0
    for k in coarse[1:]:
        high, low = (k if x[k] > x[high] else high), (k if x[k] < x[low] else low)
        if way >= 0 and x[high] - x[k] > SMALLEST_SWING:
            turns += [int(high)] if way else []
            way, high, low = -1, k, k
        elif way <= 0 and x[k] - x[low] > SMALLEST_SWING:
            turns += [int(low)] if way else []
            way, high, low = 1, k, k
    return np.array(turns, dtype=np.intp)


def _extremes(x: Array) -> NDArray[np.intp]:
    """Return the indices of local extremes, with both ends: between them the path is monotone."""
    step = np.diff(x)
    moving = np.flatnonzero(step)
    changes = moving[1:][np.sign(step[moving[1:]]) != np.sign(step[moving[:-1]])]
    return np.concatenate([[0], changes, [len(x) - 1]]).astype(np.intp)


def _swings(record: JointRecord, turns: list[NDArray[np.intp]]) -> Array:
    """Return the ways between reversals of all stretches, rad."""
    found = [np.abs(np.diff(own.path[at])) for own, at in zip(record.stretches(), turns, strict=True)]
    return np.concatenate(found) if found else np.empty(0)


def _starts(record: JointRecord, turns: list[NDArray[np.intp]]) -> frozenset[int]:
    """Return the samples of the whole record at which the path turns."""
    found: set[int] = set()
    offset = 0
    for own, at in zip(record.stretches(), turns, strict=True):
        found |= {offset + int(k) for k in at}
        offset += own.samples
    return frozenset(found)


def _smallest(record: JointRecord, turns: list[NDArray[np.intp]], largest: float) -> float:
    """Return a small part of the way of two samples after a reversal: a smaller limit cannot be told from sgn ω."""
    ways = [
        np.abs(own.path[np.minimum(at + 2, own.samples - 1)] - own.path[at])
        for own, at in zip(record.stretches(), turns, strict=True)
    ]
    return float(np.clip(0.15 * np.median(np.concatenate(ways)), 5e-7, largest / 100.0))


def _quantum(record: JointRecord) -> float:
    """Return the step of the rotor's encoder, rad; 0 where it is not seen."""
    return 0.0 if record.theta is None else float(statistics.quantum(record.theta[:, None])[0])


def at_rest(x: Array, rate: float) -> NDArray[np.bool_]:
    """Tell where a path (samples,) rad stays within the smallest swing for `REST` s around a sample."""
    size = max(3, round(REST * rate))
    reach = maximum_filter1d(x, size, mode="nearest") - minimum_filter1d(x, size, mode="nearest")
    result: NDArray[np.bool_] = reach < SMALLEST_SWING
    return result


def _known(x: Array, rate: float, largest: float) -> NDArray[np.bool_]:
    """Tell where the state of all elements is known: since the joint last stood still the path has covered 2 D."""
    moving = ~at_rest(x, rate)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], moving.astype(np.int8), [0]))))
    known = np.zeros(len(x), dtype=bool)
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        own = x[start:stop]
        known[start:stop] = np.maximum.accumulate(own) - np.minimum.accumulate(own) >= 2.0 * largest
    return known


def _pieces(record: JointRecord, turns: list[NDArray[np.intp]], largest: float) -> tuple[tuple[Piece, ...], int]:
    """Return the pieces and the number of blocks: swings, neighbours together where there are many."""
    cuts: list[tuple[int, int, bool, bool]] = []
    offset = 0
    for own, at in zip(record.stretches(), turns, strict=True):
        known = _known(own.path, own.rate, largest)
        changes = np.flatnonzero(np.diff(known)) + 1
        edges = np.unique(np.concatenate([[0], at, changes, [own.samples]]))
        cuts += [(offset + int(a), offset + int(b), a == 0, bool(known[a])) for a, b in pairwise(edges)]
        offset += own.samples
    together = -(-sum(kept for *_, kept in cuts) // MOST_BLOCKS)
    pieces: list[Piece] = []
    swing = 0
    for start, stop, fresh, kept in cuts:
        block = swing // max(together, 1) if kept else -1
        swing += kept
        bounds = [*range(start, stop, CHUNK), stop]
        pieces += [Piece(a, b, block, fresh and a == start) for a, b in pairwise(bounds)]
    return tuple(pieces), -(-swing // max(together, 1))
