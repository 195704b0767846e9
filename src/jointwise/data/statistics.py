"""Numbers of a log per joint: ranges, speeds, noise, quantisation, repeated and saturated values.

Everything is vectorised. Ranges see every sample; the other numbers of a very long log come from evenly spaced
contiguous windows, so that time and memory do not grow with its length.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jointwise.data.log import Log
from jointwise.spatial import Array

Flags = NDArray[np.bool_]

MOVING_SPEED = 0.02
"""rad/s above which a joint moves."""

STILL_RANGE = 5e-3
"""rad of range below which a joint never moved."""

TOP = 0.999
"""Quantile that stands for the largest of noisy currents."""
BEYOND = 1.2
"""A target is clearly beyond the largest current from this multiple of it on: friction that the controller does not
compensate makes smaller differences."""
NEAR = 0.95
"""A current is at its top from this part of it on."""

_WINDOWS, _WINDOW = 16, 4096
_SPEED_WINDOW = 0.04
_REACH = 0.05
"""Time (s) to both sides over which differences of positions show whether a joint moves: noise is smaller."""
_CHUNK = 32768


@dataclass(frozen=True)
class Window:
    """A contiguous piece of a log with the derivatives of its positions.

    Attributes:
        log: The piece.
        speed: Speeds, (samples, joints), rad/s.
        acceleration: Accelerations, (samples, joints), rad/s².
    """

    log: Log
    speed: Array
    acceleration: Array


def windows(log: Log) -> list[Log]:
    """Return the log in one piece, or evenly spaced windows of a very long one."""
    if log.samples <= _WINDOWS * _WINDOW:
        return [log]
    starts = np.linspace(0, log.samples - _WINDOW, _WINDOWS).astype(int)
    return [log.slice(int(start), int(start) + _WINDOW) for start in starts]


def ranges(log: Log, channel: str) -> tuple[Array, Array]:
    """Return the least and the largest value of a channel per joint, over all samples."""
    lows, highs = [], []
    for chunk in log.chunks(_CHUNK):
        values = chunk.channel(channel)
        lows.append(values.min(axis=0))
        highs.append(values.max(axis=0))
    return np.min(lows, axis=0), np.max(highs, axis=0)


def motion(log: Log, period: float) -> Window:
    """Return speed and acceleration by central differences over about 40 ms on the true stamps.

    ``v[k] = (q[k+m] - q[k-m]) / (t[k+m] - t[k-m])``; the ends are held. The window keeps quantisation out.
    """
    reach = int(np.clip(round(0.5 * _SPEED_WINDOW / period), 1, max(1, (log.samples - 1) // 2))) if period > 0 else 1
    speed = slope(log.t, log.q, reach)
    return Window(log, speed, slope(log.t, speed, reach))


def slope(t: Array, values: Array, reach: int) -> Array:
    """Return the slopes of values (samples, joints) over `reach` samples to both sides; 0 where time stands still."""
    left = np.maximum(np.arange(len(t)) - reach, 0)
    right = np.minimum(np.arange(len(t)) + reach, len(t) - 1)
    span = (t[right] - t[left])[:, None]
    return np.divide(values[right] - values[left], span, out=np.zeros_like(values), where=span > 0)


def standing_joints(log: Log) -> Flags:
    """Return which joints hardly move, (joints,): a range of less than 5 mrad in all but 2 % of the samples."""
    low, high = np.quantile(np.asarray(log.q), (0.01, 0.99), axis=0)
    return np.asarray(high - low < STILL_RANGE)


def moving_samples(log: Log) -> Flags:
    """Return where each joint moves, (samples, joints): by the measured speed, else by differences of positions."""
    if log.qd is not None:
        return np.asarray(np.abs(log.qd) > MOVING_SPEED)
    reach = max(round(_REACH / max(log.clock.median_step, 1e-6)), 1)
    return np.asarray(np.abs(slope(log.t, log.q, reach)) > MOVING_SPEED)


def motion_window(moving: Flags) -> slice | None:
    """Return the samples from the first to the last movement of any joint; None where nothing moves.

    Args:
        moving: Where each joint moves, (samples, joints).

    """
    rows = np.flatnonzero(moving.any(axis=1))
    return slice(int(rows[0]), int(rows[-1]) + 1) if len(rows) > 1 else None


def group_means(group: NDArray[np.intp], size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where means over `size` consecutive rows of the same group begin, (means,), and how many rows each has.

    ``np.add.reduceat(values, cuts) / counts`` are the means; the last mean of a group may have fewer rows.

    Args:
        group: Number of the group of every row, (rows,); rows of a group follow each other.
        size: Rows of a mean.
    """
    edges = np.array([0, *(np.flatnonzero(np.diff(group)) + 1), len(group)])
    cuts = np.concatenate([np.arange(a, b, size) for a, b in pairwise(edges)])
    return cuts, np.diff(np.append(cuts, len(group)))


def noise(values: Array) -> Array:
    """Return the noise level per joint from second differences, robust: 1.48 median|x[k+1] - 2 x[k] + x[k-1]| / √6."""
    if len(values) < 3:
        return np.zeros(values.shape[1])
    second = np.abs(values[2:] - 2.0 * values[1:-1] + values[:-2])
    result: Array = 1.4826 * np.median(second, axis=0) / np.sqrt(6.0)
    return result


def quantum(values: Array) -> Array:
    """Return the quantisation step per joint in the values' unit, 0 where none is seen."""
    return np.array([_quantum(column) for column in values[:20000].T])


def _quantum(column: Array) -> float:
    """Return the largest step of which nearly all distances of neighbouring distinct values are multiples.

    Candidates are quantiles of those distances, since rounding of printed numbers splits some levels in two.
    """
    gaps = np.diff(np.unique(column))
    gaps = gaps[gaps > 1e-12 * max(1.0, float(np.abs(column).max()))]
    if len(gaps) < 3:
        return float(gaps.min(initial=np.inf)) if len(gaps) else 0.0
    for candidate in np.quantile(gaps, (0.5, 0.25, 0.05, 0.0)):
        near = gaps[gaps < 20.0 * candidate] / candidate
        if np.mean(np.abs(near - np.round(near)) < 0.15) > 0.9 and np.mean(near < 0.5) < 0.1:
            return float(candidate)
    return 0.0


def longest_frozen(values: Array, moving: Flags) -> Array:
    """Return the longest run of samples per joint in which a value repeats while its joint moves (bool array)."""
    same = (np.diff(values, axis=0) == 0.0) & moving[1:]
    return np.array([longest_run(column) for column in same.T])


def longest_run(flags: Flags) -> int:
    """Return the length of the longest run of True."""
    first, stop = _run_edges(flags)
    return int((stop - first).max(initial=0))


def intervals(flags: Flags) -> list[tuple[int, int]]:
    """Return the ranges (first, one past last) of samples in which flags (samples,) are true."""
    return list(zip(*(ends.tolist() for ends in _run_edges(flags)), strict=True))


def _run_edges(flags: Flags) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first samples (runs,) of the runs of True, and those after their last ones."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return edges[::2], edges[1::2]


def saturated(values: Array, low: Array, high: Array) -> Array:
    """Return the share of samples per joint that pile up at the extreme values.

    Only a pile counts: a run of five or more, and twice as many samples as the 2 % of the range next to it hold, or the
    next value of a channel with coarser steps.
    """
    share = np.zeros(values.shape[1])
    for joint, column in enumerate(values.T):
        span = high[joint] - low[joint]
        for edge, sign in ((high[joint], 1.0), (low[joint], -1.0)):
            distance = sign * (edge - column)
            at = distance == 0.0
            step = float(distance[~at].min(initial=span))
            near = ~at & (distance <= max(0.02 * span, step))
            if span > 0 and longest_run(at) >= 5 and at.sum() > 2 * near.sum():
                share[joint] += float(at.mean())
    return share


def limited(current: Array, target: Array) -> Flags:
    """Return where (samples, joints) a limit holds a current clearly below its target.

    Targets are scaled by the ratio of current to target that smaller targets reach.
    """
    top = np.quantile(np.abs(current), TOP, axis=0)
    inside = np.abs(target) <= top
    squares = np.sum(target**2, axis=0, where=inside)
    usual = np.divide(np.sum(target * current, axis=0, where=inside), squares, out=np.ones_like(top), where=squares > 0)
    more = (np.abs(usual * target) > BEYOND * top) & (target * current > 0.0)
    flags: Flags = more & (np.abs(current) > NEAR * top) & (top > 0.0)
    return flags


def relation(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the slope of y over x through the origin and their correlation, per joint; 0 where one is constant."""
    xx, yy, xy = (x * x).sum(axis=0), (y * y).sum(axis=0), (x * y).sum(axis=0)
    ratio = np.divide(xy, xx, out=np.zeros_like(xy), where=xx > 0)
    match = np.divide(xy, np.sqrt(xx * yy), out=np.zeros_like(xy), where=(xx > 0) & (yy > 0))
    return ratio, match
