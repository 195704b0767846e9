"""Block jackknife: standard errors of estimates whose residuals are correlated in time.

Samples of a filtered, hysteretic system are not independent, but blocks that are long compared with the correlation
time nearly are. The estimate x_(b) without block b is computed for each of the B blocks, and

    cov(x) = (B - 1)/B Σ_b (x_(b) - x̄)(x_(b) - x̄)ᵀ,    x̄ = 1/B Σ_b x_(b)

(H. Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17(3), 1989).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from jointwise.estimation.factors import sums_of_others
from jointwise.spatial import Array

BLOCK_DURATION = 2.0
"""Shortest block, s: several times the correlation time of friction residuals (some tenths of a second)."""
MIN_BLOCKS = 6
"""Fewest blocks for a standard error: below, the Student factor of a 95 % confidence interval exceeds 2.6."""
MAX_BLOCKS = 30
"""Most blocks: more hardly narrow the Student factor (2.05 at 30) and cost a replicate each."""
CONFIDENCE = 0.95
"""Confidence level of all intervals."""
NORMAL_FACTOR = 1.96
"""Half width of a 95 % interval of a normal distribution in standard errors: `student_factor` of many blocks."""


def block_count(duration: float, shortest: float = BLOCK_DURATION) -> int:
    """Return the number of blocks of at least `shortest` (s) in a duration (s); `MIN_BLOCKS` are needed."""
    return min(MAX_BLOCKS, int(duration / shortest))


def equal_blocks(samples: int, count: int = MAX_BLOCKS) -> NDArray[np.intp]:
    """Return the block number of every sample, (samples,): `count` contiguous blocks of equal size, or `samples`."""
    return np.arange(samples) * min(count, samples) // max(samples, 1)


def recording_blocks(recordings: Iterable[tuple[int, float]], shortest: float = BLOCK_DURATION) -> NDArray[np.intp]:
    """Return the block number of every sample of recordings in sequence; no block spans two of them.

    Args:
        recordings: Number of samples and duration (s) of each recording.
        shortest: Shortest block, s; a shorter recording is one block.

    Returns:
        Block numbers from 0, shape (all samples,).

    """
    parts: list[NDArray[np.intp]] = [np.empty(0, dtype=np.intp)]
    first = 0
    for samples, duration in recordings:
        count = max(1, block_count(duration, shortest))
        parts.append(first + equal_blocks(samples, count))
        first += count
    return np.concatenate(parts)


def jackknife(estimate: Callable[[Array], Array], block_sums: Array) -> tuple[Array, Array]:
    """Return an estimate and its standard error.

    Args:
        estimate: Estimate as a function of a sum over blocks, for example a Gram matrix.
        block_sums: The term that each block contributes to the sum, shape (blocks, ...).

    Returns:
        The estimate from all blocks, and its jackknife standard error, of the same shape.

    """
    replicates = np.array([estimate(others) for others in sums_of_others(block_sums)])
    return estimate(block_sums.sum(axis=0)), standard_error(replicates)


def newton_replicates(values: Array, residual: Array, jacobian: Array, block: NDArray[np.intp]) -> Array:
    """Return leave-one-out replicates of a least-squares fit: ``x_(b) = x + (JᵀJ - J_bᵀJ_b)⁻¹ J_bᵀ r_b``.

    One Newton step from the full fit; exact for a linear model.

    Args:
        values: Estimate x from all rows, shape (parameters,).
        residual: r = model - measurement at x, shape (rows,).
        jacobian: J = ∂r/∂x, shape (rows, parameters).
        block: Block number of each row, shape (rows,).

    Returns:
        x_(b), shape (blocks, parameters).

    """
    scale = np.linalg.norm(jacobian, axis=0)
    scale[scale == 0.0] = 1.0
    parts = [(jacobian[block == b] / scale, residual[block == b]) for b in np.unique(block)]
    others = sums_of_others(np.array([J.T @ J for J, _ in parts]))
    inverses = np.linalg.pinv(others, rcond=1e-10, hermitian=True)
    steps = np.array([inverse @ (J.T @ r) for inverse, (J, r) in zip(inverses, parts, strict=True)])
    result: Array = values + steps / scale
    return result


def standard_error(replicates: Array) -> Array:
    """Return ``√((B - 1)/B Σ_b (x_(b) - mean)²)`` of leave-one-out replicates x_(b), shape (B, ...)."""
    blocks = len(replicates)
    result: Array = np.sqrt((blocks - 1) / blocks * np.sum(np.square(replicates - replicates.mean(axis=0)), axis=0))
    return result


def jackknife_covariance(replicates: Array) -> Array:
    """Return ``(B - 1)/B Σ_b (x_(b) - mean)(x_(b) - mean)ᵀ`` of leave-one-out replicates, shape (B, parameters)."""
    blocks, centred = len(replicates), replicates - replicates.mean(axis=0)
    covariance = (blocks - 1) / blocks * centred.T @ centred
    result: Array = 0.5 * (covariance + covariance.T)  # symmetric to the last bit
    return result


def student_factor(degrees_of_freedom: int) -> float:
    """Return the half width of a 95 % confidence interval in standard errors: the Student quantile.

    The jackknife over B blocks has B - 1 degrees of freedom.
    """
    return float(stdtrit(max(degrees_of_freedom, 1), 0.5 * (1.0 + CONFIDENCE)))
