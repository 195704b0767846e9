"""Coupled transmissions: closed forms, energy, and known arms recovered from their logs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import jointwise as jw
from cli_runs import run
from jointwise.calibration import Options
from jointwise.data import Log, Origin, write_log
from jointwise.description import Transmission
from jointwise.description.transmission import coupled, parse_coupling, refuse_coupled
from jointwise.description.urdf import urdf_text
from jointwise.design import fourier_trajectory
from jointwise.errors import DescriptionError, EstimationError, ImplausibleError
from jointwise.estimation.structure import Structure
from jointwise.joint import JointModel, identify_friction, joint_record
from jointwise.joint.drives import identify_gains_from_payload, inertias_from_targets
from jointwise.model.base import base_parameters
from jointwise.model.dynamics import Dynamics
from jointwise.model.rigid import inverse_dynamics, mass_matrix
from jointwise.model.terms import Coulomb, Offset, Viscous
from jointwise.model.transmission import motor_regressor
from jointwise.motion import Motion
from jointwise.runtime.observers import observed_joint

COUPLING = "6:5:1,6:4:-0.3,5:4:0.4"
ROTORS = np.array([1.5, 1.5, 0.8, 0.3, 0.3, 0.3])
COULOMB = np.array([8.0, 8.0, 5.0, 2.0, 1.5, 1.2])
VISCOUS = np.array([9.0, 9.0, 6.0, 2.0, 1.5, 1.0])
PLAIN = Options(structure=Structure("tanh"), free=(), position_cutoff=10.0, lag=0.0)
EXAMPLE = """\
schema = 1
name = "pair"
convention = "dh"
[transmission]
{coupling}
[[joint]]
a = 0.3
alpha = 0
d = 0
[[joint]]
a = 0.2
alpha = 0
d = 0
"""


def arm(coupling=COUPLING, coordinates=None):
    """Return a six-axis arm with a coupled wrist."""
    return jw.load_robot("ur5e", coupling=coupling, coordinates=coordinates)


def states(count=40, seed=1):
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (3, count, 6))


def coupled_log(robot, seed, *, coordinates="joint", duration=20.0, noise=0.05):
    """Return the log of a coupled arm, computed in motor coordinates without any code of the model."""
    motion, C = fourier_trajectory(robot, duration, seed), robot.transmission.matrix
    t = np.arange(0.0, duration, 0.01)
    at = motion.at(t)
    joint = inverse_dynamics(robot, at.q, at.qd, at.qdd)
    thd, thdd = at.qd @ C.T, at.qdd @ C.T
    motor = np.linalg.solve(C.T, joint.T).T + ROTORS * thdd + COULOMB * np.tanh(thd / 0.01) + VISCOUS * thd
    motor += np.random.default_rng(seed).normal(scale=noise, size=motor.shape)
    q, torque = (at.q @ C.T, motor) if coordinates == "motor" else (at.q, motor @ C)
    return Log(t, q, torque=torque, origin=Origin(path="coupled"))


def test_torques_of_the_motors_do_the_work_of_the_joints():
    robot, (q, qd, qdd) = arm(), states()
    C = robot.transmission.matrix
    pi = np.concatenate([robot.inertials.ravel(), ROTORS])
    motor = motor_regressor(robot, q, qd, qdd, rotors=True).torque(pi)
    joint = inverse_dynamics(robot, q, qd, qdd)
    rotors = (qdd @ C.T) * ROTORS
    power = np.sum(motor * (qd @ C.T), axis=1)
    assert np.allclose(power, np.sum(joint * qd, axis=1) + np.sum(rotors * (qd @ C.T), axis=1), rtol=1e-10)
    assert np.allclose(motor, np.linalg.solve(C.T, joint.T).T + rotors, rtol=1e-10, atol=1e-10)


def test_kinetic_energy_grows_by_the_power_of_the_motors():
    """d/dt (½ q̇ᵀ (M + Cᵀ Ia C) q̇) is the power of the motors where gravity does not act."""
    robot = replace(arm(), name="weightless")
    motion, C, h = fourier_trajectory(robot, 10.0, 3), arm().transmission.matrix, 1e-5
    t = np.linspace(1.0, 9.0, 50)
    pi = np.concatenate([robot.inertials.ravel(), ROTORS])
    at = motion.at(t)
    motor = motor_regressor(robot, at.q, at.qd, at.qdd, gravity=[0.0, 0.0, 0.0], rotors=True).torque(pi)

    def energy(times):
        s = motion.at(times)
        M = mass_matrix(robot, s.q) + C.T @ np.diag(ROTORS) @ C
        return 0.5 * np.einsum("si,sij,sj->s", s.qd, M, s.qd)

    rise = (energy(t + h) - energy(t - h)) / (2.0 * h)
    assert np.allclose(rise, np.sum(motor * (at.qd @ C.T), axis=1), atol=1e-5 * np.abs(rise).max())


def test_base_parameters_span_the_coupled_rotors():
    robot, (q, qd, qdd) = arm(), states(200)
    base = base_parameters(robot, rotors=True)
    pi = np.concatenate([robot.inertials.ravel(), ROTORS])
    terms = ((Offset(), Coulomb(), Viscous((1.0,))),) * 6
    model = Dynamics(robot, (0.0, 0.0, -9.81), True, terms)
    rigid = model.body_torque(model.rigid_columns(Motion(1.0, q, qd, qdd)), base.from_standard(pi))
    expected = motor_regressor(robot, q, qd, qdd, gravity=[0.0, 0.0, -9.81], rotors=True).torque(pi)
    assert np.allclose(rigid, expected, atol=1e-9 * np.abs(expected).max())


def test_identity_is_no_coupling():
    plain, same = jw.load_robot("ur5e"), replace(jw.load_robot("ur5e"), transmission=Transmission(np.eye(6)))
    q, qd, qdd = states()
    a, b = (motor_regressor(robot, q, qd, qdd, rotors=True).matrices() for robot in (plain, same))
    assert np.allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("coordinates", ["joint", "motor"])
def test_a_coupled_arm_is_recovered(coordinates, tmp_path):
    robot = arm(coordinates=coordinates)
    train, test = (coupled_log(robot, seed, coordinates=coordinates) for seed in (1, 2))
    model = jw.calibrate(train, robot, options=PLAIN)
    good = jw.validate(model, test)
    assert min(joint.r2 for joint in good.joints) > 0.99
    values = dict(zip((p.name for p in model.model.parameters), model.estimate.values, strict=True))
    viscous = [values[next(n for n in values if n.startswith("Fv") and n.endswith(f"_{j}"))] for j in range(1, 7)]
    assert np.allclose(viscous, VISCOUS, rtol=0.08)
    assert np.isclose(values["Ia6"], ROTORS[5], rtol=0.1)
    jw.save_model(model, tmp_path / "model.json")
    again = jw.load_calibration(tmp_path / "model.json")
    assert np.array_equal(again.predict(test), model.predict(test))
    assert again.model.robot.transmission.coordinates == coordinates


@pytest.mark.parametrize("output", ["torque", "current"])
@pytest.mark.parametrize(("declared", "true"), [("joint", "motor"), ("motor", "joint"), ("joint", "joint")])
def test_coordinates_of_a_log_that_were_declared_wrongly_are_named(declared, true, output):
    robot = arm(coordinates=declared)
    log = coupled_log(robot, 3, coordinates=true)
    options = PLAIN
    if output == "current":
        motor = log.torque if true == "motor" else robot.transmission.motor_torque(log.torque)
        log = replace(log, torque=None, current=motor / 10.0)
        options = replace(PLAIN, gains=[10.0] * 6)
    if declared == true:
        assert jw.calibrate(log, robot, options=options).setup == "ok"
        return
    words = f"declared log coordinates.*positions of the {true}s.*--log-coordinates {true}"
    with pytest.raises(ImplausibleError, match=words):
        jw.calibrate(log, robot, options=options)


def test_a_coupling_that_is_not_declared_is_far_worse():
    robot = arm()
    train, test = (coupled_log(robot, seed) for seed in (1, 2))
    right = jw.validate(jw.calibrate(train, robot, options=PLAIN), test)
    plain = jw.calibrate(train, jw.load_robot("ur5e"), options=PLAIN, accept_implausible=True)
    wrong = jw.validate(plain, test)
    opposite = arm("6:5:-1,6:4:0.3,5:4:-0.4")
    with pytest.raises(ImplausibleError, match="or check the coupling"):
        jw.calibrate(train, opposite, options=PLAIN)
    sign = jw.validate(jw.calibrate(train, opposite, options=PLAIN, accept_implausible=True), test)
    straight = arm("6:5:0")
    train, test = (coupled_log(straight, seed) for seed in (1, 2))
    uncoupled = jw.validate(jw.calibrate(train, straight, options=PLAIN), test)
    assert right.mean_nmse < 1.5 * uncoupled.mean_nmse + 1e-3
    for other in (wrong, sign):
        assert max(joint.nmse for joint in other.joints[3:]) > 10.0 * max(joint.nmse for joint in right.joints[3:])


def test_the_model_of_a_coupled_arm_is_used_on_arrays():
    robot, gains = arm(), np.array([12.0, 12.0, 10.0, 8.0, 8.0, 8.0])
    C, log = robot.transmission.matrix, coupled_log(arm(), 1)
    log = replace(log, torque=None, current=robot.transmission.motor_torque(log.torque) / gains)
    options = replace(PLAIN, gains=gains.tolist())
    model = jw.RobotModel(jw.calibrate(log, robot, options=options, physical=False))
    t = np.arange(0.0, 10.0, 0.01)
    at = fourier_trajectory(robot, 10.0, 4).at(t)
    thd, thdd = at.qd @ C.T, at.qdd @ C.T
    motor = np.linalg.solve(C.T, inverse_dynamics(robot, at.q, at.qd, at.qdd).T).T
    motor += ROTORS * thdd + COULOMB * np.tanh(thd / 0.01) + VISCOUS * thd
    error = model.current(at.q, at.qd, at.qdd) - motor / gains
    assert np.all(np.mean(error**2, axis=0) < 0.01 * np.var(motor / gains, axis=0))
    torque = model.torque(at.q, at.qd, at.qdd, friction="steady")
    assert np.allclose(model.forward_dynamics(at.q, at.qd, torque), at.qdd, atol=1e-7)
    still = model.torque(at.q, at.qd, 0.0 * at.q, friction="none")
    inertia = np.einsum("sij,sj->si", model.mass_matrix(at.q), at.qdd)
    assert np.allclose(still + inertia, model.body_torque(at.q, at.qd, at.qdd), atol=1e-9)
    kinetic, potential = model.energy(at.q, at.qd)
    power = np.sum(model.body_torque(at.q, at.qd, at.qdd) * at.qd, axis=1)
    work = np.cumsum(0.5 * (power[1:] + power[:-1])) * 0.01
    assert np.allclose(np.diff(kinetic + potential).cumsum(), work, atol=2e-3 * np.abs(work).max())


@pytest.mark.parametrize("output", ["torque", "current"])
@pytest.mark.parametrize("coupling", ["6:5:-0.5", COUPLING])
def test_a_coupling_that_is_not_declared_is_named(output, coupling):
    """Joint torques and motor currents contradict an uncoupled arm; the message has the declaration that fits."""
    robot, gains = arm(coupling), np.array([12.0, 12.0, 10.0, 8.0, 8.0, 8.0])
    log, options = coupled_log(robot, 3), PLAIN
    if output == "current":
        log = replace(log, torque=None, current=robot.transmission.motor_torque(log.torque) / gains)
        options = replace(PLAIN, gains=gains.tolist())
    with pytest.raises(ImplausibleError, match="contradict the declared coupling") as problem:
        jw.calibrate(log, jw.load_robot("ur5e"), options=options)
    stated = re.search(r"--coupling (\S+)\.", str(problem.value)).group(1)
    found, true = ({(i, j): r for i, j, r in parse_coupling(text)} for text in (stated, coupling))
    assert found == pytest.approx(true, abs=0.03)


def test_an_arm_without_coupling_is_not_suspected():
    """Nor does friction that slip elements describe badly make a coupling of ratio zero."""
    model = jw.calibrate(coupled_log(arm("6:5:0"), 3), jw.load_robot("ur5e"), options=PLAIN, physical=False)
    assert {check.subject: check.severity for check in model.plausibility}["coupling"] == "ok"


def test_currents_are_those_of_the_motors():
    robot = arm()
    train, test = (coupled_log(robot, seed) for seed in (1, 2))
    gains = np.array([12.0, 12.0, 10.0, 8.0, 8.0, 8.0])
    swap = [
        replace(log, torque=None, current=robot.transmission.motor_torque(log.torque) / gains) for log in (train, test)
    ]
    model = jw.calibrate(swap[0], robot, options=replace(PLAIN, gains=gains.tolist()))
    assert min(joint.r2 for joint in jw.validate(model, swap[1]).joints) > 0.99


@pytest.mark.parametrize(
    "coupling",
    ['coupling = "2:1:0.5"', "motor_from_joint = [[1, 0], [0.5, 1]]", "joint_from_motor = [[1, 0], [-0.5, 1]]"],
)
def test_description_in_three_forms(tmp_path, coupling):
    path = tmp_path / "pair.toml"
    path.write_text(EXAMPLE.format(coupling=f'{coupling}\ncoordinates = "motor"'))
    robot = jw.load_robot(path)
    assert np.allclose(robot.transmission.matrix, [[1.0, 0.0], [0.5, 1.0]])
    assert robot.transmission.coordinates == "motor"


@pytest.mark.parametrize(
    ("coupling", "words"),
    [
        ('coupling = "2:1"', "coupling must be MOTOR:JOINT:RATIO"),
        ('coupling = "3:1:1"', "joints must be from 1 to 2"),
        ('coupling = "1:1:1"', "turns with its joint anyway"),
        ('coupling = "2:1:1,2:1:3"', "stated twice"),
        ("motor_from_joint = [[1, 1], [1, 1]]", "singular"),
        ("motor_from_joint = [[1, 1]]", "2 rows of 2 numbers"),
        ("", "state one of"),
        ('coupling = "2:1:1"\ncoordinates = "both"', "must be joint or motor"),
    ],
)
def test_wrong_descriptions(tmp_path, coupling, words):
    path = tmp_path / "pair.toml"
    path.write_text(EXAMPLE.format(coupling=coupling))
    with pytest.raises(DescriptionError, match=words):
        jw.load_robot(path)


def test_couplings_as_text():
    assert parse_coupling("6:5:1, 6:4:-0.5") == [(6, 5, 1.0), (6, 4, -0.5)]
    assert coupled([(2, 1, 3.0)], 2).matrix.tolist() == [[1.0, 0.0], [3.0, 1.0]]
    with pytest.raises(DescriptionError, match="has no coupling"):
        jw.load_robot("ur5e", coordinates="motor")


def test_observers_of_single_joints_refuse_what_they_do_not_model():
    refuse_coupled(arm(), "an observer of a single joint", 0)
    with pytest.raises(DescriptionError, match="joint 6: an observer of a single joint does not model"):
        observed_joint(arm(), JointModel("ur5e", 5, {}))
    with pytest.raises(DescriptionError, match="the identification of gains by a payload does not model"):
        identify_gains_from_payload([], [], arm(), 1.0)


def test_command_line(tmp_path):
    robot = arm("6:5:1")
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(urdf_text(robot))
    for name, seed in (("train.csv", 1), ("test.csv", 2)):
        write_log(coupled_log(robot, seed, duration=12.0), tmp_path / name)
    options = ["--direction", "tanh", "--load", "none", "--viscous-powers", "1", "--stribeck", "0", "--no-ripple"]
    model = tmp_path / "model.json"
    done = run("calibrate", tmp_path / "train.csv", "--robot", urdf, "--coupling", "6:5:1", *options, "--output", model)
    assert done.code == 0, done.err
    assert run("validate", model, tmp_path / "test.csv", "--min-r2", "0.98").code == 0
    assert run("inspect", tmp_path / "train.csv", "--robot", urdf, "--coupling", "6:5:1").code == 0
    wrong = run("inspect", tmp_path / "train.csv", "--robot", urdf, "--coupling", "6:9:1")
    assert wrong.code != 0
    assert "joints must be from 1 to 6" in wrong.err


def test_the_friction_of_a_motor_is_found_while_another_joint_turns_it() -> None:
    """Joint 5 alone moves, and motor 6 with it: the records of both have the friction of their motors."""
    robot = jw.load_robot("ur5e", coupling="6:5:1")
    made = jw.simulate(robot, "constant-speed", joint=4, rate=250.0, seed=3, keep=0)
    links = replace(made.log, theta=None)
    for j in (4, 5):
        part, truth = identify_friction(joint_record(links, robot, j)), made.digital.joints[j].friction
        assert part.value("F_C").value == pytest.approx(truth.coulomb, rel=0.03)
        assert part.value("F_V1").value == pytest.approx(truth.viscous, rel=0.05)
    with pytest.raises(EstimationError):
        identify_friction(joint_record(links, jw.load_robot("ur5e"), 5))  # undeclared: joint 6 does not move
    drives = inertias_from_targets(jw.simulate(robot, duration=6.0, rate=100.0, seed=1, keep=0).log, robot)
    np.testing.assert_allclose([d.alone.value for d in drives[4:]], robot.rotor_inertias[4:], rtol=0.02)
