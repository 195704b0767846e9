"""Intervals and held-out errors from leaving out one block of swings at a time."""

from __future__ import annotations

import numpy as np

from jointwise.joint.hysteresis.search import train_grams
from jointwise.joint.jackknife import half_width, spread_covariance
from jointwise.joint.normal import gram_solution
from jointwise.spatial import Array

FOLDS = 5
SMALLEST = 1e-9
"""Singular values below this part of the largest do not move a solution: what nothing depends on stays."""


def gram_jackknife(grams: Array) -> tuple[Array, float]:
    """Return the covariance of all unknowns and the factor of a 95 % interval.

    `grams` (blocks, p, p) of the Jacobian and, last, the residual: without block b the solution moves by
    ``d_b = -(A - A_b)⁻¹ c_b``; the covariance is the jackknife's. Errors may be
    correlated within a block as they like.
    """
    total = grams.sum(axis=0)
    moves = np.array([gram_solution(total - own, SMALLEST) for own in grams])
    return spread_covariance(moves), half_width(len(grams))


def linear_held_out(grams: Array, logs: slice = slice(0)) -> Array:
    """Return the squared error per sample of every block, (blocks,) Nm², when its fold is left out of the fit.

    `grams` as in `gram_jackknife`; the model is moved along its Jacobian to the best of the other folds. Unknowns
    that are logarithms (`logs`) move as with a prior of deviation 1: farther the Jacobian is not to be trusted.
    """
    total = grams.sum(axis=0)
    prior = np.zeros_like(total)
    prior[logs, logs] = total[-1, -1] / total[-2, -2] * np.eye(len(range(*logs.indices(len(total)))))
    fold = np.arange(len(grams)) % FOLDS
    errors = np.empty(len(grams))
    for k, (train, test) in enumerate(train_grams(grams, FOLDS)):
        move = np.append(-gram_solution(train + prior, SMALLEST), 1.0)
        errors[fold == k] = np.einsum("kij,i,j->k", test, move, move) / test[:, -2, -2]
    return errors
