"""Drive of a joint as a controller models it: rotor, spring, friction and motor, at the joint side."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jointwise.arguments import checked_fields
from jointwise.errors import ModelError
from jointwise.model.spring import Rigid, Spring
from jointwise.spatial import Array


@checked_fields
@dataclass(frozen=True)
class JointDrive:
    """One drive: ``B θ̈ + τ_J(φ) + D φ̇ + F_V ω + F_C(sgn ω) = τ_m``, all at the joint side (after the gear).

    Attributes:
        inertia: B, kg m².
        spring: τ_J(φ); None where rotor and link move as one (`Rigid` is taken as None).
        damping: D, Nm s/rad.
        viscous: F_V, Nm s/rad.
        forward: Dry friction of forward motion, >= 0, Nm.
        backward: Dry friction of backward motion, >= 0, Nm.
        limit: Greatest torque of the motor, Nm; inf for none.
        lag: Time constant of the current loop, s.
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
        """Reject values outside their range."""
        if isinstance(self.spring, Rigid):
            object.__setattr__(self, "spring", None)
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
