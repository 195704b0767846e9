"""The fit of one structure: weighted least squares around the iteration of the load torque."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jointwise.errors import EstimationError
from jointwise.estimation.coupled import Layout, Solution, Total, held_factors, weighted_least_squares, with_totals
from jointwise.estimation.factors import Index, JointFactors, scaled_factors
from jointwise.estimation.given import NOTHING_GIVEN, GivenTerms
from jointwise.estimation.problem import Problem, RowWeights, Stretch, term_columns
from jointwise.estimation.structure import Structure, element_shapes
from jointwise.model.dynamics import Dynamics
from jointwise.model.terms import Hysteresis, Term
from jointwise.spatial import Array

METHODS = ("wls", "ols", "huber")
CONVERGED = 1e-3
"""The load torque has converged when it changes by less than this part of itself."""
MOST_PASSES = 8
HUBER = 1.345
"""Residuals beyond this many standard deviations count less (95 % efficiency for normal noise)."""
HUBER_PASSES = 4


@dataclass(frozen=True)
class LoadIteration:
    """How the iteration of the load torque went: passes, whether it settled, the last relative change."""

    passes: int
    converged: bool
    change: float


@dataclass(frozen=True)
class Fit:
    """A fitted model with the factors it came from (in torque units)."""

    model: Dynamics
    structure: Structure
    factors: list[JointFactors]
    solution: Solution
    load: LoadIteration

    @property
    def layout(self) -> Layout:
        """Places and bounds of the parameters."""
        return layout_of(self.model)


def fit_structure(
    problem: Problem,
    structure: Structure,
    gains: Array,
    method: str = "wls",
    given: Mapping[int, GivenTerms] = NOTHING_GIVEN,
) -> Fit:
    """Return the fit of a structure; `gains` (joints,) Nm per unit of the measured output.

    `given` are the terms of joints (0-based) that take the place of the structure's. Terms that see the load start
    without it; then the load torque of one pass gives the columns of the next, until it settles. With AURT's row-sum
    basis the load is known beforehand and one pass is enough.
    """
    if method not in METHODS:
        raise EstimationError(f"method must be one of {', '.join(METHODS)}. Got '{method}' instead.")
    plain = structure.without_load()
    needs_load = structure.needs_load or any(term.uses_load() for own in given.values() for term in own.terms)
    start = problem.excerpt() if needs_load else problem  # a load torque to begin with needs no hour of data
    joints = range(problem.bodies.robot.dof)
    terms = [given[j].without_load() if j in given else plain.terms(joint=j) for j in joints]
    fit = _solve(start, plain, terms, gains, method, None, given)
    if start is not problem:
        fit = _iterate_load(start, structure, fit, gains, method, given)
    if needs_load:
        fit = _iterate_load(problem, structure, fit, gains, method, given)
    if method == "huber":
        fit = _reweight(problem, fit, gains, needs_load, given)
    return fit


def known_values(model: Dynamics, given: Mapping[int, GivenTerms]) -> tuple[Array, Array]:
    """Return the known values of a model's parameters and their deviations, NaN where they are estimated."""
    values, deviations = np.full(model.count, np.nan), np.full(model.count, np.nan)
    for k, info in enumerate(model.parameters):
        own = given.get(-1 if info.joint is None else info.joint)
        name = info.name.rsplit("_", 1)[0]
        if own is not None and info.joint is not None and name in own.known:
            values[k], deviations[k] = own.known[name]
    return values, deviations


def known_totals(model: Dynamics, given: Mapping[int, GivenTerms]) -> list[Total]:
    """Return the known sums of a model's slip elements: of their forces, and of their growth with the load."""
    result = []
    for j, own in given.items():
        names = {k: info.name for k, info in enumerate(model.parameters) if info.joint == j}
        for total, (value, deviation) in own.totals.items():
            stem = "W" if total == "FC0" else "FC"
            places = np.array([k for k, name in names.items() if name.startswith(stem)], dtype=np.intp)
            result += [Total(places, value, deviation)] if len(places) else []
    return result


def layout_of(model: Dynamics) -> Layout:
    """Return where the columns of every joint stand in the model's vector of parameters."""
    index = [model.joint_index(j) for j in range(model.robot.dof)]
    return Layout(index, np.array([info.non_negative for info in model.parameters]))


def _solve(
    problem: Problem,
    structure: Structure,
    terms: list[tuple[Term, ...]],
    gains: Array,
    method: str,
    before: Array | None,
    given: Mapping[int, GivenTerms],
    row_weights: RowWeights | None = None,
) -> Fit:
    model = replace(problem.bodies, terms=tuple(terms))
    load_of = None if before is None else lambda rigid: model.load_torque(rigid, before)
    layout, held = layout_of(model), known_values(model, given)[0]
    factors = held_factors(scaled_factors(problem.factors(terms, load_of, row_weights), gains), layout, held)
    factors = with_totals(factors, layout, known_totals(model, given))
    solution = weighted_least_squares(factors, layout, weighted=method != "ols")
    solution = replace(solution, values=np.where(np.isnan(held), solution.values, held))
    return Fit(model, structure, factors, solution, LoadIteration(0, True, 0.0))


def _iterate_load(
    problem: Problem, structure: Structure, start: Fit, gains: Array, method: str, given: Mapping[int, GivenTerms]
) -> Fit:
    fit, change = start, np.inf
    for passes in range(1, MOST_PASSES + 1):
        joints = range(problem.bodies.robot.dof)
        terms = [_loaded(given[j].terms, fit, j) if j in given else structure.terms(_shapes(fit, j), j) for j in joints]
        after = _solve(problem, structure, terms, gains, method, fit.solution.values, given)
        change = _load_change(after, fit.solution.values)
        fit = replace(after, load=LoadIteration(passes, change < CONVERGED, change))
        if change < CONVERGED or problem.bodies.load_basis == "row_sum":
            break
    return fit


def _shapes(fit: Fit, joint: int) -> tuple[tuple[float, ...], ...]:
    return element_shapes(fit.model.terms[joint], fit.solution.values[fit.model.joint_slices[joint]])


def _loaded(terms: tuple[Term, ...], fit: Fit, joint: int) -> tuple[Term, ...]:
    """Return given terms with the shares of their slip elements as they came out of a fit."""
    shapes = iter(_shapes(fit, joint))
    return tuple(replace(own, shape=next(shapes)) if isinstance(own, Hysteresis) else own for own in terms)


def _load_change(fit: Fit, before: Array) -> float:
    """Return the relative change of the load torque between two estimates, over all joints, from the factors."""
    moved = size = 0.0
    for own, (_, which) in zip(fit.factors, fit.model.rigid_places, strict=True):
        R = own.merged()[:, : len(which)]
        now = R @ fit.solution.values[which]
        moved += float(np.sum((now - R @ before[which]) ** 2))
        size += float(now @ now)
    return float(np.sqrt(moved / size)) if size > 0.0 else 0.0


def _reweight(problem: Problem, fit: Fit, gains: Array, needs_load: bool, given: Mapping[int, GivenTerms]) -> Fit:
    """Return the fit after Huber's reweighting: rows with |r| > k σ count k σ / |r|."""
    for _ in range(HUBER_PASSES):
        values, sigma = fit.solution.values, fit.solution.sigma

        def weights(
            stretch: Stretch,
            needed: Index,
            rigid: list[Array],
            load: Array | None,
            fit: Fit = fit,
            values: Array = values,
            sigma: Array = sigma,
        ) -> Array:
            torque = fit.model.body_torque(rigid, values)
            for j, own in enumerate(fit.model.joint_slices):
                torque[:, j] += values[own] @ term_columns(fit.model.terms[j], stretch.motion, j, load)[:, needed]
            size = np.abs(stretch.outputs[0, needed] * gains - torque) / sigma
            share: Array = np.minimum(1.0, HUBER / np.maximum(size, 1e-12))
            return share

        before = values if needs_load else None
        again = _solve(problem, fit.structure, list(fit.model.terms), gains, "wls", before, given, weights)
        fit = replace(again, load=fit.load)
    return fit
