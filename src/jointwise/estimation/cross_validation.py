"""Cross-validation from second moments: held-out errors of contiguous folds of time, and the one-standard-error rule.

With the moments ``G_f = [W y]ᵀ [W y]`` of fold f, the estimate without the fold and its held-out error are

    x_(f) = argmin_x [x; -1]ᵀ (Σ_{g≠f} G_g) [x; -1],    e_f = [x_(f); -1]ᵀ G_f [x_(f); -1],

so that no data are needed again. A more complex candidate must be better by more than the standard error of the
difference (L. Breiman, J. Friedman, R. Olshen and C. Stone, "Classification and Regression Trees", 1984, section 3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.special import stdtr

from jointwise.errors import EstimationError
from jointwise.estimation.bounded import bounded_from_moments, squared_error_from_moments
from jointwise.estimation.factors import Index, JointMoments, sums_of_others
from jointwise.estimation.least_squares import Problem, QuickProblem, assembled
from jointwise.spatial import Array, Mask

WORTHWHILE = 0.01
"""A more complex candidate must reduce the held-out error by at least this part of it."""
SIGNIFICANT = 4.0
"""Standard errors of a significant difference: chance exceeds it once in 200 times between six folds (Student)."""


@dataclass(frozen=True)
class Choice:
    """One selection.

    Attributes:
        question: What was selected.
        alternatives: Name and held-out error of every candidate.
        taken: Name of the selected candidate.
    """

    question: str
    alternatives: tuple[tuple[str, float], ...]
    taken: str


@dataclass(frozen=True)
class Score:
    """Held-out error of a candidate, MSE / variance.

    Joints are compared by ratios (logarithms), so that a joint with much noise does not hide the others.

    Attributes:
        errors: Errors of every fold, (folds, joints).
        joints: Errors of all folds together, (joints,).
    """

    errors: Array
    joints: Array

    @property
    def mean(self) -> float:
        """Geometric mean over the joints."""
        return float(np.exp(np.log(self.joints).mean()))

    def beats(self, simpler: Score) -> bool:
        """Return whether this is better than a simpler candidate by more than `WORTHWHILE` and one standard error."""
        gain = np.log(simpler.errors / self.errors).mean(axis=1)
        return float(gain.mean()) > max(WORTHWHILE, standard_error_of_mean(gain))

    def probability_better(self, other: Score) -> float:
        """Return the probability that this candidate predicts better than another one, from the spread of the folds.

        The mean log ratio of the errors over its standard error follows Student's distribution.
        """
        gain = np.log(other.errors / self.errors).mean(axis=1)
        error = max(standard_error_of_mean(gain), 1e-12)
        return float(stdtr(len(gain) - 1, gain.mean() / error))

    def improves_a_joint(self, simpler: Score) -> bool:
        """Return whether this is significantly better over all joints and worthwhile at one of them at least.

        What only some joints can show (friction that grows with the load, where there is one) is lost in a mean.
        """
        gain = np.log(simpler.errors / self.errors).mean(axis=1)
        most = float(np.log(simpler.joints / self.joints).max())
        return most > WORTHWHILE and float(gain.mean()) > SIGNIFICANT * standard_error_of_mean(gain)


def cross_validate(problem: Problem | QuickProblem, sigma: Array, fitted: Sequence[Array] | None = None) -> Score:
    """Return the held-out error of a regression; see the module for the equation.

    Args:
        problem: The regression; its blocks are merged to folds.
        sigma: Standard deviation by which the rows of each joint are divided, (joints,), Nm.
        fitted: Parameters (parameters,) without each fold (see `Problem.without_folds`); None for those of bounded
            least squares, from second moments.

    Returns:
        Errors relative to the variance of the output. Joints whose output was not measured are excluded; in a fold
        without output, a joint has its mean error.

    Raises:
        EstimationError: There are fewer than three folds.

    """
    quick = (problem.quick() if isinstance(problem, Problem) else problem).folded()
    _refuse_few_folds(quick.joints[0].blocks)
    folds = list(zip(*(joint.squares for joint in quick.joints), strict=True))
    if fitted is None:
        others = sums_of_others(np.array([assembled(fold, quick.layout, sigma) for fold in folds]))
        fitted = [bounded_from_moments(square, quick.layout.bound) for square in others]
    errors = [
        [squared_error_from_moments(G, values[index]) for G, index in zip(fold, quick.layout.index, strict=True)]
        for fold, values in zip(folds, fitted, strict=True)
    ]
    return _score(quick.joints, np.array(errors))


def _refuse_few_folds(folds: int) -> None:
    if folds < 3:
        raise EstimationError("the log is too short to cross-validate: choose the joint model by hand.")


def _score(joints: Sequence[JointMoments], errors: Array) -> Score:
    """Return squared errors (folds, joints) as shares of the variance; the blocks of the joints are the folds."""
    weight = np.array([joint.weight for joint in joints]).T
    variance = np.array([max(joint.variance, 1e-300) for joint in joints])
    used = np.flatnonzero([not joint.empty for joint in joints])
    errors, weight, variance = errors[:, used], weight[:, used], variance[used]
    by_joint = np.maximum(errors.sum(axis=0) / weight.sum(axis=0) / variance, 1e-12)
    relative = np.divide(errors, weight * variance, out=np.tile(by_joint, (len(errors), 1)), where=weight > 0.0)
    return Score(np.maximum(relative, 1e-12), by_joint)


FOLDS = 5
"""Folds of a cross-validation over rows: each model is fitted to four fifths of the runs, cycles or blocks."""


def held_out_predictions(unit: Index, predict: Callable[[Mask], Array], use: Mask | None = None) -> Array:
    """Return the prediction (rows, ...) of every row by a model fitted to the other folds.

    Args:
        unit: Run, cycle or block of every row, (rows,); units are distributed over `FOLDS` folds in turn.
        predict: From flags of the training rows, (rows,), to the prediction of all rows, (rows, ...).
        use: Flags of the rows to use, (rows,); all by default.

    Returns:
        Held-out predictions; NaN in rows that are not used.

    """
    used = np.ones(len(unit), dtype=bool) if use is None else use
    names, place = np.unique(unit[used], return_inverse=True)
    fold = np.full(len(unit), -1, dtype=np.intp)
    fold[used] = place % min(FOLDS, len(names))
    parts = {int(k): predict(used & (fold != k)) for k in np.unique(fold[used])}
    result = np.full_like(next(iter(parts.values())), np.nan)
    for k, predicted in parts.items():
        result[fold == k] = predicted[fold == k]
    return result


def unit_errors(residual: Array, unit: Index) -> Array:
    """Return the mean squared residual of every unit, (units,); rows with a residual of NaN do not count."""
    used = ~np.isnan(residual)
    _, place = np.unique(unit[used], return_inverse=True)
    result: Array = np.bincount(place, np.square(residual[used])) / np.bincount(place)
    return result


Candidate = TypeVar("Candidate", bound=Hashable)


def simplest_candidate(errors: Mapping[Candidate, Array], paired: bool = True) -> Candidate:
    """Return the first candidate whose held-out error exceeds the smallest by at most one standard error.

    Args:
        errors: Mean squared held-out error of each unit, shape (units,), by candidate, the simplest one first.
        paired: Whether the standard error is that of the difference to the best candidate over the units (blocks, runs
            or folds), so that units that are hard for every candidate do not count. Otherwise it is that of the error
            of the best candidate: the rule of Breiman, which prefers fewer parameters among nested models.

    Returns:
        The chosen candidate.

    """
    best = min(errors, key=lambda candidate: float(errors[candidate].mean()))
    if paired:
        return next(candidate for candidate, error in errors.items() if not exceeds(error - errors[best]))
    limit = float(errors[best].mean()) + standard_error_of_mean(errors[best])
    return next(candidate for candidate, error in errors.items() if float(error.mean()) <= limit)


def first_or_best(errors: Mapping[Candidate, Array]) -> Candidate:
    """Return the first candidate unless the best one is better by more than one standard error of the difference.

    For one simple candidate and several larger ones of equal size; `errors` as in `simplest_candidate`.
    """
    first, best = next(iter(errors)), min(errors, key=lambda candidate: float(errors[candidate].mean()))
    return best if exceeds(errors[first] - errors[best]) else first


def exceeds(difference: Array, standard_errors: float = 1.0) -> bool:
    """Return whether the mean of differences (units,) is above zero by more than so many standard errors."""
    return float(difference.mean()) > standard_errors * standard_error_of_mean(difference)


def standard_error_of_mean(values: Array) -> float:
    """Return the standard error of the mean of independent values, shape (n,) with n > 1."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))
