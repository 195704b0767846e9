"""What the drive adds by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class SpeedRipple(Term):
    """``τ = Σ_k c_k u(t + k step)``, k = -1, 0, 1: the drive's answer to fast ripple u of the measured speed.

    u is the measured speed above the bandwidth of the model's motion: the speed loop and the rotor's own inertia act on
    it, the links do not. A planned motion has no ripple, so the term adds nothing to a feed-forward. `known` (rad/s, 0
    for no limit) is the greatest ripple of the training data: beyond it u is cut off, as glitches are.
    """

    step: float
    known: float = 0.0

    kind = "speed_ripple"

    def __post_init__(self) -> None:
        """Refuse a step that is not positive."""
        if not self.step > 0.0:
            raise ValueError(f"step must be a positive time in s. Got {self.step} instead")
        if not self.known >= 0.0:
            raise ValueError(f"known must be a speed in rad/s, or 0. Got {self.known} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the three coefficients."""
        return tuple(Parameter(f"ripple{k:+d}", "Nm s/rad") for k in (-1, 0, 1))

    def uses_speed(self) -> bool:
        """Tell that it needs a measured speed."""
        return True

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return u one step earlier, now and one step later, the ends held."""
        if joint.ripple is None:
            raise ValueError("speed_ripple needs a measured speed")
        ripple = np.clip(joint.ripple, -self.known, self.known) if self.known > 0.0 else joint.ripple
        place = np.arange(len(ripple), dtype=float)
        shifts = [k * self.step * joint.rate for k in (-1, 0, 1)]
        return np.column_stack([np.interp(place + shift, place, ripple) for shift in shifts]), None
