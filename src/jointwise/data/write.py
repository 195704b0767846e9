"""Logs on disk: CSV or Parquet, by the ending of the name, that `read_log` reads back to the last bit; conversion."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.atomic import atomic_path
from jointwise.data.channels import default_names
from jointwise.data.coordinates import KEY, gravity_bytes
from jointwise.data.effort import EffortUnit
from jointwise.data.log import Log
from jointwise.data.parquet import STREAM_MAGIC, convert_stream
from jointwise.data.read import read_log
from jointwise.description.files import as_robot
from jointwise.description.robot import Robot
from jointwise.errors import DataError, MissingExtraError, OutputError

ROWS = 16384
"""Samples that are written at a time."""
SUFFIXES = (".csv", ".parquet")


def check_suffix(path: str | Path) -> None:
    """Refuse a file name that is neither CSV nor Parquet."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise OutputError(f"{path}: a log must end in {' or '.join(SUFFIXES)}.")


@checked
def write_log(log: Log, path: str | Path) -> None:
    """Write a log as CSV or Parquet by its ending, with our own column names ``t,q1..,qd1..,i1..``; `extra` as named.

    The file appears under its name only when it is whole. A number that is not finite is rejected. Parquet also holds
    the gravity of the log's origin; CSV is numbers under a header and nothing else, as other programs want it.
    """
    check_suffix(path)
    if Path(path).suffix.lower() == ".csv":
        write_csv(log, path)
    else:
        write_parquet(log, path)


def write_csv(log: Log, path: str | Path) -> None:
    """Write a log as text; see `write_log`. Every number in its shortest exact form."""
    from pyarrow import csv

    schema, options = _schema(log), csv.WriteOptions(include_header=False)
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        file.write((",".join(schema.names) + "\n").encode())
        with csv.CSVWriter(file, schema, write_options=options) as writer:
            for batch in _batches(log, schema):
                writer.write_batch(batch)


def write_parquet(log: Log, path: str | Path) -> None:
    """Write a log as Parquet, one float64 column a channel and joint; see `write_log`."""
    from pyarrow import parquet

    schema, gravity = _schema(log), log.origin.gravity
    if gravity is not None:
        schema = schema.with_metadata({KEY: gravity_bytes(gravity)})
    with atomic_path(path) as temporary, parquet.ParquetWriter(temporary, schema, write_page_checksum=True) as writer:
        for batch in _batches(log, schema):
            writer.write_batch(batch)


def _schema(log: Log) -> Any:
    import pyarrow as pa

    names = [column for channel in log.available for column in default_names(channel, log.joints)]
    return pa.schema([(name, pa.float64()) for name in (*names, *log.extra)])


def _batches(log: Log, schema: Any) -> Iterator[Any]:
    """Yield the rows of a log, finite."""
    import pyarrow as pa

    for chunk in log.chunks(ROWS):
        channels = [chunk.channel(name) for name in log.available]
        rows = np.column_stack([*channels, *chunk.extra.values()])
        if not np.isfinite(rows).all():
            raise DataError(f"{log.origin.path}: a value is not finite. Nothing was written.")
        yield pa.record_batch([np.ascontiguousarray(column) for column in rows.T], schema=schema)


# -- conversion --

MCAP = ".mcap"
TOPIC = "/joint_states"
JOINT_STATE = "sensor_msgs/msg/JointState"


@checked
def convert(
    path: str | Path,
    output: str | Path,
    *,
    columns: str | Path | Mapping[str, Any] | None = None,
    robot: Robot | str | Path | None = None,
    topic: str | None = None,
    effort_unit: EffortUnit | None = None,
) -> int:
    """Write a log in another format, by the ending of the output: `.csv`, `.parquet` or `.mcap`.

    A recording that was interrupted (``*.recording``) keeps all its columns in CSV and Parquet. MCAP holds joint states
    with the names of the robot's joints, in SI units.

    Args:
        path: CSV or Parquet log, ROS 2 bag, or interrupted recording.
        output: File to write.
        columns: Meaning of the columns, as in `read_log`.
        robot: The robot, or its name, which names and orders the joints of a bag and of MCAP.
        topic: Topic of the joint states in a bag.
        effort_unit: Unit of the effort in a bag.

    Returns:
        The number of samples.

    Raises:
        DataError: If the log cannot be read.
        OutputError: If the output has another ending or cannot be written.
    """
    suffix = Path(output).suffix.lower()
    if suffix not in (*SUFFIXES, MCAP):
        raise OutputError(f"{output}: a log must end in {', '.join(SUFFIXES)} or {MCAP}.")
    robot = None if robot is None else as_robot(robot)
    log = read_log(path, columns=columns, joints=robot, needed=(), topic=topic, effort_unit=effort_unit)
    if suffix == MCAP:
        write_mcap(log, output, robot)
    elif _is_stream(Path(path)):
        convert_stream(path, output)
    else:
        write_log(log, output)
    return log.samples


def _is_stream(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(STREAM_MAGIC)) == STREAM_MAGIC


def write_mcap(log: Log, output: str | Path, robot: Robot | None = None) -> None:
    """Write a log as joint states in an MCAP file: position, velocity, and torque (else current) as effort.

    Raises:
        MissingExtraError: If the library rosbags is not installed.
    """
    try:
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingExtraError("rosbags", "ros", "Writing MCAP") from None
    names = [f"joint{j + 1}" for j in range(log.joints)] if robot is None else [joint.name for joint in robot.joints]
    types = get_typestore(Stores.ROS2_HUMBLE)
    with atomic_path(output) as temporary, tempfile.TemporaryDirectory() as folder:
        bag = Path(folder) / "bag"
        with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            connection = writer.add_connection(TOPIC, JOINT_STATE, typestore=types)
            for stamp, message in _messages(log, names, types):
                writer.write(connection, stamp, types.serialize_cdr(message, JOINT_STATE))
        shutil.copyfile(next(bag.glob(f"*{MCAP}")), temporary)


def _messages(log: Log, names: list[str], types: Any) -> Any:
    """Yield receive stamps (ns) and joint states of a log; stamps count from its first sample plus one second."""
    joint_state, header = types.types[JOINT_STATE], types.types["std_msgs/msg/Header"]
    time = types.types["builtin_interfaces/msg/Time"]
    if not np.isfinite(log.t).all():
        raise DataError(f"{log.origin.path}: a time stamp is not finite.")
    effort = log.torque if log.torque is not None else log.current
    none = np.zeros(0)
    for k in range(log.samples):
        stamp = 1_000_000_000 + round((float(log.t[k]) - float(log.t[0])) * 1e9)
        yield (
            stamp,
            joint_state(
                header=header(stamp=time(sec=stamp // 1_000_000_000, nanosec=stamp % 1_000_000_000), frame_id=""),
                name=names,
                position=np.ascontiguousarray(log.q[k]),
                velocity=none if log.qd is None else np.ascontiguousarray(log.qd[k]),
                effort=none if effort is None else np.ascontiguousarray(effort[k]),
            ),
        )
