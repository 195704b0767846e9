"""One loop for every controller: natively where it has a law, else step by step in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise.errors import ModelError, ShapeError
from jointwise.model.closed_loop import refuse_unstable
from jointwise.model.control_law import AffineControl, Sample
from jointwise.model.joint_drive import JointDrive
from jointwise.simulation.encoders import Encoders, read
from jointwise.simulation.robot.digital import DigitalRobot
from jointwise.simulation.robot.failure import InstabilityError
from jointwise.simulation.robot.integrate import simulate
from jointwise.simulation.robot.joint import JointPlant
from jointwise.simulation.robot.run import Run
from jointwise.simulation.robot.state import State
from jointwise.spatial import Array


def run_loop(
    digital: DigitalRobot,
    state: State,
    controller: Any,
    *,
    rate: float | None = None,
    periods: int | None = None,
    native: bool = True,
    check: bool = True,
    wrench: Array | None = None,
    substeps: int | None = None,
    feedback: Encoders | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Return the motion of a robot under a controller: anything with ``init(sample)`` and ``step(memory, sample)``.

    `init` returns the controller's memory; `step` returns the torque (joints,), Nm at the joint side, and the memory
    for the next period. A controller that also has a `law` (`AffineControl`) runs natively unless `native` is False;
    the result is the same. `rate` (Hz) and `periods` are the controller's own where it has them. `check` refuses gains
    that the joints do not stand at this rate before anything moves. `wrench`, `substeps` and `feedback` as for
    `simulate`: without encoders the samples are the states; with them they are what the encoders read, speeds their
    differences over a period.
    """
    law: AffineControl | None = getattr(controller, "law", None)
    own_rate, own_periods = _clock(controller, law, rate, periods)
    if law is not None and check:
        robot, drives = digital.robot, drives_of(digital)
        refuse_unstable(
            robot, law, own_rate, drives,
            gravity=digital.gravity, payload=digital.payload, differenced=feedback is not None,
        )  # fmt: skip
    start = state.arriving(own_rate)
    if law is not None and native:
        start = start.with_rows(integral=np.zeros(state.dof))
        part = law.part(0, own_periods)
        return simulate(digital, start, part, rate=own_rate, wrench=wrench, substeps=substeps, feedback=feedback)
    return run_stepped(digital, start, controller, own_rate, own_periods, wrench, substeps, feedback, progress)


def sample_of(state: State, feedback: Encoders | None = None, rate: float = 1000.0) -> Sample:
    """Return what a controller sees of a state: itself, or what encoders read of it and of the one a period before."""
    if feedback is None:
        sides = state.q, state.qd, state.theta, state.speed
    else:
        links, rotors = feedback.counts(state.dof)
        sides = (
            *read(links, state.q, state.row("q_before"), 1.0 / rate),
            *read(rotors, state.theta, state.row("theta_before"), 1.0 / rate),
        )
    return Sample(state.time, *sides, state.current, state.temperature)


def drives_of(digital: DigitalRobot) -> tuple[JointDrive, ...]:
    """Return the drives of a digital robot as a controller with a perfect data sheet would know them.

    Rotor, spring, damping, motor, and the steady friction without load, at a medium speed and the reference
    temperature; not hysteresis, backlash and kinematic error.
    """
    return tuple(_drive(joint) for joint in digital.joints)


def _drive(joint: JointPlant) -> JointDrive:
    f, motor = joint.friction, joint.motor
    return JointDrive(
        inertia=joint.inertia,
        spring=joint.stiffness,
        damping=joint.damping,
        viscous=f.viscous,
        forward=f.coulomb * (1.0 + f.asymmetry),
        backward=f.coulomb * (1.0 - f.asymmetry),
        limit=motor.gain * motor.limit,
        lag=motor.lag,
    )


def _clock(controller: Any, law: AffineControl | None, rate: float | None, periods: int | None) -> tuple[float, int]:
    """Return rate and number of periods: those asked for, or the controller's own."""
    own = getattr(controller, "rate", None)
    if own is not None and rate is not None and own != rate:
        raise ModelError(f"the controller is made for {own:g} Hz. Got a rate of {rate:g} Hz instead.")
    hertz = rate if own is None else own
    longest = law.periods if law is not None else getattr(controller, "periods", None)
    count = longest if periods is None else periods
    if count is None or count < 1:
        raise ModelError(f"periods must be at least 1. Got {count} instead.")
    if longest is not None and count > longest:
        raise ModelError(f"the controller's reference lasts {longest} periods. Got {count} instead.")
    return 1000.0 if hertz is None else float(hertz), int(count)


def run_stepped(
    digital: DigitalRobot,
    state: State,
    controller: Any,
    rate: float,
    periods: int,
    wrench: Array | None,
    substeps: int | None,
    feedback: Encoders | None,
    progress: Callable[[int, int], None] | None,
) -> Run:
    """Return the motion under a controller that is stepped in Python, from a state as it is; see `run_loop`."""
    memory = controller.init(sample_of(state, feedback, rate))
    begin, runs = state.time, list[Run]()
    for k in range(periods):
        torque, memory = controller.step(memory, sample_of(state, feedback, rate))
        held = _checked_torque(torque, digital.robot.dof, k)
        push = wrench if wrench is None or np.ndim(wrench) == 1 else wrench[k]
        try:
            runs.append(simulate(digital, state, held[None], rate=rate, wrench=push, substeps=substeps))
        except InstabilityError as failure:
            raise InstabilityError(k, failure.time, failure.joint) from None
        state = runs[-1].final.with_rows(time=begin + (k + 1) / rate)
        if progress is not None:
            progress(k + 1, periods)
    return replace(Run.joined(runs), parts=((0, digital),), final=state)


def _checked_torque(torque: object, dof: int, period: int) -> Array:
    held = np.asarray(torque, dtype=np.float64)
    if held.shape != (dof,) or not np.isfinite(held).all():
        raise ShapeError(
            f"step must return {dof} finite torques in Nm. Got {held.tolist()} in period {period} instead."
        )
    return held


@dataclass(frozen=True)
class Saturation:
    """How near a run came to its motors' limits, (joints,): `share` of samples beyond, `peak` asked for over the limit.

    `first` is the time (s) of the first sample beyond, None if there is none.
    """

    names: tuple[str, ...]
    share: Array
    peak: Array
    first: float | None

    @property
    def happened(self) -> bool:
        """Tell whether any motor was asked for more than it gives."""
        return bool((self.share > 0.0).any())

    def __str__(self) -> str:
        """Return one line for a user."""
        if not self.happened:
            j = int(np.argmax(self.peak))
            return (
                f"no motor saturates: the most is {100.0 * self.peak[j]:.0f} % of the limit, in joint '{self.names[j]}'"
            )
        j = int(np.argmax(self.share))
        return (
            f"motors saturate from t = {self.first:.3g} s on, most in joint '{self.names[j]}': "
            f"{100.0 * self.share[j]:.2g} % of the samples, up to {100.0 * self.peak[j]:.0f} % of the limit"
        )


def saturation(run: Run) -> Saturation:
    """Return how near the commands of a run came to the current limits of its motors."""
    digital = run.parts[0][1]
    limits = np.array([joint.motor.gain * joint.motor.limit for joint in digital.joints])
    relative = np.abs(run.command) / limits
    beyond = relative > 1.0
    late = np.flatnonzero(beyond.any(axis=1))
    names = tuple(joint.name for joint in digital.robot.joints)
    first = float(run.t[late[0]]) if late.size else None
    return Saturation(names, beyond.mean(axis=0), relative.max(axis=0), first)
