"""Drives of a robot from one log: inertia from the targets, then gain and power-flow friction of every joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from jointwise.arguments import checked
from jointwise.data.coordinates import model_log, mounting_of_logs
from jointwise.data.log import Log, check_joints, log_list
from jointwise.data.overlap import refuse_repeated_samples
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot
from jointwise.errors import DataError, EstimationError
from jointwise.estimation.gram import block_grams, gram_solution
from jointwise.estimation.jackknife import MIN_BLOCKS, jackknife, recording_blocks, student_factor
from jointwise.joint.model import JointModel
from jointwise.joint.motor.links import identify_motor
from jointwise.joint.motor.result import MASS_ERROR
from jointwise.joint.part import TINY, Part, Value, value_of
from jointwise.joint.record import LinkLoad, joint_record
from jointwise.model.transmission import motor_values
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


@checked
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
    recordings = [model_log(log, robot) for log in recordings]
    refuse_repeated_samples(recordings)
    bodies = LinkLoad(robot, gravity_vector(mounting_of_logs(recordings, mounting)), payload)
    q, qd, qdd, torque = (np.concatenate([log.channel(name) for log in recordings]) for name in TARGETS)
    links, acceleration = bodies(q, qd, qdd), motor_values(robot, qdd)
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
    variance = max(float(np.var(torque)), TINY)
    return DriveInertia(j, value, value, None, 1.0 - float(np.var(residual)) / variance, float(residual.std()))


def _with_like(j: int, found: Sequence[DriveInertia], robot: Robot) -> DriveInertia:
    """Return an inertia with the mean of like drives and the probability of their spread."""
    limits = [joint.limits.effort for joint in robot.joints]
    like = [each for each, limit in zip(found, limits, strict=True) if limit is not None and limit == limits[j]]
    if len(like) < 2:
        return found[j]
    values = np.array([each.alone.value for each in like])
    least = float(np.finfo(np.float64).eps * np.abs(values).max())  # targets of a simulated controller have no error
    weights = 1.0 / np.maximum([each.alone.deviation for each in like], least) ** 2
    mean = float(weights @ values / weights.sum())
    spread = float(weights @ (values - mean) ** 2)
    shared = value_of("inertia", "kg m²", mean, float(weights.sum() ** -0.5))
    probability = float(chdtrc(len(like) - 1, spread))
    each = found[j]
    return DriveInertia(j, each.alone, shared, probability, each.r2, each.rms)


# -- all drives --


@dataclass(frozen=True)
class DriveIdentification:
    """Inertias and motor parts of the drives of a robot.

    Attributes:
        robot: Name of the robot.
        inertias: Inertia of motor and reducer, one per joint.
        parts: Motor part (gain, offset, friction, inertia), one per joint; None where it is not determined.
        reasons: Why it is not, "" where it is.
        alike: Whether like drives share their inertia.
    """

    robot: str
    inertias: tuple[DriveInertia, ...]
    parts: tuple[Part | None, ...]
    reasons: tuple[str, ...]
    alike: bool

    def models(self) -> list[JointModel]:
        """Return the joints whose motor is determined, for `save_joints` and `calibrate --joint`.

        Raises:
            EstimationError: No motor is determined.
        """
        if not any(self.parts):
            raise EstimationError(f"no motor is determined. {self.reasons[0]}")
        found = enumerate(self.parts)
        return [JointModel(self.robot, j, {"motor": part}) for j, part in found if part is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return inertias, gains and friction as plain JSON; joints count from 1."""
        rows = zip(self.inertias, self.parts, self.reasons, strict=True)
        return {"robot": self.robot, "joints": [self._joint(*row) for row in rows]}

    def _joint(self, inertia: DriveInertia, part: Part | None, reason: str) -> dict[str, Any]:
        used = inertia.shared if self.alike else inertia.alone
        values = {} if part is None else {value.name: vars(value) for value in part.values}
        return {
            "joint": inertia.joint + 1,
            "inertia": vars(used),
            "torque_r2": inertia.r2,
            "torque_rms": inertia.rms,
            "like_drives_probability": inertia.alike,
            "motor": {name: value for name, value in values.items() if name != "inertia"} or None,
            "held_out": None if part is None else part.held_out,
            "reason": reason or None,
        }

    def summary(self) -> str:
        """Return a line per joint, and whether like drives are alike."""
        lines = [self._line(j) for j in range(len(self.inertias))]
        different = [str(each.joint + 1) for each in self.inertias if each.differs]
        if different:
            lines.append(f"joints {', '.join(different)}: the inertias differ: unequal drives, or errors of the links")
        return "\n".join(lines)

    def _line(self, j: int) -> str:
        inertia, part = self.inertias[j], self.parts[j]
        used = inertia.shared if self.alike else inertia.alone
        head = f"joint {j + 1}: inertia {used.value:.4g} [{used.low:.4g}, {used.high:.4g}] kg m², R² {inertia.r2:.4f}"
        if part is None:
            return f"{head}; motor not determined: {self.reasons[j]}"
        listed = (v for v in part.values if v.name not in ("inertia", "offset"))
        return f"{head}; " + ", ".join(f"{v.name} {v.value:.4g} [{v.low:.4g}, {v.high:.4g}] {v.unit}" for v in listed)


@checked
def identify_drives(
    logs: Log | Sequence[Log],
    robot: Robot,
    *,
    mounting: Mounting | None = None,
    payload: Payload | None = None,
    alike: bool = False,
) -> DriveIdentification:
    """Return inertias, gains and friction of all drives of a robot.

    First the inertia of motor and reducer from the controller's targets (`inertias_from_targets`), then, per joint,
    gain and friction by the direction of power flow in one regression of the measured current (`identify_motor`).

    Args:
        logs: Logs with targets and measured currents.
        robot: The robot, whose links are known.
        mounting: Mounting of the base; by default as the logs state, else "table".
        payload: Payload in the logs.
        alike: Whether joints with the same torque limit share their inertia.

    Raises:
        DataError: A log lacks targets.
        EstimationError: The motion does not determine the inertias. Motors that are not determined have a reason.
    """
    inertias = inertias_from_targets(logs, robot, mounting=mounting, payload=payload)
    parts: list[Part | None] = []
    reasons: list[str] = []
    for each in inertias:
        value, motor = each.shared if alike else each.alone, robot.joints[each.joint].motor
        gain, inertia = motor.joint_gain or 1.0, max(value.value, 0.0)
        try:
            record = joint_record(
                logs, robot, each.joint, mounting=mounting, payload=payload, gain=gain, inertia=inertia
            )
            part = identify_motor(record, gear_ratio=motor.gear_ratio, friction="power flow")
            others = tuple(v for v in part.values if v.name != "inertia")
            parts.append(replace(part, values=(*others, value)))
            reasons.append("")
        except (DataError, EstimationError) as problem:
            parts.append(None)
            reasons.append(str(problem))
    return DriveIdentification(robot.name, inertias, tuple(parts), tuple(reasons), alike)
