"""Reading of logs: `read_log`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from jointwise.arguments import checked
from jointwise.data.columns import NEEDED, ReadOptions, parse_columns
from jointwise.data.effort import EffortUnit
from jointwise.data.log import Log
from jointwise.data.parquet import STREAM_MAGIC
from jointwise.description.robot import Robot
from jointwise.errors import DataError

BAG_SUFFIXES = (".db3", ".mcap")
"""Endings of the storage formats of ROS 2 bags."""
BINARY_TABLES = (b"PAR1", STREAM_MAGIC)
"""First bytes of a Parquet file and of an Arrow stream."""


@checked
def read_log(
    path: str | Path,
    *,
    columns: str | Path | Mapping[str, Any] | None = None,
    joints: int | Robot | None = None,
    needed: Collection[str] = NEEDED,
    spool_bytes: int | None = None,
    extra: Sequence[str] = (),
    ignore_output: Collection[int] = (),
    topic: str | None = None,
    effort_unit: EffortUnit | None = None,
) -> Log:
    """Return the log in a CSV or Parquet file or a ROS 2 bag, raw, in SI units.

    Text may have any usual delimiter, decimal points or commas, line ends of any system, stamps as numbers or as text,
    and one sample or one value per line (see `tall`). The file itself is only read.

    Args:
        path: The file.
        columns: What the columns are where their names do not say it (see `mapping`).
        joints: Number of joints, or the robot; another number is refused. The robot also selects the joints of a bag
            by their names and decides the unit of its effort.
        needed: Channels in which a missing value refuses the log; any other channel with missing values is left out,
            with a note in ``origin.notes``.
        spool_bytes: Logs above this many bytes of float64 (default 64 MB) live in a temporary file.
        ignore_output: Joints (0-based) whose current and torque are ignored, as `Log.ignore_output` does; their
            missing values are accepted. Columns without any value are ignored in any case, with a note.
        topic: Topic of the joint states in a bag; None if there is only one.
        effort_unit: "A" or "Nm" of the effort in a bag; None to decide by the gravity torque of the robot.
        extra: Other columns to keep in ``log.extra``: names, which must exist, or patterns such
            as ``actual_joint_voltage_*``, which may match none.

    Returns:
        The log.

    Raises:
        DataError: The file cannot be read, or not be trusted; names the row and the column.
    """
    path, wanted = Path(path), parse_columns(columns)
    robot, count = (joints, joints.dof) if isinstance(joints, Robot) else (None, joints)
    try:
        if _is_bag(path):
            from jointwise.data.bag import read_bag

            names = wanted.names.get("q", ())
            log = read_bag(path, robot, names=names, topic=topic, effort_unit=effort_unit)
            _check_count(log, count)
            return log.ignore_output(ignore_output)
        options = ReadOptions(wanted, count, ("t", "q", *needed), spool_bytes, extra, ignore_output)
        log = _table_reader(path)(path, options)
        return log.ignore_output(ignore_output)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory. Give a CSV or Parquet log.") from None
    except ModuleNotFoundError:
        raise DataError(f"{path}: reading logs needs pyarrow. Install it with: pip install pyarrow") from None
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror or problem}).") from None


def _check_count(log: Log, joints: int | None) -> None:
    """Refuse a log of another number of joints."""
    if joints is not None and log.joints != joints:
        raise DataError(f"{log.origin.path}: the log has {log.joints} joints, the robot has {joints}.")


def _is_bag(path: Path) -> bool:
    """Return whether a path is a bag: a directory with `metadata.yaml`, or a file of its storage formats."""
    if path.is_dir():
        return (path / "metadata.yaml").exists() or any(file.suffix in BAG_SUFFIXES for file in path.iterdir())
    return path.suffix.lower() in BAG_SUFFIXES


def _table_reader(path: Path) -> Callable[[Path, ReadOptions], Log]:
    """Return the reader of a file with a table by its first bytes; the other readers are not imported."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise DataError(f"{path}: not a regular file. Save the log to a file first.")
    with path.open("rb") as file:
        begin = file.read(4)
    if begin in BINARY_TABLES:
        from jointwise.data.parquet import read_parquet

        return read_parquet
    from jointwise.data.csv import read_csv

    return read_csv
