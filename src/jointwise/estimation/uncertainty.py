"""Standard errors of an estimate: block jackknife over time, and the effect of having selected a model.

The jackknife measures how far the data of one structure let its parameters move. It does not show that another
structure or filter, as good on held-out data, has other parameters. Every selection therefore adds
Σ_k p_k Δβ_k Δβ_kᵀ over its alternatives, p_k being the probability that alternative k is the better one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from jointwise.estimation.factors import Index, triangle
from jointwise.estimation.jackknife import jackknife_covariance, student_factor
from jointwise.estimation.least_squares import Mask, Problem, Solution
from jointwise.spatial import Array

OPEN_DIRECTION = 1e-6
"""A direction is not determined when the scaled factor is smaller there than this part of its largest value."""
OPEN_SHARE = 0.1
"""A parameter is not determined when its share of such a direction (a unit vector) exceeds this."""
WITHIN_CELL = 1.0 / 3.0
"""Variance of a value that is uniform in a cell of a grid, as a part of the square of half the cell."""

Cause = Literal[
    "independent noise", "correlated residuals", "model selection", "filters", "neglected effects", "drive gains"
]
"""What makes confidence intervals wide."""


@dataclass(frozen=True)
class Uncertainty:
    """Covariance and standard errors (`deviation`), and Student's `factor` for 95 % confidence intervals.

    `undetermined` marks parameters that the data do not determine; `at_bound` those held at zero. `parts` are the
    variances (parameters,) by cause; their sum is the diagonal of the covariance.
    """

    covariance: Array
    deviation: Array
    factor: float
    undetermined: Mask
    at_bound: Mask
    parts: Mapping[Cause, Array] = field(default_factory=dict)

    def shares(self, count: int) -> dict[str, float]:
        """Return the mean share of every cause in the variance of the first `count` parameters, those determined."""
        known = np.flatnonzero(~self.undetermined[:count] & (self.deviation[:count] > 0.0))
        if not known.size:
            return {}
        return {cause: float(np.mean(part[known] / self.deviation[known] ** 2)) for cause, part in self.parts.items()}


def uncertainty_of(problem: Problem, solution: Solution) -> Uncertainty:
    """Return the uncertainty of an estimate whose residuals are correlated within blocks of time.

    Jackknife: with ``A_b = R_b R⁻¹`` the estimate without block b changes exactly by ``R⁻¹ (1 - A_bᵀ A_b)⁻¹ A_bᵀ r_b``.
    The part of independent noise is the diagonal of ``(RᵀR)⁻¹``.
    """
    whole = problem.whole(solution.sigma)
    lengths = np.linalg.norm(whole[:, :-1], axis=0)
    at_bound = problem.layout.bound & (solution.values == 0.0)
    undetermined = lengths <= 1e-12 * lengths.max()
    active = np.flatnonzero(~undetermined & ~at_bound)
    R = whole[:, active] / lengths[active]
    undetermined[active] |= np.abs(open_directions(R)).max(axis=1, initial=0.0) > OPEN_SHARE
    R = triangle(np.vstack([R, np.sqrt(1e-9 * np.eye(active.size))]))
    inverse = np.asarray(np.linalg.inv(R), dtype=float)
    blocks = problem.factors[0].blocks
    steps = [
        _step_without(problem.block(b, solution.sigma), solution.values, inverse, active, lengths)
        for b in range(blocks)
    ]
    covariance = np.zeros((problem.layout.count, problem.layout.count))
    covariance[np.ix_(active, active)] = jackknife_covariance(np.array(steps))
    variance, noise = np.diag(covariance).copy(), np.zeros(problem.layout.count)
    noise[active] = np.square(inverse).sum(axis=1) / lengths[active] ** 2
    noise = np.minimum(noise, variance)
    parts: dict[Cause, Array] = {"independent noise": noise, "correlated residuals": variance - noise}
    return Uncertainty(covariance, np.sqrt(variance), student_factor(blocks - 1), undetermined, at_bound, parts)


def _step_without(rows: Array, values: Array, inverse: Array, active: Index, lengths: Array) -> Array:
    """Return the change of the active parameters when the rows of one block are left out."""
    residual = rows[:, -1] - rows[:, :-1] @ values
    A = (rows[:, active] / lengths[active]) @ inverse
    rest = np.linalg.solve(np.eye(active.size) * (1.0 + 1e-9) - A.T @ A, A.T @ residual)
    step: Array = -(inverse @ rest) / lengths[active]
    return step


def open_directions(R: Array) -> Array:
    """Return the directions that a factor with columns of unit length hardly sees, (columns, directions)."""
    _, sizes, rows = np.linalg.svd(R)
    seen = np.zeros(R.shape[1])
    seen[: len(sizes)] = sizes
    return rows[seen < OPEN_DIRECTION * max(float(sizes.max(initial=0.0)), 1e-300)].T


@dataclass(frozen=True)
class Alternatives:
    """Δβ of the parameters from the selected model to each alternative of one selection, (alternatives, parameters).

    `weights` (alternatives,) are the probabilities of the alternatives, None for equal ones of sum one.
    """

    question: str
    steps: Array
    weights: Array | None = None
    cause: Cause = "model selection"

    @property
    def covariance(self) -> Array:
        """Σ_k p_k Δβ_k Δβ_kᵀ, (parameters, parameters)."""
        weights = np.full(len(self.steps), 1.0 / max(len(self.steps), 1)) if self.weights is None else self.weights
        result: Array = (self.steps.T * weights) @ self.steps
        return result


BOUNDED_QUANTILE = 0.95 * math.sqrt(3.0)
"""95 % of a uniform distribution lie within this many standard deviations."""
NORMAL_QUANTILE = 1.96
"""95 % of a normal distribution lie within this many standard deviations."""


def with_selection(uncertainty: Uncertainty, selections: Sequence[Alternatives]) -> Uncertainty:
    """Return the uncertainty with that of every selection added to its parameters, the first ones of the vector.

    Confidence intervals multiply standard errors by Student's factor, which is right for the jackknife. A deviation
    towards an alternative is bounded by it, one by the gains is normal: their variances are reduced so that the same
    factor gives the intervals of these distributions.
    """
    covariance, parts = uncertainty.covariance.copy(), dict(uncertainty.parts)
    for selection in selections:
        quantile = NORMAL_QUANTILE if selection.cause == "drive gains" else BOUNDED_QUANTILE
        count = selection.steps.shape[1]
        added = selection.covariance * min(quantile / uncertainty.factor, 1.0) ** 2
        covariance[:count, :count] += added
        part = parts.get(selection.cause, np.zeros(len(covariance))).copy()
        part[:count] += np.diag(added)
        parts[selection.cause] = part
    covariance = 0.5 * (covariance + covariance.T)
    return replace(uncertainty, covariance=covariance, deviation=np.sqrt(np.diag(covariance)), parts=parts)
