"""Reference postures of an arm: the default one near zero, and the upright one."""

from __future__ import annotations

import numpy as np

from jointwise.description.robot import Robot
from jointwise.design.limits import MotionLimits, motion_limits
from jointwise.model.rigid import forward_kinematics
from jointwise.spatial import Array

SWEEPS = 2
"""Rounds over all joints in the search for a posture; a third does not change the result on the catalogue."""
STEP = np.deg2rad(15.0)
"""Step (rad) between the positions tested of every joint in the search for the upright posture."""


def default_posture(robot: Robot) -> Array:
    """Return the posture (joints,) nearest to zero within the limits and a margin of 2 %."""
    limits = motion_limits(robot, 1.0)
    return np.clip(np.zeros(robot.dof), limits.lower, limits.upper)


def upright_posture(robot: Robot) -> Array:
    """Return the posture (joints,) with the largest mean height of the frames: extended away from z = 0.

    Searched joint by joint at multiples of 15 degrees; of equal postures the one nearest to the default one.
    """
    posture, limits = default_posture(robot), motion_limits(robot, 1.0)
    for _ in range(SWEEPS):
        for joint in range(robot.dof):
            candidates = candidate_positions(limits, joint, posture[joint])
            rows = np.repeat(posture[None], len(candidates), axis=0)
            rows[:, joint] = candidates
            heights = np.round(forward_kinematics(robot, rows).position[:, :, 2].mean(axis=1), 6)
            posture = rows[int(np.argmax(heights))]
    return posture


def candidate_positions(limits: MotionLimits, joint: int, current: float) -> Array:
    """Return multiples of `STEP` within half a turn and the limits, and the current position; the nearest first."""
    steps = STEP * np.arange(-12, 13)
    inside = steps[(steps >= limits.lower[joint]) & (steps <= limits.upper[joint])]
    candidates: Array = np.append(current, inside)
    return candidates[np.argsort(np.abs(candidates - current), kind="stable")]
