"""Viscous friction: friction that grows with the speed, a sum of powers of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
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


@dataclass(frozen=True)
class Viscous(Term):
    """``τ = Σ F_p sgn(v) |v|^p`` over positive powers p, continued along the tangent above the speed `known`.

    For integer powers this is v^p (odd) and |v| v^(p-1) (even); 0.5 is the square root that lubricants show. `known`
    (rad/s, 0 for no limit) is the largest speed of the training data, since polynomials do not extrapolate.
    """

    powers: tuple[float, ...] = (1.0,)
    known: float = 0.0

    kind = "viscous"
    role = "viscous"

    def __post_init__(self) -> None:
        """Check the settings."""
        if not self.powers or not all(np.isfinite(p) and 0.0 < p <= 9.0 for p in self.powers):
            raise ValueError(f"powers must be positive numbers up to 9. Got {self.powers} instead")
        if len(set(self.powers)) != len(self.powers):
            raise ValueError(f"powers must differ from each other. Got {self.powers} instead")
        if not self.known >= 0.0:
            raise ValueError(f"known must be a speed in rad/s, or 0. Got {self.known} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return one coefficient per power; up to the first power friction cannot drive the motion."""
        return tuple(
            Parameter(f"Fv{p:g}", "Nm s/rad" if p == 1 else f"Nm (s/rad)^{p:g}", non_negative=p <= 1.0)
            for p in self.powers
        )

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return sgn(v) |v|^p."""
        return viscous_columns(joint.qd, self.powers, self.known), None

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `viscous` of the core."""
        return (CoreTerm("viscous", (self.known,), count=len(values), elements=(*self.powers, *values)),)
