"""Minimum-energy motion of a task: the path re-timed, or a free joint path, with the least energy from the bus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked
from jointwise.call_settings import EnergySettings
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.design.clearance import CLEARANCE
from jointwise.design.excitation import OVERSAMPLING, RATE, Resumable, Step
from jointwise.design.excitation_limits import USED, ExcitationLimits, Use
from jointwise.design.trajectory import Differentiable, States, succession
from jointwise.document import Kind
from jointwise.energy.motion_power import MotionPower, motion_power
from jointwise.energy.motion_space import FreeLeg, Leg, PathLeg, UnitSpline
from jointwise.energy.motion_task import RAMP, Durations, MotionEnergy, MotionTask, TaskSettings, trapezoid
from jointwise.energy.power_model import PowerModel
from jointwise.errors import ModelError
from jointwise.model.skeleton import Tool
from jointwise.result.calibration import CalibratedModel
from jointwise.spatial import Array

GAP = 1e-6
"""Distance (rad, m) between the end of a leg and the start of the next that is rounding."""

TOLERANCE = 1e-8
"""Relative decrease of the value in an iteration at which the search ends."""


@dataclass(frozen=True, eq=False)
class MotionSearch:
    """Variables of all legs, the shares of the legs in the duration, and the logarithm of the duration (s).

    The value is the energy from the bus relative to `scale` (J), plus a penalty of the limits. Samples are Gauss points
    of the splines, so that the integral over a leg is ``T Σ w P``.

    Attributes:
        power: Torque and power of motions.
        limits: Limits of position, speed, acceleration, torque and clearance.
        legs: Legs of the motion.
        shortest: Shortest duration, s.
        longest: Longest duration, s; the same for a fixed one.
        power_limit: Largest power on the bus, W; infinite for none.
        scale: Energy by which the value is divided, J.

    """

    power: MotionPower
    limits: ExcitationLimits
    legs: tuple[Leg, ...]
    shortest: float
    longest: float
    power_limit: float
    scale: float

    @cached_property
    def _slices(self) -> list[slice]:
        edges = np.concatenate([[0], np.cumsum([leg.size for leg in self.legs])])
        return [slice(int(a), int(b)) for a, b in pairwise(edges)]

    def pack(self, variables: list[Array], durations: Array) -> Array:
        """Return the variables of all legs with their durations (legs,), s, as one array."""
        shares = np.log(durations / durations[0])[1:]
        return np.concatenate([*variables, shares, [np.log(durations.sum())]])

    def durations(self, x: Array) -> Array:
        """Return the durations of the legs (legs,), s."""
        shares = np.exp(np.concatenate([[0.0], x[self._slices[-1].stop : -1]]))
        result: Array = np.exp(x[-1]) * shares / shares.sum()
        return result

    def motion(self, x: Array) -> Differentiable:
        """Return the motion of variables."""
        parts = [
            leg.trajectory(x[rows], float(T))
            for leg, rows, T in zip(self.legs, self._slices, self.durations(x), strict=True)
        ]
        return parts[0] if len(parts) == 1 else succession(parts, gap=GAP)

    def value(self, x: Array, weight: float) -> tuple[float, Array]:
        """Return energy over `scale` plus `weight` times the penalty, and the gradient."""
        durations = self.durations(x)
        rows = [leg.motion(x[part]) for leg, part in zip(self.legs, self._slices, strict=True)]
        q, first, second = (np.concatenate(each) for each in zip(*rows, strict=True))
        T = np.repeat(durations, self._counts)[:, None]
        qd, qdd = first / T, second / T**2
        at = self.power.evaluate(q, qd, qdd)
        w = self._weights * T[:, 0] / self.scale
        value, by_power, by_motion, by_torque = self._penalty(States(self._weights, q, qd, qdd), at.torque, at.power)
        exact = self.power.gradient(q, qd, qdd, at, w + weight * by_power, weight * by_torque)
        by = [e + weight * p for e, p in zip(exact, by_motion, strict=True)]
        by_length = w * at.power - (by[1] * qd + 2.0 * by[2] * qdd).sum(axis=1)
        gradient = self._gradient(x, durations, (by[0], by[1] / T, by[2] / T**2), by_length)
        return float(w @ at.power) + weight * value, gradient

    def _gradient(self, x: Array, durations: Array, by: tuple[Array, Array, Array], by_length: Array) -> Array:
        """Return the gradient; `by_length` (samples,) is that with respect to the logarithm of the leg's duration."""
        parts, lengths, first = [], np.empty(len(self.legs)), 0
        for k, (leg, part, count) in enumerate(zip(self.legs, self._slices, self._counts, strict=True)):
            rows = slice(first, first + count)
            parts.append(leg.gradient(x[part], by[0][rows], by[1][rows], by[2][rows]))
            lengths[k] = by_length[rows].sum()
            first += count
        shares = durations / durations.sum()
        by_shares = lengths - shares * lengths.sum()
        return np.concatenate([*parts, by_shares[1:], [lengths.sum()]])

    def _penalty(self, states: States, torque: Array, power: Array) -> tuple[float, Array, list[Array], Array]:
        """Return the penalty and its gradient with respect to powers, q, q̇, q̈ and torques."""
        total, by = self.limits.excess(states, torque)
        if self._free:  # a fixed path is as clear as it is, however it is timed
            close, slope = self.limits.closeness(states.q)
            total, by[0] = total + close, by[0] + slope
        over = np.maximum(power / self.power_limit - USED, 0.0)
        total += float(np.square(over).sum())
        return total, 2.0 * over / self.power_limit, by[:3], by[3]

    @cached_property
    def _free(self) -> bool:
        return any(isinstance(leg, FreeLeg) for leg in self.legs)

    @cached_property
    def _counts(self) -> list[int]:
        return [len(leg.spline.quadrature[0]) for leg in self.legs]

    @cached_property
    def _weights(self) -> Array:
        return np.concatenate([leg.spline.quadrature[1] for leg in self.legs])

    def improve(self, x: Array, weight: float, iterations: int) -> Step:
        """Return the result of some iterations of L-BFGS within the bounds of the duration."""
        from scipy.optimize import minimize

        bounds = [(None, None)] * (len(x) - 1) + [(np.log(self.shortest), np.log(self.longest))]
        result = minimize(
            self.value, x, args=(weight,), jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": iterations, "maxcor": 30, "ftol": TOLERANCE},
        )  # fmt: skip
        return Step(float(result.fun), result.x.tolist())


PATH_SPANS, FREE_SPANS = 20, 14
"""Spans of the splines along a path and of free joints; more spans save less than 0.2 % more."""
WEIGHTS = ((10.0, 200), (1000.0, 100))
"""Weights of the penalty of the limits, and most iterations with each."""
STRICT = (1000.0, 60)
"""The same with the limits tightened."""
ROUNDS = 4
"""Most rounds in which limits are tightened."""
TIGHTER = 0.995
"""Share of a limit that a motion with tightened limits shall use."""
BLENDS = (1.0, 0.95, 0.9, 0.8, 0.6, 0.4, 0.2)
"""Shares of a free path in a motion between it and the re-timed path: the first that keeps all limits is taken."""
WORTHWHILE = 1e-4
"""Least relative saving that counts as one."""
STATE = Kind(
    format="jointwise motion state",
    name="the state of a minimum-energy search",
    noun="state of a minimum-energy search",
    remedy="Remove it.",
)


@dataclass(frozen=True, eq=False)
class MinimumEnergyMotion:
    """A minimum-energy motion beside the original one.

    Attributes:
        robot: The robot.
        model: Torque and power of the model.
        original: The original motion: trapezoidal speed along the path, or the `motion` passed.
        optimized: The motion with the least energy that was found; the original one if nothing is saved.
        free: Whether the path was free.
        least_duration: Least duration along the path, s.
        duration_status: "fixed", "interior", "longest allowed" or "shortest possible".
        points: Start, waypoints and goal (points, joints), rad.
        limits: Limits of motion, torque and clearance.
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
            "path": "free" if self.free else "fixed",
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


@checked
def optimize_motion(
    model: CalibratedModel | Robot,
    power: PowerModel,
    points: ArrayLike | None = None,
    *,
    duration: float | None = None,
    longest: float | None = None,
    path: str = EnergySettings.path,
    motion: Differentiable | None = None,
    payload: Payload | None = None,
    mounting: Mounting | None = None,
    clearance: float | None = CLEARANCE,
    tool: Tool | None = None,
    speed: float = EnergySettings.speed,
    acceleration: float | None = None,
    power_limit: float | None = None,
    state: str | Path | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> MinimumEnergyMotion:
    """Return the motion of a task with the least energy from the bus within the limits of the robot.

    Splines from rest to rest are optimised with exact gradients: first the timing along the path, then, with a free
    path, all joints. The standing power counts, so that with `longest` the duration is chosen as well. The motion is
    never worse than the original one: trapezoidal speed along straight lines in joint space that stop at every
    waypoint, as fast as possible if the duration is free, or the `motion` passed.

    Args:
        model: Calibrated model, or a robot with described bodies, rotors and friction.
        power: Power model.
        points: Start, waypoints and goal (points, joints), rad; None with a `motion`.
        duration: Duration, s; by default that of the `motion`.
        longest: Longest allowed duration, s, where the duration is to be chosen.
        path: "fixed" re-times the path; "free" also changes it between the points.
        motion: A motion from rest to rest whose path is kept.
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
    task = MotionTask.of(
        motion_power(model, power, payload=payload, mounting=mounting),
        points, motion, path, TaskSettings(clearance, tool, speed, acceleration, power_limit),
    )  # fmt: skip
    times = Durations.of(task, duration, longest, None if motion is None else motion.duration)
    report = progress or (lambda stage, share: None)
    journal = Resumable(STATE, task.key(times), None if state is None else Path(state))
    return _optimized(task, times, journal, report)


def _optimized(
    task: MotionTask, times: Durations, journal: Resumable, report: Callable[[str, float | None], None]
) -> MinimumEnergyMotion:
    """Return the best motion that keeps all limits, the original one where none is better."""
    durations = times.original * task.least / task.least.sum()
    first = task.motion or trapezoid(task.paths, durations, task.limits)
    original = task.evaluated(first)
    scale = max(original.energy, 1e-6)
    timed = _timed(task, times, durations, scale, journal, report)
    kinds = [timed, *([_freed(task, times, timed, scale, journal, report)] if task.free else [])]
    report("checking", None)
    best = _best(task, original, kinds)
    return MinimumEnergyMotion(
        task.power.robot, task.power, original, best, task.free, float(task.least.sum()), times.status(best.duration),
        task.points, task.limits, task.power_limit,
    )  # fmt: skip


def _best(task: MotionTask, original: MotionEnergy, kinds: list[list[Differentiable]]) -> MotionEnergy:
    """Return the motion with the least energy among the first of each kind that keeps all limits, and the original."""
    firsts = (next((e for motion in kind if (e := task.evaluated(motion)).within_limits), None) for kind in kinds)
    found = [each for each in firsts if each is not None]
    if not (found or original.within_limits):
        raise ModelError(_no_solution(task, original))
    best = min(found, key=lambda each: each.energy, default=original)
    kept = original.within_limits and best.energy > (1.0 - WORTHWHILE) * original.energy
    return original if kept else best


def _timed(
    task: MotionTask, times: Durations, durations: Array, scale: float, journal: Resumable,
    report: Callable[[str, float | None], None],
) -> list[Differentiable]:  # fmt: skip
    """Return the path re-timed; the motion most likely to keep all limits first."""
    spline = UnitSpline(PATH_SPANS, clustered=True)
    legs = tuple(PathLeg(spline, path) for path in task.paths)
    shortest = max(times.shortest, float(task.least.sum())) if times.shortest < times.longest else times.shortest
    search = MotionSearch(
        task.power, task.limits, legs, min(shortest, times.longest), times.longest, task.power_limit, scale
    )
    start = [leg.start(_ramped(spline.quadrature[0])) for leg in legs]
    x = search.pack(start, durations)
    return [search.motion(x) for x in _refined(task, search, x, journal, lambda share: report("timing", share))]


def _refined(
    task: MotionTask, search: MotionSearch, x: Array, journal: Resumable, report: Callable[[float], None]
) -> list[Array]:
    """Return the variables of the optimum, the best first; others follow that were found with tighter limits.

    A limit that the motion exceeds between the samples of the search is tightened by as much.
    """
    found: list[Array] = []
    for k, (weight, iterations) in enumerate(WEIGHTS):
        report(k / len(WEIGHTS))
        step = journal.step(lambda x=x, w=weight, n=iterations: search.improve(x, w, n))  # type: ignore[misc]
        x = np.asarray(step.variables)
    for _ in range(ROUNDS):
        found.append(x)
        uses, clear = task.uses(search.motion(x), OVERSAMPLING * RATE)
        if clear and max(use.share for use in uses) <= 1.0:
            break
        search = replace(search, limits=_tightened(search.limits, uses))
        step = journal.step(lambda x=x, s=search: s.improve(x, *STRICT))  # type: ignore[misc]
        x = np.asarray(step.variables)
    return found[::-1]


def _tightened(limits: ExcitationLimits, uses: tuple[Use, ...]) -> ExcitationLimits:
    """Return limits of speed, acceleration and torque, smaller where a motion exceeds them."""
    factors = {use.kind: TIGHTER / use.share if use.share > 1.0 else 1.0 for use in uses}
    motion = replace(
        limits.motion,
        velocity=factors["speed"] * limits.motion.velocity,
        acceleration=factors["acceleration"] * limits.motion.acceleration,
    )
    return replace(limits, motion=motion, effort=factors["torque"] * limits.effort)


def _ramped(u: Array) -> Array:
    """Return the path parameter of a trapezoidal profile at relative times u."""
    top = 1.0 / (1.0 - RAMP)
    rising, falling = 0.5 * top * u**2 / RAMP, 1.0 - 0.5 * top * (1.0 - u) ** 2 / RAMP
    return np.where(u < RAMP, rising, np.where(u < 1.0 - RAMP, top * (u - 0.5 * RAMP), falling))


def _freed(
    task: MotionTask, times: Durations, timed: list[Differentiable], scale: float, journal: Resumable,
    report: Callable[[str, float | None], None],
) -> list[Differentiable]:  # fmt: skip
    """Return free motions from the best to the most careful: as found, and nearer to the path."""
    base = timed[0]
    passes = _passes(task, base)
    spline = UnitSpline(max(FREE_SPANS, 2 * len(task.points) + 8), passes)
    leg = FreeLeg(spline, task.points)
    search = MotionSearch(task.power, task.limits, (leg,), times.shortest, times.longest, task.power_limit, scale)
    begin = search.pack([leg.start(base.position(base.duration * spline.quadrature[0]))], np.array([base.duration]))
    found = _refined(task, search, begin, journal, lambda share: report("searching a free path", share))
    last = found[0]
    return [search.motion(begin + share * (last - begin)) for share in BLENDS]


def _passes(task: MotionTask, motion: Differentiable) -> tuple[float, ...]:
    """Return the relative times at which a motion along straight paths passes the waypoints."""
    if task.motion is not None or len(task.points) == 2:
        return ()
    t = np.linspace(0.0, motion.duration, 5001)
    q = motion.position(t)
    near = [t[int(np.argmin(np.abs(q - point).max(axis=1)))] / motion.duration for point in task.points[1:-1]]
    return tuple(float(u) for u in near)


def _no_solution(task: MotionTask, original: MotionEnergy) -> str:
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
