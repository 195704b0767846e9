"""Predicts the output (current or torque) of a model at every stamp of a log, from what it has of the motion."""

from __future__ import annotations

import argparse

from jointwise.cli.files import check_files, log_for
from jointwise.cli.progress import Progress
from jointwise.cli.usage import UsageError, add_columns, finite

INTERMIXED = True
EXAMPLES = """\
examples:
  jointwise predict model.json log.csv --output predicted.csv
  jointwise predict --model rd_calibrated --data log.csv --gravity 0 0 -9.81 --out predicted.csv     (as AURT)

Columns: t as in the log, then one a joint, named as the measured one with the suffix _pred (i1_pred, tau1_pred); with
AURT's --out: timestamp, predicted_current_0, ... No sample is missing.

A model that was trained on more than positions (speeds qd, rotor positions theta) predicts worse without them, most of
all where joints stand; calibrate, validate and the report tell how much worse."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files in our spelling and in AURT's."""
    parser.add_argument("model_file", nargs="?", metavar="MODEL", help="what calibrate wrote")
    parser.add_argument(
        "log_file",
        nargs="?",
        metavar="LOG",
        help="a log: positions, and what else the model uses",
    )
    parser.add_argument("--output", metavar="CSV", help="the prediction")
    parser.add_argument("--gravity", nargs=3, type=finite, metavar=("X", "Y", "Z"), help="another one, m/s^2")
    add_columns(parser)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    aurt = parser.add_argument_group("AURT's spellings")
    aurt.add_argument("--model", metavar="F", help="what calibrate wrote")
    aurt.add_argument("--data", metavar="CSV", help="the log")
    aurt.add_argument("--out", "--prediction", metavar="CSV", help="the prediction, with AURT's column names")


def run(args: argparse.Namespace) -> int:
    """Write the prediction."""
    model, log_path, target = _files(args)
    from jointwise.cli.aurt import predicted_names, under_gravity
    from jointwise.result import load_calibration
    from jointwise.result.table import write_prediction

    check_files([model, log_path, args.columns], {"--out" if args.out else "--output": target})
    with Progress(args.quiet) as progress:
        progress("reading")
        calibration = load_calibration(model)
        if args.gravity:
            calibration = under_gravity(calibration, args.gravity)
        log = log_for(calibration, log_path, args.columns, measured=False)
        names, time = (predicted_names(calibration), "timestamp") if args.out else (None, "t")
        write_prediction(calibration, log, target, names, time, lambda part: progress.part("predicting", part))
    if not args.quiet:
        print(f"{target}: {log.samples} samples, {calibration.output} in {calibration.unit}")
    return 0


def _files(args: argparse.Namespace) -> tuple[str, str, str]:
    """Return model, log and output, each given in one of two spellings."""
    positional = [name for name in (args.model_file, args.log_file) if name]
    model = args.model or (positional.pop(0) if positional else None)
    log = args.data or (positional.pop(0) if positional else None)
    if not (model and log) or positional:
        raise UsageError("one MODEL and one LOG are required")
    if bool(args.output) == bool(args.out):
        raise UsageError("--output is required" if not args.out else "give --output or --out, not both")
    return model, log, args.output or args.out
