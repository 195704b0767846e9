"""A mesh as a drawing that needs no script: faces seen from far away, painted from the back to the front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.report.markup import Html, element
from jointwise.report.shape import Faces
from jointwise.spatial import Array

WIDTH, HEIGHT, EDGE = 960.0, 520.0, 14.0
"""Size of the drawing and its free border, in its own units."""
OVERLAP = 0.7
"""How much a face is painted over its neighbours, against hairlines between them."""
AMBIENT = 0.5
POINTS = 300
"""Most points of the path."""


@dataclass(frozen=True)
class Still:
    """An instant: vertices (n, 3) in m, quadrilateral faces, a tone a vertex, a path (points, 3), the room's box."""

    vertices: Array
    faces: Faces
    tone: Faces
    path: Array
    box: Array
    grid: float


def draw(still: Still, view: Array, colors: list[str]) -> Html:
    """Return the drawing seen from the direction `view`; `colors` are those of the tones."""
    flat = _Camera(still, view)
    path = still.path[:: -(-len(still.path) // POINTS)]
    floor = [_line(flat(ends), "#c3cedb", 1.0) for ends in floor_lines(still.box, still.grid)]
    ground = _face(flat(_floor(still.box)), "#f1f4f8")
    trace = _line(flat(path), "#e07b39", 2.0)
    size = f"0 0 {WIDTH:.0f} {HEIGHT:.0f}"
    return element("svg", ground, *floor, trace, *_faces(still, flat, view, colors), viewBox=size, aria_hidden="true")


def floor_lines(box: Array, grid: float) -> list[Array]:
    """Return the lines of the floor's grid, each (2, 3) in m."""
    low, high = box
    z = low[2]
    x, y = (np.arange(np.ceil(low[k] / grid), np.floor(high[k] / grid) + 1) * grid for k in (0, 1))
    along = [np.array([[own, y[0], z], [own, y[-1], z]]) for own in x]
    return [*along, *(np.array([[x[0], own, z], [x[-1], own, z]]) for own in y)]


def _floor(box: Array) -> Array:
    """Return the corners of the floor, (4, 3) in m."""
    (a, b, z), (c, d, _) = box
    return np.array([[a, b, z], [c, b, z], [c, d, z], [a, d, z]])


class _Camera:
    """Projects points (n, 3) to the drawing's (n, 2) along a direction, so that the box fills it."""

    def __init__(self, still: Still, view: Array) -> None:
        right = np.array([-view[1], view[0], 0.0]) / np.hypot(view[0], view[1])
        self.plane = np.column_stack([right, -np.cross(view, right)])
        seen = np.concatenate([still.vertices, still.path, _floor(still.box)]) @ self.plane
        low, high = seen.min(axis=0), seen.max(axis=0)
        room = np.array([WIDTH, HEIGHT]) - 2.0 * EDGE
        self.scale = float((room / np.maximum(high - low, 1e-9)).min())
        self.middle = 0.5 * (low + high)

    def __call__(self, points: Array) -> Array:
        own: Array = (np.asarray(points) @ self.plane - self.middle) * self.scale + np.array([WIDTH, HEIGHT]) / 2.0
        return own


def _faces(still: Still, flat: _Camera, view: Array, colors: list[str]) -> list[Html]:
    corners = still.vertices[still.faces]
    normal = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-12)[:, None]
    seen = np.flatnonzero(normal @ view > 0.0)
    order = seen[np.argsort(corners[seen].mean(axis=1) @ view)]
    shades = _shades(normal[order], view)
    points = _grown(flat(corners[order].reshape(-1, 3)).reshape(-1, 4, 2))
    tones = still.tone[still.faces[order, 0]]
    return [_face(own, _shaded(colors[k], s)) for own, k, s in zip(points, tones, shades, strict=True)]


def _shades(normal: Array, view: Array) -> Array:
    """Return the brightness of faces under a lamp above the eye's left shoulder."""
    lamp = view + np.array([0.0, 0.0, 0.9]) + 0.5 * np.cross(view, [0.0, 0.0, 1.0])
    light: Array = AMBIENT + (1.08 - AMBIENT) * np.maximum(normal @ (lamp / np.linalg.norm(lamp)), 0.0)
    return np.minimum(light, 1.05)


def _grown(corners: Array) -> Array:
    """Return faces (n, 4, 2) a little larger about their middles."""
    out = corners - corners.mean(axis=1, keepdims=True)
    grown: Array = corners + OVERLAP * out / np.maximum(np.linalg.norm(out, axis=2, keepdims=True), 1e-9)
    return grown


def _shaded(color: str, shade: float) -> str:
    parts = (min(int(int(color[k : k + 2], 16) * shade), 255) for k in (1, 3, 5))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _face(points: Array, color: str) -> Html:
    return element("path", d=f"M{_points(points)}z", fill=color)


def _line(points: Array, color: str, width: float) -> Html:
    return element("path", d=f"M{_points(points)}", fill="none", stroke=color, stroke_width=f"{width:g}")


def _points(points: Array) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
