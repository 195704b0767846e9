"""Terms with memory: Maxwell-slip hysteresis, rate-dependent slip elements and LuGre."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.model import friction
from jointwise.model.periodic_table import PeriodicTable
from jointwise.model.terms.term import JointSignals, Parameter, State, Term
from jointwise.spatial import Array

STEMS = {"q": "W", "track": "Wt", "rotor": "Wr"}
"""Drivers, and the names of the forces of their elements."""
RATE_MODELS = ("lugre", "rate-gms")


@dataclass(frozen=True)
class Hysteresis(Term):
    """``τ = Σ_i W_i u_i + F_C1 ℓ(τ_load) H`` with ``H = Σ_i s_i u_i``, ``Σ s_i = 1``: Maxwell-slip elements.

    The ``u_i = δ_i / (b D_i)`` in [-1, 1] are those of `friction.slip_elements`; the forces W_i >= 0 are estimated.

    Attributes:
        limits: Deformation limits D_i, rad, increasing.
        relaxation: Time constant (s) with which deformations relax at standstill; 0 for never.
        driver: The position that deforms the elements: `q` (the path), `track`, which shows reversals that smoothing
            hides, or `rotor`, the side of the gear on which friction acts, where the log has it.
        load: The load law ℓ: `none`, `square` (τ²) or `absolute` (|τ|).
        shape: Share s_i of each element in the load-dependent part, from the W_i of an earlier fit.
        backlash: The backlash map b(θ), relative to its mean, equally spaced over a turn from θ = 0; it scales the
            limits. Empty for the same limits everywhere.

    """

    limits: tuple[float, ...]
    relaxation: float = 0.0
    driver: str = "q"
    load: str = "none"
    shape: tuple[float, ...] = ()
    backlash: tuple[float, ...] = ()

    kind = "hysteresis"

    def __post_init__(self) -> None:
        """Check the settings."""
        steps = np.diff(np.array([0.0, *self.limits]))
        if not self.limits or not (steps > 0.0).all() or not math.isfinite(self.limits[-1]):
            raise ValueError(f"limits must be positive and increasing. Got {self.limits} instead")
        if self.driver not in STEMS:
            raise ValueError(f"driver must be {', '.join(STEMS)}. Got '{self.driver}' instead")
        if not self.relaxation >= 0.0:
            raise ValueError(f"relaxation must be 0 (never) or a time in s. Got {self.relaxation} instead")
        _check_backlash(self.backlash)
        friction.check_load_law(self.load)
        if self.load != "none" and len(self.shape) != len(self.limits):
            raise ValueError(f"shape must have {len(self.limits)} entries. Got {len(self.shape)} instead")

    @staticmethod
    def polynomial_limits(elements: int, scale: float, power: float = 4.0) -> tuple[float, ...]:
        """Return ``D_i = B (i/M)^r``: M limits up to the scale B (rad), close together near zero."""
        return tuple(friction.polynomial_limits(elements, scale, power).tolist())

    @staticmethod
    def geometric_limits(elements: int, smallest: float, largest: float) -> tuple[float, ...]:
        """Return limits (rad) in equal ratios from the smallest to the largest."""
        return tuple(friction.geometric_limits(elements, smallest, largest).tolist())

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the W_i, and F_C1 with load dependence."""
        stem = STEMS[self.driver]
        forces = tuple(Parameter(f"{stem}{i}", "Nm", non_negative=True) for i in range(1, len(self.limits) + 1))
        return (*forces, *self.load_parameters(f"FC{stem[1:]}1", self.load))

    def uses_load(self) -> bool:
        """Return whether F_C1 is a parameter."""
        return self.load != "none"

    def uses_speed(self) -> bool:
        """Return whether the driver is `track`."""
        return self.driver == "track"

    def uses_rotor(self) -> bool:
        """Return whether the driver is `rotor`."""
        return self.driver == "rotor"

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return u_i and ℓ H; the state is that of `friction.slip_elements`."""
        path = _driving_path(joint, self.driver)
        state = friction.slip_state(path[0], len(self.limits)) if state is None else state
        decay = math.exp(-1.0 / (joint.rate * self.relaxation)) if self.relaxation > 0.0 else 1.0
        u, state = friction.slip_elements(
            path, np.array(self.limits), state, backlash=_backlash_along(self.backlash, path), decay=decay
        )
        if self.load == "none":
            return u, state
        return self.with_load([u], u @ np.array(self.shape), joint, self.load), state

    def steady(self, speed: Array, load: Array, temperature: Array | None = None) -> Array:
        """Return the columns at constant speeds: an element that relaxes within T is deformed by min(D, |v| T)."""
        limits = np.array(self.limits)
        size = np.abs(speed)[:, None] * self.relaxation / limits if self.relaxation > 0.0 else np.ones(len(limits))
        u: Array = np.sign(speed)[:, None] * np.minimum(size, 1.0)
        if self.load == "none":
            return u
        return self.with_load(
            [u], u @ np.array(self.shape), JointSignals(1.0, speed, speed, speed, load=load), self.load
        )


@dataclass(frozen=True)
class Rated(Term):
    """``τ = (F_C + F_C1 ℓ(τ_load)) H``: ``H = u + t_d du/dt`` (`lugre`) or ``H = Σ_i s_i u_i`` (`rate-gms`).

    F_C and, with a load law, F_C1 are estimated; the shape is known. The states u are those of
    `friction.lugre_deflection` and `friction.rate_slip`; in steady sliding they reach
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
        friction.check_load_law(self.load)
        _check_backlash(self.backlash)

    def _check_elements(self) -> None:
        if not self.limits or any(not (math.isfinite(D) and D > 0.0) for D in self.limits):
            raise ValueError(f"limits must be positive. Got {self.limits} instead")
        if len(self.shares) != len(self.limits) or abs(sum(self.shares) - 1.0) > 1e-6:
            raise ValueError(f"shares must be {len(self.limits)} numbers of sum one. Got {self.shares} instead")
        if self.model == "lugre" and len(self.limits) != 1:
            raise ValueError(f"lugre has one limit, the length of its bristles. Got {self.limits} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_C, and F_C1 with load dependence."""
        return (Parameter("FCd", "Nm", non_negative=True), *self.load_parameters("FCd1", self.load))

    def uses_load(self) -> bool:
        """Return whether F_C1 is a parameter."""
        return self.load != "none"

    def uses_rotor(self) -> bool:
        """Return whether the driver is `rotor`."""
        return self.driver == "rotor"

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return H, and ℓ H with load dependence; the state is that of the law."""
        path = _driving_path(joint, self.driver)
        H, state = (self._bristles if self.model == "lugre" else self._elements)(joint, path, state)
        return self.with_load([H], H, joint, self.load), state

    def _bristles(self, joint: JointSignals, path: Array, state: State) -> tuple[Array, State]:
        state = friction.lugre_state(path[0]) if state is None else state
        level, backlash = self._level(joint.qd), _backlash_along(self.backlash, path)
        u, after = friction.lugre_deflection(path, level, self.limits[0], state, backlash=backlash)
        return u + self.damping * joint.rate * np.diff(u, prepend=state[0]), after

    def _elements(self, joint: JointSignals, path: Array, state: State) -> tuple[Array, State]:
        state = friction.rate_slip_state(path[0], len(self.limits)) if state is None else state
        level, backlash = self._level(joint.qd), _backlash_along(self.backlash, path)
        limits, rate = np.array(self.limits), self.rate / joint.rate
        u, after = friction.rate_slip(path, level, limits, rate, state, backlash=backlash)
        return u @ np.array(self.shares), after

    def _level(self, speed: Array) -> Array:
        return friction.steady_level(speed, self.extra, self.speed, self.exponent)

    def steady(self, speed: Array, load: Array, temperature: Array | None = None) -> Array:
        """Return the columns in steady sliding."""
        H = np.sign(speed) * self._level(speed)
        return self.with_load([H], H, JointSignals(1.0, speed, speed, speed, load=load), self.load)


def _driving_path(joint: JointSignals, driver: str) -> Array:
    """Return the position (samples,) rad that deforms the elements."""
    position = joint.q if joint.path is None else joint.path
    path = {"q": position, "track": joint.track, "rotor": joint.rotor}[driver]
    if path is None:
        needed = "a measured speed" if driver == "track" else "rotor positions"
        raise ValueError(f"driver {driver} needs {needed}")
    return path


def _check_backlash(backlash: tuple[float, ...]) -> None:
    if any(not (math.isfinite(b) and b > 0.0) for b in backlash):
        raise ValueError("backlash must be positive numbers")


def _backlash_along(backlash: tuple[float, ...], path: Array) -> Array | None:
    """Return b(θ) along a path, None where it is 1 everywhere."""
    return PeriodicTable(backlash).at(path) if backlash else None
