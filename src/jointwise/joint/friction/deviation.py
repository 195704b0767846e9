"""How well the numbers of a friction curve are known, and where another run would lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from jointwise.joint.friction.fit import Fit
from jointwise.joint.friction.grouped import covariance
from jointwise.joint.friction.points import Points
from jointwise.spatial import Array

CELL = 4
"""Blocks that make a cycle's mean at a speed."""


@dataclass(frozen=True, eq=False)
class Deviation:
    """Covariance (size, size) of the numbers of a curve, the factor of its 95 % intervals, and the scatter of runs.

    `scatter` is the standard deviation (Nm) of a run's mean, or of a cycle's at a speed, about the curve.
    """

    covariance: Array
    factor: float
    scatter: float

    def band(self, fit: Fit, speed: Array) -> Array:
        """Return half the width (Nm) of the 95 % band, (points,), in which the mean of another run lies."""
        J = fit.sensitivity(speed)
        variance = np.einsum("ij,jk,ik->i", J, self.covariance, J)
        result: Array = self.factor * np.sqrt(variance + self.scatter**2)
        return result


def deviation_of(fit: Fit, points: Points) -> Deviation:
    """Return the deviations of a fit by the delta method, its residuals taken together in runs or cycles."""
    J = np.column_stack([fit.sensitivity(points.speed), points.extra]) * points.weight[:, None]
    residual = points.weight * (points.torque - fit.predict(points))
    numbers = J.shape[1] if points.kind == "runs" else 1
    freedom = max(1, len(points.groups) - numbers)
    size = fit.form.size
    known = covariance(J, residual, points.group, numbers)[:size, :size]
    return Deviation(known, float(stdtrit(freedom, 0.975)), _scatter(fit, points, J.shape[1]))


def run_points(points: Points, values: Array) -> tuple[Array, Array]:
    """Return speeds and mean `values` of every run, or of a cycle's blocks of about the same speed, `CELL` together.

    Every block is in one of the cells: none is left out, slow ones least of all.
    """
    if points.kind == "runs":
        return points.speed, values
    cells = [cell for g in points.groups for side in (-1.0, 1.0) for cell in _cells(points, g, side)]
    return np.array([points.speed[c].mean() for c in cells]), np.array([values[c].mean() for c in cells])


def _cells(points: Points, group: int, side: float) -> list[NDArray[np.intp]]:
    """Return the blocks of a cycle in one direction, by speed, cut into parts of equal number."""
    own = np.flatnonzero((points.group == group) & (np.sign(points.speed) == side))
    order = own[np.argsort(np.abs(points.speed[own]), kind="stable")]
    return np.array_split(order, max(1, len(order) // CELL)) if len(order) else []


def _scatter(fit: Fit, points: Points, numbers: int) -> float:
    _, residual = run_points(points, points.torque - fit.predict(points))
    return float(np.sqrt(residual @ residual / max(1, len(residual) - numbers)))
