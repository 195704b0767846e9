"""One robot, many ways to write it: tables, TOML and URDF give the same kinematics and torques."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import jointwise
from jointwise import spatial
from jointwise.description import Limits, Payload, Robot, gravity_vector, list_robots, load_robot
from jointwise.description import catalog as catalog_package
from jointwise.description.table import exact_angle, parse_number, robot_from_csv
from jointwise.description.toml import robot_from_toml
from jointwise.description.urdf import robot_from_urdf, rpy_angles, urdf_text
from jointwise.model.base import base_parameters
from jointwise.model.rigid import forward_kinematics, inverse_dynamics
from jointwise.spatial import Array

CONVENTIONS = ("dh", "mdh", "mdh-following")


def states(robot: Robot, samples: int = 20) -> tuple[Array, Array, Array]:
    q, qd, qdd = np.random.default_rng(3).uniform(-np.pi, np.pi, (3, samples, robot.dof))
    return q, qd, qdd


def assert_same_arm(one: Robot, other: Robot, torques: bool = True) -> None:
    assert [joint.kind for joint in one.joints] == [joint.kind for joint in other.joints]
    q, qd, qdd = states(one)
    for mine, yours in zip(forward_kinematics(one, q).tool, forward_kinematics(other, q).tool, strict=True):
        np.testing.assert_allclose(mine, yours, atol=1e-13)
    if torques:
        torque = inverse_dynamics(one, q, qd, qdd, gravity=[1.0, -2.0, -9.0])
        scale = np.abs(torque).max()
        np.testing.assert_allclose(
            inverse_dynamics(other, q, qd, qdd, gravity=[1.0, -2.0, -9.0]), torque, atol=1e-13 * scale
        )


@dataclass(frozen=True)
class Row:
    """B of a row and the A that follows it."""

    d: float
    theta: float
    a: float
    alpha: float


def catalogue_rows(name: str) -> tuple[list[float], list[float], list[Row]]:
    """Return rpy and xyz of the base, and the rows with A following; A of the last row is left to the tool."""
    document = tomllib.loads((files(catalog_package) / f"{name}.toml").read_text(encoding="utf-8"))
    joints = [{key: number(joint[key]) for key in ("a", "alpha", "d", "theta")} for joint in document["joint"]]
    across = [(joint["a"], joint["alpha"]) for joint in joints]
    before, after = ((0.0, 0.0), across) if document["convention"] == "dh" else (across[0], [*across[1:], (0, 0)])
    rpy, xyz = ([number(x) for x in document.get("base", {}).get(key, [0, 0, 0])] for key in ("rpy", "xyz"))
    placed = spatial.rotation_rpy(*rpy) @ spatial.rotation_x(before[1])
    moved = np.array(xyz) + spatial.rotation_rpy(*rpy)[:, 0] * before[0]
    rows = [Row(joint["d"], joint["theta"], *pair) for joint, pair in zip(joints, after, strict=True)]
    rows[-1] = replace(rows[-1], a=0.0, alpha=0.0)
    return rpy_angles(placed).tolist(), moved.tolist(), rows


def number(value: float | str) -> float:
    return parse_number(value) if isinstance(value, str) else float(value)


def ordered(rows: Sequence[Row], convention: str) -> list[tuple[float, float, float, float]]:
    """Return a, alpha, d, theta of every row, with A where the convention keeps it."""
    across = [(row.a, row.alpha) for row in rows]
    if convention == "mdh":
        across = [(0.0, 0.0), *across[:-1]]
    return [(*pair, row.d, row.theta) for pair, row in zip(across, rows, strict=True)]


def toml_text(robot: Robot, convention: str) -> str:
    """Return a catalogue robot written in a convention, bodies in the joint frames."""
    rpy, xyz, rows = catalogue_rows(robot.name)
    lines = ["schema = 1", f'name = "{robot.name}"', f'convention = "{convention}"', 'inertial_frame = "joint"']
    lines += ["[base]", f"rpy = {rpy}", f"xyz = {xyz}"]
    lines += ["[tool]", f"rpy = {rpy_angles(robot.tool_rotation).tolist()}", f"xyz = {robot.tool_translation.tolist()}"]
    for (a, alpha, d, theta), joint, link in zip(ordered(rows, convention), robot.joints, robot.links, strict=True):
        lines += ["[[joint]]", f'type = "{joint.kind}"', f"a = {a}", f"alpha = {alpha}", f"d = {d}", f"theta = {theta}"]
        lines += [f"mass = {link.mass}", f"center_of_mass = {link.center_of_mass.tolist()}"]
        lines += [f"inertia = {spatial.tensor_to_six(link.inertia_at_center).tolist()}"]
    return "\n".join(lines)


@pytest.mark.parametrize("name", list_robots())
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_every_convention_gives_the_same_arm(name: str, convention: str) -> None:
    robot = load_robot(name)
    assert_same_arm(robot, robot_from_toml(toml_text(robot, convention), "again.toml"))


@pytest.mark.parametrize("name", list_robots())
def test_urdf_gives_the_same_arm(name: str) -> None:
    robot = load_robot(name)
    again = robot_from_urdf(urdf_text(robot), "again.urdf")
    assert_same_arm(robot, again)
    for mine, yours in zip(robot.joints, again.joints, strict=True):
        assert mine.name == yours.name
        assert replace(mine.limits, acceleration=None) == yours.limits


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_csv_gives_the_same_kinematics(convention: str) -> None:
    _, _, rows = catalogue_rows("ur5e")
    text = "d,alpha,theta,a\n" + "\n".join(f"{d},{al},{th},{a}" for a, al, d, th in ordered(rows, convention))
    assert_same_arm(load_robot("ur5e"), robot_from_csv(text, "ur5e.csv", convention), torques=False)


def test_rpy_angles_bring_every_rotation_back() -> None:
    rng = np.random.default_rng(5)
    upright = [[roll, side * np.pi / 2, yaw] for roll, yaw in rng.uniform(-4, 4, (20, 2)) for side in (-1, 1)]
    triples = [*rng.uniform(-4, 4, (50, 3)), *upright, [0.3, np.pi / 2 - 1e-9, 0.7], [np.pi, np.pi, 0.0]]
    for angles in triples:
        R = spatial.rotation_rpy(*angles)
        np.testing.assert_allclose(spatial.rotation_rpy(*rpy_angles(R)), R, atol=3e-15)


def test_urdf_text_leaves_out_what_a_link_does_not_have() -> None:
    text = urdf_text(robot_from_csv("a,alpha,d\n1,0,0\n0,pi/2,0.5", "bare.csv", "dh"))
    assert "inertial" not in text
    assert 'type="continuous"' in text
    assert not robot_from_urdf(text, "bare.urdf").inertials.any()


# URDF by hand

BODY = '<inertial><origin xyz="{xyz}" rpy="{rpy}"/><mass value="{m}"/>' + (
    '<inertia ixx="0.3" ixy="0.01" ixz="-0.02" iyy="0.4" iyz="0.03" izz="0.5"/></inertial>'
)
TENSOR = spatial.six_to_tensor([0.3, 0.01, -0.02, 0.4, 0.03, 0.5])


def link(name: str, mass: float = 0.0, xyz: str = "0 0 0", rpy: str = "0 0 0") -> str:
    return f'<link name="{name}">{BODY.format(m=mass, xyz=xyz, rpy=rpy) if mass else ""}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def urdf(*parts: str) -> str:
    return f'<?xml version="1.0"?><robot name="arm">{"".join(parts)}</robot>'


def read(*parts: str, tip: str | None = None) -> Robot:
    return robot_from_urdf(urdf(*parts), "arm.urdf", tip)


@pytest.mark.parametrize("axis", ["1 0 0", "0 1 0", "0 0 1", "-1 0 0", "0 -1 0", "0 0 -1", "1 -2 3", "0 0 5"])
@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic"])
def test_a_joint_moves_about_its_axis(kind: str, axis: str) -> None:
    placed = f'<origin xyz="0.1 0.2 0.3" rpy="0.4 -0.5 0.6"/><axis xyz="{axis}"/>'
    after = '<origin xyz="0.7 -0.8 0.9" rpy="-0.1 0.2 0.3"/>'
    robot = read(
        link("b"), link("l"), link("t"), joint("j", "b", "l", kind, placed), joint("f", "l", "t", "fixed", after)
    )
    q, direction = 0.83, np.array([float(word) for word in axis.split()])
    direction /= np.linalg.norm(direction)
    first, last = spatial.rotation_rpy(0.4, -0.5, 0.6), spatial.rotation_rpy(-0.1, 0.2, 0.3)
    turned = np.eye(3) if kind == "prismatic" else spatial.rotation_axis_angle(direction, q)
    shifted = direction * q if kind == "prismatic" else np.zeros(3)
    rotation, position = forward_kinematics(robot, np.array([[q]])).tool
    np.testing.assert_allclose(rotation[0], first @ turned @ last, atol=1e-14)
    wanted = np.array([0.1, 0.2, 0.3]) + first @ (shifted + turned @ np.array([0.7, -0.8, 0.9]))
    np.testing.assert_allclose(position[0], wanted, atol=1e-14)


def test_the_axis_is_x_where_none_is_given() -> None:
    robot = read(link("b"), link("l"), joint("j", "b", "l"))
    np.testing.assert_allclose(robot.joints[0].rotation[:, 2], [1.0, 0.0, 0.0], atol=0.0)


def test_inertia_is_turned_with_its_origin_and_its_frame() -> None:
    robot = read(
        link("b"), link("l", 2.0, "0.1 0.2 0.3", "0.5 0.6 0.7"), joint("j", "b", "l", inside='<axis xyz="1 2 3"/>')
    )
    A, R = spatial.rotation_z_to([1, 2, 3]), spatial.rotation_rpy(0.5, 0.6, 0.7)
    actual = robot.links[0]
    assert actual.mass == 2.0
    np.testing.assert_allclose(actual.center_of_mass, A.T @ [0.1, 0.2, 0.3], atol=1e-15)
    np.testing.assert_allclose(actual.inertia_at_center, A.T @ R @ TENSOR @ R.T @ A, atol=1e-14)


def test_fixed_links_are_merged_into_the_link_that_carries_them() -> None:
    ahead = '<origin xyz="0 0 0.5" rpy="0 0 1.5"/>'
    robot = read(
        link("world", 99.0),
        link("stand", 50.0),
        joint("bolt", "world", "stand", "fixed", ahead),
        link("l", 1.0),
        joint("j", "stand", "l", inside='<axis xyz="0 0 1"/>'),
        link("side", 2.0, "0.1 0 0"),
        joint("weld", "l", "side", "fixed", '<origin xyz="0 1 0" rpy="0.3 0 0"/>'),
        link("end", 3.0),
        joint("weld2", "side", "end", "fixed", '<origin xyz="0 0 1"/>'),
        link("other", 4.0),
        joint("weld3", "l", "other", "fixed", '<origin xyz="-1 0 0"/>'),
    )
    Rx = spatial.rotation_x(0.3)
    bodies = [(1.0, np.zeros(3), np.eye(3)), (2.0, Rx @ [0.1, 0, 0] + [0, 1, 0], Rx)]
    bodies += [(3.0, Rx @ [0, 0, 1] + [0, 1, 0], Rx), (4.0, np.array([-1.0, 0, 0]), np.eye(3))]
    whole = sum(spatial.inertial_vector(m, c, R @ TENSOR @ R.T) for m, c, R in bodies)
    np.testing.assert_allclose(robot.inertials[0], whole, atol=1e-14)
    np.testing.assert_allclose(robot.joints[0].translation, [0, 0, 0.5])
    np.testing.assert_allclose(robot.joints[0].rotation, spatial.rotation_z(1.5), atol=1e-15)
    assert robot.tool_translation.tolist() == [0.0, 0.0, 0.0]
    assert "tool at link 'l'" in robot.sources["kinematics"]


BRANCHED = (
    *(link(name, 1.0) for name in ("base", "arm", "left", "right", "camera")),
    joint("shoulder", "base", "arm"),
    joint("l", "arm", "left", "prismatic"),
    joint("r", "arm", "right", "prismatic", '<mimic joint="l"/>'),
    joint("c", "left", "camera", "fixed", '<origin xyz="1 2 3"/>'),
)


def test_a_named_tip_chooses_the_branch_and_says_what_is_left_out() -> None:
    robot = read(*BRANCHED, tip="camera")
    assert [joint.name for joint in robot.joints] == ["shoulder", "l"]
    assert robot.sources["inertials"].endswith("left out with all they carry: joints 'r'")
    whole = read(*BRANCHED, tip="arm")
    assert [link.mass for link in whole.links] == [1.0]
    assert "'l', 'r'" in whole.sources["inertials"]


def test_limits_are_read() -> None:
    limit = '<limit lower="-1" upper="2" velocity="3" effort="4"/>'
    parts = [link(str(k)) for k in range(4)]
    parts += [joint("a", "0", "1", "revolute", limit), joint("b", "1", "2", "continuous", limit), joint("c", "2", "3")]
    a, b, c = (joint.limits for joint in read(*parts).joints)
    assert a == Limits(lower=-1.0, upper=2.0, velocity=3.0, effort=4.0)
    assert b == Limits(velocity=3.0, effort=4.0)
    assert c == Limits()


def test_meshes_do_not_matter() -> None:
    shape = '<visual><geometry><mesh filename="package://nowhere/none.stl"/></geometry></visual><collision/>'
    robot = read(link("b"), f'<link name="l">{shape}</link>', joint("j", "b", "l"), "<gazebo><plugin/></gazebo>")
    assert robot.dof == 1


def test_quarter_turns_leave_exact_zeros() -> None:
    robot = read(link("b"), link("l"), joint("j", "b", "l", inside=f'<origin rpy="{np.pi / 2} 0 {-np.pi / 2}"/>'))
    assert np.isin(robot.joints[0].rotation, [-1.0, 0.0, 1.0]).all()


def test_torques_of_a_urdf_are_those_of_pinocchio() -> None:
    pinocchio = pytest.importorskip("pinocchio")
    limit = '<limit lower="-1" upper="2" velocity="3" effort="4"/>'
    placed = '<origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/><axis xyz="{axis}"/>' + limit
    names = ["base", "a", "b", "c", "d", "side"]
    text = urdf(
        *(link(name, 1.0 + k, "0.1 0.02 -0.3", "0.2 0.3 0.4") for k, name in enumerate(names)),
        joint("j1", "base", "a", "revolute", placed.format(axis="0.6 0 -0.8")),
        joint("weld", "a", "b", "fixed", placed.format(axis="1 0 0")),
        joint("j2", "b", "c", "prismatic", placed.format(axis="0 -1 0")),
        joint("j3", "c", "d", "revolute", placed.format(axis="0 0 -1")),
        joint("weld2", "c", "side", "fixed", placed.format(axis="1 0 0")),
    )
    robot, model = robot_from_urdf(text, "arm.urdf"), pinocchio.buildModelFromXML(text)
    q, qd, qdd = states(robot)
    peer = [pinocchio.rnea(model, model.createData(), *state) for state in zip(q, qd, qdd, strict=True)]
    np.testing.assert_allclose(inverse_dynamics(robot, q, qd, qdd), peer, rtol=1e-11, atol=1e-11)


# what acts on a robot


@pytest.mark.parametrize(
    ("mounting", "vector"),
    [
        ("table", [0, 0, -9.81]),
        ("ceiling", [0, 0, 9.81]),
        ("wall", [0, 9.81, 0]),
        ("tilt:x:45", [0, 6.937, -6.937]),
        ("tilt:x:pi/4", [0, 6.937, -6.937]),
        ("tilt:y:90", [-9.81, 0, 0]),
        ((1.0, 2.0, 3.0), [1, 2, 3]),
    ],
)
def test_mounting(mounting: str | tuple[float, ...], vector: list[float]) -> None:
    np.testing.assert_allclose(gravity_vector(mounting), vector, atol=1e-3)


@pytest.mark.parametrize("name", ["ur5e", "panda", "planar2"])
def test_payload_is_a_body_merged_into_the_last_link(name: str) -> None:
    robot = load_robot(name)
    payload = Payload(1.5, [0.02, -0.03, 0.1], np.diag([0.01, 0.02, 0.025]))
    center = robot.tool_rotation @ payload.center_of_mass + robot.tool_translation
    tensor = robot.tool_rotation @ payload.inertia @ robot.tool_rotation.T
    last = replace(robot.links[-1], inertial=robot.inertials[-1] + spatial.inertial_vector(1.5, center, tensor))
    merged = replace(robot, links=(*robot.links[:-1], last))
    q, qd, qdd = states(robot)
    torque = inverse_dynamics(robot, q, qd, qdd, payload=payload)
    np.testing.assert_allclose(torque, inverse_dynamics(merged, q, qd, qdd), atol=1e-12)
    assert np.abs(torque - inverse_dynamics(robot, q, qd, qdd)).max() > 0.1


def test_a_robot_by_name_or_by_file(tmp_path: Path) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(urdf(*BRANCHED))
    assert jointwise.load_robot("ur5e").dof == 6
    assert jointwise.load_robot(str(file), tip="camera").dof == 2
    assert load_robot(file, tip="left").dof == 2


@pytest.mark.parametrize(
    ("name", "a2", "a3", "d1", "side", "d5"),
    [
        ("ur3", -0.24365, -0.21325, 0.1519, 0.11235 + 0.0819, 0.08535),
        ("ur10", -0.612, -0.5723, 0.1273, 0.163941 + 0.0922, 0.1157),
        ("ur20", -0.862, -0.7287, 0.2363, 0.201 + 0.1543, 0.1593),
        ("ur30", -0.637, -0.5037, 0.2363, 0.201 + 0.1543, 0.1593),
    ],
)
def test_zero_pose_of_a_ur_is_the_published_one(
    name: str, a2: float, a3: float, d1: float, side: float, d5: float
) -> None:
    tool = forward_kinematics(load_robot(name), np.zeros((1, 6))).tool[1][0]
    np.testing.assert_allclose(tool, [a2 + a3, -side, d1 - d5], atol=1e-12)


def test_axes_and_flange_of_the_iiwa_are_those_of_the_public_description() -> None:
    robot = load_robot("iiwa14")
    np.testing.assert_allclose(forward_kinematics(robot, np.zeros((1, 7))).tool[1][0], [0.0, 0.0, 1.306], atol=1e-12)
    bent = np.zeros((7, 7))
    np.fill_diagonal(bent, 0.5 * np.pi)
    tool = forward_kinematics(robot, bent).tool[1]
    reach = [0.0, 0.946, 0.0, -0.526, 0.0, 0.126, 0.0]  # of the flange along x as joint 2, 4 or 6 turns by 90 degrees
    np.testing.assert_allclose(tool[:, 0], reach, atol=1e-12)


def test_flange_of_the_fr3_is_that_of_the_panda() -> None:
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 7))
    for mine, other in zip(
        forward_kinematics(load_robot("fr3"), q).tool, forward_kinematics(load_robot("panda"), q).tool, strict=True
    ):
        np.testing.assert_allclose(mine, other, atol=1e-12)


@pytest.mark.parametrize("text", ["1.57", "1.571", "1.5708", "1.5707", "-1.570796", "3.1416", "3.14"])
def test_rounded_right_angles_are_exact(text: str) -> None:
    quarters = exact_angle(float(text)) / (math.pi / 2.0)
    assert quarters == round(quarters) != 0.0


@pytest.mark.parametrize("angle", [0.0, 0.01, 1.58, 1.5, 1.572, 1.5712, 1.57080632, 0.7854])
def test_other_angles_are_taken_as_they_are(angle: float) -> None:
    assert exact_angle(angle) == angle


def test_a_table_with_rounded_angles_has_as_many_base_parameters(tmp_path: Path) -> None:
    rows = "d,a,alpha,theta\n0.18,0,{0},0\n0,-0.61,0,0\n0,-0.57,0,0\n0.17,0,{0},0\n0.12,0,-{0},0\n0.12,0,0,0\n"
    counts = []
    for name, angle in {"exact": "pi/2", "rounded": "1.5708"}.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(rows.format(angle))
        counts.append(base_parameters(load_robot(path, convention="dh"), rotors=True).count)
    assert counts == [40, 40]
