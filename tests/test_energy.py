"""Power on the bus: known losses are recovered, the balance closes, a real UR3e is predicted."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from cli_runs import bench, done, refused
from data_files import SHARED, needs_shared
from jointwise.data.write import write_csv
from jointwise.energy.signals import CURRENT, VOLTAGE, speeds

ROBOT = jw.load_robot("ur5e")
TRUTH = jw.energy.PowerModel(
    robot="ur5e",
    standing=40.0,
    share=1.0,
    gains=(10.9, 10.7, 10.2, 7.9, 7.4, 7.7),
    resistance=(0.9,) * 6,
    drag=tuple(0.2 * gain for gain in (10.9, 10.7, 10.2, 7.9, 7.4, 7.7)),
)
MOVES = [SHARED / "ur3e_power" / f"{name}.csv" for name in ("L0L1", "L2L3", "L3L4")]


def power_log(seed: int = 0, samples: int = 800, noise: float = 1.0) -> jw.Log:
    """Return a log whose bus power is that of `TRUTH` with noise (W)."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / 50.0
    phase = np.outer(t, rng.uniform(0.5, 2.5, 6)) + rng.uniform(0.0, 6.0, 6)
    q, qd = np.sin(phase), np.gradient(np.sin(phase), t, axis=0)
    current = 2.0 * np.cos(0.7 * phase) + np.sign(qd)
    power = TRUTH.power(current, qd) + noise * rng.normal(size=samples)
    return jw.Log(t, q, qd=qd, current=current, extra={VOLTAGE: np.full(samples, 48.0), CURRENT: power / 48.0})


def fitted(log: jw.Log) -> jw.energy.PowerModel:
    return jw.energy.fit_power(log, ROBOT, gains=TRUTH.gains)


def test_known_losses_lie_within_their_intervals():
    model = fitted(power_log())
    truth = {"standing": 40.0, "share": 1.0, "resistance": 0.9, "no_load_current": 0.2}
    for value in model.values:
        assert value.covers(truth[value.name]), value
        assert value.high - value.low < 0.2 * truth[value.name], value
    assert 0.9 < model.rmse < 1.1


def test_speeds_of_positions_are_conditioned():
    t = np.arange(2000) / 500.0
    q = np.sin(np.outer(t, [1.0, 2.0])) + 1e-4 * np.random.default_rng(1).normal(size=(2000, 2))
    error = speeds(jw.Log(t, q)) - np.cos(np.outer(t, [1.0, 2.0])) * [1.0, 2.0]
    raw = np.gradient(q, t, axis=0) - np.cos(np.outer(t, [1.0, 2.0])) * [1.0, 2.0]
    assert error.std() < 0.2 * raw.std()


def test_intervals_cover_the_truth_about_as_often_as_they_claim():
    covered = [value.covers(1.0) for seed in range(40) for value in fitted(power_log(seed, 400)).values[1:2]]
    assert 0.85 <= np.mean(covered) <= 1.0


def test_a_log_without_noise_returns_the_exact_parameters():
    model = fitted(power_log(noise=0.0))
    np.testing.assert_allclose([value.value for value in model.values], [40.0, 1.0, 0.9, 0.2], rtol=1e-6)


def test_the_energy_balance_closes():
    log = power_log(noise=0.0)
    balance = jw.energy.energy_balance(TRUTH, log)
    result = balance.to_dict()
    robot = result["robot"]
    shares = robot["standing"] + sum(robot[name] for name in ("mechanical", "copper", "drive", "burnt"))
    assert shares == pytest.approx(robot["energy"], rel=1e-12)
    assert robot["energy"] == pytest.approx(robot["measured_energy"], rel=1e-9)
    for joint in result["joints"]:
        assert joint["electrical"] == pytest.approx(joint["mechanical"] + joint["copper"] + joint["drive"])


def test_target_torques_split_the_shaft_into_links_and_friction():
    log = power_log(noise=0.0)
    links = np.array(TRUTH.gains) * (log.current - 0.5 * np.sign(log.qd))
    result = jw.energy.energy_balance(TRUTH, replace(log, torque_des=links)).to_dict()
    heat = np.trapezoid(0.5 * np.array(TRUTH.gains) * np.abs(log.qd), log.t, axis=0)
    np.testing.assert_allclose([joint["friction"] for joint in result["joints"]], heat, rtol=1e-9)
    assert jw.energy.energy_balance(TRUTH, log).friction is None


def test_burnt_braking_power_never_flows_back():
    stored, current, speed = replace(TRUTH, standing=10.0), np.full((1, 6), -1.0), np.full((1, 6), 2.0)
    assert stored.power(current, speed)[0] < 0.0
    assert replace(stored, braking="burnt").power(current, speed)[0] == 10.0


def test_shuffled_power_is_refused():
    log = power_log(noise=0.2)
    mixed = np.random.default_rng(3).permutation(log.extra[CURRENT])
    with pytest.raises(jw.errors.EstimationError, match="does not follow"):
        fitted(replace(log, extra={**log.extra, CURRENT: mixed}))


def test_a_negative_resistance_is_refused_with_the_reason():
    log = power_log(noise=0.5)
    power = log.extra[CURRENT] * 48.0 - 2.0 * (log.current**2).sum(axis=1)
    with pytest.raises(jw.errors.EstimationError, match="negative resistance .* would create power"):
        fitted(replace(log, extra={**log.extra, CURRENT: power / 48.0}))


def test_a_small_negative_loss_is_a_parameter_at_its_bound():
    """A loss that the columns do not have makes the no-load current slightly negative."""
    log = power_log(noise=0.01)
    drag = np.abs(log.qd) @ (np.array(TRUTH.drag) + 0.002 * np.array(TRUTH.gains))
    power = log.extra[CURRENT] * 48.0 - drag
    model = fitted(replace(log, extra={**log.extra, CURRENT: power / 48.0}))
    assert model.drag == (0.0,) * 6
    assert any("no_load_current: at the bound 0" in note for note in model.notes)


def test_controller_gains_follow_from_the_targets_at_standstill():
    gains = np.array([10.0, 11.0, 12.0, 4.0, 4.5, 4.0])
    log = power_log(samples=100)
    still = np.arange(100) < 20
    target = np.random.default_rng(0).normal(size=(100, 6)) * (np.arange(6) != 5)
    log = replace(
        log,
        qd_des=np.where(still[:, None], 0.0, log.qd),
        current_des=target,
        torque_des=np.where(still[:, None], gains * target, 99.0),
    )
    found = jw.energy.controller_gains([log], ROBOT)
    np.testing.assert_allclose(found.values, [10.0, 11.0, 12.0, 4.0, 4.5, 4.25])  # joint 6 as joints 4 and 5
    assert found.origin.startswith("targets")


def test_targets_that_are_not_proportional_are_no_gains():
    """At one pose a target current with feedback in it has some ratio to the torque, for an unloaded joint zero."""
    log, rng = power_log(samples=100), np.random.default_rng(0)
    torque = np.array([0.0, -5.6, -17.9, 0.02, -0.05, 0.0])
    held = np.array([-0.1, -0.3, -2.0, 0.02, -0.04, 0.06]) * (1.0 + 0.05 * rng.normal(size=(100, 6)))
    log = replace(log, qd_des=np.zeros((100, 6)), current_des=held, torque_des=np.tile(torque, (100, 1)))
    found = jw.energy.controller_gains([log], ROBOT)
    assert found.origin.startswith("description")
    np.testing.assert_array_equal(found.values, [joint.motor.joint_gain for joint in ROBOT.joints])


def test_wrong_logs_are_refused_with_the_field_to_record():
    log, arm = power_log(), jw.load_robot("ur3e")
    with pytest.raises(jw.errors.DataError, match="actual_robot_current.*RTDE"):
        fitted(replace(log, extra={VOLTAGE: log.extra[VOLTAGE]}))
    with pytest.raises(jw.errors.DataError, match="RTDE field actual_current"):
        fitted(replace(log, current=None))
    with pytest.raises(jw.errors.DataError, match="target_current, target_moment and target_qd"):
        jw.energy.fit_power(log, arm)
    with pytest.raises(jw.errors.EstimationError, match="too short"):
        fitted(log.slice(0, 20))
    with pytest.raises(jw.errors.DataError, match="increasing stamps"):
        fitted(replace(log, t=log.t[::-1]))
    with pytest.raises(jw.errors.DataError, match="6 numbers > 0"):
        jw.energy.fit_power(log, arm, gains=[1.0])
    with pytest.raises(jw.errors.DataError, match="--model"):
        jw.energy.energy_balance(TRUTH, replace(log, current=None))
    with pytest.raises(jw.errors.ModelError, match="resistance must be at least 0"):
        replace(TRUTH, resistance=(-0.1,) * 6)


def test_a_power_model_survives_its_file(tmp_path: Path):
    model = fitted(power_log())
    model.save(tmp_path / "power.json")
    assert jw.energy.load_power_model(tmp_path / "power.json") == model
    document = json.loads((tmp_path / "power.json").read_text())
    (tmp_path / "bad.json").write_text(json.dumps({**document, "standing": "much"}))
    with pytest.raises(jw.errors.ModelError, match="standing"):
        jw.energy.load_power_model(tmp_path / "bad.json")


@needs_shared
@pytest.mark.parametrize("kept", list(combinations(range(3), 2)))
def test_a_move_of_a_real_ur3e_is_predicted_from_the_other_two(kept: tuple[int, int]):
    robot = jw.load_robot("ur3e")
    logs = [jw.energy.read_power_log(str(path), robot) for path in MOVES]
    model = jw.energy.fit_power([logs[k] for k in kept], robot)
    unseen = next(log for k, log in enumerate(logs) if k not in kept)
    robot_energy = jw.energy.energy_balance(model, unseen).to_dict()["robot"]
    assert robot_energy["power_rmse"] < 1.9
    assert abs(robot_energy["energy_error"]) < 0.01
    assert 33.0 < model.standing < 38.0


def test_a_planned_motion_gets_its_currents_from_a_model(tmp_path: Path):
    files, power = bench(), tmp_path / "power.json"
    calibration, log = jw.load_calibration(files.model), jw.read_log(files.unseen)
    model = jw.energy.PowerModel("planar2", 20.0, 1.0, tuple(calibration.gains.tolist()), (0.5, 0.5), (0.1, 0.1))
    measured = jw.energy.energy_balance(model, log, model=calibration)
    plan = jw.Log(log.t, log.q)
    planned = jw.energy.energy_balance(model, plan, model=calibration)
    assert (measured.currents, planned.currents) == ("measured", "predicted by the model")
    seen, ahead = measured.to_dict()["robot"], planned.to_dict()["robot"]
    assert ahead["mechanical"] == pytest.approx(seen["mechanical"], rel=0.02)
    assert ahead["friction"] == pytest.approx(seen["friction"], rel=0.02)
    assert ahead["friction"] > 100.0
    assert ahead["copper"] < seen["copper"]  # the model smooths the steps of the acceleration
    model.save(power)
    write_csv(plan, tmp_path / "plan.csv")
    result = json.loads(done("energy", "report", files.model, tmp_path / "plan.csv", "--power", power, "--json"))
    assert result["robot"]["energy"] == pytest.approx(planned.energy, rel=1e-6)
    done("energy", "predict", power, tmp_path / "plan.csv", "--model", files.model, "--output", tmp_path / "p.csv")
    assert "--power" in refused("energy", "report", files.model, tmp_path / "plan.csv")
    assert "--model" in refused("energy", "report", power, tmp_path / "plan.csv")


@needs_shared
def test_commands_fit_report_and_predict(tmp_path: Path):
    power, csv, page = tmp_path / "power.json", tmp_path / "power.csv", tmp_path / "energy.html"
    done("energy", "fit", MOVES[0], MOVES[1], "--robot", "ur3e", "--output", power)
    result = json.loads(done("energy", "report", power, MOVES[2], "--json", "--report", page))
    assert {"power_rmse", "energy", "efficiency", "standing_power"} <= result["robot"].keys()
    assert {"mechanical", "copper", "friction"} <= result["joints"][0].keys()
    assert "Where the energy goes" in page.read_text(encoding="utf-8")
    done("energy", "predict", power, MOVES[2], "--output", csv)
    log = jw.energy.read_power_log(str(MOVES[2]))
    rows = np.loadtxt(csv, delimiter=",", skiprows=1)
    assert csv.read_text().startswith("t,power_pred\n")
    assert (rows[:, 0] == log.t).all()
    np.testing.assert_allclose(rows[:, 1], jw.energy.energy_balance(jw.energy.load_power_model(power), log).power)
    line = refused(
        "energy", "fit", SHARED / "ur10e" / "id_20_02_12_50sec_12harm.csv", "--robot", "ur10e", "--output", csv
    )
    assert "actual_robot_voltage" in line
