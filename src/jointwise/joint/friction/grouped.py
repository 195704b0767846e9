"""Least squares whose residuals are alike within groups: runs, cycles, blocks of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from jointwise.spatial import Array

SMALLEST = 0.02
"""Least part of a residual that a fit is taken to have left."""


@dataclass(frozen=True, eq=False)
class Linear:
    """Numbers (columns,) of a linear fit, their covariance, and the factor of their 95 % intervals."""

    values: Array
    covariance: Array
    factor: float

    @property
    def deviations(self) -> Array:
        """Standard deviations (columns,)."""
        result: Array = np.sqrt(np.diag(self.covariance))
        return result

    def band(self, A: Array, scatter: float = 0.0) -> Array:
        """Return half the width of the 95 % band of rows (rows, columns); `scatter` deviates single points."""
        variance = np.einsum("ij,jk,ik->i", A, self.covariance, A)
        result: Array = self.factor * np.sqrt(variance + scatter**2)
        return result


def grouped_fit(A: Array, y: Array, group: NDArray[np.intp], weight: Array | None = None) -> Linear:
    """Return the least-squares fit of y (rows,) on A (rows, columns), weighted by row, with deviations by group."""
    if weight is not None:
        return grouped_fit(weight[:, None] * A, weight * y, group)
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    x = np.linalg.lstsq(A / scale, y, rcond=1e-12)[0] / scale
    freedom = max(1, len(np.unique(group)) - A.shape[1])
    return Linear(x, covariance(A, y - A @ x, group), float(stdtrit(freedom, 0.975)))


def covariance(J: Array, residual: Array, group: NDArray[np.intp], numbers: int | None = None) -> Array:
    """Return ``(JᵀJ)⁻¹ M (JᵀJ)⁻¹`` with ``M = Σ_g J_gᵀ e_g e_gᵀ J_g``, residuals alike within groups.

    ``e_g = (I - H_gg)^(-1/2) r_g`` gives back what the fit took from the residuals. Where groups of equal worth
    (``M = s² JᵀJ``, s² from the sums over each group) deviate more, they tell. A column of zeros has no deviation.
    `numbers` is what the groups lose to the fit, by default as many as J has columns.
    """
    free = np.flatnonzero(np.linalg.norm(J, axis=0) > 0.0)
    own = J[:, free]
    inverse = _inverse(own)
    rows = [np.flatnonzero(group == name) for name in np.unique(group)]
    scores = np.array([own[r].T @ _given_back(own[r], residual[r], inverse) for r in rows])
    unlike = inverse @ (scores.T @ scores) @ inverse
    few = len(rows) / max(1, len(rows) - (len(free) if numbers is None else numbers))
    equal = few * inverse * float(np.mean([residual[r].sum() ** 2 / len(r) for r in rows]))
    widen = np.sqrt(np.maximum(np.diag(unlike) / np.maximum(np.diag(equal), 1e-300), 1.0))
    result = np.zeros((J.shape[1], J.shape[1]))
    result[np.ix_(free, free)] = equal * np.outer(widen, widen)
    return result


def _given_back(J: Array, residual: Array, inverse: Array) -> Array:
    """Return ``(I - H)^(-1/2) r`` of a group, H = J (JᵀJ)⁻¹ Jᵀ."""
    sizes, vectors = np.linalg.eigh(np.eye(len(J)) - J @ inverse @ J.T)
    result: Array = vectors @ ((vectors.T @ residual) / np.sqrt(np.maximum(sizes, SMALLEST)))
    return result


def _inverse(J: Array) -> Array:
    """Return (JᵀJ)⁻¹ by the singular values of J with columns of unit length."""
    scale = np.linalg.norm(J, axis=0)
    _, s, V = np.linalg.svd(J / scale, full_matrices=False)
    root = V.T / np.maximum(s, 1e-10 * s[0]) / scale[:, None]
    result: Array = root @ root.T
    return result
