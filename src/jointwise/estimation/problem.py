"""From recordings and a model to factors: the only file that sees both the model and the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.data.clock import examine_clock
from jointwise.data.conditioning import ROTOR_CUTOFF, Filters, interpolate, resample, to_motion
from jointwise.data.filters import decimate, decimation_taps, monotone_low_pass, settling_time
from jointwise.data.log import Log
from jointwise.errors import DataError
from jointwise.estimation.coupled import Layout
from jointwise.estimation.factors import JointFactors
from jointwise.model.dynamics import Dynamics, joint_signals
from jointwise.model.terms import Term
from jointwise.motion import Motion
from jointwise.spatial import Array

STILL_WEIGHT = 0.3
"""Weight of samples at which a joint stands: what friction holds there is not told by the motion."""
STILL_PART = 0.02
"""A joint stands below this part of its greatest speed."""
RUN_IN = 10.0
"""Seconds before a stretch that hysteresis and filters see without being counted."""
CHUNK = 60_000
"""Samples of a log that are in memory at a time."""
PIECES = 24
"""Stretches of time that a log is cut into for cross-validation and intervals."""

SHORTEST_SEGMENT = 64
"""Samples that a stretch between gaps must have to be used."""

EXCERPT = 60_000
"""Samples of all recordings together that choices are made on; the numbers then come from all of them."""
WINDOWS = 6
"""Pieces, evenly spread over a recording, that an excerpt is made of."""

Index = NDArray[np.intp]
LoadOf = Callable[[list[Array]], Array]
RowWeights = Callable[["Stretch", Index, list[Array], Array | None], Array]


@dataclass(frozen=True)
class Recording:
    """A log made ready: its measured output, and the stretches without gaps in which time runs forward.

    `output` (samples, joints) is the measured torque (Nm) or current (A); `keep` the samples that stay, `segments`
    slices of the kept ones.
    """

    log: Log
    output: Array
    keep: NDArray[np.intp]
    segments: tuple[slice, ...]
    period: float

    @cached_property
    def fastest(self) -> Array:
        """Greatest speed of each joint over 0.1 s, rad/s, shape (joints,)."""
        step = max(int(0.1 / self.period), 1)
        top = np.zeros(self.log.joints)
        for segment in self.segments:
            for first in range(segment.start, segment.stop, CHUNK):
                chosen = self.keep[first : min(first + CHUNK + step, segment.stop) : step]
                if len(chosen) > 1:
                    speed = np.abs(np.diff(self.log.q[chosen], axis=0)) / np.diff(self.log.t[chosen])[:, None]
                    top = np.maximum(top, speed.max(axis=0))
                self.log.release()
        return top

    @cached_property
    def samples(self) -> int:
        """Number of samples in the segments."""
        return sum(segment.stop - segment.start for segment in self.segments)

    def excerpt(self, share: float) -> Recording:
        """Return the recording cut down to a share of every segment: windows evenly spread over it."""
        parts = [_windows(segment, share) for segment in self.segments]
        return replace(self, segments=tuple(part for own in parts for part in own))


def record(log: Log, channel: str) -> Recording:
    """Return a log made ready for its measured `channel` (torque or current).

    Repeated stamps, and rows that repeat the positions before them while the arm moves (a host reading faster than the
    controller writes), are left out; reversed stamps are refused; gaps cut the log into segments.
    """
    clock = examine_clock(log)
    if clock.faulty is not None:
        raise DataError(f"{log.origin.path}: {clock.faulty.message} {clock.faulty.advice}")
    stay = np.ones(log.samples, dtype=bool)
    stay[clock.repeated] = False
    stay &= ~_stale_rows(log)
    keep = np.flatnonzero(stay)
    edges = np.unique(np.searchsorted(keep, [0, *clock.gaps, log.samples]))
    parts = tuple(slice(int(a), int(b)) for a, b in pairwise(edges))
    segments = tuple(part for part in parts if part.stop - part.start >= SHORTEST_SEGMENT)
    if not segments:
        raise DataError(f"{log.origin.path}: no stretch of {SHORTEST_SEGMENT} samples without a gap.")
    return Recording(log, log.channel(channel), keep, segments, clock.median_step)


def _windows(segment: slice, share: float) -> list[slice]:
    """Return up to `WINDOWS` slices of a segment that hold a share of it, none shorter than a segment may be."""
    length = segment.stop - segment.start
    count = max(1, min(WINDOWS, int(share * length) // SHORTEST_SEGMENT))
    edges = np.linspace(segment.start, segment.stop, count + 1).astype(int).tolist()
    return [slice(a, max(a + int(share * (b - a)), min(a + SHORTEST_SEGMENT, b))) for a, b in pairwise(edges)]


def _stale_rows(log: Log) -> NDArray[np.bool_]:
    """Return which rows repeat all positions of the row before while the arm moves; none if they are the rule."""
    same = np.zeros(log.samples, dtype=bool)
    for first in range(0, log.samples, CHUNK):
        q = log.q[first : first + CHUNK + 1]
        same[first + 1 : first + len(q)] = (q[1:] == q[:-1]).all(axis=1)
        log.release()
    near = np.zeros(log.samples, dtype=bool)
    near[1:-1] = ~same[:-2] & ~same[2:]
    stale = same & near
    return stale if stale.mean() < 0.2 else np.zeros(log.samples, dtype=bool)


@dataclass(frozen=True)
class Stretch:
    """A contiguous piece of a recording on the uniform clock; only the samples `inner` count (kept samples `rows`).

    `outputs` (lags, samples, joints) is what was measured, once for each lag asked for; `weights` (samples, joints)
    are those of the rows.
    """

    motion: Motion
    outputs: Array
    weights: Array
    inner: slice
    rows: slice


def stretches(recording: Recording, filters: Filters, lags: Sequence[float] | None = None) -> Iterator[Stretch]:
    """Yield a recording piece by piece, each with enough run-in for filters and hysteresis to settle."""
    lags = (filters.lag,) if lags is None else lags
    before = int(RUN_IN / recording.period)
    after = int(settling_time(filters.position_cutoff) / recording.period)
    started = False
    for segment in recording.segments:
        for first in range(segment.start, segment.stop, CHUNK):
            last = min(first + CHUNK, segment.stop)
            if segment.stop - last < CHUNK // 10:
                last = segment.stop
            span = slice(max(first - before, segment.start), min(last + after, segment.stop))
            stretch = _stretch(recording, filters, lags, span, slice(first, last), started)
            started = started or bool((stretch.weights > 0.0).any())
            recording.log.release()
            yield stretch
            if last == segment.stop:
                break


def _stretch(
    recording: Recording, filters: Filters, lags: Sequence[float], span: slice, inner: slice, started: bool
) -> Stretch:
    rows = recording.keep[span]
    log, t = recording.log, np.asarray(recording.log.t[rows])
    motion = to_motion(t, np.asarray(log.q[rows]), None if log.qd is None else np.asarray(log.qd[rows]), filters)
    if log.theta is not None:
        rotor = resample(t, np.asarray(log.theta[rows]), motion.t)
        motion = replace(motion, rotor=monotone_low_pass(rotor, ROTOR_CUTOFF, filters.rate))
    if log.temperature is not None:
        motion = replace(motion, temperature=_at_times(t, np.asarray(log.temperature[rows]), motion.t))
    output = np.asarray(recording.output[rows])
    outputs = np.stack([resample(t, output, motion.t - lag) for lag in lags])
    first, last = (recording.log.t[recording.keep[k]] for k in (inner.start, inner.stop - 1))
    begin = int(np.ceil((first - motion.start) * filters.rate - 1e-6))
    end = int(np.floor((last - motion.start) * filters.rate + 1e-6)) + 1
    weights = motion_weights(motion, recording.fastest, started)
    return Stretch(motion, outputs, weights, slice(max(begin, 0), min(end, motion.samples)), inner)


def _at_times(t: Array, values: Array, times: Array) -> Array:
    """Return slow values (samples, joints) at other times by lines: a spline would swing at the steps of a sensor."""
    return np.column_stack([np.interp(times, t, own) for own in values.T])


def motion_weights(motion: Motion, fastest: Array, started: bool = False) -> Array:
    """Return row weights (samples, joints): 1 in motion, `STILL_WEIGHT` at rest, 0 before anything has moved."""
    moving = np.abs(motion.qd) > np.maximum(STILL_PART * fastest, 1e-9)
    width = max(int(0.05 * motion.rate), 1)
    near = np.column_stack([np.convolve(m, np.ones(2 * width + 1), "same") > 0.5 for m in moving.T])
    weights = np.where(near, 1.0, STILL_WEIGHT)
    if not started:
        first = np.flatnonzero(moving.any(axis=1))
        weights[: first[0] if first.size else len(weights)] = 0.0
    return weights


@dataclass(frozen=True)
class Problem:
    """Recordings under one treatment of signals, and the bodies of the robot that made them."""

    recordings: tuple[Recording, ...]
    bodies: Dynamics
    filters: Filters

    @property
    def has_speed(self) -> bool:
        """Whether every log has a measured speed."""
        return all(recording.log.qd is not None for recording in self.recordings)

    @property
    def has_rotor(self) -> bool:
        """Whether every log has the position of the rotors."""
        return all(recording.log.theta is not None for recording in self.recordings)

    @property
    def period(self) -> float:
        """Median sampling period, s."""
        return float(np.median([recording.period for recording in self.recordings]))

    def greatest_ripple(self) -> Array:
        """Return the greatest speed ripple of each joint, rad/s, glitches (beyond the 99.9 % quantile) left out."""
        top = np.zeros(self.bodies.robot.dof)
        for recording in self.recordings:
            for stretch in stretches(recording, self.filters):
                if stretch.motion.ripple is not None:
                    top = np.maximum(top, np.quantile(np.abs(stretch.motion.ripple), 0.999, axis=0))
        return top

    def layout(self, terms: Sequence[Term]) -> Layout:
        """Return where the columns [Y_b | terms] of every joint stand in one vector, the same terms at each joint."""
        own = [parameter.non_negative for term in terms for parameter in term.parameters()]
        base, joints = self.bodies.base.count, self.bodies.robot.dof
        index = [
            np.concatenate([which, base + j * len(own) + np.arange(len(own))])
            for j, (_, which) in enumerate(self.bodies.rigid_places)
        ]
        return Layout(index, np.array([False] * base + own * joints))

    def excerpt(self) -> Problem:
        """Return the problem on at most `EXCERPT` samples, enough to choose by; itself if it has no more."""
        total = sum(recording.samples for recording in self.recordings)
        if total <= EXCERPT:
            return self
        return replace(self, recordings=tuple(own.excerpt(EXCERPT / total) for own in self.recordings))

    def treated(self, **changes: Any) -> Problem:
        """Return the same recordings under changed filters."""
        return replace(self, filters=replace(self.filters, **changes))

    def factors(
        self,
        terms: Sequence[Sequence[Term]],
        load_of: LoadOf | None = None,
        row_weights: RowWeights | None = None,
    ) -> list[JointFactors]:
        """Return the factors of [Y_b | terms | y] of every joint.

        `load_of` gives the load torque (samples, joints) from the rigid columns; `row_weights` multiplies the weights
        of the rows (robust fits).
        """
        return self.lagged_factors(terms, (self.filters.lag,), load_of, row_weights)[0]

    def lagged_factors(
        self,
        terms: Sequence[Sequence[Term]],
        lags: Sequence[float],
        load_of: LoadOf | None = None,
        row_weights: RowWeights | None = None,
    ) -> list[list[JointFactors]]:
        """Return the factors for several lags (s) of the output at once; the columns are computed only once."""
        factors = [[JointFactors() for _ in terms] for _ in lags]
        total = sum(recording.samples for recording in self.recordings)
        for recording in self.recordings:
            for stretch in stretches(recording, self.filters, lags):
                needed = self._needed(stretch)
                rigid = self.bodies.rigid_columns(_states(stretch.motion, needed))
                load = None if load_of is None else _at_all(load_of(rigid), needed, stretch.motion.samples)
                weights = stretch.weights[needed]
                if row_weights is not None:
                    weights = weights * row_weights(stretch, needed, rigid, load)
                pieces = max(1, round(PIECES * (stretch.rows.stop - stretch.rows.start) / total))
                for j, own_terms in enumerate(terms):
                    own = term_columns(own_terms, stretch.motion, j, load)[:, needed]
                    series = np.concatenate([rigid[j], own, stretch.outputs[:, needed, j]])
                    rows, kept = _rows(series, needed, stretch.inner, self.filters)
                    _add(factors, j, rows, weights[kept, j], pieces)
        return factors

    def _needed(self, stretch: Stretch) -> Index:
        """Return the samples whose columns are needed: those that make rows, all of them under a parallel filter."""
        if self.filters.parallel_cutoff is not None:
            return np.arange(stretch.motion.samples)
        first = -(-stretch.inner.start // self.filters.decimation) * self.filters.decimation
        return np.arange(first, stretch.inner.stop, self.filters.decimation)


def _states(motion: Motion, needed: Index) -> Motion:
    """Return some samples of a motion, whose bodies' torques hang on nothing but q, q̇ and q̈ at each."""
    if len(needed) == motion.samples:
        return motion
    return Motion(motion.start, motion.rate, motion.q[needed], motion.qd[needed], motion.qdd[needed])


def _at_all(load: Array, needed: Index, samples: int) -> Array:
    """Return load torques (needed, joints) at all samples: exact where they are needed, a line between."""
    if len(needed) == samples:
        return load
    places = np.arange(samples)
    return np.column_stack([np.interp(places, needed, own) for own in load.T])


def term_columns(terms: Sequence[Term], motion: Motion, joint: int, load: Array | None) -> Array:
    """Return the columns of a joint's terms as series, (count, samples)."""
    signals = joint_signals(motion, joint, load)
    columns = [term.columns(signals)[0].T for term in terms]
    return np.concatenate(columns) if columns else np.empty((0, motion.samples))


def _rows(series: Array, needed: Index, inner: slice, filters: Filters) -> tuple[Array, Index]:
    """Return rows [W | y ...] that count, filtered in parallel and decimated, and their places in `needed`."""
    if filters.parallel_cutoff is None:
        return series.T, np.arange(len(needed))
    taps = decimation_taps(filters.parallel_cutoff, filters.rate)
    series = np.stack([decimate(values, taps, filters.decimation) for values in series])
    kept = needed[:: filters.decimation]
    inside = (kept >= inner.start) & (kept < inner.stop)
    return series[:, inside].T, kept[inside]


def _add(factors: list[list[JointFactors]], joint: int, rows: Array, weights: Array, pieces: int) -> None:
    lags = len(factors)
    width = rows.shape[1] - lags
    for piece in np.array_split(np.arange(len(rows)), pieces):
        shared = JointFactors()
        shared.add(rows[piece], weights[piece])
        for lag, own in enumerate(factors):
            y = rows[piece, width + lag]
            own[joint].append(shared.triangles[0][:, [*range(width), width + lag]], weights[piece], y)


def completed(motion: Motion) -> Motion:
    """Return a motion whose terms can do without a measured speed or rotor: both follow the path, without ripple."""
    path = motion.q if motion.path is None else motion.path
    if motion.track is None:
        motion = replace(motion, track=path, ripple=np.zeros_like(motion.q))
    return motion if motion.rotor is not None else replace(motion, rotor=path)


def predicted_pieces(
    model: Dynamics, values: Array, recording: Recording, filters: Filters, gains: Array
) -> Iterator[tuple[slice, Array]]:
    """Yield the predicted output piece by piece: samples of the log, and (samples, joints) in the measurement's unit.

    Stamps that conditioning left out (repeated or out of order) get the value at their time too: no sample is missing.
    """
    done = 0
    for stretch in stretches(recording, filters):
        torque = model.torque(completed(stretch.motion), values) / gains
        last = stretch.rows.stop == recording.segments[-1].stop
        piece = slice(done, recording.log.samples if last else int(recording.keep[stretch.rows.stop]))
        times = np.asarray(recording.log.t[piece]) + filters.lag
        yield piece, interpolate(stretch.motion.start, filters.rate, torque, times)
        done = piece.stop
