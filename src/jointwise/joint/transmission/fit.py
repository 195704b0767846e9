"""Fits of both maps: periodic tables, and Fourier series ``φ = e(θ) + s d(θ) + c τ`` with the direction s."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.estimation.cross_validation import SIGNIFICANT, simplest_candidate, unit_errors
from jointwise.estimation.gram import normal_solution
from jointwise.estimation.jackknife import equal_blocks, newton_replicates, standard_error
from jointwise.joint.part import TINY, nrmse_percent
from jointwise.joint.transmission.data import Flags, Strokes, cells
from jointwise.joint.transmission.law import NO_RIPPLE, POINTS, FourierSeries, GearMap, RippledTable
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.spatial import Array

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
    values = normal_solution(W.T @ W, W.T @ y)
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
