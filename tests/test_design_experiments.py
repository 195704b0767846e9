"""Experiments by name, and those on one joint: speeds, loads, reversals, torques."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise.description import Limits, Robot, list_robots, load_robot
from jointwise.design import (
    EXPERIMENTS,
    constant_speed_runs,
    load_runs,
    make_experiment,
    reciprocation,
    torque_ramps,
)
from jointwise.design.limits import motion_limits
from jointwise.design.single_joint import default_speeds, gravity_along, joint_axis
from jointwise.errors import JointwiseError, ModelError
from jointwise.model.rigid import gravity_torque

UR5E = load_robot("ur5e")
ONE_JOINT = ["constant-speed", "load", "warm-up", "reciprocate", "locked"]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("name", list_robots())
def test_every_experiment_suits_every_robot(experiment: str, name: str) -> None:
    robot = load_robot(name)
    if experiment == "ellipse" and robot.dof < 6:
        with pytest.raises(ModelError, match="six joints"):
            make_experiment(experiment, robot)
        return
    made = make_experiment(experiment, robot, 60.0, 1)
    limits = motion_limits(robot, 1.0, margin=0.0)
    states = made.motion.sample(100.0)
    assert made.name == experiment and made.note
    assert made.motion.joints == robot.dof and made.motion.duration <= 60.0
    assert ((states.q >= limits.lower) & (states.q <= limits.upper)).all()
    if robot.joints[0].limits.velocity is not None:
        assert (np.abs(states.qd) <= limits.velocity * (1 + 1e-9)).all()
    assert np.isfinite(states.qdd).all()
    assert np.linalg.norm(made.gravity) == pytest.approx(9.81)


@pytest.mark.parametrize("experiment", [*ONE_JOINT, "excitation", "bspline", "bang-coast-bang"])
def test_one_joint_can_be_chosen(experiment: str) -> None:
    for joint in (0, 3, 5):
        made = make_experiment(experiment, UR5E, 60.0, joint=joint)
        moved = np.ptp(made.motion.sample(50.0).q, axis=0) > 0.0
        assert not moved[np.arange(6) != joint].any()
        assert moved[joint] == (experiment != "locked") and made.joint == joint


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_same_seed_gives_the_same_motion_to_the_bit(experiment: str) -> None:
    first, again = (make_experiment(experiment, UR5E, 30.0, 7).motion.sample(50.0).qdd for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_every_speed_is_run_both_ways_for_a_while() -> None:
    motion = constant_speed_runs(UR5E, 120.0, joint=0)
    qd = motion.sample(1000.0).qd[:, 0]
    for speed in default_speeds(UR5E, 0):
        for side in (1.0, -1.0):
            assert np.sum(np.abs(qd - side * speed) < 1e-9) > 300
    assert motion.duration == 120.0


def test_given_speeds_are_run_in_their_order() -> None:
    motion = constant_speed_runs(UR5E, 20.0, joint=2, speeds=[0.5, 0.1])
    qd = motion.sample(500.0).qd[:, 2]
    assert np.abs(qd[:5000]).max() == pytest.approx(0.5) and np.abs(qd[5001:]).max() == pytest.approx(0.1)


def test_the_load_run_begins_without_load_and_meets_the_largest() -> None:
    made = make_experiment("load", UR5E, 140.0, joint=1)
    states = made.motion.sample(20.0)
    load = gravity_torque(UR5E, states.q, gravity=made.gravity)[:, 1]
    assert abs(load[0]) < 1e-9 and np.abs(load).max() > 60.0
    assert np.abs(states.qd).max() == pytest.approx(0.05)


@pytest.mark.parametrize("name", ["ur5e", "panda"])
def test_axes_stand_as_the_experiment_wants(name: str) -> None:
    robot = load_robot(name)
    for joint in range(robot.dof):
        for experiment, cosine in (("constant-speed", 1.0), ("load", 0.0)):
            made = make_experiment(experiment, robot, 60.0, joint=joint)
            posture = made.motion.position(np.zeros(1))[0]
            along = joint_axis(robot, joint, posture) @ made.gravity / 9.81
            assert abs(along) == pytest.approx(cosine, abs=1e-9)


def test_gravity_along_the_axis_does_not_load_the_joint() -> None:
    made = make_experiment("constant-speed", UR5E, 60.0, joint=4)
    q = made.motion.sample(10.0).q
    assert np.abs(gravity_torque(UR5E, q, gravity=made.gravity)[:, 4]).max() < 1e-12
    np.testing.assert_allclose(gravity_along(UR5E, 0, np.zeros(6)), [0.0, 0.0, -9.81], atol=1e-12)


def test_reciprocation_is_that_of_the_thesis() -> None:
    motion = reciprocation(UR5E)
    assert motion.duration == pytest.approx(1005.3, abs=0.1), "the thesis: about 17 min; fits 50 s + 955 s"
    t = np.arange(0.0, motion.duration, 0.01)
    states = motion.at(t)
    moving = states.qd[np.abs(states.qd[:, 0]) > 1e-9, 0]
    assert np.sum(np.diff(np.sign(moving)) != 0) == 239, "and one that ends the last cycle at rest"
    np.testing.assert_allclose(np.abs(states.qdd[:, 0]), 0.05, atol=1e-12)
    starts = motion.position(np.arange(121) * motion.duration / 120)[:, 0]
    np.testing.assert_allclose(np.diff(starts), np.deg2rad(3.0), atol=1e-9)


def test_reciprocation_makes_fewer_cycles_in_less_time_and_turns_back_in_more() -> None:
    assert np.ptp(reciprocation(UR5E, 60.0).sample(10.0).q[:, 0]) < 0.7
    long = reciprocation(UR5E, 2 * 1005.4).sample(10.0).q[:, 0]
    assert abs(long[-1] - long[0]) < 1e-6 and np.ptp(long) < 2 * np.pi + 0.5
    with pytest.raises(ModelError, match="one cycle"):
        reciprocation(UR5E, 5.0)


def test_the_warm_up_lasts_minutes() -> None:
    motion = make_experiment("warm-up", UR5E).motion
    assert motion.duration == pytest.approx(1800.0)
    qd = np.abs(motion.sample(20.0).qd[:, 0])
    assert np.mean(qd > 0.1) > 0.8


def test_the_locked_joint_stands_and_its_torque_rises_and_falls() -> None:
    made = make_experiment("locked", UR5E, 40.0, joint=1)
    assert made.torque is not None and not made.motion.sample(10.0).qd.any()
    t = np.arange(0.0, 40.0, 0.01)
    torque = made.torque.at(t)
    assert not torque[:, [0, 2, 3, 4, 5]].any() and not made.torque.at(np.array([-1.0, 41.0])).any()
    assert torque[:, 1].max() == pytest.approx(0.8 * 150.0, rel=0.01)
    assert torque[:, 1].min() == pytest.approx(-0.8 * 150.0, rel=0.01)
    assert np.abs(np.diff(torque[:, 1])).max() < 0.6


@pytest.mark.parametrize(
    ("name", "duration", "joint", "word"),
    [
        ("elipse", None, None, "unknown experiment 'elipse'. Did you mean ellipse"),
        ("waypoints", None, 2, "leave out the joint"),
        ("constant-speed", None, 6, "joint must be 0 to 5"),
        ("constant-speed", 0.0, 0, "duration must be a positive number"),
        ("constant-speed", 5.0, 0, "at least 27.85 s"),
        ("reciprocate", 3.0, 0, "one cycle"),
        ("waypoints", 3.0, None, "one round"),
    ],
)
def test_wrong_choices_are_refused_in_one_line(name: str, duration: float | None, joint: int | None, word: str) -> None:
    with pytest.raises(JointwiseError, match=word) as problem:
        make_experiment(name, UR5E, duration, joint=joint)
    assert "\n" not in str(problem.value)


def test_wrong_settings_of_one_joint_are_refused() -> None:
    with pytest.raises(ModelError, match="above 0 and up to"):
        constant_speed_runs(UR5E, 60.0, speeds=[9.0])
    with pytest.raises(ModelError, match="at least one speed"):
        constant_speed_runs(UR5E, 60.0, speeds=[])
    with pytest.raises(ModelError, match="largest torque"):
        torque_ramps(UR5E, largest=1e6)


def _prismatic(robot: Robot) -> Robot:
    from dataclasses import replace

    limits = Limits(lower=-0.2, upper=0.2, velocity=0.5, acceleration=3.0, effort=100.0)
    joints = (robot.joints[0], replace(robot.joints[1], kind="prismatic", limits=limits))
    return replace(robot, joints=joints)


def test_prismatic_joints_are_served() -> None:
    robot = _prismatic(load_robot("planar2"))
    assert constant_speed_runs(robot, 60.0, joint=1).duration == 60.0


@pytest.mark.parametrize(("name", "joint", "duration"), [("panda", 3, 1000.0), ("ur5e", 2, 1500.0), ("slide", 1, 60.0)])
def test_a_reciprocation_comes_back_the_way_it_went(name: str, joint: int, duration: float) -> None:
    """However often it goes to and fro, it stays where it was on its first way."""
    robot = _prismatic(load_robot("planar2")) if name == "slide" else load_robot(name)
    once, often = reciprocation(robot, joint=joint), reciprocation(robot, duration, joint=joint)
    assert often.duration > 1.5 * once.duration
    first, all_runs = (motion.position(motion.breaks)[:, joint] for motion in (once, often))
    assert (all_runs.min(), all_runs.max()) == pytest.approx((first.min(), first.max()), abs=1e-9)
    back = once.duration + np.linspace(0.0, min(once.duration, often.duration - once.duration - 10.0), 500)
    np.testing.assert_allclose(often.position(back), often.position(2.0 * once.duration - back), atol=1e-9)


def test_a_turn_that_does_not_fit_is_reported() -> None:
    for joint, duration, words in (
        (3, None, "over 164 degrees, 102 reversals: a whole turn does not fit"),
        (3, 1000.0, "over 164 degrees, 238 reversals: a whole turn does not fit"),
    ):
        assert words in make_experiment("reciprocate", load_robot("panda"), duration, joint=joint).note
    for robot, duration in ((UR5E, None), (UR5E, 60.0), (load_robot("panda"), 60.0)):
        assert "fit" not in make_experiment("reciprocate", robot, duration, joint=0).note


@pytest.mark.parametrize("name", ["constant-speed", "warm-up", "reciprocate", "locked"])
def test_gravity_loads_no_joint_under_test(name: str) -> None:
    """Of a joint that turns the axis is along gravity, of one that slides across it."""
    for robot, joint in ((UR5E, 1), (_prismatic(load_robot("planar2")), 1)):
        made = make_experiment(name, robot, 200.0 if name == "warm-up" else None, joint=joint)
        load = gravity_torque(robot, made.motion.sample(1.0).q, gravity=made.gravity)[:, joint]
        assert np.abs(load).max() < 1e-9
        assert name == "locked" or ("axis vertical" in made.note) == robot.revolute[joint]


def test_a_slide_has_no_load_that_changes() -> None:
    robot = _prismatic(load_robot("planar2"))
    with pytest.raises(ModelError, match="load needs a revolute joint"):
        make_experiment("load", robot, joint=1)
    with pytest.raises(ModelError, match="load needs a revolute joint"):
        load_runs(robot, 20.0, joint=1)
    with pytest.raises(ModelError, match="joint 2, up to 0.5 m/s"):
        constant_speed_runs(robot, 0.5, joint=1, speeds=[0.5])
