"""Honest deviations of estimates from residuals that hang together in time: blocks are left out one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import t as student

from jointwise.spatial import Array

BLOCK = 2.0
"""Least time of a block, s."""
MOST_BLOCKS = 30
FEWEST_BLOCKS = 6


def block_count(duration: float) -> int:
    """Return into how many blocks a recording of a duration (s) is cut; fewer than `FEWEST_BLOCKS` do not tell."""
    return min(MOST_BLOCKS, int(duration / BLOCK))


def jackknife(estimate: Callable[[Array], Array], parts: Array) -> tuple[Array, Array]:
    """Return the estimate from the sum of `parts` (blocks, ...) and its standard deviation.

    ``σ² = (B - 1)/B Σ_b (x_(b) - mean x_(.))²`` with x_(b) the estimate without block b.
    """
    total, count = parts.sum(axis=0), len(parts)
    left = np.array([estimate(total - part) for part in parts])
    spread: Array = np.sqrt((count - 1) / count * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    return estimate(total), spread


def half_width(blocks: int) -> float:
    """Return how many standard deviations a 95 % interval reaches to either side with so few blocks."""
    return float(student.ppf(0.975, max(blocks - 1, 1)))
