"""The spread of the residuals of a model, from logs without contact."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from jointwise.arguments import checked
from jointwise.data.log import Log
from jointwise.estimation.bounded import non_negative
from jointwise.model.transmission import motor_values
from jointwise.monitoring.core import (
    FASTEST,
    SLOWEST,
    SLOWNESS,
    NativeWatch,
    Reports,
    Samples,
    log_samples,
    stream_rate,
)
from jointwise.monitoring.settings import core_monitor, known_spread
from jointwise.result.spread import BLOCK, FEATURES, ChangeSpread, JointSpread, ResidualSpread, Tail
from jointwise.runtime import RobotModel
from jointwise.runtime.stream import NativeCore
from jointwise.spatial import Array, Mask

PASSES = 3
"""Passes over the logs: the spread weights what the filter explains, which changes the rest."""
REWEIGHTINGS = 10
"""Iterations of the fit of the spread, whose rows are divided by the spread itself."""
RIDGE = 1e-12
"""Relative weight of small factors, which decides between features that a log does not separate."""
MEAN_ABSOLUTE = np.sqrt(2.0 / np.pi)
"""Mean absolute value of a normal variable of unit standard deviation."""
SMALL_BOUND = 0.05
"""Part of the largest bound of dry friction below which residuals show the errors of the model in motion."""
MOST_ROWS = 4000
"""Samples of a joint that the fit uses, evenly thinned: neighbours repeat each other."""
MOST_SAMPLES = 100_000
"""Samples of all logs together on which the spread is measured: 200 s at 500 Hz; memory does not grow with the logs."""
PIECE = 10_000
"""Samples of a piece of longer logs: many times those in which the filter learns."""
LEAST_SHARE = 0.3
"""Least part of the mean spread that is constant: a fit may explain a quiet log by its features alone."""
LEAST_SHOCK = (0.3, 0.2)
"""Least factors of a shock in the fast and the slow residual: few logs have one, and they last a moment."""
LEAST_SAMPLES = 200
"""Samples in motion (at rest) that a spread needs; fewer keep the assumed one."""
SETTLING = 100
"""First samples, in which the filter learns what the joints hold at rest."""
MARGIN = {"training": 2.0, "validation": 1.5}
"""Factor of the spread of residuals: those of other days and other motions are larger by about that."""
LAG = 30
"""Samples over which a residual at rest may change: the filter follows slower changes."""
LEAST_RATE = 250.0
"""Rate (Hz) from which sudden changes are used: at lower ones a change of the motion is as sudden as a contact."""
FASTER = 1.2
"""Factor of the largest speed of the logs up to which sudden changes are known."""
QUIETER = 0.4
"""Part of the deviations of sudden changes with which their tail is learnt: in other poses and at other speeds noise is
larger than in these logs, and there the usual size of the last 100 ms alone decides what is sudden."""
UNLIMITED = 1e9
"""Limit above which nothing is a contact."""
NORMAL_QUANTILE = 0.6827
"""Share of a normal distribution within one standard deviation."""


@checked
def residual_spread(
    model: RobotModel, logs: Sequence[Log], source: Literal["training", "validation"]
) -> ResidualSpread | None:
    """Return the spread of the residuals along logs without contact.

    None where the logs are too short or lack the output, or where the model has terms that C does not have (the NumPy
    monitor takes milliseconds a sample).

    Args:
        model: The calibrated model.
        logs: Logs without contact, with the output of the model.
        source: Whether the model was trained on these logs.

    """
    parts = [log_samples(model, log) for log in _excerpt(logs) if _is_usable(model, log)]
    if not parts or not isinstance(model.planned_core(model.rate), NativeCore):
        return None
    if all(part.qd is None for part in parts):
        return _spread(model, parts, source)
    without_speed = [replace(part, qd=None) for part in parts]
    with ThreadPoolExecutor() as pool:  # most of the time is spent in C, which runs in parallel
        spread, without = pool.map(lambda each: _spread(model, each, source), (parts, without_speed))
    return replace(spread, without_speed=without, change=_change(model, parts, spread))


def _excerpt(logs: Sequence[Log]) -> Sequence[Log]:
    """Return logs, or of long ones pieces evenly spread over them, together about `MOST_SAMPLES`."""
    total = sum(log.samples for log in logs)
    if total <= MOST_SAMPLES:
        return logs
    pieces = [log.slice(k, min(k + PIECE, log.samples)) for log in logs for k in range(0, log.samples, PIECE)]
    kept = np.linspace(0, len(pieces) - 1, max(int(len(pieces) * MOST_SAMPLES / total), 1)).round().astype(int)
    return [pieces[k] for k in kept]


def _spread(model: RobotModel, parts: Sequence[Samples], source: Literal["training", "validation"]) -> ResidualSpread:
    """Return the spread along samples."""
    spread = known_spread(replace(model, calibration=replace(model.calibration, spread=None)))
    for _ in range(PASSES):
        reports = [_reports(model, part, spread) for part in parts]
        joints = tuple(_joint_spread(reports, j, spread.joints[j], source) for j in range(model.dof))
        spread = replace(spread, joints=joints)
    seconds = sum(float(np.ptp(part.t)) for part in parts)
    ratios = [_ratios(_reports(model, part, spread), part.t, spread) for part in parts]
    fast, slow = (_tail(np.concatenate(columns)) for columns in zip(*ratios, strict=True))
    return ResidualSpread(spread.joints, fast, slow, seconds, source)


def _change(model: RobotModel, parts: Sequence[Samples], spread: ResidualSpread) -> ChangeSpread | None:
    """Return sudden changes of the momentum observer along the samples of one rate; None for slow ones."""
    rate = stream_rate(parts[0].t)
    used = [part for part in parts if part.qd is not None and abs(stream_rate(part.t) / rate - 1.0) < 1e-3]
    if rate < LEAST_RATE or not used:
        return None
    found = _predictors(model, used, rate, spread)
    quiet = replace(found, deviations=tuple(QUIETER * deviation for deviation in found.deviations))
    tail = _tail(np.concatenate([_largest_changes(model, part, replace(spread, change=quiet)) for part in used]))
    return replace(found, tail=tail)


def _predictors(model: RobotModel, parts: Sequence[Samples], rate: float, spread: ResidualSpread) -> ChangeSpread:
    """Return the predictors of all joints, the deviations of their errors and the speeds of the samples."""
    external = [(r := _reports(model, part, spread)).external[_used(r)] for part in parts]
    fits = [_predictor([values[:, j] for values in external]) for j in range(model.dof)]
    speeds = [motor_values(model.calibration.model.robot, np.asarray(part.qd)) for part in parts]
    fastest = FASTER * np.max([np.nanmax(np.abs(speed), axis=0) for speed in speeds], axis=0)
    factors, deviations = zip(*fits, strict=True)
    return ChangeSpread(rate, factors, deviations, tuple(fastest.tolist()), Tail(0.0, 1.0))


def _largest_changes(model: RobotModel, part: Samples, spread: ResidualSpread) -> Array:
    """Return the largest sudden changes in blocks of samples."""
    reports = _reports(model, part, spread)
    return _block_maxima(reports.change[_used(reports)], (part.t - part.t[0])[_used(reports)])


def _predictor(signals: Sequence[Array]) -> tuple[tuple[float, float], float]:
    """Return the factors of the last two values that predict a signal best, and the deviation of the error."""
    past = np.vstack([np.column_stack([x[1:-1], x[:-2]]) for x in signals])
    now = np.concatenate([x[2:] for x in signals])
    factors = np.linalg.lstsq(past, now, rcond=None)[0]
    return (float(factors[0]), float(factors[1])), max(float(np.std(now - past @ factors)), 1e-9)


def _is_usable(model: RobotModel, log: Log) -> bool:
    long_enough = log.samples > LEAST_SAMPLES and model.output in log.available
    return long_enough and SLOWEST <= log.clock.rate <= FASTEST


def _reports(model: RobotModel, samples: Samples, spread: ResidualSpread) -> Reports:
    """Return the reports of a monitor that finds no contacts."""
    rate = stream_rate(samples.t)
    measured = np.asarray(np.isfinite(samples.output).any(axis=0))
    limits, derived = (UNLIMITED, UNLIMITED, 0.0 if spread.change is None else UNLIMITED), samples.qd is None
    numbers = core_monitor(model, rate, spread, limits=limits, measured=measured, derived=derived)
    planned = model.planned_core(rate)
    assert isinstance(planned, NativeCore)
    core = NativeWatch(planned, numbers)
    return core.steps(core.init(), samples)[0]


def _used(reports: Reports) -> Mask:
    """Return which samples are after the time in which the filter learns."""
    return np.arange(len(reports.contact)) >= SETTLING


def features(reports: Reports, joint: int) -> Array:
    """Return what the spread of a joint depends on, (samples, features)."""
    v = np.abs(reports.speed[:, joint])
    slowness = np.exp(-((v / SLOWNESS) ** 2))
    return np.column_stack([np.ones_like(v), v, np.abs(reports.inertia[:, joint]), slowness, reports.shock[:, joint]])


def _joint_spread(parts: Sequence[Reports], joint: int, before: JointSpread, source: str) -> JointSpread:
    moving = [_used(r) & (r.rest[:, joint] == 0.0) for r in parts]
    resting = [_used(r) & (r.rest != 0.0).all(axis=1) for r in parts]
    columns = np.vstack([features(r, joint)[rows] for r, rows in zip(parts, moving, strict=True)])
    factor = MARGIN[source]
    found: dict[str, Any] = {}
    for name, channel, least in (("fast", "external", LEAST_SHOCK[0]), ("slow", "residual", LEAST_SHOCK[1])):
        pairs = list(zip(parts, moving, resting, strict=True))
        known = np.concatenate([_is_bound_small(r.bound_slow[:, joint])[rows] for r, rows, _ in pairs])
        sizes = np.concatenate([np.abs(getattr(r, channel)[rows, joint]) for r, rows, _ in pairs])[known]
        at_rest = np.concatenate([_increments(getattr(r, channel)[:, joint], rows) for r, _, rows in pairs])
        found[name] = _factors(columns[known], sizes, least, factor, getattr(before, name))
        found[f"rest_{name}"] = _rest(at_rest, factor, getattr(before, f"rest_{name}"))
    return JointSpread(**found)


def _is_bound_small(bound: Array) -> Mask:
    """Return where dry friction is known: elsewhere its bound (Nm) is added to the threshold."""
    return np.asarray(bound <= SMALL_BOUND * bound.max(initial=0.0))


def _factors(columns: Array, sizes: Array, least: float, factor: float, before: tuple[float, ...]) -> tuple[float, ...]:
    """Return non-negative factors c with ``E|e| = √(2/π) c·features``, by reweighted least squares."""
    if len(sizes) < LEAST_SAMPLES or not sizes.any():  # too few, or of a joint without a measured output
        return before
    every = max(len(sizes) // MOST_ROWS, 1)
    series = np.ascontiguousarray(columns[::every].T)
    target, mean = sizes[::every] / MEAN_ABSOLUTE, float(sizes.mean()) / MEAN_ABSOLUTE
    spread, c = np.full(len(target), mean), np.zeros(len(FEATURES))
    for _ in range(REWEIGHTINGS):
        scaled = series / spread
        squares = scaled @ scaled.T
        squares.flat[:: len(c) + 1] += RIDGE * squares.max()
        c = non_negative(squares, scaled @ (target / spread))
        spread = np.maximum(c @ series, 0.2 * mean)
    c[0], c[4] = max(c[0], LEAST_SHARE * mean), max(c[4], least / factor)
    return tuple((factor * c).tolist())


def _increments(residual: Array, rows: Mask) -> Array:
    """Return the changes of a residual over `LAG` samples in rows at rest: without what static friction holds."""
    both = rows[LAG:] & rows[:-LAG]
    result: Array = np.abs(residual[LAG:] - residual[:-LAG])[both]
    return result


def _rest(sizes: Array, factor: float, before: float) -> float:
    """Return the spread at rest; a quantile, as friction relaxes in the moments after a stop."""
    return before if len(sizes) < LEAST_SAMPLES else max(factor * float(np.quantile(sizes, NORMAL_QUANTILE)), 1e-9)


def _ratios(reports: Reports, t: Array, spread: ResidualSpread) -> tuple[Array, Array]:
    """Return the largest ratios of fast and slow residuals to their spread in every block."""
    result = []
    along = {name: np.square(_spread_along(reports, spread, name)) for name in ("fast", "slow")}
    known = np.maximum(np.square(reports.deviation) - along["slow"], 0.0)
    for name, channel in (("fast", "external"), ("slow", "residual")):
        total = np.sqrt(along[name] + known)
        beyond = np.maximum(np.abs(getattr(reports, channel)) - getattr(reports, f"bound_{name}"), 0.0)
        ratio = (beyond / total).max(axis=1)[_used(reports)]
        if name == "fast":
            ratio = _persistent(ratio)
        result.append(_block_maxima(ratio, (t - t[0])[_used(reports)]))
    return result[0], result[1]


def _block_maxima(values: Array, t: Array) -> Array:
    """Return the largest values in blocks of `BLOCK` s; t (s) counts from the start and may be longer."""
    blocks = (t / BLOCK).astype(int)[: len(values)]
    edges = np.flatnonzero(np.diff(blocks, prepend=blocks[0] - 1))
    result: Array = np.maximum.reduceat(values, edges)
    return result


def _persistent(ratio: Array) -> Array:
    """Return the least of three ratios in a row: the fast residual counts if it lasts that long."""
    return np.minimum.reduce([ratio[2:], ratio[1:-1], ratio[:-2]]) if len(ratio) > 2 else ratio


def _spread_along(reports: Reports, spread: ResidualSpread, name: str) -> Array:
    """Return the spread of one residual at every sample, (samples, joints)."""
    columns = []
    for j, joint in enumerate(spread.joints):
        factors = np.array(getattr(joint, name))
        moving = features(reports, j) @ factors
        resting = getattr(joint, f"rest_{name}") + factors[4] * reports.shock[:, j]
        columns.append(np.where(reports.rest[:, j] != 0.0, resting, moving))
    return np.column_stack(columns)


def _tail(largest: Array) -> Tail:
    """Return the Gumbel distribution of block maxima by its moments: ``β = s √6/π``, ``μ = mean - 0.5772 β``."""
    scale = max(float(np.std(largest)) * np.sqrt(6.0) / np.pi, 0.05)
    return Tail(float(np.mean(largest) - np.euler_gamma * scale), float(scale))
