"""Motions made of polynomials in time, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jointwise.simulation.references.differentiable import Differentiable
from jointwise.spatial import Array

ROUNDING = 1e-9
"""Difference between times (s) that is no standstill."""


@dataclass(frozen=True)
class Piece:
    """A polynomial: `length` s; `powers` (degree + 1, joints), ``q = Σ_k powers[k] τᵏ`` with τ from 0."""

    length: float
    powers: Array

    @property
    def end(self) -> Array:
        """Position (joints,) at the end."""
        return np.asarray(np.polynomial.polynomial.polyval(self.length, self.powers), dtype=float)


@dataclass(frozen=True)
class Piecewise(Differentiable):
    """Polynomials in a row: `breaks` (pieces + 1,) s from 0; `coefficients` (degree + 1, pieces, joints).

    In piece i ``q(t) = Σ_k coefficients[k, i] (t - breaks[i])^(degree - k)``, highest power first.
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
    """Return pieces as one motion that ends at `duration` (s): it must not be shorter, the rest is a standstill."""
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


def hold(position: Array, duration: float) -> Piecewise:
    """Return a motion that stands at `position` (joints,) for `duration` (s)."""
    return join([rest(position, duration)], smooth=True)
