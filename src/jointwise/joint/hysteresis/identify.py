"""Identification of joint hysteresis from slow reciprocation: several models, compared on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from jointwise.errors import EstimationError, ModelError, nearest
from jointwise.estimation.cross_validation import exceeds, first_or_best, simplest_candidate
from jointwise.joint.checks import check_gravity, refuse
from jointwise.joint.friction.law import Rise, known_rise
from jointwise.joint.hysteresis.data import Growth, Loops, Viscous, candidate_growths, make_loops, viscous_friction
from jointwise.joint.hysteresis.fit import HysteresisFit, bounded, complete, fit_forces, moved, other_treatments, refine
from jointwise.joint.hysteresis.law import LADDERS, METHODS, SLIP, STATIC, FrictionLaw, usual_exponent
from jointwise.joint.hysteresis.normal_equations import (
    Bank,
    HysteresisProblem,
    Known,
    best_choices,
    choice_spread,
    errors_by_count,
    gains,
    make_bank,
)
from jointwise.joint.hysteresis.result import held_out_fit, make_part
from jointwise.joint.part import Part
from jointwise.joint.quality import with_common_notes
from jointwise.joint.record import JointRecord
from jointwise.joint.transmission.law import backlash_table
from jointwise.model.friction import linear_limits, polynomial_limits, polynomial_shares
from jointwise.spatial import Array

MAX_CHOSEN = 6
"""Most elements that a choice by held-out error tries; the thesis finds no gain above four."""
MAX_ELEMENTS = 16
"""Most elements that may be requested."""
LADDER_ELEMENTS = 4
"""Usual number of elements of pre-assigned ladders."""
MIN_FIT = 5.0
"""NRMSE fit (%) on held-out data below which friction does not follow the motion."""
MIN_EXPLAINED = 0.05
"""Fraction of the variance of friction that the best single element must explain."""
MEMORY_ERRORS = 1.5
"""Standard errors by which a model with memory must beat those without: one alone happens by chance in one of six."""
NO_MAP = "the transmission shows no lost motion at some angles: backlash is taken as constant over a turn"

Backlash = float | Sequence[float] | Array | Part
Candidate = tuple[HysteresisProblem, dict[int, Array]]
"""Data and settings under one load law, and held-out errors (blocks,) by number of elements."""


def identify_hysteresis(
    record: JointRecord,
    *,
    method: str = "auto",
    elements: int | None = None,
    backlash: Backlash | None = None,
    load: str | Part = "auto",
    steady: Viscous | Part | None = None,
) -> Part:
    """Return the hysteresis of a joint, ``f = F(τ) H(θ) + F_V ω + offset``.

    Args:
        record: A record with reversals, best a slow reciprocation.
        method: One of `METHODS`, or "auto": the simplest slip model within one standard error of the best one on
            held-out data. Rate-dependent models, LuGre and static laws are fitted for comparison.
        elements: Number of elements. None: nlr has the fewest within one standard error of the best on held-out data,
            pre-assigned ladders have four.
        backlash: Backlash B in rad, a map of it over one turn, or a transmission part (for the shape of the map). None
            to estimate it.
        load: Growth of friction with the load: "none", "absolute", "square", "auto" (the best on held-out data where
            the load varies), or a load part, whose law is used.
        steady: Known viscous friction, which is subtracted first: a function of speed and temperature, or a friction
            part, which also determines the Stribeck rise towards standstill. The remaining viscous friction and an
            offset are estimated.

    Returns:
        The part with its law, values, alternatives and curves.

    Raises:
        EstimationError: Where the data do not determine hysteresis.
        ModelError: For an unknown method or an impossible number of elements.
    """
    check_gravity(record)
    _check(method, elements)
    scale, backlash_map = mean_and_map(backlash)
    loops, rise = make_loops(record, backlash_map, viscous_friction(steady, record)), known_rise(steady)
    problem, errors = _best_problem(
        [
            _problem(record, loops, elements, scale, backlash_map, growth, rise)
            for growth in candidate_growths(record, loops, load)
        ]
    )
    fits = {name: fit_method(problem, name) for name in _methods(method, rise)}
    chosen = fits[_simplest_slip_model(fits) if method == "auto" else method]
    if method not in STATIC:
        _refuse_without_memory(record, loops, fits)
    treatments = other_treatments(record, loops, chosen, backlash_map, steady)
    part = make_part(record, problem, chosen, list(fits.values()), treatments, errors)
    unusable = isinstance(backlash, Part) and backlash_map is None
    part = replace(part, notes=(*part.notes, NO_MAP)) if unusable else part
    return with_common_notes(part, record)


def mean_and_map(backlash: Backlash | None) -> tuple[float | None, Array | None]:
    """Return the mean backlash (rad; None if unknown) and its map over one turn, (points,) (None if constant).

    The lost motion of a transmission part has the shape of the map, not its size; it is not used where it found none.
    """
    if backlash is None:
        return None, None
    if isinstance(backlash, Part):
        table = backlash_table(backlash)
        return None, table if backlash.settings["reach"] > 0.0 and (table > 0.0).all() else None
    values = np.atleast_1d(np.asarray(backlash, dtype=float))
    if values.ndim != 1 or not np.isfinite(values).all() or not (values > 0.0).all():
        raise EstimationError("backlash must be positive: one value in rad, or values over one turn.")
    return float(values.mean()), values if len(values) > 1 else None


def _check(method: str, elements: int | None) -> None:
    if method != "auto" and method not in METHODS:
        raise ModelError(f"unknown method '{method}'. {nearest(method, ('auto', *METHODS))}")
    if elements is not None and not 1 <= elements <= MAX_ELEMENTS:
        raise ModelError(f"elements must be 1 to {MAX_ELEMENTS}. Got {elements} instead.")


def _methods(method: str, rise: Rise | None) -> tuple[str, ...]:
    """Return the methods to fit: all of them, or the requested one with nlr and the static laws for comparison."""
    if method != "auto":
        return tuple(dict.fromkeys((method, "nlr", *STATIC)))
    return METHODS if rise is None else tuple(name for name in METHODS if name != "nlr-stribeck")


def _simplest_slip_model(fits: dict[str, HysteresisFit]) -> str:
    return simplest_candidate({name: fits[name].held_out for name in SLIP if name in fits})


def _problem(
    record: JointRecord,
    loops: Loops,
    elements: int | None,
    scale: float | None,
    backlash_map: Array | None,
    growth: Growth,
    rise: Rise | None,
) -> Candidate:
    """Return data and settings of the methods, and the held-out errors behind the number of elements."""
    known = Known(scale, backlash_map, growth, rise)
    bank = make_bank(loops, known.law("nlr", np.empty(0)))
    _refuse_without_slip(record, loops, bank)
    errors = errors_by_count(bank, MAX_CHOSEN) if elements is None else {}
    count = elements or simplest_candidate(errors, paired=False)
    return HysteresisProblem(loops, bank, known, elements or LADDER_ELEMENTS, count, elements is not None), errors


def _best_problem(
    candidates: list[tuple[HysteresisProblem, dict[int, Array]]],
) -> tuple[HysteresisProblem, dict[int, Array]]:
    """Return the candidate with the best nlr on held-out data, or the first where it is within one standard error."""
    if len(candidates) == 1:
        return candidates[0]
    errors = {k: fit_method(problem, "nlr").held_out for k, (problem, _) in enumerate(candidates)}
    return candidates[first_or_best(errors)]


def _refuse_without_slip(record: JointRecord, loops: Loops, bank: Bank) -> None:
    """Raise an error where friction still rises when the joint turns back, so that no element ever slips."""
    A, b = bank.reduced(bank.grams.sum(axis=0))
    (best,) = best_choices(A, b, 1)[0]
    explained = float(gains(A, b, np.array([[best]]))[0]) / (loops.variance * int(loops.used.sum()))
    if not explained > MIN_EXPLAINED:
        raise refuse(record, "hysteresis", "friction does not follow the motion (sign or order of the current)")
    if best == len(bank.limits) - 1:
        travel = 2e3 * loops.largest
        raise refuse(
            record, "hysteresis", f"the travel between reversals ({travel:.3g} mrad) is too short for the gear to slip"
        )


def _refuse_without_memory(record: JointRecord, loops: Loops, fits: dict[str, HysteresisFit]) -> None:
    """Raise an error where friction does not follow the motion, or a static law is as good as slip elements."""
    best, static = (_most_accurate(fits, names) for names in (SLIP, STATIC))
    quality = held_out_fit(loops, best)
    if not best.law.forces.sum() > 0.0:
        raise refuse(record, "hysteresis", "friction does not oppose the motion (sign or order of the current)")
    if quality < MIN_FIT:
        raise refuse(record, "hysteresis", f"friction does not follow the motion (held-out fit {quality:.1f} %)")
    if not exceeds(static.held_out - best.held_out, MEMORY_ERRORS):
        raise refuse(
            record,
            "hysteresis",
            f"friction shows no memory: on held-out data '{best.law.model}' has a fit of {quality:.1f} % and "
            f"'{static.law.model}', without memory, {held_out_fit(loops, static):.1f} %",
        )


def _most_accurate(fits: dict[str, HysteresisFit], names: tuple[str, ...]) -> HysteresisFit:
    """Return the one of some methods with the smallest held-out error."""
    return min((fits[name] for name in names if name in fits), key=lambda fit: float(fit.held_out.mean()))


# -- the models --

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
SLIP_RATES = (20.0, 500.0)
"""Starts (1/s) of the rate of slip: the memory is slower or faster than a reversal."""
BRISTLE_LENGTHS = (0.03, 0.3)
"""Starts of the length of bristles, relative to the largest slip limit."""


def fit_method(problem: HysteresisProblem, method: str) -> HysteresisFit:
    """Return the fit of one of `METHODS`."""
    if method in STATIC:
        return _static(problem, method)
    if method in LADDERS:
        return _ladder(problem, method)
    return _rated(problem, method) if method in ("rate-gms", "lugre") else _nlr(problem, method)


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
    options = {"maxfev": RATED_TRIALS, "xatol": 1e-2, "fatol": 0.0, "initial_simplex": simplex}
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
