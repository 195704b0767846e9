"""Least squares over positive definite matrices and bounded scalars, by an interior-point method.

    minimise  ½ ‖R T v - z‖² + ½ ρ ‖v_f‖² + λ Σ_j D(Q_j) + λ Σ_k w_k d(r_k · v)    subject to  Q_j >= ε,  G v >= 0

v holds ten entries of every matrix Q_j (4, 4), then scalars; v_f are scalars without a divergence. D and d are
divergences from 1: with X = Q - ε entropic (tr Q - log det X, r - log r) or Euclidean (½ ‖Q - 1‖², ½ (r - 1)²); both
have the curvature 1 at the prior.

The method solves the optimality conditions with slacks s and X, multipliers y and Y,

    Aᵀ (A v - b) + c = Gᵀ y + Y,    s = G v,    X_j = Q_j - ε,    s_i y_i = p_i,    X_j Y_j = p 1,

where A and b contain all rows of squares, and c the linear costs of the entropic divergences. The products p_i and p
are λ w_k and λ for entropic divergences, which are thus the barriers of their own constraints with a fixed barrier
parameter, and `BARRIER` λ for all other constraints (Lee, Wensing & Park, "Geometric robot dynamic identification",
IEEE Trans. Robotics 36(2), 2020). Steps are those of S. Mehrotra's predictor-corrector method (SIAM J. Optimization
2(4), 1992; Nocedal & Wright, "Numerical Optimization", 2006, section 16.6), with the scaling of Nesterov and Todd for
the matrices (SIAM J. Optimization 8(2), 1998; Todd, Toh & Tütüncü, 8(3), 1998).

**Rounding.** The prior determines directions that the data do not, with λ down to 1e-9 of the squared residual, which
may be 1e-6 of the squared output. Three measures keep it above rounding:

- No matrix of normal equations is formed: every Newton step is a least-squares problem in the rows of A and of the
  scaled constraints, solved by QR. Its condition number is the square root of that of the Newton matrix.
- T, which does not depend on the data, tells which directions the data cannot see. In the orthonormal basis
  ``Tᵀ = V [L 0]ᵀ``, ordered by the effect on the data, their columns of R T V are exactly zero.
- X and Y are kept as factors, ``X = F Fᵀ``. A step multiplies them by a factor that exists by the choice of its length,
  so that no rounding makes them indefinite.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from jointwise.errors import EstimationError
from jointwise.estimation.factors import Index, triangle
from jointwise.spatial import Array, Mask

PriorKind = Literal["entropic", "euclidean"]

MARGIN = 1e-4
"""ε: smallest eigenvalue of a pseudo-inertia, relative to the prior of its link."""
RIDGE = 1e-9
"""ρ: decides between free scalars that the data cannot separate; their columns have unit length."""
MAX_ITERATIONS = 150
"""Newton steps; 10 to 25 are usual."""
RESOLUTION = 1e-6
"""Part of λ that is left of the objective before the last Newton step, which squares it."""
INFEASIBLE = 1e-2 * MARGIN
"""Largest violation of a constraint before the last Newton step, which removes at least half of it."""
BARRIER = 1e-6
"""Product of slack and multiplier of constraints without a divergence, as part of λ. A hundred of them cost 1e-4 of λ;
with 1e-8 one of 600 random problems ends before the optimum, with 0 many, at a point that depends on rounding."""
TO_BOUNDARY = 0.99
"""Part of the way to the boundary of the constraints that a step takes at most; with 0.95 the last digits take a third
more steps."""
SHORT = 0.3
"""Length below which a corrected step is replaced by one towards equal products, away from the boundary."""
FIRST = 0.1
"""Smallest product of slacks and multipliers at the start."""
REFINEMENTS = 2
"""Passes of a Newton step; one and three gave the same bodies to 1e-5 in 150 random problems."""
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


def entries(matrices: Array) -> Array:
    """Return the ten entries (..., 10) of symmetric matrices (..., 4, 4)."""
    return matrices.reshape(*matrices.shape[:-2], 16) @ UNITS.T


class Iterate(NamedTuple):
    """A point of the method.

    Attributes:
        v: Unknowns, (unknowns,).
        s: Slacks of the inequalities, (inequalities,).
        y: Multipliers of the inequalities, (inequalities,).
        X: Factors F of the slacks ``X = F Fᵀ`` of the matrices, (matrices, 4, 4).
        Y: Factors of the multipliers of the matrices, (matrices, 4, 4).
    """

    v: Array
    s: Array
    y: Array
    X: Array
    Y: Array


class ConvergenceError(EstimationError):
    """The method stopped before the optimum because of rounding.

    Attributes:
        best: The best point found that satisfies all constraints; None if there was none.
    """

    def __init__(self, best: Iterate | None, gap: float) -> None:
        """State how far the best point is from the optimum, as part of the weight of the prior."""
        self.best = best
        where = "without a point that satisfies all constraints" if best is None else f"at {gap:.1g} of the prior"
        super().__init__(
            f"the physically consistent bodies were not computed: rounding stopped the method {where} instead of "
            f"{RESOLUTION:.0g}. Calibrate without physical parameters (--no-physical)."
        )


@dataclass(frozen=True)
class DefiniteLeastSquares:
    """The problem of the module for one λ; its unknowns have no unit.

    Attributes:
        factor: [R z] of the data, (rows, effects + 1).
        effects: T, (effects, unknowns).
        free: Which unknowns have no divergence, (unknowns,).
        matrices: Number of matrices Q_j.
        ratios: Rows r_k, (k, unknowns).
        firmness: Weights w_k of the ratios beside those of the matrices, (k,).
        bound: Indices of the unknowns >= 0, which are part of G.
        inequalities: The other rows of G, (m, unknowns).
        kind: Divergence.
        weight: λ.
        basis: V, (unknowns, unknowns).
        rows: A V, (rows, unknowns).
        right: b, (rows,).
        limits: G: unknowns with a bound, other inequalities, ratios of an entropic divergence, (limits, unknowns).
        costs: Linear cost of every row of G: c = Gᵀ costs and, for the entropic matrices, `cost` times their trace.
        products: p_i of every row of G.
        cost: Cost of the trace of the matrices.
        product: p of the matrices.
    """

    factor: Array
    effects: Array
    free: Mask
    matrices: int
    ratios: Array
    firmness: Array
    bound: Index
    inequalities: Array
    kind: PriorKind
    weight: float
    basis: Array = field(init=False)
    rows: Array = field(init=False)
    right: Array = field(init=False)
    limits: Array = field(init=False)
    costs: Array = field(init=False)
    products: Array = field(init=False)
    cost: float = field(init=False)
    product: float = field(init=False)

    def __post_init__(self) -> None:
        """Set up the rows of squares in the basis, and the products of slack and multiplier at the optimum.

        An entropic divergence r - log r is a linear cost r with the inequality r >= 0 at the product λ.
        """
        entropic, unit = self.kind == "entropic", np.eye(self.effects.shape[1])
        R, z = self.factor[:, :-1], self.factor[:, -1:]
        order = np.argsort(-np.linalg.norm(R, axis=0) * np.linalg.norm(self.effects, axis=1), kind="stable")
        V, L = np.linalg.qr(self.effects[order].T, mode="complete")
        rows = np.vstack([np.column_stack([R[:, order] @ L.T, z]), self._squares() @ _with_last(V)])
        reduced = triangle(rows)[: len(unit)]  # a last row would hold nothing but the residual
        few = len(self.firmness) * entropic
        limits = np.vstack([unit[self.bound], self.inequalities, self.ratios[:few]])
        costs = np.zeros(len(limits))
        costs[len(limits) - few :] = self.weight * self.firmness[:few]
        for name, value in (
            ("basis", V),
            ("rows", reduced[:, :-1]),
            ("right", reduced[:, -1]),
            ("limits", limits),
            ("costs", costs),
            ("products", np.where(costs > 0.0, costs, BARRIER * self.weight)),
            ("cost", self.weight * entropic),
            ("product", self.weight * (1.0 if entropic else BARRIER)),
        ):
            object.__setattr__(self, name, value)

    def _squares(self) -> Array:
        """Return rows [A b] beside those of the data: the ridge of free scalars, and Euclidean divergences."""
        unit = np.eye(len(self.free))
        rows = [_with_right(np.sqrt(RIDGE) * unit[self.free], 0.0)]
        if self.kind == "euclidean":
            root = np.sqrt(self.weight)
            bodies = np.column_stack([unit[: 10 * self.matrices], np.tile(IDENTITY, self.matrices)])
            rows += [root * bodies, root * np.sqrt(self.firmness)[:, None] * _with_right(self.ratios, 1.0)]
        return np.vstack(rows)

    def solve(self, start: Iterate | None = None) -> Iterate:
        """Return the optimum, from a `start` that may be the optimum of a similar problem.

        Raises:
            ConvergenceError: The method stopped before the optimum.

        """
        point = self._first() if start is None else _pushed(start)
        best, least = None, np.inf
        for _ in range(MAX_ITERATIONS):
            try:
                step = _Step(self, point)
            except np.linalg.LinAlgError:
                break
            point = step.end
            if step.feasible and step.gap < least:
                best, least = point, step.gap
            if least <= RESOLUTION * self.weight:
                return point
        raise ConvergenceError(best, least / self.weight)

    def missing(self, point: Iterate) -> tuple[Array, Array]:
        """Return by how much constraints exceed their slacks: G v - s, and Q - ε - X of the matrices."""
        definite = symmetric(point.v[: 10 * self.matrices].reshape(-1, 10) - MARGIN * IDENTITY)
        return self.limits @ point.v - point.s, definite - _square(point.X)

    def _first(self) -> Iterate:
        """Return the matrices of the prior with the scalars that fit them best.

        The Euclidean prior of the ratios decides scalars without effect on the data (rotors of joints without output).
        """
        v, bodies = np.zeros(len(self.free)), 10 * self.matrices
        v[:bodies] = np.tile(IDENTITY, self.matrices)
        firm = np.sqrt(self.weight * self.firmness)
        rows = np.vstack([self.rows @ self.basis.T, firm[:, None] * self.ratios])
        right = np.concatenate([self.right, firm]) - rows[:, :bodies] @ v[:bodies]
        v[bodies:] = np.linalg.lstsq(rows[:, bodies:], right)[0]
        slack, unit = np.maximum(self.limits @ v, 1.0), np.tile(np.eye(4), (self.matrices, 1, 1))
        cost = 0.5 * float(np.sum((self.rows @ (self.basis.T @ v) - self.right) ** 2))
        product = max(FIRST, cost / (len(slack) + 4 * self.matrices))
        return Iterate(v, slack, product / slack, unit, np.sqrt(product) * unit)


def _with_right(rows: Array, value: float) -> Array:
    """Return rows [A b] with the same b in every row."""
    return np.column_stack([rows, np.full(len(rows), value)])


def _with_last(basis: Array) -> Array:
    """Return the basis (n + 1, n + 1) in which the right side of rows [A b] keeps its column."""
    result = np.eye(len(basis) + 1)
    result[:-1, :-1] = basis
    return result


def _square(factors: Array) -> Array:
    """Return F Fᵀ of factors (matrices, 4, 4)."""
    return factors @ factors.transpose(0, 2, 1)


def _factor(matrices: Array) -> Array:
    """Return lower triangular F of F Fᵀ for positive definite matrices (matrices, 4, 4)."""
    return np.asarray(np.linalg.cholesky(matrices), dtype=float)


def _pushed(start: Iterate) -> Iterate:
    """Return a start away from the boundary, so that other constraints may become active."""
    X, Y = (_factor(_square(F) + PUSH * np.eye(4)) for F in (start.X, start.Y))
    return Iterate(start.v, np.maximum(start.s, PUSH), np.maximum(start.y, PUSH), X, Y)


class _Direction(NamedTuple):
    """A Newton direction: dv, ds, dy, and the scaled changes ``G⁻¹ dX G⁻ᵀ`` and ``Gᵀ dY G`` of the matrices."""

    v: Array
    s: Array
    y: Array
    X: Array
    Y: Array


class _Step:
    """One predictor and corrector step; see the module.

    The scaling G of a matrix makes slack and multiplier equal and diagonal: ``G⁻¹ X G⁻ᵀ = Gᵀ Y G = S``. It follows from
    ``Y = E Eᵀ, X = F Fᵀ`` and the singular values ``Eᵀ F = U S Wᵀ`` as ``G⁻¹ = S^(-1/2) Uᵀ Eᵀ, G = F W S^(-1/2)``.

    Attributes:
        end: The next point.
        feasible: Whether the next point satisfies the constraints.
        gap: ‖A dv‖² + λ ‖dv‖² of the step, or the excess of the products if larger: what is left of the objective.
    """

    def __init__(self, problem: DefiniteLeastSquares, point: Iterate) -> None:
        """Take the step."""
        self.problem, self.point, self.bodies = problem, point, 10 * problem.matrices
        U, self.S, Wt = np.linalg.svd(point.Y.transpose(0, 2, 1) @ point.X)
        root = np.sqrt(self.S)
        self.G = point.X @ Wt.transpose(0, 2, 1) / root[:, None, :]
        self.inverse = (point.Y @ U / root[:, None, :]).transpose(0, 2, 1)
        self.missing, missing = problem.missing(point)
        self.missing_matrices = self.inverse @ missing @ self.inverse.transpose(0, 2, 1)
        pairs = np.einsum("lac,lbd->labcd", self.inverse, self.inverse).reshape(-1, 16, 16)
        self.scaled = UNITS @ pairs @ UNITS.T
        self.rates = np.sqrt(point.y / point.s)
        V = problem.basis
        rows = [problem.rows, self.rates[:, None] * (problem.limits @ V)]
        rows.append((self.scaled @ V[: self.bodies].reshape(-1, 10, len(V))).reshape(-1, len(V)))
        self.rows = np.vstack(rows)
        largest_first = self.rows[np.argsort(-np.abs(self.rows).max(axis=1))]
        self.upper = np.asarray(np.linalg.inv(triangle(largest_first)), dtype=float)
        excess = self._excess(None, 0.0)
        predictor = self._direction(0.0)
        ahead = self._excess(predictor, min(1.0, self._largest_step(predictor)))
        direction = self._direction(excess * min(ahead / max(excess, 1e-300), 1.0) ** 3, predictor)
        length = min(1.0, TO_BOUNDARY * self._largest_step(direction))
        if length < SHORT:
            direction = self._direction(excess)
            length = min(1.0, TO_BOUNDARY * self._largest_step(direction))
        self.end = self._moved(direction, length)
        violation = max(float(np.abs(part).max(initial=0.0)) for part in (self.missing, missing))
        self.feasible = length > 0.5 and violation <= INFEASIBLE
        moved = problem.rows @ (V.T @ direction.v)
        size = 1.0 + np.linalg.norm(point.v[: self.bodies].reshape(-1, 10), axis=1)
        change = direction.v[: self.bodies].reshape(-1, 10) / size[:, None]
        self.gap = max(float(moved @ moved + problem.weight * np.sum(change**2)), excess)

    def _direction(self, excess: float, before: _Direction | None = None) -> _Direction:
        """Return the Newton direction towards products that exceed those of the optimum by `excess`.

        Eliminating ds, dy, dX and dY from the linearised conditions leaves the least-squares problem of the rows

            A dv = b - A v,    √(y/s) G dv = √(s/y) (p / s - c) - √(y/s) (G v - s),
            G⁻¹ dQ G⁻ᵀ = S + P - G⁻¹ (Q - ε - X) G⁻ᵀ - c Gᵀ G,    S P + P S = 2 (p 1 - S²).

        Args:
            excess: Amount by which all products exceed those of the optimum.
            before: The predictor; its second-order terms ds dy and dX dY are subtracted from the products.

        """
        _, s, y, *_ = self.point
        problem, unit = self.problem, np.eye(4)
        products = problem.products + excess
        matrices = (problem.product + excess) * unit - self.S[:, :, None] ** 2 * unit
        if before is not None:
            products = products - before.s * before.y
            matrices = matrices - _even(before.X @ before.Y)
        P = 2.0 * matrices / (self.S[:, :, None] + self.S[:, None, :])
        cost = problem.cost * self.G.transpose(0, 2, 1) @ self.G
        right = (
            problem.right - problem.rows @ (problem.basis.T @ self.point.v),
            (products / s - problem.costs) / self.rates - self.rates * self.missing,
            entries(self.S[:, :, None] * unit + P - self.missing_matrices - cost).ravel(),
        )
        dv = problem.basis @ self._least_squares(np.concatenate(right))
        ds = problem.limits @ dv + self.missing
        dX = symmetric((self.scaled @ dv[: self.bodies].reshape(-1, 10, 1))[:, :, 0]) + self.missing_matrices
        return _Direction(dv, ds, (products - y * ds) / s - y, dX, P - dX)

    def _least_squares(self, right: Array) -> Array:
        """Return x that minimises ‖M x - right‖ for the rows M = Q R, by seminormal equations with refinement.

        Each pass adds ``U Uᵀ Mᵀ (right - M x)`` with U = R⁻¹. Å. Björck, "Stability analysis of the method of
        seminormal equations for linear least squares problems", Linear Algebra Appl. 88/89, 1987.
        """
        x = np.zeros(len(self.upper))
        for _ in range(REFINEMENTS):
            x += self.upper @ (((right - self.rows @ x) @ self.rows) @ self.upper)
        return x

    def _largest_step(self, direction: _Direction) -> float:
        """Return the largest step up to the boundary."""
        matrices = np.linalg.eigvalsh(self._relative(np.stack([direction.X, direction.Y])))
        rates = (direction.s / self.point.s, direction.y / self.point.y, matrices)
        return 1.0 / max(-min(float(rate.min(initial=0.0)) for rate in rates), 1e-12)

    def _relative(self, change: Array) -> Array:
        """Return S^(-1/2) D S^(-1/2)."""
        root = np.sqrt(self.S)
        result: Array = change / root[:, :, None] / root[:, None, :]
        return result

    def _moved(self, direction: _Direction, length: float) -> Iterate:
        """Return the point at the end of a step; its factors are G S^½ K and G⁻ᵀ S^½ K, K Kᵀ = 1 + S^-½ D S^-½."""
        root = np.sqrt(self.S)[:, None, :]
        X, Y = (_factor(np.eye(4) + length * self._relative(change)) for change in (direction.X, direction.Y))
        v, s, y = (at + length * change for at, change in zip(self.point[:3], direction[:3], strict=True))
        return Iterate(v, s, y, (self.G * root) @ X, (self.inverse.transpose(0, 2, 1) * root) @ Y)

    def _excess(self, direction: _Direction | None, length: float) -> float:
        """Return the mean absolute difference of the products s y and tr(X Y)/4 from those of the optimum."""
        s, y = self.point.s, self.point.y
        X = Y = self.S[:, :, None] * np.eye(4)
        if direction is not None:
            s, y = s + length * direction.s, y + length * direction.y
            X, Y = X + length * direction.X, Y + length * direction.Y
        scalars = np.abs(s * y - self.problem.products)
        matrices = np.abs(np.einsum("lab,lba->l", X, Y) / 4.0 - self.problem.product)
        return float(scalars.sum() + 4.0 * matrices.sum()) / (len(scalars) + 4 * len(matrices))


def _even(matrices: Array) -> Array:
    """Return the symmetric part of matrices (..., 4, 4)."""
    return 0.5 * (matrices + matrices.swapaxes(-1, -2))
