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
