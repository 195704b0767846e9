"""Normal equations ``H x = f`` of small dense problems, also with unknowns that may not be negative.

Block principal pivoting exchanges all infeasible unknowns at once between those at zero and the others, so that a
solution with dozens of non-zero unknowns takes a few small Cholesky factors: J. Kim and H. Park, "Fast nonnegative
matrix factorization: an active-set-like method and comparisons", SIAM J. Sci. Comput. 33 (2011), after L. Portugal,
J. Júdice and L. Vicente, "A comparison of block pivoting and interior-point algorithms for linear least squares
problems with nonnegative variables", Math. Comp. 63 (1994).
"""

from __future__ import annotations

import numpy as np

from jointwise.backend import native
from jointwise.estimation.factors import triangle
from jointwise.spatial import Array


def cholesky_solution(L: Array, f: Array) -> Array:
    """Return x (n,) of ``L Lᵀ x = f`` for a lower triangular L (n, n), as `numpy.linalg.cholesky` returns it."""
    kernel = native()
    if kernel is None:
        return np.asarray(np.linalg.solve(L.T, np.linalg.solve(L, f)))
    x = np.array(f, dtype=float)
    kernel.cholesky_solve(np.ascontiguousarray(L), x)
    return x


def non_negative(H: Array, f: Array) -> Array:
    """Return x >= 0 (n,) that minimises ½ xᵀ H x - fᵀ x, for a positive definite H (n, n).

    The native kernel pivots in blocks; without it, or where rounding keeps it from ending, SciPy's algorithm of Lawson
    and Hanson solves the same problem.
    """
    x, kernel = np.zeros(len(f)), native()
    if kernel is not None and kernel.nnls(np.ascontiguousarray(H), np.ascontiguousarray(f), x) >= 0:
        return x
    from scipy.optimize import nnls

    L = np.linalg.cholesky(H)
    return np.asarray(nnls(L.T, np.linalg.solve(L, f))[0])


def non_negative_least_squares(R: Array, z: Array) -> Array:
    """Return x >= 0 (n,) that minimises ‖R x - z‖ for R (rows, n) of full rank, with all digits of a QR factor.

    The normal equations decide which unknowns are zero; the others follow from R itself.
    """
    x = non_negative(R.T @ R, R.T @ z)
    above = np.flatnonzero(x)
    if above.size:
        T = triangle(np.column_stack([R[:, above], z]))
        x[above] = np.maximum(np.linalg.solve(T[: above.size, :-1], T[: above.size, -1]), 0.0)
    return x
