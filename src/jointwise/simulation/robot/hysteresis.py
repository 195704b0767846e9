"""The slip elements of a joint along a given path: the code of the integrator, without the rest of the robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.simulation.robot.joint import JointPlant
from jointwise.simulation.robot.kernel import kernel
from jointwise.simulation.robot.packing import pack_backlash, pack_joints
from jointwise.spatial import Array


@dataclass(frozen=True)
class SlipPath:
    """H (samples,) at every position, its `mean` (samples,) since the position before, and the δ_i (rad) at the end."""

    H: Array
    mean: Array
    deformation: Array


def follow_path(joint: JointPlant, theta: Array, deformation: Array | None = None) -> SlipPath:
    """Return the hysteresis state along rotor positions θ (samples,) rad, relaxed at the start unless given."""
    elements = len(joint.friction.slip.limits)
    at = np.zeros(elements) if deformation is None else np.array(deformation, dtype=np.float64)
    out = np.empty((len(theta), 2))
    kernel().hysteresis(
        pack_joints((joint,), False), pack_backlash((joint,)), np.ascontiguousarray(theta, dtype=np.float64), at, out
    )
    return SlipPath(out[:, 0], out[:, 1], at)
