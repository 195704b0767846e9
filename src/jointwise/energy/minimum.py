"""Minimum-energy motion of a task: the path re-timed, or a free joint path, with the least energy from the bus."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.description.transmission import refuse_coupled
from jointwise.design.body import Body
from jointwise.design.clearance import Clearance
from jointwise.design.excitation import CLEARANCE, OVERSAMPLING, RATE
from jointwise.design.excitation_limits import ExcitationLimits, Use, check_described
from jointwise.design.limits import motion_limits
from jointwise.design.piecewise import Piece, join, run
from jointwise.design.search_journal import Resumable
from jointwise.design.trajectory import Differentiable, DurationError, Trajectory, check_positive
from jointwise.document import Kind
from jointwise.energy.least_duration import fastest_ramps, least_duration, ramp_limits
from jointwise.energy.motion_power import MotionPower, motion_power
from jointwise.energy.motion_search import MotionSearch
from jointwise.energy.motion_space import FreeLeg, PathLeg, StraightPath, UnitSpline, paths_of
from jointwise.energy.power_model import PowerModel
from jointwise.energy.signals import energy
from jointwise.errors import ModelError, ShapeError
from jointwise.model.skeleton import Tool
from jointwise.result.calibration import CalibratedModel
from jointwise.spatial import Array

PATH_SPANS, FREE_SPANS = 20, 14
"""Spans of the splines along a path and of free joints; more spans save less than 0.2 % more."""
WEIGHTS = ((10.0, 200), (1000.0, 100))
"""Weights of the penalty of the limits, and most iterations with each."""
STRICT = (1e5, 100)
"""The same where the limits do not hold after that."""
BLENDS = (1.0, 0.95, 0.9, 0.8, 0.6, 0.4, 0.2)
"""Shares of a free path in a motion between it and the re-timed path: the first that keeps all limits is taken."""
RAMP = 1.0 / 3.0
"""Share of the acceleration in the duration of a trapezoidal profile: the least copper loss of pure inertia."""
AT_BOUND = 0.005
"""Relative distance from its bound within which a duration is at the bound."""
WORTHWHILE = 1e-4
"""Least relative saving that counts as one."""
SLACK = 1e-6
"""Relative excess over a limit that is a rounding error."""
STATE = Kind(
    format="jointwise motion state",
    schema=1,
    name="the state of a minimum-energy search",
    noun="state of a minimum-energy search",
    remedy="Remove it.",
    largest=64 * 1024 * 1024,
)


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


@dataclass(frozen=True, eq=False)
class MinimumEnergyMotion:
    """A minimum-energy motion beside the original one.

    Attributes:
        robot: The robot.
        model: Torque and power of the model.
        original: The original motion: trapezoidal speed along the path, or the given motion.
        optimized: The motion with the least energy that was found; the original one if nothing is saved.
        free: Whether the path was free.
        least_duration: Least duration along the path, s.
        duration_status: "fixed", "interior", "longest allowed" or "shortest possible".
        points: Start, waypoints and goal (points, joints), rad.
        limits: Limits.
        power_limit: Largest power on the bus, W; infinite for none.

    """

    robot: Robot
    model: MotionPower
    original: MotionEnergy
    optimized: MotionEnergy
    free: bool
    least_duration: float
    duration_status: str
    points: Array
    limits: ExcitationLimits
    power_limit: float

    @property
    def saving(self) -> float:
        """Share of the energy from the bus that is saved; 0 where no saving is possible."""
        return 1.0 - self.optimized.energy / self.original.energy

    @property
    def motion_saving(self) -> float | None:
        """Share of the energy without the standing power that is saved; None where the original returns energy."""
        before = self.original.motion_energy
        return None if before <= 0.0 else 1.0 - self.optimized.motion_energy / before

    @property
    def is_original(self) -> bool:
        """Whether no saving was possible: the motion is the original one."""
        return self.optimized is self.original

    def to_dict(self) -> dict[str, Any]:
        """Return both motions, the saving and the duration as a document."""
        return {
            "robot": self.robot.name,
            "path": "free" if self.free else "given",
            "points": self.points.tolist(),
            "saving": self.saving,
            "motion_saving": self.motion_saving,
            "saving_possible": not self.is_original,
            "duration_status": self.duration_status,
            "least_duration": self.least_duration,
            "standing_power": self.model.power.standing,
            "power_limit": None if np.isinf(self.power_limit) else self.power_limit,
            "original": self.original.to_dict(),
            "optimized": self.optimized.to_dict(),
        }

    def summary(self) -> str:
        """Return the result in a few lines of text."""
        before, after = self.original, self.optimized
        lines = [
            f"original:  {before.energy:.1f} J in {before.duration:.3f} s, of the motion {before.motion_energy:.1f} J, "
            f"peak {before.power.max():.0f} W" + ("" if before.within_limits else " (exceeds limits)"),
            f"optimised: {after.energy:.1f} J in {after.duration:.3f} s, of the motion {after.motion_energy:.1f} J, "
            f"peak {after.power.max():.0f} W",
        ]
        if self.is_original:
            lines.append("no saving is possible: the original motion is returned")
        else:
            share = "" if self.motion_saving is None else f", {100.0 * self.motion_saving:.1f} % of the motion's"
            lines.append(f"saving {100.0 * self.saving:.1f} % of the energy{share}")
        lines.append(f"duration: {self.duration_status}; the path takes at least {self.least_duration:.3f} s")
        lines.append("use of the limits: " + ", ".join(f"{u.kind} {100.0 * u.share:.0f} %" for u in after.uses))
        return "\n".join(lines)


def optimize_motion(
    model: CalibratedModel | Robot,
    power: PowerModel,
    points: ArrayLike | None = None,
    *,
    duration: float | None = None,
    longest: float | None = None,
    path: str = "free",
    motion: Differentiable | None = None,
    payload: Payload | None = None,
    mounting: Mounting | None = None,
    clearance: float | None = CLEARANCE,
    tool: Tool | None = None,
    speed: float = 1.0,
    acceleration: float | None = None,
    power_limit: float | None = None,
    state: str | Path | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> MinimumEnergyMotion:
    """Return the motion of a task with the least energy from the bus within the limits of the robot.

    Splines from rest to rest are optimised with exact gradients: first the timing along the path, then, with a free
    path, all joints. The standing power counts, so that with `longest` the duration is chosen as well. The motion is
    never worse than the original one: trapezoidal speed along straight lines in joint space that stop at every
    waypoint, as fast as possible if the duration is free, or the given `motion`.

    Args:
        model: Calibrated model, or a robot with described bodies, rotors and friction.
        power: Power model.
        points: Start, waypoints and goal (points, joints), rad; None with a `motion`.
        duration: Duration, s; by default that of the `motion`.
        longest: Longest allowed duration, s, where the duration is to be chosen.
        path: "given" re-times the path; "free" also changes it between the points.
        motion: A motion from rest to rest whose path is given.
        payload: What the robot carries.
        mounting: Mounting of the base.
        clearance: Height in m above the mounting plane that is kept; None to ignore the plane.
        tool: Geometry of the tool.
        speed: Share of the speed limits.
        acceleration: Limit of joints without described limit, rad/s² or m/s²; None for 6 rad/s² and 3 m/s².
        power_limit: Largest power on the bus, W.
        state: File with the finished steps of an interrupted search, and where they are stored.
        progress: Called with the name of the stage and its completed share.

    Returns:
        The motion beside the original one.

    Raises:
        DurationError: The duration is below the least possible one, which the message states.
        ModelError: The task has no solution within the limits, or an argument is wrong.

    """
    task = _Task.of(
        motion_power(model, power, payload=payload, mounting=mounting),
        points, motion, path, _Settings(clearance, tool, speed, acceleration, power_limit),
    )  # fmt: skip
    times = _Times.of(task, duration, longest, None if motion is None else motion.duration)
    report = progress or (lambda stage, share: None)
    journal = Resumable(STATE, task.key(times), None if state is None else Path(state))
    return _optimized(task, times, journal, report)


@dataclass(frozen=True)
class _Settings:
    """Limits of a task."""

    clearance: float | None
    tool: Tool | None
    speed: float
    acceleration: float | None
    power_limit: float | None


@dataclass(frozen=True, eq=False)
class _Task:
    """A task: model, paths between standstills, limits."""

    power: MotionPower
    points: Array
    paths: tuple[Differentiable, ...]
    limits: ExcitationLimits
    power_limit: float
    free: bool
    motion: Differentiable | None

    @classmethod
    def of(
        cls, power: MotionPower, points: ArrayLike | None, motion: Differentiable | None, path: str, settings: _Settings
    ) -> _Task:
        """Return the task of arguments, or reject them."""
        if path not in ("free", "given"):
            raise ModelError(f"path must be 'free' or 'given'. Got '{path}' instead.")
        if (points is None) == (motion is None):
            raise ModelError("a task must have either points (start, waypoints, goal) or a motion.")
        robot = power.robot
        refuse_coupled(robot, "a minimum-energy motion")
        check_described(robot, "a minimum-energy motion")
        corners = _corners(robot, points) if motion is None else motion.position(np.array([0.0, motion.duration]))
        paths = _straight(corners) if motion is None else tuple(paths_of(motion))
        if not paths:
            raise ModelError("the points of a task must differ. Got a task without motion instead.")
        limits = _limits(robot, settings)
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
            k, j = np.unravel_index(int(held.argmax()), held.shape)
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

    def key(self, times: _Times) -> str:
        """Return a text that differs for searches with different results."""
        limits, power = self.limits, self.power
        probe = np.linspace(0.0, 1.0, 7)[:, None] * np.ones(power.robot.dof)
        numbers = [self.points, power.inertials, power.gravity, power.rotors, limits.effort, limits.motion.lower]
        numbers += [limits.motion.upper, limits.motion.velocity, limits.motion.acceleration, power.friction(probe, probe)]
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


def _limits(robot: Robot, settings: _Settings) -> ExcitationLimits:
    check_positive(speed=settings.speed, acceleration=settings.acceleration or 1.0)
    motion = motion_limits(robot, settings.speed, margin=0.0)
    if settings.acceleration is not None:
        missing = np.array([joint.limits.acceleration is None for joint in robot.joints])
        motion = replace(motion, acceleration=np.where(missing, settings.acceleration, motion.acceleration))
    plane = -np.inf if settings.clearance is None else settings.clearance
    effort = np.array([joint.limits.effort for joint in robot.joints], dtype=float)
    return ExcitationLimits(motion, effort, Clearance(Body(robot, settings.tool), plane), np.zeros(robot.dof))


@dataclass(frozen=True)
class _Times:
    """Bounds of the duration, s, and that of the original motion."""

    shortest: float
    longest: float
    original: float

    @classmethod
    def of(cls, task: _Task, duration: float | None, longest: float | None, given: float | None) -> _Times:
        """Return the bounds of a task; reject durations below the least possible one."""
        if duration is not None and longest is not None:
            raise ModelError("a task must have a duration or a longest duration, not both.")
        fixed = given if duration is None and longest is None else duration
        if fixed is None and longest is None:
            raise ModelError("a task must have a duration, or a longest duration within which one is chosen.")
        largest = longest if fixed is None else fixed
        assert largest is not None
        check_positive(duration=largest)
        least = float(task.least.sum())
        lowest = min(task.bound, least) if task.free else least
        if largest < lowest * (1.0 - SLACK):
            what = "the fastest motion between these points" if task.free else "the fastest motion along this path"
            raise DurationError(what, lowest, largest)
        if fixed is not None:
            return cls(fixed, fixed, fixed)
        return cls(lowest, largest, given or max(least, min(largest, least)))

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


def _optimized(
    task: _Task, times: _Times, journal: Resumable, report: Callable[[str, float | None], None]
) -> MinimumEnergyMotion:
    """Return the best motion that keeps all limits, the original one where none is better."""
    durations = times.original * task.least / task.least.sum()
    first = task.motion or trapezoid(task.paths, durations, task.limits)
    original = task.evaluated(first)
    scale = max(original.energy, 1e-6)
    candidates = _timed(task, times, durations, scale, journal, report)
    if task.free:
        candidates = [*_freed(task, times, candidates, scale, journal, report), *candidates]
    report("checking", None)
    best = next((energy for motion in candidates if (energy := task.evaluated(motion)).within_limits), None)
    if best is None and not original.within_limits:
        raise ModelError(_no_solution(task, original))
    if best is None or (original.within_limits and best.energy > (1.0 - WORTHWHILE) * original.energy):
        best = original
    return MinimumEnergyMotion(
        task.power.robot, task.power, original, best, task.free, float(task.least.sum()), times.status(best.duration),
        task.points, task.limits, task.power_limit,
    )  # fmt: skip


def _timed(
    task: _Task, times: _Times, durations: Array, scale: float, journal: Resumable,
    report: Callable[[str, float | None], None],
) -> list[Differentiable]:  # fmt: skip
    """Return the path re-timed, in two versions: as found, and with stricter limits."""
    spline = UnitSpline(PATH_SPANS, clustered=True)
    legs = tuple(PathLeg(spline, path) for path in task.paths)
    shortest = max(times.shortest, float(task.least.sum())) if times.shortest < times.longest else times.shortest
    search = MotionSearch(
        task.power, task.limits, legs, min(shortest, times.longest), times.longest, task.power_limit, scale
    )
    start = [leg.start(_ramped(spline.quadrature[0])) for leg in legs]
    x = search.pack(start, durations)
    motions: list[Differentiable] = []
    for k, (weight, iterations) in enumerate((*WEIGHTS, STRICT)):
        report("timing the path", k / (len(WEIGHTS) + 1))
        x = np.array(journal.step(lambda x=x, w=weight, n=iterations: search.improve(x, w, n)).variables)  # type: ignore[misc]
        motions.append(search.motion(x))
    return motions[1:]


def _ramped(u: Array) -> Array:
    """Return the path parameter of a trapezoidal profile at relative times u."""
    top = 1.0 / (1.0 - RAMP)
    rising, falling = 0.5 * top * u**2 / RAMP, 1.0 - 0.5 * top * (1.0 - u) ** 2 / RAMP
    return np.where(u < RAMP, rising, np.where(u < 1.0 - RAMP, top * (u - 0.5 * RAMP), falling))


def _freed(
    task: _Task, times: _Times, timed: list[Differentiable], scale: float, journal: Resumable,
    report: Callable[[str, float | None], None],
) -> list[Differentiable]:  # fmt: skip
    """Return free motions from the best to the most careful: as found, with stricter limits, and nearer to the path."""
    base = timed[0]
    passes = _passes(task, base)
    spline = UnitSpline(max(FREE_SPANS, 2 * len(task.points) + 8), passes)
    leg = FreeLeg(spline, task.points)
    search = MotionSearch(
        task.power, task.limits, (leg,), times.shortest, times.longest, task.power_limit, scale
    )
    begin = search.pack([leg.start(base.position(base.duration * spline.quadrature[0]))], np.array([base.duration]))
    x, found = begin, []
    for k, (weight, iterations) in enumerate((*WEIGHTS, STRICT)):
        report("searching a free path", k / (len(WEIGHTS) + 1))
        x = np.array(journal.step(lambda x=x, w=weight, n=iterations: search.improve(x, w, n)).variables)  # type: ignore[misc]
        found.append(x)
    return [search.motion(found[1])] + [search.motion(begin + share * (x - begin)) for share in BLENDS]


def _passes(task: _Task, motion: Differentiable) -> tuple[float, ...]:
    """Return the relative times at which a motion along straight paths passes the waypoints."""
    if task.motion is not None or len(task.points) == 2:
        return ()
    t = np.linspace(0.0, motion.duration, 5001)
    q = motion.position(t)
    near = [t[int(np.argmin(np.abs(q - point).max(axis=1)))] / motion.duration for point in task.points[1:-1]]
    return tuple(float(u) for u in near)


def _no_solution(task: _Task, original: MotionEnergy) -> str:
    worst = max(original.uses, key=lambda use: use.share)
    reason = (
        f"{worst.kind} of {worst.where} at {100.0 * worst.share:.0f} % of its limit"
        if worst.share > 1.0
        else "too close to the mounting plane or to itself"
    )
    return (
        f"no motion within the limits was found for this task: the straight one has {reason}. The path takes at least "
        f"{task.least.sum():.4g} s; choose a longer duration, a smaller payload or clearance, or waypoints."
    )
