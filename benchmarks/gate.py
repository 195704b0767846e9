"""The figures that no change may make worse: accuracy, intervals, contacts, payload, energy, exports and speed.

    python benchmarks/gate.py [--update] [--only SECTION ...] [--processes 2] [--output gate.json]

Sections run in parallel, one thread each; real logs come from ../shared/data, and the rows of those that are not there
are skipped. All figures are written to gate.json and compared with `gate.toml` beside this file, which states for every
kind of figure the direction that is better, the tolerance, and its reason. A figure that is worse by more than the
tolerance, or missing, is a regression: exit code 1. `--update` writes the new figures into `gate.toml`.

Everything but the times is the same in every run on one machine; other processors differ within the tolerances.
"""

from __future__ import annotations

from timing import use_one_thread

use_one_thread()

import argparse  # noqa: E402
import hashlib  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import tomllib  # noqa: E402
from collections.abc import Callable, Iterator, Mapping  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from tempfile import TemporaryDirectory  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from jointwise.errors import JointwiseError  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
LIMITS = Path(__file__).with_name("gate.toml")
FILES = ROOT / "tests" / "files"


@dataclass(frozen=True)
class Figure:
    """A figure by kind (a table of `gate.toml`) and name; what has no value was skipped for a reason."""

    kind: str
    name: str
    value: float | str | None
    skipped: str = ""


Figures = Iterator[Figure]


def accuracy(model: jw.Calibration, log: jw.Log, name: str) -> Figures:
    """Yield MSE / variance of every joint on a held-out log, of the sensor-based and of the feed-forward model."""
    found = jw.validate(model, log)
    assert found.held_out, name
    for use, errors in (("sensor", found), ("feed-forward", found.from_positions or found)):
        for j, joint in enumerate(errors.joints, start=1):
            if joint.nmse is not None:
                yield Figure("nmse", f"{name}, {use}, joint {j}", joint.nmse)


# -- real logs ---------------------------------------------------------------------------------------------------------


def ur10e() -> Figures:
    """Calibrate a UR10e on one log: held-out errors, 2.805 kg at the tool, contacts found where there are none."""
    folder = DATA / "ur10e"
    model = jw.RobotModel(jw.calibrate(jw.read_log(folder / "id_20_02_12_50sec_12harm.csv"), "ur10e"))
    for name in ("id_20_02_12_40sec_12harm", "id_20_02_19_14harm50sec", "id_20_02_05_20sec_8harm"):
        yield from accuracy(model.calibration, jw.read_log(folder / f"{name}.csv"), f"ur10e {name[12:]}")
    yield from accuracy(
        model.calibration, jw.read_log(folder / "id_20_01_31_unload.csv"), "ur10e point-to-point, other day"
    )
    for name in ("id_20_02_19_14harm50secLoad", "id_20_01_31_load"):
        payload = jw.identify_payload(model, jw.read_log(folder / f"{name}.csv"))
        yield Figure("payload", f"ur10e {name[3:]}", abs(payload.mass / 2.805 - 1.0))
    free = [path for path in sorted(folder.glob("*.csv")) if "load" not in path.stem.lower().replace("unload", "")]
    results = [jw.monitoring.monitor_log(model, jw.read_log(path)).result() for path in free]
    yield Figure("false alarms", f"ur10e, {len(free)} recordings", sum(len(result.contacts) for result in results))


def panda() -> Figures:
    """Calibrate a Panda with torque sensors on the first 60 % of its log, and test it on the rest."""
    training, test = jw.holdout(jw.read_log(DATA / "panda" / "traj1_first60.csv"), 0.4)
    yield from accuracy(jw.calibrate(training, "panda"), test, "panda")


ARMS = {
    "lwr4": ("lwr4.urdf", "lwr4_1.csv"),
    "xmate": ("xmate_mdh.csv", "xmate_train.csv"),
    "med7": ("med7.urdf", "med7.csv"),
}


def more_arms() -> Figures:
    """Calibrate other makers' arms on the first 60 % of their logs, and test them on the rest."""
    for name, (description, file) in ARMS.items():
        try:
            log = jw.read_log(DATA / "more_arms" / file)
            if name == "med7":  # its torque has the opposite sign of the description
                log = replace(log, torque=-log.channel("torque"))
            training, test = jw.holdout(log, 0.4)
            model = jw.calibrate(training, jw.load_robot(DATA / "more_arms" / description))
        except JointwiseError as problem:
            yield Figure("nmse", name, None, f"no model: {str(problem).rpartition('shared/')[2]}")
            continue
        yield from accuracy(model, test, name)


def ur3e() -> Figures:
    """Fit the power on the bus of a UR3e to two of three moves, and predict that of the third."""
    robot = jw.load_robot("ur3e")
    logs = [jw.energy.read_power_log(str(path), robot) for path in sorted((DATA / "ur3e_power").glob("*.csv"))]
    for left_out in logs:
        power = jw.energy.fit_power([log for log in logs if log is not left_out], robot)
        balance = jw.energy.energy_balance(power, left_out)
        assert balance.power_rmse is not None
        yield Figure("power", f"ur3e {Path(left_out.origin.path).stem}", balance.power_rmse)


# -- simulated robots --------------------------------------------------------------------------------------------------

SIMULATED = {"ur5e": 4100, "ur10e": 4200, "panda": 4300, "ur3e": 4400}
"""Robots and the first seed of their logs."""


def simulated(robot: str) -> Figures:
    """Calibrate five simulated excitations: intervals of the bodies, held-out errors of the first."""
    seed, inside, width = SIMULATED[robot], [], []
    for k, rate in enumerate((200.0, 125.0, 250.0, 500.0, 1000.0)):
        sensors = jw.Sensors(rate=rate, seed=seed + k, jitter=0.1 * (k % 3) / rate)
        made = jw.simulate(robot, duration=20.0, rate=rate, seed=seed + k, sensors=sensors, keep=0)
        model = jw.calibrate(made.log, robot)
        names = model.model.base.names
        true = np.array([made.truth["base"][name] for name in names])
        low, high = model.conf_int()[: len(names)].T
        known = np.isfinite(low)
        inside += ((low <= true) & (true <= high))[known].tolist()
        width.append(float(np.sqrt(np.mean((0.5 * (high - low)[known]) ** 2) / np.mean(true[known] ** 2))))
        if k == 0:
            other = jw.simulate(robot, "bspline", duration=20.0, rate=rate, seed=seed + 50, keep=0)
            yield from accuracy(model, other.log, f"simulated {robot}")
    yield Figure("coverage", f"simulated {robot}", float(np.mean(inside)))
    yield Figure("width", f"simulated {robot}", float(np.mean(width)))


def plant() -> Figures:
    """Check the simulated robot: its energy balance, and signals that only a change of its laws changes."""
    for robot in ("ur5e", "panda"):
        run = jw.simulate(robot, duration=8.0, rate=500.0, seed=4500).run
        assert run is not None
        residual = float(np.abs(run.energy.residual).max() / run.energy.moved)
        yield Figure("energy balance", f"simulated {robot}", residual)
        for name, signal in (("friction", run.friction), ("current", run.current), ("torsion", run.theta - run.q)):
            for j, value in enumerate(np.sqrt(np.mean(signal**2, axis=0)).tolist(), start=1):
                yield Figure("signal", f"simulated {robot}, rms {name}, joint {j}", value)


def monitoring() -> Figures:
    """Monitor a simulated robot: pushes of 20 N, contacts where there are none, a payload, friction that has grown."""

    def log(seed: int, duration: float | None, experiment: str = "excitation", **options: Any) -> jw.Log:
        made = jw.simulate("ur5e", experiment, duration=duration, rate=500.0, seed=seed, keep=0, **options).log
        return replace(made, torque=None, theta=None)

    model, rng = jw.RobotModel(jw.calibrate(log(4600, 60.0), "ur5e", physical=False)), np.random.default_rng(4600)
    found, delays = 0, list[float]()
    for seed in range(4670, 4690):
        force, start = rng.normal(size=3), float(rng.uniform(5.0, 7.0))
        push = jw.Push(start, 0.3, tuple((20.0 * force / np.linalg.norm(force)).tolist()))
        contacts = jw.monitoring.monitor_log(model, log(seed, 9.0, events=jw.Events(pushes=[push]))).result().contacts
        late = [contact.start - start for contact in contacts if start <= contact.start <= start + 0.5]
        found, delays = found + bool(late), delays + late[:1]
    yield Figure("found", "simulated ur5e, contacts of 20 pushes of 20 N", found)
    yield Figure("delay", "simulated ur5e, pushes of 20 N, median", float(np.median(delays)))
    motions = [log(4630 + k, 60.0) for k in range(5)]
    motions += [log(4640, 40.0, "bspline"), log(4641, 35.0, "bang-coast-bang"), log(4642, None, "waypoints")]
    results = [jw.monitoring.monitor_log(model, motion).result() for motion in motions]
    yield Figure("false alarms", "simulated ur5e, 6 min", sum(len(result.contacts) for result in results))
    load = jw.Payload(3.0, (0.02, -0.03, 0.08), 0.01 * np.eye(3))
    loaded = log(4650, 20.0, plant=jw.PlantOptions(payload=load))
    identified = jw.identify_payload(model, loaded)
    yield Figure("payload", "simulated ur5e, 3 kg", abs(identified.mass / load.mass - 1.0))
    yield Figure("centre", "simulated ur5e, 3 kg", float(np.linalg.norm(identified.com - load.center_of_mass)))
    seen = jw.monitoring.monitor_log(model, loaded).result().payload.mass
    yield Figure("payload", "simulated ur5e, 3 kg, monitor", abs(seen / load.mass - 1.0))
    for name, age in (("as trained", 0.0), ("30 % more", 0.3)):
        result = jw.monitoring.monitor_log(
            model, log(4660, 90.0, plant=jw.PlantOptions(age={"friction": age}))
        ).result()
        watched = sum(joint.status == "watch" for joint in result.friction)
        yield Figure("found" if age else "false alarms", f"simulated ur5e, joints with friction {name}", watched)


def energy() -> Figures:
    """Fit the power on the bus of a simulated robot to one motion, and predict that of another."""
    robot = jw.load_robot("ur5e")
    logs = [
        jw.simulate(
            robot, duration=20.0, rate=250.0, seed=seed, sensors=jw.Sensors(rate=250.0, seed=seed, bus=True), keep=0
        ).log
        for seed in (4700, 4701)
    ]
    balance = jw.energy.energy_balance(jw.energy.fit_power(logs[0], robot), logs[1])
    assert balance.power_rmse is not None
    assert balance.measured_energy is not None
    yield Figure("power", "simulated ur5e", balance.power_rmse)
    yield Figure("energy", "simulated ur5e", abs(balance.energy / balance.measured_energy - 1.0))


LENGTHS = {"locked": 40.0, "constant-speed": 60.0, "load": 60.0, "reciprocate": 60.0, "warm-up": 1800.0}


def joints() -> Figures:
    """Identify all phenomena of a joint from its own experiments: fit on held-out data, and intervals."""
    robot, records = jw.load_robot("ur5e"), []
    for experiment, duration in LENGTHS.items():
        rate = 20.0 if experiment == "warm-up" else 100.0
        made = jw.simulate(robot, experiment, joint=1, duration=duration, rate=rate, seed=4800, keep=0)
        records.append(jw.joint.joint_record(made.log, robot, 1, mounting=made.experiment.gravity.tolist()))
    for name, part in jw.joint.identify_all(records, robot).model.parts.items():
        if part.held_out is not None:
            yield Figure("fit", f"joint 2 of a simulated ur5e, {name}", part.held_out)
        size = np.array([(0.5 * (value.high - value.low), value.value) for value in part.values if value.value != 0.0])
        if len(size):
            yield Figure(
                "width", f"joint 2 of a simulated ur5e, {name}", float(np.median(size[:, 0] / np.abs(size[:, 1])))
            )


def excitation() -> Figures:
    """Optimise an excitation of 20 s: condition number and standard errors."""
    found = jw.design.optimize_excitation(jw.load_robot("ur10e"), jw.design.ExcitationOptions(20.0, seed=4900))
    yield Figure("condition", "ur10e, 20 s", found.condition)
    yield Figure("improvement", "ur10e, 20 s", float(np.median(found.improvement)))


def exports() -> Figures:
    """Run the exported C of a model with every kind of term: a hash of its torques, ten digits each."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        yield Figure("hash", "exported C", None, "there is no C compiler")
        return
    model = jw.load_model(FILES / "model_every_term.json")
    t = np.arange(2000)[:, None] / 500.0
    phase = t * np.linspace(1.0, 2.5, model.dof) + np.arange(model.dof)
    w = np.linspace(1.0, 2.5, model.dof)
    q, qd, qdd = np.sin(phase), w * np.cos(phase), -(w**2) * np.sin(phase)
    with TemporaryDirectory() as folder:
        jw.export.c(model, folder, rate=500.0, use="sensor")
        build = [compiler, "-O2", "-ffp-contract=off", "test_model.c", "runtime.c", "-lm", "-o", "program"]
        subprocess.run(build, cwd=folder, check=True)
        states = np.concatenate([q, qd, qdd], axis=1).tobytes()
        answer = subprocess.run([Path(folder) / "program", "-"], input=states, capture_output=True, check=True)
    torque = np.frombuffer(answer.stdout).reshape(q.shape)
    digits = "\n".join(f"{value:.9e}" for value in torque.ravel().tolist())
    yield Figure("hash", "exported C", hashlib.sha256(digits.encode()).hexdigest()[:16])
    for j, value in enumerate(np.sqrt(np.mean(torque**2, axis=0)).tolist(), start=1):
        yield Figure("signal", f"exported C, rms torque, joint {j}", value)


# -- times -------------------------------------------------------------------------------------------------------------


def reference_loop() -> float:
    """Do work of a fixed size that uses nothing of Jointwise: small matrix products and plain Python."""
    A, x, total = np.linspace(-1.0, 1.0, 3600).reshape(60, 60) / 60.0, np.ones(60), 0.0
    for k in range(12_000):
        x = np.tanh(A @ x + 0.1)
        total += math.sin(k) * float(x[k % 60])
    return total


def times() -> Figures:
    """Time typical work: processor time over that of `reference_loop` in the same run, each the least of some turns."""
    robot, model = jw.load_robot("ur5e"), jw.load_model(FILES / "model_every_term.json")
    t = np.arange(20_000)[:, None] / 500.0
    q = np.sin(t * np.linspace(1.0, 2.0, 6))
    qd, qdd = np.gradient(q, 0.002, axis=0), np.gradient(np.gradient(q, 0.002, axis=0), 0.002, axis=0)
    log = jw.simulate("ur5e", duration=20.0, rate=250.0, seed=5000, keep=0).log
    trained = jw.RobotModel(jw.calibrate(log, robot))

    def steps() -> None:
        state = model.init(q[0], rate=500.0)
        for k in range(5000):
            _, state = model.step(state, q[k], qd[k], qdd[k])

    tasks: dict[str, tuple[int, Callable[[], object]]] = {
        "torque of 20,000 samples": (12, lambda: model.torque(q, qd, qdd, rate=500.0)),
        "5,000 steps": (12, steps),
        "simulation of 5 s": (8, lambda: jw.simulate("ur5e", duration=5.0, rate=250.0, seed=1, keep=0)),
        "prediction of a log": (12, lambda: trained.calibration.predict(log)),
        "monitor of a log": (8, lambda: jw.monitoring.monitor_log(trained, log).result()),
        "calibration of a log": (3, lambda: jw.calibrate(log, robot)),
    }
    for name, (turns, task) in tasks.items():
        best = {"task": np.inf, "reference": np.inf}
        for _ in range(turns):
            for key, work in (("task", task), ("reference", reference_loop)):
                start = time.process_time()
                work()
                best[key] = min(best[key], time.process_time() - start)
        yield Figure("time", name, best["task"] / best["reference"])


# -- comparison --------------------------------------------------------------------------------------------------------

SECTIONS: dict[str, tuple[Callable[[], Figures], str | None]] = {
    "excitation": (excitation, None),
    "monitoring": (monitoring, None),
    "ur10e": (ur10e, "ur10e"),
    **{f"simulated {name}": (partial(simulated, name), None) for name in SIMULATED},
    "joints": (joints, None),
    "panda": (panda, "panda"),
    "more arms": (more_arms, "more_arms"),
    "ur3e": (ur3e, "ur3e_power"),
    "energy": (energy, None),
    "plant": (plant, None),
    "exports": (exports, None),
    "times": (times, None),
}
"""What makes the figures, longest first, and the directory of real logs that it needs; times come last, alone."""


def figures_of(section: str) -> tuple[str, list[Figure], float]:
    """Return the figures of a section and the processor time (s) that they took."""
    function, directory = SECTIONS[section]
    if directory is not None and not (DATA / directory).is_dir():
        return section, [Figure("", section, None, f"no ../shared/data/{directory}")], 0.0
    before, figures = os.times(), list[Figure]()
    try:
        figures.extend(function())
    except Exception as problem:  # the other sections still say what they have to say
        figures.append(Figure("", section, None, f"failed: {type(problem).__name__}: {problem}"))
    after = os.times()
    return section, figures, sum(after[:4]) - sum(before[:4])


@dataclass(frozen=True)
class Row:
    """A figure beside the committed one."""

    section: str
    figure: Figure
    committed: float | str | None
    verdict: str

    def __str__(self) -> str:
        """Return one line."""
        shown = [f"{x:.5g}" if isinstance(x, int | float) else str(x) for x in (self.committed, self.figure.value)]
        return f"{self.verdict:8} {self.figure.kind:14} {self.figure.name:56} {shown[0]:>16} -> {shown[1]}"


def judged(value: float | str, committed: float | str, limits: Mapping[str, Any]) -> str:
    """Return worse, better or moved (within the tolerance), or an empty text where nothing moved."""
    if isinstance(value, str) or isinstance(committed, str):
        return "" if value == committed else "worse"
    change = value - committed
    allowed = limits["relative"] * abs(committed) + limits["absolute"]
    if not abs(change) <= allowed:
        gain = {"lower": change < 0.0, "higher": change > 0.0, "equal": False}[limits["better"]]
        return "better" if gain else "worse"
    return "moved" if abs(change) > max(0.1 * allowed, 1e-4 * abs(committed)) else ""


def compared(found: Mapping[str, list[Figure]], limits: Mapping[str, Any]) -> list[Row]:
    """Return every figure beside the committed one; committed figures that are missing count as regressions."""
    rows = []
    for section, figures in found.items():
        committed = limits["figures"].get(section, {})
        left = {(kind, name) for kind, known in committed.items() for name in known}
        for figure in figures:
            before = committed.get(figure.kind, {}).get(figure.name)
            left.discard((figure.kind, figure.name))
            if figure.value is None:
                failed = figure.skipped.startswith("failed")
                if figure.kind == "" and not failed:
                    left.clear()  # the whole section was skipped
                rows.append(Row(section, figure, before, "failed" if failed else "skipped"))
            elif before is None:
                rows.append(Row(section, figure, None, "new"))
            else:
                rows.append(Row(section, figure, before, judged(figure.value, before, limits["kinds"][figure.kind])))
        rows += [
            Row(section, Figure(kind, name, None), committed[kind][name], "missing") for kind, name in sorted(left)
        ]
    return rows


def written(limits: Mapping[str, Any], found: Mapping[str, list[Figure]]) -> str:
    """Return `gate.toml` with new figures; those of skipped sections stay."""
    lines = [LIMITS.read_text(encoding="utf-8").partition("[figures")[0].rstrip(), ""]
    for section in SECTIONS:
        kinds: dict[str, dict[str, float | str]] = {}
        for figure in found.get(section, ()):
            if figure.value is not None:
                kinds.setdefault(figure.kind, {})[figure.name] = figure.value
        for kind, figures in (kinds or limits["figures"].get(section, {})).items():
            digits = ".10g" if limits["kinds"][kind]["better"] == "equal" else ".5g"
            lines.append(f"[figures.{json.dumps(section)}.{json.dumps(kind)}]")
            for name, value in figures.items():
                text = json.dumps(value) if isinstance(value, str) else format(value, digits)
                lines.append(f"{json.dumps(name)} = {text}")
            lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Compute all figures, compare and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the new figures into gate.toml")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), help="some sections alone")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="sections that run at a time")
    parser.add_argument("--output", type=Path, default=Path("gate.json"), help="file for all figures")
    options = parser.parse_args()
    sections = [name for name in SECTIONS if name in (options.only or SECTIONS)]
    start, found, seconds = time.perf_counter(), {}, {}
    with ProcessPoolExecutor(options.processes) as pool:
        for section, found[section], seconds[section] in pool.map(figures_of, [s for s in sections if s != "times"]):
            print(f"{seconds[section]:6.1f} s  {section}", flush=True)
    if "times" in sections:  # alone, so that nothing disturbs them
        _, found["times"], seconds["times"] = figures_of("times")
    limits = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    rows = compared(found, limits)
    document = {section: [vars(figure) for figure in figures] for section, figures in found.items()}
    options.output.write_text(json.dumps({"seconds": seconds, "figures": document}, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        if row.verdict in ("skipped", "failed"):
            print(f"{row.verdict:8} {row.figure.name}: {row.figure.skipped}")
        elif row.verdict or row.section == "times":
            print(row)
    counts = {
        verdict: sum(row.verdict == verdict for row in rows)
        for verdict in ("worse", "failed", "missing", "better", "new")
    }
    print(
        f"gate: {len(rows)} figures, "
        + ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        + f"; {time.perf_counter() - start:.0f} s, {sum(seconds.values()):.0f} s of processor time"
    )
    if options.update:
        LIMITS.write_text(written(limits, found), encoding="utf-8")
        print(f"written: {LIMITS}")
    elif counts["worse"] or counts["failed"] or counts["missing"]:
        sys.exit("gate: figures became worse. If that is intended, say why and run it again with --update.")


if __name__ == "__main__":
    main()
