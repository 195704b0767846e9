"""Closing the circle: what the digital robot is made of comes back out of its logs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import computed
import jointwise
from jointwise.calibration import calibrate
from jointwise.data import Log, check_quality
from jointwise.experiment import PlantOptions
from jointwise.joint import JointModel, Part, identify, joint_record
from jointwise.joint.gear import backlash_table
from jointwise.joint.motor import identify_current_loop
from jointwise.joint.stiffness import PolynomialSpring, find_damping, fit_spring, stiffness_rows
from jointwise.report.data import ReportData, collect
from jointwise.report.joint import render_joints
from jointwise.report.joint_text import finding
from jointwise.result import Calibration, validate
from jointwise.result.diagnostics import ResidualTrend, friction_curve, residual_trends
from jointwise.simulation.robot import PHENOMENA, Thermal, default_joints

ROBOT = jointwise.load_robot("ur5e")
JOINT = 1
"""The shoulder: all phenomena act there."""


@cache
def recorded(experiment: str, seed: int, *on: str) -> Log:
    """Return a log of the robot with only some phenomena, or with all if none is named."""
    off = tuple(name for name in PHENOMENA if name not in on) if on else ()
    joints = default_joints(ROBOT)
    if "thermal" in on:  # a light joint, warm within a short log
        joints = tuple(replace(joint, thermal=Thermal(15.0, 0.1, 20.0)) for joint in joints)
    duration = {"excitation": 40.0, "reciprocate": 60.0}.get(experiment, 25.0)
    options = {
        "duration": duration,
        "rate": 200.0,
        "seed": seed,
        "plant": PlantOptions(without=off, joints=joints),
        "keep": 0,
    }
    one = {"joint": 0} if experiment == "reciprocate" else {}
    return jointwise.simulate(ROBOT, experiment, **options, **one).log


def driven(lag: float = 0.0, limit: float = np.inf, rate: float = 500.0) -> Log:
    """Return a log of the rigid arm whose drives follow the target current after a lag (s), up to a limit (A)."""
    motor = {"lag": lag, "limit": limit, "inductance": 0.0}
    joints = tuple(replace(joint, motor=replace(joint.motor, **motor)) for joint in default_joints(ROBOT))
    off = tuple(name for name in PHENOMENA if name not in ("current_lag", "current_limit"))
    options = {"duration": 25.0, "rate": rate, "seed": 1, "plant": PlantOptions(without=off, joints=joints), "keep": 0}
    return jointwise.simulate(ROBOT, "bang-coast-bang", **options).log


def identified(phenomenon: str, log: Log, joint: int = JOINT) -> Part:
    return identify(phenomenon, joint_record(log, ROBOT, joint), ROBOT)


@cache
def calibrated(*on: str) -> Calibration:
    return computed.calibrated(recorded("excitation", 1, *on), ROBOT)


@cache
def report_data(*on: str) -> ReportData:
    return collect(calibrated(*on), [recorded("excitation", 1, *on)], [recorded("bspline", 2, *on)])


def torque_at(calibration: Calibration, *speeds: float) -> list[float]:
    curve = friction_curve(calibration, JOINT, 0.0)
    return [float(np.interp(speed, curve.speed, curve.torque)) for speed in speeds]


def deformation(log: Log, joint: int = JOINT) -> np.ndarray:
    assert log.theta is not None
    return np.asarray(log.theta[:, joint]) - np.asarray(log.q[:, joint])


# -- everything on --


@pytest.mark.thorough
def test_the_automatic_choice_finds_hysteresis_and_load_dependence() -> None:
    structure = calibrated().structure
    assert structure.direction == "hysteresis"
    assert structure.load == "square"


def test_the_bodies_lie_inside_their_intervals() -> None:
    recording = jointwise.simulate(ROBOT, "excitation", duration=2.0, rate=100.0, seed=1, keep=0)
    truth = recording.truth["base"]
    calibration = calibrated()
    inside = []
    for k, name in enumerate(calibration.model.base.names):
        low, high = calibration.conf_int()[k]
        inside.append(low <= truth[name] <= high)
    assert np.mean(inside) >= 0.7  # parameters of one log err together; many logs: benchmarks/coverage_simulated.py


def test_the_model_holds_on_another_motion() -> None:
    errors = validate(calibrated(), recorded("bspline", 2))
    assert errors.mean_r2 > 0.95
    for error in errors.moving:
        assert error is not None
        assert error.r2 is not None
        assert error.r2 > 0.95


@pytest.mark.thorough
def test_shuffled_currents_give_no_model() -> None:
    log = recorded("excitation", 1)
    order = np.random.default_rng(0).permutation(log.samples)
    assert log.current is not None
    shuffled = replace(log, current=np.asarray(log.current)[order], torque_des=None, current_des=None)
    with pytest.raises(jointwise.errors.JointwiseError):
        calibrate(shuffled, ROBOT)


# -- one phenomenon alone --


@pytest.mark.thorough
def test_without_anything_there_is_no_friction() -> None:
    assert np.abs(torque_at(calibrated("current_limit"), 0.05, 0.5, 1.5)).max() < 0.3


def test_viscous_friction_alone_bends_the_curve() -> None:
    slow, middle, fast = torque_at(calibrated("coulomb", "viscous"), 0.2, 0.8, 1.5)
    assert middle - slow > 3.0
    assert fast - middle > 3.0
    assert fast - middle < (middle - slow) * 0.7 / 0.6  # F_V2 < 0


@pytest.mark.thorough
def test_stribeck_friction_alone_falls_with_speed() -> None:
    slow, fast = torque_at(calibrated("coulomb", "stribeck"), 0.01, 0.5)
    assert slow - fast > 0.2
    flat = torque_at(calibrated("coulomb", "asymmetry"), 0.01, 0.5)
    assert abs(flat[0] - flat[1]) < 0.2


def test_hysteresis_alone_is_found_as_hysteresis() -> None:
    calibration = calibrated("coulomb", "hysteresis")
    assert calibration.structure.direction == "hysteresis"
    assert calibration.structure.load == "none"
    alternatives = next(dict(c.alternatives) for c in calibration.choices if c.question == "direction of dry friction")
    assert alternatives["hysteresis driven by position"] < 0.5 * alternatives["sign"]


def test_load_dependence_alone_is_found_as_load_dependence() -> None:
    assert calibrated("coulomb", "load").structure.load == "square"


def test_asymmetry_alone_is_an_offset_between_the_directions() -> None:
    calibration = calibrated("coulomb", "asymmetry")
    names = [info.name for info in calibration.model.parameters]
    k = names.index(f"offset_{JOINT + 1}")
    assert calibration.estimate.values[k] == pytest.approx(0.5, abs=0.25)  # 5 % of 10 Nm
    low, high = calibration.conf_int()[k]
    assert low < 0.5 < high
    assert high - low < 1.2  # the offset is not 1 Nm in the other direction


def trends(*active: str) -> dict[str, ResidualTrend]:
    item = report_data(*active).held_out[0]
    return {each.quantity: each for each in residual_trends(calibrated(*active), item.log, item.predicted, 0)}


@pytest.mark.thorough
def test_temperature_alone_is_seen_in_what_is_left() -> None:
    on = ("coulomb", "viscous", "temperature", "thermal")
    found, reference = (trends(*active) for active in (on, ("coulomb", "viscous", "thermal")))
    assert found["temperature"].share > 0.05
    assert found["temperature"].share > 2.0 * reference["temperature"].share


def test_stiffness_alone_is_the_slope_of_the_deformation() -> None:
    log, calibration = recorded("bspline", 2, "stiffness"), calibrated("stiffness")
    torque = calibration.predict(log)[:, JOINT] * calibration.gains[JOINT]
    slope = np.polyfit(torque, deformation(log), 1)[0]
    assert 1.0 / slope == pytest.approx(15000.0, rel=0.1)


def test_kinematic_error_alone_is_periodic_in_the_position() -> None:
    log = recorded("bspline", 2, "stiffness", "kinematic_error")
    theta = np.asarray(log.theta)[:, 0]  # no gravity on the first joint: the spring is nearly relaxed
    waves = [f(k * theta) for k in (1, 2) for f in (np.sin, np.cos)]
    columns = np.column_stack([*waves, np.ones_like(theta)])
    weights = np.linalg.lstsq(columns, deformation(log, 0), rcond=None)[0]
    assert np.hypot(*weights[:2]) == pytest.approx(4e-4, rel=0.25)
    plain = deformation(recorded("bspline", 2, "stiffness"), 0)
    assert np.std(deformation(log, 0)) > 1.5 * np.std(plain)


def test_lost_motion_alone_depends_on_the_direction() -> None:
    log = recorded("bspline", 2, "stiffness", "lost_motion")
    assert log.qd is not None
    speed = np.asarray(log.qd)[:, 0]
    phi = deformation(log, 0)
    gap = phi[speed > 0.3].mean() - phi[speed < -0.3].mean()
    assert gap == pytest.approx(2 * 3e-4, rel=0.35)


def test_backlash_alone_makes_lost_motion_vary_with_the_position() -> None:
    part = identified("transmission", recorded("reciprocate", 1, "stiffness", "lost_motion", "backlash"), 0)
    low, high = part.ranges["theta"]
    angles = 2.0 * np.pi * np.arange(1000) / 1000
    seen = np.mod(angles - low - 0.1, 2.0 * np.pi) < high - low - 0.2
    truth = 0.3 * default_joints(ROBOT)[0].backlash.resampled(1000)
    assert np.ptp(truth[seen]) > 2.5e-5
    np.testing.assert_allclose(backlash_table(part)[seen], truth[seen], atol=4e-6)
    assert "varying with position" in finding(part)
    alike = identified("transmission", recorded("reciprocate", 1, "stiffness", "lost_motion"), 0)
    assert "without significant variation" in finding(alike)
    assert alike["backlash_mean"] == pytest.approx(3e-4, rel=0.01)


def test_damping_alone_is_identified_with_the_spring() -> None:
    part = identified("stiffness", recorded("bspline", 2, "stiffness", "damping"))
    assert part.value("damping").covers(8.0)
    assert part["damping"] == pytest.approx(8.0, rel=0.1)
    assert "The damping is" in finding(part)
    assert "Damping: torque beyond the spring" in render_joints([JointModel("ur5e", JOINT, {"stiffness": part})])
    rows = stiffness_rows(joint_record(recorded("bspline", 2, "stiffness"), ROBOT, JOINT)).reduced()
    without, _ = find_damping(fit_spring(PolynomialSpring(2), rows), False)
    assert without is not None
    assert without.covers(0.0)
    assert without.high < 2.0


def test_current_lag_alone_is_the_time_by_which_the_current_comes_late() -> None:
    part = identified("motor", driven(lag=5e-3))
    assert part.value("time_constant").covers(5e-3)
    period = 1e-3  # of the controller: it hands a target on for all of it
    assert part.value("lag").covers(period / (1.0 - np.exp(-period / 5e-3)))
    assert "The current lags its setpoint" in finding(part) and " ms [" in finding(part)
    loop = identify_current_loop(joint_record(driven(), ROBOT, JOINT))
    assert loop.constant is None
    assert loop.lag is None or loop.lag.covers(period)


def test_a_current_limit_alone_is_reported_where_the_target_is_higher() -> None:
    log = driven(limit=5.7, rate=200.0)
    limit = identify_current_loop(joint_record(log, ROBOT, JOINT)).limit
    assert limit is not None
    assert limit.covers(5.7)
    findings = [(finding.code, finding.joint) for finding in check_quality(log, ROBOT).findings]
    assert findings == [("current-limit", JOINT)]
    with pytest.raises(jointwise.errors.EstimationError, match="saturated"):
        identified("motor", log)
    free = driven(limit=50.0, rate=200.0)
    assert identify_current_loop(joint_record(free, ROBOT, JOINT)).limit is None
    assert not check_quality(free, ROBOT).findings
