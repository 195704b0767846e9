"""Wrong set-ups of a calibration: how many are noticed, with the right cause, and how many right ones are not accepted.

    python benchmarks/plausibility.py [--part report] [--seeds 1] [--only ur10e] [--verbose]

A set-up is one or more logs with a declaration (robot, mounting, payload, columns). Wrong ones are made from right
ones: signs, orders, zeros, mountings, robots, payloads, gains, offsets, delays, lost samples, short logs. A wrong one
is harmful if the error of its model on an unseen, right log is more than twice that of the right model. Thresholds were
developed on part `develop`; part `report` has other logs, other robots and other seeds. Real logs are used where
../shared/data exists.
"""

from __future__ import annotations

from timing import use_one_thread

use_one_thread()

import argparse  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from pathlib import Path  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the wrong set-ups, which are test support

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from data_files import SHARED  # noqa: E402
from jointwise.estimation.structure import Structure  # noqa: E402
from jointwise.model.terms import Hysteresis  # noqa: E402
from jointwise.result.plausibility import worst_status  # noqa: E402
from wrong_setups import Setup, WrongSetups, beginning  # noqa: E402

OPTIONS = jw.Options(
    structure=Structure("hysteresis", "none", (1.0, 2.0), limits=Hysteresis.polynomial_limits(4, 5e-3)), free=()
)
"""One joint model for all: the selection of a better one takes longer and changes no declaration."""
LOAD = jw.Payload(2.805, (0.0, 0.0, 0.05))
"""What the arm carries in the loaded logs of the UR10e; the centre is a guess."""
HARMFUL = 2.0
"""Ratio of the errors on unseen data from which a wrong set-up is harmful."""


@dataclass(frozen=True)
class Outcome:
    """What the program says about a set-up, and the error of its model on the unseen log."""

    setup: Setup
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
        return self.status == "refused before" or bool(set(self.named) & set(self.setup.causes))


def evaluate(setup: Setup) -> Outcome:
    """Calibrate a set-up and validate its model on the unseen log."""
    started = time.process_time()
    try:
        model = jw.calibrate(
            setup.logs, setup.robot, mounting=setup.mounting, payload=setup.payload, options=OPTIONS,
            physical=False, accept_implausible=True,
        )  # fmt: skip
    except jw.JointwiseError as problem:
        return Outcome(setup, "refused before", (), str(problem), np.inf, time.process_time() - started)
    found = [check for check in model.plausibility if check.status != "ok"]
    error = jw.validate(model, setup.unseen).mean_nmse
    line = " | ".join(f"{check.check} {check.status}: {check.evidence}" for check in found)
    seconds = time.process_time() - started
    return Outcome(setup, worst_status(found), tuple(check.check for check in found), line, error, seconds)


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


def simulated_setups(part: str, seeds: range) -> Iterator[Setup]:
    """Yield the right set-ups of simulated logs: robots, mountings, payloads, rates, with and without set points."""
    for robot in SIMULATED[part]:
        for k, seed in enumerate(seeds):
            mounting, rate = MOUNTINGS[k % len(MOUNTINGS)], (200.0, 125.0, 500.0)[k % 3]
            payload = jw.Payload(1.0 + k, (0.02, 0.0, 0.05)) if k % 3 == 2 else None
            plant = jw.PlantOptions(gravity=mounting, payload=payload)
            logs = [
                jw.simulate(robot, duration=25.0, rate=rate, seed=seed + s, plant=plant, keep=0).log for s in (1, 2)
            ]
            logs = [replace(log, origin=replace(log.origin, gravity=None)) for log in logs]
            if k % 2 == 0:
                logs = [log.without(("current_des", "torque_des")) for log in logs]
            name = f"{robot} {mounting if isinstance(mounting, str) else 'tilted'} seed {seed}"
            yield Setup(name, (logs[0],), jw.load_robot(robot), logs[1], mounting, payload)


def right_variants(setup: Setup) -> Iterator[Setup]:
    """Yield a right set-up with a table without bodies, and shorter logs."""
    massless = replace(
        setup.robot,
        name=f"{setup.robot.name}-table",
        links=tuple(jw.Link(link.name, np.zeros(10)) for link in setup.robot.links),
    )
    yield replace(setup, name=f"{setup.name}, no bodies", robot=massless)
    yield replace(setup, name=f"{setup.name}, 15 s", logs=tuple(beginning(log, 15.0) for log in setup.logs))


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


def main() -> None:
    """Evaluate the corpus and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("develop", "report"), default="report")
    parser.add_argument("--seeds", type=int, default=2, help="simulated logs of each robot")
    parser.add_argument("--only", default="", help="set-ups whose name contains this")
    parser.add_argument("--verbose", action="store_true", help="print every set-up")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every n-th wrong set-up")
    parser.add_argument("--first-seed", type=int, help="seed of the first simulated log (default: 0, report 100)")
    args = parser.parse_args()
    first = 100 * (args.part == "report") if args.first_seed is None else args.first_seed
    seeds = range(first, first + 10 * args.seeds, 10)
    rights, wrongs = list[Outcome](), list[tuple[Outcome, float]]()
    for right, wrong in corpus(args.part, seeds):
        if args.only not in right.name:
            continue
        base = evaluate(right)
        rights.append(base)
        show(base, 1.0, args.verbose)
        for setup in wrong[len(rights) % args.every :: args.every]:
            outcome = evaluate(setup)
            wrongs.append((outcome, outcome.error / base.error))
            show(outcome, outcome.error / base.error, args.verbose)
        if args.verbose:
            report(rights, wrongs)
    report(rights, wrongs)


def show(outcome: Outcome, ratio: float, verbose: bool) -> None:
    """Print a set-up: all of them, or those that were not judged as they should be."""
    missed = bool(outcome.setup.wrong) and not outcome.noticed and ratio > HARMFUL
    false = not outcome.setup.wrong and outcome.noticed
    unnamed = bool(outcome.setup.wrong) and outcome.noticed and not outcome.cause_named
    flag = "MISSED" if missed else "FALSE" if false else "cause?" if unnamed else ""
    if verbose or flag:
        print(
            f"{flag:6} {outcome.status:12} x{ratio:7.1f} {outcome.seconds:4.1f} s  {outcome.setup.name}: ",
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
