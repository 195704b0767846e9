"""The calibrated robot: its dynamics are those of the identified parameters, its payload and mounting are exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from jointwise.description import gravity_vector
from jointwise.errors import DescriptionError, ModelError, ShapeError
from jointwise.estimation.structure import Structure
from jointwise.model import rigid
from jointwise.model.terms import Hysteresis, Offset, polynomial_limits
from jointwise.model.transmission import motor_motion
from jointwise.options import Options
from jointwise.runtime.motion import make_motion, start_states, term_torques
from jointwise.spatial import Array, pseudo_inertia
from kernels import symmetric
from runtime_models import exact, fitted, swinging
from synthetic import synthetic_log

pytestmark = pytest.mark.compat

POINT = (2.5, (0.02, -0.03, 0.1))
INERTIA = np.diag([0.02, 0.03, 0.04])


@pytest.fixture(scope="module")
def model() -> jw.RobotModel:
    return exact("ur5e")


def states(model: jw.RobotModel, samples: int = 50) -> Array:
    return np.random.default_rng(3).uniform(-2.0, 2.0, (3, samples, model.dof))


# -- bodies -----------------------------------------------------------------------------------------------------------


def test_the_dynamics_are_those_of_pinocchio_with_the_same_bodies(model: jw.RobotModel) -> None:
    pin = pytest.importorskip("pinocchio")
    from peers import pinocchio_model

    described = jw.load_robot("ur5e")
    peer = pinocchio_model(described)
    peer.armature = described.rotor_inertias
    data = peer.createData()
    for q, qd, qdd in zip(*states(model, 20), strict=True):
        np.testing.assert_allclose(model.body_torque(q, qd, qdd), pin.rnea(peer, data, q, qd, qdd), atol=1e-9)
        np.testing.assert_allclose(model.mass_matrix(q), symmetric(pin.crba(peer, data, q)), atol=1e-9)
        np.testing.assert_allclose(model.gravity(q), pin.computeGeneralizedGravity(peer, data, q), atol=1e-9)
        np.testing.assert_allclose(model.coriolis(q, qd), pin.computeCoriolisMatrix(peer, data, q, qd) @ qd, atol=1e-9)
        kinetic = pin.computeKineticEnergy(peer, data, q, qd)
        potential = pin.computePotentialEnergy(peer, data, q)
        potential -= pin.computePotentialEnergy(peer, data, np.zeros(6))
        np.testing.assert_allclose(model.energy(q, qd), (kinetic, potential), atol=1e-9)


def test_the_parts_add_up_to_the_torque(model: jw.RobotModel) -> None:
    q, qd, qdd = states(model)
    inertia = np.einsum("kij,kj->ki", model.mass_matrix(q), qdd)
    body = inertia + model.coriolis(q, qd) + model.gravity(q)
    np.testing.assert_allclose(model.body_torque(q, qd, qdd), body, atol=1e-9)
    coriolis = np.einsum("kij,kj->ki", model.coriolis_matrix(q, qd), qd)
    np.testing.assert_allclose(coriolis, model.coriolis(q, qd), atol=1e-9)
    steady = model.torque(q, qd, qdd, friction="steady")
    friction = model.friction(qd, load=body)
    constant = model.torque(q, 0.0 * qd, 0.0 * qdd, friction="steady") - model.gravity(q)
    np.testing.assert_allclose(steady, body + friction + constant, atol=1e-9)


def test_the_described_bodies_cannot_be_taken_for_the_identified_ones() -> None:
    calibration = fitted("planar2")
    q = np.zeros((1, 2))
    with pytest.raises(ModelError, match="calibrated model, which replaces the described bodies"):
        rigid.mass_matrix(calibration.model.robot, q)
    with pytest.raises(ModelError, match="Use the methods of RobotModel"):
        rigid.gravity_torque(calibration.model.robot, q)
    model = jw.RobotModel(calibration)
    links = model.mass_matrix(q[0]) - np.diag(model.robot.rotor_inertias)
    np.testing.assert_allclose(rigid.mass_matrix(model.robot, q)[0], links, atol=1e-12)
    described = rigid.mass_matrix(jw.load_robot("planar2"), q)[0]
    assert np.abs(described - links).max() > 1e-3  # a fit to noisy data is not the description


def test_the_torque_of_a_motion_is_that_of_the_calibration(model: jw.RobotModel) -> None:
    q, qd, qdd = swinging(6)
    planned = make_motion(model.calibration.model, 500.0, q, qd, qdd)
    expected = model.calibration.model.torque(planned, model.calibration.estimate.values)
    np.testing.assert_allclose(model.torque(q, qd, qdd, rate=500.0), expected, atol=1e-9)
    np.testing.assert_allclose(model.current(q, qd, qdd, rate=500.0), expected / model.gains, atol=1e-9)


def test_one_sample_is_in_steady_sliding(model: jw.RobotModel) -> None:
    q, qd, qdd = states(model)
    steady = model.torque(q, qd, qdd, friction="steady")
    assert model.torque(q[0], qd[0], qdd[0]).shape == (6,)
    np.testing.assert_allclose(model.torque(q[0], qd[0], qdd[0]), steady[0], atol=1e-12)
    assert model.mass_matrix(q[0]).shape == (6, 6)
    assert model.jacobian(q[0]).shape == (6, 6)


def test_a_long_motion_is_evaluated_in_chunks_without_a_seam(model: jw.RobotModel, monkeypatch) -> None:
    q, qd, qdd = swinging(6)
    whole = model.torque(q, qd, qdd, rate=500.0, measured_speed=qd + 0.01 * np.sin(np.arange(400))[:, None])
    monkeypatch.setattr("jointwise.runtime.motion.CHUNK", 57)
    parts = model.torque(q, qd, qdd, rate=500.0, measured_speed=qd + 0.01 * np.sin(np.arange(400))[:, None])
    np.testing.assert_allclose(parts, whole, atol=1e-12)


def test_states_carry_a_motion_on(model: jw.RobotModel) -> None:
    dynamics, values = model.calibration.model, model.calibration.estimate.values
    motion = motor_motion(dynamics.robot, make_motion(dynamics, 500.0, *swinging(6)))
    load = np.zeros_like(motion.q)
    whole, _ = term_torques(dynamics, motion, values, load)
    states = start_states(dynamics, 500.0)
    for k in range(motion.samples):
        part, states = term_torques(dynamics, motion.part(slice(k, k + 1)), values, load[k : k + 1], states)
        np.testing.assert_allclose(part[0], whole[k], atol=1e-12)


# -- forward dynamics and energy --------------------------------------------------------------------------------------


def test_forward_dynamics_inverts_the_torque_with_load_dependent_friction(model: jw.RobotModel) -> None:
    q, qd, qdd = states(model)
    T = np.full(6, 35.0)
    torque = model.torque(q, qd, qdd, friction="steady", temperature=T)
    np.testing.assert_allclose(model.forward_dynamics(q, qd, torque, temperature=T), qdd, atol=1e-7)
    np.testing.assert_allclose(
        model.forward_dynamics(q, qd, model.body_torque(q, qd, qdd), friction=False), qdd, atol=1e-7
    )


def test_power_of_the_bodies_is_the_rate_of_their_energy(model: jw.RobotModel) -> None:
    rate = 20_000.0
    q, qd, qdd = swinging(6, 200, rate)
    q, qd, qdd = q[:40], qd[:40], qdd[:40]
    energy = np.sum(model.energy(q, qd), axis=0)
    power = np.sum(qd * model.body_torque(q, qd, qdd), axis=1)
    np.testing.assert_allclose(np.diff(energy) * rate, 0.5 * (power[1:] + power[:-1]), atol=2e-4 * np.abs(power).max())


# -- payload and mounting ---------------------------------------------------------------------------------------------


def test_a_payload_adds_the_torque_of_its_body(model: jw.RobotModel) -> None:
    q, qd, qdd = states(model)
    loaded = model.with_payload(*POINT, INERTIA)
    described = jw.load_robot("ur5e")
    payload, rotors = jw.Payload(*POINT, INERTIA), described.rotor_inertias
    expected = rigid.inverse_dynamics(described, q, qd, qdd, payload=payload, rotor_inertias=rotors)
    np.testing.assert_allclose(loaded.body_torque(q, qd, qdd), expected, atol=1e-9)
    M = rigid.mass_matrix(described, q, payload=payload, rotor_inertias=rotors)
    np.testing.assert_allclose(loaded.mass_matrix(q), M, atol=1e-9)
    assert loaded.payload is not None
    assert loaded.payload.mass == 2.5
    assert model.payload is None


def test_a_payload_replaces_the_one_before(model: jw.RobotModel) -> None:
    q, qd, qdd = states(model)
    twice = model.with_payload(*POINT, INERTIA).with_payload(1.0)
    np.testing.assert_allclose(twice.torque(q, qd, qdd), model.with_payload(1.0).torque(q, qd, qdd), atol=1e-9)
    bare = twice.without_payload()
    assert bare.payload is None
    np.testing.assert_allclose(bare.torque(q, qd, qdd), model.torque(q, qd, qdd), atol=1e-9)


def test_the_payload_of_the_training_log_can_be_put_down() -> None:
    loaded, bare = jw.RobotModel(fitted("planar2", 2.0)), jw.RobotModel(fitted("planar2"))
    q, qd, qdd = states(bare, 20)
    apart = np.abs(loaded.body_torque(q, qd, qdd) - bare.body_torque(q, qd, qdd)).max()
    left = np.abs(loaded.without_payload().body_torque(q, qd, qdd) - bare.body_torque(q, qd, qdd)).max()
    assert left < 0.05 * apart


def test_a_model_with_payload_survives_its_file_and_predicts_logs(tmp_path: Path) -> None:
    loaded = jw.RobotModel(fitted("planar2")).with_payload(1.5, (0.0, 0.0, 0.1), np.diag([0.01, 0.01, 0.005]))
    jw.save_model(loaded, tmp_path / "loaded.json")
    again = jw.load_model(tmp_path / "loaded.json")
    assert again.payload is not None
    np.testing.assert_allclose(again.payload.inertia, np.diag([0.01, 0.01, 0.005]))
    q, qd, qdd = states(loaded, 20)
    np.testing.assert_array_equal(again.torque(q, qd, qdd), loaded.torque(q, qd, qdd))
    carried = jw.Payload(1.5, (0.0, 0.0, 0.1))
    log = synthetic_log(jw.load_robot("planar2"), duration=10.0, rate=100.0, seed=4, payload=carried).log
    with_it, without = jw.validate(again, log).mean_nmse, jw.validate(again.without_payload(), log).mean_nmse
    assert with_it < 0.1 * without
    ranked = jw.compare({"loaded": again, "bare": again.without_payload().calibration}, log)
    assert [row.name for row in ranked] == ["loaded", "bare"]
    np.testing.assert_array_equal(jw.predict(again, log), again.predict(log))
    np.testing.assert_allclose(again.residuals(log), log.current - again.predict(log))


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ((-1.0,), "payload mass must be finite and >= 0 kg. Got -1.0 instead."),
        ((np.nan,), "payload mass must be finite"),
        ((1.0, (0.0, 0.0)), "centre of mass must have shape"),
        ((1.0, (0.0, 0.0, 0.1), np.diag([1.0, 1.0, 3.0])), "triangle inequality: 3 > 1 + 1"),
        ((1.0, (0.0, 0.0, 0.1), np.diag([1.0, 1.0, -1.0])), "negative principal moment"),
        ((1.0, (0.0, 0.0, 0.1), np.eye(3) + np.eye(3, k=1)), "not symmetric"),
    ],
)
def test_payloads_that_are_no_bodies_are_refused(model: jw.RobotModel, payload: tuple, words: str) -> None:
    with pytest.raises(DescriptionError, match=words.replace("+", r"\+")):
        model.with_payload(*payload)


def test_another_mounting_has_the_gravity_of_the_same_bodies() -> None:
    described = jw.load_robot("ur5e")
    tilted = exact("ur5e", "tilt:x:30")  # shows every parameter that any gravity shows
    q, qd, qdd = states(tilted)
    for mounting in ("table", "ceiling", "wall", "tilt:y:70"):
        expected = rigid.inverse_dynamics(
            described, q, qd, qdd, gravity=mounting, rotor_inertias=described.rotor_inertias
        )
        moved = tilted.with_mounting(mounting)
        np.testing.assert_allclose(moved.body_torque(q, qd, qdd), expected, atol=1e-9)
        np.testing.assert_allclose(moved.gravity_vector, gravity_vector(mounting))
        friction = tilted.torque(q, qd, qdd, friction="steady") - tilted.body_torque(q, qd, qdd)
        assert np.abs(friction).max() > 1.0


def test_a_mounting_that_shows_unknown_parameters_is_refused() -> None:
    on_table = exact("ur5e")
    q = states(on_table)[0]
    ceiling = rigid.gravity_torque(jw.load_robot("ur5e"), q, gravity="ceiling")
    np.testing.assert_allclose(on_table.with_mounting("ceiling").gravity(q), ceiling, atol=1e-9)
    with pytest.raises(ModelError, match="does not determine mX1, mYR1, which act under 0 9.81 0"):
        on_table.with_mounting("wall")
    with pytest.raises(DescriptionError, match="Did you mean ceiling"):
        on_table.with_mounting("cieling")


def test_physical_bodies_show_what_another_mounting_needs() -> None:
    calibration = fitted("ur5e")
    assert calibration.physical is not None
    model = jw.RobotModel(calibration)
    q = states(model)[0]
    wall = model.with_mounting("wall")
    described = jw.load_robot("ur5e")
    expected = rigid.gravity_torque(described, q, gravity="wall")
    assert np.abs(wall.gravity(q) - expected).max() < 0.1 * np.abs(expected).max()
    status = dict(
        zip([p.name for p in wall.calibration.model.parameters], wall.calibration.estimate.status, strict=True)
    )
    assert {status["mX1"], status["mYR1"]} == {"undetermined"}
    back = wall.with_mounting("table")
    np.testing.assert_allclose(back.gravity(q), model.gravity(q), atol=1e-9)
    with pytest.raises(ModelError, match="Calibrate with physical parameters"):
        jw.RobotModel(replace(calibration, physical=None)).with_mounting("wall")


def test_consistent_bodies_exist_also_with_a_payload() -> None:
    model = jw.RobotModel(fitted("ur5e"))
    q, qd, qdd = states(model)
    for each in (model.consistent(), model.with_payload(*POINT, INERTIA).consistent()):
        for link in each.robot.links:
            assert np.linalg.eigvalsh(pseudo_inertia(link.inertial))[0] > 0.0
    loaded = model.with_payload(*POINT, INERTIA)
    added = loaded.body_torque(q, qd, qdd) - model.body_torque(q, qd, qdd)
    consistent = loaded.consistent().body_torque(q, qd, qdd) - model.consistent().body_torque(q, qd, qdd)
    np.testing.assert_allclose(consistent, added, atol=1e-9)
    physical = model.calibration.physical
    assert physical is not None
    np.testing.assert_allclose(model.consistent().robot.inertials, physical.inertials, atol=1e-9)


# -- intervals --------------------------------------------------------------------------------------------------------


def test_prediction_intervals_cover_another_log() -> None:
    robot = jw.load_robot("planar2")
    training = synthetic_log(robot, duration=30.0, rate=100.0, seed=5, current_noise=0.1)
    scale = training.truth.friction[0].scale
    limits = tuple(polynomial_limits(4, scale).tolist())
    structure = Structure("hysteresis", "square", (1.0, 2.0), limits=limits)
    options = Options(structure=structure, free=(), position_cutoff=20.0, lag=0.0, gains=tuple(training.truth.gains))
    model = jw.RobotModel(jw.calibrate(training.log, robot, options=options))
    log = synthetic_log(robot, duration=30.0, rate=100.0, seed=6, current_noise=0.1).log
    for level, margin in ((0.5, 0.1), (0.95, 0.03)):  # residuals at reversals have heavier tails than a normal law
        low, high = model.predict_interval(log, level=level)
        covered = ((low < log.current) & (log.current < high)).mean(axis=0)
        np.testing.assert_allclose(covered, level, atol=margin)


def test_intervals_widen_with_the_level_and_away_from_the_data(model: jw.RobotModel) -> None:
    q, qd, qdd = swinging(6, 50)
    low, high = model.torque_interval(q, qd, qdd)
    wide_low, wide_high = model.torque_interval(q, qd, qdd, level=0.99)
    torque = model.torque(q, qd, qdd)
    assert (wide_low < low).all()
    assert (high < wide_high).all()
    np.testing.assert_allclose(0.5 * (low + high), torque, atol=1e-9)
    mean_low, mean_high = model.torque_interval(q, qd, qdd, observation=False)
    assert (mean_high - mean_low < high - low).all()
    with pytest.raises(ModelError, match="level must be between 0 and 1"):
        model.torque_interval(q, qd, qdd, level=95)


def test_an_unidentified_parameter_that_acts_makes_the_interval_infinite(model: jw.RobotModel) -> None:
    status = ["determined"] * model.calibration.model.count
    names = [info.name for info in model.calibration.model.parameters]
    status[names.index("offset_2")] = "undetermined"
    estimate = replace(model.calibration.estimate, status=tuple(status))
    uncertain = jw.RobotModel(replace(model.calibration, estimate=estimate))
    low, high = uncertain.torque_interval(*swinging(6, 20))
    assert np.isinf(low[:, 1]).all()
    assert np.isfinite(high[:, [0, 2, 3, 4, 5]]).all()


# -- wrong input ------------------------------------------------------------------------------------------------------


def test_wrong_arrays_are_refused_in_one_line(model: jw.RobotModel) -> None:
    q, qd, qdd = states(model, 5)
    with pytest.raises(ShapeError, match=r"q must have shape \(samples, 6\)"):
        model.torque(q[:, :5], qd, qdd)
    with pytest.raises(ShapeError, match=r"qd must have shape \(5, 6\)"):
        model.torque(q, qd[:4], qdd)
    broken = qdd.copy()
    broken[2, 3] = np.nan
    with pytest.raises(ShapeError, match="qdd must be finite. Got nan at sample 2, joint 4"):
        model.torque(q, qd, broken)
    with pytest.raises(ModelError, match="friction must be motion, steady or none. Got 'dry' instead."):
        model.torque(q, qd, qdd, friction="dry")
    with pytest.raises(ModelError, match="rate must be a positive number of Hz"):
        model.torque(q, qd, qdd, rate=0.0)
    with pytest.raises(ShapeError, match="temperature must be a number"):
        model.torque(q, qd, qdd, temperature=np.zeros(4))


def test_a_model_of_torques_has_no_currents(model: jw.RobotModel) -> None:
    of_torques = jw.RobotModel(replace(model.calibration, output="torque", gains=np.ones(6)))
    with pytest.raises(ModelError, match="has no drive gains"):
        of_torques.current(*states(model, 3))


def test_friction_is_odd_and_grows_with_load_and_temperature(model: jw.RobotModel) -> None:
    speed = np.random.default_rng(1).uniform(0.1, 1.0, (30, 6))
    np.testing.assert_allclose(model.friction(-speed), -model.friction(speed), atol=1e-12)
    assert (model.friction(speed, load=30.0) >= model.friction(speed) - 1e-12).all()
    warm = model.friction(speed, temperature=40.0) - model.friction(speed)
    assert np.abs(warm[:, [1, 3]]).min() > 1e-3
    np.testing.assert_array_equal(warm[:, [0, 2, 4, 5]], 0.0)
    assert any(isinstance(term, Offset) for term in model.calibration.model.terms[0])
    assert any(isinstance(term, Hysteresis) for term in model.calibration.model.terms[1])


def test_kinematics_are_those_of_the_description(model: jw.RobotModel) -> None:
    q = states(model)[0]
    described = jw.load_robot("ur5e")
    np.testing.assert_array_equal(model.jacobian(q), rigid.jacobian(described, q))
    frames = model.forward_kinematics(q)
    np.testing.assert_array_equal(frames.position, rigid.forward_kinematics(described, q).position)
    assert frames.rotation.shape == (50, 7, 3, 3)


def test_controllers_take_the_calibrated_robot(model: jw.RobotModel) -> None:
    described = jw.load_robot("ur5e")
    tilted = exact("ur5e", "tilt:x:30")
    rng = np.random.default_rng(0)
    start, stroke = rng.uniform(-1.0, 1.0, 6), rng.uniform(-0.5, 0.5, 6)

    def motion(t: Array, order: int) -> Array:
        x = (1.0 - np.cos(t), np.sin(t), np.cos(t), -np.sin(t), -np.cos(t))[order]
        return (start if order == 0 else 0.0) + np.outer(x, stroke)

    for make in (jw.control.computed_torque, jw.control.pd_gravity):
        ours = make(tilted, motion, 200.0, duration=0.5).law
        theirs = make(described, motion, 200.0, duration=0.5, gravity="tilt:x:30").law
        for name in ("torque", "k_theta", "k_speed", "theta"):
            if getattr(theirs, name) is not None:
                np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-7)
    upside = jw.control.computed_torque(model, motion, 200.0, duration=0.5, gravity="ceiling").law
    assert np.abs(upside.torque - jw.control.computed_torque(model, motion, 200.0, duration=0.5).law.torque).max() > 1.0
