"""What the rigid-body kernels take: the robot as numbers and checked arrays; and which kernels run."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from jointwise.backend import native
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot, loaded_inertials
from jointwise.errors import ModelError, ShapeError
from jointwise.model.rigid import numpy_kernels
from jointwise.spatial import Array


class Chain(NamedTuple):
    """A serial chain of joints, in the order that the native kernel expects.

    Attributes:
        revolute: One byte per joint: 1 if it turns, 0 if it slides.
        rotations: Rotation of frame j in frame j - 1 at q = 0, (joints, 3, 3).
        translations: Translation of frame j in frame j - 1 at q = 0, (joints, 3), m.
        inertials: Bodies, (joints, 10): XX XY XZ YY YZ ZZ in kg m², mX mY mZ in kg m, m in kg.
        rotors: Reflected rotor inertias, (joints,), kg m².
        gravity: Gravity in the base frame, (3,), m/s².
    """

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
    """Return the chain of a robot.

    Args:
        robot: The robot.
        gravity: A mounting, or gravity in the base frame, (3,), m/s².
        payload: Body at the tool; None for none.
        inertials: Bodies in place of the described ones, (joints, 10).
        rotor_inertias: Rotor inertias, (joints,), kg m²; None for none.

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


def checked_states(
    robot: Robot, q: ArrayLike, qd: ArrayLike | None = None, qdd: ArrayLike | None = None
) -> tuple[Array, Array | None, Array | None]:
    """Return states as float64 (samples, joints), and reject other shapes.

    Args:
        robot: The robot.
        q: Positions, rad or m.
        qd: Speeds, rad/s or m/s; None, for zero, stays None.
        qdd: Accelerations, rad/s² or m/s²; None, for zero, stays None.
    """
    position = checked_samples(q, robot.dof, "q")
    return (
        position,
        None if qd is None else checked_samples(qd, robot.dof, "qd", len(position)),
        None if qdd is None else checked_samples(qdd, robot.dof, "qdd", len(position)),
    )


def checked_samples(values: ArrayLike, columns: int, name: str, samples: int | None = None) -> Array:
    """Return `values` as float64 of shape (samples, columns), or raise a `ShapeError`."""
    try:
        array = np.asarray(values)
        if array.dtype != np.float64:
            array = array.astype(np.float64, casting="same_kind" if array.dtype.kind == "f" else "safe")
    except (TypeError, ValueError):
        raise ShapeError(f"{name} must be an array of real numbers.") from None
    rows = "samples" if samples is None else str(samples)
    if array.ndim != 2 or array.shape[1] != columns or (samples is not None and len(array) != samples):
        raise ShapeError(f"{name} must have shape ({rows}, {columns}). Got {array.shape} instead.")
    return array if _in_whole_doubles(array) else np.array(array, dtype=np.float64)


def checked_out(out: object, shape: tuple[int, int]) -> Array:
    """Return `out` if results of `shape` can be written into it as it is, or raise a `ShapeError`."""
    if not isinstance(out, np.ndarray) or out.dtype != np.float64 or out.shape != shape or not out.flags.writeable:
        raise ShapeError(f"out must be a writable float64 array of shape {shape}.")
    if not _in_whole_doubles(out):
        raise ShapeError("out must be aligned, with strides in whole numbers of 8 bytes.")
    return out


def _in_whole_doubles(array: Array) -> bool:
    return array.flags.aligned and array.dtype.isnative and not any(stride % array.itemsize for stride in array.strides)


def refuse_non_finite(**arrays: Array | None) -> NoReturn:
    """Raise with the place of the first NaN or infinity among the inputs, or say that the result overflowed."""
    for name, array in arrays.items():
        if array is not None and not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            raise ShapeError(f"{name} must be finite. Got {array[row, column]} at sample {row}, joint {column + 1}.")
    raise ShapeError("the result is not finite although every input is: the inputs are too large or M is singular.")


def kernels() -> ModuleType:
    """Return `jointwise._native`, or the NumPy kernels, which have the same functions."""
    return native() or numpy_kernels


def is_native() -> bool:
    """Return whether the native kernels are in use."""
    return native() is not None
