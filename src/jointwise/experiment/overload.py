"""What was more than an arm holds: said where a run fails, before its gains are blamed."""

from __future__ import annotations

import numpy as np

from jointwise.control import friction_torques
from jointwise.errors import ModelError
from jointwise.experiment.events import Events
from jointwise.simulation.robot import DigitalRobot, drives_of
from jointwise.spatial import Array

AFTERMATH = 1.0
"""Time (s) after its end for which a push is to blame."""
BREAKAWAY = 1e-9
"""Speed (rad/s) of a joint that is about to move."""


def refuse_overload(digital: DigitalRobot, torque: Array) -> None:
    """Say so if a motion asks a motor for more than it gives; `torque` (samples, joints) of the rigid model, Nm."""
    limits = np.array([drive.limit for drive in drives_of(digital)])
    k, j = _worst(np.abs(torque) / limits)
    if abs(torque[k, j]) > limits[j]:
        raise ModelError(
            f"joint '{digital.robot.joints[j].name}' is overloaded: the motion needs {abs(torque[k, j]):.3g} Nm, its "
            f"motor gives at most {limits[j]:.3g} Nm. Choose a smaller payload or a slower motion."
        )


def refuse_stuck(digital: DigitalRobot, torque: Array, qd: Array) -> None:
    """Say so if friction at speeds q̇ (samples, joints), rad/s, on top of the motion's torque, stops a motor."""
    drives = drives_of(digital)
    limits = np.array([drive.limit for drive in drives])
    friction = friction_torques(drives, np.where(qd == 0.0, BREAKAWAY, qd))
    k, j = _worst(np.abs(torque + friction) / limits)
    if abs(torque[k, j] + friction[k, j]) > limits[j]:
        raise ModelError(
            f"joint '{digital.robot.joints[j].name}' is stuck: friction takes {abs(friction[k, j]):.3g} Nm beside the "
            f"{abs(torque[k, j]):.3g} Nm of the motion, its motor gives at most {limits[j]:.3g} Nm. Choose less "
            "friction (age, wear, joints) or a slower motion."
        )


def refuse_push(events: Events, time: float) -> None:
    """Say so if a push acts at a time (s), or did shortly before."""
    acting = [push for push in events.pushes if push.start <= time <= push.start + push.length + AFTERMATH]
    if acting:
        push = max(acting, key=lambda own: float(np.linalg.norm(own.wrench)))
        force, moment = np.linalg.norm(push.force), np.linalg.norm(push.moment)
        size = f"{force:.6g} N" if not moment else f"{force:.6g} N and {moment:.6g} Nm"
        raise ModelError(
            f"the push of {size} at {push.start:g} s is more than the arm holds: its motion is lost at "
            f"t = {time:.4g} s. Choose a weaker or a shorter one."
        )


def _worst(shares: Array) -> tuple[int, int]:
    k, j = np.unravel_index(int(np.argmax(shares)), shares.shape)
    return int(k), int(j)
