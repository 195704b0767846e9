"""Local refinement: Levenberg-Marquardt on limits and level, forces solved anew at every point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointwise.joint.hysteresis.grams import NUISANCE, force_grams, slope_grams, solve_forces
from jointwise.joint.hysteresis.loops import Loops
from jointwise.joint.hysteresis.shape import Shape
from jointwise.spatial import Array

MOST_STEPS = 25
ENOUGH = 1e-7
"""Relative gain of a step below which the search ends."""
SPEEDS = (2e-3, 1.0)
"""Range of the speed V (rad/s) of the rise towards standstill."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted slip model: `shape`, free `forces` (Nm), what stands beside them, squared error (Nm²).

    `inertia` (kg m², that of the rotor where it is not described), `viscous` (Nm s/rad), `offset` (Nm).
    """

    shape: Shape
    forces: Array
    inertia: float
    viscous: float
    offset: float
    error: float
    samples: int

    @property
    def element_forces(self) -> Array:
        """Forces of the elements, Nm."""
        return self.shape.spread(self.forces)


def fit_forces(loops: Loops, shape: Shape) -> Fit:
    """Return the fit of non-negative forces, viscous friction and offset for a shape."""
    gram = force_grams(loops, shape).sum(axis=0)
    found, error = solve_forces(gram, shape.forces)
    inertia, viscous, offset = (float(own) for own in found[-NUISANCE:])
    return Fit(shape, found[:-NUISANCE], inertia, viscous, offset, error, round(gram[-2, -2]))


def refined(loops: Loops, start: Shape, free: tuple[str, ...]) -> Fit:
    """Return the best fit from a start on; `free` as in `slope_grams`. Elements whose force is zero are left out."""
    best, damping = pruned(loops, fit_forces(loops, start)), 1e-3
    if not free:
        return best
    for _ in range(MOST_STEPS):
        step = _step(loops, best, free, damping)
        tried = pruned(loops, fit_forces(loops, _moved(best.shape, step, free, loops)))
        gain = best.error - tried.error
        damping = max(damping / 5.0, 1e-9) if gain > 0.0 else damping * 10.0
        best = tried if gain > 0.0 else best
        if (0.0 <= gain < ENOUGH * best.error) or damping > 1e6:
            break
    return best


def pruned(loops: Loops, fit: Fit) -> Fit:
    """Return the fit without elements that carry nothing; tied elements stay."""
    kept = fit.forces > 1e-9 * max(float(fit.forces.sum()), 1e-300)
    if fit.shape.mix is not None or kept.all() or not kept.any():
        return fit
    return fit_forces(loops, fit.shape.only(kept))


def residual_grams(loops: Loops, fit: Fit, free: tuple[str, ...]) -> Array:
    """Return `slope_grams` at a fit, its last column the residual instead of the friction."""
    grams = slope_grams(loops, fit.shape, fit.forces, free)
    turn = np.eye(grams.shape[1])
    turn[: len(fit.forces), -1] = -fit.forces
    turn[-1 - NUISANCE : -1, -1] = -fit.inertia, -fit.viscous, -fit.offset
    result: Array = turn.T @ grams @ turn
    return result


def _step(loops: Loops, fit: Fit, free: tuple[str, ...], damping: float) -> Array:
    """Return the change of the free part of the shape (not of the forces)."""
    gram = residual_grams(loops, fit, free).sum(axis=0)
    A, b = gram[:-1, :-1], gram[:-1, -1]
    size = np.sqrt(np.maximum(np.diag(A), 1e-300))
    scaled = A / np.outer(size, size) + damping * np.eye(len(A))
    result: Array = (np.linalg.solve(scaled, b / size) / size)[len(fit.forces) : -NUISANCE]
    return result


def _moved(shape: Shape, step: Array, free: tuple[str, ...], loops: Loops) -> Shape:
    """Return the shape after a step, kept within the range that the data can tell; limits stay in order."""
    rest = list(step)
    if "limits" in free:
        count = len(shape.limits)
        logs = np.log(shape.limits) + np.clip(rest[:count], -1.0, 1.0)
        limits = np.sort(np.clip(np.exp(logs), 0.5 * loops.smallest, loops.largest))
        for i in range(1, count):
            limits[i] = max(limits[i], limits[i - 1] + loops.resolution, limits[i - 1] * (1.0 + 1e-6))
        shape, rest = replace(shape, limits=limits), rest[count:]
    if "growth" in free:
        shape, rest = replace(shape, growth=max(shape.growth + rest[0], 0.0)), rest[1:]
    if "extra" in free:
        speed = float(np.clip(shape.speed * np.exp(np.clip(rest[1], -1.0, 1.0)), *SPEEDS))
        shape = replace(shape, extra=float(np.clip(shape.extra + rest[0], -0.9, 5.0)), speed=speed)
    return shape
