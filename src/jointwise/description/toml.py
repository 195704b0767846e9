"""Robots as TOML: DH or MDH rows with inertials, limits and motors; the format of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np

from jointwise import spatial
from jointwise.description.robot import JointKind, Limits, Motor, Robot
from jointwise.description.table import (
    MOST_JOINTS,
    Placement,
    Row,
    chosen_convention,
    parse_number,
    robot_from_rows,
)
from jointwise.description.transmission import Coordinates, Transmission, coupled, parse_coupling
from jointwise.errors import DescriptionError, ModelError
from jointwise.spatial import Array
from jointwise.toml import parse_toml

SCHEMA = 1
TOP_KEYS = {
    "schema",
    "name",
    "title",
    "convention",
    "inertial_frame",
    "base",
    "tool",
    "sources",
    "joint",
    "transmission",
}
LIMIT_KEYS = {field.name for field in fields(Limits)}
MOTOR_KEYS = {
    "gear_ratio": "gear_ratio",
    "motor_inertia": "rotor_inertia",
    "reducer_inertia": "reducer_inertia",
    "torque_constant": "torque_constant",
    "drive_gain": "drive_gain",
    "coulomb": "coulomb",
    "viscous": "viscous",
}
COUPLING_KEYS = ("coupling", "motor_from_joint", "joint_from_motor")
BODY_KEYS = {"mass", "center_of_mass", "inertia"}
ROW_KEYS = {"name", "type", "a", "alpha", "d", "theta"}
JOINT_KEYS = ROW_KEYS | BODY_KEYS | {"center_region"} | LIMIT_KEYS | set(MOTOR_KEYS)


def robot_from_toml(text: str, origin: str) -> Robot:
    """Return the robot of a TOML description; docs/reference/formats.md lists every key.

    Unknown keys, missing numbers, wrong types and non-finite values are rejected with the file, table and key. A link
    without `mass` carries no inertia. Non-physical inertia is accepted: `check_robot` reports it.
    """
    document = _parsed(text, origin)
    _reject_unknown(document, TOP_KEYS, origin)
    if isinstance(document.get("schema"), bool) or document.get("schema") != SCHEMA:
        raise DescriptionError(f"{origin}: schema must be {SCHEMA}. Got {document.get('schema')!r} instead.")
    convention = chosen_convention(_text(document, "convention", origin, None), None, origin)
    rows = _rows(document, convention, origin)
    robot = robot_from_rows(
        _text(document, "name", origin, "robot") or "robot",
        rows,
        convention,
        base=_placement(document.get("base", {}), f"{origin}, [base]"),
        tool=_placement(document.get("tool", {}), f"{origin}, [tool]"),
        title=_text(document, "title", origin, "") or "",
        sources=_sources(document.get("sources", {}), f"{origin}, [sources]"),
    )
    if "transmission" not in document:
        return robot
    where = f"{origin}, [transmission]"
    return replace(robot, transmission=_transmission(document["transmission"], robot.dof, where))


def _rows(document: dict[str, Any], convention: str, origin: str) -> list[Row]:
    """Return the rows of the joints, their bodies in the frames of the links."""
    frame = document.get("inertial_frame", "link")
    if frame not in ("link", "joint"):
        raise DescriptionError(f"{origin}: inertial_frame must be 'link' or 'joint'. Got {frame!r} instead.")
    rows = [_row(table, f"{origin}, joint {number}") for number, table in enumerate(_joints(document, origin), start=1)]
    return [_with_body_at_link(row) for row in rows] if frame == "joint" and convention == "dh" else rows


def _transmission(table: object, joints: int, where: str) -> Transmission:
    """Return the coupling of motors and joints, stated in one of three forms."""
    if not isinstance(table, dict):
        raise DescriptionError(f"{where}: must be a table.")
    _reject_unknown(table, {*COUPLING_KEYS, "coordinates"}, where)
    stated = [key for key in COUPLING_KEYS if key in table]
    if len(stated) != 1:
        raise DescriptionError(f"{where}: state one of {', '.join(COUPLING_KEYS)}.")
    coordinates = cast(Coordinates, _text(table, "coordinates", where, "joint"))
    value = table[stated[0]]
    try:
        if stated[0] == "coupling":
            if not isinstance(value, str):
                raise DescriptionError("coupling must be a text such as '6:5:1'.")
            return coupled(parse_coupling(value), joints, coordinates)
        matrix = _matrix(value, joints)
        if stated[0] == "joint_from_motor":
            matrix = np.linalg.inv(matrix).astype(float)
        return Transmission(matrix, coordinates)
    except (DescriptionError, np.linalg.LinAlgError) as problem:
        raise DescriptionError(f"{where}: {problem}") from None


def _matrix(value: object, joints: int) -> Array:
    """Return a matrix (joints, joints) of plain numbers."""
    rows = value if isinstance(value, list) else []
    plain = all(isinstance(row, list) and all(type(x) in (int, float) for x in row) for row in rows)
    if len(rows) != joints or not plain or any(len(row) != joints for row in rows):
        raise DescriptionError(f"the matrix must be {joints} rows of {joints} numbers.")
    return np.array(rows, dtype=float)


def _parsed(text: str, origin: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ModelError as problem:
        raise DescriptionError(f"{origin}: {problem}") from None


def _joints(document: dict[str, Any], origin: str) -> list[dict[str, Any]]:
    joints = document.get("joint")
    if not isinstance(joints, list) or not joints or not all(isinstance(joint, dict) for joint in joints):
        raise DescriptionError(f"{origin}: there is no [[joint]] table. A robot needs one for each joint.")
    if len(joints) > MOST_JOINTS:
        raise DescriptionError(f"{origin}: {len(joints)} joints; there may be at most {MOST_JOINTS}.")
    return joints


def _row(table: dict[str, Any], where: str) -> Row:
    _reject_unknown(table, JOINT_KEYS, where)
    kind = table.get("type", "revolute")
    if kind not in ("revolute", "prismatic"):
        raise DescriptionError(f"{where}: type must be 'revolute' or 'prismatic'. Got {kind!r} instead.")
    return Row(
        a=_number(table, "a", where),
        alpha=_number(table, "alpha", where),
        d=_number(table, "d", where),
        theta=_number(table, "theta", where) if "theta" in table else 0.0,
        name=_text(table, "name", where, "") or "",
        kind=cast(JointKind, kind),
        inertial=_inertial(table, where),
        limits=Limits(**{key: _number(table, key, where) for key in LIMIT_KEYS if key in table}),
        motor=Motor(**{name: _number(table, key, where) for key, name in MOTOR_KEYS.items() if key in table}),
        region=_region(table, where),
    )


def _with_body_at_link(row: Row) -> Row:
    """Return a DH row whose body was described in the frame of its joint with the body in the frame of its link."""
    rotation = row.across.rotation.T
    back = Placement(rotation, -rotation @ row.across.translation)
    region = None if row.region is None else back.moved_box(row.region)
    return replace(row, inertial=back.moved(row.inertial), region=region)


def _inertial(table: dict[str, Any], where: str) -> Array:
    present = BODY_KEYS & set(table)
    if not present:
        return np.zeros(10)
    if present != BODY_KEYS:
        missing = ", ".join(sorted(BODY_KEYS - present))
        raise DescriptionError(f"{where}: a body needs mass, center_of_mass and inertia; {missing} is missing.")
    center = _numbers(table, "center_of_mass", 3, where)
    tensor = spatial.six_to_tensor(_numbers(table, "inertia", 6, where))
    return spatial.inertial_vector(_number(table, "mass", where), center, tensor)


def _region(table: dict[str, Any], where: str) -> Array | None:
    """Return the box of the centre of mass, lower corner and upper corner."""
    if "center_region" not in table:
        return None
    box = _numbers(table, "center_region", 6, where).reshape(2, 3)
    if not np.all(box[0] < box[1]):
        raise DescriptionError(
            f"{where}: center_region must be x, y, z of the lower, then the upper corner. Got {box.tolist()} instead."
        )
    return box


def _placement(table: object, where: str) -> Placement:
    if not isinstance(table, Mapping):
        raise DescriptionError(f"{where}: must be a table with rpy and xyz.")
    _reject_unknown(table, {"rpy", "xyz"}, where)
    rpy = _numbers(table, "rpy", 3, where) if "rpy" in table else np.zeros(3)
    xyz = _numbers(table, "xyz", 3, where) if "xyz" in table else np.zeros(3)
    return Placement(spatial.rotation_rpy(*rpy), xyz)


def _sources(table: object, where: str) -> dict[str, str]:
    if not isinstance(table, Mapping) or not all(isinstance(value, str) for value in table.values()):
        raise DescriptionError(f"{where}: every source must be a text.")
    return dict(table)


def _reject_unknown(table: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise DescriptionError(f"{where}: unknown key '{unknown[0]}'. Known: {', '.join(sorted(known))}.")


def _text(table: Mapping[str, Any], key: str, where: str, default: str | None) -> str | None:
    value = table.get(key, default)
    if value is not None and not isinstance(value, str):
        raise DescriptionError(f"{where}: {key} must be a text. Got {value!r} instead.")
    return value


def _number(table: Mapping[str, Any], key: str, where: str) -> float:
    if key not in table:
        raise DescriptionError(f"{where}: {key} is missing.")
    return _as_number(table[key], f"{where}: {key}")


def _numbers(table: Mapping[str, Any], key: str, count: int, where: str) -> Array:
    values = table[key]
    if not isinstance(values, list) or len(values) != count:
        raise DescriptionError(f"{where}: {key} must be a list of {count} numbers. Got {values!r} instead.")
    return np.array([_as_number(value, f"{where}: {key}") for value in values])


def _as_number(value: object, what: str) -> float:
    if isinstance(value, str):
        try:
            return parse_number(value)
        except ValueError as problem:
            raise DescriptionError(f"{what}: {problem}.") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DescriptionError(f"{what} must be a finite number. Got {value!r} instead.")
    return float(value)
