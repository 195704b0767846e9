"""Friction without memory: sgn, tanh and the Stribeck curve of the speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from jointwise.joint.hysteresis.grams import NUISANCE, accumulate, ending, solve_forces
from jointwise.joint.hysteresis.loops import MOST_SAMPLES, Loops, Piece, beginning
from jointwise.spatial import Array

STATIC = ("sgn", "tanh", "stribeck")
WIDTHS = tuple(np.geomspace(5e-4, 0.1, 12).tolist())
"""Speeds (rad/s) that are tried for the turn of tanh and for the fall of the Stribeck curve."""


@dataclass(frozen=True, eq=False)
class StaticFit:
    """A fitted map: `model`, `width` (rad/s), `forces` >= 0 (Nm; Nm per Nm^p), viscous, offset, squared error.

    `power` p of the load, 0 where friction does not depend on it.
    `grams`: normal equations of the residual, without the columns of forces that are zero.
    """

    model: str
    width: float
    power: float
    forces: Array
    inertia: float
    viscous: float
    offset: float
    error: float
    grams: Array


def static_columns(model: str, width: float, power: float, speed: Array, torque: Array) -> list[Array]:
    """Return ``h(ω)`` (sgn or tanh(ω/width)), for Stribeck also ``sgn ω exp(-|ω|/width)``; ``|τ|^p h(ω)`` with load."""
    direction = np.tanh(speed / width) if model == "tanh" else np.sign(speed)
    columns = [direction, np.abs(torque) ** power * direction] if power else [direction]
    return [*columns, direction * np.exp(-np.abs(speed) / width)] if model == "stribeck" else columns


def fit_static(loops: Loops, model: str, power: float) -> StaticFit:
    """Return the map with the best width: a coarse scan, then the minimum next to its best."""
    if model == "sgn":
        return _fit(loops, model, 1.0, power)
    part = beginning(loops, MOST_SAMPLES)
    errors = [_fit(part, model, own, power).error for own in WIDTHS]
    best = int(np.argmin(errors))
    bounds = np.log([WIDTHS[max(best - 1, 0)], WIDTHS[min(best + 1, len(WIDTHS) - 1)]])

    def error(log_width: float) -> float:
        return _fit(part, model, float(np.exp(log_width)), power).error

    found = minimize_scalar(error, bounds=tuple(bounds), method="bounded", options={"xatol": 0.02})
    return _fit(loops, model, float(np.exp(found.x)), power)


def _fit(loops: Loops, model: str, width: float, power: float) -> StaticFit:
    def make(piece: Piece) -> Array:
        own = static_columns(model, width, power, loops.speed[piece.rows], loops.load[piece.rows])
        return np.column_stack([*own, *ending(loops, piece)])

    grams = accumulate(loops, make)
    found, error = solve_forces(grams.sum(axis=0), grams.shape[1] - 1 - NUISANCE)
    inertia, viscous, offset = (float(own) for own in found[-NUISANCE:])
    used = used_columns(found)
    left = as_residual(grams, found)[:, used[:, None], used[None]]
    return StaticFit(model, width, power, found[:-NUISANCE], inertia, viscous, offset, error, left)


def used_columns(found: Array) -> NDArray[np.intp]:
    """Return the columns of a solution whose forces are not zero, those beside them and the residual."""
    return np.flatnonzero(np.concatenate([found[:-NUISANCE] > 0.0, np.ones(NUISANCE + 1, dtype=bool)]))


def as_residual(grams: Array, found: Array) -> Array:
    """Return normal equations (blocks, p, p) with the residual of a solution as their last column."""
    turn = np.eye(grams.shape[1])
    turn[:-1, -1] = -found
    result: Array = turn.T @ grams @ turn
    return result
