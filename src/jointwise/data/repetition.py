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

from jointwise.data.conditioning import CleanLog
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
