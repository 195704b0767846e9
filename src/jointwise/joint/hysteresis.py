"""Hysteresis of a joint: Maxwell-slip models, rate-dependent ones, LuGre, and static laws for comparison.

Maxwell-slip models have limits D_i that are a fixed ladder times the backlash B ("gms", "lr-linear", "lr-polynomial")
or free ("nlr", "nlr-stribeck").

References:
    Rizos, Fassois: Presliding friction identification based upon the Maxwell slip model structure, Chaos 14(2), 2004
    (linear and nonlinear regression, here "lr" and "nlr").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.optimize import brute, fmin

from jointwise.arguments import checked
from jointwise.errors import EstimationError, ModelError, nearest
from jointwise.estimation.cross_validation import FOLDS, exceeds, first_or_best, simplest_candidate
from jointwise.estimation.gram import gram_covariance
from jointwise.estimation.jackknife import student_factor
from jointwise.joint.checks import check_gravity, refuse
from jointwise.joint.curve import CURVE_BINS, Curve, make_curve
from jointwise.joint.gear import backlash_table, transmission_of
from jointwise.joint.hysteresis_fit import (
    ENCODER_STEPS,
    LINEAR,
    RATES,
    SPEEDS,
    Bank,
    HysteresisFit,
    Loops,
    Names,
    best_choices,
    choice_spread,
    complete,
    errors_by_count,
    fit_forces,
    gains,
    limit_range,
    make_bank,
    make_loops,
    refine,
)
from jointwise.joint.laws import (
    LADDERS,
    METHODS,
    RATED,
    SLIP,
    STATIC,
    USUAL_SPEED,
    FrictionLaw,
    HysteresisSettings,
    JointMotion,
    StoredCovariance,
    dry_level,
    load_law_of,
    usual_exponent,
)
from jointwise.joint.part import (
    TINY,
    Part,
    TriedModel,
    Value,
    identified_part,
    nrmse_of_error,
    positive_value,
    rounding_error,
    value_of,
)
from jointwise.joint.record import JointRecord
from jointwise.joint.windows import LOAD_QUANTILES
from jointwise.model.terms import (
    LOAD_POWERS,
    linear_limits,
    load_growth,
    load_law_name,
    load_unit,
    polynomial_limits,
    polynomial_shares,
    slip_after_reversal,
    viscous_torque,
)
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
FAR = 0.25
"""Relative difference of friction at the fastest speed of a friction part from which a note is written: temperature
changes friction by less between two recordings of a day. Doubled, only gross errors of the separation are noted."""
NO_MAP = "the transmission shows no lost motion at some angles: backlash is taken as constant over a turn"


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
        method: One of `METHODS`, or "auto": the model with memory that has the fewest parameters within one standard
            error of the best one on held-out data. Static laws are fitted for comparison.
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
    if method != "auto" and method not in METHODS:
        raise ModelError(f"unknown method '{method}'. {nearest(method, ('auto', *METHODS))}")
    if elements is not None and not 1 <= elements <= MAX_ELEMENTS:
        raise ModelError(f"elements must be 1 to {MAX_ELEMENTS}. Got {elements} instead.")
    if not (backlash is None or isinstance(backlash, Part) or (np.size(backlash) and np.isfinite(backlash).all())):
        raise ModelError(f"backlash must be finite, in rad. Got {np.ravel(backlash).tolist()} instead.")
    check_gravity(record)
    scale, backlash_map = mean_and_map(backlash)
    loops, rise = make_loops(record, backlash_map, viscous_friction(steady, record)), known_rise(steady)
    growths = candidate_growths(record, loops, load)
    problems = [_problem(record, loops, elements, KnownFriction(scale, backlash_map, g, rise)) for g in growths]
    problem = problems[0]
    if len(problems) > 1:  # the first law of the load, unless another one is better by more than one standard error
        problem = problems[first_or_best({k: fit_method(p, "nlr").held_out for k, p in enumerate(problems)})]
    fits = {name: fit_method(problem, name) for name in _methods_to_fit(method, rise)}
    by_size = sorted((name for name in fits if name not in STATIC), key=lambda name: fits[name].grams.shape[1])
    chosen = fits[simplest_candidate({name: fits[name].held_out for name in by_size}) if method == "auto" else method]
    if method not in STATIC:
        _refuse_without_memory(record, loops, fits)
    treatments = other_treatments(record, loops, chosen, backlash_map, steady)
    remarks = [NO_MAP] if isinstance(backlash, Part) and backlash_map is None else []
    remarks += _extrapolation_notes(chosen.law, steady)
    return make_part(record, problem, chosen, list(fits.values()), treatments, remarks)


def _methods_to_fit(method: str, rise: Rise | None) -> tuple[str, ...]:
    """Return the methods to fit: all of them, or the requested one with nlr and the static laws for comparison."""
    if method != "auto":
        return tuple(dict.fromkeys((method, "nlr", *STATIC)))
    return METHODS if rise is None else tuple(name for name in METHODS if name != "nlr-stribeck")


def _problem(record: JointRecord, loops: Loops, elements: int | None, known: KnownFriction) -> HysteresisProblem:
    """Return data and settings of the methods, with the held-out errors behind the number of elements."""
    bank = make_bank(loops, known.law("nlr", np.empty(0)))
    _refuse_without_slip(record, loops, bank)
    errors = errors_by_count(bank, MAX_CHOSEN) if elements is None else {}
    count = elements or simplest_candidate(errors, paired=False)
    return HysteresisProblem(loops, bank, known, elements or LADDER_ELEMENTS, count, errors)


def _extrapolation_notes(law: FrictionLaw, steady: Viscous | Part | None) -> tuple[str, ...]:
    """Return a note where friction at the fastest speed of a friction part is not that of the part.

    ``W + F_V ω`` beside the known viscous friction must be near the F_C of the part: a slow reciprocation alone hardly
    separates both.
    """
    if not isinstance(steady, Part) or "speed" not in steady.ranges:
        return ()
    fastest = steady.ranges["speed"][1]
    viscous = float(viscous_torque(np.array([fastest]), [steady.get(name) for name in ("F_V1", "F_V2", "F_V3")])[0])
    found = coulomb_force(law) + law.viscous * fastest + viscous
    expected = steady.get("F_C") + viscous
    if abs(found - expected) <= FAR * abs(expected):
        return ()
    return (
        f"at {fastest:.3g} rad/s, the fastest speed of the friction part, this law has {found:.3g} Nm of friction and "
        f"the friction part {expected:.3g} Nm: these data do not separate dry and viscous friction.",
    )


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


# -- what is known before the fit: backlash, viscous friction, growth with the load, Stribeck rise --

Viscous = Callable[[Array, Array | None], Array]
"""Known viscous friction (samples,) in Nm as a function of speed (samples,) in rad/s and temperature (°C or None)."""
Backlash = float | Sequence[float] | Array | Part
"""Backlash B in rad, a map of it over one turn (points,), or a transmission part."""

MIN_LOAD = 1.0
"""Load (Nm) below which its growth of friction is not visible beside sensor noise."""
MIN_LOAD_SPAN = 0.2
"""Smallest range of the load, relative to the largest one, in which growth is estimated."""
GROWTH_SHARES = (0.01, 0.9)
"""Range of the part of dry friction that the largest load adds, in which a search starts."""


def viscous_friction(steady: Viscous | Part | None, record: JointRecord) -> Array:
    """Return known viscous friction (samples,), Nm; that of a part is ``F_V1 ω + F_V2 |ω| ω + F_V3 ω³``."""
    if steady is None:
        return np.zeros(record.samples)
    if not isinstance(steady, Part):
        return steady(record.speed, record.temperature)
    if steady.phenomenon != "friction":
        raise ModelError(f"part must be of friction. Got '{steady.phenomenon}' instead.")
    return viscous_torque(record.speed, [steady.get(name) for name in ("F_V1", "F_V2", "F_V3")])


@dataclass(frozen=True)
class Rise:
    """Stribeck rise of dry friction towards standstill, ``1 + e exp(-(|ω|/V)^μ)``.

    Attributes:
        extra: e.
        speed: V, rad/s.
        exponent: μ.
    """

    extra: float
    speed: float
    exponent: float = 1.0


def known_rise(steady: object) -> Rise | None:
    """Return the Stribeck rise of a friction part relative to its F_C; None without one, or for anything else."""
    if not isinstance(steady, Part):
        return None
    coulomb, speed = steady.get("F_C"), steady.get("V_S")
    if not (coulomb > 0.0 and speed > 0.0):
        return None
    return Rise(steady.get("F_S-F_C") / coulomb, speed, steady.get("mu", 1.0))


@dataclass(frozen=True)
class Growth:
    """Growth of dry friction with the load, ``F_C (1 + c |τ|^p)``.

    Attributes:
        start: c at which the search starts, 1/Nm^p; None for friction that does not depend on the load.
        power: p.
        fixed: Whether c is known and not estimated.
    """

    start: float | None = None
    power: float = 2.0
    fixed: bool = False


NO_GROWTH = Growth()


@dataclass(frozen=True, eq=False)
class KnownFriction:
    """What is known before the fit.

    Attributes:
        scale: Mean backlash B, rad, or None.
        map: Backlash over one turn, (points,), or None.
        growth: Growth of friction with the load.
        rise: Stribeck rise towards standstill, or None.
    """

    scale: float | None = None
    map: Array | None = None
    growth: Growth = NO_GROWTH
    rise: Rise | None = None

    @property
    def free(self) -> tuple[str, ...]:
        """The free parameters of the level: ("growth",) or ()."""
        return () if self.growth.start is None or self.growth.fixed else ("growth",)

    def law(self, model: str, limits: Array) -> FrictionLaw:
        """Return the law from which the fit of a model starts."""
        rise = self.rise or Rise(0.0, USUAL_SPEED, usual_exponent(model))
        return FrictionLaw(
            model=model,
            limits=limits,
            forces=np.empty(0),
            growth=self.growth.start or 0.0,
            power=self.growth.power,
            extra=rise.extra,
            speed=rise.speed,
            exponent=rise.exponent,
            backlash=self.map,
        )


def mean_and_map(backlash: Backlash | None) -> tuple[float | None, Array | None]:
    """Return the mean backlash and its map over one turn.

    The lost motion of a transmission part has the shape of the map, not its size; it is not used where it found none.

    Args:
        backlash: What is known about the backlash; None for nothing.

    Returns:
        Mean backlash, rad, None if it is unknown; map, (points,), None if it is constant.
    """
    if backlash is None:
        return None, None
    if isinstance(backlash, Part):
        maps, table = transmission_of(backlash), backlash_table(backlash)
        return None, table if maps.reach > 0.0 and (table > 0.0).all() else None
    values = np.atleast_1d(np.asarray(backlash, dtype=float))
    if values.ndim != 1 or not np.isfinite(values).all() or not (values > 0.0).all():
        raise EstimationError("backlash must be positive: one value in rad, or values over one turn.")
    return float(values.mean()), values if len(values) > 1 else None


def candidate_growths(record: JointRecord, loops: Loops, load: str | Part) -> tuple[Growth, ...]:
    """Return the load laws to try, the simplest first.

    A load part fixes the law. Its factor came from other data: where the load varies here, it is estimated again, else
    it is kept. A load part that found no growth leaves the choice to these data.

    Raises:
        EstimationError: Where a law is requested and the load does not vary.
        ModelError: For an unknown law.
    """
    if isinstance(load, Part):
        law = load_law_of(load)
        if law.kind != "none" and not _load_varies(loops):
            return (_kept(loops, LOAD_POWERS[law.kind], law.factor),)
        load = "auto" if law.kind == "none" else law.kind
    if load in LOAD_POWERS:
        _check_load(record, loops)
        return (_started(loops, LOAD_POWERS[load]),)
    if load not in ("auto", "none"):
        choices = ", ".join(("auto", "none", *LOAD_POWERS))
        raise ModelError(f"load must be one of {choices}, or a load part. Got '{load}' instead.")
    powers = LOAD_POWERS.values() if load == "auto" and _load_varies(loops) else ()
    return (NO_GROWTH, *map(partial(_started, loops), powers))


def _check_load(record: JointRecord, loops: Loops) -> None:
    if not _load_varies(loops):
        low, high = _load_range(loops)
        raise refuse(record, "hysteresis", f"the load never varies ({low:.3g} to {high:.3g} Nm)")


def _load_range(loops: Loops) -> Array:
    return np.quantile(np.abs(loops.load), LOAD_QUANTILES)


def _load_varies(loops: Loops) -> bool:
    """Return whether the load is large enough and varies."""
    low, high = _load_range(loops)
    return bool(high >= MIN_LOAD and high - low >= MIN_LOAD_SPAN * high)


def _started(loops: Loops, power: float) -> Growth:
    """Return c of ``F_C (1 + c |τ|^p) sgn ω``, without viscous friction, which takes all of it at a single speed."""
    level, grown = _dry_forces(loops, load_growth(loops.load, power))
    most = float(_load_range(loops)[1]) ** power
    share = float(np.clip(grown * most / (level + grown * most), *GROWTH_SHARES))
    return Growth(share / (1.0 - share) / most, power)


def _kept(loops: Loops, power: float, factor: float) -> Growth:
    """Return the c at which the known growth ``F_l |τ|^p`` is part of the measured friction."""
    level = _dry_forces(loops)[0] - factor * float(np.mean(load_growth(loops.load[loops.used], power)))
    return Growth(factor / level, power, fixed=True) if level > 0.0 and factor > 0.0 else NO_GROWTH


def _dry_forces(loops: Loops, *factors: Array) -> Array:
    """Return the coefficients of sgn ω and of it times each factor, by least squares with an offset."""
    direction, used = np.sign(loops.speed), loops.used
    columns = np.column_stack([direction, *(factor * direction for factor in factors), np.ones(len(direction))])[used]
    result: Array = np.linalg.lstsq(columns, loops.friction[used], rcond=None)[0][:-1]
    return result


# -- fits --

SAME_LIMIT = 0.1
"""Relative difference of two limits below which their elements are one."""
RISE_START = 0.1
"""Start e of a search for a Stribeck rise, as gears of robots have."""


@dataclass(frozen=True, eq=False)
class HysteresisProblem:
    """Data and settings that all methods share.

    Attributes:
        loops: The data.
        bank: Slip elements on a grid of limits with their normal equations.
        known: What is known before the fit.
        ladder: Number of elements of pre-assigned ladders.
        elements: Number of elements of nlr.
        errors: Held-out errors (blocks,) by number of elements; empty where it was requested: close elements are then
            not merged.
    """

    loops: Loops
    bank: Bank
    known: KnownFriction
    ladder: int
    elements: int
    errors: Mapping[int, Array] = field(default_factory=dict)

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

    scale = known.scale or _minimum(error, *limit_range(part))
    start = fit_forces(problem.loops, known.law(method, scale * steps), shares)
    tied = () if known.scale else ("scale",)
    return complete(problem.loops, refine(problem.loops, start, known.free), (*tied, *known.free))


def _nlr(problem: HysteresisProblem, method: str) -> HysteresisFit:
    """Return the fit with free limits, from the best ones of the grid on; "nlr-stribeck" adds a Stribeck rise."""
    loops, known = problem.loops, problem.known
    law, free = known.law(method, problem.best_limits()), ("limits", *known.free)
    if method == "nlr-stribeck":
        law, free = replace(law, extra=RISE_START, speed=min(law.speed, loops.speeds[1])), (*free, "rise")
    fit = refine(loops, fit_forces(loops, law), free)
    while problem.errors and (close := np.diff(np.log(fit.law.limits)) < SAME_LIMIT).any():
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
        speed = _minimum(lambda V: fit_forces(part, replace(start, speed=V)).error, *SPEEDS)
    return complete(problem.loops, fit_forces(problem.loops, replace(start, speed=speed)), ())


def _rated(problem: HysteresisProblem, method: str) -> HysteresisFit:
    """Return the best fit of a rate-dependent model from several lengths of the bristles or rates of slip."""
    loops, known, limits = problem.loops, problem.known, problem.best_limits()
    law = known.law(method, limits)
    speed = min(law.speed, loops.speeds[1])
    law = replace(law, exponent=usual_exponent(method), extra=RISE_START, speed=speed)
    part, free = loops.beginning(), ("limits", *known.free, "rise")
    if method == "lugre":
        starts = [replace(law, limits=np.array([length])) for length in limits]
    else:
        starts, free = [replace(law, rate=rate) for rate in np.geomspace(*RATES, 4)[1:-1]], (*free, "rate")
    best = min((refine(part, fit_forces(part, start), free) for start in starts), key=lambda fit: fit.error)
    return complete(loops, fit_forces(loops, best.law), free)


def _minimum(error: Callable[[float], float], low: float, high: float) -> float:
    """Return the minimum of an error to 0.5 %: the best point of a logarithmic grid, then a local search."""
    finish = partial(fmin, xtol=5e-3, ftol=np.inf, full_output=True, disp=False)
    found = brute(lambda log: error(float(np.exp(log).item())), [(np.log(low), np.log(high))], finish=finish)
    return float(np.exp(found).item())


# -- uncertainty: jackknife over blocks of swings, and fits under other treatments of the data ------------------------

SHARED = ("growth", "extra", "speed", "rate", "inertia", "viscous", "offset")
"""Parameters behind those of the elements in a parameter vector; logarithms of speed and rate."""


@dataclass(frozen=True, eq=False)
class LawEstimate:
    """A fitted law with the covariance of its parameters [W_i, ln D_i, c, e, ln V, ln rate, inertia, F_V, f_0].

    Attributes:
        fit: The fit.
        covariance: Covariance, (parameters, parameters), in the units of `FrictionLaw`.
        factor: Half-width of a 95 % confidence interval in standard errors.
    """

    fit: HysteresisFit
    covariance: Array
    factor: float

    @property
    def forces(self) -> Array:
        """Gradients of the forces, (forces, parameters)."""
        return np.eye(len(self.covariance))[: len(self.fit.law.forces)]

    @property
    def limits(self) -> Array:
        """Gradients of ln D_i, (elements, parameters)."""
        start = len(self.fit.law.forces)
        return np.eye(len(self.covariance))[start : start + len(self.fit.law.limits)]

    def gradient(self, name: str) -> Array:
        """Return the gradient (parameters,) of one of the `SHARED` parameters."""
        gradient: Array = np.eye(len(self.covariance))[SHARED.index(name) - len(SHARED)]
        return gradient

    def standard_error(self, gradient: Array) -> float:
        """Return the standard error of a quantity with a gradient (parameters,)."""
        return float(np.sqrt(max(float(gradient @ self.covariance @ gradient), 0.0)))


def estimate(fit: HysteresisFit, treatments: Sequence[Sequence[HysteresisFit]] = ()) -> LawEstimate:
    """Return the covariance of a fit; `treatments`: for every question the fits under other treatments.

    Leaving out blocks shows how well the data of one treatment determine the parameters. It does not show that a path
    with another smoothing, or limits that keep to no ladder, have other parameters, nor the uncertainty of friction
    that was taken as known. Each of these questions adds the mean of ΔΔᵀ over its fits to the covariance.
    """
    jacobian = _jacobian(fit)
    covariance = jacobian @ gram_covariance(fit.grams) @ jacobian.T
    centre = _vector(fit)
    for fits in treatments:
        moves = [_vector(other) - centre for other in fits if len(other.law.limits) == len(fit.law.limits)]
        if moves:
            covariance = covariance + np.mean([np.outer(move, move) for move in moves], axis=0)
    return LawEstimate(fit, covariance, student_factor(len(fit.grams) - 1))


def _vector(fit: HysteresisFit) -> Array:
    law = fit.law
    shared = law.growth, law.extra, np.log(law.speed), np.log(law.rate), fit.inertia, law.viscous, law.offset
    return np.concatenate([law.forces, np.log(law.limits), shared])


def _jacobian(fit: HysteresisFit) -> Array:
    """Return the derivative of the parameter vector with respect to the unknowns of `grams`."""
    forces, limits, places = len(fit.law.forces), len(fit.law.limits), fit.unknowns()
    J = np.zeros((forces + limits + len(SHARED), fit.grams.shape[1] - 1))
    if limits:
        J[:forces, places["forces"]] = np.eye(forces) if fit.shares is None else fit.shares[:, None]
    else:  # static laws have no columns of forces at zero
        J[np.flatnonzero(fit.law.forces > 0.0), np.arange(np.count_nonzero(fit.law.forces > 0.0))] = 1.0
    rows = {"limits": np.arange(limits), "growth": [limits], "rise": [limits + 1, limits + 2], "rate": [limits + 3]}
    for name in fit.free:
        if name == "scale":
            J[forces : forces + limits, places[name]] = 1.0
        else:
            J[forces + np.array(rows[name]), np.r_[places[name]]] = 1.0
    J[-LINEAR:, -LINEAR:] = np.eye(LINEAR)
    return J


def other_treatments(
    record: JointRecord, loops: Loops, fit: HysteresisFit, backlash: Array | None, steady: Viscous | Part | None
) -> list[list[HysteresisFit]]:
    """Return the fits of a slip model with other paths, without a ladder and with other known friction; () for others.

    Other known friction is one standard error from the `steady` part along each principal axis of its covariance.
    """
    law = fit.law
    if law.model not in SLIP:
        return []
    free = tuple(name for name in fit.free if name != "scale")
    paths = [record.position] if record.theta is None else [record.position, record.theta]
    viscous = viscous_friction(steady, record)
    others = [make_loops(replace(record, path=path), backlash, viscous) for path in paths]
    questions = [[refine(other, fit_forces(other, law, fit.shares), free) for other in others]]
    if law.model in LADDERS:
        questions.append([refine(loops, fit_forces(loops, law), ("limits", *free))])
    if isinstance(steady, Part):
        questions += [_with_known(record, loops, fit, pair, free) for pair in perturbed_parts(steady)]
    return questions


def _with_known(
    record: JointRecord, loops: Loops, fit: HysteresisFit, parts: Sequence[Part], free: Names
) -> list[HysteresisFit]:
    """Return the fits with other friction parts taken as known."""
    fits = []
    for steady in parts:
        other = replace(loops, friction=record.friction - viscous_friction(steady, record))
        rise = known_rise(steady) or Rise(fit.law.extra, fit.law.speed, fit.law.exponent)
        law = replace(fit.law, extra=rise.extra, speed=rise.speed, exponent=rise.exponent)
        fits.append(refine(other, fit_forces(other, law, fit.shares), free))
    return fits


# -- uncertainty of known friction --

KNOWN = ("F_C", "F_S-F_C", "V_S", "mu", "F_V1", "F_V2", "F_V3")
"""Values of a friction part that are taken as known."""
LOGARITHMIC = ("V_S", "mu")
"""Those whose covariance in a friction part is that of their logarithm."""


def perturbed_parts(part: Part) -> Iterator[tuple[Part, Part]]:
    """Yield pairs of friction parts one standard error to either side along each principal axis of the covariance.

    V_S and mu move by their logarithm. The values of a part without a covariance are taken as independent.
    """
    names = [value.name for value in part.values if value.name in KNOWN]
    variances, axes = np.linalg.eigh(_covariance(part, names))
    for step in (axes * np.sqrt(np.maximum(variances, 0.0))).T:
        if step.any():
            yield _perturbed(part, names, step), _perturbed(part, names, -step)


@dataclass(frozen=True)
class _StoredUncertainty:
    """The part of the settings that describes uncertainty; friction that is known otherwise may have none."""

    covariance: StoredCovariance = field(default_factory=StoredCovariance)


def _covariance(part: Part, names: list[str]) -> Array:
    """Return the covariance of some values, logarithms instead of V_S and mu."""
    stored = part.settings_as("friction", _StoredUncertainty).covariance
    if set(names) <= set(stored.names):
        at = [stored.names.index(name) for name in names]
        return np.array([[stored.values[i][j] for j in at] for i in at])
    deviations = [part.value(name).deviation / (part[name] if name in LOGARITHMIC else 1.0) for name in names]
    return np.diag(np.square(deviations))


def _perturbed(part: Part, names: list[str], step: Array) -> Part:
    """Return a part with its values moved by a step; logarithms move by at most one."""
    moves = dict(zip(names, step.tolist(), strict=True))
    for name in set(LOGARITHMIC) & moves.keys():
        moves[name] = part[name] * float(np.expm1(np.clip(moves[name], -1.0, 1.0)))
    values = tuple(replace(value, value=value.value + moves.get(value.name, 0.0)) for value in part.values)
    return replace(part, values=values)


# -- part ------------------------------------------------------------------------------------------------------------


def make_part(
    record: JointRecord,
    problem: HysteresisProblem,
    fit: HysteresisFit,
    fits: Sequence[HysteresisFit],
    treatments: Sequence[Sequence[HysteresisFit]],
    remarks: Sequence[str] = (),
) -> Part:
    """Return the hysteresis part of the chosen fit.

    Args:
        record: The record.
        problem: Data and settings.
        fit: The chosen fit.
        fits: All fits.
        treatments: Fits under other treatments of the data, as in `estimate`.
        remarks: Further notes.
    """
    loops, law, found = problem.loops, fit.law, estimate(fit, treatments)
    ordered = sorted(fits, key=lambda other: float(other.held_out.mean()))
    return identified_part(
        record,
        "hysteresis",
        model=law.model,
        values=_values(found, loops, problem.known.scale),
        fitted=_training_fit(loops, fit),
        held_out=held_out_fit(loops, fit),
        settings=HysteresisSettings(law, law.model, len(law.limits)),
        ranges={
            "position": loops.x,
            "speed": loops.speed,
            "load": loops.load,
            "limit": (loops.smallest, loops.largest),
        },
        alternatives=tuple(
            TriedModel(other.law.model, _training_fit(loops, other), held_out_fit(loops, other), _summary(other))
            for other in ordered
        ),
        curves=_curves(problem, found),
        notes=(*_notes(problem, fit), *remarks),
    )


def held_out_fit(loops: Loops, fit: HysteresisFit) -> float:
    """Return the NRMSE fit (%) on held-out data."""
    error = float(np.average(fit.held_out, weights=fit.grams[:, -2, -2]))
    return nrmse_of_error(error, loops.variance)


def _training_fit(loops: Loops, fit: HysteresisFit) -> float:
    error = max(fit.error, 0.0) / int(loops.used.sum())
    return nrmse_of_error(error, loops.variance)


# -- values ----------------------------------------------------------------------------------------------------------


def _values(found: LawEstimate, loops: Loops, scale: float | None) -> tuple[Value, ...]:
    """Return the values of any model; `scale` is the backlash B (rad) where it was known."""
    law = found.fit.law
    if law.model in SLIP:
        values = _slip_values(found, loops, scale)
    else:
        values = _rated_values(found, loops) if law.model in RATED else _static_values(found)
    if loops.acceleration.any():
        values.append(_linear(found, "inertia", "kg m²", found.fit.inertia, found.gradient("inertia")))
    values.append(_linear(found, "F_V", "Nm s/rad", law.viscous, found.gradient("viscous")))
    values.append(_linear(found, "offset", "Nm", law.offset, found.gradient("offset")))
    return tuple(values)


def _slip_values(found: LawEstimate, loops: Loops, scale: float | None) -> list[Value]:
    """Return forces, limits and stiffnesses; the step of the positions and the choice of the limits widen intervals."""
    fit, law, factor = found.fit, found.fit.law, found.factor
    count, total = len(law.limits), found.forces.sum(axis=0)
    jump_D, jump_W = (np.zeros(count), np.zeros(count)) if fit.jumps is None else fit.jumps
    jump_D = np.hypot(jump_D, _position_error(loops) / law.limits)

    def limit(name: str, i: int, value: float) -> Value:
        return positive_value(name, "rad", value, math.hypot(found.standard_error(found.limits[i]), jump_D[i]), factor)

    values = [_linear(found, "F_C", "Nm", float(law.forces.sum()), total)]
    values.append(limit("B", -1, float(law.limits[-1]) if scale is None else scale))
    for i, (W, D) in enumerate(zip(law.forces, law.limits, strict=True)):
        stiffness = found.standard_error(found.forces[i] / W - found.limits[i])
        force = math.hypot(found.standard_error(found.forces[i]), jump_W[i])
        values.append(_not_negative(value_of(f"W{i + 1}", "Nm", W, force, factor)))
        values.append(limit(f"D{i + 1}", i, D))
        error = math.hypot(stiffness, jump_D[i], jump_W[i] / W)
        values.append(positive_value(f"k{i + 1}", "Nm/rad", W / D, error, factor))
    return [*values, *_growth(found, total), *(_rise(found, total) if "rise" in fit.free else [])]


def _position_error(loops: Loops) -> float:
    """Return the standard error (rad) of a position that is recorded in steps: step / √12."""
    return rounding_error(loops.resolution / ENCODER_STEPS)


def _rated_values(found: LawEstimate, loops: Loops) -> list[Value]:
    """Return the values of a rate-dependent model; an interval covers the range of the search where it is larger."""
    law, factor, limits = found.fit.law, found.factor, limit_range(loops)
    lugre = law.model == "lugre"
    coulomb = found.forces[0] if lugre else found.forces.sum(axis=0)
    values = [
        _linear(found, "F_C", "Nm", coulomb_force(found.fit.law), coulomb),
        *_rise(found, coulomb),
        *_growth(found, coulomb),
    ]
    if lugre:
        length, damping, D = found.limits[0], float(law.forces[1]), float(law.limits[0])
        stiffness = found.standard_error(coulomb / max(coulomb_force(found.fit.law), TINY) - length)
        step = _position_error(loops) / D
        values.append(_searched("length", "rad", D, math.hypot(found.standard_error(length), step), factor, limits))
        values.append(positive_value("s0", "Nm/rad", coulomb_force(law) / D, math.hypot(stiffness, step), factor))
        s1 = _linear(found, "s1", "Nm s/rad", damping / D, (found.forces[1] - damping * length) / D)
        return [*values, _not_negative(s1)]
    for i, (W, D) in enumerate(zip(law.forces, law.limits, strict=True)):
        values.append(_not_negative(_linear(found, f"W{i + 1}", "Nm", W, found.forces[i])))
        error = math.hypot(found.standard_error(found.limits[i]), _position_error(loops) / D)
        values.append(_searched(f"D{i + 1}", "rad", D, error, factor, limits))
    rate = found.standard_error(found.gradient("rate"))
    return [*values, _searched("rate", "1/s", law.rate, rate, factor, RATES)]


def _static_values(found: LawEstimate) -> list[Value]:
    law = found.fit.law
    names = [("F_C", "Nm"), *([("F_C1", load_unit(load_law_name(law.power)))] if law.load else [])]
    names += [("F_S-F_C", "Nm")] if law.model == "stribeck" else []
    rows = zip(names, law.forces, found.forces, strict=True)
    return [_linear(found, *name, float(W), gradient) for name, W, gradient in rows]


def coulomb_force(law: FrictionLaw) -> float:
    """Return F_C of a law without load, Nm: the forces of all elements, or that of the bristles."""
    return float(law.forces[0] if law.model in ("lugre", *STATIC) else law.forces.sum())


def _growth(found: LawEstimate, coulomb: Array) -> list[Value]:
    """Return ``F_C1 = c F_C`` where it was estimated; `coulomb`: gradient of F_C."""
    if "growth" not in found.fit.free:
        return []
    c, unit = found.fit.law.growth, load_unit(load_law_name(found.fit.law.power))
    gradient = c * coulomb + coulomb_force(found.fit.law) * found.gradient("growth")
    return [_not_negative(_linear(found, "F_C1", unit, c * coulomb_force(found.fit.law), gradient))]


def _rise(found: LawEstimate, coulomb: Array) -> list[Value]:
    """Return F_S, F_S - F_C and V_S of a Stribeck rise that was estimated."""
    law, F_C = found.fit.law, coulomb_force(found.fit.law)
    gradient = law.extra * coulomb + F_C * found.gradient("extra")
    extra = _linear(found, "F_S-F_C", "Nm", law.extra * F_C, gradient)
    speed = found.standard_error(found.gradient("speed"))
    return [
        _linear(found, "F_S", "Nm", (1.0 + law.extra) * F_C, gradient + coulomb),
        _not_negative(extra) if law.model in RATED else extra,
        _searched("V_S", "rad/s", law.speed, speed, found.factor, SPEEDS),
    ]


def _linear(found: LawEstimate, name: str, unit: str, value: float, gradient: Array) -> Value:
    return value_of(name, unit, value, found.standard_error(gradient), found.factor)


def _searched(name: str, unit: str, value: float, error: float, factor: float, bounds: tuple[float, float]) -> Value:
    """Return a positive value that was searched within bounds: its interval lies inside, or is all of them."""
    low, high = bounds
    if error <= 0.0:
        return Value(name, unit, float(value), high - low, low, high)
    found = positive_value(name, unit, value, error, factor)
    return replace(found, low=max(found.low, min(low, value)), high=min(found.high, max(high, value)))


def _not_negative(value: Value) -> Value:
    """Return a value that cannot be negative, with its interval cut at zero."""
    return replace(value, low=max(value.low, 0.0), high=max(value.high, 0.0))


# -- curves ----------------------------------------------------------------------------------------------------------


def _curves(problem: HysteresisProblem, found: LawEstimate) -> tuple[Curve, ...]:
    loops, errors = problem.loops, problem.errors
    curves = [_reversal_curve(loops, found)] if found.fit.law.model in SLIP else []
    curves.append(_loop_curve(loops, found.fit))
    if errors:
        quality = [nrmse_of_error(float(error.mean()), loops.variance) for error in errors.values()]
        labels = ("Fit on held-out data over the number of elements", "elements", "fit [%]")
        curves.append(make_curve(labels, (np.array([*errors], dtype=float), np.array(quality))))
    return tuple(curves)


def _reversal_curve(loops: Loops, found: LawEstimate) -> Curve:
    """Return dry friction against the travel since a reversal from full slip, both directions folded into one."""
    travel, friction = _after_reversals(loops, found.fit)
    edges = np.geomspace(loops.smallest, 2.0 * loops.largest, CURVE_BINS + 1)
    bins = np.digitize(travel, edges) - 1
    filled = [k for k in range(CURVE_BINS) if (bins == k).any()]
    x = np.array([travel[bins == k].mean() for k in filled])
    y = np.array([friction[bins == k].mean() for k in filled])
    line, band = _reversal_line(found, edges)
    return make_curve(
        ("Dry friction after a reversal", "travel since the reversal [mrad]", "friction [Nm]"),
        (1e3 * x, y),
        (1e3 * edges, line),
        band,
        residual=y - np.interp(x, edges, line),
        scale="log",
    )


def _reversal_line(found: LawEstimate, travel: Array) -> tuple[Array, Array]:
    """Return ``Σ W_i clip(s/D_i - 1, -1, 1)`` and half the width of its 95 % confidence band, (points,)."""
    law = found.fit.law
    u = slip_after_reversal(travel, law.limits)
    by_limit = np.where(np.abs(u) < 1.0, -travel[:, None] / law.limits, 0.0) * law.forces
    gradients = u @ found.forces + by_limit @ found.limits
    return u @ law.forces, found.factor * np.array([found.standard_error(gradient) for gradient in gradients])


def _after_reversals(loops: Loops, fit: HysteresisFit) -> tuple[Array, Array]:
    """Return the travel since the last reversal of every sample and the friction along it, relative to its level."""
    law = fit.law
    dry = (loops.friction - law.viscous * loops.speed - law.offset) / dry_level(law, loops.speed, loops.load)
    samples, segments = np.arange(len(loops.x)), np.array([chunk.start for chunk in loops.chunks if chunk.first])
    start = np.append(-1, loops.starts)[np.searchsorted(loops.starts, samples, side="right")]
    used = loops.used & (start >= segments[np.searchsorted(segments, samples, side="right") - 1])
    travel = (loops.x - loops.x[start])[used]
    return np.abs(travel), np.sign(travel) * dry[used]


def _loop_curve(loops: Loops, fit: HysteresisFit) -> Curve:
    """Return friction against position over the last two swings, measured and modelled."""
    rows = slice(loops.starts[-3], loops.starts[-1])
    model = fit.law.torque(JointMotion(loops.x, loops.speed, loops.load, loops.period))[rows]
    x = 1e3 * (loops.x[rows] - loops.x[rows].mean())
    return make_curve(
        ("Friction over two swings", "position from the middle of the swing [mrad]", "friction [Nm]"),
        (x, loops.friction[rows]),
        (x, model),
        residual=loops.friction[rows] - model,
        kind="line",
    )


# -- notes -----------------------------------------------------------------------------------------------------------


def _summary(fit: HysteresisFit) -> str:
    law = fit.law
    if law.model in STATIC:
        return "no memory" if law.model == "sgn" else f"no memory, width {law.speed:.3g} rad/s"
    if law.model == "lugre":
        return f"bristle {1e3 * law.limits[0]:.3g} mrad, V_S {law.speed:.3g} rad/s, e {law.extra:.2g}"
    limits = ", ".join(f"{1e3 * D:.3g}" for D in law.limits)
    return f"D {limits} mrad" + (f", slip rate {law.rate:.3g} 1/s" if law.model == "rate-gms" else "")


def _notes(problem: HysteresisProblem, fit: HysteresisFit) -> list[str]:
    loops, law = problem.loops, fit.law
    notes = [
        f"{len(loops.starts)} reversals; cross-validation with {min(FOLDS, loops.blocks)} folds of {loops.blocks} "
        "blocks of swings.",
        f"{(~loops.used).sum()} samples are not used: after a start or a rest the deformation of the elements is known "
        f"once the path has covered {2e3 * loops.largest:.3g} mrad.",
        f"Limits between {1e3 * loops.smallest:.2g} and {1e3 * loops.largest:.3g} mrad are identifiable.",
    ]
    if problem.errors:
        some = "element" if problem.elements == 1 else "elements"
        notes.append(
            f"nlr has {problem.elements} {some}: the fewest within one standard error of the best on held-out data."
        )
    if problem.known.growth.fixed:
        notes.append("The load does not vary in these data: the load dependence is that of the load part.")
    if problem.known.rise is None and law.extra == 0.0 and law.model not in STATIC:
        speed = np.median(np.abs(loops.speed))
        notes.append(
            f"F_C is the level at the speeds of these data (half of them below {speed:.2g} rad/s) and includes a "
            "Stribeck rise towards standstill. A friction part of the joint separates the two."
        )
    if law.model in SLIP and law.limits[-1] >= loops.largest:
        notes.append("The largest limit lies at the edge of the identifiable range: it may be larger in truth.")
    if law.extra < 0.0:
        notes.append(
            "F_S, the level at standstill, is below F_C: friction rises with speed before it levels off, which viscous "
            "friction with a power below one would do as well."
        )
    if law.model in RATED:
        notes.append("An interval as wide as the range of the search means that the data do not determine the value.")
    return notes
