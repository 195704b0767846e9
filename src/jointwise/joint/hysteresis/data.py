"""Data of a hysteresis fit: path, friction, speed and load, cut at the reversals into blocks of swings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from jointwise.data.statistics import intervals
from jointwise.errors import ModelError
from jointwise.estimation.jackknife import MAX_BLOCKS
from jointwise.joint.checks import MIN_REVERSALS, check_unsaturated, few_reversals, refuse
from jointwise.joint.friction.data import LOAD_QUANTILES
from jointwise.joint.friction.law import viscous_of
from jointwise.joint.load.law import load_law_of
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.model.friction import LOAD_POWERS, load_growth
from jointwise.model.periodic_table import PeriodicTable
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
RESOLVED_SHARE = 0.15
"""Smallest limit relative to the travel in two samples after a reversal: smaller ones look like sgn ω..."""
LIMIT_RATIO = 100.0
"""...but at least the largest limit over this ratio is tried..."""
SMALLEST_LIMIT = 5e-7
"""...and none below this one (rad), a tenth of the resolution of joint encoders."""
SEARCH_SAMPLES = 40_000
"""Samples on which non-linear parameters are searched; forces are then solved on all samples."""

Viscous = Callable[[Array, Array | None], Array]
"""Known viscous friction (samples,) in Nm as a function of speed (samples,) in rad/s and temperature (°C or None)."""


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
        reason = f"positions are recorded in steps of {1e6 * record.resolution:.3g} µrad, too coarse for hysteresis"
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
        backlash=None if backlash is None else relative_backlash(backlash, record.path),
        period=1.0 / record.rate,
        chunks=chunks,
        blocks=blocks,
        reversals=reversals,
        starts=_starts(segments, turns),
        smallest=max(_smallest(segments, turns, largest), resolution),
        largest=largest,
        resolution=resolution,
    )


def relative_backlash(values: Array, theta: Array) -> Array:
    """Return B(θ) / mean B (samples,) of a map (points,) over one turn from θ = 0, periodic and linear in between."""
    return PeriodicTable(tuple((values / values.mean()).tolist())).at(theta)


def at_rest(x: Array, rate: float) -> NDArray[np.bool_]:
    """Return which samples of a path (rad) stay within the smallest swing for `REST_TIME` around them."""
    size = max(3, round(REST_TIME * rate))
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


# -- what is known beforehand: viscous friction and the growth with the load --

MIN_LOAD = 1.0
"""Load (Nm) below which its growth of friction is not visible beside sensor noise."""
MIN_LOAD_SPAN = 0.2
"""Smallest range of the load, relative to the largest one, in which growth is estimated."""
GROWTH_RANGE = (0.01, 10.0)
"""Range of the dry friction added by the largest load, relative to that without load, in which a search starts."""


def viscous_friction(steady: Viscous | Part | None, record: JointRecord) -> Array:
    """Return known viscous friction (samples,), Nm; that of a part is ``F_V1 ω + F_V2 |ω| ω + F_V3 ω³``."""
    if steady is None:
        return np.zeros(record.samples)
    if not isinstance(steady, Part):
        return steady(record.speed, record.temperature)
    return viscous_of(steady, record.speed)


@dataclass(frozen=True)
class Growth:
    """Growth of dry friction with the load, ``F_C (1 + c |τ|^p)``.

    `start`: c at which the search starts, None for friction that does not depend on the load. `power`: p. `fixed`: c is
    known and not estimated.
    """

    start: float | None = None
    power: float = 2.0
    fixed: bool = False


NO_GROWTH = Growth()


def candidate_growths(record: JointRecord, loops: Loops, load: str | Part) -> tuple[Growth, ...]:
    """Return the load laws to try, the simplest first.

    A load part fixes the law. Its factor came from other data: where the load varies here, it is estimated again, else
    it is kept. A load part that found no growth leaves the choice to these data.

    Raises:
        EstimationError: Where a law is requested and the load does not vary.
        ModelError: For an unknown law.
    """
    if isinstance(load, Part):
        law = load_law_of(load)
        if law.kind != "none" and not _load_varies(loops):
            return (_kept(loops, LOAD_POWERS[law.kind], law.factor),)
        load = "auto" if law.kind == "none" else law.kind
    if load in LOAD_POWERS:
        _check_load(record, loops)
        return (_started(loops, LOAD_POWERS[load]),)
    if load not in ("auto", "none"):
        choices = ", ".join(("auto", "none", *LOAD_POWERS))
        raise ModelError(f"load must be one of {choices}, or a load part. Got '{load}' instead.")
    powers = LOAD_POWERS.values() if load == "auto" and _load_varies(loops) else ()
    return (NO_GROWTH, *map(partial(_started, loops), powers))


def _check_load(record: JointRecord, loops: Loops) -> None:
    if not _load_varies(loops):
        low, high = _load_range(loops)
        raise refuse(record, "hysteresis", f"the load never varies ({low:.3g} to {high:.3g} Nm)")


def _load_range(loops: Loops) -> Array:
    return np.quantile(np.abs(loops.load), LOAD_QUANTILES)


def _load_varies(loops: Loops) -> bool:
    """Return whether the load is large enough and varies."""
    low, high = _load_range(loops)
    return bool(high >= MIN_LOAD and high - low >= MIN_LOAD_SPAN * high)


def _started(loops: Loops, power: float) -> Growth:
    """Return c of ``F_C (1 + c |τ|^p) sgn ω``, without viscous friction, which takes all of it at a single speed."""
    level, grown = _dry_forces(loops, load_growth(loops.load, power))
    least, most = np.array(GROWTH_RANGE) / float(_load_range(loops)[1]) ** power
    return Growth(float(np.clip(grown / max(level, 1e-9), least, most)), power)


def _kept(loops: Loops, power: float, factor: float) -> Growth:
    """Return the c at which the known growth ``F_l |τ|^p`` is part of the measured friction."""
    level = _dry_forces(loops)[0] - factor * float(np.mean(load_growth(loops.load[loops.used], power)))
    return Growth(factor / level, power, fixed=True) if level > 0.0 and factor > 0.0 else NO_GROWTH


def _dry_forces(loops: Loops, *factors: Array) -> Array:
    """Return the coefficients of sgn ω and of it times each factor, by least squares with an offset."""
    direction, used = np.sign(loops.speed), loops.used
    columns = np.column_stack([direction, *(factor * direction for factor in factors), np.ones(len(direction))])[used]
    result: Array = np.linalg.lstsq(columns, loops.friction[used], rcond=None)[0][:-1]
    return result
