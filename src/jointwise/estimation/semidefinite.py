"""A least-squares problem over positive definite matrices in the conic form of an interior-point solver (Clarabel)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from jointwise.errors import EstimationError, JointwiseError
from jointwise.estimation.factors import Index
from jointwise.estimation.least_squares import RIDGE, Mask
from jointwise.spatial import Array

PriorKind = Literal["entropic", "euclidean"]

MARGIN = 1e-4
"""ε: smallest eigenvalue of a pseudo-inertia, relative to the prior of its link."""
MAX_ITERATIONS = 200
"""Iterations of the interior-point solver; 15 to 40 are usual."""


def triangle_index(size: int) -> tuple[Index, Index, Array]:
    """Return rows and columns of the upper triangle, column by column, and the scale of each entry (1 or √2)."""
    column, row = np.tril_indices(size)
    return row, column, np.where(row == column, 1.0, np.sqrt(2.0))


def symmetric(entries: Array) -> Array:
    """Return the symmetric (4, 4) matrix of ten entries whose norm is that of the matrix."""
    row, column, scale = triangle_index(4)
    Q = np.zeros((4, 4))
    Q[row, column] = Q[column, row] = entries / scale
    return Q


class ConicForm:
    """The conic form of the programme: minimise ½ vᵀ P v + qᵀ v subject to b - A v in a product of cones.

    The unknowns are ten entries a link, then rotors and joint terms, of which some are `free` of a prior and some are
    `bound` at zero. The entropic form adds a lower triangle Z_j with [[Q_j, Z_j], [Z_jᵀ, diag Z_j]] >= 0 and
    t_ji <= log Z_ji for every link, so that log det Q_j >= Σ_i t_ji, and t <= log v for rotors with a prior.
    """

    def __init__(self, links: int, free: Mask, bound: Mask) -> None:
        """Assign positions to the unknowns."""
        self.links, self.bodies = links, 10 * links
        self.count = self.bodies + len(free)
        self.rotors = self.bodies + np.flatnonzero(~free)
        self.free = self.bodies + np.flatnonzero(free)
        self.bound = self.bodies + np.flatnonzero(bound)
        self.size = self.count
        self.rows: list[Array] = []
        self.right: list[Array] = []
        self.cones: list[Any] = []

    def solve(self, A: Array, b: Array, kind: PriorKind, weight: float, regions: Sequence[tuple[Array, int]]) -> Array:
        """Return the unknowns v for the residual A v - b, with the prior of a `weight`."""
        solver = _clarabel()
        self.size += (14 * self.links + len(self.rotors)) if kind == "entropic" else 0
        P, q = np.zeros((self.size, self.size)), np.zeros(self.size)
        P[: self.count, : self.count] = A.T @ A
        P[self.free, self.free] += RIDGE
        q[: self.count] = -A.T @ b
        self._bounds(solver, regions)
        for j in range(self.links):
            self._definite(solver, j)
        known = np.concatenate([np.arange(self.bodies), self.rotors])
        if kind == "entropic":
            q[known] += weight * self._identity()
            q[self.count :] -= weight * self._logarithms(solver)
        else:
            P[known, known] += weight
            q[known] -= weight * self._identity()
        return self._solution(solver, P, q)

    def _identity(self) -> Array:
        """Return the coordinates of the prior: entries of unit matrices, and ones for the rotors."""
        row, column, _ = triangle_index(4)
        return np.concatenate([np.tile((row == column).astype(float), self.links), np.ones(len(self.rotors))])

    def _add(self, cone: Any, rows: Array, right: Array) -> None:
        self.cones.append(cone)
        self.rows.append(rows)
        self.right.append(right)

    def _bounds(self, solver: Any, regions: Sequence[tuple[Array, int]]) -> None:
        """Add rotors >= 0, joint terms >= 0, and the regions of the centres of mass."""
        start = len(self.bound)
        rows = np.zeros((start + sum(len(faces) for faces, _ in regions), self.size))
        rows[np.arange(start), self.bound] = -1.0
        for faces, j in regions:
            rows[start : start + len(faces), 10 * j : 10 * j + 10] = -faces
            start += len(faces)
        if len(rows):
            self._add(solver.NonnegativeConeT(len(rows)), rows, np.zeros(len(rows)))

    def _definite(self, solver: Any, link: int) -> None:
        """Add Q_j - ε >= 0."""
        rows = np.zeros((10, self.size))
        rows[:, 10 * link : 10 * link + 10] = -np.eye(10)
        row, column, _ = triangle_index(4)
        self._add(solver.PSDTriangleConeT(4), rows, np.where(row == column, -MARGIN, 0.0))

    def _logarithms(self, solver: Any) -> Array:
        """Add the cones of log det Q_j and of the logarithms of rotors; return which added unknowns they are."""
        row, column, _ = triangle_index(4)
        diagonal, logs = np.flatnonzero(row == column), np.zeros(self.size - self.count)
        for j in range(self.links):
            lower = self.count + 14 * j
            self._add(solver.PSDTriangleConeT(8), self._block_rows(10 * j, lower), np.zeros(36))
            for i in range(4):
                self._add_logarithm(solver, lower + 10 + i, int(lower + diagonal[i]))
            logs[14 * j + 10 : 14 * j + 14] = 1.0
        for k, rotor in enumerate(self.rotors):
            self._add_logarithm(solver, self.count + 14 * self.links + k, int(rotor))
        logs[14 * self.links :] = 1.0
        return logs

    def _block_rows(self, body: int, lower: int) -> Array:
        """Return -rows of the entries of [[Q, Z], [Zᵀ, diag Z]]; Z is lower triangular, stored as its transpose."""
        rows = np.zeros((36, self.size))
        small = {(int(r), int(c)): k for k, (r, c) in enumerate(zip(*triangle_index(4)[:2], strict=True))}
        for k, (r, c, scale) in enumerate(zip(*triangle_index(8), strict=True)):
            if c < 4:
                rows[k, body + small[int(r), int(c)]] = -1.0
            elif r < 4 and r >= c - 4:  # Z[r, c - 4] of the lower triangle
                rows[k, lower + small[int(c) - 4, int(r)]] = -scale
            elif r == c:
                rows[k, lower + small[int(r) - 4, int(r) - 4]] = -1.0
        return rows

    def _add_logarithm(self, solver: Any, log: int, value: int) -> None:
        """Add v[log] <= log v[value] as an exponential cone (x, y, z): y exp(x / y) <= z."""
        rows = np.zeros((3, self.size))
        rows[0, log] = rows[2, value] = -1.0
        self._add(solver.ExponentialConeT(), rows, np.array([0.0, 1.0, 0.0]))

    def _solution(self, solver: Any, P: Array, q: Array) -> Array:
        """Return the first unknowns of the optimum."""
        from scipy.sparse import csc_matrix, triu

        settings = solver.DefaultSettings()
        settings.verbose, settings.max_iter, settings.max_threads = False, MAX_ITERATIONS, 1
        A, b = csc_matrix(np.vstack(self.rows)), np.concatenate(self.right)
        outcome = solver.DefaultSolver(csc_matrix(triu(P)), q, A, b, self.cones, settings).solve()
        if outcome.status not in (solver.SolverStatus.Solved, solver.SolverStatus.AlmostSolved):
            raise EstimationError(
                f"no physically consistent bodies found ({outcome.status}): the constraints contradict each other or "
                "the data. Check the described bodies, or calibrate without them (--no-physical)."
            )
        result: Array = np.array(outcome.x[: self.count])
        return result


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError:
        raise JointwiseError(
            "physical parameters need the solver clarabel. Install it with: pip install clarabel, or use --no-physical."
        ) from None
    return clarabel
