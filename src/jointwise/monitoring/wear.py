"""Stiffness of the joints of a monitored log against their joint files: which joints, with what result, which not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise.call_settings import Side
from jointwise.data.log import Log
from jointwise.description.robot import Robot
from jointwise.document import finite_or_none
from jointwise.errors import DataError, EstimationError, ModelError
from jointwise.joint.model import JointModel
from jointwise.joint.record import LinkLoad
from jointwise.monitoring.stiffness import StiffnessEstimator, StiffnessReport, StiffnessStatus, monitor_stiffness
from jointwise.monitoring.stiffness.estimate import NORMAL
from jointwise.monitoring.stiffness.status import Level
from jointwise.runtime import RobotModel
from jointwise.runtime.observers import observed_joint

Interval = tuple[float, float]


@dataclass(frozen=True)
class JointStiffness:
    """Stiffness of a joint (1-based) in a log against that of its joint file.

    Attributes:
        joint: The joint.
        status: ok, watch, worn, or unknown where the log does not determine the stiffness, the deflection does not
            explain the torque, or the joint is stiffer than stored.
        stiffness: k(0), Nm/rad.
        interval: Its 95 % confidence interval, Nm/rad.
        stored: k(0) of the joint file, Nm/rad.
        loss: Relative loss of k(0); below zero where the joint is stiffer than stored.
        loss_interval: Its 95 % confidence interval.
        secant_loss: Relative loss of the secant stiffness at half of the largest deflection.
        secant_loss_interval: Its 95 % confidence interval. The status is the worse of the two losses.
        prediction: NRMSE fit (%) of the torque predicted from the deflection; None where it does not vary.
        is_stiffer: Whether the joint is stiffer than stored, as gears never become.

    """

    joint: int
    status: Level
    stiffness: float
    interval: Interval
    stored: float
    loss: float
    loss_interval: Interval
    secant_loss: float
    secant_loss_interval: Interval
    prediction: float | None
    is_stiffer: bool = False

    @property
    def deviation(self) -> float:
        """Standard error of k(0), Nm/rad."""
        return (self.interval[1] - self.interval[0]) / (2.0 * NORMAL)

    def to_dict(self) -> dict[str, Any]:
        """Return the stiffness for JSON; bounds that a short motion leaves infinite are None."""
        return {
            "joint": self.joint,
            "status": self.status,
            "stiffness": self.stiffness,
            "interval": _bounds(self.interval),
            "deviation": finite_or_none(self.deviation),
            "stored": self.stored,
            "loss": self.loss,
            "loss_interval": _bounds(self.loss_interval),
            "secant_loss": self.secant_loss,
            "secant_loss_interval": _bounds(self.secant_loss_interval),
            "prediction_nrmse": self.prediction,
            "is_stiffer": self.is_stiffer,
        }


def _bounds(interval: Interval) -> list[float | None]:
    return [finite_or_none(bound) for bound in interval]


@dataclass(frozen=True)
class Wear:
    """What is known about the stiffness in a stream: of these joints, and a line for why it is not of others."""

    joints: tuple[JointStiffness, ...] = ()
    missing: tuple[str, ...] = ()

    def not_judged(self) -> Wear:
        """Return the same without a status: the torque of the links is not known if the payload is another."""
        line = ("stiffness is not judged: the payload is not the declared one",) if self.joints else ()
        return Wear(tuple(replace(joint, status="unknown") for joint in self.joints), (*self.missing, *line))

    @property
    def reasons(self) -> tuple[str, ...]:
        """One line for every joint that is to be watched or worn."""
        return tuple(
            f"joint {joint.joint} is {'worn' if joint.status == 'worn' else 'to be watched'}: stiffness "
            f"{-100.0 * max(joint.loss, joint.secant_loss):+.0f} % against the joint file"
            for joint in self.joints
            if joint.status in ("watch", "worn")
        )


def check_joints(model: RobotModel, joints: Sequence[JointModel]) -> None:
    """Reject joint files whose stiffness cannot be monitored on a robot.

    Args:
        model: The calibrated robot.
        joints: Its joints, as `load_joints` returns them.

    Raises:
        ModelError: A joint is of another robot, is not there or there twice, or no joint has a stiffness.

    """
    _check_numbers(model, joints)
    known = [joint for joint in joints if "stiffness" in joint.parts]
    if joints and not known:
        raise ModelError("the joint files must have a stiffness ('jointwise joint stiffness'). Got none instead.")
    for joint in known:
        observed_joint(model.calibration.model.robot, joint)


def _check_numbers(model: RobotModel, joints: Sequence[JointModel]) -> None:
    """Reject joints of another robot, joints that it does not have, and joints that are there twice."""
    numbers = [joint.joint for joint in joints]
    for joint in joints:
        name = f"joint {joint.joint + 1}"
        if joint.robot != model.name:
            raise ModelError(f"the joint files must be of {model.name}. Got {name} of {joint.robot} instead.")
        if joint.joint >= model.dof:
            raise ModelError(f"the joint files must be of joints 1 to {model.dof} of {model.name}. Got {name} instead.")
        if numbers.count(joint.joint) > 1:
            raise ModelError(f"{name} must be in one joint file. Got it {numbers.count(joint.joint)} times.")


def log_wear(model: RobotModel, log: Log, joints: Sequence[JointModel]) -> Wear:
    """Return the stiffness of the joints in a log.

    Args:
        model: The calibrated robot, with its payload.
        log: A log, with rotor positions and currents if the stiffness is to be estimated.
        joints: What is known of its joints.

    """
    known, without = known_and_missing(model, joints, log.theta is not None, log.current is not None)
    found, missing = [], []
    for joint in known:
        try:
            report = _estimated(model, log, joint)
            missing.extend(outside_lines(joint.joint, report.outside))
            found.append(joint_stiffness(joint.joint, report.status))
        except (DataError, EstimationError) as problem:
            missing.append(f"stiffness of joint {joint.joint + 1}: {problem}")
    return Wear(tuple(found), (*missing, *without))


def known_and_missing(
    model: RobotModel, joints: Sequence[JointModel], rotors: bool, currents: bool
) -> tuple[list[JointModel], tuple[str, ...]]:
    """Return the joints whose stiffness can be monitored, in their order, and a line for why that of others cannot.

    Args:
        model: The calibrated robot.
        joints: What is known of its joints.
        rotors: Whether rotor positions are measured.
        currents: Whether currents are measured.

    """
    absent = {
        "no rotor position (theta)": not rotors,
        "no current": not currents,
        "no joint file (--joint)": not joints,
    }
    if any(absent.values()):
        return [], (f"stiffness: {', '.join(reason for reason, is_absent in absent.items() if is_absent)}",)
    ordered = sorted(joints, key=lambda each: each.joint)
    missing = [
        f"stiffness of joint {joint.joint + 1}: not in its joint file"
        for joint in ordered
        if "stiffness" not in joint.parts
    ]
    without = sorted(set(range(1, model.dof + 1)) - {joint.joint + 1 for joint in joints})
    if without:
        missing.append(f"stiffness of joint {', '.join(map(str, without))}: no joint file (--joint)")
    return [joint for joint in ordered if "stiffness" in joint.parts], tuple(missing)


def wear_estimator(model: RobotModel, joint: JointModel, rate: float, *, temperature: bool) -> StiffnessEstimator:
    """Return the estimator of the stiffness of a joint in a stream, the same as `log_wear` uses.

    Args:
        model: The calibrated robot, with its payload.
        joint: What is known of the joint.
        rate: Rate of the stream, Hz.
        temperature: Whether temperatures are measured.

    """
    described, side = _described(model)
    links = LinkLoad(described, np.array(model.gravity_vector), model.payload)
    observed = observed_joint(described, joint)
    return StiffnessEstimator(observed, joint.joint, model.dof, rate, links, side, temperature=temperature)


def _estimated(model: RobotModel, log: Log, joint: JointModel) -> StiffnessReport:
    described, side = _described(model)
    gravity = np.array(model.gravity_vector)
    return monitor_stiffness(log, described, joint, side=side, mounting=gravity, payload=model.payload)


def _described(model: RobotModel) -> tuple[Robot, Side]:
    """Return the described robot, and the sides in use: both, or the motor alone where no links are described.

    The identified bodies are no substitute: motions of rigid joints do not separate rotors from links.
    """
    described = replace(model.calibration.model.robot, superseded=False)
    return described, "fused" if described.inertials.any() else "motor"


def outside_lines(joint: int, fraction: float) -> list[str]:
    """Return a line for the fraction of the samples of a joint (0-based) that its gear maps do not cover, if any."""
    if fraction == 0.0:
        return []
    share = "all" if fraction == 1.0 else f"{max(100.0 * fraction, 0.1):.3g} % of the"
    return [f"stiffness of joint {joint + 1} in {share} samples: at angles that its transmission part does not cover"]


def joint_stiffness(joint: int, status: StiffnessStatus) -> JointStiffness:
    """Return the stiffness of a joint (0-based) from its status.

    Raises:
        EstimationError: No sample was used.

    """
    if status.stored_at_rest is None or status.loss is None or status.loss_at_rest is None:
        raise EstimationError("no sample in motion was used.")
    return JointStiffness(
        joint + 1,
        status.status,
        status.at_rest[0],
        status.at_rest[1:],
        status.stored_at_rest,
        status.loss_at_rest[0],
        status.loss_at_rest[1:],
        status.loss[0],
        status.loss[1:],
        status.prediction,
        status.is_stiffer,
    )
