"""Bias of least squares and of instrumental variables with encoders of low resolution.

    python benchmarks/instruments.py [--seeds 8] [--robot ur5e] [--cutoff 25]

Simulated recordings with 2,000 counts per turn and plain friction, calibrated by weighted least squares and by
instrumental variables with the same filters. Printed: the largest bias of a base parameter (mean error over the seeds,
kg m² or kg m), and the share of 95 % confidence intervals that contain the truth.
"""

from __future__ import annotations

from timing import cpu_name, use_one_thread

use_one_thread()

import argparse  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from jointwise.call_settings import Method  # noqa: E402
from jointwise.estimation.structure import Structure  # noqa: E402
from jointwise.options import Options  # noqa: E402
from jointwise.spatial import Array  # noqa: E402

COUNTS = 2000
ABSENT = ("backlash", "kinematic_error", "lost_motion", "hysteresis", "load", "stribeck", "temperature", "asymmetry")


def errors(robot: str, seed: int, method: Method, cutoff: float) -> tuple[Array, Array]:
    """Return the errors of all base parameters, and which 95 % confidence intervals contain the truth."""
    made = jw.simulate(
        robot,
        duration=20.0,
        rate=500.0,
        seed=seed,
        sensors=jw.Sensors(encoder_counts=COUNTS, speed_noise=None),
        plant=jw.PlantOptions(without=ABSENT),
        keep=0,
    )
    options = Options(
        gains=made.truth["gains"],
        structure=Structure("tanh", "none", (1.0, 2.0)),
        free=(),
        position_cutoff=cutoff,
        lag=0.0,
        method=method,
    )
    log = made.log.without(["theta"])
    found = jw.calibrate(log, jw.load_robot(robot), options=options, physical=False, accept_implausible=True)
    standard = np.append(np.ravel(made.truth["inertials"]), made.truth["rotor_inertias"])
    truth = found.model.base.from_standard(standard)
    low, high = found.conf_int()[: len(truth)].T
    return found.estimate.values[: len(truth)] - truth, (low <= truth) & (truth <= high)


def compare(robot: str, seeds: int, cutoff: float) -> dict[str, tuple[float, float]]:
    """Return the largest bias and the coverage of each method."""
    result: dict[str, tuple[float, float]] = {}
    methods: tuple[Method, ...] = ("wls", "iv")
    for method in methods:
        rows = [errors(robot, seed, method, cutoff) for seed in range(seeds)]
        bias = np.abs(np.mean([row[0] for row in rows], axis=0))
        result[method] = float(bias.max()), float(np.mean([row[1] for row in rows]))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--robot", default="ur5e")
    parser.add_argument("--cutoff", type=float, default=25.0)
    args = parser.parse_args()
    print(cpu_name())
    for method, (bias, covered) in compare(args.robot, args.seeds, args.cutoff).items():
        print(f"{method}: largest bias {bias:.3f}, covered {100 * covered:.0f} %")


if __name__ == "__main__":
    main()
