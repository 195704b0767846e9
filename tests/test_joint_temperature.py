"""Friction over temperature: the linear three-parameter law against the exponential one, and what is rejected."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import jointwise
from joint_friction_records import LAW, SPEEDS, record_of, to_and_fro
from joint_runs import RATE, log_of, run_experiment
from jointwise.backend import native
from jointwise.design import make_experiment
from jointwise.errors import EstimationError
from jointwise.joint.friction import identify_friction
from jointwise.joint.laws import friction_map, map_surfaces, temperature_law_of
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord, joint_record
from jointwise.joint.temperature import identify_temperature
from jointwise.simulation.robot import digital_robot
from jointwise.simulation.sensors import Sensors

needs_native = pytest.mark.skipif(native() is None, reason="the native kernel is not built")
T0, LINEAR, COLD = 20.0, -0.1, 4000.0


def temperature_dependent(speed: np.ndarray, load: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return the velocity law with the digital robot's temperature law."""
    change = LINEAR * (T - T0) + COLD * (T**-3.0 - T0**-3.0)
    return LAW.torque(speed) + np.sign(speed) * np.sqrt(np.abs(speed)) * change


def exponential(speed: np.ndarray, load: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return the velocity law with an affine law times an exponential one."""
    return LAW.torque(speed) + np.sign(speed) * (8.0 - 0.2 * T) * np.exp(-0.2 * np.abs(speed) * T / 10.0)


def warming(
    friction=temperature_dependent, *, low: float = 10.0, high: float = 35.0, noise: float = 0.3, seed: int = 0
) -> JointRecord:
    """Return a warm-up at three speeds in turn."""
    speed = to_and_fro((0.6, 1.5, 2.5) * 12, seconds=1.5)
    temperature = high - (high - low) * np.exp(-3.0 * np.linspace(0.0, 1.0, len(speed)))
    return record_of(speed, friction, temperature=temperature, noise=noise, seed=seed)


@pytest.fixture(scope="module")
def part() -> Part:
    return identify_temperature(warming())


@needs_native
def test_the_temperature_law_of_the_digital_robot_lies_within_its_intervals() -> None:
    # F_T2 is the plant's linear, F_T3 its cold; F_T1 makes the law zero at the reference, as the plant's is at its own
    arm = jointwise.load_robot("ur5e")
    experiment = make_experiment("warm-up", arm, 180.0, joint=0)
    digital = digital_robot(arm, gravity=experiment.gravity)
    first = digital.joints[0]
    quick = replace(first.thermal, ambient=10.5, capacity=first.thermal.capacity / 6.0)
    digital = replace(digital, joints=(replace(first, thermal=quick), *digital.joints[1:]))
    log = log_of(run_experiment(digital, experiment), digital, Sensors(rate=RATE, seed=2))
    found = identify_temperature(joint_record(log, arm, 0, mounting=tuple(digital.gravity)), reference=15.0)
    law = first.friction.thermal
    assert found.model == "three-parameter"
    assert found.value("F_T2").covers(law.linear)
    assert found.value("F_T3").covers(law.cold)
    assert found.value("F_T1").covers(-law.linear * 15.0 - law.cold * 15.0**-3.0)
    assert found.held_out is not None and found.held_out >= 95.1


def test_the_linear_law_beats_the_exponential_one_where_it_is_true(part: Part) -> None:
    quality = {item.model: item.held_out for item in part.alternatives}
    assert part.model == "three-parameter"
    assert quality["three-parameter"] >= 95.1
    assert quality["three-parameter"] > quality["affine-exponential"] > quality["none"]


def test_the_exponential_law_is_chosen_where_it_is_true() -> None:
    found = identify_temperature(warming(exponential, noise=0.05))
    assert found.model == "affine-exponential"
    for name, truth in (("A_0", 8.0), ("A_1", -0.2), ("b_0", 0.0), ("b_1", 0.02)):
        assert found.value(name).covers(truth)


@pytest.mark.thorough
def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    covered = []
    for seed in range(8):
        found = identify_temperature(warming(seed=seed), reference=T0)
        truth = {"F_T1": -LINEAR * T0 - COLD * T0**-3.0, "F_T2": LINEAR, "F_T3": COLD}
        covered += [value.covers(truth[value.name]) for value in found.values]
    assert np.mean(covered) >= 0.85


def test_a_narrow_range_of_temperature_keeps_the_simplest_law() -> None:
    found = identify_temperature(warming(low=30.0, high=35.0, noise=1.0))
    assert found.model == "linear"
    assert found.value("F_T2").covers(LINEAR)


def test_a_velocity_law_leaves_the_temperature_alone() -> None:
    steady = identify_friction(replace(record_of(to_and_fro(SPEEDS), noise=0.05), temperature=np.full(14600, T0)))
    found = identify_temperature(warming(), steady=steady)
    law = temperature_law_of(found)
    assert law.reference == pytest.approx(T0)
    assert found.value("F_T2").covers(LINEAR) and found.value("F_T3").covers(COLD)
    assert found["F_T1"] + LINEAR * T0 + COLD * T0**-3.0 == pytest.approx(0.0, abs=0.2)


def test_a_velocity_law_that_is_off_does_not_bend_the_temperatures(part: Part) -> None:
    off = record_of(to_and_fro(SPEEDS), replace(LAW, coulomb=10.6, viscous=9.5), noise=0.05)
    steady = identify_friction(replace(off, temperature=np.full(off.samples, T0)))
    found = identify_temperature(warming(), steady=steady)
    assert found.model == part.model == "three-parameter"
    assert found["F_T2"] == pytest.approx(part["F_T2"], rel=1e-6)
    assert any("differs from the velocity law" in note for note in found.notes)


def test_the_map_adds_the_temperature_to_the_velocity_law(part: Part) -> None:
    speed = to_and_fro(SPEEDS)
    steady = identify_friction(record_of(speed, noise=0.05, temperature=np.full(len(speed), T0)))
    whole = friction_map([steady, part])
    w, T = np.array([-2.0, 0.8, 1.5, 2.5]), np.array([12.0, 30.0, T0, 15.0])
    assert np.allclose(whole.torque(w, 0.0, T), temperature_dependent(w, w, T), atol=0.12)
    assert np.allclose(whole.torque(w), LAW.torque(w), atol=0.1)
    assert whole.outside(w, 0.0, [5.0, 30.0, 20.0, 70.0]).tolist() == [True, False, False, True]
    assert np.allclose(whole.torque(w, 0.0, 90.0), whole.torque(w, 0.0, part.ranges["temperature"][1]))
    (surface,) = map_surfaces(whole)
    assert surface.z[0][-1] > surface.z[-1][-1]


def test_lines_are_even_and_meet_the_data_up_to_the_residual(part: Part) -> None:
    """Temperatures come in clusters: a line through them would be broken where none were measured."""
    curves = part.curves[:-1]
    assert len(curves) == 3
    for curve in curves:
        assert np.ptp(np.diff(curve.line_x)) < 1e-3
        assert (curve.line_x[0], curve.line_x[-1]) == (min(curve.x), max(curve.x))
        line = np.interp(curve.x, curve.line_x, curve.line_y)
        assert np.allclose(np.array(curve.y) - line, curve.residual, atol=0.05)
        assert all(low < y < high for low, y, high in zip(curve.low, curve.line_y, curve.high, strict=True))


def test_a_law_survives_its_file(part: Part) -> None:
    assert temperature_law_of(Part.from_dict(json.loads(json.dumps(part.to_dict())))) == temperature_law_of(part)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (lambda: warming(low=20.0, high=21.0), "no temperature change (20.0 to 20.9 °C)"),
        (lambda: replace(warming(), temperature=None), "no temperature in the log"),
        (lambda: record_of(to_and_fro(SPEEDS), temperature=np.linspace(10.0, 30.0, 14600)), "only 10 runs"),
        (lambda: replace(warming(), motor=np.clip(warming().motor, -25.0, 25.0)), "saturated"),
        (lambda: replace(warming(), motor=np.random.default_rng(0).permutation(warming().motor)), "does not follow"),
        (lambda: warming(lambda w, load, T: LAW.torque(w), noise=0.5), "does not follow"),
    ],
)
def test_data_that_do_not_determine_the_temperature_law_are_rejected(record, message: str) -> None:
    with pytest.raises(EstimationError, match="temperature is not fitted. The experiment 'warm-up'") as refusal:
        identify_temperature(record())
    assert message in str(refusal.value)
