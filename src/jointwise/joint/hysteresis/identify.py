"""Hysteresis of a joint from a slow reciprocating run: several models, compared on data held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jointwise.errors import EstimationError, ModelError, nearest
from jointwise.joint.gear_maps import backlash_table
from jointwise.joint.hysteresis.curves import curves_of
from jointwise.joint.hysteresis.growth import Growth, growth_of
from jointwise.joint.hysteresis.laws import law_settings
from jointwise.joint.hysteresis.loops import Loops, Steady, known_rise, make_loops
from jointwise.joint.hysteresis.methods import MAXWELL, METHODS, USUAL_ELEMENTS, Setting, Tried, try_method
from jointwise.joint.hysteresis.rivals import Moves, rival_moves
from jointwise.joint.hysteresis.search import Bank, best_choices, fewest_elements, gains, held_out_errors, make_bank
from jointwise.joint.hysteresis.shape import Shape
from jointwise.joint.hysteresis.static import STATIC
from jointwise.joint.hysteresis.uncertainty import FOLDS
from jointwise.joint.hysteresis.values import values_of
from jointwise.joint.part import Alternative, Part
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.spatial import Array

MOST_ELEMENTS = 6
"""Elements that a choice by held-out error goes up to."""
LEAST_QUALITY = 5.0
"""NRMSE (%) on data held out below which friction is not said to follow the motion."""
LEAST_EXPLAINED = 0.05
"""Part of the friction's variance that the best single element must explain."""
SURE = 1.5
"""Standard errors by which a model with memory must beat those without."""
NO_MAP = "the transmission shows no lost motion at some angles: backlash is taken for the same over a turn"

Backlash = float | Sequence[float] | Array | Part


def identify_hysteresis(
    record: JointRecord,
    *,
    method: str = "auto",
    elements: int | None = None,
    backlash: Backlash | None = None,
    load: str | Part = "auto",
    steady: Steady | Part | None = None,
) -> Part:
    """Return the hysteresis of a joint, ``f = F(τ) H(θ) + F_V ω + offset``.

    `method` is one of `METHODS`, or "auto": all are tried and the simplest slip model within one standard error of
    the best on data held out is taken (rate-dependent ones, LuGre and static maps stand beside it). `elements`: their
    number, else chosen for nlr by held-out error (the smallest within one standard error of the best) and four for
    pre-assigned ladders. `backlash` B: rad, a map over one turn, or a transmission part (its shape); where B is not
    known it is searched. `load`: how friction grows with the load: "none", "absolute", "square", "auto" (what predicts
    data held out best, where the load varies), or a load part, whose law is taken. `steady`: known viscous friction (a
    function of speed and temperature, or a friction part), subtracted first; what is left of it and an offset are
    estimated along. A friction part also tells how dry friction rises towards standstill. Data that cannot tell are
    refused.
    """
    _check(method, elements)
    scale, shape_map = backlash_of(backlash)
    loops = make_loops(record, shape_map, steady)
    rise = known_rise(steady)
    ways = growth_of(record, loops, load)
    setting, errors = _best([_setting(record, loops, elements, scale, shape_map, grown, rise) for grown in ways])
    every = tuple(name for name in METHODS if rise is None or name != "nlr-stribeck")
    names = every if method == "auto" else tuple(dict.fromkeys((method, "nlr", *STATIC)))
    tried = {name: try_method(setting, name) for name in names}
    best = _chosen(tried, method)
    if method not in STATIC:
        _refuse_without_memory(record, loops, tried)
    moves = rival_moves(record, loops, best, shape_map, steady)
    part = _part(record, setting, best, tried, errors, moves)
    left_out = isinstance(backlash, Part) and shape_map is None
    return replace(part, notes=(*part.notes, NO_MAP)) if left_out else part


def backlash_of(backlash: Backlash | None) -> tuple[float | None, Array | None]:
    """Return the mean backlash (rad; None if unknown) and its map over one turn (points,) (None if it is constant).

    The lost motion of a transmission part tells how backlash varies over a turn, not its size; where it found none, or
    not everywhere, it tells nothing.
    """
    if backlash is None:
        return None, None
    if isinstance(backlash, Part):
        table = backlash_table(backlash)
        return None, table if backlash.settings["reach"] > 0.0 and (table > 0.0).all() else None
    values = _checked(backlash)
    return float(values.mean()), values if len(values) > 1 else None


def _checked(backlash: float | Sequence[float] | Array) -> Array:
    values = np.atleast_1d(np.asarray(backlash, dtype=float))
    if values.ndim != 1 or not np.isfinite(values).all() or not (values > 0.0).all():
        raise EstimationError("backlash must be positive: a number of rad, or numbers over one turn.")
    return values


def _check(method: str, elements: int | None) -> None:
    if method != "auto" and method not in METHODS:
        raise ModelError(f"unknown method '{method}'. {nearest(method, ('auto', *METHODS))}")
    if elements is not None and not 1 <= elements <= 16:
        raise ModelError(f"elements must be 1 to 16. Got {elements} instead.")


def _setting(
    record: JointRecord,
    loops: Loops,
    elements: int | None,
    scale: float | None,
    shape_map: Array | None,
    grown: Growth,
    rise: tuple[float, float] | None,
) -> tuple[Setting, Array | None]:
    """Return what the methods share, and the held-out errors behind the number of elements."""
    extra, speed = rise or (0.0, 0.05)
    bank = make_bank(loops, Shape(np.empty(0), growth=grown.start or 0.0, extra=extra, speed=speed, power=grown.power))
    _refuse_without_slip(record, loops, bank)
    errors = held_out_errors(bank, MOST_ELEMENTS, FOLDS) if elements is None else None
    chosen = fewest_elements(errors) if errors is not None else elements
    assert chosen is not None
    return Setting(
        loops=loops,
        bank=bank,
        elements=elements or USUAL_ELEMENTS,
        chosen=chosen,
        scale=scale,
        growth=grown.start,
        map=shape_map,
        asked=elements is not None,
        rise=rise,
        power=grown.power,
        held=grown.held,
    ), errors


def _best(settings: list[tuple[Setting, Array | None]]) -> tuple[Setting, Array | None]:
    """Return the setting that predicts data held out best, unless the first, the simplest, is as good.

    As good is what is worse by less than a standard error of the difference, block by block.
    """
    if len(settings) == 1:
        return settings[0]
    errors = [try_method(own, "nlr").held_out for own, _ in settings]
    best = int(np.argmin([own.mean() for own in errors]))
    gain = errors[0] - errors[best]
    return settings[best if gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)) else 0]


def _refuse_without_slip(record: JointRecord, loops: Loops, bank: Bank) -> None:
    """Refuse data in which friction still rises when the joint turns back: no element ever slips."""
    A, b = bank.reduced(bank.grams.sum(axis=0))
    (best,) = best_choices(A, b, 1)[0]
    explained = float(gains(A, b, np.array([[best]]))[0]) / (_spread(loops) * int(loops.used.sum()))
    if not explained > LEAST_EXPLAINED:
        raise refuse(record, "hysteresis", "friction does not follow the motion (sign or order of the current)")
    swing = 2.0 * loops.largest
    if best == len(bank.limits) - 1:
        raise refuse(
            record,
            "hysteresis",
            f"the way between reversals ({1e3 * swing:.3g} mrad) is too short for the gear to slip",
        )


def _chosen(tried: dict[str, Tried], method: str) -> Tried:
    """Return the method asked for, or the simplest slip model within one standard error of the best on data held out.

    The standard error is that of the difference to the best, block by block.
    """
    if method != "auto":
        return tried[method]
    best = _least(tried, MAXWELL)
    for name in (own for own in MAXWELL if own in tried):
        worse = tried[name].held_out - best.held_out
        if worse.mean() <= worse.std(ddof=1) / np.sqrt(len(worse)):
            return tried[name]
    return best


def _refuse_without_memory(record: JointRecord, loops: Loops, tried: dict[str, Tried]) -> None:
    """Refuse where friction does not follow the motion, or a map of the speed alone does as well as slip elements."""
    best, rival = (_least(tried, names) for names in (MAXWELL, STATIC))
    quality = _held_out(loops, best)
    if not best.law.forces.sum() > 0.0:
        raise refuse(record, "hysteresis", "friction does not oppose the motion (sign or order of the current)")
    if quality < LEAST_QUALITY:
        raise refuse(record, "hysteresis", f"friction does not follow the motion (held-out fit {quality:.1f} %)")
    gain = rival.held_out - best.held_out
    if not gain.mean() > SURE * gain.std(ddof=1) / np.sqrt(len(gain)):
        raise refuse(
            record,
            "hysteresis",
            f"no memory is seen: on data held out '{best.method}' has a fit of {quality:.1f} % and '{rival.method}', "
            f"without memory, {_held_out(loops, rival):.1f} %",
        )


def _least(tried: dict[str, Tried], names: tuple[str, ...]) -> Tried:
    """Return the one of some methods with the least error on data held out."""
    return min((tried[name] for name in names if name in tried), key=lambda own: float(own.held_out.mean()))


def _spread(loops: Loops) -> float:
    """Return the variance of the friction used, Nm²."""
    return float(loops.friction[loops.used].var())


def _fitted(loops: Loops, tried: Tried) -> float:
    mean = max(tried.error, 0.0) / int(loops.used.sum())
    return 100.0 * (1.0 - float(np.sqrt(mean / _spread(loops))))


def _held_out(loops: Loops, tried: Tried) -> float:
    weights = tried.grams[:, -2, -2]
    mean = float(np.average(tried.held_out, weights=weights))
    return 100.0 * (1.0 - float(np.sqrt(mean / _spread(loops))))


def _part(
    record: JointRecord,
    setting: Setting,
    best: Tried,
    tried: dict[str, Tried],
    errors: Array | None,
    moves: tuple[Moves, ...],
) -> Part:
    loops = setting.loops
    ordered = sorted(tried.values(), key=lambda own: float(own.held_out.mean()))
    scale = setting.scale if best.method in MAXWELL else None
    return Part(
        phenomenon="hysteresis",
        model=best.method,
        values=values_of(best, loops, scale, moves),
        fitted=_fitted(loops, best),
        held_out=_held_out(loops, best),
        settings={"law": law_settings(best.law), "method": best.method, "elements": len(best.law.limits)},
        ranges=_ranges(loops),
        alternatives=tuple(Alternative(o.method, _fitted(loops, o), _held_out(loops, o), _note(o)) for o in ordered),
        curves=curves_of(loops, best, errors, _spread(loops)),
        notes=_notes(setting, best, errors),
        logs=record.logs,
    )


def _ranges(loops: Loops) -> dict[str, tuple[float, float]]:
    signals = {"position": loops.x, "speed": loops.speed, "load": loops.load}
    found = {name: (float(own.min()), float(own.max())) for name, own in signals.items()}
    return {**found, "limit": (loops.smallest, loops.largest)}


def _note(tried: Tried) -> str:
    law = tried.law
    if tried.method in STATIC:
        return "no memory" if tried.method == "sgn" else f"no memory, width {law.speed:.3g} rad/s"
    if tried.method == "lugre":
        return f"bristle {1e3 * law.limits[0]:.3g} mrad, V_S {law.speed:.3g} rad/s, e {law.extra:.2g}"
    limits = ", ".join(f"{1e3 * D:.3g}" for D in law.limits)
    return f"D {limits} mrad" + (f", slip rate {law.rate:.3g} 1/s" if tried.method == "rate-gms" else "")


def _notes(setting: Setting, best: Tried, errors: Array | None) -> tuple[str, ...]:
    loops = setting.loops
    found = [
        f"{loops.reversals} reversals; held out: {min(FOLDS, loops.blocks)} folds of {loops.blocks} blocks of swings.",
        f"{(~loops.used).sum()} samples left out: after a start or a rest the state of the elements is known once the "
        f"path has covered {2e3 * loops.largest:.3g} mrad.",
        f"Limits between {1e3 * loops.smallest:.2g} and {1e3 * loops.largest:.3g} mrad can be told.",
    ]
    if errors is not None:
        some = "element" if setting.chosen == 1 else "elements"
        found.append(
            f"nlr has {setting.chosen} {some}: the fewest within one standard error of the best on data held out."
        )
    if setting.rise is None and best.law.extra == 0.0 and best.method not in STATIC:
        found.append(
            f"F_C is the level at the speeds seen (half of them below {np.median(np.abs(loops.speed)):.2g} rad/s): "
            "a rise towards standstill is inside. A friction part of the joint would tell it."
        )
    if len(best.law.limits) and best.law.limits[-1] > 0.99 * loops.largest:
        found.append(
            "The largest limit lies at the edge of what can be told: it may be larger, or no hysteresis at all."
        )
    if best.law.extra < 0.0:
        found.append(
            "F_S, the level at rest, lies below F_C: friction rises with the speed before it levels, which viscous "
            "friction of a power below one would do as well."
        )
    if setting.held:
        found.append("The load does not vary here: how friction grows with it is that of the joint's load law.")
    if best.method in ("rate-gms", "lugre"):
        found.append("An interval as wide as the range that was searched: the data do not determine the value.")
    return tuple(found)
