"""Arrow streams as logs: what a recording appends while it runs, readable up to its last complete batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jointwise.atomic import atomic_path
from jointwise.errors import DataError

MAGIC = b"\xff\xff\xff\xff"
"""First bytes of an Arrow stream."""
RECORDING_KEY = b"jointwise.recording"
"""Key of the metadata of a recording in an Arrow or Parquet file: a JSON document."""


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
