"""Current loop of a drive: lag, time constant and limit are identified, unsuitable targets lead to notes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from data_files import SHARED, needs_shared
from jointwise.data import read_log
from jointwise.description import load_robot
from jointwise.joint.motor import CurrentLoop, identify_current_loop
from jointwise.joint.part import Part, value_of
from jointwise.joint.record import JointRecord, joint_record

RATE = 500.0


def record_of(target: np.ndarray, current: np.ndarray) -> JointRecord:
    zeros = np.zeros(len(target))
    names = ("q", "qd", "qdd", "position", "speed", "acceleration", "path", "load")
    return JointRecord(
        robot="ur5e", joint=0, logs=("made",), rate=RATE, unit="Nm", gain=10.0, inertia=0.0,
        t=np.arange(len(target)) / RATE, segment=np.zeros(len(target), dtype=np.intp), motor=10.0 * current,
        target_current=target, **dict.fromkeys(names, zeros),
    )  # fmt: skip


def made(constant: float = 0.006, limit: float = np.inf, seed: int = 0, noise: float = 0.03) -> JointRecord:
    """Return steps of the target that a drive follows with a time constant (s), one sample late."""
    rng = np.random.default_rng(seed)
    target = np.repeat(np.append(0.0, 3.0 * rng.normal(size=300)), 25)
    a = np.exp(-1.0 / (RATE * constant))
    current = lfilter([0.0, 1.0 - a], [1.0, -a], np.clip(target, -limit, limit))
    return record_of(target, current + noise * rng.normal(size=len(target)))


def test_time_constant_and_lag_are_identified() -> None:
    loops = [identify_current_loop(made(seed=seed)) for seed in range(5)]
    assert all(loop.constant is not None and loop.lag is not None for loop in loops)
    assert sum(loop.constant.covers(0.006) for loop in loops) >= 4
    a = np.exp(-1.0 / (RATE * 0.006))
    assert sum(loop.lag.covers((1.0 + a / (1.0 - a)) / RATE) for loop in loops) >= 4
    assert loops[0].constant.value == pytest.approx(0.006, rel=0.05)
    assert loops[0].limit is None
    assert loops[0].curve is not None and len(loops[0].curve.x) == len(loops[0].curve.residual)


def test_a_limit_of_the_current_is_identified_with_the_lag() -> None:
    loop = identify_current_loop(made(limit=4.0))
    assert loop.limit is not None and loop.limit.covers(4.0)
    assert loop.limit.value == pytest.approx(4.0, rel=0.01)
    assert loop.constant is not None and loop.constant.covers(0.006)


def test_a_drive_far_faster_than_the_log_has_no_time_constant() -> None:
    loop = identify_current_loop(made(constant=1e-4))
    assert loop.constant is None
    assert loop.lag is not None and loop.lag.covers(1.0 / RATE)


def assert_not_determined(record: JointRecord, reason: str) -> None:
    loop = identify_current_loop(record)
    assert (loop.lag, loop.constant, loop.limit, loop.curve) == (None,) * 4
    assert reason in " ".join(loop.notes)


def test_shuffled_currents_do_not_determine_the_lag() -> None:
    record = made()
    mixed = np.random.default_rng(1).permutation(record.samples)
    assert_not_determined(replace(record, motor=record.motor[mixed]), "does not follow its target")


def test_a_constant_target_does_not_determine_the_lag() -> None:
    assert_not_determined(
        record_of(np.full(10_000, 2.0), 2.0 + 0.03 * np.random.default_rng(0).normal(size=10_000)), "hardly varies"
    )


def test_a_target_of_another_scale_does_not_determine_the_lag() -> None:
    record = made()
    assert_not_determined(replace(record, motor=1.3 * record.motor), "1.30 times its target")


def test_a_target_that_feedback_corrects_does_not_determine_the_lag() -> None:
    record = made()
    added = 3.0 * np.sin(2.0 * np.pi * 0.7 * record.t)
    assert_not_determined(replace(record, motor=record.motor + added), "another target")


def test_slow_targets_with_noise_do_not_determine_the_lag() -> None:
    t = np.arange(0.0, 30.0, 1.0 / RATE)
    target = 0.5 * np.sin(0.3 * t)
    assert_not_determined(record_of(target, target + 0.1 * np.random.default_rng(0).normal(size=len(t))), "too slowly")


def test_without_targets_the_result_is_empty() -> None:
    part = Part("motor", "made", (value_of("gain", "Nm/A", 10.0, 0.1),), 99.0)
    loop = identify_current_loop(replace(made(), target_current=None))
    assert loop == CurrentLoop()
    assert loop.added(part) == part


@needs_shared
def test_planned_targets_of_a_controller_are_distinguished_from_those_of_its_drives() -> None:
    log = read_log(SHARED / "ur10e" / "id_20_02_12_50sec_12harm.csv")
    for joint in (0, 2, 5):
        loop = identify_current_loop(joint_record(log, load_robot("ur10e"), joint))
        assert (loop.lag, loop.limit) == (None, None)
