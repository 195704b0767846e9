"""What a model leaves: noise, or a curve that it misses."""

from __future__ import annotations

import numpy as np

from jointwise.spatial import Array

MOST_BINS = 20
LEAST_IN_BIN = 3
LEAST_BINS = 8
SURE = 2.6
"""Deviations by which the runs of signs must be too few: one in a hundred by chance, either way."""
CLEAR = 0.3
"""Part of the variance that a curve must explain to be worth a word."""


def structure_share(x: Array, residual: Array) -> float | None:
    """Return which part (0..1) of the variance of a residual (points,) is a smooth curve of x; None if it is noise.

    Means over bins of as many points each: noise changes their signs at random (runs test of Wald and Wolfowitz), a
    curve does not. What noise leaves in the means, ``bins / points``, is taken off the part.
    """
    count = min(MOST_BINS, len(x) // LEAST_IN_BIN)
    if count < LEAST_BINS or not float(np.var(residual)) > 0.0:
        return None
    parts = np.array_split(residual[np.argsort(x, kind="stable")], count)
    means = np.array([part.mean() for part in parts]) - residual.mean()
    noise = count / len(x)
    share = (float(np.var(means)) / float(np.var(residual)) - noise) / (1.0 - noise)
    return min(share, 1.0) if share > CLEAR and _runs_missing(means) > SURE else None


def _runs_missing(values: Array) -> float:
    """Return how many deviations fewer runs of equal signs there are than chance would make."""
    above = values > 0.0
    a, b = int(above.sum()), int((~above).sum())
    if a < 2 or b < 2:
        return 0.0
    runs, n = 1 + int((above[1:] != above[:-1]).sum()), a + b
    expected = 1.0 + 2.0 * a * b / n
    variance = (expected - 1.0) * (expected - 2.0) / (n - 1.0)
    return float((expected - runs) / np.sqrt(variance))
