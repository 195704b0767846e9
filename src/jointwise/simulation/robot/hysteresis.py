"""The slip elements of a joint along a given path: the code of the integrator, without the rest of the robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
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
    path = _checked("theta", theta, "(samples,)", None)
    start = np.zeros(elements) if deformation is None else deformation
    at = _checked("deformation", start, f"({elements},)", elements)
    out = np.empty((len(path), 2))
    kernel().hysteresis(pack_joints((joint,), False), pack_backlash((joint,)), path, at, out)
    return SlipPath(out[:, 0], out[:, 1], at)


def _checked(name: str, values: Array, shape: str, length: int | None) -> Array:
    """Return a copy; refuse what has another shape or is not finite (one gap would spoil the rest of the path)."""
    numbers = np.array(values, dtype=np.float64)
    if numbers.ndim != 1 or length not in {None, len(numbers)}:
        raise ModelError(f"{name} must have the shape {shape}. Got {numbers.shape} instead.")
    if not (finite := np.isfinite(numbers)).all():
        first = int(np.argmin(finite))
        raise ModelError(
            f"{name} must be finite, rad. Got {numbers[first]} at index {first} instead: fill or cut gaps."
        )
    return numbers
