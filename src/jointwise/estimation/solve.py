"""Least squares on a triangular factor, some unknowns bound at zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from jointwise.spatial import Array

Mask = NDArray[np.bool_]

RIDGE = 1e-9
"""Weight of |x|² beside columns of unit length: decides between combinations that the data cannot tell apart."""


def triangle(matrix: Array) -> Array:
    """Return the R factor of a matrix, at most square (Householder QR)."""
    if len(matrix) == 0:
        return np.zeros((0, matrix.shape[1]))
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def bounded_least_squares(augmented: Array, non_negative: Mask, ridge: float = RIDGE) -> Array:
    """Return x that minimises |A x - b|² + ridge |D x|² with x >= 0 where `non_negative`; `augmented` is [A b].

    D holds the lengths of the columns. QR with the free columns first leaves a smaller problem in the bound ones alone,
    which is a non-negative least-squares problem; the free ones follow by back-substitution.
    """
    A, b = augmented[:, :-1], augmented[:, -1]
    lengths = np.linalg.norm(A, axis=0)
    active = lengths > 1e-12 * lengths.max(initial=0.0)
    free, bound = np.flatnonzero(active & ~non_negative), np.flatnonzero(active & non_negative)
    order = np.concatenate([free, bound])
    x = np.zeros(A.shape[1])
    if order.size == 0:
        return x
    stacked = np.zeros((len(A) + order.size, order.size + 1))
    stacked[: len(A), :-1] = A[:, order] / lengths[order]
    stacked[: len(A), -1] = b
    stacked[len(A) :, :-1] = np.sqrt(ridge) * np.eye(order.size)
    R = triangle(stacked)
    split = free.size
    if bound.size:
        x[bound] = nnls(R[split:, split:-1], R[split:, -1])[0]
    rest = R[:split, -1] - R[:split, split:-1] @ x[bound]
    x[free] = solve_triangular(R[:split, :split], rest, check_finite=False)
    x[order] /= lengths[order]
    return x


def squared_error(augmented: Array, x: Array) -> float:
    """Return |A x - b|² of an augmented factor [A b]."""
    residual = augmented[:, :-1] @ x - augmented[:, -1]
    return float(residual @ residual)
