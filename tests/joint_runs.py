"""Logs of one joint from the digital robot, for the tests of the joint package."""

from __future__ import annotations

import numpy as np

import jointwise
from jointwise.data.log import Log, Origin
from jointwise.model.control_law import AffineControl
from jointwise.model.rigid import inverse_dynamics
from jointwise.simulation.references import Experiment, make_experiment
from jointwise.simulation.robot import DigitalRobot, Run, digital_robot, simulate
from jointwise.simulation.sensors import Readings, Sensors

RATE = 1000.0
FREQUENCY = 20.0
"""Bandwidth (rad/s) of the position controller on the rotor."""


def log_of(run: Run, digital: DigitalRobot, sensors: Sensors, gauge: bool = False) -> Log:
    """Return what sensors read of a run; `gauge` adds the transmitted torque as the torque channel."""
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


def run_experiment(digital: DigitalRobot, experiment: Experiment, duration: float | None = None) -> Run:
    """Return an experiment done by a digital robot: open loop where the output is locked, else rotor PD."""
    t = np.arange(0.0, duration or experiment.motion.duration, 1.0 / RATE)
    states = experiment.motion.at(t)
    start = digital.rest(states.q[0])
    if experiment.torque is not None:
        return simulate(digital, start, experiment.torque.at(t), rate=RATE, locked=True)
    B = np.array([joint.inertia for joint in digital.joints])
    torque = inverse_dynamics(digital.robot, states.q, states.qd, states.qdd, gravity=digital.gravity)
    gains = {"k_theta": 10.0 * B * FREQUENCY**2, "k_speed": 4.0 * B * FREQUENCY}
    control = AffineControl(theta=states.q, speed=states.qd, torque=torque, **gains)
    return simulate(digital, start, control, rate=RATE)


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
    """Return the log of an experiment by name and the digital robot that made it."""
    arm = jointwise.robot(robot)
    experiment = make_experiment(name, arm, duration, seed, joint=joint)
    digital = digital_robot(arm, gravity=experiment.gravity).without(*without)
    used = sensors or Sensors(rate=RATE, seed=seed)
    return log_of(run_experiment(digital, experiment), digital, used, gauge), digital
