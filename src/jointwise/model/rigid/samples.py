"""Checks of the arrays that users hand to the kernels: one clear line for every mistake."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from jointwise.description.robot import Robot
from jointwise.errors import ShapeError
from jointwise.spatial import Array


def checked_states(
    robot: Robot, q: ArrayLike, qd: ArrayLike | None = None, qdd: ArrayLike | None = None
) -> tuple[Array, Array | None, Array | None]:
    """Return positions, velocities and accelerations as float64 (samples, joints); None stays None (zero)."""
    position = checked_samples(q, robot.dof, "q")
    return (
        position,
        None if qd is None else checked_samples(qd, robot.dof, "qd", len(position)),
        None if qdd is None else checked_samples(qdd, robot.dof, "qdd", len(position)),
    )


def checked_samples(values: ArrayLike, columns: int, name: str, samples: int | None = None) -> Array:
    """Return `values` as float64 of shape (samples, columns), or say what it should have been."""
    try:
        array = np.asarray(values)
        if array.dtype != np.float64:
            array = array.astype(np.float64, casting="same_kind" if array.dtype.kind == "f" else "safe")
    except (TypeError, ValueError):
        raise ShapeError(f"{name} must be an array of real numbers.") from None
    rows = "samples" if samples is None else str(samples)
    if array.ndim != 2 or array.shape[1] != columns or (samples is not None and len(array) != samples):
        raise ShapeError(f"{name} must have shape ({rows}, {columns}). Got {array.shape} instead.")
    if array.strides[0] % 8 or array.strides[1] % 8 or not array.flags.aligned or not array.dtype.isnative:
        array = np.array(array, dtype=np.float64)
    return array


def refuse_non_finite(**arrays: Array | None) -> NoReturn:
    """Raise with the place of the first NaN or infinity among the inputs, or say that the result overflowed."""
    for name, array in arrays.items():
        if array is not None and not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            raise ShapeError(f"{name} must be finite. Got {array[row, column]} at sample {row}, joint {column + 1}.")
    raise ShapeError("the result is not finite although every input is: the inputs are too large or M is singular.")
