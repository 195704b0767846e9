"""Two runs of the same motion, without and with a payload, as what every fit starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from jointwise.data.log import Log
from jointwise.description.robot import Robot
from jointwise.errors import EstimationError
from jointwise.joint.doctor import refuse_faulty
from jointwise.joint.jackknife import FEWEST_BLOCKS, block_count
from jointwise.joint.motor.bilinear import BODY
from jointwise.joint.motor.pair import Pair, align_pair
from jointwise.model.rigid import compute_regressor, inverse_dynamics
from jointwise.spatial import Array

SLOW = 0.02
"""Speed (rad/s) below which a joint's friction is not known by its direction; such samples are left out."""
REVERSAL = 0.05
"""Time (s) before and after such samples that is left out too: the two runs turn back at slightly different moments."""
WIDTH = 0.01
"""Speed (rad/s) of the direction ``tanh(v/width)``."""
LEAST_DIFFERENCE = 1e-3
"""Difference of the currents (A rms) below which no payload was carried."""


@dataclass(frozen=True, eq=False)
class PairData:
    """Everything that does not depend on the payload's unknown numbers; arrays (samples, joints)."""

    mass: float
    names: tuple[str, ...]
    difference: Array
    direction: Array
    speed: Array
    pair: NDArray[np.intp]
    block: NDArray[np.intp]
    used: NDArray[np.bool_]
    base: Array
    known: Array
    body: Array

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.difference.shape[1])

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return int(self.block.max()) + 1


def pair_data(pairs: list[Pair], robot: Robot, mass: float, gravity: Array) -> PairData:
    """Return what pairs tell about a payload of a mass (kg) under a gravity (3,), m/s²; refuse what tells nothing."""
    pieces = [_piece(pair, robot, mass, gravity) for pair in pairs]
    numbers = [np.full(pair.samples, k) for k, pair in enumerate(pairs)]
    speed = np.concatenate([pair.speed for pair in pairs])
    data = PairData(
        mass=mass,
        names=tuple(dict.fromkeys(name for pair in pairs for name in pair.names)),
        difference=np.concatenate([pair.difference for pair in pairs]),
        direction=np.tanh(speed / WIDTH),
        speed=speed,
        pair=np.concatenate(numbers),
        block=_blocks(pairs),
        used=np.concatenate([_clear(pair.speed, pair.rate) for pair in pairs]),
        base=np.concatenate([piece[0] for piece in pieces]),
        known=np.concatenate([piece[1] for piece in pieces]),
        body=np.concatenate([piece[2] for piece in pieces]),
    )
    _refuse_unusable(data)
    return data


def _clear(speed: Array, rate: float) -> NDArray[np.bool_]:
    """Return which samples (samples, joints) are in motion and away from reversals, whose pulses the filter spreads."""
    slow = np.abs(speed) <= SLOW
    clear: NDArray[np.bool_] = ~maximum_filter1d(slow, 2 * int(REVERSAL * rate) + 1, axis=0)
    return clear


def _piece(pair: Pair, robot: Robot, mass: float, gravity: Array) -> tuple[Array, Array, Array]:
    """Return the load of the links, the known part ``m a + Δ`` (samples, joints) and B (samples, joints, 9), Nm."""
    before, after = (inverse_dynamics(robot, *motion, gravity=gravity) for motion in (pair.before, pair.after))
    last = compute_regressor(robot, *pair.after, gravity=gravity).matrices()[:, :, -BODY - 1 :]
    links = before - robot.rotor_inertias * pair.before[2]  # rotors load the motor, not the gear
    return links, mass * last[:, :, BODY] + after - before, last[:, :, :BODY]


def _blocks(pairs: list[Pair]) -> NDArray[np.intp]:
    """Return the block of every sample: equal parts of each pair."""
    numbers: list[NDArray[np.intp]] = []
    first = 0
    for pair in pairs:
        count = max(1, block_count(pair.samples / pair.rate))
        numbers.append(first + np.arange(pair.samples) * count // pair.samples)
        first += count
    return np.concatenate(numbers)


def aligned_pairs(
    unloaded: Log | Sequence[Log], loaded: Log | Sequence[Log], robot: Robot, cutoff: float
) -> list[Pair]:
    """Return logs without and with the payload side by side, their positions smoothed at a cut-off (Hz)."""
    first = [unloaded] if isinstance(unloaded, Log) else list(unloaded)
    second = [loaded] if isinstance(loaded, Log) else list(loaded)
    if not first or len(first) != len(second):
        raise EstimationError(
            f"every log without payload must have one with it. Got {len(first)} without and {len(second)} with it."
        )
    for log in (*first, *second):
        refuse_faulty(log, robot)
    return [align_pair(a, b, cutoff) for a, b in zip(first, second, strict=True)]


def _refuse_unusable(data: PairData) -> None:
    where = ", ".join(data.names)
    if np.sqrt(np.mean(data.difference**2)) < LEAST_DIFFERENCE:
        raise EstimationError(f"{where}: the currents of both logs are the same: neither or both carry the payload.")
    if data.blocks < FEWEST_BLOCKS:
        raise EstimationError(f"{where}: too short: {data.blocks} blocks of 2 s. At least {FEWEST_BLOCKS} are needed.")
    for j, used in enumerate(data.used.T):
        if used.mean() < 0.05:
            raise EstimationError(f"{where}: joint {j + 1} stands; gains from a payload need a motion of all joints.")
