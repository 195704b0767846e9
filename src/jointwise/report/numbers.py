"""Numbers and names as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from jointwise.description.robot import Joint, Robot
from jointwise.result.digits import r2_decimals

NOTHING = "–"
LARGE = 1e6
"""Numbers from here on are written with a power of ten."""


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with some significant digits, large ones written out; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return NOTHING
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:.0f}" if 10.0**digits <= abs(rounded) < LARGE else f"{value:.{digits}g}"


def fixed(value: float | None, digits: int) -> str:
    """Return a number with some decimals; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: no minus zero


def r2_text(r2: float | None) -> str:
    """Return an R² with the decimals that mean something; a dash where there is none."""
    return NOTHING if r2 is None or not math.isfinite(r2) else fixed(r2, r2_decimals(r2))


def written_unit(unit: str) -> str:
    """Return a unit with its powers raised."""
    for power, raised in zip("2357", "²³⁵⁷", strict=True):
        unit = unit.replace(f"^{power}", raised)
    return unit


def percent(part: float, digits: int = 1) -> str:
    """Return a share (0..1) in per cent."""
    return f"{100.0 * part:.{digits}f} %"


def listed(words: Iterable[str]) -> str:
    """Return `a, b and c`."""
    own = list(words)
    return own[0] if len(own) == 1 else f"{', '.join(own[:-1])} and {own[-1]}" if own else ""


def joint_title(robot: Robot, j: int) -> str:
    """Return `Joint 2 · shoulder_lift`, or `Joint 2` where the name says no more."""
    name = robot.joints[j].name
    plain = name.lower().strip("_ ").replace("_", "").replace(" ", "") in (f"j{j + 1}", f"joint{j + 1}", str(j + 1))
    return f"Joint {j + 1}" if plain or not name else f"Joint {j + 1} · {name}"


def robot_title(robot: Robot) -> str:
    """Return the robot's title, or its name."""
    return robot.title or robot.name


def length_unit(joint: Joint) -> str:
    """Return rad, or m for a prismatic joint."""
    return "rad" if joint.kind == "revolute" else "m"


def effort_unit(joint: Joint) -> str:
    """Return Nm, or N for a prismatic joint."""
    return "Nm" if joint.kind == "revolute" else "N"
