"""Plans the experiments that identify a joint: trajectories, robot programs, and a page with instructions."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from jointwise.cli.arguments import (
    UsageError,
    add_clearance,
    add_gravity,
    add_json,
    add_robot,
    add_tool,
    count,
    heavy,
    mounting_of,
    tool_of,
    within,
)
from jointwise.cli.joint_logs import robot_with_joint
from jointwise.cli.output import as_json
from jointwise.formatting import table

if TYPE_CHECKING:
    from jointwise.design.plan import Plan, PlannedExperiment

RATE = within(1.0, 10_000.0)
"""Rate of a trajectory in Hz; no controller takes more, and the files grow with it."""

EXAMPLES = """\
examples:
  jointwise joint plan --robot ur5e --joint 2 --output plan
  jointwise joint plan --robot ur10e --joint 1 --experiments friction,temperature --rate 500 --output friction
  jointwise joint plan --robot arm.urdf --joint 3 --mounting wall --payload 3.2 --output plan --json
  jointwise joint plan --robot ur5e --joint 5 --tool 0.15 --output gripper

The directory must be new or empty. Limits, the mounting plane (z = 0 of the base) and self-collision are checked;
obstacles in the cell are not. For an arm 0.8 m above the floor on a pedestal use --clearance -0.75. Programs (URScript)
are written for the six-axis arms of Universal Robots; other controllers execute the trajectory files."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the joint, the experiments and where the files go."""
    add_robot(parser)
    parser.add_argument("--joint", type=count, required=True, metavar="J", help="the joint under test, counted from 1")
    parser.add_argument("--output", required=True, metavar="DIR", help="new directory for the files")
    parser.add_argument(
        "--experiments",
        metavar="A,B",
        help="stiffness, friction, load, temperature, transmission, motor (default: all)",
    )
    parser.add_argument(
        "--rate", type=RATE, default=125.0, metavar="HZ", help="sampling rate of the trajectories (default: 125)"
    )
    parser.add_argument(
        "--payload", type=heavy, metavar="KG", help="mass of the payload for the experiments that require one"
    )
    add_clearance(parser)
    add_tool(parser)
    add_gravity(parser, "table")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the plan and print its experiments."""
    from jointwise.design.plan import make_plan
    from jointwise.experiment.plan_files import write_plan

    robot = robot_with_joint(args)
    plan = make_plan(
        robot,
        args.joint - 1,
        _names(args.experiments),
        mounting=mounting_of(args) or "table",
        payload=args.payload,
        clearance=args.clearance,
        tool=tool_of(args),
        called=_called(args),
    )
    files = write_plan(plan, args.output, rate=args.rate)
    if args.json:
        print(as_json({"experiments": [step.facts() for step in plan.steps], "files": [str(path) for path in files]}))
    else:
        print(_text(plan, files[0]))
    return 0


def _names(text: str | None) -> list[str] | None:
    """Return the names of a list `a,b`."""
    names = None if text is None else [name.strip() for name in text.split(",")]
    if names is not None and not all(names):
        raise UsageError("--experiments must be names with commas between them.")
    return names


def _text(plan: Plan, page: Path) -> str:
    """Return the experiments as a table, what was not planned, and what was not checked."""
    rejected = [f"{step.purpose.name}: not planned, {step.rejection}" for step in plan.steps if step.rejection]
    unseen = "the cell is" if plan.clearance is not None else "the mounting plane and the cell are"
    last = f"\nread {page} first; the arm is checked against itself, {unseen} not"
    return "\n".join([_table(plan), *rejected, last])


def _called(args: argparse.Namespace) -> str:
    """Return the robot as the command line names it, and how its file is read."""
    from shlex import quote

    words = [quote(args.robot)]
    words += [f"--convention {args.convention}"] if args.convention else []
    words += [f"--tip {quote(args.tip)}"] if args.tip else []
    return " ".join(words)


def _table(plan: Plan) -> str:
    rows = [
        (
            step.purpose.name,
            step.purpose.experiment,
            step.experiment.motion.duration * (2 if step.purpose.twice else 1),
            round(step.lowest, 2) if math.isfinite(step.lowest) else None,
            None if step.nearest is None else round(step.nearest.distance, 3),
            round(step.reach, 2),
            step.purpose.axis,
            _suitability(step),
        )
        for step in plan.steps
    ]
    heads = ("identifies", "experiment", "seconds", "lowest [m]", "links [m]", "reach [m]", "axis", "mounting")
    return table(heads, rows)


def _suitability(step: PlannedExperiment) -> str:
    if step.rejection:
        return "not planned"
    return "suits" if step.suits else "does not suit, see the page"
