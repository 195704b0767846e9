"""Thinned, conditioned samples of the training logs, on which declarations are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.data.conditioning import MotionChunk, motion_chunks
from jointwise.data.filters import low_pass
from jointwise.description.robot import Robot
from jointwise.estimation.regression import Regression, term_series
from jointwise.estimation.structure import Structure
from jointwise.model.terms import Term, slip_elements, slip_state
from jointwise.model.transmission import motor_motion
from jointwise.motion import Motion, with_substitutes
from jointwise.spatial import Array

ROWS = 400
"""Samples that are kept: several for every independent one of a minute of motion, and alternatives stay cheap."""
LAGS = np.array([-0.1, 0.0, 0.025, 0.05, 0.075, 0.1])
"""Time shifts of the output that are tried, s; an output that is late by 38 ms fits best at 25 ms."""
LIMITS = np.array([1e-4, 1e-3, 6e-3])
"""Limits of slip elements, rad, that cover the hysteresis of strain-wave gears."""
POSITION_CUTOFF, OUTPUT_CUTOFF = 8.0, 12.0
"""Cut-offs (Hz) of positions and output: bodies and friction of an arm act below."""
FRICTION = len(LIMITS) + 2
"""Columns of friction: slip elements, viscous friction, its square."""
MOVING = 0.02
"""Speed (rad/s) above which a joint moves."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Conditioned samples of the training logs, thinned out.

    Attributes:
        q: Positions, (samples, joints), rad.
        qd: Speeds, (samples, joints), rad/s.
        qdd: Accelerations, (samples, joints), rad/s².
        output: Measured output at t + lag, (samples, joints, lags), A or Nm.
        friction: Columns along each position channel, (joints, samples, columns): `FRICTION` ones of friction, odd in
            the motion, those of the terms that the user declared, and the constant offset.
        log: Index of the log, (samples,).
        duration: Time in motion of every log, (logs,), s.
        lags: Lags of the output, (lags,), s; they include zero.
        moving: Joints that move, (joints,); the others carry no evidence.
        terms: Kinds of the declared terms.
        other_friction: `friction` if the logs of a coupled robot are in the coordinates that were not declared; None
            without a coupling.
    """

    q: Array
    qd: Array
    qdd: Array
    output: Array
    friction: Array
    log: NDArray[np.intp]
    duration: Array
    lags: Array
    moving: NDArray[np.bool_]
    terms: tuple[str, ...] = ()
    other_friction: Array | None = None

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.q.shape[1])

    def thinned(self, step: int) -> Samples:
        """Return every `step`-th sample."""
        arrays = {name: getattr(self, name)[::step] for name in ("q", "qd", "qdd", "output", "log")}
        other = None if self.other_friction is None else self.other_friction[:, ::step]
        return self if step == 1 else replace(self, friction=self.friction[:, ::step], other_friction=other, **arrays)

    def of_logs(self, logs: tuple[int, ...]) -> NDArray[np.bool_]:
        """Return which samples belong to some logs, all if empty, (samples,)."""
        return np.isin(self.log, logs) if logs else np.ones(len(self.log), dtype=bool)

    @cached_property
    def zero_lag(self) -> int:
        """Index of lag zero."""
        return int(np.argmin(np.abs(self.lags)))


def collect_samples(regression: Regression) -> Samples:
    """Return samples of the moving parts of all logs under the common lag that was chosen."""
    smooth = regression.excerpt().filtered(position_cutoff=POSITION_CUTOFF)
    chunks = [(k, chunk) for k, clean in enumerate(smooth.logs) for chunk in motion_chunks(clean, smooth.filters)]
    inner = [_moving_samples(chunk) for _, chunk in chunks]
    total = sum(len(rows) for rows in inner)
    step = max(total // ROWS, 1)
    parts = [_rows(smooth, chunk, rows[::step], k) for (k, chunk), rows in zip(chunks, inner, strict=True) if len(rows)]
    joined = _joined(parts)
    seconds = np.zeros(len(smooth.logs))
    for (k, _), rows in zip(chunks, inner, strict=True):
        seconds[k] += len(rows) / smooth.filters.rate
    measured = ~np.any([clean.log.unmeasured(smooth.output) for clean in smooth.logs], axis=0)
    moving = measured & (np.sqrt(np.mean(joined.qd**2, axis=0)) > MOVING)
    return replace(joined, duration=seconds, moving=moving, terms=regression.extra)


def _moving_samples(chunk: MotionChunk) -> NDArray[np.intp]:
    rows = np.flatnonzero((np.abs(chunk.motion.qd) > MOVING).any(axis=1))
    inside: NDArray[np.intp] = rows[(rows >= chunk.inner.start) & (rows < chunk.inner.stop)]
    return inside


def _rows(regression: Regression, chunk: MotionChunk, rows: NDArray[np.intp], log: int) -> Samples:
    """Return some samples of a chunk."""
    motion, lag = chunk.motion, regression.filters.lag
    channel = chunk.span.log.channel(regression.output)
    shifted = [low_pass(chunk.span.resampled(channel, lag - s), OUTPUT_CUTOFF, motion.rate)[rows] for s in LAGS]
    torque = _payload_torque(regression, motion, rows, log)
    shifted = [output - torque for output in shifted]
    friction, *other = (
        np.stack([columns[rows] for columns in _joint_columns(motor, Structure(extra=regression.extra).extra_terms())])
        for motor in _motor_motions(regression.bodies.robot, with_substitutes(motion))
    )
    where = np.full(len(rows), log, dtype=np.intp)
    states = motion.q[rows], motion.qd[rows], motion.qdd[rows]
    unknown = np.zeros(0), LAGS, np.zeros(0, dtype=bool)
    return Samples(
        *states, np.stack(shifted, axis=2), friction, where, *unknown, other_friction=next(iter(other), None)
    )


def _motor_motions(robot: Robot, motion: Motion) -> Iterator[Motion]:
    """Yield the motion of the motors as declared, and of a coupled robot as in the other coordinates of logs."""
    moved = motor_motion(robot, motion)
    yield moved
    if robot.transmission is not None:
        yield motion if robot.transmission.coordinates == "joint" else motor_motion(robot, moved)


def _payload_torque(regression: Regression, motion: Motion, rows: NDArray[np.intp], log: int) -> Array | float:
    """Return the output (samples, joints) that belongs to the known payload of a log, 0 without one."""
    carried = regression.carried[log] if regression.carried else None
    if carried is None:
        return 0.0
    states = Motion(motion.rate, motion.q[rows], motion.qd[rows], motion.qdd[rows], start=motion.start)
    torque = regression.bodies.body_torque(regression.bodies.rigid_columns(states), carried)
    return torque if regression.gains is None else torque / regression.gains


def _joint_columns(motion: Motion, declared: Sequence[Term]) -> Iterator[Array]:
    """Yield friction, declared terms and the constant offset of every joint, (samples, columns).

    Args:
        motion: The motion of the motors.
        declared: Terms that the user declared beside friction.

    """
    path = motion.q if motion.path is None else motion.path
    for j, (x, speed) in enumerate(zip(path.T, motion.qd.T, strict=True)):
        elements = slip_elements(x, LIMITS, slip_state(x[0], len(LIMITS)))[0]
        terms = [series.T for series in term_series(declared, motion, j, None, slice(None))]
        yield np.column_stack([elements, speed, speed * np.abs(speed), *terms, np.ones(len(speed))])


def _joined(parts: list[Samples]) -> Samples:
    names = ("q", "qd", "qdd", "output", "log")
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    arrays["friction"] = np.concatenate([part.friction for part in parts], axis=1)
    other = [part.other_friction for part in parts if part.other_friction is not None]
    return replace(parts[0], other_friction=np.concatenate(other, axis=1) if other else None, **arrays)
