"""Triangular factors of [W | y], one for each joint and block of time: all that estimation sees of the data.

``[W | y] = Q [R | z]`` keeps every sum of squares, so weighting joints, leaving blocks out, dropping columns and
testing on a block need no data again, only these small factors (TSQR). Memory does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass
class JointFactors:
    """Factors of one joint block by block; the last column is y.

    `weight` is the sum of row weights of each block, `total` and `square` those of y and y².
    """

    triangles: list[Array] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    square: list[float] = field(default_factory=list)

    def add(self, rows: Array, weights: Array) -> None:
        """Add a block: rows [W y] (samples, columns + 1) and their weights (samples,)."""
        self.append(triangle(rows * np.sqrt(weights)[:, None]), weights, rows[:, -1])

    def append(self, factor: Array, weights: Array, y: Array) -> None:
        """Add a block whose factor is known, with the weights and outputs of its rows."""
        if len(self.triangles) >= MAX_BLOCKS:
            self._halve()
        self.triangles.append(factor)
        self.weight.append(float(weights.sum()))
        self.total.append(float(weights @ y))
        self.square.append(float(weights @ y**2))

    def _halve(self) -> None:
        """Merge neighbours two by two."""
        pairs = [slice(k, k + 2) for k in range(0, len(self.triangles), 2)]
        self.triangles = [triangle(np.vstack(self.triangles[pair])) for pair in pairs]
        self.weight = [sum(self.weight[pair]) for pair in pairs]
        self.total = [sum(self.total[pair]) for pair in pairs]
        self.square = [sum(self.square[pair]) for pair in pairs]

    @property
    def empty(self) -> bool:
        """Whether no row counts: the output of the joint was not measured."""
        return not sum(self.weight) > 0.0

    @property
    def variance(self) -> float:
        """Weighted variance of y."""
        n = sum(self.weight)
        return sum(self.square) / n - (sum(self.total) / n) ** 2 if n > 0 else 0.0

    def merged(self, blocks: Sequence[int] | None = None) -> Array:
        """Return the factor of several blocks together (all of them by default)."""
        chosen = range(len(self.triangles)) if blocks is None else blocks
        parts = [self.triangles[k] for k in chosen]
        return parts[0] if len(parts) == 1 else triangle(np.vstack(parts))

    def folded(self) -> JointFactors:
        """Return the factors with blocks merged to the folds of a cross-validation."""
        folds = fold_blocks(len(self.triangles))
        sums = ([sum(values[k] for k in fold) for fold in folds] for values in (self.weight, self.total, self.square))
        return JointFactors([self.merged(fold) for fold in folds], *sums)

    def scaled(self, gain: float) -> JointFactors:
        """Return the factors with y in another unit: gain · y."""
        factor = np.ones(self.triangles[0].shape[1])
        factor[-1] = gain
        return JointFactors(
            [R * factor for R in self.triangles],
            list(self.weight),
            [gain * total for total in self.total],
            [gain**2 * square for square in self.square],
        )

    def columns(self, keep: Index) -> JointFactors:
        """Return the factors of some of the columns and y (no longer triangular, as good for sums of squares)."""
        chosen = np.append(keep, -1)
        return JointFactors(
            [R[:, chosen] for R in self.triangles], list(self.weight), list(self.total), list(self.square)
        )


def fold_blocks(blocks: int) -> list[list[int]]:
    """Return `FOLDS` contiguous groups of blocks, as equal as possible."""
    return [list(map(int, group)) for group in np.array_split(np.arange(blocks), min(FOLDS, blocks))]
