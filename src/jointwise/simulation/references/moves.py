"""Straight moves in joint space: speed up, coast, slow down; all joints start and stop together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from jointwise.simulation.references.piecewise import Piece, Piecewise, join, rest
from jointwise.spatial import Array

Ramp = Literal["constant", "smooth"]
"""How a move speeds up: by constant acceleration (trapezoid), or by one that is smooth up to snap."""

RAMPS: dict[Ramp, tuple[float, ...]] = {
    "constant": (0.0, 0.0, 0.5),
    "smooth": (0.0, 0.0, 0.0, 0.0, 0.0, 7.0, -14.0, 10.0, -2.5),
}
"""Way r(x) made while the speed rises from 0 to 1 over x in [0, 1], powers from the lowest.

The smooth speed is 35 x⁴ - 84 x⁵ + 70 x⁶ - 20 x⁷: acceleration, jerk and snap vanish at both ends.
"""
PEAKS: dict[Ramp, float] = {"constant": 1.0, "smooth": 35.0 / 16.0}
"""Largest r''(x)."""


def move(begin: Array, end: Array, velocity: Array, acceleration: Array, ramp: Ramp = "constant") -> list[Piece]:
    """Return the fastest straight move between two postures (joints,) within limits (joints,).

    ``q = begin + s(t) step``: with ``v = min velocity / |step|`` and ``a = min acceleration / |step|`` (joint by joint)
    the path speed ṡ rises to v (or √a if there is no room to coast) over v/a, stays, and falls again.
    """
    step = np.asarray(end, dtype=float) - begin
    distance = np.maximum(np.abs(step), 1e-300)
    if np.abs(step).max() == 0.0:
        return []
    a = float(np.min(acceleration / distance)) / PEAKS[ramp]
    v = min(float(np.min(velocity / distance)), np.sqrt(a))
    return run(np.asarray(begin, dtype=float), step, v, v / a, ramp)


def run(begin: Array, step: Array, speed: float, ramp_time: float, ramp: Ramp) -> list[Piece]:
    """Return a move by `step` (joints,) with a path speed (1/s) reached and left over `ramp_time` (s)."""
    way = 0.5 * speed * ramp_time
    coast = max(0.0, (1.0 - 2.0 * way) / speed)
    up = _scaled(RAMPS[ramp], speed, ramp_time)
    down = _scaled(_backwards(RAMPS[ramp]), speed, ramp_time)
    stretches = [(ramp_time, up, 0.0), (coast, np.array([0.0, speed]), way), (ramp_time, down, way + speed * coast)]
    return [Piece(length, _along(begin, step, s, offset)) for length, s, offset in stretches]


def _scaled(way: Sequence[float] | Array, speed: float, time: float) -> Array:
    """Return the powers of t of ``speed · time · r(t / time)``."""
    powers = np.asarray(way, dtype=float)
    return speed * time * powers / time ** np.arange(len(powers))


def _backwards(way: Sequence[float]) -> Array:
    """Return the powers of x of r(1) - r(1 - x): the way made while the speed falls from 1 to 0."""
    composed = np.polynomial.Polynomial(way)(np.polynomial.Polynomial([1.0, -1.0]))
    powers = -np.asarray(composed.coef, dtype=float)
    powers[0] = 0.0
    return powers


def _along(begin: Array, step: Array, s: Array, offset: float) -> Array:
    """Return the powers (degree + 1, joints) of ``begin + (offset + s(t)) step``."""
    powers = np.multiply.outer(s, step)
    powers[0] += begin + offset * step
    return powers


def joint_moves(
    points: Array,
    velocity: Array,
    acceleration: Array,
    waits: float | Sequence[float] = 0.0,
    ramp: Ramp = "constant",
) -> Piecewise:
    """Return moves through `points` (points, joints) that stop at each, with `waits` (s) after every move."""
    pieces: list[Piece] = []
    pauses = np.broadcast_to(np.asarray(waits, dtype=float), (len(points) - 1,))
    for begin, end, pause in zip(points[:-1], points[1:], pauses, strict=True):
        pieces += [*move(begin, end, velocity, acceleration, ramp), rest(end, float(pause))]
    return join(pieces or [rest(points[0], 1.0)], smooth=ramp == "smooth")
