"""Springs of a gear: torque and stiffness over deformation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.joint.part import Part
from jointwise.spatial import Array


@dataclass(frozen=True)
class OddPolynomial:
    """``τ_J(φ) = Σ_p a_p φ^(2p-1)``: `coefficients` a_p in Nm/rad^(2p-1)."""

    coefficients: tuple[float, ...]

    def torque(self, phi: Array) -> Array:
        """Return τ_J in Nm for deformations of any shape, rad."""
        return phi * even_polynomial(phi, self.coefficients)

    def stiffness(self, phi: Array) -> Array:
        """Return k = dτ_J/dφ in Nm/rad."""
        return even_polynomial(phi, tuple((2 * p + 1) * a for p, a in enumerate(self.coefficients)))


@dataclass(frozen=True)
class Segments:
    """A catalogue's three lines: K1 <= K2 <= K3 (Nm/rad) with knees at the torques T1 < T2 (Nm); odd in φ."""

    K1: float
    K2: float
    K3: float
    T1: float
    T2: float

    @property
    def knees(self) -> tuple[float, float]:
        """Deformations (rad) at which the stiffness changes."""
        first = self.T1 / self.K1
        return first, first + (self.T2 - self.T1) / self.K2

    @classmethod
    def from_knees(cls, stiffness: tuple[float, float, float], knees: tuple[float, float]) -> Segments:
        """Return the segments of three stiffnesses and the deformations (rad) of the knees."""
        K1, K2, K3 = (float(k) for k in stiffness)
        T1 = K1 * knees[0]
        return cls(K1, K2, K3, T1, T1 + K2 * (knees[1] - knees[0]))

    def torque(self, phi: Array) -> Array:
        """Return τ_J in Nm for deformations of any shape, rad."""
        hinges = segment_columns(np.asarray(phi, dtype=float), self.knees)
        result: Array = hinges @ np.array([self.K1, self.K2 - self.K1, self.K3 - self.K2])
        return result

    def stiffness(self, phi: Array) -> Array:
        """Return k = dτ_J/dφ in Nm/rad."""
        place = np.searchsorted(self.knees, np.abs(phi), side="right")
        result: Array = np.array([self.K1, self.K2, self.K3])[place]
        return result


Spring = OddPolynomial | Segments


def even_polynomial(x: Array, coefficients: Sequence[float] | Array) -> Array:
    """Return ``Σ_p c_p x^(2p)`` by Horner's rule."""
    square = np.square(x)
    result: Array = np.zeros_like(square)
    for c in coefficients[::-1]:
        result = result * square + c
    return result


def segment_columns(phi: Array, knees: tuple[float, float]) -> Array:
    """Return sgn φ times |φ|, (|φ| - φ_1)⁺, (|φ| - φ_2)⁺, shape (..., 3)."""
    size = np.abs(phi)
    parts = [size, np.maximum(size - knees[0], 0.0), np.maximum(size - knees[1], 0.0)]
    result: Array = np.sign(phi)[..., None] * np.stack(parts, axis=-1)
    return result


CATALOGUE: dict[str, Segments] = {
    "HFUS-14": Segments(4.7e3, 6.1e3, 7.1e3, 2.0, 6.9),
    "HFUS-20": Segments(16e3, 25e3, 29e3, 7.0, 25.0),
}
"""Strain-wave gears of ratio 80 and more, as their catalogue gives them (rows in stiffening order)."""


@dataclass(frozen=True)
class StiffnessLaw:
    """An identified spring with the deformation it was seen at; larger ones are clamped to `largest` (rad).

    Beyond the range the last stiffness goes on: ``τ(φ) = τ(±φ_max) + k(φ_max) (φ ∓ φ_max)``.
    """

    spring: Spring
    largest: float

    def torque(self, phi: Array) -> Array:
        """Return τ_J in Nm for deformations (any shape), rad."""
        inside = np.clip(phi, -self.largest, self.largest)
        result: Array = self.spring.torque(inside) + self.stiffness(phi) * (phi - inside)
        return result

    def stiffness(self, phi: Array) -> Array:
        """Return dτ_J/dφ in Nm/rad, held beyond the range."""
        return self.spring.stiffness(np.clip(phi, -self.largest, self.largest))

    def deformation(self, torque: Array) -> Array:
        """Return φ in rad with τ_J(φ) = torque (Nm), by Newton's method."""
        phi = np.asarray(torque, dtype=float) / float(self.spring.stiffness(np.zeros(())))
        for _ in range(50):
            step = (self.torque(phi) - torque) / self.stiffness(phi)
            phi = phi - step
            if np.max(np.abs(step), initial=0.0) <= 1e-14:
                break
        result: Array = phi
        return result


def stiffness_of(part: Part) -> StiffnessLaw:
    """Return the spring that a part of the phenomenon "stiffness" describes."""
    if part.phenomenon != "stiffness":
        raise ModelError(f"a part 'stiffness' is needed. Got '{part.phenomenon}' instead.")
    largest = max(abs(bound) for bound in part.ranges["phi"])
    if part.settings["kind"] == "segments":
        return StiffnessLaw(Segments(*(part[name] for name in ("K1", "K2", "K3", "T1", "T2"))), largest)
    return StiffnessLaw(OddPolynomial(tuple(part.settings["coefficients"])), largest)
