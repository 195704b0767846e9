"""Prescribed torque of a joint whose output is locked: ramps up and down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.arguments import checked
from jointwise.description.robot import Robot, check_joint
from jointwise.design.trajectory import check_positive
from jointwise.errors import ModelError
from jointwise.spatial import Array

LEVELS = (0.25, 0.5, 0.75, 1.0)
"""Peaks of the ramps as shares of the largest torque."""
EFFORT_SHARE = 0.8
"""Default of the largest torque as a share of the joint's effort limit."""
DEFAULT_EFFORT = 100.0
"""Effort limit (Nm) of a joint whose description has none."""


@dataclass(frozen=True)
class TorqueProfile:
    """A torque on one joint, linear between points and 0 outside.

    Attributes:
        joint: Joint, 0-based.
        joints: Number of joints of the robot.
        times: Times of the points, (points,), s.
        torques: Torques at the points, (points,), Nm.
    """

    joint: int
    joints: int
    times: Array
    torques: Array

    @property
    def duration(self) -> float:
        """Time of the last point, s."""
        return float(self.times[-1])

    def at(self, t: Array) -> Array:
        """Return the torques of all joints (samples, joints), Nm, at times (samples,), s."""
        result = np.zeros((len(t), self.joints))
        result[:, self.joint] = np.interp(t, self.times, self.torques, left=0.0, right=0.0)
        return result


@checked
def torque_ramps(
    robot: Robot,
    duration: float = 40.0,
    *,
    joint: int = 0,
    largest: float | None = None,
) -> TorqueProfile:
    """Return ramps 0, +τ, 0, -τ, 0 with peaks τ at `LEVELS` of the `largest` torque (Nm), equally long.

    By default `largest` is 80 % of the effort limit, which it must not exceed.
    """
    check_positive(duration=duration)
    effort = robot.joints[check_joint(robot, joint)].limits.effort
    top = EFFORT_SHARE * (effort or DEFAULT_EFFORT) if largest is None else largest
    if not 0.0 < top <= (effort or np.inf):
        raise ModelError(
            f"the largest torque of joint {joint + 1} must be above 0 and up to {effort or np.inf:.4g} Nm. Got "
            f"{top:.4g} Nm instead."
        )
    signs = np.array([0.0, 1.0, 0.0, -1.0])
    torques = np.append(np.concatenate([level * top * signs for level in LEVELS]), 0.0)
    return TorqueProfile(joint, robot.dof, np.linspace(0.0, duration, len(torques)), torques)
