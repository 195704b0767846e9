"""Friction that grows with speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class Viscous(Term):
    """``τ = Σ F_p sgn(v) |v|^p`` over positive powers p, continued along the tangent beyond the speed `known`.

    For whole powers this is v^p (odd) and |v| v^(p-1) (even); 0.5 is the square root that lubricants show. `known`
    (rad/s, 0 for no limit) is the greatest speed of the training data: a polynomial is not to be trusted beyond it.
    """

    powers: tuple[float, ...] = (1.0,)
    known: float = 0.0

    kind = "viscous"

    def __post_init__(self) -> None:
        """Refuse powers that are not positive."""
        if not self.powers or not all(np.isfinite(p) and 0.0 < p <= 9.0 for p in self.powers):
            raise ValueError(f"powers must be positive numbers up to 9. Got {self.powers} instead")
        if len(set(self.powers)) != len(self.powers):
            raise ValueError(f"powers must differ from each other. Got {self.powers} instead")
        if not self.known >= 0.0:
            raise ValueError(f"known must be a speed in rad/s, or 0. Got {self.known} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return one coefficient a power; up to the first power friction cannot help the motion."""
        return tuple(
            Parameter(f"Fv{p:g}", "Nm s/rad" if p == 1 else f"Nm (s/rad)^{p:g}", non_negative=p <= 1.0)
            for p in self.powers
        )

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return sgn(v) |v|^p, beyond the known speed V its tangent V^p + p V^(p-1) (|v| - V)."""
        speed, sign = np.abs(joint.qd), np.sign(joint.qd)
        inside = np.minimum(speed, self.known) if self.known > 0.0 else speed
        columns = [sign * inside**p for p in self.powers]
        if self.known > 0.0 and (speed > self.known).any():
            beyond = sign * (speed - inside)
            columns = [own + p * self.known ** (p - 1.0) * beyond for own, p in zip(columns, self.powers, strict=True)]
        return np.column_stack(columns), None
