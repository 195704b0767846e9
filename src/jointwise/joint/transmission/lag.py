"""How the lag of a gear builds up after a reversal: the travel after which it is full."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointwise.joint.gear_maps import full_lag
from jointwise.joint.jackknife import spread
from jointwise.joint.normal import normal_solution
from jointwise.joint.transmission.series import SeriesFit, blocks_of, columns_of, fit_series, solve_blocks
from jointwise.joint.transmission.strokes import Strokes
from jointwise.spatial import Array

BINS = 60
ERROR_ORDERS, LOST_ORDERS = (1, 2, 3, 4), (1, 2, 3)
"""Orders that stand for the maps while the lag is sought."""
LEAST_LAG = 4.0
"""Deviations by which the mean backlash, over the angles seen, must differ from zero."""
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


def lag_of(strokes: Strokes, elastic: bool) -> Lag:
    """Return L that leaves the least of ``φ = e(θ) + d(θ) P(θ; L) + c τ`` along all samples, and the lag seen."""
    from scipy.optimize import minimize_scalar

    stroke = usual_stroke(strokes)
    grid = np.geomspace(SHORTEST * stroke, 0.6 * stroke, REACHES)
    rests = [_rest(strokes, reach, elastic) for reach in grid]
    best = int(np.argmin(rests))
    around = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, REACHES - 1)]))
    found = minimize_scalar(lambda x: _rest(strokes, x, elastic), bounds=around, method="bounded")
    return _described(strokes, float(found.x), ERROR_ORDERS, LOST_ORDERS, elastic)


def refined(strokes: Strokes, lag: Lag, error: tuple[int, ...], lost: tuple[int, ...], elastic: bool) -> Lag:
    """Return the lag with the orders of both maps known, by Gauss-Newton steps of the reach.

    The load holds the ripple of the kinematic error, so the spring is told from it only with its orders in the model.
    """
    if lag.reach == 0.0:
        return _described(strokes, SHORTEST * usual_stroke(strokes), error, lost, elastic)
    reach = lag.reach
    for _ in range(STEPS):
        W = _with_reach(strokes, _fit(strokes, reach, error, lost, elastic), reach)
        step = float(solve_blocks(W, strokes.phi, np.zeros(len(W), dtype=np.intp))[0][-1])
        reach += float(np.clip(step, -0.2 * reach, 0.2 * reach))
    return _described(strokes, reach, error, lost, elastic)


def _described(strokes: Strokes, reach: float, error: tuple[int, ...], lost: tuple[int, ...], elastic: bool) -> Lag:
    """Return what a reach leads to: deviations, compliance and the lag seen."""
    fit = _fit(strokes, reach, error, lost, elastic)
    replicates = solve_blocks(_with_reach(strokes, fit, reach), strokes.phi, blocks_of(strokes))[1]
    deviations = spread(replicates)
    lost_columns = slice(1 + 2 * len(error), 2 + 2 * len(error) + 2 * len(lost))
    seen = columns_of(replace(strokes, side=np.ones(len(strokes.phi))), error, lost, elastic)[:, lost_columns].mean(
        axis=0
    )
    stands_out = abs(fit.numbers[lost_columns] @ seen) > LEAST_LAG * float(spread(replicates[:, lost_columns] @ seen))
    travel, part = _seen(strokes, fit, usual_stroke(strokes))
    compliance = (fit.compliance, float(deviations[-2])) if elastic else (0.0, 0.0)
    return Lag(travel, part, *((reach, float(deviations[-1])) if stands_out else (0.0, 0.0)), *compliance)


def _fit(strokes: Strokes, reach: float, error: tuple[int, ...], lost: tuple[int, ...], elastic: bool) -> SeriesFit:
    return fit_series(replace(strokes, side=full_lag(strokes.theta, reach)), error, lost, elastic)


def _rest(strokes: Strokes, reach: float, elastic: bool) -> float:
    """Return the mean square that a reach leaves of φ; scaled, as a search stops at small numbers."""
    lagged = replace(strokes, side=full_lag(strokes.theta, reach))
    W = columns_of(lagged, ERROR_ORDERS, LOST_ORDERS, elastic)
    A, b = W.T @ W, W.T @ strokes.phi
    x = normal_solution(A, b)
    return float(np.mean(np.square(W @ x - strokes.phi)) / max(float(np.var(strokes.phi)), 1e-300))


def _with_reach(strokes: Strokes, fit: SeriesFit, reach: float) -> Array:
    """Return the columns (samples, numbers + 1) of a fit and the slope of φ over the reach."""
    step = 1e-3 * reach
    sides = [full_lag(strokes.theta, reach + own) for own in (-step, 0.0, step)]
    lost = fit.series()[1].at(strokes.theta)
    W = columns_of(replace(strokes, side=sides[1]), fit.error_orders, fit.lost_orders, fit.elastic)
    return np.column_stack([W, lost * (sides[2] - sides[0]) / (2.0 * step)])


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
