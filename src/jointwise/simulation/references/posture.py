"""Postures and mountings for experiments on one joint: its axis along gravity, or across it with a large load."""

from __future__ import annotations

import numpy as np

from jointwise.description.mounting import STANDARD_GRAVITY, gravity_vector
from jointwise.description.robot import Robot
from jointwise.model.rigid import forward_kinematics, gravity_torque
from jointwise.simulation.references.room import room_of
from jointwise.spatial import Array

ANGLES = 25
"""Positions tried of every joint in the search for a large load."""
SWEEPS = 2
"""Rounds of that search over the joints."""


def usual_posture(robot: Robot) -> Array:
    """Return the posture (joints,) nearest to zero within the limits and a margin of 2 %."""
    room = room_of(robot, 1.0)
    return np.clip(np.zeros(robot.dof), room.lower, room.upper)


def joint_axis(robot: Robot, joint: int, posture: Array) -> Array:
    """Return the axis (3,) of a joint (0-based) in the base; it does not depend on the joint's own position."""
    axis: Array = forward_kinematics(robot, posture[None]).rotation[0, joint, :, 2]
    return axis


def gravity_along(robot: Robot, joint: int, posture: Array) -> Array:
    """Return the gravity (3,), m/s² in the base, of a mounting in which the axis of a joint is vertical."""
    axis = joint_axis(robot, joint, posture)
    table = gravity_vector("table")
    direction = axis if axis @ table > 0.0 else -axis
    return np.asarray(STANDARD_GRAVITY * direction + 0.0, dtype=float)


def gravity_across(robot: Robot, joint: int, posture: Array) -> Array:
    """Return the gravity (3,), m/s² in the base, of a mounting in which the axis of a joint is horizontal.

    That is the table if the axis is horizontal there, as the joints after the first of most arms; else the wall, or
    what is left of the table's gravity across the axis.
    """
    axis = joint_axis(robot, joint, posture)
    choices = [gravity_vector("table"), gravity_vector("wall"), gravity_vector((STANDARD_GRAVITY, 0.0, 0.0))]
    across = [choice - (choice @ axis) * axis for choice in choices]
    lengths = np.array([np.linalg.norm(part) for part in across])
    best = int(np.flatnonzero(lengths > 0.5 * STANDARD_GRAVITY)[0])
    result: Array = STANDARD_GRAVITY * across[best] / lengths[best]
    return result


def load_phase(robot: Robot, joint: int, posture: Array, gravity: Array) -> tuple[float, float]:
    """Return A (Nm) and z (rad) of a revolute joint's load ``g(q) = A sin(q - z)`` with the other joints at rest."""
    rows = np.repeat(posture[None], 2, axis=0)
    rows[:, joint] = 0.0, 0.5 * np.pi
    at_zero, at_quarter = gravity_torque(robot, rows, gravity=gravity)[:, joint]
    return float(np.hypot(at_zero, at_quarter)), float(np.arctan2(-at_zero, at_quarter))


def loaded_posture(robot: Robot, joint: int) -> Array:
    """Return the posture (joints,) near the usual one in which the links after a joint load it most (stretched out)."""
    posture, room = usual_posture(robot), room_of(robot, 1.0)
    for _ in range(SWEEPS):
        for other in range(joint + 1, robot.dof):
            tried = np.append(np.linspace(room.lower[other], room.upper[other], ANGLES), posture[other])
            amplitudes = [_load(robot, joint, _with(posture, other, value)) for value in tried]
            if max(amplitudes) > 1.001 * amplitudes[-1]:
                posture = _with(posture, other, tried[int(np.argmax(amplitudes))])
    return posture


def _load(robot: Robot, joint: int, posture: Array) -> float:
    return load_phase(robot, joint, posture, gravity_across(robot, joint, posture))[0]


def _with(posture: Array, joint: int, value: float) -> Array:
    changed = posture.copy()
    changed[joint] = value
    return changed
