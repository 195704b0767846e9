"""Friction of steady sliding over speed, load and temperature.

Coulomb friction acts against the motion, ``F_C sgn(ω)``. The other laws of this file change or add to it:

- Viscous friction is a polynomial of the speed, odd in it: ``F_V1 ω + F_V2 |ω| ω + F_V3 ω³``.
- Stribeck friction: dry friction is higher near standstill and falls to the Coulomb level with speed,
  ``F_C (1 + e exp(-(|ω| / V_S)^μ)) sgn(ω)`` with the relative rise e, the Stribeck velocity V_S and the exponent μ [1].
- Dry friction grows with the transmitted torque, ``F_C0 + F_C1 |τ|^p`` [2].
- Friction of the lubricant changes as the joint warms up: ``sgn(ω) √|ω| (F_T1 (T - T0) + F_T2 (T⁻³ - T0⁻³))``, zero at
  the reference temperature T0; or ``sgn(ω) (h(T) - h(T0))`` with ``h(T) = (A_0 + A_1 T) exp(-|ω| (b_0 + b_1 T))`` [3].

[1] B. Armstrong-Hélouvry, P. Dupont and C. Canudas de Wit, "A survey of models, analysis tools and compensation methods
for the control of machines with friction", Automatica 30(7), 1994.
[2] P. Hamon, M. Gautier and P. Garrec, "Dynamic identification of robots with a dry friction model depending on load
and velocity", IEEE/RSJ Int. Conf. on Intelligent Robots and Systems (IROS), 2010.
[3] A. C. Bittencourt and S. Gunnarsson, "Static friction in a robot joint: modeling and identification of load and
temperature effects", J. Dynamic Systems, Measurement, and Control 134(5), 2012.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise.spatial import Array

LOAD_POWERS = {"absolute": 1.0, "square": 2.0}
"""Names of the laws in documents, and their power p."""


def direction(speed: Array, width: float = 0.0) -> Array:
    """Return sgn(ω), or its smooth form tanh(ω / width).

    Args:
        speed: Joint speeds ω of any shape, rad/s.
        width: Speed (rad/s) over which tanh changes its sign; 0 for the discontinuous sign.

    Returns:
        Values in [-1, 1] of the shape of `speed`.

    """
    result: Array = np.tanh(speed / width) if width > 0.0 else np.sign(speed)
    return result


def power_flow_columns(speed: Array, load: Array, width: float = 0.0) -> Array:
    """Return the direction where the joint drives its load (ω τ > 0), and elsewhere: the factors of T_dir and T_rev.

    Args:
        speed: Joint speeds ω (samples,), rad/s.
        load: Transmitted torques τ (samples,), Nm.
        width: As in `direction`.

    Returns:
        Two columns, (samples, 2); each is zero where the other one is not.

    """
    h, drives = direction(speed, width), speed * load > 0.0
    return np.column_stack([np.where(drives, h, 0.0), np.where(drives, 0.0, h)])


def viscous_columns(speed: Array, powers: Sequence[float], largest_speed: float = 0.0) -> Array:
    """Return ``sgn(ω) |ω|^p`` for every power p: ω^p for odd p, |ω| ω^(p-1) for even p, a root for p = 0.5.

    Polynomials do not extrapolate: above `largest_speed` V every column continues along its tangent,
    ``V^p + p V^(p-1) (|ω| - V)``.

    Args:
        speed: Joint speeds ω (samples,), rad/s.
        powers: Positive powers p.
        largest_speed: Largest speed V of the data that determined the coefficients, rad/s; 0 for no limit.

    Returns:
        Columns (samples, powers).

    """
    size, sign = np.abs(speed), np.sign(speed)
    inside = np.minimum(size, largest_speed) if largest_speed > 0.0 else size
    columns = [sign * inside**p for p in powers]
    if largest_speed > 0.0 and (size > largest_speed).any():
        above = sign * (size - inside)
        columns = [c + p * largest_speed ** (p - 1.0) * above for c, p in zip(columns, powers, strict=True)]
    return np.column_stack(columns)


def viscous_factor(speed: Array, coefficients: Sequence[float]) -> Array:
    """Return ``F_V1 + F_V2 |ω| + F_V3 ω² + ...``: viscous friction per speed, Nm s/rad, of the shape of `speed`."""
    size = np.abs(speed)
    result: Array = np.zeros_like(size)
    for coefficient in reversed(coefficients):
        result = result * size + coefficient
    return result


def viscous_torque(speed: Array, coefficients: Sequence[float]) -> Array:
    """Return ``F_V1 ω + F_V2 |ω| ω + F_V3 ω³ + ...``, Nm, of the shape of `speed` (rad/s).

    Args:
        speed: Joint speeds ω of any shape, rad/s.
        coefficients: F_Vi in Nm (s/rad)^i, i from 1 on.

    """
    result: Array = viscous_factor(speed, coefficients) * speed
    return result


def stribeck(speed: Array, stribeck_speed: float, exponent: float = 1.0) -> Array:
    """Return the Stribeck curve ``exp(-(|ω| / V_S)^μ)``: 1 at standstill, 0 at high speed.

    Args:
        speed: Joint speeds ω of any shape, rad/s.
        stribeck_speed: V_S > 0, rad/s.
        exponent: μ > 0; 1 for an exponential, 2 for a Gaussian.

    """
    result: Array = np.exp(-_absolute_power(speed / stribeck_speed, exponent))
    return result


def stribeck_slope(speed: Array, stribeck_speed: float, exponent: float = 1.0) -> Array:
    """Return the derivative of `stribeck` with respect to ln V_S, ``μ x^μ exp(-x^μ)`` with ``x = |ω| / V_S``."""
    power = _absolute_power(speed / stribeck_speed, exponent)
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


def load_growth(load: Array, power: float) -> Array:
    """Return |τ|^p of transmitted torques τ (Nm) of any shape."""
    return _absolute_power(load, power)


def check_load_law(name: str) -> None:
    """Raise a `ValueError` unless the name is none, square or absolute."""
    if name != "none" and name not in LOAD_POWERS:
        raise ValueError(f"load must be none, square or absolute. Got '{name}' instead")


def load_law_name(power: float) -> str:
    """Return the name of the law with a power p, 1 or 2."""
    return next(name for name, p in LOAD_POWERS.items() if p == power)


def load_unit(name: str) -> str:
    """Return the unit of F_C1: 1 (`absolute`) or 1/Nm (`square`)."""
    return "1" if name == "absolute" else "1/Nm"


def _absolute_power(x: Array, power: float) -> Array:
    """Return |x|^p; the powers 1 and 2 without a call of `pow`."""
    size = np.abs(x)
    result: Array = size if power == 1.0 else np.square(size) if power == 2.0 else size**power
    return result
