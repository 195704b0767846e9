"""Motions that repeat themselves: the period of a log, from its positions.

A motion has the period T if ``q(t + T) = q(t)`` and ``q̇(t + T) = q̇(t)`` at most times t. Errors of a model repeat with
it, so that its repetitions are not independent observations (`estimation.regression`).

The positions and speeds at some times of the motion, the probes, are compared with those of every later time on a
coarse grid. Most of them must agree, not all: a motion starts and ends at rest, and may begin with a move to its first
pose. The period is the first lag at which they agree again after they have differed. It is refined between the points
of the grid, and by its multiples, so that it is precise enough for hundreds of repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar

from jointwise.data.conditioning import CleanLog, clean_log, resample, uniform_times
from jointwise.data.filters import differences, low_pass
from jointwise.data.log import Log
from jointwise.errors import DataError, EstimationError
from jointwise.spatial import Array, Mask

STEP = 0.05
"""Step of the grid, s: a joint turns only by a small part of its motion meanwhile."""
SPAN = 0.2
"""Time over which speeds are differences of positions, s: long against the noise of encoders."""
LONGEST = 1800.0
"""Part of a log that is searched, s; a period holds for the rest of the log."""
PROBES = 192
"""Times that are compared with later ones, evenly spread over the motion."""
LEAST_PROBES = 48
"""Probes with which a lag can be judged."""
LARGEST_LAG = 2.0 / 3.0
"""Longest period as a part of the motion: half of it was recorded twice."""
AGREEING = 0.5
"""Share of the probes that must agree; the others are transients at the ends of the motion."""
DIFFERENT = 0.1
"""Share of the probes below which the motion is another one: what agrees later is a repetition."""
COARSE, FINE = 0.3, 0.1
"""Largest difference of each position and speed over its standard deviation: between points of the grid, refined."""
SMALL = 0.05
"""A joint need not agree if it is slower than this part of the fastest one; slower than this, nothing moves."""
LAGS = 256
"""Lags that are compared at a time: memory stays flat."""

Index = NDArray[np.intp]


def motion_period(clean: CleanLog) -> float | None:
    """Return the period (s) with which the motion of a log repeats itself; None if it does not."""
    grid = _grid(clean)
    lag = None if grid is None else _first_repetition(grid)
    return None if grid is None or lag is None else STEP * _by_multiples(grid, lag)


@dataclass(frozen=True)
class _Grid:
    """The states of a log at multiples of `STEP`.

    Attributes:
        states: Positions and speeds of the joints that move, over their standard deviations, (times, 2 joints).
        measured: Whether a state was measured, not interpolated over a gap, (times,).
        moving: Times in motion, (moving,).
    """

    states: Array
    measured: Mask
    moving: Index

    @cached_property
    def probes(self) -> Index:
        """Times that are compared with later ones."""
        return self.moving[np.linspace(0, len(self.moving) - 1, min(PROBES, len(self.moving))).astype(np.intp)]

    @property
    def largest_lag(self) -> int:
        """Longest period, steps."""
        return int(LARGEST_LAG * (self.moving[-1] - self.moving[0]))

    def differences(self, lags: Array) -> Array:
        """Return the largest difference of a probe from the state some lags (steps) later, (lags, probes).

        NaN where there is no later state.
        """
        later = self.probes + np.floor(lags).astype(np.intp)[:, None]
        ends = np.minimum(later, len(self.states) - 2)
        part = (lags % 1.0)[:, None, None]
        states = self.states[ends]
        if part.any():
            states = (1.0 - part) * states + part * self.states[ends + 1]
        known = (later == ends) & self.measured[ends] & self.measured[ends + 1]
        return np.where(known, np.abs(states - self.states[self.probes]).max(axis=2), np.nan)

    def agreement(self, lags: Array, tolerance: float) -> Array:
        """Return the share of the probes that agree at some lags (steps), zero where too few were measured."""
        found = self.differences(lags)
        count = np.isfinite(found).sum(axis=1)
        return np.where(count < LEAST_PROBES, 0.0, (found < tolerance).sum(axis=1) / np.maximum(count, 1))

    def refined(self, lag: float) -> float | None:
        """Return the lag (steps) less than a step away at which the states agree best; None if they do not."""
        lags = lag + np.linspace(-1.0, 1.0, 41)
        found = np.minimum(np.nan_to_num(self.differences(lags), nan=COARSE), COARSE)
        best = int(np.argmin(np.mean(np.square(found), axis=1)))
        inside = 0 < best < len(lags) - 1
        return float(lags[best]) if inside and self.agreement(lags[[best]], FINE)[0] >= AGREEING else None


def _grid(clean: CleanLog) -> _Grid | None:
    """Return the states of a log; None if it is too short, or hardly anything moves."""
    t = np.asarray(clean.log.t[clean.kept]) - clean.log.t[0]
    times = np.arange(t[0] + 0.5 * SPAN, min(t[-1], t[0] + LONGEST) - 0.5 * SPAN, STEP)
    if len(times) < LEAST_PROBES:
        return None
    before, after = (_positions(clean, t, times + side) for side in (-0.5 * SPAN, 0.5 * SPAN))
    speed = (after - before) / SPAN
    size = np.sqrt(np.mean(np.square(speed), axis=0))
    joints = size > SMALL * size.max(initial=0.0)
    speed, position = speed[:, joints] / size[joints], 0.5 * (before + after)[:, joints]
    measured = _measured(clean, t, times)
    moving = np.flatnonzero(measured & (np.abs(speed) > SMALL).any(axis=1))
    if len(moving) < LEAST_PROBES:
        return None
    return _Grid(np.hstack([position / position.std(axis=0), speed]), measured, moving)


def _positions(clean: CleanLog, t: Array, times: Array) -> Array:
    """Return the positions (times, joints) of a log with the stamps t by linear interpolation."""
    right = np.clip(np.searchsorted(t, times), 1, len(t) - 1)
    share = ((times - t[right - 1]) / (t[right] - t[right - 1]))[:, None]
    q, kept = clean.log.q, clean.kept
    result: Array = (1.0 - share) * q[kept[right - 1]] + share * q[kept[right]]
    return result


def _measured(clean: CleanLog, t: Array, times: Array) -> Mask:
    """Return whether the span about a time lies within one segment, (times,)."""
    first, last = np.array([[t[segment.start], t[segment.stop - 1]] for segment in clean.segments]).T
    segment = np.searchsorted(last, times + 0.5 * SPAN)
    result: Mask = np.append(first, np.inf)[segment] <= times - 0.5 * SPAN
    return result


def _first_repetition(grid: _Grid) -> float | None:
    """Return the first lag (steps) at which the motion agrees with itself again."""
    different = False
    for first in range(1, grid.largest_lag, LAGS):
        lags = np.arange(first, min(first + LAGS, grid.largest_lag), dtype=float)
        for lag, share in zip(lags, grid.agreement(lags, COARSE), strict=True):
            different = different or share < DIFFERENT
            found = grid.refined(lag) if different and share >= AGREEING else None
            if found is not None:
                return found
    return None


def _by_multiples(grid: _Grid, lag: float) -> float:
    """Return a period (steps) from the largest of its multiples 2, 4, 8 ... at which the motion still agrees."""
    multiple = 2
    while multiple * lag < grid.largest_lag:
        found = grid.refined(multiple * lag)
        if found is None:
            break
        lag, multiple = found / multiple, 2 * multiple
    return lag


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
