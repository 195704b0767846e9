"""Stamps as text, such as ``2021-10-05T12:08:13.122`` or ``12:08:13.122``: their seconds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

import numpy as np

from jointwise.spatial import Array

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
