"""Clearance of a motion: distance from the mounting plane (z = 0 of the base frame) and between the links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked, checked_fields
from jointwise.call_settings import ClearanceSettings
from jointwise.description.robot import Robot
from jointwise.design.limits import motion_limits, upright_posture
from jointwise.design.trajectory import States, Trajectory, random_numbers
from jointwise.errors import ModelError, ShapeError
from jointwise.model.skeleton import Skeleton, Tool
from jointwise.spatial import Array, segment_distance

APART = 0.02
"""Smallest allowed distance (m) between links."""
RESERVE = 0.005
"""Additional distance (m) kept by motions that are chosen from samples: covers the error between the samples."""
POSTURES = 64
"""Random postures that show which corners can change their height."""
ROWS = 2000
"""Postures in memory at a time."""
SHORT = 1e-6
"""Length (m) below which a capsule is degenerate and ignored."""


@dataclass(frozen=True)
class Nearest:
    """The closest approach of two parts of an arm along some postures.

    Attributes:
        distance: Their distance, m.
        parts: Names of the two parts.
        posture: Posture at which it occurs, (joints,), rad or m.
    """

    distance: float
    parts: tuple[str, str]
    posture: Array


@checked_fields
@dataclass(frozen=True)
class Body:
    """A robot and its tool as capsules; other objects in the cell are not modelled."""

    robot: Robot
    tool: Tool | None = None

    @cached_property
    def skeleton(self) -> Skeleton:
        """Middle lines and radii of the capsules."""
        return Skeleton(self.robot, self.tool)

    @property
    def radii(self) -> Array:
        """Radii (pieces,), m."""
        return self.skeleton.radii

    def heights(self, q: Array) -> Array:
        """Return the height (samples,), m above z = 0 of the base, of the lowest point for q (samples, joints).

        Ends of capsules whose height no joint can change are ignored; infinite if there are no others.
        """
        return np.concatenate([self._lowest(rows) for rows in self._corners(q)])

    def reach(self, q: Array) -> float:
        """Return the largest distance (m) of the body from the z axis of the base along q (samples, joints)."""
        whole = [np.linalg.norm(rows[:, self._ends, :2], axis=2) + self._thick for rows in self._corners(q)]
        return max(float(rows.max(initial=0.0)) for rows in whole)

    def distances(self, q: Array) -> Array:
        """Return the least distance of two parts of the arm, (samples,), m; below 0 they overlap.

        Args:
            q: Positions, (samples, joints), rad or m.
        """
        return np.concatenate([self._gaps(rows).min(axis=1, initial=np.inf) for rows in self._corners(q)])

    def nearest(self, q: Array) -> Nearest | None:
        """Return where two parts come nearest along q (samples, joints); None if no two parts can collide."""
        if not len(self.pairs):
            return None
        sample = int(np.argmin(self.distances(q)))
        gaps = self._gaps(self.skeleton.corners(q[sample : sample + 1]))[0]
        first, second = self.pairs[int(np.argmin(gaps))]
        return Nearest(float(gaps.min()), (self.name_of(first), self.name_of(second)), q[sample])

    def name_of(self, piece: int) -> str:
        """Return the name of a piece."""
        if piece == len(self.radii) - 1:
            return "the tool"
        link = min((piece + 1) // 2, self.robot.dof)
        return "the base" if link == 0 else f"link {link}"

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Pairs of capsules (pairs, 2) whose distance is checked."""
        pieces = self.pieces
        every = np.array([(a, b) for k, a in enumerate(pieces) for b in pieces[k + 2 :]], dtype=np.int64).reshape(-1, 2)
        bare = Skeleton(self.robot)  # without the tool, whose length must not decide which pairs are checked
        upright = bare.corners(upright_posture(self.robot)[None])
        gaps = self._separation(upright, every)[0] - self._sum(every)
        counted: NDArray[np.int64] = every[gaps >= APART + RESERVE]
        return counted

    def _corners(self, q: Array) -> list[Array]:
        return [self.skeleton.corners(q[k : k + ROWS]) for k in range(0, max(len(q), 1), ROWS)]

    def _gaps(self, rows: Array) -> Array:
        """Return the distances (samples, pairs), m, of the pairs that are checked."""
        return self._separation(rows, self.pairs) - self._sum(self.pairs)

    def _sum(self, pairs: NDArray[np.int64]) -> Array:
        """Return the sums (pairs,), m, of the radii of pairs."""
        total: Array = self.radii[pairs].sum(axis=1)
        return total

    @staticmethod
    def _separation(rows: Array, pairs: NDArray[np.int64]) -> Array:
        """Return the distances (samples, pairs), m, of the middle lines of pairs of pieces."""
        first, second = pairs.T
        return segment_distance(rows[:, first], rows[:, first + 1], rows[:, second], rows[:, second + 1])

    @cached_property
    def _random(self) -> Array:
        """Corners in random postures."""
        limits = motion_limits(self.robot, 1.0)
        q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (POSTURES, self.robot.dof))
        return self.skeleton.corners(q)

    @cached_property
    def pieces(self) -> NDArray[np.int64]:
        """Indices of the capsules that are not degenerate in every posture, with the tool if there is one."""
        lengths = np.linalg.norm(np.diff(self._random, axis=1), axis=2).max(axis=0)
        lengths[-1] = 0.0 if self.tool is None else np.inf
        pieces: NDArray[np.int64] = np.flatnonzero(lengths > SHORT)
        return pieces

    @cached_property
    def _rising(self) -> NDArray[np.bool_]:
        """Whether the joints can change the height of the corners, (corners,)."""
        rises: NDArray[np.bool_] = np.ptp(self._random[:, :, 2], axis=0) > SHORT
        return rises

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """Indices of the corners (ends,) at both ends of all capsules."""
        return np.stack([self.pieces, self.pieces + 1], axis=1).ravel()

    @cached_property
    def _thick(self) -> Array:
        """Radii (ends,), m, at these corners."""
        return np.repeat(self.radii[self.pieces], 2)

    def _lowest(self, rows: Array) -> Array:
        rising = self._rising[self._ends]
        lowest: Array = (rows[:, self._ends[rising], 2] - self._thick[rising]).min(axis=1, initial=np.inf)
        return lowest


CLEARANCE = ClearanceSettings.clearance
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


DRAWS = 50
"""Centres or points drawn before a motion is rejected."""
SPREAD = 0.6
"""Largest distance (rad, m) of a drawn centre from the upright posture."""
SIZES = np.linspace(0.2, 1.0, 17)
"""Scales of a motion that are tested, from a fifth to the full size."""
PLACEMENT_RATE = 40.0
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
    offsets = motion.position(np.arange(0.0, motion.duration, 1.0 / PLACEMENT_RATE)) - motion.center
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
