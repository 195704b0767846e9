"""Global search: the best few deformation limits out of a grid, from one set of normal equations."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from jointwise.joint.hysteresis.grams import NUISANCE, bank_grams, projected
from jointwise.joint.hysteresis.loops import Loops
from jointwise.joint.hysteresis.shape import Shape
from jointwise.spatial import Array

GRID = 60
EXHAUSTIVE = 2
"""Up to this many elements all choices are tried; more are found by adding one and exchanging."""

Choice = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Bank:
    """Elements with limits on a grid (grid,) rad and their normal equations block by block (blocks, p, p).

    Columns: the elements, their derivatives by ln D, acceleration, speed, ones, friction. `resolution` as in `Loops`.
    """

    limits: Array
    grams: Array
    resolution: float = 0.0

    def reduced(self, gram: Array) -> tuple[Array, Array]:
        """Return a sum of blocks as A (grid, grid), b (grid,) with the rest eliminated, columns of size one."""
        kept = self.columns(range(len(self.limits)))
        A, b = gram[np.ix_(kept, kept)][:-1, :-1], gram[kept, -1][:-1]
        size = np.sqrt(np.maximum(np.diag(A), 1e-300))
        reduced, right = projected(A / np.outer(size, size), b / size, len(self.limits))
        return self._apart(reduced), right

    def _apart(self, A: Array) -> Array:
        """Return A in which elements that cannot be told apart are alike: a choice of both has a negative force."""
        close = np.abs(self.limits[:, None] - self.limits) < self.resolution
        root = np.sqrt(np.diag(A))
        result: Array = np.where(close & ~np.eye(len(A), dtype=bool), np.outer(root, root), A)
        return result

    def columns(self, choice: Iterable[int], slopes: bool = False) -> list[int]:
        """Return the columns of some elements (with their derivatives) and of what stands beside them."""
        grid = len(self.limits)
        beside = [grid + k for k in choice] if slopes else []
        return [*choice, *beside, *range(2 * grid, 2 * grid + NUISANCE + 1)]


def make_bank(loops: Loops, level: Shape, grid: int = GRID) -> Bank:
    """Return the bank over the range of limits that the data can tell; `level` gives growth and extra."""
    limits = np.geomspace(loops.smallest, loops.largest, grid)
    return Bank(limits, bank_grams(loops, replace(level, limits=limits)), loops.resolution)


def best_choices(A: Array, b: Array, most: int) -> list[Choice]:
    """Return for 1 .. `most` elements the choice with the least error among those with no negative force."""
    found: list[Choice] = []
    for count in range(1, most + 1):
        if count <= EXHAUSTIVE:
            options = list(itertools.combinations(range(len(b)), count))
            found.append(options[int(np.argmax(gains(A, b, np.array(options))))])
        else:
            found.append(_grown(A, b, found[-1]))
    return found


def gains(A: Array, b: Array, choices: Array) -> Array:
    """Return by how much each choice (choices, elements) lowers the squared error; -inf with a negative force."""
    chosen = A[choices[:, :, None], choices[:, None, :]] + 1e-10 * np.eye(choices.shape[1])
    right = b[choices]
    forces = np.linalg.solve(chosen, right[:, :, None])[:, :, 0]
    result: Array = np.where((forces >= 0.0).all(axis=1), (forces * right).sum(axis=1), -np.inf)
    return result


def _grown(A: Array, b: Array, before: Choice) -> Choice:
    """Return the best choice of one element more: every element may move until none gains."""
    best = _exchanged(A, b, (*before, -1), len(before))
    value = gains(A, b, np.array([best]))[0] if len(set(best)) == len(best) else -np.inf
    while True:
        tried = [_exchanged(A, b, best, place) for place in range(len(best))]
        values = gains(A, b, np.array(tried))
        if values.max() <= value * (1.0 + 1e-12):
            return tuple(sorted(best))
        best, value = tried[int(np.argmax(values))], float(values.max())


def _exchanged(A: Array, b: Array, choice: Choice, place: int) -> Choice:
    """Return the choice with its element at a place exchanged for the best one."""
    others = set(choice[:place] + choice[place + 1 :])
    options = [(*choice[:place], k, *choice[place + 1 :]) for k in range(len(b)) if k not in others]
    return options[int(np.argmax(gains(A, b, np.array(options))))]


def train_grams(grams: Array, folds: int) -> list[tuple[Array, Array]]:
    """Return for every fold the sum of the blocks that train it and the blocks that it holds out."""
    fold = np.arange(len(grams)) % folds
    return [(grams[fold != k].sum(axis=0), grams[fold == k]) for k in range(min(folds, len(grams)))]


def held_out_errors(bank: Bank, most: int, folds: int) -> Array:
    """Return the mean squared held-out error of 1 .. `most` elements, (most, blocks), Nm²."""
    errors: list[Array] = []
    for train, test in train_grams(bank.grams, folds):
        choices = best_choices(*bank.reduced(train), most)
        errors.append(np.array([_errors(bank, train, test, choice) for choice in choices]))
    return np.concatenate(errors, axis=1)


def choice_spread(bank: Bank, count: int, folds: int) -> tuple[Array, Array]:
    """Return how much ln D_i and W_i (Nm) of the best choice scatter, (count,) each, when a fold at a time is left out.

    Where the data hardly tells an element, the best place for it jumps: the spread of a single optimum does not see
    that. Moves to the next limit of the grid are no jump and count as none.
    """
    chosen, forces = [], []
    for train, _ in train_grams(bank.grams, folds):
        choice = best_choices(*bank.reduced(train), count)[-1]
        columns = bank.columns(choice)
        own = train[np.ix_(columns, columns)]
        chosen.append(choice)
        forces.append(np.linalg.lstsq(own[:-1, :-1], own[:-1, -1], rcond=1e-12)[0][:count])
    places = np.array(chosen)
    jumps = np.ptp(places, axis=0) > 1
    logs, W = np.log(bank.limits[places]), np.array(forces)
    size = np.sqrt(len(places) - 1.0)
    return np.where(jumps, size * logs.std(axis=0), 0.0), np.where(jumps.any(), size * W.std(axis=0), 0.0)


def _errors(bank: Bank, train: Array, test: Array, choice: Choice) -> Array:
    """Return the errors of a choice whose limits may move off the grid: along their derivatives, to first order."""
    columns = np.array(bank.columns(choice, slopes=True))
    own = train[np.ix_(columns, columns)]
    found = np.append(np.linalg.lstsq(own[:-1, :-1], own[:-1, -1], rcond=1e-12)[0], -1.0)
    picked = test[:, columns[:, None], columns[None]]
    result: Array = np.einsum("kij,i,j->k", picked, found, found) / test[:, -2, -2]
    return result


def fewest_elements(errors: Array) -> int:
    """Return the smallest number of elements whose error (most, blocks) is within one standard error of the best."""
    means = errors.mean(axis=1)
    best = int(np.argmin(means))
    allowed = means[best] + errors[best].std(ddof=1) / np.sqrt(errors.shape[1])
    return 1 + int(np.argmax(means <= allowed))
