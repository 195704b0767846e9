"""What sensors and clocks do to a motion: quantisation, noise, jitter, lost samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ModelError
from jointwise.spatial import Array

JitterMode = Literal["sampling", "stamp"]

WIDEST_JITTER = 0.45
"""A stamp is never farther from its place than this part of a period, so that time runs forward."""
COLORED_SHARE = 0.5
"""Part of the variance of coloured current noise that is below `COLOR_FREQUENCY` (Hz)."""
COLOR_FREQUENCY = 10.0

_CLOCK, _DROPS, _SPEED, _CURRENT = range(1, 5)
"""One stream of random numbers for each effect, so that switching one does not change the others."""


@dataclass(frozen=True)
class Sensors:
    """The measuring side of a robot.

    `rate` (Hz); `encoder_counts` of a turn (of 2π m for a prismatic joint; None: no quantisation); `speed_noise` (rad/s
    rms; None: speed is not measured); `current_noise` (A rms; one number or one a joint), half of its variance below
    10 Hz if `colored`; `current_quantisation` (A; None: none). `jitter` (s rms) of the clock: with mode `sampling`
    samples are taken at irregular times and stamped right, with `stamp` they are taken at regular times and stamped
    wrong. It is cut at 0.45 periods, so its rms is as asked up to a fifth of a period. `dropped` is the fraction of
    samples that are lost, never the first or last.
    """

    rate: float = 500.0
    encoder_counts: int | None = 1_250_000
    speed_noise: float | None = 1e-3
    current_noise: float | tuple[float, ...] = 0.03
    colored: bool = True
    current_quantisation: float | None = None
    jitter: float = 0.0
    jitter_mode: JitterMode = "sampling"
    dropped: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no sensor can be."""
        if not (np.isfinite(self.rate) and self.rate > 0.0):
            raise ModelError(f"rate must be a positive number of Hz. Got {self.rate} instead.")
        if not 0.0 <= self.dropped <= 0.9:
            raise ModelError(f"dropped must be a fraction from 0 to 0.9. Got {self.dropped} instead.")
        if self.jitter_mode not in ("sampling", "stamp"):
            raise ModelError(f"jitter_mode must be sampling or stamp. Got '{self.jitter_mode}' instead.")
        for name in ("jitter", "speed_noise", "current_noise", "encoder_counts", "current_quantisation"):
            if np.any(np.asarray(getattr(self, name) or 0.0) < 0.0):
                raise ModelError(f"{name} must not be negative. Got {getattr(self, name)} instead.")

    def clock(self, duration: float) -> tuple[Array, Array]:
        """Return when the samples of a motion are taken, and how they are stamped, (samples,) each, s."""
        regular = np.arange(round(duration * self.rate)) / self.rate
        if len(regular) < 2:
            raise ModelError(f"duration must give at least 2 samples at {self.rate:g} Hz. Got {duration} s instead.")
        widest = WIDEST_JITTER / self.rate
        wander = np.clip(self.jitter * self._rng(_CLOCK).normal(size=len(regular)), -widest, widest)
        irregular = np.maximum(regular + wander, 0.0)
        return (irregular, irregular) if self.jitter_mode == "sampling" else (regular, irregular)

    def kept(self, samples: int) -> NDArray[np.intp]:
        """Return the indices of the samples that are not lost, ascending."""
        lost = min(round(self.dropped * samples), samples - 2)
        drops = 1 + self._rng(_DROPS).permutation(samples - 2)[:lost]
        return np.delete(np.arange(samples), drops)

    def position(self, q: Array) -> Array:
        """Return what the encoders read of q (samples, joints), rad."""
        return quantised(q, None if self.encoder_counts is None else 2.0 * np.pi / self.encoder_counts)

    def speed(self, qd: Array) -> Array | None:
        """Return the measured speed (samples, joints), rad/s; None if it is not measured."""
        if self.speed_noise is None:
            return None
        return qd + self.speed_noise * self._rng(_SPEED).normal(size=qd.shape)

    def current(self, current: Array) -> Array:
        """Return the measured current (samples, joints), A."""
        noise = self._rng(_CURRENT).normal(size=(2, *current.shape))
        unit = _partly_colored(noise, self.rate) if self.colored else noise[0]
        return quantised(current + np.asarray(self.current_noise) * unit, self.current_quantisation)

    def _rng(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, stream])


def quantised(values: Array, step: float | None) -> Array:
    """Return the values as whole multiples of a step; as they are without a step."""
    return np.round(values / step) * step if step else values


def _partly_colored(white: Array, rate: float) -> Array:
    """Return noise of unit variance, a mixture of a white series and one through a first-order low-pass.

    `white` (2, samples, joints). ``c[k] = a c[k-1] + √(1 - a²) w[k]``, a = exp(-2π f / rate), steady from the start.
    """
    from scipy.signal import lfilter

    a = float(np.exp(-2.0 * np.pi * COLOR_FREQUENCY / rate))
    driven = white[1] * np.sqrt(1.0 - a**2)
    driven[0] = white[1, 0]
    colored = lfilter([1.0], [1.0, -a], driven, axis=0)
    result: Array = np.sqrt(1.0 - COLORED_SHARE) * white[0] + np.sqrt(COLORED_SHARE) * colored
    return result
