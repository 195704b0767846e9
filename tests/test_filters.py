"""Filters: no lag, nothing taken from what is slow, and every shortcut equal to the long way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.signal import butter, filtfilt

from jointwise.backend import VARIABLE, native
from jointwise.data.filters import decimate, decimation_taps, differences, low_pass, monotone_low_pass, settling_time
from jointwise.spatial import Array
from kernels import needs_native

pytestmark = pytest.mark.compat

RATE, CUTOFF = 500.0, 20.0


def times(samples: int = 4000) -> Array:
    return np.arange(samples) / RATE


def middle(values: Array, cutoff: float = CUTOFF) -> Array:
    """Return the samples that are farther from the ends than a filter remembers."""
    edge = int(settling_time(cutoff) * RATE)
    return values[edge:-edge]


def noise(samples: int = 4000, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=samples)


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Switch to the NumPy twin."""
    monkeypatch.setenv(VARIABLE, "0")
    native.cache_clear()
    yield
    native.cache_clear()


# -- smoothing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cutoff", [2.5, 8.0, 20.0, 60.0])
def test_low_pass_is_the_butterworth_filter_there_and_back(cutoff: float) -> None:
    values = np.cumsum(noise(8000))
    b, a = butter(4, cutoff / (RATE / 2.0))
    expected = filtfilt(b, a, values, padlen=3000)
    actual, wanted = middle(low_pass(values, cutoff, RATE), 2.0), middle(expected, 2.0)
    np.testing.assert_allclose(actual, wanted, atol=1e-4 * np.ptp(values))


@pytest.mark.parametrize("smooth", [low_pass, monotone_low_pass])
def test_a_constant_and_a_line_pass_unchanged(smooth) -> None:
    line = 3.0 - 0.7 * times()
    np.testing.assert_allclose(smooth(np.full(4000, 2.5), CUTOFF, RATE), 2.5, rtol=1e-12)
    np.testing.assert_allclose(middle(smooth(line, CUTOFF, RATE)), middle(line), atol=1e-9)


@pytest.mark.parametrize("smooth", [low_pass, monotone_low_pass])
@pytest.mark.parametrize("frequency", [1.0, 5.0, 15.0, 40.0])
def test_a_sine_keeps_its_phase(smooth, frequency: float) -> None:
    t = times()
    wave, quarter = np.sin(2.0 * np.pi * frequency * t), np.cos(2.0 * np.pi * frequency * t)
    actual = middle(smooth(wave, CUTOFF, RATE), 5.0)
    gain, shift = np.linalg.lstsq(np.column_stack([wave, quarter])[400:-400], actual, rcond=None)[0]
    assert gain > 0.0
    assert abs(shift) < 1e-6


@pytest.mark.parametrize("smooth", [low_pass, monotone_low_pass])
def test_the_answer_to_an_impulse_is_symmetric(smooth) -> None:
    impulse = np.zeros(2001)
    impulse[1000] = 1.0
    actual = smooth(impulse, CUTOFF, RATE)
    np.testing.assert_allclose(actual, actual[::-1], atol=1e-12)
    assert actual.sum() == pytest.approx(1.0, abs=1e-6)


def test_gain_at_the_cutoff() -> None:
    t = times(20_000)
    wave = np.sin(2.0 * np.pi * CUTOFF * t)
    for smooth, gain in ((low_pass, 0.5), (monotone_low_pass, np.sqrt(0.5))):
        actual = middle(smooth(wave, CUTOFF, RATE))
        assert actual.std() / middle(wave).std() == pytest.approx(gain, rel=2e-3)


def test_fast_noise_is_taken_out() -> None:
    kept = low_pass(noise(), CUTOFF, RATE).std()
    assert kept == pytest.approx(np.sqrt(2.0 * CUTOFF / RATE), rel=0.15)


@pytest.mark.parametrize("smooth", [low_pass, monotone_low_pass])
def test_columns_are_filtered_one_by_one(smooth) -> None:
    values = np.column_stack([noise(seed=1), noise(seed=2)])
    together = smooth(values, CUTOFF, RATE)
    for k in range(2):
        np.testing.assert_allclose(together[:, k], smooth(values[:, k], CUTOFF, RATE), atol=1e-12)


def test_a_cutoff_near_the_rate_changes_nothing() -> None:
    values = noise()
    np.testing.assert_array_equal(low_pass(values, 0.45 * RATE, RATE), values)


def test_inputs_are_left_alone() -> None:
    values, kept = noise(), noise()
    low_pass(values, CUTOFF, RATE), monotone_low_pass(values, CUTOFF, RATE), differences(values, RATE)
    np.testing.assert_array_equal(values, kept)


@pytest.mark.parametrize("samples", [3, 4, 17, 60])
def test_short_series_are_filtered_too(samples: int) -> None:
    values = np.linspace(1.0, 2.0, samples)
    assert np.abs(low_pass(values, CUTOFF, RATE) - values).max() < 0.1
    assert low_pass(values, CUTOFF, RATE).shape == values.shape


def test_a_stop_is_never_overshot_by_the_monotone_filter() -> None:
    ramp = np.clip(times(2000) - 1.0, 0.0, 1.0)
    actual = monotone_low_pass(ramp, 8.0, RATE)
    assert np.diff(actual).min() >= -1e-15
    assert actual.max() <= 1.0 + 1e-12
    assert np.diff(low_pass(ramp, 8.0, RATE)).min() < -1e-5  # as the other filter does


def test_after_the_settling_time_the_ends_are_forgotten() -> None:
    values, other = noise(), noise()
    other[0] += 1.0
    edge = int(settling_time(CUTOFF) * RATE)
    apart = np.abs(low_pass(other, CUTOFF, RATE) - low_pass(values, CUTOFF, RATE))
    assert apart[:edge].max() > 1e-2
    assert apart[edge:-edge].max() < 1e-3 * apart.max()


# -- derivatives -----------------------------------------------------------------------------------------------------


def test_differences_are_exact_on_a_parabola() -> None:
    t = times(100)
    q = np.column_stack([1.0 - 2.0 * t + 3.0 * t**2, 0.5 * t**2])
    first, second = differences(q, RATE)
    np.testing.assert_allclose(first[1:-1], np.column_stack([-2.0 + 6.0 * t, t])[1:-1], atol=1e-9)
    np.testing.assert_allclose(second, np.tile([6.0, 1.0], (100, 1)), atol=1e-6)


def test_differences_converge_with_the_square_of_the_step() -> None:
    def error(rate: float) -> tuple[float, float]:
        t = np.arange(int(2.0 * rate)) / rate
        first, second = differences(np.sin(3.0 * t), rate)
        inner = slice(1, -1)
        return (
            float(np.abs(first - 3.0 * np.cos(3.0 * t))[inner].max()),
            float(np.abs(second + 9.0 * np.sin(3.0 * t))[inner].max()),
        )

    for coarse, fine in zip(error(100.0), error(200.0), strict=True):
        assert coarse / fine == pytest.approx(4.0, rel=0.05)


# -- filtering with decimation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 7, 10])
def test_decimation_is_filtfilt_and_every_nth_sample(step: int) -> None:
    values = np.cumsum(noise()) + noise(seed=5)
    b, a = butter(4, CUTOFF / (RATE / 2.0))
    expected = filtfilt(b, a, values)[::step]
    actual = decimate(values, decimation_taps(CUTOFF, RATE), step)
    assert actual.shape == expected.shape
    edge = int(settling_time(CUTOFF) * RATE / step)
    np.testing.assert_allclose(actual[edge:-edge], expected[edge:-edge], atol=1e-5 * np.ptp(values))


@pytest.mark.parametrize("samples", [1, 2, 30, 1001])
@pytest.mark.parametrize("step", [1, 4, 10])
@needs_native
def test_native_decimation_is_its_numpy_twin(samples: int, step: int, request: pytest.FixtureRequest) -> None:
    values, taps = noise(samples), decimation_taps(CUTOFF, RATE)
    assert native() is not None
    actual = decimate(values, taps, step)
    request.getfixturevalue("twin")
    assert native() is None
    np.testing.assert_allclose(actual, decimate(values, taps, step), rtol=0.0, atol=1e-13)
    assert len(actual) == len(values[::step])


def test_taps_are_symmetric_of_unit_sum_and_read_only() -> None:
    taps = decimation_taps(CUTOFF, RATE)
    assert len(taps) % 2 == 1
    assert taps.sum() == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(taps, taps[::-1], atol=1e-15)
    with pytest.raises(ValueError, match="read-only"):
        taps[0] = 1.0
