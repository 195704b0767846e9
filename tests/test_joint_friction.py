"""Velocity friction: constant-speed runs, the curve, its intervals, and what is rejected."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise
from data_files import SHARED, needs_shared
from joint_friction_records import LAW, RATE, SPEEDS, record_of, sinusoid, to_and_fro
from joint_runs import RATE as DIGITAL_RATE
from joint_runs import log_of, run_experiment
from jointwise.backend import native
from jointwise.cli import main
from jointwise.data import read_log
from jointwise.design import make_experiment
from jointwise.errors import EstimationError, ModelError
from jointwise.joint.friction import FrictionForm, identify_friction
from jointwise.joint.laws import VelocityLaw, velocity_law_of
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord, joint_record
from jointwise.joint.windows import find_plateaus
from jointwise.simulation.robot import digital_robot
from jointwise.simulation.sensors import Sensors

needs_native = pytest.mark.skipif(native() is None, reason="the native kernel is not built")
TRUTH = {
    "F_C": 10.0, "F_S": 12.0, "F_S-F_C": 2.0, "V_S": 0.05, "mu": 1.0, "F_V1": 10.0, "F_V2": -1.1, "F_V3": 0.0,
    "asymmetry": 0.05, "F_C+": 10.5, "F_C-": 9.5, "offset": 0.5,
}  # fmt: skip
"""Numbers of `LAW`, which are those of the digital robot's base joint."""
FULL = FrictionForm(stribeck=True, free=True, powers=3)


@pytest.fixture(scope="module")
def part() -> Part:
    return identify_friction(record_of(to_and_fro(SPEEDS)))


# -- what is found --


@needs_native
def test_the_digital_robots_friction_lies_within_its_intervals() -> None:
    # F_C, F_S - F_C, V_S and mu are the plant's coulomb and its Stribeck's extra, speed and shape
    arm = jointwise.load_robot("ur5e")
    experiment = make_experiment("constant-speed", arm, 40.0, joint=0)
    digital = digital_robot(arm, gravity=experiment.gravity).without("thermal")
    friction = digital.joints[0].friction
    assert (friction.coulomb, friction.stribeck.extra, friction.viscous, friction.square) == (10.0, 2.0, 10.0, -1.1)
    run, covered = run_experiment(digital, experiment), []
    for seed in range(2):
        log = log_of(run, digital, Sensors(rate=DIGITAL_RATE, seed=seed))
        found = identify_friction(joint_record(log, arm, 0, mounting=tuple(digital.gravity)))
        assert found.model.startswith("Stribeck")
        assert found.held_out is not None and found.held_out > 98.0
        covered += [value.covers(TRUTH[value.name]) for value in found.values]
        assert abs(found["F_C"] - 10.0) < 0.2 and abs(found["V_S"] - 0.05) < 0.02
    assert np.mean(covered) >= 0.85


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    form = FrictionForm(stribeck=True, powers=2, side="asymmetry")
    covered = []
    for seed in range(25):
        found = identify_friction(record_of(to_and_fro(SPEEDS * 2), seed=seed), form=form)
        covered += [value.covers(TRUTH[value.name]) for value in found.values]
    assert 0.90 <= np.mean(covered) <= 0.995


def test_all_seven_parameters_are_found_where_the_speeds_determine_them() -> None:
    law = VelocityLaw(8.0, 12.0, 0.1, 2.0, 12.0, -4.0, 1.0)
    found = identify_friction(record_of(to_and_fro(np.geomspace(0.01, 2.8, 24)), law, noise=0.05), form=FULL)
    expected = {"F_C": 8.0, "F_S": 12.0, "V_S": 0.1, "mu": 2.0, "F_V1": 12.0, "F_V2": -4.0, "F_V3": 1.0}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=0.03)
        assert found.value(name).deviation < 0.03 * abs(value)


def test_a_stribeck_effect_below_the_slowest_speed_is_not_guessed() -> None:
    found = identify_friction(record_of(to_and_fro(np.linspace(0.5, 2.5, 8)), replace(LAW, stribeck_speed=0.01)))
    assert "Stribeck" not in found.model
    forced = identify_friction(record_of(to_and_fro(np.linspace(0.5, 2.5, 8)), replace(LAW, static=10.0)), form=FULL)
    assert "Stribeck" not in forced.model
    assert any("not identifiable" in note for note in forced.notes)


def test_the_covariance_is_stored_with_the_values(part: Part) -> None:
    stored = part.settings["covariance"]
    spread = dict(zip(stored["names"], np.sqrt(np.diag(stored["values"])).tolist(), strict=True))
    assert {"F_C", "V_S", "F_V1"} <= spread.keys()
    for name, deviation in spread.items():
        scale = part[name] if name in ("V_S", "mu") else 1.0  # logarithms
        assert part.value(name).deviation == pytest.approx(scale * deviation)


def test_smaller_models_are_listed_with_their_error_on_held_out_runs(part: Part) -> None:
    quality = {item.model: item.held_out for item in part.alternatives}
    assert part.held_out == quality[part.model]
    assert quality["viscous"] < quality["Coulomb + viscous, offset"] < quality[part.model]
    assert part.held_out > 97.0


def test_the_band_holds_runs_that_it_has_not_seen(part: Part) -> None:
    check = part.settings["band_check"]
    assert check["points"] == 20
    assert check["inside"] >= 0.8
    curve = part.curves[0]
    width = np.array(curve.high) - np.array(curve.low)
    assert (width > 0.0).all() and width.max() < 1.0
    truth = LAW.torque(np.array(curve.line_x))
    assert (np.abs(truth - curve.line_y) < 0.5 * width).all()


def test_gravity_that_is_not_modelled_and_friction_under_load_do_not_enter_the_curve() -> None:
    def friction(speed: np.ndarray, load: np.ndarray, _: np.ndarray) -> np.ndarray:
        return LAW.torque(speed) + np.sign(speed) * 0.002 * load**2

    record = record_of(
        sinusoid(cycles=8), friction, load=lambda q: 60.0 * np.cos(q), unknown=lambda q, a: 4.0 * np.sin(q) + 3.0 * a
    )
    found = identify_friction(record)
    assert any("constant speeds make up" in note for note in found.notes)
    assert found.settings["points"] == "cycles"
    beside = found.settings["beside"]
    assert beside["inertia"] == pytest.approx(3.0, abs=0.3)
    assert beside["sin"] == pytest.approx(4.0, abs=0.3)
    assert beside["load²"] == pytest.approx(0.002, rel=0.1)
    speed = np.array([-0.8, -0.3, 0.3, 0.8])
    assert np.allclose(velocity_law_of(found).torque(speed), LAW.torque(speed), atol=0.3)


def test_one_direction_says_that_an_offset_looks_the_same() -> None:
    speed = np.abs(to_and_fro(SPEEDS))
    found = identify_friction(record_of(speed))
    assert any("one direction only" in note for note in found.notes)
    assert "asymmetry" not in {value.name for value in found.values}


# -- runs at constant speed --


def test_runs_are_found_at_their_speeds_and_nowhere_else() -> None:
    plateaus = find_plateaus(record_of(to_and_fro(SPEEDS)))
    expected = np.repeat(SPEEDS, 2) * np.tile([1.0, -1.0], 10)
    assert np.allclose(plateaus.speed, expected, rtol=1e-3)
    assert (plateaus.duration < 3.0).all() and (plateaus.duration > 1.5).all()
    assert len(np.unique(plateaus.levels)) == 10


def test_a_constant_acceleration_holds_no_runs() -> None:
    half = 4.0 * np.abs((np.arange(int(40 * RATE)) / RATE / 8.0) % 1.0 - 0.5) - 1.0
    assert find_plateaus(record_of(half)).duration.sum() < 0.1 * 40.0


# -- what is rejected --


@pytest.mark.parametrize(
    ("speed", "motor", "message"),
    [
        (to_and_fro([0.5] * 6), None, "only one speed (0.5 rad/s)"),
        (to_and_fro([0.5, 1.0] * 3), None, "only 2 speeds"),
        (1e-4 * sinusoid(), None, "does not move"),
        (sinusoid(cycles=1), None, "cycles forward and back"),
        (to_and_fro(SPEEDS), lambda motor: np.clip(motor, -15.0, 15.0), "saturated"),
        (to_and_fro(SPEEDS), np.random.default_rng(1).permutation, "does not follow the speed"),
        (sinusoid(), np.random.default_rng(2).permutation, "does not follow the speed"),
    ],
)
def test_data_that_do_not_determine_the_friction_are_rejected(speed, motor, message) -> None:
    record = record_of(speed)
    if motor is not None:
        record = replace(record, motor=motor(record.motor))
    with pytest.raises(EstimationError, match="friction is not fitted. The experiment 'constant-speed'") as refusal:
        identify_friction(record)
    assert message in str(refusal.value)


def test_runs_shuffled_against_their_torques_are_rejected() -> None:
    record = record_of(to_and_fro(SPEEDS))
    with pytest.raises(EstimationError, match="does not follow the speed"):
        identify_friction(replace(record, motor=np.roll(record.motor, 5200)))


# -- what can be done with it --


def test_a_law_is_clamped_and_flagged_outside_the_measured_speeds(part: Part) -> None:
    law = velocity_law_of(Part.from_dict(json.loads(json.dumps(part.to_dict()))))
    assert law == velocity_law_of(part)
    fastest = part.ranges["speed"][1]
    assert np.allclose(law.torque(np.array([10.0, 2.0 * fastest])), law.torque(np.array([fastest])))
    assert law.outside(np.array([-10.0, 0.0, 1.0])).tolist() == [True, False, False]
    assert law.torque(np.zeros(1))[0] == 0.0
    with pytest.raises(ModelError, match="must be of friction"):
        velocity_law_of(Part("load", "square", (), 50.0))


@needs_shared
@pytest.mark.parametrize(
    ("joint", "quality", "coulomb"), [(0, 96.0, (11.0, 17.0)), (1, 94.0, (9.0, 18.0)), (2, 95.0, (4.0, 7.0))]
)
def test_the_friction_of_a_real_ur10e_has_a_band_that_holds_cycles_left_out(joint, quality, coulomb) -> None:
    log = read_log(SHARED / "ur10e" / f"joint_20_01_22_joint_{joint + 1}.csv")
    found = identify_friction(joint_record(log, jointwise.load_robot("ur10e"), joint))
    assert found.held_out is not None and found.held_out > quality
    assert coulomb[0] < found["F_C"] < coulomb[1]
    assert found.settings["points"] == "cycles"
    check = found.settings["band_check"]
    assert check["inside"] >= 0.9 and check["slow"] >= 0.85
    curve = found.curves[0]
    width = np.array(curve.high) - np.array(curve.low)
    assert width.max() < 0.2 * np.ptp(curve.line_y)


# -- warming, short logs --


def warmed_record(seed: int, measured: bool = True) -> JointRecord:
    """Return runs during which the joint warms up by 2 K and loses 1.75 % of F_C per K at 1 rad/s."""
    speed = to_and_fro(SPEEDS)
    warming = 2.0 * np.cumsum(speed**2) / np.sum(speed**2)

    def friction(w: np.ndarray, _: np.ndarray, T: np.ndarray) -> np.ndarray:
        return LAW.torque(w) - 0.0175 * LAW.coulomb * np.sign(w) * np.sqrt(np.abs(w)) * (T - 20.0)

    record = record_of(speed, friction, seed=seed, temperature=20.0 + warming)
    return record if measured else replace(record, temperature=None)


def test_friction_lost_by_warming_is_not_taken_for_a_viscous_term() -> None:
    form = FrictionForm(stribeck=True, powers=2, side="asymmetry")
    found = [identify_friction(warmed_record(seed), form=form) for seed in range(12)]
    covered = [value.covers(TRUTH[value.name]) for part in found for value in part.values]
    assert np.mean(covered) >= 0.9
    assert np.mean([part.value("F_V2").covers(-1.1) for part in found]) >= 0.8
    assert np.mean([part.settings["beside"]["temperature"] for part in found]) == pytest.approx(-0.175, rel=0.3)
    assert all(any("the temperature varies by" in note for note in part.notes) for part in found)
    unseen = [identify_friction(warmed_record(seed, measured=False), form=form) for seed in range(4)]
    wrong, right = (np.mean([part["F_V2"] for part in parts]) for parts in (unseen, found))
    assert abs(wrong + 1.1) > max(0.05, 3.0 * abs(right + 1.1))  # the data do have this effect


def test_a_temperature_that_never_changes_adds_no_parameter(part: Part) -> None:
    record = record_of(to_and_fro(SPEEDS), temperature=np.full(len(to_and_fro(SPEEDS)), 25.0))
    found = identify_friction(record)
    assert found.settings["beside"] == {} and found.settings["temperature"] == 25.0
    assert found["F_C"] == part["F_C"]


@pytest.mark.parametrize("seconds", [6.0, 8.0])
def test_a_log_too_short_for_any_curve_is_rejected_in_one_line(seconds: float) -> None:
    speed = sinusoid(period=2.0, cycles=seconds / 2.0)
    record = record_of(speed, load=lambda q: 60.0 * np.cos(q))
    with pytest.raises(EstimationError, match=r"s of sliding in the log do not determine a curve.*: record longer"):
        identify_friction(record)


@needs_native
def test_commands_reject_friction_of_a_short_log_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(tmp_path / "short.csv")
    assert main(["simulate", "--robot", "ur5e", "--duration", "6", "--rate", "100", "--output", log, "--quiet"]) == 0
    assert main(["joint", "friction", log, "--robot", "ur5e", "--joint", "2"]) == 1
    error = capsys.readouterr().err.strip()
    assert "\n" not in error and "do not determine a curve" in error
    assert main(["joint", "all", log, "--robot", "ur5e", "--joint", "2"]) == 0
    assert "note: friction" in capsys.readouterr().err


def test_friction_of_a_description_without_masses_states_that_gravity_was_not_removed() -> None:
    speed = to_and_fro(SPEEDS)
    bare = replace(record_of(speed), gravity=(0.0, 0.0, -9.81), pull=np.zeros((len(speed), 3)))
    assert any("gravity and inertia of the links were not removed" in note for note in identify_friction(bare).notes)
    with pytest.raises(EstimationError, match="gravity was not removed, as no masses are described"):
        identify_friction(replace(bare, motor=np.roll(bare.motor, 5200)))
    vertical = replace(bare, pull=np.tile([1.0, 0.0, 0.0], (len(speed), 1)))  # masses, but gravity along the axis
    assert not any("were not removed" in note for note in identify_friction(vertical).notes)
