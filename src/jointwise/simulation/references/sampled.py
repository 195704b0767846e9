"""A motion given by samples: a planned trajectory from a file, or a log to be run again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointwise.data.clock import GAP_SECONDS, GAP_STEPS
from jointwise.description.robot import Robot
from jointwise.errors import ModelError, ShapeError
from jointwise.simulation.references.bspline import DEGREE, SplineMotion
from jointwise.simulation.references.limits import unit_of
from jointwise.simulation.references.smoothing import NEGLIGIBLE, noise_of, smooth_spline
from jointwise.spatial import Array

REST = 0.02
"""Largest mean speed (rad/s, m/s) over the first and the last samples of a motion that begins and ends at rest."""
SPARSE = 0.05
"""Time (s) between samples beyond which a start from rest cannot be seen in the first of them."""
NOISE_RANGE = 4.0
"""Range of a few samples of noise over its rms."""
FEWEST = 2 * DEGREE
"""Fewest samples of a motion."""

Places = Callable[[int], str]
"""Names a sample (0-based) for a message."""


def sampled_motion(
    robot: Robot, t: ArrayLike, q: ArrayLike, where: Places = lambda sample: f"sample {sample}"
) -> SplineMotion:
    """Return the quintic spline along positions q (samples, joints), rad, at times t (samples,), s.

    Times ascend; the motion begins at rest at t[0], which becomes 0, and ends at rest. It goes through positions that
    are exact. Of rounded or measured ones, whose noise would become accelerations that nobody planned, it keeps what is
    more than the noise (`smoothing.noise_of`). `where` names a sample in messages.
    """
    times, positions = np.asarray(t, dtype=float), np.asarray(q, dtype=float)
    if times.ndim != 1 or positions.shape != (len(times), robot.dof) or len(times) < FEWEST:
        raise ShapeError(
            f"a motion must be {FEWEST} or more samples of {robot.dof} joints. "
            f"Got t {times.shape}, q {positions.shape} instead."
        )
    _refuse_disorder(times, positions, where)
    noise = noise_of(times, positions)
    _refuse_moving_ends(robot, times, positions, noise)
    _refuse_gaps(robot, times, positions, where)
    return _spline(*_filled(times - times[0], positions), noise)


def _filled(t: Array, q: Array) -> tuple[Array, Array]:
    """Return samples with others, on a line, where some are missing: a spline would swing there."""
    gaps, period = _gaps(t), float(np.median(np.diff(t)))
    if not len(gaps):
        return t, q
    more = np.concatenate([np.arange(t[k] + period, t[k + 1] - 0.5 * period, period) for k in gaps])
    times = np.sort(np.concatenate([t, more]))
    return times, np.column_stack([np.interp(times, t, column) for column in q.T])


def _gaps(t: Array) -> NDArray[np.intp]:
    """Return the samples (0-based) after which others are missing."""
    steps = np.diff(t)
    return np.flatnonzero(steps > max(GAP_STEPS * float(np.median(steps)), GAP_SECONDS))


def _spline(t: Array, q: Array, noise: Array) -> SplineMotion:
    """Return the spline through positions that are exact, or along those that are not."""
    along = smooth_spline(t, q - q[0], noise) if noise.max() > NEGLIGIBLE else _through(t, q - q[0])
    return SplineMotion(float(t[-1]), along[0], q[0], along[1])


def _through(t: Array, q: Array) -> tuple[Array, Array]:
    """Return knots and control points of the spline through all samples."""
    from scipy.interpolate import make_interp_spline

    still = [(1, np.zeros(q.shape[1])), (2, np.zeros(q.shape[1]))]
    spline = make_interp_spline(t, q, k=DEGREE, bc_type=(still, still))
    return spline.t, spline.c


def _refuse_disorder(t: Array, q: Array, where: Places) -> None:
    """Refuse positions that are no numbers, and times that do not ascend."""
    lost = np.flatnonzero(~(np.isfinite(t) & np.isfinite(q).all(axis=1)))
    if lost.size:
        raise ModelError(f"a motion must have finite times and positions. Those of {where(int(lost[0]))} are not.")
    late = np.flatnonzero(np.diff(t) <= 0.0)
    if late.size:
        k = int(late[0])
        raise ModelError(
            f"the times of a motion must ascend. {where(k + 1)} is at {t[k + 1]:.9g} s, the one before at {t[k]:.9g} s."
        )


def _refuse_moving_ends(robot: Robot, t: Array, q: Array, noise: Array) -> None:
    """Refuse a motion that is under way, by more than `noise` (joints,), where it begins or ends."""
    period = float(np.median(np.diff(t)))
    for where, part in (("begin", slice(0, 3)), ("end", slice(-3, None))):
        speed = (np.ptp(q[part], axis=0) - NOISE_RANGE * noise) / np.ptp(t[part])
        if speed.max() > REST:
            joint = int(speed.argmax())
            remedy = "cut the file where the arm stands still."
            if period > SPARSE:
                remedy = f"{period:.3g} s between samples hide a start or a stop. Give the motion at 100 Hz or more."
            raise ModelError(
                f"a motion must {where} at rest. Joint {joint + 1} moves at {speed[joint]:.3g} "
                f"{unit_of(robot, joint)}/s there: {remedy}"
            )


def _refuse_gaps(robot: Robot, t: Array, q: Array, where: Places) -> None:
    """Refuse a motion that goes on where samples are missing: what the arm does there is not told."""
    steps, moves = np.diff(t), np.abs(np.diff(q, axis=0))
    gaps = _gaps(t)
    for k in gaps[np.argsort(-steps[gaps])]:
        speed = np.max(moves[max(0, k - 1) : k + 2] / steps[max(0, k - 1) : k + 2, None], axis=0)
        if speed.max() > REST:
            raise ModelError(
                f"a motion must have no gaps while the arm moves. Joint {int(speed.argmax()) + 1} moves at "
                f"{speed.max():.3g} {unit_of(robot, int(speed.argmax()))}/s when {steps[k]:.3g} s are missing before "
                f"{where(int(k) + 1)}, at {t[k + 1]:.6g} s."
            )
