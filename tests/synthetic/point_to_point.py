"""Point-to-point moves with stops between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.description import Robot
from jointwise.design import States, Trajectory
from jointwise.design.limits import MotionLimits, motion_limits
from jointwise.design.trajectory import DurationError, check_positive
from jointwise.errors import ModelError
from jointwise.spatial import Array

RAMP = 1.0 / 3.0
"""Share of a move in which it speeds up, and again in which it slows down."""


@dataclass(frozen=True)
class PointToPoint(Trajectory):
    """Synchronised moves of all joints: speed rises smoothly, stays, falls smoothly; rest before and after each.

    Move k goes from `points[k]` to `points[k + 1]` (moves + 1, joints), rad, begins at `starts[k]` and takes
    `lengths[k]` (moves,), s.
    """

    duration: float
    points: Array
    starts: Array
    lengths: Array

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.points.shape[1])

    def position(self, t: Array) -> Array:
        """Return q (samples, joints)."""
        return self.at(t).q

    def at(self, t: Array) -> States:
        """Return q = p_k + s(u) (p_{k+1} - p_k) and its derivatives, u = (t - start_k) / length_k in [0, 1]."""
        k = np.maximum(np.searchsorted(self.starts, t, side="right") - 1, 0)
        length = self.lengths[k]
        s, speed, acceleration = rounded_trapezoid(np.clip((t - self.starts[k]) / length, 0.0, 1.0))
        step = self.points[k + 1] - self.points[k]
        q = self.points[k] + s[:, None] * step
        return States(t, q, (speed / length)[:, None] * step, (acceleration / length**2)[:, None] * step)


def rounded_trapezoid(u: Array) -> tuple[Array, Array, Array]:
    """Return s(u) from 0 to 1 on [0, 1], s' and s'': s' is a trapezoid with cubic ramps S(x) = 3 x² - 2 x³.

    Peaks: s' = 1 / (1 - RAMP), s'' = 1.5 / (RAMP (1 - RAMP)). s'' is continuous and vanishes at both ends.
    """
    near = np.minimum(u, 1.0 - u)
    x = np.minimum(near / RAMP, 1.0)
    run = RAMP * (x**3 - 0.5 * x**4) + np.maximum(near - RAMP, 0.0)
    s = np.where(u < 0.5, run, 1.0 - RAMP - run)
    slope = np.where(u < 0.5, 6.0, -6.0) * x * (1.0 - x) / RAMP
    return s / (1.0 - RAMP), x**2 * (3.0 - 2.0 * x) / (1.0 - RAMP), slope / (1.0 - RAMP)


def point_to_point_trajectory(
    robot: Robot,
    duration: float,
    seed: int = 0,
    *,
    pauses: tuple[float, float] = (0.5, 2.0),
    amplitude: float = 1.5,
    speed_fraction: float = 0.6,
) -> PointToPoint:
    """Return moves between random points with standstills, as many as fit into `duration` (s).

    Points lie within `amplitude` (rad, m) of a random centre and within the position limits. A move at full speed
    brings its slowest joint to `speed_fraction` of the speed limit or to the acceleration limit; each is made at 40 to
    100 % of that speed. `pauses` (s) are the shortest and longest standstill.
    """
    check_positive(duration=duration, amplitude=amplitude, speed_fraction=speed_fraction)
    if not 0.0 <= pauses[0] <= pauses[1] < np.inf:
        raise ModelError(f"pauses must be a shortest and a longest time in s. Got {pauses} instead.")
    rng = np.random.default_rng(seed)
    limits = motion_limits(robot, speed_fraction)
    reach = np.minimum(amplitude, 0.5 * (limits.upper - limits.lower))
    return _moves(limits, reach, duration, pauses, rng)


def _moves(
    limits: MotionLimits, reach: Array, duration: float, pauses: tuple[float, float], rng: np.random.Generator
) -> PointToPoint:
    """Return random moves within `reach` (joints,) of a random centre that fill the duration."""
    center = limits.draw_center(rng, reach, reach)
    points: list[Array] = [center + rng.uniform(-reach, reach)]
    starts: list[float] = []
    lengths: list[float] = []
    clock = rng.uniform(*pauses)
    while True:
        target = center + rng.uniform(-reach, reach)
        length = _shortest_time(target - points[-1], limits) / rng.uniform(0.4, 1.0)
        if clock + length > duration:
            break
        points.append(target)
        starts.append(clock)
        lengths.append(length)
        clock += length + rng.uniform(*pauses)
    if not starts:
        raise DurationError("the first move", clock + length, duration)
    return PointToPoint(duration, np.array(points), np.array(starts), np.array(lengths))


def _shortest_time(step: Array, limits: MotionLimits) -> float:
    """Return the time (s) of a move by `step` (joints,) whose slowest joint just reaches its speed or acceleration."""
    distance = np.abs(step)
    by_speed = distance / ((1.0 - RAMP) * limits.velocity)
    by_acceleration = np.sqrt(1.5 * distance / (RAMP * (1.0 - RAMP) * limits.acceleration))
    return float(max(by_speed.max(), by_acceleration.max(), 0.1))
