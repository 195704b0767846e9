"""Temperature-dependent friction of a joint.

References:
    Bittencourt, Gunnarsson: Static friction in a robot joint - modeling and identification of load and temperature
    effects, ASME J. Dynamic Systems, Measurement, and Control 134(5), 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.part import Part
from jointwise.model.friction import root_speed, thermal_decay, thermal_factors
from jointwise.spatial import Array

PARAMETERS = {"none": 0, "linear": 2, "three-parameter": 3, "affine-exponential": 4}
"""Laws and their number of parameters, including the friction at the reference temperature."""


@dataclass(frozen=True)
class TemperatureLaw:
    """Friction that a temperature T (°C) adds to that at a reference T0.

    "linear" and "three-parameter": ``f_T = sgn(ω) √|ω| (F_T2 (T - T0) + F_T3 (T⁻³ - T0⁻³))``; F_T1 is the constant that
    makes it zero at T0. "affine-exponential": ``f_T = sgn(ω) (h(T) - h(T0))``,
    ``h = (A_0 + A_1 T) exp(-|ω| (b_0 + b_1 T))``.

    Attributes:
        kind: "none", "linear", "three-parameter" or "affine-exponential".
        numbers: (F_T2,) or (F_T2, F_T3), in Nm √(s/rad) / K and Nm √(s/rad) K³; or (A_0, A_1, b_0, b_1), in Nm, Nm/K,
            s/rad and s/rad/K.
        reference: T0, °C.
        coldest: Lowest measured temperature, to which T is clamped, °C.
        hottest: Highest measured temperature, to which T is clamped, °C.
        fastest: Highest measured speed, to which |ω| is clamped, rad/s.
    """

    kind: str
    numbers: tuple[float, ...]
    reference: float
    coldest: float
    hottest: float
    fastest: float

    def torque(self, speed: Array, temperature: Array) -> Array:
        """Return the friction that the temperature adds, (samples,), Nm.

        Args:
            speed: Speeds, (samples,), rad/s.
            temperature: Temperatures, (samples,), °C.
        """
        w = np.clip(speed, -self.fastest, self.fastest)
        T = np.clip(temperature, self.coldest, self.hottest)
        if self.kind == "affine-exponential":
            return np.sign(w) * (self._exponential(w, T) - self._exponential(w, self.reference))
        if self.kind == "linear":  # without T⁻³, which diverges at 0 °C
            return root_speed(w) * self.numbers[0] * (T - self.reference)
        factors = thermal_factors(T, self.reference, self.coldest, self.hottest)
        result: Array = root_speed(w) * (factors @ np.array(self.numbers))
        return result

    def _exponential(self, speed: Array, T: Array | float) -> Array:
        """Return ``h = (A_0 + A_1 T) exp(-|ω| (b_0 + b_1 T))``, Nm."""
        return (self.numbers[0] + self.numbers[1] * T) * thermal_decay(speed, T, self.numbers[2:])

    def packed(self) -> list[float]:
        """Return the number of the law, its four numbers, T0, range of T and fastest |ω|, as the native kernel does."""
        numbers = [*self.numbers, *(0.0,) * (4 - len(self.numbers))]
        return [list(PARAMETERS).index(self.kind), *numbers, self.reference, self.coldest, self.hottest, self.fastest]

    def outside(self, temperature: Array) -> NDArray[np.bool_]:
        """Return flags of the temperatures outside the measured range, which are clamped."""
        return (temperature < self.coldest) | (temperature > self.hottest)


@dataclass(frozen=True)
class TemperatureSettings:
    """Settings of a temperature part."""

    law: TemperatureLaw


def temperature_law_of(part: Part) -> TemperatureLaw:
    """Return the law of a part from `identify_temperature`."""
    return part.settings_as("temperature", TemperatureSettings).law
