"""From a log to a motion on a uniform clock, with every choice in one small record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from jointwise.data.filters import differences, leaky_sum, low_pass, monotone_low_pass
from jointwise.motion import Motion
from jointwise.spatial import Array

TRACK_TIME = 5.0
"""Time constant of `Motion.track` in s: slower drift follows the encoder, faster motion the measured speed."""
ROTOR_CUTOFF = 80.0
"""Cut-off (Hz) of rotor positions that drive hysteresis: their encoders are fine, and smoothing rounds reversals."""
ON_TIME = 1e-6
"""Part of a period within which a stamp counts as on the grid."""


@dataclass(frozen=True)
class Filters:
    """How signals are treated; every number is stored with the model and used again for prediction.

    `rate` (Hz) of the uniform clock; `position_cutoff` (Hz) of the zero-phase low-pass on positions and speeds;
    `parallel_cutoff` (Hz) of the same filter on both sides of the regression, None for none; `decimation` keeps
    every n-th of its rows; `lag` (s): the output at time t belongs to the motion at t + lag (drives answer before the
    encoder shows it).
    """

    rate: float
    position_cutoff: float
    parallel_cutoff: float | None = None
    decimation: int = 1
    lag: float = 0.0


def to_motion(t: Array, q: Array, qd: Array | None, filters: Filters) -> Motion:
    """Return the motion of increasing stamps `t` (samples,) with positions and maybe speeds (samples, joints).

    Positions and speeds are brought to the uniform clock by a cubic spline through the true stamps, smoothed without
    lag, and differentiated by central differences.
    """
    rate, cutoff = filters.rate, filters.position_cutoff
    grid = uniform_times(t, rate)
    raw = resample(t, q, grid)
    smooth = low_pass(raw, cutoff, rate)
    speed, acceleration = differences(smooth, rate)
    path = monotone_low_pass(raw, cutoff, rate)
    if qd is None:
        return Motion(grid[0], rate, smooth, speed, acceleration, path)
    measured = resample(t, qd, grid)
    return Motion(
        start=grid[0],
        rate=rate,
        q=smooth,
        qd=speed,
        qdd=acceleration,
        path=path,
        track=complementary(raw, measured, rate, TRACK_TIME),
        ripple=measured - low_pass(measured, cutoff, rate),
    )


def uniform_times(t: Array, rate: float) -> Array:
    """Return times from the first to the last stamp at `rate` (Hz)."""
    times: Array = t[0] + np.arange(int(np.floor((t[-1] - t[0]) * rate + ON_TIME)) + 1) / rate
    return times


def resample(t: Array, values: Array, times: Array) -> Array:
    """Return values (samples, ...) at other times by a cubic spline, the ends held; as they are at their own times."""
    if len(times) == len(t) and np.abs(times - t).max() < ON_TIME * (t[-1] - t[0]) / len(t):
        return values
    result: Array = CubicSpline(t, values)(np.clip(times, t[0], t[-1]))
    return result


def interpolate(start: float, rate: float, values: Array, times: Array) -> Array:
    """Return uniformly sampled values (samples, columns) at any times, linearly, the ends held."""
    place = np.clip((times - start) * rate, 0.0, len(values) - 1.0)
    left = np.minimum(place.astype(np.intp), max(len(values) - 2, 0))
    right = np.minimum(left + 1, len(values) - 1)
    share = (place - left)[:, None]
    result: Array = values[left] * (1.0 - share) + values[right] * share
    return result


def complementary(q: Array, qd: Array, rate: float, time: float) -> Array:
    """Return a position that follows the integral of a speed quickly and the encoder slowly, causally.

    ``p = x[k-1] + (q̇[k] + q̇[k-1]) / 2 / rate``, ``x[k] = p + a (q[k] - p)`` with ``a = 1 / (rate time)``.
    """
    a = min(1.0 / (rate * time), 1.0)
    step = np.zeros_like(q)
    step[1:] = 0.5 * (qd[1:] + qd[:-1]) / rate
    drive = (1.0 - a) * step + a * q
    drive[0] = q[0]
    return leaky_sum(drive, 1.0 - a)
