"""Rehearses a calibration without a robot: excite, run on the virtual UR, record over RTDE, calibrate, validate."""

from __future__ import annotations

from dataclasses import dataclass

from jointwise.cli.command import Common
from jointwise.cli.inputs import NAMED, ROBOT, Description
from jointwise.cli.output import Progress, show
from jointwise.settings import Seconds, Whole, option

EXAMPLES = """\
examples:
  jointwise rehearse --output rehearsal
  jointwise rehearse --robot ur10e --duration 20 --optimize --output rehearsal

Recording runs in real time and takes twice the duration. The directory contains both recordings and the model."""


@dataclass(frozen=True, kw_only=True)
class Settings(Description, Common):
    """The robot, the directory and the duration."""

    robot: str = option("ur5e", NAMED, **ROBOT)
    output: str = option(help="directory for recordings and model", metavar="DIR")
    duration: Seconds = option(30.0, "duration of each motion", metavar="S")
    seed: Whole = option(0, "seed of motions and noise")
    optimize: bool = option(False, "train on an optimal excitation (jointwise excite)")


def run(settings: Settings) -> int:
    """Rehearse, and print the result."""
    from jointwise.rehearsal import rehearse

    robot = settings.described(settings.robot)
    with Progress(settings.silent) as progress:
        result = rehearse(
            robot, settings.output, duration=settings.duration, seed=settings.seed, optimize=settings.optimize,
            progress=progress,
        )  # fmt: skip
    show(settings, result.to_dict, result.summary)
    return 0
