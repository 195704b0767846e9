"""Standard errors of an estimate: block jackknife over time, selection of a model, and neglected effects.

The block jackknife (`jackknife`) estimates the covariance of the parameters of one model. It does not include that
another model or filter, equally good on held-out data, has other parameters. Every selection therefore adds

    Σ_k p_k Δβ_k Δβ_kᵀ

over its alternatives k, with the probability p_k that alternative k is better and the difference Δβ_k of its
parameters (S. Buckland, K. Burnham and N. Augustin, "Model selection: an integral part of inference", Biometrics 53(2),
1997).

Some effects of gears resemble the torque of bodies. They bias the base parameters in all parts of a log alike, so that
resampling does not reveal them. A fit with additional columns does. Three effects are considered:

- A gear of stiffness K that transmits the load torque τ turns its rotor by τ / K more than the link. The rotor of
  inertia I_a needs the torque ``I_a (θ̈ - q̈) = (I_a / K) d²τ/dt²``, which resembles inertia of the links.
- Dry friction that grows with the load and differs by direction has an even part ``a τ²``, which resembles gravity.
- Dry friction grows with the torque in the gear, ``(τ - I_a q̈)²``; the load torque of the model contains the rotors.
  To first order the difference is ``b τ q̈ h(q̇)``, h the direction of the motion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from jointwise.estimation.bounded import bounded_from_moments
from jointwise.estimation.cross_validation import cross_validate
from jointwise.estimation.factors import Index, triangle
from jointwise.estimation.fit import Fit, known_sums, known_values
from jointwise.estimation.jackknife import jackknife_covariance, student_factor
from jointwise.estimation.least_squares import Problem, QuickProblem, Solution
from jointwise.estimation.regression import Regression
from jointwise.estimation.structure import JointTerms
from jointwise.model.terms import JointSignals, Parameter, Term
from jointwise.model.terms.term import State
from jointwise.spatial import Array, Mask

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
RESAMPLED: tuple[Cause, ...] = ("independent noise", "correlated residuals")
"""Causes that the jackknife shows; the others are selections."""
HALF_SPAN = 0.0125
"""Half of the time (s) over which signals are differentiated twice: short against the motion, long against noise."""
WIDTH = 0.01
"""Speed (rad/s) over which the direction of the motion changes."""


@dataclass(frozen=True)
class Uncertainty:
    """Covariance of the parameters and what it consists of.

    Attributes:
        covariance: Covariance, (parameters, parameters).
        deviation: Standard errors, (parameters,).
        factor: Student's factor of 95 % confidence intervals.
        undetermined: Parameters that the data do not determine, (parameters,).
        at_bound: Parameters held at zero, (parameters,).
        parts: Variances (parameters,) by cause; their sum is the diagonal of the covariance.
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

    With the factor R of all weighted rows, that of block b, R_b, and its residual ``r_b = z_b - R_b x``, leaving the
    block out changes the estimate exactly by

        Δx_b = -R⁻¹ (1 - A_bᵀ A_b)⁻¹ A_bᵀ r_b,    A_b = R_b R⁻¹,

    from which `jackknife_covariance` follows. The part of independent noise is the diagonal of ``(RᵀR)⁻¹``.

    Args:
        problem: The regression, block by block.
        solution: Its estimate x and residual standard deviations.

    Returns:
        Covariance in the squared units of the parameters, and which parameters are undetermined or at a bound.

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
    """The alternatives of one selection, as changes of the parameters.

    Attributes:
        question: What was selected.
        steps: Δβ from the selected model to each alternative, (alternatives, parameters).
        weights: Probabilities of the alternatives, (alternatives,); None for equal ones of sum one.
        cause: What the uncertainty is attributed to.
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


def _reduction(cause: str, factor: float) -> float:
    """Return the factor of the variance of a selection with which Student's `factor` gives its interval."""
    quantile = NORMAL_QUANTILE if cause == "drive gains" else BOUNDED_QUANTILE
    return min(quantile / factor, 1.0) ** 2


def error_ratio(shares: Mapping[str, float], factor: float) -> float:
    """Return the standard deviation of errors over the standard errors, which make intervals with a common factor.

    ``√(1 + Σ_c s_c (1 / r_c - 1))`` over the selections c with the share s_c of the variance after its reduction r_c by
    `with_selection`.

    Args:
        shares: Shares of the variance by cause.
        factor: Student's factor of the 95 % confidence intervals.

    """
    added = (s * (1.0 / _reduction(cause, factor) - 1.0) for cause, s in shares.items() if cause not in RESAMPLED)
    return math.sqrt(1.0 + sum(added))


def with_selection(uncertainty: Uncertainty, selections: Sequence[Alternatives]) -> Uncertainty:
    """Return the uncertainty with that of every selection added to its parameters, the first ones of the vector.

    Confidence intervals multiply standard errors by Student's factor, which is right for the jackknife. A deviation
    towards an alternative is bounded by it, one by the gains is normal: their variances are reduced so that the same
    factor gives the intervals of these distributions.
    """
    covariance, parts = uncertainty.covariance.copy(), dict(uncertainty.parts)
    for selection in selections:
        count = selection.steps.shape[1]
        added = selection.covariance * _reduction(selection.cause, uncertainty.factor)
        covariance[:count, :count] += added
        part = parts.get(selection.cause, np.zeros(len(covariance))).copy()
        part[:count] += np.diag(added)
        parts[selection.cause] = part
    covariance = 0.5 * (covariance + covariance.T)
    return replace(uncertainty, covariance=covariance, deviation=np.sqrt(np.diag(covariance)), parts=parts)


@dataclass(frozen=True)
class NeglectedEffects(Term):
    """``τ = c d²x/dt² + a τ_load² + b τ_load q̈ h(q̇)``.

    x is the deflection θ - q where rotors are `measured` (c = I_a in kg m²), else the load torque (c = I_a / K in s²).
    """

    measured: bool = False

    kind = "neglected effects"
    needs_load = True

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the three coefficients."""
        elastic = Parameter("neglected_c", "kg m^2" if self.measured else "s^2", non_negative=True)
        return elastic, Parameter("neglected_a", "1/Nm"), Parameter("neglected_b", "s^2")

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the three columns; at the ends, the values that a second difference needs are repeated."""
        load = joint.known_load(self.kind)
        x = joint.rotor - joint.q if self.measured and joint.rotor is not None else load
        step = max(round(HALF_SPAN * joint.rate), 1)
        wide = np.pad(x, step, mode="edge")
        second = (wide[2 * step :] - 2.0 * x + wide[: -2 * step]) * (joint.rate / step) ** 2
        return np.column_stack([second, load**2, load * joint.qdd * np.tanh(joint.qd / WIDTH)]), None


def neglected_effects(
    regression: Regression, fit: Fit, gains: Array, joint_terms: Mapping[int, JointTerms]
) -> list[Alternatives]:
    """Return how far neglected effects move the base parameters, weighted by the probability that they are real.

    It is the probability that the model with them predicts held-out data better. The true effect is taken to lie
    anywhere between none and the fitted one.

    Args:
        regression: The training logs; of long ones an excerpt is used.
        fit: The fit of the model without them.
        gains: Nm per unit of the output, shape (joints,).
        joint_terms: Terms of single joints (0-based) with known values.

    """
    values, model = fit.solution.values, fit.model
    effects = NeglectedEffects(regression.has_rotor)
    wide = replace(model, terms=tuple((*terms, effects) for terms in model.terms))
    problem = regression.excerpt().quick_problem(wide.terms, lambda rigid: model.load_torque(rigid, values))
    known = known_values(wide, joint_terms)[0]
    problem = problem.scaled(gains).with_known(known).with_sums(known_sums(wide, joint_terms))
    added = np.array([info.name.startswith("neglected_") for info in wide.parameters])
    plain = problem.with_known(np.where(added, 0.0, np.nan))
    sigma, base = fit.solution.sigma, model.base.count
    chance = cross_validate(problem, sigma).probability_better(cross_validate(plain, sigma))
    step = _base_parameters(problem, sigma, base) - _base_parameters(plain, sigma, base)
    weights = np.array([WITHIN_CELL * chance])  # anywhere between none and the fitted effect
    return [Alternatives("neglected effects", step[None], weights, "neglected effects")]


def _base_parameters(problem: QuickProblem, sigma: Array, base: int) -> Array:
    values: Array = bounded_from_moments(problem.whole(sigma), problem.layout.bound)[:base]
    return values
