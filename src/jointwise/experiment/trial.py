"""From the name of an experiment to a recording of the digital robot."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from jointwise import __version__
from jointwise.description.catalog import catalog_robot
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.payload import Payload
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.experiment.controllers import Delayed, Following, Periods, make_controller
from jointwise.experiment.events import Events, refuse_ageing
from jointwise.experiment.recording import Recording
from jointwise.model.closed_loop import POSES, UnstableError, refuse_unstable
from jointwise.model.control_law import AffineControl
from jointwise.model.rigid import gravity_torque, inverse_dynamics
from jointwise.simulation.recording import Recorder, Targets, digital_robot_to_dict
from jointwise.simulation.references import Experiment, make_experiment, refuse_outside_limits
from jointwise.simulation.references.clearance import refuse_below
from jointwise.simulation.references.trajectory import DurationError, States, Trajectory
from jointwise.simulation.robot import (
    DigitalRobot,
    InstabilityError,
    JointPlant,
    Run,
    State,
    carried_over,
    digital_robot,
    drives_of,
)
from jointwise.simulation.robot import simulate as run_robot
from jointwise.simulation.robot.stability import usual_substeps
from jointwise.simulation.sensors import Sensors
from jointwise.spatial import Array

LEAD = 0.5
"""Time (s) for which the robot stands still first; at most `LEAD_SHARE` of the recording."""
LEAD_SHARE = 0.02
BLOCK = 16384
"""Control periods that are in memory at a time."""
MOST_SAMPLES = 1_000_000_000
"""Most samples of a log, and most control periods; beyond, a disk or a day is not enough."""
FASTEST = 100_000.0
"""Highest control rate, Hz."""
COLDEST, HOTTEST = -60.0, 200.0
"""Temperatures (°C) between which a joint can start."""
LOST = 0.5
"""Tracking error (rad, m) at which the arm is taken to have lost its motion."""
SPARE = 1.0
"""Time (s) by which a controller knows the motion beyond its end: jitter and the last period."""
CURRENT_STEP = 1e-3
"""Quantisation of the measured current (A) unless sensors are given."""

BANDWIDTH_PARTS = np.array([0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05])
"""Parts of a bandwidth that are tried where it does not hold the arm."""

USUAL_CONTROLLER = "servo"

Shares = Callable[[float], None]


def simulate(
    robot: Robot | str,
    experiment: str | Experiment | Trajectory = "excitation",
    *,
    duration: float | None = None,
    rate: float = 500.0,
    seed: int = 0,
    joint: int | None = None,
    clearance: float | None = None,
    without: str | Sequence[str] = (),
    payload: Payload | None = None,
    gravity: Mounting | None = None,
    model: str = "spong",
    controller: str = USUAL_CONTROLLER,
    control_rate: float = 1000.0,
    bandwidth: float | None = None,
    sensors: Sensors | None = None,
    temperature: float | None = None,
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
    `bandwidth` (Hz) replaces the controller's own. `seed` decides motion and noise: the same seed gives the same log to
    the bit. `joint` (0-based) is the one under test. A `clearance` (m) keeps the motion that high above the mounting
    plane, z = 0 of the base; None: nobody looks. `without` names phenomena to switch off
    (`simulation.robot.PHENOMENA`), `age` gives the growth of `friction` and `stiffness` (0.2 is +20 %), `temperature`
    the start (°C, None: ambient). `gravity` is the mounting; None takes the one that the experiment is meant for.
    `sensors` are those of `Sensors`, with this `rate` and `seed`. `events` come on the way: payloads, pushes, wear. At
    most `keep` samples of the true run are kept (every n-th period), None: all. `progress` is told the share done.
    """
    own = catalog_robot(robot) if isinstance(robot, str) else robot
    _refuse_endless(duration, rate, control_rate)
    _refuse_temperature(temperature)
    if seed < 0:
        raise ModelError(f"seed must not be negative. Got {seed} instead.")
    plan, lead, total = _planned(own, experiment, duration, seed, joint, gravity, clearance)
    digital = digital_robot(own, plan.gravity, payload, model, joints)  # type: ignore[arg-type]
    off = (without,) if isinstance(without, str) else tuple(without)
    digital = _aged(digital.without(*off), age or {})
    coming = events or Events()
    coming.check(total)
    measuring = usual_sensors(rate, seed) if sensors is None else replace(sensors, rate=rate, seed=seed)
    recorder = Recorder(digital, measuring, total, gauge=plan.torque is not None)
    motion = Delayed(plan.motion, lead, total + SPARE)
    following = _following(plan, controller, digital, motion, control_rate, bandwidth)
    stages = coming.stages(digital, control_rate, total)
    trial = _Trial(plan, digital, lead, following, control_rate, coming, stages)
    if bandwidth is not None:
        _refuse_bandwidth(
            trial, total, bandwidth, lambda hertz: make_controller(controller, digital, motion, control_rate, hertz)
        )
    runs = trial.carry_out(recorder, temperature, keep, progress or (lambda _: None))
    truth = digital_robot_to_dict(digital) | {
        "version": __version__,
        "experiment": _experiment_to_dict(plan),
        "seed": seed,
        "duration": total,
        "lead": lead,
        "rate": rate,
        "sensors": asdict(measuring),
        "controller": _controller_to_dict(following, controller, control_rate, bandwidth),
        "temperature": temperature,
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


def _planned(
    robot: Robot,
    asked: str | Experiment | Trajectory,
    duration: float | None,
    seed: int,
    joint: int | None,
    gravity: Mounting | None,
    clearance: float | None,
) -> tuple[Experiment, float, float]:
    """Return the experiment, how long the robot stands before it, and how long all takes, s."""
    lead = LEAD if duration is None else min(LEAD, LEAD_SHARE * duration)
    try:
        moving = None if duration is None else duration - lead
        plan = _experiment(robot, asked, moving, seed, joint, clearance)
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
) -> Experiment:
    """Return an experiment by name, or the given one if it suits the robot."""
    if isinstance(asked, str):
        return make_experiment(asked, robot, duration, seed, joint=joint, clearance=clearance)
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
    if clearance is not None:
        refuse_below(robot, plan.motion, clearance)
    return plan


def _with_lead(motion: float) -> float:
    """Return the duration (s) of a recording that leaves time (s) for a motion."""
    return min(motion + LEAD, motion / (1.0 - LEAD_SHARE))


def _refuse_endless(duration: float | None, rate: float, control_rate: float) -> None:
    """Refuse rates (Hz) and durations (s) that are no numbers, or that no computer gets through."""
    for name, value, unit in (("duration", duration, "s"), ("rate", rate, "Hz"), ("control_rate", control_rate, "Hz")):
        if value is not None and not (np.isfinite(value) and value > 0.0):
            raise ModelError(f"{name} must be a positive number of {unit}. Got {value} instead.")
    if control_rate > FASTEST:
        raise ModelError(f"control_rate must be at most {FASTEST:g} Hz. Got {control_rate:g} instead.")
    samples = (duration or 1.0) * max(rate, control_rate)
    if samples > MOST_SAMPLES:
        raise ModelError(
            f"a recording must have at most {MOST_SAMPLES:g} samples and control periods. Got {samples:.3g} instead: "
            "choose a shorter duration or a lower rate."
        )


def _refuse_temperature(temperature: float | None) -> None:
    if temperature is not None and not COLDEST <= temperature <= HOTTEST:
        raise ModelError(f"temperature must be {COLDEST:g} to {HOTTEST:g} °C. Got {temperature} instead.")


def _following(
    plan: Experiment, name: str, digital: DigitalRobot, motion: Delayed, rate: float, bandwidth: float | None
) -> Following | None:
    """Return the controller of an experiment; None where the torque is prescribed, which leaves it no choice."""
    if plan.torque is None:
        return make_controller(name, digital, motion, rate, bandwidth)
    if name != USUAL_CONTROLLER or bandwidth is not None:
        raise ModelError(f"{plan.name} prescribes the torques: leave out the controller and its bandwidth.")
    return None


def _refuse_bandwidth(trial: _Trial, duration: float, bandwidth: float, make: Callable[[float], Following]) -> None:
    """Refuse a bandwidth (Hz) that does not hold the arm, and tell the largest part of it that does."""
    try:
        trial.refuse_unstable(trial.periods(duration))
    except UnstableError as problem:
        for slower in BANDWIDTH_PARTS * bandwidth:
            with contextlib.suppress(UnstableError):
                replace(trial, controller=make(slower)).refuse_unstable(trial.periods(duration))
                raise ModelError(f"{problem.what} A bandwidth of {slower:.3g} Hz would do.") from None
        raise


def _controller_to_dict(following: Following | None, name: str, rate: float, bandwidth: float | None) -> dict[str, Any]:
    if following is None:
        return {"name": "prescribed torque", "rate": rate, "bandwidth": None}
    return {"name": name, "rate": rate, "bandwidth": bandwidth, **following.to_dict()}


def _aged(digital: DigitalRobot, age: Mapping[str, float]) -> DigitalRobot:
    refuse_ageing(age, "age")
    return digital.aged(age.get("friction", 0.0), age.get("stiffness", 0.0))


@dataclass(frozen=True)
class _Trial:
    """An experiment under way: `lead` (s) of standstill, then the motion, at a control `rate` (Hz).

    The `controller` is None where the torque is prescribed. `digital` is the robot as its controller knows it; `events`
    make another of it: `stages` tells which, each from a period on.
    """

    plan: Experiment
    digital: DigitalRobot
    lead: float
    controller: Following | None
    rate: float
    events: Events
    stages: list[tuple[int, DigitalRobot]]

    def carry_out(self, recorder: Recorder, temperature: float | None, keep: int | None, progress: Shares) -> list[Run]:
        """Run and record block by block; return what is kept of the runs."""
        state = self.digital.rest(self._states(np.zeros(1)).q[0], temperature)
        periods = self.periods(recorder.end)
        stride = 1 if keep is None else -(-periods // keep) if keep > 0 else 0
        kept: list[Run] = []
        self.refuse_unstable(periods)
        for first in range(0, periods, BLOCK):
            last = min(first + BLOCK, periods)
            numbers = np.arange(first, last)
            states = self._states(numbers / self.rate)
            run = self._run(first, state, states, self._law(numbers, states))
            until = last / self.rate if last < periods else np.inf
            recorder.add(run, self.rate, until, self._targets(recorder.times(until)))
            kept += [run.thinned(stride)] if stride else []
            state = run.final
            progress(last / periods)
        return kept

    @property
    def _locked(self) -> bool:
        return self.plan.torque is not None

    def _states(self, times: Array) -> States:
        return self.plan.motion.at(times - self.lead)

    def _law(self, periods: Periods, states: States) -> AffineControl:
        """Return the controller of some periods; a locked joint gets its prescribed torque, the others hold."""
        if self.controller is None:
            return AffineControl(torque=self._holding(states.q) + self._prescribed(states.t))
        return self.controller.law(periods, states, self._model_torque(states))

    def _holding(self, q: Array) -> Array:
        own = self.digital
        return gravity_torque(own.robot, q, gravity=own.gravity, payload=own.payload)

    def _prescribed(self, t: Array) -> Array:
        """Return the torques that the experiment prescribes at times (samples,) of its motion, Nm."""
        if self.plan.torque is None:
            return np.zeros((len(t), self.digital.robot.dof))
        return self.plan.torque.at(t)

    def _run(self, first: int, state: State, states: States, law: AffineControl) -> Run:
        """Return a block of the run that starts at a period, or say why the arm does not follow."""
        try:
            run = self._pieces(first, state, law)
        except InstabilityError as failure:
            self._refuse_overload(states, failure.time)
            raise
        self._refuse_lost(run, states)
        return run

    def _pieces(self, first: int, state: State, law: AffineControl) -> Run:
        """Return the run of a block, cut where the robot becomes another."""
        wrench = self.events.wrench((first + np.arange(law.periods)) / self.rate)
        runs: list[Run] = []
        for start, stop, before, digital in self._stages(first, first + law.periods):
            state = state if digital is before else carried_over(state, before, digital)
            push = None if wrench is None else wrench[start - first : stop - first]
            own = law.part(start - first, stop - first)
            runs.append(
                run_robot(
                    digital, state, own, rate=self.rate, wrench=push, locked=self._locked, substeps=self._substeps
                )
            )
            state = runs[-1].final
        return Run.joined(runs)

    @cached_property
    def _substeps(self) -> int:
        """Integration steps a period that do for every stage: wear goes one way, so its ends tell."""
        robots = [robot for _, robot in self.stages]
        loaded = [robot for before, robot in pairwise(robots) if robot.payload is not before.payload]
        step = min(robot.largest_step for robot in (robots[0], robots[-1], *loaded))
        return usual_substeps(1.0 / self.rate, step)

    def _stages(self, first: int, last: int) -> Iterator[tuple[int, int, DigitalRobot, DigitalRobot]]:
        """Yield the parts of a block in which the robot stays as it is: periods, the robot before and then."""
        stages = [(-1, self.digital), *self.stages]
        ends = [start for start, _ in self.stages[1:]] + [np.iinfo(int).max]
        for (_, before), (start, digital), end in zip(stages, self.stages, ends, strict=False):
            if max(start, first) < min(end, last):
                yield max(start, first), min(end, last), before if start >= first else digital, digital

    def _model_torque(self, states: States) -> Array:
        """Return the torque of links, rotors and payload along the reference, without friction, (samples, joints)."""
        rotors = np.array([joint.inertia for joint in self.digital.joints])
        return inverse_dynamics(
            self.digital.robot, states.q, states.qd, states.qdd,
            gravity=self.digital.gravity, payload=self.digital.payload, rotor_inertias=rotors,
        )  # fmt: skip

    def _targets(self, times: Array) -> Targets:
        states = self._states(times)
        torque = self._model_torque(states) + self._prescribed(states.t)
        return Targets(states.q, states.qd, states.qdd, torque)

    def periods(self, end: float) -> int:
        """Return the control periods until a time (s)."""
        return int(np.ceil(end * self.rate - 1e-6)) + 1

    def refuse_unstable(self, periods: int) -> None:
        """Refuse gains that do not hold the arm at poses along the whole motion."""
        own = self.digital
        numbers = np.unique(np.linspace(0, periods - 1, POSES).astype(np.intp))
        states = self._states(numbers / self.rate)
        law = self._law(numbers, states)
        try:
            refuse_unstable(
                own.robot, law, self.rate, drives_of(own),
                gravity=own.gravity, payload=own.payload, times=numbers / self.rate,
            )  # fmt: skip
        except ModelError:
            self._refuse_overload(states)
            raise

    def _refuse_overload(self, states: States, until: float = np.inf) -> None:
        """Say so if the motion asked a motor for more than it gives before a time (s)."""
        limits = np.array([drive.limit for drive in drives_of(self.digital)])
        torque = np.abs(self._model_torque(states)) * (states.t + self.lead <= until + 1.0 / self.rate)[:, None]
        k, j = np.unravel_index(int(np.argmax(torque / limits)), torque.shape)
        if torque[k, j] > limits[j]:
            name = self.digital.robot.joints[j].name
            raise ModelError(
                f"joint '{name}' is overloaded: the motion needs {torque[k, j]:.3g} Nm, its motor gives at most "
                f"{limits[j]:.3g} Nm. Choose a smaller payload or a slower motion."
            )

    def _refuse_lost(self, run: Run, states: States) -> None:
        error = np.abs(run.q - states.q)
        if self._locked or error.max() < LOST:
            return
        k, j = np.argwhere(error >= LOST)[0]
        self._refuse_overload(states, run.t[k])
        name = self.digital.robot.joints[j].name
        raise ModelError(
            f"joint '{name}' lost its motion at t = {run.t[k]:.4g} s (off by {error[k, j]:.2g} rad): it lacks current "
            "for this load, or the loop is unstable. Choose a smaller payload, a slower motion or other gains."
        )


def _experiment_to_dict(plan: Experiment) -> dict[str, Any]:
    joint = None if plan.joint is None else plan.joint + 1
    return {
        "name": plan.name,
        "note": plan.note,
        "joint": joint,
        "motion_duration": plan.motion.duration,
        "clearance": plan.clearance,
    }
