"""The inertia of the rotor."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class Inertia(Term):
    """``τ = I_a a``: inertia of the rotor reflected to the joint, on its acceleration.

    Attributes:
        value: I_a where it is known, kg m²; None to estimate it.
    """

    value: float | None = None

    kind = "inertia"
    role = "inertia"

    def __post_init__(self) -> None:
        """Check the value."""
        if self.value is not None and not (math.isfinite(self.value) and self.value >= 0.0):
            raise ValueError(f"value must be a finite number of kg m^2, at least 0. Got {self.value} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the inertia."""
        return (Parameter("Ia", "kg m^2", non_negative=True),)

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the acceleration."""
        return joint.qdd[:, None], None

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `inertia` of the core."""
        return (CoreTerm("inertia", tuple(values)),)
