"""Inverse kinematics: forward kinematics is its inverse; limits, singularities, branches, reach."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise.description import Robot, load_robot
from jointwise.errors import JointwiseError, ShapeError
from jointwise.model.inverse_kinematics import (
    ReachError,
    all_solutions,
    checked_poses,
    follow_path,
    inverse_kinematics,
    pose_errors,
    position_limits,
)
from jointwise.model.rigid import forward_kinematics
from jointwise.spatial import Array, rotation_x

ARMS = ["ur3e", "ur5", "ur5e", "ur10e", "puma560", "panda"]
DOWN = rotation_x(np.pi)


def tool(robot: Robot, q: Array) -> tuple[Array, Array]:
    rotation, position = forward_kinematics(robot, np.atleast_2d(q)).tool
    return position[0], rotation[0]


def random_posture(robot: Robot, rng: np.random.Generator) -> Array:
    lower, upper = position_limits(robot)
    return rng.uniform(np.maximum(lower, -np.pi), np.minimum(upper, np.pi))


def error(robot: Robot, q: Array, position: Array, rotation: Array | None) -> float:
    return float(np.abs(pose_errors(robot, checked_poses(np.atleast_2d(position), rotation), np.atleast_2d(q))).max())


@pytest.mark.parametrize("name", ARMS)
def test_random_poses_are_found_within_the_limits(name: str) -> None:
    robot, rng = load_robot(name), np.random.default_rng(5)
    lower, upper = position_limits(robot)
    for _ in range(6):
        position, rotation = tool(robot, random_posture(robot, rng))
        q = inverse_kinematics(robot, position, rotation)
        assert error(robot, q, position, rotation) < 1e-9
        assert ((q >= lower) & (q <= upper)).all()


def test_a_start_next_to_the_solution_leads_to_it() -> None:
    robot, rng = load_robot("ur5e"), np.random.default_rng(2)
    for _ in range(5):
        wanted = random_posture(robot, rng)
        near = wanted + rng.uniform(-0.02, 0.02, 6)
        q = inverse_kinematics(robot, *tool(robot, wanted), near)
        if np.linalg.svd(_jacobian(robot, wanted))[1].min() > 0.05:
            np.testing.assert_allclose(q, wanted, atol=1e-9)


def _jacobian(robot: Robot, q: Array) -> Array:
    from jointwise.model.rigid import jacobian

    result: Array = jacobian(robot, q[None])[0]
    return result


def test_a_six_joint_arm_with_spherical_reach_has_eight_solutions() -> None:
    robot = load_robot("ur5e")
    found = all_solutions(robot, [0.35, 0.1, 0.4], DOWN)
    assert len(found) == 8
    for q in found:
        assert error(robot, q, np.array([0.35, 0.1, 0.4]), DOWN) < 1e-9


def test_positions_alone_suit_arms_with_few_joints() -> None:
    robot = load_robot("planar2")
    position, _ = tool(robot, np.array([0.4, -0.9]))
    q = inverse_kinematics(robot, position)
    assert error(robot, q, position, None) < 1e-9
    with pytest.raises(ReachError, match="cannot be reached"):
        inverse_kinematics(robot, position + np.array([0.0, 0.0, 5.0]))


def test_singular_poses_are_reached() -> None:
    robot = load_robot("ur5e")
    for posture in ([0.3, -1.0, 0.9, 0.1, 0.0, 0.4], [0.2, -0.7, 1e-9, -1.0, 1.0, 0.0]):
        position, rotation = tool(robot, np.array(posture))
        q = inverse_kinematics(robot, position, rotation, np.array(posture) + 0.05)
        assert error(robot, q, position, rotation) < 1e-9


def test_out_of_reach_says_how_far() -> None:
    robot = load_robot("ur5")
    with pytest.raises(ReachError, match=r"the point at \(3, 0, 0\.5\) m .* the tool stays 2\.\d+ m"):
        inverse_kinematics(robot, [3.0, 0.0, 0.5])


@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_a_path_is_followed_on_one_branch(name: str) -> None:
    robot = load_robot(name)
    sigma = np.linspace(0.0, 2.0 * np.pi, 501)
    path = np.stack([0.4 + 0.1 * np.cos(sigma), 0.15 * np.sin(sigma), 0.5 + 0.1 * np.sin(2.0 * sigma)], axis=1)
    q = follow_path(robot, path, DOWN, all_solutions(robot, path[0], DOWN)[0])
    assert error(robot, q, path, DOWN) < 1e-9
    assert np.abs(np.diff(q, axis=0)).max() < 0.05
    np.testing.assert_allclose(q[-1], q[0], atol=1e-9)
    second = np.abs(np.diff(q, 2, axis=0)).max()
    assert second < 1e-3, "no kinks: a jump between branches would be a step"


def test_a_path_that_leaves_the_reach_names_its_first_missing_point() -> None:
    robot = load_robot("ur5")
    path = np.stack([np.linspace(0.4, 1.4, 301), np.zeros(301), np.full(301, 0.4)], axis=1)
    with pytest.raises(ReachError, match="cannot be reached") as problem:
        follow_path(robot, path, DOWN, inverse_kinematics(robot, path[100], DOWN))
    number = int(str(problem.value).split()[1])
    assert inverse_kinematics(robot, path[number - 3], DOWN).shape == (6,)
    with pytest.raises(ReachError):
        inverse_kinematics(robot, path[number + 3], DOWN)


def test_jumps_are_refused() -> None:
    robot = load_robot("ur5e")
    path = np.array([[0.4, 0.0, 0.4], [-0.4, 0.0, 0.4]])
    with pytest.raises(ReachError, match=r"jumps between points 1 and 2 of 2: joint \d"):
        follow_path(robot, path, DOWN)


def test_limits_close_branches() -> None:
    robot = load_robot("panda")
    lower, upper = position_limits(robot)
    for q in all_solutions(robot, [0.4, 0.1, 0.4], DOWN):
        assert ((q >= lower) & (q <= upper)).all()


@pytest.mark.parametrize(
    ("position", "rotation", "start"),
    [
        ([0.1, 0.2], None, None),
        ([0.1, 0.2, np.nan], None, None),
        ([0.1, 0.2, 0.3], np.ones((3, 3)), None),
        ([0.1, 0.2, 0.3], np.eye(2), None),
        ([0.1, 0.2, 0.3], None, [0.0, 1.0]),
    ],
)
def test_wrong_input_is_refused(position: list[float], rotation: Array | None, start: list[float] | None) -> None:
    with pytest.raises(ShapeError):
        inverse_kinematics(load_robot("ur5"), position, rotation, start)
    assert issubclass(ReachError, JointwiseError)
