"""What is asked for, as an experiment with its times, or a refusal before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.experiment.asked import is_number, refuse_no_positive
from jointwise.model.skeleton import Tool
from jointwise.simulation.references import Body, Clearance, Experiment, make_experiment, refuse_outside_limits
from jointwise.simulation.references.trajectory import DurationError, Trajectory
from jointwise.simulation.robot.joint import COLDEST, HOTTEST
from jointwise.spatial import Array

LEAD = 0.5
"""Time (s) for which the robot stands still first; at most `LEAD_SHARE` of the recording."""
LEAD_SHARE = 0.02
MOST_SAMPLES = 1_000_000_000
"""Most samples of a log, and most control periods; beyond, a disk or a day is not enough."""
FASTEST = 100_000.0
"""Highest rate of a log or a controller, Hz."""


def planned(
    robot: Robot,
    asked: str | Experiment | Trajectory,
    duration: float | None,
    seed: int,
    joint: int | None,
    gravity: Mounting | None,
    clearance: float | None,
    tool: Tool | None,
) -> tuple[Experiment, float, float]:
    """Return the experiment, how long the robot stands before it, and how long all takes, s."""
    lead = LEAD if duration is None else min(LEAD, LEAD_SHARE * duration)
    try:
        moving = None if duration is None else duration - lead
        plan = _experiment(robot, asked, moving, seed, joint, clearance, tool)
    except DurationError as problem:
        if duration is None:
            raise
        raise DurationError(f"a standstill and {problem.what}", _with_lead(problem.least), duration) from None
    if gravity is not None:
        plan = _turned(plan, gravity_vector(gravity))
    return plan, lead, plan.motion.duration + lead if duration is None else duration


def _turned(plan: Experiment, gravity: Array) -> Experiment:
    """Return an experiment under another gravity, and say so where it is meant for its own."""
    same = plan.joint is None or np.allclose(gravity, plan.gravity, atol=1e-3)
    note = plan.note if same else f"{plan.note} - but not here, where gravity was chosen otherwise"
    return replace(plan, gravity=gravity, note=note)


def _experiment(
    robot: Robot,
    asked: str | Experiment | Trajectory,
    duration: float | None,
    seed: int,
    joint: int | None,
    clearance: float | None,
    tool: Tool | None,
) -> Experiment:
    """Return an experiment by name, or the given one if it suits the robot."""
    if isinstance(asked, str):
        return make_experiment(asked, robot, duration, seed, joint=joint, clearance=clearance, tool=tool)
    if not isinstance(asked, Experiment | Trajectory):
        raise ModelError(
            f"experiment must be a name, an Experiment or a Trajectory. Got {type(asked).__name__} instead."
        )
    if joint is not None:
        raise ModelError("joint is for experiments by name: a given motion moves the joints that it moves.")
    plan = asked if isinstance(asked, Experiment) else Experiment("motion", asked, gravity_vector(), "a given motion")
    if duration is not None and duration < plan.motion.duration - 1e-9:
        raise DurationError("the motion", plan.motion.duration, duration)
    refuse_outside_limits(robot, plan.motion)
    if clearance is None:
        return replace(plan, tool=tool or plan.tool)
    Clearance(Body(robot, tool), clearance).refuse_unclear(plan.motion)
    return replace(plan, clearance=clearance, tool=tool)


def _with_lead(motion: float) -> float:
    """Return the duration (s) of a recording that leaves time (s) for a motion."""
    return min(motion + LEAD, motion / (1.0 - LEAD_SHARE))


def refuse_endless(duration: float | None, rate: float, control_rate: float) -> None:
    """Refuse rates (Hz) and durations (s) that are no numbers, or that no computer gets through."""
    refuse_no_positive("s", duration=duration)
    refuse_no_positive("Hz", rate=rate, control_rate=control_rate)
    for name, value in (("rate", rate), ("control_rate", control_rate)):
        if value > FASTEST:
            raise ModelError(f"{name} must be at most {FASTEST:g} Hz. Got {value:g} instead.")
    samples = (duration or 1.0) * max(rate, control_rate)
    if samples > MOST_SAMPLES:
        raise ModelError(
            f"a recording must have at most {MOST_SAMPLES:g} samples and control periods. Got {samples:.3g} instead: "
            "choose a shorter duration or a lower rate."
        )


def refuse_temperature(temperature: float | Sequence[float] | None) -> None:
    """Refuse temperatures (°C), one or one a joint, at which no joint starts."""
    if temperature is None:
        return
    alone = np.ndim(temperature) == 0
    for value in [temperature] if alone else list(temperature):  # type: ignore[arg-type]
        if not is_number(value) or not COLDEST <= value <= HOTTEST:  # type: ignore[operator]
            raise ModelError(f"temperature must be {COLDEST:g} to {HOTTEST:g} °C. Got {value} instead.")
