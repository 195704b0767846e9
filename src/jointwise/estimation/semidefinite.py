"""Least squares over positive definite matrices and bounded scalars, by an interior-point method.

    minimise  ½ ‖A v - b‖² + λ Σ_j D(Q_j) + λ Σ_k w_k d(r_k · v)    subject to  Q_j >= ε,  G v >= 0

v holds ten entries of every matrix Q_j (4, 4), then scalars. D and d are divergences from 1: with X = Q - ε entropic
(tr Q - log det X, r - log r) or Euclidean (½ ‖Q - 1‖², ½ (r - 1)²); both have the curvature 1 at the prior.

The method solves the optimality conditions with slacks s, multipliers z and Z, and ``X_j = Q_j - ε``,

    H v - f = Gᵀ z + Z,    s = G v,    s_i z_i = p_i,    X_j Z_j = p 1,

where H and f contain AᵀA, Aᵀb and the linear and quadratic parts of the divergences. The products p_i and p are 0 for
inequalities, λ w_k and λ for entropic divergences. The entropic divergence is
thus the barrier of its own constraint, with a fixed barrier parameter (Lee, Wensing & Park, "Geometric robot dynamic
identification", IEEE Trans. Robotics 36(2), 2020). Steps are those of S. Mehrotra's predictor-corrector method (SIAM J.
Optimization 2(4), 1992; Nocedal & Wright, "Numerical Optimization", 2006, section 16.6), with the direction of
Helmberg, Rendl, Vanderbei & Wolkowicz for the matrices (SIAM J. Optimization 6(2), 1996).

The prior determines directions that the data do not, with λ of a millionth of the residual. The Newton steps therefore
converge to `RESOLUTION` of λ. General conic solvers stop at about 1e-8 of the whole objective, which is not enough.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from jointwise.errors import EstimationError
from jointwise.estimation.bounded import cholesky_solution
from jointwise.estimation.factors import Index
from jointwise.spatial import Array

PriorKind = Literal["entropic", "euclidean"]

MARGIN = 1e-4
"""ε: smallest eigenvalue of a pseudo-inertia, relative to the prior of its link."""
MAX_ITERATIONS = 150
"""Newton steps; 5 to 25 are usual."""
RESOLUTION = 1e-4
"""Part of λ to which the objective is minimised: divergences from the prior are exact to this."""
TO_BOUNDARY = 0.95
"""Part of the way to the boundary of the constraints that a step takes at most."""
SHORT = 0.3
"""Length below which a corrected step is replaced by one towards equal products, away from the boundary."""
FIRST = 0.1
"""Products of slacks and multipliers at the start."""
PUSH = 1e-3
"""Smallest slack and multiplier of a start at another optimum: columns and residual have unit size."""


def _units() -> Array:
    """Return the matrices of the ten unit vectors, as rows (10, 16) of orthonormal entries."""
    column, row = np.tril_indices(4)  # the upper triangle, column by column
    scale = np.where(row == column, 1.0, np.sqrt(2.0))
    units = np.zeros((10, 4, 4))
    for k in range(10):
        units[k, row[k], column[k]] = units[k, column[k], row[k]] = 1.0 / scale[k]
    return units.reshape(10, 16)


UNITS = _units()
IDENTITY: Array = UNITS @ np.eye(4).ravel()
"""The ten entries of the unit matrix."""


def symmetric(entries: Array) -> Array:
    """Return symmetric matrices (..., 4, 4) of ten entries each (..., 10) whose norm is that of the matrix."""
    return (entries @ UNITS).reshape(*entries.shape[:-1], 4, 4)


class Iterate(NamedTuple):
    """A point of the method.

    Attributes:
        v: Unknowns, (unknowns,).
        s: Slacks of the inequalities, (inequalities,).
        z: Multipliers of the inequalities, (inequalities,).
        Z: Multipliers of the matrices, (matrices, 4, 4).
    """

    v: Array
    s: Array
    z: Array
    Z: Array


@dataclass(frozen=True)
class DefiniteLeastSquares:
    """The problem of the module for one λ; its unknowns have no unit.

    Attributes:
        curvature: AᵀA, (unknowns, unknowns).
        right: Aᵀb, (unknowns,).
        matrices: Number of matrices Q_j.
        ratios: Rows r_k, (k, unknowns).
        firmness: Weights w_k of the ratios beside those of the matrices, (k,).
        bound: Indices of the unknowns >= 0, which are part of G.
        inequalities: The other rows of G, (m, unknowns).
        kind: Divergence.
        weight: λ.
        rows: Rows of G beside those of `bound`: the inequalities, and the ratios of an entropic divergence.
        products: p_i of every row of G.
        product: p of the matrices.
        linear: f, (unknowns,).
        quadratic: H, (unknowns, unknowns).
    """

    curvature: Array
    right: Array
    matrices: int
    ratios: Array
    firmness: Array
    bound: Index
    inequalities: Array
    kind: PriorKind
    weight: float
    rows: Array = field(init=False)
    products: Array = field(init=False)
    product: float = field(init=False)
    linear: Array = field(init=False)
    quadratic: Array = field(init=False)

    def __post_init__(self) -> None:
        """Set up the objective and the products of slack and multiplier at the optimum.

        An entropic divergence r - log r is a linear cost r with the inequality r >= 0 at the product λ instead of 0.
        """
        entropic, bodies = self.kind == "entropic", 10 * self.matrices
        firm = self.weight * self.firmness
        prior = np.zeros(len(self.right))
        prior[:bodies] = self.weight * np.tile(IDENTITY, self.matrices)
        prior += self.ratios.T @ firm
        curvature = self.curvature.copy()
        if not entropic:
            curvature[np.arange(bodies), np.arange(bodies)] += self.weight
            curvature += self.ratios.T @ (firm[:, None] * self.ratios)
        zeros = np.zeros(len(self.bound) + len(self.inequalities))
        object.__setattr__(self, "rows", np.vstack([self.inequalities, self.ratios[: len(firm) * entropic]]))
        object.__setattr__(self, "products", np.append(zeros, firm[: len(firm) * entropic]))
        object.__setattr__(self, "product", self.weight * entropic)
        object.__setattr__(self, "linear", self.right + (-prior if entropic else prior))
        object.__setattr__(self, "quadratic", curvature)

    def solve(self, start: Iterate | None = None) -> Iterate:
        """Return the optimum, from a `start` that may be the optimum of a similar problem.

        Raises:
            EstimationError: No optimum was found: the constraints contradict each other.

        """
        point = self._first() if start is None else _pushed(start)
        # the multipliers of constraints that exclude each other grow without limit
        with suppress(np.linalg.LinAlgError):
            for _ in range(MAX_ITERATIONS):
                point, finished = _Step(self, point).taken()
                if finished:
                    return point
        raise EstimationError(
            "no physically consistent bodies found: the constraints contradict each other or the data. Check the "
            "described bodies, or calibrate without them (--no-physical)."
        )

    def slacks(self, v: Array) -> Array:
        """Return G v: unknowns with a bound, other inequalities, ratios."""
        return np.concatenate([v[self.bound], self.rows @ v])

    def adjoint(self, y: Array) -> Array:
        """Return Gᵀ y."""
        result: Array = y[len(self.bound) :] @ self.rows
        result[self.bound] += y[: len(self.bound)]
        return result

    def newton_matrix(self, rates: Array) -> Array:
        """Return the curvature of the objective with Gᵀ diag(rates) G."""
        few = rates[len(self.bound) :]
        H: Array = self.quadratic + self.rows.T @ (few[:, None] * self.rows)
        H[self.bound, self.bound] += rates[: len(self.bound)]
        return H

    def _first(self) -> Iterate:
        """Return the matrices of the prior with the scalars that fit them best.

        The Euclidean prior of the ratios decides scalars without effect on the data (rotors of joints without output).
        """
        v, bodies = np.zeros(len(self.right)), 10 * self.matrices
        v[:bodies] = np.tile(IDENTITY, self.matrices)
        firm = self.weight * self.firmness[:, None] * self.ratios
        H, right = self.curvature + self.ratios.T @ firm, self.right + firm.sum(axis=0)
        v[bodies:] = np.linalg.solve(H[bodies:, bodies:], right[bodies:] - H[bodies:, :bodies] @ v[:bodies])
        slack = np.maximum(self.slacks(v), 1.0)
        return Iterate(v, slack, FIRST / slack, np.tile(FIRST * np.eye(4), (self.matrices, 1, 1)))


def _pushed(start: Iterate) -> Iterate:
    """Return a start away from the boundary, so that other constraints may become active."""
    return Iterate(start.v, np.maximum(start.s, PUSH), np.maximum(start.z, PUSH), start.Z + PUSH * np.eye(4)[None])


class _Step:
    """One predictor and corrector step; see the module."""

    def __init__(self, problem: DefiniteLeastSquares, point: Iterate) -> None:
        """Factorise the Newton matrix; X = L Lᵀ and Z = L Lᵀ have the `whitening` matrices L⁻¹."""
        self.problem, self.point, self.bodies = problem, point, 10 * problem.matrices
        self.definite = symmetric(point.v[: self.bodies].reshape(-1, 10) - MARGIN * IDENTITY)
        self.whitening = [np.linalg.inv(np.linalg.cholesky(matrix)) for matrix in (self.definite, point.Z)]
        self.inverse = self.whitening[0].transpose(0, 2, 1) @ self.whitening[0]
        self.missing = problem.slacks(point.v) - point.s
        self.gradient = problem.quadratic @ point.v - problem.linear
        self.matrix = self._curvature()
        self.factor = np.asarray(np.linalg.cholesky(self.matrix), dtype=float)

    def _curvature(self) -> Array:
        """Return the Newton matrix of the unknowns."""
        H = self.problem.newton_matrix(self.point.z / self.point.s)
        pairs = np.einsum("lac,lbd->labcd", self.inverse, self.point.Z).reshape(-1, 16, 16)
        for j, block in enumerate(UNITS @ pairs @ UNITS.T):
            H[10 * j : 10 * j + 10, 10 * j : 10 * j + 10] += 0.5 * (block + block.T)
        return H

    def _direction(self, excess: float, before: Iterate | None = None) -> Iterate:
        """Return the Newton direction (dv, ds, dz, dZ) towards products that exceed those of the optimum by `excess`.

        Eliminating ds, dz and dZ from the linearised conditions leaves

            (H + Gᵀ diag(z/s) G + X⁻¹ ⊗ Z) dv = Gᵀ ((p - z (G v - s)) / s) + sym(X⁻¹ p) - gradient.

        Args:
            excess: Amount by which all products exceed those of the optimum.
            before: The predictor; its second-order terms ds dz and dX dZ are subtracted from the products.

        """
        _, s, z, Z = self.point
        products = self.problem.products + excess - (0.0 if before is None else before.s * before.z)
        matrices = np.tile((self.problem.product + excess) * np.eye(4), (self.problem.matrices, 1, 1))
        if before is not None:
            matrices -= symmetric(before.v[: self.bodies].reshape(-1, 10)) @ before.Z
        centre = _even(self.inverse @ matrices)
        right = self.problem.adjoint((products - z * self.missing) / s) - self.gradient
        right[: self.bodies] += (centre.reshape(-1, 16) @ UNITS.T).ravel()
        dv = cholesky_solution(self.factor, right)
        ds = self.problem.slacks(dv) + self.missing
        change = symmetric(dv[: self.bodies].reshape(-1, 10))
        return Iterate(dv, ds, (products - z * ds) / s - z, centre - Z - _even(self.inverse @ change @ Z))

    def _largest_step(self, direction: Iterate) -> float:
        """Return the largest step up to the boundary."""
        change = symmetric(direction.v[: self.bodies].reshape(-1, 10))
        rates: list[Array] = [direction.s / self.point.s, direction.z / self.point.z]
        for lower, rate in zip(self.whitening, (change, direction.Z), strict=True):
            eigenvalues = np.linalg.eigvalsh(lower @ rate @ lower.transpose(0, 2, 1))
            rates.append(np.asarray(eigenvalues[:, 0], dtype=float))
        return 1.0 / max(-min(float(rate.min(initial=0.0)) for rate in rates), 1e-12)

    def _moved(self, direction: Iterate, length: float) -> Iterate:
        return Iterate(*(at + length * change for at, change in zip(self.point, direction, strict=True)))

    def _excess(self, point: Iterate) -> float:
        """Return the mean absolute difference of the products s z and tr(X Z)/4 from those of the optimum."""
        X = symmetric(point.v[: self.bodies].reshape(-1, 10) - MARGIN * IDENTITY)
        scalars = np.abs(point.s * point.z - self.problem.products)
        matrices = np.abs(np.einsum("lab,lab->l", X, point.Z) / 4.0 - self.problem.product)
        return float(scalars.sum() + 4.0 * matrices.sum()) / (len(scalars) + 4 * len(matrices))

    def taken(self) -> tuple[Iterate, bool]:
        """Return the next point, and whether it is the optimum."""
        excess = self._excess(self.point)
        predictor = self._direction(0.0)
        ahead = self._excess(self._moved(predictor, min(1.0, self._largest_step(predictor))))
        direction = self._direction(excess * min(ahead / max(excess, 1e-300), 1.0) ** 3, predictor)
        length = min(1.0, TO_BOUNDARY * self._largest_step(direction))
        if length < SHORT:
            direction = self._direction(excess)
            length = min(1.0, TO_BOUNDARY * self._largest_step(direction))
        decrement = float(direction.v @ (self.matrix @ direction.v))
        limit = RESOLUTION * self.problem.weight
        finished = (
            length > 0.5 and max(decrement, excess) <= limit and float(np.abs(self.missing).max(initial=0.0)) < PUSH
        )
        return self._moved(direction, length), finished


def _even(matrices: Array) -> Array:
    """Return the symmetric part of matrices (..., 4, 4)."""
    return 0.5 * (matrices + matrices.swapaxes(-1, -2))
