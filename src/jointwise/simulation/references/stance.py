"""The postures that experiments stand in where nothing else is asked: the usual one and the upright one."""

from __future__ import annotations

import numpy as np

from jointwise.description.robot import Robot
from jointwise.model.rigid import forward_kinematics
from jointwise.simulation.references.room import Room, room_of
from jointwise.spatial import Array

SWEEPS = 2
"""Rounds over the joints in the search for a posture."""
STEP = np.deg2rad(15.0)
"""Angles (rad) between the positions tried of every joint in the search for the upright posture."""


def usual_posture(robot: Robot) -> Array:
    """Return the posture (joints,) nearest to zero within the limits and a margin of 2 %."""
    room = room_of(robot, 1.0)
    return np.clip(np.zeros(robot.dof), room.lower, room.upper)


def upright_posture(robot: Robot) -> Array:
    """Return the posture (joints,) in which the frames of an arm stand highest on the whole: stretched away from z = 0.

    Found joint by joint at multiples of 15 degrees; of equals the one nearest to the usual posture.
    """
    posture, room = usual_posture(robot), room_of(robot, 1.0)
    for _ in range(SWEEPS):
        for joint in range(robot.dof):
            tried = tried_positions(room, joint, posture[joint])
            rows = np.repeat(posture[None], len(tried), axis=0)
            rows[:, joint] = tried
            heights = np.round(forward_kinematics(robot, rows).position[:, :, 2].mean(axis=1), 6)
            posture = rows[int(np.argmax(heights))]
    return posture


def tried_positions(room: Room, joint: int, own: float) -> Array:
    """Return multiples of `STEP` within half a turn and the room, and a joint's own position; the nearest first."""
    steps = STEP * np.arange(-12, 13)
    inside = steps[(steps >= room.lower[joint]) & (steps <= room.upper[joint])]
    tried: Array = np.append(own, inside)
    return tried[np.argsort(np.abs(tried - own), kind="stable")]
