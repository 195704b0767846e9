"""A motion from samples: a planned trajectory from a file, or a log that is replayed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointwise.arguments import checked
from jointwise.data.clock import GAP_SECONDS, GAP_STEPS, forward_samples
from jointwise.data.log import Log
from jointwise.data.statistics import quantum
from jointwise.description.mounting import gravity_vector
from jointwise.description.robot import Robot
from jointwise.design.bspline import DEGREE, SplineMotion
from jointwise.design.experiments import Experiment
from jointwise.design.limits import check_limits, unit_of
from jointwise.errors import JointwiseError, ModelError, ShapeError
from jointwise.spatial import Array

ORDER = 10
"""Order of the differences that separate noise from motion: smooth motion vanishes in them."""
SLOWEST_RATE = 100.0
"""Lowest rate (Hz) at which these differences are used; below, only rounding is."""
NEGLIGIBLE = 1e-11
"""Noise (rad, m) at the level of floating-point rounding."""
CHANCE = 3.0
"""Standard deviations by which the residual of a span may exceed the noise before the span is halved."""
LONGEST = 128
"""Initial number of samples between two knots."""
LONGEST_DURATION = 1e5
"""Longest motion of a file (s), a day ..."""
MOST_SAMPLES = 2e7
"""... and most samples after gaps have been filled: some GB."""


def noise_of(t: Array, q: Array) -> Array:
    """Return the noise of sampled positions, rms, (joints,), in the unit of q.

    Estimated from divided differences of order 10, where they do not vanish: ``1.48 median |Σ w q| / √(Σ w²)`` with
    ``w_i = 1 / Π_{k≠i} (t_i - t_k)``. On a slow clock they contain motion as well; there the noise is limited to half a
    step of the rounding.

    Args:
        t: Times, (samples,), s.
        q: Positions, (samples, joints).
    """
    if len(t) <= ORDER:
        return np.zeros(q.shape[1])
    windows = np.lib.stride_tricks.sliding_window_view(t, ORDER + 1)
    period = float(np.median(np.diff(t)))
    weights = np.stack([1.0 / _distances(windows, i, ORDER * period) for i in range(ORDER + 1)])
    weights /= np.sqrt(np.square(weights).sum(axis=0))
    count = len(t) - ORDER
    differences = sum(weights[i][:, None] * (q[i : i + count] - q[:count]) for i in range(ORDER + 1))
    noise = np.array([_robust_rms(np.abs(column)) for column in np.asarray(differences).T])
    return noise if period * SLOWEST_RATE <= 1.0 else np.minimum(noise, 0.5 * quantum(q))


def _distances(windows: Array, index: int, unit: float) -> Array:
    """Return Π (t_index - t_k) over the other times of each window (windows, times), in a `unit` (s) near 1."""
    others = np.delete(windows, index, axis=1)
    product: Array = np.prod((windows[:, index, None] - others) / unit, axis=1)
    return product


def _robust_rms(sizes: Array) -> float:
    """Return the rms of normal numbers from the median of their absolute values, without those of standstills."""
    some = sizes[sizes > NEGLIGIBLE]
    return 1.4826 * float(np.median(some)) if len(some) else 0.0


def smooth_spline(t: Array, q: Array, noise: Array) -> tuple[Array, Array]:
    """Return knots and control points of the quintic spline with few knots that fits within the noise.

    It starts and ends at rest. Spans between knots are halved as long as the mean square residual of their m positions
    q (samples, joints) is significantly larger than the noise: ``noise² (1 + 3 √(2/m))``, `noise` (joints,).
    """
    indices = np.unique(np.linspace(0, len(t) - 1, max(2, (len(t) - 1) // LONGEST + 1)).astype(np.intp))
    allowed = np.square(np.maximum(noise, NEGLIGIBLE))
    while True:
        knots, control, residual = _fitted(t, q, indices)
        m = np.diff(indices)[:, None]
        squares = np.add.reduceat(np.square(residual[:-1]), indices[:-1]) / m
        cut = (squares > allowed * (1.0 + CHANCE * np.sqrt(2.0 / m))).any(axis=1) & (m[:, 0] > 1)
        if not cut.any():
            return knots, control
        indices = np.sort(np.append(indices, (indices[:-1] + indices[1:])[cut] // 2))


def _fitted(t: Array, q: Array, indices: NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """Return knots at some samples, control points and residual of the spline nearest to q, at rest at both ends.

    The first three control points are the same, and the last three: speed and acceleration vanish there.
    """
    from scipy.interpolate import BSpline
    from scipy.linalg import solveh_banded
    from scipy.sparse import csr_array

    knots = np.concatenate([np.full(DEGREE, t[0]), t[indices], np.full(DEGREE, t[-1])])
    count = len(knots) - DEGREE - 1
    inner = np.clip(np.arange(count) - 2, 0, count - 5)
    ends = csr_array((np.ones(count), (np.arange(count), inner)))
    basis = BSpline.design_matrix(t, knots, DEGREE) @ ends
    normal = basis.T @ basis
    band = np.array([np.pad(normal.diagonal(k), (0, k)) for k in range(min(DEGREE + 1, count - 4))])
    control = solveh_banded(band, basis.T @ q, lower=True)
    return knots, control[inner], q - basis @ control


REST = 0.02
"""Largest mean speed (rad/s, m/s) over the first and the last samples of a motion that begins and ends at rest."""
SPARSE = 0.05
"""Time (s) between samples beyond which a start from rest cannot be seen in the first of them."""
NOISE_RANGE = 4.0
"""Range of a few samples of noise over its rms."""
FEWEST = 2 * DEGREE
"""Fewest samples of a motion."""

SMOOTHED = 1e-9
"""Distance (rad, m) from its samples beyond which a motion is reported as smoothed: above rounding errors."""

Places = Callable[[int], str]
"""Names a sample (0-based) for a message."""


@checked
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
    _refuse_endless(times)
    noise = noise_of(times, positions)
    _refuse_moving_ends(robot, times, positions, noise)
    _refuse_gaps(robot, times, positions, where)
    return _spline(*_filled(times - times[0], positions), noise)


def _refuse_endless(t: Array) -> None:
    """Reject times (samples,), s, of a motion that no memory holds: of another unit, or with a huge gap."""
    duration, period = float(t[-1] - t[0]), float(np.median(np.diff(t)))
    if duration > LONGEST_DURATION or duration / period > MOST_SAMPLES:
        raise ModelError(
            f"a motion must last at most {LONGEST_DURATION:g} s and have at most {MOST_SAMPLES:g} samples. Got "
            f"{duration:.3g} s with a sample every {period:.3g} s: are the times in s?"
        )


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
    """Reject a motion that continues where samples are missing: the path is unknown there."""
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


def experiment_from_log(robot: Robot, log: Log) -> Experiment:
    """Return the motion of a log as an experiment: its reference positions (q_des) if logged, else the measured ones.

    Samples that repeat the time stamp of the previous one are dropped.

    Raises:
        ModelError: if the samples are not a motion from rest to rest within the limits of the robot.
    """
    kept = forward_samples(log)
    channel = "q_des" if "q_des" in log.available else "q"
    t, q = log.t[kept], log.channel(channel)[kept]
    try:
        motion = sampled_motion(robot, t, q, lambda sample: log.origin.where(int(kept[sample])))
        check_limits(robot, motion)
    except JointwiseError as problem:
        raise ModelError(f"{log.origin.path}: {problem}{_degrees_hint(robot, q)}") from None
    name = PurePath(log.origin.path).name
    source = {"file": name, "sha256": log.origin.sha256, "channel": channel, "samples": len(t)}
    repeated = log.samples - len(t)
    dropped = [f"{repeated} samples dropped that repeat the time stamp of the previous one"] if repeated else []
    notes = [f"{channel} of {name}", *dropped, *_smoothing_note(robot, motion, t, q)]
    return Experiment("motion", motion, gravity_vector(), ", ".join(notes), source=source)


def _smoothing_note(robot: Robot, motion: SplineMotion, t: Array, q: Array) -> list[str]:
    """Return by how much a motion was smoothed, if it was."""
    distance = np.abs(motion.position(t - t[0]) - q).max(axis=0)
    if distance.max() < SMOOTHED:
        return []
    unit = unit_of(robot, int(distance.argmax()))
    return [f"smoothed by up to {distance.max():.2g} {unit}: its positions are rounded or noisy"]


def _degrees_hint(robot: Robot, q: Array) -> str:
    """Return a hint where positions (samples, joints) exceed two turns, as degrees do."""
    largest = np.abs(q[:, robot.revolute]).max(initial=0.0)
    return " Are the positions in degrees? Then pass --columns q=@deg" if largest > 4.0 * np.pi else ""
