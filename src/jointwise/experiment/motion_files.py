"""Optimises the energy of a motion and writes its files: trajectory, robot programs, result and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.atomic import atomic_write, make_directory, output_set
from jointwise.description.robot import Robot
from jointwise.design.bspline import SplineMotion
from jointwise.design.excitation import OVERSAMPLING, RATE
from jointwise.design.urscript import motion_script, supports_urscript
from jointwise.document import Kind, write_document
from jointwise.energy import MinimumEnergyMotion, PowerModel, optimize_motion
from jointwise.energy.motion_task import MotionEnergy
from jointwise.experiment.excitation_files import STATE_FILE, joint_trajectory, usable_directory, write_trajectory
from jointwise.report.minimum_energy import MotionSignals, render_minimum_energy
from jointwise.report.page import plotly_script
from jointwise.result.calibration import CalibratedModel

RESULT_FILE = "energy.json"
RESULT_KIND = Kind(
    format="jointwise minimum-energy motion",
    schema=1,
    name="the result of a minimum-energy search",
    noun="minimum-energy motion",
    remedy="Optimise it again (jointwise energy optimize).",
    largest=1 << 20,
)


def minimize_energy(
    model: CalibratedModel | Robot, power: PowerModel, output: str | Path, **task: Any
) -> MinimumEnergyMotion:
    """Optimise the energy of a motion and write its files; an interrupted call is resumed by the same one.

    The directory then holds `trajectory.csv` (t, q1.., qd1.., qdd1.. at 500 Hz), `joint_trajectory.json` (ROS 2
    trajectory_msgs/JointTrajectory), `motion.script` (URScript, for six-axis arms of Universal Robots and motions
    without stops), `energy.json` and `energy.html`, which compares the motion with the original one.

    Args:
        model: Calibrated model or robot.
        power: Power model.
        output: Directory for the files; it must be absent, empty, or that of an interrupted call.
        **task: Task and limits; see `jointwise.energy.optimize_motion`.

    Raises:
        DurationError: The duration is below the least possible one, which the message states.
        ModelError: The task has no solution within the limits, or an argument is wrong.
        OutputError: The directory holds other files.
        MissingExtraError: If plotly is not installed.
    """
    library, folder = plotly_script(), usable_directory(output)
    make_directory(folder)
    state = folder / STATE_FILE
    try:
        result = optimize_motion(model, power, state=state, **task)
        write_motion(result, folder, library)
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()
    state.unlink(missing_ok=True)
    return result


def write_motion(result: MinimumEnergyMotion, folder: Path, library: str) -> list[Path]:
    """Write all files of a minimum-energy motion, or none; `library` is the source code of plotly.js."""
    motion, robot = result.optimized.trajectory, result.robot
    document = result.to_dict()
    page = render_minimum_energy(
        robot, result.model.gravity, document, _signals(result.original), _signals(result.optimized), library
    )
    texts = {"joint_trajectory.json": json.dumps(joint_trajectory(robot, motion), allow_nan=False), "energy.html": page}
    if supports_urscript(robot) and isinstance(motion, SplineMotion):
        texts["motion.script"] = _program(result, motion)
    with output_set():
        for name, text in texts.items():
            with atomic_write(folder / name) as file:
                file.write(text)
        write_document(RESULT_KIND.stamped(document), folder / RESULT_FILE)
        write_trajectory(motion, folder / "trajectory.csv")
    return [folder / name for name in (*texts, RESULT_FILE, "trajectory.csv")]


def _signals(motion: MotionEnergy) -> MotionSignals:
    return MotionSignals(motion.trajectory.at(motion.t), motion.torque, motion.power)


def _program(result: MinimumEnergyMotion, motion: SplineMotion) -> str:
    """Return the URScript program."""
    uses = ", ".join(f"{use.kind} {100.0 * use.share:.0f} % ({use.where})" for use in result.optimized.uses)
    plane = result.limits.clearance.plane
    notes = [
        f"Minimum-energy motion: {result.optimized.energy:.1f} J, {100.0 * result.saving:.1f} % saved.",
        f"Robot {result.robot.name}, {motion.duration:g} s.",
        f"Use of the limits: {uses}; checked at {OVERSAMPLING * RATE:g} Hz.",
        f"Height above the mounting plane at least {plane:g} m."
        if np.isfinite(plane)
        else "THE MOUNTING PLANE IS NOT CHECKED.",
        "The path from the current pose to the first one is not checked: move the arm near it first.",
        "COLLISIONS WITH THE CELL ARE NOT CHECKED, nor of cables and payload: test at 10 % speed with a hand on the "
        "stop button.",
    ]
    return motion_script(result.robot, motion, motion.center, "jointwise_motion", notes, returns=False)
