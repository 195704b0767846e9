"""The animation of the arm: the page contains the kinematics of the model, and a browser plays it."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointwise
from browser import SOFTWARE_3D, needs_browser, opened
from jointwise.errors import ShapeError
from jointwise.model.rigid import forward_kinematics
from jointwise.model.skeleton import arm_length, link_spans
from jointwise.report.mesh import arm_mesh
from jointwise.report.motion import FRAMES, Scene, make_scene, motion_document, motion_view, playing_speed
from jointwise.report.page import compose
from jointwise.spatial import Array, rotation_z

TYPES = {"f4": "<f4", "u2": "<u2"}
ARMS = ("ur5e", "panda", "puma560", "planar1", "planar2")


def waves(robot: Any, seconds: float = 6.0, rate: float = 100.0) -> tuple[Array, Array]:
    t = 5.0 + np.arange(int(seconds * rate) + 1) / rate
    return t, np.sin(t[:, None] * (1.0 + 0.2 * np.arange(robot.dof))) - 0.4


def unpacked(spec: dict[str, str]) -> Array:
    return np.frombuffer(base64.b64decode(spec["bdata"]), dtype=TYPES[spec["dtype"]]).astype(float)


def sliding(robot: Any) -> Any:
    return replace(robot, joints=(*robot.joints[:-1], replace(robot.joints[-1], kind="prismatic")))


def embedded_tool(document: dict[str, Any]) -> Array:
    """Follow the chain with only the numbers in the page."""
    q = unpacked(document["q"]).reshape(-1, len(document["revolute"]))
    transforms = unpacked(document["transforms"]).reshape(-1, 12)
    R, p = np.broadcast_to(np.eye(3), (len(q), 3, 3)), np.zeros((len(q), 3))
    for j, transform in enumerate(transforms):
        p = p + R @ transform[9:]
        R = R @ transform[:9].reshape(3, 3)
        if j < q.shape[1] and document["revolute"][j]:
            R = R @ np.array([rotation_z(angle) for angle in q[:, j]])
        elif j < q.shape[1]:
            p = p + R[:, :, 2] * q[:, j : j + 1]
    return p


@pytest.mark.parametrize("name", ARMS)
def test_embedded_kinematics_equal_those_of_the_model(name: str) -> None:
    robot = jointwise.load_robot(name)
    for arm in (robot, sliding(robot)):
        t, q = waves(arm)
        expected = forward_kinematics(arm, q).tool[1]
        np.testing.assert_allclose(embedded_tool(motion_document(make_scene(arm, t, q))), expected, atol=1e-5)


@pytest.mark.parametrize("name", ARMS)
def test_meshes_are_closed_finite_and_face_outwards(name: str) -> None:
    mesh = arm_mesh(jointwise.load_robot(name), pedestal=0.3)
    assert np.isfinite(mesh.vertices).all() and mesh.triangles.max() < len(mesh.vertices) < 65536
    assert (np.diff(mesh.link) >= 0).all()
    a, b, c = (mesh.vertices[mesh.triangles[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    assert np.linalg.norm(normals, axis=1).min() > 0.0
    np.testing.assert_allclose(normals.sum(axis=0), 0.0, atol=1e-12)
    for link in np.unique(mesh.link):
        faces = mesh.link[mesh.triangles[:, 0]] == link
        assert np.einsum("ij,ij->", a[faces], np.cross(b[faces], c[faces])) > 0.0


@pytest.mark.parametrize("name", ARMS)
def test_spans_connect_the_axes(name: str) -> None:
    robot = jointwise.load_robot(name)
    for span, p in zip(link_spans(robot), [*robot.translations, robot.tool_translation], strict=True):
        np.testing.assert_allclose(span.end, p + span.entry * span.axis, atol=1e-12)
        np.testing.assert_allclose(span.start, [0.0, 0.0, span.exit], atol=1e-12)
        across = span.end - span.start
        assert across @ span.axis == pytest.approx(0.0, abs=1e-9)
        assert across[2] == pytest.approx(0.0, abs=1e-9)


def test_link_lengths_of_a_ur5e_match_the_data_sheet() -> None:
    lengths = [span.limb for span in link_spans(jointwise.load_robot("ur5e"))]
    assert lengths[2:4] == pytest.approx([0.425, 0.3922])
    assert 1.0 < arm_length(jointwise.load_robot("ur5e")) < 2.0


def test_long_motions_are_resampled_and_played_faster() -> None:
    robot = jointwise.load_robot("ur5e")
    t, q = waves(robot, seconds=150.0)
    scene = make_scene(robot, t, q)
    assert len(scene.t) == FRAMES and scene.t[0] == 0.0 and scene.t[-1] == pytest.approx(150.0)
    assert playing_speed(scene) == 3
    assert len(motion_view(robot, t, q)) < 400_000


def test_gravity_defines_the_vertical() -> None:
    robot = jointwise.load_robot("ur5e")
    t, q = waves(robot)
    for gravity in ((0.0, 0.0, 9.81), (0.0, 9.81, 0.0), (1.0, 2.0, -3.0)):
        scene = make_scene(robot, t, q, gravity)
        np.testing.assert_allclose(scene.world @ gravity, [0.0, 0.0, -np.linalg.norm(gravity)], atol=1e-9)
        assert scene.pedestal == 0.0
    assert make_scene(robot, t, q).pedestal > 0.0


def test_everything_is_inside_the_bounding_box() -> None:
    for name in ARMS:
        robot = jointwise.load_robot(name)
        scene = make_scene(robot, *waves(robot))
        mesh = scene.mesh()
        for frame in (0, 100, 350):
            vertices = scene.placed(mesh, frame)
            slack = 0.03 * arm_length(robot)
            assert (vertices >= scene.box[0] - slack).all() and (vertices <= scene.box[1] + slack).all()


def test_single_sample_is_accepted() -> None:
    robot = jointwise.load_robot("ur5e")
    document = motion_document(make_scene(robot, np.array([3.0]), np.zeros((1, 6))))
    assert document["duration"] == 0.0 and len(unpacked(document["q"])) == 6


def test_invalid_motions_are_rejected() -> None:
    robot = jointwise.load_robot("ur5e")
    t, q = waves(robot)
    for times in (t[:-1], t[::-1], np.where(t > 7.0, np.nan, t)):
        with pytest.raises(ShapeError, match="t must be 601 finite, increasing times"):
            make_scene(robot, times, q)
    with pytest.raises(ShapeError, match="t must be one or more"):
        make_scene(robot, t[:0], q[:0])
    with pytest.raises(ShapeError, match="q must be finite"):
        make_scene(robot, t, np.where(q > 0.5, np.nan, q))
    with pytest.raises(ShapeError, match="gravity must be three finite numbers"):
        make_scene(robot, t, q, (0.0, 1.0))


def test_view_is_escaped_and_contains_a_drawing() -> None:
    robot = replace(jointwise.load_robot("ur5e"), title="<script>alert(1)</script>")
    text = motion_view(robot, *waves(robot))
    assert "<script>" not in text and "url(" not in text and "http" not in text
    assert text.count("<svg") == text.count("</svg>") == 1
    assert 300 < text.count("<path") < 1600
    json.loads(unescape(re.search(r'motion\+json">(.*?)</script>', text).group(1)))  # type: ignore[union-attr]


@needs_browser
def test_browser_moves_the_slider_and_plays(tmp_path: Path) -> None:
    robot = jointwise.load_robot("ur5e")
    scene = make_scene(robot, *waves(robot))
    with opened(written_page(tmp_path, robot), tmp_path, extra=SOFTWARE_3D) as view:
        view.wait("document.querySelector('.motion').classList.contains('motion-live')")
        view.evaluate(SLIDE)
        check_slid(scene, view.evaluate(STATUS))
        top = scene.placed(scene.mesh(), 250)[:, 2].max()
        heights = "document.querySelector('.motion-view').points.filter((_, k) => k % 3 === 2)"
        view.wait(f"Math.abs(Math.max(...{heights}) - {top}) < 1e-3")
        view.evaluate(PLAY)
        view.wait(f"parseFloat({STATUS}) > 2.6")
        view.evaluate(PLAY)
        stopped = view.evaluate(STATUS)
        assert view.evaluate(f"new Promise((done) => setTimeout(() => done({STATUS}), 300))") == stopped
        assert [text for text in view.complaints if "willReadFrequently" not in text and "GPU stall" not in text] == []


@needs_browser
def test_drawing_remains_without_webgl(tmp_path: Path) -> None:
    with opened(written_page(tmp_path, jointwise.load_robot("ur5e")), tmp_path) as view:
        assert not view.evaluate("document.querySelector('.motion').classList.contains('motion-live')")
        assert view.evaluate("document.querySelector('.motion svg').getBoundingClientRect().width") > 200.0


STATUS = "document.querySelector('.motion-status').textContent"
PLAY = "document.querySelector('.motion-play').click()"
SLIDE = """{ const slider = document.querySelector('.motion-time');
slider.value = 2.5; slider.dispatchEvent(new Event('input')); }"""


def written_page(folder: Path, robot: Any) -> Path:
    pytest.importorskip("jinja2")
    view = motion_view(robot, *waves(robot))
    path = folder / "page.html"
    page = compose("Motion", "UR5e", "", [("motion", "The motion", view)])
    path.write_text(page, encoding="utf-8")
    return path


def check_slid(scene: Scene, status: str) -> None:
    """The tool position of the script equals that of the model at the time of the slider."""
    tool = [float(value) for value in status.split("tool ")[1].removesuffix(" m").split(", ")]
    assert status.startswith("2.50 s")
    np.testing.assert_allclose(tool, scene.frames.tool[1][250], atol=6e-4)
