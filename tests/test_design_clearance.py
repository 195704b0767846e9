"""Motions above the mounting plane: no link comes lower than it may, and the experiments keep their purpose."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise.description import Robot, load_robot
from jointwise.design import (
    APART,
    EXPERIMENTS,
    Body,
    PlaneError,
    make_experiment,
    upright_posture,
)
from jointwise.errors import ModelError
from jointwise.model.rigid import forward_kinematics, gravity_torque
from jointwise.model.skeleton import arm_radii

UR5E = load_robot("ur5e")
ONE_JOINT = ["constant-speed", "load", "reciprocate", "locked"]
ALL_JOINTS = ["excitation", "bspline", "waypoints", "bang-coast-bang"]


def degrees(*angles: float) -> np.ndarray:
    return np.deg2rad([angles])


def lowest(robot: Robot, q: np.ndarray) -> float:
    return float(Body(robot).heights(q).min())


# -- heights --


def test_the_lowest_point_of_an_arm_that_hangs_straight_down_is_its_length_below_the_shoulder() -> None:
    height = lowest(UR5E, degrees(0, 90, 0, -90, 0, 0))
    wrist = 0.1625 - 0.425 - 0.3922 - 0.0997
    assert height == pytest.approx(wrist - arm_radii(UR5E)[5], abs=1e-4)


def test_what_cannot_rise_or_sink_does_not_count() -> None:
    upright = degrees(0, -90, 0, -90, 0, 0)
    assert forward_kinematics(UR5E, upright).position[0, :2, 2].max() == pytest.approx(0.1625)
    elbow = 0.1625 + 0.425 - arm_radii(UR5E)[3]
    assert lowest(UR5E, upright) == pytest.approx(elbow, abs=1e-4), "the elbow, not the shoulder"


def test_the_lowest_height_is_that_of_the_lowest_posture() -> None:
    rows = np.random.default_rng(0).uniform(-3.0, 3.0, (50, 6))
    assert lowest(UR5E, rows) == min(lowest(UR5E, row[None]) for row in rows)
    assert Body(UR5E).reach(rows) == max(Body(UR5E).reach(row[None]) for row in rows)


def test_the_upright_posture_stands_higher_than_any_random_one() -> None:
    for name in ("ur5e", "panda", "planar2"):
        robot = load_robot(name)
        rows = np.random.default_rng(1).uniform(-3.0, 3.0, (300, robot.dof))
        heights = forward_kinematics(robot, rows).position[:, :, 2].mean(axis=1)
        actual = forward_kinematics(robot, upright_posture(robot)[None]).position[:, :, 2].mean()
        assert actual > 0.97 * heights.max()
    np.testing.assert_allclose(np.rad2deg(upright_posture(UR5E)), [0, -90, 0, -90, 0, 0], atol=1e-9)


# -- experiments --


@pytest.mark.parametrize("experiment", ONE_JOINT)
@pytest.mark.parametrize("name", ["ur5e", "ur5", "planar2"])
def test_one_joint_stays_above_the_plane(experiment: str, name: str) -> None:
    robot = load_robot(name)
    for joint in (1, 2) if robot.dof > 2 else (0, 1):
        made = make_experiment(experiment, robot, 60.0, joint=joint, clearance=0.05)
        assert lowest(robot, made.motion.sample(250.0).q) >= 0.05
        assert made.clearance == 0.05


@pytest.mark.parametrize("experiment", ALL_JOINTS)
def test_random_motions_are_drawn_until_they_stay_above_the_plane(experiment: str) -> None:
    made, again, other = (
        make_experiment(experiment, UR5E, 20.0, seed, clearance=0.3).motion.sample(250.0).q for seed in (1, 1, 2)
    )
    assert lowest(UR5E, made) >= 0.3
    np.testing.assert_array_equal(made, again)
    assert made.shape != other.shape or np.abs(made - other).max() > 0.01
    assert np.ptp(made, axis=0).min() > 0.4, "all joints still move"


@pytest.mark.parametrize("experiment", ["constant-speed", "reciprocate", "locked", "excitation", "bspline"])
def test_a_plane_far_below_changes_nothing(experiment: str) -> None:
    free, far = (make_experiment(experiment, UR5E, 60.0, 1, joint=1, clearance=height) for height in (None, -9.0))
    assert Body(UR5E).distances(free.motion.sample(20.0).q).min() > APART, "nor do its links meet"
    np.testing.assert_array_equal(free.motion.sample(20.0).q, far.motion.sample(20.0).q)
    assert free.clearance is None and far.clearance == -9.0


@pytest.mark.parametrize("joint", [1, 2, 3])
def test_the_load_still_goes_from_nothing_to_the_full_on_a_table(joint: int) -> None:
    made = make_experiment("load", UR5E, joint=joint, clearance=0.05)
    states = made.motion.sample(20.0)
    load = gravity_torque(UR5E, states.q, gravity=made.gravity)[:, joint]
    free = make_experiment("load", UR5E, joint=joint)
    largest = np.abs(gravity_torque(UR5E, free.motion.sample(20.0).q, gravity=free.gravity)[:, joint]).max()
    assert abs(load[0]) < 1e-6 * largest and np.abs(load).max() > 0.9 * largest
    assert states.qd[:, joint].max() == pytest.approx(0.05) and states.qd[:, joint].min() == pytest.approx(-0.05)


def test_reciprocation_covers_what_fits_and_says_how_much() -> None:
    shoulder, base = (make_experiment("reciprocate", UR5E, joint=joint, clearance=0.05) for joint in (1, 0))
    covered = np.rad2deg(np.ptp(shoulder.motion.sample(5.0).q[:, 1]))
    assert 180.0 < covered < 200.0 and "over 185 degrees, 116 reversals: a whole turn does not fit" in shoulder.note
    qd = shoulder.motion.sample(100.0).qd[:, 1]
    moving = qd[np.abs(qd) > 1e-9]
    assert np.sum(np.diff(np.sign(moving)) != 0) > 100, "reversals"
    assert "does not fit" not in base.note and np.ptp(base.motion.sample(5.0).q[:, 0]) > 2.0 * np.pi


def test_speeds_are_lowered_to_those_that_fit_above_the_plane() -> None:
    wide, narrow = (make_experiment("constant-speed", UR5E, joint=1, clearance=height) for height in (0.05, 0.52))
    fast, slow = (np.abs(item.motion.sample(100.0).qd[:, 1]).max() for item in (wide, narrow))
    assert 0.2 < slow < 0.8 * fast
    assert "reduced" not in wide.note and f"reduced to {slow:.3g} rad/s" in narrow.note
    assert lowest(UR5E, narrow.motion.sample(100.0).q) >= 0.52


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_what_cannot_be_done_above_the_plane_is_refused_in_one_line(experiment: str) -> None:
    with pytest.raises(PlaneError, match=r"must stay 3 m above the mounting plane") as problem:
        make_experiment(experiment, UR5E, 60.0, clearance=3.0)
    assert "\n" not in str(problem.value) and problem.value.lowest < 3.0


def test_a_clearance_is_a_number() -> None:
    with pytest.raises(ModelError, match="clearance must be a number of m. Got nan"):
        make_experiment("excitation", UR5E, clearance=float("nan"))
