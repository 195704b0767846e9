"""Running an experiment on the digital robot: stability check, chunks of control periods, causes of failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from jointwise.control import friction_torques
from jointwise.control.controller import AffineControl
from jointwise.control.stability import POSES, check_stability, closed_loop_stability
from jointwise.design.experiments import Experiment
from jointwise.design.trajectory import States
from jointwise.errors import ModelError
from jointwise.experiment.closed_loop import drives_of, links_of, run_stepped
from jointwise.experiment.controllers import PeriodicLaw, Periods, SteppedController
from jointwise.experiment.options import Events
from jointwise.model.rigid import gravity_torque, inverse_dynamics
from jointwise.model.transmission import motor_torque, motor_values
from jointwise.simulation.recording import Recorder, Targets
from jointwise.simulation.robot import DigitalRobot, InstabilityError, Run, State, carried_over, integrate
from jointwise.simulation.robot.stability import required_substeps
from jointwise.simulation.sensors import Encoders
from jointwise.spatial import Array

CHUNK = 16384
"""Control periods in memory at a time; at 6 joints about 20 MB."""
LOST = 0.5
"""Tracking error (rad, m) beyond which the arm no longer follows its motion and the run is stopped."""
PUSH_AFTERMATH = 1.0
"""Time (s) after the end of a push during which a failure is attributed to it."""
BREAKAWAY_SPEED = 1e-9
"""Speed (rad/s) at which friction is evaluated for a joint at rest that is about to move."""

ProgressCallback = Callable[[float], None]
"""Receives the completed share, 0 to 1."""


@dataclass(frozen=True)
class ExperimentRun:
    """An experiment on the digital robot: some standstill, then the motion.

    Attributes:
        experiment: The experiment.
        digital: The robot as the controller models it.
        lead: Time of standstill, s.
        controller: The controller; None where the experiment prescribes torques.
        rate: Control rate, Hz.
        events: Payload changes, pushes and wear.
        stages: Robots that the events turn `digital` into, each with its first control period.
        encoders: Encoders that the controller reads; None for the true states.
    """

    experiment: Experiment
    digital: DigitalRobot
    lead: float
    controller: PeriodicLaw | SteppedController | None
    rate: float
    events: Events
    stages: list[tuple[int, DigitalRobot]]
    encoders: Encoders | None = None

    def record(
        self,
        recorder: Recorder,
        temperature: float | Sequence[float] | None,
        keep: int | None,
        progress: ProgressCallback,
    ) -> list[Run]:
        """Run and record chunk by chunk, and return the true signals.

        Args:
            recorder: Sensors of the recording.
            temperature: Temperatures of the joints at the start, °C, one or (joints,); None for the ambient.
            keep: Number of control periods of the true signals to keep, evenly thinned; None for all, 0 for none.
            progress: Called with the completed share, 0 to 1.
        """
        state = self.digital.rest(self._states(np.zeros(1)).q[0], temperature)
        periods = self.periods(recorder.end)
        stride = 1 if keep is None else -(-periods // keep) if keep > 0 else 0
        kept: list[Run] = []
        self.check_stability(periods)
        for first in range(0, periods, CHUNK):
            last = min(first + CHUNK, periods)
            numbers = np.arange(first, last)
            states = self._states(numbers / self.rate)
            run = self._run(first, state, states, self._law(numbers, states))
            until = last / self.rate if last < periods else np.inf
            recorder.add(run, self.rate, until, self._targets(recorder.times(until)))
            kept += [run.thinned(stride)] if stride else []
            state = run.final
            progress(last / periods)
        return kept

    def periods(self, end: float) -> int:
        """Return the number of control periods until a time (s)."""
        return int(np.ceil(end * self.rate - 1e-6)) + 1

    def check_stability(self, periods: int) -> None:
        """Raise `UnstableError` if the closed loop is unstable at a pose of the motion."""
        digital = self.digital
        times, states, law = self._sampled_law(periods)
        if law is None:
            return
        try:
            differenced = self.encoders is not None
            check_stability(links_of(digital), law, self.rate, drives_of(digital), times=times, differenced=differenced)
        except ModelError:
            check_motor_limits(digital, self._model_torque(states))
            raise

    def is_stable(self, periods: int) -> bool:
        """Return whether the closed loop is stable at all poses tested; True for a controller without a law."""
        digital, law = self.digital, self._sampled_law(periods)[2]
        if law is None:
            return True
        differenced = self.encoders is not None
        return closed_loop_stability(
            links_of(digital), law, self.rate, drives_of(digital), differenced=differenced
        ).is_stable

    @property
    def _locked(self) -> bool:
        return self.experiment.torque is not None

    def _states(self, times: Array) -> States:
        return self.experiment.motion.at(times - self.lead)

    def _law(self, periods: Periods, states: States) -> AffineControl | None:
        """Return the law of some periods, None for a stepped controller; prescribed torques are open-loop."""
        if isinstance(self.controller, SteppedController):
            return None
        if self.controller is None:
            return AffineControl(torque=self._gravity_torque(states.q) + self._prescribed(states.t))
        return self.controller.law(periods, states, self._model_torque(states))

    def _sampled_law(self, periods: int) -> tuple[Array, States, AffineControl | None]:
        """Return times (s) spread over the whole motion, with the references and the law there, if one is known."""
        numbers = np.unique(np.linspace(0, periods - 1, POSES).astype(np.intp))
        states, controller = self._states(numbers / self.rate), self.controller
        if isinstance(controller, SteppedController) and controller.tracking is not None:
            return numbers / self.rate, states, controller.tracking.law(numbers, states, self._model_torque(states))
        return numbers / self.rate, states, self._law(numbers, states)

    def _gravity_torque(self, q: Array) -> Array:
        digital = self.digital
        weight = gravity_torque(digital.robot, q, gravity=digital.gravity, payload=digital.payload)
        return motor_torque(digital.robot, weight)

    def _prescribed(self, t: Array) -> Array:
        """Return the torques that the experiment prescribes at times (samples,) of its motion, Nm."""
        if self.experiment.torque is None:
            return np.zeros((len(t), self.digital.robot.dof))
        return self.experiment.torque.at(t)

    def _model_torque(self, states: States, digital: DigitalRobot | None = None) -> Array:
        """Return the torque of links, rotors and payload at the motors along the reference, without friction."""
        digital = digital or self.digital
        rotors = np.array([joint.inertia for joint in digital.joints])
        links = inverse_dynamics(
            digital.robot, states.q, states.qd, states.qdd,
            gravity=digital.gravity, payload=digital.payload,
        )  # fmt: skip
        return motor_torque(digital.robot, links) + rotors * motor_values(digital.robot, states.qdd)

    def _targets(self, times: Array) -> Targets:
        states = self._states(times)
        torque = self._model_torque(states) + self._prescribed(states.t)
        return Targets(states.q, states.qd, states.qdd, torque)

    def _run(self, first: int, state: State, states: States, law: AffineControl | None) -> Run:
        """Return a chunk of the run that starts at a period; raise an error that names the cause if it fails."""
        try:
            run = self._run_stages(first, len(states.t), state, law)
        except InstabilityError as failure:
            self._explain_failure(states, failure.time)
            raise failure.advised("Lower gains, loads or friction, or raise the control rate.") from None
        self._check_tracking(run, states)
        return run

    def _run_stages(self, first: int, periods: int, state: State, law: AffineControl | None) -> Run:
        """Return the run of a chunk, split where events change the robot."""
        wrench = self.events.wrench((first + np.arange(periods)) / self.rate)
        runs: list[Run] = []
        for start, stop, before, digital in self._stages(first, first + periods):
            state = state if digital is before else carried_over(state, before, digital)
            push = None if wrench is None else wrench[start - first : stop - first]
            if law is None:
                run = run_stepped(
                    digital, state, self.controller, self.rate, stop - start, push, self._substeps, self.encoders, None
                )
            else:
                run = integrate(
                    digital, state, law.part(start - first, stop - first),
                    rate=self.rate, wrench=push, locked=self._locked, substeps=self._substeps, feedback=self.encoders,
                )  # fmt: skip
            runs.append(run)
            state = run.final
        return Run.joined(runs)

    @cached_property
    def _substeps(self) -> int:
        """Integration steps per period that suffice for every stage; wear is monotonic, so its ends decide."""
        robots = [robot for _, robot in self.stages]
        loaded = [robot for before, robot in pairwise(robots) if robot.payload is not before.payload]
        step = min(robot.largest_step for robot in (robots[0], robots[-1], *loaded))
        return required_substeps(1.0 / self.rate, step)

    def _stages(self, first: int, last: int) -> Iterator[tuple[int, int, DigitalRobot, DigitalRobot]]:
        """Yield the parts of a chunk in which the robot is constant: first and last period, robot before and in it."""
        stages = [(-1, self.digital), *self.stages]
        ends = [start for start, _ in self.stages[1:]] + [np.iinfo(int).max]
        for (_, before), (start, digital), end in zip(stages, self.stages, ends, strict=False):
            if max(start, first) < min(end, last):
                yield max(start, first), min(end, last), before if start >= first else digital, digital

    def _check_tracking(self, run: Run, states: States) -> None:
        error = np.abs(run.q - states.q)
        if self._locked or error.max() < LOST:
            return
        k, j = np.argwhere(error >= LOST)[0]
        self._explain_failure(states, run.t[k])
        name = self.digital.robot.joints[j].name
        raise ModelError(
            f"joint '{name}' lost its motion at t = {run.t[k]:.4g} s (tracking error {error[k, j]:.2g} rad): its "
            "current is too small for this load, or the loop is unstable. Choose a smaller payload, a slower motion or "
            "other gains."
        )

    def _explain_failure(self, states: States, time: float) -> None:
        """Raise a `ModelError` if the motion, friction, a push or a payload was too much for the arm at a time (s)."""
        until = time + 1.0 / self.rate
        start, now = [stage for stage in self.stages if stage[0] <= time * self.rate][-1]
        seen = _between(states, -np.inf, until - self.lead)
        check_motor_limits(self.digital, self._model_torque(seen))
        seen = _between(states, start / self.rate - self.lead, until - self.lead)
        check_motor_limits(now, self._model_torque(seen, now))
        check_friction(now, self._model_torque(seen, now), motor_values(now.robot, seen.qd))
        check_pushes(self.events, time)


def _between(states: States, first: float, last: float) -> States:
    """Return the states from the first to the last time (s); at least one."""
    rows = (states.t >= first) & (states.t <= last)
    rows[np.argmin(np.abs(states.t - last))] = True
    return states.take(np.flatnonzero(rows))


def check_motor_limits(digital: DigitalRobot, torque: Array) -> None:
    """Reject a motion whose torque (samples, joints), Nm, exceeds that of a motor."""
    limits = np.array([drive.limit for drive in drives_of(digital)])
    k, j = _largest(np.abs(torque) / limits)
    if abs(torque[k, j]) > limits[j]:
        raise ModelError(
            f"joint '{digital.robot.joints[j].name}' is overloaded: the motion needs {abs(torque[k, j]):.3g} Nm, its "
            f"motor gives at most {limits[j]:.3g} Nm. Choose a smaller payload or a slower motion."
        )


def check_friction(digital: DigitalRobot, torque: Array, speed: Array) -> None:
    """Reject a motion whose torque plus friction at motor speeds (samples, joints), rad/s, exceeds that of a motor."""
    drives = drives_of(digital)
    limits = np.array([drive.limit for drive in drives])
    friction = friction_torques(drives, np.where(speed == 0.0, BREAKAWAY_SPEED, speed))
    k, j = _largest(np.abs(torque + friction) / limits)
    if abs(torque[k, j] + friction[k, j]) > limits[j]:
        raise ModelError(
            f"joint '{digital.robot.joints[j].name}' is stuck: friction takes {abs(friction[k, j]):.3g} Nm in addition "
            f"to the {abs(torque[k, j]):.3g} Nm of the motion, its motor gives at most {limits[j]:.3g} Nm. Choose less "
            "friction (age, wear, joints) or a slower motion."
        )


def check_pushes(events: Events, time: float) -> None:
    """Raise a `ModelError` if a push acts at a time (s), or ended shortly before."""
    acting = [push for push in events.pushes if push.start <= time <= push.start + push.length + PUSH_AFTERMATH]
    if not acting:
        return
    push = max(acting, key=lambda push: float(np.linalg.norm(push.wrench)))
    force, moment = np.linalg.norm(push.force), np.linalg.norm(push.moment)
    size = f"{force:.6g} N" if not moment else f"{force:.6g} N and {moment:.6g} Nm"
    raise ModelError(
        f"the push of {size} at {push.start:g} s is more than the arm can resist: it loses its motion at "
        f"t = {time:.4g} s. Choose a weaker or a shorter push."
    )


def _largest(shares: Array) -> tuple[int, int]:
    k, j = np.unravel_index(int(np.argmax(shares)), shares.shape)
    return int(k), int(j)
