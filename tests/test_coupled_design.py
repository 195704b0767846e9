"""Coupled transmissions in planned motions: torque, speed and power are those of the motors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from jointwise.design import Body, Clearance, ExcitationOptions, States, fourier_trajectory, optimize_excitation
from jointwise.design.excitation import FourierBasis, Search, _information_model, criterion
from jointwise.design.excitation_limits import excitation_limits
from jointwise.design.information import Goal, InformationModel
from jointwise.energy import motion_power
from jointwise.energy.minimum import MotionSearch
from jointwise.energy.motion_space import FreeLeg, PathLeg, StraightPath, UnitSpline
from jointwise.energy.motion_task import MotionTask, TaskSettings, least_duration
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.terms import Coulomb, Offset, Viscous
from jointwise.spatial import Array
from runtime_models import exact

COUPLING = "6:5:1,6:4:-0.3,5:4:0.4"
START = np.array([0.0, -1.2, 1.0, -1.0, -1.5, 0.0])
GOAL = np.array([1.5, -0.6, 0.3, -1.5, -1.0, 1.0])


def arm() -> jw.Robot:
    return jw.load_robot("ur5e", coupling=COUPLING)


C = arm().transmission.matrix
LIMITS = np.array([joint.limits.velocity for joint in arm().joints])


def at_motors(robot: jw.Robot, states: States) -> tuple[Array, Array]:
    """Return torques of bodies and rotors at the motors and speeds of the motors, written out: C^-T tau and C q̇."""
    links = inverse_dynamics(replace(robot, transmission=None), states.q, states.qd, states.qdd)
    return np.linalg.solve(C.T, links.T).T + robot.rotor_inertias * (states.qdd @ C.T), states.qd @ C.T


def information(goal: Goal = "all") -> InformationModel:
    limits = excitation_limits(arm(), 0.6, Clearance(Body(arm()), -np.inf))
    model = _information_model(arm(), limits, ExcitationOptions(goal=goal))
    values = model.values.copy()
    values[model.dynamics.base.count :] = np.random.default_rng(0).uniform(0.1, 1.0, 24)
    return replace(model, values=values)


def test_the_torque_of_an_excitation_is_that_of_the_motors() -> None:
    model, states = information(), fourier_trajectory(arm(), 10.0, 3).sample(20.0)
    load, speed = at_motors(arm(), states)
    offset, dry, loaded, viscous = model.friction.T
    expected = load + offset + (dry + loaded * np.abs(load)) * np.tanh(speed / 0.05) + viscous * speed
    np.testing.assert_allclose(model.torque(model.columns(states), states), expected, atol=1e-9)
    blocks, torque = model.columns(states).blocks, np.empty_like(expected)
    for j, (block, index) in enumerate(zip(blocks, model.indices, strict=True)):
        torque[:, j] = model.values[index] @ block
    np.testing.assert_allclose(torque, expected, atol=1e-9)


@pytest.mark.parametrize("goal", ["all", "payload"])
def test_the_gradient_of_an_excitation_is_that_of_differences(goal: Goal) -> None:
    model = information(goal)
    states = fourier_trajectory(arm(), 10.0, 3).sample(8.0)
    random = np.random.default_rng(1)
    by_torque = random.normal(size=states.q.shape)

    def value(states: States) -> float:
        columns = model.columns(states)
        return criterion(model, columns)[0] + float((by_torque * model.torque(columns, states)).sum())

    columns = model.columns(states)
    gradient = model.gradient(states, columns, criterion(model, columns)[1], by_torque)
    for field, slope in zip(("q", "qd", "qdd"), gradient, strict=True):
        change = random.normal(size=states.q.shape)
        shifted = [replace(states, **{field: getattr(states, field) + step * change}) for step in (1e-6, -1e-6)]
        difference = (value(shifted[0]) - value(shifted[1])) / 2e-6
        assert difference == pytest.approx(float((slope * change).sum()), rel=1e-5, abs=1e-6)


def test_the_penalty_counts_the_speed_of_the_motors() -> None:
    limits = excitation_limits(arm(), 0.2, Clearance(Body(arm()), -np.inf), 1.0)
    search = Search(information(), limits, FourierBasis(10.0, 3), 0.6, 1)
    start = search.start(0)
    change = np.random.default_rng(2).normal(size=start.size)
    _, gradient = search.value(start, 1.0)
    difference = (search.value(start + 1e-6 * change, 1.0)[0] - search.value(start - 1e-6 * change, 1.0)[0]) / 2e-6
    assert difference == pytest.approx(float(gradient @ change), rel=1e-3)


@pytest.mark.thorough
def test_an_excitation_keeps_the_limits_of_the_motors() -> None:
    found = optimize_excitation(arm(), ExcitationOptions(8.0, seed=1, harmonics=4, starts=1))
    states = found.motion.sample(5000.0)
    torque, speed = at_motors(arm(), states)
    assert (np.abs(states.qd) <= 0.6 * LIMITS).all()
    assert (np.abs(speed) <= 0.6 * LIMITS).all()
    assert (np.abs(torque) <= np.array([joint.limits.effort for joint in arm().joints])).all()
    uses = {use.kind: use for use in found.uses}
    assert uses["speed"].share == pytest.approx(
        max(np.abs(x / LIMITS / 0.6).max() for x in (states.qd, speed)), rel=1e-3
    )
    plain = optimize_excitation(jw.load_robot("ur5e"), ExcitationOptions(8.0, seed=1, harmonics=4, starts=1))
    assert np.abs(plain.motion.sample(500.0).qd @ C.T / LIMITS).max() > 0.7  # which asks too much of coupled motors


GAINS = tuple(float(joint.motor.joint_gain or 0.0) for joint in arm().joints)
POWER = jw.energy.PowerModel("ur5e", 36.0, 1.0, GAINS, (0.25,) * 3 + (1.5,) * 3, tuple(0.08 * k for k in GAINS))


def test_power_is_that_of_the_motors() -> None:
    power, states = motion_power(arm(), POWER), fourier_trajectory(arm(), 10.0, 3).sample(50.0)
    load, speed = at_motors(arm(), states)
    coulomb, viscous = (np.array([getattr(j.motor, name) for j in arm().joints]) for name in ("coulomb", "viscous"))
    friction = np.tanh(np.abs(speed) / 0.01) * (coulomb * np.sign(speed) + viscous * speed)
    torque = load + friction
    at = power.evaluate(states.q, states.qd, states.qdd)
    np.testing.assert_allclose(at.torque, torque, atol=1e-6)
    current = torque / np.array(GAINS)
    terms = torque * speed + np.array(POWER.resistance) * current**2 + np.array(POWER.drag) * np.abs(speed)
    np.testing.assert_allclose(at.power, POWER.standing + terms.sum(axis=1), rtol=1e-6)


def test_the_power_of_a_calibrated_arm_is_that_of_its_motors() -> None:
    terms = ((Offset(), Viscous((1.0,)), Coulomb("absolute", "tanh", 0.01)),) * 6
    model, states = exact(robot=arm(), terms=terms), fourier_trajectory(arm(), 10.0, 3).sample(50.0)
    at = motion_power(model, POWER).evaluate(states.q, states.qd, states.qdd)
    joint = model.torque(states.q, states.qd, states.qdd, friction="steady")
    slow = (np.abs(states.qd @ C.T) < 0.05).any(axis=1)  # where friction of a plan rises from rest
    np.testing.assert_allclose(at.torque[~slow], np.linalg.solve(C.T, joint.T).T[~slow], atol=0.02)


@pytest.mark.parametrize("kind", ["path", "free"])
def test_the_gradient_of_the_energy_is_that_of_differences(kind: str) -> None:
    settings = TaskSettings(None, None, 0.5, None, 80.0)
    task = MotionTask.of(motion_power(arm(), POWER), np.array([START, GOAL]), None, "free", settings)
    leg = (
        PathLeg(UnitSpline(8, clustered=True), task.paths[0]) if kind == "path" else FreeLeg(UnitSpline(8), task.points)
    )
    search, rng = MotionSearch(task.power, task.limits, (leg,), 0.9, 5.0, 80.0, 100.0), np.random.default_rng(1)
    x = search.pack([0.3 * rng.normal(size=leg.size)], np.array([1.2]))
    _, gradient = search.value(x, 3.0)
    step = 1e-6 * rng.normal(size=len(x))
    change = search.value(x + step, 3.0)[0] - search.value(x - step, 3.0)[0]
    assert 2.0 * gradient @ step == pytest.approx(change, rel=2e-4, abs=1e-9)


def test_a_minimum_energy_motion_saves_energy_within_the_limits_of_the_motors() -> None:
    goal = START + np.array([0.0, 0.0, 0.0, 0.0, 1.2, 1.2])  # motor 6 turns by 2.4 rad
    options = {"duration": 3.5, "path": "fixed", "clearance": None, "speed": 0.3}
    found = jw.energy.optimize_motion(arm(), POWER, [START, goal], **options)
    assert found.optimized.energy < found.original.energy
    states = found.optimized.trajectory.sample(1000.0)
    assert (np.abs(states.qd @ C.T) <= 0.3 * LIMITS * (1.0 + 1e-6)).all()
    speed, acceleration = 0.3 * LIMITS[5] / 2.4, found.limits.motion.acceleration[5] / 1.2
    assert found.least_duration == pytest.approx(1.0 / speed + speed / acceleration, rel=1e-3)
    assert least_duration(StraightPath(START, goal - START), motion_power(arm(), POWER), found.limits) == pytest.approx(
        found.least_duration, rel=0.01
    )


@pytest.mark.parametrize("coordinates", ["joint", "motor"])
def test_the_energy_of_a_log_is_what_the_simulated_motors_supplied(coordinates: str, tmp_path: Path) -> None:
    robot = jw.load_robot("ur5e", coupling=COUPLING, coordinates=coordinates)
    made = jw.simulate(robot, duration=6.0, rate=500.0, seed=3)
    gains, log, current = tuple(made.truth["gains"]), made.log, made.log.current
    speed = log.qd @ C.T if coordinates == "joint" else log.qd
    drawn = 30.0 + ((np.array(gains) * current * speed) + 0.5 * current**2 + 0.01 * np.abs(speed) * gains).sum(axis=1)
    log = replace(log, extra={"actual_robot_voltage": np.full(log.samples, 48.0), "actual_robot_current": drawn / 48.0})
    jw.energy.fit_power(log, robot, gains=gains).save(tmp_path / "power.json")
    power = jw.energy.load_power_model(tmp_path / "power.json")
    assert power.standing == pytest.approx(30.0, rel=0.02)
    assert power.share == pytest.approx(1.0, rel=0.02)
    balance = jw.energy.energy_balance(power, log)
    supplied = float(made.run.energy.supplied[-1])
    assert balance.to_dict()["robot"]["mechanical"] == pytest.approx(supplied, rel=0.03)
    wrong = jw.energy.energy_balance(replace(power, coupling=()), log)
    if coordinates == "joint":
        assert abs(wrong.to_dict()["robot"]["mechanical"] / supplied - 1.0) > 0.03
