"""Converts a log between CSV, Parquet and MCAP, and completes an interrupted recording."""

from __future__ import annotations

from dataclasses import dataclass

from jointwise.cli.command import Common
from jointwise.cli.inputs import LogFormat, MaybeRobot
from jointwise.cli.output import check_files, show
from jointwise.settings import option

EXAMPLES = """\
examples:
  jointwise convert bag/ log.parquet --robot ur10e
  jointwise convert log.csv log.mcap --robot ur10e
  jointwise convert log.parquet.recording log.parquet       (an interrupted recording)
  jointwise convert log.csv log.parquet --columns 't=time,q=pos_0..pos_5,i=cur_0..cur_5' --json"""


@dataclass(frozen=True, kw_only=True)
class Settings(MaybeRobot, LogFormat, Common):
    """Input, output and how the input is read."""

    log: str = option(help="CSV, Parquet, ROS 2 bag, or interrupted recording", argument=True)
    output: str = option(help="file to write: .csv, .parquet or .mcap", argument=True)


def run(settings: Settings) -> int:
    """Write the log in the other format."""
    from jointwise.data.write import convert

    check_files([settings.log, settings.columns], {"OUTPUT": settings.output})
    samples = convert(settings.log, settings.output, robot=settings.load_robot(), **settings.reading())
    show(
        settings,
        lambda: {"file": settings.output, "samples": samples},
        lambda: f"{settings.output}: {samples} samples",
    )
    return 0
