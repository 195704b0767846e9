"""Drive gains of the controller: its target torque over its target current."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from jointwise.data.log import Log, check_joints, log_list
from jointwise.data.statistics import intervals, quantum
from jointwise.description.robot import Robot
from jointwise.errors import EstimationError
from jointwise.estimation.gram import block_grams, gram_solution
from jointwise.estimation.jackknife import MIN_BLOCKS, jackknife, recording_blocks, student_factor
from jointwise.estimation.linear_fit import scaled_solution
from jointwise.joint.curve import slope_curve
from jointwise.joint.motor.data import SLOW
from jointwise.joint.motor.result import JointGain, RobotGains, gain_status
from jointwise.joint.part import MIN_QUALITY, nrmse_percent, percent_off, rms, rounding_error, value_of
from jointwise.joint.record import refuse_faulty
from jointwise.model.terms import direction, viscous_columns
from jointwise.spatial import Array

STANDSTILL = 2e-3
"""Largest speed (rad/s) of a joint at standstill."""
SETTLING_TIME = 0.3
"""Time (s) left out at both ends of a standstill."""
MIN_CURRENT = 0.01
"""Current (A) below which a ratio of torque and current is noise."""
LABELS = ("Target torque over target current at standstill", "target current [A]", "target torque [Nm]")


def gains_from_targets(logs: Log | Sequence[Log], robot: Robot) -> RobotGains:
    """Return the gains (Nm/A) and offsets (A) with which the controller converts target torque into target current.

    At standstill ``τ_des = K (i_des - i_0)`` holds exactly. A joint that never stands under load is fitted in motion,
    where the controller compensates friction as well: ``τ_des = K i_des - F_c sgn(v) - F_v v - F_2 v|v| - K i_0``.
    These are the gains that the controller assumes, not measured ones.

    Args:
        logs: One or more logs with target currents and target torques.
        robot: The robot.

    Raises:
        EstimationError: Without target signals, or where they do not determine any gain.
    """
    recordings = log_list(logs)
    for log in recordings:
        _check_log(log, robot)
    joints = tuple(_joint_gain(recordings, j) for j in range(robot.dof))
    names = tuple(log.origin.path for log in recordings)
    if all(joint.gain is None for joint in joints):
        raise EstimationError(
            f"{', '.join(names)}: no joint stands under load and none moves enough: the target signals do not "
            "determine any gain."
        )
    return RobotGains(robot.name, "targets", joints, {}, names)


@dataclass(frozen=True, eq=False)
class _TargetSignals:
    """Signals of one joint, (samples,) each.

    Attributes:
        x: Target current, A.
        y: Target torque, Nm.
        v: Speed, rad/s.
        stand: Number of the standstill, -1 elsewhere.
        block: Number of the jackknife block.
    """

    x: Array
    y: Array
    v: Array
    stand: NDArray[np.intp]
    block: NDArray[np.intp]


def _joint_gain(logs: list[Log], j: int) -> JointGain:
    signals = _signals(logs, j)
    standing = _standing(signals, j)
    moving = _moving(signals, j)
    if standing is None and moving is None:
        return JointGain(j, None, "not determined", 0.0, notes=("the joint never stands under load and hardly moves",))
    if standing is None or moving is None or standing.gain is None or moving.gain is None:
        only = standing if standing is not None else moving
        assert only is not None
        return only
    off = percent_off(moving.gain.value, standing.gain.value)
    note = f"in motion {moving.gain.value:.4g} [{moving.gain.low:.4g}, {moving.gain.high:.4g}] Nm/A ({off:+.1f} %)"
    return replace(standing, notes=(*standing.notes, note))


def _signals(logs: list[Log], j: int) -> _TargetSignals:
    x, y = (np.concatenate([log.channel(name)[:, j] for log in logs]) for name in ("current_des", "torque_des"))
    speeds = [(np.gradient(log.q, log.t, axis=0) if log.qd is None else log.qd)[:, j] for log in logs]
    stands: list[NDArray[np.intp]] = []
    for log, v in zip(logs, speeds, strict=True):
        stand = _standstills(log.t, v)
        before = max((int(other.max()) for other in stands), default=-1) + 1
        stands.append(np.where(stand < 0, -1, stand + before))
    block = recording_blocks([(log.samples, log.duration) for log in logs])
    return _TargetSignals(x, y, np.concatenate(speeds), np.concatenate(stands), block)


def _standstills(t: Array, v: Array) -> NDArray[np.intp]:
    """Return the number of the standstill of every sample (samples,), -1 in motion and near it."""
    number = np.full(len(t), -1, dtype=np.intp)
    for k, (begin, end) in enumerate(intervals(np.abs(v) < STANDSTILL)):
        first = t[begin] + (SETTLING_TIME if begin else 0.0)
        last = t[end - 1] - (SETTLING_TIME if end < len(t) else 0.0)
        number[begin:end][(t[begin:end] >= first) & (t[begin:end] <= last)] = k
    return number


def _standing(signals: _TargetSignals, j: int) -> JointGain | None:
    """Return the gain at standstill: a line over all samples, through zero where the current does not vary."""
    used = signals.stand >= 0
    x, y = signals.x[used], signals.y[used]
    if np.abs(x).max(initial=0.0) < MIN_CURRENT:
        return None
    varies = bool(np.ptp(x) > MIN_CURRENT)
    gain, level = _robust_line(np.column_stack([x, np.full(len(x), float(varies))]), y)
    if gain <= 0.0:
        return None
    offset = -level / gain
    residual, numbers = y - gain * (x - offset), len(np.unique(signals.stand[used]))
    noise = max(float(residual.std()), gain * rounding_error(float(quantum(signals.x[:, None])[0])))
    spread = rms(x - x.mean()) if varies else rms(x)
    value = value_of("gain", "Nm/A", gain, noise / spread / np.sqrt(numbers))
    return JointGain(
        joint=j,
        alone=value,
        status=gain_status(value),
        fitted=nrmse_percent(y, y - residual) if np.ptp(y) > 0.0 else 100.0,
        offset=value_of("offset", "A", offset, noise / gain / np.sqrt(numbers)) if varies else None,
        model="gain of the controller at standstill",
        curves=(slope_curve(LABELS, (x, y), gain, (value.low, value.high), offset=offset, residual=residual),),
        notes=() if varies else ("one load only: the offset is taken as zero",),
    )


def _robust_line(columns: Array, y: Array) -> tuple[float, float]:
    """Return the two coefficients of columns (samples, 2) with the least sum of absolute residuals, nearly.

    Soft L1 loss beyond the median residual of least squares: single samples in which torque and current do not belong
    together do not count.
    """
    start = scaled_solution(columns, y)
    usual = float(np.median(np.abs(y - columns @ start)))
    if usual == 0.0:
        return float(start[0]), float(start[1])
    found = least_squares(
        lambda c: columns @ c - y, start, lambda c: columns, x_scale="jac", loss="soft_l1", f_scale=usual
    )
    return float(found.x[0]), float(found.x[1])


def _moving(signals: _TargetSignals, j: int) -> JointGain | None:
    """Return the gain in motion, with the friction compensation of the controller."""
    used = np.abs(signals.v) > SLOW
    blocks = len(np.unique(signals.block[used]))
    if blocks < MIN_BLOCKS or np.ptp(signals.x[used]) < MIN_CURRENT:
        return None
    v, y = signals.v[used], signals.y[used]
    columns = np.column_stack([signals.x[used], direction(v), viscous_columns(v, (1, 2)), np.ones(len(v)), y])
    found, errors = jackknife(gram_solution, block_grams(columns, signals.block[used]))
    factor = student_factor(blocks - 1)
    without = columns[:, 1:-1] @ np.linalg.lstsq(columns[:, 1:-1], y, rcond=None)[0]
    modelled = columns[:, :-1] @ found
    explained = nrmse_percent(y - without, modelled - without)
    if explained < MIN_QUALITY or found[0] - factor * errors[0] <= 0.0:
        return None
    value = value_of("gain", "Nm/A", found[0], errors[0], factor)
    return JointGain(
        joint=j,
        alone=value,
        status=gain_status(value),
        fitted=nrmse_percent(y, modelled),
        offset=value_of("offset", "A", -found[-1] / found[0], errors[-1] / found[0], factor),
        model="gain of the controller in motion, with its friction compensation",
        notes=("from motion alone: the joint never stands under load",),
    )


def _check_log(log: Log, robot: Robot) -> None:
    check_joints(log, robot)
    refuse_faulty(log, robot)
    for name, columns in (("current_des", "target currents (i_des1..)"), ("torque_des", "target torques (tau_des1..)")):
        if name not in log.available:
            raise EstimationError(
                f"{log.origin.path}: no {columns}, which determine the gains of the controller. Log them, or use a "
                "pair of logs without and with a known payload."
            )
