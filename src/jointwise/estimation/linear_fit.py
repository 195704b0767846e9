"""Small linear least-squares fits of rows, also with residuals that are correlated within groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.estimation.jackknife import student_factor
from jointwise.spatial import Array

MIN_LEVERAGE_RESIDUAL = 0.02
"""Smallest eigenvalue of I - H of a group: bounds the correction of a group that determines a parameter alone."""
RANK_TOLERANCE = 1e-10
"""Singular values of a scaled Jacobian below this fraction of the largest are taken as this fraction."""


def scaled_solution(A: Array, y: Array, rcond: float = 1e-12) -> Array:
    """Return the minimum-norm x (n,) of ``min |A x - y|²``, with the columns of A (rows, n) scaled to unit length.

    Singular values below `rcond` times the largest are ignored: parameters without influence stay zero.
    """
    scale = column_lengths(A)
    result: Array = np.linalg.lstsq(A / scale, y, rcond=rcond)[0] / scale
    return result


def column_lengths(A: Array) -> Array:
    """Return the lengths (n,) of the columns of A (rows, n), 1 for columns of zeros."""
    lengths = np.linalg.norm(A, axis=0)
    result: Array = np.where(lengths > 0.0, lengths, 1.0)
    return result


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Parameters (n,) of a linear fit, their covariance (n, n), and the Student factor of 95 % confidence intervals."""

    values: Array
    covariance: Array
    factor: float

    @property
    def deviations(self) -> Array:
        """Standard errors (n,)."""
        result: Array = np.sqrt(np.diag(self.covariance))
        return result

    def band(self, A: Array, scatter: float = 0.0) -> Array:
        """Return the half width (rows,) of the 95 % band for regressor rows A (rows, n).

        With the standard deviation `scatter` of single points, the band is that of a new point.
        """
        variance = np.einsum("ij,jk,ik->i", A, self.covariance, A)
        result: Array = self.factor * np.sqrt(variance + scatter**2)
        return result


def grouped_fit(A: Array, y: Array, group: NDArray[np.intp], weight: Array | None = None) -> LinearFit:
    """Return the weighted least-squares fit of y (rows,) on A (rows, n), with standard errors clustered by group."""
    if weight is not None:
        return grouped_fit(weight[:, None] * A, weight * y, group)
    x = scaled_solution(A, y)
    freedom = len(np.unique(group)) - A.shape[1]
    return LinearFit(x, grouped_covariance(A, y - A @ x, group), student_factor(freedom))


def grouped_covariance(J: Array, residual: Array, group: NDArray[np.intp], parameters: int | None = None) -> Array:
    """Return the cluster-robust covariance ``(JᵀJ)⁻¹ M (JᵀJ)⁻¹``, ``M = Σ_g J_gᵀ e_g e_gᵀ J_g``.

    ``e_g = (I - H_gg)^(-1/2) r_g`` corrects for the leverage of a group (CR2). With few groups M scatters, so it is not
    taken below that of equally uncertain groups, ``s² JᵀJ`` with s² from the sums over each group. A column of zeros
    has no variance.

    Args:
        J: Jacobian, shape (rows, n).
        residual: Residuals, shape (rows,).
        group: Group (run, cycle or block) of each row, shape (rows,).
        parameters: Degrees of freedom that the fit takes from the groups; n by default.

    """
    free = np.flatnonzero(np.linalg.norm(J, axis=0) > 0.0)
    active = J[:, free]
    inverse = _inverse(active)
    rows = [np.flatnonzero(group == name) for name in np.unique(group)]
    scores = np.array([active[r].T @ _leverage_corrected(active[r], residual[r], inverse) for r in rows])
    robust = inverse @ (scores.T @ scores) @ inverse
    correction = len(rows) / max(1, len(rows) - (len(free) if parameters is None else parameters))
    equal = correction * inverse * float(np.mean([residual[r].sum() ** 2 / len(r) for r in rows]))
    widening = np.sqrt(np.maximum(np.diag(robust) / np.maximum(np.diag(equal), 1e-300), 1.0))
    result = np.zeros((J.shape[1], J.shape[1]))
    result[np.ix_(free, free)] = equal * np.outer(widening, widening)
    return result


def _leverage_corrected(J: Array, residual: Array, inverse: Array) -> Array:
    """Return ``(I - H)^(-1/2) r`` of a group, H = J (JᵀJ)⁻¹ Jᵀ."""
    eigenvalues, vectors = np.linalg.eigh(np.eye(len(J)) - J @ inverse @ J.T)
    result: Array = vectors @ ((vectors.T @ residual) / np.sqrt(np.maximum(eigenvalues, MIN_LEVERAGE_RESIDUAL)))
    return result


def _inverse(J: Array) -> Array:
    """Return (JᵀJ)⁻¹ from the singular values of J with columns of unit length."""
    scale = np.linalg.norm(J, axis=0)
    _, s, V = np.linalg.svd(J / scale, full_matrices=False)
    root = V.T / np.maximum(s, RANK_TOLERANCE * s[0]) / scale[:, None]
    result: Array = root @ root.T
    return result
