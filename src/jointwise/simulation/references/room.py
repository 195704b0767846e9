"""The room that a planned motion may use: the joint limits, with defaults where the description is silent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.description.robot import Joint, Limits, Robot
from jointwise.spatial import Array

DEFAULTS = {
    "revolute": Limits(lower=-np.pi, upper=np.pi, velocity=2.0, acceleration=6.0),
    "prismatic": Limits(lower=-0.3, upper=0.3, velocity=0.5, acceleration=3.0),
}
"""Limits of a joint of each kind where its description gives none."""


@dataclass(frozen=True)
class Room:
    """Arrays (joints,): least and largest position (rad, m), speed and acceleration that a motion may reach."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array

    def draw_center(self, rng: np.random.Generator, below: Array, above: Array) -> Array:
        """Return a random position (joints,) that leaves `below` and `above` (rad, >= 0) free on its two sides."""
        return rng.uniform(self.lower + below, np.maximum(self.upper - above, self.lower + below))


def room_of(robot: Robot, speed_fraction: float, margin: float = 0.02) -> Room:
    """Return the room of a robot: a fraction of the speed limits, and `margin` of the range free at either end."""
    rows = np.array([_limits(joint) for joint in robot.joints])
    lower, upper, velocity, acceleration = rows.T
    free = margin * (upper - lower)
    return Room(lower + free, upper - free, speed_fraction * velocity, acceleration)


def _limits(joint: Joint) -> tuple[float, ...]:
    names = ("lower", "upper", "velocity", "acceleration")
    given, usual = joint.limits, DEFAULTS[joint.kind]
    values = [getattr(usual, name) if getattr(given, name) is None else getattr(given, name) for name in names]
    return tuple(float(value) for value in values)
