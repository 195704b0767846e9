"""Data of a hysteresis fit: path, friction, speed and load, cut at the reversals into blocks of swings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d
from scipy.signal import find_peaks

from jointwise.data.statistics import intervals
from jointwise.estimation.jackknife import MAX_BLOCKS
from jointwise.joint.checks import MIN_REVERSALS, check_unsaturated, few_reversals, refuse
from jointwise.joint.laws import relative_table
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
CHUNK = 2048
"""Samples that are processed together, so that their columns stay in the cache."""
ENCODER_STEPS = 4.0
"""Steps of the recorded positions by which a limit must exceed zero and two limits must differ to be resolved."""
SMALLEST_LIMIT = 5e-7
"""No limit below this one (rad) is tried, a tenth of the resolution of joint encoders..."""
LIMIT_RATIO = 100.0
"""...but at least the largest limit over this ratio, however coarse the sampling is."""
SEARCH_SAMPLES = 40_000
"""Samples on which non-linear parameters are searched; forces are then solved on all samples."""


@dataclass(frozen=True)
class SwingChunk:
    """Consecutive samples of one segment.

    Attributes:
        start: First sample.
        stop: Sample after the last one.
        block: Jackknife block to which the samples belong; -1 for samples that only carry the state on.
        first: Whether the chunk begins a segment, so that the state of the elements starts at rest.
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
        starts: Samples at which the path turns back, so that swings begin, (reversals,).
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
    starts: NDArray[np.intp]
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
    turns = _turning_points(record)
    if len(turns) < MIN_REVERSALS:
        raise refuse(record, "hysteresis", few_reversals(len(turns)))
    check_unsaturated(record, "hysteresis")
    largest = min(LARGEST_LIMIT, 0.5 * float(np.quantile(_swings(record, turns), USUAL_SWING)))
    resolution = ENCODER_STEPS * record.resolution
    if resolution > largest / ENCODER_STEPS:
        reason = f"positions are recorded in steps of {1e6 * record.resolution:.3g} µrad, too coarse for hysteresis"
        raise refuse(record, "hysteresis", reason)
    chunks, blocks = _chunks(record, turns, largest)
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
        starts=turns,
        smallest=max(_smallest(record, turns, largest), resolution),
        largest=largest,
        resolution=resolution,
    )


def at_rest(x: Array, rate: float) -> NDArray[np.bool_]:
    """Return which samples of a path (rad) stay within the smallest swing for `REST_TIME` around them."""
    size = round(REST_TIME * rate)
    travel = maximum_filter1d(x, size, mode="nearest") - minimum_filter1d(x, size, mode="nearest")
    result: NDArray[np.bool_] = travel < SMALLEST_SWING
    return result


def _segment_bounds(record: JointRecord) -> list[tuple[int, int]]:
    """Return the first sample of every gap-free segment and the one after its last."""
    return list(pairwise([0, *(np.flatnonzero(np.diff(record.segment)) + 1).tolist(), record.samples]))


def _turning_points(record: JointRecord) -> NDArray[np.intp]:
    """Return the samples before the path turns back by more than the smallest swing, the first of equal extremes."""
    edges = [
        start + find_peaks(side * record.path[start:stop], prominence=SMALLEST_SWING, plateau_size=1)[1]["right_edges"]
        for start, stop in _segment_bounds(record)
        for side in (1.0, -1.0)
    ]
    turns: NDArray[np.intp] = np.sort(np.concatenate(edges))
    between = np.diff(record.path[turns], prepend=-np.inf)
    kept: NDArray[np.bool_] = (np.abs(between) > SMALLEST_SWING) | (np.diff(record.segment[turns], prepend=-1) > 0)
    result: NDArray[np.intp] = turns[kept]
    return result


def _swings(record: JointRecord, turns: NDArray[np.intp]) -> Array:
    """Return the travel (rad) between successive reversals of the same segment."""
    swings: Array = np.abs(np.diff(record.path[turns]))[np.diff(record.segment[turns]) == 0]
    return swings


def _smallest(record: JointRecord, turns: NDArray[np.intp], largest: float) -> float:
    """Return the smallest limit (rad) that differs from sgn ω: the usual travel in a sample after a reversal."""
    travel = np.median(np.abs(record.path[turns + 1] - record.path[turns]))
    return float(np.clip(travel, SMALLEST_LIMIT, largest / LIMIT_RATIO))


def _settled(x: Array, rate: float, largest: float) -> NDArray[np.bool_]:
    """Return where the deformation of all elements is known: the path has covered 2 D since the joint last rested."""
    settled = np.zeros(len(x), dtype=bool)
    for start, stop in intervals(~at_rest(x, rate)):
        path = x[start:stop]
        settled[start:stop] = np.maximum.accumulate(path) - np.minimum.accumulate(path) >= 2.0 * largest
    return settled


def _chunks(record: JointRecord, turns: NDArray[np.intp], largest: float) -> tuple[tuple[SwingChunk, ...], int]:
    """Return the chunks and the number of blocks: one swing each, or neighbouring swings together where many."""
    bounds = _segment_bounds(record)
    firsts = {first for first, _ in bounds}
    settled = np.concatenate([_settled(record.path[a:b], record.rate, largest) for a, b in bounds])
    edges = {*turns.tolist(), *(np.flatnonzero(np.diff(settled)) + 1).tolist(), *firsts, record.samples}
    swings = list(pairwise(sorted(edges)))
    used = sum(bool(settled[start]) for start, _ in swings)
    together = max(-(-used // MAX_BLOCKS), 1)
    chunks: list[SwingChunk] = []
    swing = 0
    for start, stop in swings:
        block = swing // together if settled[start] else -1
        swing += int(settled[start])
        pieces = pairwise([*range(start, stop, CHUNK), stop])
        chunks += [SwingChunk(a, b, block, a in firsts) for a, b in pieces]
    return tuple(chunks), -(-used // together)
