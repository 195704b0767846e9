"""The spring of a gear: transmitted torque over its deformation φ, for plant, identification and controllers alike."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.arguments import checked_fields
from jointwise.errors import ModelError
from jointwise.spatial import Array

NEWTON_STEPS = 100
NEWTON_TOLERANCE = 1e-13
"""Last step over deformation: some rounding errors of a torque. Newton's error is its square."""


class Spring(ABC):
    """``τ_J(φ) = -τ_J(-φ)``: torque (Nm) over deformation φ (rad), of any shape."""

    @abstractmethod
    def torque(self, phi: Array) -> Array:
        """Return τ_J in Nm."""

    @abstractmethod
    def stiffness(self, phi: Array) -> Array:
        """Return ``k = dτ_J/dφ`` in Nm/rad."""

    @abstractmethod
    def curvature(self, phi: Array) -> Array:
        """Return dk/dφ in Nm/rad²."""

    @abstractmethod
    def energy(self, phi: Array) -> Array:
        """Return the energy stored, ``∫ τ_J dφ`` from 0, in J."""

    def deformation(self, torque: Array) -> Array:
        """Return φ (rad) with ``τ_J(φ) = torque`` (Nm), of any shape, by Newton's method from the line through zero.

        It converges for springs that stiffen or soften throughout while they grow; else a `ModelError` is raised.
        """
        size = np.abs(np.asarray(torque, dtype=np.float64))
        phi = size / self.stiffness(np.zeros(()))
        for _ in range(NEWTON_STEPS):
            step = (self.torque(phi) - size) / self.stiffness(phi)
            phi = np.maximum(phi - step, 0.0)
            if np.all(np.abs(step) <= NEWTON_TOLERANCE * phi):
                result: Array = np.copysign(phi, torque)
                return result
        raise ModelError(f"spring: no deformation was found for torques up to {size.max():.4g} Nm: does {self} grow?")


@dataclass(frozen=True)
class Rigid(Spring):
    """No spring: rotor and link move as one, and the rotor's inertia is the link's.

    Kinematic error and lost motion have no effect.
    """

    def torque(self, phi: Array) -> Array:
        """Raise a `ModelError`: the torque of a rigid joint is that of the motion."""
        raise ModelError("a rigid joint has no torque over deformation: take that of the inverse dynamics.")

    def stiffness(self, phi: Array) -> Array:
        """Return infinity."""
        return np.full(np.shape(phi), np.inf)

    def curvature(self, phi: Array) -> Array:
        """Return 0."""
        return np.zeros(np.shape(phi))

    def energy(self, phi: Array) -> Array:
        """Return 0: nothing bends."""
        return np.zeros(np.shape(phi))

    def deformation(self, torque: Array) -> Array:
        """Return 0 under every torque."""
        return np.zeros(np.shape(torque))


class Polynomial(Spring):
    """``τ_J = Σ_p a_p φ^(2p-1)``, p from 1 on."""

    @property
    @abstractmethod
    def terms(self) -> tuple[float, ...]:
        """The coefficients a_p, Nm/rad^(2p-1)."""

    def torque(self, phi: Array) -> Array:
        """Return τ_J in Nm."""
        return phi * even_polynomial(phi, self.terms)

    def stiffness(self, phi: Array) -> Array:
        """Return ``Σ (2p-1) a_p φ^(2p-2)`` in Nm/rad."""
        return even_polynomial(phi, [(2 * p + 1) * a for p, a in enumerate(self.terms)])

    def curvature(self, phi: Array) -> Array:
        """Return ``Σ (2p-1) (2p-2) a_p φ^(2p-3)`` in Nm/rad², p from 2 on."""
        return phi * even_polynomial(phi, [(2 * p + 1) * 2 * p * a for p, a in enumerate(self.terms)][1:])

    def energy(self, phi: Array) -> Array:
        """Return ``Σ a_p φ^(2p) / 2p`` in J."""
        result: Array = np.square(phi) * even_polynomial(phi, [a / (2 * p + 2) for p, a in enumerate(self.terms)])
        return result


@checked_fields
@dataclass(frozen=True)
class OddPolynomial(Polynomial):
    """``τ_J = Σ_p a_p φ^(2p-1)``.

    Attributes:
        coefficients: a_p, Nm/rad^(2p-1); a_1 > 0, the others may have either sign.
    """

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check that the stiffness at zero is positive."""
        if not (self.coefficients and self.coefficients[0] > 0.0 and all(map(math.isfinite, self.coefficients))):
            raise ModelError(f"stiffness: coefficients must be finite, a_1 > 0. Got {self.coefficients} instead.")

    @property
    def terms(self) -> tuple[float, ...]:
        """The coefficients a_p, Nm/rad^(2p-1)."""
        return self.coefficients


@checked_fields
@dataclass(frozen=True)
class Cubic(Polynomial):
    """``τ_J = a_1 φ + a_2 φ³``.

    Attributes:
        linear: a_1 > 0, Nm/rad.
        cubic: a_2 >= 0, Nm/rad³.
    """

    linear: float
    cubic: float = 0.0

    def __post_init__(self) -> None:
        """Check that the stiffness is positive at every deformation."""
        if not (math.isfinite(self.linear) and self.linear > 0.0):
            raise ModelError(f"stiffness: linear must be finite and > 0 Nm/rad. Got {self.linear} instead.")
        if not (math.isfinite(self.cubic) and self.cubic >= 0.0):
            raise ModelError(f"stiffness: cubic must be finite and >= 0 Nm/rad³. Got {self.cubic} instead.")

    @property
    def terms(self) -> tuple[float, ...]:
        """The coefficients a_1 and a_2, Nm/rad and Nm/rad³."""
        return self.linear, self.cubic


@checked_fields
@dataclass(frozen=True)
class Segments(Spring):
    """A catalogue's three lines with knees, odd in φ.

    Attributes:
        K1: Stiffness up to T1, Nm/rad.
        K2: Stiffness between T1 and T2, Nm/rad, at least K1.
        K3: Stiffness from T2 on, Nm/rad, at least K2.
        T1: Torque of the first knee, Nm.
        T2: Torque of the second knee, Nm, above T1.
    """

    K1: float
    K2: float
    K3: float
    T1: float
    T2: float

    def __post_init__(self) -> None:
        """Check that the gear stiffens."""
        if not (0.0 < self.K1 <= self.K2 <= self.K3 < math.inf and 0.0 < self.T1 < self.T2 < math.inf):
            raise ModelError(f"stiffness: segments need 0 < K1 <= K2 <= K3 and 0 < T1 < T2. Got {self} instead.")

    @property
    def knees(self) -> tuple[float, float]:
        """Deformations φ_1, φ_2 (rad) at which the stiffness changes."""
        first = self.T1 / self.K1
        return first, first + (self.T2 - self.T1) / self.K2

    @property
    def rises(self) -> Array:
        """Stiffness that every line adds, Nm/rad, (3,)."""
        return np.diff([0.0, self.K1, self.K2, self.K3])

    def torque(self, phi: Array) -> Array:
        """Return τ_J in Nm."""
        result: Array = hinges(phi, self.knees) @ self.rises
        return result

    def stiffness(self, phi: Array) -> Array:
        """Return K1, K2 or K3 in Nm/rad; at a knee, that of the softer line, which ends there."""
        return segment_slopes(phi, self.knees, (self.K1, self.K2, self.K3))

    def curvature(self, phi: Array) -> Array:
        """Return 0: lines are straight; at the knees the stiffness jumps."""
        return np.zeros(np.shape(phi))

    def energy(self, phi: Array) -> Array:
        """Return ``½ Σ ΔK (|φ| - knee)⁺²`` in J."""
        result: Array = 0.5 * np.square(hinges(phi, self.knees)) @ self.rises
        return result


def can_pack(spring: Spring | None) -> bool:
    """Return whether the native kernels have a spring: all but polynomials of a degree above 3."""
    return not isinstance(spring, OddPolynomial) or len(spring.terms) <= 2


def packed_spring(spring: Spring | None) -> tuple[float, ...]:
    """Return a spring as the native kernels take it: K1, K2, K3, φ_1, φ_2 and the cubic coefficient.

    All are zero for a rigid joint (None).

    Raises:
        ModelError: The native kernels do not have this spring.
    """
    if spring is None or isinstance(spring, Rigid):
        return 0.0, 0.0, 0.0, math.inf, math.inf, 0.0
    if isinstance(spring, Segments):
        return spring.K1, spring.K2, spring.K3, *spring.knees, 0.0
    if isinstance(spring, Polynomial) and can_pack(spring):
        linear, cubic = (*spring.terms, 0.0)[:2]
        return linear, linear, linear, math.inf, math.inf, cubic
    raise ModelError(f"a spring has up to three segments or a cubic in the native kernels. Got {spring} instead.")


def even_polynomial(x: Array, coefficients: Sequence[float] | Array) -> Array:
    """Return ``Σ_p c_p x^(2p)``, p from 0 on, by Horner's rule."""
    square = np.square(x)
    result: Array = np.zeros_like(square)
    for c in coefficients[::-1]:
        result = result * square + c
    return result


def hinges(phi: Array, knees: Sequence[float]) -> Array:
    """Return sgn φ times |φ|, (|φ| - φ_1)⁺, (|φ| - φ_2)⁺, shape (..., 3)."""
    size = np.abs(phi)
    result: Array = np.sign(phi)[..., None] * np.maximum(size[..., None] - np.array([0.0, *knees]), 0.0)
    return result


def segment_slopes(phi: Array, knees: Sequence[float], slopes: Sequence[float] | Array) -> Array:
    """Return the slope of the line that φ lies on, of the shape of φ; a line ends with its knee."""
    result: Array = np.asarray(slopes, dtype=np.float64)[np.searchsorted(knees, np.abs(phi), side="left")]
    return result
