"""What motions keep clear of: the plane that an arm is mounted on, z = 0 of its base however it stands, and the arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.model.skeleton import Tool
from jointwise.simulation.references.body import APART, Body, Nearest
from jointwise.simulation.references.trajectory import States, Trajectory
from jointwise.spatial import Array

LOOKED_AT = 100.0
"""Rate (Hz) at which motions are looked at."""
WAY_POINTS = 101
"""Postures looked at on a straight way in joint space."""
PASSED = 2000
"""Positions looked at of a joint that moves alone."""


class ClearanceError(ModelError):
    """A motion is not clear."""


class PlaneError(ClearanceError):
    """A motion comes lower than it may: to the height `lowest`, m above the mounting plane."""

    def __init__(self, what: str, lowest: float, clearance: float) -> None:
        """Say what, how low it comes and how low it may."""
        super().__init__(
            f"{what} must stay {clearance:.3g} m above the mounting plane (z = 0 of the base). It "
            f"{told_height(lowest)}: choose a smaller clearance, below 0 for an arm on a pedestal."
        )
        self.lowest = lowest
        self.clearance = clearance


class LinksError(ClearanceError):
    """Two parts of an arm come nearer to each other than they may."""

    def __init__(self, what: str, nearest: Nearest, time: float | None = None) -> None:
        """Say what, which parts, how near they come and, where it is known, when (s)."""
        when = "" if time is None else f", {time:.2f} s"
        super().__init__(
            f"{what} must keep the links {APART:g} m apart. It {told_gap(nearest)}{when}: choose another motion, "
            "another seed or a shorter tool."
        )
        self.nearest = nearest
        self.time = time


def told_height(height: float, plane: str = "it") -> str:
    """Return how a height (m) over the mounting plane is told."""
    return f"reaches {-height:.2f} m below {plane}" if height < 0.0 else f"comes down to {height:.2f} m above {plane}"


def told_gap(nearest: Nearest) -> str:
    """Return how it is told that a motion brings two parts near to each other."""
    first, second = nearest.parts
    where = f"at q = [{', '.join(f'{value + 0.0:.2f}' for value in nearest.posture)}]"
    if nearest.distance < 0.0:
        return f"drives {first} into {second} {where}"
    return f"brings {first} and {second} within {nearest.distance:.3f} m {where}"


@dataclass(frozen=True)
class Clearance:
    """What a `body` keeps: `plane` (m) above the mounting plane, -inf if that does not matter; links `APART`."""

    body: Body
    plane: float

    def __post_init__(self) -> None:
        """Refuse a height that is no number."""
        if np.isnan(self.plane) or self.plane == np.inf:
            raise ModelError(f"clearance must be a number of m. Got {self.plane} instead.")

    def clear(self, q: Array, reserve: float = 0.0) -> NDArray[np.bool_]:
        """Tell of each posture of q (samples, joints) whether it is clear, with a `reserve` (m)."""
        result: NDArray[np.bool_] = self.body.heights(q) >= self.plane + reserve
        result[result] = self.body.distances(q[result]) >= APART + reserve
        return result

    def is_clear(self, q: Array, reserve: float = 0.0) -> bool:
        """Tell whether all postures of q (samples, joints) are clear, with a `reserve` (m)."""
        if float(self.body.heights(q).min()) < self.plane + reserve:
            return False
        return float(self.body.distances(q).min()) >= APART + reserve

    def highest(self, q: Array) -> Array:
        """Return the posture (1, joints) of q (samples, joints) that stands highest above the plane."""
        best = int(np.argmax(self.body.heights(q)))
        return q[best : best + 1]

    def refusal(self, what: str, q: Array, motion: States | None = None) -> ClearanceError:
        """Return the error that says what is wrong with q (samples, joints), and when, where it is of a `motion`.

        It tells of what is farther from being clear, plane or links.
        """
        lowest, nearest = float(self.body.heights(q).min()), self.body.nearest(q)
        if nearest is None or lowest - self.plane < nearest.distance - APART:
            return PlaneError(what, lowest, self.plane)
        return LinksError(what, nearest, None if motion is None else _time(motion, nearest.posture))

    def refuse_unclear(self, motion: Trajectory, what: str = "the motion") -> None:
        """Raise `ClearanceError` if a motion is not clear."""
        states = motion.sample(LOOKED_AT)
        rows = passed(states.q)
        if not self.is_clear(rows):
            raise self.refusal(what, rows, states)


def _time(motion: States, posture: Array) -> float:
    """Return the time (s) at which a motion first comes nearest to a posture (joints,)."""
    return float(motion.t[int(np.argmin(np.abs(motion.q - posture).max(axis=1)))])


def lowest_height(robot: Robot, q: Array, tool: Tool | None = None) -> float:
    """Return the lowest height, m above the mounting plane, of an arm along the positions q (samples, joints)."""
    return float(Body(robot, tool).heights(q).min())


def farthest_reach(robot: Robot, q: Array, tool: Tool | None = None) -> float:
    """Return the largest distance (m) of an arm from the z axis of the base along q (samples, joints)."""
    return Body(robot, tool).reach(q)


def nearest_links(robot: Robot, q: Array, tool: Tool | None = None) -> Nearest | None:
    """Return where two parts of an arm come nearest along q (samples, joints); None if it cannot meet itself."""
    return Body(robot, tool).nearest(q)


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
