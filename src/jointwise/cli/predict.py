"""Predicts the motor currents or joint torques at every time stamp of a log."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jointwise.cli.arguments import UsageError, add_columns, add_json, add_quiet, add_use, finite, reading
from jointwise.cli.output import Progress, as_json, check_files, note, read_model

if TYPE_CHECKING:
    from jointwise.result import Calibration

INTERMIXED = True
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files in our spelling and in AURT's."""
    parser.add_argument("model_file", nargs="?", metavar="MODEL", help="model file of 'jointwise calibrate'")
    parser.add_argument(
        "log_file", nargs="?", metavar="LOG", help="log with positions and the other channels that the model uses"
    )
    parser.add_argument("--output", metavar="CSV", help="file to write")
    parser.add_argument(
        "--gravity",
        nargs=3,
        type=finite,
        metavar=("X", "Y", "Z"),
        help="gravity in the base frame, m/s^2 (default: that of the model)",
    )
    add_use(parser)
    add_columns(parser)
    add_json(parser)
    add_quiet(parser)
    aurt = parser.add_argument_group("options of AURT")
    aurt.add_argument("--model", metavar="F", help="model file of 'jointwise calibrate'")
    aurt.add_argument("--data", metavar="CSV", help="the log")
    aurt.add_argument("--out", "--prediction", metavar="CSV", help="file to write, with the column names of AURT")


def run(args: argparse.Namespace) -> int:
    """Write the prediction."""
    model, log_path, target = _files(args)
    from jointwise.cli.aurt import predicted_names
    from jointwise.result.logs import read_log_for
    from jointwise.result.predict import applicable_use, use_text
    from jointwise.result.store import write_prediction

    check_files([model, log_path, args.columns], {"--out" if args.out else "--output": target})
    with Progress(args.quiet or args.json) as progress:
        progress("reading")
        calibration = read_model(model)
        if args.gravity:
            calibration = _under_gravity(calibration, args.gravity)
        log = read_log_for(calibration, log_path, **reading(args), measured=False, warn=note)
        names, time = (predicted_names(calibration), "timestamp") if args.out else (None, "t")
        use = applicable_use(calibration, log.available, args.use)
        write_prediction(calibration, log, target, names, time, lambda part: progress("predicting", part), use)
    facts = {
        "file": target,
        "samples": log.samples,
        "output": calibration.output,
        "unit": calibration.unit,
        "use": use,
        "setup": calibration.setup,
    }
    if args.json:
        print(as_json(facts))
    elif not args.quiet:
        used = use_text(calibration, use)
        print(f"{target}: {log.samples} samples, {calibration.output} in {calibration.unit}; {used}")
    return 0


def _under_gravity(calibration: Calibration, gravity: list[float]) -> Calibration:
    """Return a calibration under another gravity (m/s²); say which parameters the training data did not determine."""
    moved = calibration.with_mounting(gravity)
    if unknown := [name for name in moved.undetermined() if name not in calibration.undetermined()]:
        note(f"{', '.join(unknown)}: not determined by the training data, from the physically consistent bodies.")
    return moved


def _files(args: argparse.Namespace) -> tuple[str, str, str]:
    """Return model, log and output, each in one of two spellings."""
    positional = iter([name for name in (args.model_file, args.log_file) if name])
    model: str = args.model or next(positional, "")
    log: str = args.data or next(positional, "")
    if "" in (model, log) or next(positional, ""):
        raise UsageError("one MODEL and one LOG are required")
    if bool(args.output) == bool(args.out):
        raise UsageError("--output is required" if not args.out else "give --output or --out, not both")
    return model, log, args.output or args.out
