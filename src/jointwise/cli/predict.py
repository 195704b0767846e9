"""Predicts the motor currents or joint torques at every time stamp of a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jointwise.cli.command import Common, UsageError
from jointwise.cli.inputs import Estimate, LogFormat
from jointwise.cli.output import Progress, check_files, note, read_model, show
from jointwise.settings import Number, option

if TYPE_CHECKING:
    from jointwise.result import Calibration

EXAMPLES = """\
examples:
  jointwise predict model.json log.csv --output predicted.csv
  jointwise predict model.json planned.csv --use feed-forward --output predicted.csv --json
  jointwise predict --model rd_calibrated --data log.csv --gravity 0 0 -9.81 --out predicted.csv     (as in AURT)

The file has one row per row of the log: t, then one column per joint, named like the measured one with the suffix
_pred (i1_pred, tau1_pred). With --out it has the column names of AURT: timestamp, predicted_current_0, ...

A model that was trained on speeds (qd) or rotor positions (theta) contains two estimates with the same bodies: a
sensor-based one, used if the log has these channels, and a feed-forward one for positions only. The summary states
which one was used."""
AURT = "options of AURT"


@dataclass(frozen=True, kw_only=True)
class Settings(Estimate, LogFormat, Common):
    """The files in our spelling and in AURT's."""

    model_file: str | None = option(None, "model file of 'jointwise calibrate'", metavar="MODEL", argument=True)
    log_file: str | None = option(
        None, "log with positions and the other channels that the model uses", metavar="LOG", argument=True
    )
    output: str | None = option(None, "file to write", metavar="CSV")
    gravity: tuple[Number, Number, Number] | None = option(
        None, "gravity in the base frame, m/s^2", metavar=("X", "Y", "Z"), standard="that of the model"
    )
    model: str | None = option(None, "model file of 'jointwise calibrate'", metavar="F", group=AURT)
    data: str | None = option(None, "the log", metavar="CSV", group=AURT)
    out: str | None = option(
        None, "file to write, with the column names of AURT", "--out", "--prediction", metavar="CSV", group=AURT
    )


def run(settings: Settings) -> int:
    """Write the prediction."""
    model, log_path, target = _files(settings)
    from jointwise.cli.aurt import predicted_names
    from jointwise.result.logs import read_log_for
    from jointwise.result.predict import applicable_use, use_text, write_prediction

    check_files([model, log_path, settings.columns], {"--out" if settings.out else "--output": target})
    with Progress(settings.silent) as progress:
        progress("reading")
        calibration = read_model(model)
        if settings.gravity:
            calibration = _under_gravity(calibration, settings.gravity)
        log = read_log_for(calibration, log_path, **settings.reading(), measured=False, warn=note)
        names, time = (predicted_names(calibration), "timestamp") if settings.out else (None, "t")
        use = applicable_use(calibration, log.available, settings.use)
        write_prediction(calibration, log, target, names, time, lambda part: progress("predicting", part), use)
    facts = {
        "file": target,
        "samples": log.samples,
        "output": calibration.output,
        "unit": calibration.unit,
        "use": use,
        "setup": calibration.setup,
    }
    where = f"{target}: {log.samples} samples, {calibration.output} in {calibration.unit}"
    show(settings, lambda: facts, lambda: f"{where}; {use_text(calibration, use)}")
    return 0


def _under_gravity(calibration: Calibration, gravity: Sequence[float]) -> Calibration:
    """Return a calibration under another gravity (m/s²); say which parameters the training data did not determine."""
    moved = calibration.with_mounting(gravity)
    if unknown := [name for name in moved.undetermined() if name not in calibration.undetermined()]:
        note(f"{', '.join(unknown)}: not determined by the training data, from the physically consistent bodies.")
    return moved


def _files(settings: Settings) -> tuple[str, str, str]:
    """Return model, log and output, each in one of two spellings."""
    positional = iter([name for name in (settings.model_file, settings.log_file) if name])
    model: str = settings.model or next(positional, "")
    log: str = settings.data or next(positional, "")
    if "" in (model, log) or next(positional, ""):
        raise UsageError("one MODEL and one LOG are required")
    if settings.output and settings.out:
        raise UsageError("give --output or --out, not both")
    if not (target := settings.output or settings.out):
        raise UsageError("--output is required")
    return model, log, target
