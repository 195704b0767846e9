"""Periodic maps of a gear: kinematic error and lost motion over the rotor's angle at the output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.joint.part import Part
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.model.terms.slip import rest_state, slip_elements
from jointwise.spatial import Array


@dataclass(frozen=True)
class Series:
    """``mean + Σ a_m sin(m θ + p_m)``: `amplitudes` a_m (rad) and `phases` p_m of the `orders` m, cycles a turn."""

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
    """A table and, on it, waves too short for its points: ``table + Σ a_m sin(m θ + p_m)``."""

    table: PeriodicTable
    ripple: Series

    def at(self, theta: Array) -> Array:
        """Return the value at angles of any shape, rad."""
        result: Array = self.table.at(theta) + self.ripple.at(theta)
        return result

    def slope(self, theta: Array) -> Array:
        """Return the derivative over θ."""
        result: Array = self.table.slope(theta) + self.ripple.slope(theta)
        return result


GearMap = PeriodicTable | RippledTable | Series


@dataclass(frozen=True)
class GearMaps:
    """``θ - q = offset + e(θ) + d(θ) P + spring``: the maps e and d (rad) of a gear and the lag P of its lost motion.

    P in [-1, 1] follows θ and is full after a travel of `reach` (rad) from the middle, 2 reach from the other side;
    with `reach` 0 it is the sign of the motion. `deviation` (rad) is that of e at an angle, `span` (from, to; rad)
    where the maps are known.
    """

    kinematic_error: GearMap
    lost_motion: GearMap
    reach: float
    offset: float = 0.0
    deviation: float = 0.0
    span: tuple[float, float] = (0.0, TURN)

    def knows(self, theta: Array) -> bool:
        """Tell whether the maps are known at nearly all of some angles (rad)."""
        low, high = self.span
        return high - low > 0.97 * TURN or bool(np.mean(np.mod(theta - low, TURN) <= high - low) > 0.99)

    def error(self, theta: Array) -> Array:
        """Return e(θ) in rad."""
        return self.kinematic_error.at(theta)

    def backlash(self, theta: Array) -> Array:
        """Return d(θ) in rad: half the difference between the two directions."""
        return self.lost_motion.at(theta)

    def lag(self, path: Array) -> Array:
        """Return d(θ) P in rad along a path θ (samples,) that starts relaxed."""
        result: Array = self.backlash(path) * full_lag(path, self.reach)
        return result

    def slope(self, path: Array) -> Array:
        """Return d(e + d P)/dθ along a path θ (samples,): one less it is the torque ratio of rotor and gear."""
        P = full_lag(path, self.reach)
        moves = (np.abs(P) < 1.0) / max(self.reach, 1e-9) if self.reach > 0.0 else 0.0
        result: Array = (
            self.kinematic_error.slope(path) + self.lost_motion.slope(path) * P + self.backlash(path) * moves
        )
        return result


def full_lag(path: Array, reach: float) -> Array:
    """Return P (samples,) in [-1, 1] of a path θ (samples,), relaxed at its start."""
    limits = np.array([max(reach, 1e-9)])
    return slip_elements(np.asarray(path, dtype=float), limits, 1.0, rest_state(path, 1))[:, 0]


def transmission_of(part: Part) -> GearMaps:
    """Return the maps that a part of the phenomenon "transmission" describes."""
    if part.phenomenon != "transmission":
        raise ModelError(f"a part 'transmission' is needed. Got '{part.phenomenon}' instead.")
    error, lost = (_map(part.settings[name]) for name in ("kinematic_error", "lost_motion"))
    deviation = float(part.settings.get("deviation", 0.0))
    span = part.ranges.get("theta", (0.0, TURN))
    return GearMaps(error, lost, float(part.settings["reach"]), part["offset"], deviation, span)


def backlash_table(part: Part, points: int = 1000) -> Array:
    """Return d(θ) in rad at `points` equally spaced angles of a turn from θ = 0, (points,)."""
    return transmission_of(part).backlash(TURN * np.arange(points) / points)


def _map(settings: dict[str, list[float] | float]) -> GearMap:
    table = PeriodicTable(tuple(settings["values"])) if "values" in settings else None  # type: ignore[arg-type]
    if table is not None and "orders" not in settings:
        return table
    orders, amplitudes, phases = (tuple(settings[k]) for k in ("orders", "amplitudes", "phases"))  # type: ignore[arg-type]
    series = Series(float(settings["mean"]), tuple(int(m) for m in orders), amplitudes, phases)  # type: ignore[arg-type]
    return series if table is None else RippledTable(table, series)
