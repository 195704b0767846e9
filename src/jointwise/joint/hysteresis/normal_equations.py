"""Normal equations of a long record, block by block, and the search for the best few limits out of a grid.

Columns are made a chunk at a time and never stored. They are, in this order: the free forces, derivatives with respect
to the free non-linear parameters, acceleration, speed and ones (rotor inertia, viscous friction, offset), and the
friction or the residual.

A column of a slip element is not linear in its limit. On a grid of limits the choice is a best-subset problem whose
sums over the samples are computed once: sets grow by adding one element and exchanging others one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.backend import native
from jointwise.estimation.gram import RIDGE, block_errors, eliminated, folds_of
from jointwise.estimation.jackknife import standard_error
from jointwise.joint.hysteresis.data import Loops
from jointwise.joint.laws import (
    FrictionLaw,
    JointMotion,
    dry_level,
    force_columns,
    rest_state,
)
from jointwise.joint.part import TINY
from jointwise.model.terms import load_growth, slip_slope_state, slip_slopes, stribeck, stribeck_slope
from jointwise.spatial import Array

LINEAR = 3
"""Columns beside the forces that are linear too: acceleration (rotor inertia), speed (viscous) and one (offset)."""
NATIVE_ELEMENTS = 20
"""Elements up to which native sums are faster than columns and a matrix product (BLAS)."""


# -- sums over a record ----------------------------------------------------------------------------------------------


def column_grams(loops: Loops, laws: Sequence[FrictionLaw], combine: Callable[[list[Array], slice], Array]) -> Array:
    """Return CᵀC of every block, (blocks, columns, columns), for columns made from those of one or more laws.

    Args:
        loops: The data.
        laws: Laws whose force columns are computed along the data, each with a state of its own.
        combine: Columns of the fit (rows, columns) from those of the laws and the rows they belong to.
    """
    total: Array | None = None
    states: list[Array] = []
    for chunk in loops.chunks:
        if chunk.first:
            states = [rest_state(law, float(loops.x[chunk.start])) for law in laws]
        rows = chunk.rows
        motion = JointMotion(loops.x[rows], loops.speed[rows], loops.load[rows], loops.period)
        b = _at(loops.backlash, rows)
        pairs = [force_columns(law, motion, b, state) for law, state in zip(laws, states, strict=True)]
        states = [state for _, state in pairs]
        if chunk.block < 0:
            continue
        columns = np.column_stack([combine([column for column, _ in pairs], rows), loops.linear[rows]])
        total = np.zeros((loops.blocks, *2 * columns.shape[1:])) if total is None else total
        total[chunk.block] += columns.T @ columns
    assert total is not None
    return total


def slip_grams(loops: Loops, law: FrictionLaw, free: tuple[str, ...] = ()) -> Array:
    """Return CᵀC (blocks, columns, columns) of a slip model.

    Columns: level · u_i; with "limits" in `free` level · ∂u_i/∂ln D_i (times W_i unless the law has no forces); with
    "growth" and "rise" ∂f/∂c, ∂f/∂e and ∂f/∂ln V; then the linear ones and the friction.
    """
    count, columns = len(law.limits), _SlipColumns.of(loops, law, free)
    grams, unused = np.zeros((loops.blocks, columns.width, columns.width)), np.empty((columns.width, columns.width))
    state = np.empty(0)
    for chunk in loops.chunks:
        if chunk.first:
            state = slip_slope_state(float(loops.x[chunk.start]), count)
        state = columns.add(loops, chunk.rows, state, grams[chunk.block] if chunk.block >= 0 else unused)
    grams = np.triu(grams) + np.swapaxes(np.triu(grams, 1), 1, 2)
    if columns.slopes:
        scale = np.ones(columns.width)
        scale[count : 2 * count] = columns.forces
        grams *= np.outer(scale, scale)
    return grams


@dataclass(frozen=True, eq=False)
class _SlipColumns:
    """What the columns of a slip model are made of.

    Attributes:
        limits: D_i, (elements,), rad.
        forces: W_i, (elements,), Nm.
        level: Level of dry friction, (samples,); None for 1.
        shared: Factors of Σ W_i u_i in the derivatives with respect to c, e and ln V, (samples, shares); None for none.
        slopes: Whether there are derivatives with respect to ln D_i.
    """

    limits: Array
    forces: Array
    level: Array | None
    shared: Array | None
    slopes: bool

    @classmethod
    def of(cls, loops: Loops, law: FrictionLaw, free: tuple[str, ...]) -> _SlipColumns:
        forces = law.forces if len(law.forces) else np.ones(len(law.limits))
        level = dry_level(law, loops.speed, loops.load) if law.growth or law.extra else None
        return cls(law.limits, forces, level, _shared_factors(loops, law, free), "limits" in free)

    @property
    def shares(self) -> int:
        return 0 if self.shared is None else int(self.shared.shape[1])

    @property
    def width(self) -> int:
        return (2 if self.slopes else 1) * len(self.limits) + self.shares + LINEAR + 1

    def add(self, loops: Loops, rows: slice, state: Array, gram: Array) -> Array:
        """Add the upper triangle of CᵀC of some samples to `gram`, and return the next state."""
        x, linear = loops.x[rows], loops.linear[rows]
        b, level, shared = (_at(values, rows) for values in (loops.backlash, self.level, self.shared))
        if len(self.limits) <= NATIVE_ELEMENTS and (kernel := native()) is not None:
            options = linear, self.slopes, self.shares
            kernel.maxwell_gram(x, b, level, self.limits, self.forces, shared, *options, state, gram)
            return state
        u, by_limit, state = slip_slopes(x, self.limits, state, backlash=b)
        columns = [u, by_limit] if self.slopes else [u]
        if level is not None:
            columns = [level[:, None] * column for column in columns]
        if shared is not None:
            columns.append(shared * (u @ self.forces)[:, None])
        full = np.column_stack([*columns, linear])
        gram += full.T @ full
        return state


def _at(values: Array | None, rows: slice) -> Array | None:
    return None if values is None else values[rows]


def _shared_factors(loops: Loops, law: FrictionLaw, free: tuple[str, ...]) -> Array | None:
    """Return the factors of Σ W_i u_i in the derivatives with respect to c, e and ln V, (samples, factors)."""
    columns = []
    if "growth" in free:
        columns.append(load_growth(loops.load, law.power))
    if "rise" in free:
        curve = law.speed, law.exponent
        columns += [stribeck(loops.speed, *curve), law.extra * stribeck_slope(loops.speed, *curve)]
    return np.column_stack(columns) if columns else None


# -- search for the best few limits out of a grid --

GRID = 60
"""Limits of the grid: neighbours differ by some 15 %, which the local refinement bridges."""
Choice = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Bank:
    """Slip elements with limits on a grid, and their normal equations.

    Columns: the elements, their derivatives with respect to ln D, acceleration, speed, ones, friction.

    Attributes:
        limits: Deformation limits D, (grid,), rad.
        grams: Gram matrices of the columns, (blocks, p, p).
        resolution: Difference below which two limits cannot be distinguished, rad.
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


def make_bank(loops: Loops, level: FrictionLaw) -> Bank:
    """Return the bank over the limits that the data resolve; `level` has the growth with load and the Stribeck rise."""
    limits = np.geomspace(loops.smallest, loops.largest, GRID)
    law = replace(level, limits=limits, forces=np.empty(0))
    return Bank(limits, slip_grams(loops, law, ("limits",)), loops.resolution)


def best_choices(A: Array, b: Array, most: int) -> list[Choice]:
    """Return for 1 to `most` elements the choice with the least error among those without a negative force."""
    choices: list[Choice] = []
    for _ in range(most):
        choices.append(_extended(A, b, choices[-1] if choices else ()))
    return choices


def gains(A: Array, b: Array, choices: Array) -> Array:
    """Return the reduction of the squared error by each choice (choices, elements); -inf with a negative force."""
    chosen = A[choices[:, :, None], choices[:, None, :]] + RIDGE * np.eye(choices.shape[1])
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
