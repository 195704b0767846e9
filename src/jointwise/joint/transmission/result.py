"""Result of the transmission: parameters of both maps, curves with bands, spectra and notes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointwise.estimation.jackknife import NORMAL_FACTOR, standard_error, student_factor
from jointwise.joint.curve import Curve, make_curve, plain
from jointwise.joint.part import Part, TriedModel, Value, identified_part, rms, value_of
from jointwise.joint.record import JointRecord
from jointwise.joint.stiffness.law import StiffnessLaw
from jointwise.joint.transmission.data import CYCLE_FOLDS, Strokes, usual_top_speed
from jointwise.joint.transmission.fit import (
    COARSE_POINTS,
    FINE_POINTS,
    SERIES,
    MapFit,
    SeriesFit,
    TableFit,
    fit_tables,
    map_quality,
    spectrum,
    split_offset,
    table_name,
)
from jointwise.joint.transmission.lag import SMOOTHING_ERROR, Lag
from jointwise.joint.transmission.law import POINTS, FourierSeries, MapSettings, TransmissionSettings
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.model.terms import slip_after_reversal
from jointwise.spatial import Array

SPRING_ERROR = 5e-3
"""Relative standard error added to the compliance: the spring is not quite linear."""
SPRING_RIPPLE = 0.02
"""Fraction of the ripple of the spring at an order that is added to its standard error: an error of the compliance
appears as kinematic error."""


@dataclass(frozen=True)
class TransmissionResult:
    """The fits behind a transmission part.

    Attributes:
        fits: Models fitted to all rows, by name.
        chosen: Name of the selected model.
        trained: That model fitted to training data only.
        rows: Samples with a full lag.
        lag: Lag after a reversal.
        spring: Known spring; None if a linear one was fitted.
        gear_ratio: Gear ratio; None if not known.
        seen_share: Fraction of a turn that was passed in both directions.
        is_whole: Whether the rows cover a whole turn.
    """

    fits: dict[str, MapFit]
    chosen: str
    trained: MapFit
    rows: Strokes
    lag: Lag
    spring: StiffnessLaw | None
    gear_ratio: float | None
    seen_share: float
    is_whole: bool

    @property
    def fit(self) -> MapFit:
        """The chosen model."""
        return self.fits[self.chosen]

    @property
    def compliance(self) -> float:
        """Deformation per load that was subtracted, rad/Nm."""
        return self.lag.compliance if self.spring is None else 1.0 / float(self.spring.stiffness(np.zeros(1))[0])


def transmission_part(
    record: JointRecord, result: TransmissionResult, held_out: float, tried: tuple[TriedModel, ...]
) -> Part:
    """Return the phenomenon "transmission"."""
    error, lost, _ = split_offset(result.fit)
    low, high = result.rows.span
    return identified_part(
        record,
        "transmission",
        model=result.chosen,
        values=_values(result),
        fitted=map_quality(result.fit, result.rows),
        held_out=held_out,
        settings=TransmissionSettings(
            kinematic_error=MapSettings.of(error),
            lost_motion=MapSettings.of(lost),
            reach=result.lag.reach,
            settled=result.lag.settled,
            deviation=_map_error(result),
        ).to_dict(),
        ranges={
            "theta": (low, low + TURN if result.is_whole else high),
            "speed": (0.0, usual_top_speed(record)),
        },
        alternatives=tried,
        curves=_curves(result),
        notes=_notes(result),
    )


# -- parameters --


def _values(result: TransmissionResult) -> tuple[Value, ...]:
    """Return offset, orders, reach and compliance; the means of both maps where only a table is known."""
    series, lag = result.fits.get(SERIES), result.lag
    if isinstance(series, SeriesFit):
        values = [*_series_values(series, 0, result), *_series_values(series, 1, result)]
    else:
        values = _table_values(result)
    factor = student_factor(lag.blocks - 1)
    if lag.reach:
        error = float(np.hypot(lag.reach_error, SMOOTHING_ERROR * lag.reach))
        values.append(value_of("reach", "rad", lag.reach, error, factor))
    if lag.compliance:
        error = float(np.hypot(lag.compliance_error, SPRING_ERROR * lag.compliance))
        value = value_of("compliance", "rad/Nm", lag.compliance, error, factor)
        values.append(replace(value, low=max(value.low, 0.0)))
    return tuple(values)


def _table_values(result: TransmissionResult) -> list[Value]:
    """Return the means of both tables over the measured angles; the jackknife leaves out one fold of cycles."""
    fit, rows, lag = result.fit, result.rows, result.lag
    assert isinstance(fit, TableFit)
    means = fit.means(fit.span)
    replicates = [
        fit_tables(rows.take(rows.fold != k), len(fit.seen), fit.ripple).means(fit.span) for k in range(CYCLE_FOLDS)
    ]
    spring = lag.compliance_error * np.abs([rows.load.mean(), (rows.load * rows.side).mean()])
    error = np.sqrt(standard_error(np.array(replicates)) ** 2 + (SMOOTHING_ERROR * means) ** 2 + spring**2)
    names = zip(("offset", "backlash_mean"), means, error, strict=True)
    return [value_of(name, "rad", float(x), float(s), student_factor(CYCLE_FOLDS - 1)) for name, x, s in names]


def _series_values(fit: SeriesFit, which: int, result: TransmissionResult) -> list[Value]:
    """Return mean, amplitudes and phases of e (0) or d (1) with their confidence intervals."""
    series, replicates = fit.series()[which], [fit.series(x)[which] for x in fit.replicates]
    factor = student_factor(len(replicates) - 1)
    mean, prefix = (("offset", ""), ("backlash_mean", "backlash_"))[which]
    error = float(np.hypot(standard_error(np.array([x.mean for x in replicates])), SMOOTHING_ERROR * series.mean))
    values = [value_of(mean, "rad", series.mean, error, factor)]
    for k, order in enumerate(series.orders):
        size, phase = series.amplitudes[k], series.phases[k]
        added = SMOOTHING_ERROR * size + SPRING_RIPPLE * result.compliance * _load_ripple(result.rows, order, which)
        amplitude = np.hypot(standard_error(np.array([x.amplitudes[k] for x in replicates])), added)
        turned = np.array([x.phases[k] for x in replicates]) - phase
        angle = np.hypot(standard_error(np.mod(turned + np.pi, TURN) - np.pi), added / size)
        values.append(value_of(f"{prefix}amplitude_{order}", "rad", size, float(amplitude), factor))
        values.append(value_of(f"{prefix}phase_{order}", "rad", phase, float(angle), factor))
    return values


def _load_ripple(rows: Strokes, order: int, which: int) -> float:
    """Return the amplitude (Nm) of the load at an order of the error or, by direction, of the backlash."""
    load = rows.load * rows.side if which else rows.load
    return 2.0 * float(np.abs(np.mean(load * np.exp(1j * order * rows.theta))))


# -- curves --


def _curves(result: TransmissionResult) -> tuple[Curve, ...]:
    """Return both maps, their spectra for a whole turn and, where there is lost motion, its lag."""
    curves = [_map_curve(result, 0), _map_curve(result, 1)]
    if result.is_whole:
        fine = fit_tables(result.rows, FINE_POINTS)
        curves.append(_spectrum_curve("Spectrum of the kinematic error", fine.error))
        curves.append(_spectrum_curve("Spectrum of the backlash", fine.lost))
    if result.lag.reach > 0.0:
        curves.append(_lag_curve(result.lag))
    return tuple(curves)


def _map_curve(result: TransmissionResult, which: int) -> Curve:
    """Return e (0) or d (1) over the measured angles, with measured points."""
    gear_map = split_offset(result.fit)[:2][which]
    title, label = (("Kinematic error", "e [rad]"), ("Backlash", "d [rad]"))[which]
    begin = 0.0 if result.is_whole else float(result.rows.theta.min())
    x, y, residual = _measured(result, which, begin)
    line = np.linspace(begin, begin + TURN, POINTS + 1)
    if isinstance(result.fit, TableFit):
        line = line[result.fit.known(line)]
    half, model = _band(result, which, line), gear_map.at(line)
    return make_curve(
        (title, "rotor angle at the output [rad]", label),
        (x, y),
        (line, model),
        half,
        residual=residual,
    )


def _measured(result: TransmissionResult, which: int, begin: float) -> tuple[Array, Array, Array]:
    """Return angles, measured e (0) or d (1) there without the encoder offset, and the residual of the model.

    A series is compared with the table of all cycles; a table with that of the held-out cycles, and the residual is
    that of the table of the training cycles: a table fits its training cycles exactly.
    """
    fit, rows = result.fit, result.rows
    trained: TableFit | None = None
    table = result.fits[table_name(POINTS)]
    if isinstance(fit, TableFit):
        table, trained = (fit_tables(rows.take(part), POINTS, fit.ripple) for part in (rows.held_out, ~rows.held_out))
    assert isinstance(table, TableFit)
    seen = table.seen if trained is None else table.seen & trained.seen
    points: Array = np.arange(POINTS, dtype=np.float64)[seen] * (TURN / POINTS)
    points = np.sort(begin + np.mod(points - begin, TURN))
    maps = split_offset(fit)

    def at(tables: TableFit) -> Array:
        error: Array = tables.error.at(points) + tables.ripple.at(points) - maps[2]
        return error if which == 0 else tables.lost.at(points)

    measured = at(table)
    return points, measured, measured - (maps[:2][which].at(points) if trained is None else at(trained))


def _spectrum_curve(title: str, table: PeriodicTable) -> Curve:
    orders, amplitudes = spectrum(table)
    labels = ("cycles per turn of the output", "amplitude [rad]")
    return Curve(title, *labels, plain(orders), plain(amplitudes), kind="line", scale="log")


def _lag_curve(lag: Lag) -> Curve:
    shape = slip_after_reversal(lag.travel, np.array([lag.reach]))[:, 0]
    return make_curve(
        ("Lag after a reversal", "travel [rad]", "fraction of the backlash"),
        (lag.travel, lag.fraction),
        (lag.travel, shape),
        residual=lag.fraction - shape,
    )


def _band(result: TransmissionResult, which: int, line: Array) -> Array:
    """Return the half width of the 95 % band: of the series, or by tables of two halves of the cycles."""
    fit, rows = result.fit, result.rows
    if isinstance(fit, SeriesFit):
        replicates = np.array([fit.series(x)[which].at(line) for x in fit.replicates])
        return student_factor(len(replicates) - 1) * standard_error(replicates)
    parts = (rows.held_out, ~rows.held_out)
    halves = [fit_tables(rows.take(part), len(fit.error.values), fit.ripple) for part in parts]
    both = line[halves[0].known(line) & halves[1].known(line)]
    tables = [(half.error, half.lost)[which].at(both if len(both) else line) for half in halves]
    return np.full(len(line), NORMAL_FACTOR * 0.5 * rms(tables[0] - tables[1]))


def _map_error(result: TransmissionResult) -> float:
    """Return the standard error of e at a measured angle, rad."""
    line = np.linspace(*result.rows.span, POINTS + 1)
    known = line[result.fit.known(line)] if isinstance(result.fit, TableFit) else line
    return rms(_band(result, 0, known)) / NORMAL_FACTOR


# -- notes --


def _notes(result: TransmissionResult) -> tuple[str, ...]:
    return (_compensation_note(result), *_order_notes(result), *_lag_notes(result))


def _compensation_note(result: TransmissionResult) -> str:
    test = result.rows.take(result.rows.held_out)
    before = test.phi - test.phi.mean()
    after = test.phi - split_offset(result.trained)[0].at(test.theta)
    return (
        f"compensation θ - e(θ) on cycles held out: rms of θ - q {1e6 * rms(before):.3g} µrad before, "
        f"{1e6 * rms(after - after.mean()):.3g} µrad after"
    )


def _order_notes(result: TransmissionResult) -> list[str]:
    """Return a note for every order of both maps; for part of a turn those of the ripple."""
    series, ratio = result.fits.get(SERIES), result.gear_ratio
    if isinstance(series, SeriesFit):
        named = zip(("kinematic error", "backlash"), series.series(), strict=True)
        return [
            f"{name}, order {m}: {1e6 * a:.3g} µrad ({order_name(m, ratio)})"
            for name, s in named
            for m, a in _sorted(s)
        ]
    table = result.fits[table_name(COARSE_POINTS)]
    assert isinstance(table, TableFit)
    part = f"{result.seen_share:.0%} of a turn was passed in both directions"
    ripple = [f"kinematic error, order {m}: {1e6 * a:.3g} µrad added to the table" for m, a in _sorted(table.ripple)]
    return [f"{part}: no Fourier series, and the table holds only there", *ripple]


def _lag_notes(result: TransmissionResult) -> list[str]:
    lag = result.lag
    notes = ["no lag between the directions is significant"]
    if lag.reach > 0.0:
        notes = [f"the lag is full {lag.settled:.3g} rad after a reversal; only samples beyond that were used"]
    if result.spring is None and lag.compliance:
        notes.append("a linear spring was fitted to the load (give a stiffness part to subtract the known one)")
    elif result.spring is None:
        notes.append("the load is too small to determine the spring (give a stiffness part to subtract it)")
    return notes


def _sorted(series: FourierSeries) -> list[tuple[int, float]]:
    """Return orders and amplitudes, largest first."""
    return sorted(zip(series.orders, series.amplitudes, strict=True), key=lambda pair: -pair[1])


MAX_SIDE_BAND = 2
"""Distance from a multiple of the gear ratio N up to which an order is its side band."""


def order_name(order: int, ratio: float | None) -> str:
    """Return the origin of an order in a gear of ratio N."""
    if order in (1, 2):
        return {1: "once", 2: "twice"}[order] + " per turn of the output"
    factor = 0 if ratio is None else round(order / ratio)
    offset = order - round(factor * (ratio or 0.0))
    if factor == 0 or abs(offset) > MAX_SIDE_BAND:
        return f"{order} per turn of the output"
    name = f"{'' if factor == 1 else factor}N"
    if offset:
        return f"{name}{offset:+d}, side band of the wave generator"
    return f"{name}, {factor} per turn of the wave generator"
