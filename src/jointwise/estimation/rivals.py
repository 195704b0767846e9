"""What a choice is worth: how far the body parameters move under rivals that were nearly taken.

The jackknife tells how far the data of one structure let its numbers move; it cannot see that another structure, as
good on held-out data, has other numbers. Each question adds the mean of Δβ Δβᵀ over its credible rivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.estimation.coupled import Uncertainty, weighted_least_squares
from jointwise.estimation.dictionary import Dictionary
from jointwise.estimation.factors import scaled_factors
from jointwise.estimation.problem import Problem
from jointwise.estimation.structure import Structure
from jointwise.spatial import Array

CREDIBLE = 1.25
"""A rival is credible if its held-out error is at most this times that of the choice."""
LAG_DOUBT = 2e-3
"""Lags (s) are told apart to about half a step of their grid."""


@dataclass(frozen=True)
class Moves:
    """Δβ of the base parameters from the choice to each rival of one question, (rivals, parameters)."""

    question: str
    steps: Array

    @property
    def covariance(self) -> Array:
        """Mean of Δβ Δβᵀ, (parameters, parameters)."""
        result: Array = self.steps.T @ self.steps / max(len(self.steps), 1)
        return result


def structure_moves(dictionary: Dictionary, question: str, taken: Structure, rivals: Sequence[Structure]) -> Moves:
    """Return how the base parameters move from a structure to its rivals, all from the columns of one dictionary."""
    chosen = _bodies(dictionary, taken)
    steps = [_bodies(dictionary, rival) - chosen for rival in rivals]
    return Moves(question, np.array(steps).reshape(len(steps), dictionary.base))


def filter_moves(
    problem: Problem, gains: Array, structure: Structure, cutoffs: Sequence[float], lags: bool
) -> list[Moves]:
    """Return how the base parameters move under other position cut-offs (Hz), and lags earlier and later."""
    problem, plain = problem.excerpt(), structure.without_load()
    lag = problem.filters.lag
    own, before, after = _fits(problem, gains, plain, (lag, lag - LAG_DOUBT, lag + LAG_DOUBT))
    moves = [Moves("lag of the output", np.stack([before - own, after - own]))] if lags else []
    others = [_fits(problem.treated(position_cutoff=cutoff), gains, plain, (lag,))[0] - own for cutoff in cutoffs]
    return [*moves, Moves("position cut-off", np.stack(others))] if others else moves


def with_choices(uncertainty: Uncertainty, moves: Sequence[Moves]) -> Uncertainty:
    """Return the uncertainty with the moves of every question added to that of the base parameters."""
    covariance = uncertainty.covariance.copy()
    for own in moves:
        base = own.steps.shape[1]
        covariance[:base, :base] += own.covariance
    return replace(uncertainty, covariance=covariance, deviation=np.sqrt(np.diag(covariance)))


def _bodies(dictionary: Dictionary, structure: Structure) -> Array:
    values: Array = weighted_least_squares(*dictionary.select(structure)).values[: dictionary.base]
    return values


def _fits(problem: Problem, gains: Array, structure: Structure, lags: Sequence[float]) -> list[Array]:
    """Return the base parameters for some lags (s) of the output."""
    joints, base = range(problem.bodies.robot.dof), problem.bodies.base.count
    layout = problem.layout(structure.terms())
    factors = problem.lagged_factors([structure.terms(joint=j) for j in joints], lags)
    return [weighted_least_squares(scaled_factors(own, gains), layout).values[:base] for own in factors]
