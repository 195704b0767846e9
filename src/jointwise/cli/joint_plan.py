"""Plans the experiments that identify a joint: trajectories, robot programs, and a page that tells how and why."""

from __future__ import annotations

import argparse

from jointwise.cli.text import as_json, table
from jointwise.cli.usage import (
    UsageError,
    add_gravity,
    add_json,
    add_robot,
    add_tool,
    count,
    finite,
    mounting_of,
    positive,
    robot_of,
    tool_of,
)

CLEARANCE = 0.05
"""Height (m) above the mounting plane that a plan keeps unless told otherwise."""

EXAMPLES = """\
examples:
  jointwise joint plan --robot ur5e --joint 2 --output plan
  jointwise joint plan --robot ur10e --joint 1 --experiments friction,temperature --rate 500 --output friction
  jointwise joint plan --robot arm.urdf --joint 3 --mounting wall --payload 3.2 --output plan --json
  jointwise joint plan --robot ur5e --joint 5 --tool 0.15 --output gripper

The directory must be new or empty. Limits, the mounting plane (z = 0 of the base) and the arm against itself are
checked, the cell is not; an arm 0.8 m above the floor on a pedestal takes --clearance -0.75. Programs (URScript) are
written for the six-axis arms of Universal Robots; other controllers follow the trajectory files."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the joint, the experiments and where the files go."""
    add_robot(parser)
    parser.add_argument("--joint", type=count, required=True, metavar="J", help="the joint under test, counted from 1")
    parser.add_argument("--output", required=True, metavar="DIR", help="a new directory for the files")
    parser.add_argument(
        "--experiments",
        metavar="A,B",
        help="stiffness, friction, load, temperature, transmission, motor (default: all)",
    )
    parser.add_argument("--rate", type=positive, default=125.0, metavar="HZ", help="of the trajectories (default: 125)")
    parser.add_argument("--payload", type=positive, metavar="KG", help="mass for the experiments that carry one")
    _add_clearance(parser)
    add_tool(parser)
    add_gravity(parser, "table")
    add_json(parser)


def _add_clearance(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--clearance",
        type=finite,
        default=CLEARANCE,
        metavar="M",
        help=f"height above the mounting plane that the arm keeps (default: {CLEARANCE:g})",
    )
    group.add_argument(
        "--no-clearance",
        dest="clearance",
        action="store_const",
        const=None,
        help="the arm may go through the plane: a pedestal",
    )


def run(args: argparse.Namespace) -> int:
    """Write the plan and tell what is in it."""
    from jointwise.plan import make_plan, write_plan

    names = None if args.experiments is None else [name.strip() for name in args.experiments.split(",")]
    if names is not None and not all(names):
        raise UsageError("--experiments must be names with commas between them.")
    robot = robot_of(args)
    if args.joint > robot.dof:
        raise UsageError(f"--joint must be 1 to {robot.dof}. Got {args.joint} instead")
    plan = make_plan(
        robot,
        args.joint - 1,
        names,
        mounting=mounting_of(args) or "table",
        payload=args.payload,
        clearance=args.clearance,
        tool=tool_of(args),
        called=_called(args),
    )
    files = write_plan(plan, args.output, rate=args.rate)
    facts = [step.facts() for step in plan.steps]
    if args.json:
        print(as_json({"experiments": facts, "files": [str(path) for path in files]}))
        return 0
    rows = [
        (
            own["name"],
            own["experiment"],
            own["duration_s"] * own["runs"],
            round(own["lowest_m"], 2),
            "-" if own["links_m"] is None else round(own["links_m"], 3),
            round(own["reach_m"], 2),
            own["axis"],
            _suits(own),
        )
        for own in facts
    ]
    heads = ("identifies", "experiment", "seconds", "lowest [m]", "links [m]", "reach [m]", "axis", "mounting")
    print(table(heads, rows))
    for own in facts:
        if own["refused"]:
            print(f"{own['name']}: not planned, {own['refused']}")
    unseen = "the cell is" if plan.clearance is not None else "the mounting plane and the cell are"
    print(f"\nread {files[0]} first; the arm is checked against itself, {unseen} not")
    return 0


def _called(args: argparse.Namespace) -> str:
    """Return the robot as the command line names it, and how its file is read."""
    from shlex import quote

    words = [quote(args.robot)]
    words += [f"--convention {args.convention}"] if args.convention else []
    words += [f"--tip {quote(args.tip)}"] if args.tip else []
    return " ".join(words)


def _suits(facts: dict[str, object]) -> str:
    if facts["refused"]:
        return "not planned"
    return "suits" if facts["mounting_suits"] else "does not suit, see the page"
