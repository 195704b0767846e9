"""A backlash that varies over a turn, as a path along which it does not."""

from __future__ import annotations

import math

import numpy as np

from jointwise.spatial import Array


def check_backlash(backlash: tuple[float, ...]) -> None:
    """Refuse anything but positive numbers."""
    if any(not (math.isfinite(b) and b > 0.0) for b in backlash):
        raise ValueError("backlash must be positive numbers")


def evened(x: Array, backlash: Array) -> Array:
    """Return ``∫_0^x dθ / b(θ)`` of a map over one turn, linear between its points, by the trapezoidal rule."""
    fine = np.linspace(0.0, 2.0 * np.pi, max(16 * len(backlash), 1024) + 1)
    slope = 1.0 / np.interp(fine, np.linspace(0.0, 2.0 * np.pi, len(backlash) + 1), np.append(backlash, backlash[0]))
    way = np.concatenate([[0.0], np.cumsum(0.5 * (slope[1:] + slope[:-1]) * np.diff(fine))])
    turns = np.floor(x / (2.0 * np.pi))
    result: Array = turns * way[-1] + np.interp(x - 2.0 * np.pi * turns, fine, way)
    return result
