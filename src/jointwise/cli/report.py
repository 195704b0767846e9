"""Writes an HTML report of a model on logs: those it was trained on, recognised by their SHA-256, and unseen ones."""

from __future__ import annotations

import argparse
from pathlib import Path

from jointwise.cli.files import check_directory, check_files, log_for
from jointwise.cli.progress import Progress
from jointwise.cli.usage import add_columns

INTERMIXED = True
EXAMPLES = """\
examples:
  jointwise report model.json training.csv other.csv --output report"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files."""
    parser.add_argument("model", metavar="MODEL", help="what calibrate wrote")
    parser.add_argument("logs", nargs="+", metavar="LOG", help="training logs and unseen ones")
    parser.add_argument("--output", required=True, metavar="DIR", help="directory of the report")
    add_columns(parser)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> int:
    """Write the report and tell where it is."""
    from jointwise.result import load_calibration
    from jointwise.result.compare import trained_on

    check_files([args.model, *args.logs, args.columns], {}, check_directory(args.output))
    from jointwise.report import write_report

    with Progress(args.quiet) as progress:
        progress("reading")
        calibration = load_calibration(args.model)
        logs = [log_for(calibration, path, args.columns, measured=True) for path in args.logs]
        seen = [log for log in logs if trained_on(calibration, log)]
        unseen = [log for log in logs if not trained_on(calibration, log)]
        progress("writing the report")
        path = write_report(calibration, Path(args.output), seen, unseen, file=args.model)
    if not args.quiet:
        print(f"{path}: {len(seen)} training, {len(unseen)} unseen")
    return 0
