"""Springs of a gear as they were identified, with the range they were seen in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.joint.part import Part
from jointwise.model.spring import OddPolynomial, Segments, Spring
from jointwise.spatial import Array

CATALOGUE: dict[str, Segments] = {
    "HFUS-14": Segments(4.7e3, 6.1e3, 7.1e3, 2.0, 6.9),
    "HFUS-20": Segments(16e3, 25e3, 29e3, 7.0, 25.0),
}
"""Strain-wave gears of ratio 80 and more, as their catalogue gives them (rows in stiffening order)."""


@dataclass(frozen=True)
class StiffnessLaw(Spring):
    """An identified spring with the deformation it was seen at; larger ones are clamped to `largest` (rad).

    Beyond the range the last stiffness goes on: ``τ(φ) = τ(±φ_max) + k(φ_max) (φ ∓ φ_max)``. `damping` D (Nm s/rad)
    of the gear is 0 where it was not determined.
    """

    spring: Spring
    largest: float
    damping: float = 0.0

    def torque(self, phi: Array) -> Array:
        """Return τ_J in Nm for deformations (any shape), rad."""
        inside, beyond = self._parts(phi)
        result: Array = self.spring.torque(inside) + self.spring.stiffness(inside) * beyond
        return result

    def damped_torque(self, phi: Array, rate: Array) -> Array:
        """Return ``τ_J = spring(φ) + D φ̇`` in Nm for deformations (rad) and their rates (rad/s), any shape."""
        result: Array = self.torque(phi) + self.damping * rate
        return result

    def stiffness(self, phi: Array) -> Array:
        """Return dτ_J/dφ in Nm/rad, held beyond the range."""
        return self.spring.stiffness(self._parts(phi)[0])

    def curvature(self, phi: Array) -> Array:
        """Return dk/dφ in Nm/rad², 0 beyond the range."""
        inside, beyond = self._parts(phi)
        return np.where(beyond == 0.0, self.spring.curvature(inside), 0.0)

    def energy(self, phi: Array) -> Array:
        """Return the energy stored in J: ``E(±φ_max) + (τ(±φ_max) + ½ k Δφ) Δφ`` beyond the range."""
        inside, beyond = self._parts(phi)
        mean = self.spring.torque(inside) + 0.5 * self.spring.stiffness(inside) * beyond
        result: Array = self.spring.energy(inside) + mean * beyond
        return result

    def _parts(self, phi: Array) -> tuple[Array, Array]:
        """Return φ clamped to the range and what lies beyond, rad."""
        inside = np.clip(phi, -self.largest, self.largest)
        return inside, phi - inside


def stiffness_of(part: Part) -> StiffnessLaw:
    """Return the spring that a part of the phenomenon "stiffness" describes."""
    if part.phenomenon != "stiffness":
        raise ModelError(f"a part 'stiffness' is needed. Got '{part.phenomenon}' instead.")
    largest = max(abs(bound) for bound in part.ranges["phi"])
    damping = max(next((value.value for value in part.values if value.name == "damping"), 0.0), 0.0)
    if part.settings["kind"] == "segments":
        return StiffnessLaw(Segments(*(part[name] for name in ("K1", "K2", "K3", "T1", "T2"))), largest, damping)
    return StiffnessLaw(OddPolynomial(tuple(part.settings["coefficients"])), largest, damping)
