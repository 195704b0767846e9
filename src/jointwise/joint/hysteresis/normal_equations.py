"""Normal equations of a long record, block by block, and the search for the best few limits out of a grid.

Columns are made a chunk at a time and never stored. They are, in this order: the free forces, derivatives with respect
to the free non-linear parameters, acceleration, speed and ones (rotor inertia, viscous friction, offset), and the
friction or the residual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.backend import native
from jointwise.joint.hysteresis.data import Loops
from jointwise.joint.hysteresis.law import (
    FrictionLaw,
    JointMotion,
    dry_level,
    force_columns,
    rest_state,
)
from jointwise.model.friction import load_growth, slip_slope_state, slip_slopes, stribeck, stribeck_slope
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

    `level` (samples,) or None for 1; `shared` (samples, shares): factors of Σ W_i u_i in the derivatives with respect
    to c, e and ln V; `slopes`: with derivatives with respect to ln D_i.
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
