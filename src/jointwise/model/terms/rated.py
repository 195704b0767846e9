"""Dry friction with memory that depends on the rate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.load import check_load_law, load_parameters, with_load, with_load_law
from jointwise.model.terms.lugre import lugre_deflection, lugre_state
from jointwise.model.terms.maxwell_slip import backlash_along, check_backlash, driving_path
from jointwise.model.terms.rate_slip import rate_slip, rate_slip_state
from jointwise.model.terms.stribeck import steady_level
from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
from jointwise.spatial import Array

RATE_MODELS = ("lugre", "rate-gms")


@dataclass(frozen=True)
class Rated(Term):
    """``τ = (F_C + F_C1 ℓ(τ_load)) H``: ``H = u + t_d du/dt`` (`lugre`) or ``H = Σ_i s_i u_i`` (`rate-gms`).

    F_C and, with a load law, F_C1 are estimated; the shape is known. The states u are those of
    `lugre_deflection` and `rate_slip`; in steady sliding they reach
    ``h(ω) = 1 + e exp(-(|ω|/V)^μ)``.

    Attributes:
        model: `lugre` or `rate-gms`.
        limits: D_i, rad; of `lugre` the one bristle length F_C / s0.
        shares: s_i, of sum one.
        extra: e.
        speed: V, rad/s.
        rate: c (1/s) of slip.
        damping: t_d = s1 / s0, s.
        driver: The position that deforms the elements: `q`, or `rotor` where the log has it.
        load: The load law ℓ: `none`, `square` or `absolute`.
        backlash: The backlash map b(θ) as that of `Hysteresis`.
        exponent: μ.

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
    exponent: float = 2.0

    kind = "rated"
    role = "slip"

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.model not in RATE_MODELS:
            raise ValueError(f"model must be {' or '.join(RATE_MODELS)}. Got '{self.model}' instead")
        if self.driver not in ("q", "rotor"):
            raise ValueError(f"driver must be q or rotor. Got '{self.driver}' instead")
        self._check_elements()
        positive = (self.speed, self.rate, self.exponent)
        if not (all(value > 0.0 for value in positive) and self.damping >= 0.0 and self.extra > -1.0):
            raise ValueError("speed, rate and exponent must be positive, damping not negative, extra above -1")
        check_load_law(self.load)
        check_backlash(self.backlash)

    def _check_elements(self) -> None:
        if not self.limits or any(not (math.isfinite(D) and D > 0.0) for D in self.limits):
            raise ValueError(f"limits must be positive. Got {self.limits} instead")
        if len(self.shares) != len(self.limits) or abs(sum(self.shares) - 1.0) > 1e-6:
            raise ValueError(f"shares must be {len(self.limits)} numbers of sum one. Got {self.shares} instead")
        if self.model == "lugre" and len(self.limits) != 1:
            raise ValueError(f"lugre has one limit, the length of its bristles. Got {self.limits} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_C, and F_C1 with load dependence."""
        return (Parameter("FCd", "Nm", non_negative=True), *load_parameters("FCd1", self.load))

    def uses_load(self) -> bool:
        """Return whether F_C1 is a parameter."""
        return self.load != "none"

    def uses_rotor(self) -> bool:
        """Return whether the driver is `rotor`."""
        return self.driver == "rotor"

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return H, and ℓ H with load dependence; the state is that of the law."""
        path = driving_path(joint, self.driver)
        H, state = (self._bristles if self.model == "lugre" else self._elements)(joint, path, state)
        return with_load([H], H, joint, self.load, self.kind), state

    def _bristles(self, joint: JointSignals, path: Array, state: State) -> tuple[Array, State]:
        state = lugre_state(path[0]) if state is None else state
        level, backlash = self._level(joint.qd), backlash_along(self.backlash, path)
        u, after = lugre_deflection(path, level, self.limits[0], state, backlash=backlash)
        return u + self.damping * joint.rate * np.diff(u, prepend=state[0]), after

    def _elements(self, joint: JointSignals, path: Array, state: State) -> tuple[Array, State]:
        state = rate_slip_state(path[0], len(self.limits)) if state is None else state
        level, backlash = self._level(joint.qd), backlash_along(self.backlash, path)
        limits, rate = np.array(self.limits), self.rate / joint.rate
        u, after = rate_slip(path, level, limits, rate, state, backlash=backlash)
        return u @ np.array(self.shares), after

    def _level(self, speed: Array) -> Array:
        return steady_level(speed, self.extra, self.speed, self.exponent)

    def steady(self, speed: Array, load: Array, temperature: Array | None = None) -> Array:
        """Return the columns in steady sliding."""
        H = np.sign(speed) * self._level(speed)
        return with_load([H], H, JointSignals(1.0, speed, speed, speed, load=load), self.load, self.kind)

    def hysteresis(self, columns: Array) -> Array:
        """Return H."""
        return columns[:, 0]

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `lugre` or `rate_slip` of the core."""
        level = (self.extra, self.speed, self.exponent)
        if self.model == "lugre":
            lugre = (values[0], self.limits[0], *level, self.damping / period)
            core = CoreTerm("lugre", lugre, driver=self.driver, backlash=self.backlash)
        else:
            numbers = (values[0], self.rate * period, *level)
            elements = (*self.limits, *self.shares)
            core = CoreTerm("rate_slip", numbers, "none", self.driver, len(self.limits), elements, self.backlash)
        return with_load_law(core, self.load, values[1:])
