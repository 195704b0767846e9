"""A robot as URDF text, in full precision."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

import numpy as np

from jointwise import spatial
from jointwise.description.robot import Joint, Link, Robot
from jointwise.errors import DescriptionError
from jointwise.spatial import Array


def urdf_text(robot: Robot) -> str:
    """Return the URDF of a robot: one link a joint in frame {j}, axis z, and a last link at the tool.

    Inertia is about the centre of mass; a link without inertia gets no <inertial>. A revolute joint without position
    limits is written as continuous. Motors, acceleration limits and sources do not exist in a URDF and are left out.
    """
    root = ET.Element("robot", name=robot.name)
    taken = {link.name for link in robot.links}
    parent = _free_name("base", taken)
    ET.SubElement(root, "link", name=parent)
    for joint, link in zip(robot.joints, robot.links, strict=True):
        _add_link(root, link)
        _add_joint(root, joint, parent, link.name)
        parent = link.name
    tool = _free_name("tool", taken)
    ET.SubElement(root, "link", name=tool)
    fixed = ET.SubElement(root, "joint", name=_free_name("tool", {joint.name for joint in robot.joints}), type="fixed")
    _connect(fixed, parent, tool, robot.tool_rotation, robot.tool_translation)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def rpy_angles(rotation: Array) -> Array:
    """Return roll, pitch, yaw (rad) with ``rotation = Rz(yaw) Ry(pitch) Rx(roll)``; yaw is 0 at pitch ±pi/2.

    Roll is taken from what is left after yaw, so that the product is exact next to pitch ±pi/2, too.
    """
    R = np.asarray(rotation, dtype=float)
    flat = np.hypot(R[0, 0], R[1, 0])
    yaw = np.arctan2(R[1, 0], R[0, 0]) if flat > 1e-15 else 0.0
    c, s = np.cos(yaw), np.sin(yaw)
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, np.arctan2(-R[2, 0], flat), yaw])


def _add_link(root: ET.Element, link: Link) -> None:
    element = ET.SubElement(root, "link", name=link.name)
    if not link.inertial.any():
        return
    mass, center, tensor = spatial.split_inertial(link.inertial)
    if mass == 0.0 and link.inertial[6:9].any():
        raise DescriptionError(f"link '{link.name}': a first moment without mass cannot be written as URDF.")
    inertial = ET.SubElement(element, "inertial")
    ET.SubElement(inertial, "origin", xyz=_words(center), rpy="0 0 0")
    ET.SubElement(inertial, "mass", value=_words([mass]))
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    six = spatial.tensor_to_six(tensor)
    ET.SubElement(inertial, "inertia", {name: _words([value]) for name, value in zip(names, six, strict=True)})


def _add_joint(root: ET.Element, joint: Joint, parent: str, child: str) -> None:
    limits = joint.limits
    free = joint.kind == "revolute" and limits.lower is None and limits.upper is None
    element = ET.SubElement(root, "joint", name=joint.name, type="continuous" if free else joint.kind)
    _connect(element, parent, child, joint.rotation, joint.translation)
    ET.SubElement(element, "axis", xyz="0 0 1")
    values = {key: getattr(limits, key) for key in ("lower", "upper", "velocity", "effort")}
    written = {key: _words([value]) for key, value in values.items() if value is not None}
    if written:
        ET.SubElement(element, "limit", written)


def _connect(joint: ET.Element, parent: str, child: str, rotation: Array, translation: Array) -> None:
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    ET.SubElement(joint, "origin", xyz=_words(translation), rpy=_words(rpy_angles(rotation)))


def _words(values: Iterable[float]) -> str:
    """Return the numbers with as many digits as bring the same float back."""
    return " ".join(repr(float(value) + 0.0) for value in values)


def _free_name(wish: str, taken: set[str]) -> str:
    while wish in taken:
        wish += "_"
    return wish
