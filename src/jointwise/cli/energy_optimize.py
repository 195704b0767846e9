"""The command `energy optimize`: the motion of a task with the least energy from the bus."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jointwise.cli.arguments import (
    add_clearance,
    add_gravity,
    add_json,
    add_payload,
    add_tool,
    finite,
    mounting_of,
    payload_of,
    positive,
    share,
    tool_of,
)
from jointwise.cli.output import Progress, as_json, check_files, read_model

if TYPE_CHECKING:
    from jointwise.description import Robot
    from jointwise.design.trajectory import Differentiable
    from jointwise.result import Calibration

EXAMPLES = """\
examples:
  jointwise energy optimize power.json --model model.json --start 0,-1.2,1,-1,-1.5,0 --goal 1.5,-0.6,0.3,-1.5,-1,1 \\
    --duration 2.5 --payload 3 --output motion
  jointwise energy optimize power.json --robot ur5e --start 0,-1.2,1,-1,-1.5,0 --via 0.9,-1.3,0.9,-1,-1.2,0.4 \\
    --goal 1.5,-0.6,0.3,-1.5,-1,1 --longest 6 --output motion
  jointwise energy optimize power.json --model model.json --motion trajectory.csv --path fixed --output motion

The directory contains trajectory.csv (500 Hz), joint_trajectory.json (ROS 2), motion.script (URScript, for arms of
Universal Robots and motions without stops), energy.json and energy.html. With --longest the duration is optimised as
well, because the standing power counts. Limits, the mounting plane and self-collision are checked; obstacles in the
cell are not. Repeat an interrupted command to resume it."""


def positions(text: str) -> tuple[float, ...]:
    """Return joint positions separated by commas."""
    return tuple(finite(word) for word in text.split(","))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the task and its limits."""
    parser.add_argument("power", metavar="POWER", help="power model (energy fit or energy sheet)")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--model", metavar="MODEL", help="calibrated model: bodies and friction")
    source.add_argument("--robot", metavar="NAME|FILE", help="use described bodies and friction instead of a model")
    parser.add_argument("--output", required=True, metavar="DIR", help="new directory for the files")
    parser.add_argument("--start", type=positions, metavar="Q1,Q2,..", help="positions at the start, rad")
    parser.add_argument("--goal", type=positions, metavar="Q1,Q2,..", help="positions at the end, rad")
    parser.add_argument(
        "--via", type=positions, action="append", default=[], metavar="Q1,Q2,..", help="waypoint, rad; can be repeated"
    )
    parser.add_argument("--motion", metavar="CSV", help="planned motion, instead of start and goal")
    times = parser.add_mutually_exclusive_group()
    times.add_argument(
        "--duration", type=positive, metavar="S", help="duration from rest to rest (default: that of --motion)"
    )
    times.add_argument(
        "--longest", type=positive, metavar="S", help="upper limit of the duration, which is optimised as well"
    )
    parser.add_argument(
        "--path", choices=("free", "fixed"), default="free", help="fixed: only the timing changes (default: free)"
    )
    add_payload(parser)
    parser.add_argument("--speed", type=share, default=1.0, help="fraction of the speed limits (default: 1)")
    parser.add_argument(
        "--acceleration",
        type=positive,
        metavar="A",
        help="acceleration limit of joints without one in the description, rad/s^2 (default: 6)",
    )
    parser.add_argument("--power-limit", type=positive, metavar="W", help="limit of the power on the bus")
    add_clearance(parser)
    add_tool(parser)
    add_gravity(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Optimise, write the files and print the comparison."""
    from jointwise.energy import load_power_model
    from jointwise.experiment.motion_files import minimize_energy

    check_files([args.power, args.model, args.motion], {})
    model, robot = _model(args)
    task = _task(args, robot)
    with Progress(args.json) as progress:
        result = minimize_energy(
            model, load_power_model(args.power), args.output, **task, duration=args.duration, longest=args.longest,
            path=args.path, payload=payload_of(args.payload), mounting=mounting_of(args), clearance=args.clearance,
            tool=tool_of(args), speed=args.speed, acceleration=args.acceleration, power_limit=args.power_limit,
            progress=progress,
        )  # fmt: skip
    note = f"read {args.output}/energy.html first; the cell is not checked"
    print(as_json(result.to_dict()) if args.json else f"{result.summary()}\n{note}")
    return 0


def _model(args: argparse.Namespace) -> tuple[Calibration | Robot, Robot]:
    """Return the model of a task, and its robot."""
    import jointwise

    if args.model is None:
        robot = jointwise.load_robot(args.robot)
        return robot, robot
    calibration = read_model(args.model)
    return calibration, calibration.model.robot


def _task(args: argparse.Namespace, robot: Robot) -> dict[str, object]:
    """Return points or motion of a task."""
    from jointwise.errors import ModelError

    if args.motion is not None:
        if args.start or args.goal or args.via:
            raise ModelError("a task must have either --motion, or --start and --goal with --via.")
        return {"motion": _motion(args.motion, robot)}
    if args.start is None or args.goal is None:
        raise ModelError("a task must have --start and --goal, or --motion.")
    points = [args.start, *args.via, args.goal]
    for each in points:
        if len(each) != robot.dof:
            raise ModelError(f"positions must be {robot.dof} numbers. Got {len(each)} instead.")
    return {"points": points}


def _motion(path: str, robot: Robot) -> Differentiable:
    """Return the planned motion of a file."""
    from jointwise.data import read_log
    from jointwise.design.sampled import experiment_from_log
    from jointwise.design.trajectory import Differentiable

    motion = experiment_from_log(robot, read_log(path, joints=robot)).motion
    assert isinstance(motion, Differentiable)
    return motion
