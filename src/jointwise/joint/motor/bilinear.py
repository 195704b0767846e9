"""Gains and a body from products of both: ``y_j = g_j (a_j + B_j x) + F_j f_j`` over all joints j at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.normal import normal_solution
from jointwise.spatial import Array

BODY = 9
"""Unknowns of the body: six of inertia, three first moments."""
ROUNDS = 40
CLOSE = 1e-10


@dataclass(frozen=True, eq=False)
class Products:
    """Normal products of one data set: `grams` (joints, columns, columns) of ``[a | B | F | y]``.

    `groups` (joints,) tells which joints share a gain; `scales` (9,) are rough sizes of x, a prior of one sample each.
    """

    grams: Array
    groups: NDArray[np.intp]
    scales: Array


@dataclass(frozen=True, eq=False)
class Solution:
    """`gains` g (joints,), the body x (9,) and the rest f (joints, columns)."""

    gains: Array
    body: Array
    rest: Array

    def coefficients(self) -> Array:
        """Return the coefficients (joints, columns) of ``[a | B | F]``."""
        shared = np.outer(self.gains, np.append(1.0, self.body))
        return np.column_stack([shared, self.rest])


def solve(products: Products, weights: Array, start: Solution | None = None) -> Solution:
    """Return the least-squares solution with `weights` 1/σ² (joints,): Gauss-Newton steps, halved until they help."""
    now = _first(products, weights) if start is None else start
    cost = _cost(products, weights, now)
    for _ in range(ROUNDS):
        step = _step(products, weights, now)
        moved, lower = _improved(products, weights, now, step, cost)
        if moved is None or cost - lower <= CLOSE * abs(cost):
            return now if moved is None else moved
        now, cost = moved, lower
    return now


def residual_variances(products: Products, solution: Solution, samples: Array) -> Array:
    """Return the mean square residual (joints,) over numbers of samples (joints,)."""
    return np.maximum(_squares(products, solution), 0.0) / np.maximum(samples, 1)


def _squares(products: Products, solution: Solution) -> Array:
    c = np.column_stack([solution.coefficients(), -np.ones(len(solution.gains))])
    result: Array = np.einsum("ja,jab,jb->j", c, products.grams, c)
    return result


def _cost(products: Products, weights: Array, solution: Solution) -> float:
    prior = float(np.sum((solution.body / products.scales) ** 2))
    return float(weights @ _squares(products, solution)) + prior


def _first(products: Products, weights: Array) -> Solution:
    """Return the solution with one gain for all joints: linear in (g, g x), so it has no wrong turns."""
    joints, columns = products.grams.shape[:2]
    own, size = columns - BODY - 2, BODY + 1 + joints * (columns - BODY - 2)
    H, b = np.zeros((size, size)), np.zeros(size)
    for j, gram in enumerate(products.grams):
        place = np.r_[: BODY + 1, BODY + 1 + j * own : BODY + 1 + (j + 1) * own]
        H[np.ix_(place, place)] += weights[j] * gram[:-1, :-1]
        b[place] += weights[j] * gram[:-1, -1]
    found = normal_solution(H, b, 1e-13)
    gain = found[0] if found[0] != 0.0 else 1.0
    rest = found[BODY + 1 :].reshape(joints, own)
    return Solution(np.full(joints, gain), found[1 : BODY + 1] / gain, rest)


def _step(products: Products, weights: Array, now: Solution) -> Array:
    """Return the Gauss-Newton step of (gains of groups, body, rest)."""
    joints, columns = products.grams.shape[:2]
    count = int(products.groups.max()) + 1
    own = columns - BODY - 2
    size = count + BODY + joints * own
    H, b = np.zeros((size, size)), np.zeros(size)
    for j, (gram, p) in enumerate(zip(products.grams, now.coefficients(), strict=True)):
        J = np.zeros((columns - 1, size))
        J[0, products.groups[j]] = 1.0
        J[1 : BODY + 1, products.groups[j]] = now.body
        J[1 : BODY + 1, count : count + BODY] = now.gains[j] * np.eye(BODY)
        place = count + BODY + j * own
        J[BODY + 1 :, place : place + own] = np.eye(own)
        H += weights[j] * J.T @ gram[:-1, :-1] @ J
        b += weights[j] * J.T @ (gram[:-1, -1] - gram[:-1, :-1] @ p)
    body = np.arange(count, count + BODY)
    H[body, body] += products.scales**-2.0
    b[body] -= now.body / products.scales**2
    return normal_solution(H, b, 1e-13)


def _improved(
    products: Products, weights: Array, now: Solution, step: Array, cost: float
) -> tuple[Solution | None, float]:
    count = int(products.groups.max()) + 1
    for part in 0.5 ** np.arange(12.0):
        moved = Solution(
            now.gains + part * step[:count][products.groups],
            now.body + part * step[count : count + BODY],
            now.rest + part * step[count + BODY :].reshape(now.rest.shape),
        )
        lower = _cost(products, weights, moved)
        if lower < cost:
            return moved, lower
    return None, cost
