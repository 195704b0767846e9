"""Fit of drive gains and a payload: the difference of the currents under one law of friction over load.

``y_j = g_j (a_j + B_j x) + F_j f_j`` over all joints j at once, with the inverse gains g, the unknown parameters x of
the payload, and friction F_j f_j. Solved on normal products, as the sum over samples does not depend on g and x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from jointwise.estimation.cross_validation import held_out_predictions, unit_errors
from jointwise.estimation.gram import normal_solution
from jointwise.joint.motor.data import BODY, PayloadData
from jointwise.joint.part import TINY, nrmse_percent
from jointwise.model.terms import LOAD_POWERS, load_growth
from jointwise.spatial import Array

LEVER = 0.2
"""Rough distance (m) of a payload from the flange: the scale of its first moments and inertia, a weak prior."""
ASYMMETRIC = ", asymmetric"
"""Suffix of a load law whose growth differs with the direction of motion."""
ASYMMETRY = 0.1
"""That difference, as a fraction. It looks like a gain, so its effect on the gains widens their intervals."""
REWEIGHTINGS = 3
"""Solutions with updated weights and friction under load; the third changes the gains by less than 0.1 %."""


# -- normal products -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Products:
    """Normal products of a data set.

    Attributes:
        grams: Gram matrices of the columns ``[a | B | F | y]``, (joints, columns, columns).
        groups: Group of every joint, (joints,); joints of one group share a gain.
        scales: Rough sizes of x, a prior with the weight of one sample each, (9,): six of the inertia in kg m², three
            first moments in kg m.
    """

    grams: Array
    groups: NDArray[np.intp]
    scales: Array


@dataclass(frozen=True, eq=False)
class GainSolution:
    """Gains, payload and friction that solve the normal products.

    Attributes:
        gains: Inverse gains g, (joints,), A/Nm.
        body: Parameters x of the payload, (9,): six of its inertia in kg m², three first moments in kg m.
        friction: Factors f of the friction columns, (joints, columns), A per unit of a column.
    """

    gains: Array
    body: Array
    friction: Array

    def coefficients(self) -> Array:
        """Return the coefficients (joints, columns) of ``[a | B | F]``."""
        return np.column_stack([np.outer(self.gains, np.append(1.0, self.body)), self.friction])


def solve(products: Products, weights: Array, start: GainSolution | None = None) -> GainSolution:
    """Return the least-squares solution with `weights` 1/σ² (joints,).

    Friction is linear and eliminated from the normal products of every joint; what remains is bilinear in g and x.
    Without a `start` the search begins with one gain for all joints, which is linear in (g, g x).
    """
    kept = np.r_[: BODY + 1, products.grams.shape[1] - 1]
    roots = np.sqrt(weights)[:, None, None] * np.array([_root(gram, kept) for gram in products.grams])
    groups, count = products.groups, int(products.groups.max()) + 1

    def residual(unknowns: Array) -> Array:
        g, x = unknowns[:count][groups], unknowns[count:]
        coefficients = np.column_stack([np.outer(g, np.append(1.0, x)), -np.ones(len(g))])
        return np.append(np.einsum("jab,jb->ja", roots, coefficients).ravel(), x / products.scales)

    members = np.unique(groups, return_index=True)[1]
    first = _one_gain(roots, count) if start is None else np.append(start.gains[members], start.body)
    found = least_squares(residual, first, method="lm", x_scale="jac").x
    gains, body = found[:count][groups], found[count:]
    return GainSolution(gains, body, _friction(products, gains, body))


def _one_gain(roots: Array, count: int) -> Array:
    """Return `count` equal gains and x: one gain for all joints is linear in (g, g x), so it has a single minimum."""
    rows = roots.reshape(-1, BODY + 2)
    found = np.linalg.lstsq(rows[:, :-1], rows[:, -1])[0]
    gain = found[0] or 1.0
    return np.append(np.full(count, gain), found[1:] / gain)


def _friction(products: Products, gains: Array, body: Array) -> Array:
    """Return the least-squares friction f (joints, columns) for known gains and payload."""
    F, torque = slice(BODY + 1, -1), slice(BODY + 1)
    known = np.outer(gains, np.append(1.0, body))
    pairs = zip(products.grams, known, strict=True)
    return np.array([normal_solution(G[F, F], G[F, -1] - G[F, torque] @ c) for G, c in pairs])


def _root(gram: Array, kept: NDArray[np.intp]) -> Array:
    """Return R with ``RᵀR`` the Gram matrix of the kept columns without the component along the friction columns."""
    size = np.sqrt(np.maximum(np.diag(gram), TINY))
    scaled = gram / np.outer(size, size)
    others = np.setdiff1d(np.arange(len(gram)), kept)
    across = scaled[np.ix_(kept, others)]
    reduced = scaled[np.ix_(kept, kept)] - across @ np.linalg.pinv(scaled[np.ix_(others, others)]) @ across.T
    values, vectors = np.linalg.eigh(reduced)
    root: Array = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * size[kept]
    return root


def _squares(products: Products, solution: GainSolution) -> Array:
    """Return the sums of squared residuals (joints,)."""
    c = np.column_stack([solution.coefficients(), -np.ones(len(solution.gains))])
    result: Array = np.einsum("ja,jab,jb->j", c, products.grams, c)
    return result


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
        errors: Held-out mean squared error of every block, (blocks,); over the variance of each current.
    """

    law: str
    grams: Array
    weights: Array
    solution: GainSolution
    modelled: Array
    payload: Array
    fitted: Array
    held_out: Array
    errors: Array


def fit_payload(data: PayloadData, law: str, known: GainFit | None = None) -> GainFit:
    """Return the fit under a load law; weights and friction under load are those of the solution before.

    With a `known` fit they are those of that fit.
    """
    variances = np.array([data.difference[used, j].var() for j, used in enumerate(data.used.T)])
    weights = 1.0 / variances if known is None else known.weights
    body = np.zeros(BODY) if known is None else known.solution.body
    solution: GainSolution | None = None
    for _ in range(REWEIGHTINGS if known is None else 1):
        columns = _columns(data, law, body)
        grams = _products(data, columns)
        products = Products(grams.sum(axis=0), np.arange(data.joints), body_scales(data.mass))
        solution = solve(products, weights, solution)
        variance = np.maximum(_squares(products, solution), 0.0) / np.maximum(data.used.sum(axis=0), 1)
        weights, body = 1.0 / np.maximum(variance, np.finfo(np.float64).eps * variances), solution.body
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
        errors=_block_errors(data, predicted, variances),
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

    return held_out_predictions(data.block, predict)


def _modelled(columns: Array, solution: GainSolution) -> Array:
    result: Array = np.einsum("sjc,jc->sj", columns, solution.coefficients())
    return result


def body_scales(mass: float) -> Array:
    """Return rough sizes of the inertia (6, kg m²) and first moments (3, kg m) of a payload."""
    return np.array([mass * LEVER**2] * 6 + [mass * LEVER] * 3)


def _qualities(data: PayloadData, modelled: Array) -> Array:
    """Return the NRMSE fit (%) of every joint over its samples in motion."""
    pairs = enumerate(data.used.T)
    return np.array([nrmse_percent(data.difference[used, j], modelled[used, j]) for j, used in pairs])


def _block_errors(data: PayloadData, modelled: Array, variances: Array) -> Array:
    """Return the mean squared error (blocks,) over the samples in motion of all joints, over their `variances` (A²)."""
    residual = np.where(data.used, data.difference - modelled, np.nan) / np.sqrt(variances)
    return unit_errors(residual.ravel(), np.repeat(data.block, data.joints))
