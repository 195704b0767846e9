"""The directory of a designed motion: trajectory, robot programs, document and page; a search in it can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from jointwise.atomic import atomic_write, check_directory, make_directory, output_set
from jointwise.description.robot import Robot
from jointwise.design.excitation import OVERSAMPLING, RATE
from jointwise.design.excitation_limits import Use
from jointwise.design.trajectory import Trajectory
from jointwise.document import write_document
from jointwise.report.page import environment
from jointwise.spatial import Array

STATE_FILE = "state.json"
"""Finished steps of an interrupted search; removed when the other files are complete."""
TRAJECTORY_FILE = "trajectory.csv"
ROS_RATE = 100.0
"""Rate (Hz) of the points of the ROS 2 message: controllers interpolate between them by quintics."""

R = TypeVar("R")


def search_in(
    output: str | Path, search: Callable[[Path], R], write: Callable[[R, Path], object], *, force: bool = False
) -> R:
    """Return the result of a search whose files are in a directory; an interrupted search is resumed by the next call.

    Args:
        output: Directory; it must be absent, empty, or that of an interrupted call.
        search: Called with the file of the finished steps; returns the result.
        write: Called with result and directory; writes all files or none.
        force: Whether files that are there are overwritten.

    Raises:
        OutputError: If the directory holds other files.
        MissingExtraError: If jinja2 is not installed.
    """
    environment()  # a search takes minutes: what its page needs is checked before
    folder = check_directory(output, (STATE_FILE,), force=force)
    make_directory(folder)
    state = folder / STATE_FILE
    try:
        result = search(state)
        write(result, folder)
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()
    state.unlink(missing_ok=True)
    return result


def write_motion_files(
    folder: Path, robot: Robot, motion: Trajectory, texts: Mapping[str, str], document: tuple[str, Mapping[str, Any]]
) -> list[Path]:
    """Write texts by file name, a document (name, content) and the motion in two formats, or nothing."""
    message = json.dumps(joint_trajectory(robot, motion), allow_nan=False)
    every = {"joint_trajectory.json": message, **texts}
    name, content = document
    with output_set():
        write_texts(folder, every)
        write_document(content, folder / name)
        write_trajectory(motion, folder / TRAJECTORY_FILE)
    return [folder / name for name in (*every, name, TRAJECTORY_FILE)]


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write texts by file name into a directory."""
    for name, text in texts.items():
        with atomic_write(folder / name) as file:
            file.write(text)


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
    rows = np.column_stack([states.t, states.q, states.qd, states.qdd])
    write_rows(path, ("q", "qd", "qdd"), motion.joints, [rows])


def write_rows(path: Path, channels: Sequence[str], joints: int, chunks: Iterable[Array]) -> None:
    """Write chunks of rows (samples, 1 + channels * joints) as CSV with the header t, q1.., ..."""
    names = ["t", *(f"{name}{j + 1}" for name in channels for j in range(joints))]
    with atomic_write(path) as file:
        file.write(",".join(names) + "\n")
        for rows in chunks:
            np.savetxt(file, rows + 0.0, fmt="%.9g", delimiter=",")


def program_notes(uses: Sequence[Use], plane: float, approach: str) -> list[str]:
    """Return the notes of a robot program on limits, mounting plane (height in m), approach and collisions."""
    listed = ", ".join(f"{use.kind} {100.0 * use.share:.0f} % ({use.where})" for use in uses)
    height = f"Height above the mounting plane at least {plane:g} m."
    return [
        f"Use of the limits: {listed}; checked at {OVERSAMPLING * RATE:g} Hz.",
        height if np.isfinite(plane) else "THE MOUNTING PLANE IS NOT CHECKED.",
        approach,
        "COLLISIONS WITH THE CELL ARE NOT CHECKED, nor of cables and payload: test at 10 % speed with a hand on the "
        "stop button.",
    ]
