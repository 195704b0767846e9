"""Feedback linearisation of elastic joints, and hand guiding."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import jointwise as jw
from jointwise.control import (
    ControlSample,
    Cubic,
    JointDrive,
    Links,
    as_reference,
    chain_gains,
    drive_motion,
    feedback_linearisation,
    hand_guiding,
    torque_rates,
)
from jointwise.control.feedback_linearisation import ChainGains, LinearisationState, _Model
from jointwise.control.links import deformations
from jointwise.control.stability import _plants
from jointwise.errors import ModelError
from jointwise.experiment.closed_loop import drives_of, run_loop, sample_of
from jointwise.experiment.controllers import slip_friction_of
from jointwise.model.rigid import jacobian
from jointwise.simulation.robot import DigitalRobot, digital_robot
from jointwise.spatial import Array

RATE = 1000.0
IDEAL = ("friction", "damping", "kinematic_error", "lost_motion", "current_lag", "current_limit", "thermal")


@cache
def ideal(name: str = "planar2") -> DigitalRobot:
    """Return links on springs and rotors alone: no friction, damping, kinematic error or lag."""
    return digital_robot(jw.load_robot(name)).without(*IDEAL)


def motion(t: Array, order: int, joints: int = 2) -> Array:
    w = np.linspace(1.1, 1.9, joints)
    angle = w * np.asarray(t)[:, None] + 0.5 * np.pi * order
    return 0.4 * w**order * np.sin(angle)


@pytest.mark.parametrize("name", ["planar2", "ur5e"])
def test_acceleration_and_jerk_of_the_links_follow_from_the_springs(name: str) -> None:
    """On a motion of the links with its rotors from the elastic feed-forward, q̈ and q⁽³⁾ come out again, and u too."""
    digital = ideal(name)
    n, drives = digital.robot.dof, drives_of(digital)
    links = Links(digital.robot, digital.gravity)
    reference = as_reference(lambda t, k: motion(t, k, n), RATE, 0.05)
    assert reference.jerk is not None and reference.snap is not None
    wanted = drive_motion(links, drives, reference)
    ahead = drive_motion(links, drives, reference.shifted(0.5 / RATE))
    controller = feedback_linearisation(
        digital.robot, lambda t, k: motion(t, k, n), RATE, drives=drives, friction=False, gravity=digital.gravity,
        duration=0.05,
    )  # fmt: skip
    for k in range(0, 50, 7):
        still = np.zeros(n)
        sample = ControlSample(
            reference.q[k], reference.qd[k], wanted.theta[k], wanted.speed[k], still, still, time=k / RATE
        )
        model = controller._model
        elastic, planned = np.arange(n) % 3 != 2, (reference.qdd[k], reference.jerk[k], reference.snap[k])
        qdd, jerk = model.link_motion(sample.q, sample.qd, model.springs(sample), elastic, planned)
        np.testing.assert_allclose(qdd, reference.qdd[k], atol=1e-6)
        np.testing.assert_allclose(jerk, reference.jerk[k], atol=1e-4)
        u, _ = controller.step(controller.init(sample)._replace(period=k), sample)
        np.testing.assert_allclose(u, ahead.torque[k], rtol=1e-4, atol=1e-3)


def test_differences_along_the_motion_are_the_exact_derivatives() -> None:
    """The differences of torques agree with the Newton-Euler recursion on truncated Taylor series."""
    robot = jw.load_robot("ur5e")
    links = Links(robot)
    rng = np.random.default_rng(0)
    states = tuple(rng.normal(size=(1, 6)) * scale for scale in (1.0, 1.0, 3.0, 20.0, 100.0))
    _, first, second = torque_rates(links.chain, *states)
    drives = (JointDrive(1.0, Cubic(1e4, 0.0)),) * 6
    model = _Model(links, drives, np.ones(6))
    h = 3e-4
    before, at, after = model._torques(tuple(row[0] for row in states), (-h, 0.0, h))
    np.testing.assert_allclose((after - before) / (2.0 * h), first[0], rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose((after - 2.0 * at + before) / h**2, second[0], rtol=1e-3, atol=0.5)


TARGET = np.array([0.3, -0.2])


def hold(t: Array, order: int) -> Array:
    """Return `TARGET` at all times, and its derivatives."""
    return np.tile(TARGET if order == 0 else np.zeros(2), (len(t), 1))


def test_the_error_of_an_ideal_plant_obeys_the_linear_equation() -> None:
    """From a wrong start both joints decay as (1 + ωt + (ωt)²/2 + (ωt)³/6) e^(-ωt), whatever the other one does."""
    digital = ideal()
    bandwidth, rate = 3.0, 4000.0
    controller = feedback_linearisation(
        digital.robot, hold, rate, drives=drives_of(digital), gains=chain_gains(bandwidth), friction=False,
        gravity=digital.gravity, duration=0.5, elastic=True,
    )  # fmt: skip
    start = np.array([0.05, -0.03])
    run = run_loop(digital, digital.rest(TARGET + start), controller)
    x = 2.0 * np.pi * bandwidth * run.t[:, None]
    expected = start * (1.0 + x + x**2 / 2.0 + x**3 / 6.0) * np.exp(-x)
    np.testing.assert_allclose(run.q - TARGET, expected, atol=0.012 * np.abs(start).max())


def test_an_ideal_plant_follows_its_motion() -> None:
    digital = ideal()
    controller = feedback_linearisation(
        digital.robot, motion, RATE, drives=drives_of(digital), friction=False, gravity=digital.gravity, duration=1.0
    )
    first = as_reference(motion, RATE, 1.0)
    at = drive_motion(Links(digital.robot, digital.gravity), drives_of(digital), first)
    state = digital.rest(first.q[0]).with_rows(qd=first.qd[0], theta=at.theta[0], speed=at.speed[0])
    run = run_loop(digital, state, controller)
    assert np.abs(run.q - first.q).max() < 2e-5


def test_the_observer_corrects_an_acceleration_from_a_wrong_spring() -> None:
    """Springs of 120 % of the modelled stiffness: at rest under gravity the error is smaller with the observer."""
    digital = ideal()
    stiff, errors = digital.aged(stiffness=0.2), []
    for observer in (0.0, None):
        controller = feedback_linearisation(
            digital.robot, hold, RATE, drives=drives_of(digital), gains=chain_gains(8.0), friction=False,
            gravity=digital.gravity, duration=0.8, observer=observer, elastic=True,
        )  # fmt: skip
        run = run_loop(stiff, stiff.rest(TARGET), controller)
        errors.append(np.abs(run.q[-1] - TARGET).max())
    assert errors[0] > 1e-3 and errors[1] < 0.1 * errors[0]


# -- light links on stiff springs --------------------------------------------------------------------------------------

HOME = np.array([0.3, -1.2, 1.3, -0.8, 1.1, 0.4])
TOOL = jw.Payload(3.0, (0.12, 0.0, 0.08), np.diag([0.02, 0.02, 0.02]))


def growth(digital: DigitalRobot, pose: Array, stiffness: float, **options: Any) -> float:
    """Return by how much a deviation of the closed loop at rest can grow in a period, from differences of `step`.

    The springs of the plant have `stiffness` times that of the controller.
    """
    n, drives, links = digital.robot.dof, drives_of(digital), Links(digital.robot, digital.gravity, digital.payload)

    def hold(t: Array, order: int) -> Array:
        return np.tile(pose if order == 0 else np.zeros(n), (len(t), 1))

    controller = feedback_linearisation(
        digital.robot,
        hold,
        RATE,
        drives=drives,
        friction=False,
        payload=digital.payload,
        duration=3.0 / RATE,
        **options,
    )
    theta = pose + deformations(drives, links.weight(pose[None]))[0]
    none, at = np.zeros(n), np.concatenate([pose, np.zeros(n), theta, np.zeros(3 * n)])

    def step(z: Array) -> Array:
        q, qd, rotor, speed, integral, observed = z.reshape(6, n)
        sample = ControlSample(q, qd, rotor, speed, none, none, time=0.0)
        torque, after = controller.step(LinearisationState(0, integral, observed), sample)
        return np.concatenate([torque, after.integral, after.speed])

    sizes = np.repeat([1e-7, 1e-5, 1e-7, 1e-5, 1e-6, 1e-5], n)
    J = np.stack([(step(at + row) - step(at - row)) / (2.0 * row.max()) for row in np.diag(sizes)], axis=1)
    plant = _plants(links, pose[None], drives_of(digital.aged(stiffness=stiffness - 1.0)))[0]
    size = len(plant.A)
    held = expm(np.block([[plant.A, plant.B], [np.zeros((n, size + n))]]) / RATE)[:size]
    measured = np.vstack(plant.sides)
    loop = np.block([
        [held[:, :size] + held[:, size:] @ J[:n, : 4 * n] @ measured, held[:, size:] @ J[:n, 4 * n :]],
        [J[n:, : 4 * n] @ measured, J[n:, 4 * n :]],
    ])  # fmt: skip
    return float(np.abs(np.linalg.eigvals(loop)).max())


@pytest.mark.parametrize("payload", [TOOL, None])
@pytest.mark.parametrize("stiffness", [0.8, 1.0, 1.2])
def test_the_loop_is_stable_with_a_stiffness_20_percent_off(payload: jw.Payload | None, stiffness: float) -> None:
    digital = digital_robot(jw.load_robot("ur5e"), payload=payload)
    for pose in np.random.default_rng(0).uniform(-1.5, 1.5, (3, 6)):
        assert growth(digital, pose, stiffness) < 0.9995


def test_the_spring_of_a_light_link_cannot_be_cancelled() -> None:
    """Without a tool the last link swings at 840 Hz on its spring: linearised with it, deviations grow by 20 %."""
    digital = digital_robot(jw.load_robot("ur5e"))
    assert growth(digital, HOME, 0.8, elastic=True) > 1.2
    assert growth(digital, HOME, 0.8, elastic=(True, True, True, False, False, False)) < 0.9995


def test_an_arm_without_a_tool_follows_its_motion() -> None:
    digital = digital_robot(jw.load_robot("ur5e"))

    def swing(t: Array, order: int) -> Array:
        return motion(t, order, 6) + (HOME if order == 0 else 0.0)

    controller = feedback_linearisation(digital.robot, swing, RATE, drives=drives_of(digital), duration=0.6)
    assert controller.elastic.tolist() == [True, True, True, False, False, False]
    reference = as_reference(swing, RATE, 0.6)
    at = drive_motion(Links(digital.robot), drives_of(digital), reference)
    state = digital.rest(reference.q[0]).with_rows(qd=reference.qd[0], theta=at.theta[0], speed=at.speed[0])
    run = run_loop(digital, state, controller)
    assert np.abs(run.q - reference.q)[300:].max() < 2e-3


def test_wrong_gains_and_drives() -> None:
    digital = ideal()
    drives = drives_of(digital)
    with pytest.raises(ModelError, match="joint 2 must have a spring"):
        feedback_linearisation(digital.robot, motion, drives=(drives[0], JointDrive(1.0)), duration=1.0)
    with pytest.raises(ModelError, match="observer must be 0 to the rate of 1000, in rad/s. Got -1.0 instead"):
        feedback_linearisation(digital.robot, motion, drives=drives, observer=-1.0, duration=1.0)
    with pytest.raises(ModelError, match="elastic must be one flag, or 2"):
        feedback_linearisation(digital.robot, motion, drives=drives, elastic=(True,), duration=1.0)
    with pytest.raises(ModelError, match="bandwidth of at most about 40 Hz at 1000 Hz"):
        feedback_linearisation(digital.robot, motion, drives=drives, gains=chain_gains(60.0), duration=1.0)
    for wrong in ((1.0, 2.0, 3.0), ()):
        with pytest.raises(ModelError, match="gains must be ChainGains. Got an? (empty )?tuple instead"):
            feedback_linearisation(digital.robot, motion, drives=drives, gains=wrong, duration=1.0)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="bandwidth must be positive"):
        chain_gains(-1.0)
    with pytest.raises(ModelError, match="k2 must be finite and > 0. Got -1.0 instead"):
        ChainGains(1.0, 1.0, -1.0, 1.0)

    class Rough:
        duration = 1.0

        def at(self, t: Array) -> Any:
            from jointwise.design import States

            return States(t, *(motion(t, k) for k in range(3)))

    with pytest.raises(ModelError, match="elastic joints need jerk and snap"):
        feedback_linearisation(digital.robot, Rough(), drives=drives)
    controller = feedback_linearisation(digital.robot, motion, drives=drives, duration=0.001)
    sample = sample_of(digital.rest(np.zeros(2)))
    _, state = controller.step(controller.init(sample), sample)
    with pytest.raises(ModelError, match="the reference lasts 1 periods"):
        controller.step(state, sample)


# -- hand guiding ------------------------------------------------------------------------------------------------------


@cache
def arm() -> DigitalRobot:
    return digital_robot(jw.load_robot("ur5e"))


def push(controller: Any, torque: float, joint: int, seconds: float) -> Array:
    """Return how far (joints,) rad a torque (Nm) on one joint moves the arm under a controller."""
    digital = arm()
    q = np.array([0.3, -1.2, 1.3, -0.8, 1.1, 0.4])
    wrench = np.linalg.solve(jacobian(digital.robot, q[None])[0].T, torque * np.eye(6)[joint])
    run = run_loop(digital, digital.rest(q, 30.0), controller, rate=RATE, periods=int(seconds * RATE), wrench=wrench)
    return np.asarray(run.q[-1] - q)


def guiding(share: float) -> Any:
    digital = arm()
    return hand_guiding(digital.robot, RATE, friction=slip_friction_of(digital), share=share, drives=drives_of(digital))


@pytest.mark.parametrize("joint", [0, 3])
def test_a_third_of_the_friction_moves_a_joint_only_if_friction_is_compensated(joint: int) -> None:
    torque = 0.35 * arm().joints[joint].friction.coulomb
    moved = push(guiding(0.85), torque, joint, 0.25)
    stuck = push(guiding(0.0), torque, joint, 0.25)
    assert abs(stuck[joint]) < 0.003 and moved[joint] > 3.0 * abs(stuck[joint]) and moved[joint] > 0.004


def test_an_arm_that_is_released_does_not_drift() -> None:
    drift = push(guiding(0.85), 0.0, 0, 0.5)
    assert np.abs(drift).max() < 1e-4


def test_wrong_hand_guiding() -> None:
    digital = arm()
    with pytest.raises(ModelError, match=r"share must lie in \[0, 0.95\]: more would let the arm move by itself"):
        guiding(1.0)
    with pytest.raises(ModelError, match="damping must be >= 0 Nm s/rad, one number or 6"):
        hand_guiding(digital.robot, friction=slip_friction_of(digital), damping=-1.0)
    with pytest.raises(ModelError, match="friction must be given for a described robot"):
        hand_guiding(digital.robot)
    limited = tuple(replace(d, limit=2.0) for d in drives_of(digital))
    controller = hand_guiding(digital.robot, friction=slip_friction_of(digital), drives=limited)
    sample = sample_of(digital.rest(np.zeros(6)))
    torque, _ = controller.step(controller.init(sample), sample)
    assert np.abs(torque).max() <= 2.0
