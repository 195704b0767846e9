"""Random motions placed so that they are free of collisions: other centres are drawn, and smaller sizes if needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import numpy as np

from jointwise.description.robot import Robot
from jointwise.design.body import RESERVE
from jointwise.design.clearance import Clearance, straight_path
from jointwise.design.limits import motion_limits, upright_posture
from jointwise.design.trajectory import random_numbers
from jointwise.spatial import Array

DRAWS = 50
"""Centres or points drawn before a motion is rejected."""
SPREAD = 0.6
"""Largest distance (rad, m) of a drawn centre from the upright posture."""
SIZES = np.linspace(0.2, 1.0, 17)
"""Scales of a motion that are tested, from a fifth to the full size."""
CHECK_RATE = 40.0
"""Rate (Hz) at which a drawn motion is checked; the error of the distance, 1 mm, is below the reserve."""


class Centred(Protocol):
    """A motion about a centre (joints,)."""

    @property
    def duration(self) -> float:
        """Duration, s."""

    @property
    def center(self) -> Array:
        """Middle of the motion (joints,)."""

    def about(self, center: Array, size: float) -> Self:
        """Return the motion about another centre (joints,), `size` times as large."""

    def position(self, t: Array) -> Array:
        """Return q (samples, joints)."""


M = TypeVar("M", bound=Centred)


def place_clear(robot: Robot, motion: M, seed: int, clearance: Clearance) -> M:
    """Return a motion about the first drawn centre at which it keeps the clearance.

    The first centre is that of the motion, the others lie about the upright posture. If none is clear at full size, the
    largest clear size is taken; below a fifth the motion is rejected.
    """
    offsets = motion.position(np.arange(0.0, motion.duration, 1.0 / CHECK_RATE)) - motion.center
    best, best_center = -1, motion.center
    for center in _centres(robot, motion.center, offsets, seed):
        size = _largest(center, offsets, best, clearance)
        if size > best:
            best, best_center = size, center
        if best == len(SIZES) - 1:
            break
    if best < 0:
        what = f"random motions of robot '{robot.name}', drawn {DRAWS} times,"
        raise clearance.error(what, best_center + SIZES[0] * offsets)
    return motion.about(best_center, float(SIZES[best]))


def _centres(robot: Robot, first: Array, offsets: Array, seed: int) -> list[Array]:
    """Return the centres (joints,) to test: the first one, others about the upright posture, and that posture."""
    rng, limits, upright = random_numbers(seed, 1), motion_limits(robot, 1.0), upright_posture(robot)
    low, high = limits.lower - offsets.min(axis=0), limits.upper - offsets.max(axis=0)
    others = upright + rng.uniform(-SPREAD, SPREAD, (DRAWS - 2, robot.dof))
    return [first, *(np.clip(row, np.minimum(low, high), high) for row in np.vstack([others, upright]))]


def _largest(center: Array, offsets: Array, best: int, clearance: Clearance) -> int:
    """Return the index of the largest clear size, or `best` if it is not larger."""
    while best + 1 < len(SIZES) and clearance.is_clear(center + SIZES[best + 1] * offsets, RESERVE):
        best += 1
    return best


def draw_target(
    robot: Robot, begin: Array, draw: Callable[[], Array], clearance: Clearance, then: Array | None = None
) -> Array:
    """Return the first drawn posture (joints,) that a clear straight path in joint space leads to from `begin`.

    The path on to the posture `then`, if any, must be clear as well.
    """
    for _ in range(DRAWS):
        target = draw()
        paths = [straight_path(begin, target), *([] if then is None else [straight_path(target, then)])]
        if clearance.is_clear(np.concatenate(paths), RESERVE):
            return target
    what = f"random moves of robot '{robot.name}', drawn {DRAWS} times,"
    raise clearance.error(what, straight_path(begin, target))
