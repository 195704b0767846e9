"""Simulates an experiment: writes a log as a real arm would record it, and the true parameters."""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

from jointwise.atomic import output_set
from jointwise.cli.arguments import (
    UsageError,
    add_columns,
    add_gravity,
    add_json,
    add_payload,
    add_quiet,
    add_robot,
    add_tool,
    count,
    frequency,
    metres,
    mounting_of,
    payload_numbers,
    payload_of,
    reading,
    robot_of,
    seconds,
    share,
    tool_of,
    whole,
    within,
)
from jointwise.cli.output import Progress, as_json, check_files, check_page, note, read_model
from jointwise.cli.recording_text import next_commands, recording_text, simulations_text
from jointwise.errors import ModelError

if TYPE_CHECKING:
    from jointwise.description import Robot
    from jointwise.design import Experiment
    from jointwise.experiment import Events, PlantOptions, SimulationResult
    from jointwise.experiment.twin import Twin
    from jointwise.simulation import Sensors

EXAMPLES = """\
examples:
  jointwise simulate --list
  jointwise simulate --robot ur5e --experiment excitation --duration 60 --seed 1 --output log.csv --truth truth.json
  jointwise simulate --robot ur5e --experiment reciprocate --joint 2 --rate 1000 --output slow.parquet
  jointwise simulate --robot ur10e --payload 5,0,0,0.1 --without hysteresis,load --output plain.csv
  jointwise simulate --robot ur5e --payload-at 20:2,0,0,0.05 --push 40:0.3:0,0,-30 --output events.csv
  jointwise simulate --robot ur5e --motion planned.csv --output rehearsed.csv
  jointwise simulate --robot ur5e --controller pd --bandwidth 3 --rotors complete --output tracking.csv
  jointwise simulate --model model.json --joint joint1.json --joint joint2.json --motion planned.csv --output twin.csv
  jointwise simulate --robot ur5e --age friction=0.3,stiffness=-0.1 --temperature 12 --output old.csv --report page.html

Experiments on one joint rotate the base so that the joint axis is vertical or horizontal as required. A Parquet log
contains its gravity vector; for CSV logs pass --gravity to the commands that read it, as the summary shows. The same
seed produces the same log, bit by bit.
--model simulates the digital twin: bodies, friction and drives of a calibrated model, and what --joint files of
'jointwise joint' add; what neither contains has typical values and is listed."""

CELSIUS = within(-273.0, 1e3)
"""Temperature in °C."""
MOST_DRAWN = 20_000
"""Most samples of the true run that are kept for a page."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to run, on which robot, seen by which sensors, written where."""
    add_robot(parser, required=False)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--experiment", default="excitation", metavar="NAME", help="name from --list (default: excitation)"
    )
    what.add_argument(
        "--motion", metavar="FILE", help="a recorded or planned motion instead: a table with t and q1, q2, ..."
    )
    add_columns(parser)
    parser.add_argument("--list", action="store_true", help="list the experiments, the phenomena, the controllers")
    parser.add_argument(
        "--duration", type=seconds, metavar="S", help="duration of the recording (default: depends on the experiment)"
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of motion and noise (default: 0)")
    parser.add_argument(
        "--joint",
        type=_joint,
        action="append",
        default=[],
        metavar="J|FILE",
        help="the joint under test, counted from 1; with --model also files of 'jointwise joint', repeatable",
    )
    parser.add_argument(
        "--clearance",
        type=_clearance,
        metavar="M",
        help="height above the mounting plane that the arm keeps, and its links stay apart from each other; "
        "'links': only the latter (default: not checked)",
    )
    add_tool(parser)
    parser.add_argument("--output", metavar="LOG", help="log to write, .csv or .parquet")
    parser.add_argument("--truth", metavar="JSON", help="file for all true parameters and settings")
    parser.add_argument("--report", metavar="PAGE", help="write a page with plots, .html, or into a directory")
    _add_plant(parser.add_argument_group("the robot"))
    _add_sensors(parser.add_argument_group("controller and sensors"))
    add_quiet(parser)
    add_json(parser)


def _add_plant(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--without", type=_names, default=(), metavar="A,B", help="phenomena to disable (see --list)")
    add_payload(group)
    group.add_argument(
        "--temperature", type=CELSIUS, metavar="C", help="joint temperature at the start, degC (default: ambient)"
    )
    group.add_argument(
        "--age",
        type=_changes,
        metavar="friction=X,stiffness=Y",
        help="change friction and stiffness; 0.2 is 20 %% more",
    )
    group.add_argument("--joints", metavar="TOML", help="file with parameters of the joints")
    group.add_argument(
        "--payload-at",
        type=_payload_at,
        action="append",
        default=[],
        metavar="T:KG[,X,Y,Z]",
        help="payload from T s on, 0 for none; repeatable",
    )
    group.add_argument(
        "--push",
        type=_push,
        action="append",
        default=[],
        metavar="T:S:X,Y,Z",
        help="force in N on the tool, in base axes, from T s on for S s; repeatable",
    )
    group.add_argument(
        "--wear", type=_changes, metavar="friction=X,stiffness=Y", help="like --age, but growing linearly until the end"
    )
    group.add_argument(
        "--model", metavar="FILE", help="simulate the digital twin of this calibrated model instead of --robot"
    )
    group.add_argument(
        "--rotors", choices=("spong", "complete"), default="spong", help="model of the rotors (default: spong)"
    )
    add_gravity(group, "what suits the experiment")


def _add_sensors(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--rate", type=frequency, default=500.0, metavar="HZ", help="sampling rate of the log (default: 500)"
    )
    group.add_argument("--controller", default="servo", metavar="NAME", help="name from --list (default: servo)")
    group.add_argument(
        "--control-rate", type=frequency, default=1000.0, metavar="HZ", help="rate of the controller (default: 1000)"
    )
    group.add_argument(
        "--bandwidth",
        type=frequency,
        metavar="HZ",
        help="bandwidth of the controller (default: depends on the controller)",
    )
    group.add_argument(
        "--feedback",
        choices=("states", "sensors"),
        default="states",
        help="input of the controller: true positions and speeds, or encoders (default: states)",
    )
    group.add_argument("--jitter", type=within(0.0, 1.0), default=0.0, metavar="S", help="rms jitter of the clock")
    group.add_argument(
        "--dropped", type=share, default=0.0, metavar="PART", help="fraction of the samples that are lost"
    )
    group.add_argument(
        "--repeated", type=share, default=0.0, metavar="PART", help="fraction of the rows that are repeated"
    )
    group.add_argument(
        "--bus", action="store_true", help="also log voltage and current of the DC bus, for 'energy fit'"
    )


def run(args: argparse.Namespace) -> int:
    """Simulate, write and print a summary; or list what can be simulated."""
    if args.list:
        print(simulations_text(args.json))
        return 0
    args.joint, args.joint_files = _joint_arguments(args.joint)
    _check_usage(args)
    _check_files(args)
    from jointwise.experiment import simulate  # noqa: F401 - loaded before the clock runs

    with Progress(args.json or args.quiet) as progress:
        started = time.perf_counter()
        recording = record(args, progress)
        elapsed = time.perf_counter() - started
        progress("writing the log")
        with output_set():
            recording.write(args.output, args.truth)
            page = _page(args, recording, progress)
    facts = recording.to_dict() | {
        "seconds": elapsed,
        "real_time_factor": recording.truth["duration"] / elapsed,
        "files": {"log": args.output, "truth": args.truth, "report": None if page is None else str(page)},
        "next": next_commands(args, recording),
    }
    if not args.quiet:
        for line in recording.truth["controller"].get("notes", []):
            note(line)
        print(as_json(facts) if args.json else recording_text(recording, facts))
    return 0


def _check_usage(args: argparse.Namespace) -> None:
    """Reject options that are missing or exclude each other."""
    robot = args.model if args.robot is None else args.robot
    missing = [option for option, value in (("--robot", robot), ("--output", args.output)) if value is None]
    if missing:
        raise UsageError(f"{' and '.join(missing)} must be passed")
    if args.model is not None and (args.robot is not None or args.joints is not None):
        raise UsageError("--model replaces --robot and --joints")
    if args.joint_files and args.model is None:
        raise UsageError("--joint FILE needs --model")


def record(args: argparse.Namespace, progress: Progress) -> SimulationResult:
    """Return the recording of a command line."""
    from jointwise.experiment import ControllerOptions, simulate

    progress("preparing")
    twin = None if args.model is None else _twin(args)
    robot = robot_of(args) if twin is None else twin.robot
    if args.joint is not None and args.joint > robot.dof:
        raise ModelError(f"joint must be 1 to {robot.dof}. Got {args.joint} instead.")
    return simulate(
        robot if twin is None else twin,
        args.experiment if args.motion is None else _motion(args, robot),
        duration=args.duration,
        rate=args.rate,
        seed=args.seed,
        joint=None if args.joint is None else args.joint - 1,
        clearance=args.clearance,
        tool=tool_of(args),
        plant=_plant(args, robot),
        controller=ControllerOptions(args.controller, args.control_rate, args.bandwidth, args.feedback),
        sensors=_sensors(args),
        events=_events(args),
        keep=0 if args.report is None else MOST_DRAWN,
        progress=lambda part: progress("simulating", part),
    )


def _joint(text: str) -> int | str:
    """Return the number of a joint, or the name of a file."""
    return count(text) if text.lstrip("+-").isdigit() else text


def _joint_arguments(values: list[int | str]) -> tuple[int | None, list[str]]:
    """Return the joint under test and the joint files of --joint."""
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) > 1:
        raise UsageError("--joint must name one joint under test")
    return numbers[0] if numbers else None, [value for value in values if isinstance(value, str)]


def _twin(args: argparse.Namespace) -> Twin:
    """Return the digital twin of the model and the joint files."""
    from jointwise.experiment.twin import make_twin
    from jointwise.joint import load_joints
    from jointwise.runtime import RobotModel

    joints = [joint for path in args.joint_files for joint in load_joints(path)]
    twin = make_twin(RobotModel(read_model(args.model)), joints)
    for line in twin.notes:
        if not args.quiet:
            note(f"twin, {line}.")
    return twin


def _check_files(args: argparse.Namespace) -> None:
    """Reject files that cannot be written before any work is done."""
    from jointwise.data.write import check_suffix

    check_suffix(args.output)
    outputs = {"--output": args.output, "--truth": args.truth}
    if args.columns is not None and args.motion is None:
        raise UsageError("--columns is for the table of --motion")
    check_files(
        [args.robot, args.model, args.joints, *args.joint_files, args.motion, args.columns],
        outputs,
        check_page(args.report, "recording.html"),
    )


def _page(args: argparse.Namespace, recording: SimulationResult, progress: Progress) -> Path | None:
    if args.report is None:
        return None
    from jointwise.report.recording import write_recording_page

    progress("drawing")
    assert recording.run is not None
    return write_recording_page(
        recording.digital.robot, recording.log, recording.truth, vars(recording.run), args.report
    )


def _sensors(args: argparse.Namespace) -> Sensors:
    from jointwise.experiment import default_sensors

    return default_sensors(
        args.rate, args.seed, jitter=args.jitter, dropped=args.dropped, repeated=args.repeated, bus=args.bus
    )


def _plant(args: argparse.Namespace, robot: Robot) -> PlantOptions:
    from jointwise.experiment import PlantOptions
    from jointwise.simulation.robot import load_joints

    return PlantOptions(
        payload=payload_of(args.payload),
        gravity=mounting_of(args),
        without=args.without,
        model=args.rotors,
        joints=None if args.joints is None else load_joints(args.joints, robot),
        temperature=args.temperature,
        age=args.age or {},
    )


def _motion(args: argparse.Namespace, robot: Robot) -> Experiment:
    """Return the motion of a file."""
    from jointwise.data import read_log
    from jointwise.design.sampled import experiment_from_log

    return experiment_from_log(robot, read_log(args.motion, joints=robot, **reading(args), needed=()))


def _events(args: argparse.Namespace) -> Events:
    """Return the events during the motion."""
    from jointwise.experiment import Events, Push

    payloads = {time: payload_of(numbers if numbers[0] else None) for time, numbers in args.payload_at}
    if len(payloads) < len(args.payload_at):
        raise UsageError("--payload-at must name each time once")
    pushes = [Push(start, length, force) for start, length, force in args.push]
    return Events(payloads, pushes, args.wear or {})


def _payload_at(text: str) -> tuple[float, tuple[float, ...]]:
    """Return time and payload of `T:KG[,X,Y,Z]`."""
    time, sign, numbers = text.partition(":")
    if not sign:
        raise argparse.ArgumentTypeError(f"must read T:KG[,X,Y,Z]. Got '{text}' instead.")
    return within(0.0, 1e5)(time), (0.0,) if numbers.strip() == "0" else payload_numbers(numbers)


def _push(text: str) -> tuple[float, float, tuple[float, float, float]]:
    """Return start, length and force of `T:S:X,Y,Z`."""
    words = text.split(":")
    force = words[2].split(",") if len(words) == 3 else []
    if len(force) != 3:
        raise argparse.ArgumentTypeError(f"must read T:S:X,Y,Z. Got '{text}' instead.")
    newton = within(-1e6, 1e6)
    return within(0.0, 1e5)(words[0]), seconds(words[1]), (newton(force[0]), newton(force[1]), newton(force[2]))


def _clearance(text: str) -> float:
    """Return a height (m), -inf for the word `links`: no plane, only the links."""
    return -math.inf if text.strip() == "links" else metres(text)


def _names(text: str) -> tuple[str, ...]:
    """Return the names of a list `a,b`."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _changes(text: str) -> dict[str, float]:
    """Return the changes of `friction=0.2,stiffness=-0.1`."""
    pairs = [word.partition("=") for word in text.split(",")]
    if any(name.strip() not in ("friction", "stiffness") or not sign for name, sign, _ in pairs):
        raise argparse.ArgumentTypeError(f"must read friction=X,stiffness=Y. Got '{text}' instead.")
    if len({name.strip() for name, _, _ in pairs}) < len(pairs):
        raise argparse.ArgumentTypeError(f"must name each once. Got '{text}' instead.")
    return {name.strip(): within(-1.0, 1e3)(value) for name, _, value in pairs}
