"""Controllers of coupled transmissions: the arm in coordinates of its motors, and tracking of the simulated arm."""

from __future__ import annotations

import numpy as np
import pytest

import jointwise as jw
from jointwise import control
from jointwise.backend import native
from jointwise.control.controller import ControlSample
from jointwise.control.links import Links, MotorLinks
from jointwise.experiment.closed_loop import drives_of
from jointwise.experiment.controllers import CONTROLLERS, slip_friction_of
from jointwise.experiment.options import PlantOptions
from jointwise.model.rigid import gravity_torque, inverse_dynamics, mass_matrix
from jointwise.runtime.friction_estimator import DescribedFriction, Measurement, friction_estimator
from jointwise.runtime.stream import Sample
from jointwise.runtime.torque_parts import model_parts
from jointwise.simulation.robot import digital_robot
from jointwise.spatial import Array

COUPLING = "5:4:0.4,6:4:-0.3,6:5:1"
RATE = 500.0

pytestmark = pytest.mark.skipif(native() is None, reason="the native kernel is not built")


def arm() -> jw.Robot:
    return jw.load_robot("ur5e", coupling=COUPLING)


C = arm().transmission.matrix
MOTION = jw.design.fourier_trajectory(arm(), 10.0, 3)


def at_motors(torque: Array) -> Array:
    return np.linalg.solve(C.T, torque.T).T


def test_links_of_coupled_motors_have_the_energy_of_the_joints() -> None:
    """Power is the same in both coordinates: p' τ_motor = q' τ_joint, and so are kinetic energies."""
    links, rng = Links.of(arm()), np.random.default_rng(0)
    assert isinstance(links, MotorLinks)
    q, qd, qdd = rng.normal(size=(3, 20, 6))
    p, pd, pdd = (x @ C.T for x in (q, qd, qdd))
    torque = inverse_dynamics(arm(), q, qd, qdd)
    np.testing.assert_allclose((links.torque(p, pd, pdd) * pd).sum(axis=1), (torque * qd).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(links.sample_torque(p, pd, pdd), at_motors(torque), atol=1e-9)
    np.testing.assert_allclose(links.weight(p), at_motors(gravity_torque(arm(), q)), atol=1e-9)
    kinetic = np.einsum("ki,kij,kj->k", pd, links.inertia(p, np.zeros(6)), pd)
    np.testing.assert_allclose(kinetic, np.einsum("ki,kij,kj->k", qd, mass_matrix(arm(), q), qd), rtol=1e-9)


def test_torque_rates_of_coupled_motors_are_those_of_differences() -> None:
    links = Links.of(arm())
    reference = links.reference(control.as_reference(MOTION, RATE))
    torque, first, second = links.torque_rates(reference)
    np.testing.assert_allclose(torque, links.torque(reference.q, reference.qd, reference.qdd), atol=1e-9)
    for values, rates in ((torque, first), (first, second)):
        differences = np.gradient(values, 1.0 / RATE, axis=0)  # a few are wide of the mark, where the snap jumps
        assert np.median(np.abs(differences - rates)) < 1e-3 * np.abs(rates).mean()


@pytest.mark.parametrize("side", ["motor", "link"])
def test_computed_torque_obeys_the_error_equation_at_the_joints(side: str) -> None:
    """On a rigid arm ``ë + kd ė + kp e = 0`` of p, so also of q: the torque is that of this acceleration."""
    gains, rng = control.Gains(400.0, 40.0), np.random.default_rng(1)
    controller = control.computed_torque(arm(), MOTION, RATE, gains=gains, side=side)
    wanted = MOTION.at(np.array([0.0]))
    q, qd = wanted.q[0] + 0.01 * rng.normal(size=6), wanted.qd[0] + 0.1 * rng.normal(size=6)
    sample = ControlSample(q, qd, C @ q, C @ qd, np.zeros(6), np.full(6, 25.0), 0.0)
    torque, _ = controller.step(controller.init(sample), sample)
    ahead = MOTION.at(np.array([0.5 / RATE]))
    acceleration = -40.0 * (qd - wanted.qd[0]) - 400.0 * (q - wanted.q[0])
    rotors = arm().rotor_inertias
    feed = at_motors(inverse_dynamics(arm(), ahead.q, ahead.qd, ahead.qdd)) + rotors * (ahead.qdd @ C.T)
    feedback = at_motors((mass_matrix(arm(), wanted.q)[0] @ acceleration)[None])[0] + rotors * (C @ acceleration)
    np.testing.assert_allclose(torque, feed[0] + feedback, atol=1e-6)


def tracked(robot: jw.Robot, name: str) -> Array:
    """Return the largest errors (joints,), mrad, of the links; `pd` and `pid` have no feed-forward."""
    log = jw.simulate(robot, duration=4.0, rate=200.0, seed=3, controller=name).log
    return 1e3 * np.abs(log.q - log.q_des).max(axis=0)


COSTLY = ("adaptive", "feedback-linearisation", "torque-feedback")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough if name in COSTLY else ())
        for name in CONTROLLERS
        if name != "servo"
    ],
)
def test_every_named_controller_tracks_a_coupled_arm_as_an_uncoupled_one(name: str) -> None:
    coupled, plain = tracked(arm(), name), tracked(jw.load_robot("ur5e"), name)
    assert coupled.max() < 3.0 * plain.max()  # motors 5 and 6 turn round at other times, where friction is not known
    np.testing.assert_allclose(coupled[:3], plain[:3], rtol=0.1, atol=0.1)  # the first motors are not coupled


def test_a_controller_that_does_not_know_the_coupling_fails() -> None:
    """The law of uncoupled motors on the coupled arm is unstable or follows far worse."""
    drives = drives_of(digital_robot(arm()))

    def blind(motion: object, rate: float) -> control.AffineController:
        return control.computed_torque(jw.load_robot("ur5e"), motion, rate, drives=drives)

    try:
        log = jw.simulate(arm(), duration=4.0, rate=200.0, seed=3, controller=blind).log
    except jw.errors.ModelError:
        return
    assert 1e3 * np.abs(log.q - log.q_des)[:, 3:].max() > 3.0 * tracked(arm(), "computed-torque")[3:].max()


def described(friction: object) -> DescribedFriction:
    return DescribedFriction(arm(), friction, arm().rotor_inertias)


def test_friction_is_adapted_at_the_motors(monkeypatch: pytest.MonkeyPatch) -> None:
    """a1 of every motor is found from a log of the simulated arm with more friction; C and NumPy agree."""
    digital = digital_robot(arm())
    log = jw.simulate(arm(), duration=15.0, rate=500.0, seed=5, keep=0, plant=PlantOptions(age={"friction": 0.3})).log
    measured = Measurement(log.q, log.theta, log.current * digital.gains, log.temperature)
    estimator = friction_estimator(described(slip_friction_of(digital)), RATE)
    first = Measurement(*(x[0] for x in measured))
    adapted, _ = estimator.steps(estimator.init(first), measured)
    np.testing.assert_allclose(adapted.factor[-1], 1.3, atol=0.12)
    few = Measurement(*(x[:600] for x in measured))
    ours, _ = estimator.steps(estimator.init(first), few)
    monkeypatch.setattr("jointwise.runtime.friction_estimator.native", lambda: None)
    reference = friction_estimator(described(slip_friction_of(digital)), RATE)
    assert reference.handle is None
    theirs, _ = reference.steps(reference.init(first), few)
    np.testing.assert_allclose(ours.factor, theirs.factor, atol=1e-9)
    np.testing.assert_allclose(ours.error, theirs.error, atol=1e-9)


@pytest.mark.thorough
def test_parts_of_a_calibrated_coupled_arm_are_those_of_its_motors() -> None:
    model = jw.RobotModel(jw.calibrate(jw.simulate(arm(), duration=15.0, rate=250.0, seed=1, keep=0).log, arm()))
    parts, states = model_parts(model, 250.0, "feed-forward"), MOTION.sample(250.0)
    start = parts.init(states.q[0])
    found, _ = parts.steps(start, Sample(states.q, states.qd, states.qdd))
    planned = model.for_use("feed-forward")
    whole = at_motors(planned.torque(states.q, states.qd, states.qdd, rate=250.0))
    np.testing.assert_allclose(found.body + found.friction, whole, atol=1e-8)
    np.testing.assert_allclose(found.body, at_motors(planned.body_torque(states.q, states.qd, states.qdd)), atol=1e-8)
    guiding = control.hand_guiding(model, 250.0)
    q = states.q[0]
    sample = ControlSample(q, np.zeros(6), C @ q, np.zeros(6), np.zeros(6), np.full(6, 25.0), 0.0)
    torque, _ = guiding.step(guiding.init(sample), sample)
    np.testing.assert_allclose(torque, at_motors(model.gravity(q)[None])[0], atol=0.5)
