"""Identifies all drives from one log: inertia from the controller's targets, then gain and power-flow friction."""

from __future__ import annotations

import argparse

from jointwise.cli.arguments import (
    add_columns,
    add_gravity,
    add_json,
    add_payload,
    add_robot,
    mounting_of,
    payload_of,
    reading,
    robot_of,
)
from jointwise.cli.output import Progress, as_json, check_files, mounting_for

INTERMIXED = True
EXAMPLES = """\
examples:
  jointwise motor log.csv --robot ur5e --output motors.json
  jointwise motor log.csv --robot ur5e --alike --json
  jointwise calibrate log.csv --robot ur5e --joint motors.json --output model.json
  jointwise energy fit move.csv --robot ur5e --joint motors.json --output power.json

The log needs the RTDE fields target_q, target_qd, target_qdd, target_moment, actual_q and actual_current. The inertias
are as accurate as the described links."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the logs, the robot and what it carries."""
    parser.add_argument("logs", nargs="+", metavar="LOG", help="logs with targets and measured currents")
    add_robot(parser)
    parser.add_argument("--output", metavar="JSON", help="joint file with the motor of every joint")
    parser.add_argument("--alike", action="store_true", help="joints with the same torque limit share their inertia")
    add_payload(parser)
    add_gravity(parser)
    add_columns(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Identify the drives, write the joint file and print the result."""
    from jointwise.data import read_log
    from jointwise.joint import identify_drives, save_joints

    check_files([*args.logs, args.columns, args.robot], {"--output": args.output})
    robot, mounting = robot_of(args), mounting_of(args)
    with Progress(args.json) as progress:
        progress("reading")
        logs = [read_log(path, joints=robot, **reading(args)) for path in args.logs]
        progress("identifying")
        where = mounting_for(logs, mounting)
        result = identify_drives(logs, robot, mounting=where, payload=payload_of(args.payload), alike=args.alike)
    if args.output:
        save_joints(result.models(), args.output)
    print(as_json(result.to_dict()) if args.json else result.summary())
    return 0
