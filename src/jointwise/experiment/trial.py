"""An experiment under way on the digital robot, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from jointwise.errors import ModelError
from jointwise.experiment.controllers import Following, Periods
from jointwise.experiment.events import Events
from jointwise.experiment.overload import refuse_overload, refuse_push, refuse_stuck
from jointwise.experiment.own import Stepping
from jointwise.model.closed_loop import POSES, closed_loop_stability, refuse_unstable
from jointwise.model.control_law import AffineControl
from jointwise.model.rigid import gravity_torque, inverse_dynamics
from jointwise.simulation.encoders import Encoders
from jointwise.simulation.recording import Recorder, Targets
from jointwise.simulation.references import Experiment
from jointwise.simulation.references.trajectory import States
from jointwise.simulation.robot import (
    DigitalRobot,
    InstabilityError,
    Run,
    State,
    carried_over,
    drives_of,
)
from jointwise.simulation.robot import simulate as run_robot
from jointwise.simulation.robot.loop import run_stepped
from jointwise.simulation.robot.stability import usual_substeps
from jointwise.spatial import Array

BLOCK = 16384
"""Control periods that are in memory at a time."""
LOST = 0.5
"""Tracking error (rad, m) at which the arm is taken to have lost its motion."""

Shares = Callable[[float], None]
"""Is told how much is done, 0 to 1."""


@dataclass(frozen=True)
class Trial:
    """An experiment under way: `lead` (s) of standstill, then the motion, at a control `rate` (Hz).

    The `controller` is None where the torque is prescribed, `Stepping` where Python steps it; it reads `encoders`, or
    the states if there are none. `digital` is the robot as its controller knows it; `events` make another of it:
    `stages` tells which, each from a period on.
    """

    plan: Experiment
    digital: DigitalRobot
    lead: float
    controller: Following | Stepping | None
    rate: float
    events: Events
    stages: list[tuple[int, DigitalRobot]]
    encoders: Encoders | None = None

    def carry_out(
        self, recorder: Recorder, temperature: float | Sequence[float] | None, keep: int | None, progress: Shares
    ) -> list[Run]:
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

    def _law(self, periods: Periods, states: States) -> AffineControl | None:
        """Return the law of some periods, None without one; a locked joint gets its torque, the others hold."""
        if isinstance(self.controller, Stepping):
            return None
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

    def _run(self, first: int, state: State, states: States, law: AffineControl | None) -> Run:
        """Return a block of the run that starts at a period, or say why the arm does not follow."""
        try:
            run = self._pieces(first, len(states.t), state, law)
        except InstabilityError as failure:
            self._refuse_too_much(states, failure.time)
            raise failure.advised("Lower gains, loads or friction, or raise the control rate.") from None
        self._refuse_lost(run, states)
        return run

    def _pieces(self, first: int, periods: int, state: State, law: AffineControl | None) -> Run:
        """Return the run of a block, cut where the robot becomes another."""
        wrench = self.events.wrench((first + np.arange(periods)) / self.rate)
        runs: list[Run] = []
        for start, stop, before, digital in self._stages(first, first + periods):
            state = state if digital is before else carried_over(state, before, digital)
            push = None if wrench is None else wrench[start - first : stop - first]
            if law is None:
                runs.append(self._stepped(digital, state, stop - start, push))
            else:
                own = law.part(start - first, stop - first)
                run = run_robot(
                    digital, state, own,
                    rate=self.rate, wrench=push, locked=self._locked, substeps=self._substeps, feedback=self.encoders,
                )  # fmt: skip
                runs.append(run)
            state = runs[-1].final
        return Run.joined(runs)

    def _stepped(self, digital: DigitalRobot, state: State, periods: int, wrench: Array | None) -> Run:
        """Return the run of some periods in which the controller is stepped."""
        return run_stepped(
            digital, state, self.controller, self.rate, periods, wrench, self._substeps, self.encoders, None
        )

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

    def _model_torque(self, states: States, digital: DigitalRobot | None = None) -> Array:
        """Return the torque of links, rotors and payload along the reference, without friction, (samples, joints)."""
        own = digital or self.digital
        rotors = np.array([joint.inertia for joint in own.joints])
        return inverse_dynamics(
            own.robot, states.q, states.qd, states.qdd,
            gravity=own.gravity, payload=own.payload, rotor_inertias=rotors,
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
        times, states, law = self._looked_at(periods)
        if law is None:
            return
        try:
            refuse_unstable(
                own.robot, law, self.rate, drives_of(own),
                gravity=own.gravity, payload=own.payload, times=times, differenced=self.encoders is not None,
            )  # fmt: skip
        except ModelError:
            refuse_overload(own, self._model_torque(states))
            raise

    def holds(self, periods: int) -> bool:
        """Tell whether the gains hold the arm at poses along the whole motion; nobody knows without a law."""
        own, law = self.digital, self._looked_at(periods)[2]
        if law is None:
            return True
        found = closed_loop_stability(
            own.robot, law, self.rate, drives_of(own),
            gravity=own.gravity, payload=own.payload, differenced=self.encoders is not None,
        )  # fmt: skip
        return found.is_stable

    def _looked_at(self, periods: int) -> tuple[Array, States, AffineControl | None]:
        """Return times (s) along the whole motion, with the references and the law there."""
        numbers = np.unique(np.linspace(0, periods - 1, POSES).astype(np.intp))
        states = self._states(numbers / self.rate)
        return numbers / self.rate, states, self._law(numbers, states)

    def _refuse_too_much(self, states: States, time: float) -> None:
        """Say so if the motion, friction, a push or a payload was more than the arm holds until a time (s)."""
        until = time + 1.0 / self.rate
        start, now = [own for own in self.stages if own[0] <= time * self.rate][-1]
        seen = _between(states, -np.inf, until - self.lead)
        refuse_overload(self.digital, self._model_torque(seen))
        seen = _between(states, start / self.rate - self.lead, until - self.lead)
        refuse_overload(now, self._model_torque(seen, now))
        refuse_stuck(now, self._model_torque(seen, now), seen.qd)
        refuse_push(self.events, time)

    def _refuse_lost(self, run: Run, states: States) -> None:
        error = np.abs(run.q - states.q)
        if self._locked or error.max() < LOST:
            return
        k, j = np.argwhere(error >= LOST)[0]
        self._refuse_too_much(states, run.t[k])
        name = self.digital.robot.joints[j].name
        raise ModelError(
            f"joint '{name}' lost its motion at t = {run.t[k]:.4g} s (off by {error[k, j]:.2g} rad): it lacks current "
            "for this load, or the loop is unstable. Choose a smaller payload, a slower motion or other gains."
        )


def _between(states: States, first: float, last: float) -> States:
    """Return the states of times (s) from the first to the last; one at least."""
    rows = (states.t >= first) & (states.t <= last)
    rows[np.argmin(np.abs(states.t - last))] = True
    return states.take(np.flatnonzero(rows))
