"""What choices are worth: how far forces and limits move under treatments of the data that are as good.

Leaving out blocks tells how far the data of one treatment let the numbers move; it cannot see that a path smoothed in
another way, or limits that keep to no ladder, have other numbers, nor how sure the friction is that was taken as known.
Each question adds the mean of Δ² over its rivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.joint.hysteresis.given import given_rivals
from jointwise.joint.hysteresis.loops import Loops, Steady, known_rise, make_loops, steady_torque
from jointwise.joint.hysteresis.methods import Tried
from jointwise.joint.hysteresis.refine import Fit, refined
from jointwise.joint.hysteresis.shape import LADDERS
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

BESIDE = 3
"""Numbers beside forces and limits: F_C1, F_V, offset."""


@dataclass(frozen=True, eq=False)
class Moves:
    """ΔW_i (Nm) and Δln D_i from the fit to each rival of one question, (rivals, elements) each.

    `beside` (rivals, 3): ΔF_C1, ΔF_V (Nm s/rad) and Δoffset (Nm).
    """

    forces: Array
    limits: Array
    beside: Array

    @staticmethod
    def between(fit: Fit, rivals: Sequence[Fit]) -> Moves:
        """Return the moves to those rivals that have as many elements."""
        W, D = fit.element_forces, fit.shape.limits
        alike = [own for own in rivals if len(own.shape.limits) == len(D)]
        forces = np.array([own.element_forces - W for own in alike])
        limits = np.array([np.log(own.shape.limits / D) for own in alike])
        beside = np.array([_beside(own) - _beside(fit) for own in alike])
        size = len(alike), len(D)
        return Moves(forces.reshape(size), limits.reshape(size), beside.reshape(len(alike), BESIDE))


def _beside(fit: Fit) -> Array:
    return np.array([fit.shape.growth * float(fit.element_forces.sum()), fit.viscous, fit.offset])


def rival_moves(
    record: JointRecord, loops: Loops, tried: Tried, backlash: Array | None, steady: Steady | Part | None
) -> tuple[Moves, ...]:
    """Return how far a slip model moves with other paths, without a ladder, with other known friction; () for others.

    Other friction is as likely as the `steady` part: one deviation away along each axis of its covariance.
    """
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
    if isinstance(steady, Part):
        pairs = given_rivals(steady)
        questions += [Moves.between(fit, [_under(record, loops, fit, own, free) for own in pair]) for pair in pairs]
    return tuple(own for own in questions if len(own.forces))


def _under(record: JointRecord, loops: Loops, fit: Fit, steady: Part, free: tuple[str, ...]) -> Fit:
    """Return the fit with other friction over speed taken as known."""
    friction = record.friction - steady_torque(steady, record.speed, record.temperature)
    extra, speed = known_rise(steady) or (fit.shape.extra, fit.shape.speed)
    shape = replace(fit.shape, extra=extra, speed=speed)
    return refined(replace(loops, friction=friction), shape, free)


@dataclass(frozen=True, eq=False)
class Doubt:
    """Deviations that choices add: of W_i (Nm), ln D_i, ln k_i (elements,), F_C (Nm), F_C1, F_V and offset."""

    forces: Array
    limits: Array
    stiffness: Array
    total: float
    growth: float
    viscous: float
    offset: float


def doubt_of(moves: Sequence[Moves], forces: Array) -> Doubt:
    """Return what the moves of all questions add to the deviations; `forces` W_i (elements,) Nm."""
    growth, viscous, offset = _size([own.beside for own in moves], BESIDE).tolist()
    return Doubt(
        growth=growth,
        viscous=viscous,
        offset=offset,
        forces=_size([own.forces for own in moves], len(forces)),
        limits=_size([own.limits for own in moves], len(forces)),
        stiffness=_size([own.forces / forces - own.limits for own in moves], len(forces)),
        total=float(_size([own.forces.sum(axis=1, keepdims=True) for own in moves], 1)[0]),
    )


def _size(steps: Sequence[Array], count: int) -> Array:
    """Return the root of the sum over questions of the mean of Δ² over their rivals, (count,)."""
    result: Array = np.sqrt(sum((np.mean(np.square(own), axis=0) for own in steps), np.zeros(count)))
    return result
