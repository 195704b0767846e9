"""Kinematic error and position-dependent backlash of a gear, from a slow reciprocation.

Both maps are periodic tables or Fourier series ``φ = e(θ) + s d(θ) + c τ`` with the direction s. The lag of a gear is
the travel after a reversal over which lost motion builds up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brute, least_squares

from jointwise.arguments import checked
from jointwise.data.statistics import group_means
from jointwise.estimation.cross_validation import SIGNIFICANT, simplest_candidate, unit_errors
from jointwise.estimation.jackknife import (
    NORMAL_FACTOR,
    equal_blocks,
    newton_replicates,
    standard_error,
    student_factor,
)
from jointwise.estimation.linear_fit import scaled_solution
from jointwise.joint.checks import MIN_REVERSALS, check_gravity, few_reversals, refuse
from jointwise.joint.curve import CURVE_BINS, Curve, make_curve, plain
from jointwise.joint.gear import (
    NO_RIPPLE,
    POINTS,
    WHOLE_TURN,
    FourierSeries,
    GearMap,
    MapSettings,
    RippledTable,
    StiffnessLaw,
    TransmissionSettings,
    full_lag,
    stiffness_of,
)
from jointwise.joint.part import (
    MIN_QUALITY,
    TINY,
    Part,
    TriedModel,
    Value,
    identified_part,
    nrmse_percent,
    rms,
    value_of,
)
from jointwise.joint.record import JointRecord
from jointwise.joint.windows import Flags
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.model.terms import slip_after_reversal, slip_slope_state, slip_slopes
from jointwise.spatial import Array

INDISTINCT = 1e-6
"""Relative singular value below which the angles do not separate terms of the series, which then stay small."""
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
    held_out, seen = map_quality(trained[chosen], test), float(rows.passed_both_directions(COARSE_POINTS).mean())
    if held_out < MIN_QUALITY:
        quality = f"fit {held_out:.0f} % on cycles held out"
        if is_whole:
            raise refuse(record, "transmission", f"θ - q does not repeat with the angle ({quality})")
        part = f"only {seen:.0%} of a turn was passed in both directions, where θ - q does not follow the angle"
        raise refuse(record, "transmission", f"{part} ({quality}): record longer")
    fits = fit_models(rows, is_whole, short)
    result = TransmissionResult(fits, chosen, trained[chosen], rows, lag, spring, gear_ratio, seen, is_whole)
    error, lost, _ = split_offset(result.fit)
    low, high = rows.span
    return identified_part(
        record,
        "transmission",
        model=chosen,
        values=_values(result),
        fitted=map_quality(result.fit, rows),
        held_out=held_out,
        settings=TransmissionSettings(
            kinematic_error=MapSettings.of(error),
            lost_motion=MapSettings.of(lost),
            reach=lag.reach,
            settled=lag.settled,
            deviation=_map_error(result),
        ).to_dict(),
        ranges={"theta": (low, low + TURN if is_whole else high), "speed": (0.0, usual_top_speed(record))},
        alternatives=tuple(
            TriedModel(name, map_quality(fit, training), map_quality(fit, test)) for name, fit in trained.items()
        ),
        curves=_curves(result),
        notes=_notes(result),
    )


def _settled_rows(
    record: JointRecord, strokes: Strokes, gear_ratio: float | None, elastic: bool
) -> tuple[Lag, Strokes, bool, tuple[int, ...]]:
    """Return the lag, the rows with a full lag, whether they cover a whole turn, and high orders of part of one."""
    order = 2.0 * (gear_ratio or USUAL_RATIO)  # the highest that is resolved
    fastest = float(np.percentile(np.abs(np.diff(strokes.theta)), TOP_PERCENTILE))
    every = strokes.averaged(max(int(MAX_PHASE / (order * max(fastest, TINY))), 1))
    lag = estimate_lag(every, distinguishable_orders(every), elastic)
    stroke = strokes.usual_stroke
    if lag.settled > MAX_LAG_SHARE * stroke:
        reason = f"strokes of {stroke:.2g} rad are too short: the lag is full only after {lag.settled:.2g} rad"
        raise refuse(record, "transmission", reason)
    settled = _settled(every, lag)
    _check_angles(record, settled)
    is_whole = bool(settled.passed_both_directions(COARSE_POINTS).mean() >= WHOLE_TURN)
    short: tuple[int, ...] = ()
    if is_whole:
        fine = fit_tables(settled, FINE_POINTS)
        error, lost = (
            {*peak_orders(table), *low} for table, low in zip((fine.error, fine.lost), LOW_ORDERS, strict=True)
        )
        orders = tuple(sorted(error)), tuple(sorted(lost))
    else:
        lowest = distinguishable_orders(every)
        generator = () if gear_ratio is None else (round(gear_ratio), round(2.0 * gear_ratio))
        found = find_ripple(every, lag, with_orders(lowest, generator), elastic)
        short = tuple(sorted({*generator, *found}))  # of the wave generator, and others that show
        orders = with_orders(lowest, short)
    lag = refine_lag(every, lag, orders, elastic)
    rows = _settled(every, lag)
    _check_angles(record, rows)
    return lag, rows, is_whole, significant_ripple(rows, short)


def _settled(strokes: Strokes, lag: Lag) -> Strokes:
    """Return the samples with a full lag, without the deformation of the fitted spring."""
    relaxed = replace(strokes, phi=strokes.phi - lag.compliance * strokes.load)
    return relaxed.take((strokes.travel > lag.settled) & (strokes.stroke > strokes.stroke.min()))


def _check_angles(record: JointRecord, rows: Strokes) -> None:
    """Raise if the rows, or one of their folds, do not pass enough angles in both directions."""
    if np.sum(rows.passed_both_directions(COARSE_POINTS)) < MIN_ANGLES:
        raise refuse(record, "transmission", "no angles were passed in both directions")
    folds = [rows.take(rows.fold == k) for k in range(CYCLE_FOLDS)]
    if min(np.sum(fold.passed_both_directions(COARSE_POINTS)) for fold in folds) < MIN_ANGLES:
        cycles = len(np.unique(rows.stroke // 2))
        reason = f"only {cycles} cycles forward and back, too few for training and test: record longer"
        raise refuse(record, "transmission", reason)


# -- rows: strokes with direction and travel since the last reversal --


MAX_SPEED = 0.3
"""Speed (rad/s) above which inertia and damping hide the errors of the gear."""
TOP_PERCENTILE = 95.0
"""Percentile of |ω| and of the steps of θ that counts as the usual largest: peaks and outliers do not."""
MIN_RANGE = 0.2
"""Smallest range of motion, rad."""
MIN_SPEED_SHARE = 0.02
"""Fraction of the usual top speed below which the direction is not defined."""
CYCLE_FOLDS = 4
"""Parts of the cycles, in turn: two for the selection of the model, two for the test."""


@dataclass(frozen=True)
class Strokes:
    """Samples of a reciprocation, (samples,) each.

    Attributes:
        theta: Position of the rotor after the gear where it was measured, else of the joint, rad.
        phi: Deflection, rad.
        load: Load torque, Nm.
        side: Direction of motion, +1 or -1.
        travel: Travel since the last reversal, rad.
        stroke: Number of the stroke, from 0.
        width: Travel over which a row was averaged, rad.
    """

    theta: Array
    phi: Array
    load: Array
    side: Array
    travel: Array
    stroke: NDArray[np.intp]
    width: Array

    def take(self, which: Flags) -> Strokes:
        """Return a selection of samples."""
        return Strokes(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    @property
    def fold(self) -> NDArray[np.intp]:
        """Fold of each sample: cycles (two strokes) in turn."""
        return (self.stroke // 2) % CYCLE_FOLDS

    @property
    def held_out(self) -> Flags:
        """Flags of the samples held out for the test: every other cycle."""
        result: Flags = self.fold % 2 == 1
        return result

    @property
    def usual_stroke(self) -> float:
        """Median travel of a stroke, rad."""
        starts = np.flatnonzero(np.diff(self.stroke, prepend=-1))
        return float(np.median(np.maximum.reduceat(self.travel, starts)))

    @property
    def span(self) -> tuple[float, float]:
        """Range (low, high) of angles that were passed in both directions, at most a turn, rad."""
        sides = [self.theta[self.side > 0.0], self.theta[self.side < 0.0]]
        low, high = float(max(side.min() for side in sides)), float(min(side.max() for side in sides))
        return low, min(high, low + TURN)

    def passed_both_directions(self, points: int) -> Flags:
        """Return flags of the angles (points,) of a turn that were passed in both directions."""
        counts = [np.bincount(cells(self.theta[s], points), minlength=points) for s in (self.side > 0, self.side < 0)]
        return np.minimum(*counts) > 0

    def averaged(self, size: int) -> Strokes:
        """Return means over `size` samples of the same stroke."""
        if size <= 1 or not len(self.stroke):
            return self
        cuts, counts = group_means(self.stroke, size)

        def mean(values: Array) -> Array:
            return np.add.reduceat(values, cuts) / counts

        last = np.append(cuts[1:], len(self.stroke)) - 1
        width = np.abs(self.theta[last] - self.theta[cuts]) * counts / np.maximum(counts - 1, 1)
        theta, phi, load, side = (mean(values) for values in (self.theta, self.phi, self.load, self.side))
        return Strokes(theta, phi, load, side, mean(self.travel), self.stroke[cuts], width)


def cells(theta: Array, points: int) -> NDArray[np.intp]:
    """Return the point of a table with `points` per turn before each angle (samples,), rad."""
    return np.floor(np.mod(theta, TURN) * (points / TURN)).astype(np.intp) % points


def usual_top_speed(record: JointRecord) -> float:
    """Return the usual top speed of a reciprocation, rad/s."""
    return float(np.percentile(np.abs(record.speed), TOP_PERCENTILE))


def find_strokes(record: JointRecord) -> Strokes:
    """Return the strokes of a record; raises if it is not a slow reciprocation with rotor positions."""
    if record.phi is None or record.theta is None:
        raise refuse(record, "transmission", "no rotor position (theta) in the log, so θ - q is not known")
    speed, span = usual_top_speed(record), float(np.ptp(record.position))
    if speed > MAX_SPEED:
        reason = f"the joint moves at up to {speed:.2g} rad/s: too fast, inertia hides the gear"
        raise refuse(record, "transmission", reason)
    if span < MIN_RANGE:
        raise refuse(record, "transmission", f"the joint moves over {span:.2g} rad only")
    pieces, first = [], 0
    for number in np.unique(record.segment):
        piece = _strokes(record.take(record.segment == number), MIN_SPEED_SHARE * speed, first)
        first = int(piece.stroke[-1]) + 2 + int(piece.stroke[-1]) % 2  # a new cycle after a gap
        pieces.append(piece)
    names = Strokes.__dataclass_fields__
    strokes = Strokes(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in names))
    reversals = len(np.unique(strokes.stroke)) - len(pieces)
    if reversals < MIN_REVERSALS:
        raise refuse(record, "transmission", few_reversals(reversals))
    return strokes


def _strokes(record: JointRecord, min_speed: float, first: int) -> Strokes:
    """Return the strokes of a gap-free segment; a direction lasts until the joint moves in the other one."""
    assert record.phi is not None
    moving = np.abs(record.speed) > min_speed
    latest = np.maximum.accumulate(np.where(moving, np.arange(record.samples), 0))
    side = np.where(record.speed[latest] < 0.0, -1.0, 1.0)
    turns = np.concatenate([[0], np.flatnonzero(np.diff(side)) + 1])
    stroke = np.searchsorted(turns, np.arange(record.samples), side="right") - 1
    # the extreme position at the start of every stroke, near its sign change of the speed
    lows, highs = np.minimum.reduceat(record.position, turns), np.maximum.reduceat(record.position, turns)
    lowest = np.minimum(lows, np.append(np.inf, lows[:-1]))
    highest = np.maximum(highs, np.append(-np.inf, highs[:-1]))
    reversal = np.where(side[turns] > 0.0, lowest, highest)
    travel = np.abs(record.position - reversal[stroke])
    return Strokes(record.position, record.phi, record.load, side, travel, stroke + first, np.zeros(record.samples))


# -- fits of both maps --

Orders = tuple[tuple[int, ...], tuple[int, ...]]
"""Orders of the kinematic error and of the backlash, cycles per turn."""

# -- Fourier series --


@dataclass(frozen=True)
class SeriesFit:
    """Fourier series of both maps by linear least squares.

    Columns: 1, sin and cos of every error order; s, s sin and s cos of every backlash order; load (if `elastic`).

    Attributes:
        error_orders: Orders of the kinematic error, cycles per turn.
        lost_orders: Orders of the backlash, cycles per turn.
        elastic: Whether the compliance of the gear was fitted too.
        values: Coefficients, (columns,), rad; that of the load in rad/Nm.
        replicates: The same without one block each, (blocks, columns).
    """

    error_orders: tuple[int, ...]
    lost_orders: tuple[int, ...]
    elastic: bool
    values: Array
    replicates: Array

    @property
    def compliance(self) -> float:
        """Deformation per load, rad/Nm; 0 where it was known."""
        return float(self.values[-1]) if self.elastic else 0.0

    def series(self, values: Array | None = None) -> tuple[FourierSeries, FourierSeries]:
        """Return e (its mean is the encoder offset) and d, of the fit or of a replicate."""
        x = self.values if values is None else values
        middle = 1 + 2 * len(self.error_orders)
        end = middle + 1 + 2 * len(self.lost_orders)
        return _series(x[:middle], self.error_orders), _series(x[middle:end], self.lost_orders)

    def predicted(self, strokes: Strokes) -> Array:
        """Return φ, rad (samples,)."""
        error, lost = self.series()
        return error.at(strokes.theta) + strokes.side * lost.at(strokes.theta) + self.compliance * strokes.load


def _series(values: Array, orders: tuple[int, ...]) -> FourierSeries:
    sine, cosine = values[1::2], values[2::2]
    amplitudes, phases = np.hypot(sine, cosine), np.arctan2(cosine, sine)
    return FourierSeries(float(values[0]), orders, tuple(amplitudes.tolist()), tuple(phases.tolist()))


def fit_series(strokes: Strokes, orders: Orders, elastic: bool) -> SeriesFit:
    """Return both series by linear least squares, with jackknife replicates over blocks of cycles."""
    W = series_columns(strokes, orders, elastic)
    return SeriesFit(*orders, elastic, *solve_blocks(W, strokes.phi, cycle_blocks(strokes)))


def solve_blocks(W: Array, y: Array, block: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return least squares (columns,) and its replicates without one block each, (blocks, columns)."""
    values = scaled_solution(W, y, INDISTINCT)
    return values, newton_replicates(values, W @ values - y, W, block)


def significant(fit: SeriesFit) -> Orders:
    """Return the orders of both series whose amplitude is significant, by its standard error."""
    errors = standard_error(fit.replicates)
    kept, first = [], 1
    for orders in (fit.error_orders, fit.lost_orders):
        pairs = [slice(first + 2 * k, first + 2 * k + 2) for k in range(len(orders))]
        sizes = [(float(np.hypot(*fit.values[p])), float(np.hypot(*errors[p]))) for p in pairs]
        kept.append(tuple(m for m, (size, error) in zip(orders, sizes, strict=True) if size > SIGNIFICANT * error))
        first += 2 * len(orders) + 1
    return kept[0], kept[1]


def cycle_blocks(strokes: Strokes) -> NDArray[np.intp]:
    """Return the number of the block of whole cycles of each sample."""
    cycle = np.unique(strokes.stroke // 2, return_inverse=True)[1]
    return equal_blocks(int(cycle.max()) + 1)[cycle]


def series_columns(strokes: Strokes, orders: Orders, elastic: bool) -> Array:
    """Return the columns (samples, n) of both series and of the load."""
    error, lost = orders
    waves = {m: _waves(strokes, m) for m in {*error, *lost}}
    columns = [np.ones(len(strokes.theta)), *(wave for m in error for wave in waves[m])]
    columns += [strokes.side, *(strokes.side * wave for m in lost for wave in waves[m])]
    return np.column_stack([*columns, strokes.load] if elastic else columns)


def _waves(strokes: Strokes, order: int) -> tuple[Array, Array]:
    """Return sin m θ and cos m θ, averaged over the travel of every row."""
    attenuation = np.sinc(order * strokes.width / TURN)
    return attenuation * np.sin(order * strokes.theta), attenuation * np.cos(order * strokes.theta)


# -- tables --

SMOOTHNESS = 1e-3
"""Weight of the differences of a table against a sample: a straight line crosses angles without data."""


@dataclass(frozen=True)
class TableFit:
    """Tables of both maps.

    Attributes:
        error: e(θ), rad; its mean is the encoder offset.
        lost: d(θ), rad.
        seen: Whether an angle was passed in both directions, (points,).
        span: Range (low, high) of the angles, rad.
        ripple: Waves too short for the points of the table of e, which are added to it.
    """

    error: PeriodicTable
    lost: PeriodicTable
    seen: Flags
    span: tuple[float, float]
    ripple: FourierSeries

    def predicted(self, strokes: Strokes) -> Array:
        """Return φ, rad (samples,)."""
        error = self.error.at(strokes.theta) + self.ripple.at(strokes.theta)
        return error + strokes.side * self.lost.at(strokes.theta)

    def known(self, theta: Array) -> Flags:
        """Return flags of the angles (samples,) that were passed in both directions."""
        return self.seen[cells(theta, len(self.seen))]

    def means(self, span: tuple[float, float]) -> Array:
        """Return the means (2,) of e and d over a range of angles, rad."""
        angles = np.linspace(*span, POINTS)
        return np.array([(self.error.at(angles) + self.ripple.at(angles)).mean(), self.lost.at(angles).mean()])


def fit_tables(strokes: Strokes, points: int, ripple: FourierSeries = NO_RIPPLE) -> TableFit:
    """Return the tables of both maps from one for each direction, without a known ripple.

    ``e = (φ₊ + φ₋) / 2``, ``d = (φ₊ - φ₋) / 2``.
    """
    phi = strokes.phi - ripple.at(strokes.theta)
    sides = [strokes.side > 0.0, strokes.side < 0.0]
    forward, back = (_table(strokes.theta[side], phi[side], points) for side in sides)
    error, lost = (PeriodicTable(tuple(v.tolist())) for v in (0.5 * (forward + back), 0.5 * (forward - back)))
    return TableFit(error, lost, strokes.passed_both_directions(points), strokes.span, ripple)


def _table(theta: Array, phi: Array, points: int) -> Array:
    """Return the table (points,) whose linear interpolation fits φ in the least-squares sense."""
    from scipy.sparse import diags
    from scipy.sparse.linalg import spsolve

    position = np.mod(theta, TURN) * (points / TURN)
    left = np.floor(position).astype(np.intp) % points
    fraction = position - np.floor(position)
    right = (left + 1) % points
    middle = np.bincount(left, (1 - fraction) ** 2, points) + np.bincount(right, fraction**2, points)
    beside = np.bincount(left, fraction * (1 - fraction), points)
    b = np.bincount(left, (1 - fraction) * phi, points) + np.bincount(right, fraction * phi, points)
    steps = diags([-1.0, 1.0, 1.0], [0, 1, 1 - points], shape=(points, points))
    A = diags([middle, beside[:-1], beside[:-1], beside[-1:], beside[-1:]], [0, 1, -1, points - 1, 1 - points])
    result: Array = spsolve((A + SMOOTHNESS * (steps.T @ steps)).tocsc(), b)
    return result


# -- spectra --

PEAK_RATIO = 6.0
"""Factor by which a peak of a spectrum exceeds the median of its neighbours."""
MAX_PEAKS = 24
"""Largest number of peaks."""
NEIGHBOURS = 40
"""Orders on either side of a peak whose median is the noise level."""


def spectrum(table: PeriodicTable) -> tuple[Array, Array]:
    """Return orders (cycles per turn) from 1 on and their amplitudes, rad."""
    values = np.array(table.values)
    amplitudes = 2.0 * np.abs(np.fft.rfft(values)) / len(values)
    return np.arange(1.0, len(values) // 2), amplitudes[1 : len(values) // 2]


def peak_orders(table: PeriodicTable) -> tuple[int, ...]:
    """Return the orders that exceed their neighbours in the spectrum of a table, ascending."""
    from scipy.ndimage import median_filter

    orders, amplitudes = (values[:MAX_ORDER] for values in spectrum(table))
    noise = median_filter(amplitudes, min(2 * NEIGHBOURS + 1, len(amplitudes)), mode="reflect")
    found = np.flatnonzero(amplitudes > np.maximum(PEAK_RATIO * noise, TINY))
    largest = found[np.argsort(amplitudes[found])[::-1][:MAX_PEAKS]]
    return tuple(int(m) for m in np.sort(orders[largest]))


# -- models --

COARSE_POINTS = 240
"""Points of the coarse table: one per reversal of the usual experiment."""
FINE_POINTS = 2048
"""Points of the table whose spectrum is computed."""
MAX_ORDER = FINE_POINTS // 4
"""Highest order of a wave, which then has four points of that table."""
MIN_KNOWN_SHARE = 0.5
"""Fraction of rows known to a table above which only those are compared."""
SERIES = "Fourier series"
LOW_ORDERS: Orders = ((1, 2, 3, 4), (1, 2, 3))
"""Orders that represent both maps while the lag is estimated."""
MAX_CONDITION = 1e5
"""Condition number of the columns up to which orders are distinguishable: over a short arc they look alike."""

MapFit = SeriesFit | TableFit


def table_name(points: int) -> str:
    """Return the name of a table in results."""
    return f"table of {points} points"


def distinguishable_orders(strokes: Strokes) -> Orders:
    """Return as many of the lowest orders of both maps as the measured angles distinguish, at least one of e."""
    error, lost = LOW_ORDERS
    for most in range(len(error), 1, -1):
        orders = error[:most], lost[: most - 1]
        W = series_columns(strokes, orders, False)
        if np.linalg.cond(W / np.linalg.norm(W, axis=0)) < MAX_CONDITION:
            return orders
    return error[:1], ()


def with_orders(orders: Orders, short: tuple[int, ...]) -> Orders:
    """Return orders of both maps with more of the kinematic error."""
    return (*orders[0], *short), orders[1]


def fit_models(
    rows: Strokes, is_whole: bool, short: tuple[int, ...], spectrum_rows: Strokes | None = None
) -> dict[str, MapFit]:
    """Return every model fitted to rows: tables, and for a whole turn a series of the significant orders.

    The orders are peaks of a spectrum, of more rows (`spectrum_rows`) where these alone leave gaps in the turn.
    """
    ripple = _ripple(rows, short)
    fits: dict[str, MapFit] = {table_name(n): fit_tables(rows, n, ripple) for n in (COARSE_POINTS, POINTS)}
    if is_whole:
        fine = fit_tables(spectrum_rows or rows, FINE_POINTS)
        first = fit_series(rows, (peak_orders(fine.error), peak_orders(fine.lost)), False)
        fits[SERIES] = fit_series(rows, significant(first), False)
    return fits


def significant_ripple(rows: Strokes, short: tuple[int, ...]) -> tuple[int, ...]:
    """Return the high orders of the error that are significant in rows with a full lag."""
    fit = fit_series(rows, with_orders(distinguishable_orders(rows), short), False)
    return tuple(m for m in short if m in significant(fit)[0])


def _ripple(rows: Strokes, short: tuple[int, ...]) -> FourierSeries:
    """Return the waves of high orders of the error in rows with a full lag."""
    if not short:
        return NO_RIPPLE
    error = fit_series(rows, with_orders(distinguishable_orders(rows), short), False).series()[0]
    first = len(error.orders) - len(short)
    return FourierSeries(0.0, error.orders[first:], error.amplitudes[first:], error.phases[first:])


def choose_model(rows: Strokes, is_whole: bool, short: tuple[int, ...]) -> str:
    """Return the model chosen by the one-standard-error rule over strokes of training cycles that it was not fitted to.

    A series has the fewest parameters, then the coarse table.
    """
    fits = fit_models(rows.take(rows.fold == 0), is_whole, short, rows.take(~rows.held_out))
    tested = rows.take(rows.fold == 2)
    known = np.all([_known(fit, tested) for fit in fits.values()], axis=0)
    tested = tested.take(known) if known.mean() > MIN_KNOWN_SHARE else tested
    by_size = sorted(fits, key=lambda name: name != SERIES)
    return simplest_candidate({n: unit_errors(tested.phi - fits[n].predicted(tested), tested.stroke) for n in by_size})


def map_quality(fit: MapFit, rows: Strokes) -> float:
    """Return the NRMSE % on rows; a table that knows most of them counts only where it saw both directions."""
    known = _known(fit, rows)
    rows = rows.take(known) if known.mean() > MIN_KNOWN_SHARE else rows
    return nrmse_percent(rows.phi, fit.predicted(rows))


def _known(fit: MapFit, rows: Strokes) -> Flags:
    """Return flags of the rows at whose angles a model is known: everywhere for a series."""
    return fit.known(rows.theta) if isinstance(fit, TableFit) else np.ones(len(rows.theta), dtype=bool)


def split_offset(fit: MapFit) -> tuple[GearMap, GearMap, float]:
    """Return e without its mean, d, and the mean: the encoder offset."""
    if isinstance(fit, SeriesFit):
        error, lost = fit.series()
        return replace(error, mean=0.0), lost, error.mean
    offset = float(fit.means(fit.span)[0])
    table = PeriodicTable(tuple((np.array(fit.error.values) - offset).tolist()))
    return RippledTable(table, fit.ripple) if fit.ripple.orders else table, fit.lost, offset


# -- lag after a reversal --

SMOOTHING_ERROR = 5e-4
"""Standard error added to every amplitude and to the reach (relative) and phase (rad): the error due to smoothing."""
SETTLED_REACHES = 2.2
"""Travel after a reversal from which the lag counts as full, in reaches; 2 is the travel from side to side."""
REACH_SHARES = (0.002, 0.6)
"""Smallest and largest reach that is sought, as fractions of the usual stroke."""
MAX_LAG_SHARE = 0.8
"""Fraction of a stroke within which the lag must be full, and over which it is shown."""
MIN_RIPPLE = 10
"""Lowest order sought in the residual of the lowest ones where only part of a turn was measured."""
RIPPLE_SHARE = 0.1
"""Smallest fraction of the residual variance that an order must explain."""


@dataclass(frozen=True)
class Lag:
    """Lag over the travel since a reversal.

    Attributes:
        travel: Travel since the reversal, (bins,), rad.
        fraction: Lag from -1 to 1, (bins,).
        reach: L, half of the travel from side to side, rad; 0 where the gear has no lag.
        reach_error: Standard error of the reach, rad.
        compliance: Compliance of the spring, rad/Nm, fitted where it is not known.
        compliance_error: Standard error of the compliance, rad/Nm.
        blocks: Number of blocks of cycles behind the standard errors.
    """

    travel: Array
    fraction: Array
    reach: float
    reach_error: float
    compliance: float
    compliance_error: float
    blocks: int

    @property
    def settled(self) -> float:
        """Travel after which the lag is full, rad."""
        return SETTLED_REACHES * self.reach


def estimate_lag(strokes: Strokes, orders: Orders, elastic: bool) -> Lag:
    """Return the lag with the reach L that minimises the residual of ``φ = e(θ) + d(θ) P(θ; L) + c τ``."""

    def squared_error(log: Array) -> float:
        return float(np.sum(np.square(_residual(strokes, float(np.exp(log).item()), orders, elastic)[1])))

    start = brute(squared_error, [_log_reaches(strokes)], finish=None)
    return _lag(strokes, _best_reach(strokes, float(np.exp(start)), orders, elastic), orders, elastic)


def refine_lag(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> Lag:
    """Return the lag for known orders of both maps.

    The load contains the ripple of the kinematic error, so that the spring can be estimated only with its orders in the
    model. A negative compliance is impossible: it is set to zero, with its standard error kept.
    """
    found = _refined(strokes, lag, orders, elastic)
    if found.compliance >= 0.0:
        return found
    rigid = _refined(strokes, lag, orders, False)
    error = max(found.reach_error, rigid.reach_error) if rigid.reach else 0.0
    return replace(rigid, reach_error=error, compliance_error=found.compliance_error)


def find_ripple(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> tuple[int, ...]:
    """Return high orders of the kinematic error in part of a turn, where a spectrum is not defined.

    One after the other, the largest order in the residual of a fit, as long as it explains enough of it.
    """
    reach = lag.reach or float(np.exp(_log_reaches(strokes)[0]))
    found: tuple[int, ...] = ()
    theta, residual = _residual(strokes, reach, orders, elastic)
    while True:
        candidate = (*found, _largest_order(theta, residual))
        _, after = _residual(strokes, reach, ((*orders[0], *candidate), orders[1]), elastic)
        if candidate[-1] in found or np.var(after) > (1.0 - RIPPLE_SHARE) * np.var(residual):
            return tuple(sorted(found))
        found, residual = candidate, after


def _refined(strokes: Strokes, lag: Lag, orders: Orders, elastic: bool) -> Lag:
    """Return the lag with the best reach near that of another lag; one without a reach stays without."""
    reach = _best_reach(strokes, lag.reach, orders, elastic) if lag.reach else float(np.exp(_log_reaches(strokes)[0]))
    return _lag(strokes, reach, orders, elastic)


def _best_reach(strokes: Strokes, start: float, orders: Orders, elastic: bool) -> float:
    """Return the reach (rad) of least squared residual near a start; both maps and the spring are solved at each."""
    low, high = _log_reaches(strokes)
    found = least_squares(
        lambda log: _residual(strokes, float(np.exp(log[0])), orders, elastic)[1],
        [np.clip(np.log(start), low, high)],
        bounds=(low, high),
        x_scale="jac",
    )
    return float(np.exp(found.x[0]))


def _log_reaches(strokes: Strokes) -> tuple[float, float]:
    """Return the logarithms of the shortest and longest reach (rad) that are sought."""
    low, high = np.log(np.array(REACH_SHARES) * strokes.usual_stroke)
    return float(low), float(high)


def _residual(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> tuple[Array, Array]:
    """Return angles and the residual of φ of a fit there, rad."""
    lagged = _lagged(strokes, reach)
    W = series_columns(lagged, orders, elastic)
    return lagged.theta, lagged.phi - W @ scaled_solution(W, lagged.phi, INDISTINCT)


def _largest_order(theta: Array, residual: Array) -> int:
    """Return the largest order in the means of a residual over small angles, zero where there are none."""
    cell = cells(theta, FINE_POINTS)
    count = np.maximum(np.bincount(cell, minlength=FINE_POINTS), 1)
    sizes = np.abs(np.fft.rfft(np.bincount(cell, residual, FINE_POINTS) / count))
    return MIN_RIPPLE + int(np.argmax(sizes[MIN_RIPPLE : MAX_ORDER + 1]))


def _lag(strokes: Strokes, reach: float, orders: Orders, elastic: bool) -> Lag:
    """Return the lag of a reach, with standard errors, compliance and the measured curve."""
    lagged = _lagged(strokes, reach)
    fit = fit_series(lagged, orders, elastic)
    by_reach = fit.series()[1].at(lagged.theta) * _lag_slope(strokes, reach)
    W = np.column_stack([series_columns(lagged, orders, elastic), by_reach])
    replicates = solve_blocks(W, lagged.phi, cycle_blocks(lagged))[1]
    errors = standard_error(replicates)
    travel, fraction = _measured_lag(strokes, fit)
    compliance = (fit.compliance, _compliance_error(strokes, fit, float(errors[-2]))) if elastic else (0.0, 0.0)
    lost = (reach, float(errors[-1])) if _has_backlash(strokes, fit, replicates) else (0.0, 0.0)
    return Lag(travel, fraction, *lost, *compliance, len(replicates))


def _compliance_error(strokes: Strokes, fit: SeriesFit, error: float) -> float:
    """Return the standard error of the compliance, rad/Nm, with that of a lag correlated with the load."""
    lost = float(np.abs(fit.series()[1].at(strokes.theta)).mean())
    return float(np.hypot(error, SMOOTHING_ERROR * lost / max(float(np.std(strokes.load)), TINY)))


def _has_backlash(strokes: Strokes, fit: SeriesFit, replicates: Array) -> bool:
    """Return whether the mean backlash over the samples is significant: over an arc no coefficient alone is."""

    def mean(values: Array) -> float:
        return float(fit.series(values)[1].at(strokes.theta).mean())

    return abs(mean(fit.values)) > SIGNIFICANT * float(standard_error(np.array([mean(x) for x in replicates])))


def _lagged(strokes: Strokes, reach: float) -> Strokes:
    """Return the strokes with the lag P in place of the direction, where it is known."""
    return replace(strokes, side=full_lag(strokes.theta, reach)).take(_has_state(strokes))


def _has_state(strokes: Strokes) -> Flags:
    """Return flags of the samples from the second cycle on: after two reversals the first state has no influence."""
    known: Flags = strokes.stroke > strokes.stroke.min() + 1
    return known


def _lag_slope(strokes: Strokes, reach: float) -> Array:
    """Return ∂P/∂L (1/rad) of the samples of `_lagged`."""
    state = slip_slope_state(float(strokes.theta[0]), 1)
    slope = slip_slopes(strokes.theta, np.array([reach]), state)[1][:, 0] / reach
    return slope[_has_state(strokes)]


def _measured_lag(strokes: Strokes, fit: SeriesFit) -> tuple[Array, Array]:
    """Return travel and ``p = Σ s d (φ - e - c τ) / Σ d²`` in bins of it, after the first reversal."""
    edges = np.linspace(0.0, MAX_LAG_SHARE * strokes.usual_stroke, CURVE_BINS + 1)
    used = strokes.take((strokes.stroke > strokes.stroke.min()) & (strokes.travel < edges[-1]))
    error, lost = fit.series()
    d = lost.at(used.theta)
    lag = used.phi - error.at(used.theta) - fit.compliance * used.load
    bins = np.clip(np.searchsorted(edges, used.travel, side="right") - 1, 0, CURVE_BINS - 1)
    top, bottom = (np.bincount(bins, values, CURVE_BINS) for values in (used.side * d * lag, d * d))
    filled = bottom > 0.0
    travel: Array = 0.5 * (edges[1:] + edges[:-1])[filled]
    return travel, top[filled] / bottom[filled]


# -- result --

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
