"""Identification of joint hysteresis from slow reciprocation: several models, compared on held-out data."""

from __future__ import annotations

import numpy as np

from jointwise.arguments import checked
from jointwise.errors import ModelError, nearest
from jointwise.estimation.cross_validation import exceeds, first_or_best, simplest_candidate
from jointwise.joint.checks import check_gravity, refuse
from jointwise.joint.hysteresis.data import Loops, make_loops
from jointwise.joint.hysteresis.fit import HysteresisFit
from jointwise.joint.hysteresis.methods import (
    Backlash,
    Growth,
    HysteresisProblem,
    KnownFriction,
    Rise,
    Viscous,
    candidate_growths,
    fit_method,
    known_rise,
    mean_and_map,
    viscous_friction,
)
from jointwise.joint.hysteresis.normal_equations import Bank, best_choices, errors_by_count, gains, make_bank
from jointwise.joint.hysteresis.result import held_out_fit, make_part
from jointwise.joint.hysteresis.uncertainty import other_treatments
from jointwise.joint.laws import METHODS, SLIP, STATIC
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

MAX_CHOSEN = 6
"""Most elements that a choice by held-out error tries; the thesis finds no gain above four."""
MAX_ELEMENTS = 16
"""Most elements that may be requested."""
LADDER_ELEMENTS = 4
"""Usual number of elements of pre-assigned ladders."""
MIN_FIT = 5.0
"""NRMSE fit (%) on held-out data below which friction does not follow the motion."""
MEMORY_ERRORS = 1.5
"""Standard errors by which a model with memory must beat those without: one alone happens by chance in one of six."""
NO_MAP = "the transmission shows no lost motion at some angles: backlash is taken as constant over a turn"

Candidate = tuple[HysteresisProblem, dict[int, Array]]
"""Data and settings under one load law, and held-out errors (blocks,) by number of elements."""


@checked
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
    _check(method, elements, backlash)
    scale, backlash_map = mean_and_map(backlash)
    loops, rise = make_loops(record, backlash_map, viscous_friction(steady, record)), known_rise(steady)
    problem, errors = _best_problem(
        [
            _problem(record, loops, elements, scale, backlash_map, growth, rise)
            for growth in candidate_growths(record, loops, load)
        ]
    )
    fits = {name: fit_method(problem, name) for name in _methods(method, rise)}
    slip = {name: fits[name].held_out for name in SLIP if name in fits}
    chosen = fits[simplest_candidate(slip) if method == "auto" else method]
    if method not in STATIC:
        _refuse_without_memory(record, loops, fits)
    treatments = other_treatments(record, loops, chosen, backlash_map, steady)
    remark = NO_MAP if isinstance(backlash, Part) and backlash_map is None else ""
    return make_part(record, problem, chosen, list(fits.values()), treatments, errors, remark)


def _check(method: str, elements: int | None, backlash: Backlash | None) -> None:
    if method != "auto" and method not in METHODS:
        raise ModelError(f"unknown method '{method}'. {nearest(method, ('auto', *METHODS))}")
    if elements is not None and not 1 <= elements <= MAX_ELEMENTS:
        raise ModelError(f"elements must be 1 to {MAX_ELEMENTS}. Got {elements} instead.")
    if backlash is None or isinstance(backlash, Part):
        return
    if not (np.size(backlash) and np.isfinite(backlash).all()):
        raise ModelError(f"backlash must be finite, in rad. Got {np.ravel(backlash).tolist()} instead.")


def _methods(method: str, rise: Rise | None) -> tuple[str, ...]:
    """Return the methods to fit: all of them, or the requested one with nlr and the static laws for comparison."""
    if method != "auto":
        return tuple(dict.fromkeys((method, "nlr", *STATIC)))
    return METHODS if rise is None else tuple(name for name in METHODS if name != "nlr-stribeck")


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
    known = KnownFriction(scale, backlash_map, growth, rise)
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
    if not gains(A, b, np.array([[best]]))[0] > 0.0:
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
