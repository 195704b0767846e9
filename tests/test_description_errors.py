"""Every wrong description is refused in one line that names the file, the place and the way out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import jointwise
from jointwise import spatial
from jointwise.description import Joint, Link, Payload, Robot, gravity_vector, list_robots, load_robot
from jointwise.description.check import check_file, check_robot
from jointwise.description.files import LARGEST_BYTES
from jointwise.description.toml import robot_from_toml
from jointwise.description.urdf import robot_from_urdf, urdf_text
from jointwise.errors import DescriptionError
from jointwise.finding import Finding

JOINT = '[[joint]]\na = 0.1\nalpha = "pi/2"\nd = 0.2\n'
TOML = f'schema = 1\nconvention = "dh"\n{JOINT}'


def refused(path: Path, convention: str | None = None, tip: str | None = None) -> str:
    """Return the one line with which a file is refused, without its path."""
    with pytest.raises(DescriptionError) as caught:
        load_robot(path, convention=convention, tip=tip)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


# tables


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty"),
        ("a,alpha,d\n", ": the table has a header and no rows"),
        ("a,d\n1,2\n", ", line 1: the header has no column alpha"),
        ("a,alpha,d,a\n1,2,3,4\n", ", line 1: the header names a column twice"),
        ("a,alpha,d,colour\n1,2,3,4\n", ", line 1: the header has an unknown column 'colour'"),
        ("a,alpha,d\n1,2,3,4\n", ", line 2: 4 values, but the header names 3 columns"),
        ("a,alpha,d\n1,2,3\n# why\n\n1,2\n", ", line 5: 2 values, but the header names 3 columns"),
        ("a,alpha,d\n1,two,3\n", ", line 2, column alpha: 'two' is not a number"),
        ("a,alpha,d\n1,nan,3\n", ", line 2, column alpha: 'nan' is not a number"),
        ("a,alpha,d\n1,1e999,3\n", ", line 2, column alpha: '1e999' is not finite"),
        ("a,alpha,d\n1,pi/0,3\n", ", line 2, column alpha: 'pi/0' divides by zero"),
        ("a,alpha,d\n1,__import__('os'),3\n", ", line 2, column alpha: '__import__('os')' is not a number"),
        ("a,alpha,d\n1,().__class__,3\n", ", line 2, column alpha: '().__class__' is not a number"),
        ("a,alpha,d\n1,2**9**9**9,3\n", ", line 2, column alpha: '2**9**9**9' is not a number"),
        (f"a,alpha,d\n1,{'9' * 100},3\n", ", line 2, column alpha: longer than 64 characters"),
        ("a,alpha,d,type\n1,2,3,screw\n", ", line 2, column type: must be revolute or prismatic. Got 'screw'"),
        ("a,alpha,d,name\n1,2,3,x\n1,2,3,x\n", "two joints named 'x'"),
        ("a,alpha,d\n" + 65 * "1,2,3\n", ": 65 rows; a table may have at most 64"),
    ],
)
def test_wrong_table(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "arm.csv"
    file.write_text(text)
    with pytest.raises(DescriptionError) as caught:
        load_robot(file, convention="dh")
    assert message in str(caught.value)


def test_the_convention_is_never_guessed(tmp_path: Path) -> None:
    file = tmp_path / "arm.csv"
    file.write_text("a,alpha,d\n1,2,3\n")
    assert "does not state its convention" in refused(file)
    assert "must be one of dh, mdh, mdh-following. Got 'DHM'" in refused(file, "DHM")
    file.write_text("# convention: mdh\na,alpha,d\n1,2,3\n")
    assert "the file states the convention mdh, but dh was requested" in refused(file, "dh")


# TOML


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema = [", "x.toml: not valid TOML: Invalid value (at end of document)"),
        (TOML.replace("schema = 1", "schema = 2"), "schema must be 1. Got 2 instead"),
        (TOML.replace('convention = "dh"\n', ""), "does not state its convention"),
        (TOML.replace('"dh"', '"denavit"'), "Got 'denavit' instead"),
        ('schema = 1\nconvention = "dh"\n', "there is no [[joint]] table"),
        (TOML + "colour = 1\n", "x.toml, joint 1: unknown key 'colour'"),
        (TOML + JOINT.replace("d = 0.2\n", ""), "x.toml, joint 2: d is missing"),
        (
            TOML + "mass = 1.0\n",
            "joint 1: a body needs mass, center_of_mass and inertia; center_of_mass, inertia is missing",
        ),
        (TOML + "lower = nan\n", "joint 1: lower must be a finite number. Got nan instead"),
        (TOML + "lower = true\n", "joint 1: lower must be a finite number. Got True instead"),
        (TOML + "lower = \"__import__('os')\"\n", "joint 1: lower: '__import__('os')' is not a number"),
        (TOML + 'type = "screw"\n', "joint 1: type must be 'revolute' or 'prismatic'"),
        (
            TOML + "mass = 1\ncenter_of_mass = [1, 2]\ninertia = [1,0,0,1,0,1]\n",
            "center_of_mass must be a list of 3 numbers",
        ),
        ('inertial_frame = "moon"\n' + TOML, "inertial_frame must be 'link' or 'joint'. Got 'moon' instead"),
        ('schema = 1\nconvention = "dh"\n' + 65 * JOINT, "65 joints; there may be at most 64"),
    ],
)
def test_wrong_toml(text: str, message: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        robot_from_toml(text, "x.toml")
    assert message in str(caught.value)


# URDF

LINKS = '<link name="base"/>\n<link name="arm"/>\n<link name="hand"/>'
ENDS = '<parent link="base"/><child link="arm"/>'
TENSOR = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'


def urdf(body: str) -> str:
    return f'<robot name="r">\n{body}\n</robot>'


def one(inside: str = ENDS, kind: str = "revolute", rest: str = "") -> str:
    return urdf(f'{LINKS}\n<joint name="j" type="{kind}">{inside}</joint>{rest}')


def joined(name: str, parent: str, child: str, kind: str = "revolute") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/></joint>'


def body(inside: str) -> str:
    return urdf(
        f'<link name="base"/><link name="arm"><inertial>{inside}</inertial></link>\n{joined("j", "base", "arm")}'
    )


HAND = joined("k", "arm", "hand")
WRONG_URDF = {
    "empty": ("", ", line 1: not well-formed XML: no element found"),
    "malformed": (urdf("<link>\n<joint>"), ", line 4: not well-formed XML: mismatched tag"),
    "no URDF": ("<mujoco/>", ": the root element must be <robot>. Got <mujoco> instead"),
    "no name": ("<robot/>", "the attribute 'name' is missing"),
    "no link": (urdf(""), ": there is no <link>"),
    "doctype": ('<!DOCTYPE robot [<!ENTITY a "b">]>' + urdf(LINKS), ": a URDF has no document type and no entities"),
    "xacro": ('<robot name="r" xmlns:xacro="x"><xacro:arm/></robot>', "Expand it first: xacro file.xacro > file.urdf"),
    "link twice": (urdf(LINKS + '<link name="arm"/>'), ", line 4, link 'arm': the name is taken by the link of line 3"),
    "joint twice": (one(rest=one()[one().index("<joint") : one().index("\n</robot")]), "joint 'j': the name is taken"),
    "unknown type": (one(kind="hinge"), ", line 5, joint 'j': type must be one of revolute, continuous"),
    "no type": (urdf(f'{LINKS}<joint name="j">{ENDS}</joint>'), "joint 'j': the attribute 'type' is missing"),
    "no child": (one('<parent link="base"/>'), "joint 'j': there is no <child>"),
    "unknown child": (one(ENDS.replace("arm", "amr")), "child link 'amr' does not exist. Did you mean arm?"),
    "two origins": (one(ENDS + "<origin/><origin/>"), "joint 'j': there are 2 <origin>; one is allowed"),
    "four numbers": (one(ENDS + '<origin xyz="1 2 3 4"/>'), "xyz of <origin> must be 3 finite numbers. Got '1 2 3 4'"),
    "one number": (one(ENDS + '<origin xyz="1"/>'), "xyz of <origin> must be 3 finite numbers. Got '1'"),
    "not finite": (one(ENDS + '<origin rpy="0 nan 0"/>'), "rpy of <origin> must be 3 finite numbers. Got '0 nan 0'"),
    "no number": (one(ENDS + '<axis xyz="0 0 z"/>'), "xyz of <axis> must be 3 finite numbers. Got '0 0 z'"),
    "expression": (one(ENDS + '<limit upper="${pi}"/>'), "upper of <limit> must be a finite number. Got '${pi}'"),
    "infinite": (one(ENDS + '<limit effort="inf"/>'), "effort of <limit> must be a finite number. Got 'inf'"),
    "zero axis": (one(ENDS + '<axis xyz="0 0 0"/>'), "joint 'j': <axis> must be a direction. Got 0 0 0 instead"),
    "floating": (one(kind="floating", rest=HAND), "joint 'j': a floating joint has no single axis"),
    "planar": (one(kind="planar", rest=HAND), "joint 'j': a planar joint has no single axis"),
    "mimic": (one(ENDS + '<mimic joint="k"/>', rest=HAND), "joint 'j': it mimics 'k'. Coupled joints are not read"),
    "two roots": (one(), ": links 'base', 'hand' hang on no joint. A robot has one root"),
    "nothing moves": (one(kind="fixed", rest=joined("k", "arm", "hand", "fixed")), ": there is no moving joint"),
    "two parents": (
        one(rest=HAND + joined("m", "base", "hand")),
        ": link 'hand' hangs on two joints, 'k' and 'm': a closed loop. Open it by removing one",
    ),
    "ring": (one(rest=HAND + joined("m", "hand", "base")), ": links 'base', 'arm', 'hand' form a closed loop without"),
    "ring aside": (urdf(LINKS + HAND + joined("m", "hand", "arm")), ": links 'arm', 'hand' form a closed loop without"),
    "own parent": (
        urdf(LINKS + joined("m", "arm", "arm") + joined("n", "base", "hand")),
        ": links 'arm' form a closed",
    ),
    "branches": (
        one(rest=joined("k", "base", "hand")),
        ": the tree branches into 2 chains. Name the last link of one with",
    ),
    "no mass": (body(TENSOR), "link 'arm': <inertial> has no <mass>"),
    "no inertia": (body('<mass value="1"/>'), "link 'arm': <inertial> has no <inertia>"),
    "missing moment": (body('<mass value="1"/>' + TENSOR.replace('iyy="1" ', "")), "the attribute 'iyy' is missing"),
    "nan inertia": (
        body('<mass value="1"/>' + TENSOR.replace('"1"', '"nan"')),
        "ixx of <inertia> must be a finite number",
    ),
    "too large": (body('<mass value="1e308"/>' + TENSOR), "value of <mass> must be a finite number. Got '1e308'"),
    "tiny axis": (one(ENDS + '<axis xyz="0 0 1e-200"/>'), "<axis> must be a direction"),
    "null": (urdf("\x00"), ", line 2: not well-formed XML: invalid token"),
    "underscore": (body('<mass value="1_0"/>' + TENSOR), "value of <mass> must be a finite number. Got '1_0'"),
}


@pytest.mark.parametrize("case", WRONG_URDF)
def test_wrong_urdf(tmp_path: Path, case: str) -> None:
    text, message = WRONG_URDF[case]
    file = tmp_path / "arm.urdf"
    file.write_text(text)
    assert message in refused(file)


def test_branches_name_their_tips() -> None:
    with pytest.raises(DescriptionError, match="with tip: 'arm', 'hand'"):
        robot_from_urdf(one(rest=joined("k", "base", "hand")), "x.urdf")
    with pytest.raises(DescriptionError, match="there is no link 'hnad'. Did you mean hand?"):
        robot_from_urdf(one(rest=HAND), "x.urdf", "hnad")
    with pytest.raises(DescriptionError, match="no moving joint between the root and link 'base'"):
        robot_from_urdf(one(rest=HAND), "x.urdf", "base")


def test_a_long_chain_is_refused_without_trouble() -> None:
    links = "".join(f'<link name="l{k}"/>' for k in range(2001))
    chain = "".join(joined(f"j{k}", f"l{k}", f"l{k + 1}") for k in range(2000))
    with pytest.raises(DescriptionError, match="2000 moving joints; at most 64 are read"):
        robot_from_urdf(urdf(links + chain), "x.urdf")


def test_deep_elements_are_rejected() -> None:
    with pytest.raises(DescriptionError, match="at most 100 levels deep"):
        robot_from_urdf(urdf("<a>" * 5000 + "</a>" * 5000), "x.urdf")


# files and names


def test_files_that_are_none(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.toml") == ": no such file."
    folder = tmp_path / "folder.urdf"
    folder.mkdir()
    assert "cannot be read" in refused(folder)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\x00\xff\xfe\x80")
    assert "not a text file in UTF-8 (byte 1)" in refused(binary)
    huge = tmp_path / "huge.toml"
    with huge.open("wb") as stream:
        stream.truncate(LARGEST_BYTES + 1)
    assert "larger than a robot description may be" in refused(huge)
    assert "must end in .toml, .csv, .txt, .urdf or .xml. Got '.step' instead" in refused(tmp_path / "arm.step")


def test_unknown_names() -> None:
    with pytest.raises(DescriptionError, match="unknown robot 'ur5f'. Did you mean ur5"):
        jointwise.load_robot("ur5f")
    with pytest.raises(
        DescriptionError,
        match="convention, tip, base and fixed joints are for files; 'ur5e' is a name of the catalogue",
    ):
        jointwise.load_robot("ur5e", tip="tool0")
    with pytest.raises(DescriptionError, match="unknown mounting 'cieling'. Did you mean ceiling?"):
        gravity_vector("cieling")
    with pytest.raises(DescriptionError, match="tilt:AXIS:ANGLE"):
        gravity_vector("tilt:w:3")
    with pytest.raises(DescriptionError, match="three finite numbers"):
        gravity_vector([0.0, np.nan, 0.0])
    with pytest.raises(DescriptionError, match="payload mass must be finite and >= 0"):
        Payload(-1.0)


# what can be read and is yet wrong


def changed(inertial: np.ndarray | None = None, **limits: float) -> list[Finding]:
    """Return the findings about the pendulum with another body or other limits."""
    robot = load_robot("planar1")
    link = robot.links[0] if inertial is None else Link("link1", inertial)
    joint = replace(robot.joints[0], limits=replace(robot.joints[0].limits, **limits))
    return check_robot(replace(robot, joints=(joint,), links=(link,)))


def with_body(mass: float, moments: tuple[float, ...], center: tuple[float, ...] = (0.0, 0.0, 0.0)) -> list[Finding]:
    return changed(Link.from_center("l", mass, center, np.diag(moments)).inertial)


@pytest.mark.parametrize(
    ("found", "severity", "message"),
    [
        (with_body(0.0, (1.0, 1.0, 1.0)), "error", "mass must be > 0 for a link with inertia. Got 0 kg"),
        (with_body(-1.0, (1.0, 1.0, 1.0)), "error", "mass must be > 0 for a link with inertia. Got -1 kg"),
        (with_body(1.0, (1.0, 1.0, -0.1)), "error", "not positive definite: principal moments -0.1, 1, 1"),
        (with_body(1.0, (1.0, 0.2, 0.3)), "error", "triangle inequality: 1 > 0.2 + 0.3 kg m^2"),
        (with_body(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)), "warning", "the link is a point or a line"),
        (
            with_body(1.0, (1.0, 1.0, 1.0), (250.0, 0.0, 0.0)),
            "warning",
            "250 m from the joint frame. Are the lengths in m?",
        ),
        (with_body(1.0, (1e4, 1e4, 1e4)), "warning", "radius of gyration is 100 m. Is the inertia in kg m^2?"),
        (changed(np.zeros(10)), "warning", "no link has inertia"),
        (changed(), "info", "no motor data (gear ratio, rotor inertia, gain): joint1"),
        (changed(lower=1.0, upper=1.0), "error", "lower must be below upper. Got 1 and 1 instead"),
        (changed(velocity=0.0), "error", "the velocity limit must be > 0. Got 0 instead"),
        (changed(upper=360.0), "warning", "Is it in degrees?"),
    ],
)
def test_doubts(found: list[Finding], severity: str, message: str) -> None:
    assert any(finding.severity == severity and message in finding.evidence for finding in found), found


def test_doubtful_kinematics() -> None:
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    almost = Joint("almost", "revolute", spatial.rotation_x(1.5708), np.array([425.0, 0.0, 0.0]))
    joints = (Joint("a", "revolute", np.eye(3), np.zeros(3)), Joint("b", "revolute", turned, np.array([0, 0, 0.5])))
    body = load_robot("planar1").links[0].inertial
    robot = Robot("odd", (*joints, almost), (Link("1", body), Link("2", np.zeros(10)), Link("3", body)))
    messages = {(finding.subject, finding.evidence) for finding in check_robot(robot)}
    assert (
        "joint 2 'b'",
        "its axis is that of 'a': the motions of the two joints cannot be distinguished.",
    ) in messages
    assert ("joint 2 'b'", "the link has no inertia.") in messages
    assert ("joint 1 'a'", "no limit for lower, upper, velocity, effort.") in messages
    assert ("joint 3 'almost'", "it is 425 m from the joint before it. Are the lengths in m?") in messages
    assert any(
        where == "joint 3 'almost'" and "differs from multiples of 90 degrees by 4e-06 rad" in text
        for where, text in messages
    )


def test_the_catalogue_has_no_errors() -> None:
    for name in list_robots():
        assert not [finding for finding in check_robot(load_robot(name)) if finding.severity == "error"]


def test_findings_carry_the_line(tmp_path: Path) -> None:
    toml, table, tree = (tmp_path / name for name in ("arm.toml", "arm.csv", "arm.urdf"))
    toml.write_text(TOML + "velocity = -1\n\n" + JOINT)
    table.write_text("# convention: dh\n\na,alpha,d\n# first\n99,0,0\n\n0,0,0\n")
    tree.write_text(one(ENDS + '<limit effort="-1"/>', rest="\n" + HAND))
    assert Finding(
        "error", f"{toml}, line 3, joint 1 'joint1'", "the velocity limit must be > 0. Got -1 instead.", joint=0
    ) in check_file(toml)
    missing = "no limit for lower, upper, velocity, effort."
    assert Finding("warning", f"{toml}, line 9, joint 2 'joint2'", missing, joint=1) in check_file(toml)
    assert {f"{table}, line 5, joint 1 'joint1'", f"{table}, line 7, joint 2 'joint2'"} <= {
        f.subject for f in check_file(table)
    }
    assert Finding(
        "error", f"{tree}, line 5, joint 1 'j'", "the effort limit must be > 0. Got -1 instead.", joint=0
    ) in check_file(tree)
    assert Finding("warning", f"{tree}, line 6, joint 2 'k'", missing, joint=1) in check_file(tree)


def test_findings_without_a_line_where_the_layout_hides_it(tmp_path: Path) -> None:
    file = tmp_path / "arm.toml"
    file.write_text('schema = 1\nconvention = "dh"\njoint = [{a = 1, alpha = 0, d = 0}]\n')
    assert f"{file}, joint 1 'joint1'" in {finding.subject for finding in check_file(file)}


def test_an_unreadable_file_is_one_error(tmp_path: Path) -> None:
    file = tmp_path / "arm.csv"
    file.write_text("a,alpha,d\n1,2\n")
    found = check_file(file, partial(load_robot, convention="dh"))
    assert found == [Finding("error", f"{file}, line 2", "2 values, but the header names 3 columns.")]
    assert check_file(tmp_path / "none.csv") == [Finding("error", str(tmp_path / "none.csv"), "no such file.")]


def test_a_first_moment_without_mass_is_not_written() -> None:
    robot = load_robot("planar1")
    odd = replace(robot, links=(Link("l", np.array([0, 0, 0, 0, 0, 0, 1.0, 0, 0, 0])),))
    with pytest.raises(DescriptionError, match="cannot be written as URDF"):
        urdf_text(odd)


def test_a_line_that_never_ends_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("# convention: dh\na,alpha,d\n" + "1" * 200_000 + ",0,0\n")
    with pytest.raises(DescriptionError, match="line 3: longer than 4096 characters"):
        load_robot(path)


def test_toml_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(DescriptionError, match="not valid TOML"):
        load_robot(path)


@pytest.mark.parametrize(
    ("option", "message"), [({"convention": "mdh"}, "for a CSV table only"), ({"tip": "tool0"}, "in a URDF only")]
)
def test_options_that_a_file_cannot_use_are_refused(tmp_path: Path, option: dict[str, str], message: str) -> None:
    path = tmp_path / "robot.toml"
    path.write_text('schema = 1\nconvention = "dh"\n[[joint]]\na = 0\nalpha = 0\nd = 0\n')
    with pytest.raises(DescriptionError, match=message):
        load_robot(path, **option)
