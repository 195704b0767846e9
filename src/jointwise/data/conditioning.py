"""The signal path of every command: from a log to motions on a uniform clock.

1. `clean_log` drops samples with a repeated stamp and samples that repeat the positions of the one before while the
   arm moves, rejects stamps that run backwards, and divides the log into gap-free segments.
2. `UniformSpan` brings channels of a part of a segment to the uniform clock by a cubic spline through the true stamps.
3. `condition` smooths positions without lag and differentiates them; it adds the path that drives hysteresis, the
   tracked position, the speed ripple, the rotor positions and the temperature where the log has them.

Stamps count from the first one of the log: a clock that counts from 1970 leaves no digits for a spline otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from jointwise.backend import native
from jointwise.data.clock import forward_samples
from jointwise.data.filters import differences, leaky_sum, low_pass, monotone_low_pass, settling_time
from jointwise.data.log import RUN_IN, Log
from jointwise.errors import DataError
from jointwise.motion import Motion
from jointwise.spatial import Array

TRACK_TIME = 5.0
"""Time constant of `Motion.track` in s: slower drift follows the encoder, faster motion the measured speed."""
ROTOR_CUTOFF = 80.0
"""Cut-off (Hz) of rotor positions that drive hysteresis: their encoders are fine, and smoothing rounds reversals."""
ON_TIME = 1e-6
"""Part of a period within which a stamp counts as on the uniform clock."""
CHUNK = 60_000
"""Samples of a log that are in memory at a time."""
KEPT_MOTIONS = 4
"""Filters whose motions of a short log are kept: the selected ones, their neighbours, and those of the set-up check.
Of a log of `CHUNK` samples half as many are kept."""
SHORTEST_SEGMENT = 64
"""Samples that a segment must have to be used."""
MAX_STALE = 0.2
"""Share of samples that repeat their positions above which they are the resolution of the encoder, not stale."""
WINDOWS = 6
"""Windows, evenly spread over a segment, that an excerpt of it consists of."""
SPEED_WINDOW = 0.1
"""Duration (s) over which the greatest speed of a joint is measured."""

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Filters:
    """How signals are conditioned; stored with a model and used again for prediction.

    Attributes:
        rate: Rate of the uniform clock, Hz.
        position_cutoff: Cut-off of the zero-phase low-pass filter on positions and speeds, Hz.
        parallel_cutoff: Cut-off of the same filter on both sides of the regression, Hz; None for none.
        decimation: Every n-th row of the regression is used.
        lag: The output at time t belongs to the motion at t + lag, s: drives act before the encoder shows it.
    """

    rate: float
    position_cutoff: float
    parallel_cutoff: float | None = None
    decimation: int = 1
    lag: float = 0.0


@dataclass(frozen=True, eq=False)
class CleanLog:
    """A log without repeated and stale samples, divided into gap-free segments.

    Attributes:
        log: The log.
        kept: Its samples that remain, (kept,).
        segments: Gap-free slices of `kept`.
        period: Sampling period, s.
    """

    log: Log
    kept: Index
    segments: tuple[slice, ...]
    period: float

    @cached_property
    def fastest(self) -> Array:
        """Greatest speed of each joint over `SPEED_WINDOW`, rad/s, shape (joints,)."""
        return self.fastest_along(None)

    def fastest_along(self, matrix: Array | None) -> Array:
        """Return the greatest speeds over `SPEED_WINDOW` of the positions, or of ``matrix @ q``, rad/s, (joints,)."""
        speeds = self._speeds[1] if matrix is None else self._speeds[1] @ matrix.T
        return np.asarray(np.abs(speeds).max(axis=0, initial=0.0))

    @cached_property
    def _speeds(self) -> tuple[Index, Array]:
        """Speed (rad/s) of each joint over every `SPEED_WINDOW`, and the position in `kept` at which it ends."""
        step = max(round(SPEED_WINDOW / self.period), 1)
        ends, speeds = [np.empty(0, dtype=np.intp)], [np.empty((0, self.log.joints))]
        for segment in self.segments:
            for first in range(segment.start, segment.stop, CHUNK):
                places = np.arange(first, min(first + CHUNK + step, segment.stop), step)
                rows = self.kept[places]
                speeds.append(np.diff(self.log.q[rows], axis=0) / np.diff(self.log.t[rows])[:, None])
                ends.append(places[1:])
                self.log.release()
        return np.concatenate(ends), np.concatenate(speeds)

    def until_last_motion(self, speed: Array) -> CleanLog:
        """Return the log without what follows the last motion, that of a joint above its `speed` (rad/s)."""
        ends, speeds = self._speeds
        moving = np.flatnonzero((np.abs(speeds) > speed).any(axis=1))
        if not moving.size:
            return self
        last = int(ends[moving[-1]]) + 1
        parts = (slice(segment.start, min(segment.stop, last)) for segment in self.segments)
        return replace(self, segments=tuple(p for p in parts if p.stop - p.start >= SHORTEST_SEGMENT) or self.segments)

    def rests(self, speed: Array, duration: float) -> Index:
        """Return how often each joint stands (below its `speed`, rad/s) for a `duration` (s) between two motions."""
        moving = np.abs(self._speeds[1]) > speed
        windows = duration / (max(round(SPEED_WINDOW / self.period), 1) * self.period)
        return np.array([np.sum(np.diff(np.flatnonzero(column)) > windows) for column in moving.T], dtype=np.intp)

    def from_positions(self) -> CleanLog:
        """Return the log without measured speeds and rotor positions; the same samples remain."""
        return replace(self, log=self.log.without([name for name in ("qd", "theta") if name in self.log.available]))

    @cached_property
    def samples(self) -> int:
        """Number of samples in the segments."""
        return sum(segment.stop - segment.start for segment in self.segments)

    @cached_property
    def motions(self) -> dict[tuple[float, float], tuple[MotionChunk, ...]]:
        """Motions of a short log by rate and position cut-off (Hz); see `motion_chunks`."""
        return {}

    def excerpt(self, share: float) -> CleanLog:
        """Return the log reduced to a share of every segment: windows evenly spread over it."""
        parts = [_windows(segment, share) for segment in self.segments]
        return replace(self, segments=tuple(window for windows in parts for window in windows))

    def span(self, rows: slice, rate: float) -> UniformSpan:
        """Return a part of a segment (a slice of `kept`) on the uniform clock of a rate (Hz)."""
        kept = self.kept[rows]
        t = np.asarray(self.log.t[kept]) - self.log.t[0]
        rounding = 4.0 * float(np.spacing(np.abs(self.log.t[kept[-1]])))
        return UniformSpan(self.log, kept, t, uniform_times(t, rate, rounding), rate, rounding)

    def spans(self, rate: float, shortest: float) -> Iterator[UniformSpan]:
        """Yield the segments of at least `shortest` s on the uniform clock of a rate (Hz)."""
        for segment in self.segments:
            first, last = self.log.t[self.kept[[segment.start, segment.stop - 1]]]
            if last - first >= shortest:
                yield self.span(segment, rate)


def clean_log(log: Log) -> CleanLog:
    """Return a log without repeated and stale samples, divided into gap-free segments.

    Raises:
        DataError: Stamps run backwards, or no segment has `SHORTEST_SEGMENT` samples.
    """
    kept, segments = _rows(log)
    if not segments:
        raise DataError(
            f"{log.origin.path}: no segment of {SHORTEST_SEGMENT} samples without a gap (the log has {log.samples} "
            "samples). Record a longer motion."
        )
    return CleanLog(log, kept, segments, log.clock.median_step)


_CACHE: WeakKeyDictionary[Log, tuple[Index, tuple[slice, ...]]] = WeakKeyDictionary()


def _rows(log: Log) -> tuple[Index, tuple[slice, ...]]:
    """Return the samples that remain and the segments among them, computed once for a log."""
    if log not in _CACHE:
        stay = np.zeros(log.samples, dtype=bool)
        stay[forward_samples(log)] = True
        kept = np.flatnonzero(stay & ~_stale_samples(log))
        edges = np.unique(np.searchsorted(kept, [0, *log.clock.gaps, log.samples]))
        parts = (slice(int(a), int(b)) for a, b in pairwise(edges))
        _CACHE[log] = kept, tuple(part for part in parts if part.stop - part.start >= SHORTEST_SEGMENT)
    return _CACHE[log]


def _stale_samples(log: Log) -> NDArray[np.bool_]:
    """Return which samples repeat all positions of the one before while the arm moves.

    A host that reads faster than the controller writes makes them.
    """
    same = np.zeros(log.samples, dtype=bool)
    for first in range(0, log.samples, CHUNK):
        part = slice(first, first + CHUNK + 1)
        repeats = (np.diff(log.q[part], axis=0) == 0.0).all(axis=1)
        if log.theta is not None:
            repeats &= (np.diff(log.theta[part], axis=0) == 0.0).all(axis=1)
        same[first + 1 : first + 1 + len(repeats)] = repeats
        log.release()
    stale = np.zeros(log.samples, dtype=bool)
    stale[1:-1] = same[1:-1] & ~same[:-2] & ~same[2:]
    return stale if stale.mean() < MAX_STALE else np.zeros(log.samples, dtype=bool)


def _windows(segment: slice, share: float) -> list[slice]:
    """Return up to `WINDOWS` slices of a segment that hold a share of it, none shorter than a segment may be."""
    length = segment.stop - segment.start
    count = max(1, min(WINDOWS, int(share * length) // SHORTEST_SEGMENT))
    edges = np.linspace(segment.start, segment.stop, count + 1).astype(int).tolist()
    return [slice(a, max(a + int(share * (b - a)), min(a + SHORTEST_SEGMENT, b))) for a, b in pairwise(edges)]


@dataclass(frozen=True, eq=False)
class UniformSpan:
    """A gap-free part of a log and its uniform clock.

    Attributes:
        log: The log.
        rows: Its samples in this part, shape (samples,).
        t: Their stamps, s from the first stamp of the log.
        times: The uniform clock, s from the first stamp of the log.
        rate: Rate of the uniform clock, Hz.
        rounding: Error of the stamps by their floating-point representation, s.
    """

    log: Log
    rows: Index
    t: Array
    times: Array
    rate: float
    rounding: float = 0.0

    def resampled(self, channel: Array, delay: float = 0.0) -> Array:
        """Return a channel of the log (log samples, ...) on the uniform clock, `delay` s later.

        Columns that were not measured (NaN) become zero; a spline accepts finite values only.
        """
        times = self.times if delay == 0.0 else self.times - delay
        values = np.asarray(channel[self.rows])
        missing = np.isnan(values[0])
        return resample(self.t, np.where(missing, 0.0, values) if missing.any() else values, times, self.rounding)

    def interpolated(self, channel: Array) -> Array:
        """Return a slow channel (log samples, joints) by linear interpolation: a spline overshoots its steps."""
        values = np.asarray(channel[self.rows])
        return np.column_stack([np.interp(self.times, self.t, column) for column in values.T])


def condition(span: UniformSpan, cutoff: float) -> Motion:
    """Return the motion of a span with a position cut-off in Hz."""
    log, rate = span.log, span.rate
    raw = span.resampled(log.q)
    smooth = low_pass(raw, cutoff, rate)
    speed, acceleration = differences(smooth, rate)
    motion = Motion(rate, smooth, speed, acceleration, monotone_low_pass(raw, cutoff, rate), start=span.times[0])
    if log.qd is not None:
        measured = span.resampled(log.qd)
        track = complementary(raw, measured, rate, TRACK_TIME)
        motion = replace(motion, track=track, ripple=measured - low_pass(measured, cutoff, rate))
    if log.theta is not None:
        theta = span.resampled(log.theta)
        turning = differences(low_pass(theta, cutoff, rate), rate)
        motion = replace(motion, rotor=monotone_low_pass(theta, ROTOR_CUTOFF, rate))
        motion = replace(motion, rotor_speed=turning[0], rotor_acceleration=turning[1])
    if log.temperature is not None:
        motion = replace(motion, temperature=span.interpolated(log.temperature))
    return motion


@dataclass(frozen=True, eq=False)
class MotionChunk:
    """A part of a clean log as a motion.

    Attributes:
        span: The part and its uniform clock.
        motion: Conditioned signals, with margins in which filters and hysteresis settle.
        inner: Samples of the motion that count.
        rows: The kept samples of the log to which `inner` corresponds.
    """

    span: UniformSpan
    motion: Motion
    inner: slice
    rows: slice


def motion_chunks(clean: CleanLog, filters: Filters) -> Iterator[MotionChunk]:
    """Yield a log chunk by chunk, each with enough run-in for filters and hysteresis to settle.

    Motions of a log that fits in memory are kept for the next passes with the same filters.
    """
    if clean.samples > CHUNK:
        yield from _new_chunks(clean, filters)
        return
    key, kept = (filters.rate, filters.position_cutoff), clean.motions
    if key not in kept:
        most = min(KEPT_MOTIONS, KEPT_MOTIONS * CHUNK // (2 * clean.samples))
        for oldest in list(kept)[: max(len(kept) - most + 1, 0)]:
            del kept[oldest]
        kept[key] = tuple(_new_chunks(clean, filters))
    yield from kept[key]


def _new_chunks(clean: CleanLog, filters: Filters) -> Iterator[MotionChunk]:
    """Yield the chunks of `motion_chunks`."""
    before = int(RUN_IN / clean.period)
    after = int(settling_time(filters.position_cutoff) / clean.period)
    for segment in clean.segments:
        for rows in _chunk_rows(segment):
            outer = slice(max(rows.start - before, segment.start), min(rows.stop + after, segment.stop))
            span = clean.span(outer, filters.rate)
            motion = condition(span, filters.position_cutoff)
            first, last = span.t[rows.start - outer.start], span.t[rows.stop - 1 - outer.start]
            begin = int(np.ceil((first - motion.start) * filters.rate - ON_TIME))
            end = int(np.floor((last - motion.start) * filters.rate + ON_TIME)) + 1
            yield MotionChunk(span, motion, slice(max(begin, 0), min(end, motion.samples)), rows)
            clean.log.release()


def _chunk_rows(segment: slice) -> Iterator[slice]:
    """Yield slices of about `CHUNK` samples; a short rest is part of the last one."""
    first = segment.start
    while first < segment.stop:
        last = min(first + CHUNK, segment.stop)
        last = segment.stop if segment.stop - last < CHUNK // 10 else last
        yield slice(first, last)
        first = last


def uniform_times(t: Array, rate: float, rounding: float = 0.0) -> Array:
    """Return times from the first to the last stamp at `rate` (Hz); stamps have a `rounding` error (s)."""
    count = int(np.floor((t[-1] - t[0] + rounding) * rate + ON_TIME)) + 1
    times: Array = t[0] + np.arange(count) / rate
    return times


def resample(t: Array, values: Array, times: Array, rounding: float = 0.0) -> Array:
    """Return values (samples, ...) at other times by a cubic spline, the ends held.

    Where the times are the stamps up to their `rounding` (s), the values are returned as they are.
    """
    if len(times) == len(t) and np.abs(times - t).max() < max(ON_TIME * (t[-1] - t[0]) / len(t), rounding):
        return values
    times, kernel = np.clip(times, t[0], t[-1]), native()
    if kernel is None or len(t) < 4:
        from scipy.interpolate import CubicSpline

        return np.asarray(CubicSpline(t, values)(times))
    result = np.empty((len(times), *values.shape[1:]))
    kernel.cubic_spline(np.ascontiguousarray(t), np.ascontiguousarray(values, dtype=float), times, result)
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
