"""Weighted least squares of all joints together, on triangular factors, with some unknowns bounded at zero.

The rows of joint j are ``W_j x = y_j + noise`` of the standard deviation σ_j, with the unknowns x (base parameters,
then terms of each joint). The estimate minimises

    Σ_j ‖W_j x - y_j‖² / σ_j²   subject to  x_k >= 0 for bounded unknowns,   σ_j² = ‖W_j x - y_j‖² / (M_j - n_j)

M_j being the sum of row weights and n_j the number of columns of the joint: the two-step weighted least squares of
M. Gautier and P. Poignet, "Extended Kalman filtering and weighted least squares dynamic identification of robot",
Control Engineering Practice 9(12), 2001. All of it is computed from factors or second moments (`factors`), whose size
does not depend on the length of the logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

import numpy as np

from jointwise.errors import EstimationError
from jointwise.estimation.bounded import (
    bounded_from_moments,
    bounded_least_squares,
    squared_error,
    squared_error_from_moments,
)
from jointwise.estimation.factors import BlockSums, Index, JointFactors, JointMoments, fold_blocks, triangle
from jointwise.spatial import Array, Mask

SUM_WEIGHT = 1e3
"""Weight of a known sum relative to all data about its parameters: the data change it by a millionth."""
WEIGHTING_PASSES = 3
"""Passes of the residual standard deviations; they settle in two."""


@dataclass(frozen=True)
class Layout:
    """Positions of the columns of every joint in the vector of unknowns.

    Attributes:
        index: For every joint, the unknowns that its columns multiply, (columns,).
        bound: Whether an unknown must not be negative, (unknowns,).

    """

    index: list[Index]
    bound: Mask

    @property
    def count(self) -> int:
        """Number of unknowns."""
        return len(self.bound)


@dataclass(frozen=True)
class KnownSum:
    """A known sum of parameters.

    Attributes:
        index: Indices of the parameters in the vector.
        value: Value of the sum, in the unit of the parameters.
        deviation: Its standard deviation.
    """

    index: Index
    value: float
    deviation: float


Joint = TypeVar("Joint", JointFactors, JointMoments)


@dataclass(frozen=True)
class _JointRegression(Generic[Joint]):
    """A regression ``[W | y]`` of all `joints`; `layout` says which unknowns their columns multiply."""

    joints: list[Joint]
    layout: Layout

    def scaled(self, gains: Array) -> Self:
        """Return the problem with y in Nm: gain · y of every joint."""
        return replace(self, joints=[joint.scaled(float(k)) for joint, k in zip(self.joints, gains, strict=True)])

    def merged(self) -> list[Array]:
        """Return the factor [R z], or the moments, of each joint with all blocks together."""
        return [joint.merged() for joint in self.joints]

    def with_known(self, values: Array) -> Self:
        """Return the problem ``[W_e | y - W_k x_k]`` with known parameters x_k: their columns become zero.

        Args:
            values: Known parameters, (parameters,); NaN where a parameter is estimated.

        """
        pairs = zip(self.joints, self.layout.index, strict=True)
        return replace(self, joints=[joint.with_known(values[index]) for joint, index in pairs])

    def with_sums(self, sums: Sequence[KnownSum]) -> Self:
        """Return the problem with one more row for every known sum, ``λ Σ x = λ value``, so heavy that it holds."""
        joints = list(self.joints)
        for known in sums:
            for j, index in enumerate(self.layout.index):
                columns = np.flatnonzero(np.isin(index, known.index))
                if len(columns):
                    joints[j] = joints[j].with_sum(columns, known.value, SUM_WEIGHT)
        return replace(self, joints=joints)


@dataclass(frozen=True)
class Problem(_JointRegression[JointFactors]):
    """A regression from the triangular factors of every joint, block by block: all that an estimator sees."""

    @property
    def factors(self) -> list[JointFactors]:
        """The factors of every joint."""
        return self.joints

    def one_block(self) -> Problem:
        """Return the problem with all blocks of a joint merged to one."""
        return replace(self, joints=[joint.grouped([range(joint.blocks)]) for joint in self.joints])

    def block(self, number: int, sigma: Array) -> Array:
        """Return the rows of one block, all joints in one matrix; see `stacked`."""
        return stacked([joint.triangles[number] for joint in self.joints], self.layout, sigma)

    def whole(self, sigma: Array) -> Array:
        """Return the factor of all rows, those of each joint divided by its standard deviation `sigma`."""
        return triangle(stacked(self.merged(), self.layout, sigma))

    def without_folds(self, sigma: Array) -> list[Array]:
        """Return for each fold of a cross-validation the factor, as `whole` does, of all other folds."""
        joints = [joint.grouped(fold_blocks(joint.blocks)) for joint in self.joints]
        others = [[g for g in range(joints[0].blocks) if g != k] for k in range(joints[0].blocks)]
        parts = [[joint.merged(folds) for joint in joints] for folds in others]
        return [triangle(stacked(part, self.layout, sigma)) for part in parts]

    def quick(self) -> QuickProblem:
        """Return the same regression from second moments."""
        return QuickProblem([joint.moments() for joint in self.joints], self.layout)


@dataclass(frozen=True)
class QuickProblem(_JointRegression[JointMoments]):
    """A regression from second moments of every joint: several times faster, half as many digits."""

    def folded(self) -> QuickProblem:
        """Return the problem with blocks merged to the folds of a cross-validation."""
        return replace(self, joints=[joint.folded() for joint in self.joints])

    def whole(self, sigma: Array) -> Array:
        """Return ``[W y]ᵀ [W y]`` of all joints, the rows of each joint divided by its standard deviation."""
        return assembled(self.merged(), self.layout, sigma)


def stacked(parts: Sequence[Array], layout: Layout, sigma: Array) -> Array:
    """Return [W y] of all joints in one matrix, the rows of each joint divided by its standard deviation."""
    rows = []
    for R, index, deviation in zip(parts, layout.index, sigma, strict=True):
        wide = np.zeros((len(R), layout.count + 1))
        wide[:, np.append(index, layout.count)] = R / deviation
        rows.append(wide)
    return np.vstack(rows)


def assembled(squares: Sequence[Array], layout: Layout, sigma: Array) -> Array:
    """Return ``[W y]ᵀ [W y]`` of the matrix that `stacked` returns, from the moments of each joint."""
    size = layout.count + 1
    result = np.zeros(size * size)
    for G, index, deviation in zip(squares, layout.index, sigma, strict=True):
        columns = np.append(index, layout.count)
        result[columns[:, None] * size + columns] += G / deviation**2  # one flat index: much faster than two
    return result.reshape(size, size)


@dataclass(frozen=True)
class Solution:
    """A least-squares estimate of all parameters.

    Attributes:
        values: Values, (parameters,).
        sigma: Residual standard deviations, (joints,), in the unit of y.
        condition: Condition number of the weighted observation matrix W.
        condition_scaled: The same with columns of unit length.
    """

    values: Array
    sigma: Array
    condition: float
    condition_scaled: float


def weighted_least_squares(problem: Problem, weighted: bool = True) -> Solution:
    """Return the weighted least-squares estimate of all joints together.

    The standard deviations of the residuals and the estimate alternate `WEIGHTING_PASSES` times:

        x = argmin Σ_j ‖W_j x - y_j‖² / σ_j²,    x_k >= 0 for bounded unknowns,
        σ_j² = ‖W_j x - y_j‖² / (M_j - n_j).

    The passes use second moments, the last solution the triangular factors (Gautier and Poignet 2001).

    Args:
        problem: The regression, with y in Nm.
        weighted: False for ordinary least squares, in which every joint has the same weight.

    Returns:
        Values in SI units, residual standard deviations in Nm, and condition numbers.

    Raises:
        EstimationError: The measured output of a joint never changes.

    """
    _refuse_constant_output(problem.factors)
    merged = problem.merged()
    sigma = np.ones(len(merged))
    if weighted:
        sigma = _weighted_passes(problem.factors, problem.layout, [R.T @ R for R in merged], WEIGHTING_PASSES - 1)[1]
    R = triangle(stacked(merged, problem.layout, sigma))
    values = bounded_least_squares(R, problem.layout.bound)
    errors = [squared_error(R, values[index]) for R, index in zip(merged, problem.layout.index, strict=True)]
    spread = _residual_deviations(problem.factors, problem.layout, errors)
    lengths = np.linalg.norm(R[:, :-1], axis=0)
    used = R[:, :-1][:, lengths > 0.0]
    return Solution(values, spread, _condition(used), _condition(used / lengths[lengths > 0.0]))


def quick_weighted_fit(problem: QuickProblem, weighted: bool = True) -> tuple[Array, Array]:
    """Return the values of `weighted_least_squares` and the residual deviations from second moments.

    Many times faster and half as many digits: for what is selected or compared, not for reported values.
    """
    _refuse_constant_output(problem.joints)
    merged = problem.merged()
    if weighted:
        return _weighted_passes(problem.joints, problem.layout, merged, WEIGHTING_PASSES)
    values = bounded_from_moments(assembled(merged, problem.layout, np.ones(len(merged))), problem.layout.bound)
    return values, _quick_deviations(problem.joints, problem.layout, merged, values)


def _weighted_passes(
    joints: Sequence[BlockSums], layout: Layout, merged: Sequence[Array], passes: int
) -> tuple[Array, Array]:
    """Return values and residual deviations after some passes of the weights; `merged` are moments of each joint."""
    sigma = output_deviations(joints)
    for _ in range(passes):
        values = bounded_from_moments(assembled(merged, layout, sigma), layout.bound)
        sigma = _quick_deviations(joints, layout, merged, values)
    return values, sigma


def _quick_deviations(joints: Sequence[BlockSums], layout: Layout, merged: Sequence[Array], values: Array) -> Array:
    """Return the residual standard deviation of each joint from its moments."""
    errors = [squared_error_from_moments(G, values[index]) for G, index in zip(merged, layout.index, strict=True)]
    return _residual_deviations(joints, layout, errors)


def _refuse_constant_output(factors: Sequence[BlockSums]) -> None:
    constant = [str(j + 1) for j, joint in enumerate(factors) if joint.variance <= 0.0 and not joint.empty]
    if constant:
        joints = ",".join(constant)
        raise EstimationError(
            f"the measured output of joint {joints} never changes. If it was not measured: --ignore-output {joints}"
        )


def output_deviations(factors: Sequence[BlockSums]) -> Array:
    """Return the standard deviation of the output of each joint, 1 where it was not measured."""
    return np.array([1.0 if joint.empty else np.sqrt(joint.variance) for joint in factors])


def _residual_deviations(joints: Sequence[BlockSums], layout: Layout, errors: Sequence[float]) -> Array:
    """Return the residual standard deviation of each joint from its squared error: ``σ² = ‖r‖² / (M - n)``."""
    deviations = [
        np.sqrt(error / max(sum(joint.weight) - len(index), 1.0))
        for joint, index, error in zip(joints, layout.index, errors, strict=True)
    ]
    result: Array = np.maximum(deviations, 1e-9 * output_deviations(joints))
    return result


def _condition(matrix: Array) -> float:
    sizes = np.linalg.svd(matrix, compute_uv=False)
    return float(sizes[0] / sizes[-1]) if sizes.size and sizes[-1] > 0.0 else float("inf")
