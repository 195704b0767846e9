"""Signals and derivatives with one common delay."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise.errors import ModelError, ShapeError
from jointwise.runtime import phase
from jointwise.runtime.phase import PhaseFilter

pytestmark = pytest.mark.compat

RATE = 1000.0


def test_the_delay_is_51_samples_for_values_and_both_derivatives() -> None:
    """Of a cubic, which the filter reproduces, every output is exactly that of 51 samples ago."""
    filt = PhaseFilter(4, RATE)
    t = np.arange(400) / RATE
    coefficients = np.random.default_rng(0).normal(size=(4, 3))

    def signal(t: np.ndarray, order: int) -> np.ndarray:
        powers = (t[:, None] ** 2, 2.0 * t[:, None], 2.0 * np.ones((len(t), 1)))
        lines = (t[:, None], np.ones((len(t), 1)), np.zeros((len(t), 1)))
        constant = float(order == 0)
        return constant * coefficients[:, 0] + lines[order] * coefficients[:, 1] + powers[order] * coefficients[:, 2]

    out, _ = filt.steps(filt.init(signal(t, 0)[0]), signal(t, 0))
    assert filt.delay == 51
    after = slice(filt.warm_up, None)
    for order, values in enumerate(out):
        np.testing.assert_allclose(values[after], signal(t - 51 / RATE, order)[after], atol=1e-8)


def test_a_step_in_any_channel_arrives_after_51_samples() -> None:
    """The response of every channel to a step is symmetric about sample 51: the same group delay at all frequencies."""
    filt = PhaseFilter(3, RATE)
    rows = np.zeros((200, 3))
    rows[20:] = [1.0, -2.0, 5.0]
    out, _ = filt.steps(filt.init(np.zeros(3)), rows)
    relative = out.value / [1.0, -2.0, 5.0]
    np.testing.assert_allclose(relative[:, 0], relative[:, 1], atol=1e-15)
    np.testing.assert_allclose(relative[:, 0], relative[:, 2], atol=1e-15)
    middle = 20 + 51
    for k in range(50):  # (value before the middle) = 1 - (value as long after it)
        np.testing.assert_allclose(relative[middle - 1 - k, 0], 1.0 - relative[middle + k, 0], atol=1e-12)


def test_a_stream_gives_the_numbers_of_a_batch() -> None:
    filt = PhaseFilter(5, 500.0, 21, 2)
    rows = np.random.default_rng(1).normal(size=(150, 5))
    start = filt.init(rows[0])
    whole, end = filt.steps(start, rows)
    state = start
    for k, row in enumerate(rows):
        one, state = filt.step(state, row)
        for batch, single in zip(whole, one, strict=True):
            np.testing.assert_array_equal(batch[k], single)
    np.testing.assert_array_equal(state.numbers, end.numbers)
    assert state.samples >= filt.warm_up > start.samples


def test_numpy_gives_the_numbers_of_the_native_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    filt = PhaseFilter(3, RATE, 11)
    rows = np.random.default_rng(2).normal(size=(60, 3))
    rows[30, 1] = np.nan
    native, end = filt.steps(filt.init(rows[0]), rows)
    monkeypatch.setattr(phase, "native", lambda: None)
    twin, last = filt.steps(filt.init(rows[0]), rows)
    for a, b in zip(native, twin, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(end.numbers, last.numbers, atol=1e-12)


def test_the_filter_is_that_of_savitzky_and_golay() -> None:
    from scipy.signal import savgol_coeffs

    for length, order in ((101, 3), (101, 2), (21, 4), (1, 0)):
        taps = PhaseFilter(1, RATE, length, order).taps
        np.testing.assert_allclose(taps, savgol_coeffs(length, order), atol=1e-12)
        np.testing.assert_allclose(taps.sum(), 1.0, atol=1e-12)


def test_a_value_that_is_not_finite_is_held_and_counted() -> None:
    filt = PhaseFilter(2, RATE, 5, 2)
    state = filt.init([1.0, 2.0])
    for row in ([1.0, 2.0], [np.nan, 2.0], [np.inf, np.nan], [1.0, 2.0]):
        out, state = filt.step(state, row)
        np.testing.assert_allclose(out.value, [1.0, 2.0])
        np.testing.assert_allclose(out.first, 0.0, atol=1e-9)
    assert state.dropped == 3 and state.samples == 4


def test_wrong_input() -> None:
    with pytest.raises(ModelError, match="odd number of samples. Got 100 instead"):
        PhaseFilter(1, RATE, 100)
    with pytest.raises(ModelError, match="order must be 0 to 4. Got 5 instead"):
        PhaseFilter(1, RATE, 5, 5)
    with pytest.raises(ModelError, match="channels must be at least 1"):
        PhaseFilter(0, RATE)
    with pytest.raises(ModelError, match="rate must be a positive number of Hz"):
        PhaseFilter(1, 0.0)
    filt = PhaseFilter(2, RATE)
    with pytest.raises(ShapeError, match=r"values must have shape \(2,\). Got \(3,\) instead"):
        filt.step(filt.init([0.0, 0.0]), [1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match="first sample must be finite"):
        filt.init([0.0, np.nan])
