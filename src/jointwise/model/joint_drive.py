"""What a controller knows of a joint's drive: rotor, spring, friction, motor. Plain numbers, at the joint side."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.spatial import Array


@dataclass(frozen=True)
class Spring:
    """Transmitted torque over deformation φ = θ - q: linear segments and a cubic term, odd in φ.

    `slopes` (Nm/rad) are the stiffnesses of the segments, `knees` (rad) the deformations between them, one fewer;
    `cubic` (Nm/rad³) adds a φ³. ``Spring((k,))`` is linear. Stiffness is positive everywhere.
    """

    slopes: tuple[float, ...]
    knees: tuple[float, ...] = ()
    cubic: float = 0.0

    def __post_init__(self) -> None:
        """Refuse springs that do not grow."""
        if len(self.slopes) != len(self.knees) + 1:
            raise ModelError(f"spring: knees must be one fewer than slopes. Got {len(self.knees)}, {len(self.slopes)}.")
        if not all(math.isfinite(k) and k > 0.0 for k in self.slopes) or not self.cubic >= 0.0:
            raise ModelError(f"spring: slopes must be finite and > 0, cubic >= 0. Got {self} instead.")
        if list(self.knees) != sorted(set(self.knees)) or (self.knees and self.knees[0] <= 0.0):
            raise ModelError(f"spring: knees must be > 0 and grow. Got {self.knees} instead.")

    @classmethod
    def catalogue(cls, K: tuple[float, float, float], T1: float, T2: float) -> Spring:
        """Return a catalogue's three segments: stiffnesses K1, K2, K3 (Nm/rad) with knees at torques T1, T2 (Nm)."""
        first = T1 / K[0]
        return cls(K, (first, first + (T2 - T1) / K[1]))

    def torque(self, phi: Array) -> Array:
        """Return τ_J(φ) in Nm, of the shape of φ (rad)."""
        size = np.abs(phi)
        result = self.slopes[0] * size + self.cubic * size**3
        for below, above, knee in zip(self.slopes, self.slopes[1:], self.knees, strict=False):
            result = result + (above - below) * np.maximum(size - knee, 0.0)
        return np.sign(phi) * result

    def stiffness(self, phi: Array) -> Array:
        """Return k(φ) = dτ_J/dφ in Nm/rad."""
        size = np.abs(phi)
        segment = np.searchsorted(self.knees, size, side="left")
        result: Array = np.asarray(self.slopes)[segment] + 3.0 * self.cubic * size**2
        return result

    def deformation(self, torque: Array) -> Array:
        """Return φ (rad) with τ_J(φ) = torque (Nm): τ_J grows, so Newton's method within its segment converges."""
        size = np.abs(np.asarray(torque, dtype=float))
        phi = size / self.slopes[0]
        for _ in range(100):
            step = (self.torque(phi) - size) / self.stiffness(phi)
            phi = np.maximum(phi - step, 0.0)
            if np.all(np.abs(step) <= 1e-15 * phi + 1e-18):
                break
        result: Array = np.copysign(phi, torque)
        return result


@dataclass(frozen=True)
class JointDrive:
    """One drive: ``B θ̈ + τ_J(φ) + D φ̇ + F_V ω + F_C(sgn ω) = τ_m``, all at the joint side (after the gear).

    `inertia` B (kg m²); `spring`, None where rotor and link move as one; `damping` D (Nm s/rad); `viscous` F_V
    (Nm s/rad); dry friction `forward` and `backward`, both >= 0 (Nm); `limit` of the motor's torque (Nm, inf: none);
    `lag` of its current loop (s).
    """

    inertia: float = 0.0
    spring: Spring | None = None
    damping: float = 0.0
    viscous: float = 0.0
    forward: float = 0.0
    backward: float = 0.0
    limit: float = math.inf
    lag: float = 0.0

    def __post_init__(self) -> None:
        """Refuse numbers that are no drive."""
        for name in ("inertia", "damping", "viscous", "forward", "backward", "lag"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise ModelError(f"drive: {name} must be finite and >= 0. Got {value} instead.")
        if self.spring is not None and self.inertia == 0.0:
            raise ModelError("drive: an elastic joint needs the inertia of its rotor. Got 0 instead.")
        if not self.limit > 0.0:
            raise ModelError(f"drive: limit must be > 0 Nm. Got {self.limit} instead.")

    def friction(self, speed: Array) -> Array:
        """Return steady friction (Nm) at rotor speeds ω (rad/s), of their shape; 0 dry friction at standstill."""
        dry = self.forward * (speed > 0.0) - self.backward * (speed < 0.0)
        result: Array = self.viscous * speed + dry
        return result
