"""Physically consistent bodies: solver failures, eigenvalues, cost on held-out logs, and time.

    python benchmarks/physical.py [--seeds 34] [--first 0] [--robots ur5e panda puma560] [--data ../shared/data]

Real logs (skipped where the folder is absent) and simulated ones, each validated on another motion. The described
bodies of simulated robots are wrong on purpose (masses and inertias up to 30 %, centres of mass up to 2 cm), and every
fourth log is calibrated without described bodies. Printed for each log: the smallest eigenvalue of all pseudo-inertias,
the change of the held-out error against the unconstrained fit, the largest difference of a mass from its description
(nan without one), the error of the base parameters over that of the unconstrained fit (in its standard errors, rms; nan
for real logs), and the time for the bodies including their cross-validation.
"""

from __future__ import annotations

from timing import cpu_name, use_one_thread

use_one_thread()

import argparse  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator, Sequence  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from jointwise import spatial  # noqa: E402
from jointwise.options import Options  # noqa: E402
from jointwise.spatial import Array  # noqa: E402

UR10E = ("id_20_02_12_40sec_12harm", "id_20_02_19_14harm50sec", "id_20_02_05_20sec_8harm")
DURATION, RATE = 20.0, 250.0


@dataclass(frozen=True)
class Case:
    """A training log with the logs that it is validated on, and the robot as it is described."""

    name: str
    training: jw.Log
    held_out: tuple[jw.Log, ...]
    robot: jw.Robot
    options: Options
    truth: Array | None = None


@dataclass(frozen=True)
class Row:
    """What one case gave."""

    name: str
    eigenvalue: float
    cost: float
    cross_validated: float
    seconds: float
    boundary: int
    mass: float
    error: float


def wrong_bodies(robot: jw.Robot, seed: int) -> jw.Robot:
    """Return the robot with masses and inertias wrong by up to 30 % and centres of mass by up to 2 cm."""
    rng = np.random.default_rng(seed)
    links = []
    for link in robot.links:
        if link.mass > 0.0:
            mass, size = rng.uniform(0.7, 1.3, 2)
            center = link.center_of_mass + rng.uniform(-0.02, 0.02, 3)
            inertial = spatial.inertial_vector(mass * link.mass, center, size * link.inertia_at_center)
            links.append(replace(link, inertial=inertial))
        else:
            links.append(link)
    return replace(robot, links=tuple(links))


def without_bodies(robot: jw.Robot) -> jw.Robot:
    """Return the robot as a table without inertia."""
    return replace(robot, links=tuple(replace(link, inertial=np.zeros(10)) for link in robot.links))


def simulated(name: str, seed: int) -> Case:
    """Return the case of a simulated robot."""
    robot = jw.load_robot(name)
    made = [jw.simulate(robot, duration=DURATION, rate=RATE, seed=2 * seed + k, keep=0) for k in (0, 1)]
    described = without_bodies(robot) if seed % 4 == 3 else wrong_bodies(robot, seed)
    options = Options(gains=made[0].truth["gains"])
    truth = np.append(np.ravel(made[0].truth["inertials"]), made[0].truth["rotor_inertias"])
    return Case(f"{name} {seed}", made[0].log, (made[1].log,), described, options, truth)


def real(folder: Path) -> Iterator[Case]:
    """Yield the cases of the real logs."""
    ur10e, panda = folder / "ur10e", folder / "panda" / "traj1_first60.csv"
    if ur10e.is_dir():
        logs = [jw.read_log(ur10e / f"{name}.csv") for name in ("id_20_02_12_50sec_12harm", *UR10E)]
        for described in (jw.load_robot("ur10e"), without_bodies(jw.load_robot("ur10e"))):
            yield Case("UR10e log", logs[0], tuple(logs[1:]), described, Options())
    if panda.is_file():
        first, last = jw.holdout(jw.read_log(panda, joints=7), 0.3)
        yield Case("Panda log", first, (last,), jw.load_robot("panda"), Options())


def measure(case: Case, prior: str) -> Row:
    """Return the figures of a case."""
    stages: list[tuple[str, float]] = []
    options = replace(case.options, body_prior=prior)  # type: ignore[arg-type]
    calibration = jw.calibrate(
        case.training,
        case.robot,
        options=options,
        progress=lambda stage: stages.append((stage, time.process_time())),
    )
    stages.append(("end", time.process_time()))
    start = next(k for k, (stage, _) in enumerate(stages) if stage.startswith("physically"))
    physical, consistent = calibration.physical, calibration.consistent()
    assert physical is not None
    errors = [
        jw.validate(consistent, log).mean_nmse / jw.validate(calibration, log).mean_nmse - 1.0 for log in case.held_out
    ]
    smallest = min(float(np.linalg.eigvalsh(spatial.pseudo_inertia(body))[0]) for body in physical.inertials)
    cross = float("nan") if physical.held_out is None else physical.held_out.cost
    mass = float(np.abs(physical.inertials[:, 9] / physical.described_masses - 1.0).max())
    seconds = stages[start + 1][1] - stages[start][1]
    boundary = len(physical.boundary)
    return Row(case.name, smallest, max(errors), cross, seconds, boundary, mass, error_ratio(case, calibration))


def error_ratio(case: Case, calibration: jw.Calibration) -> float:
    """Return the rms error of the base parameters of the consistent bodies over that of the unconstrained fit."""
    if case.truth is None:
        return float("nan")
    base, estimate = calibration.model.base, calibration.estimate
    truth = base.from_standard(case.truth[: base.projection.shape[1]])
    fits = (calibration.consistent().estimate.values, estimate.values)
    bodies, free = (np.linalg.norm((v[: base.count] - truth) / estimate.deviation[: base.count]) for v in fits)
    return float(bodies / free)


def summary(rows: Sequence[Row], failures: int) -> str:
    """Return the figures over all cases."""
    if not rows:
        return f"no logs, {failures} failures"
    costs, seconds = np.array([row.cost for row in rows]), [row.seconds for row in rows]
    masses, errors = ([getattr(row, name) for row in rows] for name in ("mass", "error"))
    return (
        f"{len(rows)} logs, {failures} failures; smallest eigenvalue {min(row.eigenvalue for row in rows):.2g}; "
        f"cost on held-out logs median {100 * np.median(costs):+.2f} %, 95th percentile "
        f"{100 * np.quantile(costs, 0.95):+.2f} %, largest {100 * costs.max():+.2f} %, "
        f"{int((costs > 0.01).sum())} above 1 %; masses within {100 * np.nanmax(masses):.0f} % of the description; "
        f"errors of base parameters {np.nanmedian(errors):.2f} times; "
        f"time median {np.median(seconds):.2f} s, largest {max(seconds):.2f} s"
    )


def run(cases: Iterator[Case], prior: str = "entropic") -> tuple[list[Row], int]:
    """Return the rows of all cases and the number of failures; print each."""
    rows, failures = [], 0
    for case in cases:
        try:
            row = measure(case, prior)
        except jw.JointwiseError as problem:
            failures += 1
            print(f"{case.name}: FAILED {problem}", flush=True)
            continue
        rows.append(row)
        print(
            f"{row.name:<14} eigenvalue {row.eigenvalue:.2g}  held-out {100 * row.cost:+.2f} %  cross-validated "
            f"{100 * row.cross_validated:+.2f} %  mass {100 * row.mass:.0f} %  error {row.error:.2f}  "
            f"{row.seconds:.2f} s  {row.boundary} links at the boundary",
            flush=True,
        )
    return rows, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=34)
    parser.add_argument("--first", type=int, default=0, help="first seed (default: 0)")
    parser.add_argument("--robots", nargs="+", default=["ur5e", "panda", "puma560"])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[1].parent / "shared" / "data")
    parser.add_argument("--prior", choices=("entropic", "euclidean"), default="entropic")
    args = parser.parse_args()
    print(cpu_name())
    print("real:     ", summary(*run(real(args.data), args.prior)))
    cases = (simulated(name, seed) for seed in range(args.first, args.first + args.seeds) for name in args.robots)
    print("simulated:", summary(*run(cases, args.prior)))


if __name__ == "__main__":
    main()
