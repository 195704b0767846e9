"""Kinematic error and position-dependent backlash of a gear from a slow reciprocation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.gear_maps import GearMap, Series
from jointwise.joint.jackknife import half_width, spread
from jointwise.joint.part import Alternative, Curve, Part, Value, plain, value_of
from jointwise.joint.quality import nrmse_percent, rms
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.joint.springs import stiffness_of
from jointwise.joint.transmission.lag import ERROR_ORDERS, LOST_ORDERS, Lag, lag_of, refined, usual_stroke
from jointwise.joint.transmission.series import SeriesFit, fit_series, significant
from jointwise.joint.transmission.strokes import Strokes, strokes_of
from jointwise.joint.transmission.tables import TableFit, fit_tables, order_name, peaks, spectrum
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.spatial import Array

POINTS = 1000
"""Points of a table."""
COARSE = 240
"""Points of the coarse table: one a reversal of the usual experiment."""
FINE = 2048
"""Points of the table whose spectrum is taken."""
HIGHEST_PHASE = 0.2
"""Change of m θ (rad) that is averaged over at most."""
WHOLE = 0.97
"""Part of a turn that must be seen both ways for a Fourier series."""
LEAST_QUALITY = 20.0
"""NRMSE % on held-out cycles below which θ - q does not repeat with the angle."""
LEAST_SIGNIFICANCE = 3.0
"""An order is kept where its amplitude is so many times its deviation."""
SERIES = "Fourier series"
WORTH = 1.1
"""A series is taken unless a table leaves less by this factor: it has far fewer numbers."""
FLOOR = 5e-4
"""Deviation that is added to every amplitude and to the reach (relative) and phase (rad): smoothing leaves as much."""
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
    lag = lag_of(_thinned(strokes, 50.0), elastic)
    _refuse_short(record, strokes, lag)
    every = _thinned(strokes, 2.0 * (gear_ratio or 100.0))
    seen = fit_tables(_full(every, lag), COARSE).seen
    _refuse_unseen(record, seen)
    whole = bool(seen.mean() >= WHOLE)
    lag = refined(every, lag, *(_orders(_full(every, lag)) if whole else _expected(gear_ratio)), elastic)
    rows = _full(every, lag)
    train, test = rows.take(~rows.held_out), rows.take(rows.held_out)
    fits = _fits(train, whole)
    chosen = _chosen(rows, whole)
    held_out = _quality(fits[chosen], test)
    if not held_out >= LEAST_QUALITY:
        what = f"θ - q does not repeat with the angle (fit {held_out:.0f} % on cycles held out)"
        raise refuse(record, "transmission", what)
    final = _fits(rows, whole)
    fit = final[chosen]
    return Part(
        phenomenon="transmission",
        model=chosen,
        values=_values(final, fit, lag, rows, _compliance(lag, stiffness)),
        fitted=_quality(fit, rows),
        held_out=held_out,
        settings=_settings(fit, lag),
        ranges={"theta": _seen_range(rows, whole), "speed": (0.0, float(np.percentile(np.abs(record.speed), 99.0)))},
        alternatives=tuple(Alternative(name, _quality(own, train), _quality(own, test)) for name, own in fits.items()),
        curves=_curves(final, fit, rows, lag),
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


def _expected(ratio: float | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the orders to allow for in a part of a turn, whose spectrum tells none."""
    generator = () if ratio is None else (round(ratio), round(2.0 * ratio))
    return (*ERROR_ORDERS, *generator), LOST_ORDERS


def _thinned(strokes: Strokes, order: float) -> Strokes:
    """Return means over so few samples that an order is not smoothed away."""
    fastest = float(np.percentile(np.abs(np.diff(strokes.theta)), 99.0))
    return strokes.averaged(int(np.clip(HIGHEST_PHASE / (order * max(fastest, 1e-12)), 1, 50)))


def _refuse_short(record: JointRecord, strokes: Strokes, lag: Lag) -> None:
    stroke = usual_stroke(strokes)
    if lag.settled > 0.8 * stroke:
        what = f"strokes of {stroke:.2g} rad are too short: the lag is full only after {lag.settled:.2g} rad"
        raise refuse(record, "transmission", what)


def _refuse_unseen(record: JointRecord, seen: NDArray[np.bool_]) -> None:
    if np.sum(seen) < 5:
        raise refuse(record, "transmission", "no angles were passed in both directions")


def _fits(rows: Strokes, whole: bool) -> dict[str, Fit]:
    """Return every model fitted on some rows: tables, and a series of the orders that stand out in a turn."""
    fits: dict[str, Fit] = {f"table of {points} points": fit_tables(rows, points) for points in (COARSE, POINTS)}
    if whole:
        fine = fit_tables(rows, FINE)
        first = fit_series(rows, peaks(*spectrum(fine.error)), peaks(*spectrum(fine.lost)), False)
        fits[SERIES] = fit_series(rows, *significant(first, LEAST_SIGNIFICANCE), False)
    return fits


def _chosen(rows: Strokes, whole: bool) -> str:
    """Return the model that does best on a part of the training cycles that it was not fitted on."""
    inner = (rows.stroke // 2) % 4
    fits = _fits(rows.take(inner == 0), whole)
    rests = {name: 100.0 - _quality(fit, rows.take(inner == 2)) for name, fit in fits.items()}
    best = min(rests, key=lambda name: rests[name])
    return SERIES if SERIES in rests and rests[SERIES] < WORTH * rests[best] else best


def _quality(fit: Fit, rows: Strokes) -> float:
    return nrmse_percent(rows.phi, fit.predicted(rows))


def _values(final: dict[str, Fit], fit: Fit, lag: Lag, rows: Strokes, compliance: float) -> tuple[Value, ...]:
    """Return offset, orders and reach; where only a table is known, its mean numbers."""
    series = final.get(SERIES)
    if isinstance(series, SeriesFit):
        values = _series_values(series, 0, rows, compliance) + _series_values(series, 1, rows, compliance)
    else:
        assert isinstance(fit, TableFit)
        error, lost = (np.array(table.values)[_table_seen(fit)] for table in (fit.error, fit.lost))
        scatter = [float(np.std(own)) / np.sqrt(max(len(own), 1)) for own in (error, lost)]
        values = [value_of("offset", "rad", float(error.mean()), scatter[0])]
        values.append(value_of("backlash_mean", "rad", float(lost.mean()), scatter[1]))
    values.append(value_of("reach", "rad", lag.reach, float(np.hypot(lag.deviation, FLOOR * lag.reach)), 2.1))
    if lag.compliance:
        unsure = float(np.hypot(lag.compliance_deviation, SPRING_FLOOR * lag.compliance))
        values.append(value_of("compliance", "rad/Nm", lag.compliance, unsure, 2.1))
    return tuple(values)


def _table_seen(fit: TableFit) -> NDArray[np.bool_]:
    result: NDArray[np.bool_] = fit.seen if fit.seen.any() else np.ones(len(fit.seen), dtype=bool)
    return result


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
    values = np.array(fit.error.values)
    offset = float(values[_table_seen(fit)].mean())
    return PeriodicTable(tuple((values - offset).tolist())), fit.lost, offset


def _settings(fit: Fit, lag: Lag) -> dict[str, Any]:
    error, lost, _ = _maps(fit)
    return {"kinematic_error": _plain(error), "lost_motion": _plain(lost), "reach": lag.reach, "settled": lag.settled}


def _plain(own: GearMap) -> dict[str, Any]:
    if isinstance(own, PeriodicTable):
        return {"values": list(own.values)}
    return {
        "mean": own.mean,
        "orders": list(own.orders),
        "amplitudes": list(own.amplitudes),
        "phases": list(own.phases),
    }


def _seen_range(rows: Strokes, whole: bool) -> tuple[float, float]:
    low, high = float(rows.theta.min()), float(rows.theta.max())
    return (low, low + TURN) if whole else (low, high)


def _curves(final: dict[str, Fit], fit: Fit, rows: Strokes, lag: Lag) -> tuple[Curve, ...]:
    """Return both maps over a turn, their spectra and, where lost motion was found, its lag after a reversal."""
    fine = fit_tables(rows, FINE)
    return (
        _map_curve(final, fit, rows, 0),
        _map_curve(final, fit, rows, 1),
        _spectrum_curve("Spectrum of the kinematic error", fine.error),
        _spectrum_curve("Spectrum of the backlash", fine.lost),
        *((_lag_curve(lag),) if lag.reach > 0.0 else ()),
    )


def _map_curve(final: dict[str, Fit], fit: Fit, rows: Strokes, which: int) -> Curve:
    """Return e (0) or d (1) over a turn, where it was seen, with what was measured."""
    own = _maps(fit)[which]
    assert not isinstance(own, float)
    title, label = (("Kinematic error", "e [rad]"), ("Backlash", "d [rad]"))[which]
    points, y, residual = _measured(final, fit, rows, which)
    line = np.linspace(0.0, TURN, LINE)
    if isinstance(fit, TableFit):
        line = line[fit.seen[np.floor(line * (len(fit.seen) / TURN)).astype(np.intp) % len(fit.seen)]]
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


def _measured(final: dict[str, Fit], fit: Fit, rows: Strokes, which: int) -> tuple[Array, Array, Array]:
    """Return angles, e (0) or d (1) there without the encoder offset, and what the model leaves of it.

    A series is held against the finer table of all cycles; a table against that of cycles held out, and the residual is
    what a table of the other cycles leaves of those: its own would be zero.
    """
    other: TableFit | None = None
    table = final[f"table of {POINTS} points"]
    if isinstance(fit, TableFit):
        table, other = (fit_tables(rows.take(part), POINTS) for part in (rows.held_out, ~rows.held_out))
    assert isinstance(table, TableFit)
    points: Array = np.arange(POINTS, dtype=np.float64)[table.seen] * (TURN / POINTS)

    def at(own: TableFit) -> Array:
        result: Array = own.error.at(points) - _maps(fit)[2] if which == 0 else own.lost.at(points)
        return result

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
    halves = [fit_tables(rows.take(part), len(fit.error.values)) for part in (rows.held_out, ~rows.held_out)]
    tables = [(half.error, half.lost)[which].at(line) for half in halves]
    return np.full(len(line), 1.96 * 0.5 * rms(tables[0] - tables[1]))


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
    error = tested.series()[0] if isinstance(tested, SeriesFit) else tested.error
    after = test.phi - error.at(test.theta)
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
    if lag.reach > 0.0:
        notes.append(f"the lag is full {lag.settled:.3g} rad after a reversal; only samples beyond that were used")
    else:
        notes.append("no lag between the directions stands out")
    if elastic:
        notes.append("a linear spring was found along with the load (give a stiffness part to take it out)")
    return tuple(notes)


def _sorted(series: Series) -> list[tuple[int, float]]:
    return sorted(zip(series.orders, series.amplitudes, strict=True), key=lambda own: -own[1])
