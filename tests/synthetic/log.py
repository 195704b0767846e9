"""A log with known truth: inverse dynamics and friction along a planned motion, seen through sensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointwise.data import Log, Origin
from jointwise.description import Payload, Robot, gravity_vector
from jointwise.description.mounting import Mounting
from jointwise.description.robot import frozen_array
from jointwise.design import Trajectory, fourier_trajectory
from jointwise.errors import ModelError, ShapeError, nearest
from jointwise.simulation.robot.defaults import joint_size
from jointwise.simulation.sensors import JitterMode, Readings, Sensors
from jointwise.spatial import Array
from synthetic.friction import JointFriction, LoadDependence, default_friction
from synthetic.plant import Plant
from synthetic.point_to_point import point_to_point_trajectory
from synthetic.truth import Truth

TrajectoryMaker = Callable[[Robot, float, int], Trajectory]
MAKERS: dict[str, TrajectoryMaker] = {"fourier": fourier_trajectory, "point_to_point": point_to_point_trajectory}
"""Motions by name."""

USUAL_GAIN = 10.0
"""Joint torque per ampere (Nm/A) of a drive that is not described."""
USUAL_ROTOR = 1.7
"""Reflected rotor inertia (kg m²) of a drive of size 1 that is not described."""

FrictionChoice = JointFriction | Sequence[JointFriction] | None


@dataclass(frozen=True)
class SyntheticLog:
    """A log and what it was made of."""

    log: Log
    truth: Truth


def synthetic_log(
    robot: Robot,
    trajectory: str | Trajectory | TrajectoryMaker = "fourier",
    *,
    duration: float = 30.0,
    rate: float = 500.0,
    seed: int = 0,
    friction: FrictionChoice = None,
    hysteresis: bool = True,
    load_dependence: LoadDependence = "square",
    gravity: Mounting = "table",
    payload: Payload | None = None,
    inertials: Array | None = None,
    rotor_inertias: Array | Sequence[float] | None = None,
    gains: Array | Sequence[float] | None = None,
    encoder_counts: int | None = 1_250_000,
    speed_noise: float | None = 1e-3,
    current_noise: float | Sequence[float] = 0.03,
    colored: bool = True,
    current_quantisation: float | None = None,
    jitter: float = 0.0,
    jitter_mode: JitterMode = "sampling",
    dropped: float = 0.0,
    targets: bool = False,
) -> SyntheticLog:
    """Return the log (t, q, qd, current) of a motion and the truth behind it: ``i = (τ_rigid + τ_f) / gain + noise``.

    The motion is named (`fourier`, `point_to_point`), made by a function of robot, duration (s) and seed, or given; a
    given one sets the duration itself. τ_rigid includes rotors and is the load of the friction, as in `Dynamics`.
    `friction` is one for all joints, one each, or None for `default_friction`; `inertials` (joints, 10) replace the
    robot's, `rotor_inertias` (kg m²) and `gains` (Nm/A) are the described or else plausible ones. The measuring side
    (`rate` and `encoder_counts` to `dropped`) is explained at `Sensors`. `targets` adds what a controller logs: q_des,
    qd_des, qdd_des and torque_des (rigid, without friction). The same seed gives the same log to the bit.
    """
    motion = _motion(robot, trajectory, duration, seed)
    noise = current_noise if isinstance(current_noise, int | float) else _joint_noise(current_noise, robot)
    sensors = Sensors(
        rate, encoder_counts, speed_noise, noise, colored, current_quantisation, jitter, jitter_mode, dropped, seed
    )
    plant = Plant(
        robot=robot,
        gravity=gravity_vector(gravity),
        inertials=_loaded(robot, inertials, payload),
        rotor_inertias=_per_joint(rotor_inertias, _usual_rotors(robot), "rotor_inertias"),
        friction=_friction(robot, friction, load_dependence),
        hysteresis=hysteresis,
        load_dependence=load_dependence,
        gains=_gains(robot, gains),
    )
    return _record(plant, motion, sensors, targets)


def _motion(robot: Robot, trajectory: str | Trajectory | TrajectoryMaker, duration: float, seed: int) -> Trajectory:
    """Return the motion with a name."""
    if isinstance(trajectory, str):
        if trajectory not in MAKERS:
            raise ModelError(f"unknown trajectory '{trajectory}'. {nearest(trajectory, MAKERS)}")
        return MAKERS[trajectory](robot, duration, seed)
    motion = trajectory if isinstance(trajectory, Trajectory) else trajectory(robot, duration, seed)
    if motion.joints != robot.dof:
        raise ShapeError(f"trajectory must have {robot.dof} joints. Got {motion.joints} instead.")
    return motion


def _loaded(robot: Robot, inertials: Array | None, payload: Payload | None) -> Array:
    """Return the standard parameters (joints, 10) with the payload in the last link."""
    chosen = robot.inertials if inertials is None else inertials
    result = frozen_array(chosen, (robot.dof, 10), "inertials").copy()
    if payload is not None:
        result[-1] += payload.inertial_at_last_link(robot)
    return result


def _per_joint(given: Array | Sequence[float] | None, usual: Array, name: str) -> Array:
    """Return the given values (joints,), or the usual ones."""
    return usual if given is None else frozen_array(given, usual.shape, name)


def _usual_rotors(robot: Robot) -> Array:
    """Return reflected rotor inertias (joints,), kg m²: described, or by the size of the drive."""
    plausible = [USUAL_ROTOR * joint_size(joint) for joint in robot.joints]
    return np.where(robot.rotor_inertias > 0.0, robot.rotor_inertias, plausible)


def _gains(robot: Robot, given: Array | Sequence[float] | None) -> Array:
    """Return drive gains (joints,), Nm/A: given, described, or 10."""
    usual = np.array([joint.motor.joint_gain or USUAL_GAIN for joint in robot.joints])
    gains = _per_joint(given, usual, "gains")
    if (gains == 0.0).any():
        raise ModelError(f"gains must not be zero. Got {gains.tolist()} instead.")
    return gains


def _joint_noise(noise: Sequence[float], robot: Robot) -> tuple[float, ...]:
    """Return the current noise of every joint, A rms."""
    return tuple(frozen_array(noise, (robot.dof,), "current_noise").tolist())


def _friction(robot: Robot, chosen: FrictionChoice, dependence: LoadDependence) -> tuple[JointFriction, ...]:
    """Return the friction of every joint."""
    if dependence not in ("none", "square", "absolute"):
        raise ModelError(f"load_dependence must be none, square or absolute. Got '{dependence}' instead.")
    if chosen is None:
        return default_friction(robot, dependence)
    if isinstance(chosen, JointFriction):
        return (chosen,) * robot.dof
    if len(chosen) != robot.dof:
        raise ShapeError(f"friction must be given for {robot.dof} joints. Got {len(chosen)} instead.")
    return tuple(chosen)


def _record(plant: Plant, motion: Trajectory, sensors: Sensors, targets: bool) -> SyntheticLog:
    """Return what the sensors make of a motion, without the samples that are lost."""
    taken, stamps = sensors.clock(motion.duration)
    states = motion.at(taken)
    rigid = plant.rigid_torque(states)
    torque = rigid + plant.friction_torque(motion, states, rigid, sensors.rate)
    readings = Readings(sensors)
    channels: dict[str, Array | None] = {
        "q": sensors.position(states.q),
        "qd": readings.speed(states.qd),
        "current": readings.current(torque / plant.gains),
    }
    if targets:
        channels |= {"q_des": states.q, "qd_des": states.qd, "qdd_des": states.qdd, "torque_des": rigid}
    kept = sensors.kept(len(stamps))
    rows: dict[str, Any] = {name: values[kept] for name, values in channels.items() if values is not None}
    log = Log(t=stamps[kept], **rows, origin=Origin(path="synthetic log"))
    return SyntheticLog(log, Truth(plant, states.take(kept), rigid[kept], torque[kept]))
