"""Joints by data file: the drive of a UR5e's base, scaled by the size of every joint."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jointwise.atomic import read_limited
from jointwise.description.robot import Joint, Robot
from jointwise.errors import DataError, ModelError, check_range, nearest
from jointwise.model.joint_friction import Friction, Slip, Stribeck, ThermalFriction
from jointwise.model.spring import Cubic, Segments
from jointwise.simulation.robot.joint import Backlash, Harmonic, JointPlant, LostMotion, MotorPlant, Thermal
from jointwise.toml import LONGEST_TOML, parse_toml

USUAL_EFFORT = 150.0
"""Effort limit (Nm) of a drive of size 1."""
POWER = 1.37
"""A drive has size (effort limit / `USUAL_EFFORT`) to this power."""


def joint_size(joint: Joint) -> float:
    """Return the size of a drive: 1 for an effort limit of 150 Nm, 0.1 for 28 Nm.

    Without an effort limit it follows from the friction: 1 for 10 Nm.
    """
    effort, coulomb = joint.limits.effort, joint.motor.coulomb
    if effort is not None:
        return float((effort / USUAL_EFFORT) ** POWER)
    return coulomb / 10.0 if coulomb else 1.0


def joint_effort(joint: Joint) -> float:
    """Return the effort limit of a drive, Nm (N): described, else that of its size."""
    described = joint.limits.effort
    return float(USUAL_EFFORT * joint_size(joint) ** (1.0 / POWER)) if described is None else described


SCHEMA = 1
MOST_ELEMENTS = 100
"""Slip elements of one joint; four are usual, and the time of a simulation grows with them."""
SEGMENTS = ("K1", "K2", "K3", "T1", "T2")
"""Keys of a spring of three segments, as gear catalogues give it."""


def default_joints(robot: Robot) -> tuple[JointPlant, ...]:
    """Return plausible joints of a robot: UR5e-like, by the size of each drive (`drive.toml`)."""
    text = (files(__package__) / "drive.toml").read_text(encoding="utf-8")
    return joints_from_toml(text, "drive.toml", robot)


def load_joints(path: str | Path, robot: Robot) -> tuple[JointPlant, ...]:
    """Return the joints of a robot from a data file of the form of `drive.toml`.

    ``[drive]`` gives the keys that differ from the defaults, each ``{ value, power }`` or a number that is the same for
    every size; ``[[joint]]`` tables, one per joint, override single values. The five keys K1, K2, K3 (Nm/rad), T1, T2
    (Nm) of a gear's catalogue make the spring one of three segments in place of `linear` and `cubic`. Rotor inertia,
    gear ratio and torque constant are those of the robot unless the file differs from `drive.toml`.
    """
    try:
        text = read_limited(path, LONGEST_TOML, "a file of joints").decode("utf-8")
    except UnicodeDecodeError:
        raise ModelError(f"{path}: not a text file in UTF-8.") from None
    except DataError as problem:
        raise ModelError(f"{path}: {problem}") from None
    return joints_from_toml(text, str(path), robot)


def joints_from_toml(text: str, origin: str, robot: Robot) -> tuple[JointPlant, ...]:
    """Return the joints that a document describes; see `load_joints`."""
    try:
        document = parse_toml(text)
    except ModelError as problem:
        raise ModelError(f"{origin}: {problem}") from None
    if isinstance(document.get("schema"), bool) or document.get("schema") != SCHEMA:
        raise ModelError(f"{origin}: schema must be {SCHEMA}. Got {document.get('schema')!r} instead.")
    _check_keys(document, _default_document(), origin)
    defaults = _default_document()["drive"]
    drive = _checked_drive(document.get("drive", {}), f"{origin}, [drive]")
    drive = {key: value for key, value in drive.items() if value != defaults.get(key)}
    rows = document.get("joint", [{}] * robot.dof)
    if not isinstance(rows, list) or len(rows) != robot.dof:
        got = len(rows) if isinstance(rows, list) else "one [joint]"
        raise ModelError(f"{origin}: there must be {robot.dof} [[joint]] tables. Got {got} instead.")
    waves = _checked_waves(document.get("kinematic_error", _default_document()["kinematic_error"]), origin)
    return tuple(
        _joint_of(joint, drive | _checked_drive(row, f"{origin}, joint {k + 1}"), float(k), waves, origin)
        for k, (joint, row) in enumerate(zip(robot.joints, rows, strict=True))
    )


@cache
def _default_document() -> dict[str, Any]:
    """Return `drive.toml`, which holds every key that there is."""
    return {"joint": []} | parse_toml((files(__package__) / "drive.toml").read_text(encoding="utf-8"))


def _check_keys(table: Any, known: Iterable[str], where: str) -> None:
    if not isinstance(table, dict):
        raise ModelError(f"{where}: must be a table. Got {table!r} instead.")
    for key in table:
        if key not in known:
            raise ModelError(f"{where}: unknown key '{key}'. {nearest(key, known)}")


def _checked_drive(table: Any, where: str) -> dict[str, Any]:
    """Return a table whose keys are those of a drive, each with a number or { value, power }."""
    _check_keys(table, [*_default_document()["drive"], *SEGMENTS], where)
    for key, value in table.items():
        parts = value if isinstance(value, dict) else {"value": value}
        if not {"value"} <= parts.keys() <= {"value", "power"} or not all(map(_is_real, parts.values())):
            raise ModelError(f"{where}: {key} must be a number or {{ value, power }}. Got {value!r} instead.")
    return dict(table)


def _checked_waves(rows: Any, origin: str) -> list[dict[str, float]]:
    """Return the tables of the kinematic error, each with amplitude, order and phase."""
    keys = {"amplitude", "order", "phase"}
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and row.keys() == keys and all(map(_is_real, row.values())) for row in rows
    ):
        raise ModelError(f"{origin}: each [[kinematic_error]] must hold the numbers amplitude, order and phase.")
    return rows


def _is_real(value: object) -> bool:
    """Return whether a value is a number, which may be infinite: a current limit."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _joint_of(
    joint: Joint, specified: dict[str, Any], phase: float, waves: list[dict[str, float]], origin: str
) -> JointPlant:
    """Return a joint with the `specified` values of a file, and defaults elsewhere."""
    try:
        return _joint(_numbers(joint, specified), joint, phase, waves)
    except (ModelError, OverflowError, ZeroDivisionError, ValueError) as problem:
        raise ModelError(f"{origin}, joint '{joint.name}': {problem}") from None


def _numbers(joint: Joint, specified: dict[str, Any]) -> dict[str, float]:
    """Return every value at the size of a joint: specified, else described (inertia, ratio, gain), else the default."""
    size, motor = joint_size(joint), joint.motor
    described = {"inertia": motor.reflected_inertia, "gear_ratio": motor.gear_ratio, "gain": motor.joint_gain}
    known = {key: value for key, value in described.items() if value}
    if specified.get("lag") == 0.0:
        known["inductance"] = 0.0  # a current that follows at once has none, whatever the default
    return {key: _sized(value, size) for key, value in (_default_document()["drive"] | known | specified).items()}


def _sized(value: Any, size: float) -> float:
    if isinstance(value, dict):
        return float(value["value"] * size ** value.get("power", 0.0))
    return float(value)


def _joint(x: dict[str, float], joint: Joint, phase: float, waves: list[dict[str, float]]) -> JointPlant:
    check_range("motor", 0.0, above=True, gain=x["gain"])
    effort = joint.limits.effort or USUAL_EFFORT
    limit = x["peak_effort"] * effort / x["gain"] if joint.limits.effort else math.inf
    return JointPlant(
        inertia=x["inertia"],
        gear_ratio=x["gear_ratio"],
        stiffness=_spring(x),
        damping=x["damping"],
        friction=_friction(x, effort),
        backlash=Backlash.wavy(x["backlash"], x["backlash_variation"], phase),
        kinematic_error=tuple(Harmonic(w["amplitude"], w["order"], w["phase"] + phase) for w in waves),
        lost_motion=LostMotion(x["lost_motion"], x["lost_motion_reach"]),
        motor=MotorPlant(
            x["gain"], limit, x["lag"], x["resistance"], x["inductance"], _whole("pole_pairs", x["pole_pairs"])
        ),
        thermal=Thermal(x["capacity"], x["conductance"], x["ambient"]),
    )


def _spring(x: dict[str, float]) -> Cubic | Segments:
    """Return the catalogue's three segments where a file gives them, else the cubic spring."""
    specified = [key for key in SEGMENTS if key in x]
    if not specified:
        return Cubic(x["linear"], x["cubic"])
    missing = [key for key in SEGMENTS if key not in x]
    if missing:
        raise ModelError(f"a spring of three segments needs {', '.join(SEGMENTS)}. There is no {', '.join(missing)}.")
    return Segments(**{key: x[key] for key in SEGMENTS})


def _friction(x: dict[str, float], effort: float) -> Friction:
    return Friction(
        coulomb=x["coulomb"],
        load=x["load_growth"] * x["coulomb"] / effort**2,
        viscous=x["viscous"],
        square=x["square"],
        cube=x["cube"],
        asymmetry=x["asymmetry"],
        stribeck=Stribeck(x["stiction"], x["stribeck_speed"], x["stribeck_shape"]),
        thermal=ThermalFriction(x["temperature_linear"], x["temperature_cold"]),
        slip=Slip.polynomial(_whole("elements", x["elements"])),
    )


def _whole(name: str, value: float) -> int:
    if not (value.is_integer() and 0 <= value <= MOST_ELEMENTS):
        raise ModelError(f"{name} must be a whole number from 0 to {MOST_ELEMENTS}. Got {value:g} instead.")
    return int(value)
