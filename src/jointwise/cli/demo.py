"""Calibrates a simulated UR5e, validates the model on another motion, and compares it with the true parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from jointwise.atomic import atomic_write, check_target, make_directory, output_set
from jointwise.cli.command import Common
from jointwise.cli.output import Progress, check_directory, note, show
from jointwise.errors import MissingExtraError, OutputError
from jointwise.formatting import table
from jointwise.settings import option

if TYPE_CHECKING:
    from jointwise.data import Log
    from jointwise.experiment import SimulationResult
    from jointwise.result import Calibration, Validation

EXAMPLES = """\
examples:
  jointwise demo
  jointwise demo --output somewhere --json

The simulated robot has elastic gears with kinematic error, friction with hysteresis that depends on load and
temperature, and motors with lag. Its log has quantised positions, current noise and a jittering clock. Use 'jointwise
simulate' for other robots and motions."""

FILES = ("training.csv", "unseen.csv", "truth.json", "model.json")
MARK = ".jointwise-demo"
"""Marks a directory that holds a demo: only there its files may be written again."""
SHOWN = 4
"""Number of the most and of the least precise parameters that are shown."""


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """Where the files go."""

    output: str = option("demo-output", "directory for logs, model and report", metavar="DIR")


def run(settings: Settings) -> int:
    """Simulate, calibrate, validate, compare with the truth, and print the errors and the files."""
    folder = _check_folder(settings.output)
    with Progress(settings.silent) as progress:
        facts = carry_out(folder, progress)
    show(settings, lambda: facts, lambda: _text(facts))
    return 0


def carry_out(folder: Path, progress: Progress) -> dict[str, Any]:
    """Return the validation errors of every joint, the parameters beside the truth, and the files."""
    import jointwise
    from jointwise.calibration import calibrate
    from jointwise.result import save_model, validate

    progress("simulating")
    robot = jointwise.load_robot("ur5e")
    files = {name: folder / name for name in FILES}
    made, other = _record("excitation", 30.0, 1), _record("waypoints", None, 2)
    training, unseen = _as_file(made, files["training.csv"]), _as_file(other, files["unseen.csv"])
    calibration = calibrate(training, robot, progress=progress)
    validation = validate(calibration, unseen)
    progress("writing the report")
    with output_set():
        make_directory(folder)
        with atomic_write(folder / MARK):
            pass
        made.write(files["training.csv"], files["truth.json"])
        other.write(files["unseen.csv"])
        save_model(calibration, files["model.json"])
        report = _report(calibration, folder, [training], [validation])
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
    """Return the base parameters with the truth (by name) beside them, most precise (relatively) first."""
    base = calibration.model.base
    true = [truth[name] for name in base.names]
    order = sorted(range(base.count), key=lambda k: float(calibration.estimate.relative[k]))
    rows = []
    for k in order:
        low, high = map(float, calibration.conf_int()[k])
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


def _record(experiment: str, duration: float | None, seed: int) -> SimulationResult:
    """Return a recording of the digital robot."""
    from jointwise.experiment import default_sensors, simulate

    sensors = default_sensors(jitter=4e-4)
    return simulate("ur5e", experiment, duration=duration, rate=250.0, seed=seed, sensors=sensors, keep=0)


def _as_file(result: SimulationResult, path: Path) -> Log:
    """Return a simulated log as read from the file at `path`, which is written later with the others of the demo."""
    from jointwise.data import read_log

    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        result.write(copy)
        log = read_log(copy)
    return replace(log, origin=replace(log.origin, path=str(path)))


def _check_folder(name: str) -> Path:
    """Return the directory of the demo; reject one in which files that are not of a demo would be lost."""
    folder = Path(name)
    taken = [file for file in (*FILES, "report.html") if (folder / file).exists()]
    if taken and not (folder / MARK).exists():
        raise OutputError(f"{folder / taken[0]}: was not written by a demo and would be lost. Choose another --output.")
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is a file. Give the name of a directory.")
    for file in (*FILES, "report.html") if folder.exists() else ():
        check_target(folder / file)
    return folder


def _report(calibration: Calibration, folder: Path, training: list[Any], validation: list[Any]) -> str | None:
    """Return the path of the report; None, with a note, where what it needs is not installed."""
    try:
        check_directory(str(folder))
    except MissingExtraError as problem:
        note(str(problem))
        return None
    from jointwise.report import write_report

    return str(write_report(calibration, folder, training, validation, file=folder / "model.json"))


def _joints(validation: Validation, calibration: Calibration) -> list[dict[str, Any]]:
    return [
        {"joint": joint.name, "rmse": errors.rmse, "r2": errors.r2}
        for joint, errors in zip(calibration.model.robot.joints, validation.joints, strict=True)
    ]


def _text(facts: dict[str, Any]) -> str:
    rows, unit = facts["parameters"], facts["unit"]
    joints = [(joint["joint"], _rounded(joint["rmse"]), _rounded(joint["r2"])) for joint in facts["joints"]]
    inside = sum(row["inside"] for row in rows)
    there = [row for row in rows if abs(row["true"]) > 1e-12]
    parts = [
        f"{facts['robot']}, simulated: calibrated on a motion of {facts['seconds']['training']:.0f} s, validated on "
        f"{facts['seconds']['unseen']:.0f} s of another motion (held-out data)\n"
        f"selected joint model: {facts['joint_model']}",
        f"validation error\n{table(('joint', f'RMSE [{unit}]', 'R2'), joints)}",
        f"most precise parameters\n{_parameters(rows[:SHOWN])}",
        f"least precise parameters whose true value is not zero\n{_parameters(there[-SHOWN:])}",
        f"{inside} of {len(rows)} true values lie within their 95 % confidence intervals",
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
