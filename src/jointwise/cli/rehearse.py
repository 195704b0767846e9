"""Rehearses a calibration without a robot: excite, run on the virtual UR, record over RTDE, calibrate, validate."""

from __future__ import annotations

from dataclasses import dataclass

from jointwise.call_settings import DirectorySettings, RehearsalSettings
from jointwise.cli.command import Common
from jointwise.cli.inputs import NAMED, ROBOT, Description
from jointwise.cli.output import Progress, show
from jointwise.settings import option, stated

EXAMPLES = """\
examples:
  jointwise rehearse --output rehearsal
  jointwise rehearse --robot ur10e --duration 20 --optimize --output rehearsal

Recording runs in real time and takes twice the duration. The directory contains both recordings and the model."""


@dataclass(frozen=True, kw_only=True)
class Settings(DirectorySettings, RehearsalSettings, Description, Common):
    """The robot, the directory and the duration."""

    robot: str = option("ur5e", NAMED, **ROBOT)


def run(settings: Settings) -> int:
    """Rehearse, and print the result."""
    from jointwise.rehearsal import rehearse

    robot = settings.described(settings.robot)
    with Progress(settings.silent) as progress:
        result = rehearse(
            robot, settings.output, **stated(RehearsalSettings, settings), force=settings.force, progress=progress
        )
    show(settings, result.to_dict, result.summary)
    return 0
