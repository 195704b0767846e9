"""What choices are worth: how far forces and limits move under treatments of the data that are as good.

Leaving out blocks tells how far the data of one treatment let the numbers move; it cannot see that a path smoothed in
another way, or limits that keep to no ladder, have other numbers. Each question adds the mean of Δ² over its rivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.joint.hysteresis.loops import Loops, Steady, make_loops
from jointwise.joint.hysteresis.methods import Tried
from jointwise.joint.hysteresis.refine import Fit, refined
from jointwise.joint.hysteresis.shape import LADDERS
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array


@dataclass(frozen=True, eq=False)
class Moves:
    """ΔW_i (Nm) and Δln D_i from the fit to each rival of one question, (rivals, elements) each."""

    forces: Array
    limits: Array

    @staticmethod
    def between(fit: Fit, rivals: Sequence[Fit]) -> Moves:
        """Return the moves to those rivals that have as many elements."""
        W, D = fit.element_forces, fit.shape.limits
        alike = [own for own in rivals if len(own.shape.limits) == len(D)]
        forces = np.array([own.element_forces - W for own in alike])
        limits = np.array([np.log(own.shape.limits / D) for own in alike])
        return Moves(forces.reshape(len(alike), len(D)), limits.reshape(len(alike), len(D)))


def rival_moves(
    record: JointRecord, loops: Loops, tried: Tried, backlash: Array | None, steady: Steady | Part | None
) -> tuple[Moves, ...]:
    """Return how far a slip model moves with other paths, and where its limits keep to no ladder; () for others."""
    fit = tried.fit
    if fit is None:
        return ()
    free = tuple(name for name in tried.free if name != "scale")
    paths = [record.position] if record.theta is None else [record.position, record.theta]
    others = [make_loops(replace(record, path=path), backlash, steady) for path in paths]
    questions = [Moves.between(fit, [refined(own, fit.shape, free) for own in others])]
    if tried.method in LADDERS:
        loose = replace(fit.shape, mix=None)
        questions.append(Moves.between(fit, [refined(loops, loose, ("limits", *free))]))
    return tuple(own for own in questions if len(own.forces))


@dataclass(frozen=True, eq=False)
class Doubt:
    """Deviations that choices add: of W_i (Nm), ln D_i, ln k_i (elements,), and F_C (Nm)."""

    forces: Array
    limits: Array
    stiffness: Array
    total: float


def doubt_of(moves: Sequence[Moves], forces: Array) -> Doubt:
    """Return what the moves of all questions add to the deviations; `forces` W_i (elements,) Nm."""
    return Doubt(
        forces=_size([own.forces for own in moves], len(forces)),
        limits=_size([own.limits for own in moves], len(forces)),
        stiffness=_size([own.forces / forces - own.limits for own in moves], len(forces)),
        total=float(_size([own.forces.sum(axis=1, keepdims=True) for own in moves], 1)[0]),
    )


def _size(steps: Sequence[Array], count: int) -> Array:
    """Return the root of the sum over questions of the mean of Δ² over their rivals, (count,)."""
    result: Array = np.sqrt(sum((np.mean(np.square(own), axis=0) for own in steps), np.zeros(count)))
    return result
