"""Logs in and files out, the way every command treats them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jointwise.errors import DataError, MissingExtraError, OutputError

if TYPE_CHECKING:
    from jointwise.data import Log
    from jointwise.result import Calibration

SURE = ("degrees", "motor-side", "time-unit")
"""Findings that make a log useless for any model; what else is odd about it is told and does not stop."""


def check_file(path: str | None) -> None:
    """Refuse, before any work is done, a path at which no file can be written."""
    if path is None:
        return
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"{target}: is a directory. Give the name of a file.")
    if not target.parent.is_dir():
        raise OutputError(f"{target}: cannot be written: there is no directory '{target.parent}'.")
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"{target}: cannot be written: no permission in '{target.parent}'.")


def check_directory(path: str | None) -> None:
    """Refuse, before any work is done, a path that cannot become a directory of a report; say what it needs."""
    if path is None:
        return
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target}: is a file. Give the name of a directory.")
    above = next(folder for folder in (target, *target.absolute().parents) if folder.exists())
    if not os.access(above, os.W_OK):
        raise OutputError(f"{target}: cannot be written: no permission in '{above}'.")
    from importlib.util import find_spec

    if find_spec("plotly") is None:
        raise MissingExtraError("plotly", "report", "The report")


def check_page(path: str | None) -> None:
    """Refuse, before any work is done, a path that can become neither a page (.html) nor a directory for one."""
    if path is None or Path(path).suffix.lower() not in (".html", ".htm"):
        check_directory(path)
        return
    check_file(path)
    check_directory(str(Path(path).parent))


def log_for(calibration: Calibration, path: str, columns: str | None, measured: bool) -> Log:
    """Return a log for a model to predict; `measured`: its output is needed too. What is odd is told on stderr."""
    from jointwise.data import examine, read_log

    robot = calibration.model.robot
    needed = (calibration.output,) if measured else ()
    log = read_log(path, columns=columns, joints=robot.dof, needed=needed)
    examination = examine(log, robot)
    clock = examination.numbers.clock.findings
    for finding in examination.findings:
        if finding.severity == "error" and (finding.code in SURE or finding in clock):
            raise DataError(f"{path}: {finding.message} {finding.advice}")
    for finding in examination.findings:
        if finding.severity == "error" and finding.code != "no-motion":
            note(f"{path}: {finding.message} {finding.advice}")
    if log.qd is None and any(term.uses_speed() for terms in calibration.model.terms for term in terms):
        note(f"{path}: no measured speed (qd); the model knows one and predicts without it, a little worse.")
    if log.theta is None and any(term.uses_rotor() for terms in calibration.model.terms for term in terms):
        note(f"{path}: no rotor positions (theta); the model knows them and predicts without, a little worse.")
    return log


def note(text: str) -> None:
    """Tell something in passing."""
    print(f"jointwise: note: {text}", file=sys.stderr)
