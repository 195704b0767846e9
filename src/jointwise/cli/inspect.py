"""Examines a log: clock, channels, motion, suspicious units and signs, and which parameters it can determine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jointwise.cli.files import mounting_for
from jointwise.cli.progress import Progress
from jointwise.cli.text import as_json
from jointwise.cli.usage import add_columns, add_gravity, add_json, add_robot, mounting_of, robot_of

if TYPE_CHECKING:
    from jointwise.data import Examination, Log
    from jointwise.description import Robot
    from jointwise.description.mounting import Mounting
    from jointwise.result.identifiability import Identifiability

EXAMPLES = """\
examples:
  jointwise inspect log.csv --robot ur10e
  jointwise inspect log.csv --robot arm.urdf --columns 't=time,q=pos_0..pos_5,i=cur_0..cur_5'
  jointwise inspect raw.csv --robot ur10e --columns 't,q*6,qd*6,i*6,i_des*6,tau_des*6' --json

Exit code 1 if the log is refused for calibration."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the log and the robot."""
    parser.add_argument("log", metavar="LOG", help="CSV or Parquet")
    add_robot(parser)
    add_gravity(parser)
    add_columns(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the examination; 1 if the log is refused."""
    from jointwise.data import examine, read_log

    robot, asked = robot_of(args), mounting_of(args)
    with Progress(args.json) as progress:
        progress("examining")
        log = read_log(args.log, columns=args.columns)
        mounting = mounting_for([log], asked)
        examination = examine(log, robot)
        told = None
        if examination.verdict != "refused":
            progress("what the log can determine")
            told = what_it_tells(examination, robot, mounting)
    if args.json:
        print(as_json({**examination.to_dict(), "parameters": None if told is None else told.to_dict()}))
    else:
        *lines, verdict = examination.lines()
        print("\n".join([*lines, *([] if told is None else parameter_lines(told)), verdict]))
    return int(examination.verdict == "refused")


def what_it_tells(examination: Examination, robot: Robot, mounting: Mounting) -> Identifiability:
    """Return which parameters the motion of a log determines; joints that stand do so to the last bit."""
    from jointwise.calibrate import Options, make_problem
    from jointwise.result.identifiability import identifiability

    log = _without_jitter(examination)
    return identifiability(make_problem([log], robot, mounting, "q", Options()))


def _without_jitter(examination: Examination) -> Log:
    """Return the log with the joints that never move held still: their encoders' noise is no excitation."""
    from dataclasses import replace

    import numpy as np

    log, moved = examination.log, examination.numbers.moved
    if moved.all():
        return log
    return replace(log, q=np.where(moved, log.q, log.q[0]), pages=None)


def parameter_lines(told: Identifiability) -> list[str]:
    """Return which parameters the log determines, as lines of text."""
    known = told.to_dict()
    own = {name: how == "alone" for name, how in told.known.items()}
    bodies, joints = ([how for name, how in own.items() if ("_" in name) == joint] for joint in (False, True))
    lines = [
        f"  parameters: {len(known['determined'])} of {len(told.known)} can be determined: {sum(bodies)} of "
        f"{len(bodies)} of bodies, {sum(joints)} of {len(joints)} of joints",
        f"    (offset, Coulomb and viscous friction); condition number {told.condition:.3g}. calibrate may add",
        "    hysteresis and other friction, more elements than needed: those not asked for stay at zero",
    ]
    before = len(lines)
    for key, words in (("without_effect", "without effect here"), ("only_in_combination", "only in combination")):
        if known[key]:
            lines.append(f"    {words}: {', '.join(known[key])}")
    if len(lines) > before:
        lines.append("    To determine these too, move every joint, all of them at once, far and at several speeds.")
    return lines
