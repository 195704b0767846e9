"""Friction with memory and rate, its shape known: the LuGre bristle and rate-dependent slip elements."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.rate import bristle, rate_slip, steady_rise
from jointwise.model.terms.term import JointSignals, Parameter, State, Term
from jointwise.spatial import Array

MODELS = ("lugre", "rate-gms")


@dataclass(frozen=True)
class Rated(Term):
    """``τ = F_C H``, H driven by the motion: ``H = u + t_d u̇`` (`lugre`) or ``H = Σ_i s_i u_i`` (`rate-gms`).

    The only unknown is F_C. The states u (`bristle`, `rate_slip`) settle at ``h(ω) = 1 + e exp(-(ω/V)²)``, `extra` e
    and `speed` V (rad/s). `limits` D_i (rad; of `lugre` the bristle's length F_C/s0), `shares` s_i of sum one, `rate` c
    (1/s) of slip, `damping` t_d = s1/s0 (s). `driver`: `q`, or `rotor` where the log has it.
    """

    model: str
    limits: tuple[float, ...]
    shares: tuple[float, ...]
    extra: float = 0.0
    speed: float = 0.05
    rate: float = 1.0
    damping: float = 0.0
    driver: str = "q"

    kind = "rated"

    def __post_init__(self) -> None:
        """Refuse what is no such model."""
        if self.model not in MODELS:
            raise ValueError(f"model must be {' or '.join(MODELS)}. Got '{self.model}' instead")
        if self.driver not in ("q", "rotor"):
            raise ValueError(f"driver must be q or rotor. Got '{self.driver}' instead")
        if not self.limits or any(not (math.isfinite(D) and D > 0.0) for D in self.limits):
            raise ValueError(f"limits must be positive. Got {self.limits} instead")
        if len(self.shares) != len(self.limits) or abs(sum(self.shares) - 1.0) > 1e-6:
            raise ValueError(f"shares must be {len(self.limits)} numbers of sum one. Got {self.shares} instead")
        if self.model == "lugre" and len(self.limits) != 1:
            raise ValueError(f"lugre has one limit, the length of its bristle. Got {self.limits} instead")
        if not (self.speed > 0.0 and self.rate > 0.0 and self.damping >= 0.0 and self.extra > -1.0):
            raise ValueError("speed and rate must be positive, damping not negative, extra above -1")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_C."""
        return (Parameter("FCd", "Nm", non_negative=True),)

    def uses_rotor(self) -> bool:
        """Tell whether the driver is `rotor`."""
        return self.driver == "rotor"

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return H; the state is that of the recursion."""
        x = joint.rotor if self.driver == "rotor" else joint.q if joint.path is None else joint.path
        if x is None:
            raise ValueError("driver rotor needs rotor positions")
        state = self._rest(float(x[0])) if state is None else state.copy()
        h = steady_rise(joint.qd, self.extra, self.speed)
        if self.model == "rate-gms":
            u = rate_slip(x, h, np.array(self.limits), self.rate / joint.rate, state)
            return (u @ np.array(self.shares))[:, None], state
        before = state[0]
        u = bristle(x, h, self.limits[0], state)
        return (u + self.damping * joint.rate * np.diff(u, prepend=before))[:, None], state

    def _rest(self, position: float) -> Array:
        """Return the state of undeformed elements at a position, rad."""
        state = np.zeros(2 if self.model == "lugre" else 2 * len(self.limits) + 1)
        state[-1] = position
        return state
