"""What a friction curve is fitted to: runs at constant speed or, where a log has none, all sliding samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.friction.plateaus import Indices, Plateaus, find_plateaus, moving, run_means, settled, top_speed
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.spatial import Array

PLATEAU_SHARE = 0.4
"""Part of the moving time that constant-speed runs must hold to be used alone."""
MOST_SHARE = 0.7
"""Part of the moving time at constant speed above which there is nothing else to use."""
FEWEST_SPEEDS = 3
"""Speeds that a curve needs."""
WIDEST_RATIO = 2.0
"""The top speed must be at least this many times the lowest."""
BLOCK = 0.1
"""Time (s) over which sliding samples are averaged."""
SLIDING = 0.02
"""Way (rad) after a reversal at which all samples are taken for sliding."""
HARDEST = 4.0
"""Accelerations above this many times the usual one are stops, and left out with..."""
AROUND = 0.25
"""...the time (s) before and after."""
LOADED = 0.5
"""Load that varies by more than this part of the friction gets columns for an error of its model."""
FEWEST_CYCLES = 3
"""Cycles (to and fro) that all-sample fits need, as they are the unit of deviation and of held-out tests."""


@dataclass(frozen=True, eq=False)
class Points:
    """Rows of a friction fit: `speed` and `torque` (points,), `weight` (points,) with a mean of one.

    `group` numbers the run or cycle of each; `extra` (points, columns) are effects beside the friction, named `names`.
    `kind` is "runs" or "cycles".
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
        """The numbers of the groups."""
        return np.unique(self.group)

    @property
    def is_two_sided(self) -> bool:
        """Tell whether both directions are there, each a tenth of the points or more."""
        forwards = float(np.mean(self.speed > 0.0))
        return 0.1 <= forwards <= 0.9

    def take(self, which: NDArray[np.bool_]) -> Points:
        """Return some points."""
        rows = {k: getattr(self, k)[which] for k in ("speed", "torque", "weight", "group", "extra")}
        return replace(self, **rows)


def friction_points(record: JointRecord) -> Points:
    """Return the points of a friction curve, or say why the log cannot give one."""
    plateaus = find_plateaus(record)
    share = float(plateaus.duration.sum() * record.rate / max(1, moving(record).sum()))
    speeds = _speeds(plateaus)
    if share >= PLATEAU_SHARE and len(speeds) >= FEWEST_SPEEDS and speeds[-1] >= WIDEST_RATIO * speeds[0]:
        return _of_plateaus(record, plateaus, len(speeds))
    if share >= MOST_SHARE:
        told = ", ".join(f"{speed:.3g}" for speed in speeds)
        count = "one speed" if len(speeds) == 1 else f"{len(speeds)} speeds"
        raise refuse(record, "friction", f"only {count} ({told} rad/s) in the log")
    return _of_samples(record, share)


def _speeds(plateaus: Plateaus) -> list[float]:
    """Return the different speeds of the runs, rad/s."""
    sizes, levels = np.abs(plateaus.speed), plateaus.levels
    return [float(sizes[levels == k].mean()) for k in np.unique(levels)]


# -- runs --


def _of_plateaus(record: JointRecord, plateaus: Plateaus, speeds: int) -> Points:
    order = np.argsort(plateaus.speed, kind="stable")  # neighbours in speed fall into different folds
    extra, names, notes = _load_columns(record, plateaus.load, plateaus.friction, _plateau_columns(record, plateaus))
    weight = np.sqrt(plateaus.duration / plateaus.duration.mean())
    return Points(
        speed=plateaus.speed[order],
        torque=plateaus.friction[order],
        weight=weight[order],
        group=np.arange(plateaus.runs),
        extra=extra[order],
        names=names,
        kind="runs",
        notes=(f"{plateaus.runs} runs at {speeds} constant speeds were found.", *notes),
    )


def _plateau_columns(record: JointRecord, plateaus: Plateaus) -> dict[str, Array]:
    """Return the mean of sin q, cos q and sgn(ω) τ² over every run."""
    side = np.sign(plateaus.speed)
    sin, cos, square = (run_means(x, plateaus) for x in (np.sin(record.q), np.cos(record.q), record.load**2))
    return {"sin": sin, "cos": cos, "load²": side * square}


# -- samples --


def _of_samples(record: JointRecord, share: float) -> Points:
    """Return blocks of sliding samples away from reversals and stops, with inertia and gravity beside the friction."""
    index, blocks = _blocks(record)
    cycle = _cycles(record)[index][np.unique(blocks, return_index=True)[1]] if len(index) else index
    if len(np.unique(cycle)) < FEWEST_CYCLES:
        what = f"neither constant speeds nor {FEWEST_CYCLES} cycles to and fro in the log"
        raise refuse(record, "friction", what)

    def mean(values: Array) -> Array:
        result: Array = np.bincount(blocks, values[index]) / np.bincount(blocks)
        return result

    speed, load, torque = mean(record.speed), mean(record.load), mean(record.friction)
    if np.quantile(np.abs(speed), 0.95) < WIDEST_RATIO * np.quantile(np.abs(speed), 0.1):
        raise refuse(record, "friction", f"only one speed ({np.median(np.abs(speed)):.3g} rad/s) in the log")
    columns = {"sin": mean(np.sin(record.q)), "cos": mean(np.cos(record.q)), "load²": np.sign(speed) * load**2}
    extra, names, notes = _load_columns(record, load, torque, columns)
    extra = np.column_stack([mean(record.acceleration), extra])
    told = (
        f"constant speeds hold {100.0 * share:.0f} % of the moving time: all sliding samples away from reversals were "
        "used, with an inertia beside the friction.",
        *notes,
    )
    weight = np.sqrt(np.bincount(blocks) / np.bincount(blocks).mean())
    return Points(speed, torque, weight, cycle, extra, ("inertia", *names), "cycles", told)


def _blocks(record: JointRecord) -> tuple[Indices, Indices]:
    """Return the sliding samples and which block of `BLOCK` seconds each belongs to."""
    usual = float(np.median(np.abs(record.acceleration[moving(record)]))) if moving(record).any() else 0.0
    stops = np.abs(record.acceleration) > HARDEST * usual
    near = np.convolve(stops, np.ones(2 * int(AROUND * record.rate) + 1), mode="same") > 0.5
    slow = np.abs(record.speed) < 0.02 * top_speed(record)
    index = np.flatnonzero(settled(record, SLIDING) & ~near & ~slow)
    side = (np.sign(record.speed[index]) + 1.0).astype(np.intp)
    slot = (index // max(1, int(BLOCK * record.rate))) * 3 + side
    return index, np.unique(slot, return_inverse=True)[1]


def _cycles(record: JointRecord) -> Indices:
    """Return the number of the cycle to and fro at every sample: two reversals each."""
    side = np.sign(np.where(moving(record), record.speed, 0.0))
    held = np.maximum.accumulate(np.where(side != 0.0, np.arange(record.samples), 0))
    turned = np.diff(side[held], prepend=side[held][0]) != 0.0
    return np.asarray(np.cumsum(turned) // 2, dtype=np.intp)


def _load_columns(
    record: JointRecord, load: Array, friction: Array, columns: dict[str, Array]
) -> tuple[Array, tuple[str, ...], tuple[str, ...]]:
    """Return columns for errors of the gravity model and load-dependent friction where the load varies."""
    scale = float(np.median(np.abs(friction)))
    if np.ptp(load) <= LOADED * scale:
        return np.empty((len(load), 0)), (), ()
    note = (
        f"the load varies by {np.ptp(load):.3g} Nm: an error of its gravity model and friction that grows with the "
        "load were fitted beside the curve, which holds without load."
    )
    return np.column_stack(list(columns.values())), tuple(columns), (note,)
