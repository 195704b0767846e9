"""Models of both maps: periodic tables, with waves too short for them, and Fourier series; the choice among them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jointwise.joint.gear_maps import GearMap, RippledTable, Series
from jointwise.joint.quality import nrmse_percent
from jointwise.joint.transmission.lag import Orders, told_orders
from jointwise.joint.transmission.series import SeriesFit, fit_series, significant
from jointwise.joint.transmission.strokes import Strokes
from jointwise.joint.transmission.tables import NO_RIPPLE, TableFit, fit_tables, peaks, spectrum
from jointwise.model.periodic_table import PeriodicTable

POINTS = 1000
"""Points of a table."""
COARSE = 240
"""Points of the coarse table: one a reversal of the usual experiment."""
FINE = 2048
"""Points of the table whose spectrum is taken."""
FOLDS = 4
"""Parts of the cycles, in turn: two to choose the model, two that are held out."""
MOST_KNOWN = 0.5
"""Part of the rows from which on only those are judged that a table knows."""
LEAST_SIGNIFICANCE = 3.0
"""An order is kept where its amplitude is so many times its deviation."""
SERIES = "Fourier series"
WORTH = 1.1
"""A series is taken unless a table leaves less by this factor: it has far fewer numbers."""

Fit = SeriesFit | TableFit


def with_orders(orders: Orders, short: tuple[int, ...]) -> Orders:
    """Return orders of both maps with more of the kinematic error."""
    return (*orders[0], *short), orders[1]


def fits_of(rows: Strokes, whole: bool, short: tuple[int, ...]) -> dict[str, Fit]:
    """Return every model fitted on some rows: tables, and a series of the orders that stand out in a turn."""
    ripple = ripple_of(rows, short)
    tables = {points: fit_tables(rows, points, ripple) for points in (COARSE, POINTS)}
    fits: dict[str, Fit] = {f"table of {points} points": table for points, table in tables.items()}
    if whole:
        fine = fit_tables(rows, FINE)
        first = fit_series(rows, peaks(*spectrum(fine.error)), peaks(*spectrum(fine.lost)), False)
        fits[SERIES] = fit_series(rows, *significant(first, LEAST_SIGNIFICANCE), False)
    return fits


def sure_orders(rows: Strokes, short: tuple[int, ...]) -> tuple[int, ...]:
    """Return the high orders of the error that stand out in rows with a full lag."""
    fit = fit_series(rows, *with_orders(told_orders(rows), short), False)
    return tuple(m for m in short if m in significant(fit, LEAST_SIGNIFICANCE)[0])


def ripple_of(rows: Strokes, short: tuple[int, ...]) -> Series:
    """Return the waves of some orders of the error in rows with a full lag."""
    if not short:
        return NO_RIPPLE
    own = fit_series(rows, *with_orders(told_orders(rows), short), False).series()[0]
    first = len(own.orders) - len(short)
    return Series(0.0, own.orders[first:], own.amplitudes[first:], own.phases[first:])


def chosen_of(rows: Strokes, whole: bool, short: tuple[int, ...]) -> str:
    """Return the model that does best on a part of the training cycles that it was not fitted on."""
    inner = (rows.stroke // 2) % FOLDS
    fits = fits_of(rows.take(inner == 0), whole, short)
    rests = {name: 100.0 - quality_of(fit, rows.take(inner == 2)) for name, fit in fits.items()}
    best = min(rests, key=lambda name: rests[name])
    return SERIES if SERIES in rests and rests[SERIES] < WORTH * rests[best] else best


def quality_of(fit: Fit, rows: Strokes) -> float:
    """Return the NRMSE % on some rows; a table that knows most of them answers only where it saw both ways."""
    known = fit.known(rows.theta) if isinstance(fit, TableFit) else np.ones(len(rows.theta), dtype=bool)
    rows = rows.take(known) if known.mean() > MOST_KNOWN else rows
    return nrmse_percent(rows.phi, fit.predicted(rows))


def maps_of(fit: Fit) -> tuple[GearMap, GearMap, float]:
    """Return e without its mean, d, and the mean: the encoder offset."""
    if isinstance(fit, SeriesFit):
        error, lost = fit.series()
        return replace(error, mean=0.0), lost, error.mean
    offset = float(fit.means(fit.span)[0])
    table = PeriodicTable(tuple((np.array(fit.error.values) - offset).tolist()))
    return RippledTable(table, fit.ripple) if fit.ripple.orders else table, fit.lost, offset
