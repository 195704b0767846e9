"""Spring laws as shapes with free numbers, in units of the largest deformation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.spring import even_polynomial, hinges, segment_slopes
from jointwise.spatial import Array

KNEES = ((0.15, 0.4), (0.3, 0.7), (0.5, 0.8), (0.1, 0.6))
"""Starts of the knees of segments, as parts of the largest deformation."""


@dataclass(frozen=True)
class Polynomial:
    """``Σ_p c_p u^(2p-1)`` with u = φ / φ_max: numbers c_p in Nm."""

    terms: int

    @property
    def title(self) -> str:
        """Name of the law."""
        return {1: "linear", 2: "cubic"}.get(self.terms, f"odd polynomial of degree {2 * self.terms - 1}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers: a_1, a_3, ..."""
        return tuple(f"a_{2 * p + 1}" for p in range(self.terms))

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the numbers."""
        return ("Nm/rad", *(f"Nm/rad^{2 * p + 1}" for p in range(1, self.terms)))

    def starts(self, slope: float) -> list[Array]:
        """Return starts of the numbers for a slope in Nm per φ_max."""
        return [np.append(slope, np.zeros(self.terms - 1))]

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Bounds of the numbers: none."""
        return np.full(self.terms, -np.inf), np.full(self.terms, np.inf)

    def torque(self, numbers: Array, u: Array) -> Array:
        """Return τ_J in Nm."""
        return u * even_polynomial(u, numbers)

    def slope(self, numbers: Array, u: Array) -> Array:
        """Return dτ_J/du in Nm."""
        return even_polynomial(u, (2 * np.arange(self.terms) + 1) * numbers)

    def physical(self, numbers: Array, largest: float) -> Array:
        """Return the numbers in SI units for φ_max in rad."""
        result: Array = numbers / largest ** (2 * np.arange(self.terms) + 1)
        return result


@dataclass(frozen=True)
class ThreeSegments:
    """Three lines over u = φ / φ_max: slopes K_1, K_2 - K_1, K_3 - K_2 (Nm), knees u_1 and u_2 - u_1."""

    title: str = "segments, fitted"
    names: tuple[str, ...] = ("K1", "K2", "K3", "T1", "T2")
    units: tuple[str, ...] = ("Nm/rad", "Nm/rad", "Nm/rad", "Nm", "Nm")

    def starts(self, slope: float) -> list[Array]:
        """Return starts of the numbers, stiffening by a fifth at each knee."""
        return [np.array([0.9 * slope, 0.1 * slope, 0.1 * slope, a, b - a]) for a, b in KNEES]

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Bounds: a gear stiffens, and its knees lie within the data."""
        return np.array([0.0, 0.0, 0.0, 0.03, 0.03]), np.array([np.inf, np.inf, np.inf, 0.9, 0.9])

    def torque(self, numbers: Array, u: Array) -> Array:
        """Return τ_J in Nm."""
        result: Array = hinges(u, np.cumsum(numbers[3:]).tolist()) @ numbers[:3]
        return result

    def slope(self, numbers: Array, u: Array) -> Array:
        """Return dτ_J/du in Nm."""
        return segment_slopes(u, np.cumsum(numbers[3:]).tolist(), np.cumsum(numbers[:3]))

    def physical(self, numbers: Array, largest: float) -> Array:
        """Return the numbers in SI units for φ_max in rad; T_1 = K_1 φ_1, T_2 = T_1 + K_2 (φ_2 - φ_1)."""
        slopes = np.cumsum(numbers[:3])
        return np.concatenate([slopes / largest, np.cumsum(slopes[:2] * numbers[3:])])


Family = Polynomial | ThreeSegments


NEWTON_STEPS = 12
WIDEST = 3.0
"""Deformations are sought within this many times the largest one."""


def deformation(family: Family, numbers: Array, torque: Array) -> Array:
    """Return u with τ_J(u) = torque (Nm) by Newton's method; where a law bends back, its least slope goes on."""
    least = 0.1 * max(abs(float(family.slope(numbers, np.zeros(1))[0])), 1e-9)
    u = np.clip(torque / (10.0 * least), -WIDEST, WIDEST)
    for _ in range(NEWTON_STEPS):
        step = (family.torque(numbers, u) - torque) / np.maximum(family.slope(numbers, u), least)
        u = np.clip(u - step, -WIDEST, WIDEST)
        if np.max(np.abs(step)) < 1e-12:
            break
    return u
