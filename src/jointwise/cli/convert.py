"""Converts a log between CSV, Parquet and MCAP, and completes an interrupted recording."""

from __future__ import annotations

import argparse

from jointwise.cli.arguments import add_columns, add_json, add_robot, reading, robot_of
from jointwise.cli.output import as_json, check_files

EXAMPLES = """\
examples:
  jointwise convert bag/ log.parquet --robot ur10e
  jointwise convert log.csv log.mcap --robot ur10e
  jointwise convert log.parquet.recording log.parquet       (an interrupted recording)
  jointwise convert log.csv log.parquet --columns 't=time,q=pos_0..pos_5,i=cur_0..cur_5' --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add input, output and how the input is read."""
    parser.add_argument("log", metavar="LOG", help="CSV, Parquet, ROS 2 bag, or interrupted recording")
    parser.add_argument("output", metavar="OUTPUT", help="file to write: .csv, .parquet or .mcap")
    add_robot(parser, required=False)
    add_columns(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the log in the other format."""
    from jointwise.data.write import convert

    check_files([args.log, args.columns], {"OUTPUT": args.output})
    samples = convert(args.log, args.output, robot=None if args.robot is None else robot_of(args), **reading(args))
    facts = {"file": args.output, "samples": samples}
    print(as_json(facts) if args.json else f"{args.output}: {samples} samples")
    return 0
