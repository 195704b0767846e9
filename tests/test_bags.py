"""ROS 2 bags as logs: order of joints, stamps, unit of the effort, damaged bags, and conversion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointwise as jw
from cli_runs import done, refused
from data_files import SHARED
from jointwise.data.bag import DEFINITIONS, REFERENCES, STATES
from jointwise.data.write import write_mcap
from jointwise.errors import DataError
from jointwise.model.rigid import gravity_torque

rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed")
from rosbags.typesys import Stores, get_types_from_msg, get_typestore  # noqa: E402

pytestmark = pytest.mark.compat

TYPES = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = "sensor_msgs/msg/JointState"
UR = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")
BAG = SHARED / "ur10_ros2" / "ur10_exciting_trajectory.db3"


def motion(samples: int = 400) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(samples) / 100.0
    return t, np.column_stack([np.sin(t + j) - (1.0 if j == 1 else 0.0) for j in range(6)])


def write_bag(
    folder: Path,
    names: tuple[str, ...],
    q: np.ndarray,
    effort: np.ndarray | None,
    *,
    stamped: bool = True,
    topics: tuple[str, ...] = ("/joint_states",),
    plugin: Any = rosbag2.StoragePlugin.SQLITE3,
) -> Path:
    """Write a bag whose messages list the joints as `names`; q and effort are in that order."""
    state, header = TYPES.types[JOINT_STATE], TYPES.types["std_msgs/msg/Header"]
    time = TYPES.types["builtin_interfaces/msg/Time"]
    with rosbag2.Writer(folder / "bag", version=9, storage_plugin=plugin) as writer:
        for topic in topics:
            connection = writer.add_connection(topic, JOINT_STATE, typestore=TYPES)
            for k in range(len(q)):
                stamp = 10**9 + k * 10**7
                message = state(
                    header=header(
                        stamp=time(sec=stamp // 10**9 * stamped, nanosec=stamp % 10**9 * stamped), frame_id=""
                    ),
                    name=list(names),
                    position=np.ascontiguousarray(q[k]),
                    velocity=np.zeros(0),
                    effort=np.zeros(0) if effort is None else np.ascontiguousarray(effort[k]),
                )
                writer.write(connection, stamp + 123, TYPES.serialize_cdr(message, JOINT_STATE))
    return folder / "bag"


@pytest.mark.parametrize("plugin", [rosbag2.StoragePlugin.SQLITE3, rosbag2.StoragePlugin.MCAP])
@pytest.mark.parametrize("gain", [1.0, 11.0])
def test_joints_are_matched_by_name_and_the_unit_of_effort_is_decided(tmp_path: Path, plugin: Any, gain: float) -> None:
    robot, (t, q) = jw.load_robot("ur10e"), motion()
    gains = np.array([joint.motor.joint_gain for joint in robot.joints]) if gain > 1.0 else np.ones(6)
    effort = gravity_torque(robot, q) / gains
    order = np.argsort(UR)
    bag = write_bag(tmp_path, tuple(np.array(UR)[order]), q[:, order], effort[:, order], plugin=plugin)
    log = jw.read_log(bag, joints=robot)
    np.testing.assert_array_equal(log.q, q)
    np.testing.assert_allclose(log.t, t, atol=1e-9)
    np.testing.assert_array_equal(log.channel("torque" if gain == 1.0 else "current"), effort)
    assert any("of the gravity torque" in note for note in log.origin.notes)


def test_effort_that_does_not_decide_is_rejected_unless_stated(tmp_path: Path) -> None:
    robot, (_, q) = jw.load_robot("ur10e"), motion()
    noise = np.random.default_rng(0).normal(size=q.shape)
    bag = write_bag(tmp_path, UR, q, noise)
    with pytest.raises(DataError, match="--effort-unit"):
        jw.read_log(bag, joints=robot)
    with pytest.raises(DataError, match="--effort-unit"):
        jw.read_log(bag, joints=robot, effort_unit=None)
    assert jw.read_log(bag, joints=robot, effort_unit="A").current is not None
    assert jw.read_log(bag).available == ("t", "q")


def test_receive_stamps_are_used_without_headers_and_topics_are_chosen(tmp_path: Path) -> None:
    t, q = motion()
    bag = write_bag(tmp_path, UR, q, None, stamped=False, topics=("/a/joint_states", "/b/joint_states"))
    with pytest.raises(DataError, match="--topic"):
        jw.read_log(bag)
    with pytest.raises(DataError, match="Did you mean /a/joint_states"):
        jw.read_log(bag, topic="/a/joint_state")
    log = jw.read_log(bag, topic="/a/joint_states")
    np.testing.assert_allclose(log.t, t, atol=1e-9)
    assert any("receive stamps" in note for note in log.origin.notes)


def test_names_that_do_not_match_are_rejected_with_suggestions(tmp_path: Path) -> None:
    _, q = motion()
    names = ("sholder_pan_joint", *UR[1:])
    bag = write_bag(tmp_path, names, q, None)
    with pytest.raises(DataError, match="sholder_pan_joint"):
        jw.read_log(bag, joints=jw.load_robot("ur10e"))
    listed = ",".join(names)
    log = jw.read_log(bag, joints=jw.load_robot("ur10e"), columns=f"q={listed}")
    np.testing.assert_array_equal(log.q, q)


def test_dynamic_joint_states_and_references_of_a_controller_are_read(tmp_path: Path) -> None:
    types = get_typestore(Stores.ROS2_HUMBLE)
    text = {
        **DEFINITIONS,
        REFERENCES: (
            "std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint desired\n"
            "trajectory_msgs/JointTrajectoryPoint actual\ntrajectory_msgs/JointTrajectoryPoint error\n"
        ),
    }
    for name, definition in text.items():
        types.register(get_types_from_msg(definition, name))
    kinds = types.types
    _, q = motion()
    with rosbag2.Writer(tmp_path / "bag", version=9, storage_plugin=rosbag2.StoragePlugin.MCAP) as writer:
        states = writer.add_connection("/dynamic_joint_states", STATES[1], typestore=types)
        references = writer.add_connection("/controller/state", REFERENCES, typestore=types)
        for k in range(len(q)):
            stamp = 10**9 + k * 10**7
            time = kinds["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9)
            header = kinds["std_msgs/msg/Header"](stamp=time, frame_id="")
            values = [
                kinds["control_msgs/msg/InterfaceValue"](
                    interface_names=["effort", "position"], values=np.array([2.0 * x, x])
                )
                for x in q[k]
            ]
            state = kinds[STATES[1]](header=header, joint_names=list(UR), interface_values=values)
            writer.write(states, stamp, types.serialize_cdr(state, STATES[1]))
            empty, none = np.zeros(0), kinds["builtin_interfaces/msg/Duration"](sec=0, nanosec=0)
            point = kinds["trajectory_msgs/msg/JointTrajectoryPoint"]
            desired = point(
                positions=q[k] + 0.1, velocities=empty, accelerations=empty, effort=empty, time_from_start=none
            )
            other = point(positions=empty, velocities=empty, accelerations=empty, effort=empty, time_from_start=none)
            message = kinds[REFERENCES](header=header, joint_names=list(UR), desired=desired, actual=other, error=other)
            writer.write(references, stamp, types.serialize_cdr(message, REFERENCES))
    log = jw.read_log(tmp_path / "bag", effort_unit="A")
    np.testing.assert_array_equal(log.q, q)
    np.testing.assert_array_equal(log.channel("current"), 2.0 * q)
    np.testing.assert_allclose(log.channel("q_des"), q + 0.1, atol=1e-12)


def test_numbered_joints_are_ordered_by_their_number(tmp_path: Path) -> None:
    _, q = motion()
    order = [3, 1, 0, 2, 5, 4]
    bag = write_bag(tmp_path, tuple(f"joint_{k + 1}" for k in order), q[:, order], None)
    np.testing.assert_array_equal(jw.read_log(bag, joints=jw.load_robot("ur10e")).q, q)


@pytest.mark.parametrize("size", [0, 100, 5000, 20000])
def test_damaged_bags_are_rejected_in_one_line(tmp_path: Path, size: int) -> None:
    _, q = motion()
    for plugin, suffix in ((rosbag2.StoragePlugin.SQLITE3, ".db3"), (rosbag2.StoragePlugin.MCAP, ".mcap")):
        bag = write_bag(tmp_path / suffix[1:], UR, q, None, plugin=plugin)
        content = next(bag.glob(f"*{suffix}")).read_bytes()
        damaged = tmp_path / f"damaged{suffix}"
        damaged.write_bytes(content[:size] + bytes(max(len(content) - size - 1, 0)))
        refused("inspect", damaged)
    assert "no such file" in refused("inspect", tmp_path / "absent.mcap")


def test_bag_without_joint_states_is_rejected(tmp_path: Path) -> None:
    text = "std_msgs/msg/String"
    with rosbag2.Writer(tmp_path / "bag", version=9) as writer:
        connection = writer.add_connection("/chatter", text, typestore=TYPES)
        message = TYPES.types[text](data="hello")
        writer.write(connection, 1, TYPES.serialize_cdr(message, text))
    assert "no joint states" in refused("inspect", tmp_path / "bag")


def test_conversion_keeps_the_numbers(tmp_path: Path) -> None:
    robot = jw.load_robot("ur10e")
    t, q = motion()
    log = jw.Log(t=t, q=q, qd=0.5 * q, torque=gravity_torque(robot, q))
    write_mcap(log, tmp_path / "log.mcap", robot)
    assert "400 samples" in done("convert", tmp_path / "log.mcap", tmp_path / "log.parquet", "--robot", "ur10e")
    back = jw.read_log(tmp_path / "log.parquet")
    np.testing.assert_array_equal(back.q, q)
    np.testing.assert_array_equal(back.channel("torque"), log.channel("torque"))
    assert "must end in" in refused("convert", tmp_path / "log.parquet", tmp_path / "log.txt")


@pytest.mark.skipif(not BAG.exists(), reason="the recordings are not there")
def test_recorded_bag_reads_with_its_unit() -> None:
    log = jw.read_log(BAG, joints=jw.load_robot("ur10e"))
    assert (log.samples, log.joints) == (3441, 6)
    np.testing.assert_allclose(log.channel("torque").std(axis=0), [22, 67, 32, 6.1, 4.0, 5.7], rtol=0.05)
    assert log.clock.rate == pytest.approx(125.0, rel=1e-3)
