"""How the lag of a gear builds up after a reversal: the travel after which it is full."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointwise.joint.gear_maps import full_lag
from jointwise.joint.jackknife import spread
from jointwise.joint.normal import normal_solution
from jointwise.joint.transmission.series import SeriesFit, blocks_of, columns_of, fit_series, solve_blocks
from jointwise.joint.transmission.strokes import Strokes
from jointwise.model.periodic_table import TURN
from jointwise.spatial import Array

Orders = tuple[tuple[int, ...], tuple[int, ...]]
"""Orders of the kinematic error and of the backlash, cycles a turn."""

BINS = 60
ERROR_ORDERS, LOST_ORDERS = (1, 2, 3, 4), (1, 2, 3)
"""Orders that stand for the maps while the lag is sought."""
FLOOR = 5e-4
"""Deviation that is added to every amplitude and to the reach (relative) and phase (rad): smoothing leaves as much."""
LEAST_LAG = 4.0
"""Deviations by which the mean backlash over the angles seen must differ from zero."""
TOLD = 1e5
"""Condition of the columns up to which orders are told apart: over a short arc all of them look alike."""
LOWEST_RIPPLE, HIGHEST_RIPPLE = 10, 500
"""Orders that are looked for in what the lowest ones leave of a part of a turn."""
MOST_RIPPLES = 4
RIPPLE_SHARE = 0.1
"""Least part of what was left (mean square) that a ripple takes away."""
RIPPLE_POINTS = 2048
MARGIN = 2.2
"""Travel after a reversal from which on the lag is taken for full, in reaches; 2 is the way from side to side."""
REACHES = 24
"""Reaches tried, in equal ratios from `SHORTEST` of the usual stroke to 0.6 of it."""
SHORTEST = 0.002
STEPS = 3
"""Gauss-Newton steps of the reach."""


@dataclass(frozen=True)
class Lag:
    """Lag over the travel since a reversal: `travel` (rad) and `part` (bins,) from -1 to 1, and what follows from it.

    `reach` L (rad, with its deviation): half of the travel from side to side, 0 where the gear has no lag; `compliance`
    of the spring (rad/Nm, with its deviation), found along where it is not known.
    """

    travel: Array
    part: Array
    reach: float
    deviation: float
    compliance: float
    compliance_deviation: float

    @property
    def settled(self) -> float:
        """Travel after which the lag is full, rad."""
        return MARGIN * self.reach


def usual_stroke(strokes: Strokes) -> float:
    """Return the median travel of a stroke, rad."""
    starts = np.flatnonzero(np.diff(strokes.stroke, prepend=-1))
    return float(np.median(np.maximum.reduceat(strokes.travel, starts)))


def told_orders(strokes: Strokes) -> Orders:
    """Return as many of the lowest orders of both maps as the angles seen tell apart, at least one of the error."""
    for most in range(len(ERROR_ORDERS), 1, -1):
        orders = ERROR_ORDERS[:most], LOST_ORDERS[: most - 1]
        W = columns_of(strokes, *orders, False)
        if np.linalg.cond(W / np.linalg.norm(W, axis=0)) < TOLD:
            return orders
    return ERROR_ORDERS[:1], ()


def lag_of(strokes: Strokes, orders: Orders, elastic: bool) -> Lag:
    """Return L that leaves the least of ``φ = e(θ) + d(θ) P(θ; L) + c τ`` along all samples, and the lag seen."""
    from scipy.optimize import minimize_scalar

    stroke = usual_stroke(strokes)
    grid = np.geomspace(SHORTEST * stroke, 0.6 * stroke, REACHES)
    rests = [_rest(strokes, reach, orders, elastic) for reach in grid]
    best = int(np.argmin(rests))
    around = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, REACHES - 1)]))
    found = minimize_scalar(lambda x: _rest(strokes, x, orders, elastic), bounds=around, method="bounded")
    return _described(strokes, float(found.x), orders, elastic)


def refined(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> Lag:
    """Return the lag with the orders of both maps known, by Gauss-Newton steps of the reach.

    The load holds the ripple of the kinematic error, so the spring is told from it only with its orders in the model. A
    gear does not push back: a compliance below zero is taken for none, and what that leaves unsure stays unsure.
    """
    found = _stepped(strokes, lag, orders, elastic)
    if found.compliance >= 0.0:
        return found
    rigid = _stepped(strokes, lag, orders, False)
    unsure = max(found.deviation, rigid.deviation) if rigid.reach else 0.0
    return replace(rigid, deviation=unsure, compliance_deviation=found.compliance_deviation)


def _stepped(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> Lag:
    if lag.reach == 0.0:
        return _described(strokes, SHORTEST * usual_stroke(strokes), orders, elastic)
    reach = lag.reach
    for _ in range(STEPS):
        W = _with_reach(strokes, _fit(strokes, reach, orders, elastic), reach)
        step = float(solve_blocks(W, _lagged(strokes, reach).phi, np.zeros(len(W), dtype=np.intp))[0][-1])
        reach += float(np.clip(step, -0.2 * reach, 0.2 * reach))
    return _described(strokes, reach, orders, elastic)


def ripples(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> tuple[int, ...]:
    """Return the high orders of the kinematic error in a part of a turn, which has no spectrum of its own.

    One after the other, the order that is largest in what a fit leaves, as long as it takes a good part of that away.
    """
    reach = lag.reach or SHORTEST * usual_stroke(strokes)
    found: tuple[int, ...] = ()
    left = _left(strokes, reach, orders, elastic)
    while len(found) < MOST_RIPPLES:
        more = (*found, _strongest(*left))
        after = _left(strokes, reach, ((*orders[0], *more), orders[1]), elastic)
        if more[-1] in found or np.var(after[1]) > (1.0 - RIPPLE_SHARE) * np.var(left[1]):
            break
        found, left = more, after
    return tuple(sorted(found))


def _left(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> tuple[Array, Array]:
    """Return angles and what a fit leaves of φ there, rad."""
    lagged = _lagged(strokes, reach)
    return lagged.theta, lagged.phi - _fit(strokes, reach, orders, elastic).predicted(lagged)


def _strongest(theta: Array, left: Array) -> int:
    """Return the order that is largest in the means over small angles, zero where none was seen."""
    cell = np.floor(np.mod(theta, TURN) * (RIPPLE_POINTS / TURN)).astype(np.intp) % RIPPLE_POINTS
    count = np.maximum(np.bincount(cell, minlength=RIPPLE_POINTS), 1)
    sizes = np.abs(np.fft.rfft(np.bincount(cell, left, RIPPLE_POINTS) / count))
    return LOWEST_RIPPLE + int(np.argmax(sizes[LOWEST_RIPPLE : HIGHEST_RIPPLE + 1]))


def _described(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> Lag:
    """Return what a reach leads to: deviations, compliance and the lag seen."""
    fit = _fit(strokes, reach, orders, elastic)
    lagged = _lagged(strokes, reach)
    others = solve_blocks(_with_reach(strokes, fit, reach), lagged.phi, blocks_of(lagged))[1]
    deviations = spread(others)
    travel, part = _seen(strokes, fit, usual_stroke(strokes))
    compliance = (fit.compliance, _unsure(strokes, fit, float(deviations[-2]))) if elastic else (0.0, 0.0)
    lost = (reach, float(deviations[-1])) if _stands_out(strokes, fit, others) else (0.0, 0.0)
    return Lag(travel, part, *lost, *compliance)


def _unsure(strokes: Strokes, fit: SeriesFit, deviation: float) -> float:
    """Return the deviation of the compliance, rad/Nm, with what the lag leaves where it goes along with the load."""
    lost = float(np.abs(fit.series()[1].at(strokes.theta)).mean())
    return float(np.hypot(deviation, FLOOR * lost / max(float(np.std(strokes.load)), 1e-12)))


def _stands_out(strokes: Strokes, fit: SeriesFit, others: Array) -> bool:
    """Tell whether backlash is seen, by its mean over the samples: over an arc no number of its series is sure."""

    def mean(numbers: Array) -> float:
        return float(fit.series(numbers)[1].at(strokes.theta).mean())

    return abs(mean(fit.numbers)) > LEAST_LAG * float(spread(np.array([mean(x) for x in others])))


def _fit(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> SeriesFit:
    return fit_series(_lagged(strokes, reach), *orders, elastic)


def _lagged(strokes: Strokes, reach: float) -> Strokes:
    """Return the strokes with the lag P in place of the direction, from the second cycle on.

    Where in its lag a gear begins is not known; two reversals later it does not matter.
    """
    lagged = replace(strokes, side=full_lag(strokes.theta, reach))
    return lagged.take(strokes.stroke > strokes.stroke.min() + 1)


def _rest(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> float:
    """Return the mean square that a reach leaves of φ; scaled, as a search stops at small numbers."""
    lagged = _lagged(strokes, reach)
    W = columns_of(lagged, *orders, elastic)
    A, b = W.T @ W, W.T @ lagged.phi
    x = normal_solution(A, b)
    return float(np.mean(np.square(W @ x - lagged.phi)) / max(float(np.var(lagged.phi)), 1e-300))


def _with_reach(strokes: Strokes, fit: SeriesFit, reach: float) -> Array:
    """Return the columns (samples, numbers + 1) of a fit and the slope of φ over the reach."""
    step = 1e-3 * reach
    before, here, after = (_lagged(strokes, reach + own) for own in (-step, 0.0, step))
    lost = fit.series()[1].at(here.theta)
    W = columns_of(here, fit.error_orders, fit.lost_orders, fit.elastic)
    return np.column_stack([W, lost * (after.side - before.side) / (2.0 * step)])


def _seen(strokes: Strokes, fit: SeriesFit, stroke: float) -> tuple[Array, Array]:
    """Return travel and ``p = Σ s d (φ - e - c τ) / Σ d²`` in bins of it; nothing reverses before the first stroke."""
    edges = np.linspace(0.0, 0.8 * stroke, BINS + 1)
    known = strokes.take((strokes.stroke > strokes.stroke.min()) & (strokes.travel < edges[-1]))
    error, lost = fit.series()
    d = lost.at(known.theta)
    rest = known.phi - error.at(known.theta) - fit.compliance * known.load
    bins = np.clip(np.searchsorted(edges, known.travel, side="right") - 1, 0, BINS - 1)
    top, bottom = (np.bincount(bins, own, BINS) for own in (known.side * d * rest, d * d))
    filled = bottom > 0.0
    travel: Array = 0.5 * (edges[1:] + edges[:-1])[filled]
    return travel, top[filled] / bottom[filled]
