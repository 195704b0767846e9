"""Base parameters: the identifiable combinations of the standard parameters, as a projection.

``β = P π`` are the combinations that act on the joint torques; changes along the null space of P have no effect. Two
methods that share no code compute the projection: from the rank of the regressor at random states (`numerical`), and
from the geometry of the chain (`closed_form`).

References: M. Gautier, "Numerical calculation of the base inertial parameters of robots", J. Robotic Systems 8(4),
1991; M. Gautier and W. Khalil, "Direct calculation of minimum set of inertial parameters of serial robots", IEEE Trans.
Robotics and Automation 6(3), 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointwise import spatial
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Robot
from jointwise.errors import ModelError, ShapeError
from jointwise.model.rigid.regressor import KinematicKey, standard_names
from jointwise.model.transmission import motor_regressor
from jointwise.spatial import Array

Identifiability = Literal["alone", "combination", "none"]

RANK_TOLERANCE = 1e-9
"""A column is dependent if its residual beside the columns before it is below this fraction of its norm."""
_TINY = 1e-9
"""Entries of a projection below this are rounding errors; dimensionless."""


@dataclass(frozen=True)
class BaseParameters:
    """Base parameters ``β = P π``: the combinations of the standard parameters π that act on the joint torques.

    Attributes:
        standard_names: Names of the standard parameters, (standard,).
        kept: Index of the standard parameter that heads each base parameter, (base,).
        projection: P, shape (base, standard). Its columns `kept` are the identity.

    """

    standard_names: tuple[str, ...]
    kept: NDArray[np.intp]
    projection: Array

    @property
    def count(self) -> int:
        """Number of base parameters."""
        return len(self.kept)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters: `ZZ6` where it stands alone, `ZZR2` where others are grouped into it."""
        heads = [self.standard_names[k] for k in self.kept]
        grouped = (np.abs(self.projection) > _TINY).sum(axis=1) > 1
        return tuple(_regrouped(head) if group else head for head, group in zip(heads, grouped, strict=True))

    @cached_property
    def formulas(self) -> tuple[str, ...]:
        """Every base parameter as a formula of the standard ones, `ZZR2 = ZZ2 + YY3 + 0.18 m3`."""
        return tuple(
            f"{name} = {_combination(row, self.standard_names, head)}"
            for name, row, head in zip(self.names, self.projection, self.kept, strict=True)
        )

    @cached_property
    def lift(self) -> Array:
        """The matrix L of one representative ``π = L β`` with P L = 1, shape (standard, base).

        Every base parameter is assigned to the standard parameter that heads it, and the others are zero. The joint
        torques are those of β, but the bodies are not physical.
        """
        L = np.zeros((len(self.standard_names), self.count))
        L[self.kept, np.arange(self.count)] = 1.0
        return L

    @cached_property
    def classification(self) -> dict[str, Identifiability]:
        """How each standard parameter is identifiable: alone, only in combination, or not at all (no effect)."""
        null = null_space(self.projection)
        alone_mask = np.abs(null).max(axis=1, initial=0.0) < 1e-8
        no_effect = np.abs(self.projection).max(axis=0, initial=0.0) < _TINY
        return {
            name: "none" if none else "alone" if alone else "combination"
            for name, alone, none in zip(self.standard_names, alone_mask, no_effect, strict=True)
        }

    def from_standard(self, parameters: Array) -> Array:
        """Return β = P π.

        Args:
            parameters: Standard parameters π, shape (..., standard).

        Returns:
            Base parameters, shape (..., base).

        Raises:
            ShapeError: The last axis of `parameters` has another length.

        """
        values = np.asarray(parameters, dtype=float)
        if values.shape[-1] != len(self.standard_names):
            raise ShapeError(
                f"parameters must have {len(self.standard_names)} entries on the last axis. "
                f"Got {values.shape[-1]} instead."
            )
        result: Array = values @ self.projection.T
        return result

    def to_standard(self, values: Array, prior: Array | None = None) -> Array:
        """Return standard parameters π with ``P π = β``.

        Without a prior these are ``π = L β`` (see `lift`). With a prior π₀ they are the nearest in Euclidean norm,

            π = π₀ + P⁺ (β - P π₀).

        Args:
            values: Base parameters β, (base,).
            prior: Standard parameters π₀, (standard,) or (links, 10); None for the representative of `lift`.

        Returns:
            π, shape (standard,), in SI units: kg m², kg m, kg.

        Raises:
            ShapeError: `values` has another shape than (base,).

        """
        beta = np.asarray(values, dtype=float)
        if beta.shape != (self.count,):
            raise ShapeError(f"values must have shape ({self.count},). Got {beta.shape} instead.")
        if prior is None:
            result: Array = self.lift @ beta
            return result
        start = np.asarray(prior, dtype=float).ravel()
        correction: Array = np.linalg.pinv(self.projection) @ (beta - self.from_standard(start))
        return start + correction


def base_parameters(
    robot: Robot,
    gravity: Mounting = "table",
    rotors: bool = False,
    method: Literal["numerical", "closed_form"] = "numerical",
) -> BaseParameters:
    """Return the base parameters of a robot.

    The joint torques are ``τ = Y(q, q̇, q̈) π = Y_b β`` with ``β = P π``. Both methods drop a standard parameter exactly
    when its column of Y is a combination of the columns before it (base to tip, order of `spatial.INERTIAL_NAMES`,
    rotors last). This is the choice of Gautier and Khalil (1990): YY, mZ and m are grouped into the previous link.

    Args:
        robot: The robot; only its kinematics and transmission are used.
        gravity: Mounting of the base, or gravity in the base frame, m/s².
        rotors: Whether reflected rotor inertias (kg m² at the joint) are standard parameters too.
        method: `numerical`: rank of Y at random states. `closed_form`: geometry of the chain.

    Returns:
        The base parameters.

    Raises:
        ModelError: The closed form is requested for rotors of a coupled transmission.

    """
    if method == "closed_form":
        if robot.transmission is not None and rotors:
            raise ModelError("the closed form does not know coupled rotors: use the numerical method.")
        null = closed_form_null_space(robot, gravity_vector(gravity), rotors)
        return _from_null_space(null, standard_names(robot.dof, rotors))
    return _numerical(KinematicKey(robot, gravity), rotors)


@lru_cache(maxsize=64)
def _numerical(key: KinematicKey, rotors: bool) -> BaseParameters:
    """Return the base parameters from the rank of the regressor; a calibration makes dozens of models of one robot."""
    return group_columns(_triangle(key.robot, key.gravity, rotors), standard_names(key.robot.dof, rotors))


def group_columns(matrix: Array, names: Sequence[str], tolerance: float = RANK_TOLERANCE) -> BaseParameters:
    """Return the base parameters of an observation matrix W, of a model or of recorded data.

    With the independent columns W₁ and the dependent ones ``W₂ = W₁ X``,

        W π = W₁ π₁ + W₂ π₂ = W₁ (π₁ + X π₂) = W₁ β,

    where X follows from the QR factors ``W = Q [R₁ R₂]`` as ``R₁⁻¹ R₂`` (Gautier 1991). Columns are examined in their
    order by modified Gram-Schmidt orthogonalisation.

    Args:
        matrix: W, shape (rows, standard).
        names: Names of its columns.
        tolerance: A column is dependent if its residual beside the columns kept so far is below this part of its norm.

    Returns:
        The base parameters; P = [1 X] up to the order of the columns.

    """
    W = np.asarray(matrix, dtype=float)
    lengths = np.linalg.norm(W, axis=0)
    active = lengths > tolerance * lengths.max(initial=0.0)
    scaled = np.where(active, W / np.where(active, lengths, 1.0), 0.0)
    kept: list[int] = []
    basis = np.zeros((len(W), 0))
    for k in np.flatnonzero(active):
        rest = scaled[:, k]
        for _ in range(2):  # the second pass removes the rounding errors of the first
            rest = rest - basis @ (basis.T @ rest)
        residual = float(np.linalg.norm(rest))
        if residual > tolerance:
            kept.append(int(k))
            basis = np.column_stack([basis, rest / residual])
    coordinates = np.linalg.lstsq(scaled[:, kept], scaled, rcond=None)[0] if kept else np.zeros((0, len(lengths)))
    projection = coordinates * lengths / lengths[kept][:, None]
    return BaseParameters(tuple(names), np.array(kept, dtype=np.intp), _cleaned(projection, kept))


def null_space(projection: Array) -> Array:
    """Return an orthonormal basis of ``{π : P π = 0}``, shape (standard, standard - base)."""
    _, sizes, rows = np.linalg.svd(projection, full_matrices=True)
    rank = int((sizes > 1e-10 * sizes.max(initial=0.0)).sum())
    return rows[rank:].T


def _triangle(robot: Robot, gravity: Mounting, rotors: bool) -> Array:
    """Return the R factor of the regressor stacked over random states, more of them until its rank stops growing."""
    random = np.random.default_rng(20_240_521)
    R = np.zeros((0, robot.dof * (11 if rotors else 10)))
    rank = -1
    while True:
        q, qd, qdd = random.uniform(-np.pi, np.pi, (3, 10 * robot.dof, robot.dof))
        rows = motor_regressor(robot, q, qd, qdd, gravity=gravity, rotors=rotors).stacked()
        R = np.asarray(np.linalg.qr(np.vstack([R, rows]), mode="r"))
        grown = int(np.linalg.matrix_rank(R / np.maximum(np.linalg.norm(R, axis=0), 1e-300), rtol=RANK_TOLERANCE))
        if grown == rank:
            return R
        rank = grown


def _from_null_space(null: Array, names: tuple[str, ...]) -> BaseParameters:
    """Return the projection with a null space: the last parameter of each null vector is dropped."""
    dropped: list[int] = []
    rest = null.copy()
    for k in reversed(range(len(names))):  # column echelon form from the last parameter up
        if rest.shape[1] == 0:
            break
        pivot = int(np.argmax(np.abs(rest[k])))
        if abs(rest[k, pivot]) < _TINY * max(1.0, float(np.abs(rest).max())):
            continue
        dropped.append(k)
        column = rest[:, pivot] / rest[k, pivot]
        rest = np.delete(rest - np.outer(column, rest[k]), pivot, axis=1)
    kept = [k for k in range(len(names)) if k not in dropped]
    projection = np.zeros((len(kept), len(names)))
    projection[:, kept] = np.eye(len(kept))
    if dropped:
        projection[:, dropped] = -np.linalg.solve(null[dropped].T, null[kept].T).T
    return BaseParameters(names, np.array(kept, dtype=np.intp), _cleaned(projection, kept))


def _cleaned(projection: Array, kept: list[int]) -> Array:
    """Round entries that are 0 or 1 up to rounding errors, so that formulas are exact."""
    P = np.where(np.abs(projection) < _TINY, 0.0, projection)
    P = np.where(np.abs(P - np.round(P)) < _TINY, np.round(P), P)
    P[:, kept] = np.eye(len(kept))
    P.setflags(write=False)
    return P


def _regrouped(name: str) -> str:
    """Return `ZZR2` for `ZZ2`."""
    letters = name.rstrip("0123456789")
    return f"{letters}R{name[len(letters) :]}"


def _combination(row: Array, names: tuple[str, ...], head: int) -> str:
    """Return `ZZ2 + YY3 - 0.18 m3`, the head first."""
    order = [int(head), *(int(k) for k in np.flatnonzero(row) if k != head)]
    text = ""
    for k in order:
        size = float(f"{abs(row[k]):.11g}")  # the printed digits do not depend on the last bits
        factor = "" if size == 1.0 else f"{size:.6g} "
        sign = ("-" if row[k] < 0 else "") if not text else (" - " if row[k] < 0 else " + ")
        text += f"{sign}{factor}{names[k]}"
    return text


# Every set is a trigonometric polynomial of degree 2 in q (revolute) or a quadratic one (prismatic): seven positions
# span it.
_POSITIONS = np.array([0.0, 0.7, 1.5, 2.4, 3.3, 4.3, 5.4])
_TOLERANCE = 1e-10
"""Relative size of singular values that count as zero."""


def closed_form_null_space(robot: Robot, gravity: Array, rotors: bool) -> Array:
    """Return a basis of the changes of the standard parameters that do not affect the joint torques.

    A change k of the parameters of link j can be moved to link j-1 with the opposite sign, without effect on the
    torques, if its energy does not depend on q_j and if joint j does not excite it:

        b·(T_j(q) - T_j(0)) k = 0,    b(s_j, v)·k = 0,    b(s_j, s_j)·k = 0 (or + the change of the rotor inertia),

    for the energies b that links before j can have and the motions v that they impart, with the axis s_j of the joint
    and the map T_j(q) of inertial parameters from {j} to {j-1} (Gautier and Khalil 1990, by subspaces).

    Args:
        robot: The robot.
        gravity: Gravity in the base frame, (3,), m/s².
        rotors: Whether reflected rotor inertias follow the parameters of the links.

    Returns:
        Null vectors as columns, shape (10 n [+ n], nullity).

    """
    motions = _basis(np.concatenate([np.zeros(3), -gravity])[:, None])
    seen = np.zeros((10, 0))
    columns = []
    for j in range(robot.dof):
        axis = np.eye(6)[:, 2 if robot.revolute[j] else 5]
        placements = [_placement(robot, j, q) for q in _POSITIONS]
        moves = [spatial.move_inertial_matrix(R, p) for R, p in placements]
        carried = _basis(np.hstack([_motion_matrix(R, p) @ motions for R, p in placements]))
        inertia = energy_vector(axis, axis)[:, None]
        crossed = np.column_stack([energy_vector(axis, motion) for motion in carried.T] or [np.zeros(10)])
        varying = np.hstack([(T - moves[0]).T @ seen for T in moves[1:]])
        changes = _transferable(crossed, varying, inertia, rotors)
        columns.append(_null_vectors(changes, j, moves[0], robot.dof, rotors))
        seen = _basis(np.hstack([*(T.T @ seen for T in moves), crossed, inertia]))
        motions = _basis(np.column_stack([carried, axis]))
    return np.hstack(columns)


def _null_vectors(changes: Array, j: int, move: Array, dof: int, rotors: bool) -> Array:
    """Return null vectors as columns: changes (10 [+ 1], k) of link j, and their opposite moved to link j-1."""
    vectors = np.zeros((dof * (11 if rotors else 10), changes.shape[1]))
    vectors[10 * j : 10 * j + 10] = changes[:10]
    if j > 0:
        vectors[10 * j - 10 : 10 * j] = -move @ changes[:10]
    if rotors:
        vectors[10 * dof + j] = changes[10]
    return vectors


def energy_vector(u: Array, v: Array) -> Array:
    """Return b (10,) with ``uᵀ I(π) v = b·π``.

    Args:
        u: Spatial motion (ω, v), (6,), rad/s and m/s.
        v: Spatial motion (ω, v), (6,), rad/s and m/s.
    """
    (wu, vu), (wv, vv) = (u[:3], u[3:]), (v[:3], v[3:])
    product = np.outer(wu, wv)
    tensor = spatial.tensor_to_six(product + product.T - np.diag(np.diag(product)))
    return np.concatenate([tensor, np.cross(vv, wu) + np.cross(vu, wv), [vu @ vv]])


def _transferable(crossed: Array, varying: Array, inertia: Array, rotors: bool) -> Array:
    """Return a basis of K_j as columns (10, ·), or (11, ·) with the rotor inertia last."""
    conditions = np.hstack([crossed, varying])
    if not rotors:
        return _complement(_basis(np.hstack([conditions, inertia])))
    conditions = np.vstack([conditions, np.zeros(conditions.shape[1])])
    return _complement(_basis(np.hstack([conditions, np.vstack([inertia, [[1.0]]])])))


def _placement(robot: Robot, j: int, q: float) -> tuple[Array, Array]:
    """Return {j} in {j-1} at joint position q."""
    R, p = robot.rotations[j], robot.translations[j]
    if robot.revolute[j]:
        return R @ spatial.rotation_z(q), p
    return R, p + R[:, 2] * q


def _motion_matrix(R: Array, p: Array) -> Array:
    """Return the (6, 6) map of motions (ω, v) from {j-1} to {j}: ``ω' = Rᵀ ω, v' = Rᵀ (v + ω × p)``."""
    X = np.zeros((6, 6))
    X[:3, :3] = X[3:, 3:] = R.T
    X[3:, :3] = -R.T @ spatial.skew(p)
    return X


def _basis(vectors: Array) -> Array:
    """Return an orthonormal basis of the span of the columns."""
    if vectors.shape[1] == 0:
        return vectors
    left, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
    return left[:, sizes > _TOLERANCE * max(1.0, float(sizes[0]))]


def _complement(basis: Array) -> Array:
    """Return an orthonormal basis of what is orthogonal to an orthonormal basis."""
    left, _, _ = np.linalg.svd(basis, full_matrices=True)
    return left[:, basis.shape[1] :]
