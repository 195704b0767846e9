"""Dry friction with a direction function of the speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import (
    JointSignals,
    Parameter,
    State,
    Term,
    check_dependence,
    load_factor,
    load_unit,
)
from jointwise.spatial import Array


@dataclass(frozen=True)
class Coulomb(Term):
    """``τ = (F_C0 + F_C1 ℓ(τ_load)) h(v)``, h = sgn(v) or tanh(v / width), ℓ = none, square or absolute."""

    load: str = "none"
    direction: str = "sign"
    width: float = 0.01
    """Speed (rad/s) over which tanh turns."""

    kind = "coulomb"

    def __post_init__(self) -> None:
        """Refuse unknown laws."""
        check_dependence(self.load)
        if self.direction not in ("sign", "tanh"):
            raise ValueError(f"direction must be sign or tanh. Got '{self.direction}' instead")
        if not self.width > 0.0:
            raise ValueError(f"width must be positive. Got {self.width} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_C0, and F_C1 with load dependence."""
        first = Parameter("FC0", "Nm", non_negative=True)
        return (first,) if self.load == "none" else (first, Parameter("FC1", load_unit(self.load), non_negative=True))

    def uses_load(self) -> bool:
        """Tell whether F_C1 is there."""
        return self.load != "none"

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return h and ℓ h."""
        h = np.sign(joint.qd) if self.direction == "sign" else np.tanh(joint.qd / self.width)
        if self.load == "none":
            return h[:, None], None
        return np.column_stack([h, load_factor(joint.known_load(self.kind), self.load) * h]), None
