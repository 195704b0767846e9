"""Where a text log is wrong: rows looked at one by one, to name row and column."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from jointwise.data.channels import CHANNELS
from jointwise.data.columns import Layout
from jointwise.data.sniff import MISSING, NUMBER, Head, split_fields
from jointwise.data.units import Conversion

_LONGEST_SHOWN = 24


@dataclass(frozen=True)
class Fault:
    """A bad row: its 1-based line, the column's name (empty: the whole row), what is wrong and what to do."""

    line: int
    column: str
    reason: str
    advice: str


def faults(content: bytes, line: int, head: Head, layout: Layout) -> list[Fault]:
    """Return the first fault of each bad row of a block whose first line is `line`."""
    return [fault for row, text in rows(content, line) if (fault := _fault(text, row, head, layout)) is not None]


def missing_place(
    content: bytes, line: int, head: Head, layout: Layout, channels: Collection[str]
) -> tuple[int, str, str] | None:
    """Return row, channel and column name of the first missing value among `channels` of a block, if any."""
    places = list(zip(layout.columns, layout.channels, layout.labels, strict=True))
    for row, text in rows(content, line):
        fields = split_fields(text, head.delimiter)
        for column, channel, label in places:
            if channel in channels and not math.isfinite(_value(fields[column])):
                return row, channel, label
    return None


def rows(content: bytes, line: int) -> Iterator[tuple[int, str]]:
    """Yield line number and text of the lines that are not blank."""
    for k, text in enumerate(content.split(b"\n")):
        if text.strip():
            yield line + k, text.decode("utf-8", "replace").strip("\r")


def _fault(text: str, row: int, head: Head, layout: Layout) -> Fault | None:
    """Return what is wrong with a row, if anything."""
    if "\r" in text:
        return Fault(row, "", "a stray carriage return", "Delete the row or repair the file.")
    fields = split_fields(text, head.delimiter)
    if len(fields) != head.count:
        return _ragged(len(fields), row, head)
    for column, channel, label in zip(layout.columns, layout.channels, layout.labels, strict=True):
        fault = _bad_value(fields[column], row, channel, label, layout.conversions.get(channel, Conversion()))
        if fault is not None:
            return fault
    return None


def _ragged(found: int, row: int, head: Head) -> Fault:
    """Return the fault of a row with the wrong number of fields."""
    reason = f"{found} fields instead of {head.count}"
    if found == 2 * head.count and head.delimiter == ",":
        return Fault(row, "", reason, "Decimal commas? Save the file with decimal points.")
    if found < head.count:
        return Fault(row, "", reason, "Is the row cut off? Delete it or repair the file.")
    return Fault(row, "", reason, "Delete the row or repair the file.")


def _bad_value(text: str, row: int, channel: str, label: str, step: Conversion) -> Fault | None:
    """Return what is wrong with a field, if anything; a missing value is no fault here."""
    shown = repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "...")
    if text in MISSING:
        return None
    if NUMBER.fullmatch(text) is None:
        if NUMBER.fullmatch(text.replace(",", ".", 1)) is not None:
            return Fault(row, label, f"{shown} has a decimal comma", "Save the file with decimal points.")
        return Fault(row, label, f"{shown} is not a number", "Delete the row or repair the file.")
    value = step.scale * float(text) + step.offset
    if math.isfinite(value) and abs(value) > CHANNELS[channel].largest:
        return Fault(
            row,
            label,
            f"{value:.3g} {CHANNELS[channel].unit} is beyond belief",
            "The file is damaged, or the column is another quantity.",
        )
    return None


def _value(text: str) -> float:
    """Return the number of a field, NaN where it is missing."""
    return math.nan if text in MISSING else float(text)
