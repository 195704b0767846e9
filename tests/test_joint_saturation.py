"""A current at its limit is seen, under noise as well; a strong steady current is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise as jw
from jointwise.errors import EstimationError
from jointwise.joint import JointRecord, joint_record
from jointwise.joint.checks import check_unsaturated, saturated_share
from jointwise.spatial import Array

RATE = 250.0
NOISE = 0.3


def swinging(load: float = 30.0) -> JointRecord:
    """A joint that swings under gravity: the motor carries load, rotor and friction, with noise."""
    t = np.arange(0.0, 40.0, 1.0 / RATE)
    speed = 1.2 * np.sin(0.8 * t) + 0.5 * np.sin(2.3 * t)
    return made(t, speed, load * np.sin(np.cumsum(speed) / RATE))


def made(t: Array, speed: Array, load: Array) -> JointRecord:
    position, acceleration = np.cumsum(speed) / RATE, np.gradient(speed, t)
    noise = NOISE * np.random.default_rng(0).standard_normal(len(t))
    motor = load + 0.5 * acceleration + 8.0 * np.tanh(speed / 0.01) + 6.0 * speed + noise
    none = np.zeros(len(t), dtype=np.intp)
    return JointRecord(
        "arm", 0, ("made",), RATE, "Nm", 10.0, 0.5, t, none,
        position, speed, acceleration, position, speed, acceleration, position, motor, load,
    )  # fmt: skip


def clipped(record: JointRecord, part: float, noise: float) -> JointRecord:
    """Return the record with its motor cut at a part of the largest torque, noise added after that."""
    top = part * float(np.abs(record.motor).max())
    more = noise * np.random.default_rng(1).standard_normal(record.samples)
    return replace(record, motor=np.clip(record.motor, -top, top) + more)


@pytest.mark.parametrize("noise", [0.0, NOISE, 3.0 * NOISE])
def test_a_current_that_is_cut_is_seen_with_and_without_noise(noise: float) -> None:
    with pytest.raises(EstimationError, match="current is saturated in .* at about .* A; friction is not fitted"):
        check_unsaturated(clipped(swinging(), 0.6, noise), "friction")


def test_a_limit_on_one_side_is_seen() -> None:
    record = swinging()
    noise = NOISE * np.random.default_rng(1).standard_normal(record.samples)
    cut = replace(record, motor=np.minimum(record.motor, 0.5 * record.motor.max()) + noise)
    assert saturated_share(cut) > 0.1


def test_a_current_below_its_limit_is_not_refused() -> None:
    check_unsaturated(swinging(), "friction")
    check_unsaturated(clipped(swinging(), 1.0, NOISE), "friction")


def test_a_steady_run_at_the_highest_torque_is_no_limit() -> None:
    t = np.arange(0.0, 60.0, 1.0 / RATE)
    levels = np.repeat([0.1, -0.1, 0.3, -0.3, 0.8, -0.8, 1.6, -1.6, 2.5, -2.5], len(t) // 10)
    ramp = np.convolve(levels, np.ones(250) / 250.0, mode="same")
    record = made(t, ramp, np.zeros(len(t)))
    curved = replace(record, motor=record.motor - 0.5 * ramp**3)
    for actual in (record, curved):
        assert saturated_share(actual) == 0.0


def steps(factor: float = 1.0) -> JointRecord:
    """A joint that turns to and fro at speeds from 1 to 90, reversing within a fifth of a second."""
    t = np.arange(0.0, 120.0, 1.0 / RATE)
    speeds = np.ravel([(v, -v) for v in np.geomspace(0.03, 2.7, 10)])
    levels = np.tile(np.repeat(speeds, len(t) // 40), 2)
    return made(t, factor * np.convolve(levels, np.ones(50) / 50.0, mode="same"), np.zeros(len(t)))


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_a_limit_below_all_friction_is_seen_by_what_speeding_up_would_take(noise: float) -> None:
    """Nearly all samples are at the limit: none shows the torque that the motion requires."""
    record = steps()
    more = noise * np.random.default_rng(1).standard_normal(record.samples)
    assert saturated_share(replace(record, motor=np.clip(record.motor, -6.0, 6.0) + more)) > 0.9


def test_a_friction_that_never_varies_is_no_limit_while_it_is_sped_up() -> None:
    record = steps()
    dry = replace(record, motor=record.motor - 6.0 * record.speed)
    assert saturated_share(record) == saturated_share(dry) == 0.0
    slow = steps(0.1)
    assert saturated_share(replace(slow, motor=slow.motor - 6.0 * slow.speed)) == 0.0


@pytest.mark.parametrize("name", ["ur5e", "panda"])
@pytest.mark.parametrize("duration", [5.0, 10.0])
def test_peaks_of_short_logs_are_no_limit(name: str, duration: float) -> None:
    """Where friction balances the acceleration a wrist hardly needs more torque than before: that is no plateau."""
    robot = jw.load_robot(name)
    log = jw.simulate(robot, duration=duration, rate=125.0, seed=1, keep=0).log
    records = [joint_record(log, robot, j, gain=1.0) for j in range(robot.dof)]
    assert [saturated_share(record) for record in records] == [0.0] * robot.dof
    halves = [clipped(replace(record, target_current=None), 0.5, 0.0) for record in records]
    noisy = [clipped(half, 1.0, 0.02 * float(half.motor.std())) for half in halves]
    assert sum(saturated_share(record) > 0.01 for record in noisy) >= robot.dof - 1


def test_a_constant_torque_determines_nothing() -> None:
    record = swinging()
    assert saturated_share(replace(record, motor=np.full(record.samples, 3.0))) == 1.0
