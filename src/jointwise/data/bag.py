"""ROS 2 bags as logs: directories with metadata, bare `.db3` files and MCAP, through the library rosbags.

Messages: ``sensor_msgs/JointState``, ``control_msgs/DynamicJointState``, and the references of
``control_msgs/JointTrajectoryControllerState``. Joints are matched to the robot by name, because drivers publish them
in different orders. Header stamps are used; receive stamps where headers have none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.data.effort import EffortUnit, effort_channel
from jointwise.data.log import Log, Origin
from jointwise.data.read import BAG_SUFFIXES
from jointwise.description.robot import Robot
from jointwise.errors import DataError, MissingExtraError, nearest
from jointwise.spatial import Array

MOST_MESSAGES = 20_000_000
"""Limit of messages of a topic: eleven hours at 500 Hz."""
MOST_JOINTS = 256
"""Limit of joints in a message."""
NANO = 1e-9
STATES = ("sensor_msgs/msg/JointState", "control_msgs/msg/DynamicJointState")
REFERENCES = "control_msgs/msg/JointTrajectoryControllerState"
DEFINITIONS = {
    "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values\n",
    "control_msgs/msg/DynamicJointState": (
        "std_msgs/Header header\nstring[] joint_names\ncontrol_msgs/InterfaceValue[] interface_values\n"
    ),
}
"""Types that the library does not know and that bags of early versions do not contain."""


def read_bag(
    path: Path,
    robot: Robot | None = None,
    *,
    names: Sequence[str] = (),
    topic: str | None = None,
    effort_unit: EffortUnit | None = None,
) -> Log:
    """Return the joint states of a bag as a log.

    Args:
        path: Directory of the bag, `.db3` or `.mcap` file.
        robot: Robot whose joints are selected and ordered by name; None for the order of the first message.
        names: Names of the joints in the bag, in the order of the robot; () to match them.
        topic: Topic of the joint states; None if there is only one.
        effort_unit: "A" or "Nm" of the field `effort`; None to decide by the gravity torque of the robot.

    Raises:
        DataError: If the bag is damaged, has no joint states, or its joints cannot be matched.
        MissingExtraError: If the library rosbags is not installed.
    """
    bag = _Bag(_storage(path), str(path))
    with bag.opened() as reader:
        chosen = bag.topic(reader, topic)
        series = bag.states(reader, chosen)
        references = bag.references(reader)
    order = _order(series.joints, robot, names, str(path))
    picked = [series.joints.index(name) for name in order]
    notes = [f"topic {chosen.topic}, joints {', '.join(order)}", *series.notes]
    left = [name for name in series.joints if name not in order]
    if left:
        notes.append(f"joints left out: {', '.join(left)}")
    channels: dict[str, Any] = {name: values[:, picked] for name, values in series.channels.items() if name != "effort"}
    if "effort" in series.channels:
        found = effort_channel(channels["q"], series.channels["effort"][:, picked], robot, effort_unit, str(path))
        notes.append(found.note)
        if found.channel is not None:
            channels[found.channel] = series.channels["effort"][:, picked]
    channels |= references.at(series.t, order) if references is not None else {}
    digest, size = _digest(path)
    origin = Origin(str(path), digest, size, "bag", len(series.t), tuple(notes))
    return Log(t=(series.t - series.t[0]) * NANO, origin=origin, **channels)


def _storage(path: Path) -> Path:
    """Return what the library opens: a directory without metadata must hold one storage file."""
    if not path.is_dir() or (path / "metadata.yaml").exists():
        return path
    files = sorted(file for suffix in BAG_SUFFIXES for file in path.glob(f"*{suffix}"))
    if len(files) != 1:
        raise DataError(f"{path}: a bag without metadata.yaml must hold one storage file. Got {len(files)} instead.")
    return files[0]


@dataclass
class _Series:
    """Messages of one topic: stamps (samples,) ns, joint names, channels (samples, joints)."""

    t: NDArray[np.int64]
    joints: tuple[str, ...]
    channels: dict[str, Array]
    notes: list[str] = field(default_factory=list)

    def at(self, stamps: NDArray[np.int64], order: Sequence[str]) -> dict[str, Array]:
        """Return reference channels at other stamps (samples,) ns by linear interpolation."""
        if not set(order) <= set(self.joints):
            return {}
        picked = [self.joints.index(name) for name in order]
        return {
            name: np.column_stack([np.interp(stamps, self.t, values[:, k]) for k in picked])
            for name, values in self.channels.items()
        }


class _Bag:
    """A bag and the types of its messages."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name

    def opened(self) -> Any:
        """Return the open reader of the library; errors become one line."""
        return _Opened(self._path, self._name)

    def topic(self, reader: Any, requested: str | None) -> Any:
        """Return the connection of the joint states."""
        found = [c for c in reader.connections if c.msgtype in STATES and c.msgcount > 0]
        if not found:
            others = ", ".join(sorted({c.topic for c in reader.connections})[:8]) or "none"
            raise DataError(f"{self._name}: no joint states (sensor_msgs/JointState). Topics: {others}.")
        if requested is not None:
            return self._requested(found, requested)
        return self._only(found)

    def _only(self, found: Sequence[Any]) -> Any:
        """Return the only connection, of the plain joint states if there are any."""
        best = [c for c in found if c.msgtype == STATES[0]] or found
        if len(best) > 1:
            topics = ", ".join(c.topic for c in best)
            raise DataError(f"{self._name}: joint states in {topics}. Choose one with --topic.")
        return best[0]

    def _requested(self, found: Sequence[Any], topic: str) -> Any:
        """Return the connection of a topic by its name."""
        for connection in found:
            if connection.topic == topic:
                return connection
        hint = nearest(topic, [c.topic for c in found])
        raise DataError(f"{self._name}: no joint states in topic '{topic}'. {hint}")

    def states(self, reader: Any, connection: Any) -> _Series:
        """Return the messages of a topic of joint states."""
        parts = _Collected(self._name, ("q", "qd", "effort"))
        dynamic = connection.msgtype == STATES[1]
        for received, message in self._messages(reader, connection):
            names, values = _dynamic_values(message) if dynamic else _plain_values(message)
            parts.add(received, message.header.stamp, names, values)
        return parts.series()

    def references(self, reader: Any) -> _Series | None:
        """Return the references of a trajectory controller if exactly one controller published them."""
        found = [c for c in reader.connections if c.msgtype == REFERENCES and c.msgcount > 1]
        if len(found) != 1:
            return None
        parts = _Collected(self._name, ("q_des", "qd_des", "qdd_des"))
        for received, message in self._messages(reader, found[0]):
            point = getattr(message, "reference", None) or message.desired
            values = {"q_des": point.positions, "qd_des": point.velocities, "qdd_des": point.accelerations}
            parts.add(received, message.header.stamp, tuple(message.joint_names), values)
        return parts.series()

    def _messages(self, reader: Any, connection: Any) -> Iterator[tuple[int, Any]]:
        """Yield receive stamps (ns) and messages."""
        types = _typestore(connection)
        for count, (_, received, data) in enumerate(reader.messages(connections=[connection])):
            if count >= MOST_MESSAGES:
                raise DataError(f"{self._name}: more than {MOST_MESSAGES} messages in {connection.topic}.")
            try:
                yield received, types.deserialize_cdr(data, connection.msgtype)
            except Exception as problem:
                raise DataError(
                    f"{self._name}: message {count + 1} of {connection.topic} is damaged ({type(problem).__name__})."
                ) from None


class _Opened:
    """Context manager around the reader of rosbags that reports damaged bags in one line."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name, self._reader = path, name, None  # type: Path, str, Any

    def __enter__(self) -> Any:
        try:
            from rosbags.rosbag2 import Reader
        except ImportError:
            raise MissingExtraError("rosbags", "ros", "Reading a ROS 2 bag") from None
        try:
            self._reader = Reader(self._path)
            self._reader.open()
        except FileNotFoundError:
            raise DataError(f"{self._name}: no such file.") from None
        except Exception as problem:
            raise DataError(f"{self._name}: damaged bag ({_line(problem)}).") from None
        return self._reader

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._reader is not None:
            self._reader.close()
        if error is not None and not isinstance(error, (DataError, KeyboardInterrupt, MemoryError)):
            raise DataError(f"{self._name}: damaged bag ({_line(error)}).") from None


def _line(problem: BaseException) -> str:
    """Return the first line of an error of the library."""
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0][:120].rstrip(".")


def _typestore(connection: Any) -> Any:
    """Return the message types: those of ROS 2, ours, and those stored in the bag."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types: dict[str, Any] = {}
    for name, text in DEFINITIONS.items():
        types |= get_types_from_msg(text, name)
    if connection.msgdef.data and connection.msgtype not in store.fielddefs:
        types |= get_types_from_msg(connection.msgdef.data, connection.msgtype)
    store.register({name: value for name, value in types.items() if name not in store.fielddefs})
    return store


def _plain_values(message: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return names and values of a JointState."""
    return tuple(message.name), {"q": message.position, "qd": message.velocity, "effort": message.effort}


def _dynamic_values(message: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return names and values of a DynamicJointState: its interfaces position, velocity and effort."""
    values: dict[str, list[float]] = {"position": [], "velocity": [], "effort": []}
    for joint in message.interface_values:
        found = dict(zip(joint.interface_names, joint.values, strict=False))
        for name, list_ in values.items():
            list_.append(float(found.get(name, np.nan)))
    renamed = {"q": values["position"], "qd": values["velocity"], "effort": values["effort"]}
    return tuple(message.joint_names), renamed


class _Collected:
    """Collects messages; joints may come in another order, or only some of them, in a message."""

    def __init__(self, name: str, channels: Sequence[str]) -> None:
        self._name = name
        self._joints: tuple[str, ...] = ()
        self._headers, self._received = list[int](), list[int]()
        self._rows: dict[str, list[Array]] = {channel: [] for channel in channels}
        self._skipped = 0

    def add(self, received: int, stamp: Any, names: tuple[str, ...], values: dict[str, Any]) -> None:
        """Add a message; one that lacks a joint of the first message is skipped and counted."""
        if len(names) > MOST_JOINTS or len(set(names)) != len(names):
            raise DataError(f"{self._name}: a message must name at most {MOST_JOINTS} different joints.")
        self._joints = self._joints or names
        if not names or not set(self._joints) <= set(names):
            self._skipped += 1
            return
        picked = [names.index(name) for name in self._joints]
        self._headers.append(int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec))
        self._received.append(int(received))
        for channel, rows in self._rows.items():
            found = np.asarray(values.get(channel, ()), dtype=float)
            rows.append(found[picked] if len(found) == len(names) else np.full(len(picked), np.nan))

    def _stamps(self) -> tuple[NDArray[np.int64], list[str]]:
        """Return the stamps of the headers (ns), or those of reception with a note."""
        stamps = np.array(self._headers, dtype=np.int64)
        if not (stamps == 0).any() and not (np.diff(stamps) < 0).any():
            return stamps, []
        note = "receive stamps are used: the headers have none, or they run backwards"
        return np.array(self._received, dtype=np.int64), [note]

    def series(self) -> _Series:
        """Return all messages; channels without any value are left out."""
        if len(self._headers) < 2:
            raise DataError(f"{self._name}: fewer than two messages with joints.")
        stamps, notes = self._stamps()
        if self._skipped:
            notes.append(f"{self._skipped} messages without all joints left out")
        stacked = {channel: np.array(rows) for channel, rows in self._rows.items()}
        channels = {channel: values for channel, values in stacked.items() if np.isfinite(values).any()}
        for channel in [name for name, values in channels.items() if not np.isfinite(values).all()]:
            notes.append(f"{channel} left out: {int((~np.isfinite(channels.pop(channel))).sum())} values are missing")
        return _Series(stamps, self._joints, channels, notes)


def _order(found: Sequence[str], robot: Robot | None, names: Sequence[str], where: str) -> list[str]:
    """Return the joints of the bag in the order of the robot."""
    if names:
        return _stated(found, names, where)
    return list(found) if robot is None else _matched(found, robot, where)


def _stated(found: Sequence[str], names: Sequence[str], where: str) -> list[str]:
    """Return joints that the user names."""
    for name in names:
        if name not in found:
            raise DataError(f"{where}: no joint '{name}'. {nearest(name, found)}")
    return list(names)


def _matched(found: Sequence[str], robot: Robot, where: str) -> list[str]:
    """Return the joints of a robot by their names, or by their numbers where the robot has other names."""
    matches = [_match(joint.name, found) for joint in robot.joints]
    missing = [joint.name for joint, match in zip(robot.joints, matches, strict=True) if match is None]
    if missing and len(missing) == robot.dof and _numbered(found, robot.dof):
        return _numbered(found, robot.dof)
    if missing:
        raise DataError(
            f"{where}: no joint matches '{missing[0]}' of {robot.name}. {nearest(missing[0], found)} State the joints "
            f"in order: --columns 'q={','.join(found[: robot.dof])}'."
        )
    return [match for match in matches if match is not None]


def _match(name: str, found: Sequence[str]) -> str | None:
    """Return the one joint of a bag that has a name, without prefixes of the arm and the suffix `_joint`."""
    bare = name.removesuffix("_joint").lower()
    exact = [other for other in found if other == name or other.removesuffix("_joint").lower() == bare]
    ends = [other for other in found if other.removesuffix("_joint").lower().endswith(f"_{bare}")]
    candidates = exact or ends
    return candidates[0] if len(candidates) == 1 else None


def _numbered(found: Sequence[str], dof: int) -> list[str]:
    """Return joints whose names differ only in a final number 1..n, in that order; else nothing."""
    stems = {name.rstrip("0123456789") for name in found}
    numbers = [name[len(name.rstrip("0123456789")) :] for name in found]
    if len(stems) != 1 or len(found) != dof or not all(numbers):
        return []
    order = sorted(range(dof), key=lambda k: int(numbers[k]))
    return [found[k] for k in order]


def _digest(path: Path) -> tuple[str, int]:
    """Return the SHA-256 of the storage files of a bag and their size in bytes."""
    files = [path] if path.is_file() else sorted(file for file in path.iterdir() if file.is_file())
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest(), sum(file.stat().st_size for file in files)
