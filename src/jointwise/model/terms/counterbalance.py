"""A spring between the links of a joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class Spring(Term):
    """``τ = K q + K_3 q³``: a spring between the links of a joint, such as a counterbalance; its preload is the offset.

    Attributes:
        cubic: Whether the spring stiffens (K_3).

    """

    cubic: bool = False

    kind = "spring"
    role = "spring"

    def parameters(self) -> tuple[Parameter, ...]:
        """Return K, and K_3 of a cubic spring."""
        return (Parameter("K", "Nm/rad"), *((Parameter("K3", "Nm/rad^3"),) if self.cubic else ()))

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return q, and q³ of a cubic spring."""
        return np.column_stack([joint.q, joint.q**3] if self.cubic else [joint.q]), None

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `spring` of the core."""
        return (CoreTerm("spring", tuple(values)),)
