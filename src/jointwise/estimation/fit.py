"""The fit of one structure: weighted least squares around the iteration of the load torque.

Dry friction that grows with the load torque, ``F_C1 |τ_load|^p``, is not linear in the parameters, because τ_load is
the torque of the bodies that are estimated. The iteration holds the load torque of one estimate while it computes the
next.
Robust fits weight rows by their residuals: P. J. Huber, "Robust estimation of a location parameter", Annals of
Mathematical Statistics 35(1), 1964.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.errors import EstimationError
from jointwise.estimation.least_squares import (
    KnownSum,
    Problem,
    Solution,
    quick_weighted_fit,
    weighted_least_squares,
)
from jointwise.estimation.regression import LoadOf, Regression, Rows, RowWeights, term_series
from jointwise.estimation.structure import NO_JOINT_TERMS, JointTerms, Structure, element_shapes
from jointwise.model.dynamics import Dynamics
from jointwise.model.terms import Hysteresis, Inertia, Term
from jointwise.model.transmission import motor_motion
from jointwise.spatial import Array

METHODS = ("wls", "ols", "huber")
CONVERGED = 1e-3
"""The load torque has converged when it changes by less than this part of itself."""
MAX_PASSES = 8
"""Passes after which the iteration of the load torque ends."""
HUBER = 1.345
"""Residuals beyond this many standard deviations have less weight (95 % efficiency for normal noise)."""
HUBER_PASSES = 4
"""Passes of the reweighting; more change the weights by less than a percent."""


@dataclass(frozen=True)
class LoadIteration:
    """How the iteration of the load torque ended.

    Attributes:
        passes: Number of passes.
        converged: Whether it converged.
        change: Last change of the load torque, relative to its size.
    """

    passes: int
    converged: bool
    change: float


@dataclass(frozen=True)
class Fit:
    """A fitted model with the regression it came from.

    Attributes:
        model: Robot, base parameters and terms.
        structure: Joint model.
        problem: The regression, y in Nm.
        solution: Its solution.
        load: Outcome of the iteration for load-dependent friction.
    """

    model: Dynamics
    structure: Structure
    problem: Problem
    solution: Solution
    load: LoadIteration


def fit_structure(
    regression: Regression,
    structure: Structure,
    gains: Array,
    method: str = "wls",
    joint_terms: Mapping[int, JointTerms] = NO_JOINT_TERMS,
    bodies: Array | None = None,
) -> Fit:
    """Return the fit of a structure.

    Terms that depend on the load torque start without it; then the load torque of one pass gives the columns of the
    next, until it converges. With AURT's row-sum basis the load is known beforehand and one pass is enough.

    Args:
        regression: The training logs.
        structure: The joint model.
        gains: Nm per unit of the measured output, shape (joints,).
        method: wls, ols or huber.
        joint_terms: Terms of single joints (0-based) that replace those of the structure.
        bodies: Known base parameters, shape (base parameters,); None to estimate them.

    Returns:
        The fit.

    Raises:
        EstimationError: The method is unknown, or the measured output of a joint never changes.

    """
    if method not in METHODS:
        raise EstimationError(f"method must be one of {', '.join(METHODS)}. Got '{method}' instead.")
    fitter = _Fitter(structure, gains, method, joint_terms, bodies)
    if not fitter.needs_load:
        fit = fitter.solve(regression, fitter.plain_terms(regression))
    else:
        fit = fitter.iterate_load(regression, fitter.first_load(regression.excerpt()))
    return fitter.reweight(regression, fit) if method == "huber" else fit


def known_values(model: Dynamics, joint_terms: Mapping[int, JointTerms]) -> tuple[Array, Array]:
    """Return the known values of a model's parameters and their standard errors, NaN where they are estimated."""
    values, deviations = np.full(model.count, np.nan), np.full(model.count, np.nan)
    inertias = _known_inertias(model)
    for k, info in enumerate(model.parameters):
        if info.joint is None:
            continue
        single = joint_terms.get(info.joint)
        if info.name in inertias:
            values[k], deviations[k] = inertias[info.name], 0.0
        elif single is not None:
            values[k], deviations[k] = single.known.get(info.name.rsplit("_", 1)[0], (np.nan, np.nan))
    return values, deviations


def _known_inertias(model: Dynamics) -> dict[str, float]:
    """Return the known rotor inertias (kg m²) of a model by the names of their parameters."""
    terms = [(f"Ia_{j + 1}", term) for j, terms in enumerate(model.terms) for term in terms]
    return {name: t.value for name, t in terms if isinstance(t, Inertia) and t.value is not None}


def known_sums(model: Dynamics, joint_terms: Mapping[int, JointTerms]) -> list[KnownSum]:
    """Return the known sums of a model's slip elements: of their forces, and of their growth with the load."""
    result = []
    for j, terms in joint_terms.items():
        names = {k: info.name for k, info in enumerate(model.parameters) if info.joint == j}
        for total, (value, deviation) in terms.sums.items():
            stem = "W" if total == "FC0" else "FC"
            index = np.array([k for k, name in names.items() if name.startswith(stem)], dtype=np.intp)
            result += [KnownSum(index, value, deviation)] if len(index) else []
    return result


@dataclass(frozen=True)
class _Fitter:
    """The settings of a fit; see `fit_structure`."""

    structure: Structure
    gains: Array
    method: str
    joint_terms: Mapping[int, JointTerms]
    bodies: Array | None = None

    @property
    def needs_load(self) -> bool:
        """Whether a term depends on the load torque."""
        single = (term for terms in self.joint_terms.values() for term in terms.terms)
        return self.structure.needs_load or any(term.uses_load() for term in single)

    def plain_terms(self, regression: Regression) -> list[tuple[Term, ...]]:
        """Return the terms of every joint without what depends on the load torque."""
        plain, joints = self.structure.without_load(), range(regression.bodies.robot.dof)
        single = {j: terms.without_load() for j, terms in self.joint_terms.items()}
        return [single[j] if j in single else plain.terms(joint=j) for j in joints]

    def loaded_terms(self, model: Dynamics, values: Array) -> list[tuple[Term, ...]]:
        """Return the terms of every joint, slip elements sharing their growth with the load as in a fitted model."""
        result = []
        for j in range(model.robot.dof):
            shapes = element_shapes(model.terms[j], values[model.joint_slices[j]])
            single = self.joint_terms.get(j)
            result.append(self.structure.terms(shapes, j) if single is None else _with_shapes(single.terms, shapes))
        return result

    def solve(
        self,
        regression: Regression,
        terms: list[tuple[Term, ...]],
        before: Array | None = None,
        row_weights: RowWeights | None = None,
    ) -> Fit:
        """Return the fit of some terms; the load torque is that of the values `before`."""
        model = replace(regression.bodies, terms=tuple(terms))
        known, sums = self._known(model)
        problem = regression.problem(terms, _load_of(model, before), row_weights)
        problem = problem.scaled(self.gains).with_known(known).with_sums(sums)
        solution = weighted_least_squares(problem, weighted=self.method != "ols")
        solution = replace(solution, values=np.where(np.isnan(known), solution.values, known))
        structure = self.structure if before is not None else self.structure.without_load()
        return Fit(model, structure, problem, solution, LoadIteration(0, True, 0.0))

    def _known(self, model: Dynamics) -> tuple[Array, list[KnownSum]]:
        """Return the known values of a model's parameters, NaN where they are estimated, and known sums of them."""
        known = known_values(model, self.joint_terms)[0]
        if self.bodies is not None:
            known[: len(self.bodies)] = self.bodies
        return known, known_sums(model, self.joint_terms)

    def quick(self, regression: Regression, terms: list[tuple[Term, ...]], before: Array | None = None) -> _QuickFit:
        """Return the values of `solve` from second moments: for a load torque, not for a result."""
        model = replace(regression.bodies, terms=tuple(terms))
        known, sums = self._known(model)
        problem = regression.quick_problem(terms, _load_of(model, before))
        problem = problem.scaled(self.gains).with_known(known).with_sums(sums)
        values = quick_weighted_fit(problem, weighted=self.method != "ols")[0]
        values = np.where(np.isnan(known), values, known)
        return _QuickFit(
            model, values, 1.0 if before is None else _load_change(model, problem.merged(), values, before)
        )

    def first_load(self, regression: Regression) -> _QuickFit:
        """Return the fit before the one in which the load torque is expected to converge, from second moments.

        The last pass is left to `iterate_load`, which uses all digits, and all data of a long log. The relative change
        of a pass is about the square of that of the pass before: the load torque changes in proportion to the share of
        the friction that depends on it.
        """
        fit = self.quick(regression, self.plain_terms(regression))
        if self.bodies is not None or regression.bodies.load_basis == "row_sum":
            return fit  # the load torque is known
        while fit.change**2 >= CONVERGED and fit.passes < MAX_PASSES - 1:
            after = self.quick(regression, self.loaded_terms(fit.model, fit.values), fit.values)
            fit = replace(after, passes=fit.passes + 1)
        return fit

    def iterate_load(self, regression: Regression, first: _QuickFit) -> Fit:
        """Return the fit after the iteration of the load torque, which continues that of `first`."""
        model, values = first.model, first.values
        for passes in range(first.passes + 1, first.passes + MAX_PASSES + 1):
            fit = self.solve(regression, self.loaded_terms(model, values), values)
            merged = [R.T @ R for R in fit.problem.merged()]
            change = _load_change(fit.model, merged, fit.solution.values, values)
            fit = replace(fit, load=LoadIteration(passes, change < CONVERGED, change))
            if change < CONVERGED or regression.bodies.load_basis == "row_sum":
                break
            model, values = fit.model, fit.solution.values
        return fit

    def reweight(self, regression: Regression, fit: Fit) -> Fit:
        """Return the fit after Huber's reweighting: rows with |r| > k σ have the weight k σ / |r|."""
        for _ in range(HUBER_PASSES):
            before = fit.solution.values if self.needs_load else None
            again = self.solve(regression, list(fit.model.terms), before, _HuberWeights(fit, self.gains))
            fit = replace(again, structure=fit.structure, load=fit.load)
        return fit


@dataclass(frozen=True)
class _HuberWeights:
    """Row weights from the residuals of a fit."""

    fit: Fit
    gains: Array

    def __call__(self, rows: Rows, rigid: list[Array], load: Array | None) -> Array:
        """Return weights (needed samples, joints); see `RowWeights`."""
        model, values = self.fit.model, self.fit.solution.values
        torque, motor = model.body_torque(rigid, values), motor_motion(model.robot, rows.motion, model.rotor_side)
        for j, which in enumerate(model.joint_slices):
            torque[:, j] += values[which] @ np.concatenate(term_series(model.terms[j], motor, j, load, rows.needed))
        size = np.abs(rows.outputs[0, rows.needed] * self.gains - torque) / self.fit.solution.sigma
        result: Array = np.minimum(1.0, HUBER / np.maximum(size, 1e-12))
        return result


def _with_shapes(terms: tuple[Term, ...], shapes: Sequence[tuple[float, ...]]) -> tuple[Term, ...]:
    """Return terms with the shares of their slip elements."""
    rest = iter(shapes)
    return tuple(replace(term, shape=next(rest)) if isinstance(term, Hysteresis) else term for term in terms)


@dataclass(frozen=True)
class _QuickFit:
    """Values of a model from second moments, the relative change of the load torque, and the passes before it."""

    model: Dynamics
    values: Array
    change: float
    passes: int = 0


def _load_of(model: Dynamics, values: Array | None) -> LoadOf | None:
    """Return the load torque that follows from some values, None without them."""
    return None if values is None else lambda rigid: model.load_torque(rigid, values)


def _load_change(model: Dynamics, moments: Sequence[Array], values: Array, before: Array) -> float:
    """Return the relative change of the load torque between two estimates, over all joints, from second moments."""
    moved = size = 0.0
    for squares, (_, which) in zip(moments, model.rigid_index, strict=True):
        G, step = squares[: len(which), : len(which)], values[which] - before[which]
        moved += float(step @ G @ step)
        size += float(values[which] @ G @ values[which])
    return float(np.sqrt(max(moved, 0.0) / size)) if size > 0.0 else 0.0
