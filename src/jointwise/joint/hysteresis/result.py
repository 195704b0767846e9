"""The identified hysteresis: values with 95 % confidence intervals, curves and notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jointwise.estimation.cross_validation import FOLDS
from jointwise.joint.curve import CURVE_BINS, Curve, make_curve
from jointwise.joint.hysteresis.data import ENCODER_STEPS, Loops
from jointwise.joint.hysteresis.fit import RATES, SPEEDS, HysteresisFit, limit_range
from jointwise.joint.hysteresis.methods import HysteresisProblem
from jointwise.joint.hysteresis.uncertainty import LawEstimate, estimate
from jointwise.joint.laws import RATED, SLIP, STATIC, HysteresisSettings, JointMotion, dry_level
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
from jointwise.model.terms import load_law_name, load_unit, slip_after_reversal
from jointwise.spatial import Array


def make_part(
    record: JointRecord,
    problem: HysteresisProblem,
    fit: HysteresisFit,
    fits: Sequence[HysteresisFit],
    treatments: Sequence[Sequence[HysteresisFit]],
    errors: dict[int, Array],
    remark: str = "",
) -> Part:
    """Return the hysteresis part of the chosen fit.

    Args:
        record: The record.
        problem: Data and settings.
        fit: The chosen fit.
        fits: All fits.
        treatments: Fits under other treatments of the data, as in `estimate`.
        errors: Held-out errors (blocks,) by number of elements; empty where the number was requested.
        remark: A further note, or "".
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
        curves=_curves(loops, found, errors),
        notes=(*_notes(problem, fit, bool(errors)), *((remark,) if remark else ())),
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
    values = [_linear(found, "F_C", "Nm", _coulomb(found), coulomb), *_rise(found, coulomb), *_growth(found, coulomb)]
    if lugre:
        length, damping, D = found.limits[0], float(law.forces[1]), float(law.limits[0])
        stiffness = found.standard_error(coulomb / max(_coulomb(found), TINY) - length)
        step = _position_error(loops) / D
        values.append(_searched("length", "rad", D, math.hypot(found.standard_error(length), step), factor, limits))
        values.append(positive_value("s0", "Nm/rad", _coulomb(found) / D, math.hypot(stiffness, step), factor))
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


def _coulomb(found: LawEstimate) -> float:
    law = found.fit.law
    return float(law.forces[0] if law.model == "lugre" else law.forces.sum())


def _growth(found: LawEstimate, coulomb: Array) -> list[Value]:
    """Return ``F_C1 = c F_C`` where it was estimated; `coulomb`: gradient of F_C."""
    if "growth" not in found.fit.free:
        return []
    c, unit = found.fit.law.growth, load_unit(load_law_name(found.fit.law.power))
    gradient = c * coulomb + _coulomb(found) * found.gradient("growth")
    return [_not_negative(_linear(found, "F_C1", unit, c * _coulomb(found), gradient))]


def _rise(found: LawEstimate, coulomb: Array) -> list[Value]:
    """Return F_S, F_S - F_C and V_S of a Stribeck rise that was estimated."""
    law, F_C = found.fit.law, _coulomb(found)
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


def _curves(loops: Loops, found: LawEstimate, errors: dict[int, Array]) -> tuple[Curve, ...]:
    curves = [_loop_curve(loops, found.fit)]
    if found.fit.law.model in SLIP:
        curves.insert(0, _reversal_curve(loops, found))
    return (*curves, _element_curve(errors, loops.variance)) if errors else tuple(curves)


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


def _element_curve(errors: dict[int, Array], variance: float) -> Curve:
    quality = [nrmse_of_error(float(error.mean()), variance) for error in errors.values()]
    return make_curve(
        ("Fit on held-out data over the number of elements", "elements", "fit [%]"),
        (np.array([*errors], dtype=float), np.array(quality)),
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


def _notes(problem: HysteresisProblem, fit: HysteresisFit, chosen: bool) -> tuple[str, ...]:
    """Return the notes; `chosen`: the number of elements was chosen by held-out error."""
    loops = problem.loops
    notes = [
        f"{len(loops.starts)} reversals; cross-validation with {min(FOLDS, loops.blocks)} folds of {loops.blocks} "
        "blocks of swings.",
        f"{(~loops.used).sum()} samples are not used: after a start or a rest the deformation of the elements is known "
        f"once the path has covered {2e3 * loops.largest:.3g} mrad.",
        f"Limits between {1e3 * loops.smallest:.2g} and {1e3 * loops.largest:.3g} mrad are identifiable.",
    ]
    if chosen:
        some = "element" if problem.elements == 1 else "elements"
        notes.append(
            f"nlr has {problem.elements} {some}: the fewest within one standard error of the best on held-out data."
        )
    if problem.known.growth.fixed:
        notes.append("The load does not vary in these data: the load dependence is that of the load part.")
    return (*notes, *_law_notes(problem, fit))


def _law_notes(problem: HysteresisProblem, fit: HysteresisFit) -> list[str]:
    """Return notes on the parameters of the law."""
    loops, law, notes = problem.loops, fit.law, []
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
