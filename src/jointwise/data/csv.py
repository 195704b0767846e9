"""Text logs: delimited numbers read block by block, so that memory stays flat however long the log.

Blocks of whole lines go through pyarrow's parser. A block that it refuses, or that holds values out of range, is
read again line by line, only to report which row and column are wrong.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np

from jointwise.data.channels import CHANNELS, TIME, Conversion
from jointwise.data.columns import (
    MOST_COLUMNS,
    Gate,
    ReadOptions,
    TableLayout,
    extra_columns,
    known_column,
    layout,
    refuse_missing,
    refuse_short,
)
from jointwise.data.log import Log, Origin, log_from_matrix
from jointwise.data.spool import Spool
from jointwise.errors import DataError
from jointwise.spatial import Array

HEAD_BYTES = 1024 * 1024
"""Comments, header and first row must fit in this; a longer line is no table."""

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
MISSING = ("", "NaN", "nan", "NAN", "-nan", "NA", "N/A", "null", "NULL", "None")
_LONGEST_QUOTED = 65536
_FIRST_ROWS = 20
"""Rows at the beginning of a file that show its decimal mark and which columns are text."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")

_MAGIC = (
    (b"\x1f\x8b", "is compressed (gzip). Unpack it first."),
    (b"PK\x03\x04", "is a ZIP or spreadsheet file. Export it as CSV."),
    (b"\xff\xfe", "is text in UTF-16. Save it as UTF-8."),
    (b"\xfe\xff", "is text in UTF-16. Save it as UTF-8."),
    (b"\x89MCAP", "is an MCAP recording. Give it the ending .mcap."),
    (b"#ROSBAG", "is a ROS 1 bag. Export it as CSV or Parquet."),
    (b"SQLite format 3", "is an SQLite file. If it is a ROS 2 bag, give it the ending .db3."),
    (b"\x89HDF", "is an HDF5 file. Export it as CSV or Parquet."),
    (b"\x93NUMPY", "is a NumPy file. Export it as CSV or Parquet."),
)


@dataclass(frozen=True)
class Head:
    """How a text log begins.

    Attributes:
        delimiter: Text between two fields.
        header: Column names; None without a header.
        count: Number of columns.
        offset: Byte at which the rows begin.
        first_line: Line at which they begin, 1-based.
        rows: Fields of the first rows.
        decimal: Decimal mark.
        bare_returns: Whether lines end with a bare carriage return.
    """

    delimiter: str
    header: tuple[str, ...] | None
    count: int
    offset: int
    first_line: int
    rows: tuple[tuple[str, ...], ...] = ()
    decimal: str = "."
    bare_returns: bool = False

    def is_number(self, column: int) -> bool:
        """Return whether the first values of a column are numbers, as far as there are any."""
        values = [row[column].replace(",", ".", 1) for row in self.rows if len(row) > column and row[column]]
        return all(value in MISSING or NUMBER.fullmatch(value) for value in values)

    def is_stamp(self, column: int) -> bool:
        """Return whether the first values of a column are stamps as text."""
        values = [row[column] for row in self.rows if len(row) > column and row[column]]
        return bool(values) and all(map(is_stamp, values))

    def is_counter(self, column: int) -> bool:
        """Return whether a column only counts the rows, in steps of one."""
        values = [row[column] for row in self.rows if len(row) > column and row[column]]
        steps = [int(b) - int(a) for a, b in pairwise(values)] if all(map(str.isdecimal, values)) else []
        return bool(steps) and set(steps) == {1}


def sniff(head: bytes, where: str) -> Head:
    """Return the head of a text log from its first bytes."""
    refuse_binary(head, where)
    bare_returns = ends_with_returns(head)
    found = _sniffed(with_line_feeds(head) if bare_returns else head, where)
    return replace(found, bare_returns=bare_returns)


def _sniffed(head: bytes, where: str) -> Head:
    """Return the head of a text log whose lines end with a line feed."""
    bom = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    comments, offset, line = _comments(head, bom)
    text = _decode(_first_line(head, offset, where))
    delimiter = _delimiter(text)
    fields = split_fields(text, delimiter)
    if len(fields) > MOST_COLUMNS:
        raise DataError(f"{where}: {len(fields)} columns in row {line}; at most {MOST_COLUMNS} are read.")
    if _is_numbers(fields):
        names = _commented_header(comments, delimiter, len(fields))
        return _with_rows(Head(delimiter, names, len(fields), offset, line), head)
    end = head.find(b"\n", offset)
    start = len(head) if end < 0 else end + 1
    return _with_rows(Head(delimiter, tuple(fields), len(fields), start, line + 1), head)


def _with_rows(found: Head, head: bytes) -> Head:
    """Return a head with its first rows and their decimal mark; with commas between the fields it is the point."""
    lines = head[found.offset :].split(b"\n")[:-1] or [head[found.offset :]]
    texts = [text for line in lines[: 2 * _FIRST_ROWS] if (text := _decode(line).strip())]
    rows = tuple(tuple(split_fields(text, found.delimiter)) for text in texts[:_FIRST_ROWS])
    return replace(found, rows=rows, decimal=_decimal_mark(rows, found.delimiter))


def _decimal_mark(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """Return the comma if some fields have one and none has a point."""
    fields = [field for row in rows for field in row]
    commas = delimiter != "," and any(map(_DECIMAL_COMMA.fullmatch, fields))
    return "," if commas and not any(map(_DECIMAL_POINT.fullmatch, fields)) else "."


def ends_with_returns(head: bytes) -> bool:
    """Return whether lines end with a bare carriage return: there is no line feed at all."""
    return b"\n" not in head and b"\r" in head.rstrip(b"\r")


def with_line_feeds(content: bytes) -> bytes:
    """Return text whose lines end with a line feed instead of a bare carriage return; no byte moves."""
    return content.replace(b"\r", b"\n") if ends_with_returns(content) else content


def refuse_binary(head: bytes, where: str) -> None:
    """Refuse what is empty or no text."""
    if not head.strip():
        raise DataError(f"{where}: the file is empty.")
    for magic, advice in _MAGIC:
        if head.startswith(magic):
            raise DataError(f"{where}: {advice}")
    if b"\x00" in head.partition(b"\n")[0][:512]:
        raise DataError(f"{where}: not a text file (binary bytes at its beginning). Give a CSV or Parquet log.")


def split_fields(text: str, delimiter: str) -> list[str]:
    """Return the fields of a line, unquoted and stripped; runs of spaces are one delimiter."""
    if delimiter == " ":
        text = " ".join(text.split())
    if '"' not in text or len(text) > _LONGEST_QUOTED:
        return [field.strip() for field in text.split(delimiter)]
    fields = re.split(rf'{re.escape(delimiter)}(?=(?:[^"]*"[^"]*")*[^"]*$)', text)
    return [_unquoted(field.strip()).strip() for field in fields]


def _unquoted(field: str) -> str:
    """Return a field without the quotes around it, in which a doubled quote stands for one."""
    if len(field) > 1 and field[0] == field[-1] == '"':
        return field[1:-1].replace('""', '"')
    return field.strip('"')


def _comments(head: bytes, offset: int) -> tuple[list[str], int, int]:
    """Return the comment lines at the top, the byte after them and its 1-based line; blank lines are skipped."""
    comments: list[str] = []
    line = 1
    while True:
        end = head.find(b"\n", offset)
        content = head[offset : end if end >= 0 else len(head)].strip()
        if end < 0 or (content and not content.startswith(b"#")):
            return comments, offset, line
        if content:
            comments.append(_decode(content.lstrip(b"#").strip()))
        offset, line = end + 1, line + 1


def _first_line(head: bytes, offset: int, where: str) -> bytes:
    """Return the line at `offset`."""
    end = head.find(b"\n", offset)
    if end < 0 and len(head) >= HEAD_BYTES:
        raise DataError(f"{where}: no line break in its first {HEAD_BYTES} bytes. This is not a table of samples.")
    content = head[offset : end if end >= 0 else len(head)].strip(b"\r\n")
    if not content.strip() or content.lstrip().startswith(b"#"):
        raise DataError(f"{where}: only comments or blank lines. Where are the samples?")
    return content


def _decode(content: bytes) -> str:
    """Return text in UTF-8, else Latin-1 (degree signs of older programs)."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _delimiter(text: str) -> str:
    """Return the delimiter of a line: semicolon or tab if there is one, else comma, else space.

    Semicolon before comma, so that decimal commas are seen as such.
    """
    plain = re.sub(r'"[^"]*"', "", text.strip())
    return next((mark for mark in ";\t, " if mark in plain), ",")


def _is_numbers(fields: list[str]) -> bool:
    """Return whether a first row is data: most of its fields are numbers (one may be garbage)."""
    numbers = sum(NUMBER.fullmatch(field.replace(",", ".", 1)) is not None for field in fields)
    return 2 * numbers > len(fields)


def _commented_header(comments: list[str], delimiter: str, count: int) -> tuple[str, ...] | None:
    """Return the names in the last comment line if it has one name a column, as numpy.savetxt writes them."""
    if not comments:
        return None
    fields = split_fields(comments[-1], delimiter)
    if len(fields) != count or _is_numbers(fields) or count < 2:
        return None
    return tuple(fields)


# -- stamps as text, such as ``2021-10-05T12:08:13.122`` or ``12:08:13.122`` --

STAMP = re.compile(
    r"(?:(\d{4})[-/:.](\d{1,2})[-/:.](\d{1,2})[T :_])?(\d{1,2}):(\d{2}):(\d{2}(?:[.,]\d{1,9})?)"
    r"(Z|[+-]\d{2}:?\d{2})?"
)
"""Year, month and day (optional), hours, minutes, seconds, and the offset from UTC (optional)."""


def is_stamp(text: str) -> bool:
    """Return whether a text is a stamp."""
    return STAMP.fullmatch(text) is not None


def seconds_of(texts: Iterable[str | None]) -> Array:
    """Return stamps in s: since 1970 (UTC, unless the text states an offset), or since midnight without a date.

    What is no stamp becomes NaN.
    """
    return np.array([np.nan if text is None else _seconds(text.strip()) for text in texts])


def _seconds(text: str) -> float:
    match = STAMP.fullmatch(text)
    if match is None:
        return np.nan
    year, month, day, hours, minutes, seconds, zone = match.groups()
    clock = 3600 * int(hours) + 60 * int(minutes) - _offset(zone)
    try:
        date = 0.0 if year is None else datetime(int(year), int(month), int(day), tzinfo=UTC).timestamp()
    except ValueError:
        return np.nan
    return date + clock + float(seconds.replace(",", "."))


def _offset(zone: str | None) -> int:
    """Return the offset from UTC in s."""
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    return (1 if zone[0] == "+" else -1) * (3600 * int(digits[:2]) + 60 * int(digits[2:]))


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
        head = sniff(file.read(HEAD_BYTES), str(path))
        if not is_tall(head):
            return _read_table(file, path, head, options)
    table = table_of(path, head, None if options.wanted.order is None else len(options.wanted.order))
    with BytesIO(table.text) as content:
        head = sniff(table.text[:HEAD_BYTES], str(path))
        log = _read_table(content, path, head, options)
    note = "one value per line: read as a table"
    origin = replace(log.origin, sha256=table.sha256, size=table.size, first_line=None, notes=(*log.origin.notes, note))
    return replace(log, origin=origin)


def _read_table(file: IO[bytes], path: Path, head: Head, options: ReadOptions) -> Log:
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


def _extra_columns(file: IO[bytes], path: Path, head: Head, names: Mapping[str, int]) -> dict[str, Array]:
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
    head: Head
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


def _parser(head: Head, columns: TableLayout) -> Any:
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
    reading = arrow.ReadOptions(use_threads=False, column_names=every, block_size=2 * BLOCK_BYTES + HEAD_BYTES)
    parsing = arrow.ParseOptions(delimiter=head.delimiter)
    converting = arrow.ConvertOptions(
        column_types=types,
        include_columns=used,
        null_values=list(MISSING),
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


MOST_BYTES = 512 * 1024 * 1024
"""Largest file with one value per line; it is turned around in memory."""
LONG_COLUMNS = 3


@dataclass(frozen=True)
class Table:
    """A table made from a file with one value per line.

    Attributes:
        text: The table as comma-separated text.
        sha256: Hash of the file.
        size: Size of the file, bytes.
    """

    text: bytes
    sha256: str
    size: int


def is_tall(head: Head) -> bool:
    """Return whether a text log has one value per line."""
    return head.count == 1 or _name_column(head) is not None


def table_of(path: Path, head: Head, width: int | None) -> Table:
    """Return the table of a log with one value per line; `width` is the number of nameless columns, if known."""
    if path.stat().st_size > MOST_BYTES:
        raise DataError(f"{path}: one value per line, and more than {MOST_BYTES} bytes. Save it as a table or Parquet.")
    content = path.read_bytes()
    text = with_line_feeds(content).decode("utf-8-sig", "replace")
    lines = ((number, line.strip()) for number, line in enumerate(text.split("\n"), start=1))
    used = ((number, line) for number, line in lines if line and not line.startswith("#"))
    rows = _one_column(used, width, str(path)) if head.count == 1 else _long_form(used, head, str(path))
    return Table("\n".join(map(",".join, rows)).encode(), hashlib.sha256(content).hexdigest(), len(content))


def _name_column(head: Head) -> int | None:
    """Return the column of a long form that holds the names: the one whose every value is a text."""
    if head.header is None or head.count != LONG_COLUMNS or not head.rows or any(map(known_column, head.header[1:])):
        return None
    texts = [k for k in range(1, LONG_COLUMNS) if not any(_is_value(row[k]) for row in head.rows if len(row) > k)]
    return texts[0] if len(texts) == 1 else None


def _is_value(text: str) -> bool:
    return NUMBER.fullmatch(text.replace(",", ".", 1)) is not None or is_stamp(text) or not text


def _long_form(lines: Iterator[tuple[int, str]], head: Head, where: str) -> Iterator[list[str]]:
    """Yield the header and the samples of a long form; samples of one stamp need not follow each other."""
    names, name_at = dict[str, int](), _name_column(head) or 1
    samples: dict[str, dict[int, str]] = {}
    next(lines)  # the header
    for number, line in lines:
        fields = split_fields(line, head.delimiter)
        if len(fields) != LONG_COLUMNS:
            raise DataError(f"{where}: row {number}: {len(fields)} fields instead of {LONG_COLUMNS}.")
        stamp, value = fields[0], fields[LONG_COLUMNS - name_at]
        column = names.setdefault(fields[name_at], len(names))
        sample = samples.setdefault(stamp, {})
        if column in sample:
            raise DataError(f"{where}: row {number}: two values of '{fields[name_at]}' at the stamp {stamp}.")
        sample[column] = value.replace(",", ".")
    yield ["t", *names]
    for stamp, sample in samples.items():
        yield [stamp.replace(",", "."), *(sample.get(k, "") for k in range(len(names)))]


def _one_column(lines: Iterator[tuple[int, str]], width: int | None, where: str) -> Iterator[list[str]]:
    """Yield the header, where there is one, and the samples of a single column."""
    names, values = list[str](), list[str]()
    for number, line in lines:
        text = line.strip('"; ').replace(",", ".")
        if _is_value(text):
            values.append(text)
        elif values:
            raise DataError(f"{where}: row {number}: '{line[:24]}' is not a number.")
        else:
            names.append(line)
    count = len(names) or width
    if not count:
        raise DataError(f"{where}: one value per line and no names. State their order: --columns 't,q*6,i*6'.")
    if len(values) % count:
        raise DataError(f"{where}: {len(values)} values must be a multiple of the {count} columns.")
    if names:
        yield names
    for first in range(0, len(values), count):
        yield values[first : first + count]
