"""Lag of a gear after a reversal: the travel after which lost motion is fully built up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brute, least_squares

from jointwise.estimation.cross_validation import SIGNIFICANT
from jointwise.estimation.gram import normal_solution
from jointwise.estimation.jackknife import standard_error
from jointwise.joint.curve import CURVE_BINS
from jointwise.joint.part import TINY
from jointwise.joint.transmission.data import Flags, Strokes, cells
from jointwise.joint.transmission.fit import (
    FINE_POINTS,
    MAX_ORDER,
    Orders,
    SeriesFit,
    cycle_blocks,
    fit_series,
    series_columns,
    solve_blocks,
)
from jointwise.joint.transmission.law import full_lag
from jointwise.model.terms import slip_slope_state, slip_slopes
from jointwise.spatial import Array

SMOOTHING_ERROR = 5e-4
"""Standard error added to every amplitude and to the reach (relative) and phase (rad): the error due to smoothing."""
SETTLED_REACHES = 2.2
"""Travel after a reversal from which the lag counts as full, in reaches; 2 is the travel from side to side."""
REACH_SHARES = (0.002, 0.6)
"""Smallest and largest reach that is sought, as fractions of the usual stroke."""
MAX_LAG_SHARE = 0.8
"""Fraction of a stroke within which the lag must be full, and over which it is shown."""
MIN_RIPPLE = 10
"""Lowest order sought in the residual of the lowest ones where only part of a turn was measured."""
RIPPLE_SHARE = 0.1
"""Smallest fraction of the residual variance that an order must explain."""


@dataclass(frozen=True)
class Lag:
    """Lag over the travel since a reversal.

    Attributes:
        travel: Travel since the reversal, (bins,), rad.
        fraction: Lag from -1 to 1, (bins,).
        reach: L, half of the travel from side to side, rad; 0 where the gear has no lag.
        reach_error: Standard error of the reach, rad.
        compliance: Compliance of the spring, rad/Nm, fitted where it is not known.
        compliance_error: Standard error of the compliance, rad/Nm.
        blocks: Number of blocks of cycles behind the standard errors.
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

    def squared_error(log: Array) -> float:
        return float(np.sum(np.square(_residual(strokes, float(np.exp(log).item()), orders, elastic)[1])))

    start = brute(squared_error, [_log_reaches(strokes)], finish=None)
    return _lag(strokes, _best_reach(strokes, float(np.exp(start)), orders, elastic), orders, elastic)


def refine_lag(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> Lag:
    """Return the lag for known orders of both maps.

    The load contains the ripple of the kinematic error, so that the spring can be estimated only with its orders in the
    model. A negative compliance is impossible: it is set to zero, with its standard error kept.
    """
    found = _refined(strokes, lag, orders, elastic)
    if found.compliance >= 0.0:
        return found
    rigid = _refined(strokes, lag, orders, False)
    error = max(found.reach_error, rigid.reach_error) if rigid.reach else 0.0
    return replace(rigid, reach_error=error, compliance_error=found.compliance_error)


def find_ripple(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> tuple[int, ...]:
    """Return high orders of the kinematic error in part of a turn, where a spectrum is not defined.

    One after the other, the largest order in the residual of a fit, as long as it explains enough of it.
    """
    reach = lag.reach or float(np.exp(_log_reaches(strokes)[0]))
    found: tuple[int, ...] = ()
    theta, residual = _residual(strokes, reach, orders, elastic)
    while True:
        candidate = (*found, _largest_order(theta, residual))
        _, after = _residual(strokes, reach, ((*orders[0], *candidate), orders[1]), elastic)
        if candidate[-1] in found or np.var(after) > (1.0 - RIPPLE_SHARE) * np.var(residual):
            return tuple(sorted(found))
        found, residual = candidate, after


def _refined(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> Lag:
    """Return the lag with the best reach near that of another lag; one without a reach stays without."""
    reach = _best_reach(strokes, lag.reach, orders, elastic) if lag.reach else float(np.exp(_log_reaches(strokes)[0]))
    return _lag(strokes, reach, orders, elastic)


def _best_reach(strokes: Strokes, start: float, orders: Orders, elastic: bool) -> float:
    """Return the reach (rad) of least squared residual near a start; both maps and the spring are solved at each."""
    low, high = _log_reaches(strokes)
    found = least_squares(
        lambda log: _residual(strokes, float(np.exp(log[0])), orders, elastic)[1],
        [np.clip(np.log(start), low, high)],
        bounds=(low, high),
        x_scale="jac",
    )
    return float(np.exp(found.x[0]))


def _log_reaches(strokes: Strokes) -> tuple[float, float]:
    """Return the logarithms of the shortest and longest reach (rad) that are sought."""
    low, high = np.log(np.array(REACH_SHARES) * strokes.usual_stroke)
    return float(low), float(high)


def _residual(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> tuple[Array, Array]:
    """Return angles and the residual of φ of a fit there, rad."""
    lagged = _lagged(strokes, reach)
    W = series_columns(lagged, orders, elastic)
    return lagged.theta, lagged.phi - W @ normal_solution(W.T @ W, W.T @ lagged.phi)


def _largest_order(theta: Array, residual: Array) -> int:
    """Return the largest order in the means of a residual over small angles, zero where there are none."""
    cell = cells(theta, FINE_POINTS)
    count = np.maximum(np.bincount(cell, minlength=FINE_POINTS), 1)
    sizes = np.abs(np.fft.rfft(np.bincount(cell, residual, FINE_POINTS) / count))
    return MIN_RIPPLE + int(np.argmax(sizes[MIN_RIPPLE : MAX_ORDER + 1]))


def _lag(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> Lag:
    """Return the lag of a reach, with standard errors, compliance and the measured curve."""
    lagged = _lagged(strokes, reach)
    fit = fit_series(lagged, orders, elastic)
    by_reach = fit.series()[1].at(lagged.theta) * _lag_slope(strokes, reach)
    W = np.column_stack([series_columns(lagged, orders, elastic), by_reach])
    replicates = solve_blocks(W, lagged.phi, cycle_blocks(lagged))[1]
    errors = standard_error(replicates)
    travel, fraction = _measured_lag(strokes, fit)
    compliance = (fit.compliance, _compliance_error(strokes, fit, float(errors[-2]))) if elastic else (0.0, 0.0)
    lost = (reach, float(errors[-1])) if _has_backlash(strokes, fit, replicates) else (0.0, 0.0)
    return Lag(travel, fraction, *lost, *compliance, len(replicates))


def _compliance_error(strokes: Strokes, fit: SeriesFit, error: float) -> float:
    """Return the standard error of the compliance, rad/Nm, with that of a lag correlated with the load."""
    lost = float(np.abs(fit.series()[1].at(strokes.theta)).mean())
    return float(np.hypot(error, SMOOTHING_ERROR * lost / max(float(np.std(strokes.load)), TINY)))


def _has_backlash(strokes: Strokes, fit: SeriesFit, replicates: Array) -> bool:
    """Return whether the mean backlash over the samples is significant: over an arc no coefficient alone is."""

    def mean(values: Array) -> float:
        return float(fit.series(values)[1].at(strokes.theta).mean())

    return abs(mean(fit.values)) > SIGNIFICANT * float(standard_error(np.array([mean(x) for x in replicates])))


def _lagged(strokes: Strokes, reach: float) -> Strokes:
    """Return the strokes with the lag P in place of the direction, where it is known."""
    return replace(strokes, side=full_lag(strokes.theta, reach)).take(_has_state(strokes))


def _has_state(strokes: Strokes) -> Flags:
    """Return flags of the samples from the second cycle on: after two reversals the first state has no influence."""
    known: Flags = strokes.stroke > strokes.stroke.min() + 1
    return known


def _lag_slope(strokes: Strokes, reach: float) -> Array:
    """Return ∂P/∂L (1/rad) of the samples of `_lagged`."""
    state = slip_slope_state(float(strokes.theta[0]), 1)
    slope = slip_slopes(strokes.theta, np.array([reach]), state)[1][:, 0] / reach
    return slope[_has_state(strokes)]


def _measured_lag(strokes: Strokes, fit: SeriesFit) -> tuple[Array, Array]:
    """Return travel and ``p = Σ s d (φ - e - c τ) / Σ d²`` in bins of it, after the first reversal."""
    edges = np.linspace(0.0, MAX_LAG_SHARE * strokes.usual_stroke, CURVE_BINS + 1)
    used = strokes.take((strokes.stroke > strokes.stroke.min()) & (strokes.travel < edges[-1]))
    error, lost = fit.series()
    d = lost.at(used.theta)
    lag = used.phi - error.at(used.theta) - fit.compliance * used.load
    bins = np.clip(np.searchsorted(edges, used.travel, side="right") - 1, 0, CURVE_BINS - 1)
    top, bottom = (np.bincount(bins, values, CURVE_BINS) for values in (used.side * d * lag, d * d))
    filled = bottom > 0.0
    travel: Array = 0.5 * (edges[1:] + edges[:-1])[filled]
    return travel, top[filled] / bottom[filled]
