"""Predictions from positions only on motions unlike the training motion: rests, single joints, fast moves.

    python benchmarks/feed_forward.py [--robots ur10e ur5e] [--seeds 1] [--first 21] [--duration 40]

Every arm is trained on a simulated excitation and tested on point-to-point motions with rests of 3 to 8 s, on fast ones
with short rests, on moves of one joint at a time and on another excitation. Its joints are those of the digital robot,
or have hysteresis over 4 mrad as real UR10e joints (`wide`). Printed: MSE / variance from the first to the last motion,
mean over the joints and last joint, of the feed-forward estimate, of a plain model (four slip elements within 5 mrad,
v, v |v|, load) and of one with Stribeck friction and a root of the speed, which excitations alone cannot refute.
Below them is what oracles reach that know bodies, rotors, friction laws and temperatures of the digital robot,
but not how far its slip elements are deformed at first: along measured link positions (`laws`), with the springs and
kinematic errors of the gears as well (`springs`), along measured rotor positions (`rotors`), which no feed-forward has,
and along planned positions with the springs (`planned`).
"""

from __future__ import annotations

from timing import use_one_thread

use_one_thread()

import argparse  # noqa: E402
import sys  # noqa: E402
from collections.abc import Iterator, Mapping  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the point-to-point motion, which is test support

import jointwise as jw  # noqa: E402
from jointwise.data.filters import low_pass  # noqa: E402
from jointwise.estimation.structure import Structure  # noqa: E402
from jointwise.experiment.result import SimulationResult  # noqa: E402
from jointwise.model.rigid import inverse_dynamics  # noqa: E402
from jointwise.model.terms import (  # noqa: E402
    Hysteresis,
    slip_elements,
    slip_state,
)
from jointwise.simulation.robot.defaults import default_joints, joints_from_toml  # noqa: E402
from jointwise.simulation.robot.joint import JointPlant, kinematic_error  # noqa: E402
from jointwise.spatial import Array  # noqa: E402
from synthetic.point_to_point import PointToPoint, point_to_point_trajectory  # noqa: E402

RATE = 100.0
WIDE = "schema = 1\n[drive]\nbacklash = 0.004\nlost_motion = 0.05\nstiction = { value = 1.0, power = 1.0 }\n"
"""Joints whose friction reverses over 4 mrad."""
LIMITS = Hysteresis.polynomial_limits(4, 5e-3)
MODELS = {
    "plain": Structure("hysteresis", "square", (1.0, 2.0), limits=LIMITS),
    "low speed": Structure("hysteresis", "square", (1.0, 0.5), limits=LIMITS, stribeck=0.05),
}

ORACLES = {"laws": "q", "springs": "q", "rotors": "theta", "planned": "q_des"}
"""Oracles and the positions that they have."""
ORACLE_CUTOFF = 15.0
"""Low-pass (Hz) of the positions of oracles: with springs 8 Hz give twice the error, since links vibrate at 10 Hz."""


def one_joint_at_a_time(motion: PointToPoint) -> PointToPoint:
    """Return moves between points of which only one joint changes."""
    points = [motion.points[0]]
    for k, target in enumerate(motion.points[1:]):
        point = points[-1].copy()
        point[k % motion.joints] = target[k % motion.joints]
        points.append(point)
    return replace(motion, points=np.array(points))


def motions(robot: jw.Robot, seed: int) -> Iterator[tuple[str, object, float]]:
    """Yield the tests: name, motion and duration (s) of the recording."""
    yield "rests", point_to_point_trajectory(robot, 58.0, seed + 1, pauses=(3.0, 8.0)), 60.0
    yield "fast", point_to_point_trajectory(robot, 38.0, seed + 2), 40.0
    yield "single", one_joint_at_a_time(point_to_point_trajectory(robot, 58.0, seed + 4, pauses=(1.0, 3.0))), 60.0
    yield "excitation", "excitation", 20.0


def errors(log: jw.Log, prediction: Array) -> Array:
    """Return MSE / variance (joints,) of a predicted current (samples, joints), first to last motion."""
    window = np.flatnonzero((np.abs(np.gradient(log.q, axis=0)) * RATE > 0.02).any(axis=1))
    rows = slice(window[0], window[-1] + 1)
    y = log.channel("current")[rows]
    residual = y - prediction[rows]
    return np.asarray(np.mean(residual**2, axis=0) / np.var(y, axis=0))


def oracle(name: str, result: SimulationResult) -> Array:
    """Return the current (samples, joints) of an oracle: ``(B θ̈ + τ_J + f) / gain``, θ = q without springs."""
    log, digital = result.log, result.digital
    measured = low_pass(log.channel(ORACLES[name]), ORACLE_CUTOFF, RATE)
    q = low_pass(log.channel("q"), ORACLE_CUTOFF, RATE) if name == "rotors" else measured
    load = inverse_dynamics(digital.robot, q, derivative(q), derivative(derivative(q)), gravity=digital.gravity)
    theta = measured
    if name in ("springs", "planned"):
        theta = np.column_stack([rotor(*each) for each in zip(digital.joints, q.T, load.T, strict=True)])
    speed, temperature = derivative(theta), log.channel("temperature")
    signals = zip(digital.joints, theta.T, speed.T, load.T, temperature.T, strict=True)
    friction = np.column_stack([friction_along(*each) for each in signals])
    inertia = np.array([joint.inertia for joint in digital.joints])
    return np.asarray((inertia * derivative(speed) + load + friction) / digital.gains)


def derivative(values: Array) -> Array:
    """Return the rate of change of samples (samples, joints), 1/s."""
    return np.asarray(np.gradient(values, 1.0 / RATE, axis=0))


def rotor(joint: JointPlant, q: Array, load: Array) -> Array:
    """Return θ = q + spring⁻¹(τ_J) + e(θ), (samples,) rad; e is a contraction."""
    theta = target = q + joint.stiffness.deformation(load)
    for _ in range(50):
        theta = target + kinematic_error(joint.kinematic_error, theta)
    return theta


def friction_along(joint: JointPlant, theta: Array, speed: Array, load: Array, temperature: Array) -> Array:
    """Return the friction torque (samples,), Nm, of a joint of the digital robot whose slip elements start relaxed."""
    law, limits = joint.friction, np.array(joint.friction.slip.limits)
    u = slip_elements(theta, limits, slip_state(theta[0], len(limits)), backlash=joint.backlash.at(theta))[0]
    H = u @ np.array(law.slip.shares)
    dry = law.level(speed, load, temperature) * (H + law.asymmetry * np.abs(H))
    return np.asarray(dry + law.viscous_factor(speed) * speed)


def compare(name: str, joints: str, seed: int, duration: float) -> None:
    """Print the errors of one arm."""
    robot = jw.load_robot(name)
    plants = default_joints(robot) if joints == "default" else joints_from_toml(WIDE, "wide", robot)

    def record(motion: object, number: int, length: float) -> SimulationResult:
        options = jw.PlantOptions(joints=plants)
        return jw.simulate(robot, motion, duration=length, rate=RATE, seed=number, plant=options, keep=0)  # type: ignore[arg-type]

    log = record("excitation", seed, duration).log
    models = {"feed-forward": jw.calibrate(log, robot, physical=False)}
    for label, structure in MODELS.items():
        options = jw.Options(structure=structure, free=())
        models[label] = jw.calibrate(log, robot, physical=False, options=options)
    tests = {
        test: record(motion, seed + k + 1, length) for k, (test, motion, length) in enumerate(motions(robot, seed))
    }
    for label, model in models.items():
        predicted = {test: model.predict(result.log, use="feed-forward") for test, result in tests.items()}
        show(f"{name} {joints:8} {label:13}", tests, predicted)
    for label in ORACLES:
        show(f"{name} {joints:8} {label:13}", tests, {test: oracle(label, result) for test, result in tests.items()})


def show(title: str, tests: Mapping[str, SimulationResult], predicted: Mapping[str, Array]) -> None:
    """Print the errors of predicted currents."""
    found = [(test, errors(result.log, predicted[test])) for test, result in tests.items()]
    print(title, "  ".join(f"{test} {error.mean():.4f} ({error[-1]:.4f})" for test, error in found), flush=True)


def main() -> None:
    """Compare the models of some arms."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--robots", nargs="+", default=["ur10e", "ur5e"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=21, help="seed of the first arm")
    parser.add_argument("--joints", nargs="+", default=["wide", "default"], choices=("wide", "default"))
    parser.add_argument("--duration", type=float, default=40.0, help="training log, s")
    options = parser.parse_args()
    for name in options.robots:
        for joints in options.joints:
            for seed in range(options.seeds):
                compare(name, joints, options.first + 20 * seed, options.duration)


if __name__ == "__main__":
    main()
