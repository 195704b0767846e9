"""Curves of a transmission: both maps with their bands, spectra, and the lag after a reversal."""

from __future__ import annotations

import numpy as np

from jointwise.joint.jackknife import half_width, spread
from jointwise.joint.part import Curve, plain
from jointwise.joint.quality import rms
from jointwise.joint.transmission.lag import Lag
from jointwise.joint.transmission.models import FINE, POINTS, Fit, maps_of
from jointwise.joint.transmission.series import SeriesFit
from jointwise.joint.transmission.strokes import Strokes
from jointwise.joint.transmission.tables import TableFit, fit_tables, span_of, spectrum
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.spatial import Array

LINE = 1001
"""Points of a line."""


def curves_of(final: dict[str, Fit], fit: Fit, rows: Strokes, lag: Lag, whole: bool) -> tuple[Curve, ...]:
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
    own = maps_of(fit)[which]
    assert not isinstance(own, float)
    title, label = (("Kinematic error", "e [rad]"), ("Backlash", "d [rad]"))[which]
    points, y, residual = _measured(final, fit, rows, which, begin)
    line = np.linspace(begin, begin + TURN, LINE)
    if isinstance(fit, TableFit):
        line = line[fit.known(line)]
    half, model = band_of(final, fit, rows, which, line), own.at(line)
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
        error: Array = own.error.at(points) + own.ripple.at(points) - maps_of(fit)[2]
        return error if which == 0 else own.lost.at(points)

    own = maps_of(fit)[which]
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


def band_of(final: dict[str, Fit], fit: Fit, rows: Strokes, which: int, line: Array) -> Array:
    """Return half the width of the 95 % band: of the series, or by tables of two halves of the cycles."""
    if isinstance(fit, SeriesFit):
        own = np.array([fit.series(x)[which].at(line) for x in fit.replicates])
        return half_width(len(own)) * spread(own)
    parts = (rows.held_out, ~rows.held_out)
    halves = [fit_tables(rows.take(part), len(fit.error.values), fit.ripple) for part in parts]
    both = line[halves[0].known(line) & halves[1].known(line)]
    tables = [(half.error, half.lost)[which].at(both if len(both) else line) for half in halves]
    return np.full(len(line), 1.96 * 0.5 * rms(tables[0] - tables[1]))


def deviation_of(final: dict[str, Fit], fit: Fit, rows: Strokes) -> float:
    """Return the deviation of e at an angle that was seen, rad."""
    line = np.linspace(*span_of(rows), LINE)
    return float(rms(band_of(final, fit, rows, 0, line[fit.known(line)] if isinstance(fit, TableFit) else line))) / 1.96
