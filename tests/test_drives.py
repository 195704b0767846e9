"""All drives from one log: inertias of the digital robot's rotors, gains and friction; wrong logs in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from cli_runs import done, refused
from data_files import SHARED, needs_shared
from jointwise.data.write import write_csv
from jointwise.joint.drives import identify_drives, inertias_from_targets

ROBOT = jw.load_robot("ur5e")
TRUTH = np.array([joint.motor.reflected_inertia for joint in ROBOT.joints])


@lru_cache
def log() -> jw.Log:
    return jw.simulate("ur5e", duration=16.0, rate=125.0, seed=1, keep=0).log


def test_rotor_inertias_of_the_digital_robot_are_recovered():
    found = inertias_from_targets(log(), ROBOT)
    np.testing.assert_allclose([each.alone.value for each in found], TRUTH, rtol=1e-3)
    assert all(each.alone.covers(truth) for each, truth in zip(found, TRUTH, strict=True))
    assert all(each.r2 > 0.999 for each in found)


def test_noise_on_the_targets_stays_within_the_intervals():
    noise = 0.3 * np.random.default_rng(0).normal(size=log().q.shape)
    found = inertias_from_targets(replace(log(), torque_des=log().torque_des + noise), ROBOT)
    assert all(each.alone.covers(truth) for each, truth in zip(found, TRUTH, strict=True))


def test_like_drives_are_compared_and_shared():
    found = inertias_from_targets(log(), ROBOT)
    assert found[3].shared == found[4].shared == found[5].shared
    assert not found[3].differs
    odd = log().torque_des.copy()
    odd[:, 4] += 0.5 * log().qdd_des[:, 4]
    assert inertias_from_targets(replace(log(), torque_des=odd), ROBOT)[4].differs


def test_gains_and_friction_of_the_drives():
    result = identify_drives(log(), ROBOT)
    gains = np.array([joint.motor.joint_gain for joint in ROBOT.joints])
    for j, part in enumerate(result.parts):
        if part is not None:
            assert part["gain"] == pytest.approx(gains[j], rel=0.1)
            assert part["inertia"] == pytest.approx(TRUTH[j], rel=1e-3)
    assert sum(part is not None for part in result.parts) >= 4


def test_shuffled_targets_do_not_pass_for_a_rotor():
    mixed = np.random.default_rng(0).permutation(log().qdd_des)
    with pytest.raises(jw.errors.EstimationError, match="negative inertia"):  # of links that do not accelerate so
        inertias_from_targets(replace(log(), qdd_des=mixed), ROBOT)


def test_logs_without_targets_are_refused_with_the_fields_to_record():
    with pytest.raises(jw.errors.DataError, match="RTDE fields target_qdd, target_moment"):
        inertias_from_targets(log().select(torque_des=False, qdd_des=False), ROBOT)
    with pytest.raises(jw.errors.EstimationError, match="too short"):
        inertias_from_targets(log().slice(0, 300), ROBOT)
    with pytest.raises(jw.errors.EstimationError, match="negative inertia"):
        inertias_from_targets(replace(log(), torque_des=log().torque_des - 9.0 * log().qdd_des), ROBOT)


@needs_shared
def test_a_real_ur3e_has_like_drives():
    names = [SHARED / "ur3e_power" / f"{name}.csv" for name in ("L0L1", "L2L3", "L3L4")]
    robot, payload = jw.load_robot("ur3e"), jw.Payload(1.07, (0.0, 0.0, 0.058))
    found = inertias_from_targets([jw.read_log(name) for name in names], robot, payload=payload)
    assert all(each.r2 > 0.999 for each in found)
    assert [each.alone.value for each in found[3:]] == pytest.approx([found[3].alone.value] * 3, rel=0.01)
    result = identify_drives([jw.read_log(name) for name in names], robot, payload=payload)
    assert result.parts == (None,) * 6  # five seconds determine no gain
    with pytest.raises(jw.errors.EstimationError, match="no motor is determined"):
        result.models()


def test_the_command_writes_a_joint_file(tmp_path: Path):
    csv, output = tmp_path / "log.csv", tmp_path / "motors.json"
    write_csv(log(), csv)
    result = json.loads(done("motor", csv, "--robot", "ur5e", "--output", output, "--json"))
    assert result["joints"][1]["inertia"]["value"] == pytest.approx(TRUTH[1], rel=1e-2)
    assert {model.joint for model in jw.read_joints([output], ROBOT)} >= {1, 2, 3}
    write_csv(log().select(torque_des=False), csv)
    assert "target_moment" in refused("motor", csv, "--robot", "ur5e")
