"""The head of a text log: its comments, delimiter, header row, stamps, and the byte where the numbers begin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np

from jointwise.data.mapping import MOST_COLUMNS
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
