"""The published electro-mechanical identification on the digital robot: every parameter within its interval."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from jointwise.joint.drives import identify_drives
from jointwise.simulation.robot import Friction, default_joints
from plant_laws import steady_friction

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import electro_mechanical as study

ROBOT = jw.load_robot("ur5e")


def test_all_parameters_lie_within_their_intervals_and_predict_an_unseen_motion():
    drives = identify_drives(study.simulated(ROBOT, 1).log, ROBOT, payload=study.PAYLOAD)
    rows = study.parameter_rows(ROBOT, drives)
    assert len(rows) == 30
    assert [name for name, truth, _, low, high in rows if not low <= truth <= high] == []
    log = study.simulated(ROBOT, 3).log
    torque = study.Errors.of(log.channel("torque_des"), study.predicted_torque(ROBOT, log, drives)[1])
    assert torque.r2.min() > study.LIMITS["torque R²"]
    current = study.Errors.of(log.channel("current"), study.predicted_current(ROBOT, log, drives))
    assert current.r2.min() > study.LIMITS["current R²"]
    assert current.rms[:3].max() < study.LIMITS["current RMS, base"]
    assert current.rms[3:].max() < study.LIMITS["current RMS, wrist"]


def test_shuffled_currents_determine_no_drive():
    log = study.simulated(ROBOT, 1).log
    mixed = np.random.default_rng(0).permutation(log.current)
    drives = identify_drives(replace(log, current=mixed), ROBOT, payload=study.PAYLOAD)
    right = [
        part is not None and part["gain"] == pytest.approx(joint.motor.joint_gain, rel=0.1)
        for part, joint in zip(drives.parts, ROBOT.joints, strict=True)
    ]
    assert not any(right)


def test_friction_by_power_flow_in_c_is_that_of_the_reference():
    friction = Friction(coulomb=9.0, flow=-1.5, viscous=4.0)
    joint = replace(default_joints(ROBOT)[0], friction=friction)
    rng = np.random.default_rng(0)
    speed, load, T = rng.normal(size=200), 20.0 * rng.normal(size=200), np.full(200, 20.0)
    level, viscous = steady_friction(joint, speed, load, T)
    np.testing.assert_allclose(level, friction.level(speed, load, T), rtol=1e-12)
    np.testing.assert_allclose(viscous, friction.viscous_factor(speed), rtol=1e-12)
    drives = speed * load > 0.01
    np.testing.assert_allclose(level[drives], 7.5)
    with pytest.raises(jw.errors.ModelError, match="flow must lie within"):
        Friction(coulomb=1.0, flow=2.0)
