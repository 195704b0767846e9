"""Laws fitted to rows of a record, compared on held-out data, with jackknife uncertainty: what phenomena share.

A law is ``y = C(inputs; n) p + X b``: linear in p and in the effects b of the columns X that are fitted together with
it, nonlinear in few parameters n, which are searched within bounds by variable projection. Friction over speed, load
and temperature state their rows and laws; everything else about them is here.

References:
    Golub, Pereyra: The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
    separate, SIAM J. Numerical Analysis 10(2), 1973.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.optimize import least_squares, lsq_linear

from jointwise.estimation.cross_validation import held_out_predictions, unit_errors
from jointwise.estimation.linear_fit import JackknifeFit, column_lengths, derivatives, jackknife_fit, scaled_solution
from jointwise.joint.curve import Curve, make_curve
from jointwise.joint.part import STARTS, TriedModel, Value, nrmse_percent, rms, value_of
from jointwise.joint.windows import Flags, Indices
from jointwise.spatial import Array

Inputs = Mapping[str, Array]
"""What a law depends on, by name, (rows,) each: "speed" in rad/s, "load" in Nm, "temperature" in °C."""
Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a fit, (rows,) each unless stated.

    Attributes:
        y: Measured torque, Nm.
        inputs: Inputs of the laws.
        block: Number of the run, cycle, or block of positions or time: the unit of standard errors and folds.
        test: Which rows are held out for the test.
        weight: Weight of a row.
        beside: Columns of other effects that are fitted together with a law, (rows, effects).
        names: Names of these effects.
        kind: Kind of data, such as "runs".
        notes: Remarks for the user.
    """

    y: Array
    inputs: Inputs
    block: Indices
    test: Flags
    weight: Array
    beside: Array
    names: Names
    kind: str = ""
    notes: Names = ()

    def take(self, which: Flags) -> Rows:
        """Return a selection of rows."""
        inputs = {name: values[which] for name, values in self.inputs.items()}
        arrays = {name: getattr(self, name)[which] for name in ("y", "block", "test", "weight", "beside")}
        return replace(self, inputs=inputs, **arrays)


@dataclass(frozen=True)
class Search:
    """Bounds of a nonlinear parameter, and how many points of a grid between them a search starts from."""

    low: float
    high: float
    points: int


@dataclass(frozen=True)
class Law:
    """A law that can be fitted to rows.

    Attributes:
        name: Name in results.
        linear: Names of the linear parameters.
        columns: C (rows, linear parameters) for inputs and nonlinear parameters.
        nonlinear: The nonlinear parameters by name, whose bounds may depend on the inputs.
        nonnegative: Number of leading linear parameters that cannot be negative.
        note: Remark in the table of laws.
    """

    name: str
    linear: Names
    columns: Callable[[Inputs, Array], Array]
    nonlinear: Callable[[Inputs], Mapping[str, Search]] = lambda inputs: {}
    nonnegative: int = 0
    note: str = ""

    def regressor(self, inputs: Inputs, beside: Array, nonlinear: Array) -> Array:
        """Return ``[C X]``, (rows, linear parameters and effects)."""
        return np.column_stack([self.columns(inputs, nonlinear), beside])


@dataclass(frozen=True, eq=False)
class Fit:
    """A law with its parameters.

    Attributes:
        law: The law.
        nonlinear: Nonlinear parameters.
        linear: Linear parameters of the law, then the effects beside it.
        cost: Weighted sum of squared residuals, Nm².
    """

    law: Law
    nonlinear: Array
    linear: Array
    cost: float

    def predict(self, inputs: Inputs, beside: Array) -> Array:
        """Return the torque (rows,), Nm, for inputs and columns of the other effects (rows, effects)."""
        return self.law.regressor(inputs, beside, self.nonlinear) @ self.linear

    def on(self, rows: Rows) -> Array:
        """Return the torque of rows, Nm."""
        return self.predict(rows.inputs, rows.beside)

    def sensitivity(self, inputs: Inputs, beside: Array) -> Array:
        """Return the derivative of the torque by all parameters, nonlinear ones first, (rows, parameters)."""
        slopes = derivatives(lambda n: self.law.regressor(inputs, beside, n) @ self.linear, self.nonlinear)
        return np.column_stack([slopes, self.law.regressor(inputs, beside, self.nonlinear)])


def fit_law(rows: Rows, law: Law, start: Fit | None = None) -> Fit:
    """Return the least-squares fit of a law: from the best points of a grid, or from another fit of it."""

    def solved(nonlinear: Array) -> Fit:
        """Return ``min |w (A x - y)|²``, leading x >= 0, for fixed nonlinear parameters."""
        A = law.regressor(rows.inputs, rows.beside, nonlinear) * rows.weight[:, None]
        y = rows.y * rows.weight
        x = scaled_solution(A, y)
        if (x[: law.nonnegative] < 0.0).any():
            scale = column_lengths(A)
            lowest = np.where(np.arange(len(x)) < law.nonnegative, 0.0, -np.inf)
            x = lsq_linear(A / scale, y, (lowest, np.inf), method="bvls").x / scale
        residual = y - A @ x
        return Fit(law, nonlinear, x, float(residual @ residual))

    def residual(nonlinear: Array) -> Array:
        return rows.weight * (rows.y - solved(nonlinear).on(rows))

    searched = law.nonlinear(rows.inputs).values()
    if not searched:
        return solved(np.empty(0))
    low, high = np.array([(search.low, search.high) for search in searched]).T
    if start is None:
        axes = (np.linspace(search.low, search.high, search.points + 2)[1:-1] for search in searched)
        starts = sorted(map(np.array, product(*axes)), key=lambda node: solved(node).cost)[:STARTS]
    else:
        starts = [np.clip(start.nonlinear, low, high)]
    found = [least_squares(residual, x, bounds=(low, high), x_scale="jac").x for x in starts]
    return min(map(solved, found), key=lambda fit: fit.cost)


def row_quality(rows: Rows, modelled: Array) -> float:
    """Return the NRMSE % of the modelled torque of rows."""
    return nrmse_percent(rows.y, modelled)


@dataclass(frozen=True, eq=False)
class Trial:
    """A law fitted to the training rows.

    Attributes:
        errors: Mean squared error of every training block, predicted from the other folds, Nm².
        held_out: Quality on the test rows, %.
        tried: The law in the table of laws.
    """

    errors: Array
    held_out: float
    tried: TriedModel


def try_law(rows: Rows, law: Law, quality: Callable[[Rows, Array], float] = row_quality) -> Trial:
    """Return the held-out errors of a law among the training rows, and its quality (%) on these and on the test rows.

    Args:
        rows: All rows.
        law: The law.
        quality: Quality (%) of the modelled torque of rows.
    """
    training, test = rows.take(~rows.test), rows.take(rows.test)
    fit = fit_law(training, law)
    predicted = held_out_predictions(training.block, lambda use: fit_law(training.take(use), law, fit).on(training))
    errors = unit_errors(training.weight * (training.y - predicted), training.block)
    held_out = quality(test, fit.on(test))
    return Trial(errors, held_out, TriedModel(law.name, quality(training, fit.on(training)), held_out, law.note))


@dataclass(frozen=True, eq=False)
class Estimate:
    """A law fitted to all rows, with the uncertainty of its parameters by the jackknife over blocks.

    Attributes:
        rows: The rows.
        fit: The fit.
        names: Names of all parameters: nonlinear, linear, and the effects beside the law.
        jackknife: Their values with covariance.
    """

    rows: Rows
    fit: Fit
    names: Names
    jackknife: JackknifeFit

    def __getitem__(self, name: str) -> float:
        """Return a parameter by its name."""
        return float(self.jackknife.values[self.names.index(name)])

    def deviation(self, name: str) -> float:
        """Return the standard error of a parameter."""
        return float(self.jackknife.deviations[self.names.index(name)])

    def value(self, name: str, unit: str) -> Value:
        """Return a parameter with its confidence interval."""
        return value_of(name, unit, self[name], self.deviation(name), self.jackknife.factor)

    def derived(self, name: str, unit: str, value: float, slopes: Mapping[str, float]) -> Value:
        """Return a quantity with its slopes by parameters as a value."""
        gradient = np.array([slopes.get(parameter, 0.0) for parameter in self.names])
        return value_of(name, unit, value, self.jackknife.error(gradient), self.jackknife.factor)

    @property
    def residual(self) -> Array:
        """Measured less modelled torque of the rows, Nm."""
        return self.rows.y - self.fit.on(self.rows)

    def curve(
        self,
        labels: tuple[str, str, str],
        points: tuple[Array, Array],
        residual: Array,
        inputs: Inputs,
        effect: str | None = None,
    ) -> Curve:
        """Return a curve of points with the line of the law and the 95 % band for a new point.

        Args:
            labels: Title, and labels of x and y.
            points: x and y of the points.
            residual: Measured less modelled torque at the points, Nm.
            inputs: Inputs of the law along the line; the first one is x.
            effect: Effect beside the law that is part of the line.
        """
        line = next(iter(inputs.values()))
        beside = np.tile([float(name == effect) for name in self.rows.names], (len(line), 1))
        band = self.jackknife.band(self.fit.sensitivity(inputs, beside))
        return make_curve(labels, points, (line, self.fit.predict(inputs, beside)), band, residual=residual)


def estimate(rows: Rows, fit: Fit, scatter: float | None = None, common: Mapping[str, float] | None = None) -> Estimate:
    """Return a fit with the covariance of its parameters, leaving out one block at a time.

    Args:
        rows: The rows of the fit.
        fit: The fit.
        scatter: Standard deviation (Nm) of single points about the law; by default that of the rows.
        common: Standard errors of parameters that all blocks have in common, by name.
    """
    residual = fit.on(rows) - rows.y
    J = rows.weight[:, None] * fit.sensitivity(rows.inputs, rows.beside)
    values, spread = np.concatenate([fit.nonlinear, fit.linear]), rms(residual) if scatter is None else scatter
    found = jackknife_fit(values, rows.weight * residual, J, rows.block, spread)
    names = (*fit.law.nonlinear(rows.inputs), *fit.law.linear, *rows.names)
    added = np.diag([(common or {}).get(name, 0.0) ** 2 for name in names])
    return Estimate(rows, fit, names, replace(found, covariance=found.covariance + added))
