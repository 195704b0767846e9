"""State of the NumPy monitor: what it remembers between samples, and what it computes at one time of its clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jointwise.monitoring.core import COLUMNS, MOMENTS, SHARES, VERDICTS
from jointwise.spatial import Array, Mask

DRY, VISCOUS, HELD = range(SHARES)
"""Unknowns of a joint: relative change of dry friction, change of the viscous coefficient, torque held at rest."""


@dataclass
class Measured:
    """A sample as measured, (joints,) each.

    Attributes:
        q: Positions, rad.
        qd: Speeds, rad/s.
        output: Output, in the unit of the model.
        temperature: Temperatures, °C.
    """

    q: Array
    qd: Array
    output: Array
    temperature: Array


class JointMemory:
    """What the monitor remembers of every joint, arrays of shape (joints,); see `jw_watch_state`.

    Attributes:
        position: Position at the last time of the clock, rad.
        speed: Speed at that time, rad/s.
        path: Position that deforms friction: the integrated speed, which slowly follows the encoder, rad.
        acceleration: Low-pass filtered acceleration, rad/s².
        mean_torque: Low-pass filtered motor torque, from which a shock is counted, Nm.
        base_torque: Motor torque of the last few ms, from which a step of the motor is counted, Nm.
        shock: Torque of the last sudden change of the motion by the motor itself, fading, Nm.
        jump: Size of the last step of the motor torque, fading, Nm.
        fast: Low-pass filtered residual of the momentum observer, Nm.
        net: Torque less that of the model without inertia at the last time of the clock, Nm.
        direct: Direct residual with the filter of the acceleration, Nm.
        slow: The same, low-pass filtered, Nm.
        expected: Residual that payload and friction explain, filtered as `fast`, Nm.
        columns: Torques of unit mass and unit first moments of a payload, filtered as `slow`, (joints, 4).
        dry: Dry friction of the model, filtered as `slow`, Nm.
        slow_speed: Speed, filtered as `slow`, rad/s.
        anchor: Position near which a joint stays, rad.
        resting: Time near the anchor, s.
        at_rest: Whether the joint is at rest.
        settled: Time since a rest began or ended, s.
        travel: Distance since the joint left its rest or reversed, rad.
        direction: Last speed above `REST_SPEED`, rad/s.
        grip: Share of the torque held at rest that remains while the joint breaks away, 0 to 1.
        slow_grip: The same, filtered as `slow`.
        loose_fast: Bound of the unknown part of dry friction, filtered as `fast`, Nm.
        loose_slow: The same, filtered as `slow`.
        mean_fast: Standard deviation of the fast residual, filtered like it, Nm.
        mean_slow: The same of the slow residual.
        scale: Usual size of the slow residual in motion, relative to its standard deviation.
        followed: Slow residual of about the last second, Nm.
        usual: Usual mean square of its changes, Nm².
        calm_load: Load torque when it last changed noticeably, Nm.
        slow_load: Load torque, low-pass filtered like the slow residual, Nm.
        followed_load: The same of about the last second, Nm.
        over: Samples in a row above the limit of the fast residual.
        above: Time above the limit of the slow residual at rest, s.
        same_q: Time without any change of the position while the joint moves, s.
        same_output: The same of the output.
        same_qd: Time without any change of the speed, s.
        apart: Path of the positions in that time minus that of the speed, rad.
        highest: Largest absolute output so far.
        observer: Last two values of the momentum observer, newest first, Nm.
        level: Size of sudden changes in the last `LEVEL_TIME`, relative to the usual one.
        rested: Whether the joint was at rest one sample before.
        steady: Samples since that changed.

    """

    def __init__(self, joints: int) -> None:
        """Start with zeros."""
        zeros = np.zeros(joints)
        no: Mask = np.zeros(joints, dtype=bool)
        self.position = self.speed = self.path = self.acceleration = zeros
        self.mean_torque = self.base_torque = self.shock = self.jump = zeros
        self.fast = self.net = self.direct = self.slow = self.expected = self.dry = self.slow_speed = zeros
        self.columns = np.zeros((joints, MOMENTS))
        self.anchor = self.resting = self.settled = self.travel = self.direction = zeros
        self.at_rest = self.rested = no
        self.grip = self.slow_grip = self.loose_fast = self.loose_slow = zeros
        self.mean_fast = self.mean_slow = self.scale = self.followed = self.usual = self.calm_load = zeros
        self.slow_load = self.followed_load = zeros
        self.over = self.above = self.same_q = self.same_output = self.highest = self.same_qd = self.apart = zeros
        self.observer = [zeros, zeros]
        self.level = self.steady = zeros


@dataclass
class WatchMemory:
    """Memory of the monitor; see `jw_watch_state`.

    Attributes:
        joints: What is remembered of every joint.
        x: Unknowns of the Kalman filter: payload (mass kg, first moments kg m), then those of every joint.
        P: Their covariance.
        friction: State of the friction of the model.
        started: Whether a sample came.
        fresh: Whether the signals begin with the next sample.
        origin: First stamp, s.
        stamp: Last stamp less the first, s.
        grid: Next time of the uniform clock less the first stamp, s.
        backwards: Falling stamps in a row.
        last: The last sample.
        delayed: Motor torques of the last samples, newest first, Nm.
        late: Positions (rad) and torques (Nm) with the filter of speeds that are differences of positions.
        contact: Whether there is a contact.
        lasted: Its duration, s.
        quiet: Time since it fell, s.
        peak: Its largest ratio.
        calm: Time since a load changed or a joint reversed or left its rest, s.
        age: Time since the signals began, s.
        still: Time for which the whole arm has been at rest, s.
        moved: Time since a start, a stop or a hard shock, s.
        rising: Time for which the changes of all joints are above their limit, s.
        highest_rise: Largest change during a contact.
        changes: Squared sudden changes of the momentum observer over all joints, newest first.
        since: Samples since the last update of the filter.
        adopted: Contacts that lasted so long that they were taken as the new state.
        counts: Samples by `VERDICTS`.
        report: Columns of `Reports` at the last sample.

    """

    joints: JointMemory
    x: Array
    P: Array
    friction: Any = None
    started: bool = False
    fresh: bool = True
    origin: float = 0.0
    stamp: float = 0.0
    grid: float = 0.0
    backwards: int = 0
    last: Measured | None = None
    delayed: list[Array] = field(default_factory=list)
    late: tuple[Array, ...] = ()
    contact: bool = False
    lasted: float = 0.0
    quiet: float = 0.0
    peak: float = 0.0
    calm: float = 0.0
    age: float = 0.0
    still: float = 0.0
    moved: float = 0.0
    rising: float = 0.0
    highest_rise: float = 0.0
    changes: list[float] = field(default_factory=list)
    since: int = 0
    adopted: int = 0
    counts: Array = field(default_factory=lambda: np.zeros(len(VERDICTS)))
    report: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def empty(cls, joints: int) -> WatchMemory:
        """Return the memory before the first sample; the covariance is zero."""
        count = MOMENTS + SHARES * joints
        report: dict[str, Any] = {name: np.zeros(joints) for name in COLUMNS}
        report |= {"contact": 0.0, "joint": 0.0, "verdict": 0.0, "change": 0.0}
        return cls(JointMemory(joints), np.zeros(count), np.zeros((count, count)), report=report)

    def forget(self, k: int, variance: float) -> None:
        """Forget unknown k: zero, uncorrelated with the others, with this variance."""
        self.P[k, :] = 0.0
        self.P[:, k] = 0.0
        self.P[k, k] = variance
        self.x[k] = 0.0


@dataclass(frozen=True)
class Moment:
    """What is computed at one time of the clock and not remembered; torques (joints,) in Nm.

    Attributes:
        columns: Torques of unit mass and unit first moments of a payload, (joints, 4).
        dry: Dry friction of the model.
        net: Torque less that of the model without inertia.
        momentum: ``M(q) Δq̇/T``.
        inertia: ``M(q) q̈``.
        load: Torque of the bodies.

    """

    columns: Array
    dry: Array
    net: Array
    momentum: Array
    inertia: Array
    load: Array


@dataclass(frozen=True)
class JointsAt:
    """Signals of the motors at one time of the clock, in coordinates of the joints, (joints,) each.

    Attributes:
        q: Positions, rad.
        qd: Speeds, rad/s.
        sliding: Speeds that friction acts on, 0 at rest, rad/s.
        qdd: Low-pass filtered accelerations, rad/s².
        path: Positions that deform friction, rad.
    """

    q: Array
    qd: Array
    sliding: Array
    qdd: Array
    path: Array


def index_of(joint: int, unknown: int) -> int:
    """Return the index in x of an unknown of a joint (`DRY`, `VISCOUS`, `HELD`)."""
    return MOMENTS + SHARES * joint + unknown


def share_of(period: float, time: float) -> float:
    """Return the share of a new value in a first-order filter, ``1 - exp(-T / time)``."""
    return float(1.0 - np.exp(-period / time))
