"""All joints together: two-step weighted least squares, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import t as student

from jointwise.errors import EstimationError
from jointwise.estimation.factors import Index, JointFactors
from jointwise.estimation.solve import Mask, bounded_least_squares, squared_error, triangle
from jointwise.spatial import Array

DETERMINED = 1e-6
"""A direction counts as undetermined when the scaled factor is smaller than this part of its largest."""


@dataclass(frozen=True)
class Solution:
    """Values of all parameters, the residual standard deviation of each joint, and the scaled, weighted factor."""

    values: Array
    sigma: Array
    condition: float
    condition_scaled: float


def assemble(factors: list[JointFactors], index: list[Index], count: int, scale: Array, stretch: int | None) -> Array:
    """Return [W y] of all joints, each divided by its standard deviation; one stretch, or all merged."""
    rows = []
    for own, places, sigma in zip(factors, index, scale, strict=True):
        R = own.merged() if stretch is None else own.triangles[stretch]
        wide = np.zeros((len(R), count + 1))
        wide[:, np.append(places, count)] = R / sigma
        rows.append(wide)
    return np.vstack(rows)


def weighted_least_squares(
    factors: list[JointFactors], index: list[Index], non_negative: Mask, weighted: bool = True
) -> Solution:
    """Return the two-step WLS estimate: OLS residuals give σ_j² = |y_j - W_j β|² / (M - n_j), then rows over σ_j.

    With `weighted` False it is OLS: every joint counts alike.
    """
    count = len(non_negative)
    merged = [own.merged() for own in factors]
    sigma = np.array([np.sqrt(max(own.variance, 1e-300)) for own in factors]) if weighted else np.ones(len(factors))
    values = np.zeros(count)
    for _ in range(3 if weighted else 1):
        R = triangle(assemble(factors, index, count, sigma, None))
        values = bounded_least_squares(R, non_negative)
        spread = np.array([
            np.sqrt(squared_error(part, values[places]) / max(sum(own.weight) - len(places), 1.0))
            for own, part, places in zip(factors, merged, index, strict=True)
        ])  # fmt: skip
        if not (np.isfinite(spread).all() and (spread > 0.0).all()):
            raise EstimationError("a joint's output is reproduced exactly or not finite: is a channel constant?")
        if weighted:
            sigma = spread
    lengths = np.linalg.norm(R[:, :-1], axis=0)
    used = lengths > 0.0
    sizes = np.linalg.svd(R[:, :-1][:, used], compute_uv=False)
    scaled = np.linalg.svd(R[:, :-1][:, used] / lengths[used], compute_uv=False)
    return Solution(values, spread, _ratio(sizes), _ratio(scaled))


@dataclass(frozen=True)
class Uncertainty:
    """Standard deviations and covariance by the jackknife over stretches, Student's factor for 95 %, what is unknown.

    `undetermined` marks parameters that the data leave open; `at_bound` those held at zero.
    """

    covariance: Array
    deviation: Array
    factor: float
    undetermined: Mask
    at_bound: Mask


def jackknife(factors: list[JointFactors], index: list[Index], solution: Solution, non_negative: Mask) -> Uncertainty:
    """Return how far the estimate moves when one stretch of time is left out.

    Residuals of a filtered, hysteretic system are coloured, so rows are no independent observations; stretches long
    against the correlation nearly are. With A_b = R_b R⁻¹ the estimate without stretch b moves by
    ``R⁻¹ (1 - A_bᵀ A_b)⁻¹ A_bᵀ r_b``, exactly; the variance is (K-1)/K Σ of these, with K-1 degrees of freedom.
    """
    count = len(non_negative)
    whole = triangle(assemble(factors, index, count, solution.sigma, None))
    lengths = np.linalg.norm(whole[:, :-1], axis=0)
    at_bound = non_negative & (solution.values == 0.0)
    silent = lengths <= 1e-12 * lengths.max()
    active = np.flatnonzero(~silent & ~at_bound)
    R = whole[:, active] / lengths[active]
    open_directions = _null_directions(R)
    undetermined = silent.copy()
    undetermined[active] |= np.abs(open_directions).max(axis=1, initial=0.0) > 0.1
    ridge = 1e-9 * np.eye(active.size)
    R = triangle(np.vstack([R, np.sqrt(ridge)]))
    stretches = len(factors[0].triangles)
    moves = np.zeros((stretches, active.size))
    for b in range(stretches):
        part = assemble(factors, index, count, solution.sigma, b)
        residual = part[:, -1] - part[:, :-1] @ solution.values
        A = solve_triangular(R, (part[:, active] / lengths[active]).T, trans="T", check_finite=False).T
        left = np.linalg.solve(np.eye(active.size) * (1.0 + 1e-9) - A.T @ A, A.T @ residual)
        moves[b] = -solve_triangular(R, left, check_finite=False) / lengths[active]
    centred = moves - moves.mean(axis=0)
    covariance = np.zeros((count, count))
    covariance[np.ix_(active, active)] = (stretches - 1.0) / stretches * centred.T @ centred
    deviation = np.sqrt(np.diag(covariance))
    return Uncertainty(covariance, deviation, float(student.ppf(0.975, stretches - 1)), undetermined, at_bound)


def _null_directions(R: Array) -> Array:
    """Return the directions that a factor with columns of unit length hardly sees, (columns, directions)."""
    _, sizes, rows = np.linalg.svd(R)
    seen = np.zeros(R.shape[1])
    seen[: len(sizes)] = sizes
    return rows[seen < DETERMINED * max(float(sizes.max(initial=0.0)), 1e-300)].T


def _ratio(sizes: Array) -> float:
    return float(sizes[0] / sizes[-1]) if sizes.size and sizes[-1] > 0.0 else float("inf")
