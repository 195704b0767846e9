"""The signals of one joint in a log, on a uniform clock: what every method of this package starts from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked
from jointwise.data.conditioning import UniformSpan, clean_log, condition
from jointwise.data.coordinates import model_log, mounting_of_logs
from jointwise.data.filters import differences, low_pass
from jointwise.data.log import Log, check_joints, log_list
from jointwise.data.overlap import refuse_repeated_samples
from jointwise.data.quality import DataQuality, check_quality
from jointwise.data.statistics import TOP, quantum
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot, check_joint
from jointwise.errors import DataError, EstimationError, check_positive
from jointwise.finding import Finding
from jointwise.model.rigid import gravity_torque
from jointwise.model.rigid.chain import Chain, kernels, make_chain, refuse_non_finite
from jointwise.model.transmission import motor_motion, motor_torque, motor_values
from jointwise.spatial import Array

CUTOFF = 20.0
"""Usual cut-off (Hz) of positions before they are differentiated."""
SHORTEST = 0.5
"""Segments between gaps that are shorter than this (s) are ignored."""
MIN_TRAVEL = 0.05
"""Range of motion (rad) below which a joint counts as standing: a gear winds up by less than a tenth of it."""
SLIDING_SHARE = 0.02
"""Fraction of the top speed below which the noise of a single sample may change the sign of the speed."""
RATE_TOLERANCE = 0.01
"""Largest relative difference of the rates of logs that are joined."""

LoadModel = Callable[[Array, Array, Array], Array]
"""From q, q̇, q̈ of the joints (samples, joints) to the torque (samples, joints), Nm, that the links require of the
motors: that at the joints unless a transmission couples them."""


@dataclass(frozen=True, eq=False)
class JointRecord:
    """One joint along one or more logs; arrays are (samples,), SI units at the joint side, °C.

    Where a transmission couples motors and joints it is one motor: its position is that of the links at the motor, C q.

    Attributes:
        robot: Name of the robot.
        joint: Index of the joint, from 0.
        logs: Files.
        rate: Sampling rate in Hz, the same throughout.
        unit: Unit of `motor`: "Nm", or "A" without a gain.
        gain: Drive gain in Nm/A; 1 if none is known.
        inertia: Inertia B of the rotor at the joint side, kg m²; 0 if not described.
        t: Time stamps.
        segment: Number of the gap-free segment.
        q, qd, qdd: Motion of the link, smoothed without lag.
        position, speed, acceleration: Motion of the side on which friction acts: the rotor where it was measured
            (`theta`), else the link.
        path: That position without overshoot, which drives hysteresis.
        motor: Gain times current, or the measured torque where there is no current.
        load: Torque that the links require, Nm.
        phi: Twist θ - q, not smoothed; None without `theta`.
        theta: Position of the rotor, not smoothed; None if not measured.
        temperature: Temperature; None if not measured.
        gauge: External torque measured at the output, Nm; None if not measured.
        has_current: Whether `motor` comes from a current.
        target_current: Target of the current, A; None if not logged.
        cutoff: Cut-off frequency of the smoothing, Hz.
        pull: Load per 1 m/s² of gravity along each base axis, (samples, 3); None where the load does not come from the
            described bodies.
        gravity: Gravity of the load, (3,) m/s²; None as `pull`.
        resolution: Step (rad) in which `theta`, or else `q`, was recorded; 0 where none is visible.
    """

    robot: str
    joint: int
    logs: tuple[str, ...]
    rate: float
    unit: str
    gain: float
    inertia: float
    t: Array
    segment: NDArray[np.intp]
    q: Array
    qd: Array
    qdd: Array
    position: Array
    speed: Array
    acceleration: Array
    path: Array
    motor: Array
    load: Array
    phi: Array | None = None
    theta: Array | None = None
    temperature: Array | None = None
    gauge: Array | None = None
    has_current: bool = True
    target_current: Array | None = None
    cutoff: float = CUTOFF
    pull: Array | None = None
    gravity: tuple[float, ...] | None = None
    resolution: float = 0.0

    def __repr__(self) -> str:
        """Return robot, joint (0-based), size and logs in one line."""
        size = f"{self.samples} samples at {self.rate:g} Hz"
        return f"JointRecord({self.robot!r}, joint={self.joint}, {size}, logs {', '.join(map(repr, self.logs))})"

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.t)

    @property
    def friction(self) -> Array:
        """``f = motor - B θ̈ - load``: what is left for friction, in Nm; refused where no gain is known."""
        if self.unit != "Nm":
            raise EstimationError(
                f"{self.place}: no drive gain is known. Give it (--gain, Nm/A), or identify it first: 'jointwise joint "
                "motor' with the same robot, joint and output file."
            )
        return self.motor - self.inertia * self.acceleration - self.load

    @property
    def without_masses(self) -> bool:
        """Whether gravity along no axis loads the joint: the description has no masses, and `load` is zero."""
        return self.pull is not None and not self.pull.any()

    @property
    def place(self) -> str:
        """Where this is, for a message."""
        return f"{', '.join(self.logs)}: joint {self.joint + 1}"

    @property
    def top_speed(self) -> float:
        """Top speed of the side on which friction acts without outliers, rad/s."""
        return float(np.quantile(np.abs(self.speed), TOP))

    @property
    def is_sliding(self) -> NDArray[np.bool_]:
        """Flags of the samples (samples,) whose direction of motion is certain."""
        return np.abs(self.speed) > SLIDING_SHARE * self.top_speed

    def take(self, which: NDArray[Any]) -> JointRecord:
        """Return some samples (a mask or indices) as a record."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        picked = {k: v[which] if isinstance(v, np.ndarray) else v for k, v in arrays.items()}
        return JointRecord(**picked)

    def with_gain(self, gain: float) -> JointRecord:
        """Return the record with another drive gain, Nm/A."""
        return replace(self, motor=self.motor / self.gain * gain, gain=gain, unit="Nm")


@checked
def joint_record(
    logs: Log | Sequence[Log],
    robot: Robot,
    joint: int,
    *,
    mounting: Mounting | None = None,
    payload: Payload | None = None,
    gain: float | None = None,
    cutoff: float = CUTOFF,
    load: LoadModel | None = None,
    inertia: float | None = None,
) -> JointRecord:
    """Return the signals of one joint in one or more logs of a robot.

    Args:
        logs: One log, or several of the same rate.
        robot: The robot.
        joint: Index of the joint, from 0.
        mounting: Mounting of the base, or gravity in the base frame, m/s²; by default as the logs state, else "table".
        payload: Payload carried in the logs.
        gain: Drive gain, Nm/A; by default that of the robot description.
        cutoff: Cut-off frequency (Hz) of the smoothing of positions.
        load: Load model (see `LoadModel`); by default the described bodies with the payload.
        inertia: Inertia of the rotor at the joint side, kg m²; by default that of the robot description.

    Returns:
        The signals on a uniform clock, in gap-free segments.

    Raises:
        DataError: If a log is in wrong units or has damaged channels.
        ModelError: If the joint does not exist.
        EstimationError: If no segment is long enough.
    """
    recordings = [model_log(log, robot) for log in log_list(logs)]
    check_joint(robot, joint)
    check_positive("Hz", cutoff=cutoff)
    refuse_repeated_samples(recordings)
    if load is None:
        load = LinkLoad(robot, gravity_vector(mounting_of_logs(recordings, mounting)), payload)
    described = robot.joints[joint].motor.reflected_inertia or 0.0
    setting = _Setting(robot, joint, gain, cutoff, load, described if inertia is None else inertia)
    records = [record for log in recordings for record in setting.records(log)]
    if not records:
        raise EstimationError(f"joint {joint + 1}: no segment of {SHORTEST:g} s without a gap in the logs.")
    return join_records(records)


@checked
def join_records(pieces: Sequence[JointRecord]) -> JointRecord:
    """Return records of the same joint as one, with segments renumbered; signals that one of them lacks are omitted."""
    if not pieces:
        raise EstimationError("pieces must have at least one record. Got none.")
    for a, b in pairwise(pieces):
        if abs(a.rate - b.rate) > RATE_TOLERANCE * a.rate or a.unit != b.unit:
            raise EstimationError(f"{b.place}: rate or unit differ from those of {', '.join(a.logs)}.")
    joined = {item.name: _joined([getattr(piece, item.name) for piece in pieces]) for item in fields(JointRecord)}
    joined["segment"] = _renumbered([piece.segment for piece in pieces])
    joined["resolution"] = max(piece.resolution for piece in pieces)
    joined["logs"] = tuple(dict.fromkeys(name for piece in pieces for name in piece.logs))
    return JointRecord(**joined)


def _joined(values: list[Any]) -> Any:
    """Return signals one after the other, None if one is missing; of other values the first."""
    if not any(isinstance(value, np.ndarray) for value in values):
        return values[0]
    return None if any(value is None for value in values) else np.concatenate(values)


def _renumbered(segments: list[NDArray[np.intp]]) -> NDArray[np.intp]:
    """Return the numbers of segments of several records, each continued from the last."""
    offset, parts = 0, []
    for numbers in segments:
        parts.append(numbers - numbers.min() + offset)
        offset = int(parts[-1].max()) + 1
    return np.concatenate(parts)


@dataclass(frozen=True)
class LinkLoad:
    """The load by the described bodies and a payload.

    Attributes:
        robot: The robot.
        gravity: Gravity in the base frame, (3,), m/s².
        payload: Payload at the tool; None for none.
    """

    robot: Robot
    gravity: Array
    payload: Payload | None

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return the torque at the motors (samples, joints), Nm; see `LoadModel`."""
        q, qd, qdd = (np.ascontiguousarray(values, dtype=np.float64) for values in (q, qd, qdd))
        torque = np.empty_like(q)
        if not kernels().inverse_dynamics(self._chain, q, qd, qdd, torque):
            refuse_non_finite(q=q, qd=qd, qdd=qdd)
        return motor_torque(self.robot, torque)

    @cached_property
    def _chain(self) -> Chain:
        """The numbers of the kernels, made once: online estimators call sample by sample."""
        return make_chain(self.robot, self.gravity, self.payload)

    def pull(self, q: Array, joint: int) -> Array:
        """Return the torque (samples, 3) of a motor, Nm, under 1 m/s² along each axis of the base."""
        axes = [gravity_torque(self.robot, q, gravity=axis, payload=self.payload) for axis in np.eye(3)]
        return np.column_stack([motor_torque(self.robot, torque)[:, joint] for torque in axes])


@dataclass(frozen=True)
class _Setting:
    """What turns a span of a log into a record: see the arguments of `joint_record`."""

    robot: Robot
    joint: int
    gain: float | None
    cutoff: float
    load: LoadModel
    inertia: float

    def records(self, log: Log) -> list[JointRecord]:
        """Return one record for every gap-free segment of a log."""
        check_joints(log, self.robot)
        if log.current is None and log.torque is None:
            raise DataError(f"{log.origin.path}: neither current (i1..) nor torque (tau1..) found: log one of them.")
        _refuse_disorder(log, self.joint)
        refuse_faulty(log, self.robot, self.joint)
        plain = log.without(("qd",) if log.qd is not None else ())  # no method here uses the measured speed
        return [self._record(span) for span in clean_log(plain).spans(log.clock.uniform_rate, SHORTEST)]

    def _record(self, span: UniformSpan) -> JointRecord:
        log, joint = span.log, self.joint
        at_joints = condition(span, self.cutoff)
        motion = at_joints if self.robot.transmission is None else motor_motion(self.robot, at_joints)
        raw, theta = span.resampled(motor_values(self.robot, log.q)[:, joint]), _of_joint(span, log.theta, joint)
        path = at_joints.rotor if at_joints.rotor is not None else motion.path
        assert path is not None
        position = motion.q[:, joint] if theta is None else low_pass(theta, self.cutoff, span.rate)
        speed, acceleration = differences(position, span.rate)
        motor, unit, gain = self._motor(span)
        pull, gravity = self._gravity(at_joints.q)
        return JointRecord(
            robot=self.robot.name,
            joint=joint,
            logs=(log.origin.path,),
            rate=span.rate,
            unit=unit,
            gain=gain,
            inertia=self.inertia,
            t=span.times,
            segment=np.zeros(len(span.times), dtype=np.intp),
            q=motion.q[:, joint],
            qd=motion.qd[:, joint],
            qdd=motion.qdd[:, joint],
            position=position,
            speed=speed,
            acceleration=acceleration,
            path=path[:, joint],
            motor=motor,
            load=self.load(at_joints.q, at_joints.qd, at_joints.qdd)[:, joint],
            phi=None if theta is None else theta - raw,
            theta=theta,
            temperature=_column(motion.temperature, joint),
            gauge=_of_joint(span, log.torque, joint) if log.current is not None else None,
            has_current=log.current is not None,
            target_current=_of_joint(span, log.current_des, joint),
            cutoff=self.cutoff,
            pull=pull,
            gravity=gravity,
            resolution=float(quantum((log.q if log.theta is None else log.theta)[:, [joint]])[0]),
        )

    def _gravity(self, q: Array) -> tuple[Array | None, tuple[float, ...] | None]:
        """Return the load per 1 m/s² along each base axis at positions (samples, joints), and the gravity, m/s²."""
        if not isinstance(self.load, LinkLoad):
            return None, None
        return self.load.pull(q, self.joint), tuple(map(float, self.load.gravity))

    def _motor(self, span: UniformSpan) -> tuple[Array, str, float]:
        """Return the motor torque (or current, where no gain is known), its unit and the gain."""
        current = _of_joint(span, span.log.current, self.joint)
        if current is None:
            return span.resampled(span.log.channel("torque")[:, self.joint]), "Nm", 1.0
        known = self.robot.joints[self.joint].motor.joint_gain if self.gain is None else self.gain
        return (current, "A", 1.0) if not known else (known * current, "Nm", float(known))


def _of_joint(span: UniformSpan, channel: Array | None, joint: int) -> Array | None:
    """Return a channel of a joint on the uniform clock, None where the log does not have it."""
    column = _column(channel, joint)
    return None if column is None else span.resampled(column)


def _column(values: Array | None, joint: int) -> Array | None:
    return None if values is None else values[:, joint]


def _refuse_disorder(log: Log, joint: int) -> None:
    """Refuse positions that jump about: from sample to sample by as much as they vary at all."""
    position = (log.q if log.theta is None else log.theta)[:, joint]
    if np.ptp(position) > MIN_TRAVEL and np.diff(position).std() > 0.5 * position.std():
        raise DataError(
            f"{log.origin.path}: joint {joint + 1}: positions jump from sample to sample by as much as they vary; "
            "the rows must be in the order of time."
        )


# -- rejection of faulty logs --


def refuse_faulty(log: Log, robot: Robot, joint: int | None = None) -> None:
    """Raise `DataError` for an error of the inspection that concerns a joint (0-based), or any joint if None.

    Time stamps and positions of every joint count, as the load of one joint depends on them. A joint at rest is no
    error here: the output may be locked.
    """
    inspection = check_quality(log, robot)
    for finding in inspection.findings:
        if finding.severity == "error" and _concerns(finding, inspection, joint):
            raise DataError(f"{log.origin.path}: {finding.sentence}")


def _concerns(finding: Finding, inspection: DataQuality, joint: int | None) -> bool:
    """Return whether a finding matters for a joint; the wind-up of a gear moves a rotor against a standing link."""
    if finding.code == "no-motion":
        return False
    if finding.code == "theta-side" and inspection.numbers.travel[finding.joint or 0] < MIN_TRAVEL:
        return False
    return joint is None or finding.joint in (None, joint) or finding.channel == "q"
