"""Whether two logs share samples, whatever their files are: training data must not pass for held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jointwise.data.log import Log
from jointwise.errors import DataError
from jointwise.spatial import Array

Hashes = NDArray[np.uint64]

CHUNK = 65536
RESOLUTION = 1e-4
"""Rad, A or Nm to which samples are compared: copies in single precision or with fewer decimals agree, while the noise
of two recordings differs by more in some of the channels."""
SKETCH = 2048
"""Hashes of a log that its sketch keeps: 40 kB in a model file, and one in every 12 samples of a log of 25,000."""
FEWEST_SHARED = 10
"""Shared samples below this are chance: two noise-free recordings may begin at rest in one posture."""
FEWEST_HASHES = 2
"""Hashes of a sketch that must be found; one may be that of a posture at rest."""
EXACT = 2**53
"""Integers below this are exact in every JSON reader."""


@dataclass(frozen=True)
class Sketch:
    """The smallest hashes of the samples of a log, and the number of its distinct samples."""

    hashes: tuple[int, ...] = field(repr=False)
    distinct: int

    def __post_init__(self) -> None:
        """Reject numbers that no sketch has."""
        if not all(0 <= value < EXACT for value in (*self.hashes, self.distinct)):
            raise ValueError(f"hashes and their number must be at least 0 and below {EXACT}")


def sample_hashes(log: Log, output: str) -> Hashes:
    """Return one hash for every distinct sample of a log, sorted; from positions and the measured output.

    Stamps, file format, column names and other channels do not count. Equal samples (a noise-free arm at rest) have
    one hash.
    """
    parts = []
    for first in range(0, log.samples, CHUNK):
        channels = (log.q[first : first + CHUNK], log.channel(output)[first : first + CHUNK])
        parts.append(np.unique(_hashed(np.concatenate(channels, axis=1))))
        log.release()
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.uint64)


def shared_fraction(log: Log, others: Sequence[Log], output: str) -> float:
    """Return the fraction of the distinct samples of a log that also are in some of the other logs; 0 for chance."""
    mine = sample_hashes(log, output)
    found = np.zeros(len(mine), dtype=bool)
    for other in others:
        found |= np.isin(mine, sample_hashes(other, output), assume_unique=True)
    return float(found.mean()) if found.sum() >= FEWEST_SHARED else 0.0


def refuse_repeated_samples(logs: Sequence[Log]) -> None:
    """Reject logs of one estimate that share samples, in whatever files: they would count twice and narrow intervals.

    Logs are compared by positions and current, or torque where there is no current; logs without both are not compared.

    Raises:
        DataError: A log has samples of those before it.
    """
    for k, log in enumerate(logs):
        for output in ("current", "torque"):
            before = [other for other in logs[:k] if output in other.available]
            shared = shared_fraction(log, before, output) if before and output in log.available else 0.0
            if shared > 0.0:
                raise DataError(
                    f"{log.origin.path}: {max(round(100 * shared), 1)} % of its samples are in the logs before it and "
                    "would count twice. Leave one of them out."
                )


def sketch(log: Log, output: str) -> Sketch:
    """Return the `SKETCH` smallest hashes of a log, by which a model file recognises its training data."""
    hashes = sample_hashes(log, output)
    return Sketch(tuple(hashes[:SKETCH].tolist()), len(hashes))


def sketched_fraction(log: Log, known: Sequence[Sketch], output: str) -> float:
    """Return about which fraction of the distinct samples of a log is in logs of which only the sketches are known.

    A sketch lists all hashes of a log up to its largest one: hashes of the second log below it are compared one by
    one. Fractions of several sketches add up; 0 for chance.
    """
    mine = sample_hashes(log, output)
    return min(sum(_found(mine, each) for each in known), 1.0)


def _found(mine: Hashes, known: Sketch) -> float:
    """Return about which fraction of some hashes belongs to a log with a known sketch."""
    if not known.hashes:
        return 0.0
    complete = len(known.hashes) >= known.distinct
    comparable = mine if complete else mine[mine <= np.uint64(max(known.hashes))]
    found = int(np.isin(comparable, np.array(known.hashes, dtype=np.uint64), assume_unique=True).sum())
    shared = found * known.distinct / len(known.hashes)
    return found / len(comparable) if found >= FEWEST_HASHES and shared >= FEWEST_SHARED else 0.0


def _hashed(rows: Array) -> Hashes:
    """Return a hash below `EXACT` of every row (rows, columns), the same for values equal to `RESOLUTION`."""
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = np.nan_to_num(np.round(rows / RESOLUTION), nan=-1.0)
    bits = np.ascontiguousarray(numbers + 0.0).view(np.uint64)
    value = np.full(len(bits), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in bits.T:
        value = (value ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        value ^= value >> np.uint64(29)
    return value % np.uint64(EXACT)
