"""Rehearses a calibration without a robot: excite, run on the virtual UR, record over RTDE, calibrate, validate."""

from __future__ import annotations

import argparse

from jointwise.cli.arguments import add_json, add_robot, robot_of, seconds, whole
from jointwise.cli.output import Progress, as_json

EXAMPLES = """\
examples:
  jointwise rehearse --output rehearsal
  jointwise rehearse --robot ur10e --duration 20 --optimize --output rehearsal

Recording runs in real time and takes twice the duration. The directory contains both recordings and the model."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the robot, the directory and the duration."""
    add_robot(parser, required=False)
    parser.add_argument("--output", required=True, metavar="DIR", help="directory for recordings and model")
    parser.add_argument(
        "--duration", type=seconds, default=30.0, metavar="S", help="duration of each motion (default: 30)"
    )
    parser.add_argument("--seed", type=whole, default=0, help="seed of motions and noise (default: 0)")
    parser.add_argument("--optimize", action="store_true", help="train on an optimal excitation (jointwise excite)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Rehearse, and print the result."""
    from jointwise.rehearsal import rehearse

    args.robot = "ur5e" if args.robot is None else args.robot
    with Progress(args.json) as progress:
        result = rehearse(
            robot_of(args), args.output, duration=args.duration, seed=args.seed,
            optimize=args.optimize, progress=progress,
        )  # fmt: skip
    print(as_json(result.to_dict()) if args.json else result.summary())
    return 0
