"""Logs in and files out, the way every command treats them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from jointwise.atomic import refuse_directory
from jointwise.cli.usage import UsageError
from jointwise.errors import DataError, MissingExtraError, OutputError

if TYPE_CHECKING:
    from jointwise.data import Log
    from jointwise.description.mounting import Mounting
    from jointwise.result import Calibration

LONGEST_NAME = 200
"""Letters of a name; 255 are usual, less those of a temporary file."""
SURE = ("degrees", "motor-side", "time-unit")
"""Findings that make a log useless for any model; what else is odd about it is told and does not stop."""


def check_files(inputs: Iterable[str | None], outputs: Mapping[str, str | None], page: str | None = None) -> None:
    """Refuse, before any work is done, files that cannot be written and those that would replace what is needed.

    `inputs` are all that a command reads, names of the catalogue and the like among them; `outputs` the files that it
    writes, by their options; `page` the page of `--report`. No output may be an input or another output.
    """
    for path in outputs.values():
        check_file(path)
    written = {option: path for option, path in {**outputs, "--report": page}.items() if path is not None}
    for option, path in written.items():
        if any(own is not None and Path(own).exists() and _same(own, path) for own in inputs):
            raise UsageError(f"{option} {path} is an input and would be lost. Name another file.")
    for (one, first), (other, second) in combinations(written.items(), 2):
        if _same(first, second) or Path(first).resolve() in Path(second).resolve().parents:
            raise UsageError(f"{one} and {other} must be different files. Got {first} for both.")


def _same(one: str, other: str) -> bool:
    """Tell whether two paths lead to the same file, there already or not."""
    if Path(one).exists() and Path(other).exists():
        return Path(one).samefile(other)
    return Path(one).resolve() == Path(other).resolve()


def check_file(path: str | None) -> None:
    """Refuse, before any work is done, a path at which no file can be written."""
    if path is None:
        return
    target = Path(path)
    _refuse_long(target)
    refuse_directory(target)
    if not target.parent.is_dir():
        raise OutputError(f"{target}: cannot be written: there is no directory '{target.parent}'.")
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"{target}: cannot be written: no permission in '{target.parent}'.")


def _refuse_long(path: Path) -> None:
    """Refuse names that file systems do not take; a temporary file beside a target needs some letters more."""
    for part in path.parts:
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise OutputError(
                f"{part[:20]}...: a name must be at most {LONGEST_NAME} letters. Got {len(part)} instead."
            )


def check_directory(path: str | None, name: str = "report.html") -> str | None:
    """Refuse, before any work is done, a path that cannot become a directory of a report; say what it needs.

    Return the page, called `name`, that will be written there.
    """
    if path is None:
        return None
    target = Path(path)
    _refuse_long(target)
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target}: is a file. Give the name of a directory.")
    refuse_directory(target / name)
    above = next(folder for folder in (target, *target.absolute().parents) if folder.exists())
    if not above.is_dir():
        raise OutputError(f"{target}: no directory can be made there: '{above}' is a file.")
    if not os.access(above, os.W_OK):
        raise OutputError(f"{target}: cannot be written: no permission in '{above}'.")
    from importlib.util import find_spec

    if find_spec("plotly") is None:
        raise MissingExtraError("plotly", "report", "The report")
    return str(target / name)


def check_page(path: str | None, name: str) -> str | None:
    """Refuse, before any work is done, a path that can become neither a page (.html) nor a directory for one.

    Return the page that will be written, called `name` if `path` is a directory.
    """
    if path is None or Path(path).suffix.lower() not in (".html", ".htm"):
        return check_directory(path, name)
    check_file(path)
    check_directory(str(Path(path).parent))
    return path


def mounting_for(logs: Sequence[Log], asked: Mounting | None) -> Mounting:
    """Return the mounting of some logs: asked for, else told by the logs (which is said), else the table."""
    from jointwise.data.gravity import gravity_text, mounting_of_logs

    found = mounting_of_logs(logs, asked)
    if asked is None and not isinstance(found, str):
        note(f"gravity {gravity_text(found)} m/s^2 as {logs[0].origin.path} tells.")
    return found


def log_for(calibration: Calibration, path: str, columns: str | None, measured: bool) -> Log:
    """Return a log for a model to predict; `measured`: its output is needed too. What is odd is told on stderr."""
    import numpy as np

    from jointwise.data import examine, read_log
    from jointwise.data.gravity import refuse_other_gravity
    from jointwise.result.calibration import EXTRAS

    robot = calibration.model.robot
    needed = (calibration.output,) if measured else ()
    log = read_log(path, columns=columns, joints=robot.dof, needed=needed)
    refuse_other_gravity(log, np.array(calibration.model.gravity), "the model is for")
    examination = examine(log, robot)
    clock = examination.numbers.clock.findings
    for finding in examination.findings:
        if finding.severity == "error" and (finding.code in SURE or finding in clock):
            raise DataError(f"{path}: {finding.message} {finding.advice}")
    for finding in examination.findings:
        if finding.severity == "error" and finding.code != "no-motion":
            note(f"{path}: {finding.message} {finding.advice}")
    lacking = [EXTRAS[name] for name in calibration.extras if name not in log.available]
    if lacking:
        note(f"{path}: no {' and no '.join(lacking)}, which the model uses. {_loss(calibration)}")
    return log


def _loss(calibration: Calibration) -> str:
    """Return what a model loses that sees nothing but positions, as its file remembers it."""
    from jointwise.result.digits import rounded

    for log in calibration.validation.get("logs", []):
        alone = log.get("positions_alone")
        if alone is not None and alone["mean_nmse"] is not None:
            full, bare, where = log["mean_nmse"], alone["mean_nmse"], f"on {Path(log['file']).name}"
            break
    else:
        known = [own for own in calibration.training.get("positions_alone") or () if own is not None]
        if not known:
            return "The prediction is worse without."
        fitted, where = calibration.training["nmse"], "on its training data"
        full, bare = sum(fitted) / len(fitted), sum(known) / len(known)
    return (
        f"From positions alone MSE/variance was {rounded(bare, 2)} {where}, {rounded(full, 2)} with them; "
        "a motion with stops can lose more."
    )


def note(text: str) -> None:
    """Tell something in passing."""
    print(f"jointwise: note: {text}", file=sys.stderr)
