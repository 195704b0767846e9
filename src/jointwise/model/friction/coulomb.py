"""Coulomb friction: the direction in which dry friction acts, and its split by the direction of power flow."""

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


def power_flow_columns(speed: Array, load: Array, width: float = 0.0) -> Array:
    """Return the direction where the joint drives its load (ω τ > 0), and elsewhere: the factors of T_dir and T_rev.

    Args:
        speed: Joint speeds ω (samples,), rad/s.
        load: Transmitted torques τ (samples,), Nm.
        width: As in `direction`.

    Returns:
        Two columns, (samples, 2); each is zero where the other one is not.

    """
    h, drives = direction(speed, width), speed * load > 0.0
    return np.column_stack([np.where(drives, h, 0.0), np.where(drives, 0.0, h)])
