"""Monitors a robot with its calibrated model: contacts, payload, friction, stiffness, temperature, faulty data."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jointwise.call_settings import MonitoringSettings
from jointwise.cli.command import GENERAL, Common, UsageError
from jointwise.cli.inputs import Carried, LogFormat, Outputs
from jointwise.cli.output import Progress, check_file, check_files, check_page, note, read_model
from jointwise.settings import Positive, option

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
FOUND = 3
"""Exit code where a contact, a fault or a worn joint was found."""


@dataclass(frozen=True, kw_only=True)
class Settings(MonitoringSettings, Carried, LogFormat, Outputs, Common):
    """The model, the logs and what is written."""

    json: bool = option(False, "print JSON lines", group=GENERAL)
    model: str = option(help="model file of 'jointwise calibrate'", argument=True)
    logs: tuple[str, ...] = option(help="logs, or - for JSON lines from stdin", metavar="LOG", argument=True)
    joint: tuple[str, ...] = option(
        (), "joint files ('jointwise joint'): monitor their stiffness, with rotor positions (theta) and currents",
        metavar="FILE", many="extend",
    )  # fmt: skip
    follow: bool = option(False, "wait for more rows at the end of a CSV log")
    idle: Positive | None = option(None, "end --follow after S seconds without rows", metavar="S")
    report: str | None = option(None, "write a page with a timeline", metavar="DIR|HTML")
    history: str | None = option(None, "add the results to a history, and print what changed", metavar="SQLITE")
    name: str | None = option(None, "name of the robot in the history", standard="that of the model")


def run(settings: Settings) -> int:
    """Print what was found in every log."""
    from jointwise.runtime import RobotModel

    page = check_page(settings.report, "monitor.html")
    check_files([settings.model, *settings.logs, *settings.joint, settings.columns], {}, page)
    check_file(settings.history)
    live = _is_live(settings)
    model = RobotModel(read_model(settings.model))
    joints = _joints(settings, model)
    sessions = [_streamed(settings, model, joints)] if live else _monitored(settings, model, joints)
    results = [session.result() for session in sessions]
    _write(settings, sessions, results, page)
    return 0 if all(result.is_quiet for result in results) else FOUND


def _is_live(settings: Settings) -> bool:
    """Return whether the input is a stream or a growing file; reject options that do not go together."""
    live = settings.follow or "-" in settings.logs
    if "-" in settings.logs and (settings.follow or settings.idle is not None):
        raise UsageError("--follow and --idle wait for more rows of a file. A stream (-) ends with its input.")
    if settings.idle is not None and not settings.follow:
        raise UsageError("--idle needs --follow.")
    if live and len(settings.logs) > 1:
        raise UsageError("a stream (- or --follow) must be the only LOG.")
    if live and settings.ignore_output != ():
        raise UsageError("--ignore-output is for logs. In a stream (- or --follow) outputs may be null or nan.")
    return live


def _write(settings: Settings, sessions: list[Session], results: list[MonitorResult], page: str | None) -> None:
    """Add the results to the history, write the page, and print."""
    history, robot = _history(settings, results), settings.name or results[0].robot
    changes = "" if history is None else history.summary(robot)
    if page is not None:
        _write_page(sessions, results, page, history, robot)
    if settings.quiet and not settings.json:
        return
    _print(results, settings.json)
    if changes:
        print(changes, file=sys.stderr if settings.json else sys.stdout)


def _joints(settings: Settings, model: RobotModel) -> list[JointModel]:
    """Return the joints of the joint files; reject those that cannot be monitored before a log is read."""
    if not settings.joint:
        return []
    from jointwise.joint import load_joints
    from jointwise.monitoring.wear import check_joints

    joints = [joint for path in settings.joint for joint in load_joints(path)]
    check_joints(model, joints)
    return joints


def _monitored(settings: Settings, model: RobotModel, joints: list[JointModel]) -> list[Session]:
    """Return the sessions of logs."""
    from jointwise.monitoring import monitor_log

    found, payload = [], settings.load()
    with Progress(settings.silent) as progress:
        for number, path in enumerate(settings.logs):
            progress(f"log {number + 1} of {len(settings.logs)}")
            log = _read(settings, model, path)
            if log is None:
                found.append(_rows_of(settings, model, joints, path))
            else:
                found.append(
                    monitor_log(model, log, false_alarms=settings.false_alarms, payload=payload, joints=joints)
                )
    return found


def _read(settings: Settings, model: RobotModel, path: str) -> Log | None:
    """Return a log; None for a CSV file with damaged rows, which is read row by row."""
    from jointwise.data import read_log
    from jointwise.data.quality import useless_outputs
    from jointwise.errors import DataError

    unit: EffortUnit = settings.effort_unit or ("A" if model.output == "current" else "Nm")
    robot = model.calibration.model.robot
    try:
        log = read_log(
            path, columns=settings.columns, joints=robot, needed=(model.output,), topic=settings.topic,
            effort_unit=unit,
            ignore_output={*model.calibration.ignored, *(settings.ignore_output or ())},
        )  # fmt: skip
        return log.ignore_output(useless_outputs(log)) if settings.ignore_output is None else log
    except DataError as problem:
        if ": row " not in str(problem) or not str(path).lower().endswith((".csv", ".txt")):
            raise
        note(f"{problem} Read row by row.")
        return None


def _session(settings: Settings, model: RobotModel, joints: list[JointModel], source: str) -> Session:
    from jointwise.monitoring import Session

    return Session(model, source, settings.false_alarms, settings.load(), joints=joints)


def _rows_of(settings: Settings, model: RobotModel, joints: list[JointModel], path: str) -> Session:
    """Return the session of a damaged CSV log."""
    from jointwise.monitoring import follow_csv

    session = _session(settings, model, joints, path)
    for _ in follow_csv(session, path, columns=settings.columns, follow=False):
        pass
    return session


def _streamed(settings: Settings, model: RobotModel, joints: list[JointModel]) -> Session:
    """Return the session of a stream, after printing contacts and faults as they come; Ctrl-C ends it."""
    from jointwise.monitoring import follow_csv, follow_json

    path = settings.logs[0]
    session = _session(settings, model, joints, "stdin" if path == "-" else path)
    events: Iterable[Contact | Fault]
    if path == "-":
        events = follow_json(session, sys.stdin)
    else:
        events = follow_csv(session, path, columns=settings.columns, idle=settings.idle)
    try:
        for event in events:
            if settings.json or not settings.quiet:
                print(_event_line(event, settings.json), flush=True)
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


def _history(settings: Settings, results: list[MonitorResult]) -> History | None:
    """Add the results to the history."""
    if settings.history is None:
        return None
    from jointwise.monitoring.history import History

    history = History(settings.history)
    for result in results:
        history.add(result, robot=settings.name)
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
