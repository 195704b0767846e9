"""Essential parameters: base parameters that neither the data determine nor the prediction needs are set to zero.

Backward elimination: the base parameter of largest relative standard error is dropped and the rest fitted again, as
long as its relative standard error σ_k / |β_k| exceeds `LARGEST_RELATIVE_ERROR` and the held-out error stays within a
tolerance of that of the full model. A parameter whose removal costs more is kept, and the next one is tried. The
relative standard error alone is the usual criterion (M. Gautier, W. Khalil and P. Restrepo, "Identification of the
dynamic parameters of a closed loop robot", IEEE ICRA 1995); the held-out error ensures that the prediction does not
need the dropped parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointwise.errors import EstimationError, ModelError
from jointwise.estimation.cross_validation import cross_validate
from jointwise.estimation.factors import fold_blocks
from jointwise.estimation.fit import Fit
from jointwise.estimation.least_squares import Problem, Solution, weighted_least_squares
from jointwise.estimation.uncertainty import uncertainty_of
from jointwise.spatial import Array

TOLERANCE = 0.005
"""Part by which the held-out error may exceed that of the full model."""
LARGEST_RELATIVE_ERROR = 0.3
"""Relative standard error up to which a parameter is never dropped: it differs from zero by more than three of them."""


@dataclass(frozen=True)
class Dropped:
    """A base parameter that was set to zero.

    Attributes:
        name: Name of the parameter.
        value: Its last estimate, in its unit.
        relative_error: Relative standard error of that estimate, %; None if it was not determined at all.
        held_out: Held-out MSE / variance without it.
    """

    name: str
    value: float
    relative_error: float | None
    held_out: float


@dataclass(frozen=True)
class Essential:
    """The outcome of an elimination.

    Attributes:
        tolerance: Part by which the held-out error may exceed that of the full model.
        full: Held-out MSE / variance of the full model.
        dropped: Parameters that were set to zero, in their order.
        needed: Names of parameters with large standard errors that were kept because the held-out error exceeded the
            tolerance without them.
    """

    tolerance: float
    full: float
    dropped: tuple[Dropped, ...]
    needed: tuple[str, ...]

    @property
    def change(self) -> float:
        """Relative change of the held-out error."""
        return self.dropped[-1].held_out / self.full - 1.0 if self.dropped else 0.0


def essential_parameters(
    problem: Problem, solution: Solution, names: tuple[str, ...], tolerance: float = TOLERANCE
) -> tuple[Problem, Solution, Essential]:
    """Return the problem and its solution with only the essential base parameters.

    Args:
        problem: The regression; its first unknowns are the base parameters.
        solution: Its solution.
        names: Names of the base parameters.
        tolerance: Part by which the held-out error may exceed that of the full model, from 0 to 1.

    Returns:
        The problem whose dropped columns are zero, its solution, and what was dropped.

    Raises:
        ModelError: The tolerance is out of range.
        EstimationError: The log is too short for held-out errors.

    """
    if not 0.0 <= tolerance <= 1.0:
        raise ModelError(f"the tolerance of essential parameters must be from 0 to 1. Got {tolerance} instead.")
    if len(fold_blocks(problem.factors[0].blocks)) < 3:
        raise EstimationError("the log is too short to find essential parameters: held-out errors need three folds.")
    full = cross_validate(problem, solution.sigma).mean
    sigma, dropped, needed = solution.sigma, list[Dropped](), list[int]()
    while True:
        relative = _relative_errors(problem, solution, len(names))
        relative[[*needed, *(names.index(item.name) for item in dropped)]] = 0.0
        worst = int(np.argmax(relative))
        if relative[worst] <= LARGEST_RELATIVE_ERROR:
            return problem, solution, Essential(tolerance, full, tuple(dropped), tuple(names[k] for k in needed))
        smaller = _without(problem, worst)
        held_out = cross_validate(smaller, sigma).mean
        if held_out > (1.0 + tolerance) * full:
            needed.append(worst)
            continue
        percent = 100.0 * float(relative[worst])
        finite = percent if np.isfinite(percent) else None
        dropped.append(Dropped(names[worst], float(solution.values[worst]), finite, held_out))
        problem, solution = smaller, weighted_least_squares(smaller)


def essential_fit(fit: Fit, known: Array, tolerance: float) -> tuple[Fit, Essential]:
    """Return a fit with only the essential base parameters.

    Args:
        fit: The fit with all of them.
        known: Values that stay as they are, (parameters,); NaN for estimated ones.
        tolerance: Part by which the held-out error may exceed that of the full model.
    """
    problem, solution, essential = essential_parameters(fit.problem, fit.solution, fit.model.base.names, tolerance)
    solution = replace(solution, values=np.where(np.isnan(known), solution.values, known))
    return replace(fit, problem=problem, solution=solution), essential


def _without(problem: Problem, parameter: int) -> Problem:
    """Return the problem with one parameter held at zero."""
    known = np.full(problem.layout.count, np.nan)
    known[parameter] = 0.0
    return problem.with_known(known)


def _relative_errors(problem: Problem, solution: Solution, count: int) -> Array:
    """Return the relative standard errors of the base parameters, infinite where they are not determined."""
    uncertainty = uncertainty_of(problem, solution)
    size = np.abs(solution.values[:count])
    relative = np.divide(uncertainty.deviation[:count], size, out=np.full(count, np.inf), where=size > 0.0)
    result: Array = np.where(uncertainty.undetermined[:count], np.inf, relative)
    return result
