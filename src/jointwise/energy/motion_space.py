"""Motions of a minimum-energy search: quintic splines from rest to rest, along a path or free."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jointwise.design.bspline import DEGREE, SplineMotion
from jointwise.design.trajectory import Differentiable
from jointwise.spatial import Array

NODES = 6
"""Gauss points per span: the power of a motion is smooth between knots but for kinks at rest."""
MID = 0.5
"""Middle of the unit interval."""


@dataclass(frozen=True, eq=False)
class UnitSpline:
    """Quintic splines over u in [0, 1] that begin and end at rest (first and second derivative 0).

    They take known values at 0, at the inner points `passes`, and at 1; the remaining freedom are variables z.

    Attributes:
        spans: Number of spans between knots.
        passes: Inner points u at which the values are known.
        clustered: Whether knots are denser towards the ends.
    """

    spans: int
    passes: tuple[float, ...] = ()
    clustered: bool = False

    @cached_property
    def knots(self) -> Array:
        """Knots (spans + 11,); denser towards the ends where `clustered`."""
        inner = np.linspace(0.0, 1.0, self.spans + 1)
        if self.clustered:
            inner = 0.2 * inner + 0.4 * (1.0 - np.cos(np.pi * inner))
        return np.concatenate([np.zeros(DEGREE), inner, np.ones(DEGREE)])

    @cached_property
    def quadrature(self) -> tuple[Array, Array]:
        """Points u (samples,) and weights (samples,) of the integral over u."""
        x, w = np.polynomial.legendre.leggauss(NODES)
        edges = self.knots[DEGREE:-DEGREE]
        low, width = edges[:-1, None], np.diff(edges)[:, None]
        return (low + width * MID * (1.0 + x)).ravel(), (width * MID * w).ravel()

    def basis(self, u: Array, order: int) -> Array:
        """Return the derivative of an order of all basis functions at u (samples,), (samples, points)."""
        from scipy.interpolate import BSpline

        result: Array = BSpline(self.knots, np.eye(self.spans + DEGREE), DEGREE)(u, nu=order)
        return result

    @cached_property
    def sampled(self) -> Array:
        """Basis functions and two derivatives at the points of the quadrature, (3, samples, points)."""
        return np.stack([self.basis(self.quadrature[0], order) for order in range(3)])

    @cached_property
    def _solution(self) -> tuple[Array, Array]:
        """Control points per given value (points, 2 + passes), and directions without effect on them (points, z).

        The directions are scaled so that the integral of the squared second derivative is |z|²: a search over z is well
        conditioned, since accelerations cost most.
        """
        from scipy.linalg import cholesky, null_space, solve_triangular

        ends, places = np.array([0.0, 1.0]), np.array([0.0, *self.passes, 1.0])
        rows = np.vstack([self.basis(places, 0), self.basis(ends, 1), self.basis(ends, 2)])
        free = null_space(rows)
        bend = self.sampled[2] @ free
        upper = cholesky(bend.T @ (self.quadrature[1][:, None] * bend))
        particular: Array = np.asarray(np.linalg.pinv(rows)[:, : len(places)], dtype=float)
        return particular, solve_triangular(upper.T, free.T, lower=True).T

    @property
    def freedom(self) -> int:
        """Number of variables per coordinate."""
        return int(self._solution[1].shape[1])

    def control(self, values: Array, z: Array) -> Array:
        """Return control points (points, k) of given values (2 + passes, k) and variables (z, k)."""
        particular, free = self._solution
        result: Array = particular @ values + free @ z
        return result

    def reduced(self, gradient: Array) -> Array:
        """Return the gradient with respect to z (z, k) of one with respect to control points (points, k)."""
        result: Array = self._solution[1].T @ gradient
        return result

    def fitted(self, values: Array, curve: Array) -> Array:
        """Return z (z, k) of the spline nearest to a curve (samples, k) at the points of the quadrature."""
        particular, free = self._solution
        basis, root = self.sampled[0], np.sqrt(self.quadrature[1])[:, None]
        result: Array = np.linalg.lstsq(
            root * (basis @ free), root * (curve - basis @ particular @ values), rcond=None
        )[0]
        return result


class Leg(ABC):
    """A part of a motion from rest to rest as a function of variables and of u in [0, 1]."""

    spline: UnitSpline

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of variables."""

    @abstractmethod
    def motion(self, z: Array) -> tuple[Array, Array, Array]:
        """Return q, dq/du, d²q/du² (samples, joints) at the points of the quadrature."""

    @abstractmethod
    def gradient(self, z: Array, by_q: Array, by_first: Array, by_second: Array) -> Array:
        """Return the gradient (size,) of a function with derivatives (samples, joints) to q, dq/du, d²q/du²."""

    @abstractmethod
    def start(self, curve: Array) -> Array:
        """Return the variables (size,) nearest to path parameters or positions at the points of the quadrature."""

    @abstractmethod
    def trajectory(self, z: Array, duration: float) -> SplineMotion:
        """Return the leg as a motion of a duration (s)."""


@dataclass(frozen=True, eq=False)
class FreeLeg(Leg):
    """All joints free between `points` (2 + passes, joints): the spline of every joint has variables of its own."""

    spline: UnitSpline
    points: Array

    @property
    def size(self) -> int:
        """Number of variables."""
        return self.spline.freedom * int(self.points.shape[1])

    def _control(self, z: Array) -> Array:
        return self.spline.control(self.points, z.reshape(self.spline.freedom, -1))

    def motion(self, z: Array) -> tuple[Array, Array, Array]:
        """Return q and its derivatives by u (samples, joints)."""
        q, first, second = self.spline.sampled @ self._control(z)
        return q, first, second

    def gradient(self, z: Array, by_q: Array, by_first: Array, by_second: Array) -> Array:
        """Return the gradient with respect to the variables."""
        by_control = sum(
            basis.T @ each for basis, each in zip(self.spline.sampled, (by_q, by_first, by_second), strict=True)
        )
        return self.spline.reduced(np.asarray(by_control)).ravel()

    def start(self, curve: Array) -> Array:
        """Return the variables nearest to positions (samples, joints)."""
        return self.spline.fitted(self.points, curve).ravel()

    def trajectory(self, z: Array, duration: float) -> SplineMotion:
        """Return the spline."""
        control = self._control(z)
        center = self.points[0]
        return SplineMotion(duration, duration * self.spline.knots, center, control - center)


@dataclass(frozen=True, eq=False)
class PathLeg(Leg):
    """A known path q(s), s from 0 to 1, along which s(u) is a spline.

    Attributes:
        spline: Splines s(u).
        path: q(s), with a `duration` of 1.
        ends: s at both ends, (2, 1).
    """

    spline: UnitSpline
    path: Differentiable
    ends: Array = field(default_factory=lambda: np.array([[0.0], [1.0]]))

    @property
    def size(self) -> int:
        """Number of variables."""
        return self.spline.freedom

    def _parameter(self, z: Array) -> tuple[Array, Array, Array]:
        s, first, second = self.spline.sampled @ self.spline.control(self.ends, z[:, None])
        return s[:, 0], first, second

    def motion(self, z: Array) -> tuple[Array, Array, Array]:
        """Return q(s) and its derivatives by u: q' s', q'' s'² + q' s''."""
        s, first, second = self._parameter(z)
        q, tangent, bend = (self.path.curve(s, order) for order in range(3))
        return q, tangent * first, bend * first**2 + tangent * second

    def gradient(self, z: Array, by_q: Array, by_first: Array, by_second: Array) -> Array:
        """Return the gradient with respect to the variables."""
        s, first, second = self._parameter(z)
        tangent, bend, third = (self.path.curve(s, order) for order in (1, 2, 3))
        by_s = by_q * tangent + by_first * bend * first + by_second * (third * first**2 + bend * second)
        by_speed = by_first * tangent + 2.0 * by_second * bend * first
        parts = (by_s, by_speed, by_second * tangent)
        by_control = sum(basis.T @ each.sum(axis=1) for basis, each in zip(self.spline.sampled, parts, strict=True))
        return self.spline.reduced(np.asarray(by_control))

    def start(self, curve: Array) -> Array:
        """Return the variables nearest to path parameters (samples,)."""
        return self.spline.fitted(self.ends, curve[:, None])[:, 0]

    def trajectory(self, z: Array, duration: float) -> SplineMotion:
        """Return the motion along the path; a straight one is a spline, others are interpolated at 1 kHz."""
        control = self.spline.control(self.ends, z[:, None])
        if isinstance(self.path, StraightPath):
            return SplineMotion(duration, duration * self.spline.knots, self.path.begin, control * self.path.step)
        return _interpolated(self.path, self.spline, control[:, 0], duration)


def _interpolated(path: Differentiable, spline: UnitSpline, control: Array, duration: float) -> SplineMotion:
    """Return the quintic spline through q(s(t)) at 1 kHz, from rest to rest."""
    from scipy.interpolate import make_interp_spline

    t = np.linspace(0.0, duration, max(2 * DEGREE, round(1000.0 * duration)) + 1)
    q = path.curve(np.clip(spline.basis(t / duration, 0) @ control, 0.0, 1.0), 0)
    still = [(1, np.zeros(q.shape[1])), (2, np.zeros(q.shape[1]))]
    made = make_interp_spline(t, q - q[0], k=DEGREE, bc_type=(still, still))
    return SplineMotion(duration, made.t, q[0], made.c)


@dataclass(frozen=True, eq=False)
class StraightPath(Differentiable):
    """``q(s) = begin + s step``, s from 0 to 1.

    Attributes:
        begin: First position, (joints,), rad or m.
        step: Last position minus the first, (joints,), rad or m.
        duration: Largest s.
        smooth: Whether the derivatives are continuous.
    """

    begin: Array
    step: Array
    duration: float = 1.0
    smooth: bool = True

    @property
    def joints(self) -> int:
        """Number of joints."""
        return len(self.begin)

    def curve(self, t: Array, order: int) -> Array:
        """Return the derivative of an order, (samples, joints)."""
        if order == 0:
            return self.begin + np.multiply.outer(t, self.step)
        return np.broadcast_to(self.step if order == 1 else 0.0 * self.step, (len(t), self.joints)).copy()


ARC_POINTS = 201
"""Points of a path at equal distances, through which its spline goes."""
MOVING = 1e-6
"""Speed (rad/s, m/s) below which a motion stands still."""
STRAIGHT = 1e-6
"""Distance (rad, m) of a path from its chord below which it is straight."""


@dataclass(frozen=True, eq=False)
class ArcPath(Differentiable):
    """A curved path q(s) as a spline of its relative length in joint space, s from 0 to 1.

    Attributes:
        spline: q (rad or m) and its derivatives as a function of s.
        duration: Largest s.
        smooth: Whether the derivatives are continuous.
    """

    spline: Any
    duration: float = 1.0
    smooth: bool = True

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.spline.c.shape[1])

    def curve(self, t: Array, order: int) -> Array:
        """Return the derivative of an order, (samples, joints)."""
        return np.asarray(self.spline(np.clip(t, 0.0, 1.0), nu=order), dtype=float)


def path_of(q: Array) -> StraightPath | ArcPath | None:
    """Return the path through positions q (samples, joints) that do not stop in between; None without a motion."""
    from scipy.interpolate import make_interp_spline

    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))])
    if length[-1] == 0.0:
        return None
    step = q[-1] - q[0]
    along = length / length[-1]
    if np.abs(q - q[0] - np.multiply.outer(along, step)).max() < STRAIGHT:
        return StraightPath(q[0], step)
    kept = np.concatenate([[True], np.diff(along) > 0.0])
    s = np.linspace(0.0, 1.0, ARC_POINTS)
    rows = np.column_stack([np.interp(s, along[kept], column[kept]) for column in q.T])
    return ArcPath(make_interp_spline(s, rows, k=DEGREE))


def paths_of(motion: Differentiable, rate: float = 1000.0) -> list[StraightPath | ArcPath]:
    """Return the paths of a motion between its standstills."""
    states = motion.sample(rate)
    moving = np.abs(states.qd).max(axis=1) > MOVING
    edges = np.flatnonzero(np.diff(np.concatenate([[False], moving, [False]]).astype(int)))
    parts = [states.q[max(0, begin - 1) : end + 1] for begin, end in edges.reshape(-1, 2)]
    return [path for part in parts if (path := path_of(part)) is not None]
