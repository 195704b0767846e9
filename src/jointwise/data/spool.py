"""Rows of a log as they are read: in memory, and beyond a limit in a temporary file."""

from __future__ import annotations

import mmap
import tempfile
from typing import IO

import numpy as np

from jointwise.errors import DataError
from jointwise.spatial import Array

SPOOL_BYTES = 64 * 1024 * 1024
"""Above this many bytes of float64 the rows go to disk."""
STAMP_ROWS = 65536
"""Rows whose stamps are copied at once, before their pages are dropped."""


class Spool:
    """Collects blocks of rows of equal width; `finish` gives one read-only matrix."""

    def __init__(self, columns: int, limit: int | None = None) -> None:
        self._columns = columns
        self._limit = SPOOL_BYTES if limit is None else limit
        self._blocks: list[Array] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None

    @property
    def rows(self) -> int:
        """Rows collected so far."""
        return self._bytes // (8 * self._columns)

    def append(self, block: Array) -> None:
        """Add rows, shape (rows, columns)."""
        self._blocks.append(np.ascontiguousarray(block, dtype=np.float64))
        self._bytes += self._blocks[-1].nbytes
        if self._bytes > self._limit:
            self._flush()

    def _flush(self) -> None:
        """Move the rows held in memory to the file; plain writes, so that no page of it stays mapped."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="jointwise-")  # noqa: SIM115 - lives as long as its map
            for block in self._blocks:
                self._file.write(block.data)
        except OSError as problem:
            raise DataError(
                f"{tempfile.gettempdir()}: cannot hold the rows of a large log ({problem.strerror}). "
                "Free some space there or set TMPDIR to a larger disk."
            ) from None
        self._blocks.clear()

    def finish(self) -> tuple[Array, mmap.mmap | None]:
        """Return the matrix (rows, columns), read-only, and the map that it lives in (None: plain memory)."""
        if self._file is None:
            matrix = np.concatenate(self._blocks) if self._blocks else np.empty((0, self._columns))
            matrix.setflags(write=False)
            return matrix, None
        return self._mapped(self._file)

    def _mapped(self, file: IO[bytes]) -> tuple[Array, mmap.mmap]:
        """Return the spooled rows as a view of the file; the map keeps the unnamed file alive."""
        try:
            self._flush()
            file.flush()
        except OSError as problem:
            raise DataError(f"{tempfile.gettempdir()}: cannot hold a large log ({problem.strerror}).") from None
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        file.close()
        return np.frombuffer(pages, dtype=np.float64).reshape(-1, self._columns), pages


def release_pages(pages: mmap.mmap | None) -> None:
    """Drop mapped pages from memory where the system can; they are read again from disk when touched."""
    if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def stamps_of(column: Array, pages: mmap.mmap | None) -> Array:
    """Return stamps as an array in memory, (samples,): a walk over mapped stamps would touch every page.

    Args:
        column: Stamps, (samples, 1).
        pages: Memory map that holds them; None for plain memory.
    """
    stamps = np.empty(len(column))
    for start in range(0, len(column), STAMP_ROWS):
        stamps[start : start + STAMP_ROWS] = column[start : start + STAMP_ROWS, 0]
        release_pages(pages)
    stamps.setflags(write=False)
    return stamps
