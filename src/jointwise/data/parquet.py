"""Logs in Parquet files and Arrow streams.

An Arrow stream is what a recording appends while it runs; it is readable up to its last complete batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from jointwise.atomic import atomic_path
from jointwise.data.columns import (
    MOST_COLUMNS,
    Gate,
    ReadOptions,
    TableLayout,
    extra_columns,
    layout,
    refuse_missing,
    refuse_short,
)
from jointwise.data.coordinates import KEY, gravity_from_bytes
from jointwise.data.log import Log, Origin, log_from_matrix
from jointwise.data.spool import Spool
from jointwise.errors import DataError
from jointwise.spatial import Array

STREAM_MAGIC = b"\xff\xff\xff\xff"
"""First bytes of an Arrow stream."""
RECORDING_KEY = b"jointwise.recording"
"""Key of the metadata of a recording in an Arrow or Parquet file: a JSON document."""
_BATCH_ROWS = 32768
_OPENING: dict[str, Any] = {
    "pre_buffer": False,  # else all that was read stays in memory
    "page_checksum_verification": True,  # where the file has them, as those that we write
    "thrift_string_size_limit": 16 * 1024 * 1024,
    "thrift_container_size_limit": 1_000_000,
}
_MOST_GROWTH = 500
"""Bytes of numbers per byte of a file: real logs have noise and grow tenfold at most."""
_SMALL = 64 * 1024 * 1024
"""Bytes of numbers that any file may hold."""
_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class ArrowStream:
    """An Arrow stream with the methods of `pyarrow.parquet.ParquetFile` that readers of logs use.

    A stream of a program that was killed ends with an incomplete batch; it is ignored, and `complete` becomes False.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the stream.

        Raises:
            DataError: If the file is not an Arrow stream.
        """
        import pyarrow as pa

        self.path, self.complete = Path(path), True
        try:
            with pa.OSFile(str(path)) as file:
                self.schema_arrow = pa.ipc.open_stream(file).schema
        except (pa.ArrowException, EOFError):
            raise DataError(f"{path}: not an Arrow stream, or its header is incomplete.") from None

    def __enter__(self) -> Self:
        """Return the stream."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing stays open between two reads."""

    def iter_batches(
        self, batch_size: int = 0, columns: Sequence[str] | None = None, use_threads: bool = False
    ) -> Iterator[Any]:
        """Yield the complete batches with some columns; the size of the batches is that of the file."""
        import pyarrow as pa

        with pa.OSFile(str(self.path)) as file:
            stream = pa.ipc.open_stream(file)
            while True:
                try:
                    batch = stream.read_next_batch()
                except StopIteration:
                    return
                except (pa.ArrowException, OSError):
                    self.complete = False
                    return
                yield batch if columns is None else batch.select(list(columns))

    def read(self, columns: Sequence[str], use_threads: bool = False) -> Any:
        """Return some columns as one table."""
        import pyarrow as pa

        schema = pa.schema([self.schema_arrow.field(name) for name in columns])
        return pa.Table.from_batches(list(self.iter_batches(columns=columns)), schema=schema)


def convert_stream(path: str | Path, output: str | Path, metadata: Mapping[str, Any] | None = None) -> None:
    """Write all columns of an Arrow stream as Parquet or CSV, by the ending of the name, atomically.

    Parquet also stores `metadata`; None for that of the stream.
    """
    stream = ArrowStream(path)
    schema = stream.schema_arrow
    if metadata is not None:
        schema = schema.with_metadata({RECORDING_KEY: json.dumps(metadata).encode()})
    if Path(output).suffix.lower() == ".parquet":
        from pyarrow import parquet

        with atomic_path(output) as temporary, parquet.ParquetWriter(temporary, schema) as writer:
            for batch in stream.iter_batches():
                writer.write_batch(batch.replace_schema_metadata(schema.metadata))
        return
    from pyarrow import csv

    with atomic_path(output) as temporary, csv.CSVWriter(str(temporary), schema) as writer:
        for batch in stream.iter_batches():
            writer.write_batch(batch)


def read_parquet(path: Path, options: ReadOptions) -> Log:
    """Return the log of a Parquet file or of an Arrow stream; see `read_log`."""
    import pyarrow as pa

    try:
        with _opened(path) as file:
            _refuse_bomb(file, path)
            columns = _layout(file.schema_arrow, options, str(path))
            gravity = gravity_from_bytes((file.schema_arrow.metadata or {}).get(KEY), str(path))
            gate = Gate(columns, options.needed, options.ignored)
            spool = Spool(len(columns.columns), options.spool_bytes)
            for matrix in _batches(file, columns):
                _pass(gate, matrix, spool.rows, str(path))
                spool.append(matrix)
            others = _extra_columns(file, options.extra, str(path))
    except (pa.ArrowException, OverflowError, UnicodeDecodeError, ValueError) as problem:
        raise DataError(f"{path}: damaged Parquet file ({_one_line(problem)}).") from None
    refuse_short(spool.rows, str(path))
    return replace(_log(path, columns, gate, spool, gravity), extra=others)


def _opened(path: Path) -> Any:
    """Return a file by its first bytes; an Arrow stream has the methods of a Parquet file."""
    from pyarrow import parquet

    with path.open("rb") as file:
        stream = file.read(len(STREAM_MAGIC)) == STREAM_MAGIC
    return ArrowStream(path) if stream else parquet.ParquetFile(path, **_OPENING)


def _extra_columns(file: Any, extra: Sequence[str], where: str) -> dict[str, Array]:
    """Return other columns of a file, (samples,) each, NaN where a value is missing."""
    names, schema = extra_columns(file.schema_arrow.names, extra, where), file.schema_arrow
    for name, column in names.items():
        if not _is_number(schema.types[column]):
            raise DataError(f"{where}: column '{name}' is {schema.types[column]}, not a number a row.")
    if not names:
        return {}
    table = file.read(columns=list(names), use_threads=False)
    return {name: _floats(table.column(name).combine_chunks()) for name in names}


def _refuse_bomb(file: Any, path: Path) -> None:
    """Reject a small file that claims to hold far more numbers than a log of its size can."""
    if not hasattr(file, "metadata"):  # a stream has no such claim
        return
    size = 8 * file.metadata.num_rows * file.metadata.num_columns
    if size > max(_SMALL, _MOST_GROWTH * path.stat().st_size):
        raise DataError(f"{path}: {file.metadata.num_rows} rows in {path.stat().st_size} bytes. This is not a log.")


def _layout(schema: Any, options: ReadOptions, where: str) -> TableLayout:
    """Return the layout of a schema; refuses channels that are no plain numbers."""
    if len(schema.names) > MOST_COLUMNS:
        raise DataError(f"{where}: {len(schema.names)} columns; at most {MOST_COLUMNS} are read.")
    names = [str(name) for name in schema.names]
    columns = layout(names, len(names), options.wanted, options.joints, where, unmeasured=options.ignored)
    for column, label in zip(columns.columns, columns.labels, strict=True):
        if not _is_number(schema.types[column]):
            raise DataError(f"{where}: column '{label}' is {schema.types[column]}, not a number a row.")
    return columns


def _is_number(kind: Any) -> bool:
    """Return whether a column's type is a number or a stamp."""
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_timestamp(kind)
        or types.is_null(kind)
    )


def _batches(file: Any, columns: TableLayout) -> Iterator[Array]:
    """Yield the channels of a file as SI matrices (rows, columns)."""
    names = [file.schema_arrow.names[column] for column in columns.columns]
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=names, use_threads=False):
        matrix = np.empty((batch.num_rows, len(names)))
        for k, name in enumerate(names):
            matrix[:, k] = _floats(batch.column(batch.schema.get_field_index(name)))
        yield columns.converted(matrix)


def _floats(column: Any) -> Array:
    """Return a column as float64, NaN where null; stamps in seconds since 1970."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        whole = column.cast(pa.int64()).cast(pa.float64(), safe=False)
        return np.asarray(whole.to_numpy(zero_copy_only=False), dtype=float) / _PER_SECOND[column.type.unit]
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=float)


def _pass(gate: Gate, matrix: Array, start: int, where: str) -> None:
    """Refuse a batch with garbage or a missing needed value; rows count from 1."""
    fine = gate.passes(matrix)
    if not fine:
        row, column = np.argwhere(np.isfinite(matrix) & (np.abs(matrix) > gate.largest))[0]
        raise DataError(
            f"{where}: row {start + row + 1}, column '{gate.layout.labels[column]}': {matrix[row, column]:.3g} "
            "is out of range. The file is damaged, or the column is another quantity."
        )


def _log(path: Path, columns: TableLayout, gate: Gate, spool: Spool, gravity: tuple[float, ...] | None) -> Log:
    """Assemble the log; refuses missing values of needed channels."""
    matrix, pages = spool.finish()
    for k in gate.fatal():
        row, channel = int(np.flatnonzero(~np.isfinite(matrix[:, k]))[0]), gate.channels[k]
        refuse_missing(channel, columns.labels[k], gate.count(channel), f"row {row + 1}", str(path))
    digest, size = _digest(path)
    notes = (*columns.notes, *gate.notes())
    origin = Origin(str(path), digest, size, "parquet", len(matrix), notes, 1, gravity=gravity)
    log = log_from_matrix(matrix, columns.widths, columns.names, origin, pages, columns.measured)
    return log.without(gate.lost())


def _digest(path: Path) -> tuple[str, int]:
    """Return the SHA-256 of a file and its size in bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size


def _one_line(problem: Exception) -> str:
    """Return the first line of a message."""
    return str(problem).strip().splitlines()[0].rstrip(".")[:160]
