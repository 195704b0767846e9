"""Periodic tables of both maps by least squares, and their spectra."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.transmission.strokes import Strokes
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.spatial import Array

STIFFNESS = 1e-3
"""Weight of a table's differences against a sample: a straight line crosses angles without data."""
PEAK = 6.0
"""A peak of a spectrum stands out by this factor from the middle of its neighbours."""
LEAST_SHARE = 0.005
"""Smallest amplitude of a peak as a part of the largest."""
MOST_PEAKS = 24
NEIGHBOURS = 40
"""Orders either side of one that tell its noise."""


@dataclass(frozen=True)
class TableFit:
    """Tables of e (its mean is the encoder offset) and d; `seen` (points,) tells the angles passed both ways."""

    error: PeriodicTable
    lost: PeriodicTable
    seen: NDArray[np.bool_]

    def predicted(self, strokes: Strokes) -> Array:
        """Return φ, rad (samples,)."""
        result: Array = self.error.at(strokes.theta) + strokes.side * self.lost.at(strokes.theta)
        return result


def fit_tables(strokes: Strokes, points: int) -> TableFit:
    """Return e = (φ₊ + φ₋) / 2 and d = (φ₊ - φ₋) / 2 from a table for each direction."""
    ways = [strokes.side > 0.0, strokes.side < 0.0]
    forth, back = (_table(strokes.theta[way], strokes.phi[way], points) for way in ways)
    seen = np.minimum(*(_passed(strokes.theta[way], points) for way in ways)) > 0
    tables = [PeriodicTable(tuple(values.tolist())) for values in (0.5 * (forth + back), 0.5 * (forth - back))]
    return TableFit(tables[0], tables[1], seen)


def _passed(theta: Array, points: int) -> Array:
    cell = np.floor(np.mod(theta, TURN) * (points / TURN)).astype(np.intp) % points
    return np.bincount(cell, minlength=points).astype(float)


def _table(theta: Array, phi: Array, points: int) -> Array:
    """Return the values whose linear interpolation meets φ best; smooth where there is no data."""
    from scipy.sparse import diags
    from scipy.sparse.linalg import spsolve

    place = np.mod(theta, TURN) * (points / TURN)
    left = np.floor(place).astype(np.intp) % points
    part = place - np.floor(place)
    right = (left + 1) % points
    middle = np.bincount(left, (1 - part) ** 2, points) + np.bincount(right, part**2, points)
    beside = np.bincount(left, part * (1 - part), points)
    b = np.bincount(left, (1 - part) * phi, points) + np.bincount(right, part * phi, points)
    steps = diags([-1.0, 1.0, 1.0], [0, 1, 1 - points], shape=(points, points))
    A = diags([middle, beside[:-1], beside[:-1], beside[-1:], beside[-1:]], [0, 1, -1, points - 1, 1 - points])
    result: Array = spsolve((A + STIFFNESS * (steps.T @ steps)).tocsc(), b)
    return result


def spectrum(table: PeriodicTable) -> tuple[Array, Array]:
    """Return orders (cycles a turn) from 1 on and their amplitudes, rad."""
    values = np.array(table.values)
    amplitudes = 2.0 * np.abs(np.fft.rfft(values)) / len(values)
    orders = np.arange(1.0, len(values) // 2)
    return orders, amplitudes[1 : len(values) // 2]


def peaks(orders: Array, amplitudes: Array) -> tuple[int, ...]:
    """Return the orders that stand out of their neighbourhood, ascending."""
    from scipy.ndimage import median_filter

    floor = median_filter(amplitudes, min(2 * NEIGHBOURS + 1, len(amplitudes)), mode="reflect")
    least = np.maximum(PEAK * floor, LEAST_SHARE * amplitudes.max())
    found = np.flatnonzero(amplitudes > np.maximum(least, 1e-12))
    largest = found[np.argsort(amplitudes[found])[::-1][:MOST_PEAKS]]
    return tuple(int(m) for m in np.sort(orders[largest]))


def order_name(order: int, ratio: float | None) -> str:
    """Return what turns so often in a turn of the output, for a gear ratio N."""
    if order in (1, 2):
        return {1: "once", 2: "twice"}[order] + " a turn of the output"
    if ratio:
        for factor in (1, 2, 3, 4):
            beside = order - round(factor * ratio)
            if abs(beside) <= 2:
                side = f"{beside:+d}" if beside else ""
                name = f"{'' if factor == 1 else factor}N{side}"
                return (
                    f"{name}, {factor} a turn of the wave generator"
                    if not beside
                    else f"{name}, beside the wave generator's"
                )
    return f"{order} a turn of the output"
