"""A constant torque: sensor bias, cable pull."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class Offset(Term):
    """``τ = c``."""

    kind = "offset"

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the constant."""
        return (Parameter("offset", "Nm"),)

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return ones."""
        return np.ones((len(joint.q), 1)), None
