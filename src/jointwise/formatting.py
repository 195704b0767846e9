"""Numbers and tables as text: significant digits, decimals, percentages, lists, aligned columns."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence

MISSING = "–"
"""Shown where there is no value."""
INDENT = 2
"""Spaces before a table."""
PIPED_WIDTH = 10_000
"""Columns of a table that is not printed on a terminal: wide enough that no cell is folded."""
MOST_NAMES = 12
"""Names of a list in a message."""
LARGE = 1e6
"""Numbers of at least this size are written with a power of ten."""


def shortened(names: Sequence[str]) -> str:
    """Return at most `MOST_NAMES` names on one line."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with some significant digits, without exponent below 1e6; a dash if there is no value."""
    if value is None or not math.isfinite(value):
        return MISSING
    shown = float(f"{value:.{digits}g}")
    return f"{shown:.0f}" if 10.0**digits <= abs(shown) < LARGE else f"{value:.{digits}g}"


def condition_text(condition: float) -> str:
    """Return a condition number, an infinite one with what it means."""
    return f"{condition:.3g}" if math.isfinite(condition) else "infinite (these data do not show every parameter)"


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


def listed(words: Iterable[str], last: str = "and") -> str:
    """Return `a, b and c`, or with another word before the `last`."""
    entries = list(words)
    return f"{', '.join(entries[:-1])} {last} {entries[-1]}" if len(entries) > 1 else "".join(entries)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return aligned columns: numbers to the right with six digits, None as a dash.

    On a terminal long cells are folded to its width; in a pipe every row is one line.
    """
    from io import StringIO
    from shutil import get_terminal_size

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for k, name in enumerate(header):
        text = any(isinstance(row[k], str) for row in rows)
        shown.add_column(Text(name), justify="left" if text else "right", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(_cell(value)) for value in row))
    width = get_terminal_size().columns - INDENT if sys.stdout.isatty() else PIPED_WIDTH
    console = Console(file=StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(shown)
    return "\n".join(f"{'':{INDENT}}{line}".rstrip() for line in capture.get().splitlines())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value)
