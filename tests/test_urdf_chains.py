"""Parts of a URDF as a robot: from a base link, with joints held at a value."""

from __future__ import annotations

import numpy as np
import pytest

import jointwise as jw
from cli_runs import run
from jointwise.description.urdf import urdf_text
from jointwise.errors import DataError, DescriptionError
from jointwise.model.rigid import forward_kinematics, inverse_dynamics

HELD = {1: 0.7, 4: -1.1}


@pytest.fixture
def urdf(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(urdf_text(jw.load_robot("ur5e")))
    return path


def names(robot):
    return [joint.name for joint in robot.joints]


def states():
    return np.random.default_rng(3).uniform(-2.0, 2.0, (3, 30, 6))


def test_held_joints_are_the_whole_arm_at_that_value(urdf):
    whole = jw.load_robot(urdf)
    part = jw.load_robot(urdf, fixed={names(whole)[j]: value for j, value in HELD.items()})
    moving = [j for j in range(6) if j not in HELD]
    assert names(part) == [names(whole)[j] for j in moving]
    q, qd, qdd = states()
    for j, value in HELD.items():
        q[:, j], qd[:, j], qdd[:, j] = value, 0.0, 0.0
    expected = inverse_dynamics(whole, q, qd, qdd)[:, moving]
    assert np.allclose(inverse_dynamics(part, q[:, moving], qd[:, moving], qdd[:, moving]), expected, atol=1e-9)


def test_from_a_base_link(urdf):
    whole = jw.load_robot(urdf)
    part = jw.load_robot(urdf, base=whole.links[1].name)
    assert names(part) == names(whole)[2:]
    q = states()[0]
    q[:, :2] = 0.0
    whole_frames, part_frames = forward_kinematics(whole, q), forward_kinematics(part, q[:, 2:])
    R, p = whole_frames.rotation[:, 5], whole_frames.position[:, 5]
    R0, p0 = whole_frames.rotation[:, 1], whole_frames.position[:, 1]
    between = np.einsum("sji,sj->si", R0, p - p0)
    assert np.allclose(np.linalg.norm(between, axis=1), np.linalg.norm(part_frames.position[:, 3], axis=1), atol=1e-9)
    assert R.shape == (30, 3, 3)


def test_wrong_names(urdf):
    whole = jw.load_robot(urdf)
    with pytest.raises(DescriptionError, match="there is no link 'nowhere'"):
        jw.load_robot(urdf, base="nowhere")
    with pytest.raises(DescriptionError, match=f"no moving joint '{names(whole)[0]}x' to fix. Did you mean"):
        jw.load_robot(urdf, fixed={names(whole)[0] + "x": 0.0})
    with pytest.raises(DescriptionError, match="is a name of the catalogue"):
        jw.load_robot("ur5e", base="base")
    wrong = run("inspect", "x.csv", "--robot", urdf, "--fix-joint", "elbow")
    assert wrong.code == 2
    assert "must be NAME=VALUE" in wrong.err


def test_columns_of_a_whole_arm_are_read_for_a_part_of_it(urdf, tmp_path):
    header = ["t", *(f"{channel}{j}" for channel in ("q", "i") for j in range(1, 7))]
    values = np.random.default_rng(5).uniform(-1.0, 1.0, (20, 13))
    values[:, 0] = 0.01 * np.arange(20)
    path = tmp_path / "log.csv"
    np.savetxt(path, values, delimiter=",", header=",".join(header), comments="")
    part = jw.load_robot(urdf, base="link1", fixed={"wrist_1": -1.1})
    log = jw.read_log(path, joints=part, columns="q=q2,q3,q5,q6,i=i2,i3,i5,i6")
    assert np.allclose(log.q, values[:, [2, 3, 5, 6]])
    assert np.allclose(log.current, values[:, [8, 9, 11, 12]])
    with pytest.raises(DataError, match="current has 6 columns, q has 4"):
        jw.read_log(path, joints=part, columns="q=q2,q3,q5,q6")
