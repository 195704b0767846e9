"""Identification of elastic joints, complete and reduced model: a planar arm and a PUMA 560 with K = 2000 Nm/rad.

    python benchmarks/elastic.py [--seeds 1] [--plot docs/figures/elastic-snr.png]

The set-up of a study in the literature (doi 10.1155/2014/843186): PD control, quintic B-splines, 1 kHz, 1,250,000
counts per turn, 8,900 samples, Stribeck friction in the plant and Coulomb and viscous friction in the model. The
splines of the planar arm are random, those of the PUMA 560 are optimised for the rigid arm, as in the study. Printed:
the mean of abs(estimate - true) / abs(true) over the combinations that differ from zero in truth and in the estimate
(95 % confidence interval), how many these are, and the same over all that differ from zero in truth. Then noise:
white, on the positions of links and rotors, at signal-to-noise ratios in dB (20 log of the ratio of the standard
deviations).
"""

from __future__ import annotations

from timing import cpu_name, use_one_thread

use_one_thread()

import argparse  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from jointwise.design import ExcitationOptions, Trajectory, optimize_excitation  # noqa: E402
from jointwise.elastic import identify_elastic  # noqa: E402
from jointwise.model.elastic import ElasticModel  # noqa: E402
from jointwise.result.elastic import ElasticCalibration  # noqa: E402
from jointwise.simulation.robot import Cubic, JointPlant, Stribeck, digital_robot  # noqa: E402
from jointwise.spatial import Array  # noqa: E402

STIFFNESS = 2000.0
DURATION, RATE = 8.9, 1000.0
ABSENT = ("hysteresis", "load", "temperature", "asymmetry", "backlash", "kinematic_error", "lost_motion")
IDEAL = ("thermal", "current_lag", "current_limit", "damping")
RATIOS = (20, 70, 80, 100, 200)
REST = 0.2
"""s; standstill before the motion, part of the duration."""
PUMA_LIMITS = tuple(
    zip(
        (1.43, 0.94, 2.13, 3.98, 4.2, 3.98),
        (97.6, 186.4, 89.4, 24.2, 20.1, 21.3),
        3 * (10.0,) + 3 * (30.0,),
        strict=True,
    )
)
"""Speed (rad/s), effort (Nm) and acceleration (rad/s²) of every joint that the optimised splines keep; assumptions, as
the description has none."""
LITERATURE = {"planar2": 0.103, "planar2, no static friction": 0.00862, "puma560": 0.123}


@dataclass(frozen=True)
class Study:
    """A recording with its true parameters, 14 a joint."""

    robot: jw.Robot
    made: jw.SimulationResult
    truth: Array

    def identify(self, model: ElasticModel, log: jw.Log | None = None) -> ElasticCalibration:
        """Return the estimate from the recording, or from another log of it."""
        return identify_elastic(log or self.made.log, self.robot, model=model, gains=self.made.truth["gains"])

    def errors(self, found: ElasticCalibration) -> tuple[float, int, float]:
        """Return the mean relative error of determined combinations, their number, and the error of all."""
        truth = found.base.from_standard(self.truth)
        low, high = found.conf_int().T
        present = np.abs(truth) > 1e-9
        relative = np.abs(found.values - truth) / np.where(present, np.abs(truth), 1.0)
        determined = present & ((low > 0.0) | (high < 0.0))
        return float(relative[determined].mean()), int(determined.sum()), float(relative[present].mean())

    def noisy(self, decibels: float, seed: int = 0) -> jw.Log:
        """Return the log with noise on the positions of links and rotors."""
        rng, log = np.random.default_rng(seed), self.made.log
        assert log.theta is not None
        size = 10.0 ** (-decibels / 20.0)
        q, theta = (x + size * x.std(axis=0) * rng.normal(size=x.shape) for x in (log.q, log.theta))
        return replace(log, q=q, theta=theta)


def plants(robot: jw.Robot, static: bool) -> list[JointPlant]:
    """Return joints with a linear spring and friction with Stribeck effect, or viscous friction only."""
    result = []
    for joint in digital_robot(robot).without(*ABSENT, *IDEAL).joints:
        coulomb = joint.friction.coulomb if static else 0.0
        stribeck = Stribeck(extra=0.2 * coulomb, speed=0.05) if static else Stribeck()
        friction = replace(joint.friction, square=0.0, cube=0.0, coulomb=coulomb, stribeck=stribeck)
        result.append(replace(joint, stiffness=Cubic(STIFFNESS, 0.0), damping=0.0, friction=friction))
    return result


def optimised_spline(robot: jw.Robot, seed: int) -> Trajectory:
    """Return the quintic spline that determines the parameters of a rigid PUMA 560 best within `PUMA_LIMITS`."""
    joints = tuple(
        replace(joint, limits=replace(joint.limits, velocity=speed, effort=effort, acceleration=acceleration))
        for joint, (speed, effort, acceleration) in zip(robot.joints, PUMA_LIMITS, strict=True)
    )
    options = ExcitationOptions(DURATION - REST, speed=1.0, seed=seed, basis="bspline", clearance=None, starts=1)
    return optimize_excitation(replace(robot, joints=joints), options).motion


def study(name: str, static: bool = True, model: ElasticModel = "reduced", seed: int = 1) -> Study:
    """Return the recording of a robot of the catalogue."""
    robot = jw.load_robot(name)
    geared = [replace(j, motor=replace(j.motor, gear_ratio=j.motor.gear_ratio or 100.0)) for j in robot.joints]
    robot = replace(robot, joints=tuple(geared))
    joints = plants(robot, static)
    made = jw.simulate(
        robot,
        "bspline" if name != "puma560" else optimised_spline(robot, seed),
        duration=DURATION,
        rate=RATE,
        seed=seed,
        plant=jw.PlantOptions(joints=joints, model="spong" if model == "reduced" else "complete"),
        controller=jw.ControllerOptions("pd"),
        sensors=jw.Sensors(current_noise=0.0, motor_counts=None, speed_noise=None),
        keep=0,
    )
    motors = [(j.inertia, j.friction.coulomb, j.friction.viscous, STIFFNESS) for j in joints]
    return Study(robot, made, np.concatenate([np.ravel(made.truth["inertials"]), np.ravel(motors)]))


def sweep(planar: Study, ratios: Sequence[float] = RATIOS) -> list[float]:
    """Return the mean relative error over all combinations at each signal-to-noise ratio (dB); NaN where rejected."""
    errors = []
    for ratio in ratios:
        try:
            errors.append(planar.errors(planar.identify("reduced", planar.noisy(ratio)))[2])
        except jw.errors.EstimationError:  # the positions do not explain the torque any more
            errors.append(float("nan"))
    return errors


def plot(errors: Sequence[float], path: Path) -> None:
    """Draw the error over the signal-to-noise ratio."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 3.2), layout="constrained")
    axes = figure.add_subplot()
    axes.semilogy(RATIOS, errors, "o-", color="#1f6feb", label="planar arm, Jointwise")
    axes.axhline(LITERATURE["planar2"], color="0.5", linestyle="--", label="without noise, literature")
    axes.set_xlabel("signal-to-noise ratio of the positions [dB]")
    axes.set_ylabel("mean relative error")
    for ratio, error in zip(RATIOS, errors, strict=True):
        if np.isnan(error):
            axes.axvline(ratio, color="#c0392b", linestyle=":", label="log rejected")
    axes.grid(True, alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of the splines (default: 1)")
    args = parser.parse_args()
    print(cpu_name())
    cases: tuple[tuple[str, bool, ElasticModel], ...] = (
        ("planar2", True, "reduced"),
        ("planar2", False, "reduced"),
        ("planar2", True, "complete"),
        ("puma560", True, "reduced"),
        ("puma560", True, "complete"),
    )
    for name, static, model, seed in ((*case, seed) for case in cases for seed in args.seeds):
        made = study(name, static, model, seed)
        error, count, every = made.errors(made.identify(model))
        label = name if static else f"{name}, no static friction"
        print(
            f"{label:<28} {model:<9} seed {seed} error {error:.5f} over {count} combinations, {every:.5f} over all "
            f"(literature {LITERATURE[label]:g})",
            flush=True,
        )
    errors = sweep(study("planar2"))
    texts = ["rejected" if np.isnan(error) else f"{error:.4f}" for error in errors]
    print("noise: " + ", ".join(f"{ratio} dB {text}" for ratio, text in zip(RATIOS, texts, strict=True)))
    if args.plot:
        plot(errors, args.plot)


if __name__ == "__main__":
    main()
