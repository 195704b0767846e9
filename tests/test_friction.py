"""Friction laws: the native kernels against the NumPy reference, and the properties of every law."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointwise.backend import VARIABLE, native
from jointwise.model import terms as friction
from jointwise.model.periodic_table import PeriodicTable
from jointwise.spatial import Array
from kernels import native as kernel
from robots import law

pytestmark = pytest.mark.compat

RATE = 500.0
LIMITS = np.array([6e-5, 1.2e-3])
SHARES = np.array([0.7, 0.3])
SPEED = np.linspace(-2.0, 2.0, 401)
paths = st.lists(st.floats(-5e-3, 5e-3), min_size=2, max_size=40).map(np.array)
needs_kernel = pytest.mark.skipif(kernel is None, reason="the native kernel is not built")


@pytest.fixture
def numpy_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Switch the native kernels off."""
    monkeypatch.setenv(VARIABLE, "0")
    native.cache_clear()
    yield
    native.cache_clear()


def reciprocation(seconds: float = 8.0) -> Array:
    """Return a path (samples,) that goes back and forth with a slow advance, rad."""
    t = np.arange(0.0, seconds, 1.0 / RATE)
    return 0.025 * (1.0 - np.cos(0.5 * np.pi * t)) + 1.25e-3 * t


def varying_map(variation: float, phase: float) -> PeriodicTable:
    """Return a backlash map of 100 points, relative to its mean."""
    values = 1.0 + variation * np.sin(np.linspace(0.0, 6.28, 100) + phase)
    return PeriodicTable(tuple((values / values.mean()).tolist()))


# -- laws without memory -----------------------------------------------------------------------------------------------


def test_directions() -> None:
    np.testing.assert_array_equal(friction.direction(SPEED), np.sign(SPEED))
    np.testing.assert_array_equal(friction.direction(SPEED, 0.3), np.tanh(SPEED / 0.3))


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.7, 2.0])
def test_stribeck_curve_and_its_slope(exponent: float) -> None:
    curve = friction.stribeck(SPEED, 0.3, exponent)
    np.testing.assert_allclose(curve, np.exp(-((np.abs(SPEED) / 0.3) ** exponent)), rtol=1e-14)
    up, down = (friction.stribeck(SPEED, 0.3 * np.exp(step), exponent) for step in (1e-6, -1e-6))
    np.testing.assert_allclose(friction.stribeck_slope(SPEED, 0.3, exponent), (up - down) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(friction.steady_level(SPEED, 0.4, 0.3, exponent), 1.0 + 0.4 * curve, rtol=1e-15)


def test_viscous_torque_is_the_sum_of_its_columns() -> None:
    coefficients = (8.0, -1.5, 0.3)
    torque = friction.viscous_torque(SPEED, coefficients)
    np.testing.assert_allclose(torque, 8.0 * SPEED - 1.5 * np.abs(SPEED) * SPEED + 0.3 * SPEED**3, atol=1e-14)
    columns = friction.viscous_columns(SPEED, (1.0, 2.0, 3.0))
    np.testing.assert_allclose(torque, columns @ np.array(coefficients), atol=1e-13)
    np.testing.assert_allclose(torque, friction.viscous_factor(SPEED, coefficients) * SPEED, atol=1e-15)


def test_thermal_factors_vanish_at_the_reference_and_stay_within_the_range() -> None:
    T = np.array([-50.0, 10.0, 20.0, 35.0, 60.0, 90.0])
    factors = friction.thermal_factors(T, 20.0, 10.0, 60.0)
    np.testing.assert_array_equal(factors[2], 0.0)
    np.testing.assert_array_equal(factors[[0, -1]], factors[[1, -2]])
    np.testing.assert_allclose(factors[3], [15.0, 35.0**-3 - 20.0**-3], rtol=1e-13)
    np.testing.assert_allclose(friction.root_speed(np.array([-4.0, 0.0, 9.0])), [-2.0, 0.0, 3.0])


def test_load_laws() -> None:
    load = np.array([-3.0, 0.0, 2.0])
    np.testing.assert_array_equal(friction.load_growth(load, friction.LOAD_POWERS["absolute"]), [3.0, 0.0, 2.0])
    np.testing.assert_array_equal(friction.load_growth(load, friction.LOAD_POWERS["square"]), [9.0, 0.0, 4.0])
    np.testing.assert_allclose(friction.load_growth(load, 1.5), np.abs(load) ** 1.5)


def test_pre_assigned_elements() -> None:
    np.testing.assert_allclose(friction.linear_limits(4, 1e-3), 1e-3 * np.array([0.25, 0.5, 0.75, 1.0]))
    np.testing.assert_allclose(friction.polynomial_limits(4, 1e-3), 1e-3 * np.array([1, 16, 81, 256]) / 256)
    np.testing.assert_allclose(friction.geometric_limits(3, 1e-5, 1e-3), [1e-5, 1e-4, 1e-3])
    np.testing.assert_allclose(friction.polynomial_shares(4), np.array([16, 9, 4, 1]) / 30)


# -- native kernels ----------------------------------------------------------------------------------------------------


@needs_kernel
@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize("decay", [1.0, 0.995])
def test_native_kernels_equal_the_numpy_reference(varies: bool, decay: float, request: pytest.FixtureRequest) -> None:
    rng = np.random.default_rng(3)
    x, h = np.cumsum(rng.normal(scale=1e-4, size=900)), rng.uniform(1.0, 1.5, 900)
    x[100:110] = x[100]
    b = rng.uniform(0.7, 1.3, 900) if varies else None

    def run() -> list[Array]:
        found: list[Array] = []
        found += friction.slip_elements(x, LIMITS, friction.slip_state(1e-5, 2), backlash=b, decay=decay)
        found += friction.slip_slopes(x, LIMITS, friction.slip_slope_state(1e-5, 2), backlash=b)
        found += friction.rate_slip(x, h, LIMITS, 0.05, friction.rate_slip_state(1e-5, 2), backlash=b)
        found += friction.lugre_deflection(x, h, 3e-4, friction.lugre_state(1e-5), backlash=b)
        return found

    with_kernel = run()
    request.getfixturevalue("numpy_only")
    assert native() is None
    for one, other in zip(with_kernel, run(), strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-12)


@needs_kernel
def test_native_kernels_reject_arrays_that_do_not_fit() -> None:
    x, state, pair = np.zeros(5), np.zeros(3), np.zeros((5, 2))
    wrong = [
        ("slip", (x, None, LIMITS, 1.0, state, np.zeros(9), None)),
        ("slip", (x, np.zeros(4), LIMITS, 1.0, state, pair, None)),
        ("slip", (x, None, LIMITS, 1.0, state, pair, pair.copy())),
        ("slip", (x, None, np.empty(0), 1.0, np.zeros(1), np.empty((5, 0)), None)),
        ("rate_slip", (x, x, None, LIMITS, 0.1, np.zeros(5), pair)),
        ("lugre", (x, x[:3], x, np.zeros(2), np.zeros(5))),
        ("lugre", (x.astype(np.float32), x, x, np.zeros(2), np.zeros(5))),
    ]
    for name, arguments in wrong:
        with pytest.raises(ValueError, match="must be"):
            getattr(kernel, name)(*arguments)


# -- slip elements -----------------------------------------------------------------------------------------------------


def test_states_are_not_changed_and_chunks_give_the_same_as_one_run() -> None:
    x, h = reciprocation(), np.linspace(1.0, 1.4, 4000)
    b = varying_map(0.3, 0.0).at(x)
    laws = [
        (lambda rows, s: friction.slip_elements(x[rows], LIMITS, s, backlash=b[rows]), friction.slip_state(0.0, 2)),
        (
            lambda rows, s: friction.rate_slip(x[rows], h[rows], LIMITS, 0.1, s, backlash=b[rows]),
            friction.rate_slip_state(0.0, 2),
        ),
        (
            lambda rows, s: friction.lugre_deflection(x[rows], h[rows], 3e-4, s, backlash=b[rows]),
            friction.lugre_state(0.0),
        ),
    ]
    for evaluate, start in laws:
        kept = start.copy()
        whole, end = evaluate(slice(None), start)
        np.testing.assert_array_equal(start, kept)
        first, middle = evaluate(slice(0, 1234), start)
        second, last = evaluate(slice(1234, None), middle)
        np.testing.assert_array_equal(np.concatenate([first, second]), whole)
        np.testing.assert_array_equal(last, end)


@law(50)
@given(paths)
def test_slopes_are_derivatives_with_respect_to_the_logarithm_of_the_limit(points: Array) -> None:
    x, state = np.concatenate([[0.0], points]), friction.slip_state(0.0, 2)
    limits = LIMITS * 1.000123  # a path of round numbers that turns exactly at a limit has no derivative
    up, down = (friction.slip_elements(x, limits * f, state)[0] for f in (1.0 + 1e-7, 1.0 - 1e-7))
    u, slopes, _ = friction.slip_slopes(x, limits, friction.slip_slope_state(0.0, 2))
    np.testing.assert_array_equal(u, friction.slip_elements(x, limits, state)[0])
    smooth = np.abs(np.abs(u) - 1.0) > 1e-5
    np.testing.assert_allclose(((up - down) / 2e-7)[smooth], slopes[smooth], atol=1e-3)


@law(100)
@given(paths, st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_the_initial_state_is_forgotten_after_twice_the_limit(points: Array, a: float, b: float) -> None:
    limits = np.array([8e-4])
    starts = [np.array([share * limits[0], points[0]]) for share in (a, b)]
    one, other = (friction.slip_elements(points, limits, state)[0][:, 0] for state in starts)
    covered = np.maximum.accumulate(points) - np.minimum.accumulate(points) >= 2.0 * limits[0]
    np.testing.assert_allclose(one[covered], other[covered], atol=1e-9)


@law(50)
@given(st.floats(0.1, 0.6), st.floats(0.0, 6.0))
def test_in_slip_every_law_has_its_steady_value_whatever_the_backlash_does(variation: float, phase: float) -> None:
    x = np.concatenate([np.linspace(0.0, 2.0, 2000), np.linspace(2.0, 0.0, 2000)])
    b, h = varying_map(variation, phase).at(x), np.full(4000, 1.3)
    slip = friction.slip_elements(x, LIMITS, friction.slip_state(0.0, 2), backlash=b)[0]
    rate = friction.rate_slip(x, h, LIMITS, 0.5, friction.rate_slip_state(0.0, 2), backlash=b)[0]
    bristles = friction.lugre_deflection(x, h, LIMITS[0], friction.lugre_state(0.0), backlash=b)[0]
    for u, steady in ((slip, 1.0), (rate, 1.3), (bristles[:, None], 1.3)):
        np.testing.assert_allclose(u[100:2000], steady, rtol=1e-12)
        np.testing.assert_allclose(u[2100:], -steady, rtol=1e-12)


@law(50)
@given(st.floats(0.0, 0.6), st.floats(0.0, 6.0))
def test_rate_dependent_elements_without_stribeck_are_the_plain_ones(variation: float, phase: float) -> None:
    x = reciprocation()
    b = varying_map(variation, phase).at(x)
    plain = friction.slip_elements(x, LIMITS, friction.slip_state(x[0], 2), backlash=b)[0]
    rate = friction.rate_slip(x, np.ones_like(x), LIMITS, 1e3, friction.rate_slip_state(x[0], 2), backlash=b)[0]
    np.testing.assert_allclose(rate, plain, atol=1e-9)


def test_bristles_reach_the_steady_level_independently_of_the_steps() -> None:
    x, state = np.linspace(0.0, 0.01, 101), friction.lugre_state(0.0)
    coarse, fine = (friction.lugre_deflection(x[::k], np.full(len(x[::k]), 1.2), 5e-4, state)[0] for k in (10, 1))
    np.testing.assert_allclose(coarse, fine[::10], rtol=1e-9)
    assert coarse[-1] == pytest.approx(1.2, rel=1e-6)


def test_a_constant_backlash_map_scales_the_limits() -> None:
    x, h = reciprocation(), np.full(4000, 1.1)

    def run(factor: float, b: Array | None) -> list[Array]:
        return [
            friction.slip_elements(x, LIMITS * factor, friction.slip_state(0.0, 2), backlash=b)[0],
            friction.rate_slip(x, h, LIMITS * factor, 0.1, friction.rate_slip_state(0.0, 2), backlash=b)[0],
            friction.lugre_deflection(x, h, 3e-4 * factor, friction.lugre_state(0.0), backlash=b)[0],
        ]

    for one, other in zip(run(1.0, np.full(len(x), 1.7)), run(1.7, None), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
