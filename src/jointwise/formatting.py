"""Numbers as text: significant digits, decimals, percentages and lists for people."""

from __future__ import annotations

import math
from collections.abc import Iterable

MISSING = "–"
"""Shown where there is no value."""
LARGE = 1e6
"""Numbers of at least this size are written with a power of ten."""


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with some significant digits, without exponent below 1e6; a dash if there is no value."""
    if value is None or not math.isfinite(value):
        return MISSING
    shown = float(f"{value:.{digits}g}")
    return f"{shown:.0f}" if 10.0**digits <= abs(shown) < LARGE else f"{value:.{digits}g}"


def fixed(value: float | None, decimals: int) -> str:
    """Return a number with some decimals; a dash if there is no value."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{round(value, decimals) + 0.0:.{decimals}f}"  # + 0.0: no minus zero


def percent(share: float, decimals: int = 1) -> str:
    """Return a share (0..1) in per cent, with a space that does not break."""
    return f"{100.0 * share:.{decimals}f}\N{NO-BREAK SPACE}%"


def r2_decimals(r2: float) -> int:
    """Return the number of decimals of an R²: two significant digits of 1 - R², from 2 to 4."""
    missing = abs(1.0 - r2)
    return 4 if missing < 1e-4 else min(max(1 - math.floor(math.log10(missing)), 2), 4)


def r2_text(r2: float | None) -> str:
    """Return an R² with its significant decimals; a dash if there is no value."""
    return MISSING if r2 is None or not math.isfinite(r2) else fixed(r2, r2_decimals(r2))


def rounded(value: float | None, digits: int = 3) -> float | None:
    """Return a value rounded to some significant digits; None if it is missing or not finite."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")


def rounded_r2(r2: float | None) -> float | None:
    """Return an R² rounded to its significant decimals; None if it is missing or not finite."""
    return None if r2 is None or not math.isfinite(r2) else round(r2, r2_decimals(r2))


def superscript_unit(unit: str) -> str:
    """Return a unit with superscript exponents: `kg m^2` becomes `kg m²`."""
    for power, raised in zip("2357", "²³⁵⁷", strict=True):
        unit = unit.replace(f"^{power}", raised)
    return unit


def listed(words: Iterable[str]) -> str:
    """Return `a, b and c`."""
    entries = list(words)
    return f"{', '.join(entries[:-1])} and {entries[-1]}" if len(entries) > 1 else "".join(entries)
