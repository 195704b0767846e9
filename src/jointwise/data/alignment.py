"""Two logs of the same motion, without and with a payload, on one clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar

from jointwise.data.conditioning import clean_log, resample, uniform_times
from jointwise.data.filters import differences, low_pass
from jointwise.data.log import Log
from jointwise.errors import DataError, EstimationError
from jointwise.spatial import Array

CUTOFF = 5.0
"""Cut-off frequency (Hz) of positions and currents: a payload acts slowly, ripple and noise do not matter."""
MAX_RATE = 200.0
"""Highest rate (Hz) of the common clock: forty times the cut-off frequency."""
MAX_MISMATCH = (0.005, 0.01)
"""Largest rms difference of two motions: rad, plus a fraction of the standard deviation of the position."""
MIN_OVERLAP = 0.5
"""Fraction of the shorter log that both must cover."""


@dataclass(frozen=True, eq=False)
class MotionPair:
    """A motion recorded twice; arrays (samples, joints), filtered alike, in rad, rad/s, rad/s², A.

    Attributes:
        names: Files without and with payload.
        rate: Rate of the common clock, Hz.
        offset: Delay of the motion in the loaded log, s.
        mismatch: Difference of the two motions (joints,), rad rms.
        before: Motion (q, q̇, q̈) without payload.
        after: Motion with payload.
        unloaded: Currents without payload.
        loaded: Currents with payload.
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
        return self.loaded - self.unloaded

    @property
    def speed(self) -> Array:
        """Mean speed of the two runs (samples, joints), rad/s."""
        return 0.5 * (self.before[1] + self.after[1])


def align_pair(unloaded: Log, loaded: Log, cutoff: float = CUTOFF) -> MotionPair:
    """Return two logs of the same motion on the clock of the first.

    Args:
        unloaded: Log without payload.
        loaded: Log with payload.
        cutoff: Cut-off frequency of positions and currents, Hz.

    Raises:
        DataError: If a log has no currents, or the numbers of joints differ.
        EstimationError: If the motions differ.
    """
    first, second = (_longest_segment(log) for log in (unloaded, loaded))
    names = (unloaded.origin.path, loaded.origin.path)
    if first.joints != second.joints:
        raise DataError(f"{names[1]}: {second.joints} joints, {first.joints} in {names[0]}.")
    rate = min(MAX_RATE, *(1.0 / float(np.median(np.diff(log.t))) for log in (first, second)))
    offset = find_offset(first.t, first.q, second.t, second.q, rate)
    t = _common_times(first.t, second.t, offset, rate)
    positions = resample(first.t, first.q, t), resample(second.t, second.q, t + offset)
    mismatch = np.sqrt(np.mean((positions[0] - positions[1]) ** 2, axis=0))
    _check_same_motion(names, mismatch, positions[0])
    currents = [resample(log.t, log.channel("current"), t + s) for log, s in ((first, 0.0), (second, offset))]
    before, after = (_motion(q, cutoff, rate) for q in positions)
    unloaded_current, loaded_current = (low_pass(current, cutoff, rate) for current in currents)
    return MotionPair(names, rate, offset, mismatch, before, after, unloaded_current, loaded_current)


def find_offset(t: Array, q: Array, other_t: Array, other_q: Array, rate: float) -> float:
    """Return the s for which ``other(t + s)`` is nearest to ``q(t)`` in the mean square, to a fraction of a sample."""
    grid, other_grid = uniform_times(t, rate), uniform_times(other_t, rate)
    shift = _coarse_shift(resample(t, q, grid), resample(other_t, other_q, other_grid))
    start = other_grid[0] - grid[0] + shift / rate
    spline, other = CubicSpline(t, q), CubicSpline(other_t, other_q)
    times = _common_times(t, other_t, start, rate, margin=2.0 / rate)

    def distance(s: float) -> float:
        return float(np.mean((spline(times) - other(times + s)) ** 2))

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
    enough = overlap >= MIN_OVERLAP * min(n, m)
    return int(shifts[np.argmin(np.where(enough, total / np.maximum(overlap, 1), np.inf))])


def _common_times(t: Array, other_t: Array, offset: float, rate: float, margin: float = 0.0) -> Array:
    """Return times of the first clock at which both logs have samples."""
    begin = max(t[0], other_t[0] - offset) + margin
    end = min(t[-1], other_t[-1] - offset) - margin
    return uniform_times(np.array([begin, end]), rate)


def _motion(q: Array, cutoff: float, rate: float) -> tuple[Array, Array, Array]:
    smooth = low_pass(q, cutoff, rate)
    return smooth, *differences(smooth, rate)


def _longest_segment(log: Log) -> Log:
    """Return the longest segment of a log without a gap in its clock."""
    log.channel("current")
    clean = clean_log(log)
    longest = max(clean.segments, key=lambda part: part.stop - part.start)
    return log.take(clean.kept[longest], "longest segment")


def _check_same_motion(names: tuple[str, str], mismatch: Array, q: Array) -> None:
    constant, fraction = MAX_MISMATCH
    allowed = constant + fraction * q.std(axis=0)
    if (mismatch > allowed).any():
        joint = int(np.argmax(mismatch / allowed))
        raise EstimationError(
            f"{names[0]} and {names[1]}: not the same motion: joint {joint + 1} differs by {mismatch[joint]:.3g} rad "
            f"rms, more than {allowed[joint]:.2g}. Record the same program twice, without and with the payload."
        )
