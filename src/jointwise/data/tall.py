"""Text logs with one value per line, turned into a table with one sample per line.

Two forms are read::

    time,name,value          long form: a stamp, the name of a channel and its value
    0.00,q1,0.1

    t                        one column: the names first, then the values of sample after sample
    q1
    0.00
    0.1

Without names the second form needs the order of the columns (``--columns 't,q*6,i*6'``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jointwise.data.columns import known_column
from jointwise.data.sniff import NUMBER, Head, is_stamp, split_fields, with_line_feeds
from jointwise.errors import DataError

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
