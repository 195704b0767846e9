"""URDF text to checked XML: every element the reader relies on is verified here, with its line.

The library that turns the XML into numbers repairs what is malformed, takes 1 for a missing moment of inertia, cuts
off a fourth coordinate and keeps the last of two equal names; none of that may decide a robot's dynamics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from jointwise.errors import DescriptionError, MissingExtraError, nearest

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_LIMITS = ("lower", "upper", "velocity", "effort")
_LARGEST = 1e100
"""Numbers from here on are refused, so that products of three stay finite."""
_READ = {
    "robot": ("link", "joint"),
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("parent", "child", "origin", "axis", "limit", "mimic"),
}
"""What is read of each element; the rest (meshes, materials, plugins) is dropped unseen."""

Element = Any
"""An element of lxml, which brings no types."""


def checked_urdf(text: str, origin: str) -> Element:
    """Return the root element with only what is read, every name, reference and number of it verified."""
    root = parsed_xml(text, origin)
    if root.tag != "robot":
        raise DescriptionError(f"{origin}: the root element must be <robot>. Got <{root.tag}> instead.")
    _refuse_xacro(root, origin)
    _attribute(root, "name", _where(root, origin))
    _drop_unread(root)
    links = _unique_names(root.findall("link"), origin)
    _unique_names(root.findall("joint"), origin)
    for link in root.findall("link"):
        _check_link(link, _where(link, origin))
    for joint in root.findall("joint"):
        _check_joint(joint, links, _where(joint, origin))
    return root


def parsed_xml(text: str, origin: str) -> Element:
    """Return the root of well-formed XML without document type; nothing outside the text is ever opened."""
    try:
        from lxml import etree
    except ImportError:
        raise MissingExtraError("yourdfpy", "urdf", "Reading a URDF") from None
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DescriptionError(f"{origin}: a URDF has no document type and no entities. Remove <!DOCTYPE ...>.")
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as problem:
        message = " ".join(str(problem.msg).rsplit(", line ", 1)[0].split())
        raise DescriptionError(f"{origin}, line {problem.lineno}: not well-formed XML: {message}.") from None


def joint_lines(text: str, origin: str) -> dict[str, int]:
    """Return the line of every joint element by its name."""
    return {joint.get("name", ""): joint.sourceline for joint in parsed_xml(text, origin).findall("joint")}


def _refuse_xacro(root: Element, origin: str) -> None:
    for element in root.iter():
        if element.prefix == "xacro":
            raise DescriptionError(
                f"{_where(element, origin)}: this is a xacro template. Expand it first: xacro file.xacro > file.urdf."
            )


def _drop_unread(element: Element) -> None:
    for child in list(element):
        if child.tag in _READ.get(element.tag, ()):
            _drop_unread(child)
        else:
            element.remove(child)


def _where(element: Element, origin: str) -> str:
    name = element.get("name")
    return f"{origin}, line {element.sourceline}, {element.tag}" + (f" '{name}'" if name else "")


def _unique_names(elements: Sequence[Element], origin: str) -> set[str]:
    first: dict[str, Element] = {}
    for element in elements:
        name = _attribute(element, "name", _where(element, origin))
        if name in first:
            raise DescriptionError(
                f"{_where(element, origin)}: the name is taken by the {element.tag} of line {first[name].sourceline}."
            )
        first[name] = element
    return set(first)


def _check_link(link: Element, where: str) -> None:
    inertial = _only(link, "inertial", where)
    if inertial is None:
        return
    _check_origin(inertial, where)
    for tag, keys in (("mass", ("value",)), ("inertia", _TENSOR)):
        element = _only(inertial, tag, where)
        if element is None:
            raise DescriptionError(f"{where}: <inertial> has no <{tag}>. Give it, or leave <inertial> out.")
        for key in keys:
            _numbers(element, key, 1, where)


def _check_joint(joint: Element, links: set[str], where: str) -> None:
    kind = _attribute(joint, "type", where)
    if kind not in JOINT_TYPES:
        raise DescriptionError(f"{where}: type must be one of {', '.join(JOINT_TYPES)}. Got '{kind}' instead.")
    for tag in ("parent", "child"):
        _check_reference(joint, tag, links, where)
    _check_origin(joint, where)
    axis, limit = _only(joint, "axis", where), _only(joint, "limit", where)
    if axis is not None and kind != "fixed" and math.hypot(*_numbers(axis, "xyz", 3, where)) < 1e-12:
        raise DescriptionError(f"{where}: <axis> is 0 0 0. It must name a direction.")
    _check_given(limit, _LIMITS, 1, where)


def _check_reference(joint: Element, tag: str, links: set[str], where: str) -> None:
    element = _only(joint, tag, where)
    if element is None:
        raise DescriptionError(f"{where}: there is no <{tag}>.")
    name = _attribute(element, "link", f"{where}, {tag}")
    if name not in links:
        raise DescriptionError(f"{where}: {tag} link '{name}' does not exist. {nearest(name, links)}")


def _check_origin(element: Element, where: str) -> None:
    _check_given(_only(element, "origin", where), ("xyz", "rpy"), 3, where)


def _check_given(element: Element | None, keys: Sequence[str], count: int, where: str) -> None:
    for key in keys:
        if element is not None and key in element.attrib:
            _numbers(element, key, count, where)


def _only(element: Element, tag: str, where: str) -> Element | None:
    found = element.findall(tag)
    if len(found) > 1:
        raise DescriptionError(f"{where}: there are {len(found)} <{tag}>; one is allowed.")
    return found[0] if found else None


def _attribute(element: Element, key: str, where: str) -> str:
    value = element.get(key)
    if not value:
        raise DescriptionError(f"{where}: the attribute '{key}' is missing.")
    return str(value)


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
        if abs(value) < _LARGEST and "_" not in word:
            yield value
