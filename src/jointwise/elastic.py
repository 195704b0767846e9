"""Identification of elastic joints: both equations of every joint, from positions of links and rotors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jointwise.arguments import checked
from jointwise.data.conditioning import Filters, MotionChunk, clean_log, motion_chunks
from jointwise.data.coordinates import mounting_of_logs
from jointwise.data.filters import differences, low_pass
from jointwise.data.log import Log, check_joints, log_list
from jointwise.description.files import as_robot
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Robot
from jointwise.description.transmission import refuse_coupled
from jointwise.errors import DataError, EstimationError, ModelError
from jointwise.estimation.bounded import RIDGE, bounded_least_squares, squared_error
from jointwise.estimation.factors import JointFactors, triangle
from jointwise.estimation.jackknife import MIN_BLOCKS, standard_error, student_factor
from jointwise.model.base import BaseParameters
from jointwise.model.elastic import MOTOR_NAMES, ElasticModel, ElasticStates, elastic_base, elastic_columns
from jointwise.result.elastic import ElasticCalibration
from jointwise.spatial import Array, Mask

CUTOFF = 12.0
"""Hz; cut-off of the zero-phase filter on positions, columns and motor torque. Acceleration noise grows with its
square; at 20 Hz the errors of a planar arm at a signal-to-noise ratio of 70 dB are three to six times as large."""
ROW_RATE = 100.0
"""Rows a second; more are not independent after the filter."""
BLOCKS = 24
"""Blocks of the jackknife."""
SLOW = 0.1
"""Part of its greatest speed below which a joint may stick and its friction is not that of the model."""
SMALLEST_DEVIATION = 1e-3
"""Residual deviation relative to that of the worst joint below which a joint gets no more weight."""
STEADY = 0.25
"""Cut-off of the speed that decides whether a joint moves, relative to that of the filters: noise does not count."""
PASSES = 5
"""Passes of the weights of both sides; they settle in three."""
SHORTEST = 5.0
"""Rows of every joint per parameter of the arm below which nothing is identified."""
MAX_NMSE = 0.3
"""Largest MSE / variance of the motor torque of a joint: above, there is no model. Positions with noise of 20 dB leave
0.4 to 0.75, with 30 dB up to 0.2."""


@checked
def identify_elastic(
    logs: Log | Sequence[Log],
    robot: Robot | str | Path,
    *,
    model: ElasticModel = "reduced",
    mounting: Mounting | None = None,
    gains: Sequence[float] | None = None,
    cutoff: float = CUTOFF,
) -> ElasticCalibration:
    """Return the parameters of an arm with elastic joints.

    Both equations of every joint are fitted together (see `model.elastic`), each side weighted by its residual
    deviation; standard errors are those of a block jackknife.

    Args:
        logs: Logs with positions of links (q) and rotors (theta, divided by the gear ratio) and current or torque of
            the motors.
        robot: The robot, or its name; its bodies are not used. The complete model needs gear ratios.
        model: reduced (Spong), or complete with the coupling between rotors and links.
        mounting: Mounting of the base; that of the logs if None, else the table.
        gains: Motor torque at the joint per unit of current, Nm/A; those of the description if None.
        cutoff: Cut-off of the filters, Hz.

    Returns:
        The parameters with standard errors.

    Raises:
        DataError: A log has no rotor positions, or neither current nor torque.
        DescriptionError: The transmission is coupled.
        EstimationError: The logs are too short.
        ModelError: Gains or gear ratios are missing.

    """
    if model not in ("reduced", "complete"):
        raise ModelError(f"the elastic model must be reduced or complete. Got '{model}' instead.")
    robot = as_robot(robot)
    refuse_coupled(robot, "the identification of elastic joints")
    recordings = log_list(logs)
    for log in recordings:
        _refuse_unsuitable(log, robot)
    gravity = mounting_of_logs(recordings, mounting)
    base = elastic_base(robot, gravity, model)
    sides = _sides(recordings, robot, gravity, model, base, _gains(recordings, robot, gains), cutoff)
    values, sigma, lag = sides.estimate()
    nmse = sides.nmse(sigma)
    _refuse_unexplained(nmse)
    blocks = range(len(sides.links[0].triangles))
    replicates = np.array([sides.estimate([k for k in blocks if k != b])[0] for b in blocks])
    return ElasticCalibration(
        robot, model, base, values, standard_error(replicates), student_factor(len(blocks) - 1), sigma, nmse, lag
    )


def _refuse_unsuitable(log: Log, robot: Robot) -> None:
    check_joints(log, robot)
    if log.theta is None:
        raise DataError(f"{log.origin.path}: no rotor positions (theta1..), which elastic joints need.")
    if log.current is None and log.torque is None:
        raise DataError(f"{log.origin.path}: neither current (i1..) nor torque (tau1..) of the motors.")


def _gains(logs: Sequence[Log], robot: Robot, gains: Sequence[float] | None) -> Array:
    """Return Nm per unit of the output: 1 for torques."""
    if all(log.torque is not None for log in logs):
        return np.ones(robot.dof)
    known = [joint.motor.joint_gain for joint in robot.joints] if gains is None else list(gains)
    if len(known) != robot.dof or any(gain is None or not gain > 0.0 for gain in known):
        raise ModelError(f"drive gains must be {robot.dof} positive numbers of Nm/A: state them with --gains.")
    return np.array(known, dtype=float)


def _sides(
    logs: Sequence[Log],
    robot: Robot,
    gravity: Mounting,
    model: ElasticModel,
    base: BaseParameters,
    gains: Array,
    cutoff: float,
) -> _Sides:
    """Return the factors of both sides."""
    groups = [JointFactors() for _ in range(2 * robot.dof)]
    stems = [base.standard_names[k].rstrip("0123456789") for k in base.kept]
    drives, stiff = np.array([stem in MOTOR_NAMES for stem in stems]), np.array([stem == "K" for stem in stems])
    duration = sum(log.duration for log in logs)
    for log in logs:
        for matrix, weights in _rows(log, robot, gravity, model, base, gains, cutoff):
            blocks = max(1, round(BLOCKS * matrix.shape[1] / (duration * ROW_RATE)))
            links, motors = np.delete(matrix[: robot.dof], -2, axis=2), matrix[robot.dof :]
            instruments = links[:, :, :-1][:, :, ~drives]
            motors = np.concatenate([motors[:, :, :-1], instruments, motors[:, :, -1:]], axis=2)
            _add_blocks(groups, [*links, *motors], weights, blocks)
    if min(sum(group.weight) for group in groups) < SHORTEST * base.count or len(groups[0].triangles) < MIN_BLOCKS:
        needed = SHORTEST * base.count / ROW_RATE
        raise EstimationError(f"{base.count} parameters need at least {needed:.1f} s in which every joint moves.")
    return _Sides(groups[: robot.dof], groups[robot.dof :], drives, stiff)


def _add_blocks(groups: list[JointFactors], matrices: list[Array], weights: Array, blocks: int) -> None:
    """Add the rows of every joint to its factors, in `blocks` blocks."""
    for group, rows, weight in zip(groups, matrices, weights, strict=True):
        for block in np.array_split(np.arange(len(rows)), blocks):
            group.add(rows[block], weight[block])


def _rows(
    log: Log, robot: Robot, gravity: Mounting, model: ElasticModel, base: BaseParameters, gains: Array, cutoff: float
) -> Iterator[tuple[Array, Array]]:
    """Yield rows [W ẏ y] (2 joints, rows, parameters + 2) of a log, filtered alike and thinned, and their weights."""
    rate = log.clock.uniform_rate
    step = max(round(rate / ROW_RATE), 1)
    for chunk in motion_chunks(clean_log(log), Filters(rate, cutoff)):
        states = _states(chunk, log, cutoff)
        columns = np.concatenate(elastic_columns(robot, states, gravity_vector(gravity), model))[:, :, base.kept]
        channel = log.torque if log.torque is not None else log.current
        torque = chunk.span.resampled(np.asarray(channel)) * gains
        y = np.stack([differences(torque, rate)[0].T, torque.T], axis=2)
        matrix = np.concatenate([columns, np.concatenate([np.zeros_like(y), y])], axis=2)
        filtered = np.stack([low_pass(part, cutoff, rate) for part in matrix])
        weights = np.concatenate([np.ones_like(torque.T), _moving(states.theta_d, rate, cutoff).T])
        yield filtered[:, chunk.inner][:, ::step], weights[:, chunk.inner][:, ::step]


def _moving(speed: Array, rate: float, cutoff: float) -> Array:
    """Return 1 where Coulomb and viscous friction describe a joint: where it has moved fast enough for a while."""
    smooth = low_pass(speed, STEADY * cutoff, rate)
    slow = np.abs(smooth) < SLOW * np.abs(smooth).max(axis=0)
    width = 2 * int(rate / cutoff) + 1
    near = np.column_stack([np.convolve(column, np.ones(width), "same") > 0.5 for column in slow.T.astype(float)])
    return np.where(near, 0.0, 1.0)


def _states(chunk: MotionChunk, log: Log, cutoff: float) -> ElasticStates:
    """Return the states of links and rotors of a chunk, filtered alike."""
    motion = chunk.motion
    assert log.theta is not None and motion.rotor_speed is not None and motion.rotor_acceleration is not None
    theta = low_pass(chunk.span.resampled(log.theta), cutoff, motion.rate)
    return ElasticStates(motion.q, motion.qd, motion.qdd, theta, motion.rotor_speed, motion.rotor_acceleration)


@dataclass(frozen=True)
class _Sides:
    """Factors of the equations of links [W y] and of motors [W ẏ Z y], (joints) of each by block.

    The coefficient of ẏ is the lag, as y(t - lag) = y - lag ẏ is the torque of the positions at t. Z are the columns of
    the bodies in the equation of the link of the same joint. `drives` marks the parameters of the motors (rotor
    inertia, friction, stiffness), which may not be negative, `stiff` the stiffnesses among them.
    """

    links: list[JointFactors]
    motors: list[JointFactors]
    drives: Mask
    stiff: Mask

    def estimate(self, blocks: Sequence[int] | None = None) -> tuple[Array, Array, float]:
        """Return values, residual deviations (2, joints) and the lag (s) from some blocks.

        The equations of the motors determine rotor inertia, friction, stiffness and the lag of the torque. With the
        stiffness known, K (θ - q) is the measured right side of the equations of the links, which determine the bodies.
        One least-squares problem of both would make the stiffness too small: its column carries the noise of the
        positions, and the right side of the links is zero. In the equations of the motors, too, the column θ - q
        carries that noise: it is replaced by its projection on the motion, which moves the links and with them the
        spring (two-stage least squares). A joint whose stiffness is at its bound of zero has no measured torque: its
        equation of the link does not count, and its residual is NaN.
        """
        drives, count = self.drives, len(self.drives)
        merged = [group.merged(blocks) for group in self.motors]
        rows = [np.column_stack([R[:, :count][:, drives], R[:, count], R[:, -1]]) for R in merged]
        stiff, bound = np.append(self.stiff[drives], False), np.append(drives[drives], False)
        projected = [_projected(part, R[:, count + 1 : -1], stiff) for part, R in zip(rows, merged, strict=True)]
        found, first = _weighted(rows, projected, _counts(self.motors, blocks), bound)
        motors, lag = np.zeros(count), float(found[-1])
        motors[drives] = found[:-1]
        springs = motors[self.stiff] > 0.0
        known = [spring * group.merged(blocks) for spring, group in zip(springs, self.links, strict=True)]
        rows = [np.column_stack([R[:, :-1][:, ~drives], R[:, -1] - R[:, :-1] @ motors]) for R in known]
        values = motors.copy()
        free = np.zeros(int((~drives).sum()), dtype=bool)
        values[~drives], second = _weighted(rows, rows, _counts(self.links, blocks), free)
        return values, np.stack([np.where(springs, second, np.nan), first]), lag

    def nmse(self, sigma: Array) -> Array:
        """Return MSE / variance of the motor torques, (joints,), for residual deviations (2, joints)."""
        variance = np.array([group.variance for group in self.motors])
        result: Array = np.divide(sigma[1] ** 2, variance, out=np.full(len(variance), np.inf), where=variance > 0.0)
        return result


def _refuse_unexplained(nmse: Array) -> None:
    """Reject torques of the motors that the positions do not explain."""
    if nmse.max() > MAX_NMSE:
        worst = int(np.argmax(nmse)) + 1
        raise EstimationError(
            f"not identifiable: the positions do not explain the motor torque of joint {worst}. Do positions and "
            "output belong together (same clock, same joints, theta divided by the gear ratio)?"
        )


def _counts(groups: Sequence[JointFactors], blocks: Sequence[int] | None) -> Array:
    """Return the number of rows of each group in some blocks."""
    return np.array([sum(group.weight[k] for k in (blocks or range(len(group.weight)))) for group in groups])


def _projected(rows: Array, motion: Array, stiff: Mask) -> Array:
    """Return rows [W y] whose column of the stiffness is projected on the other columns and those of the motion."""
    result, columns = rows.copy(), rows[:, :-1]
    exact = np.hstack([columns[:, ~stiff], motion])
    sizes = np.linalg.norm(exact, axis=0)
    exact = exact[:, sizes > 0.0] / sizes[sizes > 0.0]
    noisy = np.flatnonzero(stiff)
    result[:, noisy] = exact @ np.linalg.lstsq(exact, columns[:, noisy], rcond=None)[0]
    return result


def _weighted(rows: Sequence[Array], fitted: Sequence[Array], counts: Array, bound: Mask) -> tuple[Array, Array]:
    """Return the values that fit rows [W y] of groups, each weighted by its residual, and the residual deviations.

    `fitted` are the rows that are solved (`rows`, or their projections), `rows` those whose residual counts; `bound`
    values are not negative.
    """
    sigma = np.array([np.linalg.norm(part[:, -1]) for part in rows]) / np.sqrt(counts)
    for _ in range(PASSES):
        sigma = np.maximum(sigma, SMALLEST_DEVIATION * sigma.max())
        weighted = np.vstack([part / s for part, s in zip(fitted, sigma, strict=True)])
        values = bounded_least_squares(triangle(weighted), bound, RIDGE)
        sigma = np.sqrt(np.array([squared_error(part, values) for part in rows]) / counts)
    return values, sigma
