"""From a motion and a measurement to factors: the only file that sees both the model and the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.data.conditioning import Filters
from jointwise.data.filters import decimate, decimation_taps
from jointwise.estimation.factors import JointFactors
from jointwise.model.dynamics import Dynamics
from jointwise.motion import Motion
from jointwise.spatial import Array

STILL_WEIGHT = 0.3
"""Weight of samples at which a joint stands: what friction holds there is not told by the motion."""
STILL_PART = 0.02
"""A joint stands below this part of its greatest speed."""


@dataclass(frozen=True)
class Stretch:
    """A contiguous piece of a log on the uniform clock: motion, measured output in torque units, row weights.

    `output` and `weights` are (samples, joints); `inner` are the samples that count, the others are run-in of filters
    and hysteresis.
    """

    motion: Motion
    output: Array
    weights: Array
    inner: slice


def motion_weights(motion: Motion, fastest: Array | None = None) -> Array:
    """Return row weights (samples, joints): 1 in motion, `STILL_WEIGHT` at rest, 0 before anything has moved.

    `fastest` (joints,) rad/s is the greatest speed of the whole log, by default that of this motion.
    """
    speed = np.abs(motion.qd)
    top = speed.max(axis=0) if fastest is None else fastest
    moving = speed > STILL_PART * top
    width = max(int(0.05 * motion.rate), 1)
    near = np.column_stack([np.convolve(m, np.ones(2 * width + 1), "same") > 0.5 for m in moving.T])
    weights = np.where(near, 1.0, STILL_WEIGHT)
    first = np.flatnonzero(moving.any(axis=1))
    weights[: first[0] if first.size else len(weights)] = 0.0
    return weights


def joint_rows(
    model: Dynamics, stretch: Stretch, joint: int, rigid: list[Array], load: Array | None, filters: Filters
) -> tuple[Array, Array]:
    """Return rows [W_j | y_j] of a stretch for one joint and their weights, filtered in parallel and decimated."""
    own = model.term_columns(stretch.motion, joint, load).T
    series = np.concatenate([rigid[joint], own, stretch.output[:, joint][None]])
    step, inner = filters.decimation, stretch.inner
    if filters.parallel_cutoff is None:
        rows = series[:, inner][:, ::step].T
    else:
        taps = decimation_taps(filters.parallel_cutoff, filters.rate)
        before = inner.start % step
        kept = slice((inner.start - before) // step + (before > 0), -(-inner.stop // step))
        rows = np.column_stack([decimate(np.ascontiguousarray(values), taps, step)[kept] for values in series])
        inner = slice(kept.start * step, inner.stop)
    weights = stretch.weights[inner, joint][::step]
    return rows[: len(weights)], weights[: len(rows)]


def add_stretch(
    factors: list[JointFactors],
    model: Dynamics,
    stretch: Stretch,
    filters: Filters,
    pieces: int,
    values: Array | None = None,
) -> None:
    """Add a stretch to the factors of every joint, cut into contiguous pieces; `values` give the load torque."""
    rigid = model.rigid_columns(stretch.motion)
    load = None if values is None else model.load_torque(rigid, values)
    for j, own in enumerate(factors):
        rows, weights = joint_rows(model, stretch, j, rigid, load, filters)
        for piece in np.array_split(np.arange(len(rows)), pieces):
            own.add(rows[piece], weights[piece])
