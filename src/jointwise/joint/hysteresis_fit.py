"""Least squares of a friction law with memory on a long record: swings, normal equations, and the search of parameters.

Columns are made a chunk at a time and never stored. They are, in this order: the free forces, derivatives with respect
to the free non-linear parameters, acceleration, speed and ones (rotor inertia, viscous friction, offset), and the
friction or the residual.

A column of a slip element is not linear in its limit. On a grid of limits the choice is a best-subset problem whose
sums over the samples are computed once: sets grow by adding one element and exchanging others one by one.

Variable projection (Golub, Pereyra, SIAM J. Numerical Analysis 10(2), 1973): at every trial of the non-linear
parameters the forces (>= 0), rotor inertia, viscous friction and offset are solved anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.ndimage import maximum_filter1d, minimum_filter1d
from scipy.optimize import least_squares
from scipy.signal import find_peaks

from jointwise.backend import native
from jointwise.data.statistics import TOP, intervals
from jointwise.estimation.gram import (
    RIDGE,
    as_residual,
    block_errors,
    eliminated,
    folds_of,
    held_out_block_errors,
    joined_columns,
    non_negative_solution,
)
from jointwise.estimation.jackknife import MAX_BLOCKS, standard_error
from jointwise.joint.checks import MIN_REVERSALS, check_unsaturated, few_reversals, refuse
from jointwise.joint.laws import (
    RATED,
    SLIP,
    STATIC,
    FrictionLaw,
    JointMotion,
    dry_level,
    force_columns,
    relative_table,
    rest_state,
)
from jointwise.joint.part import TINY
from jointwise.joint.record import JointRecord
from jointwise.model.terms import load_growth, slip_slope_state, slip_slopes, stribeck, stribeck_slope
from jointwise.spatial import Array

# -- data: path, friction, speed and load, cut at the reversals into blocks of swings --------------------------------

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

    @cached_property
    def speeds(self) -> tuple[float, float]:
        """Range (rad/s) in which the Stribeck speed V is searched, up to the top speed.

        With a V far above it, the rise is a line over the speed, and dry and viscous part trade without limit.
        """
        low, high = SPEEDS
        return low, float(np.clip(np.quantile(np.abs(self.speed), TOP), 2.0 * low, high))

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
    swings = np.abs(np.diff(record.path[turns]))[np.diff(record.segment[turns]) == 0]
    largest = min(LARGEST_LIMIT, 0.5 * float(np.quantile(swings, USUAL_SWING)))
    resolution = ENCODER_STEPS * record.resolution
    if resolution > largest / ENCODER_STEPS:
        reason = f"positions are recorded in steps of {1e6 * record.resolution:.3g} µrad, too coarse for hysteresis"
        raise refuse(record, "hysteresis", reason)
    # the smallest limit that differs from sgn ω: the usual travel in a sample after a reversal
    travel = float(np.median(np.abs(record.path[turns + 1] - record.path[turns])))
    smallest = float(np.clip(travel, SMALLEST_LIMIT, largest / LIMIT_RATIO))
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
        smallest=max(smallest, resolution),
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


LINEAR = 3
"""Columns beside the forces that are linear too: acceleration (rotor inertia), speed (viscous) and one (offset)."""
NATIVE_ELEMENTS = 20
"""Elements up to which native sums are faster than columns and a matrix product (BLAS)."""


# -- sums over a record ----------------------------------------------------------------------------------------------


def column_grams(loops: Loops, laws: Sequence[FrictionLaw], combine: Callable[[list[Array], slice], Array]) -> Array:
    """Return CᵀC of every block, (blocks, columns, columns), for columns made from those of one or more laws.

    Args:
        loops: The data.
        laws: Laws whose force columns are computed along the data, each with a state of its own.
        combine: Columns of the fit (rows, columns) from those of the laws and the rows they belong to.
    """
    total: Array | None = None
    states: list[Array] = []
    for chunk in loops.chunks:
        if chunk.first:
            states = [rest_state(law, float(loops.x[chunk.start])) for law in laws]
        rows = chunk.rows
        motion = JointMotion(loops.x[rows], loops.speed[rows], loops.load[rows], loops.period)
        b = _at(loops.backlash, rows)
        pairs = [force_columns(law, motion, b, state) for law, state in zip(laws, states, strict=True)]
        states = [state for _, state in pairs]
        if chunk.block < 0:
            continue
        columns = np.column_stack([combine([column for column, _ in pairs], rows), loops.linear[rows]])
        total = np.zeros((loops.blocks, *2 * columns.shape[1:])) if total is None else total
        total[chunk.block] += columns.T @ columns
    assert total is not None
    return total


def slip_grams(loops: Loops, law: FrictionLaw, free: tuple[str, ...] = ()) -> Array:
    """Return CᵀC (blocks, columns, columns) of a slip model.

    Columns: level · u_i; with "limits" in `free` level · ∂u_i/∂ln D_i (times W_i unless the law has no forces); with
    "growth" and "rise" ∂f/∂c, ∂f/∂e and ∂f/∂ln V; then the linear ones and the friction.
    """
    count, columns = len(law.limits), _SlipColumns.of(loops, law, free)
    grams, unused = np.zeros((loops.blocks, columns.width, columns.width)), np.empty((columns.width, columns.width))
    state = np.empty(0)
    for chunk in loops.chunks:
        if chunk.first:
            state = slip_slope_state(float(loops.x[chunk.start]), count)
        state = columns.add(loops, chunk.rows, state, grams[chunk.block] if chunk.block >= 0 else unused)
    grams = np.triu(grams) + np.swapaxes(np.triu(grams, 1), 1, 2)
    if columns.slopes:
        scale = np.ones(columns.width)
        scale[count : 2 * count] = columns.forces
        grams *= np.outer(scale, scale)
    return grams


@dataclass(frozen=True, eq=False)
class _SlipColumns:
    """What the columns of a slip model are made of.

    Attributes:
        limits: D_i, (elements,), rad.
        forces: W_i, (elements,), Nm.
        level: Level of dry friction, (samples,); None for 1.
        shared: Factors of Σ W_i u_i in the derivatives with respect to c, e and ln V, (samples, shares); None for none.
        slopes: Whether there are derivatives with respect to ln D_i.
    """

    limits: Array
    forces: Array
    level: Array | None
    shared: Array | None
    slopes: bool

    @classmethod
    def of(cls, loops: Loops, law: FrictionLaw, free: tuple[str, ...]) -> _SlipColumns:
        forces = law.forces if len(law.forces) else np.ones(len(law.limits))
        level = dry_level(law, loops.speed, loops.load) if law.growth or law.extra else None
        return cls(law.limits, forces, level, _shared_factors(loops, law, free), "limits" in free)

    @property
    def shares(self) -> int:
        return 0 if self.shared is None else int(self.shared.shape[1])

    @property
    def width(self) -> int:
        return (2 if self.slopes else 1) * len(self.limits) + self.shares + LINEAR + 1

    def add(self, loops: Loops, rows: slice, state: Array, gram: Array) -> Array:
        """Add the upper triangle of CᵀC of some samples to `gram`, and return the next state."""
        x, linear = loops.x[rows], loops.linear[rows]
        b, level, shared = (_at(values, rows) for values in (loops.backlash, self.level, self.shared))
        if len(self.limits) <= NATIVE_ELEMENTS and (kernel := native()) is not None:
            options = linear, self.slopes, self.shares
            kernel.maxwell_gram(x, b, level, self.limits, self.forces, shared, *options, state, gram)
            return state
        u, by_limit, state = slip_slopes(x, self.limits, state, backlash=b)
        columns = [u, by_limit] if self.slopes else [u]
        if level is not None:
            columns = [level[:, None] * column for column in columns]
        if shared is not None:
            columns.append(shared * (u @ self.forces)[:, None])
        full = np.column_stack([*columns, linear])
        gram += full.T @ full
        return state


def _at(values: Array | None, rows: slice) -> Array | None:
    return None if values is None else values[rows]


def _shared_factors(loops: Loops, law: FrictionLaw, free: tuple[str, ...]) -> Array | None:
    """Return the factors of Σ W_i u_i in the derivatives with respect to c, e and ln V, (samples, factors)."""
    columns = []
    if "growth" in free:
        columns.append(load_growth(loops.load, law.power))
    if "rise" in free:
        curve = law.speed, law.exponent
        columns += [stribeck(loops.speed, *curve), law.extra * stribeck_slope(loops.speed, *curve)]
    return np.column_stack(columns) if columns else None


# -- search for the best few limits out of a grid --

GRID = 60
"""Limits of the grid: neighbours differ by some 15 %, which the local refinement bridges."""
Choice = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Bank:
    """Slip elements with limits on a grid, and their normal equations.

    Columns: the elements, their derivatives with respect to ln D, acceleration, speed, ones, friction.

    Attributes:
        limits: Deformation limits D, (grid,), rad.
        grams: Gram matrices of the columns, (blocks, p, p).
        resolution: Difference below which two limits cannot be distinguished, rad.
    """

    limits: Array
    grams: Array
    resolution: float = 0.0

    def reduced(self, gram: Array) -> tuple[Array, Array]:
        """Return a sum of blocks as A (grid, grid), b (grid,): columns of unit length, the linear ones eliminated."""
        columns = self.columns(range(len(self.limits)))
        A, b = gram[np.ix_(columns, columns)][:-1, :-1], gram[columns, -1][:-1]
        size = np.sqrt(np.maximum(np.diag(A), TINY))
        A, b = eliminated(A / np.outer(size, size), b / size, len(self.limits))
        # limits within the resolution become collinear: a choice of both has a negative force
        close = np.abs(self.limits[:, None] - self.limits) < self.resolution
        root = np.sqrt(np.diag(A))
        return np.where(close & ~np.eye(len(A), dtype=bool), np.outer(root, root), A), b

    def columns(self, choice: Iterable[int], slopes: bool = False) -> list[int]:
        """Return the columns of some elements, of their derivatives (`slopes`), and the linear ones with friction."""
        grid = len(self.limits)
        derivatives = [grid + k for k in choice] if slopes else []
        return [*choice, *derivatives, *range(2 * grid, 2 * grid + LINEAR + 1)]


def make_bank(loops: Loops, level: FrictionLaw) -> Bank:
    """Return the bank over the limits that the data resolve; `level` has the growth with load and the Stribeck rise."""
    limits = np.geomspace(loops.smallest, loops.largest, GRID)
    law = replace(level, limits=limits, forces=np.empty(0))
    return Bank(limits, slip_grams(loops, law, ("limits",)), loops.resolution)


def best_choices(A: Array, b: Array, most: int) -> list[Choice]:
    """Return for 1 to `most` elements the choice with the least error among those without a negative force."""
    choices: list[Choice] = []
    for _ in range(most):
        choices.append(_extended(A, b, choices[-1] if choices else ()))
    return choices


def gains(A: Array, b: Array, choices: Array) -> Array:
    """Return the reduction of the squared error by each choice (choices, elements); -inf with a negative force."""
    chosen = A[choices[:, :, None], choices[:, None, :]] + RIDGE * np.eye(choices.shape[1])
    right = b[choices]
    forces = np.linalg.solve(chosen, right[:, :, None])[:, :, 0]
    return np.where((forces >= 0.0).all(axis=1), (forces * right).sum(axis=1), -np.inf)


def _extended(A: Array, b: Array, choice: Choice) -> Choice:
    """Return the best choice with one more element: elements are exchanged one by one until none improves the fit."""
    best = _exchanged(A, b, (*choice, -1), len(choice))
    gain = gains(A, b, np.array([best]))[0] if len(set(best)) == len(best) else -np.inf
    while True:
        options = [_exchanged(A, b, best, k) for k in range(len(best))]
        values = gains(A, b, np.array(options))
        if values.max() <= gain * (1.0 + RIDGE):
            return tuple(sorted(best))
        best, gain = options[int(np.argmax(values))], float(values.max())


def _exchanged(A: Array, b: Array, choice: Choice, k: int) -> Choice:
    """Return the choice with its k-th element exchanged for the best one."""
    others = set(choice[:k] + choice[k + 1 :])
    options = [(*choice[:k], new, *choice[k + 1 :]) for new in range(len(b)) if new not in others]
    return options[int(np.argmax(gains(A, b, np.array(options))))]


def errors_by_count(bank: Bank, most: int) -> dict[int, Array]:
    """Return the mean squared held-out error (blocks,) in Nm² of the best choice of 1 to `most` elements."""
    folds: list[Array] = []
    for train, test in folds_of(bank.grams):
        choices = best_choices(*bank.reduced(train), most)
        folds.append(np.array([_held_out(bank, train, test, choice) for choice in choices]))
    return dict(enumerate(np.concatenate(folds, axis=1), start=1))


def _held_out(bank: Bank, train: Array, test: Array, choice: Choice) -> Array:
    """Return the errors of a choice whose limits may leave the grid, to first order along their derivatives."""
    columns = np.array(bank.columns(choice, slopes=True))
    coefficients = np.append(_solution(train, columns), -1.0)
    return block_errors(test[:, columns[:, None], columns[None]], coefficients)


def _solution(gram: Array, columns: Array) -> Array:
    chosen = gram[np.ix_(columns, columns)]
    result: Array = np.linalg.lstsq(chosen[:-1, :-1], chosen[:-1, -1], rcond=RIDGE)[0]
    return result


def choice_spread(bank: Bank, count: int) -> tuple[Array, Array]:
    """Return the standard errors of ln D_i and W_i (Nm), (count,) each, that come from the choice of the limits.

    Where the data hardly determine an element, its best limit jumps as folds are left out, which the covariance at a
    single optimum does not show. Moves to the next limit of the grid are no jump and count as zero.
    """
    chosen, forces = [], []
    for train, _ in folds_of(bank.grams):
        choice = best_choices(*bank.reduced(train), count)[-1]
        chosen.append(choice)
        forces.append(_solution(train, np.array(bank.columns(choice)))[:count])
    places = np.array(chosen)
    jumps = np.ptp(places, axis=0) > 1
    logs, W = np.log(bank.limits[places]), np.array(forces)
    return np.where(jumps, standard_error(logs), 0.0), np.where(jumps.any(), standard_error(W), 0.0)


# -- least squares ---------------------------------------------------------------------------------------------------

Names = tuple[str, ...]
"""Names of free non-linear parameters, in the order of `FREE`."""
FREE: dict[str, tuple[tuple[str, bool], ...]] = {
    "limits": (("limits", True),),
    "scale": (("limits", True),),
    "growth": (("growth", False),),
    "rise": (("extra", False), ("speed", True)),
    "rate": (("rate", True),),
}
"""Entries of a law that a free parameter moves, and whether by their logarithm; "scale" moves all limits alike."""
SPEEDS = (5e-4, 1.0)
"""Range (rad/s) of the Stribeck speed V: slower ones vanish in the noise of speed, faster ones are viscous friction."""
RATES = (0.1, 1e4)
"""Range (1/s) of the rate of slip: slower or faster than any sampled motion."""
CONVERGED = 1e-7
"""Relative reduction of the squared error by a step below which a search ends: the error of a million samples has a
standard error of 1e-3. Along a rise that the data hardly determine, smaller reductions go on for hundreds of steps."""
NUDGE = np.cbrt(np.finfo(np.float64).eps)
"""Step of central differences of quantities of size one, at which rounding and curvature weigh the same."""


@dataclass(frozen=True, eq=False)
class HysteresisFit:
    """A fitted law.

    Attributes:
        law: The law.
        inertia: Rotor inertia (kg m²) where it was estimated, else 0.
        error: Sum of squared residuals, Nm².
        shares: Fixed shares of the elements (elements,) where one force is free, None where all are.
        free: Names of the free non-linear parameters.
        grams: Gram matrices (blocks, p, p) of Jacobian and residual at the solution.
        held_out: Mean squared error of every block when its fold is held out, (blocks,) Nm².
        jumps: Standard errors of ln D_i and W_i from the choice of the limits (`choice_spread`), or None.
    """

    law: FrictionLaw
    inertia: float
    error: float
    shares: Array | None = None
    free: Names = ()
    grams: Array = field(default_factory=lambda: np.empty((0, 0, 0)))
    held_out: Array = field(default_factory=lambda: np.empty(0))
    jumps: tuple[Array, Array] | None = None

    @property
    def free_forces(self) -> Array:
        """The forces that were estimated, Nm: those of the elements, or their sum where the shares are fixed."""
        return self.law.forces if self.shares is None else self.law.forces.sum(keepdims=True)

    def unknowns(self) -> dict[str, slice]:
        """Return the places of forces and free parameters in the columns of `grams`."""
        start = len(self.free_forces)
        places = {"forces": slice(start)}
        for name, size in zip(self.free, _sizes(self.law, self.free), strict=True):
            places[name] = slice(start, start := start + size)
        return places


def fit_forces(loops: Loops, law: FrictionLaw, shares: Array | None = None) -> HysteresisFit:
    """Return the law with the best forces, rotor inertia, viscous friction and offset, its other parameters fixed.

    ``min |f - C W - B θ̈ - F_V ω - f_0|²`` over all used samples with W >= 0, from Gram matrices.

    Args:
        loops: The data.
        law: The law with its limits, growth, rise and rate; its forces are not used.
        shares: Fixed shares of the elements, (elements,), so that one force is free; None for free forces.
    """
    if law.model in SLIP:
        law = replace(law, forces=np.empty(0))
        grams = _grouped(slip_grams(loops, law), len(law.limits), (), shares)
    else:
        grams = column_grams(loops, [law], lambda columns, _: columns[0])
    x, error = non_negative_solution(grams.sum(axis=0), grams.shape[1] - LINEAR - 1)
    forces = x[:-LINEAR] if shares is None else shares * x[0]
    inertia, viscous, offset = (float(value) for value in x[-LINEAR:])
    return HysteresisFit(replace(law, forces=forces, viscous=viscous, offset=offset), inertia, error, shares)


def refine(loops: Loops, start: HysteresisFit, free: Names) -> HysteresisFit:
    """Return the best fit from a start on; elements of slip models that carry no force are removed.

    Args:
        loops: The data.
        start: Fit to start from.
        free: Names of the free non-linear parameters; none leaves those of the start as they are.
    """
    fit = _pruned(loops, start)
    if not free:
        return fit
    found = _optimum(loops, fit, free)
    return found if _pruned(loops, found) is found else refine(loops, found, free)


def _pruned(loops: Loops, fit: HysteresisFit) -> HysteresisFit:
    """Return the fit of a slip model without elements that carry no force; fixed shares stay."""
    kept = fit.law.forces > 0.0
    if fit.law.model not in SLIP or fit.shares is not None or kept.all() or not kept.any():
        return fit
    return fit_forces(loops, replace(fit.law, limits=fit.law.limits[kept]))


def _optimum(loops: Loops, start: HysteresisFit, free: Names) -> HysteresisFit:
    """Return the minimum of the squared error over the free parameters, each within its range.

    The samples enter by their sums alone: the residual ``(|r|, 0, ..., 0)`` with the Jacobian K of
    `_projected_jacobian` has the squared error, the gradient and the Gauss-Newton matrix of all samples.
    """

    @lru_cache(maxsize=1)
    def fit_at(step: tuple[float, ...]) -> HysteresisFit:
        return fit_forces(loops, moved(start.law, np.array(step), free), start.shares)

    def residual(step: Array) -> Array:
        return np.append(np.sqrt(max(fit_at(tuple(step)).error, 0.0)), np.zeros(len(step)))

    def jacobian(step: Array) -> Array:
        return -_projected_jacobian(loops, fit_at(tuple(step)), free)

    low, high, size = _step_ranges(loops, start.law, free)
    at = np.zeros(len(size))
    found = least_squares(residual, at, jacobian, (low, high), "dogbox", ftol=CONVERGED, x_scale=size)
    return _resolved(loops, fit_at(tuple(found.x)))


def _projected_jacobian(loops: Loops, fit: HysteresisFit, free: Names) -> Array:
    """Return K (parameters + 1, parameters) with ``Kᵀ K = Jᵀ P J`` and ``Kᵀ (|r|, 0, ..., 0) = Jᵀ r``.

    J are the derivatives of friction with respect to the free parameters, r the residual, and P projects onto what the
    linear parameters cannot explain (Kaufman, BIT 15(1), 1975).
    """
    gram = residual_grams(loops, fit, free).sum(axis=0)
    forces, count = fit.free_forces, len(gram) - 1
    nonlinear = np.arange(len(forces), count - LINEAR)
    linear = np.concatenate([np.flatnonzero(forces > 0.0), np.arange(count - LINEAR, count)])
    order, size = np.concatenate([nonlinear, linear]), np.sqrt(np.maximum(np.diag(gram), TINY))
    A, b = gram[np.ix_(order, order)] / np.outer(size[order], size[order]), gram[order, -1] / (size[order] * size[-1])
    A, b = eliminated(A, b, len(nonlinear))
    values, vectors = np.linalg.eigh(A - np.outer(b, b))
    result: Array = np.vstack([b, np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T]) * size[nonlinear]
    return result


def complete(loops: Loops, fit: HysteresisFit, free: Names) -> HysteresisFit:
    """Return a fit with its Gram matrices and held-out errors."""
    law = fit.law
    loaded = law.load if law.model in STATIC else law.growth > 0.0
    law = replace(law, load=bool(loaded), most_load=loops.largest_load if loaded else None)
    fit = replace(fit, law=law, free=free, grams=residual_grams(loops, fit, free))
    places = fit.unknowns()
    relative = [np.r_[places[name]] for name in ("limits", "scale", "rise", "rate") if name in places]
    return replace(fit, held_out=held_out_block_errors(fit.grams, np.concatenate([np.empty(0, np.intp), *relative])))


# -- derivatives -----------------------------------------------------------------------------------------------------


def residual_grams(loops: Loops, fit: HysteresisFit, free: Names) -> Array:
    """Return CᵀC (blocks, p, p) of forces, free parameters, linear columns and the residual of a fit.

    Static laws have no columns of forces at their bound of zero.
    """
    law = fit.law
    if law.model in SLIP:
        names = tuple("limits" if name == "scale" else name for name in free)
        grams = _grouped(slip_grams(loops, law, names), len(law.limits), free, fit.shares)
    elif law.model in RATED:
        grams = _rated_grams(loops, law, free)
    else:
        grams = column_grams(loops, [law], lambda columns, _: columns[0])
    slopes = np.zeros(grams.shape[1] - len(fit.free_forces) - LINEAR - 1)
    grams = as_residual(grams, np.array([*fit.free_forces, *slopes, fit.inertia, law.viscous, law.offset]))
    if law.model in STATIC:
        kept = np.append(law.forces > 0.0, np.ones(LINEAR + 1, dtype=bool))
        grams = grams[:, kept][:, :, kept]
    return grams


def _grouped(grams: Array, elements: int, free: Names, shares: Array | None) -> Array:
    """Return normal equations of a slip model for fixed shares and for limits that move by one factor ("scale")."""
    if shares is None and "scale" not in free:
        return grams
    groups = [np.eye(elements) if shares is None else shares[:, None]]
    groups += [np.ones((elements, 1))] if "scale" in free else [np.eye(elements)] if "limits" in free else []
    rest = grams.shape[1] - elements * len(groups)
    return joined_columns(grams, block_diag(*groups, np.eye(rest)))


def _rated_grams(loops: Loops, law: FrictionLaw, free: Names) -> Array:
    """Return CᵀC of a rate-dependent model, its slopes by central differences."""
    searched = tuple(name for name in free if name != "growth")
    steps = NUDGE * np.eye(len(law.limits) + 2 + ("rate" in free))
    laws = [law, *(moved(law, side * step, searched) for step in steps for side in (1.0, -1.0))]

    def combine(columns: list[Array], rows: slice) -> Array:
        pairs = zip(columns[1::2], columns[2::2], strict=True)
        slopes = [(up - down) @ law.forces / (2.0 * NUDGE) for up, down in pairs]
        if "growth" in free:
            growth = load_growth(loops.load[rows], law.power)
            slopes.insert(len(law.limits), growth / (1.0 + law.growth * growth) * (columns[0] @ law.forces))
        return np.column_stack([columns[0], *slopes])

    return column_grams(loops, laws, combine)


# -- steps of the non-linear parameters ------------------------------------------------------------------------------


def moved(law: FrictionLaw, step: Array, free: Names) -> FrictionLaw:
    """Return a law after a step (parameters,) of its free parameters."""
    for name, part in zip(free, np.split(step, np.cumsum(_sizes(law, free))[:-1]), strict=True):
        for k, (entry, is_log) in enumerate(FREE[name]):
            value = part if entry == "limits" else float(part[k])
            change = np.exp(value) if is_log else value
            before = getattr(law, entry)
            law = replace(law, **{entry: before * change if is_log else before + change})
    return law


def _sizes(law: FrictionLaw, free: Names) -> list[int]:
    """Return the number of values of each free parameter."""
    return [len(law.limits) if name == "limits" else len(FREE[name]) for name in free]


def _step_ranges(loops: Loops, law: FrictionLaw, free: Names) -> tuple[Array, Array, Array]:
    """Return the lowest and highest steps of the free parameters from a law, and their usual size, (parameters,)."""
    ranges = {
        "limits": limit_range(loops),
        "growth": (0.0, np.inf),
        "extra": (0.0 if law.model in RATED else -1.0, np.inf),
        "speed": loops.speeds,
        "rate": RATES,
    }
    lows, highs, sizes = [], [], []
    for name in free:
        for entry, is_log in FREE[name]:
            values = np.atleast_1d(getattr(law, entry))[-1 if name == "scale" else None :]
            low, high = (np.log(bound / values) if is_log else bound - values for bound in ranges[entry])
            lows.append(np.minimum(low, 0.0))
            highs.append(np.maximum(high, 0.0))
            sizes.append(np.full(len(values), loops.largest_load**-law.power if entry == "growth" else 1.0))
    return np.concatenate(lows), np.concatenate(highs), np.concatenate(sizes)


def limit_range(loops: Loops) -> tuple[float, float]:
    """Return the range (rad) in which limits are searched."""
    return max(0.5 * loops.smallest, loops.resolution), loops.largest


def _resolved(loops: Loops, fit: HysteresisFit) -> HysteresisFit:
    """Return a fit with limits in ascending order and, for slip models, at least the resolution apart."""
    if fit.law.model not in SLIP:
        return fit
    limits = np.sort(fit.law.limits)
    for i in range(1, len(limits)):
        limits[i] = max(limits[i], limits[i - 1] + loops.resolution)
    if np.array_equal(limits, fit.law.limits):
        return fit
    return fit_forces(loops, replace(fit.law, limits=limits), fit.shares)
