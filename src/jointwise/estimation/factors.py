"""What estimation sees of the data: factors or second moments of [W | y], for each joint and block of time.

``[W | y] = Q [R | z]`` keeps every sum of squares, so weighting joints, leaving blocks out, dropping columns and
testing on a block need no data again, only these small factors (the tall-skinny QR of Demmel, Grigori, Hoemmen and
Langou, "Communication-optimal parallel and sequential QR and LU factorizations", SIAM J. Sci. Comput. 34, 2012).
Memory does not grow with the log.

The second moments ``[W y]ᵀ [W y]`` serve the same purposes several times faster, with half as many digits (their
condition number is the square of that of W): they are for what is selected or compared, factors for what is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.spatial import Array

Index = NDArray[np.intp]

FOLDS = 6
"""Contiguous parts of the training data that a cross-validation leaves out in turn."""
MAX_BLOCKS = 96
"""Beyond this number neighbouring blocks are merged: memory stays flat however long the log."""


def triangle(matrix: Array) -> Array:
    """Return the R factor of a matrix, at most square (Householder QR)."""
    if len(matrix) == 0:
        return np.zeros((0, matrix.shape[1]))
    return np.asarray(np.linalg.qr(matrix, mode="r"))


class BlockSums:
    """Sums over the rows of each block of a joint: of the weights, of weighted y and of weighted y²."""

    weight: list[float]
    total: list[float]
    square: list[float]

    @property
    def empty(self) -> bool:
        """Whether no row counts: the output of the joint was not measured."""
        return not sum(self.weight) > 0.0

    @property
    def variance(self) -> float:
        """Weighted variance of y."""
        n = sum(self.weight)
        return sum(self.square) / n - (sum(self.total) / n) ** 2 if n > 0 else 0.0

    def _add_sums(self, weights: Array, y: Array) -> None:
        self.weight.append(float(weights.sum()))
        self.total.append(float(weights @ y))
        self.square.append(float(weights @ y**2))

    def _summed(self, groups: Sequence[Sequence[int]]) -> tuple[list[float], list[float], list[float]]:
        """Return the three sums for groups of blocks."""
        weight, total, square = (
            [sum(values[k] for k in group) for group in groups] for values in (self.weight, self.total, self.square)
        )
        return weight, total, square

    def _louder(self, gain: float) -> tuple[list[float], list[float], list[float]]:
        """Return the three sums of gain · y."""
        return list(self.weight), [gain * total for total in self.total], [gain**2 * square for square in self.square]


@dataclass
class JointFactors(BlockSums):
    """Factors of one joint block by block; the last column is y.

    `weight` is the sum of row weights of each block, `total` and `square` those of y and y².
    """

    triangles: list[Array] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    square: list[float] = field(default_factory=list)

    def add(self, rows: Array, weights: Array) -> None:
        """Add a block: rows [W y] (samples, columns + 1) and their weights (samples,)."""
        if len(self.triangles) >= MAX_BLOCKS:
            pairs = neighbours(len(self.triangles))
            self.triangles = [self.merged(pair) for pair in pairs]
            self.weight, self.total, self.square = self._summed(pairs)
        self.triangles.append(triangle(rows * np.sqrt(weights)[:, None]))
        self._add_sums(weights, rows[:, -1])

    def merged(self, blocks: Sequence[int] | None = None) -> Array:
        """Return the factor of several blocks together (all of them by default)."""
        chosen = range(len(self.triangles)) if blocks is None else blocks
        parts = [self.triangles[k] for k in chosen]
        return parts[0] if len(parts) == 1 else triangle(np.vstack(parts))

    def scaled(self, gain: float) -> JointFactors:
        """Return the factors with y in another unit: gain · y."""
        factor = np.ones(self.triangles[0].shape[1])
        factor[-1] = gain
        return JointFactors([R * factor for R in self.triangles], *self._louder(gain))

    def columns(self, keep: Index) -> JointFactors:
        """Return the factors of some of the columns and y (no longer triangular, as good for sums of squares)."""
        chosen = np.append(keep, -1)
        return replace(self, triangles=[R[:, chosen] for R in self.triangles])

    def moments(self) -> JointMoments:
        """Return the second moments RᵀR of every block."""
        return JointMoments([R.T @ R for R in self.triangles], list(self.weight), list(self.total), list(self.square))


@dataclass
class JointMoments(BlockSums):
    """Second moments ``[W y]ᵀ [W y]`` (columns + 1, columns + 1) of one joint block by block; see `JointFactors`."""

    squares: list[Array] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    square: list[float] = field(default_factory=list)

    def append(self, squares: Array, weights: Array, y: Array) -> None:
        """Add a block with the weights and outputs (samples,) of its rows."""
        if len(self.squares) >= MAX_BLOCKS:
            pairs = neighbours(len(self.squares))
            self.squares = [self.merged(pair) for pair in pairs]
            self.weight, self.total, self.square = self._summed(pairs)
        self.squares.append(squares)
        self._add_sums(weights, y)

    def merged(self, blocks: Sequence[int] | None = None) -> Array:
        """Return the second moments of several blocks together (all of them by default)."""
        chosen = range(len(self.squares)) if blocks is None else blocks
        return np.asarray(np.sum([self.squares[k] for k in chosen], axis=0))

    def folded(self) -> JointMoments:
        """Return the moments with blocks merged to the folds of a cross-validation."""
        folds = fold_blocks(len(self.squares))
        return JointMoments([self.merged(fold) for fold in folds], *self._summed(folds))

    def scaled(self, gain: float) -> JointMoments:
        """Return the moments with y in another unit: gain · y."""
        factor = np.ones(len(self.squares[0]))
        factor[-1] = gain
        return JointMoments([factor[:, None] * G * factor for G in self.squares], *self._louder(gain))

    def columns(self, keep: Index) -> JointMoments:
        """Return the moments of some of the columns and y."""
        chosen = np.append(keep, -1)
        return replace(self, squares=[G[chosen[:, None], chosen] for G in self.squares])

    def with_known(self, values: Array) -> JointMoments:
        """Return the moments with known parameters taken out (NaN: estimated); see `Problem.with_known`."""
        known = np.flatnonzero(~np.isnan(values))
        if not known.size:
            return self
        turn = np.eye(len(values) + 1)
        turn[known, known] = 0.0
        turn[known, -1] = -values[known]
        return replace(self, squares=[turn.T @ G @ turn for G in self.squares])

    def with_sum(self, columns: Index, value: float, weight: float) -> JointMoments:
        """Return the moments with one more row a block, the known sum of some columns; see `Problem.with_sums`."""
        row = np.zeros(len(self.squares[0]))
        row[columns], row[-1] = 1.0, value
        sizes = [float(np.trace(G[np.ix_(columns, columns)])) for G in self.squares]
        pairs = zip(self.squares, sizes, strict=True)
        return replace(self, squares=[G + weight**2 * size * np.outer(row, row) for G, size in pairs])


def neighbours(blocks: int) -> list[list[int]]:
    """Return the blocks two by two."""
    return [list(range(k, min(k + 2, blocks))) for k in range(0, blocks, 2)]


def fold_blocks(blocks: int) -> list[list[int]]:
    """Return `FOLDS` contiguous groups of blocks, as equal as possible."""
    return [list(map(int, group)) for group in np.array_split(np.arange(blocks), min(FOLDS, blocks))]
