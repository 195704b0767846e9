"""Signals and their derivatives from samples so far, all with the same delay: phase-consistent state estimation.

A Savitzky-Golay filter over a ring buffer of n_LP samples smooths every signal, a central difference over three
smoothed samples gives the derivatives:

    x̄[k] = Σ_l h_l x[k - l],    x = x̄[k-1],    ẋ = (x̄[k] - x̄[k-2]) / 2T,    ẍ = (x̄[k] - 2 x̄[k-1] + x̄[k-2]) / T²

so that positions, speeds, accelerations, currents and temperatures are all those of (n_LP - 1)/2 + 1 samples ago: 51 of
101. A model evaluated with them has no error from signals of different age.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jointwise.backend import native
from jointwise.errors import ModelError, ShapeError
from jointwise.runtime.motion import checked_rate
from jointwise.spatial import Array

LENGTH = 101
"""Samples of the Savitzky-Golay filter: at 1 kHz it passes the motion of an arm (below 10 Hz) and removes the rest."""
ORDER = 3
"""Degree of its polynomial."""
HEAD = 3
"""Numbers of the state before the buffers: next row, samples so far, values that were not finite."""
SMOOTHED = 3
"""Smoothed samples that the central difference uses."""


class PhaseSignals(NamedTuple):
    """Signals of `delay` samples ago, (channels,) or (samples, channels).

    Attributes:
        value: Smoothed signals, in their units.
        first: First time derivative, 1/s of the unit.
        second: Second time derivative, 1/s² of the unit.
    """

    value: Array
    first: Array
    second: Array


@dataclass(frozen=True, eq=False)
class PhaseState:
    """The buffers of a filter; a step does not change them."""

    numbers: Array

    @property
    def samples(self) -> int:
        """Samples so far."""
        return int(self.numbers[1])

    @property
    def dropped(self) -> int:
        """Values so far that were not finite and were replaced by the ones before them."""
        return int(self.numbers[2])


@dataclass(frozen=True)
class PhaseFilter:
    """Smoothing and differentiation of several signals with one common delay.

    Attributes:
        channels: Number of signals.
        rate: Sampling rate, Hz.
        length: Samples of the Savitzky-Golay filter, odd.
        order: Degree of its polynomial, below `length`.

    """

    channels: int
    rate: float
    length: int = LENGTH
    order: int = ORDER

    def __post_init__(self) -> None:
        """Reject lengths without a middle and polynomials that the samples do not determine."""
        checked_rate(self.rate)
        if self.channels < 1:
            raise ModelError(f"channels must be at least 1. Got {self.channels} instead.")
        if self.length < 1 or self.length % 2 == 0:
            raise ModelError(f"length must be an odd number of samples. Got {self.length} instead.")
        if not 0 <= self.order < self.length:
            raise ModelError(f"order must be 0 to {self.length - 1}. Got {self.order} instead.")

    @property
    def delay(self) -> int:
        """Delay of all signals, samples: (n_LP + 3 - 2) / 2."""
        return (self.length - 1) // 2 + 1

    @property
    def warm_up(self) -> int:
        """Samples after which the output depends on measured samples alone."""
        return self.length + SMOOTHED - 1

    @cached_property
    def taps(self) -> Array:
        """Coefficients of the smoothing filter, (length,), of sum one: the polynomial's value in the middle."""
        half = (self.length - 1) // 2
        powers = np.vander(np.arange(-half, half + 1) / max(half, 1), self.order + 1, increasing=True)
        taps: Array = np.ascontiguousarray(np.linalg.pinv(powers)[0])
        return taps

    def init(self, values: ArrayLike) -> PhaseState:
        """Return the state before the first sample, as if the signals had been constant at `values` (channels,)."""
        start = self._checked(values, (self.channels,))
        if not np.isfinite(start).all():
            raise ShapeError(f"the first sample must be finite. Got {start.tolist()} instead.")
        return PhaseState(np.concatenate([np.zeros(HEAD), np.tile(start, self.length + SMOOTHED)]))

    def value(self, state: PhaseState) -> Array:
        """Return the last smoothed signals (channels,), `delay` samples old."""
        return state.numbers[-2 * self.channels : -self.channels]

    def step(self, state: PhaseState, values: ArrayLike) -> tuple[PhaseSignals, PhaseState]:
        """Return the signals `delay` samples before the sample `values` (channels,), and the state after it.

        A value that is not finite is replaced by the one before it and counted in `PhaseState.dropped`.
        """
        row = self._checked(values, (self.channels,))
        out, after = self._run(state, row)
        return PhaseSignals(*out[0]), after

    def steps(self, state: PhaseState, values: ArrayLike) -> tuple[PhaseSignals, PhaseState]:
        """Return the signals for consecutive samples (samples, channels), equal to those of single steps."""
        rows = self._checked(values, (len(np.asarray(values)), self.channels))
        out, after = self._run(state, rows)
        return PhaseSignals(out[:, 0], out[:, 1], out[:, 2]), after

    def _checked(self, values: ArrayLike, shape: tuple[int, ...]) -> Array:
        array = np.ascontiguousarray(values, dtype=np.float64)
        if array.shape != shape:
            raise ShapeError(f"values must have shape {shape}. Got {array.shape} instead.")
        return array

    def _run(self, state: PhaseState, values: Array) -> tuple[Array, PhaseState]:
        """Return (samples, 3, channels) and the state after the samples."""
        numbers, samples = state.numbers.copy(), values.size // self.channels
        out = np.empty((samples, 3, self.channels))
        if (kernel := native()) is not None:
            kernel.phase_steps(self.taps, self.channels, self.rate, numbers, values, out)
        else:
            for k, row in enumerate(values.reshape(samples, self.channels)):
                _numpy_step(self.taps, self.rate, numbers, row, out[k])
        return out, PhaseState(numbers)


def _numpy_step(taps: Array, rate: float, numbers: Array, values: Array, out: Array) -> None:
    """Write value, first and second derivative (3, channels) of one sample; the numbers of the state are updated."""
    channels, length = len(values), len(taps)
    raw = numbers[HEAD : HEAD + length * channels].reshape(length, channels)
    smooth = numbers[HEAD + length * channels :].reshape(SMOOTHED, channels)
    row, fine = int(numbers[0]), np.isfinite(values)
    raw[row] = np.where(fine, values, raw[row - 1])
    numbers[:HEAD] = (row + 1) % length, numbers[1] + 1, numbers[2] + np.count_nonzero(~fine)
    smooth[:-1] = smooth[1:]
    smooth[-1] = taps @ np.roll(raw, -(row + 1), axis=0)
    old, middle, young = smooth
    out[:] = middle, (young - old) * (0.5 * rate), ((young - middle) - (middle - old)) * rate**2
