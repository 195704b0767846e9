"""The closed loop of a digital robot and a controller: native where the controller has a law, else in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from jointwise.control.controller import AffineControl, ControlSample
from jointwise.control.joint_drive import JointDrive
from jointwise.control.links import Links
from jointwise.control.stability import check_stability
from jointwise.errors import ModelError, ShapeError
from jointwise.simulation.robot.digital import DigitalRobot
from jointwise.simulation.robot.integrator import InstabilityError, integrate
from jointwise.simulation.robot.joint import JointPlant
from jointwise.simulation.robot.run import Run
from jointwise.simulation.robot.state import State
from jointwise.simulation.sensors import Encoders, read
from jointwise.spatial import Array

DEFAULT_RATE = 1000.0
"""Control rate (Hz) of a controller that has none: that of common servo drives."""


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
    """Run a digital robot from a state under a controller with ``init(sample)`` and ``step(memory, sample)``.

    Args:
        digital: The digital robot.
        state: Its initial state.
        controller: `init` returns the controller's memory; `step` the torque (joints,), Nm at the joint side, and the
            memory for the next period. If it also has a `law` (`AffineControl`), the loop runs natively.
        rate: Control rate in Hz; by default that of the controller, else 1000 Hz.
        periods: Number of control periods; by default those of the controller's reference.
        native: False steps the controller in Python even if it has a law; the result is the same.
        check: Whether to test the stability of the law first.
        wrench: Force (N) and moment (Nm) on the tool in base axes, (6,) or (periods, 6).
        substeps: Integration steps per period; None for as many as friction and the fastest mode need.
        feedback: Encoders that the controller reads, speeds as differences over a period; None for the true states.
        progress: Called with completed and total periods.

    Returns:
        The states at the start of every control period.

    Raises:
        UnstableError: If the closed loop is unstable.
    """
    law: AffineControl | None = getattr(controller, "law", None)
    hertz, count = _clock(controller, law, rate, periods)
    if law is not None and check:
        check_stability(links_of(digital), law, hertz, drives_of(digital), differenced=feedback is not None)
    start = state.arriving(hertz)
    if law is not None and native:
        start = start.with_rows(integral=np.zeros(state.dof))
        part = law.part(0, count)
        return integrate(digital, start, part, rate=hertz, wrench=wrench, substeps=substeps, feedback=feedback)
    return run_stepped(digital, start, controller, hertz, count, wrench, substeps, feedback, progress)


def sample_of(state: State, feedback: Encoders | None = None, rate: float = DEFAULT_RATE) -> ControlSample:
    """Return what a controller measures of a state: the state itself, or what encoders read now and a period before."""
    if feedback is None:
        sides = state.q, state.qd, state.theta, state.speed
    else:
        links, rotors = feedback.counts(state.dof)
        sides = (
            *read(links, state.q, state.row("q_before"), 1.0 / rate),
            *read(rotors, state.theta, state.row("theta_before"), 1.0 / rate),
        )
    return ControlSample(*sides, state.current, state.temperature, state.time)


def links_of(digital: DigitalRobot) -> Links:
    """Return the links of a digital robot as mounted and loaded."""
    return Links(digital.robot, digital.gravity, digital.payload)


def drives_of(digital: DigitalRobot) -> tuple[JointDrive, ...]:
    """Return the drives of a digital robot as a perfect data sheet would state them.

    Rotor, spring, damping, motor, and steady friction without load at a medium speed and the reference temperature;
    without hysteresis, backlash and kinematic error.
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
    """Return rate (Hz) and number of periods: the requested ones, or those of the controller."""
    longest = law.periods if law is not None else getattr(controller, "periods", None)
    count = longest if periods is None else periods
    if count is None or count < 1:
        raise ModelError(f"periods must be at least 1. Got {count} instead.")
    if longest is not None and count > longest:
        raise ModelError(f"the controller's reference lasts {longest} periods. Got {count} instead.")
    return _rate(getattr(controller, "rate", None), rate), int(count)


def _rate(designed: float | None, requested: float | None) -> float:
    """Return the control rate (Hz): that of the controller, the requested one, or the default."""
    if designed is None:
        return DEFAULT_RATE if requested is None else float(requested)
    if requested is not None and designed != requested:
        raise ModelError(f"the controller is made for {designed:g} Hz. Got a rate of {requested:g} Hz instead.")
    return float(designed)


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
    """Return the run under a controller that is stepped in Python; arguments as for `run_loop`."""
    memory = controller.init(sample_of(state, feedback, rate))
    begin, runs = state.time, list[Run]()
    for k in range(periods):
        torque, memory = controller.step(memory, sample_of(state, feedback, rate))
        held = _checked_torque(torque, digital.robot.dof, k)
        push = wrench if wrench is None or np.ndim(wrench) == 1 else wrench[k]
        try:
            runs.append(integrate(digital, state, held[None], rate=rate, wrench=push, substeps=substeps))
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
