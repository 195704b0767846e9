"""Load-dependent friction ``f_l = F_l sgn(ω) |τ|^p``.

References:
    Bittencourt, Gunnarsson: Static friction in a robot joint - modeling and identification of load and temperature
    effects, ASME J. Dynamic Systems, Measurement, and Control 134(5), 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.part import Part
from jointwise.model.friction import LOAD_POWERS, load_growth
from jointwise.spatial import Array

CHOICES = ("square", "absolute")
"""Laws of friction that grows with the load; "none" if it does not."""


@dataclass(frozen=True)
class LoadLaw:
    """``f_l = F_l sgn(ω) |τ|^p``, with |τ| clamped to the largest measured one.

    Attributes:
        kind: "square" (p = 2), "absolute" (p = 1), or "none": friction does not grow with the load in the measured
            range.
        factor: F_l, Nm per Nm^p.
        largest: Largest measured |τ|, Nm.
    """

    kind: str
    factor: float
    largest: float

    def torque(self, speed: Array, load: Array) -> Array:
        """Return the friction (samples,), Nm, that a load (samples,), Nm, adds."""
        if self.kind == "none":
            return np.zeros_like(speed)
        size = np.minimum(np.abs(load), self.largest)
        return self.factor * np.sign(speed) * load_growth(size, LOAD_POWERS[self.kind])

    def packed(self) -> list[float]:
        """Return F_l (0 for "none"), p and the largest |τ|, as the native kernel reads them."""
        return [0.0, 1.0, 0.0] if self.kind == "none" else [self.factor, LOAD_POWERS[self.kind], self.largest]

    def outside(self, load: Array) -> NDArray[np.bool_]:
        """Return flags of the loads beyond the measured range, which are clamped."""
        return np.abs(load) > self.largest


@dataclass(frozen=True)
class LoadSettings:
    """Settings of a load part."""

    law: LoadLaw


def load_law_of(part: Part) -> LoadLaw:
    """Return the law of a part from `identify_load`."""
    return part.settings_as("load", LoadSettings).law
