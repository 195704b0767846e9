"""AURT's calibrate and predict in one: the first part of a log for calibration, the rest for validation."""

from __future__ import annotations

import argparse

from jointwise.atomic import output_set
from jointwise.cli import calibrate
from jointwise.cli.arguments import UsageError, fraction
from jointwise.cli.calibration_run import carry_out
from jointwise.cli.output import Progress

INTERMIXED = True
EXAMPLES = """\
examples:
  jointwise calibrate-validate --model robot_dynamics --data log.csv --gravity 0 0 -9.81 --calibration-data-rel 0.7 \\
      --out-params parameters.csv --out-calibrated-model rd_calibrated --out-prediction predicted.csv

All options of calibrate are there too. The prediction is that of the validation part: timestamp, predicted_current_0,
..."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of calibrate, the split and the prediction."""
    calibrate.add_arguments(parser)
    parser.add_argument(
        "--calibration-data-rel",
        required=True,
        type=fraction,
        metavar="PART",
        help="fraction of the log used for calibration",
    )
    parser.add_argument(
        "--out-prediction", "--output-prediction", metavar="CSV", help="file for the prediction of the remaining part"
    )


def run(args: argparse.Namespace) -> int:
    """Calibrate, validate, write and print."""
    if args.holdout:
        raise UsageError("--calibration-data-rel says what --holdout would")
    args.holdout = 1.0 - args.calibration_data_rel
    with Progress(args.quiet or args.json) as progress, output_set():
        outcome = carry_out(args, progress, {"--out-prediction": args.out_prediction})
        if args.out_prediction:
            from jointwise.cli.aurt import predicted_names
            from jointwise.result.store import write_prediction

            log, names = outcome.validations[0].log, predicted_names(outcome.calibration)
            assert log is not None
            write_prediction(outcome.calibration, log, args.out_prediction, names, "timestamp")
    calibrate.report(args, outcome)
    return 0
