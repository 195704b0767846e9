"""What an optimal excitation minimises: the volume of the confidence region, and the condition number."""

from __future__ import annotations

import numpy as np

from jointwise.design.information import Columns, InformationModel
from jointwise.spatial import Array

CONDITIONING = 0.7
"""Weight of the condition number beside the volume: at 0 it is 35 for a UR10e in 20 s, at 3 errors grow by a third."""


def criterion(model: InformationModel, columns: Columns) -> tuple[float, list[Array]]:
    """Return the value to minimise, and its derivatives (parameters, parameters) with respect to all C_j C_jᵀ.

    D-optimality of the parameters that count (t) beside the others (o), ``-(log det M - log det M_oo) / n_t``, plus,
    where bodies count, `CONDITIONING` times the logarithm of ``|W|_F² |W⁺|_F²`` of their plain regressor W.

    Raises:
        numpy.linalg.LinAlgError: The motion does not determine the parameters.

    """
    M, target = model.information(columns), model.target
    inverse, log_det = _inverse(M)
    slope = -inverse
    if not target.all():
        others = np.ix_(~target, ~target)
        inverse_others, log_det_others = _inverse(M[others])
        slope[others] += inverse_others
        log_det -= log_det_others
    count = int(target.sum())
    value, plain = conditioning(model, columns)
    return value - log_det / count, [plain + slope / (count * noise**2) for noise in model.noise]


def conditioning(model: InformationModel, columns: Columns) -> tuple[float, Array]:
    """Return the weighted logarithm of the squared Frobenius condition number, and its derivative."""
    slope = np.zeros((len(model.names), len(model.names)))
    if model.goal not in ("all", "bodies"):
        return 0.0, slope
    rigid = np.flatnonzero(model.dynamics.base.kept < 10 * model.robot.dof)
    K = model.information(columns, np.ones(model.robot.dof))[np.ix_(rigid, rigid)]
    inverse, _ = _inverse(K)
    size, inverse_size = float(np.trace(K)), float(np.trace(inverse))
    change = np.eye(len(K)) / size - inverse @ inverse / inverse_size
    slope[np.ix_(rigid, rigid)] = CONDITIONING * change
    return CONDITIONING * float(np.log(size * inverse_size)), slope


def condition_number(model: InformationModel, columns: Columns) -> float:
    """Return the condition number of the regressor of the base parameters (without rotors) of all joints, SI units."""
    rigid = np.flatnonzero(model.dynamics.base.kept < 10 * model.robot.dof)
    K = model.information(columns, np.ones(model.robot.dof))[np.ix_(rigid, rigid)]
    return float(np.sqrt(np.linalg.cond(K)))


def standard_errors(model: InformationModel, columns: Columns, density: float = 1.0) -> Array:
    """Return the standard errors (parameters,) of weighted least squares, with `density` samples for each column."""
    M = density * model.information(columns)
    scale = np.sqrt(np.diag(M))
    inverse, _ = _inverse(M / np.multiply.outer(scale, scale))
    return np.asarray(np.sqrt(np.diag(inverse)) / scale)


def _inverse(M: Array) -> tuple[Array, float]:
    """Return the inverse and the logarithm of the determinant of a positive definite matrix."""
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(M)
    return cho_solve(factor, np.eye(len(M))), 2.0 * float(np.log(np.diag(factor[0])).sum())
