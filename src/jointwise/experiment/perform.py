"""From the name of an experiment to a recording of the digital robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from jointwise import __version__
from jointwise.description.catalog import catalog_robot
from jointwise.description.mounting import Mounting
from jointwise.description.payload import Payload
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.experiment.asked import refuse_no_whole, refuse_other
from jointwise.experiment.controllers import Asked, Delayed, Following, make_controller
from jointwise.experiment.events import Events, refuse_ageing
from jointwise.experiment.own import Stepping
from jointwise.experiment.planned import planned, refuse_endless, refuse_temperature
from jointwise.experiment.recording import Recording
from jointwise.experiment.trial import Shares, Trial
from jointwise.model.closed_loop import UnstableError
from jointwise.model.skeleton import Tool
from jointwise.simulation.recording import Recorder, digital_robot_to_dict
from jointwise.simulation.references import Experiment
from jointwise.simulation.references.trajectory import Trajectory
from jointwise.simulation.robot import (
    DigitalRobot,
    JointPlant,
    Run,
    digital_robot,
)
from jointwise.simulation.sensors import Sensors

SPARE = 1.0
"""Time (s) by which a controller knows the motion beyond its end: jitter and the last period."""
CURRENT_STEP = 1e-3
"""Quantisation of the measured current (A) unless sensors are given."""
BANDWIDTHS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.5, 8.0, 11.0, 16.0, 22.0, 32.0, 45.0, 64.0, 90.0, 130.0, 200.0)
"""Bandwidths (Hz) that are tried where one does not hold the arm."""
USUAL_CONTROLLER = "servo"
Feedback = Literal["states", "sensors"]
FEEDBACKS: tuple[Feedback, ...] = ("states", "sensors")
"""What controllers read: the true states, or the encoders, whose differences over a period are the speeds."""
USUAL_FEEDBACK: Feedback = "states"


def simulate(
    robot: Robot | str,
    experiment: str | Experiment | Trajectory = "excitation",
    *,
    duration: float | None = None,
    rate: float = 500.0,
    seed: int = 0,
    joint: int | None = None,
    clearance: float | None = None,
    tool: Tool | None = None,
    without: str | Sequence[str] = (),
    payload: Payload | None = None,
    gravity: Mounting | None = None,
    model: str = "spong",
    controller: Asked = USUAL_CONTROLLER,
    control_rate: float = 1000.0,
    bandwidth: float | None = None,
    feedback: Feedback = USUAL_FEEDBACK,
    sensors: Sensors | None = None,
    temperature: float | Sequence[float] | None = None,
    age: Mapping[str, float] | None = None,
    joints: Sequence[JointPlant] | None = None,
    events: Events | None = None,
    keep: int | None = None,
    progress: Shares | None = None,
) -> Recording:
    """Return the recording of an experiment on the digital robot.

    `experiment` is a name (`simulation.references.EXPERIMENTS`), an `Experiment`, or any motion; `robot` a description
    or a name of the catalogue. `duration` (s) of the recording, of which the arm stands still for the first half second
    (at most 2 %), None for the usual one; `rate` (Hz) of the log and `control_rate` of the controller are independent,
    `bandwidth` (Hz) replaces the controller's own. With `feedback` "sensors" the controller reads the encoders, whose
    differences over a control period are its speeds; with "states" the true positions and speeds. `controller` is a
    name (`CONTROLLERS`), anything with ``init`` and ``step`` (`control.Controller`), or a function of the motion and
    the control rate that makes such a one. `seed` decides motion and noise: the same seed gives the same log to the
    bit. `joint` (0-based) is the one under test. A `clearance` (m) keeps the arm and its `tool` that high above the
    mounting plane, z = 0 of the base (-inf: the plane does not matter), and its links apart from each other; a given
    motion is refused if it does not. None: nobody looks. `without` names phenomena to switch off
    (`simulation.robot.PHENOMENA`), `age` gives the growth of `friction` and `stiffness` (0.2 is +20 %), `temperature`
    the start (°C, one or one a joint, None: ambient). `gravity` is the mounting; None takes the one that the experiment
    is meant for. `sensors` are those of `Sensors`, with this `rate` and `seed`. `events` come on the way: payloads,
    pushes, wear. At most `keep` samples of the true run are kept (every n-th period), None: all. `progress` is told the
    share done.
    """
    refuse_other((str, Robot), "a Robot or a name", robot=robot)
    own = catalog_robot(robot) if isinstance(robot, str) else robot
    refuse_endless(duration, rate, control_rate)
    refuse_temperature(temperature)
    refuse_no_whole(seed=seed, joint=0 if joint is None else joint, keep=0 if keep is None else keep)
    refuse_other(Payload, "a Payload", payload=payload)
    refuse_other(Events, "Events", events=events)
    refuse_other(Sensors, "Sensors", sensors=sensors)
    if seed < 0:
        raise ModelError(f"seed must not be negative. Got {seed} instead.")
    if feedback not in FEEDBACKS:
        raise ModelError(f"feedback must be states or sensors. Got '{feedback}' instead.")
    plan, lead, total = planned(own, experiment, duration, seed, joint, gravity, clearance, tool)
    digital = digital_robot(own, plan.gravity, payload, model, joints)  # type: ignore[arg-type]
    off = (without,) if isinstance(without, str) else tuple(without)
    digital = _aged(digital.without(*off), age or {})
    coming = events or Events()
    coming.check(total)
    measuring = usual_sensors(rate, seed) if sensors is None else replace(sensors, rate=rate, seed=seed)
    recorder = Recorder(digital, measuring, total, gauge=plan.torque is not None)
    motion = Delayed(plan.motion, lead, total + SPARE)
    following = _following(plan, controller, digital, motion, control_rate, bandwidth, feedback)
    stages = coming.stages(digital, control_rate, total)
    encoders = recorder.encoders if feedback == "sensors" else None
    trial = Trial(plan, digital, lead, following, control_rate, coming, stages, encoders)
    try:
        runs = trial.carry_out(recorder, temperature, keep, progress or (lambda _: None))
    except UnstableError as problem:
        if bandwidth is None:
            raise
        make = partial(make_controller, controller, digital, motion, control_rate)
        raise _other_bandwidth(problem, trial, total, bandwidth, make) from None
    truth = digital_robot_to_dict(digital) | {
        "version": __version__,
        "experiment": _experiment_to_dict(plan),
        "seed": seed,
        "duration": total,
        "lead": lead,
        "rate": rate,
        "sensors": asdict(recorder.sensors),
        "controller": _controller_to_dict(following, controller, control_rate, bandwidth, feedback),
        "temperature": None if temperature is None else np.asarray(temperature, dtype=float).tolist(),
        "without": list(off),
        "age": dict(age or {}),
        "events": coming.to_dict(),
    }
    log = recorder.finish()
    log = replace(log, origin=replace(log.origin, gravity=tuple(float(g) for g in digital.gravity)))
    return Recording(log, truth, Run.joined(runs) if runs else None, plan, digital)


def usual_sensors(rate: float = 500.0, seed: int = 0, **more: Any) -> Sensors:
    """Return the sensors of `simulate`: those of `Sensors` with a quantised current, and what is given."""
    return replace(Sensors(rate=rate, seed=seed, current_quantisation=CURRENT_STEP), **more)


def _following(
    plan: Experiment,
    asked: Asked,
    digital: DigitalRobot,
    motion: Delayed,
    rate: float,
    bandwidth: float | None,
    feedback: Feedback,
) -> Following | Stepping | None:
    """Return the controller of an experiment; None where the torque is prescribed, which leaves it no choice."""
    if plan.torque is None:
        return make_controller(asked, digital, motion, rate, bandwidth)
    if asked != USUAL_CONTROLLER or bandwidth is not None or feedback != USUAL_FEEDBACK:
        raise ModelError(f"{plan.name} prescribes the torques: leave out the controller, its bandwidth and feedback.")
    return None


def _other_bandwidth(
    problem: UnstableError,
    trial: Trial,
    duration: float,
    bandwidth: float,
    make: Callable[[float], Following | Stepping],
) -> ModelError:
    """Return the problem of a bandwidth (Hz) that does not hold the arm, and the nearest one that does."""
    for hertz in sorted(BANDWIDTHS, key=lambda own: abs(np.log(own / bandwidth))):
        if replace(trial, controller=make(hertz)).holds(trial.periods(duration)):
            return ModelError(f"{problem.what} A bandwidth of {hertz:g} Hz would do.")
    tried = f"No bandwidth from {min(BANDWIDTHS):g} to {max(BANDWIDTHS):g} Hz"
    return ModelError(f"{problem.what} {tried} does at a control rate of {trial.rate:g} Hz. Raise the rate.")


def _controller_to_dict(
    following: Following | Stepping | None, name: Asked, rate: float, bandwidth: float | None, feedback: Feedback
) -> dict[str, Any]:
    """Return the controller as a document; one of one's own tells its name itself."""
    if following is None:
        return {"name": "prescribed torque", "rate": rate, "bandwidth": None}
    return {"name": name, "rate": rate, "bandwidth": bandwidth, "feedback": feedback, **following.to_dict()}


def _aged(digital: DigitalRobot, age: Mapping[str, float]) -> DigitalRobot:
    refuse_ageing(age, "age")
    return digital.aged(age.get("friction", 0.0), age.get("stiffness", 0.0))


def _experiment_to_dict(plan: Experiment) -> dict[str, Any]:
    joint = None if plan.joint is None else plan.joint + 1
    return {
        "name": plan.name,
        "note": plan.note,
        "joint": joint,
        "motion_duration": plan.motion.duration,
        "clearance": plan.clearance if np.isfinite(plan.clearance or 0.0) else None,
        "links_apart": plan.clearance is not None,
        "tool": None if plan.tool is None else asdict(plan.tool),
        "source": None if plan.source is None else dict(plan.source),
    }
