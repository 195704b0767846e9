"""All joints together: two-step weighted least squares, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import stdtrit

from jointwise.errors import EstimationError
from jointwise.estimation.factors import Index, JointFactors
from jointwise.estimation.solve import Mask, bounded_least_squares, squared_error, triangle
from jointwise.spatial import Array

DETERMINED = 1e-6
"""A direction counts as undetermined when the scaled factor is smaller than this part of its largest."""
HEAVY = 1e3
"""Weight of a known sum against all data about its parameters: they move it by a millionth."""


@dataclass(frozen=True)
class Solution:
    """Values of all parameters, the residual standard deviation of each joint, and the scaled, weighted factor."""

    values: Array
    sigma: Array
    condition: float
    condition_scaled: float


@dataclass(frozen=True)
class Total:
    """A known sum of parameters: their `places` in the vector, its `value` and standard `deviation`."""

    places: Index
    value: float
    deviation: float


@dataclass(frozen=True)
class Layout:
    """How the columns of the joints stand in one vector of unknowns: places (one array a joint) and bounds at zero."""

    index: list[Index]
    bound: Mask

    @property
    def count(self) -> int:
        """Number of unknowns."""
        return len(self.bound)


def held_factors(factors: Sequence[JointFactors], layout: Layout, held: Array) -> list[JointFactors]:
    """Return the factors with known parameters taken out: their columns are zero, their part is gone from y.

    `held` (parameters,) are the known values, NaN where a parameter is to be estimated.
    """
    return [_held(own, held[places]) for own, places in zip(factors, layout.index, strict=True)]


def _held(own: JointFactors, held: Array) -> JointFactors:
    known = np.flatnonzero(~np.isnan(held))
    if not known.size:
        return own
    result = JointFactors(list(own.triangles), list(own.weight), list(own.total), list(own.square))
    for k, R in enumerate(own.triangles):
        changed = R.copy()
        changed[:, -1] -= R[:, known] @ held[known]
        changed[:, known] = 0.0
        result.triangles[k] = changed
    return result


def with_totals(factors: Sequence[JointFactors], layout: Layout, totals: Sequence[Total]) -> list[JointFactors]:
    """Return the factors with a row more for every known sum, ``λ Σ x = λ total``, so heavy that it holds."""
    result = list(factors)
    for own in totals:
        for j, places in enumerate(layout.index):
            local = np.flatnonzero(np.isin(places, own.places))
            if len(local):
                result[j] = _with_total(result[j], local, own.value)
    return result


def _with_total(own: JointFactors, local: Index, value: float) -> JointFactors:
    result = JointFactors([], list(own.weight), list(own.total), list(own.square))
    for R in own.triangles:
        row = np.zeros((1, R.shape[1]))
        row[0, local], row[0, -1] = 1.0, value
        result.triangles.append(triangle(np.vstack([R, HEAVY * float(np.linalg.norm(R[:, local])) * row])))
    return result


def stacked(parts: Sequence[Array], layout: Layout, sigma: Array) -> Array:
    """Return [W y] of all joints in one matrix, each joint's rows divided by its standard deviation."""
    rows = []
    for R, places, own in zip(parts, layout.index, sigma, strict=True):
        wide = np.zeros((len(R), layout.count + 1))
        wide[:, np.append(places, layout.count)] = R / own
        rows.append(wide)
    return np.vstack(rows)


def weighted_least_squares(factors: Sequence[JointFactors], layout: Layout, weighted: bool = True) -> Solution:
    """Return the two-step WLS estimate: OLS residuals give σ_j² = |y_j - W_j β|² / (M - n_j), then rows over σ_j.

    With `weighted` False it is OLS: every joint counts alike.
    """
    merged = [own.merged() for own in factors]
    if min(own.variance for own in factors) <= 0.0:
        silent = [j + 1 for j, own in enumerate(factors) if own.variance <= 0.0]
        raise EstimationError(f"the measured output of joint {', '.join(map(str, silent))} never changes.")
    sigma = np.sqrt([own.variance for own in factors]) if weighted else np.ones(len(factors))
    for _ in range(3 if weighted else 1):
        R = triangle(stacked(merged, layout, sigma))
        values = bounded_least_squares(R, layout.bound)
        spread = _spread(factors, merged, layout, values)
        sigma = spread if weighted else sigma
    lengths = np.linalg.norm(R[:, :-1], axis=0)
    used = lengths > 0.0
    sizes = np.linalg.svd(R[:, :-1][:, used], compute_uv=False)
    scaled = np.linalg.svd(R[:, :-1][:, used] / lengths[used], compute_uv=False)
    return Solution(values, spread, _ratio(sizes), _ratio(scaled))


def _spread(factors: Sequence[JointFactors], merged: Sequence[Array], layout: Layout, values: Array) -> Array:
    """Return the residual standard deviation of each joint."""
    spread = np.array([
        np.sqrt(squared_error(part, values[places]) / max(sum(own.weight) - len(places), 1.0))
        for own, part, places in zip(factors, merged, layout.index, strict=True)
    ])  # fmt: skip
    floor = 1e-9 * np.sqrt([own.variance for own in factors])
    held: Array = np.maximum(spread, floor)
    return held


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


def jackknife(factors: Sequence[JointFactors], layout: Layout, solution: Solution) -> Uncertainty:
    """Return how far the estimate moves when one stretch of time is left out.

    Residuals of a filtered, hysteretic system are coloured, so rows are no independent observations; stretches long
    against the correlation nearly are. With A_b = R_b R⁻¹ the estimate without stretch b moves by
    ``R⁻¹ (1 - A_bᵀ A_b)⁻¹ A_bᵀ r_b``, exactly; the variance is (K-1)/K Σ of these, with K-1 degrees of freedom.
    """
    count = layout.count
    whole = triangle(stacked([own.merged() for own in factors], layout, solution.sigma))
    lengths = np.linalg.norm(whole[:, :-1], axis=0)
    at_bound = layout.bound & (solution.values == 0.0)
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
        part = stacked([own.triangles[b] for own in factors], layout, solution.sigma)
        residual = part[:, -1] - part[:, :-1] @ solution.values
        A = solve_triangular(R, (part[:, active] / lengths[active]).T, trans="T", check_finite=False).T
        left = np.linalg.solve(np.eye(active.size) * (1.0 + 1e-9) - A.T @ A, A.T @ residual)
        moves[b] = -solve_triangular(R, left, check_finite=False) / lengths[active]
    centred = moves - moves.mean(axis=0)
    covariance = np.zeros((count, count))
    spread = (stretches - 1.0) / stretches * centred.T @ centred
    covariance[np.ix_(active, active)] = 0.5 * (spread + spread.T)  # symmetric to the last bit
    deviation = np.sqrt(np.diag(covariance))
    return Uncertainty(covariance, deviation, float(stdtrit(stretches - 1, 0.975)), undetermined, at_bound)


def _null_directions(R: Array) -> Array:
    """Return the directions that a factor with columns of unit length hardly sees, (columns, directions)."""
    _, sizes, rows = np.linalg.svd(R)
    seen = np.zeros(R.shape[1])
    seen[: len(sizes)] = sizes
    return rows[seen < DETERMINED * max(float(sizes.max(initial=0.0)), 1e-300)].T


def _ratio(sizes: NDArray[np.floating[Any]]) -> float:
    return float(sizes[0] / sizes[-1]) if sizes.size and sizes[-1] > 0.0 else float("inf")
