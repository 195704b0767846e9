"""Text logs: delimited numbers read block by block, so that memory stays flat however long the log.

Blocks of whole lines go through pyarrow's parser. A block that it refuses, or that holds values out of range, is
read again line by line, only to report which row and column are wrong.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from jointwise.data import sniff
from jointwise.data.channels import CHANNELS, TIME, Conversion
from jointwise.data.columns import TableLayout, extra_columns, layout
from jointwise.data.gate import Gate, ReadOptions, refuse_missing, refuse_short
from jointwise.data.log import Log, Origin, log_from_matrix
from jointwise.data.sniff import MISSING, NUMBER, Head, seconds_of, split_fields
from jointwise.data.spool import Spool
from jointwise.data.tall import is_tall, table_of
from jointwise.errors import DataError
from jointwise.spatial import Array

_LONGEST_SHOWN = 24


BLOCK_BYTES = 4 * 1024 * 1024
_MOST_BAD_BLOCKS = 16


@dataclass(frozen=True)
class Block:
    """Whole lines of a file: their bytes and the 1-based line of the first."""

    content: bytes
    line: int


@dataclass
class Lines:
    """Reads a file in blocks of whole lines; counts lines and hashes every byte on the way.

    Attributes:
        path: File, for messages.
        bare_returns: Whether lines end with a bare carriage return.
        line: Next line, 1-based.
        size: Bytes read so far.
        digest: SHA-256 of these bytes.
    """

    path: Path
    bare_returns: bool = False
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
        """Read and hash the next bytes; bare carriage returns become line feeds."""
        data = file.read(count)
        self.size += len(data)
        self.digest.update(data)
        return data.replace(b"\r", b"\n") if self.bare_returns else data

    def _block(self, content: bytes) -> Block:
        """Return a block and count its lines."""
        block = Block(content, self.line)
        self.line += content.count(b"\n")
        return block


def read_csv(path: Path, options: ReadOptions) -> Log:
    """Return the log of a text file; see `read_log`."""
    with path.open("rb") as file:
        head = sniff.sniff(file.read(sniff.HEAD_BYTES), str(path))
        if not is_tall(head):
            return _read_table(file, path, head, options)
    table = table_of(path, head, None if options.wanted.order is None else len(options.wanted.order))
    with BytesIO(table.text) as content:
        head = sniff.sniff(table.text[: sniff.HEAD_BYTES], str(path))
        log = _read_table(content, path, head, options)
    note = "one value per line: read as a table"
    origin = replace(log.origin, sha256=table.sha256, size=table.size, first_line=None, notes=(*log.origin.notes, note))
    return replace(log, origin=origin)


def _read_table(file: IO[bytes], path: Path, head: sniff.Head, options: ReadOptions) -> Log:
    """Return the log of a text with one sample per line."""
    columns = layout(head.header, head.count, options.wanted, options.joints, str(path), head, options.ignored)
    file.seek(0)
    gate = Gate(columns, options.needed, options.ignored)
    log = _Reader(path, head, columns, gate).read(file, options.spool_bytes)
    others = extra_columns(head.header or (), options.extra, str(path))
    if not others:
        return log
    file.seek(0)
    return replace(log, extra=_extra_columns(file, path, head, others))


def _extra_columns(file: IO[bytes], path: Path, head: sniff.Head, names: Mapping[str, int]) -> dict[str, Array]:
    """Return other columns of a file, (samples,) each, NaN where a value is missing."""
    columns = TableLayout({"extra": tuple(names.values())}, {"extra": tuple(names)}, {}, ())
    parse, parts = _parser(head, columns), list[Array]()
    for block in Lines(path, head.bare_returns).blocks(file, head.offset, head.first_line):
        matrix = parse(block.content)
        if matrix is None:
            raise DataError(f"{path}: the extra columns ({', '.join(names)}) must be numbers.")
        parts.append(matrix)
    return dict(zip(names, np.concatenate(parts).T, strict=True))


@dataclass
class _Reader:
    """One reading of one file."""

    path: Path
    head: sniff.Head
    layout: TableLayout
    gate: Gate

    def read(self, file: IO[bytes], spool_bytes: int | None) -> Log:
        """Return the log, or refuse the file with its first bad row."""
        lines = Lines(self.path, self.head.bare_returns)
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
            lines = Lines(self.path, self.head.bare_returns)
            for block in lines.blocks(file, self.head.offset, self.head.first_line):
                place = missing_place(block.content, block.line, self.head, self.layout, set(fatal))
                if place is not None:
                    row, channel, label = place
                    refuse_missing(channel, label, self.gate.count(channel), f"row {row}", str(self.path))

    def _log(self, lines: Lines, spool: Spool) -> Log:
        """Assemble the log."""
        rows, lost = spool.rows, self.gate.lost()
        matrix, pages = spool.finish()
        # blank lines between samples shift the rows, so messages then count samples
        first = self.head.first_line if lines.line - self.head.first_line in (rows, rows - 1) else None
        notes = (*self.layout.notes, *self.gate.notes())
        origin = Origin(str(self.path), lines.digest.hexdigest(), lines.size, "csv", rows, notes, first)
        layout = self.layout
        log = log_from_matrix(matrix, layout.widths, layout.names, origin, pages, layout.measured)
        return log.without(lost)

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


def _fault_text(first: list[BadRow], more: int, all_seen: bool, block: Block, where: str) -> str:
    """Return the line for the user."""
    if not first:
        return f"{where}: rows from {block.line} on cannot be read as numbers."
    fault = first[0]
    place = f"row {fault.line}" + (f", column '{fault.column}'" if fault.column else "")
    count = "" if more <= 0 else f" (and {'' if all_seen else 'at least '}{more} more bad row{'s' * (more > 1)})"
    return f"{where}: {place}: {fault.reason}{count}. {fault.advice}"


def _parser(head: sniff.Head, columns: TableLayout) -> Any:
    """Return a function from the bytes of whole lines to SI values (rows, columns), None where pyarrow refuses.

    Whole blocks are parsed one after another in this thread: pyarrow's own streaming reader reads ahead in a
    background thread, which can abort the interpreter when a bad file ends the program early.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    every = [str(k) for k in range(head.count)]
    used = [str(k) for k in columns.columns]
    texts = {str(k) for k in columns.positions.get(TIME, ()) if head.is_stamp(k)}
    types = {name: pa.string() if name in texts else pa.float64() for name in used}
    reading = arrow.ReadOptions(use_threads=False, column_names=every, block_size=2 * BLOCK_BYTES + sniff.HEAD_BYTES)
    parsing = arrow.ParseOptions(delimiter=head.delimiter)
    converting = arrow.ConvertOptions(
        column_types=types,
        include_columns=used,
        null_values=list(sniff.MISSING),
        strings_can_be_null=True,
        decimal_point=head.decimal,
    )
    blank = (head.delimiter * (head.count - 1)).encode()

    def parse(content: bytes) -> Array | None:
        if head.delimiter == " ":
            content = _single_spaces(content)
        elif len(blank) > 1 and blank in content:
            content = _without_blank_rows(content, blank)
        try:
            table = arrow.read_csv(pa.BufferReader(content), reading, parsing, converting)
        except pa.ArrowInvalid as problem:
            return np.empty((0, len(used))) if "Empty CSV" in str(problem) else None
        matrix = np.empty((table.num_rows, len(used)))
        for k, column in enumerate(table.columns):
            matrix[:, k] = seconds_of(column.to_pylist()) if used[k] in texts else _numbers(column)
        return columns.converted(matrix)

    return parse


def _numbers(column: Any) -> Array:
    """Return a pyarrow column of float64, (rows,), NaN where a value is missing; `to_numpy` would import pandas."""
    parts = [np.empty(0)]
    for chunk in column.chunks:
        rows = slice(chunk.offset, chunk.offset + len(chunk))
        validity, data = chunk.buffers()
        values = np.frombuffer(data)[rows]
        if chunk.null_count:
            bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[rows]
            values = np.where(bits, values, np.nan)
        parts.append(values)
    return np.concatenate(parts)


def _single_spaces(content: bytes) -> bytes:
    """Return lines whose fields stand apart by one space, without spaces at either end."""
    content = re.sub(rb"[ \t]+", b" ", content)
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", content)


def _without_blank_rows(content: bytes, blank: bytes) -> bytes:
    """Return lines without those that hold nothing but delimiters, as spreadsheets write empty rows."""
    return re.sub(rb"(?m)^" + re.escape(blank) + rb"\r?$", b"", content)


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be read.

    Attributes:
        line: Line of the file, 1-based.
        column: Name of the column; "" for the whole row.
        reason: What is wrong.
        advice: What to do.
    """

    line: int
    column: str
    reason: str
    advice: str


def faults(content: bytes, line: int, head: Head, layout: TableLayout) -> list[BadRow]:
    """Return the first fault of each bad row of a block whose first line is `line`."""
    return [fault for row, text in rows(content, line) if (fault := _fault(text, row, head, layout)) is not None]


def missing_place(
    content: bytes, line: int, head: Head, layout: TableLayout, columns: Collection[int]
) -> tuple[int, str, str] | None:
    """Return row, channel and name of the first missing value of a block in some columns of the log, if any."""
    every = list(zip(layout.columns, layout.channels, layout.labels, strict=True))
    places = [every[k] for k in sorted(columns)]
    for row, text in rows(content, line):
        fields = _fields(text, head)
        for column, channel, label in places:
            if any(fields) and not math.isfinite(_value(fields[column])):
                return row, channel, label
    return None


def rows(content: bytes, line: int) -> Iterator[tuple[int, str]]:
    """Yield line number and text of the lines that are not blank."""
    for k, text in enumerate(content.split(b"\n")):
        if text.strip():
            yield line + k, text.decode("utf-8", "replace").strip("\r")


def _fields(text: str, head: Head) -> list[str]:
    """Return the fields of a line with decimal points."""
    fields = split_fields(text, head.delimiter)
    return fields if head.decimal == "." else [field.replace(",", ".", 1) for field in fields]


def _fault(text: str, row: int, head: Head, layout: TableLayout) -> BadRow | None:
    """Return what is wrong with a row, if anything."""
    if "\r" in text:
        return BadRow(row, "", "a stray carriage return", "Delete the row or repair the file.")
    fields = _fields(text, head)
    if len(fields) != head.count:
        return _ragged(len(fields), row, head)
    if not any(fields):
        return None
    for column, channel, label in zip(layout.columns, layout.channels, layout.labels, strict=True):
        if channel == TIME and head.is_stamp(column):
            continue  # what is no stamp counts as missing
        fault = _bad_value(fields[column], row, channel, label, layout.conversions.get(channel, Conversion()))
        if fault is not None:
            return fault
    return None


def _ragged(found: int, row: int, head: Head) -> BadRow:
    """Return the fault of a row with the wrong number of fields."""
    reason = f"{found} fields instead of {head.count}"
    if found == 2 * head.count and head.delimiter == ",":
        return BadRow(row, "", reason, "Decimal commas? Save the file with decimal points.")
    if found < head.count:
        return BadRow(row, "", reason, "Is the row cut off? Delete it or repair the file.")
    return BadRow(row, "", reason, "Delete the row or repair the file.")


def _bad_value(text: str, row: int, channel: str, label: str, step: Conversion) -> BadRow | None:
    """Return what is wrong with a field, if anything; a missing value is no fault here."""
    shown = repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "...")
    if text in MISSING:
        return None
    if NUMBER.fullmatch(text) is None:
        if NUMBER.fullmatch(text.replace(",", ".", 1)) is not None:
            return BadRow(row, label, f"{shown} has a decimal comma", "Save the file with decimal points.")
        return BadRow(row, label, f"{shown} is not a number", "Delete the row or repair the file.")
    value = step.scale * float(text) + step.offset
    if math.isfinite(value) and abs(value) > CHANNELS[channel].largest:
        return BadRow(
            row,
            label,
            f"{value:.3g} {CHANNELS[channel].unit} is out of range",
            "The file is damaged, or the column is another quantity.",
        )
    return None


def _value(text: str) -> float:
    """Return the number of a field, NaN where it is missing."""
    if text in MISSING:
        return math.nan
    return float(text) if NUMBER.fullmatch(text) else float(seconds_of([text])[0])
