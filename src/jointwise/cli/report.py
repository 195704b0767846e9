"""Writes an HTML report of a model on logs. Training logs are recognised by their samples; others are held-out data."""

from __future__ import annotations

import argparse
from pathlib import Path

from jointwise.cli.arguments import add_columns, add_json, add_quiet, reading
from jointwise.cli.output import Progress, as_json, check_files, check_page, note, read_model

INTERMIXED = True
EXAMPLES = """\
examples:
  jointwise report model.json training.csv other.csv --output report
  jointwise report model.json other.csv --output page.html --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files."""
    parser.add_argument("model", metavar="MODEL", help="model file of 'jointwise calibrate'")
    parser.add_argument("logs", nargs="+", metavar="LOG", help="training and held-out logs")
    parser.add_argument(
        "--output", required=True, metavar="DIR|HTML", help="page to write (.html), or a directory for it"
    )
    add_columns(parser)
    add_json(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    """Write the report and print its path."""
    from jointwise.result import validate
    from jointwise.result.logs import read_log_for

    check_files([args.model, *args.logs, args.columns], {}, check_page(args.output, "report.html"))
    from jointwise.report import write_report

    with Progress(args.quiet or args.json) as progress:
        progress("reading")
        calibration = read_model(args.model)
        logs = [read_log_for(calibration, path, **reading(args), warn=note) for path in args.logs]
        results = [validate(calibration, log) for log in logs]
        seen = [each for each in results if each.is_training]
        other = [each for each in results if not each.is_training]
        progress("writing the report")
        path = write_report(calibration, Path(args.output), seen, other, file=args.model)
    partly = sum(not each.held_out for each in other)
    if args.json:
        counts = {"training": len(seen), "partly_training": partly, "held_out": len(other) - partly}
        print(as_json({"file": str(path), "setup": calibration.setup, "logs": counts}))
    elif not args.quiet:
        print(f"{path}: {len(seen)} training, {partly} partly training, {len(other) - partly} held-out logs")
    return 0
