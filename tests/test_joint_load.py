"""Friction under load: the square law against the absolute one, the gravity check, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import jointwise
from joint_friction_records import LAW, SPEEDS, record_of, to_and_fro
from joint_runs import RATE, log_of, run_experiment
from jointwise.backend import native
from jointwise.description import Payload
from jointwise.design import make_experiment
from jointwise.errors import EstimationError
from jointwise.joint.calibration_terms import joint_terms
from jointwise.joint.friction import identify_friction
from jointwise.joint.hysteresis import candidate_growths
from jointwise.joint.hysteresis_fit import make_loops
from jointwise.joint.laws import friction_map, load_law_of, map_surfaces
from jointwise.joint.load import identify_load
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord, joint_record
from jointwise.simulation.robot import digital_robot
from jointwise.simulation.sensors import Sensors

needs_native = pytest.mark.skipif(native() is None, reason="the native kernel is not built")
FACTOR = 5e-4


def load_dependent(power: int, factor: float = FACTOR):
    """Return friction that grows with a power of the load, more forwards than backwards."""

    def friction(speed: np.ndarray, load: np.ndarray, _: np.ndarray) -> np.ndarray:
        return LAW.torque(speed) + np.sign(speed) * factor * np.abs(load) ** power

    return friction


def loaded(friction=None, *, speeds=(0.1,), scale: float = 1.0, noise: float = 0.5, seed: int = 0) -> JointRecord:
    """Return slow runs from no load to 120 Nm and back; the modelled load is `scale` times the true one."""
    record = record_of(
        to_and_fro(speeds, seconds=15.0),
        friction or load_dependent(2),
        load=lambda q: 120.0 * np.sin(q),
        noise=noise,
        seed=seed,
    )
    return replace(record, load=scale * record.load)


@pytest.fixture(scope="module")
def part() -> Part:
    return identify_load(loaded())


@needs_native
def test_the_digital_robots_load_friction_lies_within_its_interval() -> None:
    arm, payload = jointwise.load_robot("ur5e"), Payload(5.0)
    experiment = make_experiment("load", arm, 40.0, joint=1)
    digital = digital_robot(arm, gravity=experiment.gravity, payload=payload)
    log = log_of(run_experiment(digital, experiment), digital, Sensors(rate=RATE, seed=1))
    found = identify_load(joint_record(log, arm, 1, mounting=tuple(digital.gravity), payload=payload))
    assert found.model == "square"
    assert found.value("F_l").covers(digital.joints[1].friction.load)
    quality = {item.model: item.held_out for item in found.alternatives}
    assert quality["square"] >= 87.0
    assert quality["square"] > quality["absolute"] + 4.0 > quality["none"]
    assert found["gravity slope"] == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(("power", "factor", "name"), [(2, FACTOR, "square"), (1, 0.05, "absolute")])
def test_the_law_is_the_one_that_predicts_unseen_positions(power: int, factor: float, name: str) -> None:
    found = identify_load(loaded(load_dependent(power, factor)))
    assert found.model == name
    assert found.value("F_l").covers(factor)
    assert found.held_out == max(item.held_out for item in found.alternatives if item.model in ("square", "absolute"))


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    covered = [identify_load(loaded(seed=seed)).value("F_l").covers(FACTOR) for seed in range(25)]
    assert np.mean(covered) >= 0.84


def test_an_error_of_the_gravity_model_does_not_enter_the_friction_and_is_reported() -> None:
    right, wrong = identify_load(loaded()), identify_load(loaded(scale=0.9))
    assert wrong["F_0"] == pytest.approx(right["F_0"], abs=1e-6)
    assert wrong["F_l"] * 0.81 == pytest.approx(right["F_l"], rel=1e-6)
    assert wrong["gravity slope"] == pytest.approx(1.0 / 0.9, rel=0.01)
    assert any("or the gain is 9" in note for note in wrong.notes)
    assert not any("or the gain is" in note for note in right.notes)


def test_every_speed_has_a_separate_friction_unless_the_velocity_law_is_known() -> None:
    record = loaded(speeds=(0.05, 0.1, 0.2))
    alone = identify_load(record)
    assert [value.name for value in alone.values][1:4] == ["F_0 at 0.05 rad/s", "F_0 at 0.1 rad/s", "F_0 at 0.2 rad/s"]
    steady = identify_friction(record_of(to_and_fro(SPEEDS), noise=0.05))
    with_law = identify_load(record, steady=steady)
    assert abs(with_law["F_0 at 0.1 rad/s"]) < 0.1
    assert with_law["F_l"] == pytest.approx(alone["F_l"], rel=0.001) == pytest.approx(FACTOR, rel=0.02)


def test_friction_that_does_not_depend_on_the_load_is_reported_and_has_no_growth() -> None:
    found = identify_load(loaded(load_dependent(2, 0.0), seed=3))
    assert found.model == "none"
    assert "F_l" not in {value.name for value in found.values}
    assert any("no friction that grows with the load is seen up to 120 Nm" in note for note in found.notes)
    law = load_law_of(Part.from_dict(json.loads(json.dumps(found.to_dict()))))
    assert law.torque(np.array([1.0, -1.0]), np.array([100.0, 50.0])).tolist() == [0.0, 0.0]
    assert law.outside(np.array([200.0])).tolist() == [True]
    steady = identify_friction(record_of(to_and_fro(SPEEDS), noise=0.05))
    assert map_surfaces(friction_map([found, steady])) == ()
    assert friction_map([found, steady]).torque(0.1, 100.0) == friction_map([steady]).torque(0.1)


def test_a_growth_that_is_none_is_seldom_seen() -> None:
    models = [identify_load(loaded(load_dependent(2, 0.0), seed=seed)).model for seed in range(25)]
    assert models.count("none") >= 22


def test_a_calibration_and_the_hysteresis_choose_a_growth_that_the_load_did_not_show(part: Part) -> None:
    none = identify_load(loaded(load_dependent(2, 0.0), seed=3))
    steady = identify_friction(record_of(to_and_fro(SPEEDS), noise=0.05))
    without, grown = (
        joint_terms(JointModel("any", 0, {"friction": steady, "load": load}), True) for load in (none, part)
    )
    assert "load" in without.open
    assert "load" not in grown.open
    assert "FC1" not in without.known and "FC1" in grown.known
    record = loaded(speeds=(0.1, 0.1, 0.1))
    loops = make_loops(record, None, np.zeros(record.samples))
    assert candidate_growths(record, loops, none) == candidate_growths(record, loops, "auto")
    assert candidate_growths(record, loops, part) == candidate_growths(record, loops, "square")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (lambda: record_of(to_and_fro([0.1], seconds=15.0)), "load never varies"),
        (lambda: record_of(np.abs(to_and_fro([0.1], seconds=15.0))), "forward and back"),
        (lambda: record_of(np.zeros(2000)), "does not move"),
        (lambda: _with_motor(lambda x: np.clip(x, -80.0, 80.0)), "saturated"),
        (lambda: _with_motor(np.random.default_rng(0).permutation), "does not follow the modelled load"),
    ],
)
def test_data_that_do_not_determine_the_load_are_rejected(record, message: str) -> None:
    with pytest.raises(EstimationError, match="load is not fitted. The experiment 'load'") as refusal:
        identify_load(record())
    assert message in str(refusal.value)


def _with_motor(change) -> JointRecord:
    record = loaded(noise=0.1)
    return replace(record, motor=change(record.motor))


def test_a_law_is_clamped_and_flagged_beyond_the_measured_load(part: Part) -> None:
    law = load_law_of(Part.from_dict(json.loads(json.dumps(part.to_dict()))))
    assert law == load_law_of(part)
    assert law.torque(np.array([1.0, -1.0]), np.array([500.0, -500.0])).tolist() == [
        law.factor * law.largest**2,
        -law.factor * law.largest**2,
    ]
    assert law.outside(np.array([-500.0, 0.0])).tolist() == [True, False]


def test_the_map_adds_the_load_to_the_velocity_law(part: Part) -> None:
    steady = identify_friction(record_of(to_and_fro(SPEEDS), noise=0.05))
    whole = friction_map([part, steady])
    speed, load = np.array([-1.0, 0.1, 0.5, 2.0]), np.array([50.0, -80.0, 100.0, 0.0])
    assert np.allclose(whole.torque(speed, load), load_dependent(2)(speed, load, load), atol=0.1)
    assert whole.outside(speed, [50.0, -80.0, 500.0, 0.0]).tolist() == [False, False, True, False]
    (surface,) = map_surfaces(whole)
    assert np.shape(surface.z) == (len(surface.y), len(surface.x))
    assert surface.z[-1][0] > surface.z[0][0]
