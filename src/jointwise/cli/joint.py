"""Identifies what one joint is made of, one phenomenon at a time or all at once; or plans the experiments for it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointwise.cli import joint_plan
from jointwise.cli.files import check_files, check_page, mounting_for, note
from jointwise.cli.joint_examples import examples_of
from jointwise.cli.progress import Progress
from jointwise.cli.text import as_json, table
from jointwise.cli.usage import (
    UsageError,
    add_columns,
    add_gravity,
    add_json,
    add_robot,
    count,
    looks,
    mounting_of,
    payload_numbers,
    payload_of,
    positive,
    robot_of,
)
from jointwise.errors import EstimationError, JointwiseError, ModelError
from jointwise.joint.phenomenon import PHENOMENA

if TYPE_CHECKING:
    from jointwise.data import Log
    from jointwise.description import Robot
    from jointwise.description.mounting import Mounting
    from jointwise.joint import Answers, JointModel, JointRecord, Part

EXAMPLES = """\
examples:
  jointwise joint plan --robot ur5e --joint 2 --output plan
  jointwise joint friction speeds.csv --robot ur5e --joint 2 --output joint2.json --report joint2.html
  jointwise joint load slow.csv --robot ur5e --joint 2 --payload 5,0,0,0.1 --output joint2.json
  jointwise joint hysteresis slow.csv --robot ur5e --joint 1 --method nlr --elements 4 --output joint1.json
  jointwise joint motor empty.csv --loaded full.csv --payload-mass 2.8 --robot ur10e --joint 2 --output joint2.json
  jointwise joint all locked.csv speeds.csv load=slow.csv@0,0,-9.81 --robot ur5e --joint 2 --output joint2.json
  jointwise calibrate log.csv --robot ur5e --joint joint2.json --output model.json

'jointwise joint WHAT --help' tells the options of each. A phenomenon is added to what the output file knows already,
and what is known there helps: the friction over speed is taken off before load, temperature and hysteresis are told."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one command a phenomenon, all of them at once, and the plan."""
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, phenomenon in PHENOMENA.items():
        own = _command(commands, name, phenomenon.line, "logs of the experiment, CSV or Parquet")
        if name == "hysteresis":
            _add_hysteresis(own)
        if name == "motor":
            own.add_argument("--loaded", nargs="+", default=[], metavar="LOG", help="the same motions with a payload")
            own.add_argument("--payload-mass", type=positive, metavar="KG", help="of that payload; its place is found")
            own.add_argument("--targets", action="store_true", help="from the controller's own tau_des and i_des")
    whole = _command(commands, "all", "everything that a set of logs can tell", "[PHENOMENON=]LOG[@GRAVITY]")
    _add_hysteresis(whole)
    plan = commands.add_parser(
        "plan", help="write the experiments that each method needs", **looks(joint_plan.EXAMPLES)
    )
    joint_plan.add_arguments(plan)


def _command(commands: Any, name: str, line: str, logs: str) -> argparse.ArgumentParser:
    own: argparse.ArgumentParser = commands.add_parser(name, help=line, description=line, **looks(examples_of(name)))
    own.add_argument("logs", nargs="+", metavar="LOG", help=logs)
    add_robot(own)
    own.add_argument("--joint", type=count, required=True, metavar="J", help="the joint, counted from 1")
    add_gravity(own)
    add_columns(own)
    own.add_argument("--payload", type=payload_numbers, metavar="KG[,X,Y,Z]", help="carried in the logs, centre in m")
    own.add_argument(
        "--gain",
        type=positive,
        metavar="K",
        help="drive gain, Nm/A (default: the file's, else described)",
    )
    own.add_argument(
        "--model", metavar="MODEL", help="calibrated model that tells the load (default: described bodies)"
    )
    own.add_argument("--output", metavar="FILE", help="joint file, JSON; what it knows already stays")
    own.add_argument("--report", metavar="PAGE", help="a page of curves, .html, or a directory for it")
    add_json(own)
    own.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return own


def _add_hysteresis(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method",
        metavar="NAME",
        default="auto",
        help="of hysteresis, such as nlr, gms or lugre (default: auto, the best on unseen data)",
    )
    parser.add_argument("--elements", type=count, metavar="M", help="slip elements (default: chosen on unseen data)")
    parser.add_argument(
        "--load",
        dest="hysteresis_load",
        choices=("none", "square", "absolute"),
        help="how hysteresis grows with the load (default: as the file's load law, else chosen on unseen data)",
    )


def run(args: argparse.Namespace) -> int:
    """Identify, write and tell; or plan."""
    if args.what == "plan":
        return joint_plan.run(args)
    _check_motor(args)
    _check_method(args)
    check_files(_inputs(args), {"--output": args.output}, check_page(args.report, "joint.html"))
    with Progress(args.json or args.quiet) as progress:
        progress("reading")
        robot = robot_of(args)
        if args.joint > robot.dof:
            raise UsageError(f"--joint must be 1 to {robot.dof}. Got {args.joint} instead")
        others, known = _known(args, robot)
        answers = _identified(args, robot, known, progress)
        page = _written(args, [*others, answers.model])
    _tell(args, answers, page)
    return 0


def _inputs(args: argparse.Namespace) -> list[str | None]:
    """Return all that is read but the output file, whose knowledge is extended."""
    logs = [_parsed(word)[1] for word in args.logs] if args.what == "all" else args.logs
    return [*logs, *getattr(args, "loaded", []), args.model, args.robot, args.columns]


def _check_motor(args: argparse.Namespace) -> None:
    """Refuse options of the motor that do not belong together."""
    if args.what != "motor":
        return
    if bool(args.loaded) != (args.payload_mass is not None):
        raise UsageError("--loaded and --payload-mass belong together: the mass tells what an ampere is worth")
    if args.targets and args.loaded:
        raise UsageError("--targets reads the controller's signals and --loaded a payload: choose one")


def _check_method(args: argparse.Namespace) -> None:
    """Refuse a method of hysteresis that is none."""
    if getattr(args, "method", "auto") == "auto":
        return
    from jointwise.joint.hysteresis import METHODS

    if args.method not in METHODS:
        raise UsageError(f"--method must be auto or one of {', '.join(METHODS)}. Got '{args.method}' instead")


def _known(args: argparse.Namespace, robot: Robot) -> tuple[list[JointModel], JointModel]:
    """Return what the output file knows: other joints, and this one."""
    from jointwise.joint import JointModel, load_joints

    models = load_joints(args.output) if args.output and Path(args.output).exists() else []
    for model in models:
        if model.robot != robot.name:
            raise ModelError(f"{args.output}: knows joints of {model.robot}, not of {robot.name}. Name another file.")
    own = next((model for model in models if model.joint == args.joint - 1), JointModel(robot.name, args.joint - 1))
    return [model for model in models if model.joint != args.joint - 1], own


def _identified(args: argparse.Namespace, robot: Robot, known: JointModel, progress: Progress) -> Answers:
    from jointwise.joint import Answers, Settings, identify, identify_all

    if args.what == "motor" and (args.loaded or args.targets):
        progress("drive gains")
        return Answers(known.with_part(_gain(args, robot)), (args.what,), {})
    settings = Settings(
        getattr(args, "method", "auto"), getattr(args, "elements", None), getattr(args, "hysteresis_load", None)
    )
    if args.what != "all":
        record = _record(args, robot, args.logs, mounting_of(args), None if args.what == "motor" else known)
        progress(args.what)
        part = identify(args.what, record, robot, known, settings)
        return Answers(known.with_part(part), (args.what,), {})
    answers = identify_all(_sorted_records(args, robot, known), robot, known, settings, progress)
    if not answers.found:
        raise EstimationError(next(iter(answers.refused.values()))[0])
    return answers


def _gain(args: argparse.Namespace, robot: Robot) -> Part:
    """Return the motor of the joint from a load/unload pair, or from the controller's own signals."""
    from jointwise.data import read_log
    from jointwise.joint import joint_record
    from jointwise.joint.motor import gains_from_targets, identify_current_loop, identify_gains_from_payload

    logs, loaded = (
        [read_log(p, columns=args.columns, joints=robot.dof) for p in own] for own in (args.logs, args.loaded)
    )
    if args.targets:
        estimate = gains_from_targets(logs, robot)
    else:
        mounting = mounting_for([*logs, *loaded], mounting_of(args))
        estimate = identify_gains_from_payload(logs, loaded, robot, args.payload_mass, mounting=mounting)
    part = estimate.part(args.joint - 1, robot.joints[args.joint - 1].motor.gear_ratio)
    measured = [log for log in logs if log.current is not None]
    if not (args.targets and measured):
        return part
    return identify_current_loop(joint_record(measured, robot, args.joint - 1, gain=1.0)).added(part)


def _sorted_records(args: argparse.Namespace, robot: Robot, known: JointModel) -> dict[str, list[JointRecord]]:
    """Return the records to ask for every phenomenon: those named for it, else all that are named for none."""
    named: dict[str, list[JointRecord]] = {}
    loose: list[JointRecord] = []
    for word in args.logs:
        name, path, gravity = _parsed(word)
        record = _record(args, robot, [path], gravity or mounting_of(args), known)
        (named.setdefault(name, []) if name else loose).append(record)
    return {name: named.get(name, loose) for name in PHENOMENA}


def _parsed(word: str) -> tuple[str | None, str, str | list[float] | None]:
    """Return phenomenon, file and gravity of `[PHENOMENON=]LOG[@GRAVITY]`; a file that is there is taken as it is."""
    if Path(word).exists():
        return None, word, None
    name, sign, rest = word.partition("=")
    if not sign or name not in PHENOMENA:
        _refuse_name(name, rest)
        name, rest = "", word
    path, sign, where = rest.rpartition("@")
    if not sign or Path(rest).exists():
        return name or None, rest, None
    gravity = _gravity(where)
    if gravity is None and Path(path).exists():
        raise UsageError(f"gravity after @ must be X,Y,Z or a mounting. Got '{where}' instead")
    return name or None, rest if gravity is None else path, gravity


def _refuse_name(name: str, rest: str) -> None:
    """Refuse a file that is there with a name before it that is no phenomenon."""
    if any(path and Path(path).is_file() for path in (rest, rest.rpartition("@")[0])):
        raise UsageError(f"the name before = must be one of {', '.join(PHENOMENA)}. Got '{name}' instead")


def _gravity(text: str) -> str | list[float] | None:
    """Return what a text says of gravity: three numbers (m/s²) or a mounting; None if it says nothing of it."""
    from jointwise.description import gravity_vector

    words = text.split(",")
    try:
        asked = text if len(words) == 1 else [float(word) for word in words]
        gravity_vector(asked)
    except (ValueError, JointwiseError):
        return None
    return asked


def _record(
    args: argparse.Namespace, robot: Robot, paths: list[str], mounting: Mounting | None, known: JointModel | None
) -> JointRecord:
    """Return the signals of the joint; the drive gain is the one given, else `_known_gain`, else the described one."""
    from jointwise.data import read_log
    from jointwise.joint import joint_record

    logs = [read_log(path, columns=args.columns, joints=robot.dof) for path in paths]
    return joint_record(
        logs,
        robot,
        args.joint - 1,
        payload=payload_of(args.payload),
        gain=args.gain or _known_gain(robot, known),
        **_bodies(args, robot, logs, mounting),
    )


def _known_gain(robot: Robot, known: JointModel | None) -> float | None:
    """Return the drive gain of a joint whose motor was identified, None if it was not; say if it is a new one."""
    from jointwise.joint.plug import drive_gain

    if known is None or "motor" not in known.parts:
        return None
    described = robot.joints[known.joint].motor.joint_gain
    gain = drive_gain(known, described)
    if described is not None and gain != described:
        note(
            f"drive gain {gain:.5g} Nm/A as the motor part tells: its interval excludes the described {described:.5g}."
        )
    return gain


def _bodies(args: argparse.Namespace, robot: Robot, logs: list[Log], mounting: Mounting | None) -> dict[str, Any]:
    """Return what tells the load torque: the described bodies, or those and the rotors of a calibrated model.

    A model stands under the gravity of the logs, its own one where nobody tells another.
    """
    if args.model is None:
        return {"mounting": mounting_for(logs, mounting)}
    from jointwise.data.gravity import gravity_text, is_same
    from jointwise.description import gravity_vector
    from jointwise.result import load_calibration
    from jointwise.result.bodies import CalibratedBodies

    calibration = load_calibration(args.model)
    own = calibration.model.gravity
    if calibration.model.robot.name != robot.name:
        raise ModelError(f"{args.model}: is a model of {calibration.model.robot.name}, not of {robot.name}.")
    told = mounting is not None or any(log.origin.gravity is not None for log in logs)
    gravity = gravity_vector(mounting_for(logs, mounting) if told else own)
    gravity = gravity_vector(own) if is_same(own, gravity) else gravity
    bodies = CalibratedBodies(calibration, gravity, payload_of(args.payload))
    if not bodies.tells(args.joint - 1):
        raise ModelError(
            f"{args.model}: calibrated under gravity {gravity_text(own)} m/s^2, does not tell the load of joint "
            f"{args.joint} under {gravity_text(gravity)}. Leave --model out, or name one of that gravity."
        )
    if not is_same(own, gravity):
        note(f"{args.model}: calibrated under gravity {gravity_text(own)}, taken under {gravity_text(gravity)} m/s^2.")
    return {"load": bodies, "inertia": 0.0, "mounting": gravity.tolist()}


def _written(args: argparse.Namespace, models: list[JointModel]) -> Path | None:
    from jointwise.joint import save_joints

    if args.output:
        save_joints(sorted(models, key=lambda model: model.joint), args.output)
    if args.report is None:
        return None
    from jointwise.report.joint import write_joint_report

    return write_joint_report([model for model in models if model.joint == args.joint - 1], args.report, args.output)


def _tell(args: argparse.Namespace, answers: Answers, page: Path | None) -> None:
    """Print what was found; of what was refused the reason of the log that suits it best, `--json` has them all."""
    model = answers.model
    for name, (reason, *_) in answers.refused.items():
        note(f"{name}: {reason}")
    if args.quiet:
        return
    if args.json:
        print(as_json(_document(args, answers, page)))
        return
    print("\n\n".join(_text(model, model.parts[name]) for name in model.parts if name in answers.found))
    before = [name for name in model.parts if name not in answers.found]
    if before and args.what == "all":
        print(f"\nknown before, unchanged: {', '.join(before)}")
    for name, path in (("joint", args.output), ("report", page)):
        if path:
            print(f"\n{name}: {path}", end="")
    print()


def _document(args: argparse.Namespace, answers: Answers, page: Path | None) -> dict[str, Any]:
    """Return what `--json` prints: `found` are the parts of these logs, others were known before."""
    model, everything = answers.model, args.what == "all"
    return {
        "robot": model.robot,
        "joint": model.joint + 1,
        "found": answers.found,
        "parts": {name: part.to_dict() for name, part in model.parts.items() if everything or name in answers.found},
        "refused": answers.refused,
        "files": {"output": args.output, "report": None if page is None else str(page)},
    }


def _text(model: JointModel, part: Part) -> str:
    from jointwise.joint.quality import fit_text

    lines = [
        f"{model.robot}, joint {model.joint + 1}, {part.phenomenon}: {part.model}",
        f"{fit_text(part.fitted, part.held_out)}, from {', '.join(part.logs) or 'memory'}",
    ]
    rows = [(v.name, *(_short(x, v.digits) for x in (v.value, v.low, v.high)), v.unit) for v in part.values]
    if rows:
        lines.append(table(("parameter", "value", "95 % from", "to", "unit"), rows))
    tried = [
        (own.model, round(own.fitted, 1), None if own.held_out is None else round(own.held_out, 1), own.note)
        for own in part.alternatives
    ]
    if len(tried) > 1:
        lines.append(table(("tried", f"fit % {part.tried_on}", "fit % held out", ""), tried))
    lines += [f"  {text}" for text in part.notes]
    return "\n".join(lines)


def _short(value: float, digits: int) -> str:
    return f"{float(f'{value:.{digits}g}'):.9g}"
