"""Exact derivatives of rigid-body functions with respect to a motion, by few shifted evaluations.

Torques and regressors are trigonometric polynomials of degree 2 in the angle of a joint (of degree 2 in the position of
a prismatic one), quadratic in q̇ and linear in q̈, so that differences at suitable shifts are derivatives without error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from jointwise.spatial import Array

SHIFTS = ((0.25 * np.pi, 0.5 * (np.sqrt(0.5) + 1.0)), (0.75 * np.pi, 0.5 * (np.sqrt(0.5) - 1.0)))
"""Shifts (rad) and weights with f'(q) = Σ w (f(q + s) - f(q - s)) for every trigonometric polynomial of degree 2."""

Rule = tuple[tuple[int, int, float, float], ...]
"""Evaluations for the derivatives: order (0 for q), joint, shift and weight."""


def derivative_rule(revolute: Iterable[bool]) -> Rule:
    """Return the evaluations for the derivatives with respect to q, q̇ and q̈ of joints that turn or slide."""
    central = ((1.0, 0.5),)
    rules: list[tuple[int, int, float, float]] = []
    for joint, turns in enumerate(revolute):
        pairs = [(0, s, w) for s, w in (SHIFTS if turns else central)]
        pairs += [(order, s, w) for order in (1, 2) for s, w in central]
        rules += [(order, joint, side * s, side * w) for order, s, w in pairs for side in (1.0, -1.0)]
    return tuple(rules)


def exact_gradient(
    rule: Rule, q: Array, qd: Array, qdd: Array, contracted: Callable[[Array, Array, Array], Array]
) -> Array:
    """Return the gradient (3, samples, joints) of a sum of rigid-body functions with respect to q, q̇, q̈.

    Args:
        rule: Of `derivative_rule`.
        q: Positions (samples, joints), rad or m.
        qd: Speeds.
        qdd: Accelerations.
        contracted: Returns the weighted function (evaluations, samples) at motions of (evaluations * samples, joints).

    """
    samples, dof = q.shape
    moved = np.repeat(np.stack([q, qd, qdd])[:, None], len(rule), axis=1)
    for k, (order, joint, shift, _) in enumerate(rule):
        moved[order, k, :, joint] += shift
    sums = contracted(*moved.reshape(3, -1, dof))
    result = np.zeros((3, samples, dof))
    for (order, joint, _, factor), total in zip(rule, sums, strict=True):
        result[order, :, joint] += factor * total
    return result
