"""Coupled transmissions: motors that turn with more than one joint.

Motor angles are divided by their gear ratios ("at the joint side"): an uncoupled motor turns by its joint angle.
With the coupling matrix C::

    theta = C q        tau_joint = C' tau_motor        (power is the same on both sides)

``--coupling 6:5:1`` means that motor 6 turns by q6 + 1 * q5, so C[6, 5] = 1. Data sheets that state joints in terms of
motors (``q6 = theta6 - theta5``) have the inverse matrix: give it as `joint_from_motor`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from jointwise.description.robot import Robot, frozen_array
from jointwise.errors import DescriptionError
from jointwise.spatial import Array

Coordinates = Literal["joint", "motor"]
WORST_CONDITION = 1e6
"""Condition number of a coupling matrix above which motors do not determine the joints."""


@dataclass(frozen=True, eq=False)
class Transmission:
    """How the motors of a robot turn with its joints.

    Attributes:
        matrix: C of ``theta = C q``, shape (joints, joints).
        coordinates: Those of positions, speeds and torques in logs: "joint", or "motor" (angles divided by the gear
            ratio). Currents are always those of the motors.
    """

    matrix: Array
    coordinates: Coordinates = "joint"

    def __post_init__(self) -> None:
        """Reject what cannot be inverted."""
        size = len(self.matrix)
        object.__setattr__(self, "matrix", frozen_array(self.matrix, (size, size), "coupling matrix"))
        if np.linalg.cond(self.matrix) > WORST_CONDITION:
            raise DescriptionError("the coupling matrix is singular: the motors do not determine the joints.")
        if self.coordinates not in get_args(Coordinates):
            raise DescriptionError(f"coordinates must be joint or motor. Got '{self.coordinates}' instead.")

    @cached_property
    def inverse(self) -> Array:
        """The matrix of ``q = C^-1 theta``, shape (joints, joints)."""
        return np.asarray(np.linalg.inv(self.matrix))

    def motor(self, values: Array) -> Array:
        """Return positions or speeds of the motors, C q, from those of the joints, both (..., joints)."""
        return np.asarray(values @ self.matrix.T)

    def joint(self, values: Array) -> Array:
        """Return positions or speeds of the joints, C^-1 theta, from those of the motors, both (..., joints)."""
        return np.asarray(values @ self.inverse.T)

    def motor_torque(self, torque: Array) -> Array:
        """Return the torques of the motors, C^-T tau, from those of the joints, both (..., joints)."""
        return np.asarray(torque @ self.inverse)

    def joint_torque(self, torque: Array) -> Array:
        """Return the torques of the joints, C^T tau, from those of the motors, both (..., joints)."""
        return np.asarray(torque @ self.matrix)


def refuse_coupled(robot: Robot, what: str, joint: int | None = None, *, remedy: str = "") -> None:
    """Reject a robot with a coupled transmission, or one of its coupled joints (0-based), for what does not model it.

    `remedy` says what to do instead.

    Raises:
        DescriptionError: The robot, or the joint, is coupled.
    """
    if robot.transmission is None:
        return
    apart = robot.transmission.matrix - np.eye(robot.dof)
    if joint is None or apart[joint].any() or apart[:, joint].any():
        where = robot.name if joint is None else f"{robot.name}, joint {joint + 1}"
        raise DescriptionError(f"{where}: {what} does not model coupled transmissions{remedy and '; '}{remedy}.")


def coupled(entries: Iterable[tuple[int, int, float]], joints: int, coordinates: Coordinates = "joint") -> Transmission:
    """Return the transmission of some couplings: motor, joint (both from 1) and ratio.

    Args:
        entries: ``(6, 5, 1.0)``: motor 6 turns by its joint angle and 1.0 times that of joint 5.
        joints: Number of joints.
        coordinates: Those of the logs.

    Returns:
        The transmission.

    Raises:
        DescriptionError: There is no such joint, or a coupling is stated twice.
    """
    matrix, seen = np.eye(joints), set[tuple[int, int]]()
    for motor, joint, ratio in entries:
        if not (1 <= motor <= joints and 1 <= joint <= joints):
            raise DescriptionError(f"coupling {motor}:{joint}:{ratio:g}: joints must be from 1 to {joints}.")
        if motor == joint or (motor, joint) in seen:
            what = "a motor turns with its joint anyway" if motor == joint else "stated twice"
            raise DescriptionError(f"coupling {motor}:{joint}:{ratio:g}: {what}.")
        seen.add((motor, joint))
        matrix[motor - 1, joint - 1] = ratio
    return Transmission(matrix, coordinates)


def parse_coupling(text: str) -> list[tuple[int, int, float]]:
    """Return the couplings of ``6:5:1,6:4:-0.5``: motor, joint (from 1) and ratio.

    Raises:
        DescriptionError: A part is not MOTOR:JOINT:RATIO.
    """
    entries = []
    for part in text.split(","):
        words = part.strip().split(":")
        try:
            motor, joint, ratio = int(words[0]), int(words[1]), float(words[2])
        except (ValueError, IndexError):
            motor = joint = 0
            ratio = np.nan
        if len(words) != 3 or not np.isfinite(ratio):
            raise DescriptionError(f"coupling must be MOTOR:JOINT:RATIO[,...], such as 6:5:1. Got '{part}' instead.")
        entries.append((motor, joint, ratio))
    return entries
