"""Calibrates the digital UR5e from a log, validates it on another motion, and checks it against the truth."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointwise.atomic import refuse_directory
from jointwise.cli.files import check_directory, note
from jointwise.cli.progress import Progress
from jointwise.cli.text import as_json, table
from jointwise.cli.usage import add_json
from jointwise.errors import MissingExtraError, OutputError

if TYPE_CHECKING:
    from jointwise.experiment import Recording
    from jointwise.result import Calibration, Validation

EXAMPLES = """\
examples:
  jointwise demo
  jointwise demo --output somewhere --json

The digital robot has elastic gears, friction with hysteresis that grows with the load and falls with the temperature,
kinematic errors, motors that lag and a servo; its log has encoder quantisation, current noise and a jittered clock.
'jointwise simulate' makes more of it."""

FILES = ("training.csv", "unseen.csv", "truth.json", "model.json")
MARK = ".jointwise-demo"
"""Marks a directory that holds a demo: only there its files may be written again."""
SHOWN = 4
"""Parameters shown of the best and of the worst known."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where the files go."""
    parser.add_argument("--output", default="demo-output", metavar="DIR", help="default: demo-output")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Simulate, calibrate, validate, compare with the truth, and tell where everything is."""
    folder = _folder(args.output)
    with Progress(args.json) as progress:
        facts = carry_out(folder, progress)
    print(as_json(facts) if args.json else _text(facts))
    return 0


def carry_out(folder: Path, progress: Progress) -> dict[str, Any]:
    """Return what came out: errors of every joint on the unseen motion, parameters beside the truth, files."""
    import jointwise
    from jointwise.calibrate import calibrate
    from jointwise.data import read_log
    from jointwise.result import save_calibration, validate

    progress("simulating")
    robot = jointwise.robot("ur5e")
    files = {name: folder / name for name in FILES}
    made = _record("excitation", 30.0, 1)
    made.write(files["training.csv"], files["truth.json"])
    _record("waypoints", None, 2).write(files["unseen.csv"])
    training, unseen = read_log(files["training.csv"]), read_log(files["unseen.csv"])
    calibration = calibrate(training, robot, progress=progress)
    validation = validate(calibration, unseen)
    save_calibration(calibration, files["model.json"])
    progress("writing the report")
    report = _report(calibration, folder, [training], [unseen])
    return {
        "robot": robot.title,
        "joint_model": calibration.structure_text,
        "seconds": {"training": training.duration, "unseen": unseen.duration},
        "joints": _joints(validation, calibration),
        "unit": validation.unit,
        "parameters": against_truth(calibration, made.truth["base"]),
        "files": {name.partition(".")[0]: str(path) for name, path in files.items()},
        "report": report,
    }


def against_truth(calibration: Calibration, truth: dict[str, float]) -> list[dict[str, Any]]:
    """Return the base parameters with the truth (by name) beside them, best known (relatively) first."""
    base = calibration.model.base
    true = [truth[name] for name in base.names]
    order = sorted(range(base.count), key=lambda k: float(calibration.estimate.relative[k]))
    rows = []
    for k in order:
        low, high = calibration.interval(k)
        rows.append(
            {
                "name": base.names[k],
                "unit": calibration.model.parameters[k].unit,
                "true": float(true[k]),
                "estimated": float(calibration.estimate.values[k]),
                "low": low,
                "high": high,
                "inside": low <= float(true[k]) <= high,
            }
        )
    return rows


def _record(experiment: str, duration: float | None, seed: int) -> Recording:
    """Return a recording of the digital robot."""
    from jointwise.experiment import simulate, usual_sensors

    sensors = usual_sensors(jitter=4e-4)
    return simulate("ur5e", experiment, duration=duration, rate=250.0, seed=seed, sensors=sensors, keep=0)


def _folder(name: str) -> Path:
    """Return the directory of the demo, made if need be; refuse one in which files of others would be lost."""
    folder = Path(name)
    taken = [own for own in (*FILES, "report.html") if (folder / own).exists()]
    if taken and not (folder / MARK).exists():
        raise OutputError(f"{folder / taken[0]}: would be lost, and is no demo's. Choose another --output.")
    for own in (*FILES, "report.html"):
        refuse_directory(folder / own)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARK).touch()
    except OSError as problem:
        raise OutputError(f"{name}: no directory can be made there ({problem.strerror}).") from None
    return folder


def _report(calibration: Calibration, folder: Path, training: list[Any], unseen: list[Any]) -> str | None:
    """Return the path of the report; None, with a note, where what it needs is not installed."""
    try:
        check_directory(str(folder))
    except MissingExtraError as problem:
        note(str(problem))
        return None
    from jointwise.report import write_report

    return str(write_report(calibration, folder, training, unseen, file=folder / "model.json"))


def _joints(validation: Validation, calibration: Calibration) -> list[dict[str, Any]]:
    return [
        {"joint": joint.name, "rmse": own.rmse, "r2": own.r2}
        for joint, own in zip(calibration.model.robot.joints, validation.joints, strict=True)
    ]


def _text(facts: dict[str, Any]) -> str:
    rows, unit = facts["parameters"], facts["unit"]
    joints = [(own["joint"], _rounded(own["rmse"]), _rounded(own["r2"])) for own in facts["joints"]]
    inside = sum(row["inside"] for row in rows)
    there = [row for row in rows if abs(row["true"]) > 1e-12]
    parts = [
        f"{facts['robot']}, simulated: calibrated on {facts['seconds']['training']:.0f} s of all joints moving, "
        f"tested on {facts['seconds']['unseen']:.0f} s of\nmoves between waypoints that it has not seen\n"
        f"joint model chosen: {facts['joint_model']}",
        f"error on the unseen motion\n{table(('joint', f'RMSE [{unit}]', 'R2'), joints)}",
        f"best known parameters\n{_parameters(rows[:SHOWN])}",
        f"worst known parameters that are not zero\n{_parameters(there[-SHOWN:])}",
        f"{inside} of {len(rows)} true values lie inside their 95 % intervals",
        "\n".join(f"{name}: {path}" for name, path in facts["files"].items())
        + (f"\nreport: {facts['report']}" if facts["report"] else ""),
    ]
    return "\n\n".join(parts)


def _parameters(rows: list[dict[str, Any]]) -> str:
    keys = ("true", "estimated", "low", "high")
    lines = [(row["name"], row["unit"], *(_rounded(row[key]) for key in keys)) for row in rows]
    return table(("name", "unit", "true", "estimated", "95 % from", "to"), lines)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
