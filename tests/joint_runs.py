"""Runs of the digital robot and their logs, for tests and benchmarks of joint identification."""

from __future__ import annotations

import numpy as np

import jointwise
from jointwise.control.controller import AffineControl
from jointwise.data import Log, Origin
from jointwise.design import Experiment, make_experiment
from jointwise.model.rigid import inverse_dynamics
from jointwise.simulation.robot import DigitalRobot, Run, digital_robot, integrate
from jointwise.simulation.sensors import Readings, Sensors
from jointwise.spatial import Array

RATE = 1000.0
"""Control and sampling rate, Hz."""
FREQUENCY = 20.0
"""Bandwidth (rad/s) of the position controller of the rotors."""


def log_of(run: Run, digital: DigitalRobot, sensors: Sensors, gauge: bool = False) -> Log:
    """Return the readings of sensors along a run; `gauge` adds the transmitted torque as the torque channel."""
    ratios, readings = np.array([joint.gear_ratio for joint in digital.joints]), Readings(sensors)
    return Log(
        t=run.t,
        q=sensors.position(run.q),
        theta=sensors.rotor(run.theta, ratios),
        current=readings.current(run.current),
        torque=readings.torque(run.load) if gauge else None,
        temperature=readings.temperature(run.temperature),
        origin=Origin("digital"),
    )


def follow(digital: DigitalRobot, q: Array, qd: Array, torque: Array, stiffness: float, damping: float) -> Run:
    """Return a run along a reference (periods, joints) under PD control of the rotors with a feed-forward torque.

    `stiffness` (1/s²) and `damping` (1/s) of the controller are relative to the rotor inertia of every joint.
    """
    B = np.array([joint.inertia for joint in digital.joints])
    control = AffineControl(theta=q, speed=qd, torque=torque, k_theta=stiffness * B, k_speed=damping * B)
    return integrate(digital, digital.rest(q[0]), control, rate=RATE)


def run_experiment(digital: DigitalRobot, experiment: Experiment, duration: float | None = None) -> Run:
    """Return an experiment of a digital robot: open loop where the output is locked, else PD control of the rotors."""
    t = np.arange(0.0, duration or experiment.motion.duration, 1.0 / RATE)
    states = experiment.motion.at(t)
    if experiment.torque is not None:
        return integrate(digital, digital.rest(states.q[0]), experiment.torque.at(t), rate=RATE, locked=True)
    torque = inverse_dynamics(digital.robot, states.q, states.qd, states.qdd, gravity=digital.gravity)
    return follow(digital, states.q, states.qd, torque, 10.0 * FREQUENCY**2, 4.0 * FREQUENCY)


def joint_log(
    name: str,
    *,
    joint: int = 0,
    duration: float | None = None,
    seed: int = 0,
    without: tuple[str, ...] = (),
    gauge: bool = False,
    sensors: Sensors | None = None,
    robot: str = "ur5e",
) -> tuple[Log, DigitalRobot]:
    """Return the log of an experiment by name, and its digital robot."""
    arm = jointwise.load_robot(robot)
    experiment = make_experiment(name, arm, duration, seed, joint=joint)
    digital = digital_robot(arm, gravity=experiment.gravity).without(*without)
    used = sensors or Sensors(rate=RATE, seed=seed)
    return log_of(run_experiment(digital, experiment), digital, used, gauge), digital
