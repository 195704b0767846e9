"""The friction laws of the native integrator alone, for tests that compare them with their NumPy reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.simulation.robot import JointPlant
from jointwise.simulation.robot.packing import kernel
from jointwise.spatial import Array


@dataclass(frozen=True)
class SlipPath:
    """H (samples,) at every position, its `mean` (samples,) since the position before, and the δ_i (rad) at the end."""

    H: Array
    mean: Array
    deformation: Array


def follow_path(joint: JointPlant, theta: Array, deformation: Array | None = None) -> SlipPath:
    """Return the hysteresis state along rotor positions θ (samples,) rad, relaxed at the start by default."""
    at = np.zeros(len(joint.friction.slip.limits)) if deformation is None else deformation.copy()
    out = np.empty((len(theta), 2))
    kernel().hysteresis(np.array(joint.law.packed(1.0)), np.array(theta, dtype=float), at, out)
    return SlipPath(out[:, 0], out[:, 1], at)


def steady_friction(joint: JointPlant, speed: Array, load: Array, temperature: Array) -> tuple[Array, Array]:
    """Return dry level (Nm) and viscous factor (Nm s/rad), (samples,) each."""
    out = np.empty((len(speed), 2))
    kernel().steady_friction(np.array(joint.law.packed(1.0)), speed, load, temperature, out)
    return out[:, 0], out[:, 1]
