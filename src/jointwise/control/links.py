"""What a controller controls: links as a rigid model, drives with springs and friction, and the motion to follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from jointwise.control.gains import Gains, default_gains, drives_for, effective_inertias, feedback_rotors
from jointwise.control.joint_drive import JointDrive
from jointwise.control.reference import Reference, as_reference
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.description.transmission import refuse_coupled
from jointwise.errors import ModelError, ShapeError
from jointwise.model.rigid import gravity_torque, inverse_dynamics, mass_matrix
from jointwise.model.rigid.chain import Chain, make_chain
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel


@dataclass(frozen=True)
class Links:
    """A robot as it is mounted and loaded; torques are those of the links, without rotors."""

    robot: Robot
    gravity: Mounting = "table"
    payload: Payload | None = None

    @classmethod
    def of(cls, robot: Robot | RobotModel, gravity: Mounting | None = None, payload: Payload | None = None) -> Links:
        """Return the links of a described or calibrated robot; None for the gravity of the model, or the table.

        Raises:
            DescriptionError: The transmission is coupled: the controllers feed back joints one by one.

        """
        from jointwise.runtime import RobotModel

        arm = robot.robot if isinstance(robot, RobotModel) else robot
        refuse_coupled(arm, "this controller", remedy="simulate with the controller 'servo'")
        usual: Mounting = robot.gravity_vector if isinstance(robot, RobotModel) else "table"
        return cls(arm, usual if gravity is None else gravity, payload)

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return M q̈ + C q̇ + g, (samples, joints) Nm."""
        return inverse_dynamics(self.robot, q, qd, qdd, gravity=self.gravity, payload=self.payload)

    def weight(self, q: Array) -> Array:
        """Return g(q), (samples, joints) Nm."""
        return gravity_torque(self.robot, q, gravity=self.gravity, payload=self.payload)

    def inertia(self, q: Array, rotors: Array) -> Array:
        """Return M(q) + diag(B), (samples, joints, joints) kg m²."""
        return mass_matrix(self.robot, q, payload=self.payload, rotor_inertias=rotors)

    @property
    def chain(self) -> Chain:
        """The numbers of the kernels."""
        return make_chain(self.robot, self.gravity, self.payload)


def deformations(drives: Sequence[JointDrive], torque: Array) -> Array:
    """Return φ (samples, joints), rad, at which the springs carry a torque (samples, joints); 0 without a spring."""
    columns = [
        np.zeros(len(torque)) if drive.spring is None else drive.spring.deformation(column)
        for drive, column in zip(drives, torque.T, strict=True)
    ]
    return np.stack(columns, axis=1)


def friction_torques(drives: Sequence[JointDrive], speed: Array) -> Array:
    """Return the steady friction of the drives at rotor speeds (samples, joints), Nm."""
    return np.stack([d.friction(column) for d, column in zip(drives, speed.T, strict=True)], axis=1)


def lead_time(drives: Sequence[JointDrive], rate: float) -> float:
    """Return how far ahead (s) feed-forward must look: half a period, as it is held over one, and the motors' lag."""
    return 0.5 / rate + float(np.mean([drive.lag for drive in drives]))


def plus_friction(torque: Array, friction: Array | None) -> Array:
    """Return a feed-forward with a friction torque of the same shape added, if there is one."""
    if friction is None:
        return torque
    extra = np.asarray(friction, dtype=float)
    if extra.shape != torque.shape or not np.isfinite(extra).all():
        raise ShapeError(f"friction must be finite, of shape {torque.shape}. Got {extra.shape} instead.")
    total: Array = torque + extra
    return total


class TaskOptions(TypedDict, total=False):
    """Options that all controllers have in common.

    `gravity`: mounting; None for that of a calibrated model, or the table. `payload` at the tool. `duration` of the
    motion, s; None for all of it.
    """

    gravity: Mounting | None
    payload: Payload | None
    duration: float | None


@dataclass(frozen=True)
class Task:
    """A motion that a controller follows: its `reference`, the `links` as mounted and loaded, one drive a joint.

    `rotors` are the inertias (joints,), kg m², by which gains are scaled; see `feedback_rotors`.
    """

    reference: Reference
    links: Links
    drives: tuple[JointDrive, ...]
    rotors: Array

    @cached_property
    def inertias(self) -> Array:
        """Effective inertias of the links along the motion, without rotors: (joints,) kg m²."""
        return effective_inertias(self.links.robot, self.reference.inertia_poses, self.links.payload)

    @cached_property
    def ahead(self) -> Reference:
        """The reference of a feed-forward: later by the lead time, as far as the motion is known."""
        return self.reference.shifted(lead_time(self.drives, self.reference.rate))

    def default_gains(self, integral: float = 0.0) -> Gains:
        """Return critically damped gains at the default bandwidth of the slowest joint."""
        return default_gains(self.inertias, self.drives, self.reference.rate, integral)


def make_task(
    robot: Robot | RobotModel,
    motion: Any,
    rate: float,
    drives: Sequence[JointDrive] | None,
    *,
    gravity: Mounting | None = None,
    payload: Payload | None = None,
    duration: float | None = None,
) -> Task:
    """Return the task of following a motion (see `as_reference`) at a control `rate` (Hz); see `TaskOptions`."""
    links, reference = Links.of(robot, gravity, payload), as_reference(motion, rate, duration)
    arm, joints = links.robot, reference.q.shape[1]
    if joints != arm.dof:
        raise ModelError(f"the motion must be one of {arm.dof} joints, as robot '{arm.name}'. It has {joints}.")
    return Task(reference, links, drives_for(arm, drives), feedback_rotors(arm, drives))
