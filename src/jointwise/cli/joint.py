"""Identifies the phenomena of one joint, one at a time or all at once; or plans the experiments for it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointwise.atomic import output_set
from jointwise.cli import joint_online_stiffness, joint_plan
from jointwise.cli.arguments import UsageError, add_json, add_quiet, count, format_options, heavy, mounting_of
from jointwise.cli.joint_logs import (
    add_joint_logs,
    joint_record_of,
    joint_records,
    logs_of,
    robot_with_joint,
    split_word,
)
from jointwise.cli.output import Progress, as_json, check_files, check_page, mounting_for, note
from jointwise.errors import EstimationError
from jointwise.joint.phenomenon import PHENOMENA

if TYPE_CHECKING:
    from jointwise.description import Robot
    from jointwise.joint import HysteresisOptions, JointIdentification, JointModel, Part

EXAMPLES = """\
examples:
  jointwise joint plan --robot ur5e --joint 2 --output plan
  jointwise joint friction speeds.csv --robot ur5e --joint 2 --output joint2.json --report joint2.html
  jointwise joint load slow.csv --robot ur5e --joint 2 --payload 5,0,0,0.1 --output joint2.json
  jointwise joint hysteresis slow.csv --robot ur5e --joint 1 --method nlr --elements 4 --output joint1.json
  jointwise joint motor empty.csv --loaded full.csv --payload-mass 2.8 --robot ur10e --joint 2 --output joint2.json
  jointwise joint all locked.csv speeds.csv load=slow.csv@0,0,-9.81 --robot ur5e --joint 2 --output joint2.json
  jointwise calibrate log.csv --robot ur5e --joint joint2.json --output model.json
  jointwise joint online-stiffness work.csv --robot ur5e --joint 2 --known joint2.json

'jointwise joint WHAT --help' lists the options of each. A phenomenon is added to the output file, and phenomena in that
file are used: friction over speed is subtracted before load, temperature and hysteresis are identified."""

EXAMPLE_LINES = {
    "stiffness": (
        "stiffness locked.parquet --robot ur5e --joint 2 --output joint2.json",
        "stiffness locked.csv --robot ur5e --joint 2 --gravity 0 9.81 0 --output joint2.json --report joint2.html",
    ),
    "transmission": (
        "transmission slow.parquet --robot ur5e --joint 2 --output joint2.json",
        "transmission slow.csv --robot ur5e --joint 2 --mounting wall --output joint2.json --report joint2.html",
    ),
    "friction": (
        "friction speeds.parquet --robot ur5e --joint 2 --output joint2.json --report joint2.html",
        "friction speeds.csv --robot ur10e --joint 1 --gain 11.3 --output joint1.json",
    ),
    "load": (
        "load slow.csv --robot ur5e --joint 2 --output joint2.json",
        "load slow.csv --robot ur5e --joint 2 --payload 5,0,0,0.1 --output joint2.json",
    ),
    "temperature": (
        "temperature warm-up.parquet --robot ur5e --joint 2 --output joint2.json",
        "temperature morning.csv noon.csv --robot ur5e --joint 2 --mounting wall --output joint2.json",
    ),
    "hysteresis": (
        "hysteresis slow.parquet --robot ur5e --joint 2 --output joint2.json",
        "hysteresis slow.csv --robot ur5e --joint 1 --method nlr --elements 4 --output joint1.json",
    ),
    "motor": (
        "motor slow.csv --robot ur5e --joint 2 --output joint2.json",
        "motor empty.csv --loaded full.csv --payload-mass 2.8 --robot ur10e --joint 2 --output joint2.json",
        "motor log.csv --targets --robot ur10e --joint 2 --output joint2.json",
    ),
    "all": (
        "all locked.parquet speeds.parquet slow.parquet --robot ur5e --joint 2 --output joint2.json",
        "all friction=speeds.csv@0,9.81,0 load=slow.csv --robot ur5e --joint 2 --output joint2.json",
    ),
}
"""Arguments of `jointwise joint` in the help of each phenomenon, and of all."""
EXAMPLE_NOTE = """\
The result is added to the output file. Results already in that file are used for the identification."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one command per phenomenon, one for all of them, and the plan."""
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, phenomenon in PHENOMENA.items():
        command = _command(commands, name, phenomenon.line, "logs of the experiment, CSV or Parquet")
        if name == "hysteresis":
            _add_hysteresis(command)
        if name == "motor":
            command.add_argument(
                "--loaded",
                nargs="+",
                action="extend",
                default=[],
                metavar="LOG",
                help="logs of the same motions with a payload",
            )
            command.add_argument(
                "--payload-mass", type=heavy, metavar="KG", help="mass of that payload; its centre is estimated"
            )
            command.add_argument("--targets", action="store_true", help="use tau_des and i_des of the controller")
    whole = _command(commands, "all", "every phenomenon that a set of logs determines", "[PHENOMENON=]LOG[@GRAVITY]")
    _add_hysteresis(whole)
    plan = commands.add_parser(
        "plan", help="write the experiments that each method needs", **format_options(joint_plan.EXAMPLES)
    )
    joint_plan.add_arguments(plan)
    online = commands.add_parser(
        "online-stiffness",
        help=joint_online_stiffness.LINE,
        description=joint_online_stiffness.LINE,
        **format_options(joint_online_stiffness.EXAMPLES),
    )
    joint_online_stiffness.add_arguments(online)


def _command(commands: Any, name: str, line: str, logs: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=line, description=line, **format_options(_examples(name))
    )
    add_joint_logs(command, logs)
    command.add_argument(
        "--model", metavar="MODEL", help="calibrated model for the load (default: bodies of the robot description)"
    )
    command.add_argument(
        "--accept-implausible", action="store_true", help="use a drive gain of the output file marked as implausible"
    )
    command.add_argument("--output", metavar="FILE", help="joint file, JSON; other phenomena in it are kept")
    command.add_argument("--report", metavar="PAGE", help="write a page with curves, .html, or into a directory")
    add_json(command)
    add_quiet(command)
    return command


def _examples(name: str) -> str:
    """Return the examples of a phenomenon, or of `all`, for the end of its help."""
    return "\n".join(["examples:", *(f"  jointwise joint {line}" for line in EXAMPLE_LINES[name]), "", EXAMPLE_NOTE])


def _add_hysteresis(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method",
        metavar="NAME",
        default="auto",
        help="hysteresis model, such as nlr, gms or lugre (default: auto, selected by cross-validation)",
    )
    parser.add_argument(
        "--elements", type=count, metavar="M", help="number of slip elements (default: selected by cross-validation)"
    )
    parser.add_argument(
        "--load",
        dest="hysteresis_load",
        choices=("none", "square", "absolute"),
        help="load dependence of the hysteresis (default: that of the joint file, else selected by cross-validation)",
    )


def run(args: argparse.Namespace) -> int:
    """Identify, write and print; or plan."""
    if args.what == "plan":
        return joint_plan.run(args)
    if args.what == "online-stiffness":
        return joint_online_stiffness.run(args)
    _check_motor(args)
    _check_method(args)
    check_files(_inputs(args), {"--output": args.output}, check_page(args.report, "joint.html"))
    with Progress(args.json or args.quiet) as progress:
        progress("reading")
        robot = robot_with_joint(args)
        result = _identified(args, robot, _known(args, robot), progress)
        page = _written(args, result)
    _print(args, result, page)
    return 0


def _inputs(args: argparse.Namespace) -> list[str | None]:
    """Return all input files but the output file, which is extended."""
    logs = [split_word(word)[1] for word in args.logs] if args.what == "all" else args.logs
    return [*logs, *getattr(args, "loaded", []), args.model, args.robot, args.columns]


def _check_motor(args: argparse.Namespace) -> None:
    """Reject options of the motor that exclude each other."""
    if args.what != "motor":
        return
    if bool(args.loaded) != (args.payload_mass is not None):
        raise UsageError("--loaded and --payload-mass must be used together: the mass sets the scale of the gain")
    if args.targets and args.loaded:
        raise UsageError("--targets and --loaded are two methods: choose one")


def _check_method(args: argparse.Namespace) -> None:
    """Reject an unknown method of hysteresis."""
    if getattr(args, "method", "auto") == "auto":
        return
    from jointwise.joint.laws import METHODS

    if args.method not in METHODS:
        raise UsageError(f"--method must be auto or one of {', '.join(METHODS)}. Got '{args.method}' instead")


def _known(args: argparse.Namespace, robot: Robot) -> JointModel:
    from jointwise.joint import JointModel, load_joint

    return (
        load_joint(args.output, robot.name, args.joint - 1) if args.output else JointModel(robot.name, args.joint - 1)
    )


def _identified(args: argparse.Namespace, robot: Robot, known: JointModel, progress: Progress) -> JointIdentification:
    from jointwise.joint import JointIdentification, identify, identify_all

    if args.what == "all":
        result = identify_all(joint_records(args, robot, known), robot, known, _options(args), progress)
        if not result.found:
            raise EstimationError(next(iter(result.refused.values()))[0])
        return result
    if args.what == "motor" and (args.loaded or args.targets):
        progress("drive gains")
        part = _motor(args, robot)
    else:
        record = joint_record_of(args, robot, args.logs, mounting_of(args), None if args.what == "motor" else known)
        progress(args.what)
        part = identify(args.what, record, robot, known, _options(args))
    return JointIdentification(known.with_part(part), (args.what,), {})


def _options(args: argparse.Namespace) -> HysteresisOptions | None:
    from jointwise.joint import HysteresisOptions

    return HysteresisOptions(args.method, args.elements, args.hysteresis_load) if hasattr(args, "method") else None


def _motor(args: argparse.Namespace, robot: Robot) -> Part:
    """Return the motor of the joint from logs without and with a payload, or from the targets of the controller."""
    from jointwise.joint import identify_motor_from_payload, identify_motor_from_targets

    logs, loaded = logs_of(args, robot, args.logs), logs_of(args, robot, args.loaded)
    if args.targets:
        return identify_motor_from_targets(logs, robot, args.joint - 1)
    mounting = mounting_for([*logs, *loaded], mounting_of(args))
    return identify_motor_from_payload(logs, loaded, robot, args.joint - 1, args.payload_mass, mounting=mounting)


def _written(args: argparse.Namespace, result: JointIdentification) -> Path | None:
    """Write the joint file and the report, both or neither; return the page of the report."""
    from jointwise.joint import save_joint

    with output_set():
        page = None if args.report is None else _report(args, result.model)
        if args.output:
            save_joint(result.model, args.output, result.found)
    return page


def _report(args: argparse.Namespace, model: JointModel) -> Path:
    from jointwise.report.joint import write_joint_report

    return write_joint_report([model], args.report, args.output)


def _print(args: argparse.Namespace, result: JointIdentification, page: Path | None) -> None:
    """Print the result; of each failed phenomenon the reason of the best suited log, `--json` has them all."""
    for name, (reason, *_) in result.refused.items():
        note(f"{name}: {reason}")
    if args.quiet:
        return
    print(as_json(_document(args, result, page)) if args.json else _summary(args, result, page))


def _document(args: argparse.Namespace, result: JointIdentification, page: Path | None) -> dict[str, Any]:
    """Return the document of `--json`: `found` are the parts from these logs, others were known before."""
    model, everything = result.model, args.what == "all"
    return {
        "robot": model.robot,
        "joint": model.joint + 1,
        "found": result.found,
        "parts": {name: part.to_dict() for name, part in model.parts.items() if everything or name in result.found},
        "refused": result.refused,
        "files": {"output": args.output, "report": None if page is None else str(page)},
    }


def _summary(args: argparse.Namespace, result: JointIdentification, page: Path | None) -> str:
    """Return the text for a terminal: parts that were found, parts known before, files."""
    model = result.model
    text = "\n\n".join(f"{model.title}, {part.summary()}" for name, part in model.parts.items() if name in result.found)
    before = [name for name in model.parts if name not in result.found]
    if before and args.what == "all":
        text += f"\n\nknown before, unchanged: {', '.join(before)}"
    files = [f"\n{name}: {path}" for name, path in (("joint", args.output), ("report", page)) if path]
    return "\n".join([text, *files]) if files else text
