"""Many runs at once, on all cores: the native loop runs outside Python's lock, so threads are enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from jointwise.errors import ModelError
from jointwise.model.control_law import AffineControl
from jointwise.simulation.robot.digital import DigitalRobot
from jointwise.simulation.robot.failure import BatchError
from jointwise.simulation.robot.integrate import simulate
from jointwise.simulation.robot.run import Run
from jointwise.simulation.robot.state import State
from jointwise.spatial import Array

Member = TypeVar("Member")
Result = TypeVar("Result")


def batch(function: Callable[[Member], Result], members: Iterable[Member], workers: int | None = None) -> list[Result]:
    """Return ``function(member)`` of every member, in order, on `workers` threads (None: one a core).

    Members are what differs - seeds, states, robots; a function that draws numbers makes its own generator from its
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


def simulate_batch(
    digital: DigitalRobot | Sequence[DigitalRobot],
    state: State | Sequence[State],
    control: AffineControl | Array | Sequence[AffineControl | Array],
    *,
    workers: int | None = None,
    **options: Any,
) -> list[Run]:
    """Return the runs of `simulate`, one a member, on all cores.

    Robot, state and control are lists (or tuples) with one a member, or single ones that all members share; `options`
    are those of `simulate`, for all members.
    """
    columns = (digital, state, control)
    sizes = {len(column) for column in columns if isinstance(column, list | tuple)}
    if len(sizes) > 1:
        raise ModelError(f"robots, states and controls must be equally many. Got {sorted(sizes)} instead.")
    count = sizes.pop() if sizes else 1
    robots, states, controls = (_spread(column, count) for column in columns)
    for robot in {id(robot): robot for robot in robots}.values():
        _prepare(robot, options.get("substeps") is None)
    members = list(zip(robots, states, controls, strict=True))
    return batch(lambda member: simulate(*member, **options), members, workers)


def _spread(column: Any, count: int) -> list[Any]:
    return list(column) if isinstance(column, list | tuple) else [column] * count


def _prepare(digital: DigitalRobot, needs_step: bool) -> None:
    """Find what a robot keeps before threads would find it twice."""
    _ = digital.chain, digital.packed, digital.elements, needs_step and digital.largest_step


def _result(future: Future[Result], k: int, members: Sequence[object]) -> Result:
    try:
        return future.result()
    except Exception as problem:
        raise BatchError(k, len(members), members[k], problem) from problem


def _workers(asked: int | None, members: int) -> int:
    if asked is not None and asked < 1:
        raise ModelError(f"workers must be >= 1, or None for one a core. Got {asked} instead.")
    return max(1, min(asked or os.cpu_count() or 1, members))
