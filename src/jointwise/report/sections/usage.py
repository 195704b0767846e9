"""Usage: the command, the same in Python, and the required columns of a log."""

from __future__ import annotations

import shlex

from jointwise.report.data import ReportData
from jointwise.report.labels import length_unit
from jointwise.report.markup import Html, element, items, join, paragraph, table
from jointwise.result.calibration import Calibration
from jointwise.result.feed_forward import EXTRAS

ID, TITLE = "usage", "Usage"


def body(data: ReportData) -> Html:
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
            _columns(calibration),
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


def _columns(calibration: Calibration) -> Html:
    robot = calibration.model.robot
    last = robot.dof
    units = list(dict.fromkeys(length_unit(joint) for joint in robot.joints))
    rows: list[tuple[object, ...]] = [
        ("t", "s", "time", "yes"),
        (f"q1 … q{last}", " or ".join(units), "positions", "yes"),
    ]
    if any(term.uses_temperature() for terms in calibration.model.terms for term in terms):
        rows.append((f"temp1 … temp{last}", "°C", "temperatures", "yes"))
    for name in calibration.extras:
        unit = " or ".join(length + ("/s" if name == "qd" else "") for length in units)
        rows.append((f"{name}1 … {name}{last}", unit, EXTRAS[name], "recommended"))
    return table("Columns of the log", ("Column", "Unit", "Quantity", "Required"), rows, text_columns=(0, 1, 2, 3))
