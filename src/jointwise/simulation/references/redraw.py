"""Random motions drawn again, about other centres and smaller where need be, until they are clear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import numpy as np

from jointwise.description.robot import Robot
from jointwise.simulation.references.body import RESERVE
from jointwise.simulation.references.clearance import Clearance, straight_way
from jointwise.simulation.references.room import room_of
from jointwise.simulation.references.stance import upright_posture
from jointwise.spatial import Array

DRAWS = 50
"""Centres or points tried before a motion is refused."""
SPREAD = 0.6
"""Farthest that centres are drawn from the upright posture, rad or m."""
SIZES = np.linspace(0.2, 1.0, 17)
"""Parts of its size that a motion may be made smaller to."""
LOOKED_AT = 40.0
"""Rate (Hz) at which a draw is looked at: 1 mm of a fast arm, less than the reserve."""


class Centred(Protocol):
    """A motion about a centre (joints,)."""

    @property
    def duration(self) -> float:
        """Time that it takes, s."""

    @property
    def center(self) -> Array:
        """Middle of the motion (joints,)."""

    def about(self, center: Array, size: float) -> Self:
        """Return the motion about another centre (joints,), `size` times as large."""

    def position(self, t: Array) -> Array:
        """Return q (samples, joints)."""


M = TypeVar("M", bound=Centred)


def drawn_clear(robot: Robot, motion: M, seed: int, clearance: Clearance) -> M:
    """Return a motion, its centre drawn again until it is clear.

    The first draw is the motion itself, the others lie about the upright posture. If none is clear in full size, the
    largest is taken; one that had to be smaller than a fifth is refused.
    """
    ways = motion.position(np.arange(0.0, motion.duration, 1.0 / LOOKED_AT)) - motion.center
    best, place = -1, motion.center
    for center in _centres(robot, motion.center, ways, seed):
        size = _largest(center, ways, best, clearance)
        if size > best:
            best, place = size, center
        if best == len(SIZES) - 1:
            break
    if best < 0:
        what = f"random motions of robot '{robot.name}', drawn {DRAWS} times,"
        raise clearance.refusal(what, place + SIZES[0] * ways)
    return motion.about(place, float(SIZES[best]))


def _centres(robot: Robot, first: Array, ways: Array, seed: int) -> list[Array]:
    """Return the centres (joints,) to try: the drawn one, others about the upright posture, that."""
    rng, room, upright = np.random.default_rng([seed, 1]), room_of(robot, 1.0), upright_posture(robot)
    low, high = room.lower - ways.min(axis=0), room.upper - ways.max(axis=0)
    others = upright + rng.uniform(-SPREAD, SPREAD, (DRAWS - 2, robot.dof))
    return [first, *(np.clip(row, np.minimum(low, high), high) for row in np.vstack([others, upright]))]


def _largest(center: Array, ways: Array, best: int, clearance: Clearance) -> int:
    """Return the number of the largest size that is clear, or `best` if it is not larger than that."""
    while best + 1 < len(SIZES) and clearance.is_clear(center + SIZES[best + 1] * ways, RESERVE):
        best += 1
    return best


def drawn_way(
    robot: Robot, begin: Array, draw: Callable[[], Array], clearance: Clearance, then: Array | None = None
) -> Array:
    """Return the first drawn posture (joints,) that a clear straight way in joint space leads to from `begin`.

    The way on to the posture `then` must be clear as well, where there is one.
    """
    for _ in range(DRAWS):
        target = draw()
        ways = [straight_way(begin, target), *([] if then is None else [straight_way(target, then)])]
        if clearance.is_clear(np.concatenate(ways), RESERVE):
            return target
    what = f"random moves of robot '{robot.name}', drawn {DRAWS} times,"
    raise clearance.refusal(what, straight_way(begin, target))
