"""Intervals and held-out errors from leaving out one block of swings at a time."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from jointwise.joint.hysteresis.search import train_grams
from jointwise.spatial import Array

FOLDS = 5


def jackknife(grams: Array) -> tuple[Array, float]:
    """Return the covariance of all unknowns and the factor of a 95 % interval.

    `grams` (blocks, p, p) of the Jacobian and, last, the residual: without block b the solution moves by
    ``d_b = -(A - A_b)⁻¹ c_b``; the covariance is ``(K - 1)/K Σ (d_b - mean d)(d_b - mean d)ᵀ``. Errors may be
    correlated within a block as they like.
    """
    total = grams.sum(axis=0)
    moves = np.array([_solution(total - own) for own in grams])
    K = len(grams)
    centred = moves - moves.mean(axis=0)
    return (K - 1.0) / K * centred.T @ centred, float(student.ppf(0.975, K - 1))


def linear_held_out(grams: Array, logs: slice = slice(0)) -> Array:
    """Return the squared error per sample of every block, (blocks,) Nm², when its fold is left out of the fit.

    `grams` as in `jackknife`; the model is moved along its Jacobian to the best of the other folds. Unknowns that are
    logarithms (`logs`) move as with a prior of deviation 1: farther the Jacobian is not to be trusted.
    """
    total = grams.sum(axis=0)
    prior = np.zeros_like(total)
    prior[logs, logs] = total[-1, -1] / total[-2, -2] * np.eye(len(range(*logs.indices(len(total)))))
    fold = np.arange(len(grams)) % FOLDS
    errors = np.empty(len(grams))
    for k, (train, test) in enumerate(train_grams(grams, FOLDS)):
        move = np.append(-_solution(train + prior), 1.0)
        errors[fold == k] = np.einsum("kij,i,j->k", test, move, move) / test[:, -2, -2]
    return errors


def _solution(gram: Array) -> Array:
    """Return the least squares solution of a Jacobian and residual; what nothing depends on stays."""
    A, b = gram[:-1, :-1], gram[:-1, -1]
    size = np.sqrt(np.maximum(np.diag(A), 1e-300))
    scaled = np.linalg.lstsq(A / np.outer(size, size), b / size, rcond=1e-9)[0]
    result: Array = scaled / size
    return result
