"""Text logs: delimited numbers read block by block, so that memory stays flat however long the log.

Blocks of whole lines go through pyarrow's parser. A block that it refuses, or that holds values beyond belief, is
read again line by line, only to tell the user which row and column are wrong.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from jointwise.data import sniff
from jointwise.data.columns import Layout, layout
from jointwise.data.faults import Fault, faults, missing_place
from jointwise.data.gate import Gate, refuse_missing, refuse_short
from jointwise.data.log import Log, Origin, log_from_matrix
from jointwise.data.mapping import Wanted
from jointwise.data.spool import Spool
from jointwise.errors import DataError
from jointwise.spatial import Array

BLOCK_BYTES = 4 * 1024 * 1024
_MOST_BAD_BLOCKS = 16


@dataclass(frozen=True)
class Block:
    """Whole lines of a file: their bytes and the 1-based line of the first."""

    content: bytes
    line: int


@dataclass
class Lines:
    """Reads a file in blocks of whole lines; counts lines and hashes every byte on the way."""

    path: Path
    line: int = 1
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def blocks(self, file: IO[bytes], skip: int, line: int) -> Iterator[Block]:
        """Yield the blocks after the first `skip` bytes, whose first line is `line`."""
        self.line = line
        rest = b""
        self._read(file, skip)
        while data := self._read(file, BLOCK_BYTES):
            cut = data.rfind(b"\n") + 1
            if cut == 0 and len(rest) + len(data) > BLOCK_BYTES:
                raise DataError(f"{self.path}: row {self.line} is longer than {BLOCK_BYTES} bytes. Is it a table?")
            if cut:
                yield self._block(rest + data[:cut])
                rest = b""
            rest += data[cut:]
        if rest.strip():
            yield self._block(rest)

    def _read(self, file: IO[bytes], count: int) -> bytes:
        """Read and hash the next bytes."""
        data = file.read(count)
        self.size += len(data)
        self.digest.update(data)
        return data

    def _block(self, content: bytes) -> Block:
        """Return a block and count its lines."""
        block = Block(content, self.line)
        self.line += content.count(b"\n")
        return block


def read_csv(path: Path, wanted: Wanted, joints: int | None, needed: Collection[str], spool_bytes: int | None) -> Log:
    """Return the log of a text file; see `read_log`."""
    with path.open("rb") as file:
        head = sniff.sniff(file.read(sniff.HEAD_BYTES), str(path))
        columns = layout(head.header, head.count, wanted, joints, str(path))
        file.seek(0)
        return _Reader(path, head, columns, Gate(columns, needed)).read(file, spool_bytes)


@dataclass
class _Reader:
    """One reading of one file."""

    path: Path
    head: sniff.Head
    layout: Layout
    gate: Gate

    def read(self, file: IO[bytes], spool_bytes: int | None) -> Log:
        """Return the log, or refuse the file with its first bad row."""
        lines = Lines(self.path)
        spool = Spool(len(self.layout.columns), spool_bytes)
        parse = _parser(self.head, self.layout)
        blocks = lines.blocks(file, self.head.offset, self.head.first_line)
        for block in blocks:
            matrix = parse(block.content)
            if matrix is None or not self.gate.passes(matrix):
                self._refuse(block, blocks, parse)
            else:
                spool.append(matrix)
        self._check(file, spool.rows)
        return self._log(lines, spool)

    def _check(self, file: IO[bytes], rows: int) -> None:
        """Refuse a file that is too short or misses needed values."""
        refuse_short(rows, str(self.path))
        fatal = self.gate.fatal()
        if fatal:
            file.seek(0)
            lines = Lines(self.path)
            for block in lines.blocks(file, self.head.offset, self.head.first_line):
                place = missing_place(block.content, block.line, self.head, self.layout, fatal)
                if place is not None:
                    row, channel, label = place
                    refuse_missing(channel, label, self.gate.count(channel), f"row {row}", str(self.path))

    def _log(self, lines: Lines, spool: Spool) -> Log:
        """Assemble the log."""
        rows, lost = spool.rows, self.gate.lost()
        matrix, pages = spool.finish()
        # blank lines between samples shift the rows, so places are then told as samples
        first = self.head.first_line if lines.line - self.head.first_line in (rows, rows - 1) else None
        notes = (*self.layout.notes, *self.gate.notes())
        origin = Origin(str(self.path), lines.digest.hexdigest(), lines.size, "csv", rows, notes, first)
        return log_from_matrix(matrix, self.layout.widths, self.layout.names, origin, pages).without(lost)

    def _refuse(self, block: Block, rest: Iterator[Block], parse: Any) -> None:
        """Raise for the first bad row, with the count of the others."""
        first = faults(block.content, block.line, self.head, self.layout)
        more, bad_blocks, all_seen = len(first) - 1, 0, True
        for later in rest:
            matrix = parse(later.content)
            if matrix is None or not self.gate.passes(matrix):
                more += len(faults(later.content, later.line, self.head, self.layout))
                bad_blocks += 1
            if bad_blocks >= _MOST_BAD_BLOCKS:
                all_seen = False
                break
        raise DataError(_fault_text(first, more, all_seen, block, str(self.path)))


def _fault_text(first: list[Fault], more: int, all_seen: bool, block: Block, where: str) -> str:
    """Return the line for the user."""
    if not first:
        return f"{where}: rows from {block.line} on cannot be read as numbers."
    fault = first[0]
    place = f"row {fault.line}" + (f", column '{fault.column}'" if fault.column else "")
    count = "" if more <= 0 else f" (and {'' if all_seen else 'at least '}{more} more bad row{'s' * (more > 1)})"
    return f"{where}: {place}: {fault.reason}{count}. {fault.advice}"


def _parser(head: sniff.Head, columns: Layout) -> Any:
    """Return a function from the bytes of whole lines to SI values (rows, columns), None where pyarrow refuses.

    Whole blocks are parsed one after another in this thread: pyarrow's own streaming reader reads ahead in a
    background thread, which can abort the interpreter when a bad file ends the program early.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    every = [str(k) for k in range(head.count)]
    used = [str(k) for k in columns.columns]
    reading = arrow.ReadOptions(use_threads=False, column_names=every, block_size=2 * BLOCK_BYTES + sniff.HEAD_BYTES)
    parsing = arrow.ParseOptions(delimiter=head.delimiter)
    converting = arrow.ConvertOptions(
        column_types=dict.fromkeys(used, pa.float64()), include_columns=used, null_values=list(sniff.MISSING)
    )

    def parse(content: bytes) -> Array | None:
        if head.delimiter == " ":
            content = _single_spaces(content)
        try:
            table = arrow.read_csv(pa.BufferReader(content), reading, parsing, converting)
        except pa.ArrowInvalid as problem:
            return np.empty((0, len(used))) if "Empty CSV" in str(problem) else None
        matrix = np.empty((table.num_rows, len(used)))
        for k, column in enumerate(table.columns):
            matrix[:, k] = column.to_numpy()
        return columns.converted(matrix)

    return parse


def _single_spaces(content: bytes) -> bytes:
    """Return lines whose fields stand apart by one space, without spaces at either end."""
    content = re.sub(rb"[ \t]+", b" ", content)
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", content)
