"""Rotor-side compensation: friction and rotor inertia on the rotors, bodies on the links."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from cli_runs import refused
from jointwise.cli.summary import training_text
from jointwise.errors import DataError, ModelError
from jointwise.estimation.structure import Structure
from jointwise.model.terms import Inertia, term_from_dict
from jointwise.options import Options, with_friction

PLANAR = jw.load_robot("planar2")
SOFT = jw.PlantOptions(
    age={"stiffness": -0.97}, without=("backlash", "kinematic_error", "lost_motion", "thermal", "stribeck")
)


def options(made: jw.SimulationResult, log: jw.Log, **sides: object) -> Options:
    structure = Structure("tanh", "none", (1.0, 2.0))
    start = Options(gains=made.truth["gains"], structure=structure, free=(), position_cutoff=25.0, lag=0.0)
    return with_friction(start, [log], **sides)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made() -> jw.SimulationResult:
    return jw.simulate(PLANAR, duration=20.0, rate=500.0, seed=2, plant=SOFT, keep=0)


@pytest.fixture(scope="module")
def two(made: jw.SimulationResult) -> jw.Calibration:
    chosen = options(made, made.log, two_encoders=True, rotor_inertias=made.truth["rotor_inertias"])
    return jw.calibrate(made.log, "planar2", options=chosen)  # a name is enough


def base_error(made: jw.SimulationResult, found: jw.Calibration) -> float:
    rotors = made.truth["rotor_inertias"] if found.model.rotors else []
    truth = found.model.base.from_standard(np.append(np.ravel(made.truth["inertials"]), rotors))
    return float(np.linalg.norm(found.estimate.values[: len(truth)] - truth) / np.linalg.norm(truth))


def test_soft_joints_bias_one_encoder_and_not_two(made: jw.SimulationResult, two: jw.Calibration) -> None:
    log = made.log.without(["theta"])
    one = jw.calibrate(log, PLANAR, options=options(made, log), physical=False)
    assert base_error(made, two) < 0.5 * base_error(made, one)
    other = jw.simulate(PLANAR, duration=10.0, rate=500.0, seed=3, plant=SOFT, keep=0).log
    assert jw.validate(two, other).mean_nmse < 0.8 * jw.validate(one, other.without(["theta"])).mean_nmse


def test_rotor_inertias_of_soft_joints_are_estimated_with_intervals(made: jw.SimulationResult) -> None:
    found = jw.calibrate(made.log, PLANAR, options=options(made, made.log, two_encoders=True), physical=False)
    names = [info.name for info in found.model.parameters]
    for j, truth in enumerate(made.truth["rotor_inertias"]):
        k = names.index(f"Ia_{j + 1}")
        low, high = found.conf_int()[k]
        assert low < 1.1 * truth and high > 0.9 * truth
        assert found.estimate.values[k] == pytest.approx(truth, rel=0.3)


def test_known_inertias_are_held_and_reach_the_identified_robot(made: jw.SimulationResult, two: jw.Calibration) -> None:
    status = dict(zip((info.name for info in two.model.parameters), two.estimate.status, strict=True))
    assert status["Ia_1"] == status["Ia_2"] == "given"
    assert "given: fixed at a known value" in training_text(two)
    np.testing.assert_allclose(two.robot_identified().rotor_inertias, made.truth["rotor_inertias"], rtol=1e-6)
    twin = jw.make_twin(two)
    np.testing.assert_allclose([joint.inertia for joint in twin.joints], made.truth["rotor_inertias"], rtol=1e-6)
    assert not any("not simulated" in note for note in twin.notes)


def test_the_model_is_stored_and_predicts_without_rotors_too(
    made: jw.SimulationResult, two: jw.Calibration, tmp_path: Path
) -> None:
    jw.save_model(two, tmp_path / "two.json")
    again = jw.load_calibration(tmp_path / "two.json")
    np.testing.assert_array_equal(again.predict(made.log), two.predict(made.log))
    assert "theta" in again.extras
    feed_forward = again.predict(made.log.without(["theta"]))
    assert np.isfinite(feed_forward).all() and not np.array_equal(feed_forward, again.predict(made.log))


def test_shuffled_rotors_predict_worse(made: jw.SimulationResult, two: jw.Calibration) -> None:
    assert made.log.theta is not None
    swapped = replace(made.log, theta=made.log.q + (made.log.theta - made.log.q)[::-1])
    chosen = options(made, swapped, two_encoders=True, rotor_inertias=made.truth["rotor_inertias"])
    worse = jw.calibrate(swapped, PLANAR, options=chosen, physical=False, accept_implausible=True)
    assert np.mean(worse.training.known) > 1.5 * np.mean(two.training.known)


def test_wrong_input_is_one_line(made: jw.SimulationResult, tmp_path: Path) -> None:
    bare = made.log.without(["theta"])
    with pytest.raises(DataError, match="no rotor positions \\(theta1..\\), which two encoders need"):
        options(made, bare, two_encoders=True)
    with pytest.raises(ModelError, match="rotor inertias must be 2 numbers. Got 1 instead"):
        options(made, made.log, two_encoders=True, rotor_inertias=[1.0])
    with pytest.raises(ModelError, match="add --two-encoders"):
        options(made, made.log, rotor_inertias=[1.0, 1.0])
    with pytest.raises(ModelError, match="value must be a finite number"):
        options(made, made.log, two_encoders=True, rotor_inertias=[1.0, -1.0])
    jw.write_log(bare, tmp_path / "bare.csv")
    line = refused(
        "calibrate", tmp_path / "bare.csv", "--robot", "planar2", "--two-encoders", "--output", tmp_path / "m.json"
    )
    assert "theta1" in line


def test_an_inertia_term_is_its_acceleration() -> None:
    term = term_from_dict({"kind": "inertia", "value": 0.5})
    assert term == Inertia(0.5) and term.to_dict() == {"kind": "inertia", "value": 0.5}


@pytest.mark.thorough
def test_the_cutoff_is_high_with_both_encoders_and_low_for_positions_alone(tmp_path: Path) -> None:
    """Only fast motion separates rotors and links; a feed-forward from noisy positions needs the low cut-off."""
    arm = jw.load_robot("ur5e")
    made = jw.simulate(arm, duration=15.0, rate=500.0, seed=1, keep=0)
    start = Options(structure=Structure("hysteresis", "square", (1.0, 2.0), drivers=("rotor",)), free=())
    found = jw.calibrate(made.log, arm, options=with_friction(start, [made.log], two_encoders=True), physical=False)
    friction = found.feed_forward
    assert friction is not None and friction.position_cutoff is not None
    assert found.filters.position_cutoff > 2.0 * friction.position_cutoff
    names = [info.name for info in found.model.parameters]
    inertias = [found.estimate.values[names.index(f"Ia_{j}")] for j in range(1, 7)]
    np.testing.assert_allclose(inertias, made.truth["rotor_inertias"], rtol=0.1)
    other = jw.simulate(arm, duration=6.0, rate=500.0, seed=9, keep=0).log.without(["theta", "qd"])
    assert jw.validate(found, other).mean_nmse < 0.01
    jw.save_model(found, tmp_path / "two.json")
    again = jw.load_calibration(tmp_path / "two.json")
    np.testing.assert_array_equal(again.predict(other), found.predict(other))


@pytest.mark.thorough
def test_a_lag_of_half_a_sample_is_not_taken_for_inertia_of_the_links() -> None:
    """The torque of a sample acts until the next one; with measured rotors the lag is found between the samples."""
    arm, plant = jw.load_robot("ur5e"), jw.PlantOptions(age={"stiffness": -0.7})
    made = jw.simulate(arm, duration=15.0, rate=500.0, seed=4, plant=plant, keep=0)
    structure = Structure("hysteresis", "square", (1.0, 2.0), drivers=("rotor",))
    start = Options(gains=made.truth["gains"], structure=structure, free=())
    chosen = [with_friction(replace(start, lag=lag), [made.log], two_encoders=True) for lag in (None, 0.0)]
    found, without = (jw.calibrate(made.log, arm, options=each, physical=False) for each in chosen)
    assert 0.3e-3 < found.filters.lag < 1.7e-3 and without.filters.lag == 0.0
    names = [info.name for info in found.model.parameters]
    index = [names.index(f"Ia_{j}") for j in range(1, 7)]
    errors = [np.abs(model.estimate.values[index] / made.truth["rotor_inertias"] - 1.0) for model in (found, without)]
    assert errors[0].max() < 0.7 * errors[1].max() and errors[0].max() < 0.1
