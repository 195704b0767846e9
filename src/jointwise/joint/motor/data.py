"""Data of a payload identification: torques and currents of pairs of logs, without and with a payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from jointwise.data.log import Log, log_list
from jointwise.data.repetition import MotionPair, align_pair
from jointwise.description.robot import Robot
from jointwise.errors import EstimationError
from jointwise.estimation.jackknife import BLOCK_DURATION, MIN_BLOCKS, recording_blocks
from jointwise.joint.record import MIN_TRAVEL, refuse_faulty
from jointwise.model.rigid import compute_regressor, inverse_dynamics
from jointwise.model.terms import direction
from jointwise.spatial import Array

SLOW = 0.02
"""Speed (rad/s) below which the sign of friction is uncertain; such samples are left out."""
REVERSAL_TIME = 0.05
"""Time (s) around slow samples that is left out as well: the two runs turn back at slightly different times."""
MIN_MOVING = 0.05
"""Fraction of the samples in which every joint must move."""
BODY = 9
"""Unknown parameters of the payload: six of its inertia tensor, three first moments."""


@dataclass(frozen=True, eq=False)
class PayloadData:
    """Signals of all pairs that do not depend on the unknown payload; arrays (samples, joints).

    Attributes:
        mass: Mass of the payload, kg.
        names: Files.
        difference: Current with minus current without payload, A.
        direction: Direction of motion, -1 or 1.
        speed: Mean speed of the two runs, rad/s.
        pair: Number of the pair, (samples,).
        block: Number of the jackknife block, (samples,).
        used: Samples in motion.
        base: Load of the links without payload, Nm.
        known: ``m a + Δ``, Nm: torque of the known mass at the flange, and of the difference of the two motions.
        body: B (samples, joints, 9), Nm per unit of the unknown parameters of the payload.
    """

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


def aligned_pairs(unloaded: Log | Sequence[Log], loaded: Log | Sequence[Log], robot: Robot) -> list[MotionPair]:
    """Return logs without and with the payload in pairs."""
    first, second = log_list(unloaded), log_list(loaded)
    if not first or len(first) != len(second):
        raise EstimationError(
            f"every log without payload must have one with it. Got {len(first)} without and {len(second)} with it."
        )
    for log in (*first, *second):
        refuse_faulty(log, robot)
        if np.ptp(log.q, axis=0).max() < MIN_TRAVEL:
            raise EstimationError(
                f"{log.origin.path}: nothing moves; gains from a payload need a motion of all joints."
            )
    return [align_pair(a, b) for a, b in zip(first, second, strict=True)]


def payload_data(pairs: list[MotionPair], robot: Robot, mass: float, gravity: Array) -> PayloadData:
    """Return the signals of pairs of logs, and check that they show the payload.

    Args:
        pairs: The same motions without and with payload.
        robot: The robot.
        mass: Mass of the payload, kg.
        gravity: Gravity in the base frame, (3,), m/s².
    """
    torques = [_torques(pair, robot, mass, gravity) for pair in pairs]
    base, known, body = (np.concatenate(arrays) for arrays in zip(*torques, strict=True))
    speed = np.concatenate([pair.speed for pair in pairs])
    data = PayloadData(
        mass=mass,
        names=tuple(dict.fromkeys(name for pair in pairs for name in pair.names)),
        difference=np.concatenate([pair.difference for pair in pairs]),
        direction=direction(speed),
        speed=speed,
        pair=np.repeat(np.arange(len(pairs)), [pair.samples for pair in pairs]),
        block=recording_blocks([(pair.samples, pair.samples / pair.rate) for pair in pairs]),
        used=np.concatenate([_moving(pair.speed, pair.rate) for pair in pairs]),
        base=base,
        known=known,
        body=body,
    )
    _check_payload(data)
    return data


def _moving(speed: Array, rate: float) -> NDArray[np.bool_]:
    """Return which samples (samples, joints) are in motion and away from reversals, whose pulses the filter spreads."""
    slow = np.abs(speed) <= SLOW
    moving: NDArray[np.bool_] = ~maximum_filter1d(slow, 2 * int(REVERSAL_TIME * rate) + 1, axis=0)
    return moving


def _torques(pair: MotionPair, robot: Robot, mass: float, gravity: Array) -> tuple[Array, Array, Array]:
    """Return the load of the links, the known part ``m a + Δ`` (samples, joints) and B (samples, joints, 9), Nm."""
    before, after = (inverse_dynamics(robot, *motion, gravity=gravity) for motion in (pair.before, pair.after))
    last = compute_regressor(robot, *pair.after, gravity=gravity).matrices()[:, :, -BODY - 1 :]
    links = before - robot.rotor_inertias * pair.before[2]  # rotors load the motor, not the gear
    return links, mass * last[:, :, BODY] + after - before, last[:, :, :BODY]


def _check_payload(data: PayloadData) -> None:
    where = ", ".join(data.names)
    if np.allclose(data.difference, 0.0):
        raise EstimationError(f"{where}: the currents of both logs are the same: neither or both carry the payload.")
    if data.blocks < MIN_BLOCKS:
        raise EstimationError(
            f"{where}: too short: {data.blocks} blocks of {BLOCK_DURATION:g} s. At least {MIN_BLOCKS} are needed."
        )
    for j, used in enumerate(data.used.T):
        if used.mean() < MIN_MOVING:
            raise EstimationError(f"{where}: joint {j + 1} stands; gains from a payload need a motion of all joints.")
