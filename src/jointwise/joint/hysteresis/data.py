"""Data of a hysteresis fit: path, friction, speed and load, cut at the reversals into blocks of swings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from jointwise.data.statistics import intervals
from jointwise.estimation.jackknife import MAX_BLOCKS
from jointwise.joint.checks import MIN_REVERSALS, check_unsaturated, few_reversals, refuse
from jointwise.joint.hysteresis.law import relative_table
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

SMALLEST_SWING = 1e-4
"""Travel (rad) after which a change of direction counts as a reversal: well above encoder noise at the joint side."""
LARGEST_LIMIT = 0.02
"""Largest deformation limit (rad): gears have 1 mrad; a force over a longer path is a spring or gravity."""
USUAL_SWING = 0.75
"""Quantile of the swings over half of which elements are sought: fewer than a quarter of the swings are longer."""
REST_TIME = 1.0
"""Time (s) without motion after which the deformation of the elements is no longer known (it relaxes)."""
MIN_REST = 3
"""Fewest samples of a rest: one to either side."""
MILLI, MICRO = 1e-3, 1e-6
"""Units of angles in texts and curves, rad."""
CHUNK = 2048
"""Samples that are processed together, so that their columns stay in the cache."""
ENCODER_STEPS = 4.0
"""Steps of the recorded positions by which a limit must exceed zero and two limits must differ to be resolved."""
RESOLVED_SHARE = 0.15
"""Smallest limit relative to the travel in two samples after a reversal: smaller ones look like sgn ω..."""
LIMIT_RATIO = 100.0
"""...but at least the largest limit over this ratio is tried..."""
SMALLEST_LIMIT = 5e-7
"""...and none below this one (rad), a tenth of the resolution of joint encoders."""
SEARCH_SAMPLES = 40_000
"""Samples on which non-linear parameters are searched; forces are then solved on all samples."""


@dataclass(frozen=True)
class SwingChunk:
    """Samples `start` to `stop` - 1 of one segment.

    `first`: the chunk begins a segment, so the state of the elements starts at rest. `block`: jackknife block to which
    the samples belong, -1 for samples that only carry the state on.
    """

    start: int
    stop: int
    block: int
    first: bool

    @property
    def rows(self) -> slice:
        """The samples."""
        return slice(self.start, self.stop)


@dataclass(frozen=True, eq=False)
class Loops:
    """Signals of a hysteresis fit, each (samples,).

    Attributes:
        x: Path that deforms the elements, rad.
        friction: Measured friction without known viscous friction, Nm.
        speed: Speed, rad/s.
        acceleration: rad/s² where the rotor inertia is unknown and estimated, else zeros.
        load: Torque that the links demand, Nm.
        backlash: b(θ) along the path, relative to its mean; None where it is constant.
        period: Sampling period, s.
        chunks: The samples in order; those of one block are held out together.
        blocks: Number of blocks.
        reversals: Number of reversals.
        starts: Samples at which swings begin.
        smallest: Smallest deformation limit (rad) that the data resolve.
        largest: Largest deformation limit (rad) that the swings reach.
        resolution: Difference (rad) below which two limits cannot be distinguished.
    """

    x: Array
    friction: Array
    speed: Array
    acceleration: Array
    load: Array
    backlash: Array | None
    period: float
    chunks: tuple[SwingChunk, ...]
    blocks: int
    reversals: int
    starts: frozenset[int]
    smallest: float
    largest: float
    resolution: float = 0.0

    @cached_property
    def linear(self) -> Array:
        """Acceleration, speed, ones and friction, (samples, 4): the last columns of every regression."""
        return np.column_stack([self.acceleration, self.speed, np.ones(len(self.x)), self.friction])

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Which samples belong to a block, (samples,)."""
        mask = np.zeros(len(self.x), dtype=bool)
        for chunk in self.chunks:
            mask[chunk.rows] = chunk.block >= 0
        return mask

    @property
    def variance(self) -> float:
        """Variance of the friction of the used samples, Nm²."""
        return float(self.friction[self.used].var())

    @property
    def largest_load(self) -> float:
        """Largest load, Nm."""
        return float(np.abs(self.load).max())

    def beginning(self, samples: int = SEARCH_SAMPLES) -> Loops:
        """Return the first blocks, up to a number of samples."""
        if len(self.x) <= samples:
            return self
        chunks = tuple(chunk for chunk in self.chunks if chunk.stop <= samples)
        blocks = 1 + max((chunk.block for chunk in chunks), default=-1)
        return self if blocks < 1 else replace(self, chunks=chunks, blocks=blocks)


def make_loops(record: JointRecord, backlash: Array | None, viscous: Array) -> Loops:
    """Return the data of a fit; raise an error where a record cannot show hysteresis.

    The deformation of the elements is unknown at the start of a segment and after a rest: samples are left out until
    the path has covered twice the largest limit, after which it no longer depends on the start.

    Args:
        record: Record of one joint.
        backlash: B(θ) over one turn, equally spaced from θ = 0, (points,); only its shape counts. None if constant.
        viscous: Known viscous friction (samples,), Nm.

    Returns:
        The signals, cut into blocks.

    Raises:
        EstimationError: With too few reversals, or with a current at its limit.
    """
    segments = record.segments()
    turns = [_turning_points(segment.path) for segment in segments]
    if (reversals := sum(len(at) for at in turns)) < MIN_REVERSALS:
        raise refuse(record, "hysteresis", few_reversals(reversals))
    check_unsaturated(record, "hysteresis")
    largest = min(LARGEST_LIMIT, 0.5 * float(np.quantile(_swings(segments, turns), USUAL_SWING)))
    resolution = ENCODER_STEPS * record.resolution
    if resolution > largest / ENCODER_STEPS:
        reason = f"positions are recorded in steps of {record.resolution / MICRO:.3g} µrad, too coarse for hysteresis"
        raise refuse(record, "hysteresis", reason)
    chunks, blocks = _chunks(segments, turns, largest)
    if blocks < MIN_REVERSALS:
        raise refuse(record, "hysteresis", "too few swings after the start-up of the elements")
    return Loops(
        x=np.ascontiguousarray(record.path),
        friction=record.friction - viscous,
        speed=record.speed,
        acceleration=record.acceleration if record.inertia == 0.0 else np.zeros(record.samples),
        load=record.load,
        backlash=None if backlash is None else relative_table(backlash).at(record.path),
        period=1.0 / record.rate,
        chunks=chunks,
        blocks=blocks,
        reversals=reversals,
        starts=_starts(segments, turns),
        smallest=max(_smallest(segments, turns, largest), resolution),
        largest=largest,
        resolution=resolution,
    )


def at_rest(x: Array, rate: float) -> NDArray[np.bool_]:
    """Return which samples of a path (rad) stay within the smallest swing for `REST_TIME` around them."""
    size = max(MIN_REST, round(REST_TIME * rate))
    travel = maximum_filter1d(x, size, mode="nearest") - minimum_filter1d(x, size, mode="nearest")
    result: NDArray[np.bool_] = travel < SMALLEST_SWING
    return result


def _turning_points(x: Array) -> NDArray[np.intp]:
    """Return the samples at which a path (samples,) turns back by more than the smallest swing."""
    turns: list[int] = []
    peak = {1: 0, -1: 0}  # last maximum and minimum
    direction = 0
    for k in _extremes(x):
        for side in (1, -1):
            peak[side] = int(k) if side * x[k] > side * x[peak[side]] else peak[side]
        for side in (1, -1):
            if direction != -side and side * (x[peak[side]] - x[k]) > SMALLEST_SWING:
                turns += [peak[side]] if direction else []
                direction, peak = -side, {1: int(k), -1: int(k)}
    return np.array(turns, dtype=np.intp)


def _extremes(x: Array) -> NDArray[np.intp]:
    """Return the indices of local extremes, and both ends: between them the path is monotonic."""
    step = np.diff(x)
    moving = np.flatnonzero(step)
    changes = moving[1:][np.sign(step[moving[1:]]) != np.sign(step[moving[:-1]])]
    return np.concatenate([[0], changes, [len(x) - 1]]).astype(np.intp)


def _swings(segments: list[JointRecord], turns: list[NDArray[np.intp]]) -> Array:
    """Return the travel (rad) between the reversals of all segments."""
    swings = [np.abs(np.diff(segment.path[at])) for segment, at in zip(segments, turns, strict=True)]
    return np.concatenate(swings) if swings else np.empty(0)


def _starts(segments: list[JointRecord], turns: list[NDArray[np.intp]]) -> frozenset[int]:
    """Return the samples of the whole record at which the path turns."""
    starts: set[int] = set()
    offset = 0
    for segment, at in zip(segments, turns, strict=True):
        starts |= {offset + int(k) for k in at}
        offset += segment.samples
    return frozenset(starts)


def _smallest(segments: list[JointRecord], turns: list[NDArray[np.intp]], largest: float) -> float:
    """Return the smallest limit (rad) that can be distinguished from sgn ω."""
    travels = [
        np.abs(segment.path[np.minimum(at + 2, segment.samples - 1)] - segment.path[at])
        for segment, at in zip(segments, turns, strict=True)
    ]
    return float(np.clip(RESOLVED_SHARE * np.median(np.concatenate(travels)), SMALLEST_LIMIT, largest / LIMIT_RATIO))


def _settled(x: Array, rate: float, largest: float) -> NDArray[np.bool_]:
    """Return where the deformation of all elements is known: the path has covered 2 D since the joint last rested."""
    settled = np.zeros(len(x), dtype=bool)
    for start, stop in intervals(~at_rest(x, rate)):
        path = x[start:stop]
        settled[start:stop] = np.maximum.accumulate(path) - np.minimum.accumulate(path) >= 2.0 * largest
    return settled


def _chunks(
    segments: list[JointRecord], turns: list[NDArray[np.intp]], largest: float
) -> tuple[tuple[SwingChunk, ...], int]:
    """Return the chunks and the number of blocks: one swing each, or neighbouring swings together where many."""
    swings: list[tuple[int, int, bool, bool]] = []
    offset = 0
    for segment, at in zip(segments, turns, strict=True):
        settled = _settled(segment.path, segment.rate, largest)
        changes = np.flatnonzero(np.diff(settled)) + 1
        edges = np.unique(np.concatenate([[0], at, changes, [segment.samples]]))
        swings += [(offset + int(a), offset + int(b), a == 0, bool(settled[a])) for a, b in pairwise(edges)]
        offset += segment.samples
    used = sum(kept for *_, kept in swings)
    together = max(-(-used // MAX_BLOCKS), 1)
    chunks: list[SwingChunk] = []
    swing = 0
    for start, stop, first, kept in swings:
        block = swing // together if kept else -1
        swing += kept
        bounds = [*range(start, stop, CHUNK), stop]
        chunks += [SwingChunk(a, b, block, first and a == start) for a, b in pairwise(bounds)]
    return tuple(chunks), -(-used // together)
