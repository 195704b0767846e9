"""Optimises the energy of a motion and writes its files: trajectory, robot programs, result and page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jointwise.arguments import checked
from jointwise.description.robot import Robot
from jointwise.design.bspline import SplineMotion
from jointwise.design.urscript import motion_script, supports_urscript
from jointwise.document import Kind
from jointwise.energy import MinimumEnergyMotion, PowerModel, optimize_motion
from jointwise.energy.motion_task import MotionEnergy
from jointwise.experiment.motion_directory import program_notes, search_in, write_motion_files
from jointwise.report.minimum_energy import MotionCurves, render_minimum_energy
from jointwise.result.calibration import CalibratedModel

RESULT_FILE = "energy.json"
RESULT_KIND = Kind(
    format="jointwise minimum-energy motion",
    name="the result of a minimum-energy search",
    noun="minimum-energy motion",
    remedy="Optimise it again (jointwise energy optimize).",
)


@checked
def minimize_energy(
    model: CalibratedModel | Robot, power: PowerModel, output: str | Path, *, force: bool = False, **task: Any
) -> MinimumEnergyMotion:
    """Optimise the energy of a motion and write its files; an interrupted call is resumed by the same one.

    The directory then holds `trajectory.csv` (t, q1.., qd1.., qdd1.. at 500 Hz), `joint_trajectory.json` (ROS 2
    trajectory_msgs/JointTrajectory), `motion.script` (URScript, for six-axis arms of Universal Robots and motions
    without stops), `energy.json` and `energy.html`, which compares the motion with the original one.

    Args:
        model: Calibrated model or robot.
        power: Power model.
        output: Directory for the files; it must be absent, empty, or that of an interrupted call.
        force: Whether files in a directory that is not empty are overwritten.
        **task: Task and limits; see `jointwise.energy.optimize_motion`.

    Raises:
        DurationError: The duration is below the least possible one, which the message states.
        ModelError: The task has no solution within the limits, or an argument is wrong.
        OutputError: The directory holds other files.
        MissingExtraError: If jinja2 is not installed.
    """

    def search(state: Path) -> MinimumEnergyMotion:
        return optimize_motion(model, power, state=state, **task)

    return search_in(output, search, write_motion, force=force)


def write_motion(result: MinimumEnergyMotion, folder: Path) -> list[Path]:
    """Write all files of a minimum-energy motion, or none."""
    motion, robot, document = result.optimized.trajectory, result.robot, result.to_dict()
    signals = _signals(result.original), _signals(result.optimized)
    texts = {"energy.html": render_minimum_energy(robot, result.model.gravity, document, *signals)}
    if supports_urscript(robot) and isinstance(motion, SplineMotion):
        texts["motion.script"] = _program(result, motion)
    return write_motion_files(folder, robot, motion, texts, (RESULT_FILE, RESULT_KIND.stamped(document)))


def _signals(motion: MotionEnergy) -> MotionCurves:
    return MotionCurves(motion.trajectory.at(motion.t), motion.torque, motion.power)


def _program(result: MinimumEnergyMotion, motion: SplineMotion) -> str:
    """Return the URScript program."""
    approach = "The path from the current pose to the first one is not checked: move the arm near it first."
    notes = [
        f"Minimum-energy motion: {result.optimized.energy:.1f} J, {100.0 * result.saving:.1f} % saved.",
        f"Robot {result.robot.name}, {motion.duration:g} s.",
        *program_notes(result.optimized.uses, result.limits.clearance.plane, approach),
    ]
    return motion_script(result.robot, motion, motion.center, "jointwise_motion", notes, returns=False)
