"""AURT's calibrate and predict in one: the first part of a log for calibration, the rest for validation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jointwise.atomic import output_set
from jointwise.cli import calibrate
from jointwise.cli.calibration_run import carry_out
from jointwise.cli.command import UsageError
from jointwise.cli.output import Progress
from jointwise.settings import Fraction, option

EXAMPLES = """\
examples:
  jointwise calibrate-validate --model robot_dynamics --data log.csv --gravity 0 0 -9.81 --calibration-data-rel 0.7 \\
      --out-params parameters.csv --out-calibrated-model rd_calibrated --out-prediction predicted.csv

All options of calibrate are there too. The prediction is that of the validation part: timestamp, predicted_current_0,
..."""


@dataclass(frozen=True, kw_only=True)
class Settings(calibrate.Settings):
    """The options of calibrate, the split and the prediction."""

    calibration_data_rel: Fraction = option(help="fraction of the log used for calibration", metavar="PART")
    out_prediction: str | None = option(
        None, "file for the prediction of the remaining part", "--out-prediction", "--output-prediction", metavar="CSV"
    )


def run(settings: Settings) -> int:
    """Calibrate, validate, write and print."""
    if settings.holdout:
        raise UsageError("--calibration-data-rel says what --holdout would")
    settings = replace(settings, holdout=1.0 - settings.calibration_data_rel)
    with Progress(settings.silent) as progress, output_set():
        outcome = carry_out(settings, progress, {"--out-prediction": settings.out_prediction})
        if settings.out_prediction:
            from jointwise.cli.aurt import predicted_names
            from jointwise.result.predict import write_prediction

            log, names = outcome.validations[0].log, predicted_names(outcome.calibration)
            assert log is not None
            write_prediction(outcome.calibration, log, settings.out_prediction, names, "timestamp")
    calibrate.report(settings, outcome)
    return 0
