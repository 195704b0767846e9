"""Changes of a URDF that leave every other byte as it is: inertials of links and dynamics of joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

from jointwise import spatial
from jointwise.spatial import Array

TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


@dataclass
class _Span:
    """An element in the bytes of a document: from `start` to `stop`; its content begins at `inner`, -1 if it is empty.

    `parts` are the children that may be replaced, by tag.
    """

    start: int
    inner: int = -1
    stop: int = -1
    parts: dict[str, _Span] = field(default_factory=dict)


def edited_urdf(text: str, inertials: Mapping[str, Array | None], dynamics: Mapping[str, tuple[float, float]]) -> str:
    """Return a URDF with other inertials and dynamics.

    Args:
        text: The URDF, valid.
        inertials: Ten parameters in the frame of the link by its name; None to remove <inertial>.
        dynamics: Damping (Nm s/rad) and Coulomb friction (Nm) by the name of the joint.

    Returns:
        The text; bytes outside of the elements <inertial> and <dynamics> are unchanged.

    """
    data = text.encode()
    links, joints = _spans(data)
    changes = [
        change
        for name, inertial in inertials.items()
        if (change := _change(data, links[name], "inertial", None if inertial is None else inertial_xml(inertial)))
    ]
    for name, (damping, friction) in dynamics.items():
        attributes = f'damping="{damping!r}" friction="{friction!r}"'
        change = _change(data, joints[name], "dynamics", f"<dynamics {attributes}/>")
        changes += [change] if change else []
    for start, stop, new in sorted(changes, reverse=True):
        data = data[:start] + new + data[stop:]
    return data.decode()


def inertial_xml(inertial: Array) -> str:
    """Return <inertial> of ten parameters: tensor about the centre of mass, in the axes of the link."""
    mass, center, tensor = spatial.split_inertial(inertial)
    six = spatial.tensor_to_six(tensor)
    moments = " ".join(f'{name}="{float(value)!r}"' for name, value in zip(TENSOR, six, strict=True))
    place = " ".join(repr(float(x)) for x in np.asarray(center))
    return (
        f'<inertial><origin xyz="{place}" rpy="0 0 0"/><mass value="{float(mass)!r}"/><inertia {moments}/></inertial>'
    )


def _change(data: bytes, element: _Span, tag: str, new: str | None) -> tuple[int, int, bytes] | None:
    """Return the bytes to replace so that an element has a child `new`; None if there is nothing to do."""
    old = element.parts.get(tag)
    if old is not None:
        return old.start, old.stop, (new or "").encode()
    if new is None:
        return None
    if element.inner >= 0:
        return element.inner, element.inner, _indented(data, element.inner, new)
    name = data[element.start + 1 : element.stop].split(None, 1)[0].rstrip(b"/>")
    slash = data.rindex(b"/", element.start, element.stop)
    return slash, element.stop, f">{new}</{name.decode()}>".encode()


def _indented(data: bytes, place: int, new: str) -> bytes:
    """Return a new first child, on a line of its own where the content begins with a line break."""
    rest = data[place:]
    blank = rest[: len(rest) - len(rest.lstrip())]
    return blank + new.encode() if b"\n" in blank else new.encode()


def _spans(data: bytes) -> tuple[dict[str, _Span], dict[str, _Span]]:
    """Return the links and joints of a document by name."""
    parser = expat.ParserCreate("utf-8")
    links: dict[str, _Span] = {}
    joints: dict[str, _Span] = {}
    opened: list[tuple[str, _Span]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        place = parser.CurrentByteIndex
        span = _Span(place)
        closing = _tag_end(data, place)
        if data[closing - 2 : closing] == b"/>":
            span.stop = closing
        else:
            span.inner = closing
        if len(opened) == 1 and tag in ("link", "joint"):
            (links if tag == "link" else joints)[attributes["name"]] = span
        elif len(opened) == 2 and (opened[-1][0], tag) in (("link", "inertial"), ("joint", "dynamics")):
            opened[-1][1].parts[tag] = span
        opened.append((tag, span))

    def end(tag: str) -> None:
        _, span = opened.pop()
        if span.stop < 0:
            span.stop = data.index(b">", parser.CurrentByteIndex) + 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(data, True)
    return links, joints


def _tag_end(data: bytes, place: int) -> int:
    """Return the index after the start tag that begins at `place`; a quoted value may contain >."""
    quote = 0
    for k in range(place, len(data)):
        byte = data[k]
        if quote:
            quote = 0 if byte == quote else quote
        elif byte in b"\"'":
            quote = byte
        elif byte == ord(">"):
            return k + 1
    raise ValueError("a start tag does not end")
