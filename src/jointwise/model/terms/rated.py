"""Friction with memory and rate, its shape known: the LuGre bristle and rate-dependent slip elements."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.backlash import check_backlash, evened
from jointwise.model.terms.rate import bristle, rate_slip, steady_rise
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

MODELS = ("lugre", "rate-gms")


@dataclass(frozen=True)
class Rated(Term):
    """``τ = (F_C + F_C1 ℓ(τ_load)) H``: ``H = u + t_d u̇`` (`lugre`) or ``H = Σ_i s_i u_i`` (`rate-gms`).

    The only unknowns are F_C and, with a `load` of absolute or square, F_C1. The states u (`bristle`, `rate_slip`)
    settle at ``h(ω) = 1 + e exp(-(ω/V)²)``, `extra` e and `speed` V (rad/s). `limits` D_i (rad; of `lugre` the
    bristle's length F_C/s0), `shares` s_i of sum one, `rate` c (1/s) of slip, `damping` t_d = s1/s0 (s). `driver`: `q`,
    or `rotor` where the log has it. `backlash` b(θ) as that of `Hysteresis`: limits are longer where the gear is loose.
    """

    model: str
    limits: tuple[float, ...]
    shares: tuple[float, ...]
    extra: float = 0.0
    speed: float = 0.05
    rate: float = 1.0
    damping: float = 0.0
    driver: str = "q"
    load: str = "none"
    backlash: tuple[float, ...] = ()

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
        check_dependence(self.load)
        check_backlash(self.backlash)

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_C, and F_C1 with load dependence."""
        size = Parameter("FCd", "Nm", non_negative=True)
        return (size, Parameter("FCd1", load_unit(self.load), non_negative=True)) if self.uses_load() else (size,)

    def uses_load(self) -> bool:
        """Tell whether F_C1 is there."""
        return self.load != "none"

    def uses_rotor(self) -> bool:
        """Tell whether the driver is `rotor`."""
        return self.driver == "rotor"

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return H, and ℓ H with load dependence; the state is that of the recursion."""
        x = joint.rotor if self.driver == "rotor" else joint.q if joint.path is None else joint.path
        if x is None:
            raise ValueError("driver rotor needs rotor positions")
        x = evened(x, np.array(self.backlash)) if self.backlash else x
        state = self._rest(float(x[0])) if state is None else state.copy()
        H = self._memory(x, steady_rise(joint.qd, self.extra, self.speed), joint.rate, state)
        if self.load == "none":
            return H[:, None], state
        return np.column_stack([H, load_factor(joint.known_load(self.kind), self.load) * H]), state

    def _memory(self, x: Array, h: Array, rate: float, state: Array) -> Array:
        """Return H (samples,) along a path (rad) with its steady curve h; the state is carried on, in place."""
        if self.model == "rate-gms":
            result: Array = rate_slip(x, h, np.array(self.limits), self.rate / rate, state) @ np.array(self.shares)
            return result
        before = state[0]
        u = bristle(x, h, self.limits[0], state)
        return u + self.damping * rate * np.diff(u, prepend=before)

    def steady(self, speed: Array, load: Array) -> Array:
        """Return the columns (samples, parameters) at constant speeds rad/s and loads Nm, long after the start."""
        H = np.sign(speed) * steady_rise(speed, self.extra, self.speed)
        return np.column_stack([H, load_factor(load, self.load) * H] if self.uses_load() else [H])

    def _rest(self, position: float) -> Array:
        """Return the state of undeformed elements at a position, rad."""
        state = np.zeros(2 if self.model == "lugre" else 2 * len(self.limits) + 1)
        state[-1] = position
        return state
