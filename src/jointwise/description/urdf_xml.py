"""URDF text to typed links and joints: every name, reference and number is checked, with its line.

Only the elements that describe dynamics are read; meshes, materials and plugins are skipped. Document types and
entities are rejected, so nothing outside the text is ever opened and no entity can expand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

from jointwise import spatial
from jointwise.description.robot import Limits
from jointwise.description.table import Placement, exact_angle
from jointwise.errors import DescriptionError, nearest
from jointwise.spatial import Array

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
LARGEST = 1e100
"""Larger numbers are rejected, so that products of three stay finite."""
DEEPEST = 100
"""Levels of elements; a URDF has about ten."""


@dataclass(frozen=True)
class Element:
    """An XML element.

    Attributes:
        tag: Name of the element.
        attributes: Attributes by name.
        line: Line of its start tag, 1-based.
        children: Elements inside it.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        """Return the children with a tag."""
        return [child for child in self.children if child.tag == tag]


@dataclass(frozen=True)
class UrdfLink:
    """A link: its ten standard parameters in the link frame, zeros without <inertial>."""

    name: str
    inertial: Array


@dataclass(frozen=True)
class UrdfJoint:
    """A joint of a document.

    Attributes:
        name: Name of the joint.
        type: One of `JOINT_TYPES`.
        parent: Name of the parent link.
        child: Name of the child link.
        origin: Placement of the child link in the parent link at q = 0.
        axis: Joint axis in the child frame, (3,).
        limits: Limits of position, speed and effort.
        mimic: Name of the joint that it mimics; None for none.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Placement
    axis: Array
    limits: Limits
    mimic: str | None


@dataclass(frozen=True)
class Urdf:
    """The links and joints of a document.

    Attributes:
        name: Name of the robot.
        links: Links, in the order of the document.
        joints: Joints, in the order of the document.
    """

    name: str
    links: tuple[UrdfLink, ...]
    joints: tuple[UrdfJoint, ...]


def read_urdf(text: str, origin: str) -> Urdf:
    """Return the links and joints of a URDF; DescriptionError names `origin` (the file), the line and the element."""
    root = parse_xml(text, origin)
    if root.tag != "robot":
        raise DescriptionError(f"{origin}: the root element must be <robot>. Got <{root.tag}> instead.")
    name = _attribute(root, "name", _where(root, origin))
    links, joints = _unique_names(root.all("link"), origin), _unique_names(root.all("joint"), origin)
    return Urdf(
        name,
        tuple(UrdfLink(name, _inertial(element, _where(element, origin))) for name, element in links.items()),
        tuple(_joint(name, element, set(links), _where(element, origin)) for name, element in joints.items()),
    )


def parse_xml(text: str, origin: str) -> Element:
    """Return the root of well-formed XML without document type, and no template of xacro."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DescriptionError(f"{origin}: a URDF has no document type and no entities. Remove <!DOCTYPE ...>.")
    parser = expat.ParserCreate("utf-8")
    document = Element("", {}, 0)
    opened = [document]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, parser.CurrentLineNumber)
        if tag.startswith("xacro:"):
            raise DescriptionError(
                f"{_where(element, origin)}: this is a xacro template. Expand it first: xacro file.xacro > file.urdf."
            )
        if len(opened) > DEEPEST:
            raise DescriptionError(f"{_where(element, origin)}: must be at most {DEEPEST} levels deep.")
        opened[-1].children.append(element)
        opened.append(element)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: opened.pop()
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as problem:
        message = expat.errors.messages[problem.code].removeprefix("not well-formed ").strip("()")
        raise DescriptionError(f"{origin}, line {problem.lineno}: not well-formed XML: {message}.") from None
    return document.children[0]


def joint_lines(text: str, origin: str) -> dict[str, int]:
    """Return the line of every joint element by its name."""
    return {joint.attributes.get("name", ""): joint.line for joint in parse_xml(text, origin).all("joint")}


def _where(element: Element, origin: str) -> str:
    name = element.attributes.get("name")
    return f"{origin}, line {element.line}, {element.tag}" + (f" '{name}'" if name else "")


def _unique_names(elements: Sequence[Element], origin: str) -> dict[str, Element]:
    first: dict[str, Element] = {}
    for element in elements:
        name = _attribute(element, "name", _where(element, origin))
        if name in first:
            raise DescriptionError(
                f"{_where(element, origin)}: the name is taken by the {element.tag} of line {first[name].line}."
            )
        first[name] = element
    return first


def _inertial(link: Element, where: str) -> Array:
    """Return the ten parameters of a link in its frame."""
    inertial = _only(link, "inertial", where)
    if inertial is None:
        return np.zeros(10)
    placement = _origin(inertial, where)
    numbers = {}
    for tag, keys in (("mass", ("value",)), ("inertia", TENSOR)):
        element = _only(inertial, tag, where)
        if element is None:
            raise DescriptionError(f"{where}: <inertial> has no <{tag}>. Add it, or remove <inertial>.")
        numbers[tag] = [_numbers(element, key, 1, where)[0] for key in keys]
    tensor = spatial.six_to_tensor(np.array(numbers["inertia"]))
    return placement.moved(spatial.inertial_vector(numbers["mass"][0], np.zeros(3), tensor))


def _joint(name: str, joint: Element, links: set[str], where: str) -> UrdfJoint:
    kind = _attribute(joint, "type", where)
    if kind not in JOINT_TYPES:
        raise DescriptionError(f"{where}: type must be one of {', '.join(JOINT_TYPES)}. Got '{kind}' instead.")
    mimic = _only(joint, "mimic", where)
    return UrdfJoint(
        name=name,
        type=kind,
        parent=_reference(joint, "parent", links, where),
        child=_reference(joint, "child", links, where),
        origin=_origin(joint, where),
        axis=_axis(joint, kind, where),
        limits=_limits(joint, kind, where),
        mimic=None if mimic is None else mimic.attributes.get("joint", ""),
    )


def _reference(joint: Element, tag: str, links: set[str], where: str) -> str:
    element = _only(joint, tag, where)
    if element is None:
        raise DescriptionError(f"{where}: there is no <{tag}>.")
    name = _attribute(element, "link", f"{where}, {tag}")
    if name not in links:
        raise DescriptionError(f"{where}: {tag} link '{name}' does not exist. {nearest(name, links)}")
    return name


def _axis(joint: Element, kind: str, where: str) -> Array:
    """Return the axis of a joint, x by default."""
    element = _only(joint, "axis", where)
    if element is None or kind == "fixed":
        return np.array([1.0, 0.0, 0.0])
    axis = _numbers(element, "xyz", 3, where)
    if math.hypot(*axis) < 1e-12:
        raise DescriptionError(f"{where}: <axis> must be a direction. Got 0 0 0 instead.")
    return np.array(axis)


def _limits(joint: Element, kind: str, where: str) -> Limits:
    """Return the limits of a joint; a continuous one has no position limits."""
    element = _only(joint, "limit", where)
    keys = ("lower", "upper", "velocity", "effort")
    numbers = {key: _numbers(element, key, 1, where)[0] for key in keys if element and key in element.attributes}
    if kind == "continuous":
        return Limits(velocity=numbers.get("velocity"), effort=numbers.get("effort"))
    return Limits(**numbers)


def _origin(element: Element, where: str) -> Placement:
    """Return the transform of <origin>; entries below 1e-15 are rounding of cos(π/2), 1.5708 stands for π/2."""
    origin = _only(element, "origin", where)
    if origin is None:
        return Placement()
    xyz, rpy = (
        _numbers(origin, key, 3, where) if key in origin.attributes else [0.0, 0.0, 0.0] for key in ("xyz", "rpy")
    )
    rotation = spatial.rotation_rpy(*map(exact_angle, rpy))
    return Placement(np.where(np.abs(rotation) < 1e-15, 0.0, rotation), np.array(xyz))


def _only(element: Element, tag: str, where: str) -> Element | None:
    found = element.all(tag)
    if len(found) > 1:
        raise DescriptionError(f"{where}: there are {len(found)} <{tag}>; one is allowed.")
    return found[0] if found else None


def _attribute(element: Element, key: str, where: str) -> str:
    value = element.attributes.get(key)
    if not value:
        raise DescriptionError(f"{where}: the attribute '{key}' is missing.")
    return value


def _numbers(element: Element, key: str, count: int, where: str) -> list[float]:
    text = _attribute(element, key, f"{where}, {element.tag}")
    values = list(_finite(text))
    if len(values) != count or len(text.split()) != count:
        wanted = "a finite number" if count == 1 else f"{count} finite numbers"
        raise DescriptionError(f"{where}: {key} of <{element.tag}> must be {wanted}. Got '{text[:64]}' instead.")
    return values


def _finite(text: str) -> Iterator[float]:
    for word in text.split():
        try:
            value = float(word)
        except ValueError:
            continue
        if abs(value) < LARGEST and "_" not in word:
            yield value
