"""Batches: the same runs as one by one, to the bit and in order, and a failure names its member."""

from __future__ import annotations

from time import sleep

import numpy as np
import pytest

from jointwise.control.controller import AffineControl
from jointwise.description import Payload, load_robot
from jointwise.errors import JointwiseError
from jointwise.simulation.robot import (
    BatchError,
    InstabilityError,
    Run,
    batch,
    digital_robot,
    integrate,
)
from kernels import needs_native

pytestmark = needs_native

FULL = digital_robot(load_robot("ur5e"))
HOME = np.array([0.0, -1.2, 1.0, -1.0, -1.5, 0.3])
PERIODS = 300


def seeded(seed: int) -> Run:
    """Return a run whose pose and torques are drawn from a seed."""
    draw = np.random.default_rng(seed)
    state = FULL.rest(HOME + draw.normal(0.0, 0.3, 6))
    return integrate(FULL, state, state.load + draw.normal(0.0, 5.0, (PERIODS, 6)))


def same(first: Run, second: Run) -> bool:
    return bool((first.q == second.q).all() and (first.final.values == second.final.values).all())


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_a_batch_of_seeds_is_each_seed_to_the_bit(workers: int | None) -> None:
    alone = [seeded(seed) for seed in range(6)]
    together = batch(seeded, range(6), workers)
    assert all(same(a, b) for a, b in zip(alone, together, strict=True))
    assert not same(together[0], together[1])


def test_robots_and_states_may_differ() -> None:
    robots = [FULL.with_payload(Payload(mass)) for mass in (0.5, 1.0, 2.0)]
    states = [robot.rest(HOME) for robot in robots]
    torque = np.zeros((PERIODS, 6))
    together = batch(lambda k: integrate(robots[k], states[k], torque, rate=500.0), range(3))
    alone = [integrate(robot, state, torque, rate=500.0) for robot, state in zip(robots, states, strict=True)]
    assert all(same(a, b) for a, b in zip(alone, together, strict=True))


def test_a_failure_names_its_member() -> None:
    q = np.tile(HOME + 0.1, (PERIODS, 1))
    gains = [np.full(6, 100.0), np.full(6, 1e12), np.full(6, 100.0)]
    digital = FULL.without("current_limit")
    controls = [AffineControl(q=q, kp=kp) for kp in gains]
    with pytest.raises(BatchError, match="member 2 of 3") as caught:
        batch(lambda control: integrate(digital, digital.rest(HOME), control), controls)
    assert caught.value.member == 1
    assert isinstance(caught.value.__cause__, InstabilityError)


def test_wrong_batches_are_refused() -> None:
    with pytest.raises(JointwiseError, match="workers must be"):
        batch(seeded, range(2), workers=0)
    assert batch(seeded, []) == []


@pytest.mark.parametrize("problem", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_batch_starts_nothing_more(problem: type[BaseException]) -> None:
    started: list[int] = []

    def member(k: int) -> None:
        started.append(k)
        if k == 0:
            raise problem
        sleep(0.02)

    with pytest.raises(problem):
        batch(member, range(40), workers=1)
    assert len(started) < 20  # all 40 if those queued were waited for
