"""Figures of optimal excitations: condition number, standard errors, limits, and realised errors of the digital robot.

python benchmarks/excite.py                 # all parts, about an hour of processor time
python benchmarks/excite.py --seeds 3 --starts 2   # fewer seeds and starts of the limits
python benchmarks/excite.py --part condition realised
python benchmarks/excite.py --part limits --journal limits.jsonl   # can be interrupted and continued
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import jointwise as jw
from jointwise.design.clearance import APART, straight_path
from jointwise.design.excitation import RATE, STUDY_RATE, condition_number, standard_errors
from jointwise.design.information import InformationModel
from jointwise.estimation.uncertainty import error_ratio
from jointwise.experiment.excitation_files import write_excitation
from jointwise.model.rigid import inverse_dynamics
from jointwise.result.excitation import learned_noise
from jointwise.spatial import Array

FRICTION = ("coulomb", "viscous")
ROBOTS = ("ur10e", "ur5e", "panda")
RANDOM = 60
"""Random series of the comparison."""


def condition() -> None:
    """Print condition number, standard errors and time for a UR10e on a table, 20 s at 60 % of the speed limit."""
    robot = jw.load_robot("ur10e")
    for seed in (1, 2, 3):
        start, used = time.perf_counter(), time.process_time()
        found = jw.design.optimize_excitation(robot, jw.design.ExcitationOptions(20.0, speed=0.6, seed=seed))
        seconds, used = time.perf_counter() - start, time.process_time() - used
        conditions, errors = random_figures(found.model)
        better = np.median(np.median(errors, axis=0) / found.errors)
        print(
            f"ur10e seed {seed}: condition number {found.condition:.1f} (random: median {np.median(conditions):.0f}, "
            f"best {min(conditions):.0f} of {RANDOM}); standard errors {better:.2f} times smaller (median); "
            f"{seconds:.0f} s, {used:.0f} s of processor time"
        )


def random_figures(model: InformationModel) -> tuple[list[float], list[Array]]:
    """Return condition numbers and standard errors of random series."""
    conditions, errors = [], []
    for seed in range(RANDOM):
        columns = model.columns(jw.design.fourier_trajectory(model.robot, 20.0, seed).sample(STUDY_RATE))
        conditions.append(condition_number(model, columns))
        errors.append(standard_errors(model, columns, RATE / STUDY_RATE))
    return conditions, errors


@dataclass(frozen=True)
class LimitsRow:
    """Figures of one motion: whether it keeps all limits, its condition number, and by how much errors are smaller."""

    robot: str
    seed: int
    kept: bool
    condition: float
    better: float


def limits(seeds: Sequence[int], starts: int, journal: Path | None, duration: float = 20.0) -> None:
    """Print how many motions violate a limit at ten times the rate of their files.

    The rows of a `journal` (one JSON document a line) are not computed again; new ones are added to it.
    """
    stored = journal.read_text().splitlines() if journal is not None and journal.exists() else []
    rows = [LimitsRow(**json.loads(line)) for line in stored]
    known = {(row.robot, row.seed) for row in rows}
    for name, seed in ((name, seed) for seed in seeds for name in ROBOTS if (name, seed) not in known):
        best = jw.design.optimize_excitation(
            jw.load_robot(name), jw.design.ExcitationOptions(duration, seed=seed, starts=starts)
        )
        rows.append(LimitsRow(name, seed, keeps_limits(best), best.condition, float(np.median(best.improvement))))
        print(rows[-1], flush=True)
        if journal is not None:
            with journal.open("a") as file:
                file.write(json.dumps(asdict(rows[-1])) + "\n")
    for name in ROBOTS:
        print(limits_text(name, [row for row in rows if row.robot == name]), flush=True)


def limits_text(name: str, rows: Sequence[LimitsRow]) -> str:
    """Return the figures of all motions of a robot as text."""
    conditions, better = (np.array([getattr(row, key) for row in rows]) for key in ("condition", "better"))
    return (
        f"{name}: {sum(not row.kept for row in rows)} of {len(rows)} motions violate a limit; condition number "
        f"{conditions.min():.1f} to {conditions.max():.1f}; standard errors {np.median(better):.2f} times smaller than "
        f"those of random series (median; least {better.min():.2f})"
    )


def keeps_limits(found: jw.design.Excitation) -> bool:
    """Return whether a motion keeps all limits at 5 kHz, computed without the code of the search."""
    robot, motion = found.robot, found.motion
    try:
        jw.design.check_limits(robot, motion, 10.0 * RATE)
    except jw.errors.ModelError:
        return False
    states = motion.sample(10.0 * RATE)
    speeds = 0.6 * np.array([joint.limits.velocity for joint in robot.joints], dtype=float)
    strongest = np.array([joint.limits.acceleration or 6.0 for joint in robot.joints])
    path = np.concatenate([states.q, straight_path(found.limits.home, motion.center)])
    body = jw.design.Body(robot)
    return bool(
        (np.abs(states.qd) <= speeds).all()
        and (np.abs(states.qdd) <= strongest).all()
        and (np.abs(torque(found, states)) <= np.array([joint.limits.effort for joint in robot.joints])).all()
        and body.heights(path).min() >= 0.05
        and body.distances(path).min() >= APART
    )


def torque(found: jw.design.Excitation, states: jw.design.States) -> Array:
    """Return the torque (samples, joints), Nm, of bodies, rotors and friction by inverse dynamics."""
    robot = found.robot
    rotors = np.array([joint.motor.reflected_inertia or 0.0 for joint in robot.joints])
    dry, viscous = (np.array([getattr(joint.motor, name) or 0.0 for joint in robot.joints]) for name in FRICTION)
    bodies = inverse_dynamics(robot, states.q, states.qd, states.qdd)
    total: Array = bodies + rotors * states.qdd + dry * np.tanh(states.qd / 0.05) + viscous * states.qd
    return total


def realised(runs: int, first: int, robots: Sequence[str] = ("ur5e", "ur10e")) -> None:
    """Print realised over predicted errors of the digital robots with all their effects.

    The recording of an excitation (seed k, from `first` on) is calibrated as any log; its standard errors correct the
    prediction for the next excitation (seed k + 1), which is recorded and calibrated in turn. Nothing of a recording is
    used to predict its own errors.
    """
    ratios: list[Array] = []
    stated: list[Array] = []
    for name in robots:
        robot, options = jw.load_robot(name), jw.design.ExcitationOptions(20.0, starts=1)
        for run in range(runs + 1):
            predicted = jw.design.optimize_excitation(robot, replace(options, seed=first + run))
            recorded = jw.simulate(robot, predicted.motion, rate=RATE, seed=500 + first + run, keep=0)
            found = calibrated(recorded, robot)
            if run > 0:
                base = found.model.base
                standard = np.append(np.ravel(recorded.truth["inertials"]), recorded.truth["rotor_inertias"])
                errors, deviation = (each[: base.count] for each in (predicted.errors, found.estimate.deviation))
                ratios.append((found.estimate.values[: base.count] - base.from_standard(standard)) / errors)
                stated.append(error_ratio(found.estimate.shares, found.estimate.factor) * deviation / errors)
                print(f"{name} run {run}: {compared(ratios[-1:], stated[-1:])}", flush=True)
            options = replace(options, inflation=inflation(predicted, found))
    print(f"all: {compared(ratios, stated)}")


def inflation(predicted: jw.design.Excitation, found: jw.Calibration) -> dict[str, float]:
    """Return standard errors of a calibration over those of white noise, as the files of an excitation give them."""
    with TemporaryDirectory() as folder:
        write_excitation(predicted, Path(folder))
        return learned_noise(found, folder)[1]


def calibrated(made: jw.SimulationResult, robot: jw.Robot) -> jw.Calibration:
    """Return the calibration of a recording with known drive gains."""
    return jw.calibrate(made.log, robot, options=jw.Options(gains=made.truth["gains"]), physical=False)


def compared(ratios: Sequence[Array], stated: Sequence[Array]) -> str:
    """Return realised errors and standard errors over the predicted ones as text."""
    errors = np.concatenate(ratios)
    return (
        f"errors {np.sqrt(np.mean(errors**2)):.2f} (rms), {np.median(np.abs(errors)) / 0.6745:.2f} (median, as that of "
        f"a normal distribution) times the predicted standard errors; standard errors of the calibration "
        f"{np.median(np.concatenate(stated)):.2f} times (median)"
    )


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=("condition", "limits", "realised"))
    parser.add_argument("--seeds", type=int, default=50, help="of the limits (default: 50)")
    parser.add_argument("--first", type=int, default=1, help="first seed of limits and realised errors (default: 1)")
    parser.add_argument("--journal", type=Path, help="file with finished motions of the limits")
    parser.add_argument("--starts", type=int, default=4, help="random starts of each search of the limits (default: 4)")
    parser.add_argument("--runs", type=int, default=4, help="runs of the realised errors, for each robot (default: 4)")
    args = parser.parse_args()
    parts = args.part or ("condition", "limits", "realised")
    if "condition" in parts:
        condition()
    if "limits" in parts:
        limits(range(args.first, args.first + args.seeds), args.starts, args.journal)
    if "realised" in parts:
        realised(args.runs, args.first)


if __name__ == "__main__":
    main()
