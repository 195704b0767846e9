"""Logs on disk: CSV or Parquet, by the ending of the name, that `read_log` reads back to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.atomic import atomic_path
from jointwise.data.channels import default_names
from jointwise.data.gravity import KEY, gravity_bytes
from jointwise.data.log import Log
from jointwise.errors import DataError, OutputError

ROWS = 16384
"""Samples that are written at a time."""
SUFFIXES = (".csv", ".parquet")


def check_suffix(path: str | Path) -> None:
    """Refuse a file name that is neither CSV nor Parquet."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise OutputError(f"{path}: a log must end in {' or '.join(SUFFIXES)}.")


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
        channels = [chunk.log.channel(name) for name in log.available]
        rows = np.column_stack([*channels, *chunk.log.extra.values()])
        if not np.isfinite(rows).all():
            raise DataError(f"{log.origin.path}: a value is not finite. Nothing was written.")
        yield pa.record_batch([np.ascontiguousarray(column) for column in rows.T], schema=schema)
