"""How the base stands in the world: gravity seen from the base frame, an argument of every computation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise import spatial
from jointwise.description.table import parse_number
from jointwise.errors import DescriptionError, nearest
from jointwise.spatial import Array

STANDARD_GRAVITY = 9.81
"""Magnitude used by the named mountings, m/s²."""

_NAMED = {"table": (0.0, 0.0, -1.0), "ceiling": (0.0, 0.0, 1.0), "wall": (0.0, 1.0, 0.0)}

Mounting = str | Sequence[float] | Array


def gravity_vector(mounting: Mounting = "table") -> Array:
    """Return gravity in the base frame, m/s², shape (3,).

    `mounting` is a vector, or ``table`` (base z up), ``ceiling``, ``wall`` (gravity along the base's +y), or
    ``tilt:AXIS:ANGLE``: gravity turned by ANGLE about the base axis x, y or z, in degrees (``tilt:x:45`` is
    ``[0, 6.937, -6.937]``) or as an expression of pi (``tilt:x:pi/4``).
    """
    if not isinstance(mounting, str):
        return _checked_vector(mounting)
    name = mounting.strip().lower()
    if name in _NAMED:
        return STANDARD_GRAVITY * np.array(_NAMED[name])
    if name.startswith("tilt:"):
        return _tilted(name)
    raise DescriptionError(
        f"unknown mounting '{mounting}'. {nearest(name, [*_NAMED, 'tilt:x:45'])} Or give a gravity vector."
    )


def _tilted(name: str) -> Array:
    parts = name.split(":")
    if len(parts) != 3 or parts[1] not in ("x", "y", "z"):
        raise DescriptionError(f"mounting must read tilt:AXIS:ANGLE, as in tilt:x:45. Got '{name}' instead.")
    try:
        angle = parse_number(parts[2])
    except ValueError as problem:
        raise DescriptionError(f"mounting '{name}': the angle {problem}.") from None
    if "pi" not in parts[2]:
        angle = np.deg2rad(angle)
    if not abs(angle) <= 2.0 * np.pi:
        raise DescriptionError(f"mounting '{name}': the angle must be at most one turn.")
    axis = np.eye(3)["xyz".index(parts[1])]
    direction: Array = spatial.rotation_axis_angle(axis, angle) @ np.array([0.0, 0.0, -1.0])
    return STANDARD_GRAVITY * direction


def _checked_vector(values: Sequence[float] | Array) -> Array:
    vector = np.asarray(values, dtype=float)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise DescriptionError(f"gravity must be three finite numbers in m/s^2. Got {vector.tolist()} instead.")
    return vector
