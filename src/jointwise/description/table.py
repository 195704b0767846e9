"""DH and MDH tables as CSV: a header with `alpha`, `a`, `d` in any order, one line a joint."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import cast

from jointwise.description.expression import parse_number
from jointwise.description.robot import JointKind, Robot
from jointwise.description.rows import CONVENTIONS, Convention, Row, robot_from_rows
from jointwise.errors import DescriptionError

NEEDED = ("a", "alpha", "d")
KNOWN = (*NEEDED, "theta", "name", "type")
MOST_JOINTS = 64
LONGEST_LINE = 4096


def robot_from_csv(text: str, origin: str, convention: str | None = None) -> Robot:
    """Return the kinematic robot of a table; links carry no inertia.

    The convention is `convention`, or a line ``# convention: dh`` (`mdh`, `mdh-following`) in the file; it is never
    guessed. Optional columns: `theta` (constant added to the joint variable), `name`, `type` (revolute, prismatic).
    Angles in rad (``pi/2`` allowed), lengths in m.
    """
    kind = chosen_convention(_stated_convention(text), convention, origin)
    lines = [
        (number, _cells(line, number, origin))
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise DescriptionError(f"{origin}: the file is empty. A table has a header such as alpha,a,d.")
    header = _header(lines[0], origin)
    if len(lines) == 1:
        raise DescriptionError(f"{origin}: the table has a header and no rows.")
    if len(lines) - 1 > MOST_JOINTS:
        raise DescriptionError(f"{origin}: {len(lines) - 1} rows; a table may have at most {MOST_JOINTS}.")
    rows = [_row(number, cells, header, origin) for number, cells in lines[1:]]
    return robot_from_rows(Path(origin).stem, rows, kind, sources={"kinematics": f"{Path(origin).name} ({kind})"})


def chosen_convention(stated: str | None, asked: str | None, origin: str) -> Convention:
    """Return the convention that file and user agree on; say so if neither or both differ."""
    for value in (stated, asked):
        if value is not None and value not in CONVENTIONS:
            raise DescriptionError(
                f"{origin}: convention must be one of {', '.join(CONVENTIONS)}. Got '{value}' instead."
            )
    if stated and asked and stated != asked:
        raise DescriptionError(f"{origin}: the file says its convention is {stated}, but {asked} was asked for.")
    if not (stated or asked):
        raise DescriptionError(
            f"{origin}: the file does not say its convention. Add a line '# convention: dh' (or mdh, mdh-following), "
            "or name it with --convention. AURT's mdh.csv is mdh-following."
        )
    return cast(Convention, stated or asked)


def _stated_convention(text: str) -> str | None:
    for line in text.splitlines():
        comment = line.strip().lstrip("#").strip().lower()
        if line.lstrip().startswith("#") and comment.startswith("convention:"):
            return comment.removeprefix("convention:").strip()
    return None


def _cells(line: str, number: int, origin: str) -> list[str]:
    """Return the cells of one line; a cell does not run over the end of its line."""
    if len(line) > LONGEST_LINE:
        raise DescriptionError(f"{origin}, line {number}: longer than {LONGEST_LINE} characters.")
    return next(csv.reader([line], skipinitialspace=True))


def _header(line: tuple[int, list[str]], origin: str) -> list[str]:
    number, cells = line
    header = [cell.strip().lower() for cell in cells]
    missing = [name for name in NEEDED if name not in header]
    unknown = [name for name in header if name not in KNOWN]
    if missing or unknown or len(set(header)) != len(header):
        problem = (
            f"has no column {' and '.join(missing)}" if missing
            else f"has an unknown column '{unknown[0]}'" if unknown
            else "names a column twice"
        )  # fmt: skip
        raise DescriptionError(f"{origin}, line {number}: the header {problem}. Columns: {', '.join(KNOWN)}.")
    return header


def _row(number: int, cells: list[str], header: list[str], origin: str) -> Row:
    if len(cells) != len(header):
        raise DescriptionError(
            f"{origin}, line {number}: {len(cells)} values, but the header names {len(header)} columns."
        )
    named = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    values = {}
    for column in (*NEEDED, "theta"):
        try:
            values[column] = parse_number(named.get(column, "0"))
        except ValueError as problem:
            raise DescriptionError(f"{origin}, line {number}, column {column}: {problem}.") from None
    kind = named.get("type") or "revolute"
    if kind not in ("revolute", "prismatic"):
        raise DescriptionError(
            f"{origin}, line {number}, column type: must be revolute or prismatic. Got '{kind}' instead."
        )
    return Row(values["a"], values["alpha"], values["d"], values["theta"], named.get("name", ""), cast(JointKind, kind))
