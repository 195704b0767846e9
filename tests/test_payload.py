"""Payloads identified with a calibrated model: known truth, intervals, logs at rest, wrong input, real logs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import computed
import jointwise as jw
from cli_runs import UR10E, bench, done, refused
from data_files import needs_shared
from jointwise.data.write import write_csv
from jointwise.errors import DataError, EstimationError, ImplausibleError, ModelError
from jointwise.estimation.structure import Structure
from jointwise.model.rigid import gravity_torque
from jointwise.options import Options
from jointwise.runtime.payload.identify import physical_tensor
from synthetic import synthetic_log

LOAD = jw.Payload(3.0, (0.03, -0.05, 0.12), np.diag([0.012, 0.015, 0.008]))
QUICK = Options(structure=Structure(load="square"), free=(), position_cutoff=10.0, lag=0.0)


@pytest.fixture(scope="module")
def robot():
    return jw.load_robot("ur5e")


@pytest.fixture(scope="module")
def model(robot):
    log = synthetic_log(robot, duration=20, rate=100, seed=1, load_dependence="square", hysteresis=False).log
    return jw.RobotModel(computed.calibrated(replace(log, torque=None), robot, options=QUICK))


def recorded(robot, seed, payload=None, duration=13.0):
    made = synthetic_log(
        robot, duration=duration, rate=100, seed=seed, payload=payload, load_dependence="square", hysteresis=False
    )
    return replace(made.log, torque=None)


def resting(robot, q, payload=None):
    """Return a log at rest at a pose; static friction holds nothing."""
    t = np.arange(100) / 50.0
    torque = gravity_torque(robot, np.asarray(q)[None], payload=payload)[0]
    current = torque / np.array([joint.motor.drive_gain for joint in robot.joints])
    return jw.Log(t=t, q=np.tile(q, (100, 1)), current=np.tile(current, (100, 1)))


def inside(value, interval):
    return (interval[..., 0] <= value) & (value <= interval[..., 1])


def test_mass_and_centre_lie_in_their_intervals(robot, model):
    hits = []
    for seed in range(2, 5):
        found = jw.identify_payload(model, recorded(robot, seed, LOAD))
        assert found.mass == pytest.approx(3.0, rel=0.02)
        assert found.com == pytest.approx(LOAD.center_of_mass, abs=0.01)
        hits += [inside(3.0, found.mass_interval), *inside(LOAD.center_of_mass, found.com_interval)]
        if np.isfinite(found.inertia).all():
            assert inside(LOAD.inertia, found.inertia_interval).mean() > 0.7
    assert np.mean(hits) >= 0.8


@pytest.mark.thorough
def test_the_loaded_model_predicts_the_loaded_log(robot, model):
    log = recorded(robot, 7, LOAD)
    found = jw.identify_payload(model, recorded(robot, 8, LOAD))
    payload = found.payload
    loaded = model.with_payload(payload.mass, payload.center_of_mass, payload.inertia)
    assert jw.validate(loaded, log).mean_nmse < 0.3 * jw.validate(model, log).mean_nmse
    again = jw.identify_payload(loaded, log)
    assert again.mass == pytest.approx(jw.identify_payload(model, log).mass, rel=1e-6)


def test_an_unloaded_log_has_no_payload(robot, model):
    found = jw.identify_payload(model, recorded(robot, 9))
    assert inside(0.0, found.mass_interval)
    assert found.mass_interval[1] < 0.2
    assert np.isnan(found.com).all()
    assert found.payload.mass == 0.0
    assert "contains 0" in found.undetermined[0]


def test_poses_at_rest(robot, model):
    rng = np.random.default_rng(0)
    poses = [resting(robot, rng.uniform(-2.0, 2.0, 6), LOAD) for _ in range(8)]
    found = jw.identify_payload(model, poses)
    assert inside(3.0, found.mass_interval)
    assert inside(LOAD.center_of_mass, found.com_interval).all()
    assert found.mass == pytest.approx(3.0, abs=0.3)
    assert np.isnan(found.inertia).all()
    assert "inertia" in found.undetermined[-1]


def test_one_pose_does_not_determine_the_centre_along_gravity(robot, model):
    upright = [0.0, -1.2, 1.0, -1.37, -np.pi / 2, 0.3]  # the tool points down
    found = jw.identify_payload(model, resting(robot, upright, LOAD))
    assert np.isnan(found.com[2])
    assert "com z" in found.undetermined[0]
    with pytest.raises(EstimationError, match="not determined"):
        _ = found.payload


@pytest.mark.thorough
def test_shuffled_outputs_and_wrong_signs_are_refused(robot, model):
    log = recorded(robot, 10, LOAD)
    order = np.random.default_rng(0).permutation(log.samples)
    with pytest.raises(ImplausibleError, match="no payload explains"):
        jw.identify_payload(model, replace(log, current=log.current[order]))
    flipped = log.current * np.array([1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    with pytest.raises(ImplausibleError, match="joint .*2"):
        jw.identify_payload(model, replace(log, current=flipped))


@pytest.mark.parametrize("name", ["ur10e", "ur3e"])
def test_the_log_of_another_robot_is_refused(model, name):
    with pytest.raises(ImplausibleError):
        jw.identify_payload(model, recorded(jw.load_robot(name), 11))


def test_a_model_with_an_undeclared_load_is_refused(robot, model):
    loaded = model.with_payload(2.0).calibration
    undeclared = replace(loaded, provenance=replace(loaded.provenance, payload=None))
    with pytest.raises(ImplausibleError, match="contains a load"):
        jw.identify_payload(undeclared, recorded(robot, 12))


def test_wrong_input(robot, model):
    log = recorded(robot, 13, LOAD)
    with pytest.raises(EstimationError, match="12 s together"):
        jw.identify_payload(model, log.slice(0, 500))
    with pytest.raises(DataError, match="no channel 'current'"):
        jw.identify_payload(model, replace(log, current=None))
    with pytest.raises(ModelError, match="the log has 2 joints"):
        jw.identify_payload(model, recorded(jw.load_robot("planar2"), 1))
    with pytest.raises(ModelError, match="at least one log"):
        jw.identify_payload(model, [])


def test_tensors_become_physical():
    real = np.diag([2.0, 3.0, 4.0])
    assert physical_tensor(real) == pytest.approx(real)
    made = physical_tensor(np.diag([5.0, 1.0, 1.0]))
    jw.Payload(1.0, (0.0, 0.0, 0.0), made)


def test_command(tmp_path):
    files = bench()
    robot = jw.load_robot("planar2")
    log = synthetic_log(robot, "fourier", duration=15.0, rate=100.0, seed=5, payload=jw.Payload(2.0)).log
    write_csv(log, tmp_path / "loaded.csv")
    found = json.loads(done("payload", files.model, tmp_path / "loaded.csv", "--json"))
    assert {"value", "interval"} <= set(found["mass"]) & set(found["com"]) & set(found["inertia"])
    assert "payload in the tool frame" in done("payload", files.model, tmp_path / "loaded.csv")
    assert "must have 12 s" in refused("payload", files.model, _cut(log, tmp_path / "short.csv"))


def _cut(log, path):
    write_csv(log.slice(0, 400), path)
    return path


@pytest.mark.thorough
@needs_shared
def test_the_payload_of_a_ur10e():
    structure = Structure(
        "hysteresis", "square", (1.0, 0.5), ("q", "track"), relaxation=3.0, stribeck=0.2, ripple=0.01
    )  # what calibrate selects
    model = jw.calibrate(
        jw.read_log(UR10E / "id_20_02_12_50sec_12harm.csv"),
        jw.load_robot("ur10e"),
        options=Options(structure=structure, free=(), position_cutoff=6.0, lag=0.0),
        physical=False,
    )
    first, second, empty = (
        jw.identify_payload(model, jw.read_log(UR10E / f"id_20_{name}.csv"))
        for name in ("02_19_14harm50secLoad", "01_31_load", "02_12_40sec_12harm")
    )
    assert first.mass == pytest.approx(2.805, rel=0.02)
    assert second.mass == pytest.approx(2.805, rel=0.02)
    assert first.com == pytest.approx(second.com, abs=0.01)
    assert inside(0.0, empty.mass_interval)
