"""Identifies all drives from one log: inertia from the controller's targets, then gain and power-flow friction."""

from __future__ import annotations

from dataclasses import dataclass

from jointwise.call_settings import DriveSettings
from jointwise.cli.command import Common
from jointwise.cli.inputs import Carried, LogFormat, Mounted, RobotFile
from jointwise.cli.output import Progress, check_files, mounting_for, show
from jointwise.settings import option

EXAMPLES = """\
examples:
  jointwise motor log.csv --robot ur5e --output motors.json
  jointwise motor log.csv --robot ur5e --alike --json
  jointwise calibrate log.csv --robot ur5e --joint motors.json --output model.json
  jointwise energy fit move.csv --robot ur5e --joint motors.json --output power.json

The log needs the RTDE fields target_q, target_qd, target_qdd, target_moment, actual_q and actual_current. The inertias
are as accurate as the described links."""


@dataclass(frozen=True, kw_only=True)
class Settings(DriveSettings, RobotFile, Carried, Mounted, LogFormat, Common):
    """The logs, the robot and what it carries."""

    logs: tuple[str, ...] = option(help="logs with targets and measured currents", metavar="LOG", argument=True)
    output: str | None = option(None, "joint file with the motor of every joint", metavar="JSON")


def run(settings: Settings) -> int:
    """Identify the drives, write the joint file and print the result."""
    from jointwise.data import read_log
    from jointwise.joint import identify_drives, save_joints

    check_files([*settings.logs, settings.columns, settings.robot], {"--output": settings.output})
    robot, mounting = settings.load_robot(), settings.stated_mounting()
    with Progress(settings.silent) as progress:
        progress("reading")
        logs = [read_log(path, joints=robot, **settings.reading()) for path in settings.logs]
        progress("identifying")
        where = mounting_for(logs, mounting)
        result = identify_drives(logs, robot, mounting=where, payload=settings.load(), alike=settings.alike)
    if settings.output:
        save_joints(result.models(), settings.output)
    show(settings, result.to_dict, result.summary)
    return 0
