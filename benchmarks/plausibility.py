"""Wrong set-ups of a calibration: how many are noticed, with the right cause, and how many right ones are not accepted.

    python benchmarks/plausibility.py [--part report] [--seeds 1] [--only ur10e] [--verbose]
    python benchmarks/plausibility.py --random 2 [--part report] [--results FILE.jsonl]

A set-up is one or more logs with a declaration (robot, mounting, payload, columns). Wrong ones are made from right
ones: signs, orders, zeros, mountings, robots, payloads, gains, offsets, delays, lost samples, short logs. A wrong one
is harmful if the error of its model on an unseen, right log is more than twice that of the right model. Thresholds were
developed on part `develop`; part `report` has other logs, other robots and other seeds. Real logs are used where
../shared/data exists. With `--random N` kinds, joints, sizes and directions are drawn, N errors for each of many right
set-ups, every fourth with a second error. Results are appended to a file, from which a run continues.
"""

from __future__ import annotations

from timing import use_one_thread

use_one_thread()

import argparse  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from dataclasses import asdict, dataclass, replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the wrong set-ups, which are test support

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from data_files import SHARED  # noqa: E402
from jointwise.estimation.structure import Structure  # noqa: E402
from jointwise.experiment.options import ControllerOptions  # noqa: E402
from jointwise.model.terms import Hysteresis  # noqa: E402
from jointwise.result.plausibility import setup_of  # noqa: E402
from jointwise.result.plausibility.wording import SETUP  # noqa: E402
from wrong_setups import RandomSetups, Setup, WrongSetups, beginning  # noqa: E402

OPTIONS = jw.Options(
    structure=Structure("hysteresis", "none", (1.0, 2.0), limits=Hysteresis.polynomial_limits(4, 5e-3)), free=()
)
"""One joint model for all: the selection of a better one takes longer and changes no declaration."""
LOAD = jw.Payload(2.805, (0.036, 0.172, 0.052))
"""What the arm carries in the loaded logs of the UR10e; `jointwise payload` found the centre with a model of the log
without load of that day."""
HARMFUL = 2.0
"""Ratio of the errors on unseen data from which a wrong set-up is harmful."""


@dataclass(frozen=True)
class Outcome:
    """What the program says about a set-up, and the error of its model on the unseen log."""

    name: str
    wrong: str
    causes: tuple[str, ...]
    status: str
    named: tuple[str, ...]
    line: str
    error: float
    seconds: float

    @property
    def noticed(self) -> bool:
        """Whether the set-up is not simply accepted."""
        return self.status != "ok"

    @property
    def cause_named(self) -> bool:
        """Whether a cause that is wrong is named."""
        return self.status == "refused before" or bool(set(self.named) & set(self.causes))


def evaluate(setup: Setup) -> Outcome:
    """Calibrate a set-up and validate its model on the unseen log."""
    started = time.process_time()
    head = setup.name, setup.wrong, setup.causes
    try:
        model = jw.calibrate(
            setup.logs, setup.robot, mounting=setup.mounting, payload=setup.payload, options=OPTIONS,
            physical=False, accept_implausible=True,
        )  # fmt: skip
    except jw.JointwiseError as problem:
        return Outcome(*head, "refused before", (), str(problem), np.inf, time.process_time() - started)
    found = [check for check in model.plausibility if check.severity != "ok"]
    error = jw.validate(model, setup.unseen).mean_nmse
    line = " | ".join(f"{check.subject} {SETUP[check.severity]}: {check.evidence}" for check in found)
    seconds = time.process_time() - started
    return Outcome(*head, setup_of(found), tuple(check.subject for check in found), line, error, seconds)


def real_log(name: str) -> jw.Log:
    """Return a real log."""
    return jw.read_log(SHARED / f"{name}.csv")


def real_setups(part: str) -> Iterator[Setup]:
    """Yield the right set-ups of real logs."""
    ur10e = jw.load_robot("ur10e")
    unseen = {
        "develop": real_log("ur10e/id_20_02_12_40sec_12harm"),
        "report": real_log("ur10e/id_20_02_19_14harm50sec"),
    }
    names = {
        "develop": ("id_20_02_12_50sec_12harm", "id_20_01_31_unload"),
        "report": ("id_20_02_12_40sec_12harm", "id_20_02_05_20sec_8harm"),
    }[part]
    for name in names:
        yield Setup(f"UR10e {name}", (real_log(f"ur10e/{name}"),), ur10e, unseen[part])
    loaded = {"develop": "id_20_01_31_load", "report": "id_20_02_19_14harm50secLoad"}[part]
    yield Setup(f"UR10e {loaded}", (real_log(f"ur10e/{loaded}"),), ur10e, unseen[part], payload=LOAD)
    for joint in {"develop": (1,), "report": (2, 3)}[part]:
        yield Setup(f"UR10e joint {joint}", (real_log(f"ur10e/joint_20_01_22_joint_{joint}"),), ur10e, unseen[part])
    if part == "report":
        first, second = jw.holdout(real_log("panda/traj1_first60"), 0.3)
        yield Setup("Panda", (first,), jw.load_robot("panda"), second)


MOUNTINGS = ("table", "ceiling", (6.94, 0.0, -6.94), "table")
SIMULATED = {"develop": ("ur5e", "panda"), "report": ("ur3e", "ur16e", "puma560", "ur5e", "panda")}


def simulated_setup(
    robot: str, seed: int, mounting: Any, rate: float, feedback: Any = "states", payload: jw.Payload | None = None
) -> Setup:
    """Return a right set-up of a simulated log, with a second log of the same arm to validate on."""
    plant, controller = jw.PlantOptions(gravity=mounting, payload=payload), ControllerOptions(feedback=feedback)
    logs = [
        jw.simulate(
            robot, duration=25.0, rate=rate, seed=seed + s, plant=plant, controller=controller, keep=0
        ).log
        for s in (1, 2)
    ]  # fmt: skip
    training, unseen = (replace(log, origin=replace(log.origin, gravity=None)) for log in logs)
    name = f"{robot} {mounting if isinstance(mounting, str) else 'tilted'} seed {seed}"
    return Setup(name, (training,), jw.load_robot(robot), unseen, mounting, payload)


def without_set_points(setup: Setup) -> Setup:
    """Return the set-up without the set points of the outputs in its logs."""
    channels = ("current_des", "torque_des")
    logs = tuple(log.without(channels) for log in setup.logs)
    return replace(setup, logs=logs, unseen=setup.unseen.without(channels))


def simulated_setups(part: str, seeds: range) -> Iterator[Setup]:
    """Yield the right set-ups of simulated logs: robots, mountings, payloads, rates, with and without set points."""
    for robot in SIMULATED[part]:
        for k, seed in enumerate(seeds):
            payload = jw.Payload(1.0 + k, (0.02, 0.0, 0.05)) if k % 3 == 2 else None
            rate = (200.0, 125.0, 500.0)[k % 3]
            setup = simulated_setup(robot, seed, MOUNTINGS[k % len(MOUNTINGS)], rate, payload=payload)
            yield without_set_points(setup) if k % 2 == 0 else setup


def right_variants(setup: Setup) -> Iterator[Setup]:
    """Yield a right set-up with a table without bodies, shorter logs, half of the samples, and without set points."""
    massless = replace(
        setup.robot,
        name=f"{setup.robot.name}-table",
        links=tuple(jw.Link(link.name, np.zeros(10)) for link in setup.robot.links),
    )
    yield replace(setup, name=f"{setup.name}, no bodies", robot=massless)
    yield replace(setup, name=f"{setup.name}, 15 s", logs=tuple(beginning(log, 15.0) for log in setup.logs))
    halved = tuple(log.take(np.arange(0, log.samples, 2), "every second sample") for log in setup.logs)
    yield replace(setup, name=f"{setup.name}, every second sample", logs=halved)
    if setup.logs[0].current_des is not None:
        yield replace(without_set_points(setup), name=f"{setup.name}, no set points")


def payload_setups(part: str) -> Iterator[Setup]:
    """Yield wrong payloads: undeclared, of another mass, or in one of two logs only."""
    ur10e, unseen = jw.load_robot("ur10e"), real_log("ur10e/id_20_02_12_50sec_12harm")
    names = {
        "develop": ("id_20_01_31_load", "id_20_01_31_unload"),
        "report": ("id_20_02_19_14harm50secLoad", "id_20_02_19_14harm50sec"),
    }
    loaded, empty = (real_log(f"ur10e/{name}") for name in names[part])
    right = Setup(f"UR10e {names[part][0]}", (loaded,), ur10e, unseen)
    yield right.altered("payload not declared", ("payload",))
    yield right.altered("mixed payloads", ("logs", "payload"), logs=(loaded, empty))
    yield right.altered("payload in an empty log", ("payload",), logs=(empty,), payload=LOAD)
    yield right.altered("payload of 6 kg declared", ("payload",), payload=jw.Payload(6.0, (0.0, 0.0, 0.05)))


def simulated_payloads(part: str, seeds: range) -> Iterator[Setup]:
    """Yield simulated logs with a payload that is not declared."""
    for setup in simulated_setups(part, seeds):
        seed = int(setup.name.rsplit(" ", 1)[1])
        plant = jw.PlantOptions(gravity=setup.mounting, payload=jw.Payload(2.0, (0.0, 0.03, 0.06)))
        log = jw.simulate(setup.robot, duration=25.0, rate=200.0, seed=seed + 3, plant=plant, keep=0).log
        log = replace(log, origin=replace(log.origin, gravity=None))
        if setup.payload is None:
            yield setup.altered("payload not declared", ("payload",), logs=(log,))


def corpus(part: str, seeds: range) -> Iterator[tuple[Setup, list[Setup]]]:
    """Yield right set-ups, each with wrong ones made from it."""
    real = list(real_setups(part)) if SHARED.is_dir() else []
    for number, setup in enumerate([*real, *simulated_setups(part, seeds)]):
        single = "joint" in setup.name
        wrong = list(WrongSetups(setup, seed=number + 50 * (part == "report")).all())
        yield setup, [] if single or setup.payload is not None else wrong
        if not single and setup.payload is None:
            for variant in right_variants(setup):
                yield variant, []
    payloads = [*(payload_setups(part) if real else ()), *simulated_payloads(part, seeds)]
    for setup in payloads:
        yield replace(setup, name=f"{setup.name} (right)", wrong="", logs=(setup.unseen,), payload=None), [setup]


RANDOM_ROBOTS = {
    "develop": ("ur5e", "iiwa14", "ur3e", "panda"),
    "report": ("ur16e", "puma560", "panda", "ur5e", "ur10e", "ur3e", "iiwa14", "fr3"),
}
RANDOM_LOGS = {
    "develop": ("id_20_02_12_50sec_12harm", "id_20_01_31_unload", "joint_20_01_22_joint_2"),
    "report": (
        "id_20_02_19_14harm50sec",
        "id_20_02_05_20sec_8harm",
        "id_20_02_12_40sec_12harm",
        "joint_20_01_22_joint_3",
    ),
}
SENSORS = ("ur5e", "ur10e", "ur16e")
"""Arms that the usual gains hold with feedback of the encoders."""


def random_bases(part: str, first: int) -> Iterator[Setup]:
    """Yield right set-ups: real logs, of a Panda and of a UR10 parts of one log; simulated ones with another seed."""
    if SHARED.is_dir():
        unseen = {"develop": "id_20_02_12_40sec_12harm", "report": "id_20_01_31_unload"}[part]
        for name in RANDOM_LOGS[part]:
            logs = (real_log(f"ur10e/{name}"),)
            yield Setup(f"UR10e {name}", logs, jw.load_robot("ur10e"), real_log(f"ur10e/{unseen}"))
        for robot, file in {
            "panda": "panda/traj1_first60.csv",
            "ur10": "ur10_ros2/ur10_exciting_trajectory.db3",
        }.items():
            log = jw.read_log(SHARED / file, joints=jw.load_robot(robot))
            training, rest = jw.holdout(log, 0.3)
            yield Setup(f"real {robot}", (training,), jw.load_robot(robot), rest)
    for k, robot in enumerate(RANDOM_ROBOTS[part]):
        rate, mounting = (250.0, 125.0, 500.0, 100.0)[k % 4], ("table", "ceiling", "table", (0.0, -4.9, -8.5))[k % 4]
        feedback = "sensors" if robot in SENSORS else "states"
        setup = simulated_setup(robot, first + 10 * k, mounting, rate, feedback)
        yield without_set_points(setup) if k % 2 == 0 else setup


def random_corpus(part: str, first: int, count: int) -> Iterator[tuple[Setup, list[Setup]]]:
    """Yield right set-ups with wrong ones that were drawn, and right variants."""
    for k, setup in enumerate(random_bases(part, first)):
        yield setup, list(RandomSetups(first + k).draw(setup, count))
        if "joint" not in setup.name:
            yield from ((variant, []) for variant in right_variants(setup))


class Results:
    """Outcomes by name, kept in a file from which a run continues."""

    def __init__(self, path: Path | None) -> None:
        """Read the outcomes of earlier runs."""
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.known = {row["name"]: Outcome(**row) for row in map(json.loads, lines)}

    def outcome(self, setup: Setup) -> Outcome:
        """Return the outcome of a set-up, computed if it is not known."""
        if setup.name not in self.known:
            self.known[setup.name] = found = evaluate(setup)
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps(asdict(found)) + "\n")
        return self.known[setup.name]


def main() -> None:
    """Evaluate the corpus and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("develop", "report"), default="report")
    parser.add_argument("--seeds", type=int, default=2, help="simulated logs of each robot")
    parser.add_argument("--only", default="", help="set-ups whose name contains this")
    parser.add_argument("--verbose", action="store_true", help="print every set-up")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every n-th wrong set-up")
    parser.add_argument("--first-seed", type=int, help="seed of the first simulated log (default: 0, report 100)")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="draw n wrong set-ups from each right one")
    parser.add_argument("--results", type=Path, help="file to which outcomes are appended")
    args = parser.parse_args()
    first = 100 * (args.part == "report") if args.first_seed is None else args.first_seed
    seeds = range(first, first + 10 * args.seeds, 10)
    pairs = random_corpus(args.part, first, args.random) if args.random else corpus(args.part, seeds)
    rights, wrongs, results = list[Outcome](), list[tuple[Outcome, float]](), Results(args.results)
    for right, wrong in pairs:
        if args.only not in right.name:
            continue
        base = results.outcome(right)
        rights.append(base)
        show(base, 1.0, args.verbose)
        for setup in wrong[len(rights) % args.every :: args.every]:
            outcome = results.outcome(setup)
            wrongs.append((outcome, outcome.error / base.error))
            show(outcome, outcome.error / base.error, args.verbose)
    report(rights, wrongs)


def show(outcome: Outcome, ratio: float, verbose: bool) -> None:
    """Print a set-up: all of them, or those that were not judged as they should be."""
    missed = bool(outcome.wrong) and not outcome.noticed and ratio > HARMFUL
    false = not outcome.wrong and outcome.noticed
    unnamed = bool(outcome.wrong) and outcome.noticed and not outcome.cause_named
    flag = "MISSED" if missed else "FALSE" if false else "cause?" if unnamed else ""
    if verbose or flag:
        print(
            f"{flag:6} {outcome.status:12} x{ratio:7.1f} {outcome.seconds:4.1f} s  {outcome.name}: ",
            outcome.line[:260],
            sep="",
            flush=True,
        )


def report(rights: list[Outcome], wrongs: list[tuple[Outcome, float]]) -> None:
    """Print the shares."""
    harmful = [outcome for outcome, ratio in wrongs if ratio > HARMFUL]
    noticed = [outcome for outcome in harmful if outcome.noticed]
    named = [outcome for outcome in noticed if outcome.cause_named]
    harmless = [outcome for outcome, ratio in wrongs if not ratio > HARMFUL]
    print(f"wrong set-ups: {len(wrongs)}, harmful {len(harmful)}")
    print(
        f"  harmful ones noticed: {_share(noticed, harmful)}, of these with the right cause: {_share(named, noticed)}"
    )
    print(f"  harmless ones noticed: {_share([o for o in harmless if o.noticed], harmless)}")
    print(f"right set-ups: {len(rights)}")
    for status in ("contradicted", "suspect", "refused before"):
        print(f"  {status}: {_share([o for o in rights if o.status == status], rights)}")


def _share(part: list[Outcome], whole: list[Outcome]) -> str:
    return f"{len(part)} of {len(whole)}" + (f" ({100.0 * len(part) / len(whole):.1f} %)" if whole else "")


if __name__ == "__main__":
    main()
