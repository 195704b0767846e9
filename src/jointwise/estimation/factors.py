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
        y = rows[:, -1]
        self.triangles.append(triangle(rows * np.sqrt(weights)[:, None]))
        self.weight.append(float(weights.sum()))
        self.total.append(float(weights @ y))
        self.square.append(float(weights @ y**2))

    @property
    def variance(self) -> float:
        """Weighted variance of y."""
        n = sum(self.weight)
        return sum(self.square) / n - (sum(self.total) / n) ** 2 if n > 0 else 0.0

    def merged(self, stretches: Sequence[int] | None = None) -> Array:
        """Return the factor of several stretches together (all of them by default)."""
        chosen = range(len(self.triangles)) if stretches is None else stretches
        return triangle(np.vstack([self.triangles[k] for k in chosen]))

    def columns(self, keep: Index) -> JointFactors:
        """Return the factors of some of the columns and y."""
        chosen = np.append(keep, -1)
        return JointFactors(
            [triangle(R[:, chosen]) for R in self.triangles], list(self.weight), list(self.total), list(self.square)
        )


def fold_edges(stretches: int, folds: int) -> list[list[int]]:
    """Return contiguous groups of stretches, as equal as can be."""
    return [list(map(int, group)) for group in np.array_split(np.arange(stretches), min(folds, stretches))]
