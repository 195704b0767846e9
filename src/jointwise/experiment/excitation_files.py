"""Optimises an excitation and writes its files: trajectory, robot programs, prediction and page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.atomic import SUFFIX, atomic_write, make_directory, output_set
from jointwise.description import load_robot
from jointwise.description.robot import Robot
from jointwise.design.excitation import OVERSAMPLING, RATE, Excitation, optimize_excitation
from jointwise.design.excitation_options import ExcitationOptions
from jointwise.design.trajectory import Trajectory
from jointwise.design.urscript import motion_script, supports_urscript
from jointwise.document import write_document
from jointwise.errors import OutputError
from jointwise.report.excitation import render_excitation
from jointwise.report.page import plotly_script
from jointwise.result.excitation import PREDICTION_FILE, PREDICTION_KIND

STATE_FILE = "state.json"
"""Finished steps of an interrupted search; removed when the other files are complete."""
ROS_RATE = 100.0
"""Rate (Hz) of the points of the ROS 2 message: controllers interpolate between them by quintics."""


def excite(
    robot: Robot | str,
    output: str | Path,
    options: ExcitationOptions | None = None,
    *,
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
        progress: Called with the name of the stage and its completed share.

    Raises:
        ModelError: If a setting is wrong, the description lacks limits, or the limits permit no motion.
        OutputError: If the directory holds other files.
        MissingExtraError: If plotly is not installed.
    """
    library, folder = plotly_script(), usable_directory(output)
    arm = load_robot(robot) if isinstance(robot, str) else robot
    make_directory(folder)
    state = folder / STATE_FILE
    try:
        result = optimize_excitation(arm, options, state=state, progress=progress)
        write_excitation(result, folder, library)
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()
    state.unlink(missing_ok=True)
    return result


def write_excitation(excitation: Excitation, folder: Path, library: str) -> list[Path]:
    """Write all files of an excitation, or none; `library` is the source code of plotly.js."""
    texts = {
        "joint_trajectory.json": json.dumps(joint_trajectory(excitation.robot, excitation.motion), allow_nan=False),
        "excitation.html": render_excitation(excitation, library),
    }
    if supports_urscript(excitation.robot):
        texts["excitation.script"] = _program(excitation)
    with output_set():
        for name, text in texts.items():
            with atomic_write(folder / name) as file:
                file.write(text)
        write_document(PREDICTION_KIND.stamped(excitation.to_dict()), folder / PREDICTION_FILE)
        write_trajectory(excitation.motion, folder / "trajectory.csv")
    return [folder / name for name in (*texts, PREDICTION_FILE, "trajectory.csv")]


def joint_trajectory(robot: Robot, motion: Trajectory) -> dict[str, Any]:
    """Return a motion as a message trajectory_msgs/JointTrajectory of ROS 2."""
    states = motion.sample(ROS_RATE)
    points = [
        {
            "positions": q.tolist(),
            "velocities": qd.tolist(),
            "accelerations": qdd.tolist(),
            "effort": [],
            "time_from_start": {"sec": int(t), "nanosec": round(1e9 * (t - int(t)))},
        }
        for t, q, qd, qdd in zip(
            states.t.tolist(), states.q.round(9), states.qd.round(9), states.qdd.round(9), strict=True
        )
    ]
    header = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    return {"header": header, "joint_names": [joint.name for joint in robot.joints], "points": points}


def write_trajectory(motion: Trajectory, path: Path) -> None:
    """Write a motion as CSV at 500 Hz to its end, where it stands: t, q1.., qd1.., qdd1.."""
    states = motion.at(np.arange(int(np.ceil(motion.duration * RATE - 1e-6)) + 1) / RATE)
    names = ["t", *(f"{name}{j + 1}" for name in ("q", "qd", "qdd") for j in range(motion.joints))]
    with atomic_write(path) as file:
        file.write(",".join(names) + "\n")
        rows = np.column_stack([states.t, states.q, states.qd, states.qdd]) + 0.0
        np.savetxt(file, rows, fmt="%.9g", delimiter=",")


def _program(excitation: Excitation) -> str:
    """Return the URScript program."""
    home = ", ".join(f"{angle:.1f}" for angle in np.rad2deg(excitation.limits.home) + 0.0)
    uses = ", ".join(f"{use.kind} {100.0 * use.share:.0f} % ({use.where})" for use in excitation.uses)
    plane = excitation.limits.clearance.plane
    height = f"Height above the mounting plane at least {plane:g} m."
    notes = [
        f"Optimal excitation for {excitation.model.goal}.",
        f"Robot {excitation.robot.name}, {excitation.motion.duration:g} s, seed {excitation.options.seed}.",
        f"Use of the limits: {uses}; checked at {OVERSAMPLING * RATE:g} Hz.",
        height if np.isfinite(plane) else "THE MOUNTING PLANE IS NOT CHECKED.",
        f"It begins and ends upright [deg]: {home}. The path from there is checked, the path from the current pose to "
        "there is not: move the arm near that pose first.",
        "COLLISIONS WITH THE CELL ARE NOT CHECKED, nor of cables and payload: test at 10 % speed with a hand on the "
        "stop button.",
    ]
    return motion_script(excitation.robot, excitation.motion, excitation.limits.home, "jointwise_excitation", notes)


def usable_directory(output: str | Path) -> Path:
    """Return the directory of the files; reject one with other files than those of an interrupted call."""
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is a file. Choose a new directory.")
    known = [STATE_FILE]
    if folder.exists() and any(not path.name.endswith(SUFFIX) and path.name not in known for path in folder.iterdir()):
        raise OutputError(f"{folder}: is not empty, and nothing is overwritten. Choose a new directory.")
    return folder
