"""Parts of a log for training and test: contiguous, because neighbouring samples are not independent."""

from __future__ import annotations

from itertools import pairwise

from jointwise.data.log import Log
from jointwise.errors import DataError


def holdout(log: Log, fraction: float) -> tuple[Log, Log]:
    """Return the first part of a log for training and its last `fraction` (0 < fraction < 1) for test."""
    if not 0.0 < fraction < 1.0:
        raise DataError(f"holdout must be between 0 and 1. Got {fraction} instead.")
    cut = round(log.samples * (1.0 - fraction))
    if not 2 <= cut <= log.samples - 2:
        raise DataError(f"{log.origin.path}: {log.samples} samples are too few to hold out {fraction:g} of them.")
    return log.slice(0, cut), log.slice(cut, log.samples)


def blocks(samples: int, count: int) -> list[slice]:
    """Return `count` contiguous folds of `samples`, as equal as can be."""
    if not 1 <= count <= samples:
        raise DataError(f"folds must be between 1 and the number of samples ({samples}). Got {count} instead.")
    edges = [k * samples // count for k in range(count + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
