"""Gear friction that depends on which way power flows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class PowerFlow(Term):
    """``τ = T_dir tanh(v/width)`` where the joint drives its load (v τ_load > 0), else ``T_rev tanh(v/width)``."""

    width: float = 0.01

    kind = "power_flow"
    needs_load = True

    def __post_init__(self) -> None:
        """Refuse a width that is not positive."""
        if not self.width > 0.0:
            raise ValueError(f"width must be positive. Got {self.width} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return T_dir and T_rev."""
        return (Parameter("Tdir", "Nm", non_negative=True), Parameter("Trev", "Nm", non_negative=True))

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the direction function where power flows to the load, and elsewhere."""
        direction = np.tanh(joint.qd / self.width)
        direct = joint.qd * joint.known_load(self.kind) > 0.0
        return np.column_stack([np.where(direct, direction, 0.0), np.where(direct, 0.0, direction)]), None
