"""Friction by temperature: that of the lubricant falls as the joint warms up.

``sgn(ω) √|ω| (F_T1 (T - T0) + F_T2 (T⁻³ - T0⁻³))``, zero at the reference temperature T0; or
``sgn(ω) (h(T) - h(T0))`` with ``h(T) = (A_0 + A_1 T) exp(-|ω| (b_0 + b_1 T))`` (`thermal_decay`).

Reference: A. C. Bittencourt and S. Gunnarsson, "Static friction in a robot joint: modeling and identification of load
and temperature effects", J. Dynamic Systems, Measurement, and Control 134(5), 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.model.terms.direction import check_driver, term_direction
from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
from jointwise.spatial import Array


def thermal_factors(temperature: Array, reference: float, coldest: float, hottest: float) -> Array:
    """Return ``T - T0`` and ``T⁻³ - T0⁻³``, the factors of F_T1 and F_T2.

    Args:
        temperature: T of any shape, °C; limited to [`coldest`, `hottest`], the range of the identification.
        reference: T0 > 0, °C.
        coldest: Lower end of the range, °C; > 0 since T⁻³ diverges at 0 °C.
        hottest: Upper end of the range, °C.

    Returns:
        The two factors in K and K⁻³, shape (..., 2).

    """
    T = np.clip(temperature, coldest, hottest)
    return np.stack([T - reference, T**-3.0 - reference**-3.0], axis=-1)


def thermal_decay(speed: Array, temperature: Array | float, rates: Array | Sequence[float]) -> Array:
    """Return ``exp(-|ω| (b_0 + b_1 T))``, the factor of A_0 + A_1 T in h(T).

    Args:
        speed: Joint speeds ω of any shape, rad/s.
        temperature: T of the same shape or one number, °C.
        rates: b_0 in s/rad and b_1 in s/rad/K.

    """
    result: Array = np.exp(-np.abs(speed) * (rates[0] + rates[1] * temperature))
    return result


def root_speed(speed: Array) -> Array:
    """Return ``sgn(ω) √|ω|`` of speeds ω (rad/s) of any shape: how the thermal part grows with speed."""
    result: Array = np.sign(speed) * np.sqrt(np.abs(speed))
    return result


@dataclass(frozen=True)
class Temperature(Term):
    """``τ = sgn(v) √|v| (F_T1 (T - T0) + F_T2 (T⁻³ - T0⁻³))``, T in °C.

    Attributes:
        reference: T0, the temperature for which the other friction terms hold, °C.
        coldest: Least T, to which lower ones are clamped, °C.
        hottest: Greatest T, to which higher ones are clamped, °C.
        driver: `speed`, or the driver of the slip elements in whose direction it acts in place of the sign.
    """

    reference: float = 20.0
    coldest: float = 10.0
    hottest: float = 60.0
    driver: str = "speed"

    kind = "temperature"
    role = "thermal"

    def __post_init__(self) -> None:
        """Check that T⁻³ is regular within the range."""
        check_driver(self.driver)
        if not 0.0 < self.coldest < self.hottest or not self.reference > 0.0:
            raise ValueError(
                f"temperatures must be 0 < coldest < hottest and reference > 0. "
                f"Got {self.coldest}, {self.hottest}, {self.reference} instead"
            )

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_T1 and F_T2."""
        return Parameter("FT1", "Nm sqrt(s/rad)/K"), Parameter("FT2", "Nm sqrt(s/rad) K^3")

    def uses_temperature(self) -> bool:
        """Return True: the columns depend on the measured temperature."""
        return True

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the root of the speed times the two functions of temperature."""
        if joint.temperature is None:
            raise ModelError("the friction of the model needs the temperature of every log (columns temp1..).")
        h = term_direction(joint, self.driver, 0.0)
        factors = thermal_factors(joint.temperature, self.reference, self.coldest, self.hottest)
        return (np.sqrt(np.abs(joint.qd)) * h)[:, None] * factors, None

    def steady(self, speed: Array, load: Array, temperature: Array | None = None) -> Array:
        """Return the columns at constant speeds; zeros at the reference temperature."""
        return super().steady(speed, load, np.full(len(speed), self.reference) if temperature is None else temperature)

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `thermal` of the core."""
        numbers = (*values, self.reference, self.coldest, self.hottest)
        return (CoreTerm("thermal", numbers, driver=self.driver),)
