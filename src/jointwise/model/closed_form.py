"""Gautier and Khalil's regrouping from the geometry of the chain, with its special cases falling out of the rule.

A body's energy is linear in its ten parameters. With spatial velocities u = (ω, v), the form ``uᵀ I u' = b(u, u')·π``
defines vectors b in R¹⁰. Torques vanish for a change δπ exactly when ``φ_kᵀ I δ a = 0`` for every joint axis φ_k and
every motion a, gravity included as the acceleration of the base. Three sets per link tell what can be seen of it:

    A_j = span of the motions that link j can have:      X(q) A_{j-1} for all q, and φ_j;       A_0 = gravity
    S_j = span of the b that link j can have:            T(q)ᵀ S_{j-1}, b(φ_j, A_j) for all q;  S_0 = nothing
    K_j = changes of link j that move to link j-1:       b(φ_j, A_j)·δπ = 0  and  (T(q)ᵀ - T(0)ᵀ) S_{j-1}·δπ = 0

with T(q) moving parameters from {j} to {j-1}. δπ in K_j acts on link j-1 as ``T(0) δπ`` whatever q_j does, so
(δπ on link j, -T(0) δπ on link j-1) is a null vector, and these are all of them. For a revolute joint in general
position K_j is {XX+YY, mZ, m}: the classical rule. Where the links before can only turn about parallel axes, or gravity
lies along the first axis, A and S are smaller and K_j larger: the classical special cases. Rotor inertia joins as an
eleventh parameter with ``b(φ, φ)·δπ + δIa = 0``.
"""

from __future__ import annotations

import numpy as np

from jointwise import spatial
from jointwise.description.robot import Robot
from jointwise.spatial import Array

# Every set is a trigonometric polynomial of degree 2 in q (revolute) or a quadratic one (prismatic): seven positions
# span it.
_POSITIONS = np.array([0.0, 0.7, 1.5, 2.4, 3.3, 4.3, 5.4])
_TOLERANCE = 1e-10


def null_space(robot: Robot, gravity: Array, rotors: bool) -> Array:
    """Return changes of the standard parameters that no torque shows, as columns (10 n [+ n], nullity)."""
    n = robot.dof
    motions = _basis(np.concatenate([np.zeros(3), -gravity])[:, None])
    seen = np.zeros((10, 0))
    columns = []
    for j in range(n):
        axis = np.eye(6)[:, 2 if robot.revolute[j] else 5]
        places = [_placement(robot, j, q) for q in _POSITIONS]
        moves = [spatial.move_inertial_matrix(R, p) for R, p in places]
        carried = _basis(np.hstack([_motion_matrix(R, p) @ motions for R, p in places]))
        own = np.column_stack([energy_vector(axis, axis)])
        crossed = np.column_stack([energy_vector(axis, motion) for motion in carried.T] or [np.zeros(10)])
        varying = np.hstack([(T - moves[0]).T @ seen for T in moves[1:]])
        for change in _transferable(crossed, varying, own, rotors).T:
            column = np.zeros(n * (11 if rotors else 10))
            column[10 * j : 10 * j + 10] = change[:10]
            if j > 0:
                column[10 * j - 10 : 10 * j] = -moves[0] @ change[:10]
            if rotors:
                column[10 * n + j] = change[10]
            columns.append(column)
        seen = _basis(np.hstack([*(T.T @ seen for T in moves), crossed, own]))
        motions = _basis(np.column_stack([carried, axis]))
    return np.column_stack(columns) if columns else np.zeros((n * (11 if rotors else 10), 0))


def energy_vector(u: Array, v: Array) -> Array:
    """Return b with ``uᵀ I v = b·π`` for spatial motions (angular; linear), shape (10,)."""
    (wu, vu), (wv, vv) = (u[:3], u[3:]), (v[:3], v[3:])
    product = np.outer(wu, wv)
    tensor = spatial.tensor_to_six(product + product.T - np.diag(np.diag(product)))
    return np.concatenate([tensor, np.cross(vv, wu) + np.cross(vu, wv), [vu @ vv]])


def _transferable(crossed: Array, varying: Array, own: Array, rotors: bool) -> Array:
    """Return a basis of K_j as columns (10, ·), or (11, ·) with the rotor inertia last."""
    conditions = np.hstack([crossed, varying])
    if not rotors:
        return _complement(_basis(np.hstack([conditions, own])))
    conditions = np.vstack([conditions, np.zeros(conditions.shape[1])])
    return _complement(_basis(np.hstack([conditions, np.vstack([own, [[1.0]]])])))


def _placement(robot: Robot, j: int, q: float) -> tuple[Array, Array]:
    """Return {j} in {j-1} at joint position q."""
    R, p = robot.rotations[j], robot.translations[j]
    if robot.revolute[j]:
        return R @ spatial.rotation_z(q), p
    return R, p + R[:, 2] * q


def _motion_matrix(R: Array, p: Array) -> Array:
    """Return the (6, 6) map of motions (ω, v) from {j-1} to {j}: ω' = Rᵀ ω, v' = Rᵀ (v + ω × p)."""
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
