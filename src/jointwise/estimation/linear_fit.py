"""Small least-squares fits of rows with the uncertainty of their parameters by the block jackknife."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import approx_fprime

from jointwise.estimation.jackknife import jackknife_covariance, newton_replicates, student_factor
from jointwise.spatial import Array


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


def derivatives(function: Callable[[Array], Array], x: Array) -> Array:
    """Return ∂f/∂x by finite differences, (rows, n).

    Args:
        function: f, from x to (rows,).
        x: Point, (n,); n may be 0.
    """
    if not len(x):
        return np.empty((len(function(x)), 0))
    return np.atleast_2d(approx_fprime(x, function))


@dataclass(frozen=True, eq=False)
class JackknifeFit:
    """Parameters of a fit with their uncertainty.

    Attributes:
        values: Parameters, (n,).
        covariance: Their jackknife covariance, (n, n).
        factor: Half-width of a 95 % confidence interval per standard error (Student).
        scatter: Standard deviation of single points about the fit, in the unit of the data.
    """

    values: Array
    covariance: Array
    factor: float
    scatter: float

    @property
    def deviations(self) -> Array:
        """Standard errors (n,)."""
        result: Array = np.sqrt(np.diag(self.covariance))
        return result

    def error(self, gradient: Array) -> float:
        """Return the standard error of a quantity with a gradient (n,) by the parameters."""
        return float(np.sqrt(gradient @ self.covariance @ gradient))

    def band(self, jacobian: Array) -> Array:
        """Return the half width (rows,) of the 95 % band for a new point, from derivatives (rows, n) of the model."""
        variance = np.einsum("ij,jk,ik->i", jacobian, self.covariance, jacobian)
        result: Array = self.factor * np.sqrt(variance + self.scatter**2)
        return result


def jackknife_fit(
    values: Array, residual: Array, jacobian: Array, group: NDArray[np.intp], scatter: float
) -> JackknifeFit:
    """Return the uncertainty of a least-squares solution with residuals that are correlated within groups.

    One group (a run, cycle or block) is left out at a time; the coverage also holds for few and unequal groups.

    Args:
        values: Solution, shape (n,).
        residual: Model minus measurement at the solution, shape (rows,).
        jacobian: Its derivative by the parameters, shape (rows, n).
        group: Group of each row, shape (rows,).
        scatter: Standard deviation of single points about the fit.

    """
    replicates = newton_replicates(values, residual, jacobian, group)
    return JackknifeFit(values, jackknife_covariance(replicates), student_factor(len(replicates) - 1), scatter)


def grouped_fit(A: Array, y: Array, group: NDArray[np.intp], weight: Array) -> JackknifeFit:
    """Return the weighted least-squares fit of y (rows,) on A (rows, n), with one group left out at a time."""
    weighted = weight[:, None] * A
    x = scaled_solution(weighted, weight * y)
    residual = A @ x - y
    return jackknife_fit(x, weight * residual, weighted, group, float(np.sqrt(np.mean(residual**2))))
