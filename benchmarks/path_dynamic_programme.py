"""The least energy along a straight path in a fixed time, by a dynamic programme over path position and speed.

It shares the torque and power of a motion with the optimiser, and nothing of its search: positions and speeds are on a
grid, accelerations constant between two positions, and a price on time meets the duration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.design.excitation_limits import ExcitationLimits
from jointwise.design.piecewise import Piece, Piecewise, join
from jointwise.energy.motion_power import WIDTH, MotionPower
from jointwise.energy.motion_space import StraightPath
from jointwise.energy.motion_task import ramp_limits
from jointwise.spatial import Array

LOADS = 33
"""Loads at which friction is tabulated."""


@dataclass(frozen=True)
class PathOptimum:
    """Least energy (J) from the bus in the duration (s), and speeds at equally spaced points of the path."""

    energy: float
    duration: float
    speeds: Array


def path_optimum(
    power: MotionPower,
    path: StraightPath,
    duration: float,
    limits: ExcitationLimits,
    points: int = 100,
    speeds: int = 160,
) -> PathOptimum:
    """Return the optimum of the programme for a duration (s): `points` intervals of the path, `speeds` at each."""
    top = min(ramp_limits(path, limits)[0], 3.0 / duration)
    v = np.linspace(0.0, top, speeds)
    costs, times = _stages(power, path, limits, v, points)
    low, high = -1e4, 1e5
    for _ in range(60):
        price = 0.5 * (low + high)
        chosen = _cheapest(costs + price * times)
        total = _sum(times, chosen)
        low, high = (price, high) if total > duration else (low, price)
    slow, fast = _cheapest(costs + low * times), _cheapest(costs + high * times)
    T, E = ([_sum(each, chosen) for chosen in (slow, fast)] for each in (times, costs))
    share = 0.0 if T[0] == T[1] else (T[0] - duration) / (T[0] - T[1])
    return PathOptimum(E[0] + share * (E[1] - E[0]), duration, v[fast])


def _stages(
    power: MotionPower, path: StraightPath, limits: ExcitationLimits, v: Array, points: int
) -> tuple[Array, Array]:
    """Return energy (J) and time (s), (points, speeds, speeds), from a speed to the next; infinite beyond a limit."""
    ds = 1.0 / points
    mean = 0.5 * (v[:, None] + v[None])
    pull = (v[None] ** 2 - v[:, None] ** 2) / (2.0 * ds)
    time = np.where(mean > 0.0, ds / np.maximum(mean, 1e-12), np.inf)
    middle = path.curve(np.linspace(0.5 * ds, 1.0 - 0.5 * ds, points), 0)
    step = np.broadcast_to(path.step, middle.shape)
    none = np.zeros_like(middle)
    weight = power.body_torque(middle, none, none)
    inertia = power.body_torque(middle, none, step.copy()) - weight
    bend = power.body_torque(middle, step.copy(), none) - weight
    friction = _FrictionTable(power, path, mean, np.abs(weight).max(axis=0) + 50.0)
    allowed = (np.abs(path.step * pull[..., None]) <= limits.motion.acceleration).all(axis=-1) & (mean > 0.0)
    costs = np.full((points, *mean.shape), np.inf)
    for i in range(points):
        body = inertia[i] * pull[..., None] + bend[i] * (mean**2)[..., None] + weight[i]
        torque = body + friction.at(body) + power.offset
        current = (torque / np.array(power.power.gains)).reshape(-1, len(path.step))
        speed = np.multiply.outer(mean, path.step).reshape(-1, len(path.step))
        energy = power.power.power(current, speed).reshape(mean.shape) * time
        costs[i] = np.where(allowed & (np.abs(torque) <= limits.effort).all(axis=-1), energy, np.inf)
    times = np.broadcast_to(np.where(allowed, time, 1e9), costs.shape)
    return costs, times


class _FrictionTable:
    """Friction at the mean speeds of all transitions, tabulated over the load and interpolated."""

    def __init__(self, power: MotionPower, path: StraightPath, mean: Array, most: Array) -> None:
        """Tabulate the friction at all mean speeds (1/s) and up to the loads `most` (joints,), Nm."""
        speeds, self._which = np.unique(mean, return_inverse=True)
        self._most, self._share = most, np.linspace(-1.0, 1.0, LOADS)
        v = np.multiply.outer(speeds, path.step)
        v = np.where(v == 0.0, 1e-9, v)
        rows = [power.friction(v, np.broadcast_to(share * most, v.shape).copy()) for share in self._share]
        self._table = np.tanh(np.abs(v) / WIDTH)[None] * np.stack(rows)  # (loads, speeds, joints)

    def at(self, body: Array) -> Array:
        """Return the friction (speeds, speeds, joints), Nm, at body torques of the same shape."""
        place = np.clip((body / self._most + 1.0) * 0.5 * (LOADS - 1), 0.0, LOADS - 1.001)
        k = place.astype(int)
        share = place - k
        speed = self._which.reshape(body.shape[:-1])[..., None]
        joint = np.arange(body.shape[-1])
        result: Array = (1.0 - share) * self._table[k, speed, joint] + share * self._table[k + 1, speed, joint]
        return result


def _cheapest(costs: Array) -> Array:
    """Return the indices of the speeds (points + 1,) from rest to rest with the least sum of costs."""
    points, speeds = costs.shape[:2]
    value = np.full(speeds, np.inf)
    value[0] = 0.0
    best = np.empty((points, speeds), dtype=int)
    for i in range(points - 1, -1, -1):
        total = costs[i] + value[None]
        best[i] = np.argmin(total, axis=1)
        value = total[np.arange(speeds), best[i]]
    chosen = [0]
    for i in range(points):
        chosen.append(int(best[i, chosen[-1]]))
    return np.array(chosen)


def _sum(values: Array, chosen: Array) -> float:
    return float(values[np.arange(len(values)), chosen[:-1], chosen[1:]].sum())


def as_motion(path: StraightPath, speeds: Array, duration: float) -> Piecewise:
    """Return the motion of an optimum, scaled in time to the duration (s)."""
    ds = 1.0 / (len(speeds) - 1)
    lengths = 2.0 * ds / (speeds[:-1] + speeds[1:])
    factor = duration / lengths.sum()
    pieces = []
    for k, (v, length) in enumerate(zip(speeds / factor, lengths * factor, strict=False)):
        pull = (speeds[k + 1] - speeds[k]) / factor / length
        powers = np.array([k * ds, v, 0.5 * pull])
        rows = np.multiply.outer(powers, path.step)
        rows[0] += path.begin
        pieces.append(Piece(float(length), rows))
    return join(pieces, smooth=False)
