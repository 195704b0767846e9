"""Adaptive feed-forward of friction: the friction model, the estimator and the controller on the digital robot."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import jointwise as jw
from jointwise.control import AdaptationOptions, ControlSample, SlipFriction, adaptive, bandwidth_gains
from jointwise.errors import ModelError, ShapeError
from jointwise.experiment import Events
from jointwise.experiment.closed_loop import drives_of, run_loop, sample_of
from jointwise.experiment.controllers import slip_friction_of
from jointwise.report.recording import render_recording
from jointwise.runtime import slip_friction
from jointwise.runtime.friction_estimator import (
    CalibratedFriction,
    DescribedFriction,
    EstimatorState,
    FrictionEstimator,
    Measurement,
    friction_estimator,
)
from jointwise.runtime.torque_parts import model_parts
from jointwise.simulation.robot import DigitalRobot, Run, Stribeck, ThermalFriction, digital_robot
from jointwise.spatial import Array
from plant_laws import follow_path
from runtime_models import exact, swinging

RATE = 1000.0
WARM = 30.0
QUICK = AdaptationOptions(time_constants=(0.3, 0.3))


@cache
def planar() -> DigitalRobot:
    """Return a digital arm of two joints, which is quick to simulate."""
    return digital_robot(jw.load_robot("planar2"))


def described(digital: DigitalRobot) -> DescribedFriction:
    rotors = np.array([joint.inertia for joint in digital.joints])
    return DescribedFriction(digital.robot, slip_friction_of(digital), rotors, digital.gravity, digital.payload)


class Recorder:
    """A controller that keeps a1, a2 and the prediction error of every period; noise and limits may be added."""

    def __init__(self, controller: Any, noise: float = 0.0, seed: int = 0) -> None:
        self.controller, self.rate, self.periods = controller, controller.rate, controller.periods
        self.rows: list[tuple[Array, Array, Array]] = []
        self.noise, self.rng = noise, np.random.default_rng(seed)

    def init(self, sample: ControlSample) -> Any:
        return self.controller.init(sample)

    def step(self, memory: Any, sample: ControlSample) -> tuple[Array, Any]:
        if self.noise:
            shake = self.rng.normal(size=(3, len(sample.q)))
            sample = replace(
                sample,
                q=sample.q + 1e-5 * shake[0],
                theta=sample.theta + 1e-5 * shake[1],
                current=sample.current * (1.0 + self.noise * shake[2]),
            )
        torque, memory = self.controller.step(memory, sample)
        self.rows.append((memory.adapted.factor, memory.adapted.viscous, memory.adapted.error))
        return torque, memory

    @property
    def series(self) -> tuple[Array, Array, Array]:
        a1, a2, error = (np.array(column) for column in zip(*self.rows, strict=True))
        return a1, a2, error


def planar_motion(duration: float) -> Any:
    w = np.array([1.9, 2.7])

    def motion(t: Array, order: int) -> Array:
        angle = w * np.asarray(t)[:, None] + 0.5 * np.pi * order
        return 0.5 * w**order * (np.cos(angle) - (order == 0))

    motion.duration = duration  # type: ignore[attr-defined]
    return motion


def controlled(digital: DigitalRobot, known: DigitalRobot, duration: float, **options: Any) -> tuple[Run, Recorder]:
    """Return the run of a digital robot whose controller knows another one."""
    noise, seed = options.pop("noise", 0.0), options.pop("seed", 0)
    motion = planar_motion(duration)
    controller = adaptive(
        known.robot, motion, RATE, friction=slip_friction_of(known), motor_gains=known.gains,
        drives=drives_of(known), gravity=known.gravity, payload=known.payload, **options,
    )  # fmt: skip
    recorder = Recorder(controller, noise, seed)
    start = digital.rest(motion(np.zeros(1), 0)[0], WARM)
    return run_loop(digital, start, recorder), recorder


# -- friction along a motion -------------------------------------------------------------------------------------------


def test_friction_is_that_of_the_simulated_plant() -> None:
    digital = digital_robot(jw.load_robot("ur5e"))
    friction = slip_friction_of(digital)
    q, qd, _ = swinging(6, 500, RATE)
    load, T = 40.0 * np.sin(q), np.full_like(q, 33.0)
    H, _ = friction.hysteresis(friction.init(q[0]), q)
    parts = friction.torque(H, qd, load, T)
    for j, joint in enumerate(digital.joints):
        bare = replace(joint.friction, asymmetry=0.0, stribeck=Stribeck(), thermal=ThermalFriction())
        plain = replace(joint, friction=bare)
        whole = SlipFriction((plain.friction,), (plain.backlash,))
        one, _ = whole.hysteresis(whole.init(q[:1, j]), q[:, j : j + 1])
        dry = follow_path(plain, q[:, j]).H  # Nm, at the level of Coulomb friction
        np.testing.assert_allclose(one[:, 0], dry / plain.friction.coulomb, atol=1e-12)
        sliding = np.abs(np.abs(H[:, j] / (1.0 + joint.friction.asymmetry * np.sign(H[:, j]))) - 1.0) < 1e-12
        law, direction = joint.friction, np.sign(H[:, j])
        speed = direction * np.abs(qd[:, j])
        steady = law.level(speed, load[:, j], T[:, j]) * (direction + law.asymmetry) + law.viscous_factor(speed) * speed
        agree = sliding & (np.sign(H[:, j]) == np.sign(qd[:, j]))
        assert agree.sum() > 100
        np.testing.assert_allclose(parts.friction[agree, j], steady[agree], rtol=1e-9)


def test_friction_in_numpy_is_that_of_the_native_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    friction = slip_friction_of(digital_robot(jw.load_robot("ur5e")))
    q, qd, _ = swinging(6, 200, RATE)
    native, end = friction.hysteresis(friction.init(q[0]), q)
    torque = friction.torque(native, qd, 30.0 * q, 25.0)
    monkeypatch.setattr(slip_friction, "native", lambda: None)
    twin, last = friction.hysteresis(friction.init(q[0]), q)
    np.testing.assert_allclose(twin, native, atol=1e-12)
    np.testing.assert_allclose(end, last, atol=1e-15)
    for a, b in zip(torque, friction.torque(native, qd, 30.0 * q, 25.0), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    one = friction.torque(native[3], qd[3], 30.0 * q[3], 25.0)
    np.testing.assert_allclose(one.friction, torque.friction[3], rtol=1e-12)


def test_wrong_friction() -> None:
    digital = planar()
    friction = slip_friction_of(digital)
    with pytest.raises(ModelError, match="laws and backlash must be of as many joints. Got 2, 1 instead"):
        SlipFriction(friction.laws, friction.backlash[:1])
    with pytest.raises(ShapeError, match=r"theta must have shape \(2,\)"):
        friction.init(np.zeros(3))
    with pytest.raises(ShapeError, match=r"signals must have shape \(2,\) or \(samples, 2\)"):
        friction.hysteresis(friction.init(np.zeros(2)), np.zeros(3))
    with pytest.raises(ModelError, match="friction and rotors must be of 6 joints"):
        DescribedFriction(jw.load_robot("ur5e"), friction, np.zeros(2))


# -- estimator ---------------------------------------------------------------------------------------------------------


@cache
def recorded(worn: float = 0.0) -> tuple[FrictionEstimator, Measurement]:
    """Return an estimator of the new robot and 7 s of measurements of one with more friction."""
    digital = planar()
    run, _ = controlled(digital.aged(friction=worn), digital, 7.0, release=1e9)
    measured = Measurement(run.q, run.theta, digital.gains * run.current, run.temperature)
    return friction_estimator(described(digital), RATE, QUICK), measured


def first_of(measured: Measurement) -> Measurement:
    return Measurement(*(values[0] for values in measured))


def test_the_estimator_finds_worn_friction_in_a_log() -> None:
    """Friction times 1.3: a1 of both joints, and a2 = 0.3 F_V1."""
    estimator, measured = recorded(0.3)
    _, state = estimator.steps(estimator.init(first_of(measured)), measured)
    np.testing.assert_allclose(state.adaptation.factor, 1.3, atol=0.06)
    assert (np.abs(state.adaptation.viscous / estimator.model.damping - 0.3) < 0.15).all()


def test_the_estimator_of_a_new_robot_stays_at_the_nominal_values() -> None:
    estimator, measured = recorded(0.0)
    out, _ = estimator.steps(estimator.init(first_of(measured)), measured)
    assert np.abs(out.factor - 1.0).max() < 0.05


def test_a_stream_gives_the_numbers_of_a_batch() -> None:
    estimator, measured = recorded(0.3)
    short = Measurement(*(values[:400] for values in measured))
    start = estimator.init(first_of(measured))
    whole, end = estimator.steps(start, short)
    state: EstimatorState = start
    for k in range(400):
        one, state = estimator.step(state, Measurement(*(values[k] for values in short)))
        np.testing.assert_allclose(one.factor, whole.factor[k], rtol=1e-12)
        np.testing.assert_allclose(one.error, whole.error[k], atol=1e-9)
    np.testing.assert_allclose(state.adaptation.numbers, end.adaptation.numbers, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(whole.factor[: estimator.filter.warm_up - 1], 1.0)


def test_a_log_in_two_parts_gives_the_numbers_of_the_whole() -> None:
    estimator, measured = recorded(0.3)
    whole, _ = estimator.steps(estimator.init(first_of(measured)), measured)
    state = estimator.init(first_of(measured))
    for rows in (slice(0, 50), slice(50, 700), slice(700, None)):
        part, state = estimator.steps(state, Measurement(*(values[rows] for values in measured)))
        np.testing.assert_allclose(part.factor, whole.factor[rows], rtol=1e-12)


def test_torque_in_random_order_does_not_look_like_wear() -> None:
    estimator, measured = recorded(0.3)
    nominal, normal = recorded(0.0)
    del nominal
    surplus = np.random.default_rng(0).permutation(measured.torque - normal.torque)
    shuffled = normal._replace(torque=normal.torque + surplus)
    out, _ = estimator.steps(estimator.init(first_of(shuffled)), shuffled)
    assert np.abs(out.factor[2000:] - 1.0).mean() < 0.1


def test_a_calibrated_robot_can_be_watched() -> None:
    """The friction terms of a calibrated model, on torques that it predicts itself: nothing to adapt."""
    model = exact()
    t = np.arange(4000)[:, None] / RATE
    w = np.array([1.0, 0.9, 1.2, 1.6, 2.0, 1.4])
    q, qd, qdd = 0.6 * np.sin(w * t), 0.6 * w * np.cos(w * t), -0.6 * w**2 * np.sin(w * t)
    torque = model.torque(q, qd, qdd, rate=RATE)
    measured = Measurement(q, q, torque, np.full_like(q, 20.0))
    estimator = friction_estimator(CalibratedFriction(model_parts(model, RATE, "feed-forward")), RATE)
    parts, _ = estimator.model.parts(
        estimator.model.init(q[0], q[0]), estimator_sample(q, qd, qdd), np.empty((len(q), 0))
    )
    assert (np.abs(parts.dry).max(axis=0) > 0.1).all()
    out, _ = estimator.steps(estimator.init(first_of(measured)), measured)
    assert np.median(np.abs(out.factor[-1] - 1.0)) < 0.1


def estimator_sample(q: Array, qd: Array, qdd: Array) -> Any:
    from jointwise.runtime.friction_estimator import DriveSample

    return DriveSample(q, qd, qdd, q, qd, qdd, np.full_like(q, 20.0))


# -- controller --------------------------------------------------------------------------------------------------------


def test_adaptation_reduces_torque_and_position_errors() -> None:
    """Start far off, release at 2 s: the parameters of a robot as described converge to (1, 0)."""
    digital = planar()
    run, recorder = controlled(digital, digital, 9.0, start=(0.47, 0.0), release=2.0, options=QUICK)
    a1, _, error = recorder.series
    np.testing.assert_array_equal(a1[:2000], 0.47)
    np.testing.assert_allclose(a1[-1], 1.0, atol=0.12)
    wrong = run.q - planar_motion(9.0)(run.t, 0)
    before, after = slice(500, 2000), slice(7000, None)
    assert (np.square(error[after]).mean(axis=0) < 0.1 * np.square(error[before]).mean(axis=0)).all()
    assert (np.square(wrong[after]).mean(axis=0) < 0.5 * np.square(wrong[before]).mean(axis=0)).all()


@pytest.mark.parametrize("group", [0, *(pytest.param(group, marks=pytest.mark.thorough) for group in (1, 2, 3, 4))])
def test_parameters_and_motion_stay_bounded_under_noise_and_saturation(group: int) -> None:
    """50 seeds: noisy encoders and currents, weak motors, other friction and payload than modelled."""
    known = planar()
    weak = tuple(replace(d, limit=0.35 * d.limit) for d in drives_of(known))
    for seed in range(10 * group, 10 * group + 10):
        rng = np.random.default_rng(seed)
        payload = jw.Payload(float(rng.uniform(0.0, 3.0)), (0.0, 0.0, 0.05))
        digital = known.aged(friction=float(rng.uniform(-0.5, 1.0))).with_payload(payload)
        motion = planar_motion(0.4)
        controller = adaptive(
            known.robot, motion, RATE, friction=slip_friction_of(known), motor_gains=known.gains, drives=weak,
            gravity=known.gravity, options=AdaptationOptions(time_constants=(0.05, 0.05)),
        )  # fmt: skip
        recorder = Recorder(controller, noise=0.3, seed=seed)
        run = run_loop(digital, digital.rest(motion(np.zeros(1), 0)[0], WARM), recorder)
        a1, a2, _ = recorder.series
        low, high = controller.estimator.adaptation.limits
        assert (a1 >= low[:, 0]).all() and (a1 <= high[:, 0]).all()
        assert (a2 >= low[:, 1]).all() and (a2 <= high[:, 1]).all()
        assert (np.abs(run.command) <= [d.limit + 1e-9 for d in weak]).all()
        assert np.isfinite(run.q).all() and np.abs(run.q).max() < 3.0


def test_the_integral_is_held_while_a_motor_saturates() -> None:
    digital = planar()
    drives = tuple(replace(d, limit=1e-3) for d in drives_of(digital))
    controller = adaptive(
        digital.robot, planar_motion(1.0), RATE, friction=slip_friction_of(digital), motor_gains=digital.gains,
        drives=drives, gravity=digital.gravity, gains=bandwidth_gains(5.0, 1.0, 0.3),
    )  # fmt: skip
    sample = sample_of(digital.rest(np.array([0.4, -0.4]), WARM))
    state = controller.init(sample)
    for _ in range(5):
        torque, state = controller.step(state, sample)
        np.testing.assert_allclose(np.abs(torque), 1e-3)
    np.testing.assert_array_equal(state.integral, 0.0)


def test_the_reference_in_blocks_is_the_reference() -> None:
    """The torque does not depend on the size of the blocks in which the reference is computed."""
    module = import_module("jointwise.control.adaptive_friction")
    digital, torques = planar(), []
    for block in (7, module.BLOCK):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "BLOCK", block)
            run, _ = controlled(digital, digital, 0.05)
            torques.append(run.command)
    np.testing.assert_allclose(torques[0], torques[1], rtol=1e-12, atol=1e-12)


def test_a_named_controller_of_simulate() -> None:
    result = jw.simulate(jw.load_robot("planar2"), "excitation", duration=2.0, controller="adaptive")
    assert result.log.samples > 100
    assert "notes" not in result.truth["controller"]


def test_the_page_of_a_simulation_shows_adapted_friction() -> None:
    """The parameters along the run follow friction that grows; other controllers have none."""
    robot, wear = jw.load_robot("planar2"), Events(wear={"friction": 0.5})
    aged = jw.simulate(robot, "excitation", duration=8.0, controller="adaptive", events=wear)
    adapted = aged.truth["controller"]["adapted"]
    t, a1 = np.array(adapted["t"]), np.array(adapted["a1"])
    assert len(t) == len(a1) == len(adapted["a2"]) <= 1000
    assert (np.diff(t) > 0.0).all()
    assert t[-1] > 7.9
    assert (a1[len(a1) // 2] > 1.05).all()
    assert (a1[-1] > a1[len(a1) // 2] + 0.05).all()
    assert "Adapted friction" in render_recording(robot, aged.log, aged.truth, vars(aged.run))
    servo = jw.simulate(robot, "excitation", duration=1.0)
    assert "Adapted friction" not in render_recording(robot, servo.log, servo.truth, vars(servo.run))


def test_a_wrong_payload_is_noticed() -> None:
    """A payload that the controller does not know drives a1 into its bound, which simulate reports."""
    result = jw.simulate(
        jw.load_robot("planar2"), "excitation", duration=8.0, controller="adaptive",
        events=Events(payloads={0.5: jw.Payload(4.0, (0.0, 0.0, 0.0))}),
    )  # fmt: skip
    assert "a1 at its bound" in result.truth["controller"]["notes"][0]


def test_wrong_input() -> None:
    digital = planar()
    known: dict[str, Any] = {"friction": slip_friction_of(digital), "motor_gains": digital.gains}
    with pytest.raises(ModelError, match="friction must be given for a described robot"):
        adaptive(digital.robot, planar_motion(1.0))
    with pytest.raises(ModelError, match="motor_gains must be given"):
        adaptive(digital.robot, planar_motion(1.0), friction=known["friction"])
    with pytest.raises(ShapeError, match="motor_gains must be 2 finite numbers in Nm/A. Got"):
        adaptive(digital.robot, planar_motion(1.0), friction=known["friction"], motor_gains=[1.0, np.nan])
    with pytest.raises(ModelError, match="duration must be a positive number of s"):
        adaptive(digital.robot, lambda t, k: np.zeros((len(t), 2)), **known)
    with pytest.raises(ModelError, match="rate must be a positive number of Hz"):
        adaptive(digital.robot, planar_motion(1.0), 0.0, **known)
    for release in (float("nan"), -1.0):
        with pytest.raises(ModelError, match="release must be a time >= 0 s"):
            adaptive(digital.robot, planar_motion(1.0), release=release, **known)
    still = digital.without("friction")
    with pytest.raises(ModelError, match="dry must be a positive number for every joint"):
        adaptive(still.robot, planar_motion(1.0), friction=slip_friction_of(still), motor_gains=digital.gains)
    controller = adaptive(digital.robot, planar_motion(0.002), **known)
    sample = sample_of(digital.rest(np.zeros(2)))
    state = controller.init(sample)
    for _ in range(2):
        _, state = controller.step(state, sample)
    with pytest.raises(ModelError, match="the reference lasts 2 periods"):
        controller.step(state, sample)
    with pytest.raises(ModelError, match=r"a1 of joint 1 must lie in \[0.4, 1.5\]. Got 3 instead"):
        adaptive(digital.robot, planar_motion(1.0), start=(3.0, 0.0), **known).init(sample)
