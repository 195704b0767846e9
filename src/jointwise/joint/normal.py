"""Normal equations, solved in units in which no column is longer than another."""

from __future__ import annotations

import numpy as np

from jointwise.spatial import Array


def normal_solution(A: Array, b: Array, rcond: float = 1e-12) -> Array:
    """Return the least-norm x (columns,) of ``A x = b``, A (columns, columns) scaled to a diagonal of ones.

    Singular values below `rcond` times the largest are left out: what nothing depends on stays zero.
    """
    scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
    result: Array = np.linalg.lstsq(A / np.outer(scale, scale), b / scale, rcond=rcond)[0] / scale
    return result


def gram_solution(gram: Array, rcond: float = 1e-12) -> Array:
    """Return the solution of the products (columns + 1, columns + 1) of columns and, last, the right-hand side."""
    return normal_solution(gram[:-1, :-1], gram[:-1, -1], rcond)
