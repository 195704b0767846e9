"""Temperature dependence: friction of the lubricant changes as the joint warms up.

``f_T = sgn(ω) √|ω| (F_T1 (T - T0) + F_T2 (T⁻³ - T0⁻³))``, zero at the reference temperature T0; or
``f_T = sgn(ω) (h(T) - h(T0))`` with ``h(T) = (A_0 + A_1 T) exp(-|ω| (b_0 + b_1 T))``.

Reference: A. C. Bittencourt and S. Gunnarsson, "Static friction in a robot joint: modeling and identification of load
and temperature effects", J. Dynamic Systems, Measurement, and Control 134(5), 2012.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
