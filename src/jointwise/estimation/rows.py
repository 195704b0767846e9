"""Rows of the regression, chunk by chunk: the measured output of a log, the weights of its samples, series of columns.

Row k of joint j is ``[Y_b,j(q, q̇, q̈) | columns of its terms] β = y_j(t_k - lag)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.data.conditioning import CleanLog, Filters, MotionChunk, motion_chunks
from jointwise.data.filters import decimate, decimation_taps
from jointwise.motion import Motion
from jointwise.spatial import Array

STILL_WEIGHT = 0.3
"""Weight of samples at which a joint does not move: static friction is not a function of the motion there."""
STILL_PART = 0.02
"""A joint does not move below this part of its greatest speed."""
NEAR_MOTION = 0.05
"""Samples less than this time (s) from a motion count as motion: the friction is still that of sliding."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A chunk of a log with its measured output: rows of the regression.

    Attributes:
        chunk: The motion of the chunk.
        outputs: Measured output, once for each lag, shape (lags, samples, joints).
        weights: Weights of the samples, shape (samples, joints).
        used: Samples that make rows: every n-th of the inner ones.
        needed: Samples at which columns are needed: those of the rows, or all of them under a parallel filter.

    """

    chunk: MotionChunk
    outputs: Array
    weights: Array
    used: slice
    needed: slice

    @property
    def motion(self) -> Motion:
        """The motion."""
        return self.chunk.motion

    @property
    def count(self) -> int:
        """Number of rows of a joint."""
        return len(range(*self.used.indices(self.motion.samples)))

    @property
    def states(self) -> Motion:
        """The motion at the needed samples; torques of rigid bodies depend on q, q̇ and q̈ of the same sample only."""
        motion, needed = self.motion, self.needed
        return Motion(motion.rate, motion.q[needed], motion.qd[needed], motion.qdd[needed], start=motion.start)

    def of_rows(self, values: Array) -> Array:
        """Return values (needed samples, ...) at the samples that make rows."""
        return values if self.needed == self.used else values[self.used]

    def at_all_samples(self, load: Array) -> Array:
        """Return load torques (needed samples, joints) at all samples: exact where they are needed, linear between."""
        every = np.arange(self.motion.samples)
        if len(load) == len(every):
            return load
        return np.column_stack([np.interp(every, every[self.needed], column) for column in load.T])


RowWeights = Callable[[Rows, list[Array], Array | None], Array]
"""From rows, rigid columns (one matrix a joint) and load torque to weights (needed samples, joints)."""


def regression_rows(clean: CleanLog, output: str, filters: Filters, lags: Sequence[float] = ()) -> Iterator[Rows]:
    """Yield a log chunk by chunk with its measured `output` (torque or current) for some `lags` (s).

    Without lags it is that of the filters. An output that was not measured (NaN) has no weight.
    """
    started, step = False, filters.decimation
    for chunk in motion_chunks(clean, filters):
        channel = clean.log.channel(output)
        outputs = np.stack([chunk.span.resampled(channel, lag) for lag in lags or (filters.lag,)])
        weights = motion_weights(chunk.motion, clean.fastest, started)
        weights[:, clean.log.unmeasured(output)] = 0.0
        started = started or bool((weights > 0.0).any())
        used = slice(-(-chunk.inner.start // step) * step, chunk.inner.stop, step)
        yield Rows(chunk, outputs, weights, used, used if filters.parallel_cutoff is None else slice(None))


def motion_weights(motion: Motion, fastest: Array, started: bool = False) -> Array:
    """Return row weights (samples, joints): 1 in motion, `STILL_WEIGHT` at rest, 0 before anything has moved."""
    moving = np.abs(motion.qd) > np.maximum(STILL_PART * fastest, 1e-9)
    width = max(int(np.ceil(NEAR_MOTION * motion.rate)) - 1, 1)
    near = np.column_stack([np.convolve(m, np.ones(2 * width + 1), "same") > 0.5 for m in moving.T])
    weights = np.where(near, 1.0, STILL_WEIGHT)
    if not started:
        first = np.flatnonzero(moving.any(axis=1))
        weights[: first[0] if first.size else len(weights)] = 0.0
    return weights


def filtered_series(series: Array, used: slice, filters: Filters) -> Array:
    """Return series [W | y ...] (columns, needed samples) at the samples that make rows.

    With a parallel cut-off both sides pass the same low-pass filter and are decimated: M. Gautier, "Dynamic
    identification of robots with power model", IEEE Int. Conf. on Robotics and Automation (ICRA), 1997.
    """
    if filters.parallel_cutoff is None:
        return series
    taps, step = decimation_taps(filters.parallel_cutoff, filters.rate), filters.decimation
    kept = slice(used.start // step, -(-used.stop // step))
    return np.stack([decimate(values, taps, step)[kept] for values in series])
