"""The least duration of a motion along a path within limits of speed, acceleration and torque."""

from __future__ import annotations

import numpy as np

from jointwise.design.excitation_limits import ExcitationLimits
from jointwise.design.trajectory import Differentiable
from jointwise.energy.motion_power import MotionPower
from jointwise.energy.motion_space import StraightPath
from jointwise.errors import ModelError
from jointwise.spatial import Array

GRID = 200
"""Intervals of the path, and speeds at every point of it."""
TINY = 1e-9
"""Least tangent (rad, m per unit of the path) of a joint that counts as moving."""


def ramp_limits(path: StraightPath, limits: ExcitationLimits) -> tuple[float, float]:
    """Return the largest path speed (1/s) and acceleration (1/s²) of a straight path."""
    turned, moved = (np.maximum(np.abs(step), TINY) for step in (limits.turning @ path.step, path.step))
    return float((limits.speeds / turned).min()), float((limits.motion.acceleration / moved).min())


def fastest_ramps(path: StraightPath, limits: ExcitationLimits) -> float:
    """Return the least duration (s) of a straight path within the limits of speed and acceleration, in closed form."""
    speed, acceleration = ramp_limits(path, limits)
    speed = min(speed, np.sqrt(acceleration))
    return float(1.0 / speed + speed / acceleration)


def least_duration(path: Differentiable, power: MotionPower, limits: ExcitationLimits) -> float:
    """Return the least duration (s) from rest to rest along a path, s from 0 to 1.

    In the phase plane of s and x = ṡ² the limits are linear in s̈ at every point: ``q̈ = q' s̈ + q'' x`` and the torque
    is affine in s̈. Backwards from the end the largest x is found from which the path can still be stopped; forwards the
    largest s̈ within these is taken.

    Raises:
        ModelError: The joints cannot hold the arm at some point of the path.

    """
    s = np.linspace(0.0, 1.0, GRID + 1)
    x, low, high = _slopes(path, power, limits, s)
    step = 2.0 * (s[1] - s[0])
    if (low[:, 0] > high[:, 0]).any():
        at = path.curve(s[[int(np.argmax(low[:, 0] > high[:, 0]))]], 0)[0]
        raise ModelError(
            f"no motion along the path: its torque limits do not hold the arm at q = {np.round(at, 2).tolist()}. "
            "Choose a smaller payload or another path."
        )
    highest = np.zeros(GRID + 1)
    for i in range(GRID - 1, -1, -1):
        highest[i] = _stoppable(x[i], low[i], high[i], step, highest[i + 1])
    total, now = 0.0, 0.0
    for i in range(GRID):
        then = min(highest[i + 1], now + step * float(np.interp(now, x[i], high[i])))
        total += step / max(np.sqrt(now) + np.sqrt(max(then, 0.0)), 1e-12)
        now = max(then, 0.0)
    return total


def _stoppable(x: Array, low: Array, high: Array, step: float, then: float) -> float:
    """Return the largest x from which x + step s̈ <= `then` at the next point; linear between grid points."""
    excess = np.where(low <= high, x + step * low - then, np.inf)
    beyond = np.flatnonzero(excess > 0.0)
    if not len(beyond):
        return float(x[-1])
    k = int(beyond[0])
    if k == 0:
        return 0.0
    share = 0.0 if np.isinf(excess[k]) else excess[k - 1] / (excess[k - 1] - excess[k])
    return float(x[k - 1] + share * (x[k] - x[k - 1]))


def _slopes(path: Differentiable, power: MotionPower, limits: ExcitationLimits, s: Array) -> tuple[Array, Array, Array]:
    """Return ``x = ṡ²`` (points, speeds) up to the speed limit, and the least and largest s̈ there."""
    q, tangent, bend = (path.curve(s, order) for order in range(3))
    top = (limits.speeds / np.maximum(np.abs(tangent @ limits.turning.T), TINY)).min(axis=1) ** 2
    x = top[:, None] * np.linspace(0.0, 1.0, GRID) ** 2
    shape = (*x.shape, q.shape[1])
    rows = [np.broadcast_to(each[:, None], shape).reshape(-1, shape[2]) for each in (q, tangent, bend)]
    speed, pull = rows[1] * np.sqrt(x).reshape(-1, 1), rows[2] * x.reshape(-1, 1)
    at = power.evaluate(rows[0], speed, pull)
    per = (1.0 + at.by_load) * (power.body_torque(rows[0], speed, pull + rows[1]) - at.body)
    low, high = _between(rows[1], pull, limits.motion.acceleration)
    low_torque, high_torque = _between(per, at.torque, limits.effort)
    return x, np.maximum(low, low_torque).reshape(x.shape), np.minimum(high, high_torque).reshape(x.shape)


def _between(slope: Array, offset: Array, limit: Array) -> tuple[Array, Array]:
    """Return the least and largest u (samples,) with ``|slope u + offset| <= limit`` in every joint."""
    flat = np.abs(slope) < TINY
    safe = np.where(flat, 1.0, slope)
    one, other = (-limit - offset) / safe, (limit - offset) / safe
    inside = np.where(flat, np.where(np.abs(offset) <= limit, np.inf, -np.inf), 0.0)
    low = np.where(flat, -inside, np.minimum(one, other)).max(axis=1)
    high = np.where(flat, inside, np.maximum(one, other)).min(axis=1)
    return low, high
