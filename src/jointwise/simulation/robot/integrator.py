"""Running the digital robot: open loop, under an affine controller, or step by step under any other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from jointwise.description.robot import Payload
from jointwise.errors import JointwiseError, ModelError, ShapeError
from jointwise.simulation.robot.digital import DigitalRobot
from jointwise.simulation.robot.packing import kernel
from jointwise.simulation.robot.run import SERIES, Run
from jointwise.simulation.robot.stability import required_substeps
from jointwise.simulation.robot.state import State
from jointwise.simulation.sensors import Encoders
from jointwise.spatial import Array

MOST_SUBSTEPS = 1_000_000
GLANCE = 1e6
"""Rate (Hz) of the one period that is run to look at a state."""
_NO_FEEDBACK = (None,) * 11
"""References and gains of a law that is feed-forward torque alone, in the order of the native side."""
ADVICE = "Lower the gains, or raise rate or substeps."


class InstabilityError(JointwiseError):
    """The motion exploded: `period` is the control period in which it did, `time` its start (s), `joint` the joint."""

    def __init__(self, period: int, time: float, joint: str, advice: str = ADVICE) -> None:
        """Describe time, joint and a remedy."""
        super().__init__(
            f"the simulation became unstable at t = {time:.4g} s (period {period}, joint '{joint}'): the gains are too "
            f"high for the control rate, or the step is too long. {advice}"
        )
        self.period = period
        self.time = time
        self.joint = joint

    def advised(self, advice: str) -> InstabilityError:
        """Return the same with other advice."""
        return InstabilityError(self.period, self.time, self.joint, advice)


@runtime_checkable
class ControlLaw(Protocol):
    """A control law that the native loop evaluates, as `control.AffineControl` is one."""

    @property
    def periods(self) -> int:
        """Number of control periods."""
        ...

    def part(self, first: int, last: int) -> Self:
        """Return the law of periods first .. last - 1."""
        ...

    def checked(self, dof: int) -> Self:
        """Return the law itself if its arrays fit a robot of `dof` joints; else raise a `ShapeError`."""
        ...

    def native(self, dof: int) -> tuple[object, ...]:
        """Return the arrays in the order of the native loop: torque, 4 references, 5 gains, gravity model."""
        ...


@dataclass(frozen=True)
class OpenLoop:
    """Motor torques (periods, joints) in Nm, each held over a control period."""

    torque: Array

    @property
    def periods(self) -> int:
        """Number of control periods."""
        return len(self.torque)

    def part(self, first: int, last: int) -> OpenLoop:
        """Return the torques of periods first .. last - 1."""
        return OpenLoop(self.torque[first:last])

    def checked(self, dof: int) -> OpenLoop:
        """Return the torques as contiguous float64, (periods, `dof`) and finite."""
        torque = np.ascontiguousarray(self.torque, dtype=np.float64)
        if torque.ndim != 2 or torque.shape[1] != dof:
            raise ShapeError(f"control must have shape (periods, {dof}). Got {torque.shape} instead.")
        if not np.isfinite(torque).all():
            raise ShapeError("torque must be finite.")
        return OpenLoop(torque)

    def native(self, dof: int) -> tuple[object, ...]:
        """Return the torques without any feedback."""
        return (self.torque, *_NO_FEEDBACK)


def integrate(
    digital: DigitalRobot,
    state: State,
    control: ControlLaw | Array,
    *,
    rate: float = 1000.0,
    current: bool = False,
    wrench: Array | None = None,
    payloads: Mapping[float, Payload | None] | None = None,
    locked: bool = False,
    substeps: int | None = None,
    feedback: Encoders | None = None,
) -> Run:
    """Return the motion of a robot from a state on, one sample per control period.

    Args:
        digital: The digital robot.
        state: Its initial state.
        control: A controller, or motor torques (periods, joints), Nm, held over each period.
        rate: Control rate, Hz.
        current: Whether `control` is currents in A instead of torques.
        wrench: Force (N) and moment (Nm) on the tool, at its origin in base axes, (6,) or (periods, 6).
        payloads: Payload by the time (s since the start of the run) from which it is carried.
        locked: Whether the links are fixed where they are.
        substeps: Integration steps per period; None for what friction and the fastest mode need.
        feedback: Encoders that a controller reads, speeds as differences over a period; None for the true states.

    Returns:
        The states at the start of every control period.

    Raises:
        ModelError: Without the native kernel, the only implementation of the integrator.
        InstabilityError: If the motion grows without bounds.
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
    return _advance(digital, state, (held[None], *_NO_FEEDBACK), 1, rate, push, locked, substeps, None)


def _run(
    digital: DigitalRobot,
    state: State,
    control: ControlLaw,
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
        digital.chain, joints, digital.terms(1.0 / (rate * steps)), backlash, digital.robot.tool_translation,
        values, digital.elements, control, wrench,
        1.0 / rate, periods, steps, locked, out, None if feedback is None else feedback.counts(state.dof),
        digital.coupling,
    )  # fmt: skip
    after = State(values, state.dof, state.time + periods / rate)
    if failed >= 0:
        raise InstabilityError(before + failed, state.time + failed / rate, _worst_joint(digital, after))
    return after


def _substeps(digital: DigitalRobot, period: float, requested: int | None) -> int:
    if requested is not None:
        if not 1 <= requested <= MOST_SUBSTEPS:
            raise ModelError(f"substeps must be 1 to {MOST_SUBSTEPS}. Got {requested} instead.")
        return int(requested)
    return required_substeps(period, digital.largest_step)


def _worst_joint(digital: DigitalRobot, state: State) -> str:
    speeds = np.nan_to_num(np.abs(np.maximum(np.abs(state.speed), np.abs(state.qd))), nan=np.inf)
    return digital.robot.joints[int(np.argmax(speeds))].name


def _commands(digital: DigitalRobot, control: ControlLaw | Array, current: bool) -> ControlLaw:
    if isinstance(control, ControlLaw):
        if current:
            raise ModelError("current is for open-loop commands; a controller commands torques.")
        return control.checked(digital.robot.dof)
    torque = OpenLoop(np.asarray(control)).checked(digital.robot.dof)
    return OpenLoop(torque.torque * digital.gains) if current else torque


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
    idle = OpenLoop(np.zeros((1, digital.robot.dof)))
    return float(_run(digital, state, idle, GLANCE, None, False, 1).energy.stored[0])


Member = TypeVar("Member")
Result = TypeVar("Result")


class BatchError(JointwiseError):
    """A member of a batch failed; `member` counts from 0, the cause is the exception's ``__cause__``."""

    def __init__(self, member: int, count: int, value: object, problem: Exception) -> None:
        """Describe the member and the cause."""
        self.member = member
        what = f" ({value!r})" if isinstance(value, int | float | str) else ""
        super().__init__(f"batch: member {member + 1} of {count}{what} failed: {problem}")


def batch(function: Callable[[Member], Result], members: Iterable[Member], workers: int | None = None) -> list[Result]:
    """Return ``function(member)`` of every member, in order, on `workers` threads (None: one per core).

    Members are what differs - seeds, states, robots; a function that draws numbers creates its generator from its
    member, so that the results do not depend on the number of workers. The first member that fails ends the batch with
    a `BatchError` that names it. After a failure or Ctrl-C no further member starts; those under way end first.
    """
    todo = list(members)
    threads = _workers(workers, len(todo))
    with ThreadPoolExecutor(threads) as pool:
        try:
            waiting = [pool.submit(function, member) for member in todo]
            return [_result(future, k, todo) for k, future in enumerate(waiting)]
        except BaseException:  # Ctrl-C too: leaving the block would wait for all that is queued
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _result(future: Future[Result], k: int, members: Sequence[object]) -> Result:
    try:
        return future.result()
    except Exception as problem:
        raise BatchError(k, len(members), members[k], problem) from problem


def _workers(requested: int | None, members: int) -> int:
    if requested is not None and requested < 1:
        raise ModelError(f"workers must be >= 1, or None for one per core. Got {requested} instead.")
    return max(1, min(requested or os.cpu_count() or 1, members))
