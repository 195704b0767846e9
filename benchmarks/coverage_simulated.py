"""Coverage and width of the 95 % confidence intervals of the bodies on logs of the digital robot.

    python benchmarks/coverage_simulated.py RESULTS.jsonl [--logs 200] [--first 1000] [--start 0] [--duration 20]
    python benchmarks/coverage_simulated.py RESULTS.jsonl --logs 0        print the table of a file

Four robots (two with described drive gains, two whose gains are estimated), 100 to 1000 Hz, clocks with jitter,
feedback of true states or of encoders; every log has another seed. Each is calibrated twice: with everything selected
by the program, and by an oracle that knows the structure (the friction laws of the digital robot, their slip limits,
powers and Stribeck velocity) and estimates only their factors. Neither knows what a rigid model cannot describe
(elastic gears, kinematic errors, temperature). Results are appended to the file log by log, so a run can be stopped and
continued, and files of several runs can be concatenated. The motion repeats itself every 10 s.
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
from jointwise.estimation.structure import Structure  # noqa: E402
from jointwise.experiment.options import ControllerOptions  # noqa: E402
from jointwise.experiment.simulator import default_sensors  # noqa: E402
from jointwise.options import Options  # noqa: E402
from jointwise.simulation.robot import DigitalRobot  # noqa: E402

ROBOTS = ("ur5e", "ur10e", "panda", "ur3e")
RATES = (100.0, 250.0, 500.0, 1000.0)
JITTERS = (0.0, 0.2)
"""Rms of the clock's jitter as a share of the period."""
FEEDBACKS = ("states", "sensors")


def conditions(number: int) -> dict[str, Any]:
    """Return the conditions of a log: robots change fastest, then rate, jitter and feedback."""
    robot, rest = number % 4, number // 4
    return {
        "robot": ROBOTS[robot],
        "rate": RATES[rest % 4],
        "jitter": JITTERS[rest // 4 % 2],
        "feedback": FEEDBACKS[rest // 8 % 2],
    }


def true_structure(digital: DigitalRobot, ripple: float) -> Structure:
    """Return the joint model of a digital robot; `ripple` is the time step (s) of its drives' answer, 0 for none."""
    joint = digital.joints[0]
    law, backlash = joint.friction, joint.backlash.mean
    powers = [power for power, factor in ((1.0, law.viscous), (2.0, law.square), (3.0, law.cube)) if factor]
    return Structure(
        "hysteresis", "square", tuple(powers), stribeck=law.stribeck.speed, ripple=ripple,
        limits=tuple(backlash * limit for limit in law.slip.limits),
    )  # fmt: skip


def measure(number: int, seed: int, duration: float) -> dict[str, Any]:
    """Return errors and half-widths of the base parameters of one log of a duration (s), by both calibrations."""
    case = conditions(number)
    sensors = default_sensors(case["rate"], seed, jitter=case["jitter"] / case["rate"])
    controller = ControllerOptions(feedback=case["feedback"])
    made = jw.simulate(
        case["robot"], duration=duration, rate=case["rate"], seed=seed, sensors=sensors, controller=controller, keep=0
    )
    result: dict[str, Any] = {**case, "seed": seed, "duration": duration}
    ripple = made.log.clock.median_step if case["feedback"] == "sensors" else 0.0
    known = Options(structure=true_structure(made.digital, ripple), free=())
    for name, options in (("automatic", Options()), ("oracle", known)):
        result[name] = intervals(made, options)
    return result


def intervals(made: jw.SimulationResult, options: Options) -> dict[str, Any]:
    """Return the errors of the bodies with half their intervals (NaN if undetermined) and the causes of the width."""
    robot = made.digital.robot
    calibration = jw.calibrate(made.log, robot, physical=False, accept_implausible=True, options=options)
    estimate, names = calibration.estimate, calibration.model.base.names
    half = estimate.factor * estimate.deviation[: len(names)]
    half[np.array(estimate.status[: len(names)]) == "undetermined"] = np.nan
    error = estimate.values[: len(names)] - np.array([made.truth["base"][name] for name in names])
    return {"error": error.tolist(), "half": half.tolist(), "shares": dict(estimate.shares)}


def covered(rows: list[dict[str, Any]], kind: str) -> float:
    """Return the share of parameters within their intervals, all logs together."""
    inside = [np.abs(row[kind]["error"]) <= np.array(row[kind]["half"]) for row in rows]
    known = [np.isfinite(row[kind]["half"]) for row in rows]
    return float(sum(np.sum(a & b) for a, b in zip(inside, known, strict=True)) / sum(map(np.sum, known)))


def jackknife(part: dict[str, Any]) -> float:
    """Return the width of the jackknife alone, for one model without any doubt, relative to the whole interval."""
    return float(np.sqrt(part["shares"]["independent noise"] + part["shares"]["correlated residuals"]))


def widths(row: dict[str, Any]) -> tuple[float, float]:
    """Return the median width of the automatic intervals relative to the oracle's, and to the oracle's jackknife."""
    ratio = float(np.nanmedian(np.array(row["automatic"]["half"]) / np.array(row["oracle"]["half"])))
    return ratio, ratio / jackknife(row["oracle"])


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print coverage and width for all logs and by condition, then the shares of the causes."""
    print(f"{'':20} {'logs':>5} {'automatic':>10} {'oracle':>7}   width of automatic / oracle, / its jackknife alone")
    groups = [("all", rows)]
    for key in ("robot", "rate", "jitter", "feedback"):
        values = sorted({row[key] for row in rows})
        groups += [(f"{key} {value}", [row for row in rows if row[key] == value]) for value in values]
    for label, part in groups:
        ratio, bare = np.median([widths(row) for row in part], axis=0)
        shares = f"{covered(part, 'automatic'):10.3f} {covered(part, 'oracle'):7.3f}"
        print(f"{label:20} {len(part):5d} {shares} {ratio:18.2f} {bare:8.2f}")
    print("share of the variance by cause (mean over the logs)")
    for kind in ("automatic", "oracle"):
        for gains in ("described", "estimated"):
            causes = [r[kind]["shares"] for r in rows if ("drive gains" in r[kind]["shares"]) == (gains == "estimated")]
            names = sorted({name for shares in causes for name in shares})
            text = [f"{name} {100 * np.mean([shares.get(name, 0.0) for shares in causes]):.0f} %" for name in names]
            print(f"{kind}, gains {gains}: {', '.join(text)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, help="file to which results are appended")
    parser.add_argument("--logs", type=int, default=200, help="logs in the file at the end")
    parser.add_argument("--start", type=int, default=0, help="number of the first log, which sets its conditions")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first log")
    parser.add_argument("--duration", type=float, default=20.0, help="duration of the logs, s")
    options = parser.parse_args()
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    for number in range(len(lines), options.logs):
        with options.results.open("a") as file:
            chosen = options.start + number
            file.write(json.dumps(measure(chosen, options.first + chosen, options.duration)) + "\n")
    print_table([json.loads(line) for line in options.results.read_text().splitlines()])


if __name__ == "__main__":
    main()
