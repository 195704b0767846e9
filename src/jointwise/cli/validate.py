"""Tells the errors of a model on a log, joint by joint: over all samples, and over those at which the joint moves."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jointwise.cli.files import log_for, note
from jointwise.cli.progress import Progress
from jointwise.cli.text import as_json
from jointwise.cli.usage import add_columns, add_json, finite

if TYPE_CHECKING:
    from jointwise.result import Validation

EXAMPLES = """\
examples:
  jointwise validate model.json other.csv
  jointwise validate model.json other.csv --json
  jointwise validate model.json other.csv --min-r2 0.95      exit code 1 if a joint is worse

MSE/variance is 1 - R2. fit % is 100 for a perfect model and 0 for the mean. Standstill logs are welcome: a joint that
hardly moves is told with its error at rest, without an R2, and --min-r2 does not judge it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files and the limit."""
    parser.add_argument("model", metavar="MODEL", help="what calibrate wrote")
    parser.add_argument("log", metavar="LOG", help="a log with the measured output")
    parser.add_argument("--min-r2", type=finite, metavar="R2", help="fail if any joint's R2 is lower")
    add_columns(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the errors; 1 if they are too large."""
    from jointwise.cli.summary import validation_text
    from jointwise.result import load_calibration, validate
    from jointwise.result.compare import trained_on

    with Progress(args.json) as progress:
        progress("validating")
        calibration = load_calibration(args.model)
        log = log_for(calibration, args.log, args.columns, measured=True)
        validation = validate(calibration, log)
    if trained_on(calibration, log):
        note(f"{args.log}: the model was trained on this file; these figures are no proof.")
    failure = None if args.min_r2 is None else _failure(validation, args.min_r2)
    if args.json:
        print(as_json({"model": args.model, **validation.to_dict(), "passed": failure is None}))
    else:
        print(validation_text(validation))
    if failure is not None:
        note(f"failed validation: {failure}.")
    return int(failure is not None)


def _failure(validation: Validation, least: float) -> str | None:
    """Return why a validation misses its limit: joints below it, or none that could be judged; None if it holds."""
    if validation.reason is not None:
        return validation.reason
    judged = {j: own.r2 for j, own in enumerate(validation.joints, start=1) if not own.still}
    missed = [str(j) for j, r2 in judged.items() if r2 is None or r2 < least]
    return f"R2 below {least:g} at joint {', '.join(missed)}" if missed else None
