"""Signals of a log for power: speeds, bus power, the gains of the controller from its targets, and phase currents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked
from jointwise.data.conditioning import Filters
from jointwise.data.log import Log, check_joints, log_list
from jointwise.data.read import read_log
from jointwise.description.robot import Robot
from jointwise.errors import DataError, ModelError, ShapeError
from jointwise.result.predict import motion_function_chunks
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.joint import JointModel

VOLTAGE, CURRENT = "actual_robot_voltage", "actual_robot_current"
"""RTDE fields of the DC bus of a UR controller, V and A."""
STANDSTILL = 1e-6
"""Largest target speed (rad/s) at standstill: targets have no noise."""
_PHASES = 2.0 * np.pi / 3.0 * np.arange(3)
"""Electrical angles of the phases of a synchronous motor, rad."""
CUTOFF = 20.0
"""Cut-off (Hz) of positions whose differences replace missing speeds: motions are slower, and noise would be counted as
losses, which grow with the magnitude of the speed."""
MIN_CURRENT = 0.01
"""Root mean square target current (A) at standstill below which its ratio to the torque is rounding."""
PROPORTIONAL = 0.01
"""Largest deviation (rms, relative) of target torques from a multiple of the target currents: 0.001 for a UR3e, 0.03 or
more where the target current contains feedback."""


@checked
def read_power_log(path: str, robot: Robot | None = None, **reading: object) -> Log:
    """Return a log with the voltage and current of the DC bus in `extra`, where the file has them.

    Args:
        path: CSV or Parquet file.
        robot: The robot of the log.
        **reading: Other arguments of `read_log`.

    """
    return read_log(path, joints=robot, extra=["actual_robot_*"], **reading)  # type: ignore[arg-type]


@checked
def bus_power(log: Log) -> Array | None:
    """Return the measured power on the bus, robot voltage times robot current, (samples,), W.

    It is None where the log has no voltage or no current of the bus.
    """
    if VOLTAGE not in log.extra or CURRENT not in log.extra:
        return None
    power: Array = log.extra[VOLTAGE] * log.extra[CURRENT]
    if not np.isfinite(power).all():
        raise DataError(f"{log.origin.path}: {VOLTAGE} and {CURRENT} must be numbers in every row.")
    return power


def speeds(log: Log) -> Array:
    """Return the speeds of the joints, (samples, joints), rad/s.

    They are measured, else planned, else those of conditioned positions.

    Raises:
        DataError: Stamps do not increase, or the log is too short to be conditioned.
    """
    check_stamps(log)
    for values in (log.qd, log.qd_des):
        if values is not None:
            return values
    result = np.empty(log.q.shape)
    for rows, part in motion_function_chunks(lambda motion: motion.qd, log, Filters(log.clock.uniform_rate, CUTOFF)):
        result[rows] = part
    return result


def check_stamps(log: Log) -> None:
    """Reject a log whose stamps do not increase: neither speed nor energy would be defined."""
    if log.samples < 2 or len(log.clock.repeated) or len(log.clock.reversed):
        raise DataError(f"{log.origin.path}: needs at least two samples with increasing stamps.")


def energy(power: Array, t: Array) -> float:
    """Return the energy (J) of a power (samples,) in W over stamps (samples,) in s: trapezoidal rule."""
    return float(np.trapezoid(power, t))


@dataclass(frozen=True)
class KnownGains:
    """Joint torque per ampere (joints,), Nm/A, and where it comes from."""

    values: Array
    origin: str


@checked
def gains_from_joints(models: Iterable[JointModel], robot: Robot) -> list[float]:
    """Return the gains (Nm/A) of identified motors, one for each joint.

    Args:
        models: Joint models of the robot (`jointwise.read_joints`).
        robot: The robot.

    Returns:
        The gains, for `fit_power`.

    Raises:
        ModelError: A joint has no identified motor.

    """
    found = {model.joint: model.parts["motor"]["gain"] for model in models if "motor" in model.parts}
    missing = [str(k + 1) for k in range(robot.dof) if k not in found]
    if missing:
        raise ModelError(f"the joint files must hold the motor of every joint. Got none of joint {', '.join(missing)}.")
    return [found[k] for k in range(robot.dof)]


@checked
def controller_gains(logs: Sequence[Log], robot: Robot) -> KnownGains:
    """Return the gains (Nm/A) of the drives: those of the controller's targets, else those of the description.

    At standstill the controller's targets obey ``τ_des = K i_des`` without friction and noise. Joints that bear no load
    at standstill, or whose targets are not proportional, take the gain of the joints with the same torque limit.

    Raises:
        DataError: Neither the logs nor the description determine the gain of a joint.

    """
    for log in log_list(logs):
        check_joints(log, robot)
    found = _target_gains(logs)
    origin = "targets of the controller at standstill"
    if found is None or np.isnan(_shared(found, robot)).any():
        found, described = _described_gains(robot), "description of the robot"
        origin = described
    gains = _shared(found, robot)
    if np.isnan(gains).any():
        raise DataError(_missing(logs, robot, gains))
    return KnownGains(gains, origin)


def _target_gains(logs: Sequence[Log]) -> Array | None:
    """Return the gains at standstill (joints,), NaN for joints that have none there; None without targets."""
    currents, torques = [], []
    for log in logs:
        if log.current_des is None or log.torque_des is None:
            continue
        still = (np.abs(log.qd_des if log.qd_des is not None else speeds(log)) <= STANDSTILL).all(axis=1)
        currents.append(log.current_des[still])
        torques.append(log.torque_des[still])
    if not currents:
        return None
    i, torque = np.concatenate(currents), np.concatenate(torques)
    square = (i**2).sum(axis=0)
    loaded = square > len(i) * MIN_CURRENT**2
    gains = (i * torque).sum(axis=0) / np.where(loaded, square, 1.0)
    deviation = ((torque - gains * i) ** 2).sum(axis=0)
    return np.where(loaded & (deviation < PROPORTIONAL**2 * (torque**2).sum(axis=0)), gains, np.nan)


def _described_gains(robot: Robot) -> Array:
    gains = [joint.motor.joint_gain for joint in robot.joints]
    return np.array([np.nan if gain is None else gain for gain in gains])


def _shared(gains: Array, robot: Robot) -> Array:
    """Return gains whose gaps are filled with the mean of the joints with the same torque limit."""
    limits = [joint.limits.effort for joint in robot.joints]
    filled = gains.copy()
    for k in np.flatnonzero(np.isnan(gains)):
        like = [gains[j] for j, limit in enumerate(limits) if limit == limits[k] and np.isfinite(gains[j])]
        filled[k] = np.mean(like) if like and limits[k] is not None else np.nan
    return filled


def _missing(logs: Sequence[Log], robot: Robot, gains: Array) -> str:
    """Return why gains are not determined and what to record."""
    joints = ", ".join(str(k + 1) for k in np.flatnonzero(np.isnan(gains)))
    targets = any(log.current_des is not None and log.torque_des is not None for log in logs)
    remedy = (
        "Log a standstill under load as well"
        if targets
        else "The logs have no targets: record the RTDE fields target_current, target_moment and target_qd as well"
    )
    return (
        f"{logs[0].origin.path}: the torque per ampere of joint {joints} of {robot.name} is not known. {remedy}, or "
        "give the gains (--gains)."
    )


@checked
def park(phases: ArrayLike, rotor: ArrayLike, pole_pairs: int) -> tuple[Array, Array]:
    """Return the currents i_d and i_q (samples,) of phase currents (amplitude-invariant).

    ``i_d = 2/3 Σ_k i_k cos(p θ - 2πk/3)``, ``i_q = -2/3 Σ_k i_k sin(p θ - 2πk/3)``; the torque is ``3/2 p Ψ i_q``.

    Args:
        phases: Currents of the three phases (samples, 3), A.
        rotor: Position of the rotor θ (samples,), rad; zero where the flux of phase 0 is largest.
        pole_pairs: Pole pairs p.

    Raises:
        ShapeError: There are not three phases, or not one position per sample.

    """
    currents, angle = np.asarray(phases, dtype=float), np.asarray(rotor, dtype=float)
    if currents.ndim != 2 or currents.shape[1:] != (3,) or angle.shape != currents.shape[:1]:
        raise ShapeError(f"phases must be (samples, 3) and rotor (samples,). Got {currents.shape} and {angle.shape}.")
    turned = _electrical(angle, pole_pairs)
    return (2.0 / 3.0 * (currents * np.cos(turned)).sum(axis=1), -2.0 / 3.0 * (currents * np.sin(turned)).sum(axis=1))


@checked
def inverse_park(direct: ArrayLike, quadrature: ArrayLike, rotor: ArrayLike, pole_pairs: int) -> Array:
    """Return the phase currents (samples, 3), A, of i_d and i_q (samples,): ``i_k = i_d cos(..) - i_q sin(..)``."""
    d, q, angle = (np.asarray(values, dtype=float) for values in (direct, quadrature, rotor))
    if angle.ndim != 1 or not d.shape == q.shape == angle.shape:
        shapes = f"{d.shape}, {q.shape} and {angle.shape}"
        raise ShapeError(f"direct, quadrature and rotor must have the same shape (samples,). Got {shapes} instead.")
    turned = _electrical(angle, pole_pairs)
    result: Array = d[:, None] * np.cos(turned) - q[:, None] * np.sin(turned)
    return result


def _electrical(rotor: Array, pole_pairs: int) -> Array:
    """Return the electrical angle of the rotor relative to the three phases (samples, 3), rad."""
    if pole_pairs < 1:
        raise ShapeError(f"pole pairs must be 1 or more. Got {pole_pairs} instead.")
    result: Array = pole_pairs * rotor[:, None] - _PHASES
    return result
