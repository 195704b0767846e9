"""Predictions from positions only on motions unlike the training motion: rests, single joints, fast moves.

    python benchmarks/feed_forward.py [--robots ur10e ur5e] [--seeds 1] [--first 21] [--duration 40]

Every arm is trained on a simulated excitation and tested on point-to-point motions with rests of 3 to 8 s, on fast ones
with short rests, on moves of one joint at a time and on another excitation. Its joints are those of the digital robot,
or have hysteresis over 4 mrad as real UR10e joints (`wide`). Printed: MSE / variance from the first to the last motion,
mean over the joints and last joint, of the feed-forward estimate, of a plain model (four slip elements within 5 mrad,
v, v |v|, load) and of one with Stribeck friction and a root of the speed, which excitations alone cannot refute.
"""

from __future__ import annotations

from timing import use_one_thread

use_one_thread()

import argparse  # noqa: E402
import sys  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the point-to-point motion, which is test support

import jointwise as jw  # noqa: E402
from jointwise.estimation.structure import Structure  # noqa: E402
from jointwise.model.terms import Hysteresis  # noqa: E402
from jointwise.simulation.robot.defaults import default_joints, joints_from_toml  # noqa: E402
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


def errors(model: jw.Calibration, log: jw.Log) -> Array:
    """Return MSE / variance (joints,) from positions only, first to last motion."""
    window = np.flatnonzero((np.abs(np.gradient(log.q, axis=0)) * RATE > 0.02).any(axis=1))
    rows = slice(window[0], window[-1] + 1)
    y = np.asarray(log.channel(model.output))[rows]
    residual = y - model.predict(log, use="feed-forward")[rows]
    return np.asarray(np.mean(residual**2, axis=0) / np.var(y, axis=0))


def compare(name: str, joints: str, seed: int, duration: float) -> None:
    """Print the errors of one arm."""
    robot = jw.load_robot(name)
    plants = default_joints(robot) if joints == "default" else joints_from_toml(WIDE, "wide", robot)

    def record(motion: object, number: int, length: float) -> jw.Log:
        options = jw.PlantOptions(joints=plants)
        return jw.simulate(robot, motion, duration=length, rate=RATE, seed=number, plant=options, keep=0).log  # type: ignore[arg-type]

    log = record("excitation", seed, duration)
    models = {"feed-forward": jw.calibrate(log, robot, physical=False)}
    for label, structure in MODELS.items():
        options = jw.Options(structure=structure, free=())
        models[label] = jw.calibrate(log, robot, physical=False, options=options)
    tests = [
        (test, record(motion, seed + k + 1, length)) for k, (test, motion, length) in enumerate(motions(robot, seed))
    ]
    for label, model in models.items():
        found = [(test, errors(model, recording)) for test, recording in tests]
        text = "  ".join(f"{test} {error.mean():.4f} ({error[-1]:.4f})" for test, error in found)
        print(f"{name} {joints:8} {label:13} {text}", flush=True)


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
