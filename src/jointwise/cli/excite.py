"""Optimises a motion that determines the parameters of a robot best within its limits, and writes its files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from jointwise.cli.arguments import (
    add_clearance,
    add_gravity,
    add_json,
    add_robot,
    add_tool,
    mounting_of,
    positive,
    robot_of,
    seconds,
    share,
    tool_of,
    whole,
)
from jointwise.cli.output import Progress, as_json, read_model
from jointwise.errors import ModelError

if TYPE_CHECKING:
    from jointwise.description import Robot

EXAMPLES = """\
examples:
  jointwise excite --robot ur10e --output excitation
  jointwise excite --robot ur5e --duration 30 --speed 0.4 --for bodies --tool 0.15 --output excitation
  jointwise excite --robot arm.urdf --mounting wall --no-clearance --acceleration 4 --output excitation
  jointwise excite --robot ur10e --model model.json --for payload --output payload
  jointwise excite --robot ur10e --model model.json --previous excitation --seed 2 --output second

The directory contains trajectory.csv (500 Hz), joint_trajectory.json (ROS 2), excitation.script (URScript, for arms
of Universal Robots), prediction.json (for 'jointwise calibrate --excitation') and excitation.html. Limits, the
mounting plane and self-collision are checked; obstacles in the cell are not. Repeat an interrupted command to
resume it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the robot, the goal, the limits and where the files go."""
    add_robot(parser)
    parser.add_argument("--output", required=True, metavar="DIR", help="new directory for the files")
    parser.add_argument(
        "--duration", type=seconds, default=20.0, metavar="S", help="duration from rest to rest (default: 20)"
    )
    parser.add_argument("--speed", type=share, default=0.6, help="fraction of the speed limits (default: 0.6)")
    parser.add_argument("--seed", type=whole, default=1, help="seed of the random starts (default: 1)")
    parser.add_argument(
        "--for",
        dest="goal",
        default="all",
        metavar="GOAL",
        help="parameters to determine: all, bodies, friction, or payload of a calibrated arm (default: all)",
    )
    parser.add_argument(
        "--basis", default="fourier", help="fourier (series) or bspline (quintic, at most 60 s) (default: fourier)"
    )
    parser.add_argument(
        "--criterion",
        default="d",
        help="d (volume of the confidence region) or a (mean squared standard error) (default: d)",
    )
    parser.add_argument(
        "--acceleration",
        type=positive,
        metavar="A",
        help="acceleration limit of joints without one in the description (default: 6 rad/s^2 or 3 m/s^2)",
    )
    parser.add_argument(
        "--model",
        metavar="FILE",
        help="calibrated model from which torques and residuals are predicted (default: the description)",
    )
    parser.add_argument(
        "--previous",
        metavar="DIR",
        help="excitation with which --model was calibrated: its standard errors correct the prediction",
    )
    add_clearance(parser)
    add_tool(parser)
    add_gravity(parser, "table")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Optimise, write, and print what is predicted."""
    from jointwise.design import ExcitationOptions
    from jointwise.experiment.excitation_files import excite

    robot, mounting = robot_of(args), mounting_of(args) or "table"
    options = ExcitationOptions(
        duration=args.duration, speed=args.speed, seed=args.seed, goal=args.goal, basis=args.basis,
        criterion=args.criterion, mounting=mounting, clearance=args.clearance, tool=tool_of(args),
        acceleration=args.acceleration, **_known(args, robot),
    )  # fmt: skip
    with Progress(args.json) as progress:
        result = excite(robot, args.output, options, progress=progress)
    if args.json:
        print(as_json(result.to_dict()))
    else:
        print(f"{result.summary()}\nread {args.output}/excitation.html first; the cell is not checked")
    return 0


def _known(args: argparse.Namespace, robot: Robot) -> dict[str, Any]:
    """Return values by parameter name and noise of a calibrated model, as options of an excitation."""
    if args.model is None:
        if args.previous is not None:
            raise ModelError("--previous needs --model, the calibration from the recording of that excitation.")
        return {}
    from jointwise.result.excitation import calibrated_options, same_geometry

    calibration = read_model(args.model)
    if not same_geometry(calibration.model.robot, robot):
        raise ModelError(f"{args.model}: a model of '{calibration.model.robot.name}', not of '{robot.name}'.")
    return calibrated_options(calibration, args.previous)
