"""Springs between rotor and link: torque over deformation φ = θ - e(θ) - d(θ) P - q."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.simulation.robot.checks import check_range
from jointwise.spatial import Array


@dataclass(frozen=True)
class Rigid:
    """No spring: rotor and link move as one, and the rotor's inertia is the link's.

    Kinematic error and lost motion have no effect.
    """


@dataclass(frozen=True)
class Cubic:
    """``τ_J = a_1 φ + a_2 φ³``: `linear` a_1 > 0 (Nm/rad), `cubic` a_2 >= 0 (Nm/rad³)."""

    linear: float
    cubic: float = 0.0

    def __post_init__(self) -> None:
        """Refuse springs that push the wrong way."""
        check_range("stiffness", 0.0, above=True, linear=self.linear)
        check_range("stiffness", 0.0, cubic=self.cubic)


@dataclass(frozen=True)
class Segments:
    """A catalogue's three linear segments: K1 <= K2 <= K3 (Nm/rad), knees at torques T1 < T2 (Nm); odd in φ."""

    K1: float
    K2: float
    K3: float
    T1: float
    T2: float

    def __post_init__(self) -> None:
        """Refuse rows in the reverse order: a gear stiffens."""
        check_range("stiffness", 0.0, above=True, K1=self.K1, T1=self.T1)
        if not (self.K1 <= self.K2 <= self.K3 < math.inf and self.T1 < self.T2 < math.inf):
            raise ModelError(f"stiffness: segments need K1 <= K2 <= K3 and T1 < T2. Got {self} instead.")

    @property
    def knees(self) -> tuple[float, float]:
        """Deformations φ_1, φ_2 (rad) at which the stiffness changes."""
        first = self.T1 / self.K1
        return first, first + (self.T2 - self.T1) / self.K2


Elasticity = Cubic | Segments | Rigid


def spring_numbers(spring: Elasticity) -> tuple[float, float, float, float, float, float]:
    """Return K1, K2, K3, φ_1, φ_2 and the cubic coefficient; zeros without a spring."""
    if isinstance(spring, Rigid):
        return 0.0, 0.0, 0.0, math.inf, math.inf, 0.0
    if isinstance(spring, Cubic):
        return spring.linear, spring.linear, spring.linear, math.inf, math.inf, spring.cubic
    return spring.K1, spring.K2, spring.K3, *spring.knees, 0.0


def spring_torque(spring: Elasticity, phi: Array) -> Array:
    """Return τ_J(φ) in Nm for deformations of any shape (rad)."""
    K1, K2, K3, phi1, phi2, cubic = spring_numbers(spring)
    size = np.abs(phi)
    linear = K1 * size + (K2 - K1) * np.maximum(size - phi1, 0.0) + (K3 - K2) * np.maximum(size - phi2, 0.0)
    result: Array = np.sign(phi) * linear + cubic * phi**3
    return result


def spring_stiffness(spring: Elasticity, torque: float) -> float:
    """Return dτ_J/dφ (Nm/rad) where the spring carries `torque` (Nm)."""
    K1, K2, K3, phi1, phi2, cubic = spring_numbers(spring)
    phi = abs(spring_deformation(spring, torque))
    return (K1 if phi <= phi1 else K2 if phi <= phi2 else K3) + 3.0 * cubic * phi**2


def spring_deformation(spring: Elasticity, torque: float) -> float:
    """Return φ (rad) with τ_J(φ) = torque (Nm); 0 without a spring.

    τ_J grows with φ, so Newton's method converges from the deformation of the softest line, which lies outside.
    """
    if isinstance(spring, Rigid) or torque == 0.0:
        return 0.0
    K1, K2, K3, phi1, phi2, cubic = spring_numbers(spring)
    size = abs(torque) / K1
    for _ in range(100):
        rest = float(spring_torque(spring, np.array(size))) - abs(torque)
        slope = (K1 if size <= phi1 else K2 if size <= phi2 else K3) + 3.0 * cubic * size**2
        size, before = size - rest / slope, size
        if abs(size - before) <= 1e-15 * before:
            break
    return math.copysign(size, torque)
