"""A periodic look-up table over one turn: backlash, kinematic error and lost motion of a gear."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise.arguments import checked_fields
from jointwise.spatial import Array

TURN = 2.0 * np.pi


@checked_fields
@dataclass(frozen=True)
class PeriodicTable:
    """Values (rad) at equally spaced angles of a turn from θ = 0, linearly interpolated, 2π-periodic."""

    values: tuple[float, ...]

    def at(self, theta: Array) -> Array:
        """Return the value at angles θ (rad) of any shape."""
        return self._between(self._index(theta))

    def slope(self, theta: Array) -> Array:
        """Return the derivative over θ, of the shape of θ (rad)."""
        result: Array = self.slopes[np.mod(np.floor(self._index(theta)).astype(np.intp), len(self.values))]
        return result

    @property
    def slopes(self) -> Array:
        """Derivative over θ after every point, (points,)."""
        result: Array = np.diff([*self.values, self.values[0]]) * (len(self.values) / TURN)
        return result

    def resampled(self, points: int) -> Array:
        """Return the table at `points` equally spaced angles from θ = 0, (points,)."""
        return self._between(np.arange(float(points)) * (len(self.values) / points))

    def _index(self, theta: Array) -> Array:
        """Return fractional indices of angles, from 0 to the number of points."""
        result: Array = np.mod(theta, TURN) * (len(self.values) / TURN)
        return result

    def _between(self, index: Array) -> Array:
        result: Array = np.interp(index, *self._closed)
        return result

    @cached_property
    def _closed(self) -> tuple[Array, Array]:
        """Indices and values of the turn with its first point at the end, (points + 1,) each."""
        return np.arange(len(self.values) + 1.0), np.array([*self.values, self.values[0]])
