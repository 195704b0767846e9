"""Zero-phase filters: smoothing, differentiation, and filtering with decimation."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jointwise.backend import native
from jointwise.spatial import Array

ORDER = 4
_NEGLIGIBLE = 1e-6


def low_pass(values: Array, cutoff: float, rate: float) -> Array:
    """Return (samples, ...) after a 4th-order Butterworth forwards and backwards, `cutoff` and `rate` in Hz.

    Done on the spectrum: there and back it multiplies by ``|H|² = 1 / (1 + (tan(π f / rate) / tan(π fc / rate))⁸)``.
    Beyond the ends the signal is continued by odd reflection. Above 0.45 of the rate there is nothing to remove and the
    values come back as they are.
    """
    if cutoff >= 0.45 * rate or len(values) < 3:
        return values
    padding = min(len(values) - 1, int(6.0 * rate / cutoff))
    length = fast_length(len(values) + 2 * padding)
    before = 2.0 * values[0] - values[padding:0:-1]
    after = 2.0 * values[-1] - values[-2 : -padding - 2 : -1]
    padded = np.concatenate([before, values, after])
    line = np.linspace(padded[0], padded[-1], len(padded))  # what is left starts and ends at zero: no jump to wrap
    with np.errstate(over="ignore"):
        ratio = np.tan(np.pi * np.fft.rfftfreq(length)) / np.tan(np.pi * cutoff / rate)
        gain = 1.0 / (1.0 + ratio ** (2 * ORDER))
    spectrum = np.fft.rfft(padded - line, length, axis=0) * gain.reshape(-1, *[1] * (values.ndim - 1))
    result: Array = np.fft.irfft(spectrum, length, axis=0)[: len(padded)] + line
    return result[padding : padding + len(values)]


def fast_length(samples: int) -> int:
    """Return the smallest length >= `samples` whose prime factors are 2, 3 and 5: Fourier transforms of it are fast."""
    best = 1 << max(samples - 1, 0).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            two = max(-(-samples // three) - 1, 0).bit_length()
            best = min(best, three << two)
            three *= 3
        five *= 5
    return best


def monotone_low_pass(values: Array, cutoff: float, rate: float) -> Array:
    """Return signals after a Gaussian filter, which has no lag and does not swing past a stop.

    A Butterworth filter rings where a motion stops, which a hysteresis would take for reversals.

    Args:
        values: Signals, (samples, ...).
        cutoff: Cut-off frequency (-3 dB), Hz.
        rate: Sampling rate, Hz.
    """
    width = np.sqrt(np.log(2.0)) / (2.0 * np.pi * cutoff)
    half = int(5.0 * width * rate + 0.5)
    taps = np.exp(-0.5 * (np.arange(-half, half + 1) / (width * rate)) ** 2)
    taps /= taps.sum()
    columns = values.reshape(len(values), -1).T
    return np.stack([decimate(column, taps, 1) for column in columns], axis=1).reshape(values.shape)


def settling_time(cutoff: float) -> float:
    """Return the time (s) after which a zero-phase filter of this cut-off (Hz) has forgotten its ends."""
    return 4.0 / cutoff


def differences(values: Array, rate: float) -> tuple[Array, Array]:
    """Return first and second derivative by central differences: (q⁺ - q⁻)/2T and (q⁺ - 2q + q⁻)/T²."""
    first, second = np.empty_like(values), np.empty_like(values)
    first[1:-1] = (values[2:] - values[:-2]) * (0.5 * rate)
    first[0], first[-1] = (values[1] - values[0]) * rate, (values[-1] - values[-2]) * rate
    second[1:-1] = (values[2:] - 2.0 * values[1:-1] + values[:-2]) * rate**2
    second[0], second[-1] = second[1], second[-2]
    return first, second


@lru_cache(maxsize=32)
def decimation_taps(cutoff: float, rate: float) -> Array:
    """Return the impulse response of the zero-phase Butterworth as symmetric taps of unit sum.

    The response of `low_pass` to a unit impulse, cut where it is negligible: filtering and keeping every step-th sample
    then costs only the samples that are kept.
    """
    half = int(8.0 * rate / cutoff)
    impulse = np.zeros(2 * half + 1)
    impulse[half] = 1.0
    response = low_pass(impulse, cutoff, rate)
    needed = int(np.abs(np.flatnonzero(np.abs(response) > _NEGLIGIBLE * response[half]) - half).max())
    taps = response[half - needed : half + needed + 1]
    unit: Array = taps / taps.sum()
    unit.setflags(write=False)
    return unit


def decimate(values: Array, taps: Array, step: int) -> Array:
    """Return ``out[k] = Σ taps[l] x[k step + l - half]``: filtered series, every step-th sample, ends held.

    `values` (samples,), `taps` symmetric of odd length; ``ceil(samples / step)`` values come out.
    """
    half = len(taps) // 2
    padded = np.concatenate([np.full(half, values[0]), values, np.full(half + step, values[-1])])
    out = np.empty(-(-len(values) // step))
    kernel = native()
    if kernel is not None:
        kernel.decimate(padded, taps, step, out)
        return out
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(taps))[::step]
    return windows[: len(out)] @ taps


def leaky_sum(values: Array, decay: float) -> Array:
    """Return ``x[k] = decay x[k-1] + values[k]`` along the samples of (samples, joints)."""
    out = np.ascontiguousarray(values.T)
    kernel = native()
    for row in out:
        if kernel is not None:
            kernel.leaky_sum(row, decay)
            continue
        for k in range(1, len(row)):
            row[k] += decay * row[k - 1]
    return out.T
