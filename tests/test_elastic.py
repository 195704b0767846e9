"""Elastic joints: both equations against the simulated robot, the study of the literature, and wrong input."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from cli_runs import refused, run
from jointwise.elastic import identify_elastic
from jointwise.errors import DataError, DescriptionError, EstimationError, ModelError
from jointwise.model.base import base_parameters
from jointwise.model.elastic import MOTOR_NAMES, ElasticStates, elastic_base, elastic_columns
from jointwise.simulation.robot import DigitalRobot

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from elastic import ABSENT, IDEAL, Study, study, sweep

PUMA = jw.load_robot("puma560")


@pytest.fixture(scope="module")
def planar() -> Study:
    return study("planar2")


def test_the_study_with_static_friction(planar: Study) -> None:
    error, count, every = planar.errors(planar.identify("reduced"))
    assert count == 12 and error < 0.02 and every < 0.02


def test_the_study_without_static_friction() -> None:
    made = study("planar2", static=False)
    assert made.errors(made.identify("reduced"))[0] < 0.004


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["reduced", "complete"])
def test_the_study_of_six_joints(model: str) -> None:
    made = study("puma560", model=model)  # type: ignore[arg-type]
    found = made.identify(model)  # type: ignore[arg-type]
    error, count, every = made.errors(found)
    assert error < 0.02 and every < 0.06 and count >= 40
    truth = found.base.from_standard(made.truth)
    near = np.abs(found.values - truth) < 3.0 * found.factor * found.deviation + 0.01 * np.abs(truth)
    assert near.mean() > 0.9
    low, high = found.conf_int()[found.base.names.index("K6")]
    assert ("not determined by these data" in found.summary()) == bool(found.undetermined)
    assert low < 2000.0 < high and high - low > 1000.0  # a deflection of a twentieth of an encoder count
    assert {f"K{j}" for j in range(1, 6)}.isdisjoint(found.undetermined)


def test_the_lag_of_the_motor_torque_is_estimated(planar: Study) -> None:
    log = planar.made.log
    assert log.current is not None
    found = planar.identify("reduced")
    assert found.lag == pytest.approx(-0.5e-3, abs=0.1e-3)  # the torque of a sample has acted for 1 ms
    late = replace(log, current=np.vstack([log.current[:1].repeat(4, axis=0), log.current[:-4]]))
    shifted = planar.identify("reduced", late)
    assert shifted.lag - found.lag == pytest.approx(-4e-3, abs=0.1e-3)
    assert planar.errors(shifted)[2] < 0.005
    assert f"lag of the motor torque: {1e3 * shifted.lag:.2f} ms" in shifted.summary()


def test_noise_of_70_db_is_usable_and_of_20_db_is_rejected(planar: Study) -> None:
    lost, low, high = sweep(planar, (20, 70, 100))
    assert np.isnan(lost) and high < low < 0.15


@pytest.mark.thorough
def test_the_spin_of_rotors_is_seen_by_the_complete_model_only() -> None:
    rng = np.random.default_rng(3)
    joints = study("puma560").made.digital.joints
    slow = tuple(replace(joint, gear_ratio=5.0) for joint in joints)
    robot = replace(PUMA, joints=tuple(replace(j, motor=replace(j.motor, gear_ratio=5.0)) for j in PUMA.joints))
    q, qd, theta_d, theta_dd, qdd = rng.uniform(-1.0, 1.0, (5, 4, 6))
    states = ElasticStates(q, qd, qdd, q + 0.01, theta_d, theta_dd)
    parameters = np.zeros(84)
    parameters[60::4] = [joint.inertia for joint in slow]
    link, motor = elastic_columns(robot, states, "table", "complete")
    plain, alone = elastic_columns(robot, states, "table", "reduced")
    spin, back = (link - plain) @ parameters, (motor - alone) @ parameters
    energy = np.zeros(4)
    step = 1e-6
    for sign in (1.0, -1.0):  # d/dt of Σ Υ/r θ̇ z·ω is the power of the spin torques
        moved = ElasticStates(
            q + sign * step * qd, qd + sign * step * qdd, qdd, q, theta_d + sign * step * theta_dd, theta_dd
        )
        energy += sign * _spin_energy(robot, moved, parameters[60::4]) / (2.0 * step)
    power = np.sum(spin.T * qd, axis=1) + np.sum(back.T * theta_d, axis=1)
    np.testing.assert_allclose(power, energy, rtol=1e-6)
    assert isinstance(study("puma560", model="complete").made.digital, DigitalRobot)


def _spin_energy(robot: jw.Robot, states: ElasticStates, inertias: np.ndarray) -> np.ndarray:
    from jointwise.model.rigid import forward_kinematics

    axes = forward_kinematics(robot, states.q).rotation[:, :6, :, 2]
    turn = np.cumsum(states.qd[:, :, None] * axes, axis=1)
    before = np.concatenate([np.zeros_like(turn[:, :1]), turn[:, :-1]], axis=1)
    ratios = np.array([joint.motor.gear_ratio for joint in robot.joints])
    result: np.ndarray = np.sum(inertias / ratios * states.theta_d * np.sum(axes * before, axis=2), axis=1)
    return result


def test_bodies_are_classified_as_those_of_rigid_joints() -> None:
    elastic, rigid = elastic_base(PUMA, "table", "reduced"), base_parameters(PUMA, rotors=False)
    for name, kind in rigid.classification.items():
        assert elastic.classification[name] == kind
    assert all(elastic.classification[f"{stem}{j}"] == "alone" for stem in ("Ia", "Fs", "Fv", "K") for j in range(1, 7))
    assert elastic.count == rigid.count + 24


def test_shuffled_torques_are_rejected(planar: Study) -> None:
    log = planar.made.log
    order = np.random.default_rng(0).permutation(log.samples)
    with pytest.raises(EstimationError, match="positions do not explain the motor torque of joint"):
        identify_elastic(replace(log, current=log.channel("i")[order]), planar.robot, gains=[10.0, 10.0])


def test_wrong_input_is_one_line(planar: Study, tmp_path: Path) -> None:
    log, robot = planar.made.log, planar.robot
    with pytest.raises(DataError, match=r"no rotor positions \(theta1..\), which elastic joints need"):
        identify_elastic(log.without(["theta"]), robot, gains=[10.0, 10.0])
    with pytest.raises(EstimationError, match="14 parameters need at least 0.7 s"):
        identify_elastic(log.slice(3000, 3600), robot, gains=[10.0, 10.0])
    with pytest.raises(ModelError, match="drive gains must be 2 positive numbers"):
        identify_elastic(log, robot, gains=[10.0])
    with pytest.raises(ModelError, match="complete elastic model needs gear_ratio of joint 1, 2"):
        identify_elastic(log, jw.load_robot("planar2"), model="complete", gains=[10.0, 10.0])
    with pytest.raises(ModelError, match="must be reduced or complete. Got 'magic'"):
        identify_elastic(log, robot, model="magic")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="has 2 joints, puma560 has 6"):
        identify_elastic(log, PUMA)
    with pytest.raises(DescriptionError, match="elastic joints does not model coupled transmissions"):
        identify_elastic(log, jw.load_robot("planar2", coupling="2:1:1"), gains=[10.0, 10.0])
    jw.write_log(log.without(["theta"]), tmp_path / "bare.csv")
    argv = ("calibrate", tmp_path / "bare.csv", "--robot", "planar2", "--elastic", "reduced", "--gains", 10, 10)
    assert "theta1" in refused(*argv, "--output", tmp_path / "m.json")
    assert run(*argv).code == 2
    for option in (
        ["--holdout", 0.3],
        ["--method", "iv"],
        ["--payload", 1],
        ["--no-physical"],
        ["--direction", "tanh"],
    ):
        done = run(*argv, "--output", tmp_path / "m.json", *option)
        assert done.code == 2 and f"{option[0]} cannot be used with --elastic" in done.err


def test_a_joint_without_measurable_deflection_leaves_its_link_to_the_other_joints() -> None:
    """A stiffness at its bound of zero would make the bodies of its link zero, with narrow intervals."""
    plant = jw.PlantOptions(without=(*ABSENT, *IDEAL, "stribeck"))
    made = jw.simulate("ur5e", duration=20.0, rate=250.0, seed=3, plant=plant, keep=0)
    log = made.log
    assert log.theta is not None
    rigid = replace(log, theta=np.column_stack([log.theta[:, :5], log.q[:, 5]]))
    found = identify_elastic(rigid, jw.load_robot("ur5e"), gains=made.truth["gains"])
    assert found.at_bound == ("K6",) and np.flatnonzero(np.isnan(found.sigma[0])).tolist() == [5]
    assert "joint 6: too stiff for these data" in found.summary()
    stiffness = next(line for line in found.summary().splitlines() if line.split()[:1] == ["K6"])
    assert stiffness.split() == ["K6", "-", "not", "determined", "Nm/rad"]
    assert found.to_dict()["residual"]["links"][5] is None
    last = [k for k, name in enumerate(found.base.names) if name.endswith("6") and name[:-1] not in MOTOR_NAMES]
    truth = found.base.from_standard(np.append(np.ravel(made.truth["inertials"]), np.zeros(24)))[last]
    low, high = found.conf_int()[last].T
    assert len(last) == 7 and np.all(high - low > 1e-4) and np.all((low < truth) & (truth < high))


def test_the_command_writes_what_the_function_returns(planar: Study, tmp_path: Path) -> None:
    jw.write_log(planar.made.log, tmp_path / "log.csv")
    argv = ("calibrate", tmp_path / "log.csv", "--robot", "planar2", "--elastic", "reduced", "--gains", 10, 10)
    done = run(*argv, "--output", tmp_path / "m.json")
    assert done.code == 0 and "K1" in done.out
    written = {row["name"]: row["value"] for row in json.loads((tmp_path / "m.json").read_text())["parameters"]}
    assert written["K1"] == pytest.approx(planar.identify("reduced")["K1"], rel=1e-6)
