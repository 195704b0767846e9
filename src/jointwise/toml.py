"""TOML texts, and the limits in size, depth and range that hold for every document."""

from __future__ import annotations

import math
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from jointwise.errors import ModelError

LARGEST_NUMBER = 1e30
"""No quantity of a robot is larger in SI units; squares and cubes of larger numbers overflow."""
DEEPEST = 14
"""Levels of lists and objects; documents written by Jointwise have at most 12."""
LONGEST_TEXT = 10_000
"""Characters of one string; the longest that Jointwise writes are the notes of a report, about 500."""
LONGEST_TOML = 1024 * 1024
"""Characters of a TOML file; a robot has about 5,000."""
LONGEST_SHOWN = 40
"""Characters of a wrong value that an error message repeats."""
_LONG_KEY = re.compile(rf"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){{{DEEPEST}}}")
"""A dotted key that is deeper than any document."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return a TOML text as plain tables.

    tomllib takes quadratic time for long dotted keys: they are rejected before.

    Raises:
        ModelError: The text is damaged, too large, too deep, or has a number out of range.
    """
    if len(text) > LONGEST_TOML:
        raise ModelError(f"not a TOML file: larger than {LONGEST_TOML} characters. Is it the right file?")
    if _LONG_KEY.search(text):
        raise ModelError(f"not valid TOML: a key has more than {DEEPEST} parts.")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ModelError(f"not valid TOML: {problem}.") from None
    except RecursionError:
        raise ModelError("not valid TOML: nested too deeply.") from None
    except ValueError:  # integers of thousands of digits
        raise ModelError("not valid TOML: a number has too many digits.") from None
    check_limits(document, finite=False)
    return document


def check_limits(value: Any, path: str = "", level: int = 0, *, finite: bool = True) -> None:
    """Reject numbers, strings and depths that no document has; with `finite` False, `nan` and `inf` are left alone."""
    if isinstance(value, int | float):
        if not abs(value) <= LARGEST_NUMBER and (finite or math.isfinite(_as_float(value))):
            raise ModelError(f"{path} must be finite and at most {LARGEST_NUMBER:g}. Got {shown(value)} instead.")
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise ModelError(f"{path} must be at most {LONGEST_TEXT} characters. Got {len(value)} instead.")
    elif level > DEEPEST:
        raise ModelError(f"{path[:LONGEST_SHOWN]}... must be at most {DEEPEST} levels deep.")
    else:
        for entry, inside in children(value, path):
            check_limits(entry, inside, level + 1, finite=finite)


def _as_float(value: float) -> float:
    """Return a number as float; that of a huge integer is the largest one."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max


def children(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Yield the entries of a list or an object with their paths."""
    if isinstance(value, list | tuple):
        for k, entry in enumerate(value):
            yield entry, f"{path}[{k}]"
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield entry, f"{path}.{str(key)[:LONGEST_SHOWN]}".lstrip(".")


def shown(value: Any) -> str:
    """Return a value for a message, shortened."""
    if isinstance(value, Mapping | list | tuple):
        value = f"{type(value).__name__} of {len(value)}" if len(str(value)) > LONGEST_SHOWN else value
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**20 else "a huge integer"
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."
