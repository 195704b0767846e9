"""The steady friction of a joint over its speed."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ModelError
from jointwise.joint.part import Part
from jointwise.spatial import Array


@dataclass(frozen=True)
class VelocityLaw:
    """``f = (1 + a sgn ω) sgn(ω) (F_C + (F_S - F_C) exp(-(|ω|/V_S)^μ)) + F_V1 ω + F_V2 |ω| ω + F_V3 ω³ + o``.

    Nm and rad/s at the joint side. `coulomb` F_C, `static` F_S, `stribeck_speed` V_S, `shape` μ, `viscous`, `square`
    and `cube` F_V1..3, `asymmetry` a, `offset` o. `slowest` and `fastest` bound the |ω| that was measured.
    """

    coulomb: float = 0.0
    static: float = 0.0
    stribeck_speed: float = 1.0
    shape: float = 1.0
    viscous: float = 0.0
    square: float = 0.0
    cube: float = 0.0
    asymmetry: float = 0.0
    offset: float = 0.0
    slowest: float = 0.0
    fastest: float = np.inf

    def torque(self, speed: Array) -> Array:
        """Return the friction torque (samples,), Nm, at speeds (samples,), their size kept within the measured range.

        At a standstill it is zero: what holds a joint at rest is not told by sliding.
        """
        side = np.sign(speed)
        w = np.clip(np.abs(speed), self.slowest, self.fastest)
        dry = self.coulomb + (self.static - self.coulomb) * np.exp(-((w / self.stribeck_speed) ** self.shape))
        wet = (self.viscous + self.square * w + self.cube * w**2) * w
        result: Array = np.abs(side) * ((side + self.asymmetry) * dry + side * wet + self.offset)
        return result

    def outside(self, speed: Array) -> NDArray[np.bool_]:
        """Tell which speeds lie outside the measured range, and are clamped."""
        w = np.abs(speed)
        result: NDArray[np.bool_] = (w > 0.0) & ((w < self.slowest) | (w > self.fastest))
        return result


def velocity_law_of(part: Part) -> VelocityLaw:
    """Return the law that `identify_friction` found."""
    if part.phenomenon != "friction" or "law" not in part.settings:
        raise ModelError(f"a velocity law comes from a friction part. Got '{part.phenomenon}' instead.")
    return VelocityLaw(**part.settings["law"])


def settings_of(law: VelocityLaw) -> dict[str, float]:
    """Return the numbers of a law as plain JSON."""
    return {name: float(value) for name, value in asdict(law).items()}
