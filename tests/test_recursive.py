"""Recursive least squares: every variant equals the weighted least squares it stands for, natively and in NumPy."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from jointwise.errors import EstimationError, ShapeError
from jointwise.estimation import recursive
from jointwise.estimation.recursive import VARIANTS, RecursiveLeastSquares, RecursiveState, Variant
from jointwise.spatial import Array

pytestmark = pytest.mark.compat

PRIOR = np.array([1e4, 1e2, 1e3])
TRUTH = np.array([3.0, -1.0, 0.5])
VARIED = {"exponential": 0.99, "on-off": 0.99, "directional": 0.98, "directional-floor": 0.98}
ESTIMATORS = {name: RecursiveLeastSquares(PRIOR, name, VARIED.get(name, 1.0), 0.01, 1e4, 70) for name in VARIANTS}


def data(samples: int = 400, seed: int = 0, noise: float = 0.1) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(samples, 3)) * [1.0, 5.0, 0.3]
    return rows, rows @ TRUTH + noise * rng.normal(size=samples)


def batch(rows: Array, y: Array, weights: Array, start: Array, prior: Array) -> tuple[Array, Array]:
    """Return values and P of weighted least squares with prior information ``prior`` about ``start``."""
    information = np.linalg.inv(prior) + rows.T @ (weights[:, None] * rows)
    P = np.linalg.inv(information)
    return P @ (np.linalg.solve(prior, start) + rows.T @ (weights * y)), P


def in_numpy(estimator: RecursiveLeastSquares, state: RecursiveState, *samples: Array | None) -> tuple[object, ...]:
    with patch.object(recursive, "native", lambda: None):
        return estimator.run(state, *samples)  # type: ignore[arg-type]


# -- laws ------------------------------------------------------------------------------------------------------------


def test_plain_is_least_squares_with_the_prior() -> None:
    rows, y = data()
    weights = np.random.default_rng(1).uniform(0.1, 3.0, len(y))
    start = np.array([1.0, 1.0, 1.0])
    state = ESTIMATORS["plain"].run(ESTIMATORS["plain"].init(start), rows, y, weights)[2]
    values, P = batch(rows, y, weights, start, np.diag(PRIOR))
    np.testing.assert_allclose(state.values, values, rtol=1e-9)
    np.testing.assert_allclose(state.covariance, P, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("width", "errors"), [(1e10, 5e-3), (1e12, 0.3)])
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e6])
def test_a_prior_a_million_times_wider_than_the_noise_is_the_widest(
    condition: float, width: float, errors: float, seed: int
) -> None:
    """Values keep within a part of their standard error of least squares by QR, natively and in NumPy."""
    rng, n = np.random.default_rng(seed), 6
    axes = np.linalg.qr(rng.normal(size=(n, n)))[0]
    rows = rng.normal(size=(300, n)) @ (axes * np.geomspace(1.0, 1.0 / condition, n)) @ axes.T
    y = rows @ rng.normal(size=n) + 1e-3 * rng.normal(size=300)
    stacked = np.vstack([rows, np.eye(n) / np.sqrt(width)])
    exact = np.linalg.lstsq(stacked, np.append(y, np.zeros(n)))[0]
    deviations = 1e-3 * np.linalg.norm(np.linalg.pinv(stacked), axis=1)
    estimator = RecursiveLeastSquares(np.full(n, width), "plain")
    for run in (estimator.run, lambda *args: in_numpy(estimator, *args)):
        state = run(estimator.init(), rows, y)[2]
        assert np.abs((state.values - exact) / deviations).max() < errors
        assert state.rejected == 0


def test_exponential_is_least_squares_with_decaying_weights() -> None:
    rows, y = data()
    estimator = ESTIMATORS["exponential"]
    state = estimator.run(estimator.init(), rows, y)[2]
    ages = np.arange(len(y) - 1, -1, -1)
    values, P = batch(rows, y, 0.99**ages, np.zeros(3), np.diag(PRIOR) / 0.99 ** len(y))
    np.testing.assert_allclose(state.values, values, rtol=1e-9)
    np.testing.assert_allclose(state.covariance, P, rtol=1e-6)


def test_on_off_forgets_only_with_excitation() -> None:
    rows, y = data()
    rows[100:200] *= 1e-3
    y[100:200] *= 1e-3
    estimator = ESTIMATORS["on-off"]
    state = estimator.run(estimator.init(), rows, y)[2]
    kept = np.where(np.square(rows) @ PRIOR >= 1e4, 0.99, 1.0)
    assert 0.2 < np.mean(kept < 1.0) < 0.8
    weights = np.append(np.cumprod(kept[:0:-1])[::-1], 1.0)
    values, P = batch(rows, y, weights, np.zeros(3), np.diag(PRIOR) / np.prod(kept))
    np.testing.assert_allclose(state.values, values, rtol=1e-9)
    np.testing.assert_allclose(state.covariance, P, rtol=1e-6)


def test_reset_is_least_squares_since_the_last_reset() -> None:
    rows, y = data()
    estimator = ESTIMATORS["reset"]
    _, values, state = estimator.run(estimator.init(), rows, y)
    last = (len(y) // 70) * 70
    expected, P = batch(rows[last:], y[last:], np.ones(len(y) - last), values[last - 1], np.diag(PRIOR))
    np.testing.assert_allclose(state.values, expected, rtol=1e-9)
    np.testing.assert_allclose(state.covariance, P, rtol=1e-6)


def test_directional_adds_beta_times_the_information_and_keeps_the_rest() -> None:
    """In terms of R = P⁻¹: ``R += β ψ ψᵀ``, so that directions orthogonal to ψ lose nothing."""
    rows, y = data(60)
    estimator = ESTIMATORS["directional"]
    state = estimator.init()
    for row, value in zip(rows, y, strict=True):
        R, r = np.linalg.inv(state.covariance), float(row @ state.covariance @ row)
        _, state = estimator.step(state, row, value)
        beta = 0.98 - 0.02 / r
        np.testing.assert_allclose(np.linalg.inv(state.covariance), R + beta * np.outer(row, row), rtol=1e-6, atol=1e-9)


def test_directional_settles_where_nothing_new_is_learned() -> None:
    """With a constant ψ, information about ψᵀ a settles at r = (1 - μ) / μ, and other directions keep theirs."""
    row = np.array([1.0, 0.0, 0.0])
    estimator = ESTIMATORS["directional"]
    state = estimator.run(estimator.init(), np.tile(row, (2000, 1)), np.full(2000, 3.0))[2]
    assert row @ state.covariance @ row == pytest.approx(0.02 / 0.98, rel=1e-6)
    np.testing.assert_allclose(np.diag(state.covariance)[1:], PRIOR[1:])


def test_without_forgetting_every_variant_is_plain() -> None:
    rows, y = data()
    expected = ESTIMATORS["plain"].run(ESTIMATORS["plain"].init(), rows, y)[2]
    for name in VARIANTS:
        estimator = RecursiveLeastSquares(PRIOR, name, 1.0, 0.0, period=10**6)
        state = estimator.run(estimator.init(), rows, y)[2]
        np.testing.assert_allclose(state.values, expected.values, rtol=1e-9)
        np.testing.assert_allclose(state.covariance, expected.covariance, rtol=1e-6)


def test_the_floor_is_added_after_every_sample() -> None:
    rows, y = data(50)
    directional, floored = (RecursiveLeastSquares(PRIOR, "directional", 0.98), ESTIMATORS["directional-floor"])
    _, state = floored.step(floored.init(), rows[0], y[0])
    _, without = directional.step(directional.init(), rows[0], y[0])
    np.testing.assert_allclose(state.covariance, without.covariance + 0.01 * np.eye(3), rtol=1e-9)


def test_a_weight_is_a_number_of_equal_samples() -> None:
    rows, y = data(100)
    counts = np.random.default_rng(2).integers(1, 4, len(y))
    estimator = ESTIMATORS["plain"]
    weighted = estimator.run(estimator.init(), rows, y, counts.astype(float))[2]
    repeated = estimator.run(estimator.init(), np.repeat(rows, counts, axis=0), np.repeat(y, counts))[2]
    np.testing.assert_allclose(weighted.values, repeated.values, rtol=1e-9)


def test_the_noise_and_the_standard_errors_are_those_of_least_squares() -> None:
    found = []
    for seed in range(200):
        rows, y = data(200, seed, noise=0.3)
        estimator = RecursiveLeastSquares(np.full(3, 1e8), "plain")
        state = estimator.run(estimator.init(), rows, y)[2]
        residual = y - rows @ state.values
        assert state.noise == pytest.approx(residual @ residual / (200 - 3), rel=1e-4)
        found.append((state.values - TRUTH) / state.standard_errors)
    assert np.std(found) == pytest.approx(1.0, abs=0.1)


def test_forgetting_follows_a_change_and_plain_does_not() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 3))
    y = rows @ TRUTH * np.where(np.arange(4000) < 2000, 1.0, 0.5) + 0.05 * rng.normal(size=4000)
    errors = {}
    for name in VARIANTS:
        estimator = RecursiveLeastSquares(PRIOR, name, 0.99, 1e-4, 1.0, 500)
        state = estimator.run(estimator.init(), rows, y)[2]
        errors[name] = np.linalg.norm(state.values - 0.5 * TRUTH)
    assert errors.pop("plain") > 0.5
    assert max(errors.values()) < 0.05


# -- native and NumPy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_native_equals_numpy(variant: Variant, weighted: bool) -> None:
    rows, y = data(300)
    rows[40], y[50], y[60] = np.nan, np.inf, 1e300
    rows[70:90] = 0.0
    weights = np.random.default_rng(3).choice([0.0, 0.5, 2.0], 300) if weighted else None
    estimator = ESTIMATORS[variant]
    native = estimator.run(estimator.init(), rows, y, weights)
    reference = in_numpy(estimator, estimator.init(), rows, y, weights)
    np.testing.assert_allclose(native[0], reference[0], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(native[1], reference[1], rtol=1e-8, atol=1e-12)
    ours, theirs = native[2], reference[2]
    np.testing.assert_allclose(ours.covariance, theirs.covariance, rtol=1e-6, atol=1e-12)
    assert (ours.used, ours.rejected, ours.since_reset) == (theirs.used, theirs.rejected, theirs.since_reset)
    assert (ours.squares, ours.freedom) == pytest.approx((theirs.squares, theirs.freedom), rel=1e-8)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_in_parts_is_the_whole_run(variant: Variant) -> None:
    rows, y = data(300)
    estimator = ESTIMATORS[variant]
    whole = estimator.run(estimator.init(), rows, y)[2]
    state = estimator.init()
    for part in np.array_split(np.arange(300), 7):
        _, _, state = estimator.run(state, rows[part], y[part])
    np.testing.assert_array_equal(state.values, whole.values)
    np.testing.assert_array_equal(state.covariance, whole.covariance)


# -- samples that must not matter ------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_samples_that_are_not_finite_are_counted_and_change_nothing_else(variant: Variant) -> None:
    rows, y = data(200)
    spoiled, measured = np.insert(rows, [50, 120], np.nan, axis=0), np.insert(y, [50, 120], 1.0)
    measured[150] = np.inf
    estimator = ESTIMATORS[variant]
    state = estimator.run(estimator.init(), spoiled, measured)[2]
    clean = estimator.run(estimator.init(), np.delete(rows, 148, axis=0), np.delete(y, 148))[2]
    assert state.rejected == 3
    np.testing.assert_array_equal(state.values, clean.values)
    np.testing.assert_array_equal(state.covariance, clean.covariance)


@pytest.mark.parametrize("variant", VARIANTS)
def test_weight_zero_freezes_the_state(variant: Variant) -> None:
    rows, y = data(200)
    estimator = ESTIMATORS[variant]
    before = estimator.run(estimator.init(), rows, y)[2]
    rows[::3] = np.nan
    _, values, after = estimator.run(before, rows, y, np.zeros(200))
    assert (values == before.values).all()
    np.testing.assert_array_equal(after.covariance, before.covariance)
    assert (after.used, after.rejected) == (before.used, before.rejected)


@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_grows_without_bound_at_rest(variant: Variant) -> None:
    """A million samples without excitation: P stays within P(0) and positive definite, the values do not move."""
    estimator = ESTIMATORS[variant]
    state = estimator.run(estimator.init(), *data(200))[2]
    rest = estimator.run(state, np.zeros((1_000_000, 3)), np.zeros(1_000_000))[2]
    np.testing.assert_array_equal(rest.values, state.values)
    assert (np.diag(rest.covariance) <= PRIOR * (1.0 + 1e-12)).all()
    assert np.linalg.eigvalsh(rest.covariance / np.sqrt(np.outer(PRIOR, PRIOR))).min() > 0.0


def test_an_indefinite_covariance_restarts() -> None:
    rows, y = data(300)
    for variant in VARIANTS:
        estimator = ESTIMATORS[variant]
        broken = replace(estimator.init(), covariance=-np.eye(3))
        for state in (estimator.run(broken, rows, y)[2], in_numpy(estimator, broken, rows, y)[2]):
            assert np.linalg.eigvalsh(state.covariance).min() > 0.0
            np.testing.assert_allclose(state.values, TRUTH, atol=0.2)


# -- wrong input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": []}, "prior must be"),
        ({"prior": [1.0, -1.0]}, "prior must be"),
        ({"prior": np.ones(33)}, "1 to 32"),
        ({"variant": "forgetful"}, "variant must be one of plain"),
        ({"memory": 0.0}, r"memory must be in \(0, 1\]"),
        ({"memory": float("nan")}, "memory must be"),
        ({"floor": -1.0}, "floor must be"),
        ({"floor": [1.0, 2.0, 3.0]}, "floor must be"),
        ({"threshold": float("inf")}, "threshold must be"),
        ({"period": 0}, "period >= 1"),
    ],
)
def test_options_out_of_range_are_rejected(options: dict[str, object], message: str) -> None:
    with pytest.raises(EstimationError, match=message):
        RecursiveLeastSquares(**{"prior": [1.0, 1.0], **options})  # type: ignore[arg-type]


def test_wrong_shapes_are_rejected() -> None:
    rows, y = data(10)
    estimator = ESTIMATORS["plain"]
    with pytest.raises(ShapeError, match="values must be 3"):
        estimator.init(np.zeros(2))
    for wrong in ((rows[:, :2], y), (rows[:5], y), (rows, y[:, None])):
        with pytest.raises(ShapeError, match=r"rows must be \(samples, 3\)"):
            estimator.run(estimator.init(), *wrong)
    for weights in (np.ones(9), -np.ones(10)):
        with pytest.raises(ShapeError, match="weights must be 10"):
            estimator.run(estimator.init(), rows, y, weights)
