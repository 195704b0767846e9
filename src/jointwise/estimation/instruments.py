"""Instrumental variables: estimates without the bias that noise of the positions causes in least squares.

The columns W are computed from measured positions. Their noise correlates W with the residual, and least squares
underestimates the parameters. The columns Z along the reference motion are correlated with W but not with the noise:

    β = (Zᵀ Ω⁻¹ W)⁻¹ Zᵀ Ω⁻¹ y,    Ω = diag(σ_j²),

with the residual variance σ_j² of every joint. Parameters that least squares holds at their bound of zero stay there.

Reference: A. Janot, P. Vandanjon and M. Gautier, "A generic instrumental variable approach for industrial robot
identification", IEEE Trans. Control Systems Technology 22(1), 2014. There, Z is computed along a simulated motion; here
along the reference of the controller, which needs no simulation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from jointwise.data.conditioning import motion_chunks
from jointwise.data.log import Log
from jointwise.errors import DataError, EstimationError
from jointwise.estimation.factors import Index, JointFactors, sums_of_others
from jointwise.estimation.fit import Fit
from jointwise.estimation.jackknife import jackknife_covariance, student_factor
from jointwise.estimation.least_squares import Layout, Solution
from jointwise.estimation.regression import JointwiseTerms, LoadOf, Regression, Rows, regression_rows
from jointwise.estimation.uncertainty import Uncertainty, uncertainty_of
from jointwise.spatial import Array, Mask

FOLLOWED = 0.5
"""Smallest correlation of measured and reference positions of a joint that moves. A robot that follows its reference
has more than 0.99, a reference of another motion or another clock about zero."""
WEAKEST = 1e-7
"""Smallest singular value of Zᵀ W with columns of unit length, relative to the largest, for Z to instrument W."""


def refuse_unrelated_reference(log: Log) -> None:
    """Reject a log whose reference positions do not follow the measured ones.

    Raises:
        DataError: The correlation of a joint that moves is below `FOLLOWED`; names the joint.

    """
    assert log.q_des is not None
    known = np.isfinite(log.q).all(axis=1) & np.isfinite(log.q_des).all(axis=1)
    q, reference = (values[known] - values[known].mean(axis=0) for values in (log.q, log.q_des))
    sizes = np.linalg.norm(q, axis=0) * np.linalg.norm(reference, axis=0)
    for j in np.flatnonzero(np.ptp(q, axis=0) > 0.0):
        correlation = float(q[:, j] @ reference[:, j]) / sizes[j] if sizes[j] > 0.0 else 0.0
        if not correlation >= FOLLOWED:
            raise DataError(
                f"{log.origin.path}: the reference position q_des{j + 1} must follow the measured one, q{j + 1}, for "
                f"--method iv. Their correlation is {correlation:.2f}. Use --method wls."
            )


def instrumental_fit(regression: Regression, fit: Fit, gains: Array) -> tuple[Fit, Uncertainty]:
    """Return a least-squares fit with its values replaced by those of instrumental variables, and their uncertainty.

    Args:
        regression: The training logs, with reference positions.
        fit: The least-squares fit.
        gains: Nm per unit of the output, shape (joints,).

    """
    values, model = fit.solution.values, fit.model
    load_of = (lambda rigid: model.load_torque(rigid, values)) if model.needs_load else None
    factors = instrument_factors(regression, model.terms, load_of)
    scaled = [joint.scaled(float(gain)) for joint, gain in zip(factors, gains, strict=True)]
    undetermined = uncertainty_of(fit.problem, fit.solution).undetermined
    found, uncertainty = instrumental_variables(scaled, fit.problem.layout, fit.solution, undetermined)
    return replace(fit, solution=replace(fit.solution, values=found)), uncertainty


def instrumental_variables(
    factors: Sequence[JointFactors], layout: Layout, start: Solution, undetermined: Mask
) -> tuple[Array, Uncertainty]:
    """Return the estimate by instrumental variables and its jackknife uncertainty.

    Args:
        factors: Factors of [Z | W | y] of every joint, block by block.
        layout: Positions of the columns of W in the vector of unknowns.
        start: The least-squares estimate, whose residual deviations weight the joints and whose zeros stay.
        undetermined: Which unknowns the data do not determine, shape (unknowns,).

    Returns:
        The values, and their uncertainty.

    Raises:
        EstimationError: The reference is not correlated with the measured motion.

    """
    at_bound = layout.bound & (start.values == 0.0)
    active = np.flatnonzero(~at_bound & ~undetermined)
    moments = [_moments(factors, layout, start.sigma, b, active) for b in range(factors[0].blocks)]
    parts = [np.array([part[k] for part in moments]) for k in (0, 1)]
    A, b = (part.sum(axis=0) for part in parts)
    _refuse_weak(A)
    values = start.values.copy()
    values[active] = np.linalg.solve(A, b)
    others = zip(*map(sums_of_others, parts), strict=True)
    replicates = np.array([np.linalg.solve(left, right) for left, right in others])
    covariance = np.zeros((layout.count, layout.count))
    covariance[np.ix_(active, active)] = jackknife_covariance(replicates)
    deviation = np.sqrt(np.diag(covariance))
    factor = student_factor(len(moments) - 1)
    return values, Uncertainty(covariance, deviation, factor, undetermined, at_bound)


def instrument_factors(
    regression: Regression, terms: JointwiseTerms, load_of: LoadOf | None = None
) -> list[JointFactors]:
    """Return the factors of [Z | W | y] of every joint: W on the measured motion, Z on that of the reference."""
    factors = [JointFactors() for _ in terms]
    for log, clean in enumerate(regression.logs):
        assert clean.log.q_des is not None  # `preparation` rejects logs without it
        planned = replace(clean, log=clean.log.with_channels(q=clean.log.q_des, qd=None, theta=None))
        pairs = zip(
            regression_rows(clean, regression.output, regression.filters),
            motion_chunks(planned, regression.filters),
            strict=True,
        )
        for rows, chunk in pairs:
            sides = (_series(regression, part, terms, load_of) for part in (replace(rows, chunk=chunk), rows))
            blocks, weights = regression.jackknife_blocks(rows, log), rows.weights[rows.used]
            for j, (Z, W) in enumerate(zip(*sides, strict=True)):
                matrix = np.concatenate([*Z, *W, rows.outputs[:, rows.used, j]]).T
                factors[j].add_blocks(matrix, weights[:, j], blocks)
    return factors


def _series(regression: Regression, rows: Rows, terms: JointwiseTerms, load_of: LoadOf | None) -> Iterator[list[Array]]:
    """Yield the columns of every joint along a motion; see `Regression.joint_series`."""
    rigid = regression.rigid_columns(rows)
    load = None if load_of is None else rows.at_all_samples(load_of(rigid))
    return regression.joint_series(rows, terms, rigid, load)


def _moments(
    factors: Sequence[JointFactors], layout: Layout, sigma: Array, block: int, active: Index
) -> tuple[Array, Array]:
    """Return Zᵀ Ω⁻¹ W and Zᵀ Ω⁻¹ y of the active unknowns from one block."""
    A, b = np.zeros((layout.count, layout.count)), np.zeros(layout.count)
    for joint, index, deviation in zip(factors, layout.index, sigma, strict=True):
        R, count = joint.triangles[block] / deviation, len(index)
        Z, W, y = R[:, :count], R[:, count : 2 * count], R[:, -1]
        A[np.ix_(index, index)] += Z.T @ W
        b[index] += Z.T @ y
    return A[np.ix_(active, active)], b[active]


def _refuse_weak(A: Array) -> None:
    scale = np.sqrt(np.maximum(np.abs(np.diag(A)), 1e-300))
    sizes = np.linalg.svd(A / np.outer(scale, scale), compute_uv=False)
    if not sizes[-1] > WEAKEST * sizes[0]:
        raise EstimationError(
            "the reference positions do not explain the motion: instrumental variables need references that the "
            "robot follows. Use --method wls."
        )
