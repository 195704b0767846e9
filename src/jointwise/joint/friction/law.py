"""Steady friction of a joint over its speed: the law, and its forms as regressors.

References:
    Armstrong-Hélouvry, Dupont, Canudas de Wit: A survey of models, analysis tools and compensation methods for the
    control of machines with friction, Automatica 30(7), 1994.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ModelError
from jointwise.joint.part import Part
from jointwise.model.friction import stribeck, viscous_columns, viscous_torque
from jointwise.spatial import Array


@dataclass(frozen=True)
class VelocityLaw:
    """``f = (1 + a sgn ω) sgn(ω) (F_C + (F_S - F_C) exp(-(|ω|/V_S)^μ)) + F_V1 ω + F_V2 |ω| ω + F_V3 ω³ + o``.

    All quantities are at the joint side.

    Attributes:
        coulomb: F_C, Nm.
        static: F_S, Nm.
        stribeck_speed: V_S, rad/s.
        shape: μ.
        viscous: F_V1, Nm s/rad.
        square: F_V2, Nm s²/rad².
        cube: F_V3, Nm s³/rad³.
        asymmetry: a.
        offset: o, Nm.
        slowest: Least measured |ω|, rad/s.
        fastest: Greatest measured |ω|, rad/s.
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
        """Return the friction torque (samples,), Nm, at speeds (samples,), clamped to the measured range.

        It is zero at standstill: friction at rest does not follow from sliding.
        """
        side = np.sign(speed)
        w = np.clip(np.abs(speed), self.slowest, self.fastest)
        dry = self.coulomb + (self.static - self.coulomb) * stribeck(w, self.stribeck_speed, self.shape)
        return np.abs(side) * ((side + self.asymmetry) * dry + self.viscous_torque(side * w) + self.offset)

    def viscous_torque(self, speed: Array) -> Array:
        """Return ``F_V1 ω + F_V2 |ω| ω + F_V3 ω³`` (samples,), Nm, at speeds clamped to the fastest measured one."""
        w = np.clip(speed, -self.fastest, self.fastest)
        return viscous_torque(w, (self.viscous, self.square, self.cube))

    def outside(self, speed: Array) -> NDArray[np.bool_]:
        """Return flags of the speeds outside the measured range, which are clamped."""
        w = np.abs(speed)
        return (w > 0.0) & ((w < self.slowest) | (w > self.fastest))

    def even(self, speed: Array) -> Array:
        """Return the mean friction of both directions, Nm, at speeds > 0."""
        return 0.5 * (self.torque(speed) - self.torque(-speed))


@dataclass(frozen=True)
class StoredCovariance:
    """Covariance of values of a friction part; those of V_S and mu are their logarithms.

    Attributes:
        names: Names of the values.
        values: Their covariance, (names, names).
    """

    names: tuple[str, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        """Reject a matrix that is not square."""
        count = len(self.names)
        if len(self.values) != count or any(len(row) != count for row in self.values):
            raise ModelError(f"covariance must be {count} rows of {count} numbers.")


@dataclass(frozen=True)
class FrictionSettings:
    """Settings of a friction part.

    Attributes:
        law: The identified law.
        covariance: Covariance of its parameters.
        temperature: Temperature at which the curve holds, °C; None where it was not measured.
        points: Data of the fit, "runs" or "cycles".
        beside: Coefficients of the effects that were fitted with the curve, by name.
        band_check: Fractions of held-out points in the 95 % band: `inside` of all, `slow` of the slowest, and the
            number of `points`.
    """

    law: VelocityLaw
    covariance: StoredCovariance = StoredCovariance()
    temperature: float | None = None
    points: str = "runs"
    beside: Mapping[str, float] = field(default_factory=dict)
    band_check: Mapping[str, float] = field(default_factory=dict)


def friction_settings(part: Part) -> FrictionSettings:
    """Return the settings of a part from `identify_friction`."""
    return part.settings_as("friction", FrictionSettings)


def velocity_law_of(part: Part) -> VelocityLaw:
    """Return the law of a part from `identify_friction`."""
    return friction_settings(part).law


@dataclass(frozen=True)
class FrictionForm:
    """Which terms of the velocity law a curve has.

    Attributes:
        dry: Whether it has Coulomb friction.
        stribeck: Whether friction rises at low speed.
        free: Whether the exponent μ of that rise is free; else it is 1.
        powers: Number of viscous terms out of ω, |ω| ω, ω³.
        side: How directions differ: "none", "offset" or "asymmetry".
    """

    dry: bool = True
    stribeck: bool = False
    free: bool = False
    powers: int = 1
    side: str = "none"

    @property
    def name(self) -> str:
        """Name of the form without its side."""
        dry = ("Stribeck" if self.free else "Stribeck (mu = 1)") if self.stribeck else "Coulomb"
        viscous = "viscous" + ("", ", square", ", cubic")[self.powers - 1]
        full = " (seven parameters)" if self.free and self.powers == 3 else ""
        return f"{dry} + {viscous}{full}" if self.dry else viscous

    @property
    def title(self) -> str:
        """Name of the form with its side."""
        return self.name if self.side == "none" else f"{self.name}, {self.side}"

    @property
    def nonlinear(self) -> tuple[str, ...]:
        """Names of the parameters in which the curve is nonlinear: log V_S, log μ, a."""
        asymmetric = self.side == "asymmetry" and self.dry
        return ("log V_S",) * self.stribeck + ("log mu",) * self.free + ("asymmetry",) * asymmetric

    @property
    def linear(self) -> tuple[str, ...]:
        """Names of the parameters in which the curve is linear, non-negative ones first."""
        viscous = ("F_V1", "F_V2", "F_V3")[: self.powers]
        dry = ("F_C",) * self.dry + ("F_S-F_C",) * self.stribeck
        return (*dry, *viscous, *(("offset",) if self.side == "offset" else ()))

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.nonlinear) + len(self.linear)

    @property
    def nonnegative(self) -> int:
        """Number of leading linear parameters that cannot be negative: F_C, F_S - F_C and F_V1."""
        return self.dry + self.stribeck + 1

    def columns(self, speed: Array, nonlinear: Array) -> Array:
        """Return the regressor (points, linear parameters) at speeds (points,)."""
        values = dict(zip(self.nonlinear, nonlinear, strict=True))
        dry = np.sign(speed) + values.get("asymmetry", 0.0)
        columns = [dry] if self.dry else []
        if self.stribeck:
            rise = stribeck(speed, np.exp(values["log V_S"]), np.exp(values.get("log mu", 0.0)))
            columns.append(dry * rise)
        columns.append(viscous_columns(speed, range(1, self.powers + 1)))
        if self.side == "offset":
            columns.append(np.ones_like(speed))
        return np.column_stack(columns)

    def law(self, nonlinear: Array, linear: Array, slowest: float, fastest: float) -> VelocityLaw:
        """Return the velocity law of parameters within a range of |ω|, rad/s."""
        values = dict(zip((*self.nonlinear, *self.linear), (*nonlinear, *linear), strict=True))
        coulomb = values.get("F_C", 0.0)
        return VelocityLaw(
            coulomb=coulomb,
            static=coulomb + values.get("F_S-F_C", 0.0),
            stribeck_speed=float(np.exp(values.get("log V_S", 0.0))),
            shape=float(np.exp(values.get("log mu", 0.0))),
            viscous=values.get("F_V1", 0.0),
            square=values.get("F_V2", 0.0),
            cube=values.get("F_V3", 0.0),
            asymmetry=values.get("asymmetry", 0.0),
            offset=values.get("offset", 0.0),
            slowest=slowest,
            fastest=fastest,
        )
