"""Inertia of motor and reducer from the targets of the controller: its torque less that of the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from jointwise.data.gravity import mounting_of_logs
from jointwise.data.log import Log, check_joints, log_list
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot
from jointwise.errors import DataError, EstimationError
from jointwise.estimation.jackknife import MIN_BLOCKS, jackknife, recording_blocks, student_factor
from jointwise.estimation.linear_fit import block_grams, gram_solution
from jointwise.joint.part import Value, value_of
from jointwise.joint.record import Bodies
from jointwise.spatial import Array

TARGETS = {
    "q_des": "target_q",
    "qd_des": "target_qd",
    "qdd_des": "target_qdd",
    "torque_des": "target_moment",
}
"""Channels that determine the inertias, and the RTDE fields that hold them."""
BLOCK_DURATION = 0.5
"""Shortest block of the jackknife (s): targets have neither friction nor noise, only the path correlates residuals."""
MASS_ERROR = 0.02
"""Relative standard error of the torque of described links, as for gains from links."""
SIGNIFICANCE = 0.05
"""Probability below which like drives count as different."""


@dataclass(frozen=True)
class DriveInertia:
    """Inertia of motor and reducer of a joint at the joint side, kg m².

    Attributes:
        joint: Joint, 0-based.
        alone: From this joint.
        shared: From all joints with the same torque limit; `alone` where there is no other.
        alike: Probability of a spread as large among equal drives; None where there is no other.
        r2: Fraction of the variance of the target torque that links and rotor explain.
        rms: Root mean square residual of the target torque, Nm.

    """

    joint: int
    alone: Value
    shared: Value
    alike: float | None
    r2: float
    rms: float

    @property
    def differs(self) -> bool:
        """Whether the drive differs from those with the same torque limit."""
        return self.alike is not None and self.alike < SIGNIFICANCE


def inertias_from_targets(
    logs: Log | Sequence[Log], robot: Robot, *, mounting: Mounting | None = None, payload: Payload | None = None
) -> tuple[DriveInertia, ...]:
    """Return the inertias of motor and reducer at the joints, one per joint.

    The controller's target torque is that of links and rotors without friction: ``τ_des - f(q, qd, qdd) = B qdd + c``
    at the target motion, f the described links. The constant c takes errors of the described masses in constant poses.

    Args:
        logs: Logs with target positions, speeds, accelerations and torques.
        robot: The robot, whose links are known.
        mounting: Mounting of the base; by default as the logs state, else "table".
        payload: Payload that the controller knows.

    Raises:
        DataError: A log lacks targets; names the RTDE fields.
        EstimationError: The motion is too short, or a joint does not accelerate.

    """
    recordings = log_list(logs)
    for log in recordings:
        _check_log(log, robot)
    bodies = Bodies(robot, gravity_vector(mounting_of_logs(recordings, mounting)), payload)
    signals = [_signals(log, bodies) for log in recordings]
    torque, links, acceleration = (np.concatenate(parts) for parts in zip(*signals, strict=True))
    block = _blocks(recordings)
    found = [_alone(j, torque[:, j], links[:, j], acceleration[:, j], block) for j in range(robot.dof)]
    return tuple(_with_like(j, found, robot) for j in range(robot.dof))


def _check_log(log: Log, robot: Robot) -> None:
    check_joints(log, robot)
    missing = [field for name, field in TARGETS.items() if name not in log.available]
    if missing:
        raise DataError(
            f"{log.origin.path}: no targets of the controller. Record the RTDE fields {', '.join(missing)} as well."
        )


def _signals(log: Log, bodies: Bodies) -> tuple[Array, Array, Array]:
    """Return target torque, torque of the links (Nm) and target acceleration (rad/s²), (samples, joints)."""
    q, qd, qdd = log.channel("q_des"), log.channel("qd_des"), log.channel("qdd_des")
    return log.channel("torque_des"), bodies(q, qd, qdd), qdd


def _blocks(logs: Sequence[Log]) -> NDArray[np.intp]:
    """Return the jackknife block of every sample."""
    block = recording_blocks([(log.samples, log.duration) for log in logs], BLOCK_DURATION)
    if block[-1] + 1 < MIN_BLOCKS:
        duration = sum(log.duration for log in logs)
        raise EstimationError(f"{logs[0].origin.path}: {duration:.3g} s of motion are too short for inertias.")
    return block


def _alone(j: int, torque: Array, links: Array, acceleration: Array, block: NDArray[np.intp]) -> DriveInertia:
    if not acceleration.std() > 0.0:
        raise EstimationError(f"joint {j + 1} does not accelerate: its inertia is not determined.")
    columns = np.column_stack([acceleration, np.ones_like(acceleration)])
    rest = torque - links
    found, errors = jackknife(gram_solution, block_grams(np.column_stack([columns, rest]), block))
    residual = rest - columns @ found
    links_error = MASS_ERROR * abs(float(acceleration @ links) / float(acceleration @ acceleration))
    factor = student_factor(len(np.unique(block)) - 1)
    value = value_of("inertia", "kg m²", found[0], float(np.hypot(errors[0], links_error)), factor)
    if value.high <= 0.0:
        raise EstimationError(
            f"joint {j + 1}: the targets lead to a negative inertia ({value.value:.3g} kg m²): the described links or "
            "the payload are heavier than those of the controller."
        )
    variance = max(float(np.var(torque)), 1e-30)
    return DriveInertia(j, value, value, None, 1.0 - float(np.var(residual)) / variance, float(residual.std()))


def _with_like(j: int, found: Sequence[DriveInertia], robot: Robot) -> DriveInertia:
    """Return an inertia with the mean of like drives and the probability of their spread."""
    limits = [joint.limits.effort for joint in robot.joints]
    like = [each for each, limit in zip(found, limits, strict=True) if limit is not None and limit == limits[j]]
    if len(like) < 2:
        return found[j]
    values = np.array([each.alone.value for each in like])
    weights = 1.0 / np.maximum([each.alone.deviation for each in like], 1e-12) ** 2
    mean = float(weights @ values / weights.sum())
    spread = float(weights @ (values - mean) ** 2)
    shared = value_of("inertia", "kg m²", mean, float(weights.sum() ** -0.5))
    probability = float(chi2.sf(spread, len(like) - 1))
    each = found[j]
    return DriveInertia(j, each.alone, shared, probability, each.r2, each.rms)
