"""Coulomb friction: dry friction that acts against the motion, whatever the speed."""

from __future__ import annotations

from dataclasses import dataclass

from jointwise.model.terms.direction import check_width, direction
from jointwise.model.terms.load import check_load_law, load_parameters, with_load, with_load_law
from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class Coulomb(Term):
    """``τ = (F_C0 + F_C1 ℓ(τ_load)) h(v)``: dry friction.

    Attributes:
        load: The load law ℓ: `none`, `square` (τ²) or `absolute` (|τ|).
        direction: h(v) = sgn(v) (`sign`) or tanh(v / width) (`tanh`).
        width: Speed (rad/s) over which tanh changes its sign.

    """

    load: str = "none"
    direction: str = "sign"
    width: float = 0.01

    kind = "coulomb"
    role = "dry"

    def __post_init__(self) -> None:
        """Check the settings."""
        check_load_law(self.load)
        if self.direction not in ("sign", "tanh"):
            raise ValueError(f"direction must be sign or tanh. Got '{self.direction}' instead")
        check_width(self.width)

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_C0, and F_C1 with load dependence."""
        return (Parameter("FC0", "Nm", non_negative=True), *load_parameters("FC1", self.load))

    def uses_load(self) -> bool:
        """Return whether F_C1 is a parameter."""
        return self.load != "none"

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return h and ℓ h."""
        h = direction(joint.qd, self.width if self.direction == "tanh" else 0.0)
        return with_load([h], h, joint, self.load, self.kind), None

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `coulomb` of the core."""
        width = self.width if self.direction == "tanh" else 0.0
        return with_load_law(CoreTerm("coulomb", (values[0],), width=width), self.load, values[1:])
