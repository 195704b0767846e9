"""Search for the best few deformation limits out of a grid, on normal equations.

A column of a slip element is not linear in its limit. On a grid of limits the choice is a best-subset problem whose
sums over the samples are computed once: all pairs are tried, larger sets grow by adding and exchanging one element.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from jointwise.estimation.gram import RIDGE, block_errors, eliminated, folds_of
from jointwise.estimation.jackknife import standard_error
from jointwise.joint.hysteresis.data import Loops
from jointwise.joint.hysteresis.law import FrictionLaw
from jointwise.joint.hysteresis.normal_equations import LINEAR, slip_grams
from jointwise.joint.quality import TINY
from jointwise.spatial import Array

GRID = 60
"""Limits of the grid: neighbours differ by some 15 %, which the local refinement bridges."""
EXHAUSTIVE = 2
"""Number of elements up to which all choices are tried; larger ones are found by adding one and exchanging."""

CHOICE_RIDGE = 100.0 * RIDGE
"""Ridge on columns of unit length: neighbours on the grid are alike, and a choice of both must not blow up."""

Choice = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Bank:
    """Elements with limits on a grid, (grid,) rad, and their normal equations, (blocks, p, p).

    Columns: the elements, their derivatives with respect to ln D, acceleration, speed, ones, friction. `resolution`:
    difference (rad) below which two limits cannot be distinguished.
    """

    limits: Array
    grams: Array
    resolution: float = 0.0

    def reduced(self, gram: Array) -> tuple[Array, Array]:
        """Return a sum of blocks as A (grid, grid), b (grid,): columns of unit length, the linear ones eliminated."""
        columns = self.columns(range(len(self.limits)))
        A, b = gram[np.ix_(columns, columns)][:-1, :-1], gram[columns, -1][:-1]
        size = np.sqrt(np.maximum(np.diag(A), TINY))
        A, b = eliminated(A / np.outer(size, size), b / size, len(self.limits))
        return self._without_close_pairs(A), b

    def _without_close_pairs(self, A: Array) -> Array:
        """Return A in which limits within the resolution are collinear: a choice of both has a negative force."""
        close = np.abs(self.limits[:, None] - self.limits) < self.resolution
        root = np.sqrt(np.diag(A))
        return np.where(close & ~np.eye(len(A), dtype=bool), np.outer(root, root), A)

    def columns(self, choice: Iterable[int], slopes: bool = False) -> list[int]:
        """Return the columns of some elements, of their derivatives (`slopes`), and the linear ones with friction."""
        grid = len(self.limits)
        derivatives = [grid + k for k in choice] if slopes else []
        return [*choice, *derivatives, *range(2 * grid, 2 * grid + LINEAR + 1)]


def make_bank(loops: Loops, level: FrictionLaw, grid: int = GRID) -> Bank:
    """Return the bank over the limits that the data resolve; `level` has the growth with load and the Stribeck rise."""
    limits = np.geomspace(loops.smallest, loops.largest, grid)
    law = replace(level, limits=limits, forces=np.empty(0))
    return Bank(limits, slip_grams(loops, law, ("limits",)), loops.resolution)


def best_choices(A: Array, b: Array, most: int) -> list[Choice]:
    """Return for 1 to `most` elements the choice with the least error among those without a negative force."""
    choices: list[Choice] = []
    for count in range(1, most + 1):
        if count <= EXHAUSTIVE:
            options = list(itertools.combinations(range(len(b)), count))
            choices.append(options[int(np.argmax(gains(A, b, np.array(options))))])
        else:
            choices.append(_extended(A, b, choices[-1]))
    return choices


def gains(A: Array, b: Array, choices: Array) -> Array:
    """Return the reduction of the squared error by each choice (choices, elements); -inf with a negative force."""
    chosen = A[choices[:, :, None], choices[:, None, :]] + CHOICE_RIDGE * np.eye(choices.shape[1])
    right = b[choices]
    forces = np.linalg.solve(chosen, right[:, :, None])[:, :, 0]
    return np.where((forces >= 0.0).all(axis=1), (forces * right).sum(axis=1), -np.inf)


def _extended(A: Array, b: Array, choice: Choice) -> Choice:
    """Return the best choice with one more element: elements are exchanged one by one until none improves the fit."""
    best = _exchanged(A, b, (*choice, -1), len(choice))
    gain = gains(A, b, np.array([best]))[0] if len(set(best)) == len(best) else -np.inf
    while True:
        options = [_exchanged(A, b, best, k) for k in range(len(best))]
        values = gains(A, b, np.array(options))
        if values.max() <= gain * (1.0 + RIDGE):
            return tuple(sorted(best))
        best, gain = options[int(np.argmax(values))], float(values.max())


def _exchanged(A: Array, b: Array, choice: Choice, k: int) -> Choice:
    """Return the choice with its k-th element exchanged for the best one."""
    others = set(choice[:k] + choice[k + 1 :])
    options = [(*choice[:k], new, *choice[k + 1 :]) for new in range(len(b)) if new not in others]
    return options[int(np.argmax(gains(A, b, np.array(options))))]


def errors_by_count(bank: Bank, most: int) -> dict[int, Array]:
    """Return the mean squared held-out error (blocks,) in Nm² of the best choice of 1 to `most` elements."""
    folds: list[Array] = []
    for train, test in folds_of(bank.grams):
        choices = best_choices(*bank.reduced(train), most)
        folds.append(np.array([_held_out(bank, train, test, choice) for choice in choices]))
    return dict(enumerate(np.concatenate(folds, axis=1), start=1))


def _held_out(bank: Bank, train: Array, test: Array, choice: Choice) -> Array:
    """Return the errors of a choice whose limits may leave the grid, to first order along their derivatives."""
    columns = np.array(bank.columns(choice, slopes=True))
    coefficients = np.append(_solution(train, columns), -1.0)
    return block_errors(test[:, columns[:, None], columns[None]], coefficients)


def _solution(gram: Array, columns: Array) -> Array:
    chosen = gram[np.ix_(columns, columns)]
    result: Array = np.linalg.lstsq(chosen[:-1, :-1], chosen[:-1, -1], rcond=RIDGE)[0]
    return result


def choice_spread(bank: Bank, count: int) -> tuple[Array, Array]:
    """Return the standard errors of ln D_i and W_i (Nm), (count,) each, that come from the choice of the limits.

    Where the data hardly determine an element, its best limit jumps as folds are left out, which the covariance at a
    single optimum does not show. Moves to the next limit of the grid are no jump and count as zero.
    """
    chosen, forces = [], []
    for train, _ in folds_of(bank.grams):
        choice = best_choices(*bank.reduced(train), count)[-1]
        chosen.append(choice)
        forces.append(_solution(train, np.array(bank.columns(choice)))[:count])
    places = np.array(chosen)
    jumps = np.ptp(places, axis=0) > 1
    logs, W = np.log(bank.limits[places]), np.array(forces)
    return np.where(jumps, standard_error(logs), 0.0), np.where(jumps.any(), standard_error(W), 0.0)
