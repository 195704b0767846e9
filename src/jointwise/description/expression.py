"""Angles and lengths as people write them in tables: numbers and products of `pi`, parsed, never evaluated."""

from __future__ import annotations

import math
import re

_FACTOR = re.compile(r"\s*(pi|π|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*")
_LONGEST = 64


def parse_number(text: str) -> float:
    """Return the value of ``[sign] factor {(*|/) factor}``, a factor being a decimal number or ``pi``.

    Examples: ``0.1625``, ``-pi/2``, ``3*pi/4``, ``1e-3``. Raises ValueError for anything else.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"longer than {_LONGEST} characters")
    rest = text.strip()
    sign = -1.0 if rest.startswith("-") else 1.0
    rest = rest[1:] if rest[:1] in ("+", "-") else rest
    value, position = _factor(rest, 0, text)
    while position < len(rest):
        operator = rest[position]
        if operator not in "*/":
            raise ValueError(f"'{text}' is not a number such as 0.425, pi/2 or -3*pi/4")
        factor, position = _factor(rest, position + 1, text)
        if operator == "/" and factor == 0.0:
            raise ValueError(f"'{text}' divides by zero")
        value = value * factor if operator == "*" else value / factor
    if not math.isfinite(value):
        raise ValueError(f"'{text}' is not finite")
    return sign * value


def _factor(text: str, position: int, whole: str) -> tuple[float, int]:
    match = _FACTOR.match(text, position)
    if match is None:
        raise ValueError(f"'{whole}' is not a number such as 0.425, pi/2 or -3*pi/4")
    token = match.group(1)
    return (math.pi if token in ("pi", "π") else float(token)), match.end()
