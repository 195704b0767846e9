"""Arrays of one sample or many: (joints,) or (samples, joints) in, the same out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from jointwise.errors import ModelError, ShapeError
from jointwise.model.rigid.chain import checked_samples
from jointwise.spatial import Array


def is_single(values: ArrayLike) -> bool:
    """Return whether an array is that of one sample, (joints,)."""
    return np.ndim(values) == 1


def like(values: ArrayLike, result: Array) -> Array:
    """Return a result (samples, ...) in the form of the input: without its first axis for one sample."""
    return result[0] if is_single(values) else result


def as_samples(values: ArrayLike, joints: int, name: str, samples: int | None = None) -> Array:
    """Return finite float64 (samples, joints) of an array of one sample or many.

    Args:
        values: (joints,) or (samples, joints).
        joints: Number of joints.
        name: Name for error messages.
        samples: Number of samples that it must have; None for any.

    Raises:
        ShapeError: The shape is another, or a number is not finite.

    """
    array = checked_samples(np.atleast_2d(np.asarray(values)), joints, name, samples)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ShapeError(f"{name} must be finite. Got {array[row, column]} at sample {row}, joint {column + 1}.")
    return array


def optional_samples(values: ArrayLike | None, joints: int, name: str, samples: int) -> Array | None:
    """Return a channel as `as_samples` does, None where it is not there."""
    return None if values is None else as_samples(values, joints, name, samples)


def joint_values(values: ArrayLike | float, joints: int, name: str, samples: int) -> Array:
    """Return a number, (joints,) or (samples, joints) broadcast to (samples, joints)."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 2 or (array.ndim > 0 and array.shape[-1] != joints):
        raise ShapeError(f"{name} must be a number, ({joints},) or ({samples}, {joints}). Got {array.shape} instead.")
    try:
        whole = np.broadcast_to(array, (samples, joints))
    except ValueError:
        raise ShapeError(
            f"{name} must be a number, ({joints},) or ({samples}, {joints}). Got {array.shape} instead."
        ) from None
    return as_samples(whole, joints, name)


def checked_rate(rate: float) -> float:
    """Return a sampling rate in Hz, or raise a `ModelError`."""
    if not (np.isfinite(rate) and rate > 0.0):
        raise ModelError(f"rate must be a positive number of Hz. Got {rate} instead.")
    return float(rate)
