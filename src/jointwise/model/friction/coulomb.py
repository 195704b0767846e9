"""Coulomb friction: the direction in which dry friction acts."""

from __future__ import annotations

import numpy as np

from jointwise.spatial import Array


def direction(speed: Array, width: float = 0.0) -> Array:
    """Return sgn(ω), or its smooth form tanh(ω / width).

    Args:
        speed: Joint speeds ω of any shape, rad/s.
        width: Speed (rad/s) over which tanh changes its sign; 0 for the discontinuous sign.

    Returns:
        Values in [-1, 1] of the shape of `speed`.

    """
    result: Array = np.tanh(speed / width) if width > 0.0 else np.sign(speed)
    return result
