"""Monitors a robot with its calibrated model: contacts, payload, friction, stiffness, temperature, faulty data."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jointwise.cli.arguments import UsageError, add_columns, add_ignored, add_payload, payload_of, positive
from jointwise.cli.output import Progress, check_file, check_files, check_page, note, read_model

if TYPE_CHECKING:
    from jointwise.data import Log
    from jointwise.data.effort import EffortUnit
    from jointwise.joint import JointModel
    from jointwise.monitoring import Contact, Fault, History, MonitorResult, Session
    from jointwise.report.monitoring import HistorySeries
    from jointwise.runtime import RobotModel

EXAMPLES = """\
examples:
  jointwise monitor model.json shift1.csv shift2.csv
  jointwise monitor model.json shift.csv --json | jq .contacts
  jointwise monitor model.json shift.csv --report monitor.html --history robot.sqlite --name cell7
  jointwise monitor model.json shift.parquet --joint joint1.json joint2.json
  jointwise monitor model.json growing.csv --follow --idle 60
  my-robot-driver | jointwise monitor model.json - --joint joint1.json
  my-robot-driver | jointwise monitor model.json - --json        {"t": 0.002, "q": [..], "qd": [..], "current": [..]}

Exit code 0 if nothing was found, 3 if a contact, a fault or a worn joint was found, 1 for an error, 2 for wrong usage.
With --json one object per log is printed; for a stream, also the events "contact" (as it begins: time and joint),
"contact update" (0.12 s later, with torque and tool force where it is determined) and "contact end"."""
INTERMIXED = True
FOUND = 3
"""Exit code where a contact, a fault or a worn joint was found."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the logs and what is written."""
    parser.add_argument("model", metavar="MODEL", help="model file of 'jointwise calibrate'")
    parser.add_argument("logs", metavar="LOG", nargs="+", help="logs, or - for JSON lines from stdin")
    add_payload(parser)
    parser.add_argument(
        "--joint",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="joint files ('jointwise joint'): monitor their stiffness, with rotor positions (theta) and currents",
    )
    parser.add_argument(
        "--false-alarms",
        type=positive,
        default=1.0,
        metavar="N",
        help="accepted rate of false contacts per hour (default: 1)",
    )
    parser.add_argument("--follow", action="store_true", help="wait for more rows at the end of a CSV log")
    parser.add_argument("--idle", type=positive, metavar="S", help="end --follow after S seconds without rows")
    parser.add_argument("--report", metavar="DIR|HTML", help="write a page with a timeline")
    parser.add_argument("--history", metavar="SQLITE", help="add the results to a history, and print what changed")
    parser.add_argument("--name", metavar="NAME", help="name of the robot in the history (default: that of the model)")
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    add_columns(parser)
    add_ignored(parser)


def run(args: argparse.Namespace) -> int:
    """Print what was found in every log."""
    from jointwise.runtime import RobotModel

    page = check_page(args.report, "monitor.html")
    check_files([args.model, *args.logs, *args.joint, args.columns], {}, page)
    check_file(args.history)
    live = _is_live(args)
    model = RobotModel(read_model(args.model))
    joints = _joints(args, model)
    sessions = [_streamed(args, model, joints)] if live else _monitored(args, model, joints)
    results = [session.result() for session in sessions]
    _write(args, sessions, results, page)
    return 0 if all(result.is_quiet for result in results) else FOUND


def _is_live(args: argparse.Namespace) -> bool:
    """Return whether the input is a stream or a growing file; reject options that do not go together."""
    live = args.follow or "-" in args.logs
    if "-" in args.logs and (args.follow or args.idle is not None):
        raise UsageError("--follow and --idle wait for more rows of a file. A stream (-) ends with its input.")
    if args.idle is not None and not args.follow:
        raise UsageError("--idle needs --follow.")
    if live and len(args.logs) > 1:
        raise UsageError("a stream (- or --follow) must be the only LOG.")
    if live and args.ignore_output != ():
        raise UsageError("--ignore-output is for logs. In a stream (- or --follow) outputs may be null or nan.")
    return live


def _write(args: argparse.Namespace, sessions: list[Session], results: list[MonitorResult], page: str | None) -> None:
    """Add the results to the history, write the page, and print."""
    history, robot = _history(args, results), args.name or results[0].robot
    changes = "" if history is None else history.summary(robot)
    if page is not None:
        _write_page(sessions, results, page, history, robot)
    _print(results, args.json)
    if changes:
        print(changes, file=sys.stderr if args.json else sys.stdout)


def _joints(args: argparse.Namespace, model: RobotModel) -> list[JointModel]:
    """Return the joints of the joint files; reject those that cannot be monitored before a log is read."""
    if not args.joint:
        return []
    from jointwise.joint import load_joints
    from jointwise.monitoring.wear import check_joints

    joints = [joint for path in args.joint for joint in load_joints(path)]
    check_joints(model, joints)
    return joints


def _monitored(args: argparse.Namespace, model: RobotModel, joints: list[JointModel]) -> list[Session]:
    """Return the sessions of logs."""
    from jointwise.monitoring import monitor_log

    found, payload = [], payload_of(args.payload)
    with Progress(args.json) as progress:
        for number, path in enumerate(args.logs):
            progress(f"log {number + 1} of {len(args.logs)}")
            log = _read(args, model, path)
            if log is None:
                found.append(_rows_of(args, model, joints, path))
            else:
                found.append(monitor_log(model, log, false_alarms=args.false_alarms, payload=payload, joints=joints))
    return found


def _read(args: argparse.Namespace, model: RobotModel, path: str) -> Log | None:
    """Return a log; None for a CSV file with damaged rows, which is read row by row."""
    from jointwise.data import read_log
    from jointwise.data.quality import useless_outputs
    from jointwise.errors import DataError

    unit: EffortUnit = args.effort_unit or ("A" if model.output == "current" else "Nm")
    robot = model.calibration.model.robot
    try:
        log = read_log(
            path, columns=args.columns, joints=robot, needed=(model.output,), topic=args.topic, effort_unit=unit,
            ignore_output={*model.calibration.ignored, *(args.ignore_output or ())},
        )  # fmt: skip
        return log.ignore_output(useless_outputs(log)) if args.ignore_output is None else log
    except DataError as problem:
        if ": row " not in str(problem) or not str(path).lower().endswith((".csv", ".txt")):
            raise
        note(f"{problem} Read row by row.")
        return None


def _session(args: argparse.Namespace, model: RobotModel, joints: list[JointModel], source: str) -> Session:
    from jointwise.monitoring import Session

    return Session(model, source, args.false_alarms, payload_of(args.payload), joints=joints)


def _rows_of(args: argparse.Namespace, model: RobotModel, joints: list[JointModel], path: str) -> Session:
    """Return the session of a damaged CSV log."""
    from jointwise.monitoring import follow_csv

    session = _session(args, model, joints, path)
    for _ in follow_csv(session, path, columns=args.columns, follow=False):
        pass
    return session


def _streamed(args: argparse.Namespace, model: RobotModel, joints: list[JointModel]) -> Session:
    """Return the session of a stream, after printing contacts and faults as they come; Ctrl-C ends it."""
    from jointwise.monitoring import follow_csv, follow_json

    path = args.logs[0]
    session = _session(args, model, joints, "stdin" if path == "-" else path)
    events: Iterable[Contact | Fault]
    if path == "-":
        events = follow_json(session, sys.stdin)
    else:
        events = follow_csv(session, path, columns=args.columns, idle=args.idle)
    try:
        for event in events:
            print(_event_line(event, args.json), flush=True)
    except KeyboardInterrupt:
        note("interrupted: the result is that of the samples so far.")
    return session


def _event_line(event: Contact | Fault, as_json: bool) -> str:
    from jointwise.monitoring import Contact
    from jointwise.monitoring.events import event_text

    if not as_json:
        return event_text(event)
    kinds = {"begin": "contact", "update": "contact update", "end": "contact end"}
    kind = kinds[event.stage] if isinstance(event, Contact) else "fault"
    return json.dumps({"event": kind, **event.to_dict()}, allow_nan=False)


def _print(results: list[MonitorResult], as_json: bool) -> None:
    from jointwise.monitoring.text import result_text

    for result in results:
        print(json.dumps(result.to_dict(), allow_nan=False) if as_json else result_text(result))


def _history(args: argparse.Namespace, results: list[MonitorResult]) -> History | None:
    """Add the results to the history."""
    if args.history is None:
        return None
    from jointwise.monitoring.history import History

    history = History(args.history)
    for result in results:
        history.add(result, robot=args.name)
    return history


def _write_page(
    sessions: list[Session], results: list[MonitorResult], page: str, history: History | None, robot: str
) -> None:
    import numpy as np

    from jointwise.report.monitoring import TimelineData, write_monitoring_page

    lines = [
        TimelineData(np.array(s.timeline.t), np.array(s.timeline.torque), np.array(s.timeline.ratio)) for s in sessions
    ]
    series = [] if history is None else _series(history, robot, len(results[0].friction))
    changes = "" if history is None else history.summary(robot)
    write_monitoring_page([result.to_dict() for result in results], lines, page, series, changes)


def _series(history: History, robot: str, joints: int) -> list[HistorySeries]:
    """Return friction and stiffness of the joints along the history, where there are any."""
    from jointwise.report.monitoring import HistorySeries

    keys = [(joint, name) for name in ("friction", "stiffness") for joint in range(1, joints + 1)]
    found = [(*key, history.series(robot, *key)) for key in keys]
    return [
        HistorySeries(joint, [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows], name)
        for joint, name, rows in found
        if rows
    ]
