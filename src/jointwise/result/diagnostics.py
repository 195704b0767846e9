"""Diagnostics of a calibration: friction curves with their bands, measured friction, loops, trends of residuals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from jointwise.data.conditioning import clean_log
from jointwise.data.coordinates import model_log
from jointwise.data.log import Log
from jointwise.data.statistics import MOVING_SPEED
from jointwise.estimation.regression import Rows, regression_rows
from jointwise.model.dynamics import joint_signals
from jointwise.model.terms import Hysteresis, JointSignals, Offset, SpeedRipple, Term
from jointwise.model.transmission import motor_motion
from jointwise.motion import Motion, with_substitutes
from jointwise.result.calibration import Calibration
from jointwise.spatial import Array

POINTS = 700
"""Number of measured samples per joint."""
SEGMENTS = 4
"""Segments of a log from which samples are taken, so that long logs cost no more than short ones."""
BEYOND = 1.3
"""Curves extend to this multiple of the greatest speed in the training data."""
LOOP_SIZES = (0.5, 2.0, 8.0)
"""Amplitudes of hysteresis loops as multiples of the deformation at which half of the friction slips."""
CYCLE = 1.0
"""Duration of a hysteresis cycle, s."""


@dataclass(frozen=True)
class FrictionSamples:
    """Measured friction of the joints.

    Attributes:
        speed: Speeds, (points, joints), rad/s.
        torque: Measured torque minus the torque of links, offset and ripple, (points, joints), Nm.
        load: Load torques, (points, joints), Nm.
        typical: Median of the size of the load while the joint moves, (joints,), Nm.
    """

    speed: Array
    torque: Array
    load: Array
    typical: Array


@dataclass(frozen=True)
class FrictionCurve:
    """Steady friction of a joint over speed.

    Attributes:
        speed: Speeds, (points,), rad/s.
        torque: Friction, (points,), Nm.
        half_width: Half-width of the 95 % band, (points,), Nm.
    """

    speed: Array
    torque: Array
    half_width: Array


@dataclass(frozen=True)
class HysteresisLoop:
    """A settled hysteresis loop over one cycle.

    Attributes:
        amplitude: Amplitude of the cycle, rad.
        displacement: Displacements, (samples,), rad.
        torque: Torques, (samples,), Nm.
    """

    amplitude: float
    displacement: Array
    torque: Array


def friction_samples(calibration: Calibration, logs: Sequence[Log]) -> FrictionSamples:
    """Return the measured friction of some logs at about `POINTS` samples that are spread evenly over time."""
    wanted = -(-POINTS // max(len(logs), 1))
    parts = [_samples(calibration, segment, wanted) for log in logs for segment in _segments(calibration, log)]
    joints = calibration.model.robot.dof
    speed, torque, load = (
        (np.concatenate(columns) for columns in zip(*parts, strict=True)) if parts else np.zeros((3, 0, joints))
    )
    keep = slice(None, None, max(-(-len(speed) // POINTS), 1))
    return FrictionSamples(speed[keep], torque[keep], load[keep], _typical(speed, load))


def friction_curve(calibration: Calibration, joint: int, load: float) -> FrictionCurve:
    """Return steady friction over speed at a load torque (Nm): ``J β`` with the band from ``J C Jᵀ``."""
    speed = _speeds(float(calibration.fastest[joint]))
    terms, columns = calibration.model.terms[joint], calibration.model.joint_slices[joint]
    J = np.column_stack([steady_columns(term, speed, load) for term in terms]) if terms else np.zeros((len(speed), 0))
    covariance = calibration.estimate.covariance[columns, columns]
    variance = np.einsum("ij,jk,ik->i", J, covariance, J)
    half_width = calibration.estimate.factor * np.sqrt(np.maximum(variance, 0.0))
    return FrictionCurve(speed, J @ calibration.estimate.values[columns], half_width)


def steady_columns(term: Term, speed: Array, load: float) -> Array:
    """Return the regressor columns of a term at constant speeds (samples,); those of an offset are zero."""
    if isinstance(term, Offset):
        return np.zeros((len(speed), 1))
    return term.steady(speed, np.full(len(speed), load))


def hysteresis_loops(calibration: Calibration, joint: int) -> list[HysteresisLoop]:
    """Return settled loops of small slow cycles without load; none if the joint has no hysteresis."""
    scale = _half_slip(calibration, joint)
    return [_loop(calibration, joint, size * scale) for size in LOOP_SIZES] if scale > 0.0 else []


def term_slices(terms: Sequence[Term]) -> Iterator[tuple[Term, slice]]:
    """Yield terms with the slice of their parameters among the parameters of the joint."""
    start = 0
    for term in terms:
        stop = start + len(term.parameters())
        yield term, slice(start, stop)
        start = stop


def _segments(calibration: Calibration, log: Log) -> Iterator[Rows]:
    inner = model_log(log, calibration.model.robot)
    return islice(regression_rows(clean_log(inner), calibration.output, calibration.filters), SEGMENTS)


def _samples(calibration: Calibration, segment: Rows, wanted: int) -> tuple[Array, Array, Array]:
    """Return speed, friction torque and load of about `wanted` samples of a segment, each (samples, joints)."""
    model, values = calibration.model, calibration.estimate.values
    inner = np.arange(segment.chunk.inner.start, segment.chunk.inner.stop)
    rows = inner[:: max(len(inner) // max(wanted, 1), 1)]
    motion = with_substitutes(segment.motion)
    rigid = model.rigid_columns(_taken(motion, rows))
    torque = segment.outputs[0][rows] * calibration.gains - model.body_torque(rigid, values)
    motor = motor_motion(model.robot, motion, model.rotor_side)
    for j, columns in enumerate(model.joint_slices):
        torque[:, j] -= _not_friction(model.terms[j], motor, j, values[columns])[rows]
    return motor.qd[rows], torque, model.load_torque(rigid, values)


def _taken(motion: Motion, rows: NDArray[np.intp]) -> Motion:
    """Return some samples of a motion; only for terms without memory."""
    return Motion(motion.rate, motion.q[rows], motion.qd[rows], motion.qdd[rows], start=motion.start)


def _not_friction(terms: Sequence[Term], motion: Motion, joint: int, values: Array) -> Array:
    """Return the torque of offset and ripple, (samples,)."""
    total = np.zeros(motion.samples)
    signals = joint_signals(motion, joint)
    for term, columns in term_slices(terms):
        if isinstance(term, Offset | SpeedRipple):
            total += term.columns(signals)[0] @ values[columns]
    return total


def _typical(speed: Array, load: Array) -> Array:
    moving = np.abs(speed) > MOVING_SPEED
    columns = zip(np.abs(load).T, moving.T, strict=True)
    return np.array([float(np.median(size[m])) if m.any() else 0.0 for size, m in columns])


def _speeds(fastest: float) -> Array:
    """Return speeds of both signs, dense near zero, that include the limits of the training data."""
    top = max(fastest, 1e-3)
    right = np.unique(np.concatenate([np.geomspace(1e-4, 1.0, 60), np.linspace(0.02, BEYOND, 65), [1.0]])) * top
    return np.concatenate([-right[::-1], right])


def _half_slip(calibration: Calibration, joint: int) -> float:
    """Return the deformation (rad) at which the elements that carry half of the friction slip; 0 without hysteresis."""
    pairs = sorted(
        (limit, force)
        for term, values in _hysteresis_terms(calibration, joint)
        for limit, force in zip(term.limits, values, strict=False)
    )
    limits, forces = np.array(pairs).reshape(-1, 2).T
    total = np.cumsum(forces)
    return float(limits[np.searchsorted(total, 0.5 * total[-1])]) if total.size and total[-1] > 0.0 else 0.0


def _hysteresis_terms(calibration: Calibration, joint: int) -> list[tuple[Hysteresis, Array]]:
    """Return the hysteresis terms of a joint with their parameter values."""
    values = calibration.estimate.values[calibration.model.joint_slices[joint]]
    terms = term_slices(calibration.model.terms[joint])
    return [(term, values[columns]) for term, columns in terms if isinstance(term, Hysteresis)]


def _loop(calibration: Calibration, joint: int, amplitude: float) -> HysteresisLoop:
    """Return the third cycle of a sinusoidal motion."""
    rate = max(calibration.filters.rate, 200.0 / CYCLE)
    phase = 2.0 * np.pi * np.arange(round(3.0 * CYCLE * rate) + 1) / (CYCLE * rate)
    x, zero = amplitude * np.sin(phase), np.zeros(len(phase))
    signals = JointSignals(rate=rate, q=x, qd=zero, qdd=zero, track=x, ripple=zero, load=zero, rotor=x)
    torque = np.zeros(len(x))
    for term, values in _hysteresis_terms(calibration, joint):
        torque += term.columns(signals)[0] @ values
    settled = slice(-round(CYCLE * rate) - 1, None)
    return HysteresisLoop(amplitude, x[settled], torque[settled])


# -- residuals --

BINS = 48
"""Largest number of bins over the range of a quantity."""
SLOW = ("temperature", "time")
"""Quantities that pass each value only once: every bin needs several blocks, so there are fewer bins."""
BLOCK = 1.0
"""Duration (s) whose samples count as one observation, because neighbouring residuals are correlated."""
LEAST_BLOCKS = 8
"""Blocks that a bin needs in a long log; fewer in a short one."""
MOST_BINS, LEAST_IN_BIN, LEAST_BINS = 20, 3, 8
"""Bins of the runs test: at most 20, of at least 3 points each; fewer than 8 bins decide nothing."""
RUNS_THRESHOLD = 2.6
"""Standard deviations by which the number of runs must fall short of its expectation: 1 % two-sided."""
CLEAR_SHARE = 0.3
"""Share of the variance that a smooth curve must explain to be worth reporting."""


@dataclass(frozen=True)
class ResidualTrend:
    """Mean residual of a joint over a quantity, in bins.

    Attributes:
        quantity: Name of the quantity.
        unit: Its unit.
        x: Centres of the bins, (bins,), in `unit`.
        mean: Mean residuals, (bins,), in the unit of the output.
        half_width: Half-widths of their 95 % confidence intervals, (bins,), in the unit of the output.
        share: Share of the residual variance that the trend of every other block explains in the remaining blocks
            (negative if it explains nothing). Over time, whose values do not recur, it is that of a straight line.
    """

    quantity: str
    unit: str
    x: Array
    mean: Array
    half_width: Array
    share: float


def residual_trends(calibration: Calibration, log: Log, predicted: Array, joint: int) -> list[ResidualTrend]:
    """Return the trend of the residual of a joint over every quantity that is logged and varies.

    Only samples at which the joint moves are used, because static friction at rest does not follow from the motion.
    Over temperature the residual is multiplied by the sign of the speed, as friction is.
    """
    residual = np.asarray(log.channel(calibration.output)[:, joint]) - predicted[:, joint]
    block = ((log.t - log.t[0]) / BLOCK).astype(np.intp)
    speed = _speed(log, joint)
    moving = np.abs(speed) > MOVING_SPEED
    if not moving.any():
        return []
    resisting = residual * np.sign(speed)
    trends = (
        _trend(name, unit, x[moving], (resisting if name == "temperature" else residual)[moving], block[moving])
        for name, unit, x in _quantities(calibration, log, joint, speed)
    )
    return [trend for trend in trends if trend is not None]


def smooth_share(x: Array, residual: Array) -> float | None:
    """Return the share (0 to 1) of the variance of a residual that is a smooth curve of x; None if it is noise.

    The residual is averaged over bins of equal counts. The signs of the averages of white noise alternate at random,
    those of a curve do not (Wald-Wolfowitz runs test). The share that noise contributes, ``bins / points``, is
    subtracted.

    Args:
        x: Quantity, (points,).
        residual: Residual, (points,).
    """
    count = min(MOST_BINS, len(x) // LEAST_IN_BIN)
    if count < LEAST_BINS or not float(np.var(residual)) > 0.0:
        return None
    parts = np.array_split(residual[np.argsort(x, kind="stable")], count)
    means = np.array([part.mean() for part in parts]) - residual.mean()
    noise = count / len(x)
    share = (float(np.var(means)) / float(np.var(residual)) - noise) / (1.0 - noise)
    return min(share, 1.0) if share > CLEAR_SHARE and _missing_runs(means) > RUNS_THRESHOLD else None


def _missing_runs(values: Array) -> float:
    """Return by how many standard deviations the number of runs of equal sign falls short of its expectation."""
    above = values > 0.0
    a, b = int(above.sum()), int((~above).sum())
    if a < 2 or b < 2:
        return 0.0
    runs, n = 1 + int((above[1:] != above[:-1]).sum()), a + b
    expected = 1.0 + 2.0 * a * b / n
    variance = (expected - 1.0) * (expected - 2.0) / (n - 1.0)
    return float((expected - runs) / np.sqrt(variance))


def _quantities(calibration: Calibration, log: Log, joint: int, speed: Array) -> Iterator[tuple[str, str, Array]]:
    length = "rad" if calibration.model.robot.joints[joint].kind == "revolute" else "m"
    yield "position", length, np.asarray(log.q[:, joint])
    yield "speed", f"{length}/s", speed
    if log.temperature is not None:
        yield "temperature", "°C", np.asarray(log.temperature[:, joint])
    yield "time", "s", np.asarray(log.t - log.t[0])


def _speed(log: Log, joint: int) -> Array:
    """Return the measured speed, or the difference of positions over a tenth of a second; the clock may be uneven."""
    if log.qd is not None:
        return np.asarray(log.qd[:, joint])
    t, q = log.t, np.asarray(log.q[:, joint])
    step = max(int(0.05 / max(log.clock.median_step, 1e-9)), 1)
    ahead, back = np.minimum(np.arange(len(t)) + step, len(t) - 1), np.maximum(np.arange(len(t)) - step, 0)
    return (q[ahead] - q[back]) / np.maximum(t[ahead] - t[back], 1e-9)


def _trend(name: str, unit: str, x: Array, residual: Array, block: NDArray[np.intp]) -> ResidualTrend | None:
    low, high = np.quantile(x, (0.002, 0.998))
    if not high > low:
        return None
    bins = int(np.clip(block[-1] // 4, 4, BINS)) if name in SLOW else BINS
    index = np.clip(((x - low) / (high - low) * bins).astype(np.intp), 0, bins - 1)
    count, mean, half_width = _bin_means(index, residual, block, bins)
    known = count >= np.clip(int(block[-1]) // BINS, 1, LEAST_BLOCKS)
    if not known.any():
        return None
    centers = low + (np.arange(bins) + 0.5) * (high - low) / bins
    share = _linear_share(x, residual) if name == "time" else _held_out_share(index, residual, block)
    return ResidualTrend(name, unit, centers[known], mean[known], half_width[known], share)


def _bin_means(
    index: NDArray[np.intp], residual: Array, block: NDArray[np.intp], bins: int
) -> tuple[Array, Array, Array]:
    """Return number of blocks, mean and half-width of its 95 % interval of every bin; blocks are the observations."""
    cells, inverse = np.unique(index * (block[-1] + 1) + block, return_inverse=True)
    values = np.bincount(inverse, residual) / np.bincount(inverse)
    bin_of = (cells // (block[-1] + 1)).astype(np.intp)
    count = np.bincount(bin_of, minlength=bins).astype(float)
    total, square = (np.bincount(bin_of, weights, minlength=bins) for weights in (values, values**2))
    safe = np.maximum(count, 1.0)
    mean = total / safe
    variance = np.maximum(square / safe - mean**2, 0.0) * safe / np.maximum(safe - 1.0, 1.0)
    variance = np.where(count > 1.0, variance, values.var())
    half_width: Array = 1.96 * np.sqrt(variance / safe)
    return count, mean, half_width


def _linear_share(t: Array, residual: Array) -> float:
    """Return the share of the variance that a straight line over time explains."""
    spread = float(np.std(t) * np.std(residual))
    return float(np.mean((t - t.mean()) * (residual - residual.mean())) / spread) ** 2 if spread > 0.0 else 0.0


def _held_out_share(index: NDArray[np.intp], residual: Array, block: NDArray[np.intp]) -> float:
    """Return ``1 - Σ (r - trend)² / Σ r²`` on every other block, with the trend of the remaining blocks."""
    fit = (block // 2) % 2 == 0
    if not fit.any() or fit.all():
        return 0.0
    centred = residual - residual[fit].mean()
    count = np.bincount(index[fit], minlength=BINS)
    mean = np.bincount(index[fit], centred[fit], minlength=BINS) / np.maximum(count, 1)
    rest = centred[~fit]
    return 1.0 - float(np.sum((rest - mean[index[~fit]]) ** 2) / max(float(np.sum(rest**2)), 1e-300))
