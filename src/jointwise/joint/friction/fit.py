"""Fit of a friction curve by variable projection: linear for every Stribeck speed, exponent and asymmetry.

References:
    Golub, Pereyra: The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
    separate, SIAM J. Numerical Analysis 10(2), 1973.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, lsq_linear

from jointwise.estimation.linear_fit import JackknifeFit, column_lengths, derivatives, jackknife_fit, scaled_solution
from jointwise.joint.friction.data import FrictionPoints
from jointwise.joint.friction.law import FrictionForm, VelocityLaw
from jointwise.joint.part import STARTS
from jointwise.spatial import Array

EXPONENT_BOUNDS = (0.3, 4.0)
"""Range of the Stribeck exponent μ: published values lie between 0.5 and 2."""
STRIBECK_MARGINS = (3.0, 2.0)
"""V_S is sought from the slowest speed over the first to the fastest over the second: a rise that has faded before
the slowest run, or fades beyond the fastest, cannot be distinguished from F_C or viscous friction."""
GRID = {"log V_S": 8, "log mu": 4, "asymmetry": 1}
"""Grid points of each nonlinear parameter."""


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """A fitted curve; the names of its parameters are those of the form.

    Attributes:
        form: Terms of the curve.
        nonlinear: Parameters `form.nonlinear`, (nonlinear,): logarithms of V_S (rad/s) and μ, and the asymmetry.
        linear: Parameters `form.linear`, (linear,): forces in Nm, viscous ones in Nm s/rad and so on.
        extra: Factors of the other effects of `FrictionPoints.extra`, (columns,).
        cost: Weighted sum of squared residuals, Nm².
    """

    form: FrictionForm
    nonlinear: Array
    linear: Array
    extra: Array
    cost: float

    @property
    def values(self) -> Array:
        """All parameters: nonlinear, linear, extra."""
        return np.concatenate([self.nonlinear, self.linear, self.extra])

    def curve(self, speed: Array) -> Array:
        """Return the friction at speeds (points,), Nm."""
        return self.form.columns(speed, self.nonlinear) @ self.linear

    def predict(self, points: FrictionPoints) -> Array:
        """Return the torque of points including the other effects, Nm."""
        return self.curve(points.speed) + points.extra @ self.extra

    def sensitivity(self, speed: Array) -> Array:
        """Return the derivative of the curve by nonlinear and linear parameters, (points, size)."""
        slopes = derivatives(lambda x: self.form.columns(speed, x) @ self.linear, self.nonlinear)
        return np.column_stack([slopes, self.form.columns(speed, self.nonlinear)])

    def law(self, points: FrictionPoints) -> VelocityLaw:
        """Return the curve as a law within the speeds of its points."""
        w = np.abs(points.speed)
        return self.form.law(self.nonlinear, self.linear, float(w.min()), float(w.max()))


def fit_curve(points: FrictionPoints, form: FrictionForm, start: FrictionFit | None = None) -> FrictionFit:
    """Return the least-squares fit of a form: from the best points of a grid, or from a `start`."""
    lower, upper = _bounds(points, form)
    if not len(lower):
        return _solve(points, form, np.empty(0))
    starts = [start.nonlinear] if start is not None else _grid(points, form, lower, upper)
    fits = [_refine(points, form, np.clip(x, lower, upper), lower, upper) for x in starts]
    return min(fits, key=lambda fit: fit.cost)


def _bounds(points: FrictionPoints, form: FrictionForm) -> tuple[Array, Array]:
    """Return the bounds of the nonlinear parameters; with |a| > 1 friction would drive the joint in one direction."""
    w = np.abs(points.speed)
    limits = {
        "log V_S": (np.log(w.min() / STRIBECK_MARGINS[0]), np.log(w.max() / STRIBECK_MARGINS[1])),
        "log mu": tuple(np.log(EXPONENT_BOUNDS)),
        "asymmetry": (-1.0, 1.0),
    }
    pairs = np.array([limits[name] for name in form.nonlinear]).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _grid(points: FrictionPoints, form: FrictionForm, lower: Array, upper: Array) -> list[Array]:
    """Return the best `STARTS` points of a grid over the nonlinear parameters."""
    axes = [
        np.linspace(low, high, GRID[name] + 2)[1:-1]
        for name, low, high in zip(form.nonlinear, lower, upper, strict=True)
    ]
    nodes = [np.array(node) for node in product(*axes)]
    return sorted(nodes, key=lambda node: _solve(points, form, node).cost)[:STARTS]


def _refine(points: FrictionPoints, form: FrictionForm, start: Array, lower: Array, upper: Array) -> FrictionFit:
    def residual(nonlinear: Array) -> Array:
        fit = _solve(points, form, nonlinear)
        return points.weight * (points.torque - fit.predict(points))

    best = least_squares(residual, start, bounds=(lower, upper), x_scale="jac")
    return _solve(points, form, best.x)


def _solve(points: FrictionPoints, form: FrictionForm, nonlinear: Array) -> FrictionFit:
    """Return the fit of the linear parameters for fixed nonlinear ones."""
    A = np.column_stack([form.columns(points.speed, nonlinear), points.extra]) * points.weight[:, None]
    x, cost = _bounded(A, points.torque * points.weight, form.nonnegative)
    count = len(form.linear)
    return FrictionFit(form, nonlinear, x[:count], x[count:], cost)


def _bounded(A: Array, y: Array, nonnegative: int) -> tuple[Array, float]:
    """Return x and the cost of min |A x - y|² with the first `nonnegative` entries of x >= 0."""
    x = scaled_solution(A, y)
    if (x[:nonnegative] < 0.0).any():
        scale = column_lengths(A)
        lowest = np.where(np.arange(len(x)) < nonnegative, 0.0, -np.inf)
        x = lsq_linear(A / scale, y, (lowest, np.inf), method="bvls").x / scale
    residual = y - A @ x
    return x, float(residual @ residual)


# -- uncertainty --

CELL_SIZE = 4
"""Blocks of similar speed that form the mean of a cycle at that speed: 0.4 s, comparable to a short run."""
RIPPLE = 5e-4
"""Part of the dry friction by which a curve errs in the same way at every repetition: runs at the same places average
the kinematic error of the gear alike. Without it F_C of two joints of the digital robot changes by 7e-4 and 4e-4."""


def uncertainty_of(fit: FrictionFit, points: FrictionPoints) -> JackknifeFit:
    """Return the parameters of a curve with their uncertainty, leaving out one run or cycle at a time.

    The jackknife does not see what all runs have in common: `RIPPLE` is added to the standard error of dry friction.
    `scatter` is the standard deviation (Nm) of the mean of a run, or of a cycle at one speed, about the curve.
    """
    J = np.column_stack([fit.sensitivity(points.speed), points.extra])
    residual = fit.predict(points) - points.torque
    _, means = cell_means(points, residual)
    scatter = float(np.sqrt(means @ means / max(1, len(means) - J.shape[1])))
    full = jackknife_fit(fit.values, points.weight * residual, points.weight[:, None] * J, points.group, scatter)
    size = fit.form.size
    covariance = full.covariance[:size, :size].copy()
    if fit.form.dry:
        place = len(fit.nonlinear) + fit.form.linear.index("F_C")
        covariance[place, place] += (RIPPLE * full.values[place]) ** 2
    return replace(full, values=full.values[:size], covariance=covariance)


def cell_means(points: FrictionPoints, values: Array) -> tuple[Array, Array]:
    """Return speeds and mean `values` of every run, or of every `CELL_SIZE` blocks of similar speed in a cycle.

    Every block belongs to a cell, including slow ones.
    """
    if points.kind == "runs":
        return points.speed, values
    cells = [cell for g in points.groups for side in (-1.0, 1.0) for cell in _cells(points, g, side)]
    return np.array([points.speed[c].mean() for c in cells]), np.array([values[c].mean() for c in cells])


def _cells(points: FrictionPoints, group: int, side: float) -> list[NDArray[np.intp]]:
    """Return the blocks of a cycle in one direction, sorted by speed and split into cells of equal size."""
    index = np.flatnonzero((points.group == group) & (np.sign(points.speed) == side))
    order = index[np.argsort(np.abs(points.speed[index]), kind="stable")]
    return np.array_split(order, max(1, len(order) // CELL_SIZE)) if len(order) else []
