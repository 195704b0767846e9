"""A motor that turns with a second joint, which nobody declared: columns and outputs under this hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from jointwise.description.robot import Robot
from jointwise.description.transmission import Transmission, coupled
from jointwise.spatial import Array

Coupling = tuple[int, int, float]
"""Motor and joint (0-based), and the ratio r: the motor turns by q_motor + r q_joint."""

WIDTHS = np.array([0.003, 0.03, 0.1])
"""Speeds (rad/s) over which dry friction reverses: thinned samples do not show the path of slip elements."""
WRIST = 3
"""Joints at the end of an arm whose motors may sit before them, so that each may turn with every earlier one."""


def coupled_pairs(moving: Sequence[int], joints: int) -> Iterator[tuple[int, int]]:
    """Yield motors and joints (0-based) that are coupled in known arms: in the wrist, and the third with the second."""
    wrist = range(max(joints - WRIST, 0), joints)
    pairs = {(i, j) for i in wrist for j in wrist if i > j} | {(2, 1)}
    yield from sorted(pair for pair in pairs if set(pair) <= set(moving))


def with_transmission(robot: Robot, couplings: Sequence[Coupling]) -> Robot:
    """Return the robot with some couplings."""
    return replace(robot, transmission=transmission_of(couplings, robot.dof))


def transmission_of(couplings: Sequence[Coupling], joints: int) -> Transmission:
    """Return the transmission of some couplings."""
    return coupled([(motor + 1, joint + 1, ratio) for motor, joint, ratio in couplings], joints)


def with_motor_friction(friction: Array, speed: Array, couplings: Sequence[Coupling]) -> Array:
    """Return friction columns (joints, samples, columns) with those of the coupled motors from their speeds, rad/s.

    Args:
        friction: Columns of every joint along its position: three of dry friction, v, v |v|, and the offset.
        speed: Speeds of the joints, (samples, joints).
        couplings: The couplings.

    """
    speeds, result = transmission_of(couplings, speed.shape[1]).motor(speed), friction.copy()
    for motor in {coupling[0] for coupling in couplings}:
        v = speeds[:, motor]
        result[motor] = np.column_stack([*np.tanh(v / WIDTHS[:, None]), v, v * np.abs(v), np.ones(len(v))])
    return result


def motor_outputs(torque: Array, couplings: Sequence[Coupling]) -> Array:
    """Return torques of the motors, C^-T τ, from torques of the joints (samples, joints, lags)."""
    transmission = transmission_of(couplings, torque.shape[1])
    return np.moveaxis(transmission.motor_torque(np.moveaxis(torque, 1, 2)), 2, 1)
