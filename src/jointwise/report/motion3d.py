"""A motion to look at: the arm in space, played in the browser from joint positions; a still picture without scripts.

The page gets positions, placements and a mesh; its script (`assets/motion.js`) does the forward kinematics.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jointwise.description.mounting import STANDARD_GRAVITY
from jointwise.description.robot import Robot
from jointwise.errors import ShapeError
from jointwise.model.rigid import Frames, forward_kinematics
from jointwise.model.rigid.samples import checked_states, refuse_non_finite
from jointwise.model.skeleton import arm_length, arm_radii
from jointwise.report.figure import packed, safe_json
from jointwise.report.markup import Html, element
from jointwise.report.numbers import robot_title
from jointwise.report.shape import TONES, Faces, Mesh, arm_mesh
from jointwise.report.still import Still, draw
from jointwise.spatial import Array, rotation_z_to

FRAMES = 1200
"""Most instants that go into the page; the script interpolates between them."""
LONGEST = 60.0
"""A longer motion (s) is played faster."""
STILL_SEGMENTS = 12
"""Sides of what is round in the still picture, which has to be small."""
ELEVATION, ASIDE = np.deg2rad(20.0), np.deg2rad(62.0)
"""The eye above the floor, and beside the direction in which the tool is."""
STEPS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Steps of the grid on the floor, m."""


@dataclass(frozen=True)
class Scene:
    """A motion in a world with z up: t (frames,) in s from 0, q (frames, joints); `world` turns the base into it."""

    robot: Robot
    t: Array
    q: Array
    world: Array

    @cached_property
    def frames(self) -> Frames:
        """Frames in the base."""
        return forward_kinematics(self.robot, self.q)

    @cached_property
    def path(self) -> Array:
        """The way of the tool in the world, (frames, 3) in m."""
        path: Array = self.frames.tool[1] @ self.world.T
        return path

    @cached_property
    def box(self) -> Array:
        """Least and greatest coordinates of everything, floor included, (2, 3) in m."""
        r, length = float(arm_radii(self.robot)[0]), arm_length(self.robot)
        tips = self.frames.rotation[:, -1].transpose(0, 2, 1) * 0.15 * length + self.frames.position[:, -1:]
        origins = np.concatenate([self.frames.position, tips], axis=1).reshape(-1, 3) @ self.world.T
        low, high = np.minimum(origins.min(axis=0), 0.0), np.maximum(origins.max(axis=0), 0.0)
        low[2] -= 1.6 * r if low[2] < -0.3 * r else 0.45 * r
        return np.array([low, high]) + r * np.array([[-2.5, -2.5, 0.0], [2.5, 2.5, 1.6]])

    @property
    def pedestal(self) -> float:
        """Height of the foot under the base, m; none where the base does not stand upright."""
        return float(-self.box[0, 2]) if self.world[2, 2] > 1.0 - 1e-6 else 0.0

    @property
    def grid(self) -> float:
        """Step of the grid on the floor, m."""
        wide = float((self.box[1] - self.box[0])[:2].max())
        return next((step for step in STEPS if wide / step <= 10.0), STEPS[-1])

    @property
    def view(self) -> Array:
        """Direction from what is seen to the eye, a unit vector."""
        x, y = self.path[:, :2].mean(axis=0)
        azimuth = (np.arctan2(y, x) if np.hypot(x, y) > 1e-3 else 0.0) - ASIDE
        flat = np.cos(ELEVATION)
        return np.array([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(ELEVATION)])

    @property
    def travel(self) -> Array:
        """Least and greatest position of every joint, (joints, 2)."""
        return np.column_stack([self.q.min(axis=0), self.q.max(axis=0)])

    def mesh(self, **more: int) -> Mesh:
        """Return the arm as it stands here."""
        return arm_mesh(self.robot, self.pedestal, self.travel, **more)

    def placed(self, mesh: Mesh, frame: int = 0) -> Array:
        """Return the vertices of a mesh in the world at one instant, (n, 3)."""
        rotation = np.concatenate([np.eye(3)[None], self.frames.rotation[frame]])[mesh.link]
        position = np.concatenate([np.zeros((1, 3)), self.frames.position[frame]])[mesh.link]
        placed: Array = (np.einsum("nij,nj->ni", rotation, mesh.vertices) + position) @ self.world.T
        return placed


def motion_view(robot: Robot, t: Array, q: Array, gravity: Array | tuple[float, ...] | None = None) -> Html:
    """Return the arm in motion: a still picture that the page's script turns into a view to play and to turn.

    `t` (samples,) in s increases, `q` (samples, joints) in rad or m; gravity (3,) in the base says where down is.
    A page that shows it needs plotly.js, `assets/motion.js` and the style sheet.
    """
    scene = make_scene(robot, t, q, gravity)
    script = element("script", safe_json(motion_document(scene)), type="application/motion+json")
    picture = element("div", still_picture(scene), class_="motion-still")
    alt = f"{robot_title(robot)} in motion for {scene.t[-1]:.1f} s, seen from the side, with the path of its tool."
    view = element("div", picture, script, class_="motion", role="group", aria_label=alt)
    return element("figure", view, element("figcaption", _caption(scene)))


def make_scene(robot: Robot, t: Array, q: Array, gravity: Array | tuple[float, ...] | None = None) -> Scene:
    """Return a motion on at most `FRAMES` instants, evenly in time."""
    q, _, _ = checked_states(robot, q)
    t = np.asarray(t, dtype=float)
    if t.shape != (len(q),) or not len(t) or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
        raise ShapeError(
            f"t must be {len(q) or 'one or more'} finite times that increase. Got shape {t.shape} instead."
        )
    if not np.isfinite(q).all():
        refuse_non_finite(q=q)
    times = np.linspace(t[0], t[-1], min(len(t), FRAMES))
    own = np.column_stack([np.interp(times, t, column) for column in q.T])
    return Scene(robot, times - t[0], own, _upright(gravity))


def motion_document(scene: Scene) -> dict[str, Any]:
    """Return what the script needs: numbers packed in binary, the mesh in the frames of its links."""
    robot, mesh = scene.robot, scene.mesh()
    rotations = [*robot.rotations, robot.tool_rotation]
    translations = [*robot.translations, robot.tool_translation]
    places = [[*R.ravel(), *p] for R, p in zip(rotations, translations, strict=True)]
    return {
        "t": packed(scene.t),
        "q": packed(scene.q.ravel()),
        "turns": [bool(own) for own in robot.revolute],
        "places": packed(np.array(places).ravel()),
        "world": packed(scene.world.ravel()),
        "vertices": packed(mesh.vertices.ravel()),
        "counts": np.bincount(mesh.link, minlength=robot.dof + 2).tolist(),
        "triangles": _whole(mesh.triangles),
        "tones": _whole(mesh.tone),
        "colors": list(TONES.values()),
        "box": np.round(scene.box, 4).tolist(),
        "grid": scene.grid,
        "view": np.round(scene.view, 4).tolist(),
        "speed": playing_speed(scene),
    }


def playing_speed(scene: Scene) -> int:
    """Return how many times faster than it was a motion is played."""
    return max(int(np.ceil(scene.t[-1] / LONGEST)), 1)


def still_picture(scene: Scene) -> Html:
    """Return the first instant as a drawing."""
    mesh = scene.mesh(segments=STILL_SEGMENTS)
    still = Still(scene.placed(mesh), mesh.faces, mesh.tone, scene.path, scene.box, scene.grid)
    return draw(still, scene.view, list(TONES.values()))


def _caption(scene: Scene) -> str:
    step = f"{scene.grid:g} m"
    return (
        f"The shape is made from the kinematics, not from the maker's drawings. The line is the way of the tool; "
        f"its frame is red (x), green (y), blue (z). Squares on the floor: {step}."
    )


def _upright(gravity: Array | tuple[float, ...] | None) -> Array:
    """Return the rotation that brings what is up in the base to z; none where there is no gravity."""
    down = np.array([0.0, 0.0, -STANDARD_GRAVITY]) if gravity is None else np.asarray(gravity, dtype=float)
    if down.shape != (3,) or not np.isfinite(down).all():
        raise ShapeError(f"gravity must be three finite numbers in m/s^2. Got {gravity!r} instead.")
    return rotation_z_to(-down).T if np.linalg.norm(down) > 0.0 else np.eye(3)


def _whole(values: Faces) -> dict[str, str]:
    """Return whole numbers below 65536 as base64."""
    return {"dtype": "u2", "bdata": base64.b64encode(values.astype("<u2").tobytes()).decode("ascii")}
