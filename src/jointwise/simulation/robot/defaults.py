"""Joints by data file: the drive of a UR5e's base, scaled by the size of every joint."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jointwise.description.robot import Joint, Robot
from jointwise.errors import ModelError, nearest
from jointwise.model.spring import Cubic, Segments
from jointwise.simulation.drive_size import USUAL_EFFORT, joint_size
from jointwise.simulation.robot.checks import check_range
from jointwise.simulation.robot.friction import Friction, Slip, Stribeck, Warmth
from jointwise.simulation.robot.gear import Backlash, Harmonic, LostMotion
from jointwise.simulation.robot.joint import JointPlant, MotorPlant, Thermal

SCHEMA = 1
SEGMENTS = ("K1", "K2", "K3", "T1", "T2")
"""Keys of a spring of three segments, as gear catalogues give it."""


def default_joints(robot: Robot) -> tuple[JointPlant, ...]:
    """Return plausible joints of a robot: UR5e-like, by the size of each drive (`drive.toml`)."""
    text = (files(__package__) / "drive.toml").read_text(encoding="utf-8")
    return joints_from_toml(text, "drive.toml", robot)


def load_joints(path: str | Path, robot: Robot) -> tuple[JointPlant, ...]:
    """Return the joints of a robot from a data file of the form of `drive.toml`.

    ``[drive]`` gives the keys that differ from the defaults, each ``{ value, power }`` or a number that is the same for
    every size; ``[[joint]]`` tables, one a joint, overrule single values. The five keys K1, K2, K3 (Nm/rad), T1, T2
    (Nm) of a gear's catalogue make the spring one of three segments in place of `linear` and `cubic`. Rotor inertia,
    gear ratio and torque constant are the robot's own unless the file gives others than `drive.toml`.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ModelError(f"{path}: cannot be read ({getattr(problem, 'strerror', None) or 'not text'}).") from None
    return joints_from_toml(text, str(path), robot)


def joints_from_toml(text: str, origin: str, robot: Robot) -> tuple[JointPlant, ...]:
    """Return the joints that a document describes; see `load_joints`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ModelError(f"{origin}: not valid TOML: {problem}.") from None
    if document.get("schema") != SCHEMA:
        raise ModelError(f"{origin}: schema must be {SCHEMA}. Got {document.get('schema')!r} instead.")
    _refuse_unknown(document, _usual_document(), origin)
    usual = _usual_document()["drive"]
    drive = _checked_drive(document.get("drive", {}), f"{origin}, [drive]")
    drive = {key: value for key, value in drive.items() if value != usual.get(key)}
    rows = document.get("joint", [{}] * robot.dof)
    if not isinstance(rows, list) or len(rows) != robot.dof:
        got = len(rows) if isinstance(rows, list) else "one [joint]"
        raise ModelError(f"{origin}: there must be {robot.dof} [[joint]] tables. Got {got} instead.")
    waves = _checked_waves(document.get("kinematic_error", _usual_document()["kinematic_error"]), origin)
    return tuple(
        _joint_of(joint, drive | _checked_drive(row, f"{origin}, joint {k + 1}"), float(k), waves, origin)
        for k, (joint, row) in enumerate(zip(robot.joints, rows, strict=True))
    )


@cache
def _usual_document() -> dict[str, Any]:
    """Return `drive.toml`, which holds every key that there is."""
    return {"joint": []} | tomllib.loads((files(__package__) / "drive.toml").read_text(encoding="utf-8"))


def _refuse_unknown(table: Any, known: Iterable[str], where: str) -> None:
    if not isinstance(table, dict):
        raise ModelError(f"{where}: must be a table. Got {table!r} instead.")
    for key in table:
        if key not in known:
            raise ModelError(f"{where}: unknown key '{key}'. {nearest(key, known)}")


def _checked_drive(table: Any, where: str) -> dict[str, Any]:
    """Return a table whose keys are those of a drive, each with a number or { value, power }."""
    _refuse_unknown(table, [*_usual_document()["drive"], *SEGMENTS], where)
    for key, value in table.items():
        parts = value if isinstance(value, dict) else {"value": value}
        if not {"value"} <= parts.keys() <= {"value", "power"} or not all(map(_is_number, parts.values())):
            raise ModelError(f"{where}: {key} must be a number or {{ value, power }}. Got {value!r} instead.")
    return dict(table)


def _checked_waves(rows: Any, origin: str) -> list[dict[str, float]]:
    """Return the tables of the kinematic error, each with amplitude, order and phase."""
    keys = {"amplitude", "order", "phase"}
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and row.keys() == keys and all(map(_is_number, row.values())) for row in rows
    ):
        raise ModelError(f"{origin}: each [[kinematic_error]] must hold the numbers amplitude, order and phase.")
    return rows


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _joint_of(
    joint: Joint, given: dict[str, Any], phase: float, waves: list[dict[str, float]], origin: str
) -> JointPlant:
    """Return a joint with the values `given` in a file, the usual ones elsewhere."""
    try:
        return _joint(_numbers(joint, given), joint, phase, waves)
    except (ModelError, OverflowError, ZeroDivisionError, ValueError) as problem:
        raise ModelError(f"{origin}, joint '{joint.name}': {problem}") from None


def _numbers(joint: Joint, given: dict[str, Any]) -> dict[str, float]:
    """Return every value at the size of a joint: given, else described (inertia, ratio, gain), else usual."""
    size, motor = joint_size(joint), joint.motor
    described = {"inertia": motor.reflected_inertia, "gear_ratio": motor.gear_ratio, "gain": motor.joint_gain}
    known = {key: value for key, value in described.items() if value}
    return {key: _sized(value, size) for key, value in (_usual_document()["drive"] | known | given).items()}


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
        motor=MotorPlant(x["gain"], limit, x["lag"]),
        thermal=Thermal(x["capacity"], x["conductance"], x["ambient"]),
    )


def _spring(x: dict[str, float]) -> Cubic | Segments:
    """Return the catalogue's three segments where a file gives them, else the cubic spring."""
    given = [key for key in SEGMENTS if key in x]
    if not given:
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
        warmth=Warmth(x["temperature_linear"], x["temperature_cold"]),
        slip=Slip.polynomial(_whole("elements", x["elements"])),
    )


def _whole(name: str, value: float) -> int:
    if not value.is_integer():
        raise ModelError(f"{name} must be a whole number. Got {value:g} instead.")
    return int(value)
