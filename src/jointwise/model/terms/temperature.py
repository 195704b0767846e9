"""Friction that changes as the joint warms up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.term import JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class Temperature(Term):
    """``τ = sgn(v) √|v| (F_T1 (T - T0) + F_T2 (T⁻³ - T0⁻³))``, T in °C kept within [`coldest`, `hottest`].

    T0 is `reference`: there the rest of the friction holds as it is.
    """

    reference: float = 20.0
    coldest: float = 10.0
    hottest: float = 60.0

    kind = "temperature"

    def __post_init__(self) -> None:
        """Refuse ranges in which T⁻³ means nothing."""
        if not 0.0 < self.coldest < self.hottest or not self.reference > 0.0:
            raise ValueError(
                f"temperatures must be 0 < coldest < hottest and reference > 0. "
                f"Got {self.coldest}, {self.hottest}, {self.reference} instead"
            )

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_T1 and F_T2."""
        return Parameter("FT1", "Nm sqrt(s/rad)/K"), Parameter("FT2", "Nm sqrt(s/rad) K^3")

    def uses_temperature(self) -> bool:
        """Tell that it needs a measured temperature."""
        return True

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the root of the speed times the two functions of temperature."""
        if joint.temperature is None:
            raise ValueError("temperature needs a measured temperature")
        root = np.sign(joint.qd) * np.sqrt(np.abs(joint.qd))
        T = np.clip(joint.temperature, self.coldest, self.hottest)
        return np.column_stack([root * (T - self.reference), root * (T**-3 - self.reference**-3)]), None
