"""Inspects a log: clock, channels, motion, suspicious units and signs, and the parameters that it determines."""

from __future__ import annotations

from dataclasses import dataclass

from jointwise.cli.command import Common
from jointwise.cli.inputs import LogFormat, MaybeRobot, Mounted, Outputs
from jointwise.cli.output import Progress, mounting_for, show
from jointwise.settings import option

EXAMPLES = """\
examples:
  jointwise inspect log.csv --robot ur10e
  jointwise inspect log.csv                                  the signals only, without a robot
  jointwise inspect log.csv --robot arm.urdf --columns 't=time,q=pos_0..pos_5,i=cur_0..cur_5'
  jointwise inspect log.csv --robot ur10e --ignore-output 5,6   without the outputs of joints 5 and 6
  jointwise inspect raw.csv --robot ur10e --columns 't,q*6,qd*6,i*6,i_des*6,tau_des*6' --json

Exit code 1 if the log is rejected for calibration."""


@dataclass(frozen=True, kw_only=True)
class Settings(MaybeRobot, Mounted, LogFormat, Outputs, Common):
    """The log and its robot."""

    log: str = option(help="log: CSV, Parquet or ROS 2 bag", argument=True)


def run(settings: Settings) -> int:
    """Print the inspection; 1 if the log is rejected."""
    from jointwise.data import read_log, useless_outputs
    from jointwise.inspection import inspect

    robot, mounting = settings.load_robot(), settings.stated_mounting()
    with Progress(settings.silent) as progress:
        progress("inspecting")
        ignored = settings.ignore_output
        log = read_log(settings.log, joints=robot, **settings.reading(), ignore_output=ignored or ())
        log = log.ignore_output(useless_outputs(log)) if ignored is None else log
        result = inspect(log, robot, mounting=mounting_for([log], mounting))
    show(settings, result.to_dict, result.summary)
    return int(result.rejected)
