"""Fewer points for the eye, with every peak kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointwise.spatial import Array


def thin(*series: Array, most: int) -> NDArray[np.intp]:
    """Return at most `most` samples to draw: least and greatest of every series in buckets of equal length.

    `series` (samples,) share their samples; the first and the last sample are kept.
    """
    samples = len(series[0])
    if samples <= most:
        return np.arange(samples)
    buckets = max((most - 2) // (2 * len(series)), 1)
    width = -(-samples // buckets)
    chosen = [np.array([0, samples - 1])]
    for values in series:
        chosen += _extremes(values, width)
    return np.unique(np.concatenate(chosen))


def _extremes(values: Array, width: int) -> list[NDArray[np.intp]]:
    """Return the places of the least and the greatest value of every bucket."""
    missing = -len(values) % width
    padded = np.concatenate([values, np.full(missing, values[-1])]).reshape(-1, width)
    starts = np.arange(len(padded)) * width
    last = len(values) - 1
    return [np.minimum(starts + own, last) for own in (padded.argmin(axis=1), padded.argmax(axis=1))]
