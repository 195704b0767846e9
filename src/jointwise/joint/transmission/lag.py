"""Lag of a gear after a reversal: the travel after which lost motion is fully built up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from jointwise.estimation.cross_validation import SIGNIFICANT
from jointwise.estimation.gram import normal_solution
from jointwise.estimation.jackknife import standard_error
from jointwise.joint.part import CURVE_BINS, TINY
from jointwise.joint.transmission.data import Strokes, cells
from jointwise.joint.transmission.fit import Orders, SeriesFit, cycle_blocks, fit_series, series_columns, solve_blocks
from jointwise.joint.transmission.law import full_lag
from jointwise.spatial import Array

CURVE_SHARE = 0.8
"""Fraction of the usual stroke over which the lag is shown."""
SMOOTHING_ERROR = 5e-4
"""Standard error added to every amplitude and to the reach (relative) and phase (rad): the error due to smoothing."""
SETTLED_REACHES = 2.2
"""Travel after a reversal from which the lag counts as full, in reaches; 2 is the travel from side to side."""
REACH_SHARES = (0.002, 0.6)
"""Smallest and largest reach that is sought, as fractions of the usual stroke."""
REACHES = 24
"""Reaches of the first search, in equal ratios."""
NEWTON_STEPS = 3
"""Gauss-Newton steps of the reach."""
NO_LOAD = 1e-12
"""Variation of the load (Nm) below which it is taken as this one in the error of the compliance."""
STEP = 1e-3
"""Step of the numerical derivative by the reach, relative to it."""
MAX_STEP = 0.2
"""Largest step as a fraction of the reach."""
RIPPLE_ORDERS = (10, 500)
"""Range of orders sought in the residual of the lowest ones where only part of a turn was measured."""
MAX_RIPPLES = 4
"""Largest number of such orders."""
RIPPLE_SHARE = 0.1
"""Smallest fraction of the residual variance that an order must explain."""
RIPPLE_POINTS = 2048
"""Angles per turn over which the residual is averaged for its spectrum."""


@dataclass(frozen=True)
class Lag:
    """Lag over the travel since a reversal: `travel` (rad) and `fraction` (bins,) from -1 to 1, and its parameters.

    `reach` L (rad, with its standard error): half of the travel from side to side, 0 where the gear has no lag;
    `compliance` of the spring (rad/Nm, with its standard error), fitted where it is not known. `blocks`: blocks of
    cycles behind the standard errors.
    """

    travel: Array
    fraction: Array
    reach: float
    reach_error: float
    compliance: float
    compliance_error: float
    blocks: int

    @property
    def settled(self) -> float:
        """Travel after which the lag is full, rad."""
        return SETTLED_REACHES * self.reach


def estimate_lag(strokes: Strokes, orders: Orders, elastic: bool) -> Lag:
    """Return the lag with the reach L that minimises the residual of ``φ = e(θ) + d(θ) P(θ; L) + c τ``."""
    shortest, longest = (share * strokes.usual_stroke for share in REACH_SHARES)
    grid = np.geomspace(shortest, longest, REACHES)
    best = int(np.argmin([_residual_share(strokes, reach, orders, elastic) for reach in grid]))
    around = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, REACHES - 1)]))
    found = minimize_scalar(
        lambda reach: _residual_share(strokes, reach, orders, elastic), bounds=around, method="bounded"
    )
    return _lag(strokes, float(found.x), orders, elastic)


def refine_lag(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> Lag:
    """Return the lag for known orders of both maps, by Gauss-Newton steps of the reach.

    The load contains the ripple of the kinematic error, so that the spring can be estimated only with its orders in the
    model. A negative compliance is impossible: it is set to zero, with its standard error kept.
    """
    found = _newton(strokes, lag, orders, elastic)
    if found.compliance >= 0.0:
        return found
    rigid = _newton(strokes, lag, orders, False)
    error = max(found.reach_error, rigid.reach_error) if rigid.reach else 0.0
    return replace(rigid, reach_error=error, compliance_error=found.compliance_error)


def find_ripple(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> tuple[int, ...]:
    """Return high orders of the kinematic error in part of a turn, where a spectrum is not defined.

    One after the other, the largest order in the residual of a fit, as long as it explains enough of it.
    """
    reach = lag.reach or _shortest(strokes)
    found: tuple[int, ...] = ()
    theta, residual = _residual(strokes, reach, orders, elastic)
    while len(found) < MAX_RIPPLES:
        candidate = (*found, _largest_order(theta, residual))
        _, after = _residual(strokes, reach, ((*orders[0], *candidate), orders[1]), elastic)
        if candidate[-1] in found or np.var(after) > (1.0 - RIPPLE_SHARE) * np.var(residual):
            break
        found, residual = candidate, after
    return tuple(sorted(found))


def _newton(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> Lag:
    if lag.reach == 0.0:
        return _lag(strokes, _shortest(strokes), orders, elastic)
    reach = lag.reach
    for _ in range(NEWTON_STEPS):
        W = _columns_with_reach(strokes, _fit(strokes, reach, orders, elastic), reach)
        step = float(solve_blocks(W, _lagged(strokes, reach).phi, np.zeros(len(W), dtype=np.intp))[0][-1])
        reach += float(np.clip(step, -MAX_STEP * reach, MAX_STEP * reach))
    return _lag(strokes, reach, orders, elastic)


def _shortest(strokes: Strokes) -> float:
    """Return the shortest reach that is sought, rad."""
    return REACH_SHARES[0] * strokes.usual_stroke


def _residual(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> tuple[Array, Array]:
    """Return angles and the residual of φ of a fit there, rad."""
    lagged = _lagged(strokes, reach)
    return lagged.theta, lagged.phi - _fit(strokes, reach, orders, elastic).predicted(lagged)


def _largest_order(theta: Array, residual: Array) -> int:
    """Return the largest order in the means of a residual over small angles, zero where there are none."""
    cell = cells(theta, RIPPLE_POINTS)
    count = np.maximum(np.bincount(cell, minlength=RIPPLE_POINTS), 1)
    sizes = np.abs(np.fft.rfft(np.bincount(cell, residual, RIPPLE_POINTS) / count))
    low, high = RIPPLE_ORDERS
    return low + int(np.argmax(sizes[low : high + 1]))


def _lag(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> Lag:
    """Return the lag of a reach, with standard errors, compliance and the measured curve."""
    fit = _fit(strokes, reach, orders, elastic)
    lagged = _lagged(strokes, reach)
    replicates = solve_blocks(_columns_with_reach(strokes, fit, reach), lagged.phi, cycle_blocks(lagged))[1]
    errors = standard_error(replicates)
    travel, fraction = _measured_lag(strokes, fit)
    compliance = (fit.compliance, _compliance_error(strokes, fit, float(errors[-2]))) if elastic else (0.0, 0.0)
    lost = (reach, float(errors[-1])) if _has_backlash(strokes, fit, replicates) else (0.0, 0.0)
    return Lag(travel, fraction, *lost, *compliance, len(replicates))


def _compliance_error(strokes: Strokes, fit: SeriesFit, error: float) -> float:
    """Return the standard error of the compliance, rad/Nm, with that of a lag correlated with the load."""
    lost = float(np.abs(fit.series()[1].at(strokes.theta)).mean())
    return float(np.hypot(error, SMOOTHING_ERROR * lost / max(float(np.std(strokes.load)), NO_LOAD)))


def _has_backlash(strokes: Strokes, fit: SeriesFit, replicates: Array) -> bool:
    """Return whether the mean backlash over the samples is significant: over an arc no coefficient alone is."""

    def mean(values: Array) -> float:
        return float(fit.series(values)[1].at(strokes.theta).mean())

    return abs(mean(fit.values)) > SIGNIFICANT * float(standard_error(np.array([mean(x) for x in replicates])))


def _fit(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> SeriesFit:
    return fit_series(_lagged(strokes, reach), orders, elastic)


def _lagged(strokes: Strokes, reach: float) -> Strokes:
    """Return the strokes with the lag P in place of the direction, from the second cycle on.

    The initial state of the lag is unknown; after two reversals it has no influence.
    """
    lagged = replace(strokes, side=full_lag(strokes.theta, reach))
    return lagged.take(strokes.stroke > strokes.stroke.min() + 1)


def _residual_share(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> float:
    """Return the mean square residual of φ for a reach, as a fraction of the variance."""
    lagged = _lagged(strokes, reach)
    W = series_columns(lagged, orders, elastic)
    x = normal_solution(W.T @ W, W.T @ lagged.phi)
    return float(np.mean(np.square(W @ x - lagged.phi)) / max(float(np.var(lagged.phi)), TINY))


def _columns_with_reach(strokes: Strokes, fit: SeriesFit, reach: float) -> Array:
    """Return the columns (samples, n + 1) of a fit and the derivative of φ by the reach."""
    step = STEP * reach
    before, here, after = (_lagged(strokes, reach + change) for change in (-step, 0.0, step))
    lost = fit.series()[1].at(here.theta)
    W = series_columns(here, (fit.error_orders, fit.lost_orders), fit.elastic)
    return np.column_stack([W, lost * (after.side - before.side) / (2.0 * step)])


def _measured_lag(strokes: Strokes, fit: SeriesFit) -> tuple[Array, Array]:
    """Return travel and ``p = Σ s d (φ - e - c τ) / Σ d²`` in bins of it, after the first reversal."""
    edges = np.linspace(0.0, CURVE_SHARE * strokes.usual_stroke, CURVE_BINS + 1)
    used = strokes.take((strokes.stroke > strokes.stroke.min()) & (strokes.travel < edges[-1]))
    error, lost = fit.series()
    d = lost.at(used.theta)
    lag = used.phi - error.at(used.theta) - fit.compliance * used.load
    bins = np.clip(np.searchsorted(edges, used.travel, side="right") - 1, 0, CURVE_BINS - 1)
    top, bottom = (np.bincount(bins, values, CURVE_BINS) for values in (used.side * d * lag, d * d))
    filled = bottom > 0.0
    travel: Array = 0.5 * (edges[1:] + edges[:-1])[filled]
    return travel, top[filled] / bottom[filled]
