"""Friction of the digital robot over load and temperature beside the thesis' figures.

    python benchmarks/joint_friction.py

Load: the shoulder with 7.5 kg at 0.05 rad/s, from no load into gravity and back; friction is half the difference
between the ways to and fro at 60 positions. Temperature: the base to and fro at three speeds while it warms from 10 °C
(its heat capacity a fifth, so that minutes do for an hour). White noise on the current is set beforehand so that what
is fitted carries noise of a share (`SHARES`) of its own spread: not even the friction without noise could score more
than 100 (1 - share) %, a little above the thesis. Fitted on some blocks, scored on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import jointwise
from jointwise.data.log import Log, Origin
from jointwise.description import Payload
from jointwise.joint.friction import warmth, ways
from jointwise.joint.load import identify_load
from jointwise.joint.part import Part
from jointwise.joint.quality import nrmse_percent, rms
from jointwise.joint.record import JointRecord, joint_record
from jointwise.joint.temperature import identify_temperature
from jointwise.model.rigid import inverse_dynamics
from jointwise.simulation.references import make_experiment
from jointwise.simulation.robot import AffineControl, DigitalRobot, Run, digital_robot, simulate
from jointwise.simulation.sensors import Readings, Sensors
from jointwise.spatial import Array

RATE = 1000.0
FREQUENCY = 20.0
"""Bandwidth (rad/s) of the position controller on the rotor."""
SHARES = {"load": 0.12, "temperature": 0.04}
"""Noise over the spread (rms about the mean) of the friction that is fitted, on the data held out."""
DRAWS = 6
"""Draws of the noise."""
THESIS = {
    "load": {"square": 87.0, "absolute": 83.0},
    "temperature": {"three-parameter": 95.1, "affine-exponential": 94.3},
}
"""NRMSE %."""


def performed(digital: DigitalRobot, name: str, seconds: float, joint: int) -> Run:
    """Return an experiment done by a digital robot under a controller that knows its links and payload."""
    motion = make_experiment(name, digital.robot, seconds, joint=joint).motion
    states = motion.at(np.arange(0.0, seconds, 1.0 / RATE))
    B = np.array([own.inertia for own in digital.joints])
    torque = inverse_dynamics(
        digital.robot, states.q, states.qd, states.qdd, gravity=digital.gravity, payload=digital.payload
    )
    stiff, damped = 10.0 * B * FREQUENCY**2, 4.0 * B * FREQUENCY
    control = AffineControl(theta=states.q, speed=states.qd, torque=torque, k_theta=stiff, k_speed=damped)
    return simulate(digital, digital.rest(states.q[0]), control, rate=RATE)


def recorded(run: Run, digital: DigitalRobot, joint: int, noise: float, seed: int) -> JointRecord:
    """Return the record of a joint with white noise (Nm) on its torque."""
    sensors = Sensors(rate=RATE, seed=seed, current_noise=noise / digital.joints[joint].motor.gain, colored=False)
    readings, ratios = Readings(sensors), np.array([own.gear_ratio for own in digital.joints])
    log = Log(
        t=run.t,
        q=sensors.position(run.q),
        theta=sensors.rotor(run.theta, ratios),
        current=readings.current(run.current),
        temperature=readings.temperature(run.temperature),
        origin=Origin("digital robot"),
    )
    gravity = (float(digital.gravity[0]), float(digital.gravity[1]), float(digital.gravity[2]))
    return joint_record(log, digital.robot, joint, mounting=gravity, payload=digital.payload)


@dataclass(frozen=True)
class Outcome:
    """What was identified from every draw of the noise, and what the friction without noise scores on the same data."""

    parts: tuple[Part, ...]
    ceilings: tuple[float, ...]
    noise: float
    digital: DigitalRobot

    def mean(self, law: str) -> float:
        """Return the held-out NRMSE % of a law, the mean over the draws."""
        scores = [own.held_out for part in self.parts for own in part.alternatives if own.model == law]
        return float(np.mean([score for score in scores if score is not None]))


def load_outcome(seconds: float = 60.0) -> Outcome:
    """Return the friction over load of the shoulder with 7.5 kg."""
    arm = jointwise.robot("ur5e")
    gravity = make_experiment("load", arm, seconds, joint=1).gravity
    digital = digital_robot(arm, gravity=gravity, payload=Payload(7.5))
    return _outcome(performed(digital, "load", seconds, 1), digital, 1, SHARES["load"], _load_effect, identify_load)


def temperature_outcome(seconds: float = 600.0) -> Outcome:
    """Return the friction over temperature of the base."""
    arm = jointwise.robot("ur5e")
    digital = digital_robot(arm, gravity=make_experiment("warm-up", arm, seconds, joint=0).gravity)
    base = digital.joints[0]
    thermal = replace(base.thermal, ambient=10.0, capacity=0.2 * base.thermal.capacity)
    digital = replace(digital, joints=(replace(base, thermal=thermal), *digital.joints[1:]))
    run = performed(digital, "warm-up", seconds, 0)
    return _outcome(run, digital, 0, SHARES["temperature"], _temperature_effect, identify_temperature)


def _outcome(
    run: Run,
    digital: DigitalRobot,
    joint: int,
    share: float,
    effect: Callable[[JointRecord], Array],
    identify: Callable[[JointRecord], Part],
) -> Outcome:
    """Return what is identified under noise of a share of the effect without noise, both on held-out data."""
    quiet = effect(recorded(run, digital, joint, 0.0, 0))
    louds = [effect(recorded(run, digital, joint, 1.0, DRAWS + seed)) for seed in range(DRAWS)]
    noise = share * float(np.std(quiet)) / rms(np.array(louds) - quiet)
    records = [recorded(run, digital, joint, noise, seed) for seed in range(DRAWS)]
    ceilings = tuple(nrmse_percent(effect(record), quiet) for record in records)
    return Outcome(tuple(identify(record) for record in records), ceilings, noise, digital)


def _load_effect(record: JointRecord) -> Array:
    """Return the friction at the positions held out."""
    points = ways.to_and_fro(record)
    return points.friction[ways.held_out(points)]


def _temperature_effect(record: JointRecord) -> Array:
    """Return the friction of the pairs held out, the mean of every speed taken off."""
    pairs = warmth.temperature_pairs(record)
    test = warmth.held_out(pairs)
    level, friction = pairs.level[test], pairs.friction[test]
    means = np.bincount(level, friction) / np.bincount(level)
    result: Array = friction - means[level]
    return result


def rows() -> list[tuple[str, float, float]]:
    """Return name, the thesis' figure and ours: NRMSE % on blocks held out, the mean over the draws of the noise."""
    return [*_rows(load_outcome()), *_rows(temperature_outcome())]


def _rows(outcome: Outcome) -> list[tuple[str, float, float]]:
    name = outcome.parts[0].phenomenon
    return [(f"{name}, {law}", figure, outcome.mean(law)) for law, figure in THESIS[name].items()]


def main() -> None:
    """Print the table, and the numbers beside the truth."""
    load, warm = load_outcome(), temperature_outcome()
    for outcome in (load, warm):
        print(
            f"{outcome.parts[0].phenomenon}: noise of {outcome.noise:.3g} Nm on every sample; without it the friction "
            f"scores {np.mean(outcome.ceilings):.1f} % (mean of {DRAWS} draws)"
        )
    print(f"{'held-out NRMSE %':<34}{'thesis':>8}{'ours':>8}")
    for name, thesis, ours in (*_rows(load), *_rows(warm)):
        print(f"{name:<34}{thesis:>8.1f}{ours:>8.1f}")
    law = warm.digital.joints[0].friction.warmth
    truth = {"F_l": load.digital.joints[1].friction.load, "F_T2": law.linear, "F_T3": law.cold}
    print(f"\n{'number':<8}{'truth':>12}{'found':>12}   95 %, every draw")
    for part in (*load.parts, *warm.parts):
        for value in (own for own in part.values if own.name in truth):
            told = (
                f"{value.name:<8}{truth[value.name]:>12.5g}{value.value:>12.5g}   [{value.low:.5g}, {value.high:.5g}]"
            )
            print(told, "" if value.covers(truth[value.name]) else "misses")


if __name__ == "__main__":
    main()
