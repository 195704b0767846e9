"""Inspects a log: clock, channels, motion, suspicious units and signs, and the parameters that it determines."""

from __future__ import annotations

import argparse

from jointwise.cli.arguments import (
    add_columns,
    add_gravity,
    add_ignored,
    add_json,
    add_robot,
    mounting_of,
    reading,
    robot_of,
)
from jointwise.cli.output import Progress, as_json, mounting_for

EXAMPLES = """\
examples:
  jointwise inspect log.csv --robot ur10e
  jointwise inspect log.csv                                  the signals only, without a robot
  jointwise inspect log.csv --robot arm.urdf --columns 't=time,q=pos_0..pos_5,i=cur_0..cur_5'
  jointwise inspect log.csv --robot ur10e --ignore-output 5,6   without the outputs of joints 5 and 6
  jointwise inspect raw.csv --robot ur10e --columns 't,q*6,qd*6,i*6,i_des*6,tau_des*6' --json

Exit code 1 if the log is rejected for calibration."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the log and the robot."""
    parser.add_argument("log", metavar="LOG", help="log: CSV, Parquet or ROS 2 bag")
    add_robot(parser, required=False)
    add_gravity(parser)
    add_columns(parser)
    add_ignored(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the inspection; 1 if the log is rejected."""
    from jointwise.data import read_log, useless_outputs
    from jointwise.inspection import inspect

    robot, mounting = None if args.robot is None else robot_of(args), mounting_of(args)
    with Progress(args.json) as progress:
        progress("inspecting")
        log = read_log(args.log, joints=robot, **reading(args), ignore_output=args.ignore_output or ())
        log = log.ignore_output(useless_outputs(log)) if args.ignore_output is None else log
        result = inspect(log, robot, mounting=mounting_for([log], mounting))
    print(as_json(result.to_dict()) if args.json else result.summary())
    return int(result.rejected)
