"""Quintic B-splines between random control points, from rest to rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, factorial
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.description.robot import Robot, check_joint
from jointwise.design.limits import motion_limits
from jointwise.design.trajectory import Differentiable, check_positive, random_numbers
from jointwise.spatial import Array

DEGREE = 5
"""Quintic: snap is continuous."""
POINTS_PER_SPAN = 40
"""Points between two knots at which a spline is sampled to find its extremes (within 0.1 %)."""


@dataclass(frozen=True)
class SplineMotion(Differentiable):
    """``q(t) = center + Σ_i control[i] B_i(t)`` with quintic B-splines.

    q stays between the least and the largest control point.

    Attributes:
        duration: Duration, s.
        knots: Knots from 0 to `duration`, (points + 6,), s.
        center: Position to which the control points are relative, (joints,), rad or m.
        control: Control points, (points, joints), rad or m.
        smooth: Whether acceleration, jerk and snap are continuous.
    """

    duration: float
    knots: Array
    center: Array
    control: Array
    smooth: bool = True

    @classmethod
    def uniform(cls, duration: float, center: Array, control: Array) -> SplineMotion:
        """Return the spline on equally spaced knots."""
        inner = np.linspace(0.0, duration, len(control) - DEGREE + 1)
        return cls(duration, np.pad(inner, DEGREE, mode="edge"), center, control)

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.control.shape[1])

    @cached_property
    def _spline(self) -> Any:
        from scipy.interpolate import BSpline

        return BSpline(self.knots, self.control, DEGREE)

    def about(self, center: Array, size: float) -> SplineMotion:
        """Return the spline about another centre (joints,), `size` times as large."""
        return replace(self, center=center, control=size * self.control)

    def curve(self, t: Array, order: int) -> Array:
        """Return the derivative of an order within [0, duration], (samples, joints)."""
        values = np.asarray(self._spline(t, nu=order), dtype=float)
        return values if order else self.center + values


def uniform_weights() -> Array:
    """Return the weights of the six control points of a span as polynomials of the local time u, 0 to 1.

    Row i holds the ascending coefficients of the weight of control point i, on equally spaced knots:
    ``1/5! Σ_s (-1)^s C(6, s) (u + 5 - i - s)^5`` over s up to 5 - i.
    """
    powers = [np.polynomial.Polynomial([float(shift), 1.0]) ** DEGREE for shift in range(DEGREE + 1)]
    rows = [
        sum((-1) ** s * comb(DEGREE + 1, s) * powers[DEGREE - i - s].coef for s in range(DEGREE - i + 1))
        for i in range(DEGREE + 1)
    ]
    return np.array(rows) / factorial(DEGREE)


def span_count(duration: float, spacing: float) -> int:
    """Return the number of intervals between knots about `spacing` (s) apart."""
    return max(round(duration / spacing), 2 * DEGREE)


@checked
def bspline_trajectory(
    robot: Robot,
    duration: float = 60.0,
    seed: int = 0,
    *,
    joint: int | None = None,
    spacing: float = 1.0,
    amplitude: float = 1.5,
    speed_fraction: float = 0.6,
) -> SplineMotion:
    """Return a random quintic B-spline of all joints (or one, 0-based), within their limits, from rest to rest.

    Knots lie about `spacing` (s) apart. The amplitude of every joint is the largest within `amplitude` (rad, m) about
    its centre, its position limits, `speed_fraction` of its speed limit and its acceleration limit. Speed,
    acceleration, jerk and snap vanish at both ends.
    """
    check_positive(duration=duration, spacing=spacing, amplitude=amplitude, speed_fraction=speed_fraction)
    rng, limits = random_numbers(seed), motion_limits(robot, speed_fraction)
    spans = span_count(duration, spacing)
    control = rng.uniform(-1.0, 1.0, (spans + DEGREE, robot.dof))
    control[:DEGREE] = control[-DEGREE:] = 0.0
    if joint is not None:
        control[:, np.arange(robot.dof) != check_joint(robot, joint)] = 0.0
    shape = SplineMotion.uniform(duration, np.zeros(robot.dof), control)
    states = shape.sample(POINTS_PER_SPAN * spans / duration)
    scaled = control * limits.largest_scale(states, np.ptp(control, axis=0), amplitude)
    center = limits.draw_center(rng, -scaled.min(axis=0), scaled.max(axis=0))
    return replace(shape, center=center, control=scaled)
