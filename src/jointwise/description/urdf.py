"""Robots from and as URDF: a tree of links becomes one serial chain, fixed links merged into the moving ones.

A URDF link frame L_j moves about any axis; the canonical frame {j} has its z along it. With ``A_j e_z = axis_j``::

    {j} = L_j · A_j        T_j(q) = A_{j-1}ᵀ · (fixed joints) · origin_j · A_j · Rot_z(q) or Trans_z(q)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast
from xml.etree import ElementTree as ET

import numpy as np

from jointwise import spatial
from jointwise.description.robot import Joint, JointKind, Link, Robot
from jointwise.description.table import MOST_JOINTS, Placement
from jointwise.description.urdf_xml import Urdf, UrdfJoint, UrdfLink, read_urdf
from jointwise.errors import DescriptionError, nearest
from jointwise.spatial import Array

_KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic"}


def robot_from_urdf(
    text: str,
    origin: str,
    tip: str | None = None,
    base: str | None = None,
    fixed: Mapping[str, float] | None = None,
) -> Robot:
    """Return the serial robot from the link `base` of a URDF to the link `tip`.

    Without `tip` the tree must have one chain of moving joints; the tool is then the one link at the end of the fixed
    joints after it, or, where these branch, the last moving link itself. Links on fixed joints are merged into the
    moving link that carries them, those before the first moving joint into the base. With `tip`, branches with moving
    joints of their own are left out and `sources["inertials"]` names them. Meshes are never opened; <dynamics>,
    <transmission> and <safety_controller> are not read.

    Args:
        text: The URDF.
        origin: Name of the file, for messages.
        tip: Last link of the chain; None if there is only one chain.
        base: First link, whose frame is the base frame; what lies before it is left out. None for the root.
        fixed: Joints that are held at a value (rad or m): their links are merged like those of fixed joints.

    Raises:
        DescriptionError: The text is no URDF, or the chain is not unique.
    """
    tree = _Tree.of(_with_fixed(read_urdf(text, origin), fixed or {}, origin), origin)
    tree = tree if base is None else tree.from_link(base)
    end = tree.checked_tip(tip) if tip is not None else tree.only_tip()
    path = tree.path(end)
    moving = [joint for joint in path if joint.type != "fixed"]
    _refuse_unsuitable(moving, end, origin)
    joints, links, end_frame = _chain(tree, path)
    name, left_out = tree.document.name, _left_out(tree, moving)
    file = Path(origin).name
    sources = {"kinematics": f"{file}, tool at link '{end}'", "inertials": f"{file}{left_out}"}
    return Robot(name, joints, links, end_frame.rotation, end_frame.translation, sources=sources)


@dataclass(frozen=True)
class _Tree:
    """The links of a document, each hanging on one joint, all on one root."""

    document: Urdf
    origin: str
    links: dict[str, UrdfLink]
    children: dict[str, list[UrdfJoint]]
    parents: dict[str, UrdfJoint]

    @classmethod
    def of(cls, document: Urdf, origin: str) -> _Tree:
        """Return the tree, or raise DescriptionError if the joints make none."""
        links = {link.name: link for link in document.links}
        children: dict[str, list[UrdfJoint]] = {name: [] for name in links}
        parents: dict[str, UrdfJoint] = {}
        for joint in document.joints:
            if joint.child in parents:
                raise DescriptionError(
                    f"{origin}: link '{joint.child}' hangs on two joints, '{parents[joint.child].name}' and "
                    f"'{joint.name}': a closed loop. Open it by removing one; only serial chains are read."
                )
            parents[joint.child] = joint
            children[joint.parent].append(joint)
        tree = cls(document, origin, links, children, parents)
        tree.refuse_loop()
        return tree

    def from_link(self, base: str) -> _Tree:
        """Return the tree below a link."""
        self.checked_tip(base)
        joints = tuple(self.below(base))
        kept = {base, *(joint.child for joint in joints)}
        links = tuple(link for link in self.document.links if link.name in kept)
        return _Tree.of(replace(self.document, links=links, joints=joints), self.origin)

    def refuse_loop(self) -> None:
        """Demand one root from which every link is reached."""
        if not self.links:
            raise DescriptionError(f"{self.origin}: there is no <link>.")
        roots = [name for name in self.links if name not in self.parents]
        if len(roots) > 1:
            raise DescriptionError(
                f"{self.origin}: links {_listed(roots)} hang on no joint. A robot has one root; join or remove them."
            )
        reached = {roots[0], *(joint.child for joint in self.below(roots[0]))} if roots else set()
        loop = [name for name in self.links if name not in reached]
        if loop:
            raise DescriptionError(
                f"{self.origin}: links {_listed(loop)} form a closed loop without a root. Only serial chains are read."
            )

    def below(self, link: str, fixed_only: bool = False) -> Iterator[UrdfJoint]:
        """Yield the joints below a link, parents first; `fixed_only` stops at moving joints."""
        waiting = [link]
        while waiting:
            for joint in self.children[waiting.pop()]:
                if not fixed_only or joint.type == "fixed":
                    yield joint
                    waiting.append(joint.child)

    def path(self, tip: str) -> list[UrdfJoint]:
        """Return the joints from the root to a link."""
        joints = []
        while tip in self.parents:
            joints.append(self.parents[tip])
            tip = joints[-1].parent
        return joints[::-1]

    def checked_tip(self, tip: str) -> str:
        """Return `tip` if it is a link."""
        if tip not in self.links:
            raise DescriptionError(f"{self.origin}: there is no link '{tip}'. {nearest(tip, self.links)}")
        return tip

    def only_tip(self) -> str:
        """Return the end of the only chain of moving joints, or name the links it could be."""
        ends = [
            joint.child
            for joint in self.document.joints
            if joint.type != "fixed" and all(below.type == "fixed" for below in self.below(joint.child))
        ]
        if not ends:
            raise DescriptionError(f"{self.origin}: there is no moving joint.")
        tips = [tip for end in ends for tip in self.fixed_leaves(end)]
        if len(ends) > 1:
            raise DescriptionError(
                f"{self.origin}: the tree branches into {len(ends)} chains. Name the last link of one with tip: "
                f"{_listed(tips)}."
            )
        return tips[0] if len(tips) == 1 else ends[0]

    def fixed_leaves(self, link: str) -> list[str]:
        """Return the links without children that are fixed to a link, or itself."""
        fixed = [link, *(joint.child for joint in self.below(link, fixed_only=True))]
        return [name for name in fixed if not self.children[name]]

    def body(self, link: str) -> Array:
        """Return the ten parameters of a link with all that is fixed to it, in the link's frame."""
        total = self.links[link].inertial
        placed = {link: Placement()}
        for joint in self.below(link, fixed_only=True):
            placed[joint.child] = placed[joint.parent] @ joint.origin
            total = total + placed[joint.child].moved(self.links[joint.child].inertial)
        return total


def _with_fixed(document: Urdf, fixed: Mapping[str, float], origin: str) -> Urdf:
    """Return a document in which some joints are held at a value."""
    names = [joint.name for joint in document.joints if joint.type in _KINDS]
    for name in fixed:
        if name not in names:
            raise DescriptionError(f"{origin}: there is no moving joint '{name}' to fix. {nearest(name, names)}")
    joints = (_held(joint, fixed[joint.name]) if joint.name in fixed else joint for joint in document.joints)
    return replace(document, joints=tuple(joints))


def _held(joint: UrdfJoint, value: float) -> UrdfJoint:
    """Return a joint held at a value (rad or m)."""
    if _KINDS[joint.type] == "revolute":
        moved = Placement(spatial.rotation_axis_angle(joint.axis, value))
    else:
        moved = Placement(translation=value * joint.axis)
    return replace(joint, type="fixed", origin=joint.origin @ moved, mimic=None)


def _refuse_unsuitable(moving: list[UrdfJoint], tip: str, origin: str) -> None:
    if not moving:
        raise DescriptionError(f"{origin}: there is no moving joint between the root and link '{tip}'.")
    if len(moving) > MOST_JOINTS:
        raise DescriptionError(f"{origin}: {len(moving)} moving joints; at most {MOST_JOINTS} are read.")
    for joint in moving:
        if joint.type not in _KINDS:
            raise DescriptionError(
                f"{origin}, joint '{joint.name}': a {joint.type} joint has no single axis. "
                "Only revolute, continuous, prismatic and fixed joints are read; a fixed base needs a fixed joint."
            )
        if joint.mimic is not None:
            raise DescriptionError(
                f"{origin}, joint '{joint.name}': it mimics '{joint.mimic}'. Coupled joints are not read; "
                "make it fixed, or name a tip before it."
            )


def _chain(tree: _Tree, path: list[UrdfJoint]) -> tuple[tuple[Joint, ...], tuple[Link, ...], Placement]:
    """Return joints, links and what follows the last moving joint."""
    joints, links, before = [], [], Placement()
    for joint in path:
        before = before @ joint.origin
        if joint.type == "fixed":
            continue
        turned = Placement(spatial.rotation_z_to(joint.axis))
        back = Placement(turned.rotation.T)
        placed = before @ turned
        kind = cast(JointKind, _KINDS[joint.type])
        joints.append(Joint(joint.name, kind, placed.rotation, placed.translation, joint.limits))
        links.append(Link(joint.child, back.moved(tree.body(joint.child))))
        before = back
    return tuple(joints), tuple(links), before


def _left_out(tree: _Tree, chain: list[UrdfJoint]) -> str:
    names = {joint.name for joint in chain}
    others = [joint.name for joint in tree.document.joints if joint.type != "fixed" and joint.name not in names]
    return f"; left out with all they carry: joints {_listed(others)}" if others else ""


MOST_LISTED = 12
"""Names in a message."""


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(f"'{name}'" for name in names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class MovingLink:
    """A moving link of a chain as its URDF has it.

    Attributes:
        joint: Name of the joint that moves it.
        link: Name of the link.
        rotation: A, (3, 3), which turns the z axis to the joint axis: ``{j} = L · A``, L the frame of the link.
        fixed: Ten parameters of the links that are fixed to it, in its frame L, (10,).
        fixed_names: Names of those with mass.
    """

    joint: str
    link: str
    rotation: Array
    fixed: Array
    fixed_names: tuple[str, ...]


def moving_links(text: str, origin: str, tip: str | None = None) -> tuple[MovingLink, ...]:
    """Return the moving links of the chain that `robot_from_urdf` reads, base to tip."""
    tree = _Tree.of(read_urdf(text, origin), origin)
    path = tree.path(tree.checked_tip(tip) if tip is not None else tree.only_tip())
    found = []
    for joint in path:
        if joint.type != "fixed":
            below = [each.child for each in tree.below(joint.child, fixed_only=True)]
            heavy = tuple(name for name in below if tree.links[name].inertial.any())
            fixed = tree.body(joint.child) - tree.links[joint.child].inertial
            rotation = spatial.rotation_z_to(joint.axis)
            found.append(MovingLink(joint.name, joint.child, rotation, fixed, heavy))
    return tuple(found)


# -- a robot as text, in full precision --


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
