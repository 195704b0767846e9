"""The extra friction of slow motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class Stribeck(Term):
    """``τ = F_S tanh(v / width) exp(-(|v| / velocity)^exponent)``: what is above Coulomb friction near standstill."""

    velocity: float = 0.1
    exponent: float = 1.0
    width: float = 0.01

    kind = "stribeck"

    def __post_init__(self) -> None:
        """Refuse shapes that are not positive."""
        if not (self.velocity > 0.0 and self.exponent > 0.0 and self.width > 0.0):
            raise ValueError("velocity, exponent and width must be positive")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_S."""
        return (Parameter("FS", "Nm", non_negative=True),)

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the decaying direction function."""
        decay = np.exp(-((np.abs(joint.qd) / self.velocity) ** self.exponent))
        return (np.tanh(joint.qd / self.width) * decay)[:, None], None
