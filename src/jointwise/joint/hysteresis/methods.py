"""Fits of the models of hysteresis: ladders of limits, free limits, rate-dependent models, and static laws.

Maxwell-slip models have limits D_i that are a fixed ladder times the backlash B ("gms", "lr-linear", "lr-polynomial")
or free ("nlr", "nlr-stribeck").

References:
    Rizos, Fassois: Presliding friction identification based upon the Maxwell slip model structure, Chaos 14(2), 2004
    (linear and nonlinear regression, here "lr" and "nlr").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from jointwise.joint.hysteresis.data import Loops
from jointwise.joint.hysteresis.fit import HysteresisFit, bounded, complete, fit_forces, moved, refine
from jointwise.joint.hysteresis.known import KnownFriction
from jointwise.joint.hysteresis.law import LADDERS, RATED, STATIC, FrictionLaw, usual_exponent
from jointwise.joint.hysteresis.limit_search import Bank, best_choices, choice_spread
from jointwise.model.friction import linear_limits, polynomial_limits, polynomial_shares
from jointwise.spatial import Array

SMALLEST_SCALE = 4.0
"""Smallest backlash of a ladder that is sought, in units of the smallest limit that the data resolve."""
SCAN = 14
"""Points of a coarse scan, on a logarithmic scale, before a local search."""
TOLERANCE = 5e-3
"""Relative accuracy of that search: ten times finer than the usual standard error of a backlash or a speed."""
STATIC_SPEEDS = (5e-4, 0.1)
"""Range (rad/s) of the width of tanh and of the Stribeck speed of static laws."""
SAME_LIMIT = 0.1
"""Relative difference of two limits below which their elements are one."""
RISE_START = (0.1, 0.03)
"""Start (e, V in rad/s) of a Stribeck rise: 10 % below 30 mrad/s, as gears of robots have."""
RATED_TRIALS = 100
"""Evaluations of the simplex search from each start; the refinement that follows converges from there."""
SIMPLEX = 0.3
"""Size of the first simplex in ln D, e, ln V and ln of the rate."""
SIMPLEX_TOLERANCE = 1e-2
"""Size of the simplex at which the search stops: the refinement converges from there."""
SLIP_RATES = (20.0, 500.0)
"""Starts (1/s) of the rate of slip: the memory is slower or faster than a reversal."""
BRISTLE_LENGTHS = (0.03, 0.3)
"""Starts of the length of bristles, relative to the largest slip limit."""


@dataclass(frozen=True, eq=False)
class HysteresisProblem:
    """Data and settings that all methods share.

    Attributes:
        loops: The data.
        bank: Slip elements on a grid of limits with their normal equations.
        known: What is known before the fit.
        ladder: Number of elements of pre-assigned ladders.
        elements: Number of elements of nlr.
        requested: The number of elements was requested: close ones are not merged.
    """

    loops: Loops
    bank: Bank
    known: KnownFriction
    ladder: int
    elements: int
    requested: bool = False

    def best_limits(self) -> Array:
        """Return the best limits of the grid, as many as nlr has elements."""
        total = self.bank.grams.sum(axis=0)
        choice = best_choices(*self.bank.reduced(total), self.elements)[-1]
        return self.bank.limits[list(choice)]


def fit_method(problem: HysteresisProblem, method: str) -> HysteresisFit:
    """Return the fit of one of `METHODS`."""
    if method in STATIC:
        return _static(problem, method)
    if method in LADDERS:
        return _ladder(problem, method)
    return _rated(problem, method) if method in RATED else _nlr(problem, method)


def _ladder(problem: HysteresisProblem, method: str) -> HysteresisFit:
    """Return the fit with limits B times a fixed ladder; B is searched where it is not known."""
    known = problem.known
    shares = polynomial_shares(problem.ladder) if method == "gms" else None
    steps = (linear_limits if method == "lr-linear" else polynomial_limits)(problem.ladder, 1.0)
    part = problem.loops.beginning()

    def error(scale: float) -> float:
        return fit_forces(part, known.law(method, scale * steps), shares).error

    scale = known.scale or _minimum(error, SMALLEST_SCALE * part.smallest, part.largest)
    start = fit_forces(problem.loops, known.law(method, scale * steps), shares)
    tied = () if known.scale else ("scale",)
    return complete(problem.loops, refine(problem.loops, start, known.free), (*tied, *known.free))


def _nlr(problem: HysteresisProblem, method: str) -> HysteresisFit:
    """Return the fit with free limits, from the best ones of the grid on; "nlr-stribeck" adds a Stribeck rise."""
    loops, known = problem.loops, problem.known
    law, free = known.law(method, problem.best_limits()), ("limits", *known.free)
    if method == "nlr-stribeck":
        law, free = replace(law, extra=RISE_START[0], speed=RISE_START[1]), (*free, "rise")
    fit = refine(loops, fit_forces(loops, law), free)
    while not problem.requested and (close := np.diff(np.log(fit.law.limits)) < SAME_LIMIT).any():
        law = replace(fit.law, limits=fit.law.limits[np.append(~close, True)])
        fit = refine(loops, fit_forces(loops, law), free)
    return replace(complete(loops, fit, free), jumps=choice_spread(problem.bank, len(fit.law.limits)))


def _static(problem: HysteresisProblem, method: str) -> HysteresisFit:
    """Return the fit of a law without memory; its speed is searched."""
    known = problem.known
    start = replace(known.law(method, np.empty(0)), growth=0.0, extra=0.0, exponent=usual_exponent(method))
    start = replace(start, load=known.growth.start is not None)
    part = problem.loops.beginning()
    speed = start.speed
    if method != "sgn":
        speed = _minimum(lambda V: fit_forces(part, replace(start, speed=V)).error, *STATIC_SPEEDS)
    return complete(problem.loops, fit_forces(problem.loops, replace(start, speed=speed)), ())


def _rated(problem: HysteresisProblem, method: str) -> HysteresisFit:
    """Return the fit of a rate-dependent model: a simplex search from several starts, then all limits free."""
    loops, known, limits = problem.loops, problem.known, problem.best_limits()
    law = replace(known.law(method, limits), exponent=usual_exponent(method), extra=RISE_START[0], speed=RISE_START[1])
    names: tuple[str, ...] = ("rise",) if method == "lugre" else ("rise", "rate")
    if method == "lugre":
        starts = [replace(law, limits=factor * limits[-1:]) for factor in BRISTLE_LENGTHS]
    else:
        starts = [replace(law, rate=rate) for rate in SLIP_RATES]
    part, free = loops.beginning(), ("limits", *known.free, *names)
    best = min((_simplex(part, start, ("scale", *names)) for start in starts), key=lambda fit: fit.error)
    found = refine(part, best, free).law
    return complete(loops, fit_forces(loops, found), free)


def _simplex(loops: Loops, start: FrictionLaw, names: tuple[str, ...]) -> HysteresisFit:
    """Return the best fit of a Nelder-Mead search over steps from a start."""

    def law_at(steps: Array) -> FrictionLaw:
        return bounded(moved(start, steps, names), loops, names)

    zero = np.zeros(len(names) + 1)
    simplex = np.vstack([zero, SIMPLEX * np.eye(len(zero))])
    options = {"maxfev": RATED_TRIALS, "xatol": SIMPLEX_TOLERANCE, "fatol": 0.0, "initial_simplex": simplex}
    found = minimize(lambda steps: fit_forces(loops, law_at(steps)).error, zero, method="Nelder-Mead", options=options)
    return fit_forces(loops, law_at(found.x))


def _minimum(error: Callable[[float], float], low: float, high: float) -> float:
    """Return the minimum of an error on a logarithmic scale: a coarse scan, then a search between its neighbours."""
    grid = np.linspace(np.log(low), np.log(high), SCAN)
    best = int(np.argmin([error(float(np.exp(point))) for point in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, SCAN - 1)]
    options = {"xatol": TOLERANCE}
    found = minimize_scalar(lambda log: error(float(np.exp(log))), bounds=bounds, method="bounded", options=options)
    return float(np.exp(found.x))
