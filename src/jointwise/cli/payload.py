"""Identifies mass, centre of mass and inertia of a payload at the tool from logs, with a calibrated model."""

from __future__ import annotations

import argparse

from jointwise.cli.arguments import add_columns, add_json
from jointwise.cli.output import Progress, as_json, check_files, note, read_model

EXAMPLES = """\
examples:
  jointwise payload model.json loaded.csv
  jointwise payload model.json loaded.csv --json
  jointwise payload model.json a.csv b.csv --output loaded.json     the model with the payload, for predict and validate
  jointwise payload model.json pose1.csv pose2.csv pose3.csv pose4.csv     logs at rest: one pose each

Logs with motion must last at least 12 s together; a log in which no joint moves counts as one pose. The centre of mass
is in the tool frame, the inertia about the centre of mass. Exit code 1 if no payload explains a log, for example
because of another robot, wrong signs or wrong columns."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files."""
    parser.add_argument("model", metavar="MODEL", help="model file of 'jointwise calibrate'")
    parser.add_argument("logs", metavar="LOG", nargs="+", help="a log with the payload and the measured output")
    parser.add_argument("--output", metavar="JSON", help="write the model including the payload to this file")
    add_columns(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the payload."""
    from jointwise.result import save_model
    from jointwise.result.logs import read_log_for
    from jointwise.runtime import identify_payload

    check_files([args.model, *args.logs, args.columns], {"--output": args.output})
    with Progress(args.json) as progress:
        progress("reading")
        calibration = read_model(args.model)
        logs = [read_log_for(calibration, path, columns=args.columns, warn=note) for path in args.logs]
        found = identify_payload(calibration, logs, progress=progress)
    if args.output:
        save_model(calibration.with_payload(found.payload), args.output)
    print(as_json({"model": args.model, **found.to_dict()}) if args.json else found.summary())
    return 0
