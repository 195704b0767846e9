"""Piecewise polynomial motions: standstills and straight moves in joint space that speed up, coast and slow down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from jointwise.arguments import checked
from jointwise.design.trajectory import Differentiable, check_positive
from jointwise.errors import ShapeError
from jointwise.spatial import Array

ROUNDING = 1e-9
"""Standstills shorter than this (s) are rounding errors and are dropped."""

Ramp = Literal["constant", "smooth"]
"""Profile of the acceleration: constant (trapezoidal speed), or smooth up to snap."""

RAMPS: dict[Ramp, tuple[float, ...]] = {
    "constant": (0.0, 0.0, 0.5),
    "smooth": (0.0, 0.0, 0.0, 0.0, 0.0, 7.0, -14.0, 10.0, -2.5),
}
"""Distance r(x) covered while the speed rises from 0 to 1 over x in [0, 1], coefficients from the lowest power.

The smooth speed is 35 x⁴ - 84 x⁵ + 70 x⁶ - 20 x⁷: acceleration, jerk and snap vanish at both ends.
"""
PEAKS: dict[Ramp, float] = {"constant": 1.0, "smooth": 35.0 / 16.0}
"""Largest r''(x) of each ramp."""


@dataclass(frozen=True)
class Piece:
    """A polynomial ``q = Σ_k powers[k] τᵏ`` with τ from 0.

    Attributes:
        length: Duration, s.
        powers: Coefficients, (degree + 1, joints), rad/s^k or m/s^k.
    """

    length: float
    powers: Array

    @property
    def end(self) -> Array:
        """Position (joints,) at the end."""
        return np.asarray(np.polynomial.polynomial.polyval(self.length, self.powers), dtype=float)


@dataclass(frozen=True)
class Piecewise(Differentiable):
    """Polynomials in a row.

    In piece i ``q(t) = Σ_k coefficients[k, i] (t - breaks[i])^(degree - k)``, highest power first.

    Attributes:
        duration: Duration, s.
        breaks: Times at which pieces begin and end, from 0, (pieces + 1,), s.
        coefficients: Coefficients, (degree + 1, pieces, joints), rad/s^(degree - k) or m/s^(degree - k).
        smooth: Whether acceleration, jerk and snap are continuous.
    """

    duration: float
    breaks: Array
    coefficients: Array
    smooth: bool

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.coefficients.shape[2])

    @cached_property
    def _polynomial(self) -> Any:
        from scipy.interpolate import PPoly

        return PPoly(self.coefficients, self.breaks)

    def curve(self, t: Array, order: int) -> Array:
        """Return the derivative of an order within [0, duration], (samples, joints)."""
        return np.asarray(self._polynomial(t, nu=order), dtype=float)


def join(pieces: Sequence[Piece], smooth: bool, duration: float | None = None) -> Piecewise:
    """Return pieces as one motion; a `duration` (s) beyond their total is filled by a standstill."""
    rows = [piece for piece in pieces if piece.length > ROUNDING]
    total = float(sum(piece.length for piece in rows))
    if duration is not None and duration > total + ROUNDING:
        rows.append(rest(rows[-1].end, duration - total))
    breaks = np.concatenate([[0.0], np.cumsum([piece.length for piece in rows])])
    degree = max(len(piece.powers) for piece in rows) - 1
    coefficients = np.zeros((degree + 1, len(rows), rows[0].powers.shape[1]))
    for i, piece in enumerate(rows):
        coefficients[degree + 1 - len(piece.powers) :, i] = piece.powers[::-1]
    if duration is not None:
        breaks[-1] = duration
    return Piecewise(float(breaks[-1]), breaks, coefficients, smooth)


def rest(position: Array, length: float) -> Piece:
    """Return a standstill at `position` (joints,) for `length` (s)."""
    return Piece(length, np.asarray(position, dtype=float)[None])


@checked
def hold(position: Array, duration: float) -> Piecewise:
    """Return a motion that stands at `position` (joints,) for `duration` (s)."""
    if np.ndim(position) != 1 or not np.size(position):
        raise ShapeError(f"position must have shape (joints,). Got {np.shape(position)} instead.")
    check_positive(duration=duration)
    return join([rest(position, duration)], smooth=True)


def move(begin: Array, end: Array, velocity: Array, acceleration: Array, ramp: Ramp = "constant") -> list[Piece]:
    """Return the fastest straight move between two postures (joints,) within limits (joints,).

    ``q = begin + s(t) step``: with ``v = min velocity / |step|`` and ``a = min acceleration / |step|`` (joint by joint)
    the path speed ṡ rises to v (or √a if the move is too short to coast) over v/a, stays, and falls again.
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
    ramped = 0.5 * speed * ramp_time
    coast = max(0.0, (1.0 - 2.0 * ramped) / speed)
    up = _scaled(RAMPS[ramp], speed, ramp_time)
    down = _scaled(_backwards(RAMPS[ramp]), speed, ramp_time)
    cruise = np.array([0.0, speed])
    parts = [(ramp_time, up, 0.0), (coast, cruise, ramped), (ramp_time, down, ramped + speed * coast)]
    return [Piece(length, _along(begin, step, s, offset)) for length, s, offset in parts]


def _scaled(profile: Sequence[float] | Array, speed: float, time: float) -> Array:
    """Return the powers of t of ``speed · time · r(t / time)``."""
    powers = np.asarray(profile, dtype=float)
    return speed * time * powers / time ** np.arange(len(powers))


def _backwards(profile: Sequence[float]) -> Array:
    """Return the powers of x of r(1) - r(1 - x): the distance covered while the speed falls from 1 to 0."""
    composed = np.polynomial.Polynomial(profile)(np.polynomial.Polynomial([1.0, -1.0]))
    powers = -np.asarray(composed.coef, dtype=float)
    powers[0] = 0.0
    return powers


def _along(begin: Array, step: Array, s: Array, offset: float) -> Array:
    """Return the powers (degree + 1, joints) of ``begin + (offset + s(t)) step``."""
    powers = np.multiply.outer(s, step)
    powers[0] += begin + offset * step
    return powers


@checked
def joint_moves(
    points: Array,
    velocity: Array,
    acceleration: Array,
    waits: float | Sequence[float] = 0.0,
    ramp: Ramp = "constant",
) -> Piecewise:
    """Return moves through `points` (points, joints) that stop at each, with `waits` (s) after every move."""
    _check_moves(points, velocity, acceleration, waits)
    pieces: list[Piece] = []
    pauses = np.broadcast_to(np.asarray(waits, dtype=float), (len(points) - 1,))
    for begin, end, pause in zip(points[:-1], points[1:], pauses, strict=True):
        pieces += [*move(begin, end, velocity, acceleration, ramp), rest(end, float(pause))]
    return join(pieces or [rest(points[0], 1.0)], smooth=ramp == "smooth")


def _check_moves(points: Array, velocity: Array, acceleration: Array, waits: float | Sequence[float]) -> None:
    """Reject points, limits and waits of `joint_moves` that do not belong together."""
    if np.ndim(points) != 2 or not np.size(points) or not np.isfinite(points).all():
        raise ShapeError(f"points must be finite, of shape (points, joints). Got {np.shape(points)} instead.")
    for name, limit in (("velocity", velocity), ("acceleration", acceleration)):
        if np.shape(limit) not in ((), points.shape[1:]) or not np.all(np.greater(limit, 0.0)):
            found = np.asarray(limit).tolist()
            raise ShapeError(f"{name} must be {points.shape[1]} positive numbers, one for each joint. Got {found}.")
    moves = len(points) - 1
    if np.shape(waits) not in ((), (moves,)) or not np.all(np.greater_equal(waits, 0.0)):
        raise ShapeError(f"waits must be one number >= 0, or {moves}, one for each move. Got {waits} instead.")
