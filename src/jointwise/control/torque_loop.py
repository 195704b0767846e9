"""Joint torque feedback: a torque loop and a friction observer on top of feed-forward and motion feedback.

    τ_r = τ_ff + K_T (τ_J,d - τ̂_J) + f̂ + τ_err

τ_ff and τ_err are the torque along the reference and the motion feedback of computed torque; τ_J,d is the torque that
the links require along the reference, τ̂_J the measured one: from the link model at the measured motion, from the
deflection and from the motor side, fused by their inverse variances. f̂ is what the friction observer finds beyond the
friction of the feed-forward. The torque loop makes the rotor appear lighter, ``B / (1 + K_T)``; the observer removes
changed friction below its bandwidth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from jointwise.arguments import checked
from jointwise.backend import native
from jointwise.control.computed_torque import computed_torque
from jointwise.control.controller import AffineController, ControlSample, ControlState
from jointwise.control.gains import Gains, rotor_inertias
from jointwise.control.joint_drive import JointDrive
from jointwise.control.links import FeedbackOptions, Links, Task, friction_torques, make_task
from jointwise.description.robot import Robot
from jointwise.errors import ModelError, ShapeError
from jointwise.model.spring import can_pack, packed_spring
from jointwise.runtime.observers import ObserverState, TorqueObserver, fuse
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel

TORQUE_GAIN = 1.0
"""K_T: the rotor appears half as heavy."""
FRICTION_BANDWIDTH = 60.0
"""Bandwidth (rad/s) of the friction observer: above the motion of an arm, below its elastic modes."""
ACCELERATION_BANDWIDTH = 120.0
"""Bandwidth (rad/s) of differentiated speeds, which encoders quantise."""
GEAR_ERROR = 3e-4
"""Kinematic error and lost motion (rad) that are part of a measured deflection."""
FRICTION_ERROR = 0.3
"""Usual error of a friction model relative to the friction: temperature and wear."""
ACCELERATION_ERROR = 0.5
"""Error of a differentiated and filtered speed, rad/s²."""
LOAD_ERROR = 0.02
"""Error of the masses of the links relative to the load."""
MOST_FRICTION = 0.5
"""Largest f̂ as a share of the torque limit of a drive: an observer must not saturate the motor."""


class FeedbackState(NamedTuple):
    """Memory of the controller between periods.

    Attributes:
        period: Control period to come.
        rows: Numbers of the joints, (7, joints): integral ∫ (q - q_d) dt (rad s), last commanded torque (Nm), speed
            (rad/s) and filtered acceleration (rad/s²) of the links, those of the rotors, and f̂ of the friction
            observer (Nm).
        dropped: Number of samples with a value that was not finite.
    """

    period: int
    rows: Array
    dropped: int = 0

    @property
    def torque(self) -> Array:
        """Last commanded torque (joints,), Nm."""
        row: Array = self.rows[1]
        return row


class TransmissionTorque(NamedTuple):
    """Torque of the transmissions, Nm.

    Attributes:
        fused: From all sides, (joints,).
        without_motor: From link side and deflection, (joints,).
        sides: From link model, deflection and motor side, (joints, 3); NaN where one is missing.
    """

    fused: Array
    without_motor: Array
    sides: Array


@dataclass(frozen=True, eq=False)
class TorqueFeedback:
    """The controller; see the module and `torque_feedback`, which makes it.

    Attributes:
        motion: Feed-forward and motion feedback.
        arm: Links as mounted and loaded.
        drives: One drive a joint.
        load: τ_J,d (periods, joints), Nm.
        friction: Friction of the feed-forward (periods, joints), Nm.
        torque_gain: K_T.
        observer: Friction observer; None for none.
        variances: Variances of link side, deflection and motor side (joints, 3), Nm².
        link_share: Share s of the friction that acts at the links.

    """

    motion: AffineController
    arm: Links
    drives: tuple[JointDrive, ...]
    load: Array
    friction: Array
    torque_gain: float
    observer: TorqueObserver | None
    variances: Array
    link_share: float = 0.0

    @property
    def rate(self) -> float:
        """Control rate, Hz."""
        return self.motion.rate

    @property
    def periods(self) -> int:
        """Control periods that the reference lasts."""
        return self.motion.periods

    def init(self, sample: ControlSample) -> FeedbackState:
        """Return the memory at the start of the reference."""
        none, at = np.zeros(len(self.drives)), self.arm.sample(sample)
        hold = self.arm.weight(at.q[None])[0]
        return FeedbackState(0, np.array([none, hold, at.qd, none, at.speed, none, none]))

    @cached_property
    def _packed(self) -> tuple[Array, Array] | None:
        """Drives and options as the native kernel takes them; None where NumPy does the same."""
        if self.arm.core is None or not all(can_pack(drive.spring) for drive in self.drives):
            return None
        drives = [
            (*packed_spring(drive.spring), drive.damping, drive.inertia, drive.limit, MOST_FRICTION * drive.limit, *v)
            for drive, v in zip(self.drives, self.variances.tolist(), strict=True)
        ]
        decay = 1.0 if self.observer is None else self.observer.decay
        return np.array(drives), np.array([self.torque_gain, self.link_share, self._keep, decay])

    def step(self, state: FeedbackState, sample: ControlSample) -> tuple[Array, FeedbackState]:
        """Return the torque (joints,), Nm, of this period and the memory for the next.

        What is measured and not finite is not fed back.
        """
        k, packed, kernel = state.period, self._packed, native()
        if k >= self.periods:
            raise ModelError(f"the reference lasts {self.periods} periods. Give it a longer duration.")
        if packed is None or kernel is None:
            return self._numpy_step(state, sample)
        rows, torque = state.rows.copy(), np.empty(len(self.drives))
        used = kernel.torque_loop_step(
            self.arm.core, self.motion.packed, k, self.periods, self.rate, sample.arrays[:4], self.load, self.friction,
            *packed, rows, torque,
        )  # fmt: skip
        return torque, FeedbackState(k + 1, rows, state.dropped + (not used))

    def _numpy_step(self, state: FeedbackState, sample: ControlSample) -> tuple[Array, FeedbackState]:
        k, (integral, before, link, qdd, rotor, acceleration, f) = state.period, state.rows
        torque, motion = self.motion.step(ControlState(k, integral), sample)
        sample = self.arm.sample(sample)
        links, rotors = self._accelerated(link, qdd, sample.qd), self._accelerated(rotor, acceleration, sample.speed)
        measured = self.transmission(state, sample, links[1], rotors[1])
        observed = ObserverState(f, rotor, state.dropped)
        if self.observer is not None:
            known = measured.without_motor + (1.0 - self.link_share) * self.friction[k]
            extra, observed = self.observer.step(observed, before, known, sample.speed)
            torque = torque + np.clip(extra, -self._most, self._most)
        torque = torque + self.torque_gain * (self.load[k] - measured.fused)
        torque = np.clip(torque, -self._limits, self._limits)
        rows = np.array([motion.integral, torque, *links, *rotors, observed.torque])
        return torque, FeedbackState(k + 1, rows, observed.dropped)

    def transmission(self, state: FeedbackState, sample: ControlSample, qdd: Array, rotor: Array) -> TransmissionTorque:
        """Return the torque of the transmissions at a sample with accelerations of links and rotors, rad/s²."""
        f, speed = self.friction[state.period], np.where(np.isfinite(sample.qd), sample.qd, state.rows[2])
        q = np.where(np.isfinite(sample.q), sample.q, math.nan)
        link = self.arm.sample_torque(q[None], speed[None], qdd[None])[0] + self.link_share * f
        motor = state.torque - rotor_inertias(self.drives) * rotor - (1.0 - self.link_share) * f
        sides = np.stack([link, self._deflection(sample), motor], axis=1)
        without_motor, _ = fuse(sides[:, :2], self.variances[:, :2])
        return TransmissionTorque(fuse(sides, self.variances)[0], without_motor, sides)

    def _deflection(self, sample: ControlSample) -> Array:
        """Return ``τ_E(φ) + D φ̇`` (joints,), Nm; NaN without a spring, or of values that are not finite."""
        phi, rate = sample.theta - sample.q, sample.speed - sample.qd
        phi = np.where(np.isfinite(phi), phi, math.nan)
        torques = [
            math.nan if drive.spring is None else float(drive.spring.torque(x)) + drive.damping * float(v)
            for drive, x, v in zip(self.drives, phi, rate, strict=True)
        ]
        return np.array(torques)

    @property
    def _keep(self) -> float:
        """Share of a filtered acceleration that remains after a period."""
        return math.exp(-ACCELERATION_BANDWIDTH / self.rate)

    def _accelerated(self, before: Array, acceleration: Array, measured: Array) -> tuple[Array, Array]:
        """Return a speed, the one before where it is not finite, and its filtered derivative."""
        speed = np.where(np.isfinite(measured), measured, before)
        return speed, self._keep * acceleration + (1.0 - self._keep) * (speed - before) * self.rate

    @property
    def _limits(self) -> Array:
        return np.array([drive.limit for drive in self.drives])

    @property
    def _most(self) -> Array:
        return MOST_FRICTION * self._limits


@checked
def torque_feedback(
    robot: Robot | RobotModel,
    motion: Any,
    rate: float = 1000.0,
    *,
    friction: Array | None = None,
    torque_gain: float = TORQUE_GAIN,
    friction_bandwidth: float | None = FRICTION_BANDWIDTH,
    link_share: float = 0.0,
    variances: Array | None = None,
    **options: Unpack[FeedbackOptions],
) -> TorqueFeedback:
    """Return computed torque with a joint torque loop and a friction observer.

    Args:
        robot: The robot, described or calibrated.
        motion: The motion to follow.
        rate: Control rate, Hz.
        friction: Friction of the feed-forward (periods, joints), Nm; by default the steady friction of the drives.
        torque_gain: K_T >= 0; 0 for no torque loop.
        friction_bandwidth: Bandwidth of the friction observer, rad/s; None for none.
        link_share: Share of the friction that acts at the links.
        variances: Variances of link side, deflection and motor side (joints, 3), Nm²; by default from the usual errors
            of masses, gears and friction.
        options: Gains of the motion feedback, drives (without springs no deflection is used), mounting, payload and
            duration; see `FeedbackOptions`.

    Raises:
        ModelError: A setting is outside its range, or the motion does not fit the robot.

    """
    if not (math.isfinite(torque_gain) and torque_gain >= 0.0):
        raise ModelError(f"torque_gain must be finite and >= 0. Got {torque_gain} instead.")
    if not 0.0 <= link_share <= 1.0:
        raise ModelError(f"link_share must be in [0, 1]. Got {link_share} instead.")
    task = make_task(robot, motion, rate, **options)
    arm, reference = task.links, task.reference
    f = friction_torques(task.drives, task.ahead.qd) if friction is None else np.asarray(friction, dtype=np.float64)
    options["gains"] = _scaled(task.gains(), task, torque_gain)
    base = computed_torque(robot, motion, rate, friction=f, **options)
    loads = arm.torque(reference.q, reference.qd, reference.qdd)
    observer = None
    if friction_bandwidth is not None:
        observer = TorqueObserver(rotor_inertias(task.drives), friction_bandwidth, rate)
    return TorqueFeedback(
        motion=base,
        arm=arm,
        drives=task.drives,
        load=loads + link_share * f,
        friction=f,
        torque_gain=torque_gain,
        observer=observer,
        variances=_usual_variances(task, loads, f) if variances is None else _checked(variances, len(task.drives)),
        link_share=link_share,
    )


def _usual_variances(task: Task, loads: Array, friction: Array) -> Array:
    """Return variances of the three sides (joints, 3), Nm², from usual errors along the motion."""
    stiffness = [0.0 if drive.spring is None else float(drive.spring.stiffness(np.zeros(()))) for drive in task.drives]
    size = np.sqrt(np.mean(np.square(loads), axis=0))
    link = np.square(ACCELERATION_ERROR * task.inertias) + np.square(LOAD_ERROR * size)
    motor = np.square(FRICTION_ERROR) * np.mean(np.square(friction), axis=0)
    rotor = np.square(ACCELERATION_ERROR * rotor_inertias(task.drives))
    floor = np.square(1e-3) * np.maximum(link + motor + rotor, 1.0)
    return np.stack([link + floor, np.square(GEAR_ERROR * np.array(stiffness)) + floor, motor + rotor + floor], axis=1)


def _checked(variances: Array, joints: int) -> Array:
    values = np.asarray(variances, dtype=np.float64)
    if values.shape != (joints, 3) or not (np.isfinite(values) & (values > 0.0)).all():
        raise ShapeError(f"variances must be ({joints}, 3) numbers > 0. Got shape {values.shape} instead.")
    return values


def _scaled(gains: Gains, task: Task, torque_gain: float) -> Gains:
    """Return motion gains for the inertia under the torque loop: ``((1 + K_T) M + B) / (M + B)`` times as large."""
    links, rotors = task.inertias, rotor_inertias(task.drives)
    factor = ((1.0 + torque_gain) * links + rotors) / (links + rotors)
    return Gains(factor * gains.kp, factor * gains.kd, factor * gains.ki)
