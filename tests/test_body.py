"""The body of an arm: capsules are as far apart as they are, and what meets is found."""

from __future__ import annotations

from functools import lru_cache

import mujoco
import numpy as np
import pytest
from scipy.optimize import minimize

from jointwise.description import Joint, Link, Robot, list_robots, load_robot
from jointwise.design import (
    APART,
    Body,
    Clearance,
    LinksError,
    PlaneError,
    hold,
    make_experiment,
    make_plan,
    upright_posture,
    waypoint_trajectory,
)
from jointwise.design.limits import default_posture, motion_limits
from jointwise.design.single_joint import widest_interval
from jointwise.errors import ModelError
from jointwise.model.rigid import forward_kinematics
from jointwise.model.skeleton import Skeleton, Tool
from jointwise.spatial import Array, rotation_axis_angle, segment_distance
from robots import random_robot

UR5E = load_robot("ur5e")
FOLDED = np.deg2rad([0, -90, 170, 0, 0, 0])
"""The elbow of a UR5e folded until the wrist is in the upper arm."""
POINTED_BACK = np.deg2rad([0, -90, 0, 90, -180, 0])
"""The flange of a UR5e turned towards the forearm."""


def postures(robot: object, count: int, seed: int = 0) -> Array:
    limits = motion_limits(robot, 1.0)  # type: ignore[arg-type]
    return np.random.default_rng(seed).uniform(limits.lower, limits.upper, (count, len(limits.lower)))


# -- straight pieces --


def least(a: Array, b: Array, c: Array, d: Array) -> float:
    """Return the least distance of two pieces, looked for among many points and then nearby."""
    s, t = np.meshgrid(np.linspace(0.0, 1.0, 41), np.linspace(0.0, 1.0, 41))

    def distance(x: Array) -> Array:
        return np.linalg.norm(a + x[0][..., None] * (b - a) - c - x[1][..., None] * (d - c), axis=-1)

    first = np.argmin(distance(np.array([s, t])))
    start = np.array([s.flat[first], t.flat[first]])
    found = minimize(lambda x: float(distance(x)) ** 2, start, bounds=[(0, 1), (0, 1)], tol=1e-16)
    return min(float(distance(start)), float(distance(found.x)))


def pieces(kind: str, rng: np.random.Generator) -> list[Array]:
    a, b, c, d = rng.uniform(-1.0, 1.0, (4, 3))
    if kind == "parallel":
        d = c + rng.uniform(-2.0, 2.0) * (b - a)
    elif kind == "nearly parallel":
        d = c + rng.uniform(-2.0, 2.0) * (b - a) + 1e-7 * rng.normal(size=3)
    elif kind == "crossing":
        d = 2.0 * (0.3 * a + 0.7 * b) - c
    elif kind == "one point":
        b = a
    elif kind == "two points":
        b, d = a, c
    return [a, b, c, d]


@pytest.mark.parametrize("kind", ["skew", "parallel", "nearly parallel", "crossing", "one point", "two points"])
def test_the_distance_of_pieces_is_the_least_of_all_their_points(kind: str) -> None:
    rng = np.random.default_rng(3)
    rows = [pieces(kind, rng) for _ in range(30)]
    found = segment_distance(*(np.array(block) for block in zip(*rows, strict=True)))
    np.testing.assert_allclose(found, [least(*row) for row in rows], atol=2e-6)


def test_the_distance_of_pieces_knows_neither_order_nor_place() -> None:
    rng = np.random.default_rng(4)
    a, b, c, d = rng.uniform(-1.0, 1.0, (4, 200, 3))
    actual = segment_distance(a, b, c, d)
    for other in ((c, d, a, b), (b, a, c, d), (a, b, d, c)):
        np.testing.assert_allclose(segment_distance(*other), actual, atol=1e-12)
    turn, step = rotation_axis_angle(np.array([0.6, 0.0, 0.8]), 1.1), np.array([3.0, -1.0, 2.0])
    np.testing.assert_allclose(segment_distance(*(x @ turn.T + step for x in (a, b, c, d))), actual, atol=1e-12)


# -- the skeleton --


@pytest.mark.parametrize("name", list_robots())
def test_the_skeleton_goes_from_axis_to_axis_and_ends_at_the_tip_of_the_tool(name: str) -> None:
    robot, q = load_robot(name), postures(load_robot(name), 5)
    frames, corners = forward_kinematics(robot, q), Skeleton(robot, Tool(0.2)).corners(q)
    for j in range(robot.dof):
        for corner in (2 * j + 1, 2 * j + 2):  # a column lies on the axis of its joint
            off = np.cross(corners[:, corner] - frames.position[:, j], frames.rotation[:, j, :, 2])
            np.testing.assert_allclose(off, 0.0, atol=1e-9)
    np.testing.assert_allclose(corners[:, -2], frames.position[:, -1], atol=1e-12)
    np.testing.assert_allclose(corners[:, -1], frames.position[:, -1] + 0.2 * frames.rotation[:, -1, :, 2], atol=1e-12)


def test_a_sliding_joint_is_a_bar_as_long_as_it_is_out() -> None:
    robot = random_robot(np.random.default_rng(2), [True, False, True])
    rows = np.array([[0.1, 0.0, 0.2], [0.1, 0.25, 0.2]])
    corners = Skeleton(robot).corners(rows)
    axis = forward_kinematics(robot, rows).rotation[0, 1, :, 2]
    np.testing.assert_allclose(corners[1, 4] - corners[0, 4], 0.25 * axis, atol=1e-12)
    np.testing.assert_allclose(corners[1, 3], corners[0, 3], atol=1e-12)


# -- distances of an arm --


def mujoco_distances(body: Body, q: Array) -> Array:
    """Return the distances (pairs,) of the capsules of a body at a posture (joints,), by another engine."""
    corners = body.skeleton.corners(q[None])[0]
    geoms = "".join(
        f'<geom name="g{k}" type="capsule" size="{body.radii[k]:.12g}" '
        f'fromto="{" ".join(f"{x:.12g}" for x in (*corners[k], *corners[k + 1]))}"/>'
        for k in sorted({int(k) for k in body.pairs.ravel()})
    )
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    ids = [[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, f"g{k}") for k in pair] for pair in body.pairs]
    return np.array([mujoco.mj_geomDistance(model, data, a, b, 10.0, None) for a, b in ids])


@pytest.mark.parametrize("name", ["ur5e", "panda", "puma560"])
def test_capsules_are_as_far_apart_as_in_mujoco(name: str) -> None:
    robot = load_robot(name)
    body = Body(robot, Tool(0.15, 0.04))
    for q in postures(robot, 20):
        actual = mujoco_distances(body, q)
        np.testing.assert_allclose(body.distances(q[None])[0], actual.min(), atol=1e-6)
        nearest = body.nearest(q[None])
        assert nearest is not None and nearest.parts == tuple(
            body.name_of(k) for k in body.pairs[int(np.argmin(actual))]
        )


def test_a_folded_elbow_is_found_and_its_links_are_named() -> None:
    nearest = Body(UR5E).nearest(np.array([upright_posture(UR5E), FOLDED]))
    assert nearest is not None and nearest.distance < -0.02
    assert nearest.parts == ("link 2", "link 5")
    np.testing.assert_array_equal(nearest.posture, FOLDED)


@pytest.mark.parametrize("name", list_robots())
def test_upright_and_usual_arms_are_clear_of_themselves(name: str) -> None:
    robot = load_robot(name)
    rows = np.array([upright_posture(robot), default_posture(robot)])
    assert (Body(robot).distances(rows) >= APART).all()


@pytest.mark.parametrize("name", ["ur5e", "panda"])
def test_turning_the_first_joint_changes_no_distance(name: str) -> None:
    robot = load_robot(name)
    q = postures(robot, 50)
    turned = q.copy()
    turned[:, 0] = 0.3
    np.testing.assert_allclose(Body(robot).distances(turned), Body(robot).distances(q), atol=1e-12)
    np.testing.assert_allclose(Body(robot).heights(turned), Body(robot).heights(q), atol=1e-12)


@pytest.mark.parametrize("name", list_robots())
def test_neighbours_do_not_count_and_a_tool_takes_none_away(name: str) -> None:
    robot = load_robot(name)
    bare, short, long = (
        {tuple(pair) for pair in Body(robot, tool).pairs.tolist()} for tool in (None, Tool(0.01), Tool(2.0))
    )
    assert short == long >= bare
    assert all(b - a > 1 for a, b in bare)


def test_a_tool_comes_lower_reaches_farther_and_meets_the_forearm_sooner() -> None:
    q = postures(UR5E, 200)
    bare, tool = Body(UR5E), Body(UR5E, Tool(0.2))
    assert (tool.distances(q) <= bare.distances(q) + 1e-12).all() and (tool.heights(q) <= bare.heights(q) + 1e-12).all()
    assert tool.reach(q) > bare.reach(q)
    nearest = Body(UR5E, Tool(0.2)).nearest(POINTED_BACK[None])
    assert nearest is not None and nearest.distance < 0.0 and "the tool" in nearest.parts


@pytest.mark.parametrize(("length", "radius"), [(0.0, None), (-0.1, None), (np.nan, None), (0.1, 0.0)])
def test_a_tool_has_a_size(length: float, radius: float | None) -> None:
    with pytest.raises(ModelError, match="of a tool must be a positive number of m"):
        Tool(length, radius)


def test_an_arm_without_pairs_cannot_meet_itself() -> None:
    body = Body(load_robot("planar1"))
    assert body.nearest(np.zeros((1, 1))) is None and np.isinf(body.distances(np.zeros((3, 1)))).all()
    point = Body(Robot("point", (Joint("j", "revolute", np.eye(3), np.zeros(3)),), (Link("l", np.zeros(10)),)))
    assert point.reach(np.zeros((2, 1))) == 0.0 and np.isinf(point.heights(np.zeros((2, 1)))).all()


# -- heights --


def test_the_height_is_that_of_the_lowest_point_of_all_capsules() -> None:
    """Brute force: many points on every capsule whose ends both rise and sink."""
    body, q = Body(UR5E, Tool(0.1, 0.03)), postures(UR5E, 30)
    corners = body.skeleton.corners(q)
    moving = [k for k in range(5, 15) if np.linalg.norm(corners[0, k + 1] - corners[0, k]) > 1e-6]
    along = np.linspace(0.0, 1.0, 11)[:, None]
    lowest = [
        min(float((row[k] + along * (row[k + 1] - row[k]))[:, 2].min()) - body.radii[k] for k in moving)
        for row in corners
    ]
    assert (body.heights(q) <= np.array(lowest) + 1e-12).all()
    np.testing.assert_allclose(body.heights(q), lowest, atol=0.01)  # the upper arm is a little thinner than its elbow


# -- refusals and plans --


def test_a_motion_into_the_arm_is_refused_with_links_time_and_pose() -> None:
    motion = waypoint_trajectory(UR5E, [upright_posture(UR5E), FOLDED])
    with pytest.raises(LinksError) as problem:
        Clearance(Body(UR5E), -np.inf).check(motion)
    text = str(problem.value)
    assert "must keep the links 0.02 m apart. It drives link 2 into link 5 at q = [0.00, -1.57, 2." in text
    assert "\n" not in text and problem.value.time is not None and f"{problem.value.time:.2f} s" in text
    assert Body(UR5E).distances(motion.position(np.array([problem.value.time])))[0] < 0.0


def test_the_larger_violation_is_reported() -> None:
    down = np.deg2rad([0.0, 90.0, 0.0, -90.0, 0.0, 0.0])
    with pytest.raises(PlaneError, match="below it"):
        Clearance(Body(UR5E), 0.0).check(hold(down, 1.0))
    with pytest.raises(LinksError, match="link 2 into link 5"):
        Clearance(Body(UR5E), 0.0).check(hold(FOLDED, 1.0))


@lru_cache
def motions(name: str) -> list[tuple[str, Array]]:
    robot = load_robot(name)
    made = [make_experiment("excitation", robot, 10.0, clearance=-np.inf)]
    made += [make_experiment("constant-speed", robot, 30.0, joint=j, clearance=-np.inf) for j in range(robot.dof)[2::2]]
    return [(item.note, item.motion.sample(31.0).q) for item in made]


@pytest.mark.parametrize("name", list_robots())
def test_experiments_of_every_robot_keep_its_links_apart(name: str) -> None:
    body = Body(load_robot(name))
    for note, q in motions(name):
        assert body.distances(q).min() >= APART - 1e-4, note


def test_without_a_clearance_random_motions_meet_the_arm() -> None:
    """Else the law above would hold for nothing."""
    free = [make_experiment("excitation", UR5E, 20.0, seed).motion.sample(31.0).q for seed in range(4)]
    assert min(Body(UR5E).distances(q).min() for q in free) < 0.0


@pytest.mark.parametrize("tool", [None, Tool(0.25, 0.06)])
def test_plans_are_clear_or_refused_by_name(tool: Tool | None) -> None:
    for planned in make_plan(UR5E, 3, ["friction", "motor"], tool=tool).steps:
        gaps, heights = planned.body.distances(planned.states.q[::7]), planned.body.heights(planned.states.q[::7])
        if planned.rejection is None:
            assert gaps.min() >= APART - 1e-4 and heights.min() >= 0.05 - 1e-4
            assert planned.body.distances(planned.approach).min() >= APART
        else:
            assert "link" in planned.rejection or "plane" in planned.rejection
        assert planned.facts()["links_m"] == pytest.approx(gaps.min(), abs=0.01)


def test_a_tool_reduces_the_range_of_the_wrist() -> None:
    ranges = [
        widest_interval(UR5E, 4, upright_posture(UR5E), Clearance(Body(UR5E, tool), -np.inf))
        for tool in (None, Tool(0.25, 0.06))
    ]
    assert ranges[0] is not None and ranges[1] is not None
    assert 1.0 < np.ptp(ranges[1]) < np.ptp(ranges[0]) - 0.1
