"""One triangular factor of [W | y] a joint and stretch of time: all that estimation ever sees of the data.

``[W | y] = Q [R | z]`` keeps every sum of squares, so weighting joints, leaving stretches out, dropping columns and
testing on a stretch need no data again: only these small factors (TSQR). Memory does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jointwise.estimation.solve import triangle
from jointwise.spatial import Array

Index = NDArray[np.intp]

FOLDS = 6
"""Contiguous parts of the training data that a cross-validation leaves out in turn."""
MOST_STRETCHES = 96
"""Beyond this many, neighbouring stretches are merged: memory stays flat however long the log."""


@dataclass
class JointFactors:
    """Factors of one joint by stretch; the last column is y.

    `weight` is the sum of row weights of each stretch, `total` and `square` those of y and y².
    """

    triangles: list[Array] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    square: list[float] = field(default_factory=list)

    def add(self, rows: Array, weights: Array) -> None:
        """Add a stretch: rows [W y] (samples, columns + 1) and their weights (samples,)."""
        self.append(triangle(rows * np.sqrt(weights)[:, None]), weights, rows[:, -1])

    def append(self, factor: Array, weights: Array, y: Array) -> None:
        """Add a stretch whose factor is known, with the weights and outputs of its rows."""
        if len(self.triangles) >= MOST_STRETCHES:
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
    def variance(self) -> float:
        """Weighted variance of y."""
        n = sum(self.weight)
        return sum(self.square) / n - (sum(self.total) / n) ** 2 if n > 0 else 0.0

    def merged(self, stretches: Sequence[int] | None = None) -> Array:
        """Return the factor of several stretches together (all of them by default)."""
        chosen = range(len(self.triangles)) if stretches is None else stretches
        parts = [self.triangles[k] for k in chosen]
        return parts[0] if len(parts) == 1 else triangle(np.vstack(parts))

    def without(self, stretches: Sequence[int]) -> JointFactors:
        """Return the factors with some stretches left out."""
        kept = [k for k in range(len(self.triangles)) if k not in stretches]
        return JointFactors(
            [self.triangles[k] for k in kept],
            *([own[k] for k in kept] for own in (self.weight, self.total, self.square)),
        )

    def folded(self) -> JointFactors:
        """Return the factors with stretches merged to the folds of a cross-validation."""
        folds = fold_edges(len(self.triangles))
        return JointFactors(
            [self.merged(fold) for fold in folds],
            *([sum(own[k] for k in fold) for fold in folds] for own in (self.weight, self.total, self.square)),
        )

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


def fold_edges(stretches: int) -> list[list[int]]:
    """Return `FOLDS` contiguous groups of stretches, as equal as can be."""
    return [list(map(int, group)) for group in np.array_split(np.arange(stretches), min(FOLDS, stretches))]


def scaled_factors(factors: Sequence[JointFactors], gains: Array) -> list[JointFactors]:
    """Return factors with every joint's y in Nm: gain · y."""
    return [own.scaled(float(gain)) for own, gain in zip(factors, gains, strict=True)]
