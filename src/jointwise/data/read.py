"""The one door for logs: `read_log`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jointwise.data.gate import NEEDED
from jointwise.data.log import Log
from jointwise.data.mapping import parse_columns
from jointwise.errors import DataError


def read_log(
    path: str | Path,
    *,
    columns: str | Path | Mapping[str, Any] | None = None,
    joints: int | None = None,
    needed: Collection[str] = NEEDED,
    spool_bytes: int | None = None,
) -> Log:
    """Return the log in a CSV or Parquet file, raw, in SI units.

    `columns` says what the columns are where their names do not (see `mapping`); `joints` refuses another joint
    count; a missing or non-finite value refuses the log in the `needed` channels and costs the channel, with a
    note in `origin.notes`, in the others. Logs above `spool_bytes` of float64 (64 MB) live in a temporary file.
    The file itself is only read.
    """
    from jointwise.data.csv import read_csv
    from jointwise.data.parquet import MAGIC, read_parquet

    path, wanted = Path(path), parse_columns(columns)
    try:
        reader = read_parquet if _magic(path) == MAGIC else read_csv
        return reader(path, wanted, joints, ("t", "q", *needed), spool_bytes)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory. Give a CSV or Parquet log.") from None
    except ModuleNotFoundError:
        raise DataError(f"{path}: reading logs needs pyarrow. Install it with: pip install pyarrow") from None
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror or problem}).") from None


def _magic(path: Path) -> bytes:
    """Return the first bytes of a regular file."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise DataError(f"{path}: not a regular file. Save the log to a file first.")
    with path.open("rb") as file:
        return file.read(4)
