"""The motion of a file, to be run on the digital robot: a plan, or a log."""

from __future__ import annotations

from pathlib import PurePath

import numpy as np

from jointwise.data.clock import repair_clock
from jointwise.data.log import Log
from jointwise.description.mounting import gravity_vector
from jointwise.description.robot import Robot
from jointwise.errors import JointwiseError, ModelError
from jointwise.simulation.references import Experiment, refuse_outside_limits, sampled_motion
from jointwise.simulation.references.bspline import SplineMotion
from jointwise.simulation.references.limits import unit_of
from jointwise.spatial import Array

MOVED = 1e-9
"""Distance (rad, m) from its samples at which a motion is said to be smoothed."""


def replayed(robot: Robot, log: Log) -> Experiment:
    """Return the motion of a log: what was asked for (q_des) where it tells it, else the positions.

    Samples with the stamp of the one before are left out.
    """
    fixed = repair_clock(log)
    channel = "q_des" if "q_des" in log.available else "q"
    t, q = fixed.log.t, fixed.log.channel(channel)
    kept = np.arange(log.samples) if fixed.kept is None else fixed.kept
    try:
        motion = sampled_motion(robot, t, q, lambda sample: log.origin.where(int(kept[sample])))
        refuse_outside_limits(robot, motion)
    except JointwiseError as problem:
        raise ModelError(f"{log.origin.path}: {problem}{_in_degrees(robot, q)}") from None
    name = PurePath(log.origin.path).name
    source = {"file": name, "sha256": log.origin.sha256, "channel": channel, "samples": len(t)}
    notes = [f"{channel} of {name}", *_repeated(log.samples - len(t)), *_smoothed(robot, motion, t, q)]
    return Experiment("motion", motion, gravity_vector(), ", ".join(notes), source=source)


def _repeated(samples: int) -> list[str]:
    return [f"{samples} samples left out that have the stamp of the one before"] if samples else []


def _smoothed(robot: Robot, motion: SplineMotion, t: Array, q: Array) -> list[str]:
    """Return by how much a motion was smoothed."""
    moved = np.abs(motion.position(t - t[0]) - q).max(axis=0)
    if moved.max() < MOVED:
        return []
    unit = unit_of(robot, int(moved.argmax()))
    return [f"smoothed by up to {moved.max():.2g} {unit}: its positions are rounded or noisy"]


def _in_degrees(robot: Robot, q: Array) -> str:
    """Return a question where positions (samples, joints) are more than two turns, but not in degrees."""
    turning = np.abs(q[:, robot.revolute]).max(initial=0.0)
    return " Are the positions in degrees? Say so: --columns q=@deg" if turning > 4.0 * np.pi else ""
