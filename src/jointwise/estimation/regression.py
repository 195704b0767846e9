"""From logs and a model to the regression ``[Y_b | terms] β = y``: the only file that sees both.

Row k of joint j is ``[Y_b,j(q, q̇, q̈) | columns of its terms] β = y_j(t_k - lag)``. Rows are made chunk by chunk; what
remains of them are small factors or second moments for each joint and block of time (`factors`), so memory does not
grow with the logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from jointwise.data.conditioning import CleanLog, Filters, MotionChunk, motion_chunks
from jointwise.data.filters import decimate, decimation_taps
from jointwise.estimation.factors import Blocks, Index, JointFactors, JointMoments, block_sums
from jointwise.estimation.least_squares import Layout, Problem, QuickProblem
from jointwise.model.dynamics import Dynamics, joint_signals
from jointwise.model.terms import Term, joint_columns
from jointwise.model.transmission import motor_motion
from jointwise.motion import Motion, with_substitutes
from jointwise.spatial import Array, Mask

STILL_WEIGHT = 0.3
"""Weight of samples at which a joint does not move: static friction is not a function of the motion there."""
STILL_PART = 0.02
"""A joint does not move below this part of its greatest speed."""
NEAR_MOTION = 0.05
"""Samples less than this time (s) from a motion count as motion: the friction is still that of sliding."""
BLOCKS = 24
"""Blocks that the training data are divided into for cross-validation and the jackknife."""
PHASES = 36
"""Blocks that the period of a motion that repeats itself is divided into. Fewer are so long that nothing similar is
left without one of them: intervals get too wide. More are shorter than the correlation time of friction errors."""
EXCERPT = 60_000
"""Samples of all logs together that structures and filters are selected on; the final fit uses every sample."""

JointwiseTerms = Sequence[Sequence[Term]]
"""Terms of every joint."""
LoadOf = Callable[[list[Array]], Array]
"""From rigid columns (one matrix a joint) to the load torque (samples, joints), Nm."""

_RIGID_COLUMNS: WeakKeyDictionary[MotionChunk, tuple[Dynamics, slice, list[Array]]] = WeakKeyDictionary()
"""Rigid columns of the motions in memory, with the bodies and the samples that they belong to."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A chunk of a log with its measured output: rows of the regression.

    Attributes:
        chunk: The motion of the chunk.
        outputs: Measured output, once for each lag, shape (lags, samples, joints).
        weights: Weights of the samples, shape (samples, joints).
        used: Samples that make rows: every n-th of the inner ones.
        needed: Samples at which columns are needed: those of the rows, or all of them under a parallel filter.

    """

    chunk: MotionChunk
    outputs: Array
    weights: Array
    used: slice
    needed: slice

    @property
    def motion(self) -> Motion:
        """The motion."""
        return self.chunk.motion

    @property
    def count(self) -> int:
        """Number of rows of a joint."""
        return len(range(*self.used.indices(self.motion.samples)))

    @property
    def states(self) -> Motion:
        """The motion at the needed samples; torques of rigid bodies depend on q, q̇ and q̈ of the same sample only."""
        motion, needed = self.motion, self.needed
        return Motion(motion.rate, motion.q[needed], motion.qd[needed], motion.qdd[needed], start=motion.start)

    def of_rows(self, values: Array) -> Array:
        """Return values (needed samples, ...) at the samples that make rows."""
        return values if self.needed == self.used else values[self.used]

    def at_all_samples(self, load: Array) -> Array:
        """Return load torques (needed samples, joints) at all samples: exact where they are needed, linear between."""
        every = np.arange(self.motion.samples)
        if len(load) == len(every):
            return load
        return np.column_stack([np.interp(every, every[self.needed], column) for column in load.T])


RowWeights = Callable[[Rows, list[Array], Array | None], Array]
"""From rows, rigid columns (one matrix a joint) and load torque to weights (needed samples, joints)."""


def regression_rows(clean: CleanLog, output: str, filters: Filters, lags: Sequence[float] = ()) -> Iterator[Rows]:
    """Yield a log chunk by chunk with its measured `output` (torque or current) for some `lags` (s).

    Without lags it is that of the filters. An output that was not measured (NaN) has no weight.
    """
    started, step = False, filters.decimation
    for chunk in motion_chunks(clean, filters):
        channel = clean.log.channel(output)
        outputs = np.stack([chunk.span.resampled(channel, lag) for lag in lags or (filters.lag,)])
        weights = motion_weights(chunk.motion, clean.fastest, started)
        weights[:, clean.log.unmeasured(output)] = 0.0
        started = started or bool((weights > 0.0).any())
        used = slice(-(-chunk.inner.start // step) * step, chunk.inner.stop, step)
        yield Rows(chunk, outputs, weights, used, used if filters.parallel_cutoff is None else slice(None))


def motion_weights(motion: Motion, fastest: Array, started: bool = False) -> Array:
    """Return row weights (samples, joints): 1 in motion, `STILL_WEIGHT` at rest, 0 before anything has moved."""
    moving = np.abs(motion.qd) > np.maximum(STILL_PART * fastest, 1e-9)
    width = max(int(np.ceil(NEAR_MOTION * motion.rate)) - 1, 1)
    weights = np.where(_dilated(moving, width), 1.0, STILL_WEIGHT)
    if not started:
        first = np.flatnonzero(moving.any(axis=1))
        weights[: first[0] if first.size else len(weights)] = 0.0
    return weights


def _dilated(flags: Mask, width: int) -> Mask:
    """Return where flags (samples, joints) are set within `width` samples before or after."""
    count = np.concatenate([np.zeros((1, flags.shape[1]), dtype=np.intp), np.cumsum(flags, axis=0)])
    k = np.arange(len(flags))
    return np.asarray(count[np.minimum(k + width + 1, len(flags))] > count[np.maximum(k - width, 0)])


def filtered_series(series: Array, used: slice, filters: Filters) -> Array:
    """Return series [W | y ...] (columns, needed samples) at the samples that make rows.

    With a parallel cut-off both sides pass the same low-pass filter and are decimated: M. Gautier, "Dynamic
    identification of robots with power model", IEEE Int. Conf. on Robotics and Automation (ICRA), 1997.
    """
    if filters.parallel_cutoff is None:
        return series
    taps, step = decimation_taps(filters.parallel_cutoff, filters.rate), filters.decimation
    kept = slice(used.start // step, -(-used.stop // step))
    return np.stack([decimate(values, taps, step)[kept] for values in series])


@dataclass(frozen=True)
class Regression:
    """Training logs under one set of filters, and the bodies of the robot.

    Attributes:
        logs: Cleaned logs.
        output: `torque` or `current`.
        bodies: Robot, gravity and base parameters.
        filters: How signals are conditioned.
        carried: Payloads of single logs as base parameters, None for none; their torque over `gains` is subtracted from
            the output and included in the load torque.
        gains: Drive gains that turn the torque of `carried` into the output, Nm per unit, (joints,); None for torques.
        extra: Kinds of terms that every candidate structure has.
        periods: Period (s) with which the motion of each log repeats itself, None where it does not; empty to divide
            all logs into blocks of time.
    """

    logs: tuple[CleanLog, ...]
    output: str
    bodies: Dynamics
    filters: Filters
    carried: tuple[Array | None, ...] = ()
    gains: Array | None = None
    extra: tuple[str, ...] = ()
    periods: tuple[float | None, ...] = ()

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

    def from_positions(self) -> Regression:
        """Return the regression on positions only, each log up to its last motion.

        After a program has ended, the drive may hold or release the joint, which does not depend on the motion.
        """
        parts = (clean.from_positions() for clean in self.logs)
        return replace(self, logs=tuple(part.until_last_motion(STILL_PART * part.fastest) for part in parts))

    def excerpt(self) -> Regression:
        """Return the regression on at most `EXCERPT` samples; itself if it has no more."""
        if self.samples <= EXCERPT:
            return self
        return replace(self, logs=tuple(clean.excerpt(EXCERPT / self.samples) for clean in self.logs))

    def filtered(self, **changes: Any) -> Regression:
        """Return the same logs under changed filters."""
        return replace(self, filters=replace(self.filters, **changes))

    def problem(
        self, terms: JointwiseTerms, load_of: LoadOf | None = None, row_weights: RowWeights | None = None
    ) -> Problem:
        """Return the factors of [Y_b | terms | y] of every joint, y in its own unit.

        Args:
            terms: Terms of every joint.
            load_of: The load torque from the rigid columns, where terms depend on it.
            row_weights: Further factors of the weights of the rows (robust fits).

        """
        factors = [JointFactors() for _ in terms]
        for log, rows in self._rows((self.filters.lag,)):
            blocks = self.jackknife_blocks(rows, log)
            for j, series, weights in self._joints(rows, terms, self._carried(log), load_of, row_weights):
                factors[j].add_blocks(series.T, weights, blocks)
        return Problem(factors, self._layout(terms))

    def quick_problem(
        self, terms: JointwiseTerms, load_of: LoadOf | None = None, row_weights: RowWeights | None = None
    ) -> QuickProblem:
        """Return the second moments of [Y_b | terms | y] of every joint, y in its own unit; see `problem`."""
        return self.lagged_problems(terms, (self.filters.lag,), load_of, row_weights)[0]

    def lagged_problems(
        self,
        terms: JointwiseTerms,
        lags: Sequence[float],
        load_of: LoadOf | None = None,
        row_weights: RowWeights | None = None,
    ) -> list[QuickProblem]:
        """Return `quick_problem` for several lags (s) of the output; the columns are computed only once."""
        moments = [[JointMoments() for _ in terms] for _ in lags]
        for log, rows in self._rows(lags):
            starts = self.time_blocks(rows)
            for j, series, weights in self._joints(rows, terms, self._carried(log), load_of, row_weights):
                width = len(series) - len(lags)
                sums = [block_sums(y, weights, starts) for y in series[width:]]
                weighted = np.multiply(series, np.sqrt(weights), out=series)
                squares = np.stack([block @ block.T for block in np.split(weighted, starts[1:], axis=1)])
                for lag, joints in enumerate(moments):
                    chosen = np.append(np.arange(width), width + lag)
                    joints[j].add(squares if len(lags) == 1 else squares[:, chosen[:, None], chosen], sums[lag])
        layout = self._layout(terms)
        return [QuickProblem(joints, layout) for joints in moments]

    def _layout(self, terms: JointwiseTerms) -> Layout:
        """Return where the columns [Y_b | terms] of every joint are in one vector: bodies, then joint by joint."""
        index, bound = [], [False] * self.bodies.base.count
        for (_, which), joint in zip(self.bodies.rigid_index, terms, strict=True):
            bounds = [parameter.non_negative for term in joint for parameter in term.parameters()]
            index.append(np.concatenate([which, len(bound) + np.arange(len(bounds))]))
            bound += bounds
        return Layout(index, np.array(bound))

    def _rows(self, lags: Sequence[float]) -> Iterator[tuple[int, Rows]]:
        """Yield the number of the log and the rows of every chunk, with the outputs of some lags (s)."""
        for log, clean in enumerate(self.logs):
            for rows in regression_rows(clean, self.output, self.filters, lags):
                if rows.count:
                    yield log, rows

    def _joints(
        self,
        rows: Rows,
        terms: JointwiseTerms,
        carried: Array | None,
        load_of: LoadOf | None,
        row_weights: RowWeights | None,
    ) -> Iterator[tuple[int, Array, Array]]:
        """Yield joint, series [W | y of every lag] (columns, rows) and weights (rows,) of a chunk."""
        rigid = self.rigid_columns(rows)
        load = None if load_of is None else load_of(rigid)
        if carried is not None:
            rows, load = self._without_payload(rows, self.bodies.body_torque(rigid, carried), load)
        load = None if load is None else rows.at_all_samples(load)
        weights = rows.weights[rows.used]
        if row_weights is not None:
            weights = weights * rows.of_rows(row_weights(rows, rigid, load))
        for j, columns in enumerate(self.joint_series(rows, terms, rigid, load)):
            series = np.concatenate([*columns, rows.outputs[:, rows.needed, j]])
            yield j, filtered_series(series, rows.used, self.filters), weights[:, j]

    def _carried(self, log: int) -> Array | None:
        """Return the payload of a log as base parameters, None for none."""
        return self.carried[log] if self.carried else None

    def rigid_columns(self, rows: Rows) -> list[Array]:
        """Return the columns Y_b of each joint (columns, needed samples).

        Those of the rows are computed once for a motion in memory. A parallel filter needs them at all samples, once.
        """
        if rows.needed != rows.used:
            return self.bodies.rigid_columns(rows.states)
        bodies, used, columns = _RIGID_COLUMNS.get(rows.chunk, (None, None, []))
        if bodies is not self.bodies or used != rows.used:
            columns = self.bodies.rigid_columns(rows.states)
            _RIGID_COLUMNS[rows.chunk] = self.bodies, rows.used, columns
        return columns

    def _without_payload(self, rows: Rows, torque: Array, load: Array | None) -> tuple[Rows, Array | None]:
        """Return rows without the torque of a payload (needed samples, joints) in the output, and the load with it."""
        outputs = rows.outputs.copy()
        outputs[:, rows.needed] -= torque if self.gains is None else torque / self.gains
        return replace(rows, outputs=outputs), None if load is None else load + torque

    def joint_series(
        self, rows: Rows, terms: JointwiseTerms, rigid: list[Array], load: Array | None
    ) -> Iterator[list[Array]]:
        """Yield the columns [Y_b | terms] of every joint as series (columns, needed samples), one array a term."""
        motor = motor_motion(self.bodies.robot, with_substitutes(rows.motion), self.bodies.rotor_side)
        for j, joint_terms in enumerate(terms):
            yield [rigid[j], *term_series(joint_terms, motor, j, load, rows.needed)]

    def time_blocks(self, rows: Rows) -> Index:
        """Return the first rows of the blocks of time that a chunk is divided into: `BLOCKS` for all logs together."""
        share = (rows.chunk.rows.stop - rows.chunk.rows.start) / self.samples
        parts = np.array_split(np.arange(rows.count), max(1, round(BLOCKS * share)))
        return np.array([part[0] for part in parts if len(part)], dtype=np.intp)

    def jackknife_blocks(self, rows: Rows, log: int) -> Blocks:
        """Return the blocks that the rows of a chunk of a log are divided into.

        Errors of the model repeat with the motion. Rows of the same phase of a motion that repeats itself therefore
        make one block, `PHASES` for all logs together; other motions are divided into blocks of time.
        """
        period = self.periods[log] if self.periods else None
        if period is None:
            starts = self.time_blocks(rows)
            return Blocks(starts, [None] * len(starts))
        count = max(1, round(PHASES * self.logs[log].samples / self.samples))
        times = rows.motion.start + np.arange(*rows.used.indices(rows.motion.samples)) / rows.motion.rate
        phases = (times % period * (count / period)).astype(np.intp) % count
        order = np.argsort(phases, kind="stable")
        found, starts = np.unique(phases[order], return_index=True)
        return Blocks(starts, [(log, int(phase)) for phase in found], order)


def term_series(terms: Sequence[Term], motion: Motion, joint: int, load: Array | None, at: slice) -> list[Array]:
    """Return the columns of a joint's terms at some samples as series, one array (count, samples) a term."""
    signals = joint_signals(motion, joint, load)
    return [columns[at].T for columns in joint_columns(terms, signals)[0]]
