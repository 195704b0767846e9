"""Running the digital robot: open loop, under an affine controller, or step by step under any other."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from jointwise.description.payload import Payload
from jointwise.errors import ModelError, ShapeError
from jointwise.model.control_law import AffineControl
from jointwise.simulation.encoders import Encoders
from jointwise.simulation.robot.digital import DigitalRobot
from jointwise.simulation.robot.failure import InstabilityError
from jointwise.simulation.robot.kernel import kernel
from jointwise.simulation.robot.run import SERIES, Run
from jointwise.simulation.robot.stability import usual_substeps
from jointwise.simulation.robot.state import State
from jointwise.spatial import Array

MOST_SUBSTEPS = 1_000_000
GLANCE = 1e6
"""Rate (Hz) of the one period that is run to look at a state."""
_NO_CONTROL = (None,) * 10


def simulate(
    digital: DigitalRobot,
    state: State,
    control: AffineControl | Array,
    *,
    rate: float = 1000.0,
    current: bool = False,
    wrench: Array | None = None,
    payloads: Mapping[float, Payload | None] | None = None,
    locked: bool = False,
    substeps: int | None = None,
    feedback: Encoders | None = None,
) -> Run:
    """Return the motion of a robot from a state on, one sample a control period of 1 / `rate` s.

    `control` is a controller, or motor torques (periods, joints) in Nm held over each period - currents in A if
    `current`. `wrench` (6,) or (periods, 6): force (N) and moment (Nm) on the tool, at its origin in base axes.
    `payloads` gives times (s, since the start of the run) at which the payload changes, and to what. `locked` fixes the
    links where they are. `substeps` integration steps a period, None for what friction and the fastest mode need.
    A controller reads the states, or with `feedback` these encoders, whose differences over a period are its speeds.
    The integrator is native; there is no slow twin of it, so without the kernel this raises a `ModelError`.
    """
    commands = _commands(digital, control, current)
    pushes = _pushes(wrench, commands.periods)
    if not payloads:
        return _run(digital, state, commands, rate, pushes, locked, substeps, feedback)
    runs: list[Run] = []
    edges = _edges(payloads, rate, commands.periods)
    for (first, payload), (last, _) in pairwise(edges):
        state, digital = _reload(digital, state, payload)
        if last > first:
            push = pushes if pushes is None or len(pushes) == 1 else pushes[first:last]
            part = commands.part(first, last)
            runs.append(_run(digital, state, part, rate, push, locked, substeps, feedback, first))
            state = runs[-1].final
    return Run.joined(runs)


def step(
    digital: DigitalRobot,
    state: State,
    torque: Array,
    *,
    rate: float = 1000.0,
    wrench: Array | None = None,
    locked: bool = False,
    substeps: int | None = None,
) -> State:
    """Return the state one control period later under a motor torque (joints,) in Nm: for controllers in Python."""
    held = np.ascontiguousarray(torque, dtype=np.float64)
    if held.shape != (digital.robot.dof,) or not np.isfinite(held).all():
        raise ShapeError(f"torque must be {digital.robot.dof} finite numbers. Got {held.tolist()} instead.")
    push = _pushes(wrench, 1)
    return _advance(digital, state, (held[None], *_NO_CONTROL), 1, rate, push, locked, substeps, None)


def _run(
    digital: DigitalRobot,
    state: State,
    control: AffineControl,
    rate: float,
    wrench: Array | None,
    locked: bool,
    substeps: int | None,
    feedback: Encoders | None = None,
    before: int = 0,
) -> Run:
    n, periods = digital.robot.dof, control.periods
    rows = np.empty((periods, len(SERIES) * n + 1))
    final = _advance(digital, state, control.native(n), periods, rate, wrench, locked, substeps, rows, feedback, before)
    columns = {name: rows[:, k * n : (k + 1) * n] for k, name in enumerate(SERIES)}
    t = state.time + np.arange(periods) / rate
    return Run(t=t, **columns, external=rows[:, -1], parts=((0, digital),), final=final)


def _advance(
    digital: DigitalRobot,
    state: State,
    control: tuple[object, ...],
    periods: int,
    rate: float,
    wrench: Array | None,
    locked: bool,
    substeps: int | None,
    out: Array | None,
    feedback: Encoders | None = None,
    before: int = 0,
) -> State:
    """Run the native loop; `before` periods were run earlier, for the message if it fails."""
    if not (np.isfinite(rate) and rate > 0.0):
        raise ModelError(f"rate must be finite and > 0 Hz. Got {rate} instead.")
    steps = _substeps(digital, 1.0 / rate, substeps)
    joints, backlash = digital.packed
    values = digital.checked(state).values.copy()
    failed = kernel().simulate(
        digital.chain, joints, backlash, digital.robot.tool_translation, values, digital.elements, control, wrench,
        1.0 / rate, periods, steps, locked, out, None if feedback is None else feedback.counts(state.dof),
    )  # fmt: skip
    after = State(values, state.dof, state.time + periods / rate)
    if failed >= 0:
        raise InstabilityError(before + failed, state.time + failed / rate, _worst_joint(digital, after))
    return after


def _substeps(digital: DigitalRobot, period: float, asked: int | None) -> int:
    if asked is not None:
        if not 1 <= asked <= MOST_SUBSTEPS:
            raise ModelError(f"substeps must be 1 to {MOST_SUBSTEPS}. Got {asked} instead.")
        return int(asked)
    return usual_substeps(period, digital.largest_step)


def _worst_joint(digital: DigitalRobot, state: State) -> str:
    speeds = np.nan_to_num(np.abs(np.maximum(np.abs(state.speed), np.abs(state.qd))), nan=np.inf)
    return digital.robot.joints[int(np.argmax(speeds))].name


def _commands(digital: DigitalRobot, control: AffineControl | Array, current: bool) -> AffineControl:
    if isinstance(control, AffineControl):
        if current:
            raise ModelError("current is for open-loop commands; a controller asks for torques.")
        return control.checked(digital.robot.dof)
    torque = np.asarray(control, dtype=np.float64)
    if torque.ndim != 2 or torque.shape[1] != digital.robot.dof:
        raise ShapeError(f"control must have shape (periods, {digital.robot.dof}). Got {torque.shape} instead.")
    return AffineControl(torque=torque * digital.gains if current else torque).checked(digital.robot.dof)


def _pushes(wrench: Array | None, periods: int) -> Array | None:
    if wrench is None:
        return None
    rows = np.atleast_2d(np.ascontiguousarray(wrench, dtype=np.float64))
    if rows.shape not in {(1, 6), (periods, 6)} or not np.isfinite(rows).all():
        raise ShapeError(f"wrench must be finite, of shape (6,) or ({periods}, 6). Got {np.shape(wrench)} instead.")
    return rows


def _edges(
    payloads: Mapping[float, Payload | None], rate: float, periods: int
) -> list[tuple[int, Payload | str | None]]:
    """Return where each payload begins, from the one carried at the start ("same") to the end of the run."""
    for time in payloads:
        if not 0.0 <= time * rate <= periods:
            raise ModelError(f"payloads: times must lie in 0 .. {periods / rate:g} s. Got {time} instead.")
    changes: list[tuple[int, Payload | str | None]] = [(round(t * rate), p) for t, p in sorted(payloads.items())]
    return [(0, "same"), *changes, (periods, None)]


def _reload(digital: DigitalRobot, state: State, payload: Payload | str | None) -> tuple[State, DigitalRobot]:
    """Put another payload on."""
    if isinstance(payload, str):
        return state, digital
    other = digital.with_payload(payload)
    return carried_over(state, digital, other), other


def carried_over(state: State, before: DigitalRobot, after: DigitalRobot) -> State:
    """Return the state of one robot for another that it becomes; the energy that the change brings is external work."""
    gained = stored_energy(after, state) - stored_energy(before, state)
    return state.with_rows(external=state.values[-1] + gained)


def stored_energy(digital: DigitalRobot, state: State) -> float:
    """Return kinetic, potential and elastic energy of a robot in a state, J."""
    idle = AffineControl(torque=np.zeros((1, digital.robot.dof)))
    return float(_run(digital, state, idle, GLANCE, None, False, 1).energy.stored[0])
