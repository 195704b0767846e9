"""Joints by data file: the drive of a UR5e's base, scaled by the size of every joint."""

from __future__ import annotations

import math
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jointwise.description.robot import Joint, Robot
from jointwise.errors import ModelError, nearest
from jointwise.simulation.friction import joint_size
from jointwise.simulation.robot.elasticity import Cubic
from jointwise.simulation.robot.friction import Friction, Slip, Stribeck, Warmth
from jointwise.simulation.robot.gear import Backlash, Harmonic, LostMotion
from jointwise.simulation.robot.joint import JointPlant, MotorPlant, Thermal

SCHEMA = 1
USUAL_EFFORT = 150.0
"""Effort limit (Nm) of a drive of size 1."""


def default_joints(robot: Robot) -> tuple[JointPlant, ...]:
    """Return plausible joints of a robot: UR5e-like, by the size of each drive (`drive.toml`)."""
    text = (files(__package__) / "drive.toml").read_text(encoding="utf-8")
    return joints_from_toml(text, "drive.toml", robot)


def load_joints(path: str | Path, robot: Robot) -> tuple[JointPlant, ...]:
    """Return the joints of a robot from a data file of the form of `drive.toml`.

    ``[drive]`` gives the keys that differ from the defaults, each ``{ value, power }`` or a number that is the same for
    every size; ``[[joint]]`` tables, one a joint, overrule single values.
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
    drive = _usual_drive() | _checked_keys(document.get("drive", {}), f"{origin}, [drive]")
    rows = document.get("joint", [{}] * robot.dof)
    if len(rows) != robot.dof:
        raise ModelError(f"{origin}: there must be {robot.dof} [[joint]] tables. Got {len(rows)} instead.")
    waves = document.get("kinematic_error", [])
    joints = []
    for k, (joint, row) in enumerate(zip(robot.joints, rows, strict=True)):
        numbers = _numbers(drive | _checked_keys(row, f"{origin}, joint {k + 1}"), joint, row)
        joints.append(_joint(numbers, joint, float(k), waves))
    return tuple(joints)


@cache
def _usual_document() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "drive.toml").read_text(encoding="utf-8"))


def _usual_drive() -> dict[str, Any]:
    drive: dict[str, Any] = _usual_document()["drive"]
    return dict(drive)


def _checked_keys(table: dict[str, Any], where: str) -> dict[str, Any]:
    for key, value in table.items():
        if key not in _usual_document()["drive"]:
            raise ModelError(f"{where}: unknown key '{key}'. {nearest(key, _usual_document()['drive'])}")
        numbers = [value.get("value"), value.get("power", 0.0)] if isinstance(value, dict) else [value]
        if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
            raise ModelError(f"{where}: {key} must be a number or {{ value, power }}. Got {value!r} instead.")
    return table


def _numbers(drive: dict[str, Any], joint: Joint, own: dict[str, Any]) -> dict[str, float]:
    """Return every value at the size of a joint; inertia, ratio and gain are the described ones unless given."""
    size = joint_size(joint)
    numbers = {key: _sized(value, size) for key, value in drive.items()}
    motor = joint.motor
    described = {"inertia": motor.reflected_inertia, "gear_ratio": motor.gear_ratio, "gain": motor.joint_gain}
    return numbers | {key: value for key, value in described.items() if value and key not in own}


def _sized(value: Any, size: float) -> float:
    if isinstance(value, dict):
        return float(value["value"] * size ** value.get("power", 0.0))
    return float(value)


def _joint(x: dict[str, float], joint: Joint, phase: float, waves: list[dict[str, float]]) -> JointPlant:
    effort = joint.limits.effort or USUAL_EFFORT
    limit = x["peak_effort"] * effort / x["gain"] if joint.limits.effort else math.inf
    return JointPlant(
        inertia=x["inertia"],
        gear_ratio=x["gear_ratio"],
        stiffness=Cubic(x["linear"], x["cubic"]),
        damping=x["damping"],
        friction=_friction(x, effort),
        backlash=Backlash.wavy(x["backlash"], x["backlash_variation"], phase),
        kinematic_error=tuple(Harmonic(w["amplitude"], w["order"], w["phase"] + phase) for w in waves),
        lost_motion=LostMotion(x["lost_motion"], x["lost_motion_reach"]),
        motor=MotorPlant(x["gain"], limit, x["lag"]),
        thermal=Thermal(x["capacity"], x["conductance"], x["ambient"]),
    )


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
        slip=Slip.polynomial(int(x["elements"])),
    )
