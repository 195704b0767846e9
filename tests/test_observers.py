"""Observers: friction filtered with their bandwidth, fusion by true variances, transmission torque of three sides."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise.errors import ModelError, ShapeError
from jointwise.joint.gear import StiffnessLaw
from jointwise.joint.laws import FrictionLaw, FrictionMap, JointMotion, OnlineFriction, VelocityLaw
from jointwise.joint.record import LinkLoad
from jointwise.model.spring import Cubic
from jointwise.runtime.observers import ObservedJoint, TorqueFusion, TorqueObserver, fuse, observed_joint
from jointwise.spatial import Array
from kernels import needs_native
from online_joints import moves, true_model

pytestmark = pytest.mark.compat

RATE = 1000.0
NO_FRICTION = OnlineFriction(FrictionMap(VelocityLaw()))


# -- unknown torque ----------------------------------------------------------------------------------------------------


def rotor(friction: Array, motor: Array, inertia: float) -> Array:
    """Return speeds (samples,) after every period of constant torques."""
    return np.cumsum(motor - friction) / inertia / RATE


def test_a_step_of_friction_appears_with_the_bandwidth() -> None:
    """f̂ = f (1 - exp(-L t)), exactly, whatever the motor does."""
    observer = TorqueObserver(np.array([1.7]), 60.0, RATE)
    rng = np.random.default_rng(0)
    motor, friction = 5.0 * rng.normal(size=400), np.full(400, 3.0)
    speed = rotor(friction, motor, 1.7)
    found, state = observer.steps(observer.init(), motor[:, None], np.zeros((400, 1)), speed[:, None])
    t = np.arange(1, 401) / RATE
    np.testing.assert_allclose(found[:, 0], 3.0 * (1.0 - np.exp(-60.0 * t)), atol=1e-9)
    assert state.dropped == 0


def test_steps_of_the_observer_equal_the_run_and_gaps_hold_it() -> None:
    observer = TorqueObserver(np.array([1.7, 0.3]), 60.0, RATE)
    rng = np.random.default_rng(1)
    torque, known, speed = rng.normal(size=(3, 200, 2))
    whole, end = observer.steps(observer.init(), torque, known, speed)
    state = observer.init()
    for k in range(200):
        found, state = observer.step(state, torque[k], known[k], speed[k])
        np.testing.assert_allclose(found, whole[k], rtol=1e-9, atol=1e-12)
    torque[50:60, 0] = np.nan
    held, after = observer.steps(observer.init(), torque, known, speed)
    assert np.isfinite(held).all() and (held[50:60, 0] == held[49, 0]).all()
    np.testing.assert_allclose(held[:, 1], whole[:, 1], atol=1e-12)
    assert after.dropped == 10
    np.testing.assert_allclose(held[-1], end.torque, atol=1e-3 * np.abs(whole).max())


def test_the_disturbance_observer_finds_what_the_model_does_not_know() -> None:
    """With the torque of a complete model as known, B = 0: the rest, filtered."""
    observer = TorqueObserver(np.zeros(1), 30.0, RATE)
    t = np.arange(2000) / RATE
    model, disturbance = np.sin(9.0 * t), np.where(t > 1.0, 2.0, 0.0)
    found, _ = observer.steps(observer.init(), (model + disturbance)[:, None], model[:, None], np.zeros((2000, 1)))
    assert np.abs(found[:1000]).max() < 1e-12
    assert found[-1, 0] == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize(
    ("inertia", "bandwidth", "rate"),
    [([-1.0], 1.0, 1.0), ([1.0], 0.0, 1.0), ([1.0], 1.0, 0.0), ([np.nan], 1.0, 1.0), ([1.0], np.inf, 1.0)],
)
def test_observers_out_of_range_are_rejected(inertia: list[float], bandwidth: float, rate: float) -> None:
    with pytest.raises(ModelError, match="must be"):
        TorqueObserver(np.array(inertia), bandwidth, rate)


def test_wrong_shapes_are_rejected() -> None:
    observer = TorqueObserver(np.ones(2), 10.0, RATE)
    with pytest.raises(ShapeError, match="known must be of shape"):
        observer.steps(observer.init(), np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="2 finite numbers"):
        observer.init(speed=[1.0])


# -- fusion ------------------------------------------------------------------------------------------------------------


def test_the_fusion_is_the_weighted_mean_and_misses_what_is_missing() -> None:
    value, variance = fuse(np.array([1.0, 3.0, np.nan]), np.array([1.0, 0.5, 0.1]))
    assert value == pytest.approx((1.0 + 2.0 * 3.0) / 3.0)
    assert variance == pytest.approx(1.0 / 3.0)
    nothing, unknown = fuse(np.full(3, np.nan), np.ones(3))
    assert np.isnan(nothing) and np.isinf(unknown)


@pytest.mark.parametrize("count", [3, 4])
def test_variances_come_from_the_differences(count: int) -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([0.3, 1.0, 2.0, 0.5])[:count]
    truth = 20.0 * np.sin(np.arange(40_000) / 500.0)
    estimates = truth[:, None] + sizes * rng.normal(size=(40_000, count))
    fusion = TorqueFusion(count, RATE)
    fused, _ = fusion.steps(fusion.init(), estimates)
    np.testing.assert_allclose(fused.variances[-1], sizes**2, rtol=0.15, atol=0.03)
    error = np.std((fused.torque - truth)[10_000:])
    assert error < 1.05 / np.sqrt(np.sum(sizes**-2.0))
    assert error < np.std((estimates - truth[:, None])[10_000:], axis=0).min()


def test_averaging_sees_errors_that_last_under_noise_that_does_not() -> None:
    rng = np.random.default_rng(1)
    slow = 0.5 * np.sign(np.sin(np.arange(60_000) / 2000.0))
    estimates = np.column_stack([slow, 2.0 * rng.normal(size=60_000), 0.05 * rng.normal(size=60_000)])
    plain, averaged = (TorqueFusion(3, RATE, averaging=time) for time in (0.0, 0.1))
    assert np.argmax(plain.steps(plain.init(), estimates)[0].variances[-1]) == 1
    assert np.argmax(averaged.steps(averaged.init(), estimates)[0].variances[-1]) == 0


def test_fusion_in_parts_is_the_whole_and_survives_missing_samples() -> None:
    rng = np.random.default_rng(2)
    estimates = rng.normal(size=(900, 3)) * [1.0, 2.0, 0.5]
    estimates[100:200, 1] = np.nan
    estimates[300:320] = np.nan
    fusion = TorqueFusion(3, RATE, averaging=0.01)
    whole, end = fusion.steps(fusion.init(), estimates)
    state, found = fusion.init(), []
    for row in estimates:
        one, state = fusion.step(state, row)
        found.append(one.torque)
    np.testing.assert_allclose(found, whole.torque, rtol=1e-9)
    np.testing.assert_allclose(state.squares, end.squares, rtol=1e-9)
    assert np.isnan(whole.torque[300:320]).all() and np.isfinite(whole.torque[320:]).all()


def test_fusion_settings_are_checked() -> None:
    with pytest.raises(ModelError, match="fewer than 3"):
        TorqueFusion(2, RATE)
    with pytest.raises(ModelError, match="variances must be 2"):
        TorqueFusion(2, RATE, (1.0,))
    with pytest.raises(ModelError, match="memory"):
        TorqueFusion(3, RATE, memory=0.0)
    known = TorqueFusion(2, RATE, (1.0, 4.0))
    assert known.step(known.init(), [0.0, 5.0])[0].torque == pytest.approx(1.0)
    with pytest.raises(ShapeError, match=r"\(samples, 2\)"):
        known.steps(known.init(), np.zeros((3, 3)))


# -- friction and the three sides --------------------------------------------------------------------------------------


def test_friction_in_parts_is_the_whole_and_equals_the_steady_law_in_slip() -> None:
    velocity = VelocityLaw(coulomb=8.0, static=10.0, stribeck_speed=0.1, viscous=5.0, asymmetry=0.1)
    slip = FrictionLaw("nlr", np.array([1e-4, 1e-3]), np.array([6.0, 2.0]))
    friction = OnlineFriction(FrictionMap(velocity), slip)
    t = np.arange(0.0, 6.0, 1e-3)
    position, speed = 0.5 * np.sin(2.0 * t), np.cos(2.0 * t)
    path = JointMotion(position, speed, np.zeros(len(t)), 1e-3)
    whole, H, end = friction.torque(friction.init(0.0), path)
    state, parts = friction.init(0.0), []
    for rows in np.array_split(np.arange(len(t)), 11):
        part = JointMotion(position[rows], speed[rows], np.zeros(len(rows)), 1e-3)
        torque, _, state = friction.torque(state, part)
        parts.append(torque)
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-12)
    np.testing.assert_allclose(state, end)
    slipping = (np.abs(H) > 1.0 - 1e-9) & (np.abs(speed) > 0.05)
    np.testing.assert_allclose(whole[slipping], velocity.torque(speed[slipping]), atol=1e-9)
    assert slipping.mean() > 0.9


@pytest.mark.parametrize("model", ["lugre", "sgn", "tanh"])
def test_other_laws_of_hysteresis_keep_their_own_dry_friction(model: str) -> None:
    forces = np.array([8.0, 0.0]) if model == "lugre" else np.array([8.0])
    law = FrictionLaw(model, np.array([1e-3]) if model == "lugre" else np.zeros(0), forces, viscous=3.0)
    t = np.arange(0.0, 4.0, 1e-3)
    position, speed = 0.5 * np.sin(2.0 * t), np.cos(2.0 * t)
    path = JointMotion(position, speed, np.zeros(len(t)), 1e-3)
    alone = OnlineFriction(hysteresis=law)
    expected = law.torque(JointMotion(position, speed, np.zeros(len(t)), 1e-3))
    np.testing.assert_allclose(alone.torque(alone.init(position[0]), path)[0], expected, atol=1e-9)


def test_friction_without_any_law_is_rejected() -> None:
    with pytest.raises(ModelError, match="friction or a hysteresis part"):
        OnlineFriction()


@needs_native
def test_the_three_sides_agree_with_the_torque_of_the_gear() -> None:
    """On the digital robot with known laws all three sides are near each other, and fused nearer to the truth."""
    log, new = moves()
    joint = observed_joint(new.robot, true_model(new))
    theta, q, i = log.theta[:, 0], log.q, log.current[:, 0]  # type: ignore[index]
    from jointwise.runtime.phase import PhaseFilter

    phase = PhaseFilter(8, RATE, 21)
    x, _ = phase.steps(phase.init([theta[0], i[0], *q[0]]), np.column_stack([theta, i, q]))
    links = LinkLoad(new.robot, np.array([0.0, 0.0, -9.81]), None)(x.value[:, 2:], x.first[:, 2:], x.second[:, 2:])[
        :, 0
    ]
    path = JointMotion(x.value[:, 0], x.first[:, 0], links, 1e-3)
    friction, _, _ = joint.friction.torque(joint.friction.init(theta[0]), path)
    phi, rate = x.value[:, 0] - x.value[:, 2], x.first[:, 0] - x.first[:, 2]
    sides = np.column_stack(
        [
            joint.link_torque(links, friction),
            joint.deflection_torque(phi, rate),
            joint.motor_torque(x.value[:, 1], x.second[:, 0], friction),
        ]
    )[1000:]
    scale = np.std(sides[:, 1])
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert np.std(sides[:, a] - sides[:, b]) < 0.15 * scale
    fusion = TorqueFusion(3, RATE)
    fused = fusion.steps(fusion.init(), sides)[0].torque
    assert np.std(fused - sides[:, 0]) < np.std(sides[:, 2] - sides[:, 0])


def test_friction_acts_on_either_side() -> None:
    joint = ObservedJoint(10.0, 2.0, NO_FRICTION, link_share=0.25)
    f = np.array([4.0])
    assert joint.motor_torque(np.array([1.0]), np.zeros(1), f) == pytest.approx(7.0)
    assert joint.link_torque(np.array([6.0]), f) == pytest.approx(7.0)


def test_joints_out_of_range_are_rejected() -> None:
    for options in ({"gain": 0.0}, {"inertia": -1.0}, {"damping": np.nan}, {"link_share": 1.5}):
        with pytest.raises(ModelError, match="must be"):
            ObservedJoint(**{"gain": 1.0, "inertia": 1.0, "friction": NO_FRICTION, **options})  # type: ignore[arg-type]
    joint = ObservedJoint(1.0, 1.0, NO_FRICTION)
    with pytest.raises(ModelError, match="identify stiffness"):
        joint.deflection_torque(np.zeros(1), np.zeros(1))
    spring = ObservedJoint(1.0, 1.0, NO_FRICTION, damping=2.0, spring=StiffnessLaw(Cubic(1e4), 1e-2))
    assert spring.deflection_torque(np.array([1e-3]), np.array([0.5])) == pytest.approx(11.0)
