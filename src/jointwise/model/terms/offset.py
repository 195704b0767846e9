"""A constant torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class Offset(Term):
    """``τ = c``: a constant torque, such as the bias of a sensor or the pull of a cable."""

    kind = "offset"
    role = "offset"

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the constant."""
        return (Parameter("offset", "Nm"),)

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return ones."""
        return np.ones((len(joint.q), 1)), None

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `offset` of the core."""
        return (CoreTerm("offset", tuple(values)),)
