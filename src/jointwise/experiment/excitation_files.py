"""Optimises an excitation and writes its files: trajectory, robot programs, prediction and page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from jointwise.arguments import checked
from jointwise.description.files import as_robot
from jointwise.description.robot import Robot
from jointwise.design.excitation import Excitation, ExcitationOptions, optimize_excitation
from jointwise.design.urscript import motion_script, supports_urscript
from jointwise.experiment.motion_directory import program_notes, search_in, write_motion_files
from jointwise.report.excitation import render_excitation
from jointwise.result.excitation import PREDICTION_FILE, PREDICTION_KIND


@checked
def excite(
    robot: Robot | str,
    output: str | Path,
    options: ExcitationOptions | None = None,
    *,
    force: bool = False,
    progress: Callable[[str, float | None], None] | None = None,
) -> Excitation:
    """Optimise an excitation and write its files into a directory; an interrupted call is resumed by the same one.

    The directory then holds `trajectory.csv` (t, q1.., qd1.., qdd1.. at 500 Hz), `joint_trajectory.json` (ROS 2
    trajectory_msgs/JointTrajectory; JSON is YAML), `excitation.script` (URScript, for six-axis arms of Universal
    Robots), `prediction.json` and `excitation.html`.

    Args:
        robot: The robot, or its name.
        output: Directory for the files; it must be absent, empty, or that of an interrupted call.
        options: Duration, goal, limits and method.
        force: Whether files in a directory that is not empty are overwritten.
        progress: Called with the name of the stage and its completed share.

    Raises:
        ModelError: If a setting is wrong, the description lacks limits, or the limits permit no motion.
        OutputError: If the directory holds other files.
        MissingExtraError: If jinja2 is not installed.
    """
    arm = as_robot(robot)

    def search(state: Path) -> Excitation:
        return optimize_excitation(arm, options, state=state, progress=progress)

    return search_in(output, search, write_excitation, force=force)


def write_excitation(excitation: Excitation, folder: Path) -> list[Path]:
    """Write all files of an excitation, or none."""
    texts = {"excitation.html": render_excitation(excitation)}
    if supports_urscript(excitation.robot):
        texts["excitation.script"] = _program(excitation)
    document = PREDICTION_FILE, PREDICTION_KIND.stamped(excitation.to_dict())
    return write_motion_files(folder, excitation.robot, excitation.motion, texts, document)


def _program(excitation: Excitation) -> str:
    """Return the URScript program."""
    home = ", ".join(f"{angle:.1f}" for angle in np.rad2deg(excitation.limits.home) + 0.0)
    approach = (
        f"It begins and ends upright [deg]: {home}. The path from there is checked, the path from the current pose to "
        "there is not: move the arm near that pose first."
    )
    notes = [
        f"Optimal excitation for {excitation.model.goal}.",
        f"Robot {excitation.robot.name}, {excitation.motion.duration:g} s, seed {excitation.options.seed}.",
        *program_notes(excitation.uses, excitation.limits.clearance.plane, approach),
    ]
    return motion_script(excitation.robot, excitation.motion, excitation.limits.home, "jointwise_excitation", notes)
