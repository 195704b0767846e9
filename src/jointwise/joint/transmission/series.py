"""Fourier series of both maps by least squares: ``φ = e(θ) + s d(θ) + c τ``, s the direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.gear_maps import Series
from jointwise.joint.jackknife import spread
from jointwise.joint.transmission.strokes import Strokes
from jointwise.spatial import Array

BLOCKS = 20
"""Blocks of time that are left out in turn."""


@dataclass(frozen=True)
class SeriesFit:
    """Coefficients (columns,) of both series and of the load, and `replicates` (blocks, columns) without a block each.

    Columns: 1, sin and cos of every error order; s, s sin and s cos of every backlash order; load (if `elastic`).
    """

    error_orders: tuple[int, ...]
    lost_orders: tuple[int, ...]
    elastic: bool
    numbers: Array
    replicates: Array

    @property
    def compliance(self) -> float:
        """Deformation by the load, rad/Nm; 0 where it was known."""
        return float(self.numbers[-1]) if self.elastic else 0.0

    def series(self, numbers: Array | None = None) -> tuple[Series, Series]:
        """Return e (its mean is the encoder offset) and d."""
        x = self.numbers if numbers is None else numbers
        middle = 1 + 2 * len(self.error_orders)
        end = middle + 1 + 2 * len(self.lost_orders)
        return _series(x[:middle], self.error_orders), _series(x[middle:end], self.lost_orders)

    def predicted(self, strokes: Strokes) -> Array:
        """Return φ, rad (samples,)."""
        error, lost = self.series()
        result: Array = error.at(strokes.theta) + strokes.side * lost.at(strokes.theta) + self.compliance * strokes.load
        return result


def _series(numbers: Array, orders: tuple[int, ...]) -> Series:
    sine, cosine = numbers[1::2], numbers[2::2]
    amplitudes, phases = np.hypot(sine, cosine), np.arctan2(cosine, sine)
    return Series(float(numbers[0]), orders, tuple(amplitudes.tolist()), tuple(phases.tolist()))


def fit_series(
    strokes: Strokes, error_orders: tuple[int, ...], lost_orders: tuple[int, ...], elastic: bool
) -> SeriesFit:
    """Return both series by linear least squares, with jackknife replicates over blocks of strokes."""
    W = columns_of(strokes, error_orders, lost_orders, elastic)
    return SeriesFit(error_orders, lost_orders, elastic, *solve_blocks(W, strokes.phi, blocks_of(strokes)))


def solve_blocks(W: Array, y: Array, block: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return least squares (columns,) and the same without one block each, (blocks, columns)."""
    scale = np.linalg.norm(W, axis=0)
    scale[scale == 0.0] = 1.0
    W = W / scale
    A, b = W.T @ W, W.T @ y
    replicates = []
    for k in np.unique(block) if block.any() else ():
        own = W[block == k]
        replicates.append(np.linalg.lstsq(A - own.T @ own, b - own.T @ y[block == k], rcond=1e-12)[0])
    return np.linalg.lstsq(A, b, rcond=1e-12)[0] / scale, np.array(replicates).reshape(-1, len(scale)) / scale


def significant(fit: SeriesFit, least: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the orders of both series whose amplitude is `least` times the deviation of its parts."""
    deviations = spread(fit.replicates)
    kept, first = [], 1
    for orders in (fit.error_orders, fit.lost_orders):
        pairs = [slice(first + 2 * k, first + 2 * k + 2) for k in range(len(orders))]
        sizes = [(float(np.hypot(*fit.numbers[p])), float(np.hypot(*deviations[p]))) for p in pairs]
        kept.append(tuple(m for m, (size, own) in zip(orders, sizes, strict=True) if size > least * own))
        first += 2 * len(orders) + 1
    return kept[0], kept[1]


def blocks_of(strokes: Strokes) -> NDArray[np.intp]:
    """Return numbers of consecutive blocks of whole cycles."""
    cycle = np.unique(strokes.stroke // 2, return_inverse=True)[1]
    blocks = min(BLOCKS, int(cycle.max()) + 1)
    result: NDArray[np.intp] = cycle * blocks // (cycle.max() + 1)
    return result


def columns_of(strokes: Strokes, error: tuple[int, ...], lost: tuple[int, ...], elastic: bool) -> Array:
    """Return the columns (samples, numbers) of both series and of the load."""
    own = {m: _waves(strokes, m) for m in {*error, *lost}}
    columns = [np.ones(len(strokes.theta)), *(wave for m in error for wave in own[m])]
    columns += [strokes.side, *(strokes.side * wave for m in lost for wave in own[m])]
    return np.column_stack([*columns, strokes.load] if elastic else columns)


def _waves(strokes: Strokes, order: int) -> tuple[Array, Array]:
    """Return sin m θ and cos m θ, averaged over the way of every row."""
    left = np.sinc(order * strokes.width / (2.0 * np.pi))
    return left * np.sin(order * strokes.theta), left * np.cos(order * strokes.theta)
