"""What is not linear in a slip model: limits, how forces are tied, and how the level depends on load and speed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ModelError
from jointwise.spatial import Array

LIMIT_POWER = 4.0
SHARE_POWER = 2.0
"""Polynomial pre-assignment: ``D_i = (i/M)^4 B``, ``W_i ~ (M + 1 - i)^2``."""


@dataclass(frozen=True, eq=False)
class Shape:
    """``f_dry = (1 + c |τ|^p + e exp(-|ω|/V)) Σ_i W_i g_i(D_i)``, ``W = mix @ forces``.

    `limits` D_i (elements,) rad at the mean backlash; `mix` (elements, forces) ties the forces, None: all are free.
    `growth` c (1/Nm^p) with its `power` p, `extra` e (1) and `speed` V (rad/s): how the level grows with load and
    towards standstill.
    """

    limits: Array
    mix: Array | None = None
    growth: float = 0.0
    extra: float = 0.0
    speed: float = 0.05
    power: float = 2.0

    @property
    def forces(self) -> int:
        """Number of free forces."""
        return len(self.limits) if self.mix is None else self.mix.shape[1]

    def joined(self, elements: Array) -> Array:
        """Return the columns of the free forces from those of the elements."""
        return elements if self.mix is None else elements @ self.mix

    def spread(self, forces: Array) -> Array:
        """Return W_i (elements,) of the free forces."""
        return forces if self.mix is None else self.mix @ forces

    def level(self, load: Array, speed: Array) -> Array:
        """Return 1 + c |τ|^p + e exp(-|ω|/V), (samples,)."""
        result = np.ones(len(speed))
        if self.growth:
            result = result + self.growth * np.abs(load) ** self.power
        if self.extra:
            result = result + self.extra * np.exp(-np.abs(speed) / self.speed)
        return result

    def only(self, kept: NDArray[np.bool_]) -> Shape:
        """Return the shape with some elements only (free forces)."""
        return replace(self, limits=self.limits[kept])


def linear_limits(elements: int, scale: float) -> Array:
    """Return ``D_i = i/M B``, rad."""
    return scale * np.arange(1, elements + 1) / elements


def polynomial_limits(elements: int, scale: float, power: float = LIMIT_POWER) -> Array:
    """Return ``D_i = (i/M)^r B``, rad."""
    result: Array = scale * (np.arange(1, elements + 1) / elements) ** power
    return result


def polynomial_shares(elements: int, power: float = SHARE_POWER) -> Array:
    """Return ``W_i = (M + 1 - i)^r / Σ i^r``, of sum one."""
    shares = (elements + 1.0 - np.arange(1, elements + 1)) ** power
    result: Array = shares / shares.sum()
    return result


LOADS = {"absolute": 1.0, "square": 2.0}
"""Laws of the load and their power p."""
LADDERS = ("gms", "lr-linear", "lr-polynomial")
"""Methods whose limits are B times a fixed ladder."""


def ladder_shape(method: str, elements: int, scale: float) -> Shape:
    """Return the shape of a method with pre-assigned limits."""
    if method == "lr-linear":
        return Shape(linear_limits(elements, scale))
    if method == "lr-polynomial":
        return Shape(polynomial_limits(elements, scale))
    if method == "gms":
        return Shape(polynomial_limits(elements, scale), polynomial_shares(elements)[:, None])
    raise ModelError(f"method must be one of {', '.join(LADDERS)}. Got '{method}' instead.")
