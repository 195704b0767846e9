"""Data of a friction curve: runs at constant speed or, where a log has none, all sliding samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d, uniform_filter1d

from jointwise.data.statistics import intervals
from jointwise.joint.checks import refuse
from jointwise.joint.part import PERFECT
from jointwise.joint.record import JointRecord
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


def settled(record: JointRecord, travel: float = PRESLIDING_TRAVEL) -> Flags:
    """Return flags of the samples at least a `travel` (rad) past the last standstill, reversal or gap."""
    direction = np.sign(record.speed) * moving(record)
    turns = np.diff(direction, prepend=np.nan) != 0
    turns |= np.diff(record.segment, prepend=-1) != 0
    start = np.maximum.accumulate(np.where(turns, np.arange(record.samples), 0))
    result: Flags = (direction != 0) & (np.abs(record.position - record.position[start]) >= travel)
    return result


def unaccelerated(record: JointRecord) -> Flags:
    """Return flags of the samples at constant speed, where the load is weight and not inertia."""
    acceleration = np.abs(record.acceleration)
    result: Flags = acceleration <= STEADY_SHARE * acceleration.max()
    return result


LOAD_QUANTILES = (0.05, 0.95)
"""Quantiles of the load of steady samples that count as its range: ramps that look steady do not."""

# -- runs at constant speed --

AVERAGING_TIMES = ((0.2, 0.0), (0.8, 1.5))
"""(averaging time of the speed, shortest run), s: any run, and longer ones whose speed oscillates."""
WINDOW = 0.3
"""Time (s) within which a constant speed changes...."""
MIN_WINDOW = 3
"""...over at least this many samples: one to either side..."""
MAX_CHANGE = 0.1
"""...by at most this fraction of itself..."""
MAX_CHANGE_OF_TOP = 0.002
"""...or of the top speed, whichever is more: the noise of slow runs."""
MIN_DURATION = 0.1
"""Shortest run (s), without ramps and settling."""
SAME_SPEED = 1.1
"""Ratio of two speeds up to which they count as the same."""


@dataclass(frozen=True, eq=False)
class Plateaus:
    """Runs at constant speed: means over each (runs,) in rad/s, Nm, s, °C; `first`, `last`: its samples."""

    speed: Array
    friction: Array
    load: Array
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
        """Rank (0, 1, ... by size) of the speed of each run, (runs,); speeds within `SAME_SPEED` share one."""
        order = np.argsort(np.abs(self.speed))
        sizes = np.abs(self.speed)[order]
        steps = np.diff(np.log(sizes)) > np.log(SAME_SPEED)
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
        load=_means(record.load, first, last),
        duration=(last - first) / record.rate,
        temperature=None if record.temperature is None else _means(record.temperature, first, last),
        segment=record.segment[first],
        first=first,
        last=last,
    )


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
    flat = _is_constant(piece, record.top_speed) & settled(piece) & moving(piece)
    return [(start + a, start + b) for a, b in intervals(flat) if b - a >= MIN_DURATION * record.rate]


def _is_constant(piece: JointRecord, top: float) -> Flags:
    """Return flags of the samples at which the averaged speed hardly changes within `WINDOW`."""
    flags: Flags = np.any([_is_constant_averaged(piece, top, *times) for times in AVERAGING_TIMES], axis=0)
    return flags


def _is_constant_averaged(piece: JointRecord, top: float, averaging: float, shortest: float) -> Flags:
    speed = uniform_filter1d(piece.speed, max(1, int(averaging * piece.rate)), mode="nearest")
    window = max(MIN_WINDOW, int(WINDOW * piece.rate))
    change = maximum_filter1d(speed, window) - minimum_filter1d(speed, window)
    allowed = np.maximum(MAX_CHANGE * np.abs(speed), MAX_CHANGE_OF_TOP * top)
    flat: Flags = (change <= allowed) & (np.abs(speed) > STANDSTILL_SHARE * top)
    for first, last in intervals(flat):
        flat[first:last] = last - first >= shortest * piece.rate
    return flat


def _means(values: Array, first: Indices, last: Indices) -> Array:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    result: Array = (sums[last] - sums[first]) / (last - first)
    return result


# -- rows of a fit --

MIN_PLATEAU_SHARE = 0.4
"""Fraction of the moving time above which runs at constant speed are used alone."""
ONLY_PLATEAU_SHARE = 0.7
"""Fraction of the moving time at constant speed above which there is nothing else to use."""
MIN_SPEEDS = 3
"""Speeds that a curve needs: one parameter more than Coulomb and viscous friction."""
MIN_SPEED_RATIO = 2.0
"""Smallest ratio of the highest to the lowest speed."""
SPEED_QUANTILES = (0.1, 0.95)
"""Quantiles of the speed of sliding samples that count as the lowest and the highest."""
LOAD_VARIATION = 0.5
"""A load that varies by more than this fraction of the friction is visible in it."""
TWO_SIDED_SHARE = 0.1
"""Smallest fraction of points in each direction for directions to be compared."""


@dataclass(frozen=True, eq=False)
class FrictionPoints:
    """Rows of a friction fit: `speed`, `torque` and `weight` (points,), the weights with a mean of one.

    `group` numbers the run or cycle of each point; `extra` (points, columns) are regressors of other effects, named
    `names`. `kind` is "runs" or "cycles".
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
        forward = float(np.mean(self.speed > 0.0))
        return min(forward, 1.0 - forward) >= TWO_SIDED_SHARE

    def take(self, which: Flags) -> FrictionPoints:
        """Return a selection of points."""
        rows = {k: getattr(self, k)[which] for k in ("speed", "torque", "weight", "group", "extra")}
        return replace(self, **rows)


def friction_points(record: JointRecord) -> FrictionPoints:
    """Return the points of a friction curve; raises if the record does not determine one."""
    plateaus = find_plateaus(record)
    share = float(plateaus.duration.sum() * record.rate / max(1, moving(record).sum()))
    speeds = _speeds(plateaus)
    if share >= MIN_PLATEAU_SHARE and len(speeds) >= MIN_SPEEDS and speeds[-1] >= MIN_SPEED_RATIO * speeds[0]:
        return _run_points(record, plateaus, len(speeds))
    if share >= ONLY_PLATEAU_SHARE:
        listed = ", ".join(f"{speed:.3g}" for speed in speeds)
        count = "one speed" if len(speeds) == 1 else f"{len(speeds)} speeds"
        raise refuse(record, "friction", f"only {count} ({listed} rad/s) in the log")
    return _cycle_points(record, share)


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
SLIDING_TRAVEL = 0.02
"""Travel (rad) after a reversal from which all samples count as sliding: twice `PRESLIDING_TRAVEL`, as their friction
is not averaged over a run."""
STOP_RATIO = 4.0
"""Accelerations above this many times the median are stops; they are not used, nor..."""
STOP_MARGIN = 0.25
"""...samples within this time (s) of them: the filter spreads a stop over it."""
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
    low, high = np.quantile(np.abs(speed), SPEED_QUANTILES)
    if high < MIN_SPEED_RATIO * low:
        raise refuse(record, "friction", f"only one speed ({np.median(np.abs(speed)):.3g} rad/s) in the log")
    other = _other_effects(record, mean, speed, torque)
    note = (
        f"constant speeds make up {PERFECT * share:.0f} % of the moving time: all sliding samples away from reversals "
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
    in_motion = moving(record)
    acceleration = np.abs(record.acceleration)
    usual = float(np.median(acceleration[in_motion])) if in_motion.any() else 0.0
    width = 2 * int(STOP_MARGIN * record.rate) + 1
    near_stop = maximum_filter1d(acceleration > STOP_RATIO * usual, width, mode="constant")
    index = np.flatnonzero(settled(record, SLIDING_TRAVEL) & ~near_stop & record.is_sliding)
    side = (record.speed[index] > 0.0).astype(np.intp)
    slot = (index // max(1, int(BLOCK_TIME * record.rate))) * 2 + side
    return index, np.unique(slot, return_inverse=True)[1]


def _cycles(record: JointRecord) -> Indices:
    """Return the number of the cycle (two reversals) at every sample."""
    side = np.sign(np.where(moving(record), record.speed, 0.0))
    latest = np.maximum.accumulate(np.where(side != 0.0, np.arange(record.samples), 0))
    turned = np.diff(side[latest], prepend=side[latest][0]) != 0.0
    return np.asarray(np.cumsum(turned) // 2, dtype=np.intp)
