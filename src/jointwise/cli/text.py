"""Plain text and JSON for the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return aligned columns: numbers to the right with six digits, None as a dash."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    right = [all(not isinstance(row[k], str) for row in rows) for k in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(width) if r else cell.ljust(width) for cell, width, r in zip(row, widths, right, strict=True)
        )
        for row in cells
    ]
    return "\n".join(f"  {line}".rstrip() for line in lines)


def as_json(value: object) -> str:
    """Return indented JSON; a number that is not finite is a mistake and raises."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value)
