"""Current loop of a drive: the lag of the current behind its target, and the limit of the current.

``y[k] = a y[k-1] + (1 - a) clip(c(t_k - s h), ±L)``, ``i = g y + i_0``: a first-order lag with time constant T,
a = exp(-h/T), after a dead time s h; h is the period of the log, c the target, linear between samples. The whole lag is
``h (s + a / (1 - a))`` and includes the time that the controller needs to pass a target on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.data.statistics import limited, noise
from jointwise.estimation.cross_validation import simplest_candidate, unit_errors
from jointwise.estimation.jackknife import (
    MIN_BLOCKS,
    block_count,
    equal_blocks,
    newton_replicates,
    standard_error,
    student_factor,
)
from jointwise.joint.curve import Curve, make_curve
from jointwise.joint.part import MIN_QUALITY, TINY, Part, Value, nrmse_percent, rms, value_of
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

MAX_NOISE = 2.0
"""Residual of the current, relative to its noise, above which the logged target is not that of the drive: some
controllers log a planned target and correct it by feedback."""
TARGET_TOLERANCE = 0.1
"""Relative difference of current and target up to which they are the same quantity."""
MAX_LAG = 100
"""Largest dead time and mean delay, in samples; the curve shows as many to either side of the fastest change."""
RESOLVED = 0.5
"""Part of a sample that a log resolves: a lag is determined where its interval is at most this wide to either side (or
this part of the lag, if more), and a first-order part differs from a dead time where its mean delay is longer."""
BETWEEN_SAMPLES = 0.02
"""Standard error, in samples, added to lag and time constant: the target is unknown between samples."""
STARTS = ((0.5, 0.1), (1.0, 2.0), (1.0, 10.0))
"""Starts of dead time and mean delay, in samples: a fast, a usual and a slow drive."""


@dataclass(frozen=True)
class CurrentLoop:
    """Current loop of a drive; values are None where they are not determined.

    Attributes:
        lag: Lag of the current behind its target, s.
        constant: Time constant of the first-order part of the lag, s.
        limit: Limit of the current, A.
        curve: Target less current around the fastest change of the target, measured and modelled.
        notes: Remarks for the user.
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
    block = equal_blocks(record.samples, blocks)
    fit = _fitted(signals, block)
    quality = nrmse_percent(signals.current, signals.current - fit.residual)
    if not quality >= MIN_QUALITY:
        reason = f"the current does not follow its target (fit {quality:.0f} %)"
        return CurrentLoop(notes=(f"lag of the current is not determined: {reason}",))
    return _result(record, signals, fit, block)


def _objection(signals: _LoopSignals, fit: _LoopFit, lag: Value, period: float) -> str:
    """Return why the lag is not determined, "" where it is."""
    gain = fit.gain
    if abs(gain - 1.0) > TARGET_TOLERANCE:
        return f"the current is {gain:.2f} times its target"
    residual, floor = rms(fit.residual), float(noise(signals.current[:, None])[0])
    if residual > MAX_NOISE * floor:
        return (
            f"the current differs from its target by {residual:.2g} A with a noise of {floor:.2g} A: the drive has "
            "another target, or the target changes between samples"
        )
    if lag.high < 0.0:
        return "the current is ahead of its target"
    if 0.5 * (lag.high - lag.low) > RESOLVED * max(lag.value, period):
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

        s, p, gain, offset, *limit = values
        a = p / (1.0 + p)
        parts = []
        for k in np.unique(self.segment):
            target = self.target[self.segment == k]
            sample = np.arange(len(target), dtype=float)
            target = np.interp(sample - s, sample, target)
            target = np.clip(target, -limit[0], limit[0]) if limit else target
            parts.append(lfilter([1.0 - a], [1.0, -a], target, zi=a * target[:1])[0])
        result: Array = gain * np.concatenate(parts) + offset
        return result


@dataclass(frozen=True, eq=False)
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
    def limit(self) -> float | None:
        """Limit L of the target, A; None where none was fitted."""
        return float(self.values[-1]) if len(self.values) > 4 else None

    @property
    def cost(self) -> float:
        """Sum of squared residuals, A²."""
        return float(self.residual @ self.residual)


def _fitted(signals: _LoopSignals, block: NDArray[np.intp]) -> _LoopFit:
    """Return the best lag, with a limit where one holds the current below its target and improves the fit of blocks."""
    starts = [np.array([s, p, 1.0, 0.0]) for s, p in STARTS]
    free = min((_least(signals, start) for start in starts), key=lambda fit: fit.cost)
    held = limited(signals.current[:, None], signals.target[:, None])[:, 0]
    if not held.any():
        return free
    level = float(np.median(np.abs(signals.current[held])))
    fits = (_least(signals, np.append(start, level)) for start in (free.values, *starts))
    clipped = min(fits, key=lambda fit: fit.cost)
    return simplest_candidate({fit: unit_errors(fit.residual, block) for fit in (free, clipped)})


def _least(signals: _LoopSignals, start: Array) -> _LoopFit:
    from scipy.optimize import least_squares

    most = float(np.abs(signals.target).max())
    low = np.array([-MAX_LAG, 0.0, -np.inf, -np.inf, 0.0])[: len(start)]
    high = np.array([MAX_LAG, MAX_LAG, np.inf, np.inf, most])[: len(start)]
    found = least_squares(
        lambda x: signals.current - signals.modelled(x),
        np.clip(start, low, high),
        bounds=(low, high),
        x_scale=np.array([1.0, 1.0, 1.0, 1.0, most])[: len(start)],
    )
    return _LoopFit(found.x, found.fun, found.jac)


def _result(record: JointRecord, signals: _LoopSignals, fit: _LoopFit, block: NDArray[np.intp]) -> CurrentLoop:
    replicates = newton_replicates(fit.values, fit.residual, fit.jacobian, block)
    period, factor = 1.0 / record.rate, student_factor(len(replicates) - 1)
    error = np.hypot(float(standard_error(replicates[:, 0] + replicates[:, 1])), BETWEEN_SAMPLES)
    lag = value_of("lag", "s", period * float(fit.values[:2].sum()), period * float(error), factor)
    limit = None if fit.limit is None else _limit(signals, fit, fit.limit, replicates, factor)
    notes = () if limit else (f"no limit of the current is visible up to {np.abs(signals.current).max():.3g} A",)
    if objection := _objection(signals, fit, lag, period):
        return CurrentLoop(limit=limit, notes=(f"lag of the current is not determined: {objection}", *notes))
    scope = (
        "the lag of the current includes the time that the controller needs to pass a target on; a sample takes "
        f"{1e3 * period:.3g} ms"
    )
    constant = _time_constant(fit, replicates, period, factor)
    return CurrentLoop(lag, constant, limit, _curve(signals, fit), (scope, *notes))


def _time_constant(fit: _LoopFit, replicates: Array, period: float, factor: float) -> Value | None:
    """Return T (s) of the first-order part, None where it cannot be distinguished from a dead time."""
    delay = fit.delay
    if delay <= max(RESOLVED, factor * float(standard_error(replicates[:, 1]))):
        return None
    constant = float(_constant(delay, period))
    error = np.hypot(float(standard_error(_constant(replicates[:, 1], period))), BETWEEN_SAMPLES * period)
    return value_of("time_constant", "s", constant, float(error), factor)


def _limit(signals: _LoopSignals, fit: _LoopFit, limit: float, replicates: Array, factor: float) -> Value:
    """Return the limit g L; noise is averaged over the visits to the limit, as it may be correlated within one."""
    at = np.abs(signals.target) > limit
    visits = np.count_nonzero(np.diff(at.astype(np.int8), prepend=0) > 0)
    scatter = float(np.std(fit.residual[at])) / np.sqrt(max(int(visits), 1))
    error = np.hypot(float(standard_error(replicates[:, 2] * replicates[:, -1])), scatter)
    return value_of("limit", "A", fit.gain * limit, float(error), factor)


def _constant(delay: Array | float, period: float) -> Array:
    """Return ``T = -h / ln a`` in s of a mean delay ``p = a / (1 - a)`` in samples."""
    return period / np.log1p(1.0 / np.maximum(delay, TINY))


def _curve(signals: _LoopSignals, fit: _LoopFit) -> Curve:
    """Return the difference of target and current around the fastest change of the target."""
    fastest = int(np.argmax(np.abs(np.diff(signals.target))))
    near = slice(max(fastest - MAX_LAG, 0), fastest + MAX_LAG)
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
