"""Friction of a joint: steady laws in speed, load and temperature, carried by slip elements.

``f = level(ω, τ_J, T) H + (F_V1 + F_V2 |ω| + F_V3 ω²) ω``, H in [-1, 1] the state of the slip elements,
``level = F_C0 + F_C1 τ_J² + (F_S - F_C0) exp(-(|ω|/V_S)^μ) + √|ω| (F_T1 (T - T0) + F_T2 (T⁻³ - T0⁻³)) ± F_P``, + where
the motor drives the load (ω τ_J > 0) and - where the load drives the motor: T_dir = F_C0 + F_P, T_rev = F_C0 - F_P.
In slip H = sgn ω and this is the steady law; at reversal it is continuous. Level and viscous factor stay >= 0.

The simulated robot runs it as terms (`Friction.law`), the friction compensation of controllers in its native form
(friction.h).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jointwise.arguments import checked_fields
from jointwise.errors import ModelError, check_finite, check_range
from jointwise.model import terms
from jointwise.model.periodic_table import PeriodicTable
from jointwise.model.terms import (
    Hysteresis,
    JointLaw,
    PowerFlow,
    Temperature,
    Term,
    Viscous,
    load_growth,
    polynomial_limits,
    polynomial_shares,
    stribeck,
    thermal_factors,
    viscous_factor,
)
from jointwise.spatial import Array

MOST_ELEMENTS = 16
"""Slip elements of a joint, the size of the arrays in friction.h."""
COULOMB_LIMIT = 1e-5
"""Deformation (rad) of the single slip element that stands for sgn ω when hysteresis is switched off."""

FLOW_WIDTH = 1e-3
"""Power (W) over which friction changes between the two directions of power flow, that of friction.h."""


@checked_fields
@dataclass(frozen=True)
class Slip:
    """Spring-slip elements ``s = Δθ + δ_i``, ``δ_i = sgn(s) min(|s|, B(θ) D_i)``, ``H = Σ W_i δ_i / (B(θ) D_i)``.

    Attributes:
        limits: Deformation limits D_i, relative to the backlash B(θ), (elements,).
        shares: W_i >= 0, which sum to one, (elements,).
    """

    limits: tuple[float, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the elements."""
        if len(self.limits) != len(self.shares) or not 1 <= len(self.limits) <= MOST_ELEMENTS:
            raise ModelError(f"slip: limits and shares must be 1 to {MOST_ELEMENTS} numbers each, equally many.")
        for limit, share in zip(self.limits, self.shares, strict=True):
            check_range("slip", 0.0, above=True, limit=limit)
            check_range("slip", 0.0, share=share)
        if abs(sum(self.shares) - 1.0) > 1e-9:
            raise ModelError(f"slip: shares must sum to 1. Got {sum(self.shares)} instead.")

    @classmethod
    def polynomial(cls, elements: int = 4, limit_power: float = 4.0, share_power: float = 2.0) -> Slip:
        """Return the pre-assigned elements ``D_i = (i/M)^rD``, ``W_i = (M+1-i)^rk / Σ i^rk``."""
        limits = polynomial_limits(elements, 1.0, limit_power)
        return cls(tuple(limits.tolist()), tuple(polynomial_shares(elements, share_power).tolist()))


@checked_fields
@dataclass(frozen=True)
class Stribeck:
    """Extra friction at low speed: ``(F_S - F_C0) exp(-(|ω|/V_S)^μ)``.

    Attributes:
        extra: F_S - F_C0, Nm.
        speed: V_S, rad/s.
        shape: μ.
    """

    extra: float = 0.0
    speed: float = 0.05
    shape: float = 1.0

    def __post_init__(self) -> None:
        """Check that speed and exponent are positive."""
        check_range("stribeck", 0.0, extra=self.extra)
        check_range("stribeck", 0.0, above=True, speed=self.speed, shape=self.shape)


@checked_fields
@dataclass(frozen=True)
class ThermalFriction:
    """Thermal part: ``√|ω| (F_T1 (T - T0) + F_T2 (T⁻³ - T0⁻³))``, T in °C.

    Attributes:
        linear: F_T1, Nm √(s/rad) / K.
        cold: F_T2, Nm √(s/rad) K³.
        reference: T0, °C.
        coldest: Least T, to which lower ones are clamped, °C.
        hottest: Greatest T, to which higher ones are clamped, °C.
    """

    linear: float = 0.0
    cold: float = 0.0
    reference: float = 20.0
    coldest: float = 10.0
    hottest: float = 60.0

    def __post_init__(self) -> None:
        """Check that T⁻³ is regular within the range."""
        check_finite("thermal friction", linear=self.linear, cold=self.cold)
        check_range("thermal friction", 0.0, above=True, coldest=self.coldest, reference=self.reference)
        check_range("thermal friction", self.coldest, hottest=self.hottest)


@checked_fields
@dataclass(frozen=True)
class Friction:
    """Friction of a joint, at the joint side.

    Attributes:
        coulomb: F_C0, Nm.
        load: F_C1, growth of dry friction with the load, 1/Nm.
        viscous: F_V1, Nm s/rad.
        square: F_V2, Nm s²/rad².
        cube: F_V3, Nm s³/rad³.
        asymmetry: a in (-1, 1): (1 + a) of the dry friction forwards, (1 - a) backwards.
        stribeck: More dry friction at low speed.
        thermal: Dependence on temperature.
        slip: Slip elements, the memory of dry friction.
        flow: F_P, more friction where the motor drives the load and less elsewhere, Nm.
    """

    coulomb: float = 0.0
    load: float = 0.0
    viscous: float = 0.0
    square: float = 0.0
    cube: float = 0.0
    asymmetry: float = 0.0
    stribeck: Stribeck = field(default_factory=Stribeck)
    thermal: ThermalFriction = field(default_factory=ThermalFriction)
    slip: Slip = field(default_factory=Slip.polynomial)
    flow: float = 0.0

    def __post_init__(self) -> None:
        """Check that friction does not drive the joint."""
        check_range("friction", 0.0, coulomb=self.coulomb, load=self.load, viscous=self.viscous)
        check_finite("friction", square=self.square, cube=self.cube, flow=self.flow)
        if not abs(self.flow) <= self.coulomb:
            raise ModelError(f"friction: flow must lie within ± coulomb. Got {self.flow} of {self.coulomb} instead.")
        if not abs(self.asymmetry) < 1.0:
            raise ModelError(f"friction: asymmetry must lie in (-1, 1). Got {self.asymmetry} instead.")

    @property
    def is_dry(self) -> bool:
        """Whether any part needs the slip elements."""
        parts = (self.coulomb, self.load, self.stribeck.extra, self.thermal.linear, self.thermal.cold)
        return any(part != 0.0 for part in parts)

    def law(self, backlash: PeriodicTable) -> JointLaw:
        """Return the same friction as terms of the rotor, on a map B(θ) of the backlash in rad.

        The slip elements have the forces ``W_i = F_C0 s_i`` and the limits ``D_i`` times the mean backlash; everything
        else that is dry acts in the direction H of these elements.
        """
        pairs: list[tuple[Term, list[float]]] = []
        if self.is_dry:
            mean, load = float(np.mean(backlash.values)), "square" if self.load else "none"
            relative = tuple((np.array(backlash.values) / mean).tolist()) if len(backlash.values) > 1 else ()
            shares = dict.fromkeys(sorted(self.slip.limits), 0.0)
            for limit, share in zip(self.slip.limits, self.slip.shares, strict=True):
                shares[limit] += share
            limits, shape = tuple(mean * limit for limit in shares), tuple(shares.values())
            elements = Hysteresis(limits, 0.0, "rotor", load, shape, relative, self.asymmetry)
            forces = [self.coulomb * share for share in shape]
            pairs.append((elements, [*forces, self.load] if self.load else forces))
        if self.stribeck.extra:
            rise = terms.Stribeck(self.stribeck.speed, self.stribeck.shape, driver="rotor")
            pairs.append((rise, [self.stribeck.extra]))
        if self.flow:
            pairs.append((PowerFlow(driver="rotor", power=FLOW_WIDTH), [self.flow, -self.flow]))
        if self.thermal.linear or self.thermal.cold:
            thermal = self.thermal
            term = Temperature(thermal.reference, thermal.coldest, thermal.hottest, "rotor")
            pairs.append((term, [thermal.linear, thermal.cold]))
        powers = {1.0: self.viscous, 2.0: self.square, 3.0: self.cube}
        if used := {power: value for power, value in powers.items() if value}:
            pairs.append((Viscous(tuple(used)), list(used.values())))
        return JointLaw(tuple(term for term, _ in pairs), tuple(np.array(values) for _, values in pairs))

    def level(self, speed: Array, load: Array, temperature: Array) -> Array:
        """Return the level of the dry part, (samples,), Nm.

        Args:
            speed: Speeds, (samples,), rad/s.
            load: Loads τ_J, (samples,), Nm.
            temperature: Temperatures, (samples,), °C.
        """
        thermal = self.thermal
        factors = thermal_factors(temperature, thermal.reference, thermal.coldest, thermal.hottest)
        warm = np.sqrt(np.abs(speed)) * (factors @ np.array([thermal.linear, thermal.cold]))
        result: Array = np.maximum(self.dry_level(speed, load) + warm, 0.0)
        return result

    def dry_level(self, speed: Array, load: Array) -> Array:
        """Return the level of the dry part without its thermal part, ``F_C0 + F_C1 τ_J² + Stribeck ± F_P``, Nm."""
        extra = self.stribeck.extra
        rise = extra * stribeck(speed, self.stribeck.speed, self.stribeck.shape) if extra else 0.0
        flow = self.flow * np.tanh(speed * load / FLOW_WIDTH)
        result: Array = self.coulomb + self.load * load_growth(load, 2.0) + rise + flow
        return result

    def viscous_factor(self, speed: Array) -> Array:
        """Return ``F_V1 + F_V2 |ω| + F_V3 ω²`` >= 0, Nm s/rad, of the shape of `speed` (rad/s)."""
        return np.maximum(viscous_factor(speed, (self.viscous, self.square, self.cube)), 0.0)

    def packed(self) -> Array:
        """Return the numbers of `friction_law` in friction.h."""
        thermal, slip = self.thermal, self.slip
        limits = _padded(slip.limits, 1.0)
        return np.concatenate(
            [
                [self.coulomb, self.load, self.stribeck.extra, self.stribeck.speed, self.stribeck.shape],
                [self.viscous, self.square, self.cube],
                [thermal.linear, thermal.cold, thermal.reference, thermal.coldest, thermal.hottest],
                [self.asymmetry, self.flow, float(len(slip.limits) if self.is_dry else 0)],
                *(limits, 1.0 / limits, _padded(slip.shares, 0.0)),
            ]
        )


def _padded(values: tuple[float, ...], fill: float) -> Array:
    result = np.full(MOST_ELEMENTS, fill)
    result[: len(values)] = values
    return result
