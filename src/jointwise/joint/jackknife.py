"""Honest deviations of estimates from residuals that hang together in time: blocks are left out one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from jointwise.spatial import Array

BLOCK = 2.0
"""Least time of a block, s."""
MOST_BLOCKS = 30
FEWEST_BLOCKS = 6


def block_count(duration: float) -> int:
    """Return into how many blocks a recording of a duration (s) is cut; fewer than `FEWEST_BLOCKS` do not tell."""
    return min(MOST_BLOCKS, int(duration / BLOCK))


def jackknife(estimate: Callable[[Array], Array], parts: Array) -> tuple[Array, Array]:
    """Return the estimate from the sum of `parts` (blocks, ...) and its standard deviation."""
    total = parts.sum(axis=0)
    return estimate(total), spread(np.array([estimate(total - part) for part in parts]))


def newton_replicates(numbers: Array, residual: Array, jacobian: Array, block: NDArray[np.intp]) -> Array:
    """Return the numbers of a fit without one block each, (blocks, numbers): ``x + (A - A_b)⁻¹ J_bᵀ r_b``.

    One Newton step from the full fit, whose `residual` r (rows,) and `jacobian` J (rows, numbers) are of one sign.
    """
    scale = np.linalg.norm(jacobian, axis=0)
    scale[scale == 0.0] = 1.0
    J = jacobian / scale
    A = J.T @ J
    steps = []
    for b in np.unique(block):
        own = J[block == b]
        steps.append(np.linalg.pinv(A - own.T @ own, rcond=1e-10, hermitian=True) @ (own.T @ residual[block == b]))
    result: Array = numbers + np.array(steps) / scale
    return result


def spread(left: Array) -> Array:
    """Return ``σ = √((B - 1)/B Σ_b (x_(b) - mean x_(.))²)`` of (blocks, ...): x_(b) is the estimate without block b."""
    blocks = len(left)
    result: Array = np.sqrt((blocks - 1) / blocks * np.sum(np.square(left - left.mean(axis=0)), axis=0))
    return result


def spread_covariance(left: Array) -> Array:
    """Return the covariance (numbers, numbers) of estimates (blocks, numbers) without one block each, as `spread`."""
    blocks, centred = len(left), left - left.mean(axis=0)
    result: Array = (blocks - 1) / blocks * centred.T @ centred
    return result


def half_width(blocks: int) -> float:
    """Return how many standard deviations a 95 % interval reaches to either side with so few blocks."""
    return float(stdtrit(max(blocks - 1, 1), 0.975))
