"""Clearance of a motion: distance from the mounting plane (z = 0 of the base frame) and between the links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked, checked_fields
from jointwise.design.body import APART, Body, Nearest
from jointwise.design.trajectory import States, Trajectory
from jointwise.errors import ModelError, ShapeError
from jointwise.spatial import Array

CLEARANCE = 0.05
"""Height (m) above the mounting plane that planned motions keep by default."""
CHECK_RATE = 100.0
"""Rate (Hz) at which the clearance of motions is checked."""
PATH_POINTS = 101
"""Postures checked on a straight path in joint space."""
SINGLE_JOINT_POSITIONS = 2000
"""Positions checked of a joint that moves alone."""


class ClearanceError(ModelError):
    """A motion does not keep its clearance."""


class PlaneError(ClearanceError):
    """A motion comes too close to the mounting plane: down to the height `lowest`, m."""

    def __init__(self, what: str, lowest: float, clearance: float) -> None:
        """Describe the motion, its height and the allowed height."""
        super().__init__(
            f"{what} must stay {clearance:.3g} m above the mounting plane (z = 0 of the base). It "
            f"{describe_height(lowest)}: choose a smaller clearance, below 0 for an arm on a pedestal."
        )
        self.lowest = lowest
        self.clearance = clearance


class LinksError(ClearanceError):
    """Two parts of an arm come too close to each other."""

    def __init__(self, what: str, nearest: Nearest, time: float | None = None) -> None:
        """Describe the motion, the parts, their distance and the time (s) if known."""
        when = "" if time is None else f", {time:.2f} s"
        super().__init__(
            f"{what} must keep the links {APART:g} m apart. It {describe_gap(nearest)}{when}: choose another motion, "
            "another seed or a shorter tool."
        )
        self.nearest = nearest
        self.time = time


def describe_height(height: float, plane: str = "it") -> str:
    """Return a phrase for a height (m) above the mounting plane."""
    return f"reaches {-height:.2f} m below {plane}" if height < 0.0 else f"comes down to {height:.2f} m above {plane}"


def describe_gap(nearest: Nearest) -> str:
    """Return a phrase for two parts that a motion brings close to each other."""
    first, second = nearest.parts
    where = f"at q = [{', '.join(f'{value + 0.0:.2f}' for value in nearest.posture)}]"
    if nearest.distance < 0.0:
        return f"drives {first} into {second} {where}"
    return f"brings {first} and {second} within {nearest.distance:.3f} m {where}"


@checked_fields
@dataclass(frozen=True)
class Clearance:
    """Distances that a motion must keep; links stay `APART`.

    Attributes:
        body: The robot and its tool.
        plane: Least height above the mounting plane, m; -inf to ignore it.
    """

    body: Body
    plane: float

    def __post_init__(self) -> None:
        """Reject a height that is not a number."""
        if np.isnan(self.plane) or self.plane == np.inf:
            raise ModelError(f"clearance must be a number of m. Got {self.plane} instead.")

    def clear(self, q: Array, reserve: float = 0.0) -> NDArray[np.bool_]:
        """Return for each posture of q (samples, joints) whether it is clear, with a `reserve` (m)."""
        result: NDArray[np.bool_] = self.body.heights(q) >= self.plane + reserve
        result[result] = self.body.distances(q[result]) >= APART + reserve
        return result

    def is_clear(self, q: Array, reserve: float = 0.0) -> bool:
        """Return whether all postures of q (samples, joints) are clear, with a `reserve` (m)."""
        if float(self.body.heights(q).min()) < self.plane + reserve:
            return False
        return float(self.body.distances(q).min()) >= APART + reserve

    def highest(self, q: Array) -> Array:
        """Return the posture (1, joints) of q (samples, joints) that stands highest above the plane."""
        best = int(np.argmax(self.body.heights(q)))
        return q[best : best + 1]

    def error(self, what: str, q: Array, motion: States | None = None) -> ClearanceError:
        """Return the error for postures q (samples, joints); with their `motion` it includes the time.

        It describes the larger violation, that of the plane or that of the links.
        """
        lowest, nearest = float(self.body.heights(q).min()), self.body.nearest(q)
        if nearest is None or lowest - self.plane < nearest.distance - APART:
            return PlaneError(what, lowest, self.plane)
        return LinksError(what, nearest, None if motion is None else _time(motion, nearest.posture))

    def check(self, motion: Trajectory, what: str = "the motion") -> None:
        """Raise `ClearanceError` if a motion does not keep the clearance."""
        states = motion.sample(CHECK_RATE)
        rows = visited_postures(states.q)
        if not self.is_clear(rows):
            raise self.error(what, rows, states)


def _time(motion: States, posture: Array) -> float:
    """Return the time (s) at which a motion first comes nearest to a posture (joints,)."""
    return float(motion.t[int(np.argmin(np.abs(motion.q - posture).max(axis=1)))])


@checked
def straight_path(begin: Array, end: Array) -> Array:
    """Return postures (points, joints) on the straight path in joint space between two."""
    if np.ndim(begin) != 1 or np.shape(begin) != np.shape(end):
        raise ShapeError(f"begin and end must have shape (joints,). Got {np.shape(begin)} and {np.shape(end)} instead.")
    return np.linspace(begin, end, PATH_POINTS)


def visited_postures(q: Array) -> Array:
    """Return few postures (points, joints) that represent a motion q (samples, joints) for a clearance check.

    A joint that moves alone visits every position between its extremes, however often; other motions are unchanged.
    """
    moving = np.flatnonzero(np.ptp(q, axis=0) > 0.0)
    if len(moving) != 1 or len(q) <= SINGLE_JOINT_POSITIONS:
        return q[:1] if not len(moving) else q
    rows = np.repeat(q[:1], SINGLE_JOINT_POSITIONS, axis=0)
    positions = q[:, moving[0]]
    rows[:, moving[0]] = np.linspace(positions.min(), positions.max(), SINGLE_JOINT_POSITIONS)
    return rows
