"""One encoder against two: the same simulated recordings, with and without the positions of the rotors.

    python benchmarks/two_encoders.py [--seeds 5] [--first 1] [--robot ur5e] [--stiffness 1 0.3 0.1]

Every recording is calibrated three times: from the links alone (one encoder), with rotor-side compensation and known
rotor inertias, and with rotor inertias estimated. Against the true parameters: error of the base parameters (norm,
relative), the median standard error, the share of 95 % confidence intervals that cover; and MSE / variance on another
recording. The second table compares the identified with the described ("CAD") bodies of an arm whose bodies differ
from its description by 10 %, as the joint torque that motor current, rotor inertia and friction leave
(K_tau i - B θ'' - f), on three other motions.
"""

from __future__ import annotations

from timing import cpu_name, use_one_thread

use_one_thread()

import argparse  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from jointwise import spatial  # noqa: E402
from jointwise.options import Options, with_friction  # noqa: E402
from jointwise.spatial import Array  # noqa: E402

DURATION, RATE = 20.0, 500.0
THESIS = (0.285, 0.165, 0.249)
"""Improvements of the NMSE against CAD parameters on three validation motions, from the literature."""


@dataclass(frozen=True)
class Outcome:
    """Figures of one calibration: errors against the truth, and on another recording."""

    error: float
    deviation: float
    covered: float
    validation: float


def record(robot: jw.Robot, seed: int, stiffness: float) -> jw.SimulationResult:
    """Return the recording of a seed with the stiffness of all joints multiplied."""
    plant = jw.PlantOptions(age={"stiffness": stiffness - 1.0})
    return jw.simulate(robot, duration=DURATION, rate=RATE, seed=seed, plant=plant, keep=0)


def calibrated(made: jw.SimulationResult, robot: jw.Robot, encoders: str) -> jw.Calibration:
    """Return the calibration with "one", "two" or "two, B estimated" encoders."""
    log = made.log if encoders != "one" else made.log.without(["theta"])
    inertias = made.truth["rotor_inertias"] if encoders == "two" else None
    options = with_friction(
        Options(gains=made.truth["gains"]), [log], two_encoders=encoders != "one", rotor_inertias=inertias
    )
    return jw.calibrate(log, robot, options=options, physical=False)


def true_base(made: jw.SimulationResult, calibration: jw.Calibration) -> Array:
    """Return the true base parameters of a calibration."""
    rotors = made.truth["rotor_inertias"] if calibration.model.rotors else []
    return calibration.model.base.from_standard(np.append(np.ravel(made.truth["inertials"]), rotors))


def outcome(made: jw.SimulationResult, other: jw.SimulationResult, robot: jw.Robot, encoders: str) -> Outcome:
    """Return the figures of one calibration."""
    calibration = calibrated(made, robot, encoders)
    truth, estimate = true_base(made, calibration), calibration.estimate
    error = np.abs(estimate.values[: len(truth)] - truth)
    half = estimate.factor * estimate.deviation[: len(truth)]
    log = other.log if encoders != "one" else other.log.without(["theta"])
    return Outcome(
        float(np.linalg.norm(error) / np.linalg.norm(truth)),
        float(np.median(estimate.deviation[: len(truth)])),
        float(np.mean(error <= half)),
        jw.validate(calibration, log).mean_nmse,
    )


def other_bodies(robot: jw.Robot, seed: int) -> jw.Robot:
    """Return an arm whose bodies differ from the described ones: 10 % of mass and inertia, 1 cm of the centre."""
    rng = np.random.default_rng(seed)
    links = [
        replace(
            link,
            inertial=spatial.inertial_vector(
                rng.uniform(0.9, 1.1) * link.mass,
                link.center_of_mass + rng.uniform(-0.01, 0.01, 3),
                rng.uniform(0.9, 1.1) * link.inertia_at_center,
            ),
        )
        for link in robot.links
    ]
    return replace(robot, links=tuple(links))


def against_cad(robot: jw.Robot, seed: int) -> list[tuple[float, float]]:
    """Return by how much the identified and the true bodies reduce the NMSE of the joint torque on three motions.

    The true bodies show what is attainable: the rest of the error is noise and friction.
    """
    plant = other_bodies(robot, seed)
    made = record(plant, seed, 1.0)
    identified = calibrated(made, robot, "two")
    described, true = (with_bodies(identified, arm) for arm in (robot, plant))
    improvements = []
    for other in range(1, 4):
        log = record(plant, 100 * seed + other, 1.0).log
        found, cad, best = (jw.validate(model, log).mean_nmse for model in (identified, described, true))
        improvements.append((1.0 - found / cad, 1.0 - best / cad))
    return improvements


def with_bodies(calibration: jw.Calibration, robot: jw.Robot) -> jw.Calibration:
    """Return a calibration with the bodies of a robot and its own friction."""
    base, values = calibration.model.base, calibration.estimate.values.copy()
    values[: base.count] = base.from_standard(robot.inertials.ravel())
    return replace(calibration, estimate=replace(calibration.estimate, values=values))


def compare(robot: jw.Robot, seeds: Sequence[int], stiffness: float) -> dict[str, Outcome]:
    """Return the medians over seeds for each kind of calibration."""
    rows: dict[str, list[Outcome]] = {"one": [], "two": [], "two, B estimated": []}
    for seed in seeds:
        made, other = record(robot, seed, stiffness), record(robot, 1000 + seed, stiffness)
        for encoders, found in rows.items():
            found.append(outcome(made, other, robot, encoders))
    return {
        name: Outcome(*(float(np.median([getattr(row, key) for row in found])) for key in Outcome.__annotations__))
        for name, found in rows.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="first seed (default: 1)")
    parser.add_argument("--robot", default="ur5e")
    parser.add_argument("--stiffness", type=float, nargs="+", default=[1.0, 0.3, 0.1])
    args = parser.parse_args()
    print(cpu_name())
    robot, seeds = jw.load_robot(args.robot), range(args.first, args.first + args.seeds)
    for stiffness in args.stiffness:
        for name, row in compare(robot, seeds, stiffness).items():
            print(
                f"stiffness x {stiffness:<5g} {name:<17} error {100 * row.error:.2f} %  standard error "
                f"{row.deviation:.4f}  covered {100 * row.covered:.0f} %  validation {row.validation:.5f}",
                flush=True,
            )
    found, attainable = np.array([against_cad(robot, seed) for seed in seeds]).transpose(2, 0, 1)
    text = ", ".join(
        f"{100 * median:.1f} (least {100 * least:.1f}; literature {100 * known:.1f})"
        for median, least, known in zip(np.median(found, axis=0), found.min(axis=0), THESIS, strict=True)
    )
    print(f"improvement of the NMSE against CAD on three motions, median of {len(found)} arms: {text} %")
    print(f"share of the improvement with the true bodies: {100 * (found / attainable).min():.0f} % at least")


if __name__ == "__main__":
    main()
