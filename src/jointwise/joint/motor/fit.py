"""Fit of drive gains and a payload: the difference of the currents under one law of friction over load.

``y_j = g_j (a_j + B_j x) + F_j f_j`` over all joints j at once, with the inverse gains g, the unknown parameters x of
the payload, and friction F_j f_j. Gauss-Newton on normal products, as the sum over samples does not depend on g and x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.estimation.cross_validation import held_out_predictions, unit_folds
from jointwise.estimation.gram import normal_solution
from jointwise.joint.motor.data import BODY, PayloadData
from jointwise.joint.quality import nrmse_percent
from jointwise.model.friction import LOAD_POWERS, load_growth
from jointwise.spatial import Array

LEVER = 0.2
"""Rough distance (m) of a payload from the flange: the scale of its first moments and inertia, a weak prior."""
ASYMMETRIC = ", asymmetric"
"""Suffix of a load law whose growth differs with the direction of motion."""
ASYMMETRY = 0.1
"""That difference, as a fraction. It looks like a gain, so its effect on the gains widens their intervals."""
REWEIGHTINGS = 3
"""Solutions with updated weights and friction under load; the third changes the gains by less than 0.1 %."""
MIN_VARIANCE = 1e-12
"""Smallest variance (A²) of a current for its weight: a simulated one may fit to rounding."""
MAX_STEPS = 40
"""Gauss-Newton steps."""
CONVERGED = 1e-10
"""Relative reduction of the cost below which the solution has converged."""
HALVINGS = 12
"""How often a step is halved until it reduces the cost."""
SINGULAR = 1e-13
"""Relative singular value of the normal equations below which a direction is left out."""


# -- normal products -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Products:
    """Normal products of a data set: `grams` (joints, columns, columns) of ``[a | B | F | y]``.

    `groups` (joints,): joints with the same number share a gain. `scales` (9,): rough sizes of x, a prior with the
    weight of one sample each.
    """

    grams: Array
    groups: NDArray[np.intp]
    scales: Array


@dataclass(frozen=True, eq=False)
class GainSolution:
    """Inverse `gains` g (joints,) in A/Nm, parameters `body` x (9,) of the payload, `friction` f (joints, columns)."""

    gains: Array
    body: Array
    friction: Array

    def coefficients(self) -> Array:
        """Return the coefficients (joints, columns) of ``[a | B | F]``."""
        return np.column_stack([np.outer(self.gains, np.append(1.0, self.body)), self.friction])


def solve(products: Products, weights: Array, start: GainSolution | None = None) -> GainSolution:
    """Return the least-squares solution with `weights` 1/σ² (joints,): Gauss-Newton steps, halved until they help."""
    solution = _one_gain(products, weights) if start is None else start
    cost = _cost(products, weights, solution)
    for _ in range(MAX_STEPS):
        step = _step(products, weights, solution)
        moved, lower = _improved(products, weights, solution, step, cost)
        if moved is None or cost - lower <= CONVERGED * abs(cost):
            return solution if moved is None else moved
        solution, cost = moved, lower
    return solution


def _squares(products: Products, solution: GainSolution) -> Array:
    """Return the sums of squared residuals (joints,)."""
    c = np.column_stack([solution.coefficients(), -np.ones(len(solution.gains))])
    result: Array = np.einsum("ja,jab,jb->j", c, products.grams, c)
    return result


def _cost(products: Products, weights: Array, solution: GainSolution) -> float:
    prior = float(np.sum((solution.body / products.scales) ** 2))
    return float(weights @ _squares(products, solution)) + prior


def _one_gain(products: Products, weights: Array) -> GainSolution:
    """Return the solution with one gain for all joints: linear in (g, g x), so it has a single minimum."""
    joints, columns = products.grams.shape[:2]
    friction = columns - BODY - 2
    size = BODY + 1 + joints * friction
    H, b = np.zeros((size, size)), np.zeros(size)
    for j, gram in enumerate(products.grams):
        at = np.r_[: BODY + 1, BODY + 1 + j * friction : BODY + 1 + (j + 1) * friction]
        H[np.ix_(at, at)] += weights[j] * gram[:-1, :-1]
        b[at] += weights[j] * gram[:-1, -1]
    x = normal_solution(H, b, SINGULAR)
    gain = x[0] if x[0] != 0.0 else 1.0
    return GainSolution(np.full(joints, gain), x[1 : BODY + 1] / gain, x[BODY + 1 :].reshape(joints, friction))


def _step(products: Products, weights: Array, solution: GainSolution) -> Array:
    """Return the Gauss-Newton step of (gains of groups, body, friction)."""
    joints, columns = products.grams.shape[:2]
    count = int(products.groups.max()) + 1
    friction = columns - BODY - 2
    size = count + BODY + joints * friction
    H, b = np.zeros((size, size)), np.zeros(size)
    for j, (gram, coefficients) in enumerate(zip(products.grams, solution.coefficients(), strict=True)):
        J = np.zeros((columns - 1, size))
        J[0, products.groups[j]] = 1.0
        J[1 : BODY + 1, products.groups[j]] = solution.body
        J[1 : BODY + 1, count : count + BODY] = solution.gains[j] * np.eye(BODY)
        start = count + BODY + j * friction
        J[BODY + 1 :, start : start + friction] = np.eye(friction)
        H += weights[j] * J.T @ gram[:-1, :-1] @ J
        b += weights[j] * J.T @ (gram[:-1, -1] - gram[:-1, :-1] @ coefficients)
    body = np.arange(count, count + BODY)
    H[body, body] += products.scales**-2.0
    b[body] -= solution.body / products.scales**2
    return normal_solution(H, b, SINGULAR)


def _improved(
    products: Products, weights: Array, solution: GainSolution, step: Array, cost: float
) -> tuple[GainSolution | None, float]:
    """Return the solution after the longest of the halved steps that reduces the cost, and its cost."""
    count = int(products.groups.max()) + 1
    for fraction in 0.5 ** np.arange(float(HALVINGS)):
        moved = GainSolution(
            solution.gains + fraction * step[:count][products.groups],
            solution.body + fraction * step[count : count + BODY],
            solution.friction + fraction * step[count + BODY :].reshape(solution.friction.shape),
        )
        lower = _cost(products, weights, moved)
        if lower < cost:
            return moved, lower
    return None, cost


# -- fit of one law --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GainFit:
    """Fit under one load law.

    Attributes:
        law: "none", "absolute" or "square".
        grams: Normal products (blocks, joints, columns, columns).
        weights: 1/σ² (joints,), 1/A².
        solution: GainSolution over all blocks.
        modelled: Modelled difference of the currents (samples, joints), A.
        payload: Torque of the payload (samples, joints), Nm.
        fitted: NRMSE fit of every joint, %.
        held_out: The same on held-out data, %.
        error: Mean over the joints of the logarithm of the held-out mean squared error.
    """

    law: str
    grams: Array
    weights: Array
    solution: GainSolution
    modelled: Array
    payload: Array
    fitted: Array
    held_out: Array
    error: float


def fit_payload(data: PayloadData, law: str, known: GainFit | None = None) -> GainFit:
    """Return the fit under a load law; weights and friction under load are those of the solution before.

    With a `known` fit they are those of that fit.
    """
    weights = 1.0 / _deviation(data) ** 2 if known is None else known.weights
    body = np.zeros(BODY) if known is None else known.solution.body
    solution: GainSolution | None = None
    for _ in range(REWEIGHTINGS if known is None else 1):
        columns = _columns(data, law, body)
        grams = _products(data, columns)
        products = Products(grams.sum(axis=0), np.arange(data.joints), body_scales(data.mass))
        solution = solve(products, weights, solution)
        variance = np.maximum(_squares(products, solution), 0.0) / np.maximum(data.used.sum(axis=0), 1)
        weights, body = 1.0 / np.maximum(variance, MIN_VARIANCE), solution.body
    assert solution is not None
    modelled = _modelled(columns, solution)
    predicted = _predicted(data, columns, grams, weights, solution)
    return GainFit(
        law=law,
        grams=grams,
        weights=weights,
        solution=solution,
        modelled=modelled,
        payload=data.known + data.body @ body,
        fitted=_qualities(data, modelled),
        held_out=_qualities(data, predicted),
        error=float(np.log(_errors(data, predicted)).mean()),
    )


def _columns(data: PayloadData, law: str, body: Array) -> Array:
    """Return ``[m a + Δ | B | F]`` (samples, joints, columns); F: friction of every pair, and growth with the load."""
    payload = data.known + data.body @ body
    steady = [data.direction, data.speed, np.ones_like(data.speed)]
    friction = [np.where((data.pair == k)[:, None], values, 0.0) for k in np.unique(data.pair) for values in steady]
    if law != "none":
        power = LOAD_POWERS[law.removesuffix(ASYMMETRIC)]
        growth = load_growth(data.base + payload, power) - load_growth(data.base, power)
        friction.append((data.direction + (ASYMMETRY if law.endswith(ASYMMETRIC) else 0.0)) * growth)
    return np.concatenate([data.known[..., None], data.body, np.stack(friction, axis=-1)], axis=-1)


def _products(data: PayloadData, columns: Array) -> Array:
    """Return the normal products (blocks, joints, columns + 1, columns + 1) of the samples in motion."""
    whole = np.concatenate([columns, data.difference[..., None]], axis=-1)
    grams = np.empty((data.blocks, data.joints, whole.shape[2], whole.shape[2]))
    for block in range(data.blocks):
        inside = data.block == block
        for j in range(data.joints):
            rows = whole[inside & data.used[:, j], j]
            grams[block, j] = rows.T @ rows
    return grams


def _predicted(data: PayloadData, columns: Array, grams: Array, weights: Array, solution: GainSolution) -> Array:
    """Return the prediction (samples, joints) of every block by a fit to the other folds."""

    def predict(training: NDArray[np.bool_]) -> Array:
        gram = grams[np.unique(data.block[training])].sum(axis=0)
        products = Products(gram, np.arange(data.joints), body_scales(data.mass))
        return _modelled(columns, solve(products, weights, solution))

    return held_out_predictions(unit_folds(data.block), predict)


def _modelled(columns: Array, solution: GainSolution) -> Array:
    result: Array = np.einsum("sjc,jc->sj", columns, solution.coefficients())
    return result


def body_scales(mass: float) -> Array:
    """Return rough sizes of the inertia (6, kg m²) and first moments (3, kg m) of a payload."""
    return np.array([mass * LEVER**2] * 6 + [mass * LEVER] * 3)


def _deviation(data: PayloadData) -> Array:
    return np.array([data.difference[used, j].std() for j, used in enumerate(data.used.T)])


def _qualities(data: PayloadData, modelled: Array) -> Array:
    """Return the NRMSE fit (%) of every joint over its samples in motion."""
    pairs = enumerate(data.used.T)
    return np.array([nrmse_percent(data.difference[used, j], modelled[used, j]) for j, used in pairs])


def _errors(data: PayloadData, modelled: Array) -> Array:
    """Return the mean squared error (joints,) over the samples in motion, A²."""
    squares = (data.difference - modelled) ** 2
    return np.array([squares[used, j].mean() for j, used in enumerate(data.used.T)])
