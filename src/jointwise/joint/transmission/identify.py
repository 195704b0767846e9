"""Kinematic error and position-dependent backlash of a gear from a slow reciprocation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.gear_maps import GearMap, RippledTable, Series
from jointwise.joint.jackknife import half_width, spread
from jointwise.joint.part import Alternative, Curve, Part, Value, plain, value_of
from jointwise.joint.quality import nrmse_percent, rms
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.joint.springs import stiffness_of
from jointwise.joint.transmission.lag import (
    ERROR_ORDERS,
    FLOOR,
    LOST_ORDERS,
    Lag,
    Orders,
    lag_of,
    refined,
    ripples,
    told_orders,
    usual_stroke,
)
from jointwise.joint.transmission.series import SeriesFit, fit_series, significant
from jointwise.joint.transmission.strokes import Strokes, strokes_of
from jointwise.joint.transmission.tables import (
    NO_RIPPLE,
    TableFit,
    fit_tables,
    order_name,
    peaks,
    seen_both_ways,
    span_of,
    spectrum,
)
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.spatial import Array

POINTS = 1000
"""Points of a table."""
COARSE = 240
"""Points of the coarse table: one a reversal of the usual experiment."""
FINE = 2048
"""Points of the table whose spectrum is taken."""
FOLDS = 4
"""Parts of the cycles, in turn: two to choose the model, two that are held out."""
LEAST_SEEN = 5
"""Fewest points of the coarse table that must be passed in both directions."""
MOST_KNOWN = 0.5
"""Part of the rows from which on only those are judged that a table knows."""
HIGHEST_PHASE = 0.2
"""Change of m θ (rad) that is averaged over at most."""
WHOLE = 0.97
"""Part of a turn that must be seen both ways for a Fourier series."""
LEAST_QUALITY = 50.0
"""NRMSE % on held-out cycles below which θ - q does not repeat with the angle."""
LEAST_SIGNIFICANCE = 3.0
"""An order is kept where its amplitude is so many times its deviation."""
SERIES = "Fourier series"
WORTH = 1.1
"""A series is taken unless a table leaves less by this factor: it has far fewer numbers."""
SPRING_FLOOR = 5e-3
"""Relative deviation that is added to the compliance: the spring is not quite linear."""
SPRING_PART = 0.02
"""Part of the spring's own ripple at an order that is added to its deviation: a fast motion hides the gear by it."""
LINE = 1001

Fit = SeriesFit | TableFit


def identify_transmission(
    record: JointRecord, *, stiffness: Part | None = None, gear_ratio: float | None = None
) -> Part:
    """Return kinematic error e(θ) and backlash d(θ) of a gear: ``θ - q = offset + e + d P + spring``.

    e is the middle of θ - q for both directions at the same angle, d half the difference, both from samples so far
    from the last reversal that the lag is full. Periodic tables and Fourier series are fitted and compared on cycles
    held out; a series needs a whole turn. `stiffness` takes the spring's deformation by the load out; without it a
    linear one is found along. `gear_ratio` names the orders.
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
    lag = refined(every, lag, _orders(_full(every, lag)) if whole else _with(told_orders(every), short), elastic)
    rows = _full(every, lag)
    _refuse_unseen(record, rows)
    seen = seen_both_ways(rows, COARSE)
    short = _sure(rows, short)
    train, test = rows.take(~rows.held_out), rows.take(rows.held_out)
    fits = _fits(train, whole, short)
    chosen = _chosen(rows, whole, short)
    held_out = _quality(fits[chosen], test)
    _refuse_poor(record, held_out, whole, seen)
    final = _fits(rows, whole, short)
    fit = final[chosen]
    return Part(
        phenomenon="transmission",
        model=chosen,
        values=_values(final, fit, lag, rows, _compliance(lag, stiffness)),
        fitted=_quality(fit, rows),
        held_out=held_out,
        settings=_settings(fit, lag) | {"deviation": _deviation(final, fit, rows)},
        ranges={"theta": _seen_range(rows, whole), "speed": (0.0, float(np.percentile(np.abs(record.speed), 99.0)))},
        alternatives=tuple(Alternative(name, _quality(own, train), _quality(own, test)) for name, own in fits.items()),
        curves=_curves(final, fit, rows, lag, whole),
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
    return tuple(sorted({*generator, *ripples(every, lag, _with(low, generator), elastic)}))


def _with(orders: Orders, short: tuple[int, ...]) -> Orders:
    """Return orders of both maps with more of the kinematic error."""
    return (*orders[0], *short), orders[1]


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


def _fits(rows: Strokes, whole: bool, short: tuple[int, ...]) -> dict[str, Fit]:
    """Return every model fitted on some rows: tables, and a series of the orders that stand out in a turn."""
    ripple = _ripple_of(rows, short)
    tables = {points: fit_tables(rows, points, ripple) for points in (COARSE, POINTS)}
    fits: dict[str, Fit] = {f"table of {points} points": table for points, table in tables.items()}
    if whole:
        fine = fit_tables(rows, FINE)
        first = fit_series(rows, peaks(*spectrum(fine.error)), peaks(*spectrum(fine.lost)), False)
        fits[SERIES] = fit_series(rows, *significant(first, LEAST_SIGNIFICANCE), False)
    return fits


def _sure(rows: Strokes, short: tuple[int, ...]) -> tuple[int, ...]:
    """Return the high orders of the error that stand out in rows with a full lag."""
    fit = fit_series(rows, *_with(told_orders(rows), short), False)
    return tuple(m for m in short if m in significant(fit, LEAST_SIGNIFICANCE)[0])


def _ripple_of(rows: Strokes, short: tuple[int, ...]) -> Series:
    """Return the waves of some orders of the error in rows with a full lag."""
    if not short:
        return NO_RIPPLE
    own = fit_series(rows, *_with(told_orders(rows), short), False).series()[0]
    first = len(own.orders) - len(short)
    return Series(0.0, own.orders[first:], own.amplitudes[first:], own.phases[first:])


def _chosen(rows: Strokes, whole: bool, short: tuple[int, ...]) -> str:
    """Return the model that does best on a part of the training cycles that it was not fitted on."""
    inner = (rows.stroke // 2) % FOLDS
    fits = _fits(rows.take(inner == 0), whole, short)
    rests = {name: 100.0 - _quality(fit, rows.take(inner == 2)) for name, fit in fits.items()}
    best = min(rests, key=lambda name: rests[name])
    return SERIES if SERIES in rests and rests[SERIES] < WORTH * rests[best] else best


def _quality(fit: Fit, rows: Strokes) -> float:
    """Return the NRMSE % on some rows; a table that knows most of them answers only where it saw both ways."""
    known = fit.known(rows.theta) if isinstance(fit, TableFit) else np.ones(len(rows.theta), dtype=bool)
    rows = rows.take(known) if known.mean() > MOST_KNOWN else rows
    return nrmse_percent(rows.phi, fit.predicted(rows))


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


def _maps(fit: Fit) -> tuple[GearMap, GearMap, float]:
    """Return e without its mean, d, and the mean: the encoder offset."""
    if isinstance(fit, SeriesFit):
        error, lost = fit.series()
        return replace(error, mean=0.0), lost, error.mean
    offset = float(fit.means(fit.span)[0])
    table = PeriodicTable(tuple((np.array(fit.error.values) - offset).tolist()))
    return RippledTable(table, fit.ripple) if fit.ripple.orders else table, fit.lost, offset


def _settings(fit: Fit, lag: Lag) -> dict[str, Any]:
    error, lost, _ = _maps(fit)
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


def _curves(final: dict[str, Fit], fit: Fit, rows: Strokes, lag: Lag, whole: bool) -> tuple[Curve, ...]:
    """Return both maps, their spectra if a whole turn was seen and, where lost motion was found, its lag."""
    begin = 0.0 if whole else float(rows.theta.min())
    return (
        _map_curve(final, fit, rows, 0, begin),
        _map_curve(final, fit, rows, 1, begin),
        *(_spectra(fit_tables(rows, FINE)) if whole else ()),
        *((_lag_curve(lag),) if lag.reach > 0.0 else ()),
    )


def _spectra(fine: TableFit) -> tuple[Curve, Curve]:
    return (
        _spectrum_curve("Spectrum of the kinematic error", fine.error),
        _spectrum_curve("Spectrum of the backlash", fine.lost),
    )


def _map_curve(final: dict[str, Fit], fit: Fit, rows: Strokes, which: int, begin: float) -> Curve:
    """Return e (0) or d (1) over the turn from an angle on (rad), where it was seen, with what was measured."""
    own = _maps(fit)[which]
    assert not isinstance(own, float)
    title, label = (("Kinematic error", "e [rad]"), ("Backlash", "d [rad]"))[which]
    points, y, residual = _measured(final, fit, rows, which, begin)
    line = np.linspace(begin, begin + TURN, LINE)
    if isinstance(fit, TableFit):
        line = line[fit.known(line)]
    half, model = _band(final, fit, rows, which, line), own.at(line)
    return Curve(
        title=title,
        x_label="rotor angle at the output [rad]",
        y_label=label,
        x=plain(points),
        y=plain(y),
        line_x=plain(line),
        line_y=plain(model),
        low=plain(model - half),
        high=plain(model + half),
        residual=plain(residual),
    )


def _measured(final: dict[str, Fit], fit: Fit, rows: Strokes, which: int, begin: float) -> tuple[Array, Array, Array]:
    """Return angles, e (0) or d (1) there without the encoder offset, and what the model leaves of it.

    A series is held against the finer table of all cycles; a table against that of cycles held out, and the residual is
    what a table of the other cycles leaves of those: its own would be zero.
    """
    other: TableFit | None = None
    table = final[f"table of {POINTS} points"]
    if isinstance(fit, TableFit):
        table, other = (fit_tables(rows.take(part), POINTS, fit.ripple) for part in (rows.held_out, ~rows.held_out))
    assert isinstance(table, TableFit)
    seen = table.seen if other is None else table.seen & other.seen
    points: Array = np.arange(POINTS, dtype=np.float64)[seen] * (TURN / POINTS)
    points = np.sort(begin + np.mod(points - begin, TURN))

    def at(own: TableFit) -> Array:
        error: Array = own.error.at(points) + own.ripple.at(points) - _maps(fit)[2]
        return error if which == 0 else own.lost.at(points)

    own = _maps(fit)[which]
    assert not isinstance(own, float)
    return points, at(table), at(table) - (own.at(points) if other is None else at(other))


def _spectrum_curve(title: str, table: PeriodicTable) -> Curve:
    orders, amplitudes = spectrum(table)
    x_label, y_label = "cycles a turn of the output", "amplitude [rad]"
    return Curve(title, x_label, y_label, plain(orders), plain(amplitudes), kind="line", scale="log")


def _lag_curve(lag: Lag) -> Curve:
    shape = np.clip(lag.travel / lag.reach - 1.0, -1.0, 1.0)
    return Curve(
        title="Lag after a reversal",
        x_label="travel [rad]",
        y_label="part of the backlash",
        x=plain(lag.travel),
        y=plain(lag.part),
        line_x=plain(lag.travel),
        line_y=plain(shape),
        residual=plain(lag.part - shape),
    )


def _band(final: dict[str, Fit], fit: Fit, rows: Strokes, which: int, line: Array) -> Array:
    """Return half the width of the 95 % band: of the series, or by tables of two halves of the cycles."""
    if isinstance(fit, SeriesFit):
        own = np.array([fit.series(x)[which].at(line) for x in fit.replicates])
        return half_width(len(own)) * spread(own)
    parts = (rows.held_out, ~rows.held_out)
    halves = [fit_tables(rows.take(part), len(fit.error.values), fit.ripple) for part in parts]
    both = line[halves[0].known(line) & halves[1].known(line)]
    tables = [(half.error, half.lost)[which].at(both if len(both) else line) for half in halves]
    return np.full(len(line), 1.96 * 0.5 * rms(tables[0] - tables[1]))


def _deviation(final: dict[str, Fit], fit: Fit, rows: Strokes) -> float:
    """Return the deviation of e at an angle that was seen, rad."""
    line = np.linspace(*span_of(rows), LINE)
    return float(rms(_band(final, fit, rows, 0, line[fit.known(line)] if isinstance(fit, TableFit) else line))) / 1.96


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
    after = test.phi - _maps(tested)[0].at(test.theta)
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
