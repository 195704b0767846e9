"""Stiffness of the digital robot's base joint beside the thesis' figures.

Locked output, torque ramps, gauge and current together (least squares on both). White noise of `SHARE` of the torque's
own spread is put on gauge and current, so that not even the true spring could score more than 100 (1 - SHARE) %, near
the thesis' cubic. Fitted on every other block of time, scored on the rest.
"""

from __future__ import annotations

import numpy as np

import jointwise
from jointwise.data.log import Log, Origin
from jointwise.joint.part import Part
from jointwise.joint.quality import nrmse_percent
from jointwise.joint.record import JointRecord, joint_record
from jointwise.joint.stiffness import identify_stiffness
from jointwise.simulation.references import make_experiment
from jointwise.simulation.robot import DigitalRobot, digital_robot, simulate
from jointwise.simulation.sensors import Readings, Sensors

RATE = 1000.0
SHARE = 0.08
"""Noise of gauge and current over the spread (rms about the mean) of the torque."""
THESIS = {"cubic": 91.3, "segments, fitted": 74.5}
"""NRMSE % of the cubic polynomial and of the catalogue's segments."""


def measure(seed: int = 0) -> tuple[Part, JointRecord, DigitalRobot]:
    """Return what is identified, from which record of which robot."""
    arm = jointwise.robot("ur5e")
    experiment = make_experiment("locked", arm, seed=seed, joint=0)
    assert experiment.torque is not None
    digital = digital_robot(arm, gravity=experiment.gravity)
    t = np.arange(0.0, experiment.torque.duration, 1.0 / RATE)
    start = digital.rest(experiment.motion.position(np.zeros(1))[0])
    run = simulate(digital, start, experiment.torque.at(t), rate=RATE, locked=True)
    noise = SHARE * float(np.std(run.load[:, 0]))
    sensors = Sensors(
        rate=RATE, seed=seed, torque_noise=noise, current_noise=noise / digital.joints[0].motor.gain, colored=False
    )
    readings, ratios = Readings(sensors), np.array([joint.gear_ratio for joint in digital.joints])
    log = Log(
        t=run.t,
        q=sensors.position(run.q),
        theta=sensors.rotor(run.theta, ratios),
        current=readings.current(run.current),
        torque=readings.torque(run.load),
        origin=Origin("digital robot"),
    )
    record = joint_record(log, arm, 0)
    return identify_stiffness(record), record, digital


def ceiling(record: JointRecord, digital: DigitalRobot) -> float:
    """Return the NRMSE % of the true spring against the gauge."""
    assert record.phi is not None and record.gauge is not None
    offset = float(np.median(record.phi))
    return nrmse_percent(record.gauge, digital.joints[0].stiffness.torque(record.phi - offset))


def rows() -> list[tuple[str, float, float]]:
    """Return name, the thesis' figure and ours: NRMSE % on blocks held out."""
    return _rows(measure()[0])


def _rows(part: Part) -> list[tuple[str, float, float]]:
    held_out = {own.model: own.held_out or 0.0 for own in part.alternatives}
    names = {"cubic": "stiffness, cubic", "segments, fitted": "stiffness, three segments, fitted"}
    return [(names[model], figure, held_out[model]) for model, figure in THESIS.items()]


def main() -> None:
    """Print the table."""
    part, record, digital = measure()
    truth = digital.joints[0].stiffness
    print(
        f"held out; noise {SHARE:.0%} of the torque: the true spring scores {ceiling(record, digital):.1f} on the gauge"
    )
    print(f"{'NRMSE %':<34}{'thesis':>8}{'ours':>8}")
    for name, thesis, ours in _rows(part):
        print(f"{name:<34}{thesis:>8.1f}{ours:>8.1f}")
    print("\nother models on the same blocks; the catalogue's gears are not this robot's, so theirs is no match:")
    for own in part.alternatives:
        print(f"{own.model:<34}{'':>8}{own.held_out or 0.0:>8.1f}")
    print(f"\ntruth {truth}")
    for value in part.values:
        print(f"{value.name:<10}{value.value:>14.6g}  [{value.low:.6g}, {value.high:.6g}] {value.unit}")
    for note in part.notes:
        print(f"- {note}")


if __name__ == "__main__":
    main()
