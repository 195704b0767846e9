"""Friction that grows with speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class Viscous(Term):
    """``τ = Σ F_p sgn(v) |v|^p`` over positive powers p.

    For whole powers this is v^p (odd) and |v| v^(p-1) (even); 0.5 is the square root that lubricants show.
    """

    powers: tuple[float, ...] = (1.0,)

    kind = "viscous"

    def __post_init__(self) -> None:
        """Refuse powers that are not positive."""
        if not self.powers or not all(np.isfinite(p) and 0.0 < p <= 9.0 for p in self.powers):
            raise ValueError(f"powers must be positive numbers up to 9. Got {self.powers} instead")
        if len(set(self.powers)) != len(self.powers):
            raise ValueError(f"powers must differ from each other. Got {self.powers} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return one coefficient a power."""
        return tuple(Parameter(f"Fv{p:g}", "Nm s/rad" if p == 1 else f"Nm (s/rad)^{p:g}") for p in self.powers)

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return sgn(v) |v|^p."""
        size, sign = np.abs(joint.qd), np.sign(joint.qd)
        return np.column_stack([sign * size**p for p in self.powers]), None
