"""Stribeck friction: dry friction is higher near standstill and falls to the Coulomb level with speed.

``f = F_C (1 + e exp(-(|ω| / V_S)^μ)) sgn(ω)`` with the relative rise e, the Stribeck velocity V_S (rad/s) and the
exponent μ.

Reference: B. Armstrong-Hélouvry, P. Dupont and C. Canudas de Wit, "A survey of models, analysis tools and compensation
methods for the control of machines with friction", Automatica 30(7), 1994.
"""

from __future__ import annotations

import numpy as np

from jointwise.spatial import Array


def stribeck(speed: Array, stribeck_speed: float, exponent: float = 1.0) -> Array:
    """Return the Stribeck curve ``exp(-(|ω| / V_S)^μ)``: 1 at standstill, 0 at high speed.

    Args:
        speed: Joint speeds ω of any shape, rad/s.
        stribeck_speed: V_S > 0, rad/s.
        exponent: μ > 0; 1 for an exponential, 2 for a Gaussian.

    """
    result: Array = np.exp(-_power(speed, stribeck_speed, exponent))
    return result


def stribeck_slope(speed: Array, stribeck_speed: float, exponent: float = 1.0) -> Array:
    """Return the derivative of `stribeck` with respect to ln V_S, ``μ x^μ exp(-x^μ)`` with ``x = |ω| / V_S``."""
    power = _power(speed, stribeck_speed, exponent)
    result: Array = exponent * power * np.exp(-power)
    return result


def steady_level(speed: Array, extra: float, stribeck_speed: float, exponent: float = 2.0) -> Array:
    """Return dry friction in steady sliding relative to Coulomb friction, ``h = 1 + e exp(-(|ω| / V_S)^μ)``.

    Args:
        speed: Joint speeds ω of any shape, rad/s.
        extra: e = (F_S - F_C) / F_C.
        stribeck_speed: V_S > 0, rad/s.
        exponent: μ > 0.

    """
    result: Array = 1.0 + extra * stribeck(speed, stribeck_speed, exponent)
    return result


def _power(speed: Array, stribeck_speed: float, exponent: float) -> Array:
    """Return (|ω| / V_S)^μ; the exponents 1 and 2 without a call of `pow`."""
    x = np.abs(speed) / stribeck_speed
    result: Array = x if exponent == 1.0 else np.square(x) if exponent == 2.0 else x**exponent
    return result
