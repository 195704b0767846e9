"""The digital twin: closing the circle, joint files, what comes from default values, wrong input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import computed
import jointwise as jw
from cli_runs import done, refused, run
from jointwise.errors import ModelError
from jointwise.estimation.structure import Structure
from jointwise.experiment.twin import _steady_law
from jointwise.joint.gear import transmission_of
from jointwise.joint.model import JointModel, save_joints
from jointwise.joint.part import Part, value_of
from jointwise.model.periodic_table import TURN
from jointwise.model.spring import Cubic, Segments
from jointwise.model.terms import Coulomb, Hysteresis, Stribeck, Viscous
from jointwise.options import Options
from jointwise.runtime.motion import make_motion, term_torques
from jointwise.simulation.recording import digital_robot_from_truth
from jointwise.simulation.robot import DigitalRobot, step
from jointwise.simulation.robot.joint import kinematic_error

STRUCTURE = Structure(
    "hysteresis", "square", (1.0, 2.0), limits=Hysteresis.geometric_limits(7, 1e-5, 1e-2), stribeck=0.05
)
QUICK = Options(structure=STRUCTURE, free=(), position_cutoff=10.0, lag=0.0)


@pytest.fixture(scope="module")
def model():
    log = jw.simulate("ur5e", duration=20.0, rate=200.0, seed=1, keep=0).log
    return jw.RobotModel(computed.calibrated(log, "ur5e", options=QUICK))


@pytest.fixture(scope="module")
def pair(model):
    """Return the original robot and its twin on a motion that the model has not seen."""
    original = jw.simulate("ur5e", "bspline", duration=10.0, rate=200.0, seed=5)
    return original, jw.simulate(model, original.experiment, duration=10.0, rate=200.0, seed=5)


def rms(values):
    return np.sqrt(np.mean(np.square(values), axis=0))


def test_the_twin_runs_as_the_original(model, pair):
    original, twin = (run.log for run in pair)
    difference, residual = rms(twin.current - original.current), rms(model.residuals(original))
    assert (difference < residual).all()
    error, other = original.q - original.q_des, twin.q - twin.q_des
    assert (rms(other - error) < 0.1 * rms(error)).all()


def test_a_typical_robot_with_other_bodies_is_no_twin(pair):
    original = pair[0]
    heavier = replace(
        jw.load_robot("ur5e"),
        links=tuple(
            jw.Link(link.name, None if link.inertial is None else 1.2 * link.inertial)
            for link in jw.load_robot("ur5e").links
        ),
    )
    other = jw.simulate(heavier, original.experiment, duration=10.0, rate=200.0, seed=5)
    shown = rms(other.log.current - original.log.current)[1:3]  # those that carry the arm
    assert (shown > 3.0 * rms(pair[1].log.current - original.log.current)[1:3]).all()


def test_identified_friction_and_drives_replace_typical_ones(model, pair):
    truth, twin = pair[0].digital, jw.make_twin(model)
    for real, found in zip(truth.joints, twin.joints, strict=True):
        v = np.array([0.3, 0.8])
        steady = [j.friction.level(v, 0.0 * v, 20.0 + 0.0 * v) + j.friction.viscous * v for j in (real, found)]
        assert steady[1] == pytest.approx(steady[0], rel=0.15)
        assert found.motor.gain == pytest.approx(real.motor.gain)
        assert found.inertia == pytest.approx(real.inertia, rel=0.1)
    assert "stiffness: typical value" in twin.notes
    assert pair[1].truth["twin"]["notes"] == list(twin.notes)


SPRING = {"K1": 1e4, "K2": 1.5e4, "K3": 2e4, "T1": 10.0, "T2": 40.0}


def joint_parts():
    segments = Part(
        "stiffness", "segments",
        tuple(value_of(name, "Nm", x, 0.0) for name, x in SPRING.items()),
        90.0, settings={"kind": "segments"}, ranges={"phi": (-5e-3, 5e-3)},
    )  # fmt: skip
    waves = {"mean": 0.0, "orders": [1, 2], "amplitudes": [4e-4, 2e-4], "phases": [0.3, 1.1]}
    lost = {"mean": 3e-4, "orders": [1], "amplitudes": [1e-4], "phases": [0.0]}
    gear = Part(
        "transmission", "maps", (value_of("offset", "rad", 0.0, 1e-6),), 90.0,
        settings={"kinematic_error": waves, "lost_motion": lost, "reach": 0.02}, ranges={"theta": (0.0, TURN)},
    )  # fmt: skip
    motor = Part("motor", "gain", (value_of("gain", "Nm/A", 10.6, 0.1), value_of("lag", "s", 2e-3, 1e-4)), 90.0)
    friction = Part("friction", "friction", (value_of("F_C", "Nm", 9.0, 0.1), value_of("F_V1", "Nm", 4.0, 0.1)), 90.0)
    return {part.phenomenon: part for part in (segments, gear, motor, friction)}


def test_joint_files_add_springs_gears_drives_and_friction(model):
    known = JointModel("ur5e", 1, joint_parts())
    twin = jw.make_twin(model, [known])
    made, maps = twin.joints[1], transmission_of(known.parts["transmission"])
    angles = np.linspace(0.0, TURN, 200)
    assert made.stiffness == Segments(**SPRING)
    assert kinematic_error(made.kinematic_error, angles) == pytest.approx(maps.error(angles), abs=1e-9)
    assert made.lost_motion.fraction * made.backlash.at(angles) == pytest.approx(maps.backlash(angles), abs=1e-7)
    assert made.motor.lag == 2e-3
    assert (made.friction.coulomb, made.friction.viscous) == pytest.approx((9.0, 4.0), rel=0.03)
    assert "stiffness: typical value (joint 1, 3, 4, 5, 6)" in twin.notes
    assert isinstance(twin.joints[0].stiffness, Cubic)


def test_a_joint_of_another_robot_is_refused(model):
    with pytest.raises(ModelError, match="joint files must be of ur5e"):
        jw.make_twin(model, [JointModel("ur10e", 1, joint_parts())])


def test_a_model_without_physical_bodies_is_refused(model):
    with pytest.raises(ModelError, match="no physical parameters"):
        jw.make_twin(replace(model.calibration, physical=None))


def test_command(model, tmp_path):
    jw.save_model(model, tmp_path / "model.json")
    save_joints([JointModel("ur5e", 1, {"stiffness": joint_parts()["stiffness"]})], tmp_path / "joint2.json")
    words = ("simulate", "--model", tmp_path / "model.json", "--duration", 3, "--rate", 100)
    done(*words, "--joint", tmp_path / "joint2.json", "--output", tmp_path / "twin.csv", "--truth", tmp_path / "t.json")
    assert jw.read_log(tmp_path / "twin.csv").joints == 6
    twice = run(*words, "--robot", "ur5e", "--output", tmp_path / "a.csv")
    assert twice.code == 2 and "--model replaces --robot" in twice.err
    alone = ("simulate", "--robot", "ur5e", "--joint", tmp_path / "joint2.json", "--output", tmp_path / "a.csv")
    assert run(*alone).code == 2 and "--joint FILE needs --model" in run(*alone).err
    assert "no such file" in refused(*words[:1], "--model", tmp_path / "none.json", "--output", tmp_path / "a.csv")


def test_the_twin_keeps_the_exponent_of_the_stribeck_curve():
    terms = [(Coulomb(), np.array([4.0])), (Stribeck(0.08, 2.0), np.array([3.0])), (Viscous((1.0,)), np.array([6.0]))]
    law, misfit = _steady_law(terms, fastest=1.0)
    assert (law.coulomb, law.viscous, law.stribeck.extra) == pytest.approx((4.0, 6.0, 3.0), rel=0.01)
    assert (law.stribeck.speed, law.stribeck.shape) == (0.08, 2.0) and misfit < 0.01


@pytest.mark.parametrize("gear", [(), ("stiffness",)])
def test_the_friction_of_a_twin_is_that_of_its_model(model, gear):
    """At every instant, the plant's friction equals the feed-forward terms along its rotor path: nothing is fitted."""
    planned, rate = model.for_use("feed-forward").calibration, 2000.0
    known = jw.make_twin(model)
    digital = DigitalRobot(known.robot, known.joints, gravity=known.gravity).without("thermal", *gear)
    state = digital.rest(np.array([0.3, -1.0, 1.2, -0.5, 0.4, 0.2]))
    t = np.arange(1200)[:, None] / rate
    swing = 60.0 * np.abs(state.load).clip(0.05, 0.5) * np.sin(2.0 * np.pi * (2.0 + np.arange(6.0)) * t)
    states = [state]
    for row in digital.gains * state.current + swing:
        states.append(step(digital, states[-1], row, rate=rate, substeps=1))
    found = np.array([digital.friction(each) for each in states])
    theta, speed, load, warm = (np.array([s.row(k) for s in states]) for k in ("theta", "speed", "load", "temperature"))
    motion = make_motion(planned.model, rate, theta, speed, np.zeros_like(theta), temperature=warm)
    expected, _ = term_torques(planned.model, motion, planned.estimate.values, load)
    assert (np.abs(np.diff(np.sign(speed), axis=0)).sum(axis=0) > 4.0).all()  # every joint reverses
    assert np.abs(expected).max(axis=0).min() > 0.5
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)


def test_the_truth_of_a_twin_keeps_its_terms(model, pair):
    again = digital_robot_from_truth(pair[1].truth)
    assert [joint.terms.to_list() for joint in again.joints] == [j.terms.to_list() for j in jw.make_twin(model).joints]
    worn = again.aged(friction=0.5).joints[0].terms
    assert worn.values[1] == pytest.approx(1.5 * again.joints[0].terms.values[1])
    assert again.without("friction").joints[0].terms is None
    assert not again.without("viscous").joints[0].terms.of_role("viscous").terms
