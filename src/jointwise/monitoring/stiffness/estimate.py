"""A stiffness curve with its uncertainty, from a recursive estimate or from stored pairs of deflection and torque.

``τ_E(φ) = Σ_p a_p φ^(2p-1)``, ``k(φ) = dτ_E/dφ = Σ_p (2p-1) a_p φ^(2p-2)``, p from 1 to 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked
from jointwise.errors import EstimationError, ShapeError
from jointwise.estimation.jackknife import jackknife_covariance, student_factor
from jointwise.model.spring import OddPolynomial
from jointwise.spatial import Array

TERMS = 2
"""Odd powers of the deflection: φ and φ³."""
BLOCKS = 16
"""Blocks of consecutive pairs whose omission in turn gives the standard errors of a batch fit."""
NORMAL = 1.959964
"""Half-width of a 95 % confidence interval in standard errors."""


def powers(phi: ArrayLike) -> Array:
    """Return [φ, φ³], (..., 2)."""
    x = np.asarray(phi, dtype=np.float64)
    return np.stack([x, x**3], axis=-1)


def slopes(phi: ArrayLike) -> Array:
    """Return [1, 3 φ²], (..., 2)."""
    x = np.asarray(phi, dtype=np.float64)
    return np.stack([np.ones_like(x), 3.0 * np.square(x)], axis=-1)


@dataclass(frozen=True, eq=False)
class StiffnessEstimate:
    """Estimated spring of a joint, ``τ_E = a_1 φ + a_2 φ³``.

    Attributes:
        values: a_1 (Nm/rad) and a_2 (Nm/rad³), (2,).
        covariance: Their covariance, (2, 2).
        largest: Largest deflection of the data, rad.
        factor: Half-width of a 95 % confidence interval in standard errors.
    """

    values: Array
    covariance: Array
    largest: float
    factor: float = NORMAL

    def torque(self, phi: ArrayLike) -> Array:
        """Return τ_E in Nm at deflections of any shape, rad."""
        result: Array = powers(phi) @ self.values
        return result

    def stiffness(self, phi: ArrayLike) -> Array:
        """Return ``k = dτ_E/dφ`` in Nm/rad."""
        result: Array = slopes(phi) @ self.values
        return result

    def secant(self, phi: ArrayLike) -> Array:
        """Return τ_E/φ in Nm/rad, k(0) at zero."""
        x = np.asarray(phi, dtype=np.float64)
        result: Array = self.values[0] + self.values[1] * np.square(x)
        return result

    def conf_int(self, phi: ArrayLike) -> tuple[Array, Array]:
        """Return the 95 % confidence interval of k(φ), lower and upper bound in Nm/rad."""
        k, half = self.stiffness(phi), self._half_width(slopes(phi))
        return k - half, k + half

    def secant_conf_int(self, phi: float) -> tuple[float, float]:
        """Return the 95 % confidence interval of the secant stiffness at a deflection, Nm/rad."""
        secant, half = float(self.secant(phi)), float(self._half_width(np.array([1.0, phi**2])))
        return secant - half, secant + half

    def _half_width(self, rows: Array) -> Array:
        """Return the half-widths (...) of the intervals of rows (..., 2) @ values; infinite without data."""
        if not np.isfinite(self.covariance).all():
            return np.full(rows.shape[:-1], np.inf)
        result: Array = self.factor * np.sqrt(np.einsum("...i,ij,...j", rows, self.covariance, rows))
        return result

    @property
    def spring(self) -> OddPolynomial:
        """The curve as a spring for controllers and the simulated plant; raises a `ModelError` where a_1 <= 0."""
        return OddPolynomial(tuple(self.values.tolist()))


@checked
def secant_stiffness(phi: ArrayLike, torque: ArrayLike, least: float = 1e-4) -> Array:
    """Return ``τ_E / φ`` of pairs, (samples,), Nm/rad.

    Args:
        phi: Deflections (samples,), rad.
        torque: Torques (samples,), Nm.
        least: Smallest |φ|, rad; below, no ratio is meaningful and the result is NaN.
    """
    x, y = _pairs(phi, torque)
    large = np.abs(x) >= least
    return np.where(large, y / np.where(large, x, 1.0), np.nan)


@checked
def fit_stiffness(phi: ArrayLike, torque: ArrayLike, *, offset: bool = True) -> StiffnessEstimate:
    """Return the least-squares curve of stored pairs (φ, τ_E), such as static postures with gravity as the load.

    Standard errors come from leaving out each of 16 blocks of consecutive pairs, so that noise which lasts does not
    count as many measurements.

    Args:
        phi: Deflections (samples,), rad.
        torque: Torques (samples,), Nm.
        offset: Estimate an offset of the torque (the zero of the encoders) too.

    Raises:
        EstimationError: The pairs do not determine the curve.

    """
    x, y = _finite_pairs(phi, torque)
    scale = float(np.abs(x).max()) if len(x) else 0.0
    count = TERMS + offset
    if len(x) < 2 * count or not scale > 0.0:
        raise EstimationError(f"a stiffness curve needs at least {2 * count} pairs with a deflection. Got {len(x)}.")
    columns: Array = np.column_stack([powers(x / scale), np.ones(len(x))])[:, :count]
    size: Array = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), compute_uv=False)
    if not size[-1] > 1e-6 * size[0]:
        raise EstimationError("the pairs do not determine a stiffness curve: they need several different deflections.")
    blocks = np.array_split(np.arange(len(x)), min(BLOCKS, len(x) // 2))
    replicates = [_solve(np.delete(columns, rows, axis=0), np.delete(y, rows)) for rows in blocks]
    units = scale ** -(2.0 * np.arange(TERMS) + 1.0)
    covariance = jackknife_covariance(np.array(replicates))[:TERMS, :TERMS]
    values = _solve(columns, y)[:TERMS] * units
    factor = student_factor(len(blocks) - 1)
    return StiffnessEstimate(values, covariance * np.outer(units, units), scale, factor)


def _solve(columns: Array, y: Array) -> Array:
    return np.asarray(np.linalg.lstsq(columns, y, rcond=None)[0], dtype=np.float64)


def _finite_pairs(phi: ArrayLike, torque: ArrayLike) -> tuple[Array, Array]:
    x, y = _pairs(phi, torque)
    known = np.isfinite(x) & np.isfinite(y)
    return x[known], y[known]


def _pairs(phi: ArrayLike, torque: ArrayLike) -> tuple[Array, Array]:
    x, y = (np.asarray(values, dtype=np.float64) for values in (phi, torque))
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"phi and torque must be (samples,) each. Got {x.shape} and {y.shape} instead.")
    return x, y
