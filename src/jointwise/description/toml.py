"""Robots as TOML: DH or MDH rows with inertials, limits and motors; the format of the catalogue."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import numpy as np

from jointwise import spatial
from jointwise.description.expression import parse_number
from jointwise.description.robot import JointKind, Limits, Motor, Robot
from jointwise.description.rows import Convention, Placement, Row, robot_from_rows
from jointwise.description.table import MOST_JOINTS, chosen_convention
from jointwise.errors import DescriptionError
from jointwise.spatial import Array

SCHEMA = 1
TOP_KEYS = {"schema", "name", "title", "convention", "inertial_frame", "base", "tool", "sources", "joint"}
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
BODY_KEYS = {"mass", "center_of_mass", "inertia"}
ROW_KEYS = {"name", "type", "a", "alpha", "d", "theta"}
JOINT_KEYS = ROW_KEYS | BODY_KEYS | LIMIT_KEYS | set(MOTOR_KEYS)


def robot_from_toml(text: str, origin: str) -> Robot:
    """Return the robot of a TOML description; docs/formats.md tells every key.

    Unknown keys, missing numbers, wrong types and non-finite values are refused with the file, table and key. A link
    without `mass` carries no inertia. Non-physical inertia is read as it stands: `check_robot` reports it.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise DescriptionError(f"{origin}: not valid TOML: {problem}.") from None
    except RecursionError:
        raise DescriptionError(f"{origin}: not valid TOML: nested too deeply.") from None
    _refuse_unknown(document, TOP_KEYS, origin)
    if document.get("schema") != SCHEMA:
        raise DescriptionError(f"{origin}: schema must be {SCHEMA}. Got {document.get('schema')!r} instead.")
    convention = chosen_convention(_text(document, "convention", origin, None), None, origin)
    if document.get("inertial_frame", "link") not in ("link", "joint"):
        raise DescriptionError(
            f"{origin}: inertial_frame must be 'link' or 'joint'. Got {document['inertial_frame']!r} instead."
        )
    joints = document.get("joint")
    if not isinstance(joints, list) or not joints or not all(isinstance(joint, dict) for joint in joints):
        raise DescriptionError(f"{origin}: there is no [[joint]] table. A robot needs one a joint.")
    if len(joints) > MOST_JOINTS:
        raise DescriptionError(f"{origin}: {len(joints)} joints; at most {MOST_JOINTS} are read.")
    at_joint = document.get("inertial_frame", "link") == "joint"
    rows = [
        _row(joint, f"{origin}, joint {number}", convention, at_joint) for number, joint in enumerate(joints, start=1)
    ]
    return robot_from_rows(
        _text(document, "name", origin, "robot") or "robot",
        rows,
        convention,
        base=_placement(document.get("base", {}), f"{origin}, [base]"),
        tool=_placement(document.get("tool", {}), f"{origin}, [tool]"),
        title=_text(document, "title", origin, "") or "",
        sources=_sources(document.get("sources", {}), f"{origin}, [sources]"),
    )


def _row(table: dict[str, Any], where: str, convention: Convention, at_joint: bool) -> Row:
    _refuse_unknown(table, JOINT_KEYS, where)
    kind = table.get("type", "revolute")
    if kind not in ("revolute", "prismatic"):
        raise DescriptionError(f"{where}: type must be 'revolute' or 'prismatic'. Got {kind!r} instead.")
    row = Row(
        a=_number(table, "a", where),
        alpha=_number(table, "alpha", where),
        d=_number(table, "d", where),
        theta=_number(table, "theta", where) if "theta" in table else 0.0,
        name=_text(table, "name", where, "") or "",
        kind=cast(JointKind, kind),
        inertial=_inertial(table, where),
        limits=Limits(**{key: _number(table, key, where) for key in LIMIT_KEYS if key in table}),
        motor=Motor(**{name: _number(table, key, where) for key, name in MOTOR_KEYS.items() if key in table}),
    )
    if at_joint and convention == "dh":
        back = row.across.rotation.T
        body = spatial.move_inertial(row.inertial, back, -back @ row.across.translation)
        return Row(**{**{field.name: getattr(row, field.name) for field in fields(Row)}, "inertial": body})
    return row


def _inertial(table: dict[str, Any], where: str) -> Array:
    given = BODY_KEYS & set(table)
    if not given:
        return np.zeros(10)
    if given != BODY_KEYS:
        missing = ", ".join(sorted(BODY_KEYS - given))
        raise DescriptionError(f"{where}: a body needs mass, center_of_mass and inertia; {missing} is missing.")
    center = _numbers(table, "center_of_mass", 3, where)
    tensor = spatial.six_to_tensor(_numbers(table, "inertia", 6, where))
    return spatial.inertial_vector(_number(table, "mass", where), center, tensor)


def _placement(table: object, where: str) -> Placement:
    if not isinstance(table, Mapping):
        raise DescriptionError(f"{where}: must be a table with rpy and xyz.")
    _refuse_unknown(table, {"rpy", "xyz"}, where)
    rpy = _numbers(table, "rpy", 3, where) if "rpy" in table else np.zeros(3)
    xyz = _numbers(table, "xyz", 3, where) if "xyz" in table else np.zeros(3)
    return Placement(spatial.rotation_rpy(*rpy), xyz)


def _sources(table: object, where: str) -> dict[str, str]:
    if not isinstance(table, Mapping) or not all(isinstance(value, str) for value in table.values()):
        raise DescriptionError(f"{where}: every source must be a text.")
    return dict(table)


def _refuse_unknown(table: Mapping[str, Any], known: set[str], where: str) -> None:
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
