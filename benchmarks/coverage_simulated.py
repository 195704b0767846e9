"""Coverage and width of the 95 % confidence intervals of the bodies on logs of the digital robot.

    python benchmarks/coverage_simulated.py RESULTS.jsonl [--logs 200] [--first 1000] [--start 0]
    python benchmarks/coverage_simulated.py RESULTS.jsonl --logs 0        print the table of a file

Four robots (two with described drive gains, two whose gains are estimated), 100 to 1000 Hz, clocks with jitter,
feedback of true states or of encoders; every log has another seed. Each is calibrated twice: with everything selected
by the program, and with the selected joint model as a known one, whose intervals stand for those of an oracle.
Results are appended to the file log by log, so a run can be stopped and continued, and files of several runs can be
concatenated.
"""

from __future__ import annotations

from timing import use_one_thread

use_one_thread()

import argparse  # noqa: E402
import json  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from jointwise.experiment.options import ControllerOptions  # noqa: E402
from jointwise.experiment.simulator import default_sensors  # noqa: E402
from jointwise.options import Options  # noqa: E402

ROBOTS = ("ur5e", "ur10e", "panda", "ur3e")
RATES = (100.0, 250.0, 500.0, 1000.0)
JITTERS = (0.0, 0.2)
"""Rms of the clock's jitter as a share of the period."""
FEEDBACKS = ("states", "sensors")
DURATION = 20.0


def conditions(number: int) -> dict[str, Any]:
    """Return the conditions of a log: robots change fastest, then rate, jitter and feedback."""
    robot, rest = number % 4, number // 4
    return {
        "robot": ROBOTS[robot],
        "rate": RATES[rest % 4],
        "jitter": JITTERS[rest // 4 % 2],
        "feedback": FEEDBACKS[rest // 2 % 2],
    }


def measure(number: int, seed: int) -> dict[str, Any]:
    """Return errors and half-widths of the base parameters of one log, by both calibrations."""
    case = conditions(number)
    sensors = default_sensors(case["rate"], seed, jitter=case["jitter"] / case["rate"])
    controller = ControllerOptions(feedback=case["feedback"])
    made = jw.simulate(
        case["robot"], duration=DURATION, rate=case["rate"], seed=seed, sensors=sensors, controller=controller, keep=0
    )
    robot = jw.load_robot(case["robot"])
    automatic = jw.calibrate(made.log, robot, physical=False, accept_implausible=True)
    known = Options(structure=automatic.structure, free=())
    fixed = jw.calibrate(made.log, robot, physical=False, accept_implausible=True, options=known)
    names = automatic.model.base.names
    truth = np.array([made.truth["base"][name] for name in names])
    result: dict[str, Any] = {**case, "seed": seed, "shares": dict(automatic.estimate.shares)}
    for name, calibration in (("automatic", automatic), ("fixed", fixed)):
        estimate, count = calibration.estimate, len(names)
        half = estimate.factor * estimate.deviation[:count]
        known_ones = np.array([status != "undetermined" for status in estimate.status[:count]])
        half[~known_ones] = np.nan
        result[name] = {"error": (estimate.values[:count] - truth).tolist(), "half": half.tolist()}
    return result


def covered(rows: list[dict[str, Any]], kind: str) -> float:
    """Return the share of parameters within their intervals, all logs together."""
    inside = [np.abs(row[kind]["error"]) <= np.array(row[kind]["half"]) for row in rows]
    known = [np.isfinite(row[kind]["half"]) for row in rows]
    return float(sum(np.sum(a & b) for a, b in zip(inside, known, strict=True)) / sum(map(np.sum, known)))


def bare_width(row: dict[str, Any]) -> float:
    """Return the width of the automatic intervals relative to the jackknife of the selected model alone."""
    shares = row["shares"]
    return float(1.0 / np.sqrt(shares["independent noise"] + shares["correlated residuals"]))


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print coverage and width for all logs and by condition, then the shares of the causes."""
    print(f"{'':24} {'logs':>5} {'automatic':>10} {'fixed':>7} {'width / oracle':>15} {'width / jackknife':>17}")
    groups = [("all", rows)]
    for key in ("robot", "rate", "jitter", "feedback"):
        values = dict.fromkeys(row[key] for row in rows)
        groups += [(f"{key} {value}", [row for row in rows if row[key] == value]) for value in values]
    for label, part in groups:
        ratios = np.concatenate([np.array(r["automatic"]["half"]) / np.array(r["fixed"]["half"]) for r in part])
        bare = np.median([bare_width(row) for row in part])
        print(
            f"{label:24} {len(part):5d} {covered(part, 'automatic'):10.3f} {covered(part, 'fixed'):7.3f} "
            f"{np.nanmedian(ratios):15.2f} {bare:17.2f}"
        )
    print("share of the variance by cause (mean over the logs)")
    for gains in ("described", "estimated"):
        part = [row for row in rows if ("drive gains" in row["shares"]) == (gains == "estimated")]
        causes = sorted({cause for row in part for cause in row["shares"]})
        text = ", ".join(f"{c} {100 * np.mean([row['shares'].get(c, 0.0) for row in part]):.0f} %" for c in causes)
        print(f"gains {gains}: {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, help="file to which results are appended")
    parser.add_argument("--logs", type=int, default=200, help="logs in the file at the end")
    parser.add_argument("--start", type=int, default=0, help="number of the first log, which sets its conditions")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first log")
    options = parser.parse_args()
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    for number in range(len(lines), options.logs):
        with options.results.open("a") as file:
            chosen = options.start + number
            file.write(json.dumps(measure(chosen, options.first + chosen)) + "\n")
    print_table([json.loads(line) for line in options.results.read_text().splitlines()])


if __name__ == "__main__":
    main()
