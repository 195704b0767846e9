"""An animation of the arm: joint positions played back in 3D in the browser, with a drawing as fallback.

The page contains joint positions, link transforms and a mesh; its script (`assets/motion.js`) computes the forward
kinematics.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jointwise.description.mounting import STANDARD_GRAVITY
from jointwise.description.robot import Robot
from jointwise.errors import ShapeError
from jointwise.model.rigid import Frames, forward_kinematics
from jointwise.model.rigid.chain import checked_states, refuse_non_finite
from jointwise.model.skeleton import arm_length, arm_radii
from jointwise.report.figure import packed, packed_floats, packed_integers, safe_json
from jointwise.report.mesh import TONES, Faces, Mesh, arm_mesh
from jointwise.report.page import Html, element, robot_title
from jointwise.spatial import Array, rotation_z_to

WIDTH, HEIGHT, MARGIN = 960.0, 520.0, 14.0
"""Size of the drawing and its margin, in units of the drawing."""
OVERLAP = 0.7
"""Distance by which a face overlaps its neighbours, which hides hairlines between them."""
AMBIENT = 0.5
"""Brightness of a face that faces away from the light."""
POINTS = 300
"""Largest number of points of the tool path."""


@dataclass(frozen=True)
class Still:
    """One instant of a motion as a drawing.

    Attributes:
        vertices: Vertices in the world, (vertices, 3), m.
        faces: Vertices of the corners of every quadrilateral, (faces, 4).
        tone: Tone of every vertex, (vertices,).
        path: Path of the tool, (points, 3), m.
        box: Least and greatest coordinates of the scene, (2, 3), m.
        grid: Spacing of the grid on the floor, m.
    """

    vertices: Array
    faces: Faces
    tone: Faces
    path: Array
    box: Array
    grid: float


def draw(still: Still, view: Array, colors: list[str]) -> Html:
    """Return the drawing seen from the direction `view`; `colors` are those of the tones."""
    project = _Camera(still, view)
    path = still.path[:: -(-len(still.path) // POINTS)]
    grid = [_line(project(ends), "#c3cedb", 1.0) for ends in floor_lines(still.box, still.grid)]
    floor = _face(project(_floor(still.box)), "#f1f4f8")
    trace = _line(project(path), "#e07b39", 2.0)
    size = f"0 0 {WIDTH:.0f} {HEIGHT:.0f}"
    return element("svg", floor, *grid, trace, *_faces(still, project, view, colors), viewBox=size, aria_hidden="true")


def floor_lines(box: Array, grid: float) -> list[Array]:
    """Return the lines of the grid on the floor, each (2, 3) in m."""
    low, high = box
    z = low[2]
    xs, ys = (np.arange(np.ceil(low[k] / grid), np.floor(high[k] / grid) + 1) * grid for k in (0, 1))
    along = [np.array([[x, ys[0], z], [x, ys[-1], z]]) for x in xs]
    return [*along, *(np.array([[xs[0], y, z], [xs[-1], y, z]]) for y in ys)]


def _floor(box: Array) -> Array:
    """Return the corners of the floor, (4, 3) in m."""
    (a, b, z), (c, d, _) = box
    return np.array([[a, b, z], [c, b, z], [c, d, z], [a, d, z]])


class _Camera:
    """Projects points (n, 3) to (n, 2) in the drawing along a direction, scaled so that the scene fills it."""

    def __init__(self, still: Still, view: Array) -> None:
        right = np.array([-view[1], view[0], 0.0]) / np.hypot(view[0], view[1])
        self.plane = np.column_stack([right, -np.cross(view, right)])
        visible = np.concatenate([still.vertices, still.path, _floor(still.box)]) @ self.plane
        low, high = visible.min(axis=0), visible.max(axis=0)
        available = np.array([WIDTH, HEIGHT]) - 2.0 * MARGIN
        self.scale = float((available / np.maximum(high - low, 1e-9)).min())
        self.middle = 0.5 * (low + high)

    def __call__(self, points: Array) -> Array:
        """Return points in the drawing."""
        centred: Array = (np.asarray(points) @ self.plane - self.middle) * self.scale
        return centred + np.array([WIDTH, HEIGHT]) / 2.0


def _faces(still: Still, project: _Camera, view: Array, colors: list[str]) -> list[Html]:
    corners = still.vertices[still.faces]
    normal = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-12)[:, None]
    visible = np.flatnonzero(normal @ view > 0.0)
    order = visible[np.argsort(corners[visible].mean(axis=1) @ view)]
    shades = _shades(normal[order], view)
    points = _enlarged(project(corners[order].reshape(-1, 3)).reshape(-1, 4, 2))
    tones = still.tone[still.faces[order, 0]]
    return [_face(outline, _shaded(colors[k], s)) for outline, k, s in zip(points, tones, shades, strict=True)]


def _shades(normal: Array, view: Array) -> Array:
    """Return the brightness of faces under a light above and to the left of the viewer."""
    light = view + np.array([0.0, 0.0, 0.9]) + 0.5 * np.cross(view, [0.0, 0.0, 1.0])
    shade: Array = AMBIENT + (1.08 - AMBIENT) * np.maximum(normal @ (light / np.linalg.norm(light)), 0.0)
    return np.minimum(shade, 1.05)


def _enlarged(corners: Array) -> Array:
    """Return faces (n, 4, 2) enlarged by `OVERLAP` about their centres."""
    outwards = corners - corners.mean(axis=1, keepdims=True)
    length = np.maximum(np.linalg.norm(outwards, axis=2, keepdims=True), 1e-9)
    enlarged: Array = corners + OVERLAP * outwards / length
    return enlarged


def _shaded(color: str, shade: float) -> str:
    parts = (min(int(int(color[k : k + 2], 16) * shade), 255) for k in (1, 3, 5))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _face(points: Array, color: str) -> Html:
    return element("path", d=f"M{_points(points)}z", fill=color)


def _line(points: Array, color: str, width: float) -> Html:
    return element("path", d=f"M{_points(points)}", fill="none", stroke=color, stroke_width=f"{width:g}")


def _points(points: Array) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


FRAMES = 900
"""Largest number of instants in the page; the script interpolates between them."""
LONGEST = 60.0
"""Longest playback, s; longer motions are played faster."""
STILL_SEGMENTS = 12
"""Number of sides of round bodies in the drawing, which has to be small."""
ELEVATION, AZIMUTH = np.deg2rad(20.0), np.deg2rad(62.0)
"""Direction of the viewer: elevation above the floor, azimuth relative to the mean direction of the tool."""
STEPS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Possible spacings of the grid on the floor, m."""


@dataclass(frozen=True)
class Scene:
    """A motion in a world frame with z up.

    Attributes:
        robot: The robot.
        t: Times from 0, (frames,), s.
        q: Positions, (frames, joints), rad or m.
        world: Orientation of the base in the world, (3, 3).
    """

    robot: Robot
    t: Array
    q: Array
    world: Array

    @cached_property
    def frames(self) -> Frames:
        """Link frames in the base frame."""
        return forward_kinematics(self.robot, self.q)

    @cached_property
    def path(self) -> Array:
        """Path of the tool in the world, (frames, 3) in m."""
        path: Array = self.frames.tool[1] @ self.world.T
        return path

    @cached_property
    def box(self) -> Array:
        """Bounding box of the scene including the floor: least and greatest coordinates, (2, 3) in m."""
        r, length = float(arm_radii(self.robot)[0]), arm_length(self.robot)
        tips = self.frames.rotation[:, -1].transpose(0, 2, 1) * 0.15 * length + self.frames.position[:, -1:]
        origins = np.concatenate([self.frames.position, tips], axis=1).reshape(-1, 3) @ self.world.T
        low, high = np.minimum(origins.min(axis=0), 0.0), np.maximum(origins.max(axis=0), 0.0)
        low[2] -= 1.6 * r if low[2] < -0.3 * r else 0.45 * r
        return np.array([low, high]) + r * np.array([[-2.5, -2.5, 0.0], [2.5, 2.5, 1.6]])

    @property
    def pedestal(self) -> float:
        """Height of the pedestal, m; zero unless the base is upright."""
        return float(-self.box[0, 2]) if self.world[2, 2] > 1.0 - 1e-6 else 0.0

    @property
    def grid(self) -> float:
        """Spacing of the grid on the floor, m."""
        wide = float((self.box[1] - self.box[0])[:2].max())
        return next((step for step in STEPS if wide / step <= 10.0), STEPS[-1])

    @property
    def view(self) -> Array:
        """Direction from the scene to the viewer, a unit vector."""
        x, y = self.path[:, :2].mean(axis=0)
        azimuth = (np.arctan2(y, x) if np.hypot(x, y) > 1e-3 else 0.0) - AZIMUTH
        flat = np.cos(ELEVATION)
        return np.array([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(ELEVATION)])

    @property
    def travel(self) -> Array:
        """Least and greatest position of every joint, (joints, 2)."""
        return np.column_stack([self.q.min(axis=0), self.q.max(axis=0)])

    def mesh(self, **more: int) -> Mesh:
        """Return the mesh of the arm."""
        return arm_mesh(self.robot, self.pedestal, self.travel, **more)

    def placed(self, mesh: Mesh, frame: int = 0) -> Array:
        """Return the vertices of a mesh in the world at one frame, (n, 3)."""
        rotation = np.concatenate([np.eye(3)[None], self.frames.rotation[frame]])[mesh.link]
        position = np.concatenate([np.zeros((1, 3)), self.frames.position[frame]])[mesh.link]
        placed: Array = (np.einsum("nij,nj->ni", rotation, mesh.vertices) + position) @ self.world.T
        return placed


def motion_view(robot: Robot, t: Array, q: Array, gravity: Array | tuple[float, ...] | None = None) -> Html:
    """Return a drawing of the arm that the script of the page replaces by an animation.

    Args:
        robot: The robot.
        t: Increasing times, (samples,), s.
        q: Positions, (samples, joints), rad or m.
        gravity: Gravity in the base frame, (3,), m/s²; defines the vertical.

    """
    scene = make_scene(robot, t, q, gravity)
    script = element("script", safe_json(motion_document(scene)), type="application/motion+json")
    picture = element("div", still_picture(scene), class_="motion-still")
    alt = f"{robot_title(robot)} moving for {scene.t[-1]:.1f} s, seen from the side, with the path of the tool."
    view = element("div", picture, script, class_="motion", role="group", aria_label=alt)
    return element("figure", view, element("figcaption", _caption(scene)))


def make_scene(robot: Robot, t: Array, q: Array, gravity: Array | tuple[float, ...] | None = None) -> Scene:
    """Return a motion resampled to at most `FRAMES` evenly spaced instants."""
    q, _, _ = checked_states(robot, q)
    t = np.asarray(t, dtype=float)
    if t.shape != (len(q),) or not len(t) or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
        raise ShapeError(f"t must be {len(q) or 'one or more'} finite, increasing times. Got shape {t.shape} instead.")
    if not np.isfinite(q).all():
        refuse_non_finite(q=q)
    times = np.linspace(t[0], t[-1], min(len(t), FRAMES))
    resampled = np.column_stack([np.interp(times, t, column) for column in q.T])
    return Scene(robot, times - t[0], resampled, _upright(gravity))


def motion_document(scene: Scene) -> dict[str, Any]:
    """Return the document for the script: numbers packed in binary, the mesh in the frames of its links."""
    robot, mesh = scene.robot, scene.mesh()
    rotations = [*robot.rotations, robot.tool_rotation]
    translations = [*robot.translations, robot.tool_translation]
    transforms = [[*R.ravel(), *p] for R, p in zip(rotations, translations, strict=True)]
    return {
        "duration": float(scene.t[-1]),
        "q": packed_floats(scene.q.ravel()),
        "revolute": [bool(revolute) for revolute in robot.revolute],
        "transforms": packed_floats(np.array(transforms).ravel()),
        "world": packed_floats(scene.world.ravel()),
        "vertices": packed(mesh.vertices.ravel()),
        "counts": np.bincount(mesh.link, minlength=robot.dof + 2).tolist(),
        "triangles": packed_integers(mesh.triangles),
        "tones": packed_integers(mesh.tone),
        "colors": list(TONES.values()),
        "box": np.round(scene.box, 4).tolist(),
        "grid": scene.grid,
        "view": np.round(scene.view, 4).tolist(),
        "speed": playing_speed(scene),
    }


def playing_speed(scene: Scene) -> int:
    """Return the factor by which the playback is faster than the motion."""
    return max(int(np.ceil(scene.t[-1] / LONGEST)), 1)


def still_picture(scene: Scene) -> Html:
    """Return the first frame as a drawing."""
    mesh = scene.mesh(segments=STILL_SEGMENTS)
    still = Still(scene.placed(mesh), mesh.faces, mesh.tone, scene.path, scene.box, scene.grid)
    return draw(still, scene.view, list(TONES.values()))


def _caption(scene: Scene) -> str:
    step = f"{scene.grid:g} m"
    return (
        "The shape is derived from the kinematics, not from the manufacturer's CAD data. The line is the path of the "
        f"tool, whose frame is red (x), green (y) and blue (z). Grid on the floor: {step}. "
        "Drag to turn the view; a double click resets it."
    )


def _upright(gravity: Array | tuple[float, ...] | None) -> Array:
    """Return the rotation that turns the upward direction of the base frame to z; identity without gravity."""
    down = np.array([0.0, 0.0, -STANDARD_GRAVITY]) if gravity is None else np.asarray(gravity, dtype=float)
    if down.shape != (3,) or not np.isfinite(down).all():
        raise ShapeError(f"gravity must be three finite numbers in m/s^2. Got {gravity!r} instead.")
    return rotation_z_to(-down).T if np.linalg.norm(down) > 0.0 else np.eye(3)
