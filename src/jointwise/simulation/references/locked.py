"""Locked output: the joint stands while its torque rises and falls as prescribed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.simulation.references.limits import checked_joint
from jointwise.simulation.references.trajectory import refuse_unless_positive
from jointwise.spatial import Array

LEVELS = (0.25, 0.5, 0.75, 1.0)
"""Peaks of the ramps as parts of the largest torque."""
PART_OF_EFFORT = 0.8
"""Largest torque as a part of the joint's effort limit, where it is not given."""
USUAL_EFFORT = 100.0
"""Effort limit (Nm) of a joint that has none."""


@dataclass(frozen=True)
class TorqueProfile:
    """A torque on one joint (0-based), linear between `torques` (points,), Nm, at `times` (points,), s; 0 outside."""

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


def torque_ramps(
    robot: Robot,
    duration: float = 40.0,
    *,
    joint: int = 0,
    largest: float | None = None,
    levels: tuple[float, ...] = LEVELS,
) -> TorqueProfile:
    """Return ramps 0, +τ, 0, -τ, 0 with peaks τ at `levels` of the `largest` torque (Nm), equally long.

    Without `largest` it is 80 % of the effort limit, beyond which nothing is accepted.
    """
    refuse_unless_positive(duration=duration)
    effort = robot.joints[checked_joint(robot, joint)].limits.effort
    top = PART_OF_EFFORT * (effort or USUAL_EFFORT) if largest is None else largest
    if not 0.0 < top <= (effort or np.inf) or not levels or not all(0.0 < level <= 1.0 for level in levels):
        raise ModelError(
            f"the largest torque of joint {joint + 1} must be above 0 and up to {effort or np.inf:.4g} Nm, its levels "
            f"parts of it. Got {top:.4g} Nm, levels {levels} instead."
        )
    signs = np.array([0.0, 1.0, 0.0, -1.0])
    torques = np.append(np.concatenate([level * top * signs for level in levels]), 0.0)
    return TorqueProfile(joint, robot.dof, np.linspace(0.0, duration, len(torques)), torques)
