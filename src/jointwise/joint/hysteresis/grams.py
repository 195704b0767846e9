"""Normal equations of a long record, block by block: columns are made a chunk at a time and never stored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import nnls

from jointwise.backend import native
from jointwise.joint.hysteresis.loops import Loops, Piece
from jointwise.joint.hysteresis.recursion import maxwell_slopes, maxwell_state
from jointwise.joint.hysteresis.shape import Shape
from jointwise.spatial import Array

NUISANCE = 3
"""Columns beside the friction with memory: acceleration (rotor inertia), speed (viscous) and one (offset)."""
RIDGE = 1e-12
FEW = 20
"""Elements up to which the native sums are faster than columns and a matrix product."""

Make = Callable[[Piece], Array]


def accumulate(loops: Loops, make: Make) -> Array:
    """Return CᵀC of every block, (blocks, columns, columns), C (rows, columns) the columns that `make` gives a piece.

    `make` sees every piece in order, those of no block too (their columns are not used).
    """
    total: Array | None = None
    for piece in loops.walk():
        columns = make(piece)
        if piece.block < 0:
            continue
        if total is None:
            total = np.zeros((loops.blocks, columns.shape[1], columns.shape[1]))
        total[piece.block] += columns.T @ columns
    assert total is not None
    return total


def ending(loops: Loops, piece: Piece) -> list[Array]:
    """Return acceleration, speed, ones and the friction of a piece: what every set of columns ends with."""
    return list(loops.others[piece.rows].T)


def bank_grams(loops: Loops, shape: Shape) -> Array:
    """Return CᵀC of the columns [level g_i ..., level ∂g_i/∂ln D_i ..., acceleration, speed, 1, friction]."""
    return _slip_grams(loops, shape, np.ones(len(shape.limits)), None, True)


def force_grams(loops: Loops, shape: Shape) -> Array:
    """Return CᵀC of the columns [level g_i ..., acceleration, speed, 1, friction]."""
    return _tied(_slip_grams(loops, shape, np.ones(len(shape.limits)), None, False), shape)


def slope_grams(loops: Loops, shape: Shape, forces: Array, free: tuple[str, ...]) -> Array:
    """Return CᵀC of [level g_i ..., derivatives by the `free` of the shape ..., acceleration, speed, 1, friction].

    `free` names what is not fixed: "limits" (ln D_i), "growth" (c), "extra" (e and ln V).
    """
    W, shared = shape.spread(forces), _shared(loops, shape, free)
    grams = _slip_grams(loops, shape, W, shared, "limits" in free)
    if "limits" in free:
        count = len(shape.limits)
        size = np.ones(grams.shape[1])
        size[count : 2 * count] = W
        grams = grams * np.outer(size, size)
    return _tied(grams, shape)


def _shared(loops: Loops, shape: Shape, free: tuple[str, ...]) -> Array | None:
    """Return what the derivatives by growth and extra have before Σ W_i g_i, (samples, shares)."""
    columns = []
    if "growth" in free:
        columns.append(np.abs(loops.load) ** shape.power)
    if "extra" in free:
        slowness = np.abs(loops.speed) / shape.speed
        rise = np.exp(-slowness)
        columns += [rise, shape.extra * slowness * rise]
    return np.column_stack(columns) if columns else None


def _slip_grams(loops: Loops, shape: Shape, W: Array, shared: Array | None, slopes: bool) -> Array:
    """Return CᵀC of [level g_i, level ∂g_i/∂ln D_i (with slopes), shared Σ W_i g_i, what stands beside, friction]."""
    count, shares = len(shape.limits), 0 if shared is None else shared.shape[1]
    width = (2 if slopes else 1) * count + shares + NUISANCE + 1
    grams, state = np.zeros((loops.blocks, width, width)), np.empty(0)
    level = shape.level(loops.load, loops.speed) if shape.growth or shape.extra else None
    unused = np.empty((width, width))
    for piece in loops.walk():
        if piece.fresh:
            state = maxwell_state(loops.x[piece.start], count)
        target = grams[piece.block] if piece.block >= 0 else unused
        _add(loops, piece.rows, shape.limits, W, level, shared, slopes, state, target)
    upper: Array = np.triu(grams)
    return upper + np.swapaxes(np.triu(grams, 1), 1, 2)


def _add(
    loops: Loops,
    rows: slice,
    limits: Array,
    W: Array,
    level: Array | None,
    shared: Array | None,
    slopes: bool,
    state: Array,
    gram: Array,
) -> None:
    """Add the upper triangle of CᵀC of some samples to `gram`; the state is carried on, in place."""
    own, scale = None if shared is None else shared[rows], scale_of(loops, rows)
    shares = 0 if own is None else own.shape[1]
    factor = None if level is None else level[rows]
    if len(limits) <= FEW and (kernel := native()) is not None:
        others = loops.others[rows]
        kernel.maxwell_gram(loops.x[rows], scale, factor, limits, W, own, others, slopes, shares, state, gram)
        return
    columns = _columns(loops.x[rows], scale, limits, W, factor, own, slopes, state)
    full = np.column_stack([*columns, loops.others[rows]])
    gram += full.T @ full


def _columns(
    x: Array,
    scale: Array | None,
    limits: Array,
    W: Array,
    level: Array | None,
    shared: Array | None,
    slopes: bool,
    state: Array,
) -> list[Array]:
    """Return the columns as NumPy makes them: the twin of the native sums."""
    g, rise = maxwell_slopes(x, scale, limits, state)
    factor = np.ones(len(x)) if level is None else level
    columns = [factor[:, None] * g]
    if slopes:
        columns.append(factor[:, None] * rise)
    if shared is not None:
        columns.append(shared * (g @ W)[:, None])
    return columns


def _tied(grams: Array, shape: Shape) -> Array:
    """Return normal equations (blocks, p, p) of the elements as those of the free forces."""
    if shape.mix is None:
        return grams
    count, rest = len(shape.limits), grams.shape[1] - len(shape.limits)
    turn = np.zeros((count + rest, shape.forces + rest))
    turn[:count, : shape.forces], turn[count:, shape.forces :] = shape.mix, np.eye(rest)
    result: Array = turn.T @ grams @ turn
    return result


def scale_of(loops: Loops, rows: slice) -> Array | None:
    """Return the relative backlash of some samples."""
    return None if loops.scale is None else loops.scale[rows]


def solve_forces(gram: Array, positive: int) -> tuple[Array, float]:
    """Return the coefficients (columns,) of least squares, the first `positive` of them >= 0, and the squared error."""
    A, b, total = gram[:-1, :-1], gram[:-1, -1], gram[-1, -1]
    size = np.sqrt(np.maximum(np.diag(A), 1e-300))
    A, b = A / np.outer(size, size), b / size
    reduced, right = projected(A, b, positive)
    root = cholesky(reduced + RIDGE * np.eye(positive))
    own = nnls(root, solve_triangular(root, right, trans="T"))[0]
    rest = np.linalg.lstsq(A[positive:, positive:], b[positive:] - A[positive:, :positive] @ own, rcond=1e-12)[0]
    found = np.concatenate([own, rest])
    return found / size, float(total - 2.0 * found @ b + found @ A @ found)


def projected(A: Array, b: Array, positive: int) -> tuple[Array, Array]:
    """Return normal equations with all but the first `positive` unknowns eliminated."""
    if positive == len(A):
        return A, b
    rest = cho_factor(A[positive:, positive:] + RIDGE * np.eye(len(A) - positive))
    across = cho_solve(rest, A[positive:, :positive])
    return A[:positive, :positive] - A[:positive, positive:] @ across, b[:positive] - across.T @ b[positive:]
