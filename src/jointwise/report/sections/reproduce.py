"""Use and reproduction: the commands, the same in Python, the required columns, the files with their hashes."""

from __future__ import annotations

import shlex
from pathlib import Path

from jointwise.report.data import ReportData
from jointwise.report.page import Html, fragment, length_unit, robot_title
from jointwise.result.calibration import Calibration
from jointwise.result.model_file import SCHEMA
from jointwise.result.predict import EXTRAS


def reproduce_section(data: ReportData) -> Html:
    """Return the command, the table of files, and the origin of the model."""
    origin = data.calibration.provenance
    training = [(source.file, "training data", source.samples, source.sha256) for source in origin.logs]
    others = [(item.log.origin, item.label, item.log.samples) for item in data.validation]
    return fragment(
        "reproduce.html",
        command=data.command or default_command(data),
        by_hand=not (data.command or data.calibration.choices),
        files=[*training, *((Path(log.path).name, label, samples, log.sha256) for log, label, samples in others)],
        facts=[
            ("Robot", f"{robot_title(data.robot)} ({data.robot.name}), {data.robot.dof} joints"),
            ("Mounting", origin.mounting),
            ("Output", f"{data.calibration.output} [{data.calibration.unit}]"),
            ("Jointwise version", origin.version),
            ("Model schema", str(SCHEMA)),
            ("Date", origin.date),
            ("Computing time", f"{origin.seconds:.1f} s"),
        ],
    )


def default_command(data: ReportData) -> str:
    """Return the command line of a calibration with default settings."""
    mounting = data.calibration.provenance.mounting
    gravity = mounting.split()
    words = ["jointwise", "calibrate", *_training_paths(data), "--robot", data.robot.name]
    words += ["--mounting", mounting] if len(gravity) == 1 else ["--gravity", *gravity]
    words += _validation_options(data)
    words += ["--output-signal", data.calibration.output, "--output", "model.json", "--report", "report"]
    return shlex.join(words)


def _validation_options(data: ReportData) -> list[str]:
    """Return the options that name the validation data: other files, or the held-out part of the training files."""
    hashes = {item.log.origin.sha256 for item in data.training}
    parts = [item.log for item in data.held_out if item.log.origin.sha256 in hashes and item.log.origin.start > 0]
    others = [item.log.origin.path for item in data.held_out if item.log not in parts]
    held_out = ["--holdout", f"{parts[0].samples / parts[0].origin.rows:.3g}"] if parts else []
    return [*held_out, *(["--validate", *others] if others else [])]


def _training_paths(data: ReportData) -> list[str]:
    if data.training:
        return [item.log.origin.path for item in data.training]
    return [source.file for source in data.calibration.provenance.logs]


def usage_section(data: ReportData) -> Html:
    """Return the command, the same in Python, the columns, and references to the documentation."""
    calibration = data.calibration
    return fragment(
        "usage.html",
        signal=f"{calibration.output} [{calibration.unit}]",
        file=shlex.quote(data.file),
        python=python_lines(data.file, calibration),
        columns=_required_columns(calibration),
    )


def python_lines(file: str, calibration: Calibration) -> str:
    """Return the Python code that loads a model and predicts."""
    return (
        "import jointwise as jw\n\n"
        f"model = jw.load_model({file!r})\n"
        'log = jw.read_log("LOG.csv")\n'
        f"{calibration.output} = model.predict(log)  # (samples, joints), {calibration.unit}"
    )


def _required_columns(calibration: Calibration) -> list[tuple[object, ...]]:
    robot = calibration.model.robot
    last = robot.dof
    units = list(dict.fromkeys(length_unit(joint) for joint in robot.joints))
    rows: list[tuple[object, ...]] = [
        ("t", "s", "time", "yes"),
        (f"q1 … q{last}", " or ".join(units), "positions", "yes"),
    ]
    if calibration.model.needs_temperature:
        rows.append((f"temp1 … temp{last}", "°C", "temperatures", "yes"))
    for name in calibration.extras:
        unit = " or ".join(length + ("/s" if name == "qd" else "") for length in units)
        rows.append((f"{name}1 … {name}{last}", unit, EXTRAS[name], "recommended"))
    return rows
