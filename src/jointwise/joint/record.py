"""The signals of one joint in a log, on a uniform clock: what every method of this package starts from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.data.clock import repair_clock
from jointwise.data.conditioning import ROTOR_CUTOFF, resample, uniform_times
from jointwise.data.filters import differences, low_pass, monotone_low_pass
from jointwise.data.gravity import mounting_of_logs
from jointwise.data.log import Log
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.payload import Payload
from jointwise.description.robot import Robot
from jointwise.errors import DataError, EstimationError
from jointwise.joint.doctor import refuse_faulty
from jointwise.model.rigid import gravity_torque, inverse_dynamics
from jointwise.spatial import Array

CUTOFF = 20.0
"""Usual cut-off (Hz) of positions before they are differentiated."""
SHORTEST = 0.5
"""Stretches between gaps shorter than this (s) are left out."""
LEAST_SPREAD = 0.01
"""Deviation (rad) of positions below which their order is not judged."""

LoadModel = Callable[[Array, Array, Array], Array]
"""From q, q̇, q̈ (samples, joints) to the torque (samples, joints), Nm, that the links ask of the joints."""


@dataclass(frozen=True, eq=False)
class JointRecord:
    """One joint (0-based) along one or more logs; arrays are (samples,), SI units at the joint side, °C.

    `t` and `stretch`: stamps and the number of the gap-free stretch; `rate` in Hz, the same throughout. `q`, `qd`,
    `qdd` of the link, smoothed without lag. `position`, `speed`, `acceleration` of the side that rubs: the rotor where
    it was measured (`theta`), else the link. `path` is that position smoothed without swinging past a stop: it drives
    hysteresis. `phi` = θ - q raw, None without `theta`. `motor`: gain · current, or the measured torque where there is
    no current (then `has_current` is false), in `unit` (Nm, or A where no gain is known: then `gain` is 1). `gauge`: an
    external torque measured at the output, None where there is none. `load`: what the links ask of the joint, Nm.
    `inertia` B of the rotor at the joint side, kg m² (0 where not described). `temperature` or None.
    `cutoff` (Hz) of the smoothing; `asked`: the target of the current, A, or None.
    `pull` (samples, 3): the load, Nm, that 1 m/s² along each axis of the base brings, and `gravity` (3,), m/s², the one
    that `load` counts with; None where the load does not come from the described bodies.
    """

    robot: str
    joint: int
    logs: tuple[str, ...]
    rate: float
    unit: str
    gain: float
    inertia: float
    t: Array
    stretch: NDArray[np.intp]
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
    asked: Array | None = None
    cutoff: float = CUTOFF
    pull: Array | None = None
    gravity: tuple[float, ...] | None = None

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
        result: Array = self.motor - self.inertia * self.acceleration - self.load
        return result

    @property
    def place(self) -> str:
        """Where this is, for a message."""
        return f"{', '.join(self.logs)}: joint {self.joint + 1}"

    def take(self, which: NDArray[Any]) -> JointRecord:
        """Return some samples (a mask or indices) as a record."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        picked = {k: v[which] if isinstance(v, np.ndarray) else v for k, v in arrays.items()}
        return JointRecord(**picked)

    def with_gain(self, gain: float) -> JointRecord:
        """Return the record with another drive gain, Nm/A."""
        return replace(self, motor=self.motor / self.gain * gain, gain=gain, unit="Nm")

    def stretches(self) -> list[JointRecord]:
        """Return the gap-free stretches."""
        return [self.take(self.stretch == k) for k in np.unique(self.stretch)]


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
    """Return the signals of a joint (0-based) of one or more logs of a robot.

    `gain` (Nm/A) and `inertia` (kg m², of the rotor at the joint side) are the described ones unless given. `load`
    tells what the links ask of the joints; without it the described bodies, the `mounting` (unless given: the one that
    the logs tell, else the table) and the `payload` do. Logs in wrong units or with damaged channels are refused.
    """
    recordings = [logs] if isinstance(logs, Log) else list(logs)
    if not 0 <= joint < robot.dof:
        raise EstimationError(f"joint must be 1 to {robot.dof}. Got {joint + 1} instead.")
    bodies = (
        None if load is not None else Bodies(robot, gravity_vector(mounting_of_logs(recordings, mounting)), payload)
    )
    asked = load or bodies
    assert asked is not None
    pieces = [piece for log in recordings for piece in _pieces(log, robot, joint, gain, cutoff, asked, inertia)]
    if not pieces:
        raise EstimationError(f"joint {joint + 1}: no stretch of {SHORTEST:g} s without a gap in the logs.")
    return join_records(pieces)


def join_records(pieces: Sequence[JointRecord]) -> JointRecord:
    """Return records of the same joint as one, their stretches numbered on; signals that one lacks are left out."""
    first = pieces[0]
    for a, b in pairwise(pieces):
        if abs(a.rate - b.rate) > 0.01 * a.rate or a.unit != b.unit:
            raise EstimationError(f"{b.place}: rate or unit differ from those of {', '.join(a.logs)}.")
    joined: dict[str, Any] = {}
    for own in fields(JointRecord):
        values = [getattr(piece, own.name) for piece in pieces]
        if own.name == "stretch":
            joined[own.name] = _renumbered(values)
        elif isinstance(values[0], np.ndarray):
            joined[own.name] = None if any(v is None for v in values) else np.concatenate(values)
        elif own.name == "logs":
            joined[own.name] = tuple(dict.fromkeys(name for names in values for name in names))
        else:
            joined[own.name] = getattr(first, own.name)
    return JointRecord(**joined)


def _renumbered(stretches: list[NDArray[np.intp]]) -> NDArray[np.intp]:
    offset, parts = 0, []
    for own in stretches:
        parts.append(own - own.min() + offset)
        offset = int(parts[-1].max()) + 1
    return np.concatenate(parts)


@dataclass(frozen=True)
class Bodies:
    """The load by the described bodies and a payload under a gravity (3,), m/s²."""

    robot: Robot
    gravity: Array
    payload: Payload | None

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return the torque (samples, joints), Nm; see `LoadModel`."""
        none = np.zeros(self.robot.dof)
        return inverse_dynamics(self.robot, q, qd, qdd, gravity=self.gravity, payload=self.payload, rotor_inertias=none)

    def pull(self, q: Array, joint: int) -> Array:
        """Return the torque (samples, 3) of a joint, Nm, under 1 m/s² along each axis of the base."""
        axes = [gravity_torque(self.robot, q, gravity=axis, payload=self.payload)[:, joint] for axis in np.eye(3)]
        return np.column_stack(axes)


def _pieces(
    log: Log, robot: Robot, joint: int, gain: float | None, cutoff: float, load: LoadModel, inertia: float | None
) -> list[JointRecord]:
    """Return one record for every gap-free stretch of a log."""
    if log.joints != robot.dof:
        raise DataError(f"{log.origin.path}: the log has {log.joints} joints, {robot.name} has {robot.dof}.")
    if log.current is None and log.torque is None:
        raise DataError(f"{log.origin.path}: neither current (i1..) nor torque (tau1..) found: log one of them.")
    _refuse_disorder(log, joint)
    refuse_faulty(log, robot, joint)
    repaired = repair_clock(log)
    rate = 1.0 / repaired.clock.median_step
    parts = [repaired.log.slice(s.start, s.stop) for s in repaired.clock.segments]
    return [
        _piece(part, robot, joint, rate, gain, cutoff, load, inertia) for part in parts if part.duration >= SHORTEST
    ]


def _piece(
    log: Log,
    robot: Robot,
    joint: int,
    rate: float,
    gain: float | None,
    cutoff: float,
    load: LoadModel,
    inertia: float | None,
) -> JointRecord:
    t = uniform_times(log.t, rate)
    q = low_pass(resample(log.t, log.q, t), cutoff, rate)
    qd, qdd = differences(q, rate)
    raw = resample(log.t, log.q[:, joint], t)
    theta = None if log.theta is None else resample(log.t, log.theta[:, joint], t)
    rubbing = raw if theta is None else theta
    smooth = low_pass(rubbing, cutoff, rate)
    speed, acceleration = differences(smooth, rate)
    motor, unit, used = _motor(log, robot, joint, gain, t)
    described = robot.joints[joint].motor.reflected_inertia or 0.0
    return JointRecord(
        robot=robot.name,
        joint=joint,
        logs=(log.origin.path,),
        rate=rate,
        unit=unit,
        gain=used,
        inertia=described if inertia is None else inertia,
        t=t,
        stretch=np.zeros(len(t), dtype=np.intp),
        q=q[:, joint],
        qd=qd[:, joint],
        qdd=qdd[:, joint],
        position=smooth,
        speed=speed,
        acceleration=acceleration,
        path=monotone_low_pass(rubbing, cutoff if theta is None else ROTOR_CUTOFF, rate),
        motor=motor,
        load=load(q, qd, qdd)[:, joint],
        phi=None if theta is None else theta - raw,
        theta=theta,
        temperature=None if log.temperature is None else _held(log.t, log.temperature[:, joint], t),
        gauge=None if log.torque is None or log.current is None else resample(log.t, log.torque[:, joint], t),
        has_current=log.current is not None,
        asked=None if log.current_des is None else resample(log.t, log.current_des[:, joint], t),
        cutoff=cutoff,
        pull=load.pull(q, joint) if isinstance(load, Bodies) else None,
        gravity=tuple(map(float, load.gravity)) if isinstance(load, Bodies) else None,
    )


def _refuse_disorder(log: Log, joint: int) -> None:
    """Refuse positions that jump about: from sample to sample by as much as they vary at all."""
    position = (log.q if log.theta is None else log.theta)[:, joint]
    spread = float(position.std())
    if spread > LEAST_SPREAD and float(np.sqrt(np.mean(np.diff(position) ** 2))) > 0.5 * spread:
        raise DataError(
            f"{log.origin.path}: joint {joint + 1}: positions jump from sample to sample by as much as they vary; "
            "the rows must be in the order of time."
        )


def _motor(log: Log, robot: Robot, joint: int, gain: float | None, t: Array) -> tuple[Array, str, float]:
    """Return the motor's torque (or current, where no gain is known), its unit and the gain."""
    if log.current is None:
        assert log.torque is not None
        return resample(log.t, log.torque[:, joint], t), "Nm", 1.0
    current = resample(log.t, log.current[:, joint], t)
    known = robot.joints[joint].motor.joint_gain if gain is None else gain
    return (current, "A", 1.0) if not known else (known * current, "Nm", float(known))


def _held(t: Array, values: Array, times: Array) -> Array:
    """Return slow values at other times by linear interpolation: a spline would swing at the steps of a sensor."""
    return np.interp(times, t, values)
