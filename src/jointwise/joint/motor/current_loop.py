"""Current loop of a drive: the lag of the current behind its target, and the limit of the current.

``y[k] = a y[k-1] + (1 - a) clip(c(t_k - s h), ±L)``, ``i = g y + i_0``: a first-order lag with time constant T,
a = exp(-h/T), after a dead time s h; h is the period of the log, c the target, linear between samples. The whole lag is
``h (s + a / (1 - a))`` and includes the time that the controller needs to pass a target on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.data.statistics import noise
from jointwise.estimation.jackknife import (
    MIN_BLOCKS,
    block_count,
    equal_blocks,
    newton_replicates,
    standard_error,
    student_factor,
)
from jointwise.joint.part import Curve, Part, Value, make_curve, nrmse_percent, value_of
from jointwise.joint.record import TOP_QUANTILE, JointRecord
from jointwise.spatial import Array

MIN_FIT = 50.0
"""NRMSE fit (%) below which the current does not follow its target."""
MAX_NOISE = 2.0
"""Residual of the current, relative to its noise, above which the logged target is not that of the drive: some
controllers log a planned target and correct it by feedback."""
TARGET_TOLERANCE = 0.1
"""Relative difference of current and target up to which they are the same quantity."""
MAX_LAG = 100.0
"""Largest dead time and mean delay, in samples."""
DETERMINED = 0.5
"""Half width of the interval of the lag, relative to it or to a sample, up to which it is determined."""
MIN_DELAY = 0.5
"""Mean delay of the first-order part, in samples, from which it can be distinguished from a dead time."""
CONSTANT_ERROR = 0.01
"""Relative standard error added to the time constant: the target is unknown between samples."""
LAG_ERROR = 0.02
"""Standard error added to the lag, in samples, for the same reason."""
CLIPPED = 1.05
"""Target relative to the largest currents above which it may be clipped..."""
MIN_CLIPPED = 20
"""...if there are so many samples of it..."""
WORTHWHILE = 0.8
"""...and a limit reduces the sum of squared residuals below this fraction."""
STARTS = ((0.5, 0.1), (1.0, 2.0), (1.0, 10.0))
"""Starts of dead time and mean delay, in samples: a fast, a usual and a slow drive."""
INSIDE = 1e-6
"""Distance of a start from the bounds of the search."""
STEP = 1e-4
"""Relative step of the numerical derivative: the interpolated target has corners at the samples."""
MIN_LIMIT = 1e-3
"""Smallest limit that is sought, relative to the largest target."""
SHORTEST_DELAY = 1e-3
"""Mean delay (samples) below which a time constant is zero to all purposes."""
MILLI = 1e-3
"""Milliseconds in texts, s."""
LIMIT = 4
"""Index of the limit L among the values s, p, g, i_0, L of a fit."""
EXCERPT = 60
"""Samples to either side of the fastest change in the curve."""


@dataclass(frozen=True)
class CurrentLoop:
    """Current loop of a drive; values are None where they are not determined.

    Attributes:
        lag: Lag of the current behind its target, s.
        constant: Time constant of the first-order part of the lag, s.
        limit: Limit of the current, A.
        curve: Curve.
        notes: Notes.
    """

    lag: Value | None = None
    constant: Value | None = None
    limit: Value | None = None
    curve: Curve | None = None
    notes: tuple[str, ...] = ()

    def added(self, part: Part) -> Part:
        """Return a motor part with these values, curve and notes."""
        values = [value for value in (self.lag, self.constant, self.limit) if value is not None]
        curves = () if self.curve is None else (self.curve,)
        return replace(
            part,
            values=(*part.values, *values),
            curves=(*part.curves, *curves),
            notes=(*part.notes, *self.notes),
        )


def identify_current_loop(record: JointRecord) -> CurrentLoop:
    """Return lag and limit of the current of a record with target currents.

    Data that do not determine them raise no error: the result has a note instead.
    """
    if record.target_current is None or not record.has_current:
        return CurrentLoop()
    signals = _LoopSignals(record.target_current, record.motor / record.gain, record.segment, record.t)
    blocks = block_count(record.samples / record.rate)
    if not np.ptp(signals.target) > 0.0 or blocks < MIN_BLOCKS:
        return CurrentLoop(notes=("lag of the current is not determined: its target hardly varies",))
    fit = _fitted(signals)
    quality = nrmse_percent(signals.current, signals.current - fit.residual)
    if not quality >= MIN_FIT:
        reason = f"the current does not follow its target (fit {quality:.0f} %)"
        return CurrentLoop(notes=(f"lag of the current is not determined: {reason}",))
    return _result(record, signals, fit, equal_blocks(record.samples, blocks))


def _objection(signals: _LoopSignals, fit: _LoopFit, lag: Value, period: float) -> str:
    """Return why the lag is not determined, "" where it is."""
    gain = fit.gain
    if abs(gain - 1.0) > TARGET_TOLERANCE:
        return f"the current is {gain:.2f} times its target"
    residual, floor = float(np.sqrt(np.mean(fit.residual**2))), float(noise(signals.current[:, None])[0])
    if residual > MAX_NOISE * floor:
        return (
            f"the current differs from its target by {residual:.2g} A with a noise of {floor:.2g} A: the drive has "
            "another target, or the target changes between samples"
        )
    if lag.high < 0.0:
        return "the current is ahead of its target"
    if 0.5 * (lag.high - lag.low) > DETERMINED * max(lag.value, period):
        return "the target changes too slowly for the noise"
    return ""


@dataclass(frozen=True, eq=False)
class _LoopSignals:
    """Target and current (A), number of the segment and time (s), (samples,) each."""

    target: Array
    current: Array
    segment: NDArray[np.intp]
    t: Array

    def modelled(self, values: Array) -> Array:
        """Return the current of ``s, p, g, i_0[, L]``; p = a / (1 - a) is the mean delay of the first-order part."""
        from scipy.signal import lfilter

        s, p, gain, offset = values[:LIMIT]
        a = p / (1.0 + p)
        parts = []
        for k in np.unique(self.segment):
            target = self.target[self.segment == k]
            sample = np.arange(len(target), dtype=float)
            target = np.interp(sample - s, sample, target)
            if len(values) > LIMIT:
                target = np.clip(target, -values[LIMIT], values[LIMIT])
            parts.append(lfilter([1.0 - a], [1.0, -a], target, zi=a * target[:1])[0])
        result: Array = gain * np.concatenate(parts) + offset
        return result


@dataclass(frozen=True)
class _LoopFit:
    """Values s, p, g, i_0[, L] of a fit, its residual (samples,) A, and its Jacobian."""

    values: Array
    residual: Array
    jacobian: Array

    @property
    def delay(self) -> float:
        """Mean delay p of the first-order part, in samples."""
        return float(self.values[1])

    @property
    def gain(self) -> float:
        """Ratio g of current and target."""
        return float(self.values[2])

    @property
    def is_limited(self) -> bool:
        """Whether a limit L was fitted."""
        return len(self.values) > LIMIT

    @property
    def cost(self) -> float:
        """Sum of squared residuals, A²."""
        return float(self.residual @ self.residual)


def _fitted(signals: _LoopSignals) -> _LoopFit:
    """Return the best lag, with a limit where targets exceed the currents and it clearly improves the fit."""
    free = min((_least(signals, np.array([s, p, 1.0, 0.0])) for s, p in STARTS), key=lambda fit: fit.cost)
    top = float(np.quantile(np.abs(signals.current), TOP_QUANTILE))
    clipped = np.abs(signals.target) > CLIPPED * top
    if clipped.sum() < MIN_CLIPPED:
        return free
    starts = [np.append(free.values, level) for level in (top, float(np.median(np.abs(signals.current[clipped]))))]
    starts += [np.array([s, p, 1.0, 0.0, top]) for s, p in STARTS]
    limited = min((_least(signals, start) for start in starts), key=lambda fit: fit.cost)
    return limited if limited.cost < WORTHWHILE * free.cost else free


def _least(signals: _LoopSignals, start: Array) -> _LoopFit:
    from scipy.optimize import least_squares

    most = float(np.abs(signals.target).max())
    low = np.array([-MAX_LAG, 0.0, -np.inf, -np.inf, MIN_LIMIT * most])[: len(start)]
    high = np.array([MAX_LAG, MAX_LAG, np.inf, np.inf, most])[: len(start)]
    found = least_squares(
        lambda x: signals.current - signals.modelled(x),
        np.clip(start, low + INSIDE, high - INSIDE),
        bounds=(low, high),
        x_scale=np.array([1.0, 1.0, 1.0, 1.0, most])[: len(start)],
        diff_step=STEP,
    )
    return _LoopFit(found.x, found.fun, found.jac)


def _result(record: JointRecord, signals: _LoopSignals, fit: _LoopFit, block: NDArray[np.intp]) -> CurrentLoop:
    replicates = newton_replicates(fit.values, fit.residual, fit.jacobian, block)
    period, factor = 1.0 / record.rate, student_factor(len(replicates) - 1)
    error = np.hypot(float(standard_error(replicates[:, 0] + replicates[:, 1])), LAG_ERROR)
    lag = value_of("lag", "s", period * float(fit.values[:2].sum()), period * float(error), factor)
    limit = _limit(signals, fit, replicates, factor) if fit.is_limited else None
    notes = () if limit else (f"no limit of the current is visible up to {np.abs(signals.current).max():.3g} A",)
    if objection := _objection(signals, fit, lag, period):
        return CurrentLoop(limit=limit, notes=(f"lag of the current is not determined: {objection}", *notes))
    scope = (
        "the lag of the current includes the time that the controller needs to pass a target on; a sample takes "
        f"{period / MILLI:.3g} ms"
    )
    constant = _time_constant(fit, replicates, period, factor)
    return CurrentLoop(lag, constant, limit, _curve(signals, fit), (scope, *notes))


def _time_constant(fit: _LoopFit, replicates: Array, period: float, factor: float) -> Value | None:
    """Return T (s) of the first-order part, None where it cannot be distinguished from a dead time."""
    delay = fit.delay
    if delay <= max(MIN_DELAY, factor * float(standard_error(replicates[:, 1]))):
        return None
    constant = float(_constant(delay, period))
    error = np.hypot(float(standard_error(_constant(replicates[:, 1], period))), CONSTANT_ERROR * constant)
    return value_of("time_constant", "s", constant, float(error), factor)


def _limit(signals: _LoopSignals, fit: _LoopFit, replicates: Array, factor: float) -> Value:
    """Return the limit g L; noise is averaged over the visits to the limit, as it may be correlated within one."""
    at = np.abs(signals.target) > fit.values[LIMIT]
    visits = np.count_nonzero(np.diff(at.astype(np.int8), prepend=0) > 0)
    scatter = float(np.std(fit.residual[at])) / np.sqrt(max(int(visits), 1))
    error = np.hypot(float(standard_error(replicates[:, 2] * replicates[:, LIMIT])), scatter)
    return value_of("limit", "A", float(fit.gain * fit.values[LIMIT]), float(error), factor)


def _constant(delay: Array | float, period: float) -> Array:
    """Return T = -h / ln a in s of a mean delay p = a / (1 - a) in samples."""
    return period / np.log1p(1.0 / np.maximum(delay, SHORTEST_DELAY))


def _curve(signals: _LoopSignals, fit: _LoopFit) -> Curve:
    """Return the difference of target and current around the fastest change of the target."""
    fastest = int(np.argmax(np.abs(np.diff(signals.target))))
    near = slice(max(fastest - EXCERPT, 0), fastest + EXCERPT)
    inside = signals.segment[near] == signals.segment[fastest]
    t, target, current, modelled = (
        x[near][inside] for x in (signals.t, signals.target, signals.current, signals.modelled(fit.values))
    )
    return make_curve(
        ("Current behind its target, at the fastest change", "time [s]", "target less current [A]"),
        (t, target - current),
        (t, target - modelled),
        residual=modelled - current,
    )
