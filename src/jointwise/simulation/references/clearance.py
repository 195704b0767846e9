"""How high an arm stays above the plane it is mounted on, z = 0 of its base frame, however that plane stands.

Looked at are the origins of the frames and the tool: neither the thickness of the links nor what the tool carries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.model.rigid import forward_kinematics
from jointwise.simulation.references.room import room_of
from jointwise.simulation.references.trajectory import Trajectory
from jointwise.spatial import Array

POSTURES = 64
"""Random postures by which frames are told that rise and sink."""
LOOKED_AT = 100.0
"""Rate (Hz) at which motions are looked at."""
ROWS = 20_000
"""Postures looked at in one go."""
WAY_POINTS = 101
"""Postures looked at on a straight way in joint space."""
PASSED = 2000
"""Positions looked at of a joint that moves alone."""
RESERVE = 0.005
"""Height (m) kept beyond the clearance by what is chosen from samples."""


class ClearanceError(ModelError):
    """A motion comes lower than it may: to the height `lowest`, m above the mounting plane."""

    def __init__(self, what: str, lowest: float, clearance: float) -> None:
        """Say what, how low it comes and how low it may."""
        super().__init__(
            f"{what} must stay {clearance:.3g} m above the mounting plane (z = 0 of the base). It "
            f"{told_height(lowest)}: choose a smaller clearance, below 0 for an arm on a pedestal."
        )
        self.lowest = lowest
        self.clearance = clearance


def told_height(height: float, plane: str = "it") -> str:
    """Return how a height (m) over the mounting plane is told."""
    return f"reaches {-height:.2f} m below {plane}" if height < 0.0 else f"comes down to {height:.2f} m above {plane}"


def _rising(robot: Robot) -> NDArray[np.bool_]:
    """Tell of each frame and the tool (joints + 1,) whether the joints can change its height."""
    room = room_of(robot, 1.0)
    q = np.random.default_rng(0).uniform(room.lower, room.upper, (POSTURES, robot.dof))
    moves: NDArray[np.bool_] = np.ptp(forward_kinematics(robot, q).position[:, :, 2], axis=0) > 1e-6
    return moves


def lowest_heights(robot: Robot, q: Array) -> Array:
    """Return the height (samples,), m above z = 0 of the base, of the lowest frame that can rise and sink, tool too.

    `q` (samples, joints). Infinite for an arm whose frames all stay at their heights.
    """
    own = _rising(robot)
    if not own.any():
        return np.full(len(q), np.inf)
    parts = [forward_kinematics(robot, q[k : k + ROWS]).position[:, own, 2] for k in range(0, len(q), ROWS)]
    return np.asarray(np.concatenate(parts).min(axis=1), dtype=float)


def lowest_height(robot: Robot, q: Array) -> float:
    """Return the lowest height, m above the mounting plane, along the positions q (samples, joints)."""
    return float(lowest_heights(robot, q).min())


def farthest_reach(robot: Robot, q: Array) -> float:
    """Return the largest distance (m) of a frame or the tool from the z axis of the base along q (samples, joints)."""
    parts = [forward_kinematics(robot, q[k : k + ROWS]).position[:, :, :2] for k in range(0, len(q), ROWS)]
    return max(float(np.linalg.norm(part, axis=2).max()) for part in parts)


def is_clear(robot: Robot, q: Array, clearance: float) -> bool:
    """Tell whether the arm stays a `clearance` (m) above the mounting plane along q (samples, joints)."""
    return lowest_height(robot, q) >= clearance


def straight_way(begin: Array, end: Array) -> Array:
    """Return postures (points, joints) on the straight way in joint space between two."""
    return np.linspace(begin, end, WAY_POINTS)


def passed(q: Array) -> Array:
    """Return few postures (points, joints) that tell where a motion q (samples, joints) passes.

    One joint that moves alone passes every position between its extremes, however often; other motions are as given.
    """
    moving = np.flatnonzero(np.ptp(q, axis=0) > 0.0)
    if len(moving) != 1 or len(q) <= PASSED:
        return q[:1] if not len(moving) else q
    rows = np.repeat(q[:1], PASSED, axis=0)
    own = q[:, moving[0]]
    rows[:, moving[0]] = np.linspace(own.min(), own.max(), PASSED)
    return rows


def refuse_below(robot: Robot, motion: Trajectory, clearance: float, what: str = "the motion") -> None:
    """Raise `ClearanceError` if a motion comes below the `clearance` (m) over the mounting plane."""
    lowest = lowest_height(robot, passed(motion.sample(LOOKED_AT).q))
    if lowest < clearance:
        raise ClearanceError(what, lowest, clearance)


def refuse_clearance(clearance: float) -> None:
    """Refuse a clearance that is no number."""
    if not np.isfinite(clearance):
        raise ModelError(f"clearance must be a number of m. Got {clearance} instead.")
