"""Two logs of the same motion, without and with a payload, on one clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar

from jointwise.data.clock import repair_clock
from jointwise.data.conditioning import resample, uniform_times
from jointwise.data.filters import differences, low_pass
from jointwise.data.log import Log
from jointwise.errors import DataError, EstimationError
from jointwise.spatial import Array

CUTOFF = 5.0
"""Cut-off (Hz) of positions and currents: a payload acts slowly, ripple and noise do not matter."""
FASTEST = 200.0
"""Rate (Hz) above which logs are not resampled."""
STANDSTILL = 0.005
"""Largest distance (rad rms) between the motions beside `PART` of their size."""
PART = 0.01
LEAST_OVERLAP = 0.5
"""Part of the shorter log that must be common to both."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A motion done twice; arrays (samples, joints), filtered alike, rad, rad/s, rad/s², A.

    `unloaded` and `loaded` are the currents, `before` and `after` the motions (q, q̇, q̈) without and with payload.
    `offset` (s) is how much later the loaded log shows the same motion, `mismatch` (joints,) rad rms how well.
    """

    names: tuple[str, str]
    rate: float
    offset: float
    mismatch: Array
    before: tuple[Array, Array, Array]
    after: tuple[Array, Array, Array]
    unloaded: Array
    loaded: Array

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.loaded)

    @property
    def difference(self) -> Array:
        """Current with minus current without payload (samples, joints), A."""
        result: Array = self.loaded - self.unloaded
        return result

    @property
    def speed(self) -> Array:
        """Mean speed of the two runs (samples, joints), rad/s."""
        result: Array = 0.5 * (self.before[1] + self.after[1])
        return result


def align_pair(unloaded: Log, loaded: Log, cutoff: float = CUTOFF) -> Pair:
    """Return two logs on the clock of the first; refuse them where they are not the same motion."""
    first, second = (_longest_stretch(log) for log in (unloaded, loaded))
    names = (unloaded.origin.path, loaded.origin.path)
    if first.joints != second.joints:
        raise DataError(f"{names[1]}: {second.joints} joints, {first.joints} in {names[0]}.")
    rate = min(FASTEST, *(1.0 / float(np.median(np.diff(log.t))) for log in (first, second)))
    _refuse_standing(first)
    offset = find_offset(first.t, first.q, second.t, second.q, rate)
    t = _common_times(first.t, second.t, offset, rate)
    positions = resample(first.t, first.q, t), resample(second.t, second.q, t + offset)
    mismatch = np.sqrt(np.mean((positions[0] - positions[1]) ** 2, axis=0))
    _refuse_other_motion(names, mismatch, positions[0])
    currents = _current(first, t), _current(second, t + offset)
    return Pair(
        names=names,
        rate=rate,
        offset=offset,
        mismatch=mismatch,
        before=_motion(positions[0], cutoff, rate),
        after=_motion(positions[1], cutoff, rate),
        unloaded=low_pass(currents[0], cutoff, rate),
        loaded=low_pass(currents[1], cutoff, rate),
    )


def find_offset(t: Array, q: Array, other_t: Array, other_q: Array, rate: float) -> float:
    """Return s such that ``other(t + s)`` is nearest to ``q(t)``: least mean square distance, to a part of a sample."""
    grid, other_grid = uniform_times(t, rate), uniform_times(other_t, rate)
    shift = _coarse_shift(resample(t, q, grid), resample(other_t, other_q, other_grid))
    start = other_grid[0] - grid[0] + shift / rate
    other, own = CubicSpline(other_t, other_q), CubicSpline(t, q)
    times = _common_times(t, other_t, start, rate, margin=2.0 / rate)

    def distance(s: float) -> float:
        return float(np.mean((own(times) - other(times + s)) ** 2))

    around = (start - 1.5 / rate, start + 1.5 / rate)
    return float(minimize_scalar(distance, bounds=around, method="bounded", options={"xatol": 1e-4 / rate}).x)


def _coarse_shift(a: Array, b: Array) -> int:
    """Return the shift k with the least mean of ``(a[i] - b[i + k])²`` over the samples that overlap."""
    middle = a.mean(axis=0)
    a, b = a - middle, b - middle
    n, m = len(a), len(b)
    length = next_fast_len(n + m, real=True)
    spectrum = (np.conj(rfft(a, length, axis=0)) * rfft(b, length, axis=0)).sum(axis=1)
    shifts = np.arange(-n + 1, m)
    cross = irfft(spectrum, length)[shifts]
    first, last = np.maximum(0, -shifts), np.minimum(n, m - shifts)
    power_a, power_b = (np.append(0.0, np.cumsum((x**2).sum(axis=1))) for x in (a, b))
    total = power_a[last] - power_a[first] + power_b[last + shifts] - power_b[first + shifts] - 2.0 * cross
    overlap = last - first
    enough = overlap >= LEAST_OVERLAP * min(n, m)
    return int(shifts[np.argmin(np.where(enough, total / np.maximum(overlap, 1), np.inf))])


def _common_times(t: Array, other_t: Array, offset: float, rate: float, margin: float = 0.0) -> Array:
    """Return times of the first clock at which both logs have samples."""
    begin = max(t[0], other_t[0] - offset) + margin
    end = min(t[-1], other_t[-1] - offset) - margin
    return uniform_times(np.array([begin, end]), rate)


def _motion(q: Array, cutoff: float, rate: float) -> tuple[Array, Array, Array]:
    smooth = low_pass(q, cutoff, rate)
    return smooth, *differences(smooth, rate)


def _current(log: Log, t: Array) -> Array:
    return resample(log.t, log.channel("current"), t)


def _longest_stretch(log: Log) -> Log:
    """Return the longest part of a log without a gap in its clock."""
    repaired = repair_clock(log)
    repaired.log.channel("current")
    longest = max(repaired.clock.segments, key=lambda part: part.stop - part.start)
    if longest.stop - longest.start < 10:
        raise DataError(f"{log.origin.path}: a log must have at least 10 samples without a gap.")
    return repaired.log.slice(longest.start, longest.stop)


def _refuse_standing(log: Log) -> None:
    if np.ptp(log.q, axis=0).max() < 10.0 * STANDSTILL:
        raise EstimationError(f"{log.origin.path}: nothing moves; gains from a payload need a motion of all joints.")


def _refuse_other_motion(names: tuple[str, str], mismatch: Array, q: Array) -> None:
    allowed = STANDSTILL + PART * q.std(axis=0)
    if (mismatch > allowed).any():
        joint = int(np.argmax(mismatch / allowed))
        raise EstimationError(
            f"{names[0]} and {names[1]}: not the same motion: joint {joint + 1} differs by {mismatch[joint]:.3g} rad "
            f"rms, more than {allowed[joint]:.2g}. Record the same program twice, without and with the payload."
        )
