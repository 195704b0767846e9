"""A mesh of an arm derived from its kinematics alone: links, joint housings and the axes of the tool frame.

Links and housings follow the skeleton of the arm and take their radii from it (`model.skeleton`).
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
"""A joint longer than this many radii along its axis is drawn as a column with a collar, a shorter one as a housing."""
SEGMENTS = 20
"""Number of sides of round bodies."""

Faces = NDArray[np.int64]


@dataclass(frozen=True)
class Mesh:
    """Outward-facing quadrilaterals of an arm with n joints; a triangle repeats its last corner.

    Attributes:
        vertices: Vertices in the frame of their link, (vertices, 3), m.
        faces: Vertices of the corners of every face, (faces, 4).
        link: Link of every vertex, (vertices,): 0 the base, n + 1 the tool.
        tone: Tone of every vertex, (vertices,).
    """

    vertices: Array
    faces: Faces
    link: Faces
    tone: Faces

    @property
    def triangles(self) -> Faces:
        """The faces as triangles, (triangles, 3)."""
        halves = np.concatenate([self.faces[:, [0, 1, 2]], self.faces[:, [0, 2, 3]]])
        whole: Faces = halves[halves[:, 1] != halves[:, 2]]
        return whole


def arm_mesh(robot: Robot, pedestal: float = 0.0, travel: Array | None = None, segments: int = SEGMENTS) -> Mesh:
    """Return the mesh of an arm.

    Args:
        robot: The robot.
        pedestal: Height of the pedestal below the base, m.
        travel: Least and greatest position of every joint, (joints, 2); sets the length of the rods of prismatic
            joints.
        segments: Number of sides of round bodies.

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
class _Revolved:
    """A body of revolution about `axis` through `origin`: profiles of (radius, height) with sharp edges between."""

    link: int
    tone: Tone
    profiles: Sequence[Sequence[tuple[float, float]]]
    origin: Array
    axis: Array


def _base(span: Span, radii: Array, pedestal: float) -> Iterator[_Revolved]:
    r, z, zero = float(radii[0]), np.array([0.0, 0.0, 1.0]), np.zeros(3)
    plate = 0.45 * r
    yield _Revolved(0, "base", _drum(1.65 * r, -plate, 0.0, 0.15 * r), zero, z)
    if pedestal > plate:
        yield _Revolved(0, "base", _drum(1.1 * r, -pedestal, -plate, 0.0), zero, z)
        yield _Revolved(0, "base", _drum(2.0 * r, -pedestal, 0.3 * r - pedestal, 0.1 * r), zero, z)
    yield from _limb(0, span, SLENDER * r)


def _joint(j: int, entry: float, exit_: float, r: float, first: bool, last: bool) -> Iterator[_Revolved]:
    """Yield the parts about axis j between the points where the links before and after it attach."""
    z, zero = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    low, high = min(entry, exit_), max(entry, exit_)
    if high - low > SLIM * r:
        middle = 0.5 * (low + high)
        yield _Revolved(j, "limb", _pill(SLENDER * r, low, high), zero, z)
        yield _Revolved(j, "housing", _drum(1.06 * r, middle - 0.55 * r, middle + 0.55 * r, 0.14 * r), zero, z)
        return
    below = 0.0 if first and entry < exit_ - 1e-3 else 1.15 * r
    above = 0.0 if last and entry < exit_ - 1e-3 else 1.15 * r
    yield _Revolved(j, "housing", _drum(r, low - below, high + above, 0.14 * r), zero, z)
    if below:
        yield _Revolved(j, "cap", _drum(0.84 * r, low - below - 0.22 * r, low - below, 0.08 * r), zero, z)
    if above:
        yield _Revolved(j, "cap", _drum(0.84 * r, high + above, high + above + 0.22 * r, 0.08 * r), zero, z)


def _limb(link: int, span: Span, r: float) -> Iterator[_Revolved]:
    if span.limb > 0.2 * r:
        yield _Revolved(link, "limb", _pill(r, 0.0, span.limb), span.start, (span.end - span.start) / span.limb)


def _rod(link: int, travel: Array, r: float) -> _Revolved:
    """Return the rod of a prismatic joint: long enough to reach its zero position from anywhere in its travel."""
    low, high = min(-float(travel[1]), 0.0), max(-float(travel[0]), 0.0)
    return _Revolved(link, "limb", _pill(r, low, high), np.zeros(3), np.array([0.0, 0.0, 1.0]))


def _tool(link: int, span: Span, r: float, length: float) -> Iterator[_Revolved]:
    """Yield the last link, the flange and the axes of the tool frame."""
    z, zero = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    if abs(span.entry) > 0.2 * r:
        low, high = min(span.entry, 0.0), max(span.entry, 0.0)
        yield _Revolved(link, "limb", _pill(0.75 * r, low, high - 0.3 * r), zero, z)
    yield _Revolved(link, "base", _drum(0.9 * r, -0.3 * r, 0.0, 0.08 * r), zero, z)
    for tone, axis in zip(("x", "y", "z"), np.eye(3), strict=True):
        yield _Revolved(link, tone, _arrow(0.0065 * length, 0.15 * length), zero, axis)  # type: ignore[arg-type]


def _drum(r: float, low: float, high: float, edge: float) -> list[list[tuple[float, float]]]:
    """Return a cylinder with chamfered edges."""
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


def _mesh(parts: Sequence[_Revolved], segments: int) -> Mesh:
    order = list(TONES)
    vertices, faces, links, tones, count = [], [], [], [], 0
    for part in sorted(parts, key=lambda part: part.link):
        for profile in part.profiles:
            points, quads = _revolve(np.array(profile), segments, part.axis)
            vertices.append(points + part.origin)
            faces.append(quads + count)
            links.append(np.full(len(points), part.link))
            tones.append(np.full(len(points), order.index(part.tone)))
            count += len(points)
    return Mesh(np.concatenate(vertices), np.concatenate(faces), np.concatenate(links), np.concatenate(tones))


def _revolve(profile: Array, segments: int, axis: Array) -> tuple[Array, Faces]:
    """Return vertices and outward faces of a profile (points, 2) of radius and height revolved about an axis."""
    angle = 2.0 * np.pi * np.arange(segments) / segments
    ring = np.cos(angle)[:, None] * _perpendicular(axis) + np.sin(angle)[:, None] * np.cross(axis, _perpendicular(axis))
    vertices = (profile[:, None, :1] * ring + profile[:, None, 1:] * axis).reshape(-1, 3)
    first = np.arange(segments)
    second = (first + 1) % segments
    steps = segments * np.arange(len(profile) - 1)[:, None]
    quads = np.stack([steps + first, steps + second, steps + segments + second, steps + segments + first], axis=-1)
    ends = profile[1:, 0] < NEAR
    quads[ends, :, 3] = quads[ends, :, 2]
    starts = profile[:-1, 0] < NEAR
    quads[starts] = quads[starts][..., [0, 2, 3, 3]]
    return vertices, quads.reshape(-1, 4)


def _perpendicular(axis: Array) -> Array:
    """Return a unit vector perpendicular to an axis."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    normal: Array = np.cross(axis, other)
    return normal / np.linalg.norm(normal)
