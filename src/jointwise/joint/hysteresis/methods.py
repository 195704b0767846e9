"""Fits of the models of hysteresis: ladders of limits, free limits, rate-dependent models, and static laws.

Maxwell-slip models have limits D_i that are a fixed ladder times the backlash B ("gms", "lr-linear", "lr-polynomial")
or free ("nlr", "nlr-stribeck").

References:
    Rizos, Fassois: Presliding friction identification based upon the Maxwell slip model structure, Chaos 14(2), 2004
    (linear and nonlinear regression, here "lr" and "nlr").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import brute, fmin

from jointwise.errors import EstimationError, ModelError
from jointwise.joint.checks import refuse
from jointwise.joint.gear import backlash_table, transmission_of
from jointwise.joint.hysteresis.data import Loops
from jointwise.joint.hysteresis.fit import RATES, SPEEDS, HysteresisFit, complete, fit_forces, limit_range, refine
from jointwise.joint.hysteresis.normal_equations import Bank, best_choices, choice_spread
from jointwise.joint.laws import LADDERS, RATED, STATIC, USUAL_SPEED, FrictionLaw, load_law_of, usual_exponent
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.joint.windows import LOAD_QUANTILES
from jointwise.model.terms import (
    LOAD_POWERS,
    linear_limits,
    load_growth,
    polynomial_limits,
    polynomial_shares,
    viscous_torque,
)
from jointwise.spatial import Array

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

    scale = known.scale or _minimum(error, *limit_range(part))
    start = fit_forces(problem.loops, known.law(method, scale * steps), shares)
    tied = () if known.scale else ("scale",)
    return complete(problem.loops, refine(problem.loops, start, known.free), (*tied, *known.free))


def _nlr(problem: HysteresisProblem, method: str) -> HysteresisFit:
    """Return the fit with free limits, from the best ones of the grid on; "nlr-stribeck" adds a Stribeck rise."""
    loops, known = problem.loops, problem.known
    law, free = known.law(method, problem.best_limits()), ("limits", *known.free)
    if method == "nlr-stribeck":
        law, free = replace(law, extra=RISE_START), (*free, "rise")
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
        speed = _minimum(lambda V: fit_forces(part, replace(start, speed=V)).error, *SPEEDS)
    return complete(problem.loops, fit_forces(problem.loops, replace(start, speed=speed)), ())


def _rated(problem: HysteresisProblem, method: str) -> HysteresisFit:
    """Return the best fit of a rate-dependent model from several lengths of the bristles or rates of slip."""
    loops, known, limits = problem.loops, problem.known, problem.best_limits()
    law = replace(known.law(method, limits), exponent=usual_exponent(method), extra=RISE_START)
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
