"""The difference of the currents explained by a payload, under one law of friction over load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.joint.motor.bilinear import BODY, Products, Solution, residual_variances, solve
from jointwise.joint.motor.payload_data import PairData
from jointwise.joint.quality import nrmse_percent
from jointwise.spatial import Array

ARM = 0.2
"""Rough distance (m) of a payload's mass from the flange: the scale of its unknown first moments and inertia."""
ASYMMETRIC = ", asymmetric"
ASYMMETRY = 0.1
"""Part by which that growth may differ with direction: looks like a gain, so what it would change widens intervals."""
FOLDS = 4
OUTER = 3
"""Rounds in which the weights and the load that rubs are brought up to date."""


@dataclass(frozen=True, eq=False)
class PayloadFit:
    """A fit under one law: `parts` (blocks, joints, columns, columns) and the solution over all of them."""

    law: str
    parts: Array
    weights: Array
    solution: Solution
    modelled: Array
    payload: Array
    fitted: Array
    held_out: Array
    error: float


def fit_payload(data: PairData, law: str, known: PayloadFit | None = None) -> PayloadFit:
    """Return the fit under a law of the load: solved again as the weights and the rubbing load become known.

    With a `known` fit the load that rubs and the weights are those of that fit.
    """
    weights = 1.0 / _spread(data) ** 2 if known is None else known.weights
    body = np.zeros(BODY) if known is None else known.solution.body
    solution: Solution | None = None
    for _ in range(OUTER if known is None else 1):
        columns = _columns(data, law, body)
        parts = _products(data, columns)
        products = Products(parts.sum(axis=0), np.arange(data.joints), body_scales(data.mass))
        solution = solve(products, weights, solution)
        weights = 1.0 / np.maximum(residual_variances(products, solution, data.used.sum(axis=0)), 1e-12)
        body = solution.body
    assert solution is not None
    modelled = _modelled(columns, solution)
    predicted = _left_out(data, columns, parts, weights, solution)
    fitted, held_out = (_qualities(data, values) for values in (modelled, predicted))
    error = float(np.log(_errors(data, predicted)).mean())
    return PayloadFit(law, parts, weights, solution, modelled, data.known + data.body @ body, fitted, held_out, error)


def _columns(data: PairData, law: str, body: Array) -> Array:
    """Return ``[m a + Δ | B | friction]`` (samples, joints, columns); friction of every pair, and of the load."""
    payload = data.known + data.body @ body
    own = [data.direction, data.speed, np.ones_like(data.speed)]
    friction = [np.where((data.pair == k)[:, None], values, 0.0) for k in np.unique(data.pair) for values in own]
    if law != "none":
        more = _rubbing(data.base + payload, law) - _rubbing(data.base, law)
        friction.append((data.direction + (ASYMMETRY if law.endswith(ASYMMETRIC) else 0.0)) * more)
    return np.concatenate([data.known[..., None], data.body, np.stack(friction, axis=-1)], axis=-1)


def _rubbing(load: Array, law: str) -> Array:
    return np.abs(load) if law.startswith("absolute") else 1e-2 * load**2


def _products(data: PairData, columns: Array) -> Array:
    """Return the normal products (blocks, joints, columns + 1, columns + 1) of the samples in motion."""
    whole = np.concatenate([columns, data.difference[..., None]], axis=-1)
    parts = np.empty((data.blocks, data.joints, whole.shape[2], whole.shape[2]))
    for block in range(data.blocks):
        inside = data.block == block
        for j in range(data.joints):
            rows = whole[inside & data.used[:, j], j]
            parts[block, j] = rows.T @ rows
    return parts


def _left_out(data: PairData, columns: Array, parts: Array, weights: Array, solution: Solution) -> Array:
    """Return the prediction (samples, joints) of every block by a fit without it and every fourth other."""
    predicted = np.empty_like(data.difference)
    total, scales = parts.sum(axis=0), body_scales(data.mass)
    for fold in range(FOLDS):
        out = np.arange(data.blocks) % FOLDS == fold
        products = Products(total - parts[out].sum(axis=0), np.arange(data.joints), scales)
        own = out[data.block]
        predicted[own] = _modelled(columns[own], solve(products, weights, solution))
    return predicted


def _modelled(columns: Array, solution: Solution) -> Array:
    result: Array = np.einsum("sjc,jc->sj", columns, solution.coefficients())
    return result


def body_scales(mass: float) -> Array:
    """Return rough sizes of the payload's inertia (6, kg m²) and first moments (3, kg m): a weak prior."""
    return np.array([mass * ARM**2] * 6 + [mass * ARM] * 3)


def _spread(data: PairData) -> Array:
    return np.array([data.difference[data.used[:, j], j].std() for j in range(data.joints)])


def _qualities(data: PairData, modelled: Array) -> Array:
    """Return the NRMSE % of every joint over its samples in motion."""
    used = data.used.T
    return np.array([nrmse_percent(data.difference[u, j], modelled[u, j]) for j, u in enumerate(used)])


def _errors(data: PairData, modelled: Array) -> Array:
    squares = (data.difference - modelled) ** 2
    return np.array([squares[u, j].mean() for j, u in enumerate(data.used.T)])
