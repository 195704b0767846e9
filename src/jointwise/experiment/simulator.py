"""Simulating an experiment on the digital robot: from its name to a log with known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise import __version__
from jointwise.arguments import checked
from jointwise.call_settings import SimulationSettings
from jointwise.control.stability import UnstableError
from jointwise.data.coordinates import is_same
from jointwise.data.log import Log
from jointwise.description.check import require_sound
from jointwise.description.files import as_robot
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Robot
from jointwise.design import Body, Clearance, Experiment, check_limits, make_experiment
from jointwise.design.trajectory import DurationError, Trajectory
from jointwise.errors import ModelError, check_positive
from jointwise.experiment.controllers import AnyController, DelayedMotion, make_controller
from jointwise.experiment.options import ControllerOptions, Events, PlantOptions
from jointwise.experiment.result import SimulationResult
from jointwise.experiment.run import ExperimentRun, ProgressCallback
from jointwise.model.rigid.dynamics import mass_matrix
from jointwise.model.skeleton import Tool
from jointwise.simulation.recording import Recorder, digital_robot_to_dict
from jointwise.simulation.robot import DigitalRobot, Run
from jointwise.simulation.sensors import Sensors

if TYPE_CHECKING:
    from jointwise.experiment.twin import Twin
    from jointwise.result.calibration import CalibratedModel

LEAD = 0.5
"""Time (s) of standstill before the motion, in which the robot settles; at most `LEAD_SHARE` of the recording."""
LEAD_SHARE = 0.02
TRAIL = 1.0
"""Time (s) by which the controller's reference extends beyond the recording: clock jitter and the last period."""
CURRENT_QUANTISATION = 1e-3
"""Resolution of the measured current (A), as that of UR controllers."""
MOST_SAMPLES = 1_000_000_000
"""Limit of samples and control periods; a log of that size is about 500 GB."""
HIGHEST_RATE = 100_000.0
"""Limit of the rates of log and controller, Hz."""
BANDWIDTHS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.5, 8.0, 11.0, 16.0, 22.0, 32.0, 45.0, 64.0, 90.0, 130.0, 200.0)
"""Bandwidths (Hz) tested to suggest a stable one; steps of a factor of about 1.4."""


@checked
def simulate(
    robot: Robot | str | Path | Twin | CalibratedModel,
    experiment: str | Experiment | Trajectory = SimulationSettings.experiment,
    *,
    duration: float | None = None,
    rate: float = SimulationSettings.rate,
    seed: int = SimulationSettings.seed,
    joint: int | None = None,
    clearance: float | None = None,
    tool: Tool | None = None,
    plant: PlantOptions | None = None,
    controller: ControllerOptions | AnyController | None = None,
    sensors: Sensors | None = None,
    events: Events | None = None,
    keep: int | None = None,
    progress: ProgressCallback | None = None,
) -> SimulationResult:
    """Simulate an experiment on the digital robot and return its log together with the truth behind it.

    The same arguments give the same log, bit for bit.

    Args:
        robot: A robot, or the name of one in the catalogue; a calibrated model (`RobotModel`, `Calibration`) or a
            `Twin` for the digital twin, whose bodies, friction and drives are the identified ones.
        experiment: A name (`design.EXPERIMENTS`), an `Experiment`, or any trajectory.
        duration: Duration of the recording in s, of which the arm stands still for the first half second (at most
            2 %); None for the default of the experiment.
        rate: Rate of the log in Hz.
        seed: Seed of the motion and of the sensor noise.
        joint: Index of the joint under test (0-based), for the named experiments that have one.
        clearance: Height in m above the mounting plane (z = 0 of the base frame) that the arm and its tool must keep,
            with the links apart from each other; -inf checks the links only, None nothing.
        tool: Geometry of the tool for the clearance.
        plant: Payload, mounting, phenomena and joint parameters of the simulated robot.
        controller: Options of the controller, or only its name, object or factory (see `ControllerOptions`).
        sensors: Sensors of the log; their rate and seed are replaced by `rate` and `seed`. None for `default_sensors`.
        events: Payload changes, pushes and wear during the recording.
        keep: Number of control periods of the true signals to keep, evenly thinned; None for all, 0 for none.
        progress: Called with the completed share, 0 to 1.

    Returns:
        The log, the truth document, the true signals, the experiment and the digital robot.

    Raises:
        ModelError: If an argument is invalid, the controller is unstable, or the arm cannot perform the motion.
    """
    if seed < 0:
        raise ModelError(f"seed must not be negative. Got {seed} instead.")
    plant, events, control = plant or PlantOptions(), events or Events(), _controller_options(controller)
    _check_size(duration, rate, control.rate)
    description, plant, twin = _described(robot, plant)
    _require_movable(description)
    planned, lead = _plan(description, experiment, duration, seed, joint, clearance, tool)
    planned = _remounted(planned, plant.gravity)
    total = planned.motion.duration + lead if duration is None else duration
    events.check(total)
    digital = plant.build(description, planned.gravity)
    sensors = replace(sensors or default_sensors(), rate=rate, seed=seed)
    recorder = Recorder(digital, sensors, total, gauge=planned.torque is not None)
    stages = events.stages(digital, control.rate, total)
    encoders = recorder.encoders if control.feedback == "sensors" else None
    run = ExperimentRun(planned, digital, lead, None, control.rate, events, stages, encoders)
    run, kept = _record(run, control, recorder, total, plant.temperature, keep, progress or (lambda _: None))
    setup = {"seed": seed, "duration": total, "lead": lead, "rate": rate, "sensors": asdict(recorder.sensors)}
    truth = _truth(run, plant, control) | setup | ({} if twin is None else {"twin": twin.to_dict()})
    log = _with_gravity(recorder.finish(), digital)
    return SimulationResult(log, truth, Run.joined(kept) if kept else None, planned, digital)


def _with_gravity(log: Log, digital: DigitalRobot) -> Log:
    """Return a log of a digital robot that states its gravity."""
    return replace(log, origin=replace(log.origin, gravity=tuple(float(g) for g in digital.gravity)))


def _require_movable(robot: Robot) -> None:
    """Reject an unsound robot, and one whose links have no inertia about some joint: no torque moves it."""
    require_sound(robot)
    rotations = mass_matrix(robot, np.zeros((1, robot.dof)))[0]
    for joint, moment in zip(robot.joints, np.diag(rotations), strict=True):
        if not moment > 0.0:
            raise ModelError(f"joint '{joint.name}': the links that it moves have no inertia. Add masses to the file.")


def _described(
    robot: Robot | str | Path | Twin | CalibratedModel, plant: PlantOptions
) -> tuple[Robot, PlantOptions, Twin | None]:
    """Return the robot, its options, and the twin if it is one; options that are set overrule those of the twin."""
    if isinstance(robot, (Robot, str, Path)):
        return as_robot(robot), plant, None
    from jointwise.experiment.twin import Twin, make_twin

    twin = robot if isinstance(robot, Twin) else make_twin(robot)
    gravity = twin.gravity if plant.gravity is None and not is_same(twin.gravity, gravity_vector()) else plant.gravity
    return twin.robot, replace(plant, joints=plant.joints or twin.joints, gravity=gravity), twin


def default_sensors(rate: float = Sensors.rate, seed: int = Sensors.seed, **options: Any) -> Sensors:
    """Return the sensors that `simulate` uses by default: those of `Sensors` with a quantised current."""
    return replace(Sensors(rate=rate, seed=seed, current_quantisation=CURRENT_QUANTISATION), **options)


def _controller_options(controller: ControllerOptions | AnyController | None) -> ControllerOptions:
    if controller is None:
        return ControllerOptions()
    return controller if isinstance(controller, ControllerOptions) else ControllerOptions(controller)


def _check_size(duration: float | None, rate: float, control_rate: float) -> None:
    """Reject rates (Hz) and durations (s) that are not positive, or too large to simulate."""
    check_positive("s", duration=duration)
    check_positive("Hz", rate=rate)
    for name, value in (("rate", rate), ("control_rate", control_rate)):
        if value > HIGHEST_RATE:
            raise ModelError(f"{name} must be at most {HIGHEST_RATE:g} Hz. Got {value:g} instead.")
    samples = (duration or 1.0) * max(rate, control_rate)
    if samples > MOST_SAMPLES:
        raise ModelError(
            f"a recording must have at most {MOST_SAMPLES:g} samples and control periods. Got {samples:.3g} instead: "
            "choose a shorter duration or a lower rate."
        )


def _plan(
    robot: Robot,
    experiment: str | Experiment | Trajectory,
    duration: float | None,
    seed: int,
    joint: int | None,
    clearance: float | None,
    tool: Tool | None,
) -> tuple[Experiment, float]:
    """Return the experiment and the standstill (s) before it."""
    lead = LEAD if duration is None else min(LEAD, LEAD_SHARE * duration)
    moving = None if duration is None else duration - lead
    try:
        if isinstance(experiment, str):
            return make_experiment(experiment, robot, moving, seed, joint=joint, clearance=clearance, tool=tool), lead
        if joint is not None:
            raise ModelError("joint must be None for an experiment or a motion that is passed as an object.")
        return _checked_experiment(robot, experiment, moving, clearance, tool), lead
    except DurationError as problem:
        if duration is None:
            raise
        least = min(problem.least + LEAD, problem.least / (1.0 - LEAD_SHARE))
        raise DurationError(f"a standstill and {problem.what}", least, duration) from None


def _checked_experiment(
    robot: Robot, motion: Experiment | Trajectory, duration: float | None, clearance: float | None, tool: Tool | None
) -> Experiment:
    """Return a user's experiment or motion as an experiment that keeps the limits of the robot."""
    if not isinstance(motion, Experiment | Trajectory):
        raise ModelError(
            f"experiment must be a name, an Experiment or a Trajectory. Got {type(motion).__name__} instead."
        )
    if isinstance(motion, Trajectory):
        motion = Experiment("motion", motion, gravity_vector(), "a user-defined motion")
    if duration is not None and duration < motion.motion.duration - 1e-9:
        raise DurationError("the motion", motion.motion.duration, duration)
    check_limits(robot, motion.motion)
    if clearance is None:
        return replace(motion, tool=tool or motion.tool)
    Clearance(Body(robot, tool), clearance).check(motion.motion)
    return replace(motion, clearance=clearance, tool=tool)


def _remounted(experiment: Experiment, mounting: Mounting | None) -> Experiment:
    """Return an experiment in another mounting; its note mentions a gravity that differs from the intended one."""
    if mounting is None:
        return experiment
    gravity = gravity_vector(mounting)
    same = experiment.joint is None or np.allclose(gravity, experiment.gravity, atol=1e-3)
    note = experiment.note if same else f"{experiment.note} - but not here: another mounting was chosen"
    return replace(experiment, gravity=gravity, note=note)


def _record(
    run: ExperimentRun,
    control: ControllerOptions,
    recorder: Recorder,
    total: float,
    temperature: Any,
    keep: int | None,
    progress: ProgressCallback,
) -> tuple[ExperimentRun, list[Run]]:
    """Attach the controller and record; return the run with its controller and the true signals that are kept."""
    if run.experiment.torque is not None:
        if not control.is_default:
            raise ModelError(
                f"{run.experiment.name} prescribes the torques: leave out the controller, its bandwidth and feedback."
            )
        return run, run.record(recorder, temperature, keep, progress)
    motion = DelayedMotion(run.experiment.motion, run.lead, total + TRAIL)

    def with_bandwidth(bandwidth: float | None) -> ExperimentRun:
        made = make_controller(control.controller, run.digital, motion, control.rate, bandwidth)
        return replace(run, controller=made)

    controlled = with_bandwidth(control.bandwidth)
    try:
        return controlled, controlled.record(recorder, temperature, keep, progress)
    except UnstableError as problem:
        if control.bandwidth is None:
            raise
        stable = _nearest_bandwidth(
            control.bandwidth, lambda hertz: with_bandwidth(hertz).is_stable(run.periods(total))
        )
        tested = f"No bandwidth from {min(BANDWIDTHS):g} to {max(BANDWIDTHS):g} Hz"
        remedy = f"{tested} does at a control rate of {run.rate:g} Hz. Raise the rate."
        remedy = remedy if stable is None else f"A bandwidth of {stable:g} Hz would do."
        raise ModelError(f"{problem.what} {remedy}") from None


def _nearest_bandwidth(bandwidth: float, is_stable: Callable[[float], bool]) -> float | None:
    """Return the stable one of `BANDWIDTHS` (Hz) that is nearest to a bandwidth; None if there is none."""
    candidates = sorted(BANDWIDTHS, key=lambda hertz: abs(np.log(hertz / bandwidth)))
    return next((hertz for hertz in candidates if is_stable(hertz)), None)


def _truth(run: ExperimentRun, plant: PlantOptions, control: ControllerOptions) -> dict[str, Any]:
    """Return the truth document: the digital robot, the experiment, the controller and the events."""
    temperature = plant.temperature
    return digital_robot_to_dict(run.digital) | {
        "version": __version__,
        "experiment": _experiment_to_dict(run.experiment),
        "controller": _controller_to_dict(run, control),
        "temperature": None if temperature is None else np.asarray(temperature, dtype=float).tolist(),
        "without": list(plant.disabled),
        "age": dict(plant.age),
        "events": run.events.to_dict(),
    }


def _controller_to_dict(run: ExperimentRun, control: ControllerOptions) -> dict[str, Any]:
    """Return the controller as a document; an object provides its name itself."""
    if run.controller is None:
        return {"name": "prescribed torque", "rate": run.rate, "bandwidth": None}
    options = {"name": control.controller, "rate": run.rate, "bandwidth": control.bandwidth}
    return options | {"feedback": control.feedback} | run.controller.to_dict()


def _experiment_to_dict(experiment: Experiment) -> dict[str, Any]:
    clearance = experiment.clearance
    return {
        "name": experiment.name,
        "note": experiment.note,
        "joint": None if experiment.joint is None else experiment.joint + 1,
        "motion_duration": experiment.motion.duration,
        "clearance": clearance if np.isfinite(clearance or 0.0) else None,
        "links_apart": clearance is not None,
        "tool": None if experiment.tool is None else asdict(experiment.tool),
        "source": None if experiment.source is None else dict(experiment.source),
    }
