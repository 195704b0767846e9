"""Viscous friction: a polynomial of the speed, odd in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise.spatial import Array


def viscous_columns(speed: Array, powers: Sequence[float], largest_speed: float = 0.0) -> Array:
    """Return ``sgn(ω) |ω|^p`` for every power p: ω^p for odd p, |ω| ω^(p-1) for even p, a root for p = 0.5.

    Polynomials do not extrapolate: above `largest_speed` V every column continues along its tangent,
    ``V^p + p V^(p-1) (|ω| - V)``.

    Args:
        speed: Joint speeds ω (samples,), rad/s.
        powers: Positive powers p.
        largest_speed: Largest speed V of the data that determined the coefficients, rad/s; 0 for no limit.

    Returns:
        Columns (samples, powers).

    """
    size, sign = np.abs(speed), np.sign(speed)
    inside = np.minimum(size, largest_speed) if largest_speed > 0.0 else size
    columns = [sign * inside**p for p in powers]
    if largest_speed > 0.0 and (size > largest_speed).any():
        above = sign * (size - inside)
        columns = [c + p * largest_speed ** (p - 1.0) * above for c, p in zip(columns, powers, strict=True)]
    return np.column_stack(columns)


def viscous_factor(speed: Array, coefficients: Sequence[float]) -> Array:
    """Return ``F_V1 + F_V2 |ω| + F_V3 ω² + ...``: viscous friction per speed, Nm s/rad, of the shape of `speed`."""
    size = np.abs(speed)
    result: Array = np.zeros_like(size)
    for coefficient in reversed(coefficients):
        result = result * size + coefficient
    return result


def viscous_torque(speed: Array, coefficients: Sequence[float]) -> Array:
    """Return ``F_V1 ω + F_V2 |ω| ω + F_V3 ω³ + ...``, Nm, of the shape of `speed` (rad/s).

    Args:
        speed: Joint speeds ω of any shape, rad/s.
        coefficients: F_Vi in Nm (s/rad)^i, i from 1 on.

    """
    result: Array = viscous_factor(speed, coefficients) * speed
    return result
