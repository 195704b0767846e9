"""Collision geometry of an arm: capsules along its links, their distances from each other and the mounting plane.

A capsule is the set of points within a radius of a line segment. Pairs that are always close are not checked:
neighbours meet at the joint between them, and so do others around short links (a wrist). An upright arm is not folded,
so a pair that is not apart in that posture is close by design; all other pairs are checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked_fields
from jointwise.description.robot import Robot
from jointwise.design.limits import motion_limits, upright_posture
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
