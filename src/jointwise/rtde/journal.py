"""The journal of a recording: an Arrow stream beside the output that is readable at any moment.

While a recording runs, its samples are appended to ``OUTPUT.recording``. A program that is killed loses at most what it
received since the last batch; the file then ends with an incomplete batch, which readers ignore. A complete recording
is converted to its final format, and the journal is removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.data.parquet import RECORDING_KEY
from jointwise.errors import OutputError
from jointwise.rtde.protocol import TYPES, Recipe, elements

SUFFIX = ".recording"
_DTYPES = {"?": "u1", "B": "u1", "I": ">u4", "Q": ">u8", "i": ">i4", "d": ">f8"}
"""Format of `struct` -> type of NumPy, big-endian as on the wire."""


def journal_path(output: str | Path) -> Path:
    """Return the journal of an output file."""
    path = Path(output)
    return path.with_name(path.name + SUFFIX)


def decode(recipe: Recipe, payloads: bytes) -> dict[str, NDArray[Any]]:
    """Return data messages of one recipe as columns, (samples,) each, in the byte order of this machine.

    Args:
        recipe: The recipe of all messages.
        payloads: The payloads of the messages, one after the other.

    """
    formats = [TYPES[type_][-1] for type_ in recipe.types for _ in range(elements(type_))]
    fields = [("recipe", "u1"), *((name, _DTYPES[code]) for name, code in zip(recipe.columns, formats, strict=True))]
    rows = np.frombuffer(payloads, dtype=np.dtype(fields))
    return {
        name: np.ascontiguousarray(rows[name]).astype(rows.dtype[name].newbyteorder("=")) for name in recipe.columns
    }


class RecordingJournal:
    """Appends batches of samples to the journal of an output file."""

    def __init__(self, output: str | Path, recipe: Recipe, metadata: Mapping[str, Any]) -> None:
        """Create the journal; `metadata` describes the recording.

        Raises:
            OutputError: If a journal of this name exists, or the file cannot be created.

        """
        import pyarrow as pa

        self.path, self._recipe = journal_path(output), recipe
        empty = decode(recipe, b"")
        schema = pa.schema([(name, pa.from_numpy_dtype(column.dtype)) for name, column in empty.items()])
        self._schema = schema.with_metadata({RECORDING_KEY: json.dumps(metadata).encode()})
        try:
            self._file = self.path.open("xb")
        except FileExistsError:
            raise OutputError(
                f"{self.path}: an interrupted recording exists. Keep it with 'jointwise convert {self.path} "
                f"{output}', or delete it."
            ) from None
        except OSError as problem:
            raise OutputError(f"{self.path}: cannot be written ({problem.strerror}).") from None
        self._writer = self._guarded(lambda: pa.ipc.new_stream(self._file, self._schema))

    def append(self, payloads: bytes) -> None:
        """Append data messages; they are readable when this returns.

        Raises:
            OutputError: If the disk is full. The samples before stay readable.

        """
        import pyarrow as pa

        batch = pa.record_batch(list(decode(self._recipe, payloads).values()), schema=self._schema)
        self._guarded(lambda: self._writer.write_batch(batch))
        self._guarded(self._file.flush)

    def close(self) -> None:
        """Close the file; the journal stays. What `append` wrote is complete, so a full disk matters no more."""
        with suppress(OSError):
            self._writer.close()
        with suppress(OSError):
            self._file.close()

    def _guarded(self, action: Any) -> Any:
        """Run a write, and report a full disk in one line."""
        try:
            return action()
        except OSError as problem:
            raise OutputError(
                f"{self.path}: cannot be written ({problem.strerror or problem}). What was recorded before stays there."
            ) from None
