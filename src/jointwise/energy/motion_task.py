"""A task of a minimum-energy motion: points or a path, durations, limits, and the energy of motions that solve it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointwise.description.robot import Robot
from jointwise.design.clearance import APART, Body, Clearance
from jointwise.design.excitation import OVERSAMPLING, RATE
from jointwise.design.excitation_limits import ExcitationLimits, Use, check_described
from jointwise.design.limits import motion_limits
from jointwise.design.piecewise import Piece, join, run
from jointwise.design.trajectory import Differentiable, DurationError, Trajectory, check_positive
from jointwise.energy.motion_power import MotionPower
from jointwise.energy.motion_space import StraightPath, paths_of
from jointwise.energy.signals import energy
from jointwise.errors import ModelError, ShapeError
from jointwise.model.skeleton import Tool
from jointwise.spatial import Array

GRID = 200
"""Intervals of the path, and speeds at every point of it."""
TINY = 1e-9
"""Least tangent (rad, m per unit of the path) of a joint that counts as moving."""


def ramp_limits(path: StraightPath, limits: ExcitationLimits) -> tuple[float, float]:
    """Return the largest path speed (1/s) and acceleration (1/s²) of a straight path."""
    turned, moved = (np.maximum(np.abs(step), TINY) for step in (limits.turning @ path.step, path.step))
    return float((limits.speeds / turned).min()), float((limits.motion.acceleration / moved).min())


def fastest_ramps(path: StraightPath, limits: ExcitationLimits) -> float:
    """Return the least duration (s) of a straight path within the limits of speed and acceleration, in closed form."""
    speed, acceleration = ramp_limits(path, limits)
    speed = min(speed, np.sqrt(acceleration))
    return float(1.0 / speed + speed / acceleration)


def least_duration(path: Differentiable, power: MotionPower, limits: ExcitationLimits) -> float:
    """Return the least duration (s) from rest to rest along a path, s from 0 to 1.

    In the phase plane of s and x = ṡ² the limits are linear in s̈ at every point: ``q̈ = q' s̈ + q'' x`` and the torque
    is affine in s̈. Backwards from the end the largest x is found from which the path can still be stopped; forwards the
    largest s̈ within these is taken.

    Raises:
        ModelError: The joints cannot hold the arm at some point of the path.

    """
    s = np.linspace(0.0, 1.0, GRID + 1)
    x, low, high = _slopes(path, power, limits, s)
    step = 2.0 * (s[1] - s[0])
    if (low[:, 0] > high[:, 0]).any():
        at = path.curve(s[[int(np.argmax(low[:, 0] > high[:, 0]))]], 0)[0]
        raise ModelError(
            f"no motion along the path: its torque limits do not hold the arm at q = {np.round(at, 2).tolist()}. "
            "Choose a smaller payload or another path."
        )
    highest = np.zeros(GRID + 1)
    for i in range(GRID - 1, -1, -1):
        highest[i] = _stoppable(x[i], low[i], high[i], step, highest[i + 1])
    total, now = 0.0, 0.0
    for i in range(GRID):
        then = min(highest[i + 1], now + step * float(np.interp(now, x[i], high[i])))
        total += step / max(np.sqrt(now) + np.sqrt(max(then, 0.0)), 1e-12)
        now = max(then, 0.0)
    return total


def _stoppable(x: Array, low: Array, high: Array, step: float, then: float) -> float:
    """Return the largest x from which x + step s̈ <= `then` at the next point; linear between grid points."""
    excess = np.where(low <= high, x + step * low - then, np.inf)
    beyond = np.flatnonzero(excess > 0.0)
    if not len(beyond):
        return float(x[-1])
    k = int(beyond[0])
    if k == 0:
        return 0.0
    share = 0.0 if np.isinf(excess[k]) else excess[k - 1] / (excess[k - 1] - excess[k])
    return float(x[k - 1] + share * (x[k] - x[k - 1]))


def _slopes(path: Differentiable, power: MotionPower, limits: ExcitationLimits, s: Array) -> tuple[Array, Array, Array]:
    """Return ``x = ṡ²`` (points, speeds) up to the speed limit, and the least and largest s̈ there."""
    q, tangent, bend = (path.curve(s, order) for order in range(3))
    top = (limits.speeds / np.maximum(np.abs(tangent @ limits.turning.T), TINY)).min(axis=1) ** 2
    x = top[:, None] * np.linspace(0.0, 1.0, GRID) ** 2
    shape = (*x.shape, q.shape[1])
    rows = [np.broadcast_to(each[:, None], shape).reshape(-1, shape[2]) for each in (q, tangent, bend)]
    speed, pull = rows[1] * np.sqrt(x).reshape(-1, 1), rows[2] * x.reshape(-1, 1)
    at = power.evaluate(rows[0], speed, pull)
    per = (1.0 + at.by_load) * (power.body_torque(rows[0], speed, pull + rows[1]) - at.body)
    low, high = _between(rows[1], pull, limits.motion.acceleration)
    low_torque, high_torque = _between(per, at.torque, limits.effort)
    return x, np.maximum(low, low_torque).reshape(x.shape), np.minimum(high, high_torque).reshape(x.shape)


def _between(slope: Array, offset: Array, limit: Array) -> tuple[Array, Array]:
    """Return the least and largest u (samples,) with ``|slope u + offset| <= limit`` in every joint."""
    flat = np.abs(slope) < TINY
    safe = np.where(flat, 1.0, slope)
    one, other = (-limit - offset) / safe, (limit - offset) / safe
    inside = np.where(flat, np.where(np.abs(offset) <= limit, np.inf, -np.inf), 0.0)
    low = np.where(flat, -inside, np.minimum(one, other)).max(axis=1)
    high = np.where(flat, inside, np.maximum(one, other)).min(axis=1)
    return low, high


RAMP = 1.0 / 3.0
"""Share of the acceleration in the duration of a trapezoidal profile: the least copper loss of pure inertia."""
AT_BOUND = 0.005
"""Relative distance from its bound within which a duration is at the bound."""
SLACK = 1e-6
"""Relative excess over a limit that is a rounding error."""


@dataclass(frozen=True, eq=False)
class MotionEnergy:
    """A motion with its torques and power at 500 Hz and the use of its limits at ten times that.

    Attributes:
        trajectory: The motion.
        t: Times (samples,), s.
        torque: Torques of the motors (samples, joints), Nm.
        power: Power on the bus (samples,), W, with the standing power.
        standing: Standing power, W.
        uses: Largest use of each kind of limit; above 1 it is exceeded.
        clear: Whether the arm keeps its clearance.

    """

    trajectory: Differentiable
    t: Array
    torque: Array
    power: Array
    standing: float
    uses: tuple[Use, ...]
    clear: bool

    @property
    def duration(self) -> float:
        """Duration, s."""
        return self.trajectory.duration

    @cached_property
    def energy(self) -> float:
        """Energy from the bus, J, with the standing power."""
        return energy(self.power, self.t)

    @property
    def motion_energy(self) -> float:
        """Energy from the bus less that of the standing power, J."""
        return self.energy - self.standing * self.duration

    @property
    def within_limits(self) -> bool:
        """Whether all limits hold."""
        return self.clear and max(use.share for use in self.uses) <= 1.0 + SLACK

    def to_dict(self) -> dict[str, Any]:
        """Return energies (J), duration (s), peak power (W) and use of the limits."""
        return {
            "duration": self.duration,
            "energy": self.energy,
            "motion_energy": self.motion_energy,
            "standing": self.standing * self.duration,
            "peak_power": float(self.power.max()),
            "least_power": float(self.power.min()),
            "clear": self.clear,
            "limits": {use.kind: {"where": use.where, "share": use.share} for use in self.uses},
        }


@dataclass(frozen=True)
class TaskSettings:
    """Limits of a task.

    Attributes:
        clearance: Height kept above the mounting plane, m; None if it is not checked.
        tool: Tool that is kept apart from the links; None for none.
        speed: Share of the speed limits that may be used.
        acceleration: Acceleration limit of joints whose description has none, rad/s² or m/s²; None for the default.
        power_limit: Largest power from the bus, W; None for no limit.
    """

    clearance: float | None
    tool: Tool | None
    speed: float
    acceleration: float | None
    power_limit: float | None


@dataclass(frozen=True, eq=False)
class MotionTask:
    """A motion to be made with least energy: model, paths between standstills, limits.

    Attributes:
        power: Torque and power of motions.
        points: Start, waypoints and goal; start and goal where a motion is known, (points, joints), rad or m.
        paths: Paths between standstills.
        limits: Limits of motion, torque and clearance.
        power_limit: Largest power from the bus, W; inf for none.
        free: Whether the path may change.
        motion: Motion whose path is kept or improved; None for straight paths between the points.
    """

    power: MotionPower
    points: Array
    paths: tuple[Differentiable, ...]
    limits: ExcitationLimits
    power_limit: float
    free: bool
    motion: Differentiable | None

    @classmethod
    def of(
        cls,
        power: MotionPower,
        points: ArrayLike | None,
        motion: Differentiable | None,
        path: str,
        settings: TaskSettings,
    ) -> MotionTask:
        """Return the task of arguments, or reject them."""
        if path not in ("free", "fixed"):
            raise ModelError(f"path must be 'free' or 'fixed'. Got '{path}' instead.")
        if (points is None) == (motion is None):
            raise ModelError("a task must have either points (start, waypoints, goal) or a motion.")
        robot = power.robot
        check_described(robot, "a minimum-energy motion")
        corners = _corners(robot, points) if motion is None else motion.position(np.array([0.0, motion.duration]))
        paths = _straight(corners) if motion is None else tuple(paths_of(motion))
        if not paths:
            raise ModelError("the points of a task must differ. Got a task without motion instead.")
        limits = _reserved(_limits(robot, settings), corners)
        check_positive(power_limit=settings.power_limit or 1.0)
        task = cls(power, corners, paths, limits, settings.power_limit or np.inf, path == "free", motion)
        task.check_points()
        return task

    def check_points(self) -> None:
        """Reject points outside the position limits, too close to something, or too heavy to hold."""
        limits = self.limits.motion
        for k, q in enumerate(self.points):
            outside = np.flatnonzero((q < limits.lower - SLACK) | (q > limits.upper + SLACK))
            if outside.size:
                j = int(outside[0])
                raise ModelError(
                    f"point {k + 1}: joint {j + 1} must lie within {limits.lower[j]:.4g} to {limits.upper[j]:.4g}. "
                    f"Got {q[j]:.4g} instead."
                )
        for k, q in enumerate(self.points):
            if not self.limits.clearance.is_clear(q[None]):
                raise self.limits.clearance.error(f"point {k + 1}", q[None])
        rest = np.zeros_like(self.points)
        held = np.abs(self.power.body_torque(self.points, rest, rest)) / self.limits.effort
        if held.max() > 1.0:
            k, j = (int(index) for index in np.unravel_index(int(held.argmax()), held.shape))
            raise ModelError(
                f"point {k + 1} has no solution: joint {j + 1} needs {held.max():.2f} times its torque limit to hold "
                "the arm. Choose a smaller payload or another point."
            )

    @cached_property
    def least(self) -> Array:
        """Least duration of every path (paths,), s."""
        return np.array([self._least(path) for path in self.paths])

    def _least(self, path: Differentiable) -> float:
        if isinstance(path, StraightPath):
            fastest = fastest_ramps(path, self.limits)
            ramps = trapezoid((path,), np.array([fastest]), self.limits)
            states = ramps.sample(RATE)
            torque = self.power.evaluate(states.q, states.qd, states.qdd).torque
            if (np.abs(torque) <= self.limits.effort).all():
                return fastest
        return least_duration(path, self.power, self.limits)

    @cached_property
    def bound(self) -> float:
        """Duration (s) below which no path at all is possible: that of the slowest joint alone."""
        moves, limits = np.abs(np.diff(self.points, axis=0)), self.limits.motion
        distance = np.maximum(moves.sum(axis=0), 1e-12)
        top = np.minimum(limits.velocity, np.sqrt(limits.acceleration * distance))
        alone = distance / top + (top / limits.acceleration if len(moves) == 1 else 0.0)
        return float(alone.max())

    def evaluated(self, motion: Differentiable) -> MotionEnergy:
        """Return a motion with its energy and the use of its limits."""
        states = motion.at(np.append(np.arange(0.0, motion.duration, 1.0 / RATE), motion.duration))
        at = self.power.evaluate(states.q, states.qd, states.qdd)
        uses, clear = self.uses(motion, OVERSAMPLING * RATE)
        return MotionEnergy(motion, states.t, at.torque, at.power, self.power.power.standing, uses, clear)

    def uses(self, motion: Trajectory, rate: float) -> tuple[tuple[Use, ...], bool]:
        """Return the largest use of all limits along a motion sampled at a rate (Hz), and whether it is clear."""
        states = motion.sample(rate)
        at = self.power.evaluate(states.q, states.qd, states.qdd)
        uses = self.limits.uses(states, at.torque)
        if np.isfinite(self.power_limit):
            uses.append(Use("power", "bus", float(at.power.max()) / self.power_limit))
        return tuple(uses), self.limits.clearance.is_clear(states.q)

    def key(self, times: Durations) -> str:
        """Return a text that differs for searches with different results."""
        limits, power = self.limits, self.power
        probe = np.linspace(0.0, 1.0, 7)[:, None] * np.ones(power.robot.dof)
        numbers = [self.points, power.inertials, power.gravity, power.rotors, limits.effort, limits.motion.lower]
        numbers += [
            limits.motion.upper,
            limits.motion.velocity,
            limits.motion.acceleration,
            limits.turning,
            power.friction(probe, probe),
        ]
        numbers += [path.curve(np.linspace(0.0, 1.0, 5), 0) for path in self.paths]
        settings = [
            times.shortest, times.longest, self.free, self.power_limit, limits.clearance.plane, power.power.to_dict(),
            [np.asarray(each).tolist() for each in numbers],
        ]  # fmt: skip
        return sha256(json.dumps(settings).encode()).hexdigest()


def _corners(robot: Robot, points: ArrayLike | None) -> Array:
    corners = np.asarray(points, dtype=float)
    if corners.ndim != 2 or corners.shape[1] != robot.dof or len(corners) < 2 or not np.isfinite(corners).all():
        raise ShapeError(f"points must be finite, of shape (2 or more, {robot.dof}). Got {corners.shape} instead.")
    return corners


def _straight(points: Array) -> tuple[Differentiable, ...]:
    steps = np.diff(points, axis=0)
    return tuple(StraightPath(q, step) for q, step in zip(points[:-1], steps, strict=True) if np.abs(step).max() > 0.0)


def _limits(robot: Robot, settings: TaskSettings) -> ExcitationLimits:
    check_positive(speed=settings.speed, acceleration=settings.acceleration or 1.0)
    motion = motion_limits(robot, settings.speed, margin=0.0)
    if settings.acceleration is not None:
        missing = np.array([joint.limits.acceleration is None for joint in robot.joints])
        motion = replace(motion, acceleration=np.where(missing, settings.acceleration, motion.acceleration))
    plane = -np.inf if settings.clearance is None else settings.clearance
    effort = np.array([joint.limits.effort for joint in robot.joints], dtype=float)
    return ExcitationLimits(motion, effort, Clearance(Body(robot, settings.tool), plane), np.zeros(robot.dof))


def _reserved(limits: ExcitationLimits, points: Array) -> ExcitationLimits:
    """Return limits whose penalty adds no more to the clearance than the points of the task keep themselves."""
    body, plane = limits.clearance.body, limits.clearance.plane
    free = min(float(body.heights(points).min()) - plane, float(body.distances(points).min()) - APART)
    return replace(limits, reserve=max(0.0, min(limits.reserve, 0.9 * free)))


def _check_duration(task: MotionTask, duration: float) -> float:
    """Reject a duration (s) below the least possible one, and return that."""
    check_positive(duration=duration)
    least = float(task.least.sum())
    lowest = min(task.bound, least) if task.free else least
    if duration < lowest * (1.0 - SLACK):
        what = "the fastest motion between these points" if task.free else "the fastest motion along this path"
        raise DurationError(what, lowest, duration)
    return lowest


@dataclass(frozen=True)
class Durations:
    """Bounds of the duration of a motion, equal for a fixed one.

    Attributes:
        shortest: Shortest duration, s.
        longest: Longest duration, s.
        original: Duration of the original motion, s.
    """

    shortest: float
    longest: float
    original: float

    @classmethod
    def of(cls, task: MotionTask, duration: float | None, longest: float | None, planned: float | None) -> Durations:
        """Return the bounds of a task; reject durations below the least possible one.

        Args:
            task: The task.
            duration: Fixed duration, s.
            longest: Longest duration, s, where it is to be chosen.
            planned: Duration of the motion whose path is kept, s: that of the task if no other is passed.

        Returns:
            The bounds.

        Raises:
            DurationError: The duration is below the least possible one.
            ModelError: Not exactly one of the durations is stated.

        """
        if duration is not None and longest is not None:
            raise ModelError("a task must have a duration or a longest duration, not both.")
        if longest is not None:
            shortest = _check_duration(task, longest)
            return cls(shortest, longest, planned or float(task.least.sum()))
        fixed = planned if duration is None else duration
        if fixed is None:
            raise ModelError("a task must have a duration, or a longest duration within which one is chosen.")
        _check_duration(task, fixed)
        return cls(fixed, fixed, fixed)

    def status(self, duration: float) -> str:
        """Return where a duration (s) lies between its bounds."""
        if self.shortest == self.longest:
            return "fixed"
        if duration > (1.0 - AT_BOUND) * self.longest:
            return "longest allowed"
        return "shortest possible" if duration < (1.0 + AT_BOUND) * self.shortest else "interior"


def trapezoid(paths: Sequence[Differentiable], durations: Array, limits: ExcitationLimits) -> Differentiable:
    """Return moves with trapezoidal speed along straight paths, each in its duration (s).

    The speed rises over a third of the duration, or over what the limits of speed and acceleration require instead.
    """
    pieces: list[Piece] = []
    for path, T in zip(paths, durations, strict=True):
        assert isinstance(path, StraightPath)
        speed, acceleration = ramp_limits(path, limits)
        root = np.sqrt(max(0.0, 0.25 * T**2 - 1.0 / acceleration))
        longest_ramp = min(0.5 * T, T - 1.0 / speed)
        ramp = float(min(max(RAMP * T, 0.5 * T - root), max(longest_ramp, 0.5 * T - root)))
        pieces += run(path.begin, path.step, 1.0 / (T - ramp), ramp, "constant")
    return join(pieces, smooth=False)
