"""From the name of an experiment to a recording of the digital robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from jointwise import __version__
from jointwise.description.catalog import catalog_robot
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.payload import Payload
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.experiment.controllers import Delayed, Following, make_controller
from jointwise.experiment.recording import Recording
from jointwise.model.closed_loop import refuse_unstable
from jointwise.model.control_law import AffineControl
from jointwise.model.rigid import gravity_torque, inverse_dynamics
from jointwise.simulation.recording import Recorder, Targets, digital_robot_to_dict
from jointwise.simulation.references import Experiment, make_experiment
from jointwise.simulation.robot import DigitalRobot, JointPlant, Run, digital_robot, drives_of
from jointwise.simulation.robot import simulate as run_robot
from jointwise.simulation.sensors import Sensors
from jointwise.simulation.trajectory import States
from jointwise.spatial import Array

LEAD = 0.5
"""Time (s) for which the robot stands still first; at most `LEAD_SHARE` of the recording."""
LEAD_SHARE = 0.02
BLOCK = 16384
"""Control periods that are in memory at a time."""
LOST = 0.5
"""Tracking error (rad, m) at which the arm is taken to have lost its motion."""
SPARE = 1.0
"""Time (s) by which a controller knows the motion beyond its end: jitter and the last period."""
CURRENT_STEP = 1e-3
"""Quantisation of the measured current (A) unless sensors are given."""

Shares = Callable[[float], None]


def simulate(
    robot: Robot | str,
    experiment: str = "excitation",
    *,
    duration: float | None = None,
    rate: float = 500.0,
    seed: int = 0,
    joint: int | None = None,
    without: Sequence[str] = (),
    payload: Payload | None = None,
    gravity: Mounting | None = None,
    model: str = "spong",
    controller: str = "servo",
    control_rate: float = 1000.0,
    bandwidth: float | None = None,
    sensors: Sensors | None = None,
    temperature: float | None = None,
    age: Mapping[str, float] | None = None,
    joints: Sequence[JointPlant] | None = None,
    keep: int | None = None,
    progress: Shares | None = None,
) -> Recording:
    """Return the recording of an experiment by name (see `simulation.references.EXPERIMENTS`) on the digital robot.

    `robot` is a description or a name of the catalogue; `duration` (s) of the recording, of which the arm stands still
    for the first half second (at most 2 %), None for the usual one; `rate` (Hz) of the log and `control_rate` of the
    controller are independent, `bandwidth` (Hz) replaces the controller's own. `seed` decides motion and noise: the
    same seed gives the same log to the bit. `joint` (0-based) is the one under test. `without` names phenomena to
    switch off (`simulation.robot.PHENOMENA`), `age` gives the growth of `friction` and `stiffness` (0.2 is +20 %),
    `temperature` the start (°C, None: ambient). `gravity` is the mounting; None takes the one that the experiment is
    meant for. `sensors` are those of `Sensors`, with this `rate` and `seed`. At most `keep` samples of the true run are
    kept (every n-th period), None: all. `progress` is told the share done.
    """
    own = catalog_robot(robot) if isinstance(robot, str) else robot
    plan, lead, total = _planned(own, experiment, duration, seed, joint, gravity)
    digital = digital_robot(own, plan.gravity, payload, model, joints)  # type: ignore[arg-type]
    digital = _aged(digital.without(*without), age or {})
    measuring = usual_sensors(rate, seed) if sensors is None else replace(sensors, rate=rate, seed=seed)
    recorder = Recorder(digital, measuring, total, gauge=plan.torque is not None)
    following = make_controller(controller, digital, Delayed(plan.motion, lead, total + SPARE), control_rate, bandwidth)
    trial = _Trial(plan, digital, lead, following, control_rate)
    runs = trial.carry_out(recorder, temperature, keep, progress or (lambda _: None))
    truth = digital_robot_to_dict(digital) | {
        "version": __version__,
        "experiment": _experiment_to_dict(plan),
        "seed": seed,
        "duration": total,
        "lead": lead,
        "rate": rate,
        "sensors": asdict(measuring),
        "controller": {"name": controller, "rate": control_rate, "bandwidth": bandwidth, **trial.controller.to_dict()},
        "temperature": temperature,
        "without": list(without),
        "age": dict(age or {}),
    }
    return Recording(recorder.finish(), truth, Run.joined(runs) if runs else None, plan, digital)


def usual_sensors(rate: float = 500.0, seed: int = 0, **more: Any) -> Sensors:
    """Return the sensors of `simulate`: those of `Sensors` with a quantised current, and what is given."""
    return replace(Sensors(rate=rate, seed=seed, current_quantisation=CURRENT_STEP), **more)


def _planned(
    robot: Robot, name: str, duration: float | None, seed: int, joint: int | None, gravity: Mounting | None
) -> tuple[Experiment, float, float]:
    """Return the experiment, how long the robot stands before it, and how long all takes, s."""
    lead = LEAD if duration is None else min(LEAD, LEAD_SHARE * duration)
    if duration is not None and not (np.isfinite(duration) and duration > 0.0):
        raise ModelError(f"duration must be a positive number of s. Got {duration} instead.")
    try:
        plan = make_experiment(name, robot, None if duration is None else duration - lead, seed, joint=joint)
    except ModelError as problem:
        if "duration" not in str(problem) or duration is None:
            raise
        raise ModelError(f"{problem} The recording of {duration:g} s begins with {lead:.3g} s of standstill.") from None
    if gravity is not None:
        plan = replace(plan, gravity=gravity_vector(gravity))
    return plan, lead, plan.motion.duration + lead if duration is None else duration


def _aged(digital: DigitalRobot, age: Mapping[str, float]) -> DigitalRobot:
    for name in age:
        if name not in ("friction", "stiffness"):
            raise ModelError(f"age must tell of friction or stiffness. Got '{name}' instead.")
    return digital.aged(age.get("friction", 0.0), age.get("stiffness", 0.0))


@dataclass(frozen=True)
class _Trial:
    """An experiment under way: `lead` (s) of standstill, then the motion, at a control `rate` (Hz)."""

    plan: Experiment
    digital: DigitalRobot
    lead: float
    controller: Following
    rate: float

    def carry_out(self, recorder: Recorder, temperature: float | None, keep: int | None, progress: Shares) -> list[Run]:
        """Run and record block by block; return what is kept of the runs."""
        state = self.digital.rest(self._states(np.zeros(1)).q[0], temperature)
        periods = int(np.ceil(recorder.end * self.rate - 1e-6)) + 1
        stride = 1 if keep is None else -(-periods // keep) if keep > 0 else 0
        kept: list[Run] = []
        for first in range(0, periods, BLOCK):
            last = min(first + BLOCK, periods)
            states = self._states(np.arange(first, last) / self.rate)
            law = self._law(first, states)
            if first == 0:
                self._refuse_unstable(law)
            run = run_robot(self.digital, state, law, rate=self.rate, locked=self._locked)
            self._refuse_lost(run, states)
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

    def _law(self, first: int, states: States) -> AffineControl:
        """Return the controller of some periods; a locked joint gets its prescribed torque, the others hold."""
        if self.plan.torque is not None:
            holding = gravity_torque(
                self.digital.robot, states.q, gravity=self.digital.gravity, payload=self.digital.payload
            )
            return AffineControl(torque=holding + self.plan.torque.at(states.t))
        return self.controller.law(first, states, self._model_torque(states))

    def _model_torque(self, states: States) -> Array:
        """Return the torque of links, rotors and payload along the reference, without friction, (samples, joints)."""
        rotors = np.array([joint.inertia for joint in self.digital.joints])
        return inverse_dynamics(
            self.digital.robot, states.q, states.qd, states.qdd,
            gravity=self.digital.gravity, payload=self.digital.payload, rotor_inertias=rotors,
        )  # fmt: skip

    def _targets(self, times: Array) -> Targets:
        states = self._states(times)
        torque = self._model_torque(states)
        if self.plan.torque is not None:
            torque = torque + self.plan.torque.at(states.t)
        return Targets(states.q, states.qd, states.qdd, torque)

    def _refuse_unstable(self, law: AffineControl) -> None:
        own = self.digital
        refuse_unstable(own.robot, law, self.rate, drives_of(own), gravity=own.gravity, payload=own.payload)

    def _refuse_lost(self, run: Run, states: States) -> None:
        error = np.abs(run.q - states.q)
        if self._locked or error.max() < LOST:
            return
        k, j = np.argwhere(error >= LOST)[0]
        name = self.digital.robot.joints[j].name
        raise ModelError(
            f"joint '{name}' lost its motion at t = {run.t[k]:.4g} s (off by {error[k, j]:.2g} rad): it lacks current "
            "for this load, or the loop is unstable. Choose a smaller payload, a slower motion or other gains."
        )


def _experiment_to_dict(plan: Experiment) -> dict[str, Any]:
    joint = None if plan.joint is None else plan.joint + 1
    return {"name": plan.name, "note": plan.note, "joint": joint, "motion_duration": plan.motion.duration}
