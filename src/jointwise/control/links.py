"""What a controller controls: links as a rigid model, drives with springs and friction, and the motion to follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from jointwise.arguments import checked, checked_fields
from jointwise.backend import native
from jointwise.control.controller import AffineControl, ControlSample
from jointwise.control.gains import Gains, default_gains, drives_for, effective_inertias, feedback_rotors
from jointwise.control.joint_drive import JointDrive
from jointwise.control.reference import Reference, as_reference
from jointwise.control.torque_rates import torque_rates
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.description.transmission import Transmission
from jointwise.errors import ModelError, ShapeError
from jointwise.model.rigid import gravity_torque, inverse_dynamics, mass_matrix
from jointwise.model.rigid.chain import Chain, kernels, make_chain
from jointwise.model.transmission import joint_values, motor_inertia
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel


@checked_fields
@dataclass(frozen=True)
class Links:
    """A robot as it is mounted and loaded; torques are those of the links, without rotors.

    Attributes:
        robot: The robot.
        gravity: A mounting, or gravity in the base frame, (3,), m/s².
        payload: Payload at the tool; None for none.
    """

    robot: Robot
    gravity: Mounting = "table"
    payload: Payload | None = None

    @classmethod
    def of(cls, robot: Robot | RobotModel, gravity: Mounting | None = None, payload: Payload | None = None) -> Links:
        """Return the links of a described or calibrated robot; None for the gravity of the model, or the table.

        They are in coordinates of the motors where a transmission couples them with the joints; see `MotorLinks`.
        """
        from jointwise.runtime import RobotModel

        arm = robot.robot if isinstance(robot, RobotModel) else robot
        usual: Mounting = robot.gravity_vector if isinstance(robot, RobotModel) else "table"
        kind = cls if arm.transmission is None else MotorLinks
        return kind(arm, usual if gravity is None else gravity, payload)

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return M q̈ + C q̇ + g, (samples, joints) Nm."""
        return inverse_dynamics(self.robot, q, qd, qdd, gravity=self.gravity, payload=self.payload)

    def weight(self, q: Array) -> Array:
        """Return g(q), (samples, joints) Nm."""
        return gravity_torque(self.robot, q, gravity=self.gravity, payload=self.payload)

    def inertia(self, q: Array, rotors: Array) -> Array:
        """Return M(q) + diag(B), (samples, joints, joints) kg m²."""
        return mass_matrix(self.robot, q, payload=self.payload, rotor_inertias=rotors)

    @cached_property
    def chain(self) -> Chain:
        """The numbers of the kernels."""
        return make_chain(self.robot, self.gravity, self.payload)

    @cached_property
    def core(self) -> Any:
        """The bodies as the native kernels of stepped controllers hold them; None where NumPy does the same."""
        from jointwise.runtime.packing import MOST_JOINTS, core_bodies
        from jointwise.runtime.stream import NativeCore

        if native() is None or self.robot.dof > MOST_JOINTS:
            return None
        return NativeCore(core_bodies(self.chain, self.robot.transmission)).handle

    def sample_torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return `torque` of contiguous arrays without checks, for controllers that are stepped."""
        torque = np.empty_like(q)
        kernels().inverse_dynamics(self.chain, q, qd, qdd, torque)
        return torque

    def torque_rates(self, reference: Reference) -> Array:
        """Return `torque` along a motion with its first and second time derivative, (3, samples, joints)."""
        assert reference.jerk is not None and reference.snap is not None
        motion = (reference.q, reference.qd, reference.qdd, reference.jerk, reference.snap)
        return np.stack(torque_rates(self.chain, *motion))

    def reference(self, reference: Reference) -> Reference:
        """Return a motion of the joints in the coordinates of these links."""
        return reference

    def sample(self, sample: ControlSample) -> ControlSample:
        """Return a sample with link positions and speeds in the coordinates of these links."""
        return sample

    def law(self, law: AffineControl) -> AffineControl:
        """Return a law in the coordinates of these links as one that feeds back positions and speeds of the joints."""
        return law


@dataclass(frozen=True)
class MotorLinks(Links):
    """Links in coordinates of coupled motors, ``p = C q``, with torques of the motors, ``C⁻ᵀ τ``.

    In these coordinates ``C^-T M C⁻¹ p̈ + ... = τ_J(θ - p)``: every motor moves a coordinate through a spring, as
    uncoupled ones do, and every controller applies.
    """

    @cached_property
    def coupling(self) -> Transmission:
        """How the motors turn with the joints."""
        assert self.robot.transmission is not None
        return self.robot.transmission

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return M p̈ + C ṗ + g at the motors, (samples, joints) Nm."""
        return self.coupling.motor_torque(super().torque(*map(self.coupling.joint, (q, qd, qdd))))

    def weight(self, q: Array) -> Array:
        """Return g at the motors, (samples, joints) Nm."""
        return self.coupling.motor_torque(super().weight(self.coupling.joint(q)))

    def inertia(self, q: Array, rotors: Array) -> Array:
        """Return C^-T M C⁻¹ + diag(B), (samples, joints, joints) kg m²."""
        M = motor_inertia(self.robot, super().inertia(self.coupling.joint(q), np.zeros_like(rotors)))
        return np.asarray(M + np.diag(rotors))

    def sample_torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return `torque` of contiguous arrays without checks."""
        return self.coupling.motor_torque(super().sample_torque(*map(self.coupling.joint, (q, qd, qdd))))

    def torque_rates(self, reference: Reference) -> Array:
        """Return `torque` along a motion with its first and second time derivative, (3, samples, joints)."""
        return self.coupling.motor_torque(super().torque_rates(reference.mapped(self.coupling.inverse)))

    def reference(self, reference: Reference) -> Reference:
        """Return a motion of the joints as that of the motors."""
        return reference.mapped(self.coupling.matrix)

    def sample(self, sample: ControlSample) -> ControlSample:
        """Return a sample with the link positions and speeds of the motors."""
        return replace(sample, q=self.coupling.motor(sample.q), qd=self.coupling.motor(sample.qd))

    def law(self, law: AffineControl) -> AffineControl:
        """Return a law that feeds back positions and speeds of the joints: ``Kp (p - p_d) = Kp C (q - q_d)``."""
        C = self.coupling.matrix
        changed: dict[str, Any] = {
            name: self.coupling.joint(x) for name in ("q", "qd") if (x := getattr(law, name)) is not None
        }
        changed |= {
            name: x @ C if x.ndim == 3 or x.shape == C.shape else x[..., None] * C
            for name in ("kp", "kd", "ki")
            if (x := getattr(law, name)) is not None
        }
        shares = None if law.gravity is None else self.coupling.inverse.T
        return replace(law, **changed, gravity_shares=shares)


def deformations(drives: Sequence[JointDrive], torque: Array) -> Array:
    """Return the deformations at which springs carry torques; 0 without a spring.

    Args:
        drives: One drive per joint.
        torque: Torques of the links, (samples, joints), Nm.

    Returns:
        φ, (samples, joints), rad.
    """
    columns = [
        np.zeros(len(torque)) if drive.spring is None else drive.spring.deformation(column)
        for drive, column in zip(drives, torque.T, strict=True)
    ]
    return np.stack(columns, axis=1)


@checked
def friction_torques(drives: Sequence[JointDrive], speed: Array) -> Array:
    """Return the steady friction of the drives at rotor speeds (samples, joints), Nm."""
    if np.ndim(speed) != 2 or speed.shape[1] != len(drives) or not drives:
        raise ShapeError(f"speed must have shape (samples, {len(drives)}). Got {np.shape(speed)} instead.")
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

    Attributes:
        gravity: Mounting; None for that of a calibrated model, or the table.
        payload: Payload at the tool; None for none.
        duration: Duration of the motion, s; None for all of it.
    """

    gravity: Mounting | None
    payload: Payload | None
    duration: float | None


Side = Literal["motor", "link"]
"""Where position and speed are measured for feedback: before the spring or after it."""


class FeedbackOptions(TaskOptions, total=False):
    """Options of controllers that feed back position and speed of one side of the gears.

    Attributes:
        gains: Gains for a unit of inertia; None for critically damped ones at the default bandwidth.
        drives: Rotors, springs and motors; None for rigid joints with the rotors of the description.
        side: Side of the feedback, "motor" (default) or "link".
    """

    gains: Gains | None
    drives: Sequence[JointDrive] | None
    side: Side


@dataclass(frozen=True)
class Task:
    """A motion that a controller follows.

    Reference and links are in coordinates of the motors where a transmission couples them with the joints.

    Attributes:
        reference: The motion.
        links: Links as mounted and loaded.
        drives: One drive per joint.
        rotors: Rotor inertias by which gains are scaled, (joints,), kg m²; see `feedback_rotors`.
        fixed: Gains that replace the default ones; None for these.
        side: Side of the feedback, "motor" or "link".
    """

    reference: Reference
    links: Links
    drives: tuple[JointDrive, ...]
    rotors: Array
    fixed: Gains | None = None
    side: Side = "motor"

    @cached_property
    def inertias(self) -> Array:
        """Effective inertias of the links along the motion, without rotors: (joints,) kg m²."""
        robot = self.links.robot
        return effective_inertias(robot, joint_values(robot, self.reference.inertia_poses), self.links.payload)

    @cached_property
    def ahead(self) -> Reference:
        """The reference of a feed-forward: later by the lead time, as far as the motion is known."""
        return self.reference.shifted(lead_time(self.drives, self.reference.rate))

    def gains(self, integral: float = 0.0) -> Gains:
        """Return the fixed gains, or critically damped ones at the default bandwidth of the slowest joint."""
        return self.fixed or default_gains(self.inertias, self.drives, self.reference.rate, integral)


def make_task(
    robot: Robot | RobotModel,
    motion: Any,
    rate: float,
    drives: Sequence[JointDrive] | None = None,
    *,
    gains: Gains | None = None,
    side: Side = "motor",
    gravity: Mounting | None = None,
    payload: Payload | None = None,
    duration: float | None = None,
) -> Task:
    """Return the task of following a motion (see `as_reference`) at a control `rate` (Hz); see `FeedbackOptions`."""
    links, reference = Links.of(robot, gravity, payload), as_reference(motion, rate, duration)
    arm, joints = links.robot, reference.q.shape[1]
    if joints != arm.dof:
        raise ModelError(f"the motion must be one of {arm.dof} joints, as robot '{arm.name}'. It has {joints}.")
    return Task(links.reference(reference), links, drives_for(arm, drives), feedback_rotors(arm, drives), gains, side)
