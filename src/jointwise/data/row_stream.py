"""Samples of a text that may be damaged or still grow: a CSV table row by row, and JSON lines.

Unlike `read_log`, which refuses a file that it cannot trust, this reader goes on: a value that is missing or no number
is NaN, a row that cannot be read is counted.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.data.channels import SPELLINGS, TIME
from jointwise.data.columns import TableLayout, Wanted, layout, parse_columns
from jointwise.data.csv import HEAD_BYTES, Head, seconds_of, sniff, split_fields
from jointwise.errors import DataError
from jointwise.spatial import Array

LONGEST_LINE = 1_000_000
"""Characters of a line; a longer one is no sample."""
BATCH = 1000
"""Most rows at a time."""
POLL = 0.05
"""Time (s) between two looks at a file that grows."""


@dataclass(frozen=True)
class StreamRows:
    """Samples of a stream that came together.

    Attributes:
        channels: Channels by name, (rows,) for `t`, (rows, joints) else.
        malformed: Number of lines that were no samples.
    """

    channels: Mapping[str, Array]
    malformed: int = 0

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.channels[TIME]) if TIME in self.channels else 0


def csv_rows(
    path: str | Path,
    *,
    columns: str | Path | Mapping[str, Any] | None = None,
    joints: int | None = None,
    follow: bool = False,
    idle: float | None = None,
) -> Iterator[StreamRows]:
    """Yield the samples of a CSV file, which may still grow.

    Args:
        path: The file; it begins with a header row unless `columns` names the columns in order.
        columns: Meaning of the columns where their names do not say it, as in `read_log`.
        joints: Number of joints; another number is refused.
        follow: Whether to wait for more rows at the end of the file.
        idle: Time (s) without new rows after which following ends; None for never.

    Raises:
        DataError: The file cannot be read, or its header does not name stamps and positions.
    """
    try:
        with Path(path).open("rb") as file:
            lines = _lines(file, follow, idle)
            first = _head_lines(lines)
            head = sniff(b"".join(first)[:HEAD_BYTES], str(path))
            reader = _Reader.of(head, parse_columns(columns), joints, str(path))
            yield from _batches(reader, [line for line in first[head.first_line - 1 :] if line], lines)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory. Give a CSV log.") from None


def _head_lines(lines: Iterator[bytes]) -> list[bytes]:
    """Return the first lines, from which the format is seen; an empty line says that there are no more yet."""
    found: list[bytes] = []
    for line in lines:
        if not line and len(found) >= 2:
            break
        if line:
            found.append(line)
        if len(found) >= 20:
            break
    return found


def _lines(file: Any, follow: bool, idle: float | None) -> Iterator[bytes]:
    """Yield whole lines, and an empty one where the file has no more at the moment."""
    rest, waited = b"", 0.0
    while True:
        line = file.readline(LONGEST_LINE)
        if line.endswith(b"\n"):
            yield rest + line
            rest, waited = b"", 0.0
        elif line:
            rest += line
        elif not follow or (idle is not None and waited >= idle):
            if rest.strip():
                yield rest + b"\n"
            return
        else:
            yield b""
            time.sleep(POLL)
            waited += POLL


def _batches(reader: _Reader, first: list[bytes], lines: Iterator[bytes]) -> Iterator[StreamRows]:
    """Yield rows in batches; a batch ends where the file has no more."""
    waiting = list(first)
    for line in lines:
        if line:
            waiting.append(line)
        if waiting and (not line or len(waiting) >= BATCH):
            yield reader.rows(waiting)
            waiting = []
    if waiting:
        yield reader.rows(waiting)


@dataclass(frozen=True)
class _Reader:
    """Reads the lines of a table."""

    head: Head
    layout: TableLayout

    @classmethod
    def of(cls, head: Head, wanted: Wanted, joints: int | None, where: str) -> _Reader:
        return cls(head, layout(head.header, head.count, wanted, joints, where, head))

    def rows(self, lines: Iterable[bytes]) -> StreamRows:
        """Return the samples of lines."""
        values, malformed = [], 0
        for line in lines:
            if not line.strip():
                continue
            fields = self._fields(line)
            if fields is None:
                malformed += 1
            else:
                values.append(fields)
        matrix = np.array(values, dtype=float).reshape(len(values), len(self.layout.columns))
        matrix = self.layout.converted(matrix)
        matrix[np.abs(matrix) > self.layout.largest] = np.nan
        return StreamRows(_split(matrix, self.layout), malformed)

    def _fields(self, line: bytes) -> list[float] | None:
        """Return the numbers of a line; None if it has another number of fields."""
        text = line.decode("utf-8", "replace").strip("\r\n")
        fields = split_fields(text, self.head.delimiter)
        if len(fields) != self.head.count:
            return None
        return [self._number(fields[k], k) for k in self.layout.columns]

    def _number(self, text: str, column: int) -> float:
        if self.head.is_stamp(column):
            return float(seconds_of([text])[0])
        try:
            return float(text if self.head.decimal == "." else text.replace(",", ".", 1))
        except ValueError:
            return math.nan


def _split(matrix: Array, columns: TableLayout) -> dict[str, Array]:
    """Return the channels of a matrix."""
    result, first = {}, 0
    for channel, width in columns.widths.items():
        part = matrix[:, first : first + width]
        result[channel] = part[:, 0] if channel == TIME else part
        first += width
    return result


@dataclass
class JsonRows:
    """Reads JSON lines: ``{"t": 0.01, "q": [..], "qd": [..], "current": [..]}``, one sample each.

    Names are those of the channels or their columns (`i`, `tau`, `actual_q`, ...). A value null is NaN.

    Attributes:
        joints: Number of joints; a sample of another number is counted as malformed.
        malformed: Lines that were no samples so far.
        first_problem: What was wrong with the first of them.
    """

    joints: int
    malformed: int = 0
    first_problem: str = ""
    _channels: tuple[str, ...] = field(default=(), repr=False)

    def read(self, line: str) -> StreamRows | None:
        """Return the sample of a line; None for a line that is empty or no sample."""
        if not line.strip():
            return None
        try:
            channels = self._parsed(line)
        except (ValueError, TypeError, KeyError, RecursionError) as problem:
            self.malformed += 1
            self.first_problem = self.first_problem or str(problem)
            return None
        return StreamRows(channels)

    def _parsed(self, line: str) -> dict[str, Array]:
        document = json.loads(line)
        if not isinstance(document, dict):
            raise TypeError("a line must be a JSON object with t, q and the measured output")
        found = {SPELLINGS[key]: value for key, value in document.items() if key in SPELLINGS}
        if TIME not in found or "q" not in found:
            raise ValueError("a line must have t and q")
        channels = {name: _numbers(value, name, self.joints) for name, value in found.items() if name != TIME}
        return {TIME: _numbers(found[TIME], TIME, 1)[:, 0], **channels}


def _numbers(value: Any, name: str, count: int) -> Array:
    """Return a number or a list of numbers as (1, count), null as NaN."""
    entries = value if isinstance(value, list) else [value]
    if len(entries) != count:
        raise ValueError(f"{name} must be {count} numbers. Got {len(entries)} instead")
    return np.array([[math.nan if entry is None else float(entry) for entry in entries]], dtype=float)
