"""Optimal excitation: the Fourier series that determines the parameters of a robot best within its limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np

from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import TORQUE_NOISE, Robot
from jointwise.description.transmission import refuse_coupled
from jointwise.design.body import RESERVE, Body
from jointwise.design.clearance import Clearance
from jointwise.design.criterion import condition_number, standard_errors
from jointwise.design.excitation_limits import ExcitationLimits, Use, excitation_limits
from jointwise.design.excitation_search import Search, search_motion
from jointwise.design.fourier import FadedSeries, fourier_trajectory
from jointwise.design.information import GOALS, Goal, InformationModel, friction_terms
from jointwise.design.trajectory import DurationError, States, Trajectory, check_positive
from jointwise.errors import ModelError
from jointwise.model.dynamics import Dynamics
from jointwise.model.skeleton import Tool
from jointwise.spatial import Array

CLEARANCE = 0.05
"""Height (m) above the mounting plane that is kept by default."""
SHORTEST = 5.0
"""Shortest duration (s): fading in and out takes half of it."""
LONGEST = 600.0
"""Longest duration (s): a motion of ten minutes repeats its periods sixty times."""
LOWEST_FREQUENCY = 0.1
"""Base frequency (Hz) of motions of 10 s and more; shorter ones use that of one period."""
RATE = 500.0
"""Rate (Hz) of trajectory files and of the recording that a prediction is made for."""
OVERSAMPLING = 10
"""The limits of a motion hold at so many points for each sample of its file."""
STUDY_RATE = 50.0
"""Rate (Hz) at which information is computed; it grows in proportion to the rate of a recording."""
RANDOM_SERIES = 20
"""Number of random series of the comparison."""
SHRINK, SMALLEST = 0.98, 0.3
"""Factor by which a motion is reduced until all limits hold, and the smallest accepted size."""
CHUNK = 10_000
"""Samples in memory at a time."""


@dataclass(frozen=True)
class RandomComparison:
    """Random series of the same duration and speed: median and least condition number, median errors (parameters,)."""

    condition: float
    best_condition: float
    errors: Array


@dataclass(frozen=True)
class Excitation:
    """An optimal excitation.

    Attributes:
        motion: The trajectory, from rest to rest.
        model: The parameters, their reference values and the torque noise of the prediction.
        limits: Limits that the motion keeps at 10 points per sample of 500 Hz.
        condition: Condition number of the regressor of the base parameters in SI units.
        errors: Predicted standard errors (parameters,) at 500 Hz and white torque noise.
        random: The same figures of random series.
        uses: Use of the limits: the largest share of each kind and where.
        seed: Seed of the search.
        speed: Share of the speed limits.

    """

    motion: FadedSeries
    model: InformationModel
    limits: ExcitationLimits
    condition: float
    errors: Array
    random: RandomComparison
    uses: tuple[Use, ...]
    seed: int
    speed: float

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.model.robot

    @cached_property
    def improvement(self) -> Array:
        """Median standard errors of random series over those of this motion, (parameters,)."""
        return self.random.errors / self.errors

    def to_dict(self) -> dict[str, Any]:
        """Return settings and prediction as a document."""
        model, motion = self.model, self.motion
        return {
            "robot": self.robot.name,
            "goal": model.goal,
            "duration_s": motion.duration,
            "speed": self.speed,
            "seed": self.seed,
            "rate_Hz": RATE,
            "base_frequency_Hz": motion.base_frequency,
            "gravity_m_s2": list(model.dynamics.gravity),
            "clearance_m": self.limits.clearance.plane if np.isfinite(self.limits.clearance.plane) else None,
            "torque_noise_Nm": model.noise.tolist(),
            "condition_number": self.condition,
            "random_condition_number": self.random.condition,
            "median_improvement": float(np.median(self.improvement[model.target])),
            "limits": {use.kind: {"where": use.where, "share": use.share} for use in self.uses},
            "parameters": [
                {"name": name, "unit": unit, "std_error": float(error), "random_std_error": float(other)}
                for name, unit, error, other in zip(
                    model.names, model.units, self.errors, self.random.errors, strict=True
                )
            ],
        }

    def summary(self) -> str:
        """Return the excitation in a few lines of text."""
        uses = ", ".join(f"{use.kind} {100.0 * use.share:.0f} %" for use in self.uses)
        return (
            f"{self.motion.duration:g} s for {self.model.goal}, condition number {self.condition:.1f} "
            f"(random series: {self.random.condition:.0f})\n"
            f"standard errors {np.median(self.improvement[self.model.target]):.2f} times smaller than those of random "
            f"series (median)\nuse of the limits: {uses}"
        )


def optimize_excitation(
    robot: Robot,
    duration: float = 20.0,
    *,
    speed: float = 0.6,
    seed: int = 1,
    goal: str = "all",
    mounting: Mounting = "table",
    clearance: float | None = CLEARANCE,
    tool: Tool | None = None,
    acceleration: float | None = None,
    reference: Mapping[str, float] | None = None,
    harmonics: int = 10,
    starts: int = 4,
    state: str | Path | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> Excitation:
    """Return the motion from rest to rest that determines the parameters of a robot best within its limits.

    A Fourier series is optimised from several random starts with exact gradients: D-optimal for the weighted regressor
    of bodies, rotors and friction, and well conditioned. Position, speed, acceleration, torque, the distance from the
    mounting plane and between the links are limited, also on the straight path from the upright pose to the first
    pose. The same arguments give the same motion.

    Args:
        robot: The robot; its description must have limits of position, speed and effort.
        duration: Duration in s.
        speed: Share of the speed limits.
        seed: Seed of the random starts.
        goal: What shall be determined: all, bodies, friction, or payload (bodies of the arm known).
        mounting: Mounting of the base.
        clearance: Height in m above the mounting plane that is kept; None to ignore the plane.
        tool: Geometry of the tool.
        acceleration: Limit of joints without described limit, rad/s² or m/s²; None for 6 rad/s² and 3 m/s².
        reference: Values by parameter name, such as those of a calibration; the description is the default.
        harmonics: Number of harmonics of the base frequency.
        starts: Number of random starts.
        state: File with the finished steps of an interrupted search, and where they are stored.
        progress: Called with the name of the stage and its completed share.

    Raises:
        ModelError: If a setting is wrong, the description lacks limits, or the limits permit no motion.

    """
    _check_settings(robot, duration, speed, goal, harmonics, starts)
    limits = excitation_limits(
        robot, speed, Clearance(Body(robot, tool), -np.inf if clearance is None else clearance), acceleration
    )
    model = _information_model(robot, mounting, cast(Goal, goal), limits, reference)
    frequency = max(LOWEST_FREQUENCY, 1.0 / duration)
    search = Search(model, limits, duration, harmonics, frequency, speed, seed)
    report = progress or (lambda stage, share: None)
    motion = search_motion(
        search, starts, lambda candidate: _within_limits(model, limits, candidate), _key(search, starts),
        None if state is None else Path(state), lambda share: report("optimising", share),
    )  # fmt: skip
    if motion is None:
        raise ModelError(
            f"the limits of robot '{robot.name}' permit no excitation in {duration:g} s: none of {starts} starts kept "
            "them. Choose a smaller clearance, a longer duration or another seed."
        )
    report("comparing with random series", None)
    return _excitation(search, motion)


def _check_settings(robot: Robot, duration: float, speed: float, goal: str, harmonics: int, starts: int) -> None:
    refuse_coupled(robot, "an optimal excitation")
    if goal not in GOALS:
        raise ModelError(f"goal must be {', '.join(GOALS[:-1])} or {GOALS[-1]}. Got '{goal}' instead.")
    check_positive(duration=duration, speed=speed, harmonics=harmonics, starts=starts)
    if duration < SHORTEST:
        raise DurationError("an excitation with its fades", SHORTEST, duration)
    if duration > LONGEST:
        raise ModelError(f"duration must be at most {LONGEST:g} s. Got {duration:g} instead.")
    if speed > 1.0:
        raise ModelError(f"speed must be a share of the speed limits, 0 to 1. Got {speed:g} instead.")


def _information_model(
    robot: Robot, mounting: Mounting, goal: Goal, limits: ExcitationLimits, reference: Mapping[str, float] | None
) -> InformationModel:
    """Return the model with the described values, or those of a reference where it has them."""
    x, y, z = gravity_vector(mounting).tolist()
    dynamics = Dynamics(robot, (x, y, z), True, tuple(friction_terms() for _ in range(robot.dof)))
    rotors = [joint.motor.reflected_inertia or 0.0 for joint in robot.joints]
    bodies = dynamics.base.from_standard(np.concatenate([robot.inertials.ravel(), rotors]))
    friction = [(0.0, joint.motor.coulomb or 0.0, 0.0, joint.motor.viscous or 0.0) for joint in robot.joints]
    values = np.concatenate([bodies, np.ravel(friction)])
    known = reference or {}
    if reference is not None and not set(dynamics.base.names) & set(known):
        raise ModelError(f"reference must have parameters of robot '{robot.name}'. Was it made for another robot?")
    values = np.array([known.get(info.name, value) for info, value in zip(dynamics.parameters, values, strict=True)])
    return InformationModel(dynamics, values, TORQUE_NOISE * limits.effort, goal)


def _key(search: Search, starts: int) -> str:
    """Return a text that differs for searches with different results."""
    limits, model = search.limits, search.model
    numbers = [model.values, model.noise, limits.home, limits.effort, model.robot.rotations, model.robot.translations]
    numbers += [getattr(limits.motion, name) for name in ("lower", "upper", "velocity", "acceleration")]
    tool = limits.clearance.body.tool
    settings = [
        model.goal, model.dynamics.gravity, search.duration, search.harmonics, search.base_frequency, search.speed,
        search.seed, starts, limits.clearance.plane, None if tool is None else (tool.length, tool.radius),
        [np.asarray(array).tolist() for array in numbers],
    ]  # fmt: skip
    return sha256(json.dumps(settings).encode()).hexdigest()


def _within_limits(model: InformationModel, limits: ExcitationLimits, motion: FadedSeries) -> FadedSeries | None:
    """Return the motion, reduced about its first pose until all limits hold; None if it becomes too small."""
    coarse = np.arange(0.0, motion.duration, 0.01)
    size = 1.0
    while size >= SMALLEST:
        smaller = motion.about(motion.center, size)
        clear = limits.is_clear(smaller.position(coarse), motion.center, RESERVE)
        if clear and max(use.share for use in limit_uses(model, limits, smaller, RATE)) <= 1.0:
            fine = np.arange(0.0, motion.duration, 1.0 / (OVERSAMPLING * RATE))
            uses = limit_uses(model, limits, smaller, OVERSAMPLING * RATE)
            if max(use.share for use in uses) <= 1.0 and limits.is_clear(smaller.position(fine), motion.center):
                return smaller
        size *= SHRINK
    return None


def limit_uses(model: InformationModel, limits: ExcitationLimits, motion: Trajectory, rate: float) -> tuple[Use, ...]:
    """Return the largest use of each kind of limit along a motion sampled at a rate (Hz)."""
    count = int(motion.duration * rate) + 1
    parts = []
    for first in range(0, count, CHUNK):
        states = motion.at(np.arange(first, min(first + CHUNK, count)) / rate)
        parts.append(limits.uses(states, model.torque(model.columns(states), states)))
    return tuple(max(same, key=lambda use: use.share) for same in zip(*parts, strict=True))


def _excitation(search: Search, motion: FadedSeries) -> Excitation:
    """Return the excitation with its prediction and the comparison with random series."""
    model, robot = search.model, search.model.robot
    density = RATE / STUDY_RATE
    others = [fourier_trajectory(robot, search.duration, k, speed_fraction=search.speed) for k in range(RANDOM_SERIES)]
    figures = [_figures(model, other.sample(STUDY_RATE), density) for other in others]
    conditions = [condition for condition, _ in figures]
    medians = np.median([errors for _, errors in figures], axis=0)
    condition, errors = _figures(model, motion.sample(STUDY_RATE), density)
    uses = limit_uses(model, search.limits, motion, RATE)
    random = RandomComparison(float(np.median(conditions)), min(conditions), medians)
    return Excitation(motion, model, search.limits, condition, errors, random, uses, search.seed, search.speed)


def _figures(model: InformationModel, states: States, density: float) -> tuple[float, Array]:
    """Return condition number and standard errors (parameters,) of a motion."""
    columns = model.columns(states)
    return condition_number(model, columns), standard_errors(model, columns, density)
