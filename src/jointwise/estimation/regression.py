"""From logs and a model to factors of the regression ``[Y_b | terms] β = y``: the only file that sees both.

Row k of joint j is ``[Y_b,j(q, q̇, q̈) | columns of its terms] β = y_j(t_k - lag)``. With a parallel cut-off both sides
pass the same low-pass filter and are decimated: M. Gautier, "Dynamic identification of robots with power model", IEEE
Int. Conf. on Robotics and Automation (ICRA), 1997.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise.data.conditioning import CleanLog, Filters, Index, MotionChunk, motion_chunks
from jointwise.data.filters import decimate, decimation_taps
from jointwise.errors import DataError
from jointwise.estimation.factors import JointFactors, JointMoments
from jointwise.estimation.least_squares import Layout, Problem, QuickProblem
from jointwise.model.dynamics import Dynamics, joint_signals
from jointwise.model.terms import Term
from jointwise.model.transmission import motor_motion
from jointwise.motion import Motion, with_substitutes
from jointwise.spatial import Array

STILL_WEIGHT = 0.3
"""Weight of samples at which a joint does not move: static friction is not a function of the motion there."""
STILL_PART = 0.02
"""A joint does not move below this part of its greatest speed."""
NEAR_MOTION = 0.05
"""Samples less than this time (s) from a motion count as motion: the friction is still that of sliding."""
BLOCKS = 24
"""Blocks that the training data are divided into for cross-validation and the jackknife."""
EXCERPT = 60_000
"""Samples of all logs together that structures and filters are selected on; the final fit uses every sample."""
NOISE_WINDOW = 0.5
"""Duration (s) over which the noise of positions is measured."""
QUIET = 0.1
"""Quantile of these windows that stands for the noise of slow motion."""
RIPPLE_QUANTILE = 0.999
"""Quantile that stands for the greatest speed ripple: glitches do not count."""

LoadOf = Callable[[list[Array]], Array]
"""From rigid columns (one matrix a joint) to the load torque (samples, joints), Nm."""
RowWeights = Callable[["Rows", Index, list[Array], Array | None], Array]
"""From rows, needed samples, rigid columns and load torque to weights (needed samples, joints)."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A chunk of a log with its measured output: rows of the regression.

    `outputs` (lags, samples, joints) is the measured output, once for each lag; `weights` (samples, joints) are those
    of the rows.
    """

    chunk: MotionChunk
    outputs: Array
    weights: Array

    @property
    def motion(self) -> Motion:
        """The motion."""
        return self.chunk.motion


def regression_rows(clean: CleanLog, output: str, filters: Filters, lags: Sequence[float] = ()) -> Iterator[Rows]:
    """Yield a log chunk by chunk with its measured `output` (torque or current) for some `lags` (s).

    Without lags it is that of the filters. An output that was not measured (NaN) has no weight.
    """
    started = False
    for chunk in motion_chunks(clean, filters):
        channel = clean.log.channel(output)
        outputs = np.stack([chunk.span.resampled(channel, lag) for lag in lags or (filters.lag,)])
        weights = motion_weights(chunk.motion, clean.fastest, started)
        weights[:, clean.log.unmeasured(output)] = 0.0
        started = started or bool((weights > 0.0).any())
        yield Rows(chunk, outputs, weights)


def motion_weights(motion: Motion, fastest: Array, started: bool = False) -> Array:
    """Return row weights (samples, joints): 1 in motion, `STILL_WEIGHT` at rest, 0 before anything has moved."""
    moving = np.abs(motion.qd) > np.maximum(STILL_PART * fastest, 1e-9)
    width = max(int(np.ceil(NEAR_MOTION * motion.rate)) - 1, 1)
    near = np.column_stack([np.convolve(m, np.ones(2 * width + 1), "same") > 0.5 for m in moving.T])
    weights = np.where(near, 1.0, STILL_WEIGHT)
    if not started:
        first = np.flatnonzero(moving.any(axis=1))
        weights[: first[0] if first.size else len(weights)] = 0.0
    return weights


@dataclass(frozen=True)
class Regression:
    """Training logs under one set of filters, their `output` (torque or current), and the bodies of the robot.

    `carried` are payloads of single logs as base parameters, None for none; their torque over `gains` (Nm per unit of
    output) is taken off the output, and it is part of the load torque. `extra` are the kinds of terms that every
    candidate structure has.
    """

    logs: tuple[CleanLog, ...]
    output: str
    bodies: Dynamics
    filters: Filters
    carried: tuple[Array | None, ...] = ()
    gains: Array | None = None
    extra: tuple[str, ...] = ()

    @property
    def has_speed(self) -> bool:
        """Whether every log has a measured speed."""
        return all(clean.log.qd is not None for clean in self.logs)

    @property
    def has_rotor(self) -> bool:
        """Whether every log has the position of the rotors."""
        return all(clean.log.theta is not None for clean in self.logs)

    @property
    def ignored(self) -> tuple[int, ...]:
        """Joints (0-based) whose output no log has measured."""
        flags = np.all([clean.log.unmeasured(self.output) for clean in self.logs], axis=0)
        return tuple(np.flatnonzero(flags).tolist())

    @property
    def period(self) -> float:
        """Median sampling period, s."""
        return float(np.median([clean.period for clean in self.logs]))

    @property
    def samples(self) -> int:
        """Samples of all logs together."""
        return sum(clean.samples for clean in self.logs)

    @property
    def fastest(self) -> Array:
        """Greatest speed of each joint (of each motor, where they are coupled), rad/s, shape (joints,)."""
        coupling = self.bodies.robot.transmission
        matrix = None if coupling is None else coupling.matrix
        return np.asarray(np.max([clean.fastest_along(matrix) for clean in self.logs], axis=0))

    def position_noise(self) -> float:
        """Return the rms noise and quantisation of slow positions, rad, median over the joints.

        It is what smoothing removes, in the quietest windows: fast motions add vibration and errors of the clock.
        """
        windows = []
        for clean in self.excerpt().logs:
            for chunk in motion_chunks(clean, self.filters):
                rough = chunk.span.resampled(clean.log.q) - chunk.motion.q
                size = min(int(NOISE_WINDOW * self.filters.rate) + 1, len(rough))
                whole = rough[: len(rough) // size * size]
                windows.append(whole.reshape(-1, size, rough.shape[1]).std(axis=1))
        return float(np.median(np.quantile(np.concatenate(windows), QUIET, axis=0)))

    def from_positions(self) -> Regression:
        """Return the regression on positions only, each log up to its last motion.

        What a drive does after a program has ended (hold, release) is no answer to a motion.
        """
        parts = (clean.from_positions() for clean in self.logs)
        return replace(self, logs=tuple(part.until_last_motion(STILL_PART * part.fastest) for part in parts))

    def rests(self, duration: float) -> int:
        """Return how often every joint stands for a `duration` (s) between two motions, all logs together."""
        counts = [clean.rests(STILL_PART * clean.fastest, duration) for clean in self.logs]
        return int(np.sum(counts, axis=0).min())

    def greatest_ripple(self) -> Array:
        """Return the greatest speed ripple of each joint, rad/s, shape (joints,)."""
        top = np.zeros(self.bodies.robot.dof)
        for clean in self.logs:
            for chunk in motion_chunks(clean, self.filters):
                if chunk.motion.ripple is not None:
                    top = np.maximum(top, np.quantile(np.abs(chunk.motion.ripple), RIPPLE_QUANTILE, axis=0))
        return top

    def layout(self, terms: Sequence[Term]) -> Layout:
        """Return where the columns [Y_b | terms] of every joint are in one vector, the same terms at each joint."""
        bounds = [parameter.non_negative for term in terms for parameter in term.parameters()]
        base, joints = self.bodies.base.count, self.bodies.robot.dof
        index = [
            np.concatenate([which, base + j * len(bounds) + np.arange(len(bounds))])
            for j, (_, which) in enumerate(self.bodies.rigid_index)
        ]
        return Layout(index, np.array([False] * base + bounds * joints))

    def excerpt(self) -> Regression:
        """Return the regression on at most `EXCERPT` samples; itself if it has no more."""
        if self.samples <= EXCERPT:
            return self
        return replace(self, logs=tuple(clean.excerpt(EXCERPT / self.samples) for clean in self.logs))

    def filtered(self, **changes: Any) -> Regression:
        """Return the same logs under changed filters."""
        return replace(self, filters=replace(self.filters, **changes))

    def problem(self, terms: Sequence[Sequence[Term]]) -> Problem:
        """Return the regression on terms that need no load torque, as many at every joint, y in its own unit."""
        return Problem(self.factors(terms), self.layout(terms[0]))

    def factors(
        self,
        terms: Sequence[Sequence[Term]],
        load_of: LoadOf | None = None,
        row_weights: RowWeights | None = None,
    ) -> list[JointFactors]:
        """Return the factors of [Y_b | terms | y] of every joint.

        `load_of` gives the load torque from the rigid columns; `row_weights` multiplies the weights of the rows
        (robust fits).
        """
        factors = [JointFactors() for _ in terms]
        for j, series, weights in self._blocks(terms, (self.filters.lag,), load_of, row_weights):
            factors[j].add(series.T, weights)
        return factors

    def quick_problem(self, terms: Sequence[Sequence[Term]], load_of: LoadOf | None = None) -> QuickProblem:
        """Return the regression on terms, as many at every joint, from second moments, y in its own unit."""
        return QuickProblem(self.quick_moments(terms, load_of), self.layout(terms[0]))

    def quick_moments(self, terms: Sequence[Sequence[Term]], load_of: LoadOf | None = None) -> list[JointMoments]:
        """Return the second moments of [Y_b | terms | y] of every joint; see `factors`."""
        return self._lagged_moments(terms, (self.filters.lag,), load_of)[0]

    def lagged_problems(
        self, terms: Sequence[Sequence[Term]], lags: Sequence[float], load_of: LoadOf | None = None
    ) -> list[QuickProblem]:
        """Return `quick_problem` for several lags (s) of the output; the columns are computed only once."""
        layout = self.layout(terms[0])
        return [QuickProblem(joints, layout) for joints in self._lagged_moments(terms, lags, load_of)]

    def _lagged_moments(
        self, terms: Sequence[Sequence[Term]], lags: Sequence[float], load_of: LoadOf | None
    ) -> list[list[JointMoments]]:
        """Return the second moments of every lag and joint."""
        moments = [[JointMoments() for _ in terms] for _ in lags]
        for j, series, weights in self._blocks(terms, lags, load_of, None):
            weighted = series * np.sqrt(weights)
            squares, width = weighted @ weighted.T, len(series) - len(lags)
            for lag, joints in enumerate(moments):
                chosen = np.append(np.arange(width), width + lag)
                joints[j].append(squares[chosen[:, None], chosen], weights, series[width + lag])
        return moments

    def _blocks(
        self,
        terms: Sequence[Sequence[Term]],
        lags: Sequence[float],
        load_of: LoadOf | None,
        row_weights: RowWeights | None,
    ) -> Iterator[tuple[int, Array, Array]]:
        """Yield joint, series [W | y of every lag] (columns, samples) and row weights (samples,), block by block."""
        for clean, carried in zip(self.logs, self.carried or (None,) * len(self.logs), strict=True):
            for rows in regression_rows(clean, self.output, self.filters, lags):
                yield from self._chunk_blocks(rows, terms, carried, load_of, row_weights)

    def _chunk_blocks(
        self,
        rows: Rows,
        terms: Sequence[Sequence[Term]],
        carried: Array | None,
        load_of: LoadOf | None,
        row_weights: RowWeights | None,
    ) -> Iterator[tuple[int, Array, Array]]:
        """Yield the blocks of a chunk; see `_blocks`."""
        motion, needed = rows.motion, self._needed(rows.chunk)
        rigid = self.bodies.rigid_columns(_states(motion, needed))
        load = None if load_of is None else load_of(rigid)
        if carried is not None:
            rows, load = self._without_payload(rows, needed, self.bodies.body_torque(rigid, carried), load)
        load = None if load is None else _at_all_samples(load, needed, motion.samples)
        weights = rows.weights[needed]
        if row_weights is not None:
            weights = weights * row_weights(rows, needed, rigid, load)
        motor = motor_motion(self.bodies.robot, with_substitutes(motion), self.bodies.rotor_side)
        for j, joint_terms in enumerate(terms):
            columns = term_columns(joint_terms, motor, j, load)[:, needed]
            series = np.concatenate([rigid[j], columns, rows.outputs[:, needed, j]])
            series, kept = _parallel_filtered(series, needed, rows.chunk.inner, self.filters)
            for block in self._block_slices(rows.chunk, len(kept)):
                yield j, series[:, block], weights[kept[block], j]

    def _block_slices(self, chunk: MotionChunk, rows: int) -> Iterator[slice]:
        """Yield the blocks that some rows of a chunk are divided into: `BLOCKS` for all logs together."""
        share = (chunk.rows.stop - chunk.rows.start) / self.samples
        edges = np.array_split(np.arange(rows), max(1, round(BLOCKS * share)))
        yield from (slice(int(part[0]), int(part[-1]) + 1) for part in edges if len(part))

    def _without_payload(
        self, rows: Rows, needed: Index, torque: Array, load: Array | None
    ) -> tuple[Rows, Array | None]:
        """Return rows without the torque of a payload (needed samples, joints) in the output, and the load with it."""
        outputs = rows.outputs.copy()
        outputs[:, needed] -= torque if self.gains is None else torque / self.gains
        return replace(rows, outputs=outputs), None if load is None else load + torque

    def instrument_factors(self, terms: Sequence[Sequence[Term]], load_of: LoadOf | None = None) -> list[JointFactors]:
        """Return the factors of [Z | W | y] of every joint: W on the measured motion, Z on that of the reference.

        Raises:
            DataError: A log has no reference positions.

        """
        factors = [JointFactors() for _ in terms]
        for clean in self.logs:
            if clean.log.q_des is None:
                raise DataError(f"{clean.log.origin.path}: no reference positions (q_des1..), which --method iv needs.")
            planned = replace(clean, log=replace(clean.log, q=clean.log.q_des, qd=None, theta=None))
            measured_rows = regression_rows(clean, self.output, self.filters)
            pairs = zip(measured_rows, motion_chunks(planned, self.filters), strict=True)
            for rows, chunk in pairs:
                needed, reference = self._needed(rows.chunk), _with_path(chunk.motion)
                measured, instruments = (
                    self._columns(motion, needed, terms, load_of) for motion in (rows.motion, reference)
                )
                for j, joint in enumerate(factors):
                    y = rows.outputs[0, needed, j]
                    matrix = np.column_stack([instruments[j].T, measured[j].T, y])
                    for block in self._block_slices(rows.chunk, len(matrix)):
                        joint.add(matrix[block], rows.weights[needed][block, j])
        return factors

    def _columns(
        self, motion: Motion, needed: Index, terms: Sequence[Sequence[Term]], load_of: LoadOf | None
    ) -> list[Array]:
        """Return the columns (count, needed) of every joint along a motion."""
        rigid = self.bodies.rigid_columns(_states(motion, needed))
        load = None if load_of is None else _at_all_samples(load_of(rigid), needed, motion.samples)
        motor = motor_motion(self.bodies.robot, motion, self.bodies.rotor_side)
        parts = [term_columns(part, motor, j, load)[:, needed] for j, part in enumerate(terms)]
        return [np.concatenate([bodies, part]) for bodies, part in zip(rigid, parts, strict=True)]

    def _needed(self, chunk: MotionChunk) -> Index:
        """Return the samples whose columns are needed: those that make rows, all of them under a parallel filter."""
        if self.filters.parallel_cutoff is not None:
            return np.arange(chunk.motion.samples)
        first = -(-chunk.inner.start // self.filters.decimation) * self.filters.decimation
        return np.arange(first, chunk.inner.stop, self.filters.decimation)


def _states(motion: Motion, needed: Index) -> Motion:
    """Return some samples of a motion; torques of rigid bodies depend on q, q̇ and q̈ of the same sample only."""
    if len(needed) == motion.samples:
        return motion
    return Motion(motion.start, motion.rate, motion.q[needed], motion.qd[needed], motion.qdd[needed])


def _with_path(motion: Motion) -> Motion:
    """Return a planned motion: its path stands for the tracked position and the rotors, and it has no ripple."""
    return replace(motion, track=motion.path, rotor=motion.path, ripple=np.zeros_like(motion.q))


def _at_all_samples(load: Array, needed: Index, samples: int) -> Array:
    """Return load torques (needed, joints) at all samples: exact where they are needed, linear between."""
    if len(needed) == samples:
        return load
    every = np.arange(samples)
    return np.column_stack([np.interp(every, needed, column) for column in load.T])


def term_columns(terms: Sequence[Term], motion: Motion, joint: int, load: Array | None) -> Array:
    """Return the columns of a joint's terms as series, (count, samples)."""
    signals = joint_signals(motion, joint, load)
    columns = [term.columns(signals)[0].T for term in terms]
    return np.concatenate(columns) if columns else np.empty((0, motion.samples))


def _parallel_filtered(series: Array, needed: Index, inner: slice, filters: Filters) -> tuple[Array, Index]:
    """Return the columns of series [W | y ...] that count, filtered in parallel and decimated, and their places."""
    if filters.parallel_cutoff is None:
        return series, np.arange(len(needed))
    taps = decimation_taps(filters.parallel_cutoff, filters.rate)
    series = np.stack([decimate(values, taps, filters.decimation) for values in series])
    kept = needed[:: filters.decimation]
    inside = (kept >= inner.start) & (kept < inner.stop)
    return series[:, inside], kept[inside]
