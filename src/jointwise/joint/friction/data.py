"""Data of a friction curve: runs at constant speed or, where a log has none, all sliding samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d, uniform_filter1d

from jointwise.data.statistics import intervals
from jointwise.joint.checks import refuse
from jointwise.joint.record import SLIDING_SHARE, JointRecord
from jointwise.model.friction import root_speed
from jointwise.spatial import Array

Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

# -- motion --

STANDSTILL_SHARE = 0.005
"""Fraction of the top speed below which the joint counts as standing: runs at a hundredth of it are usable data."""
PRESLIDING_TRAVEL = 0.01
"""Travel (rad) after a standstill or reversal at which presliding is over: about ten times the backlash of a gear."""
STEADY_SHARE = 0.05
"""Fraction of the largest acceleration up to which a joint counts as moving at constant speed."""
VISIBLE_WARMING = 3.0
"""Change of temperature (K) from which friction changes by some percent."""


def moving(record: JointRecord) -> Flags:
    """Return flags of the samples in motion."""
    return np.abs(record.speed) > STANDSTILL_SHARE * record.top_speed


def settled(record: JointRecord) -> Flags:
    """Return flags of the samples past presliding since the last standstill, reversal or gap."""
    direction = np.sign(record.speed) * moving(record)
    turns = np.diff(direction, prepend=np.nan) != 0
    turns |= np.diff(record.segment, prepend=-1) != 0
    start = np.maximum.accumulate(np.where(turns, np.arange(record.samples), 0))
    result: Flags = (direction != 0) & (np.abs(record.position - record.position[start]) >= PRESLIDING_TRAVEL)
    return result


TWO_SIDED_SHARE = 0.1
"""Smallest fraction of samples on either side, such as directions of motion, for the sides to be compared."""


def has_both(flags: Flags) -> bool:
    """Return whether enough of the flags are true and enough are false for the two sides to be compared."""
    return TWO_SIDED_SHARE <= float(np.mean(flags)) <= 1.0 - TWO_SIDED_SHARE


def unaccelerated(record: JointRecord) -> Flags:
    """Return flags of the samples at constant speed, where the load is weight and not inertia."""
    acceleration = np.abs(record.acceleration)
    result: Flags = acceleration <= STEADY_SHARE * acceleration.max()
    return result


LOAD_QUANTILES = (0.05, 0.95)
"""Quantiles of the load of steady samples, and of the speed of sliding ones, that count as their range: ramps that look
steady do not."""

# -- runs at constant speed --

AVERAGING_TIMES = ((0.2, 0.0), (0.8, 1.5))
"""(averaging time of the speed, shortest run), s: any run, and longer ones whose speed oscillates."""
WINDOW = 0.3
"""Time (s) within which a constant speed hardly changes, and the shortest run without ramps and settling."""
MAX_CHANGE = 0.1
"""Relative difference up to which speeds count as the same, within a run and between runs; noise is as large where the
direction of motion is uncertain (`SLIDING_SHARE`), so slower runs may change as much as one at that speed."""


@dataclass(frozen=True, eq=False)
class Plateaus:
    """Runs at constant speed, (runs,) each; signals are means over a run.

    Attributes:
        speed: Speed, rad/s.
        friction: Friction torque, Nm.
        duration: Duration of a run, s.
        temperature: Temperature, °C; None if not measured.
        segment: Number of the gap-free segment.
        first: First sample of a run.
        last: Sample after its last one.
    """

    speed: Array
    friction: Array
    duration: Array
    temperature: Array | None
    segment: Indices
    first: Indices
    last: Indices

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.speed)

    @property
    def levels(self) -> Indices:
        """Rank of the speed of each run by size, 0, 1, ..., (runs,).

        Speeds within `MAX_CHANGE` share one.
        """
        order = np.argsort(np.abs(self.speed))
        sizes = np.abs(self.speed)[order]
        steps = np.diff(np.log(sizes)) > np.log1p(MAX_CHANGE)
        levels = np.empty(len(sizes), dtype=np.intp)
        levels[order] = np.concatenate([[0], np.cumsum(steps)]) if len(sizes) else 0
        return levels

    def means(self, values: Array) -> Array:
        """Return the mean of values (samples,) over every run, (runs,)."""
        return _means(values, self.first, self.last)


def find_plateaus(record: JointRecord) -> Plateaus:
    """Return the runs of a record at constant speed; there may be none."""
    found = [run for k in np.unique(record.segment) for run in _runs(record, np.flatnonzero(record.segment == k))]
    first, last = (np.array([run[end] for run in found], dtype=np.intp) for end in (0, 1))
    return Plateaus(
        speed=_means(record.speed, first, last),
        friction=_means(record.friction, first, last),
        duration=(last - first) / record.rate,
        temperature=None if record.temperature is None else _means(record.temperature, first, last),
        segment=record.segment[first],
        first=first,
        last=last,
    )


def level_columns(level: Indices) -> Array:
    """Return a column of ones and zeros for every speed, (rows, levels), of rows with the ranks of their speed."""
    columns: Array = (level[:, None] == np.arange(level.max() + 1)).astype(float)
    return columns


def opposite_runs(plateaus: Plateaus) -> list[tuple[int, int]]:
    """Return pairs (forward, backward) of consecutive runs at the same speed; each run is used once."""
    pairs, levels, k = [], plateaus.levels, 0
    while k + 1 < plateaus.runs:
        same = levels[k] == levels[k + 1] and plateaus.segment[k] == plateaus.segment[k + 1]
        if same and plateaus.speed[k] * plateaus.speed[k + 1] < 0.0:
            pairs.append((k, k + 1) if plateaus.speed[k] > 0.0 else (k + 1, k))
            k += 1
        k += 1
    return pairs


def _runs(record: JointRecord, index: Indices) -> list[tuple[int, int]]:
    """Return the runs (first, one past last) of a gap-free segment at the samples `index`."""
    start = int(index[0])
    piece = record.take(slice(start, int(index[-1]) + 1))  # type: ignore[arg-type]
    constant: Flags = np.any([_is_constant(piece, record.top_speed, *times) for times in AVERAGING_TIMES], axis=0)
    flat = constant & settled(piece) & moving(piece)
    return [(start + a, start + b) for a, b in intervals(flat) if b - a >= WINDOW * record.rate]


def _is_constant(piece: JointRecord, top: float, averaging: float, shortest: float) -> Flags:
    """Return flags of the samples at which the averaged speed hardly changes within `WINDOW`."""
    speed = uniform_filter1d(piece.speed, max(1, int(averaging * piece.rate)), mode="nearest")
    window = max(1, int(WINDOW * piece.rate))
    change = maximum_filter1d(speed, window) - minimum_filter1d(speed, window)
    allowed = MAX_CHANGE * np.maximum(np.abs(speed), SLIDING_SHARE * top)
    flat: Flags = (change <= allowed) & (np.abs(speed) > STANDSTILL_SHARE * top)
    for first, last in intervals(flat):
        flat[first:last] = last - first >= shortest * piece.rate
    return flat


def _means(values: Array, first: Indices, last: Indices) -> Array:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    result: Array = (sums[last] - sums[first]) / (last - first)
    return result


# -- rows of a fit --

MIN_PLATEAU_SHARE = 0.5
"""Fraction of the moving time above which runs at constant speed are used alone: what lies between them is ramps."""
MIN_SPEEDS = 3
"""Speeds that a curve needs: one parameter more than Coulomb and viscous friction."""
MIN_SPEED_RATIO = 2.0
"""Smallest ratio of the highest to the lowest speed."""
LOAD_VARIATION = 0.5
"""A load that varies by more than this fraction of the friction is visible in it."""


@dataclass(frozen=True, eq=False)
class FrictionPoints:
    """Rows of a friction fit, (points,) each unless stated.

    Attributes:
        speed: Speed, rad/s.
        torque: Friction torque, Nm.
        weight: Weight, with a mean of one.
        group: Number of the run or cycle.
        extra: Regressors of other effects, (points, columns).
        names: Names of the columns of `extra`.
        kind: "runs" or "cycles".
        notes: Remarks for the user.
    """

    speed: Array
    torque: Array
    weight: Array
    group: Indices
    extra: Array
    names: tuple[str, ...]
    kind: str
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> Indices:
        """Numbers of the groups."""
        return np.unique(self.group)

    @property
    def is_two_sided(self) -> bool:
        """Whether both directions have enough points."""
        return has_both(self.speed > 0.0)

    def take(self, which: Flags) -> FrictionPoints:
        """Return a selection of points."""
        rows = {k: getattr(self, k)[which] for k in ("speed", "torque", "weight", "group", "extra")}
        return replace(self, **rows)


def friction_points(record: JointRecord) -> FrictionPoints:
    """Return the points of a friction curve; raises if the record does not determine one."""
    plateaus = find_plateaus(record)
    share = float(plateaus.duration.sum() * record.rate / max(1, moving(record).sum()))
    if share < MIN_PLATEAU_SHARE:
        return _cycle_points(record, share)
    speeds = _speeds(plateaus)
    if len(speeds) < MIN_SPEEDS or speeds[-1] < MIN_SPEED_RATIO * speeds[0]:
        listed = ", ".join(f"{speed:.3g}" for speed in speeds)
        count = "one speed" if len(speeds) == 1 else f"{len(speeds)} speeds"
        raise refuse(record, "friction", f"only {count} ({listed} rad/s) in the log")
    return _run_points(record, plateaus, len(speeds))


def _speeds(plateaus: Plateaus) -> list[float]:
    """Return the different speeds of the runs in ascending order, rad/s."""
    sizes, levels = np.abs(plateaus.speed), plateaus.levels
    return [float(sizes[levels == k].mean()) for k in np.unique(levels)]


def _run_points(record: JointRecord, plateaus: Plateaus, speeds: int) -> FrictionPoints:
    """Return one point per run, sorted by speed so that neighbours in speed fall into different folds."""
    order = np.argsort(plateaus.speed, kind="stable")
    other = _other_effects(record, plateaus.means, plateaus.speed, plateaus.friction)
    weight = np.sqrt(plateaus.duration / plateaus.duration.mean())
    return FrictionPoints(
        speed=plateaus.speed[order],
        torque=plateaus.friction[order],
        weight=weight[order],
        group=np.arange(plateaus.runs),
        extra=other.matrix[order],
        names=tuple(other.columns),
        kind="runs",
        notes=(f"{plateaus.runs} runs at {speeds} constant speeds were found.", *other.notes),
    )


@dataclass(frozen=True)
class _OtherEffects:
    """Regressors (points,) by name of effects that are fitted together with the curve, and notes on them."""

    points: int
    columns: dict[str, Array]
    notes: tuple[str, ...]

    @property
    def matrix(self) -> Array:
        """The regressors, (points, columns)."""
        return np.column_stack([np.empty((self.points, 0)), *self.columns.values()])


def reference_temperature(record: JointRecord) -> float | None:
    """Return the temperature (°C) at which a friction curve holds, the median of the record; None if not measured."""
    return None if record.temperature is None else float(np.median(record.temperature))


def _other_effects(record: JointRecord, mean: Callable[[Array], Array], speed: Array, friction: Array) -> _OtherEffects:
    """Return the regressors of gravity errors, load-dependent friction and warming, where load or temperature vary.

    A joint that warms up by half a kelvin loses about 1 % of its friction. As fast runs heat it most, this would
    otherwise be taken for a viscous term.

    Args:
        record: Signals of the joint.
        mean: From values (samples,) to their means over each point.
        speed: Speed of each point, rad/s.
        friction: Friction of each point, Nm.
    """
    columns: dict[str, Array] = {}
    notes: list[str] = []
    load, T0 = mean(record.load), reference_temperature(record)
    if np.ptp(load) > LOAD_VARIATION * float(np.median(np.abs(friction))):
        sine, cosine, square = (mean(x) for x in (np.sin(record.q), np.cos(record.q), record.load**2))
        columns |= {"sin": sine, "cos": cosine, "load²": np.sign(speed) * square}
        notes.append(
            f"the load varies by {np.ptp(load):.3g} Nm: an error of the gravity model and friction that grows with "
            "the load were fitted together with the curve, which holds without load."
        )
    if T0 is not None and record.temperature is not None and np.ptp(warming := mean(record.temperature) - T0) > 0.0:
        columns["temperature"] = root_speed(speed) * warming
        notes.append(
            f"the temperature varies by {np.ptp(warming):.2g} K: its effect was fitted together with the curve, which "
            f"holds at {T0:.1f} °C."
        )
    return _OtherEffects(len(speed), columns, tuple(notes))


# -- rows from all sliding samples --

BLOCK_TIME = 0.1
"""Time (s) over which sliding samples are averaged."""
MIN_CYCLES = 3
"""Cycles (forward and back) that this fit needs: they are the unit of standard errors and held-out tests."""


def _cycle_points(record: JointRecord, share: float) -> FrictionPoints:
    """Return means over short blocks of sliding samples, with inertia and gravity errors as extra regressors."""
    index, block = _sliding_blocks(record)
    cycle = _cycles(record)[index][np.unique(block, return_index=True)[1]] if len(index) else index
    if len(np.unique(cycle)) < MIN_CYCLES:
        reason = f"neither constant speeds nor {MIN_CYCLES} cycles forward and back in the log"
        raise refuse(record, "friction", reason)
    count = np.bincount(block)

    def mean(values: Array) -> Array:
        return np.bincount(block, values[index]) / count

    speed, torque = mean(record.speed), mean(record.friction)
    low, high = np.quantile(np.abs(speed), LOAD_QUANTILES)
    if high < MIN_SPEED_RATIO * low:
        raise refuse(record, "friction", f"only one speed ({np.median(np.abs(speed)):.3g} rad/s) in the log")
    other = _other_effects(record, mean, speed, torque)
    note = (
        f"constant speeds make up {100.0 * share:.0f} % of the moving time: all sliding samples away from reversals "
        "were used, and an inertia was fitted together with the friction."
    )
    return FrictionPoints(
        speed=speed,
        torque=torque,
        weight=np.sqrt(count / count.mean()),
        group=cycle,
        extra=np.column_stack([mean(record.acceleration), other.matrix]),
        names=("inertia", *other.columns),
        kind="cycles",
        notes=(note, *other.notes),
    )


def _sliding_blocks(record: JointRecord) -> tuple[Indices, Indices]:
    """Return the indices of the sliding samples and the block of each."""
    index = np.flatnonzero(settled(record) & record.is_sliding)
    side = (record.speed[index] > 0.0).astype(np.intp)
    slot = (index // max(1, int(BLOCK_TIME * record.rate))) * 2 + side
    return index, np.unique(slot, return_inverse=True)[1]


def _cycles(record: JointRecord) -> Indices:
    """Return the number of the cycle (two reversals) at every sample."""
    side = np.sign(np.where(moving(record), record.speed, 0.0))
    latest = np.maximum.accumulate(np.where(side != 0.0, np.arange(record.samples), 0))
    turned = np.diff(side[latest], prepend=side[latest][0]) != 0.0
    return np.asarray(np.cumsum(turned) // 2, dtype=np.intp)
