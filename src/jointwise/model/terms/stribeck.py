"""Stribeck friction: dry friction is higher near standstill and falls to the Coulomb level with speed.

Reference: B. Armstrong-Hélouvry, P. Dupont and C. Canudas de Wit, "A survey of models, analysis tools and compensation
methods for the control of machines with friction", Automatica 30(7), 1994.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.direction import check_driver, term_direction
from jointwise.model.terms.load import absolute_power
from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
from jointwise.spatial import Array


def stribeck(speed: Array, stribeck_speed: float, exponent: float = 1.0) -> Array:
    """Return the Stribeck curve ``exp(-(|ω| / V_S)^μ)``: 1 at standstill, 0 at high speed.

    Args:
        speed: Joint speeds ω of any shape, rad/s.
        stribeck_speed: V_S > 0, rad/s.
        exponent: μ > 0; 1 for an exponential, 2 for a Gaussian.

    """
    result: Array = np.exp(-absolute_power(speed / stribeck_speed, exponent))
    return result


def stribeck_slope(speed: Array, stribeck_speed: float, exponent: float = 1.0) -> Array:
    """Return the derivative of `stribeck` with respect to ln V_S, ``μ x^μ exp(-x^μ)`` with ``x = |ω| / V_S``."""
    power = absolute_power(speed / stribeck_speed, exponent)
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


@dataclass(frozen=True)
class Stribeck(Term):
    """``τ = F_S tanh(v / width) exp(-(|v| / velocity)^exponent)``: friction above the Coulomb level near standstill.

    Attributes:
        velocity: Stribeck velocity, rad/s.
        exponent: Exponent of the curve, 2 for a Gaussian.
        width: Speed over which friction changes its sign, rad/s.
        driver: `speed`, or the driver of the slip elements in whose direction it acts in place of tanh.
    """

    velocity: float = 0.1
    exponent: float = 1.0
    width: float = 0.01
    driver: str = "speed"

    kind = "stribeck"
    role = "dry"

    def __post_init__(self) -> None:
        """Check the settings."""
        if not (self.velocity > 0.0 and self.exponent > 0.0 and self.width > 0.0):
            raise ValueError("velocity, exponent and width must be positive")
        check_driver(self.driver)

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_S."""
        return (Parameter("FS", "Nm", non_negative=True),)

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the direction times the Stribeck curve."""
        curve = stribeck(joint.qd, self.velocity, self.exponent)
        return (term_direction(joint, self.driver, self.width) * curve)[:, None], None

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `stribeck` of the core."""
        numbers = (*values, self.velocity, self.exponent)
        return (CoreTerm("stribeck", numbers, driver=self.driver, width=self.width),)
