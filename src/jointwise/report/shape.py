"""What an arm looks like, made from its kinematics alone: limbs, joint housings and the tool's axes as one mesh.

Limbs and housings stand along the skeleton of the arm, `model.skeleton`, and are as thick as that says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointwise.description.robot import Robot
from jointwise.model.skeleton import NEAR, SLENDER, Span, arm_length, arm_radii, link_spans
from jointwise.spatial import Array

Tone = Literal["limb", "housing", "cap", "base", "x", "y", "z"]
TONES: dict[Tone, str] = {
    "limb": "#dde3ea",
    "housing": "#5f7186",
    "cap": "#2f7cc0",
    "base": "#8794a5",
    "x": "#d64545",
    "y": "#2f9e57",
    "z": "#2b63d9",
}
SLIM = 3.0
"""A joint longer than this many radii along its axis is a column with a collar, a shorter one is a housing."""
SEGMENTS = 20
"""Sides of everything round."""

Faces = NDArray[np.int64]


@dataclass(frozen=True)
class Mesh:
    """Quadrilaterals (faces, 4) that look outwards, of vertices (n, 3) in m in the frame of `link` (n,); `tone` (n,).

    Link 0 is the base, link n + 1 the tool; a triangle repeats its last corner.
    """

    vertices: Array
    faces: Faces
    link: Faces
    tone: Faces

    @property
    def triangles(self) -> Faces:
        """The same faces as triangles, (triangles, 3)."""
        halves = np.concatenate([self.faces[:, [0, 1, 2]], self.faces[:, [0, 2, 3]]])
        whole: Faces = halves[halves[:, 1] != halves[:, 2]]
        return whole


def arm_mesh(robot: Robot, pedestal: float = 0.0, travel: Array | None = None, segments: int = SEGMENTS) -> Mesh:
    """Return the mesh of an arm on a foot of height `pedestal` (m); `travel` (joints, 2) is what the joints go through.

    Only prismatic joints need their travel: their rods are as long as that.
    """
    spans, radii = link_spans(robot), arm_radii(robot)
    parts = [*_base(spans[0], radii, pedestal)]
    for j in range(1, robot.dof + 1):
        before, after, r = spans[j - 1], spans[j], float(radii[j])
        parts += _joint(j, before.entry, after.exit, r, j == 1, j == robot.dof)
        if not robot.revolute[j - 1] and travel is not None:
            parts.append(_rod(j, travel[j - 1], 0.7 * r))
        parts += _limb(j, after, SLENDER * r)
    parts += _tool(robot.dof + 1, spans[-1], float(radii[-1]), arm_length(robot))
    return _mesh(parts, segments)


@dataclass(frozen=True)
class _Turned:
    """A body of revolution about `axis` through `place`: rows of (radius, height), sharp where a new one begins."""

    link: int
    tone: Tone
    rows: Sequence[Sequence[tuple[float, float]]]
    place: Array
    axis: Array


def _base(span: Span, radii: Array, pedestal: float) -> Iterator[_Turned]:
    r, z, zero = float(radii[0]), np.array([0.0, 0.0, 1.0]), np.zeros(3)
    plate = 0.45 * r
    yield _Turned(0, "base", _drum(1.65 * r, -plate, 0.0, 0.15 * r), zero, z)
    if pedestal > plate:
        yield _Turned(0, "base", _drum(1.1 * r, -pedestal, -plate, 0.0), zero, z)
        yield _Turned(0, "base", _drum(2.0 * r, -pedestal, 0.3 * r - pedestal, 0.1 * r), zero, z)
    yield from _limb(0, span, SLENDER * r)


def _joint(j: int, entry: float, leave: float, r: float, first: bool, last: bool) -> Iterator[_Turned]:
    """Yield the parts about axis j between the places where it is entered and left."""
    z, zero = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    low, high = min(entry, leave), max(entry, leave)
    if high - low > SLIM * r:
        middle = 0.5 * (low + high)
        yield _Turned(j, "limb", _pill(SLENDER * r, low, high), zero, z)
        yield _Turned(j, "housing", _drum(1.06 * r, middle - 0.55 * r, middle + 0.55 * r, 0.14 * r), zero, z)
        return
    below = 0.0 if first and entry < leave - 1e-3 else 1.15 * r
    above = 0.0 if last and entry < leave - 1e-3 else 1.15 * r
    yield _Turned(j, "housing", _drum(r, low - below, high + above, 0.14 * r), zero, z)
    if below:
        yield _Turned(j, "cap", _drum(0.84 * r, low - below - 0.22 * r, low - below, 0.08 * r), zero, z)
    if above:
        yield _Turned(j, "cap", _drum(0.84 * r, high + above, high + above + 0.22 * r, 0.08 * r), zero, z)


def _limb(link: int, span: Span, r: float) -> Iterator[_Turned]:
    if span.limb > 0.2 * r:
        yield _Turned(link, "limb", _pill(r, 0.0, span.limb), span.start, (span.end - span.start) / span.limb)


def _rod(link: int, travel: Array, r: float) -> _Turned:
    """Return the rod of a sliding joint: it reaches from where the joint is to where it is at zero, wherever it is."""
    low, high = min(-float(travel[1]), 0.0), max(-float(travel[0]), 0.0)
    return _Turned(link, "limb", _pill(r, low, high), np.zeros(3), np.array([0.0, 0.0, 1.0]))


def _tool(link: int, span: Span, r: float, length: float) -> Iterator[_Turned]:
    """Yield what carries the flange, the flange and the axes of the tool."""
    z, zero = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    if abs(span.entry) > 0.2 * r:
        low, high = min(span.entry, 0.0), max(span.entry, 0.0)
        yield _Turned(link, "limb", _pill(0.75 * r, low, high - 0.3 * r), zero, z)
    yield _Turned(link, "base", _drum(0.9 * r, -0.3 * r, 0.0, 0.08 * r), zero, z)
    for tone, axis in zip(("x", "y", "z"), np.eye(3), strict=True):
        yield _Turned(link, tone, _arrow(0.0065 * length, 0.15 * length), zero, axis)  # type: ignore[arg-type]


def _drum(r: float, low: float, high: float, edge: float) -> list[list[tuple[float, float]]]:
    """Return a cylinder with broken edges."""
    inner = r - edge
    side = [(r, low + edge), (r, high - edge)]
    if edge <= 0.0:
        return [[(0.0, low), (r, low)], side, [(r, high), (0.0, high)]]
    return [[(0.0, low), (inner, low)], [(inner, low), *side, (inner, high)], [(inner, high), (0.0, high)]]


def _pill(r: float, low: float, high: float) -> list[list[tuple[float, float]]]:
    """Return a cylinder with round ends beyond `low` and `high`."""
    turn = np.linspace(0.0, 0.5 * np.pi, 4)
    bottom = [(r * float(np.sin(a)), low - r * float(np.cos(a))) for a in turn]
    return [[*bottom, *((x, low + high - z) for x, z in reversed(bottom))]]


def _arrow(r: float, length: float) -> list[list[tuple[float, float]]]:
    neck = 0.72 * length
    return [
        [(0.0, 0.0), (r, 0.0)],
        [(r, 0.0), (r, neck)],
        [(r, neck), (2.3 * r, neck)],
        [(2.3 * r, neck), (0.0, length)],
    ]


def _mesh(parts: Sequence[_Turned], segments: int) -> Mesh:
    order = list(TONES)
    vertices, faces, links, tones, count = [], [], [], [], 0
    for part in sorted(parts, key=lambda own: own.link):
        for row in part.rows:
            own, quads = _turn(np.array(row), segments, part.axis)
            vertices.append(own + part.place)
            faces.append(quads + count)
            links.append(np.full(len(own), part.link))
            tones.append(np.full(len(own), order.index(part.tone)))
            count += len(own)
    return Mesh(np.concatenate(vertices), np.concatenate(faces), np.concatenate(links), np.concatenate(tones))


def _turn(row: Array, segments: int, axis: Array) -> tuple[Array, Faces]:
    """Return vertices and outward faces of a profile (points, 2) of radius and height turned about an axis."""
    angle = 2.0 * np.pi * np.arange(segments) / segments
    ring = np.cos(angle)[:, None] * _across(axis) + np.sin(angle)[:, None] * np.cross(axis, _across(axis))
    vertices = (row[:, None, :1] * ring + row[:, None, 1:] * axis).reshape(-1, 3)
    here = np.arange(segments)
    there = (here + 1) % segments
    steps = segments * np.arange(len(row) - 1)[:, None]
    quads = np.stack([steps + here, steps + there, steps + segments + there, steps + segments + here], axis=-1)
    narrow = row[1:, 0] < NEAR
    quads[narrow, :, 3] = quads[narrow, :, 2]
    pointed = row[:-1, 0] < NEAR
    quads[pointed] = quads[pointed][..., [0, 2, 3, 3]]
    return vertices, quads.reshape(-1, 4)


def _across(axis: Array) -> Array:
    """Return a unit vector across an axis."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    own: Array = np.cross(axis, other)
    return own / np.linalg.norm(own)
