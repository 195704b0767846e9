"""How to use it: the command, the same in Python, the columns a log must have."""

from __future__ import annotations

import shlex

from jointwise.report.evidence import Evidence
from jointwise.report.markup import Html, element, items, join, paragraph, table
from jointwise.report.numbers import length_unit
from jointwise.result.calibration import EXTRAS, Calibration

ID, TITLE = "use", "How to use it"


def body(evidence: Evidence) -> Html:
    """Return the command, four lines of Python, the columns, and where to read on."""
    calibration, file = evidence.calibration, evidence.file
    command = f"jointwise predict {shlex.quote(file)} LOG.csv --output predicted.csv"
    return join(
        [
            paragraph(
                f"Predict the {calibration.output} [{calibration.unit}] of every joint at every stamp of a log, on the "
                "command line or in Python:"
            ),
            _code(command),
            _code(python_lines(file, calibration)),
            _columns(calibration),
            items(
                [
                    "A log with other column names or units: --columns; docs/formats.md lists the usual ones.",
                    "Feed-forward and control with the torque of a planned motion: "
                    "docs/tutorials/control-a-simulated-arm.md.",
                    f"Proof on another motion: jointwise validate {shlex.quote(file)} OTHER_LOG.csv.",
                ]
            ),
        ]
    )


def python_lines(file: str, calibration: Calibration) -> str:
    """Return the lines that load a model and predict."""
    return (
        "from jointwise import load_calibration, read_log\n\n"
        f"model = load_calibration({file!r})\n"
        'log = read_log("LOG.csv")\n'
        f"{calibration.output} = model.predict(log)  # (samples, joints), {calibration.unit}"
    )


def _code(text: str) -> Html:
    return element("pre", element("code", text), tabindex="0")


def _columns(calibration: Calibration) -> Html:
    robot = calibration.model.robot
    last = robot.dof
    units = list(dict.fromkeys(length_unit(joint) for joint in robot.joints))
    unit = " or ".join(units)
    rows: list[tuple[object, ...]] = [("t", "s", "time", "yes"), (f"q1 … q{last}", unit, "positions", "yes")]
    if any(term.uses_temperature() for own in calibration.model.terms for term in own):
        rows.append((f"temp1 … temp{last}", "°C", "temperatures", "yes"))
    for name in calibration.extras:
        per = "/s" if name == "qd" else ""
        rows.append((f"{name}1 … {name}{last}", " or ".join(own + per for own in units), EXTRAS[name], "better with"))
    return table("Columns of the log", ("Column", "Unit", "What", "Needed"), rows, words=(0, 1, 2, 3))
