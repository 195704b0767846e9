"""Stiffness of the base joint of the digital robot, with the figures of the thesis.

Locked output, torque ramps, least squares on gauge and current together. White noise of `NOISE` times the standard
deviation of the torque is added to both, so that the true spring itself scores 100 (1 - NOISE) %, near the cubic of the
thesis. Fitted on every other block of time, scored on the rest.
"""

from __future__ import annotations

import numpy as np

import jointwise
from digital_joint import RATE, log_of
from jointwise.design import make_experiment
from jointwise.joint.part import Part, nrmse_percent
from jointwise.joint.record import JointRecord, joint_record
from jointwise.joint.stiffness import identify_stiffness
from jointwise.simulation.robot import DigitalRobot, digital_robot, integrate
from jointwise.simulation.sensors import Sensors

NOISE = 0.08
"""Noise of gauge and current relative to the standard deviation of the torque."""
THESIS = {"cubic": 91.3, "segments, fitted": 74.5}
"""NRMSE fit (%) of the cubic polynomial and of the three segments of the catalogue."""


def measure(seed: int = 0) -> tuple[Part, JointRecord, DigitalRobot]:
    """Return the identified part, its record and the digital robot."""
    arm = jointwise.load_robot("ur5e")
    experiment = make_experiment("locked", arm, seed=seed, joint=0)
    assert experiment.torque is not None
    digital = digital_robot(arm, gravity=experiment.gravity)
    t = np.arange(0.0, experiment.torque.duration, 1.0 / RATE)
    start = digital.rest(experiment.motion.position(np.zeros(1))[0])
    run = integrate(digital, start, experiment.torque.at(t), rate=RATE, locked=True)
    noise = NOISE * float(np.std(run.load[:, 0]))
    sensors = Sensors(
        rate=RATE, seed=seed, torque_noise=noise, current_noise=noise / digital.joints[0].motor.gain, colored=False
    )
    record = joint_record(log_of(run, digital, sensors, gauge=True), arm, 0)
    return identify_stiffness(record), record, digital


def ceiling(record: JointRecord, digital: DigitalRobot) -> float:
    """Return the NRMSE fit (%) of the true spring to the gauge."""
    assert record.phi is not None and record.gauge is not None
    offset = float(np.median(record.phi))
    return nrmse_percent(record.gauge, digital.joints[0].stiffness.torque(record.phi - offset))


def rows() -> list[tuple[str, float, float]]:
    """Return name, figure of the thesis and ours: NRMSE fit (%) on held-out blocks."""
    return _rows(measure()[0])


def _rows(part: Part) -> list[tuple[str, float, float]]:
    held_out = {other.model: other.held_out or 0.0 for other in part.alternatives}
    names = {"cubic": "stiffness, cubic", "segments, fitted": "stiffness, three segments, fitted"}
    return [(names[model], figure, held_out[model]) for model, figure in THESIS.items()]


def main() -> None:
    """Print the table."""
    part, record, digital = measure()
    truth = digital.joints[0].stiffness
    print(f"held-out data; noise {NOISE:.0%} of the torque: the true spring scores {ceiling(record, digital):.1f} %")
    print(f"{'NRMSE %':<34}{'thesis':>8}{'ours':>8}")
    for name, thesis, ours in _rows(part):
        print(f"{name:<34}{thesis:>8.1f}{ours:>8.1f}")
    print("\nother models on the same blocks (the gears of the catalogue are not those of this robot):")
    for other in part.alternatives:
        print(f"{other.model:<34}{'':>8}{other.held_out or 0.0:>8.1f}")
    print(f"\ntrue spring: {truth}")
    for value in part.values:
        print(f"{value.name:<10}{value.value:>14.6g}  [{value.low:.6g}, {value.high:.6g}] {value.unit}")
    for note in part.notes:
        print(f"- {note}")


if __name__ == "__main__":
    main()
