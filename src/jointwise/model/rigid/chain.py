"""The robot's numbers as the kernels take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot, loaded_inertials
from jointwise.errors import ModelError, ShapeError
from jointwise.spatial import Array


class Chain(NamedTuple):
    """A serial chain of n joints: kinds, placements, bodies and gravity, in the order the native kernel expects."""

    revolute: bytes
    rotations: Array
    translations: Array
    inertials: Array
    rotors: Array
    gravity: Array

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.revolute)


def make_chain(
    robot: Robot,
    gravity: Mounting = "table",
    payload: Payload | None = None,
    inertials: Array | None = None,
    rotor_inertias: Array | None = None,
) -> Chain:
    """Return the chain of a robot; `inertials` (joints, 10) replaces the nominal ones, rotors default to none.

    Raises:
        ModelError: The robot is that of a calibration and `inertials` is None: its described bodies are superseded.

    """
    if inertials is None and robot.superseded:
        raise ModelError(
            f"'{robot.name}' is the robot of a calibrated model, which replaces the described bodies. Use the methods "
            "of RobotModel (mass_matrix, torque, ...), or pass inertials=robot.inertials for the described ones."
        )
    bodies = loaded_inertials(robot, payload)
    if inertials is not None:
        bodies = bodies - robot.inertials + sized(inertials, (robot.dof, 10), "inertials")
    rotors = np.zeros(robot.dof) if rotor_inertias is None else sized(rotor_inertias, (robot.dof,), "rotor_inertias")
    return Chain(
        revolute=robot.revolute.tobytes(),
        rotations=robot.rotations,
        translations=robot.translations,
        inertials=np.ascontiguousarray(bodies),
        rotors=np.require(rotors, requirements=["C", "A"]),
        gravity=np.require(gravity_vector(gravity), requirements=["C", "A"]),
    )


def kinematic_chain(robot: Robot, gravity: Mounting = "table") -> Chain:
    """Return the chain of a robot without bodies, for kernels that need none."""
    return make_chain(robot, gravity, inertials=np.zeros((robot.dof, 10)))


def sized(values: Array, shape: tuple[int, ...], name: str) -> Array:
    """Return `values` as finite float64 of `shape` (a flat array is reshaped), or raise a `ShapeError`."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape and array.shape != (int(np.prod(shape)),):
        raise ShapeError(f"{name} must have shape {shape}. Got {array.shape} instead.")
    if not np.isfinite(array).all():
        raise ShapeError(f"{name} must be finite.")
    return array.reshape(shape)
