"""Least squares on factors: equal to independent solvers, and no sum of squares is lost on the way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from jointwise.errors import EstimationError
from jointwise.estimation.bounded import (
    bounded_from_moments,
    bounded_least_squares,
    non_negative,
    non_negative_least_squares,
    pivoted,
    squared_error,
    squared_error_from_moments,
)
from jointwise.estimation.factors import FOLDS, MAX_BLOCKS, JointFactors, fold_blocks, sums_of_others, triangle
from jointwise.estimation.gram import gram_solution
from jointwise.estimation.least_squares import (
    KnownSum,
    Layout,
    Problem,
    quick_weighted_fit,
    stacked,
    weighted_least_squares,
)
from jointwise.estimation.linear_fit import scaled_solution
from jointwise.estimation.uncertainty import uncertainty_of
from jointwise.spatial import Array

pytestmark = pytest.mark.compat

SEEDS = range(8)


def random_problem(seed: int, rows: int = 60, columns: int = 12) -> tuple[Array, Array]:
    """Return [A b] with columns of very different size and a solution of which about half is negative."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rows, columns)) * np.geomspace(1e-3, 1e3, columns)
    x = rng.normal(size=columns) / np.geomspace(1e-3, 1e3, columns)
    return np.column_stack([A, A @ x + 0.1 * rng.normal(size=rows)]), rng.random(columns) < 0.5


def joint_rows(seed: int, samples: int = 400, columns: int = 5) -> tuple[Array, Array]:
    """Return rows [W y] of one joint and their weights."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(samples, columns))
    y = W @ np.arange(1.0, columns + 1.0) + rng.normal(size=samples)
    return np.column_stack([W, y]), rng.uniform(0.3, 1.0, samples)


def factors_of(rows: Array, weights: Array, blocks: int) -> JointFactors:
    factors = JointFactors()
    for part in np.array_split(np.arange(len(rows)), blocks):
        factors.add(rows[part], weights[part])
    return factors


def error_of(rows: Array, weights: Array, x: Array) -> float:
    """Return Σ w (W x - y)² from the rows themselves."""
    return float(weights @ (rows[:, :-1] @ x - rows[:, -1]) ** 2)


# -- normal equations ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_non_negative_least_squares_meets_lawson_and_hanson(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(1, 90))
    A = rng.normal(size=(columns + 20, columns)) @ (np.eye(columns) + rng.uniform(0.0, 1.0, (columns, columns)))
    A /= np.linalg.norm(A, axis=0)
    z = A @ np.maximum(rng.normal(size=columns), 0.0) + 0.1 * rng.normal(size=len(A))
    expected = nnls(A, z)[0]
    np.testing.assert_allclose(non_negative_least_squares(A, z), expected, atol=1e-9 * expected.max(initial=1.0))
    for solve in (non_negative, pivoted):  # the native kernel where there is one, and its NumPy reference
        found = solve(A.T @ A, A.T @ z)
        np.testing.assert_allclose(found, expected, atol=1e-5 * expected.max(initial=1.0))
        assert (found >= 0.0).all()


def test_without_unknowns_there_is_no_non_negative_solution() -> None:
    assert non_negative(np.zeros((0, 0)), np.zeros(0)).shape == (0,)


# -- one factor ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_triangle_keeps_every_sum_of_squares(seed: int) -> None:
    augmented, _ = random_problem(seed)
    x = np.random.default_rng(seed).normal(size=12)
    R = triangle(augmented)
    assert R.shape == (13, 13)
    assert not np.tril(R, -1).any()
    residual = augmented[:, :-1] @ x - augmented[:, -1]
    assert squared_error(R, x) == pytest.approx(residual @ residual, rel=1e-12)


def test_a_triangle_of_few_rows_or_none_is_no_larger_than_them() -> None:
    assert triangle(np.ones((2, 5))).shape == (2, 5)
    assert triangle(np.ones((0, 5))).shape == (0, 5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("bounds", ["none", "some", "all"])
def test_bounded_least_squares_meets_an_independent_solver(seed: int, bounds: str) -> None:
    augmented, some = random_problem(seed)
    bound = {"none": np.zeros(12, dtype=bool), "some": some, "all": np.ones(12, dtype=bool)}[bounds]
    scale = np.linalg.norm(augmented[:, :-1], axis=0)
    lower = np.where(bound, 0.0, -np.inf)
    expected = lsq_linear(augmented[:, :-1] / scale, augmented[:, -1], (lower, np.inf), tol=1e-14, method="bvls")
    actual = bounded_least_squares(augmented, bound)
    assert (actual[bound] >= 0.0).all()
    assert squared_error(augmented, actual) == pytest.approx(2.0 * expected.cost, rel=1e-7)
    np.testing.assert_allclose(actual * scale, expected.x, atol=1e-6 * np.abs(expected.x).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_where_columns_depend_on_each_other_the_error_is_still_the_smallest(seed: int) -> None:
    augmented, bound = random_problem(seed)
    twice = np.column_stack([augmented[:, :3], 2.0 * augmented[:, [0]] - augmented[:, [2]], augmented[:, 3:]])
    bound = np.insert(bound, 3, False)
    scale = np.linalg.norm(twice[:, :-1], axis=0)
    lower = np.where(bound, 0.0, -np.inf)
    expected = lsq_linear(twice[:, :-1] / scale, twice[:, -1], (lower, np.inf), tol=1e-14, method="bvls")
    actual = bounded_least_squares(twice, bound)
    assert np.isfinite(actual).all()
    assert squared_error(twice, actual) <= 2.0 * expected.cost * (1.0 + 1e-6)


def test_a_column_of_zeros_gets_zero() -> None:
    augmented, _ = random_problem(0)
    augmented[:, 4] = 0.0
    assert bounded_least_squares(augmented, np.zeros(12, dtype=bool))[4] == 0.0


def test_nothing_to_estimate_gives_nothing() -> None:
    assert bounded_least_squares(np.ones((3, 1)), np.zeros(0, dtype=bool)).shape == (0,)
    np.testing.assert_array_equal(bounded_least_squares(np.zeros((3, 3)), np.zeros(2, dtype=bool)), [0.0, 0.0])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_solution_does_not_hang_on_units(seed: int) -> None:
    augmented, bound = random_problem(seed)
    units = np.append(np.geomspace(1e6, 1e-6, 12), 1.0)
    actual, other = bounded_least_squares(augmented, bound), bounded_least_squares(augmented * units, bound)
    np.testing.assert_allclose(other * units[:-1], actual, rtol=1e-6, atol=1e-9 * np.abs(actual).max())


# -- factors by block ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 7, 24])
def test_factors_of_blocks_are_the_factor_of_all_rows(blocks: int) -> None:
    rows, weights = joint_rows(1)
    factors = factors_of(rows, weights, blocks)
    whole = triangle(rows * np.sqrt(weights)[:, None])
    np.testing.assert_allclose(np.abs(factors.merged()), np.abs(whole), rtol=1e-9, atol=1e-10)
    assert sum(factors.weight) == pytest.approx(weights.sum())


def test_every_view_of_the_factors_keeps_the_sums_of_squares() -> None:
    rows, weights = joint_rows(2)
    factors, x = factors_of(rows, weights, 10), np.array([1.0, -2.0, 0.5, 3.0, 0.0])
    some = np.array([3, 0, 4])
    np.testing.assert_allclose(squared_error(factors.merged(), x), error_of(rows, weights, x), rtol=1e-11)
    expected = error_of(rows[:, [*some, 5]], weights, x[some])
    np.testing.assert_allclose(squared_error(factors.columns(some).merged(), x[some]), expected, rtol=1e-11)
    louder = rows * np.append(np.ones(5), 7.0)
    np.testing.assert_allclose(squared_error(factors.scaled(7.0).merged(), x), error_of(louder, weights, x), rtol=1e-11)
    parts = np.array_split(np.arange(400), 10)
    chosen = np.concatenate([parts[k] for k in (2, 5)])
    expected = error_of(rows[chosen], weights[chosen], x)
    np.testing.assert_allclose(squared_error(factors.merged([2, 5]), x), expected, rtol=1e-11)


def test_second_moments_keep_the_sums_of_squares_of_factors() -> None:
    rows, weights = joint_rows(3)
    factors, x = factors_of(rows, weights, 12), np.arange(5.0)
    moments = factors.moments()
    assert squared_error_from_moments(moments.merged(), x) == pytest.approx(error_of(rows, weights, x), rel=1e-11)
    assert (moments.variance, moments.empty) == (factors.variance, factors.empty)
    for fold, square in zip(fold_blocks(12), moments.folded().squares, strict=True):
        expected = squared_error(factors.merged(fold), x)
        assert squared_error_from_moments(square, x) == pytest.approx(expected, rel=1e-11)
    some, louder = np.array([0, 3]), factors.scaled(7.0)
    assert squared_error_from_moments(moments.columns(some).merged(), x[some]) == pytest.approx(
        squared_error(factors.columns(some).merged(), x[some]), rel=1e-11
    )
    assert squared_error_from_moments(moments.scaled(7.0).merged(), x) == pytest.approx(
        squared_error(louder.merged(), x), rel=1e-11
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_bounded_least_squares_from_moments_is_that_from_factors(seed: int) -> None:
    augmented, bound = random_problem(seed)
    expected = bounded_least_squares(augmented, bound)
    found = bounded_from_moments(augmented.T @ augmented, bound)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("gain", [1.0, -3.0, 12.0])
def test_variance_is_that_of_the_weighted_output(gain: float) -> None:
    rows, weights = joint_rows(3)
    y = gain * rows[:, -1]
    expected = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    factors = factors_of(rows, weights, 9).scaled(gain)
    assert factors.variance == pytest.approx(expected, rel=1e-10)


def test_many_blocks_are_merged_and_lose_nothing() -> None:
    rows, weights = joint_rows(4, samples=3000)
    factors = factors_of(rows, weights, 300)
    assert len(factors.triangles) <= MAX_BLOCKS
    assert factors.sums.shape == (len(factors.triangles), 3)
    np.testing.assert_allclose(
        squared_error(factors.merged(), np.ones(5)), error_of(rows, weights, np.ones(5)), rtol=1e-11
    )
    assert sum(factors.weight) == pytest.approx(weights.sum())


def test_folds_are_contiguous_and_hold_every_block_once() -> None:
    for blocks in (24, 7, 3):
        groups = fold_blocks(blocks)
        assert len(groups) == min(FOLDS, blocks)
        assert [k for group in groups for k in group] == list(range(blocks))
        assert max(map(len, groups)) - min(map(len, groups)) <= 1


# -- joints together -------------------------------------------------------------------------------------------------

TRUTH = np.array([2.0, -1.0, 0.5, 3.0, 0.8, 1.5, 0.0])
LAYOUT = Layout([np.array([0, 1, 2, 3]), np.array([0, 2, 4, 5, 6])], np.array([False] * 4 + [True] * 3))


def two_joints(seed: int, sigma: tuple[float, float] = (0.1, 2.0), samples: int = 2400) -> list[Array]:
    """Return rows [W y] of two joints that share two parameters, with noise of different size."""
    rng = np.random.default_rng(seed)
    rows = []
    for places, size in zip(LAYOUT.index, sigma, strict=True):
        W = rng.normal(size=(samples, len(places)))
        rows.append(np.column_stack([W, W @ TRUTH[places] + size * rng.normal(size=samples)]))
    return rows


def problem_of(rows: list[Array], layout: Layout = LAYOUT, blocks: int = 24) -> Problem:
    return Problem([factors_of(joint, np.ones(len(joint)), blocks) for joint in rows], layout)


def test_weighted_least_squares_recovers_the_truth_and_the_noise() -> None:
    solution = weighted_least_squares(problem_of(two_joints(1)))
    np.testing.assert_allclose(solution.values[[0, 1, 2, 3]], TRUTH[[0, 1, 2, 3]], atol=0.02)
    np.testing.assert_allclose(solution.values[[4, 5, 6]], TRUTH[[4, 5, 6]], atol=0.2)
    np.testing.assert_allclose(solution.sigma, [0.1, 2.0], rtol=0.05)


def test_weighted_least_squares_is_the_textbook_estimate() -> None:
    rows = two_joints(2)
    solution = weighted_least_squares(problem_of(rows, replace_bound(LAYOUT)))
    W = np.zeros((4800, 7))
    for k, (block, places) in enumerate(zip(rows, LAYOUT.index, strict=True)):
        W[2400 * k : 2400 * (k + 1), places] = block[:, :-1] / solution.sigma[k]
    y = np.concatenate([block[:, -1] / size for block, size in zip(rows, solution.sigma, strict=True)])
    np.testing.assert_allclose(solution.values, np.linalg.lstsq(W, y, rcond=None)[0], atol=1e-5)
    assert solution.condition == pytest.approx(np.linalg.cond(W), rel=0.01)


def replace_bound(layout: Layout) -> Layout:
    """Return a layout without bounds."""
    return Layout(layout.index, np.zeros(layout.count, dtype=bool))


def test_the_quick_fit_is_that_of_weighted_least_squares() -> None:
    problem = problem_of(two_joints(1))
    exact = weighted_least_squares(problem)
    values, sigma = quick_weighted_fit(problem.quick())
    np.testing.assert_allclose(values, exact.values, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(sigma, exact.sigma, rtol=1e-6)


def test_known_values_and_sums_are_the_same_from_moments_and_factors() -> None:
    problem = problem_of(two_joints(1))
    known = np.full(problem.layout.count, np.nan)
    known[0] = 0.7
    sums = [KnownSum(np.array([1]), 0.4, 0.1)]
    exact = weighted_least_squares(problem.with_known(known).with_sums(sums))
    values, _ = quick_weighted_fit(problem.quick().with_known(known).with_sums(sums))
    np.testing.assert_allclose(values, exact.values, rtol=1e-5, atol=1e-6)


def test_weighting_serves_the_parameters_that_a_quiet_joint_knows() -> None:
    errors = np.zeros(2)
    for seed in range(20):
        problem = problem_of(two_joints(seed, samples=240))
        for k, weighted in enumerate((True, False)):
            actual = weighted_least_squares(problem, weighted).values
            errors[k] += float(np.sum((actual - TRUTH)[[0, 2]] ** 2))
    assert errors[0] < 0.05 * errors[1]


def test_a_noise_free_joint_does_not_break_the_weights() -> None:
    solution = weighted_least_squares(problem_of(two_joints(1, (0.0, 1.0))))
    np.testing.assert_allclose(solution.values[:4], TRUTH[:4], atol=1e-6)


def test_an_output_that_never_changes_is_refused_by_joint() -> None:
    rows = two_joints(1)
    rows[1][:, -1] = 3.0
    with pytest.raises(EstimationError, match="joint 2 never changes"):
        weighted_least_squares(problem_of(rows))


def without(rows: list[Array], block: int, blocks: int = 24) -> Array:
    """Return the estimate from all rows but those of one block, by numpy.lstsq on the rows."""
    parts = []
    for joint_rows, places, size in zip(rows, LAYOUT.index, SIGMA, strict=True):
        kept = np.concatenate([p for k, p in enumerate(np.array_split(joint_rows, blocks)) if k != block])
        wide = np.zeros((len(kept), 8))
        wide[:, [*places, 7]] = kept / size
        parts.append(wide)
    whole = np.concatenate(parts)
    return np.linalg.lstsq(whole[:, :-1], whole[:, -1], rcond=None)[0]


SIGMA = np.array([0.1, 2.0])


def test_the_jackknife_is_that_of_refits_without_each_block() -> None:
    rows, layout = two_joints(3), replace_bound(LAYOUT)
    problem = problem_of(rows, layout)
    solution = weighted_least_squares(problem)
    exact = type(solution)(without(rows, -1), SIGMA, solution.condition, solution.condition_scaled)
    refits = np.array([without(rows, k) for k in range(24)])
    centred = refits - refits.mean(axis=0)
    actual = uncertainty_of(problem, exact)
    np.testing.assert_allclose(actual.covariance, 23.0 / 24.0 * centred.T @ centred, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(actual.deviation, np.sqrt(np.diag(actual.covariance)))


def test_the_jackknife_knows_the_spread_of_the_estimate() -> None:
    runs = []
    for seed in range(60):
        problem = problem_of(two_joints(seed, samples=480))
        solution = weighted_least_squares(problem)
        runs.append((solution.values, uncertainty_of(problem, solution).deviation))
    values, deviations = (np.array(part) for part in zip(*runs, strict=True))
    free = [0, 1, 2, 3, 4, 5]
    ratio = np.sqrt((deviations[:, free] ** 2).mean(axis=0)) / values[:, free].std(axis=0)
    assert ((ratio > 0.75) & (ratio < 1.35)).all()


def test_residuals_that_stay_the_same_for_long_widen_the_intervals() -> None:
    rows = two_joints(4, (0.1, 0.1))
    slow = [block.copy() for block in rows]
    drift = np.repeat(np.random.default_rng(9).normal(size=(24, 5)), 100, axis=0)
    slow[0][:, -1] += 0.1 * np.sum(drift[:, :4] * rows[0][:, :4], axis=1)
    narrow, wide = (
        uncertainty_of(problem, weighted_least_squares(problem)).deviation[1]
        for problem in (problem_of(rows), problem_of(slow))
    )
    assert wide > 4.0 * narrow


def test_what_the_data_leave_open_is_named() -> None:
    rows = two_joints(5)
    rows[0][:, 3] = 0.0  # parameter 3 acts on nothing
    rows[1][:, 3] = 2.0 * rows[1][:, 2]  # parameters 4 and 5 only act together
    problem = problem_of(rows, replace_bound(LAYOUT))
    actual = uncertainty_of(problem, weighted_least_squares(problem))
    assert actual.undetermined.tolist() == [False, False, False, True, True, True, False]


def test_a_parameter_at_its_bound_is_marked() -> None:
    rows = two_joints(6)
    rows[1][:, -1] -= 0.5 * rows[1][:, 4]  # now parameter 6 would be negative
    problem = problem_of(rows)
    solution = weighted_least_squares(problem)
    actual = uncertainty_of(problem, solution)
    assert solution.values[6] == 0.0
    assert actual.at_bound.tolist() == [False] * 6 + [True]
    assert actual.deviation[6] == 0.0


def test_stacking_divides_every_joint_by_its_spread() -> None:
    parts = [np.ones((1, 5)), np.ones((1, 6))]
    factors = stacked(parts, LAYOUT, np.array([2.0, 4.0]))
    np.testing.assert_array_equal(factors[0], [0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.5])
    np.testing.assert_array_equal(factors[1], [0.25, 0.0, 0.25, 0.0, 0.25, 0.25, 0.25, 0.25])


# -- condition numbers -----------------------------------------------------------------------------------------------


def nearly_collinear(condition: float, seed: int) -> tuple[Array, Array]:
    """Return columns of unit length (200, 8) with about this condition number, and a solution of size 1."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(200, 7))
    columns = np.column_stack([columns, columns[:, 0] + 2.0 * rng.normal(size=200) / condition])
    return columns / np.linalg.norm(columns, axis=0), rng.normal(size=8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("condition", [1e1, 1e3, 1e5])
def test_gram_matrices_lose_the_square_of_the_condition_number(condition: float, seed: int) -> None:
    columns, x = nearly_collinear(condition, seed)
    rows = np.column_stack([columns, columns @ x])
    square = max(np.linalg.cond(columns), 10.0) ** 2
    np.testing.assert_allclose(gram_solution(rows.T @ rows), x, rtol=0.0, atol=3e-15 * square)
    np.testing.assert_allclose(scaled_solution(columns, columns @ x), x, rtol=0.0, atol=1e-13 * np.sqrt(square))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("condition", [1e7, 1e9, 1e15])
def test_beyond_their_digits_gram_matrices_drop_the_combination_and_keep_the_rest(condition: float, seed: int) -> None:
    columns, x = nearly_collinear(condition, seed)
    rows = np.column_stack([columns, columns @ x])
    found = gram_solution(rows.T @ rows)
    shared = np.append(x[1:7], 0.5 * (x[0] + x[7]))
    np.testing.assert_allclose(found[1:7], shared[:6], atol=2e-6)
    np.testing.assert_allclose(found[[0, 7]], shared[6], atol=2e-6)
    np.testing.assert_allclose(columns @ found, columns @ x, atol=2e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("condition", [1e1, 1e3, 1e5, 1e7, 1e12])
def test_moments_with_a_ridge_differ_little_from_factors_at_any_condition(condition: float, seed: int) -> None:
    columns, x = nearly_collinear(condition, seed)
    rows = np.column_stack([columns, columns @ x])
    free = np.zeros(8, dtype=bool)
    found, exact = bounded_from_moments(rows.T @ rows, free), bounded_least_squares(rows, free)
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=3e-6)


def test_a_fold_that_holds_nearly_all_of_a_column_takes_no_digits_of_the_others() -> None:
    rng = np.random.default_rng(6)
    parts = rng.normal(size=(6, 50, 3))
    parts[1:, :, 1] *= 1e-9
    squares = np.array([part.T @ part for part in parts])
    others = sums_of_others(squares)
    for k in range(6):
        exact = np.sum(np.delete(squares, k, axis=0), axis=0)
        np.testing.assert_allclose(others[k], exact, rtol=1e-14)
    assert abs((squares.sum(axis=0) - squares[0])[1, 1] / others[0][1, 1] - 1.0) > 0.1
    np.testing.assert_array_equal(sums_of_others(squares[:1]), np.zeros((1, 3, 3)))
