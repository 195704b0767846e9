"""Kinematic error and position-dependent backlash of a gear from a slow reciprocation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.gear_maps import GearMap, RippledTable, Series
from jointwise.joint.jackknife import half_width, spread
from jointwise.joint.part import Alternative, Part, Value, value_of
from jointwise.joint.quality import rms
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.joint.springs import stiffness_of
from jointwise.joint.transmission.curves import curves_of, deviation_of
from jointwise.joint.transmission.lag import (
    ERROR_ORDERS,
    FLOOR,
    LOST_ORDERS,
    Lag,
    lag_of,
    refined,
    ripples,
    told_orders,
    usual_stroke,
)
from jointwise.joint.transmission.models import (
    COARSE,
    FINE,
    FOLDS,
    SERIES,
    Fit,
    chosen_of,
    fits_of,
    maps_of,
    quality_of,
    sure_orders,
    with_orders,
)
from jointwise.joint.transmission.series import SeriesFit
from jointwise.joint.transmission.strokes import Strokes, strokes_of
from jointwise.joint.transmission.tables import (
    TableFit,
    fit_tables,
    order_name,
    peaks,
    seen_both_ways,
    span_of,
    spectrum,
)
from jointwise.model.periodic_table import TURN, PeriodicTable

LEAST_SEEN = 5
"""Fewest points of the coarse table that must be passed in both directions."""
HIGHEST_PHASE = 0.2
"""Change of m θ (rad) that is averaged over at most."""
WHOLE = 0.97
"""Part of a turn that must be seen both ways for a Fourier series."""
LEAST_QUALITY = 50.0
"""NRMSE % on held-out cycles below which θ - q does not repeat with the angle."""
SPRING_FLOOR = 5e-3
"""Relative deviation that is added to the compliance: the spring is not quite linear."""
SPRING_PART = 0.02
"""Part of the spring's own ripple at an order that is added to its deviation: a fast motion hides the gear by it."""


def identify_transmission(
    record: JointRecord, *, stiffness: Part | None = None, gear_ratio: float | None = None
) -> Part:
    """Return kinematic error e(θ) and backlash d(θ) of a gear: ``θ - q = offset + e + d P + spring``.

    e is the middle of θ - q for both directions at the same angle, d half the difference, both from samples so far
    from the last reversal that the lag is full. Periodic tables and Fourier series are fitted and compared on cycles
    held out; a series needs a whole turn, in a part of it waves too short for the points ride on the table.
    `stiffness` takes the spring's deformation by the load out; without it a linear one is found along. `gear_ratio`
    names the orders.
    """
    elastic = stiffness is None
    strokes = _relaxed(strokes_of(record), stiffness)
    rough = _thinned(strokes, 50.0)
    lag = lag_of(rough, told_orders(rough), elastic)
    _refuse_short(record, strokes, lag)
    every = _thinned(strokes, 2.0 * (gear_ratio or 100.0))
    _refuse_unseen(record, _full(every, lag))
    whole = bool(seen_both_ways(_full(every, lag), COARSE).mean() >= WHOLE)
    short = () if whole else _ripples(every, lag, gear_ratio, elastic)
    lag = refined(every, lag, _orders(_full(every, lag)) if whole else with_orders(told_orders(every), short), elastic)
    rows = _full(every, lag)
    _refuse_unseen(record, rows)
    seen = seen_both_ways(rows, COARSE)
    short = sure_orders(rows, short)
    train, test = rows.take(~rows.held_out), rows.take(rows.held_out)
    fits = fits_of(train, whole, short)
    chosen = chosen_of(rows, whole, short)
    held_out = quality_of(fits[chosen], test)
    _refuse_poor(record, held_out, whole, seen)
    final = fits_of(rows, whole, short)
    fit = final[chosen]
    return Part(
        phenomenon="transmission",
        model=chosen,
        values=_values(final, fit, lag, rows, _compliance(lag, stiffness)),
        fitted=quality_of(fit, rows),
        held_out=held_out,
        settings=_settings(fit, lag) | {"deviation": deviation_of(final, fit, rows)},
        ranges={"theta": _seen_range(rows, whole), "speed": (0.0, float(np.percentile(np.abs(record.speed), 99.0)))},
        alternatives=tuple(
            Alternative(name, quality_of(own, train), quality_of(own, test)) for name, own in fits.items()
        ),
        curves=curves_of(final, fit, rows, lag, whole),
        notes=_notes(final, fits[chosen], test, lag, seen, gear_ratio, elastic),
        logs=record.logs,
    )


def _relaxed(strokes: Strokes, stiffness: Part | None) -> Strokes:
    """Return the strokes without the spring's deformation, where the spring is known."""
    if stiffness is None:
        return strokes
    return replace(strokes, phi=strokes.phi - stiffness_of(stiffness).deformation(strokes.load))


def _full(strokes: Strokes, lag: Lag) -> Strokes:
    """Return the samples with a full lag, without the spring's deformation."""
    relaxed = replace(strokes, phi=strokes.phi - lag.compliance * strokes.load)
    return relaxed.take((strokes.travel > lag.settled) & (strokes.stroke > strokes.stroke.min()))


def _orders(rows: Strokes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the orders of both maps that stand out, and the lowest ones."""
    fine = fit_tables(rows, FINE)
    error, lost = (peaks(*spectrum(table)) for table in (fine.error, fine.lost))
    return tuple(sorted({*error, *ERROR_ORDERS})), tuple(sorted({*lost, *LOST_ORDERS}))


def _ripples(every: Strokes, lag: Lag, ratio: float | None, elastic: bool) -> tuple[int, ...]:
    """Return the high orders of the error in a part of a turn: those that are seen, and the wave generator's."""
    low = told_orders(every)
    generator = () if ratio is None else (round(ratio), round(2.0 * ratio))
    return tuple(sorted({*generator, *ripples(every, lag, with_orders(low, generator), elastic)}))


def _thinned(strokes: Strokes, order: float) -> Strokes:
    """Return means over so few samples that an order is not smoothed away."""
    fastest = float(np.percentile(np.abs(np.diff(strokes.theta)), 99.0))
    return strokes.averaged(int(np.clip(HIGHEST_PHASE / (order * max(fastest, 1e-12)), 1, 50)))


def _refuse_short(record: JointRecord, strokes: Strokes, lag: Lag) -> None:
    stroke = usual_stroke(strokes)
    if lag.settled > 0.8 * stroke:
        what = f"strokes of {stroke:.2g} rad are too short: the lag is full only after {lag.settled:.2g} rad"
        raise refuse(record, "transmission", what)


def _refuse_unseen(record: JointRecord, rows: Strokes) -> None:
    """Refuse rows of which a part that is fitted or tested on its own does not pass angles both ways."""
    if np.sum(seen_both_ways(rows, COARSE)) < LEAST_SEEN:
        raise refuse(record, "transmission", "no angles were passed in both directions")
    fold = (rows.stroke // 2) % FOLDS
    if min(np.sum(seen_both_ways(rows.take(fold == k), COARSE)) for k in range(FOLDS)) < LEAST_SEEN:
        cycles = len(np.unique(rows.stroke // 2))
        what = f"only {cycles} cycles to and fro, too few to fit some and to test on others: record longer"
        raise refuse(record, "transmission", what)


def _refuse_poor(record: JointRecord, held_out: float, whole: bool, seen: NDArray[np.bool_]) -> None:
    if held_out >= LEAST_QUALITY:
        return
    fit = f"fit {held_out:.0f} % on cycles held out"
    if whole:
        raise refuse(record, "transmission", f"θ - q does not repeat with the angle ({fit})")
    part = f"only {seen.mean():.0%} of a turn was seen both ways, and there the angle does not tell θ - q"
    raise refuse(record, "transmission", f"{part} ({fit}): record longer")


def _values(final: dict[str, Fit], fit: Fit, lag: Lag, rows: Strokes, compliance: float) -> tuple[Value, ...]:
    """Return offset, orders and reach; where only a table is known, its mean numbers."""
    series = final.get(SERIES)
    if isinstance(series, SeriesFit):
        values = _series_values(series, 0, rows, compliance) + _series_values(series, 1, rows, compliance)
    else:
        assert isinstance(fit, TableFit)
        values = _table_values(fit, lag, rows)
    if lag.reach:
        values.append(value_of("reach", "rad", lag.reach, float(np.hypot(lag.deviation, FLOOR * lag.reach)), 2.1))
    if lag.compliance:
        unsure = float(np.hypot(lag.compliance_deviation, SPRING_FLOOR * lag.compliance))
        own = value_of("compliance", "rad/Nm", lag.compliance, unsure, 2.1)
        values.append(replace(own, low=max(own.low, 0.0)))
    return tuple(values)


def _table_values(fit: TableFit, lag: Lag, rows: Strokes) -> list[Value]:
    """Return the means of both tables over the angles seen; every fourth cycle is left out in turn for intervals."""
    means, cycle = fit.means(fit.span), (rows.stroke // 2) % FOLDS
    others = [fit_tables(rows.take(cycle != k), len(fit.seen), fit.ripple).means(fit.span) for k in range(FOLDS)]
    spring = lag.compliance_deviation * np.abs([rows.load.mean(), (rows.load * rows.side).mean()])
    deviation = np.sqrt(spread(np.array(others)) ** 2 + (FLOOR * means) ** 2 + spring**2)
    names = zip(("offset", "backlash_mean"), means, deviation, strict=True)
    return [value_of(name, "rad", float(x), float(own), half_width(FOLDS)) for name, x, own in names]


def _series_values(fit: SeriesFit, which: int, rows: Strokes, compliance: float) -> list[Value]:
    """Return mean, amplitudes and phases of one of the series with their intervals."""
    own = fit.series()[which]
    others = [fit.series(x)[which] for x in fit.replicates]
    factor = half_width(len(others))
    mean, prefix = (("offset", ""), ("backlash_mean", "backlash_"))[which]
    unsure = float(np.hypot(spread(np.array([x.mean for x in others])), FLOOR * own.mean))
    values = [value_of(mean, "rad", own.mean, unsure, factor)]
    for k, order in enumerate(own.orders):
        size, phase = own.amplitudes[k], own.phases[k]
        floor = FLOOR * size + SPRING_PART * compliance * _ripple(rows, order, which)
        amplitude = np.hypot(spread(np.array([x.amplitudes[k] for x in others])), floor)
        turned = np.array([x.phases[k] for x in others]) - phase
        angle = np.hypot(spread(np.mod(turned + np.pi, TURN) - np.pi), floor / size)
        values.append(value_of(f"{prefix}amplitude_{order}", "rad", size, float(amplitude), factor))
        values.append(value_of(f"{prefix}phase_{order}", "rad", phase, float(angle), factor))
    return values


def _ripple(rows: Strokes, order: int, which: int) -> float:
    """Return the amplitude (Nm) of the load at an order of the error or, by direction, of the backlash."""
    load = rows.load * rows.side if which else rows.load
    return 2.0 * float(np.abs(np.mean(load * np.exp(1j * order * rows.theta))))


def _compliance(lag: Lag, stiffness: Part | None) -> float:
    """Return the deformation by the load that was taken out, rad/Nm."""
    return lag.compliance if stiffness is None else 1.0 / float(stiffness_of(stiffness).stiffness(np.zeros(1))[0])


def _settings(fit: Fit, lag: Lag) -> dict[str, Any]:
    error, lost, _ = maps_of(fit)
    return {"kinematic_error": _plain(error), "lost_motion": _plain(lost), "reach": lag.reach, "settled": lag.settled}


def _plain(own: GearMap) -> dict[str, Any]:
    if isinstance(own, PeriodicTable):
        return {"values": list(own.values)}
    if isinstance(own, RippledTable):
        return _plain(own.table) | _plain(own.ripple)
    return {
        "mean": own.mean,
        "orders": list(own.orders),
        "amplitudes": list(own.amplitudes),
        "phases": list(own.phases),
    }


def _seen_range(rows: Strokes, whole: bool) -> tuple[float, float]:
    """Return the angles (rad) that were passed both ways; a turn if it is whole."""
    low, high = span_of(rows)
    return (low, low + TURN) if whole else (low, high)


def _notes(
    final: dict[str, Fit],
    tested: Fit,
    test: Strokes,
    lag: Lag,
    seen: NDArray[np.bool_],
    ratio: float | None,
    elastic: bool,
) -> tuple[str, ...]:
    before = test.phi - test.phi.mean()
    after = test.phi - maps_of(tested)[0].at(test.theta)
    notes = [
        f"compensation θ - e(θ) on cycles held out: rms of θ - q {1e6 * rms(before):.3g} µrad before, "
        f"{1e6 * rms(after - after.mean()):.3g} µrad after"
    ]
    series = final.get(SERIES)
    if isinstance(series, SeriesFit):
        for name, own in zip(("kinematic error", "backlash"), series.series(), strict=True):
            notes += [f"{name}, order {m}: {1e6 * a:.3g} µrad ({order_name(m, ratio)})" for m, a in _sorted(own)]
    else:
        notes.append(f"{seen.mean():.0%} of a turn was seen both ways: no Fourier series, the table holds only there")
        notes += [f"kinematic error, order {m}: {1e6 * a:.3g} µrad rides on the table" for m, a in _ripple_notes(final)]
    if lag.reach > 0.0:
        notes.append(f"the lag is full {lag.settled:.3g} rad after a reversal; only samples beyond that were used")
    else:
        notes.append("no lag between the directions stands out")
    if elastic and lag.compliance:
        notes.append("a linear spring was found along with the load (give a stiffness part to take it out)")
    elif elastic:
        notes.append("the load is too small to tell the spring (give a stiffness part to take it out)")
    return tuple(notes)


def _ripple_notes(final: dict[str, Fit]) -> list[tuple[int, float]]:
    table = final[f"table of {COARSE} points"]
    assert isinstance(table, TableFit)
    return _sorted(table.ripple)


def _sorted(series: Series) -> list[tuple[int, float]]:
    return sorted(zip(series.orders, series.amplitudes, strict=True), key=lambda own: -own[1])
