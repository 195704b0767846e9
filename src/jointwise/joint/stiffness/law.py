"""Springs of a gear: the identified law within its range, and the families of springs that are fitted.

References:
    Tuttle, Seering: A nonlinear model of a harmonic drive gear transmission, IEEE Trans. Robotics and Automation 12(3),
    1996 (cubic spring).
    Spong: Modeling and control of elastic joint robots, ASME J. Dynamic Systems, Measurement, and Control 109(4), 1987.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointwise.joint.part import Part
from jointwise.model.spring import OddPolynomial, Segments, Spring, even_polynomial, hinges, segment_slopes
from jointwise.spatial import Array

CATALOGUE: dict[str, Segments] = {
    "HFUS-14": Segments(4.7e3, 6.1e3, 7.1e3, 2.0, 6.9),
    "HFUS-20": Segments(16e3, 25e3, 29e3, 7.0, 25.0),
}
"""Strain-wave gears with a ratio of at least 80: K1, K2, K3 (Nm/rad), T1, T2 (Nm) of the manufacturer's catalogue, rows
in stiffening order."""


@dataclass(frozen=True)
class StiffnessLaw(Spring):
    """An identified spring with its range of deformation.

    Beyond the range the last stiffness continues: ``τ(φ) = τ(±φ_max) + k(φ_max) (φ ∓ φ_max)``.

    Attributes:
        spring: Spring within the range.
        largest: φ_max, rad.
        damping: Damping D of the gear, Nm s/rad; 0 where it was not determined.
        uncertainty: Half-width of the 95 % confidence interval of the identified k(0), relative to it.

    """

    spring: Spring
    largest: float
    damping: float = 0.0
    uncertainty: float = 0.0

    def torque(self, phi: Array) -> Array:
        """Return τ_J in Nm for deformations (any shape), rad."""
        inside, beyond = self._split(phi)
        return self.spring.torque(inside) + self.spring.stiffness(inside) * beyond

    def damped_torque(self, phi: Array, rate: Array) -> Array:
        """Return ``τ_J = spring(φ) + D φ̇`` in Nm for deformations (rad) and their rates (rad/s), any shape."""
        return self.torque(phi) + self.damping * rate

    def stiffness(self, phi: Array) -> Array:
        """Return dτ_J/dφ in Nm/rad, constant beyond the range."""
        return self.spring.stiffness(self._split(phi)[0])

    def curvature(self, phi: Array) -> Array:
        """Return dk/dφ in Nm/rad², 0 beyond the range."""
        inside, beyond = self._split(phi)
        return np.where(beyond == 0.0, self.spring.curvature(inside), 0.0)

    def energy(self, phi: Array) -> Array:
        """Return the stored energy in J: ``E(±φ_max) + (τ(±φ_max) + ½ k Δφ) Δφ`` beyond the range."""
        inside, beyond = self._split(phi)
        mean = self.spring.torque(inside) + 0.5 * self.spring.stiffness(inside) * beyond
        return self.spring.energy(inside) + mean * beyond

    def _split(self, phi: Array) -> tuple[Array, Array]:
        """Return φ clamped to the range and the excess, rad."""
        inside = np.clip(phi, -self.largest, self.largest)
        return inside, phi - inside


@dataclass(frozen=True)
class StiffnessSettings:
    """Settings of a stiffness part.

    Attributes:
        kind: "polynomial" or "segments".
        coefficients: a_1, a_3, ... of a polynomial, Nm/rad^(2p-1).
        data: Output of the experiment, "locked" or "free".
        offset: Offset of the encoders, rad.
    """

    kind: Literal["polynomial", "segments"]
    coefficients: tuple[float, ...] = ()
    data: str = ""
    offset: float = 0.0


def stiffness_of(part: Part) -> StiffnessLaw:
    """Return the spring of a part from `identify_stiffness`."""
    settings, largest = part.settings_as("stiffness", StiffnessSettings), max(map(abs, part.ranges["phi"]))
    damping = max(part.get("damping"), 0.0)
    if settings.kind == "segments":
        segments = Segments(*(part[name] for name in ("K1", "K2", "K3", "T1", "T2")))
        return StiffnessLaw(segments, largest, damping, _relative_half_width(part, "K1"))
    return StiffnessLaw(OddPolynomial(settings.coefficients), largest, damping, _relative_half_width(part, "a_1"))


def _relative_half_width(part: Part, name: str) -> float:
    """Return the half-width of the 95 % confidence interval of a parameter, relative to its size; infinite for 0."""
    value = part.value(name)
    return 0.5 * (value.high - value.low) / abs(value.value) if value.value else math.inf


# -- families of springs with free parameters, in units of the largest deformation --

KNEE_STARTS = ((0.15, 0.4), (0.3, 0.7), (0.5, 0.8), (0.1, 0.6))
"""Starts of the two knees of segments, as fractions of the largest deformation."""
KNEE_BOUNDS = (0.03, 0.9)
"""Bounds of the first knee and of the distance to the second: each segment must contain data."""
KNEE_RISE = 0.1
"""Start of the change of slope at a knee, as a fraction of the mean slope."""


@dataclass(frozen=True)
class PolynomialSpring:
    """``Σ_p c_p u^(2p-1)`` with ``u = φ / φ_max``: parameters c_p in Nm."""

    terms: int

    @property
    def title(self) -> str:
        """Name of the law."""
        return {1: "linear", 2: "cubic"}.get(self.terms, f"odd polynomial of degree {2 * self.terms - 1}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters: a_1, a_3, ..."""
        return tuple(f"a_{2 * p + 1}" for p in range(self.terms))

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the parameters."""
        return ("Nm/rad", *(f"Nm/rad^{2 * p + 1}" for p in range(1, self.terms)))

    def starts(self, slope: float) -> list[Array]:
        """Return starts of the parameters for a slope in Nm per φ_max."""
        return [np.append(slope, np.zeros(self.terms - 1))]

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Bounds of the parameters: none."""
        return np.full(self.terms, -np.inf), np.full(self.terms, np.inf)

    def torque(self, values: Array, u: Array) -> Array:
        """Return τ_J in Nm."""
        return u * even_polynomial(u, values)

    def slope(self, values: Array, u: Array) -> Array:
        """Return dτ_J/du in Nm."""
        return even_polynomial(u, (2 * np.arange(self.terms) + 1) * values)

    def physical(self, values: Array, largest: float) -> Array:
        """Return the parameters in SI units for φ_max in rad."""
        return values / largest ** (2 * np.arange(self.terms) + 1)


@dataclass(frozen=True)
class SegmentedSpring:
    """Three lines over ``u = φ / φ_max``: slopes K_1, K_2 - K_1, K_3 - K_2 (Nm), knees u_1 and u_2 - u_1.

    Attributes:
        title: Name of the law.
        names: Names of its parameters in SI units.
        units: Units of these.
    """

    title: str = "segments, fitted"
    names: tuple[str, ...] = ("K1", "K2", "K3", "T1", "T2")
    units: tuple[str, ...] = ("Nm/rad", "Nm/rad", "Nm/rad", "Nm", "Nm")

    def starts(self, slope: float) -> list[Array]:
        """Return starts of the parameters that stiffen at each knee."""
        rise = KNEE_RISE * slope
        return [np.array([slope - rise, rise, rise, a, b - a]) for a, b in KNEE_STARTS]

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Bounds: a gear stiffens, and its knees lie within the data."""
        low, high = KNEE_BOUNDS
        return np.array([0.0, 0.0, 0.0, low, low]), np.array([np.inf, np.inf, np.inf, high, high])

    def torque(self, values: Array, u: Array) -> Array:
        """Return τ_J in Nm."""
        slopes, knees = self._split(values)
        return hinges(u, knees) @ slopes

    def slope(self, values: Array, u: Array) -> Array:
        """Return dτ_J/du in Nm."""
        slopes, knees = self._split(values)
        return segment_slopes(u, knees, np.cumsum(slopes))

    def physical(self, values: Array, largest: float) -> Array:
        """Return the parameters in SI units for φ_max in rad; ``T_1 = K_1 φ_1``, ``T_2 = T_1 + K_2 (φ_2 - φ_1)``."""
        changes, _ = self._split(values)
        slopes = np.cumsum(changes)
        return np.concatenate([slopes / largest, np.cumsum(slopes[:2] * values[len(changes) :])])

    def _split(self, values: Array) -> tuple[Array, list[float]]:
        """Return the changes of slope and the knees."""
        return values[:-2], np.cumsum(values[-2:]).tolist()


SpringFamily = PolynomialSpring | SegmentedSpring
