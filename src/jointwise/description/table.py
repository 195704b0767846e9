"""Robots from DH and MDH tables: rows in three conventions, one canonical chain, and tables as CSV.

With ``A_j = Trans_x(a_j) Rot_x(alpha_j)`` and ``B_j(q) = Rot_z(theta_j + q) Trans_z(d_j)``::

    dh             row j holds B_j then A_j:  T = B_1 A_1 B_2 A_2 ... B_n A_n       (distal, Universal Robots)
    mdh            row j holds A_{j-1} then B_j:  T = A_0 B_1 A_1 B_2 ... B_n       (Craig, Khalil)
    mdh-following  mdh with row j holding d_j and the A_j that follows, A_0 = 1     (AURT's file)

All three are the same product, so frame {j} (on axis j, after B_j) is the same in each convention; only the position of
the A in the rows and the frame of the inertials differ. Where rows end with A_n, it is part of the tool.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args

import numpy as np

from jointwise import spatial
from jointwise.description.robot import Joint, JointKind, Limits, Link, Motor, Robot
from jointwise.errors import DescriptionError
from jointwise.spatial import Array

Convention = Literal["dh", "mdh", "mdh-following"]
CONVENTIONS: tuple[str, ...] = get_args(Convention)
NEEDED = ("a", "alpha", "d")
KNOWN = (*NEEDED, "theta", "name", "type")
MOST_JOINTS = 64
"""Most joints of a description; longer chains are mistakes."""
LONGEST_LINE = 4096
"""Most characters of a line of a table."""
LONGEST_NUMBER = 64
"""Most characters of a number."""
_FACTOR = re.compile(r"\s*(pi|π|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*")


def parse_number(text: str) -> float:
    """Return the value of ``[sign] factor {(*|/) factor}``, a factor being a decimal number or ``pi``.

    Examples: ``0.1625``, ``-pi/2``, ``3*pi/4``, ``1e-3``. Raises ValueError for anything else.
    """
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"longer than {LONGEST_NUMBER} characters")
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


def exact_angle(angle: float) -> float:
    """Return the multiple of π/2 (rad) that a rounded angle stands for, as 1.5708; other angles as they are.

    Taken literally, axes that are parallel or perpendicular would not quite be, and parameters that no motion shows
    would seem to act.
    """
    multiple = round(angle / (math.pi / 2.0)) * math.pi / 2.0
    digits = len(repr(float(angle)).partition(".")[2])
    unit = 10.0**-digits
    near = abs(multiple - angle) < (unit if digits > 2 else 0.5 * unit)
    return multiple if multiple != 0.0 and digits >= 2 and near else angle


@dataclass(frozen=True)
class Placement:
    """A fixed transform ``x' = R x + p``."""

    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))

    def __matmul__(self, other: Placement) -> Placement:
        """Return self followed by other: the product of the two transforms."""
        return Placement(self.rotation @ other.rotation, self.rotation @ other.translation + self.translation)

    def moved(self, inertial: Array) -> Array:
        """Return ten parameters of the inner frame in the outer one."""
        return spatial.move_inertial(inertial, self.rotation, self.translation)

    def moved_box(self, box: Array) -> Array:
        """Return the smallest box along the outer axes that contains a box of the inner frame; corners (2, 3), m."""
        center, half = self.rotation @ box.mean(axis=0) + self.translation, 0.5 * (box[1] - box[0])
        reach = np.abs(self.rotation) @ half
        return np.array([center - reach, center + reach])


@dataclass(frozen=True)
class Row:
    """One row of a table of a kinematic convention, with the body it carries.

    Attributes:
        a: Length along x, m.
        alpha: Angle about x, rad.
        d: Length along z, m.
        theta: Constant angle about z, rad.
        name: Name of the joint; "" for a number.
        kind: "revolute" or "prismatic".
        inertial: Body in the frame of the row, (10,): XX XY XZ YY YZ ZZ in kg m², mX mY mZ in kg m, m in kg.
        limits: Limits of the joint.
        motor: Motor of the joint.
        region: Corners (2, 3) of the box of its centre of mass in the same frame, m; None if unknown.
    """

    a: float
    alpha: float
    d: float
    theta: float = 0.0
    name: str = ""
    kind: JointKind = "revolute"
    inertial: Array = field(default_factory=lambda: np.zeros(10))
    limits: Limits = field(default_factory=Limits)
    motor: Motor = field(default_factory=Motor)
    region: Array | None = None

    @property
    def across(self) -> Placement:
        """``Trans_x(a) Rot_x(alpha)``."""
        return Placement(spatial.rotation_x(exact_angle(self.alpha)), np.array([self.a, 0.0, 0.0]))

    @property
    def along(self) -> Placement:
        """``Rot_z(theta) Trans_z(d)`` at q = 0."""
        return Placement(spatial.rotation_z(exact_angle(self.theta)), np.array([0.0, 0.0, self.d]))


def robot_from_rows(
    name: str,
    rows: Sequence[Row],
    convention: Convention,
    *,
    base: Placement | None = None,
    tool: Placement | None = None,
    title: str = "",
    sources: dict[str, str] | None = None,
) -> Robot:
    """Return the robot of a table; `base` stands before the first row, `tool` after the last."""
    follows = convention != "mdh"
    before = base or Placement()
    joints, links = [], []
    for number, row in enumerate(rows, start=1):
        placed = before @ row.along if follows else before @ row.across @ row.along
        joints.append(
            Joint(row.name or f"joint{number}", row.kind, placed.rotation, placed.translation, row.limits, row.motor)
        )
        inertial, region = row.inertial, row.region
        if convention == "dh":
            inertial = row.across.moved(inertial)
            region = None if region is None else row.across.moved_box(region)
        links.append(Link(f"link{number}", inertial, region))
        before = row.across if follows else Placement()
    end = before @ (tool or Placement())
    return Robot(name, tuple(joints), tuple(links), end.rotation, end.translation, title, sources or {})


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


def chosen_convention(stated: str | None, requested: str | None, origin: str) -> Convention:
    """Return the convention that the file states or the user requests; both may state it if they agree."""
    for value in (stated, requested):
        if value is not None and value not in CONVENTIONS:
            raise DescriptionError(
                f"{origin}: convention must be one of {', '.join(CONVENTIONS)}. Got '{value}' instead."
            )
    if stated and requested and stated != requested:
        raise DescriptionError(f"{origin}: the file states the convention {stated}, but {requested} was requested.")
    if not (stated or requested):
        raise DescriptionError(
            f"{origin}: the file does not state its convention. Add a line '# convention: dh' (or mdh, mdh-following), "
            "or name it with --convention. AURT's mdh.csv is mdh-following."
        )
    return cast(Convention, stated or requested)


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
    problem = _header_problem(header)
    if problem is not None:
        raise DescriptionError(f"{origin}, line {number}: the header {problem}. Columns: {', '.join(KNOWN)}.")
    return header


def _header_problem(header: Sequence[str]) -> str | None:
    missing = [name for name in NEEDED if name not in header]
    unknown = [name for name in header if name not in KNOWN]
    if missing:
        return f"has no column {' and '.join(missing)}"
    if unknown:
        return f"has an unknown column '{unknown[0]}'"
    return "names a column twice" if len(set(header)) != len(header) else None


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
