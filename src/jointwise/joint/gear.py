"""The gear of a joint as its file holds it: spring, kinematic error and lost motion.

References:
    Tuttle, Seering: A nonlinear model of a harmonic drive gear transmission, IEEE Trans. Robotics and Automation 12(3),
    1996 (cubic spring, kinematic error).
    Spong: Modeling and control of elastic joint robots, ASME J. Dynamic Systems, Measurement, and Control 109(4), 1987.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jointwise.document import plain_json
from jointwise.errors import ModelError
from jointwise.joint.part import Part
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.model.spring import OddPolynomial, Segments, Spring
from jointwise.model.terms import slip_elements, slip_state
from jointwise.spatial import Array

# -- spring ----------------------------------------------------------------------------------------------------------

CATALOGUE: dict[str, Segments] = {
    "HFUS-14": Segments(4.7e3, 6.1e3, 7.1e3, 2.0, 6.9),
    "HFUS-20": Segments(16e3, 25e3, 29e3, 7.0, 25.0),
}
"""Strain-wave gears with a ratio of at least 80: K1, K2, K3 (Nm/rad), T1, T2 (Nm) of the manufacturer's catalogue, rows
in stiffening order."""


@dataclass(frozen=True)
class StiffnessLaw(Spring):
    """An identified spring with its range of deformation.

    Beyond the range the last stiffness continues: ``τ(φ) = τ(±φ_max) + k(φ_max) (φ ∓ φ_max)``.

    Attributes:
        spring: Spring within the range.
        largest: φ_max, rad.
        damping: Damping D of the gear, Nm s/rad; 0 where it was not determined.
        uncertainty: Half-width of the 95 % confidence interval of the identified k(0), relative to it.

    """

    spring: Spring
    largest: float
    damping: float = 0.0
    uncertainty: float = 0.0

    def torque(self, phi: Array) -> Array:
        """Return τ_J in Nm for deformations (any shape), rad."""
        inside, beyond = self._split(phi)
        return self.spring.torque(inside) + self.spring.stiffness(inside) * beyond

    def damped_torque(self, phi: Array, rate: Array) -> Array:
        """Return ``τ_J = spring(φ) + D φ̇`` in Nm for deformations (rad) and their rates (rad/s), any shape."""
        return self.torque(phi) + self.damping * rate

    def stiffness(self, phi: Array) -> Array:
        """Return dτ_J/dφ in Nm/rad, constant beyond the range."""
        return self.spring.stiffness(self._split(phi)[0])

    def curvature(self, phi: Array) -> Array:
        """Return dk/dφ in Nm/rad², 0 beyond the range."""
        inside, beyond = self._split(phi)
        return np.where(beyond == 0.0, self.spring.curvature(inside), 0.0)

    def energy(self, phi: Array) -> Array:
        """Return the stored energy in J: ``E(±φ_max) + (τ(±φ_max) + ½ k Δφ) Δφ`` beyond the range."""
        inside, beyond = self._split(phi)
        mean = self.spring.torque(inside) + 0.5 * self.spring.stiffness(inside) * beyond
        return self.spring.energy(inside) + mean * beyond

    def _split(self, phi: Array) -> tuple[Array, Array]:
        """Return φ clamped to the range and the excess, rad."""
        inside = np.clip(phi, -self.largest, self.largest)
        return inside, phi - inside


@dataclass(frozen=True)
class StiffnessSettings:
    """Settings of a stiffness part.

    Attributes:
        kind: "polynomial" or "segments".
        coefficients: a_1, a_3, ... of a polynomial, Nm/rad^(2p-1).
        data: Output of the experiment, "locked" or "free".
        offset: Offset of the encoders, rad.
    """

    kind: Literal["polynomial", "segments"]
    coefficients: tuple[float, ...] = ()
    data: str = ""
    offset: float = 0.0


def stiffness_of(part: Part) -> StiffnessLaw:
    """Return the spring of a part from `identify_stiffness`."""
    settings, largest = part.settings_as("stiffness", StiffnessSettings), max(map(abs, part.ranges["phi"]))
    damping = max(part.get("damping"), 0.0)
    if settings.kind == "segments":
        segments = Segments(*(part[name] for name in ("K1", "K2", "K3", "T1", "T2")))
        return StiffnessLaw(segments, largest, damping, _relative_half_width(part, "K1"))
    return StiffnessLaw(OddPolynomial(settings.coefficients), largest, damping, _relative_half_width(part, "a_1"))


def _relative_half_width(part: Part, name: str) -> float:
    """Return the half-width of the 95 % confidence interval of a parameter, relative to its size; infinite for 0."""
    value = part.value(name)
    return 0.5 * (value.high - value.low) / abs(value.value) if value.value else math.inf


# -- kinematic error and lost motion ---------------------------------------------------------------------------------

MIN_REACH = 1e-9
"""Reach (rad) of a lag that is the sign of the motion."""
POINTS = 1000
"""Points of a table over a turn: ten for a wave of the order of a usual gear ratio."""
WHOLE_TURN = 0.97
"""Fraction of a turn, or of some angles, from which on maps count as known at all of them."""


@dataclass(frozen=True)
class FourierSeries:
    """``mean + Σ a_m sin(m θ + p_m)``.

    Attributes:
        mean: Mean, rad.
        orders: Orders m, cycles per turn.
        amplitudes: a_m of every order, rad.
        phases: p_m of every order, rad.
    """

    mean: float
    orders: tuple[int, ...]
    amplitudes: tuple[float, ...]
    phases: tuple[float, ...]

    def at(self, theta: Array) -> Array:
        """Return the value at angles of any shape, rad."""
        result = np.full(np.shape(theta), self.mean)
        for m, a, p in zip(self.orders, self.amplitudes, self.phases, strict=True):
            result += a * np.sin(m * theta + p)
        return result

    def slope(self, theta: Array) -> Array:
        """Return the derivative over θ."""
        result = np.zeros(np.shape(theta))
        for m, a, p in zip(self.orders, self.amplitudes, self.phases, strict=True):
            result += a * m * np.cos(m * theta + p)
        return result


@dataclass(frozen=True)
class RippledTable:
    """A table plus waves that are too short for its points: ``table + Σ a_m sin(m θ + p_m)``."""

    table: PeriodicTable
    ripple: FourierSeries

    def at(self, theta: Array) -> Array:
        """Return the value at angles of any shape, rad."""
        return self.table.at(theta) + self.ripple.at(theta)

    def slope(self, theta: Array) -> Array:
        """Return the derivative over θ."""
        return self.table.slope(theta) + self.ripple.slope(theta)


GearMap = PeriodicTable | RippledTable | FourierSeries
NO_RIPPLE = FourierSeries(0.0, (), (), ())


def packed_map(gear_map: GearMap) -> list[float]:
    """Return the numbers of `gear_map` of the native kernel: points of the table, then mean and waves."""
    if isinstance(gear_map, FourierSeries):
        return [0.0, *_packed_series(gear_map)]
    table, ripple = (gear_map, NO_RIPPLE) if isinstance(gear_map, PeriodicTable) else (gear_map.table, gear_map.ripple)
    return [float(len(table.values)), *table.values, *_packed_series(ripple)]


def _packed_series(series: FourierSeries) -> list[float]:
    orders = map(float, series.orders)
    return [series.mean, float(len(series.orders)), *orders, *series.amplitudes, *series.phases]


@dataclass(frozen=True)
class GearMaps:
    """``θ - q = offset + e(θ) + d(θ) P + spring``: the maps e and d of a gear and the lag P of its lost motion.

    P in [-1, 1] follows θ and saturates after a travel of `reach` from zero, 2 `reach` from the other side; with
    `reach` 0 it is the sign of the motion.

    Attributes:
        kinematic_error: e(θ), rad.
        lost_motion: d(θ), rad.
        reach: Reach of the lag, rad.
        offset: Offset of the encoders, rad.
        deviation: Standard error of e at an angle, rad.
        span: Range (low, high) in which the maps are known, rad.
    """

    kinematic_error: GearMap
    lost_motion: GearMap
    reach: float
    offset: float = 0.0
    deviation: float = 0.0
    span: tuple[float, float] = (0.0, TURN)

    @property
    def is_whole(self) -> bool:
        """Whether the maps are known over a whole turn."""
        return self.span[1] - self.span[0] > WHOLE_TURN * TURN

    def covers(self, theta: Array) -> NDArray[np.bool_]:
        """Return at which of some angles (rad, any shape) the maps are known."""
        low, high = self.span
        return np.asarray(np.mod(theta - low, TURN) <= (TURN if self.is_whole else high - low))

    def knows(self, theta: Array) -> bool:
        """Return whether the maps are known at nearly all of some angles (rad)."""
        return bool(np.mean(self.covers(theta)) > WHOLE_TURN)

    def error(self, theta: Array) -> Array:
        """Return e(θ) in rad."""
        return self.kinematic_error.at(theta)

    def backlash(self, theta: Array) -> Array:
        """Return d(θ) in rad: half the difference between the two directions."""
        return self.lost_motion.at(theta)

    @property
    def least_reach(self) -> float:
        """Reach (rad) of the slip element that makes P: that of the lag, and of a sign for 0."""
        return max(self.reach, MIN_REACH)

    def packed(self) -> list[float]:
        """Return reach, offset, and both maps, as the native kernel reads them."""
        return [self.least_reach, self.offset, *packed_map(self.kinematic_error), *packed_map(self.lost_motion)]

    def lag(self, path: Array) -> Array:
        """Return d(θ) P in rad along a path θ (samples,) that starts relaxed."""
        return self.backlash(path) * full_lag(path, self.reach)

    def slope(self, path: Array) -> Array:
        """Return d(e + d P)/dθ along a path θ (samples,): one minus it is the torque ratio of rotor and gear."""
        P = full_lag(path, self.reach)
        moves = (np.abs(P) < 1.0) / max(self.reach, MIN_REACH) if self.reach > 0.0 else 0.0
        result: Array = self.kinematic_error.slope(path) + self.lost_motion.slope(path) * P
        return result + self.backlash(path) * moves


def full_lag(path: Array, reach: float) -> Array:
    """Return P (samples,) in [-1, 1] along a path θ (samples,) that starts relaxed: one slip element."""
    path = np.asarray(path, dtype=float)
    return slip_elements(path, np.array([max(reach, MIN_REACH)]), slip_state(path[0], 1))[0][:, 0]


@dataclass(frozen=True)
class MapSettings:
    """A gear map in a file: a table, a Fourier series, or both; None for what it does not have.

    Attributes:
        values: Table over one turn, equally spaced from θ = 0, (points,), rad.
        mean: Mean of the series, rad.
        orders: Orders of the series, cycles per turn.
        amplitudes: Amplitude of every order, rad.
        phases: Phase of every order, rad.
    """

    values: tuple[float, ...] | None = None
    mean: float | None = None
    orders: tuple[int, ...] | None = None
    amplitudes: tuple[float, ...] | None = None
    phases: tuple[float, ...] | None = None

    @classmethod
    def of(cls, gear_map: GearMap) -> MapSettings:
        """Return the settings of a map."""
        if isinstance(gear_map, PeriodicTable):
            return cls(gear_map.values)
        series = gear_map.ripple if isinstance(gear_map, RippledTable) else gear_map
        table = gear_map.table.values if isinstance(gear_map, RippledTable) else None
        return cls(table, series.mean, series.orders, series.amplitudes, series.phases)

    def gear_map(self) -> GearMap:
        """Return the map."""
        table = None if self.values is None else PeriodicTable(self.values)
        if table is not None and self.orders is None:
            return table
        if self.orders is None:
            raise ModelError("a gear map must have values or orders. Got neither.")
        series = FourierSeries(self.mean or 0.0, self.orders, self.amplitudes or (), self.phases or ())
        return series if table is None else RippledTable(table, series)


@dataclass(frozen=True)
class TransmissionSettings:
    """Settings of a transmission part.

    Attributes:
        kinematic_error: Map e.
        lost_motion: Map d.
        reach: Reach of the lag, rad.
        settled: Travel after which the lag is full, rad.
        deviation: Standard error of the kinematic error at an angle, rad.
    """

    kinematic_error: MapSettings
    lost_motion: MapSettings
    reach: float
    settled: float = 0.0
    deviation: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON; a map has only the entries of its kind."""
        document: dict[str, Any] = plain_json(self)
        maps = {name: document[name] for name in ("kinematic_error", "lost_motion")}
        return document | {name: {k: v for k, v in entries.items() if v is not None} for name, entries in maps.items()}


def transmission_of(part: Part) -> GearMaps:
    """Return the maps of a part from `identify_transmission`."""
    stored = part.settings_as("transmission", TransmissionSettings)
    error, lost = stored.kinematic_error.gear_map(), stored.lost_motion.gear_map()
    span = part.ranges.get("theta", (0.0, TURN))
    return GearMaps(error, lost, stored.reach, part["offset"], stored.deviation, span)


def backlash_table(part: Part, points: int = POINTS) -> Array:
    """Return d(θ) in rad at `points` equally spaced angles of a turn from θ = 0, (points,)."""
    return transmission_of(part).backlash(TURN * np.arange(points) / points)
