"""Optimises a motion that determines the parameters of a robot best within its limits, and writes its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jointwise.call_settings import DirectorySettings, ExcitationSettings
from jointwise.cli.command import Common
from jointwise.cli.inputs import Clear, OnTable, RobotFile
from jointwise.cli.output import Progress, read_model, show
from jointwise.errors import ModelError
from jointwise.settings import option, stated

if TYPE_CHECKING:
    from jointwise.description import Robot

EXAMPLES = """\
examples:
  jointwise excite --robot ur10e --output excitation
  jointwise excite --robot ur5e --duration 30 --speed 0.4 --for bodies --tool 0.15 --output excitation
  jointwise excite --robot arm.urdf --mounting wall --no-clearance --acceleration 4 --output excitation
  jointwise excite --robot ur10e --model model.json --for payload --output payload
  jointwise excite --robot ur10e --model model.json --previous excitation --seed 2 --output second

The directory contains trajectory.csv (500 Hz), joint_trajectory.json (ROS 2), excitation.script (URScript, for arms
of Universal Robots), prediction.json (for 'jointwise calibrate --excitation') and excitation.html. Limits, the
mounting plane and self-collision are checked; obstacles in the cell are not. Repeat an interrupted command to
resume it."""


@dataclass(frozen=True, kw_only=True)
class Settings(DirectorySettings, ExcitationSettings, RobotFile, Clear, OnTable, Common):
    """The robot, the goal, the limits and where the files go."""

    model: str | None = option(
        None, "calibrated model from which torques and residuals are predicted", metavar="FILE",
        standard="the description",
    )  # fmt: skip
    previous: str | None = option(
        None, "excitation with which --model was calibrated: its standard errors correct the prediction",
        metavar="DIR",
    )  # fmt: skip


def run(settings: Settings) -> int:
    """Optimise, write, and print what is predicted."""
    from jointwise.design import ExcitationOptions
    from jointwise.experiment.excitation_files import excite

    robot, mounting = settings.load_robot(), settings.stated_mounting() or "table"
    options = ExcitationOptions(
        **stated(ExcitationSettings, settings),
        mounting=mounting,
        clearance=settings.clearance,
        tool=settings.shape(),
        **_known(settings, robot),
    )
    with Progress(settings.silent) as progress:
        result = excite(robot, settings.output, options, force=settings.force, progress=progress)
    first = f"read {settings.output}/excitation.html first; the cell is not checked"
    show(settings, result.to_dict, lambda: f"{result.summary()}\n{first}")
    return 0


def _known(settings: Settings, robot: Robot) -> dict[str, Any]:
    """Return values by parameter name and noise of a calibrated model, as options of an excitation."""
    if settings.model is None:
        if settings.previous is not None:
            raise ModelError("--previous needs --model, the calibration from the recording of that excitation.")
        return {}
    from jointwise.result.excitation import calibrated_options, same_geometry

    calibration = read_model(settings.model)
    if not same_geometry(calibration.model.robot, robot):
        raise ModelError(f"{settings.model}: a model of '{calibration.model.robot.name}', not of '{robot.name}'.")
    return calibrated_options(calibration, settings.previous)
