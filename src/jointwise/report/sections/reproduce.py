"""Use and reproduction: the commands, the same in Python, the required columns, the files with their hashes."""

from __future__ import annotations

import shlex
from pathlib import Path

from jointwise.formatting import MISSING
from jointwise.report.data import ReportData
from jointwise.report.page import Html, element, facts, items, join, length_unit, paragraph, robot_title, table
from jointwise.result.calibration import Calibration
from jointwise.result.model_file import SCHEMA
from jointwise.result.predict import EXTRAS


def reproduce_section(data: ReportData) -> Html:
    """Return the command, the table of files, and the origin of the model."""
    origin = data.calibration.provenance
    pairs: list[tuple[object, object]] = [
        ("Robot", f"{robot_title(data.robot)} ({data.robot.name}), {data.robot.dof} joints"),
        ("Mounting", origin.mounting),
        ("Output", f"{data.calibration.output} [{data.calibration.unit}]"),
        ("Jointwise version", origin.version),
        ("Model schema", str(SCHEMA)),
        ("Date", origin.date),
        ("Computing time", f"{origin.seconds:.1f} s"),
    ]
    return join([_command(data), _files(data), facts(pairs)])


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


def _command(data: ReportData) -> Html:
    line = element("pre", element("code", data.command or default_command(data)), tabindex="0")
    if data.command or data.calibration.choices:
        return line
    note = "This command does not include settings that were specified by hand; see Model selection."
    return join([line, paragraph(note, class_="small")])


def _training_paths(data: ReportData) -> list[str]:
    if data.training:
        return [item.log.origin.path for item in data.training]
    return [source.file for source in data.calibration.provenance.logs]


def _files(data: ReportData) -> Html:
    training = [
        (_file(source.file), "training data", f"{source.samples:,}", _hash(source.sha256))
        for source in data.calibration.provenance.logs
    ]
    validation = [
        (_file(Path(item.log.origin.path).name), item.label, f"{item.log.samples:,}", _hash(item.log.origin.sha256))
        for item in data.validation
    ]
    head = ("File", "Role", "Samples", "SHA-256")
    return table("Files", head, [*training, *validation], text_columns=(0, 1, 3))


def _hash(sha256: str) -> Html:
    return element("code", sha256 or MISSING)


def _file(name: str) -> Html:
    return element("span", name, class_="file")


# -- usage --


def usage_section(data: ReportData) -> Html:
    """Return the command, the same in Python, the columns, and references to the documentation."""
    calibration, file = data.calibration, shlex.quote(data.file)
    command = f"jointwise predict {file} LOG.csv --output predicted.csv"
    signal = f"{calibration.output} [{calibration.unit}]"
    return join(
        [
            paragraph(
                f"Predict the {signal} of every joint for every sample of a log, on the command line or in Python:"
            ),
            _code(command),
            _code(python_lines(data.file, calibration)),
            _required_columns(calibration),
            items(
                [
                    "Logs with other column names or units: option --columns, see docs/reference/formats.md.",
                    "Feed-forward torque of a planned motion: docs/tutorials/control-a-simulated-arm.md.",
                    f"Validation on another motion: jointwise validate {file} OTHER_LOG.csv.",
                ]
            ),
        ]
    )


def python_lines(file: str, calibration: Calibration) -> str:
    """Return the Python code that loads a model and predicts."""
    return (
        "import jointwise as jw\n\n"
        f"model = jw.load_model({file!r})\n"
        'log = jw.read_log("LOG.csv")\n'
        f"{calibration.output} = model.predict(log)  # (samples, joints), {calibration.unit}"
    )


def _code(text: str) -> Html:
    return element("pre", element("code", text), tabindex="0")


def _required_columns(calibration: Calibration) -> Html:
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
    return table("Columns of the log", ("Column", "Unit", "Quantity", "Required"), rows, text_columns=(0, 1, 2, 3))
