"""Least squares from Gram matrices CᵀC of blocks: a long record is summed once, then solved many times.

The last column of C is the right side y of ``A x = y``, or the residual of a solution. A Gram matrix has the shape
(n + 1, n + 1), those of all blocks (blocks, n + 1, n + 1).

**Digits.** A Gram matrix squares the condition number κ of the columns (of unit length). Solutions x of size 1 have
errors of about 1e-16 κ²: 2e-7 at κ = 2e4, 2e-5 at 2e5. From κ = 1e6 a combination that the data show less than `RCOND`
is dropped: x then has the least norm, the fit is as good, and the other combinations keep their digits. Where rows are
at hand, `linear_fit.scaled_solution` has twice as many digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from jointwise.estimation.bounded import bounded_from_moments, squared_error_from_moments
from jointwise.estimation.cross_validation import FOLDS
from jointwise.estimation.factors import sums_of_others
from jointwise.estimation.jackknife import jackknife_covariance
from jointwise.spatial import Array

RIDGE = 1e-12
"""Relative regularisation of normal equations with columns of unit length: above rounding, below any effect."""
SINGULAR = 1e-9
"""Relative singular value below which a combination of parameters is not identifiable and stays unchanged."""


RCOND = 1e-12
"""Relative singular value below which normal equations show nothing but rounding: κ of 1e6."""


def normal_solution(A: Array, b: Array, rcond: float = RCOND) -> Array:
    """Return the minimum-norm solution x (n,) of ``A x = b``, with A (n, n) scaled to a unit diagonal.

    Singular values below `rcond` times the largest are ignored: parameters without influence stay zero.
    """
    A, b, scale = _unit_diagonal(A, b)
    result: Array = np.linalg.lstsq(A, b, rcond=rcond)[0] / scale
    return result


def _unit_diagonal(A: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return A (n, n) and b (n,) for unknowns times the lengths (n,) of their columns, and these lengths."""
    scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
    return A / np.outer(scale, scale), b / scale, scale


def block_grams(columns: Array, block: NDArray[np.intp]) -> Array:
    """Return CᵀC of every block, (blocks, columns, columns).

    Args:
        columns: C, (rows, columns).
        block: Number of the block of every row, (rows,).
    """
    return np.array([columns[block == b].T @ columns[block == b] for b in np.unique(block)])


def gram_solution(gram: Array, rcond: float = RCOND) -> Array:
    """Return the least-squares solution for a Gram matrix (n + 1, n + 1) of the columns and, last, the right side."""
    return normal_solution(gram[:-1, :-1], gram[:-1, -1], rcond)


def non_negative_solution(gram: Array, count: int) -> tuple[Array, float]:
    """Return the least-squares solution with its first unknowns bounded at zero.

    Args:
        gram: Gram matrix of the columns and, last, the right side, shape (n + 1, n + 1).
        count: Number of leading unknowns that must be >= 0.

    Returns:
        The unknowns, shape (n,), and the sum of squared residuals.

    """
    x = bounded_from_moments(gram, np.arange(len(gram) - 1) < count, RIDGE)
    return x, squared_error_from_moments(gram, x)


def eliminated(A: Array, b: Array, kept: int) -> tuple[Array, Array]:
    """Return normal equations with all but the first `kept` unknowns eliminated.

    Schur complement: ``A₁₁ - A₁₂ A₂₂⁻¹ A₂₁`` and ``b₁ - A₁₂ A₂₂⁻¹ b₂``, shapes (kept, kept) and (kept,).
    """
    rest = cho_factor(A[kept:, kept:] + RIDGE * np.eye(len(A) - kept))
    across = cho_solve(rest, A[kept:, :kept])
    return A[:kept, :kept] - A[:kept, kept:] @ across, b[:kept] - across.T @ b[kept:]


def as_residual(grams: Array, coefficients: Array) -> Array:
    """Return Gram matrices whose last column is the residual ``y - A x`` of a solution instead of y.

    Args:
        grams: Gram matrices with y as the last column, shape (blocks, n + 1, n + 1).
        coefficients: Solution x, shape (n,).

    """
    turn = np.eye(grams.shape[1])
    turn[:-1, -1] = -coefficients
    result: Array = turn.T @ grams @ turn
    return result


def joined_columns(grams: Array, groups: Array) -> Array:
    """Return the Gram matrices ``Gᵀ CᵀC G`` of the columns ``C G``, with G = `groups` (columns, fewer columns)."""
    result: Array = groups.T @ grams @ groups
    return result


# -- blocks left out --


def gram_covariance(grams: Array) -> Array:
    """Return the jackknife covariance of all unknowns from Gram matrices (blocks, p, p) of Jacobian and residual.

    Without block b the solution moves by ``d_b = -(A - A_b)⁻¹ c_b``, one Gauss-Newton step.
    """
    return jackknife_covariance(np.array([gram_solution(others, SINGULAR) for others in sums_of_others(grams)]))


def folds_of(grams: Array) -> list[tuple[Array, Array]]:
    """Return for every fold the sum of the training blocks, (p, p), and the held-out blocks, (blocks, p, p)."""
    fold = np.arange(len(grams)) % FOLDS
    return [(grams[fold != k].sum(axis=0), grams[fold == k]) for k in range(min(FOLDS, len(grams)))]


def held_out_block_errors(grams: Array, relative: NDArray[np.intp]) -> Array:
    """Return the mean squared error of every block when its fold is held out, shape (blocks,).

    The solution moves along its Jacobian to the optimum of the other folds, without a new fit.

    Args:
        grams: Gram matrices of the columns and, last, a column of ones and the residual, shape (blocks, n + 1, n + 1).
        relative: Indices of parameters on a relative scale (logarithms, ratios). They have a prior of standard
            deviation 1, as the Jacobian does not hold farther.

    """
    total = grams.sum(axis=0)
    prior = np.zeros_like(total)
    prior[relative, relative] = total[-1, -1] / total[-2, -2]
    errors = np.empty(len(grams))
    fold = np.arange(len(grams)) % FOLDS
    for k, (train, test) in enumerate(folds_of(grams)):
        step = np.append(-gram_solution(train + prior, SINGULAR), 1.0)
        errors[fold == k] = block_errors(test, step)
    return errors


def block_errors(grams: Array, coefficients: Array) -> Array:
    """Return the mean squared sums ``|C x|² / n`` of blocks, (blocks,).

    Args:
        grams: CᵀC of the blocks, (blocks, p, p); the last but one column of C is ones.
        coefficients: x, (p,).
    """
    result: Array = np.einsum("kij,i,j->k", grams, coefficients, coefficients) / grams[:, -2, -2]
    return result
