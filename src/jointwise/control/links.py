"""The links as a controller knows them, and the rotor positions that bend the springs as the links need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.description.mounting import Mounting
from jointwise.description.payload import Payload
from jointwise.description.robot import Robot
from jointwise.errors import ModelError, ShapeError
from jointwise.model.joint_drive import JointDrive
from jointwise.model.rigid import gravity_torque, inverse_dynamics, mass_matrix
from jointwise.model.rigid.chain import Chain, make_chain
from jointwise.spatial import Array


@dataclass(frozen=True)
class Links:
    """A robot as it is mounted and loaded; torques are those of the links, without rotors."""

    robot: Robot
    gravity: Mounting = "table"
    payload: Payload | None = None

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


def checked_joints(robot: Robot, joints: int) -> None:
    """Refuse a motion of another robot."""
    if joints != robot.dof:
        raise ModelError(f"the motion must be one of {robot.dof} joints, as robot '{robot.name}'. It has {joints}.")
