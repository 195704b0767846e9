"""Friction of the digital robot over load and temperature, with the figures of the thesis.

    python benchmarks/joint_friction.py

Load: the shoulder with 7.5 kg at 0.05 rad/s, from no load into gravity and back; friction is half the difference
between the two directions at 60 positions. Temperature: the base reciprocates at three speeds while it warms up from
10 °C, with a fifth of its heat capacity, so that ten minutes replace an hour. White noise on the current is chosen so
that the fitted friction has noise of `NOISE` times its standard deviation: friction without noise would score
100 (1 - noise) %, a little above the thesis. Fitted on some blocks, scored on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import jointwise
from digital_joint import RATE, follow, log_of
from jointwise.description import Payload
from jointwise.design import make_experiment
from jointwise.joint.load import identify_load, load_rows
from jointwise.joint.part import Part, nrmse_percent, rms
from jointwise.joint.record import JointRecord, joint_record
from jointwise.joint.temperature import identify_temperature, temperature_rows
from jointwise.model.rigid import inverse_dynamics
from jointwise.simulation.robot import DigitalRobot, Run, digital_robot
from jointwise.simulation.sensors import Sensors
from jointwise.spatial import Array

FREQUENCY = 20.0
"""Bandwidth (rad/s) of the position controller on the rotor."""
NOISE = {"load": 0.12, "temperature": 0.04}
"""Noise relative to the standard deviation of the fitted friction, on held-out data."""
DRAWS = 6
"""Realisations of the noise."""
THESIS = {
    "load": {"square": 87.0, "absolute": 83.0},
    "temperature": {"three-parameter": 95.1, "affine-exponential": 94.3},
}
"""NRMSE fit, %."""


def performed(digital: DigitalRobot, name: str, seconds: float, joint: int) -> Run:
    """Return an experiment of a digital robot under a controller that knows its links and payload."""
    motion = make_experiment(name, digital.robot, seconds, joint=joint).motion
    states = motion.at(np.arange(0.0, seconds, 1.0 / RATE))
    torque = inverse_dynamics(
        digital.robot, states.q, states.qd, states.qdd, gravity=digital.gravity, payload=digital.payload
    )
    return follow(digital, states.q, states.qd, torque, 10.0 * FREQUENCY**2, 4.0 * FREQUENCY)


def recorded(run: Run, digital: DigitalRobot, joint: int, noise: float, seed: int) -> JointRecord:
    """Return the record of a joint with white noise (Nm) on its torque."""
    sensors = Sensors(rate=RATE, seed=seed, current_noise=noise / digital.joints[joint].motor.gain, colored=False)
    gravity = (float(digital.gravity[0]), float(digital.gravity[1]), float(digital.gravity[2]))
    return joint_record(log_of(run, digital, sensors), digital.robot, joint, mounting=gravity, payload=digital.payload)


@dataclass(frozen=True)
class Outcome:
    """Parts from every realisation of the noise, and the score of friction without noise on the same data."""

    parts: tuple[Part, ...]
    ceilings: tuple[float, ...]
    noise: float
    digital: DigitalRobot

    def mean(self, law: str) -> float:
        """Return the mean NRMSE fit (%) of a law on held-out data over the realisations."""
        scores = [other.held_out for part in self.parts for other in part.alternatives if other.model == law]
        return float(np.mean([score for score in scores if score is not None]))


def load_outcome(seconds: float = 60.0) -> Outcome:
    """Return the friction over load of the shoulder with 7.5 kg."""
    arm = jointwise.load_robot("ur5e")
    gravity = make_experiment("load", arm, seconds, joint=1).gravity
    digital = digital_robot(arm, gravity=gravity, payload=Payload(7.5))
    return _outcome(performed(digital, "load", seconds, 1), digital, 1, NOISE["load"], _load_effect, identify_load)


def temperature_outcome(seconds: float = 600.0) -> Outcome:
    """Return the friction over temperature of the base."""
    arm = jointwise.load_robot("ur5e")
    digital = digital_robot(arm, gravity=make_experiment("warm-up", arm, seconds, joint=0).gravity)
    base = digital.joints[0]
    thermal = replace(base.thermal, ambient=10.0, capacity=0.2 * base.thermal.capacity)
    digital = replace(digital, joints=(replace(base, thermal=thermal), *digital.joints[1:]))
    run = performed(digital, "warm-up", seconds, 0)
    return _outcome(run, digital, 0, NOISE["temperature"], _temperature_effect, identify_temperature)


def _outcome(
    run: Run,
    digital: DigitalRobot,
    joint: int,
    relative_noise: float,
    effect: Callable[[JointRecord], Array],
    identify: Callable[[JointRecord], Part],
) -> Outcome:
    """Return the parts identified with noise relative to the standard deviation of the effect without noise."""
    quiet = effect(recorded(run, digital, joint, 0.0, 0))
    noisy = [effect(recorded(run, digital, joint, 1.0, DRAWS + seed)) for seed in range(DRAWS)]
    noise = relative_noise * float(np.std(quiet)) / rms(np.array(noisy) - quiet)
    records = [recorded(run, digital, joint, noise, seed) for seed in range(DRAWS)]
    ceilings = tuple(nrmse_percent(effect(record), quiet) for record in records)
    return Outcome(tuple(identify(record) for record in records), ceilings, noise, digital)


def _load_effect(record: JointRecord) -> Array:
    """Return the friction at the held-out positions."""
    rows, _ = load_rows(record)
    return rows.y[rows.test]


def _temperature_effect(record: JointRecord) -> Array:
    """Return the friction of the held-out pairs without the mean of every speed."""
    rows = temperature_rows(record)
    test = rows.take(rows.test)
    level, friction = np.argmax(test.beside, axis=1), test.y
    means = np.bincount(level, friction) / np.bincount(level)
    result: Array = friction - means[level]
    return result


def rows() -> list[tuple[str, float, float]]:
    """Return name, figure of the thesis and ours: mean NRMSE fit (%) on held-out blocks."""
    return [*_rows(load_outcome()), *_rows(temperature_outcome())]


def _rows(outcome: Outcome) -> list[tuple[str, float, float]]:
    name = outcome.parts[0].phenomenon
    return [(f"{name}, {law}", figure, outcome.mean(law)) for law, figure in THESIS[name].items()]


def main() -> None:
    """Print the table, and the identified and true values."""
    load, warm = load_outcome(), temperature_outcome()
    for outcome in (load, warm):
        print(
            f"{outcome.parts[0].phenomenon}: noise of {outcome.noise:.3g} Nm on every sample; without it the friction "
            f"scores {np.mean(outcome.ceilings):.1f} % (mean of {DRAWS} realisations)"
        )
    print(f"{'NRMSE fit, held-out data, %':<34}{'thesis':>8}{'ours':>8}")
    for name, thesis, ours in (*_rows(load), *_rows(warm)):
        print(f"{name:<34}{thesis:>8.1f}{ours:>8.1f}")
    law = warm.digital.joints[0].friction.thermal
    truth = {"F_l": load.digital.joints[1].friction.load, "F_T2": law.linear, "F_T3": law.cold}
    print(f"\n{'value':<8}{'true':>12}{'found':>12}   95 % confidence interval")
    for part in (*load.parts, *warm.parts):
        for value in (value for value in part.values if value.name in truth):
            true = truth[value.name]
            print(
                f"{value.name:<8}{true:>12.5g}{value.value:>12.5g}   [{value.low:.5g}, {value.high:.5g}]",
                "" if value.covers(true) else "does not cover the true value",
            )


if __name__ == "__main__":
    main()
