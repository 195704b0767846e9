"""Identification of kinematic error and position-dependent backlash from a slow reciprocation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from jointwise.arguments import checked
from jointwise.joint.checks import check_gravity, refuse
from jointwise.joint.part import MIN_QUALITY, TINY, Part, tried_model
from jointwise.joint.record import JointRecord
from jointwise.joint.stiffness.law import stiffness_of
from jointwise.joint.transmission.data import CYCLE_FOLDS, TOP_PERCENTILE, Flags, Strokes, find_strokes
from jointwise.joint.transmission.fit import (
    COARSE_POINTS,
    FINE_POINTS,
    LOW_ORDERS,
    Orders,
    choose_model,
    distinguishable_orders,
    fit_models,
    fit_tables,
    map_quality,
    peak_orders,
    significant_ripple,
    with_orders,
)
from jointwise.joint.transmission.lag import MAX_LAG_SHARE, Lag, estimate_lag, find_ripple, refine_lag
from jointwise.joint.transmission.law import WHOLE_TURN
from jointwise.joint.transmission.result import TransmissionResult, transmission_part

MIN_ANGLES = 5
"""Fewest points of the coarse table that must be passed in both directions."""
MAX_PHASE = 0.2
"""Largest change of m θ (rad) over which samples are averaged: it attenuates order m by less than 0.2 %."""
USUAL_RATIO = 100.0
"""Gear ratio assumed where none is described; twice it is the highest order that is resolved."""


@checked
def identify_transmission(
    record: JointRecord, *, stiffness: Part | None = None, gear_ratio: float | None = None
) -> Part:
    """Identify kinematic error e(θ) and backlash d(θ), as `jointwise joint transmission` does.

    ``θ - q = offset + e + d P + spring``: e is the mean of θ - q of both directions at the same angle, d half the
    difference, both from samples so far from the last reversal that the lag P is full. Periodic tables and Fourier
    series are compared on held-out cycles. A series needs a whole turn; in a part of it, waves too short for the points
    are added to the table.

    Args:
        record: Signals of the joint with rotor positions, see `joint_record`.
        stiffness: Part from `identify_stiffness`; the deformation due to the load is subtracted. Without it, a linear
            spring is fitted.
        gear_ratio: Ratio of the gear, to name the orders.

    Returns:
        The phenomenon "transmission".

    Raises:
        EstimationError: If the record does not determine the maps.
    """
    check_gravity(record)
    spring = None if stiffness is None else stiffness_of(stiffness)
    strokes = find_strokes(record)
    if spring is not None:
        strokes = replace(strokes, phi=strokes.phi - spring.deformation(strokes.load))
    lag, rows, is_whole, short = _settled_rows(record, strokes, gear_ratio, elastic=spring is None)
    training, test = rows.take(~rows.held_out), rows.take(rows.held_out)
    trained = fit_models(training, is_whole, short)
    chosen = choose_model(rows, is_whole, short)
    held_out = map_quality(trained[chosen], test)
    seen = rows.passed_both_directions(COARSE_POINTS)
    _check_repeats(record, held_out, is_whole, seen)
    result = TransmissionResult(
        fits=fit_models(rows, is_whole, short),
        chosen=chosen,
        trained=trained[chosen],
        rows=rows,
        lag=lag,
        spring=spring,
        gear_ratio=gear_ratio,
        seen_share=float(seen.mean()),
        is_whole=is_whole,
    )
    tried = tuple(tried_model(name, partial(map_quality, fit), training, test) for name, fit in trained.items())
    return transmission_part(record, result, held_out, tried)


def _settled_rows(
    record: JointRecord, strokes: Strokes, gear_ratio: float | None, elastic: bool
) -> tuple[Lag, Strokes, bool, tuple[int, ...]]:
    """Return the lag, the rows with a full lag, whether they cover a whole turn, and high orders of part of one."""
    every = _averaged(strokes, 2.0 * (gear_ratio or USUAL_RATIO))
    lag = estimate_lag(every, distinguishable_orders(every), elastic)
    _check_strokes(record, strokes, lag)
    settled = _settled(every, lag)
    _check_angles(record, settled)
    is_whole = bool(settled.passed_both_directions(COARSE_POINTS).mean() >= WHOLE_TURN)
    short: tuple[int, ...] = ()
    if is_whole:
        orders = _peak_orders(settled)
    else:
        short = _high_orders(every, lag, gear_ratio, elastic)
        orders = with_orders(distinguishable_orders(every), short)
    lag = refine_lag(every, lag, orders, elastic)
    rows = _settled(every, lag)
    _check_angles(record, rows)
    return lag, rows, is_whole, significant_ripple(rows, short)


def _settled(strokes: Strokes, lag: Lag) -> Strokes:
    """Return the samples with a full lag, without the deformation of the fitted spring."""
    relaxed = replace(strokes, phi=strokes.phi - lag.compliance * strokes.load)
    return relaxed.take((strokes.travel > lag.settled) & (strokes.stroke > strokes.stroke.min()))


def _peak_orders(rows: Strokes) -> Orders:
    """Return the peaks in the spectra of both maps, and the lowest orders."""
    fine = fit_tables(rows, FINE_POINTS)
    error, lost = peak_orders(fine.error), peak_orders(fine.lost)
    return tuple(sorted({*error, *LOW_ORDERS[0]})), tuple(sorted({*lost, *LOW_ORDERS[1]}))


def _high_orders(every: Strokes, lag: Lag, ratio: float | None, elastic: bool) -> tuple[int, ...]:
    """Return the high orders of the error in part of a turn: those of the wave generator, and others that show."""
    generator = () if ratio is None else (round(ratio), round(2.0 * ratio))
    orders = with_orders(distinguishable_orders(every), generator)
    return tuple(sorted({*generator, *find_ripple(every, lag, orders, elastic)}))


def _averaged(strokes: Strokes, order: float) -> Strokes:
    """Return means over so few samples that an order is not attenuated."""
    fastest = float(np.percentile(np.abs(np.diff(strokes.theta)), TOP_PERCENTILE))
    return strokes.averaged(max(int(MAX_PHASE / (order * max(fastest, TINY))), 1))


def _check_strokes(record: JointRecord, strokes: Strokes, lag: Lag) -> None:
    stroke = strokes.usual_stroke
    if lag.settled > MAX_LAG_SHARE * stroke:
        reason = f"strokes of {stroke:.2g} rad are too short: the lag is full only after {lag.settled:.2g} rad"
        raise refuse(record, "transmission", reason)


def _check_angles(record: JointRecord, rows: Strokes) -> None:
    """Raise if the rows, or one of their folds, do not pass enough angles in both directions."""
    if np.sum(rows.passed_both_directions(COARSE_POINTS)) < MIN_ANGLES:
        raise refuse(record, "transmission", "no angles were passed in both directions")
    folds = [rows.take(rows.fold == k) for k in range(CYCLE_FOLDS)]
    if min(np.sum(fold.passed_both_directions(COARSE_POINTS)) for fold in folds) < MIN_ANGLES:
        cycles = len(np.unique(rows.stroke // 2))
        reason = f"only {cycles} cycles forward and back, too few for training and test: record longer"
        raise refuse(record, "transmission", reason)


def _check_repeats(record: JointRecord, held_out: float, is_whole: bool, seen: Flags) -> None:
    if held_out >= MIN_QUALITY:
        return
    fit = f"fit {held_out:.0f} % on cycles held out"
    if is_whole:
        raise refuse(record, "transmission", f"θ - q does not repeat with the angle ({fit})")
    part = f"only {seen.mean():.0%} of a turn was passed in both directions, where θ - q does not follow the angle"
    raise refuse(record, "transmission", f"{part} ({fit}): record longer")
