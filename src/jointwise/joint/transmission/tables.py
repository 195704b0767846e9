"""Periodic tables of both maps by least squares, and their spectra."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.gear_maps import Series
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
MEAN_POINTS = 10_000
"""Angles over which a mean is taken."""
NEIGHBOURS = 40
"""Orders either side of one that tell its noise."""

NO_RIPPLE = Series(0.0, (), (), ())


@dataclass(frozen=True)
class TableFit:
    """Tables of e (its mean is the encoder offset) and d; `seen` (points,) tells the angles passed both ways.

    `span` is their range (low, high), rad; `ripple` rides on the table of e: waves too short for its points.
    """

    error: PeriodicTable
    lost: PeriodicTable
    seen: NDArray[np.bool_]
    span: tuple[float, float]
    ripple: Series

    def predicted(self, strokes: Strokes) -> Array:
        """Return φ, rad (samples,)."""
        error = self.error.at(strokes.theta) + self.ripple.at(strokes.theta)
        result: Array = error + strokes.side * self.lost.at(strokes.theta)
        return result

    def known(self, theta: Array) -> NDArray[np.bool_]:
        """Tell the angles (samples,) that lie where both ways were seen."""
        result: NDArray[np.bool_] = self.seen[_cells(theta, len(self.seen))]
        return result

    def means(self, span: tuple[float, float]) -> Array:
        """Return the means (2,) of e and d over a range of angles, rad."""
        angles = np.linspace(*span, MEAN_POINTS)
        return np.array([(self.error.at(angles) + self.ripple.at(angles)).mean(), self.lost.at(angles).mean()])


def fit_tables(strokes: Strokes, points: int, ripple: Series = NO_RIPPLE) -> TableFit:
    """Return e = (φ₊ + φ₋) / 2 and d = (φ₊ - φ₋) / 2 from a table for each direction, without a known ripple."""
    ways = [strokes.side > 0.0, strokes.side < 0.0]
    phi = strokes.phi - ripple.at(strokes.theta)
    forth, back = (_table(strokes.theta[way], phi[way], points) for way in ways)
    tables = [PeriodicTable(tuple(values.tolist())) for values in (0.5 * (forth + back), 0.5 * (forth - back))]
    return TableFit(tables[0], tables[1], seen_both_ways(strokes, points), span_of(strokes), ripple)


def span_of(strokes: Strokes) -> tuple[float, float]:
    """Return the range (low, high) of angles that were passed in both directions, at most a turn, rad."""
    ways = [strokes.theta[strokes.side > 0.0], strokes.theta[strokes.side < 0.0]]
    low, high = float(max(way.min() for way in ways)), float(min(way.max() for way in ways))
    return low, min(high, low + TURN)


def seen_both_ways(strokes: Strokes, points: int) -> NDArray[np.bool_]:
    """Tell the angles (points,) of a turn that were passed in both directions."""
    ways = [strokes.side > 0.0, strokes.side < 0.0]
    result: NDArray[np.bool_] = np.minimum(*(_passed(strokes.theta[way], points) for way in ways)) > 0
    return result


def _cells(theta: Array, points: int) -> NDArray[np.intp]:
    """Return the points of a table before angles (samples,)."""
    result: NDArray[np.intp] = np.floor(np.mod(theta, TURN) * (points / TURN)).astype(np.intp) % points
    return result


def _passed(theta: Array, points: int) -> Array:
    return np.bincount(_cells(theta, points), minlength=points).astype(float)


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
