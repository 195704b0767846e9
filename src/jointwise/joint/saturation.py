"""A current at its limit: it no longer says what the joint asks for, whatever is to be identified."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointwise.data.statistics import denied, noise
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.spatial import Array

Flags = NDArray[np.bool_]

MOST_SATURATED = 0.002
"""Part of the samples at the limit above which nothing is fitted."""
PILE = 1e-5
"""Samples this near to the extreme, in parts of the range, sit at it..."""
LEAST_RUN = 5
"""...if so many in a row do."""
BLOCK = 0.05
"""Time (s) over which a noisy torque is averaged."""
FEWEST_BLOCKS = 10
NEAR = 6.0
"""Blocks this near to the largest, in deviations of their noise, may sit at a limit..."""
SURE = 3.0
"""...if the motion asks for more than they show, by so many times what it leaves unexplained of the others..."""
PART = 0.05
"""...and by this part of the largest torque..."""
VARIES = 0.5
"""...and what it asks for varies by this part of that: a steady run at the highest torque is no limit."""


def refuse_saturated(record: JointRecord, phenomenon: str) -> None:
    """Refuse a record whose current sits at its limit."""
    share = saturated_share(record)
    if share > MOST_SATURATED:
        name, unit = ("current", "A") if record.has_current else ("torque", record.unit)
        top = np.abs(record.motor).max() / record.gain
        what = f"the {name} is saturated in {100.0 * share:.1f} % of the samples, at about {top:.3g} {unit}"
        raise refuse(record, phenomenon, what)


def saturated_share(record: JointRecord) -> float:
    """Return the part of the samples at a limit: extremes repeated, cut off before noise was added, or below a target.

    A limit under noise shows only where the motion asks for different torques beyond it: a friction that never varies
    looks the same.
    """
    if not np.ptp(record.motor) > 0.0:
        return 1.0
    return max(_repeated_share(record.motor), _cut_share(record), _flat_share(record), _denied_share(record))


def _denied_share(record: JointRecord) -> float:
    """Return the part of the samples in which the current sits at its top while clearly more is asked for."""
    if record.asked is None or not record.has_current:
        return 0.0
    current = record.motor / record.gain
    return float(denied(current[:, None], record.asked[:, None]).mean())


def _repeated_share(motor: Array) -> float:
    """Return the part of samples that repeat an extreme, `LEAST_RUN` in a row or more."""
    near = PILE * float(np.ptp(motor))
    return sum(_in_runs(distance <= near) for distance in (motor.max() - motor, motor - motor.min())) / len(motor)


def _in_runs(flags: Flags) -> int:
    """Return how many flags are up in runs of `LEAST_RUN` or more."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    runs = edges[1::2] - edges[::2]
    return int(runs[runs >= LEAST_RUN].sum())


def _cut_share(record: JointRecord) -> float:
    """Return the part of the blocks that are at the top while the motion asks for more."""
    columns = np.column_stack([_asked(record), record.motor])
    means = _block_means(columns, max(1, round(BLOCK * record.rate)))
    demand, torque = means[:, :-1], means[:, -1]
    if len(torque) < 4 * FEWEST_BLOCKS:
        return 0.0
    near = NEAR * float(noise(torque[:, None])[0])
    at_top, at_bottom = torque >= torque.max() - near, torque <= torque.min() + near
    free = ~(at_top | at_bottom)
    if free.sum() < 4 * demand.shape[1]:
        return 0.0
    excess, rest = _excess(demand, torque, free)
    least = max(SURE * rest, PART * float(np.abs(torque).max()))
    beyond = [own & (side * excess > least) for own, side in ((at_top, 1.0), (at_bottom, -1.0))]
    found = [own for own in beyond if own.sum() >= FEWEST_BLOCKS and excess[own].std() > VARIES * least]
    return sum(int(own.sum()) for own in found) / len(torque)


def _flat_share(record: JointRecord) -> float:
    """Return the part of the blocks that stay at the top, or the bottom, whatever rotor and links ask to be sped up.

    It needs no block away from the limit: what is asked there must vary by more than the noise of both, by a part of
    the largest torque, and by about as much as anywhere. Where no drive gain is known, the two cannot be compared.
    """
    if record.unit != "Nm":
        return 0.0
    columns = np.column_stack([_inertial(record), record.motor])
    means = _block_means(columns, max(1, round(BLOCK * record.rate)))
    if len(means) < 4 * FEWEST_BLOCKS:
        return 0.0
    asked, torque = means.T
    unsure, near = NEAR * noise(means)
    least = max(unsure, near, PART * float(np.abs(torque).max()), VARIES * float(asked.std()))
    sides = torque >= torque.max() - near, torque <= torque.min() + near
    flat = [own for own in sides if own.sum() >= FEWEST_BLOCKS and asked[own].std() > least]
    return sum(int(own.sum()) for own in flat) / len(torque)


def _inertial(record: JointRecord) -> Array:
    """Return what speeds up rotor and links, (samples,), Nm; with gravity where the load does not tell it apart."""
    asked: Array = record.load + record.inertia * record.acceleration
    return asked if record.pull is None or record.gravity is None else asked - record.pull @ np.array(record.gravity)


def _asked(record: JointRecord) -> Array:
    """Return what explains a motor's torque, (samples, columns): links, rotor, friction, the wind-up of the gear."""
    v = record.speed
    columns = [np.ones_like(v), record.load, record.acceleration, np.sign(v), v, v * np.abs(v)]
    wound = [own for own in (record.phi, record.gauge) if own is not None]
    return np.column_stack([*columns, *wound])


def _block_means(values: Array, size: int) -> Array:
    """Return means over `size` rows, (blocks, columns)."""
    count = len(values) // size
    result: Array = values[: count * size].reshape(count, size, -1).mean(axis=1)
    return result


def _excess(demand: Array, torque: Array, free: Flags) -> tuple[Array, float]:
    """Return by how much the demand, as the free blocks show it, passes the torque; and the rms it leaves there."""
    scale = np.linalg.norm(demand[free], axis=0)
    scale[scale == 0.0] = 1.0
    numbers = np.linalg.lstsq(demand[free] / scale, torque[free], rcond=1e-9)[0] / scale
    excess = demand @ numbers - torque
    return excess, float(np.sqrt(np.mean(excess[free] ** 2)))
