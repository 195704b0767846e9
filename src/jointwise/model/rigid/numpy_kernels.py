"""The rigid-body kernels in NumPy: reference of the native ones, used where there is no compiler.

Functions and arguments are those of `jointwise._native`, algorithms those of `src/native/rigid.h`, but for forward
dynamics, which the native kernel computes by articulated bodies and this module by a Cholesky factor of M:

- inverse dynamics: recursive Newton-Euler (Luh, Walker & Paul, J. Dyn. Syst. Meas. Control 102(2), 1980);
- regressor: the same for a unit of each parameter (Atkeson, An & Hollerbach, Int. J. Robotics Research 5(3), 1986);
- mass matrix: composite rigid bodies (Walker & Orin, J. Dyn. Syst. Meas. Control 104(3), 1982);
- bodies as pseudo-inertias (Wensing, Kim & Slotine, IEEE Robotics and Automation Letters 3(1), 2018).

Samples are processed in blocks that fit into the cache, in memory that is allocated once. Vectors have shape
(3, ..., block), rotations (3, 3, block); those of link j are in frame {j}.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jointwise.spatial import Array, pseudo_inertia

if TYPE_CHECKING:
    from jointwise.model.rigid.chain import Chain

BLOCK = 4000
"""Samples of a block."""

_quiet = partial(np.errstate, over="ignore", invalid="ignore", divide="ignore")
"""Every kernel reports by its return value whether its results are finite; NumPy need not warn as well."""


def cross(a: Array, b: Array) -> Array:
    """Return a × b of (3, ..., block) vectors."""
    result = np.empty(np.broadcast_shapes(a.shape, b.shape))
    result[0] = a[1] * b[2] - a[2] * b[1]
    result[1] = a[2] * b[0] - a[0] * b[2]
    result[2] = a[0] * b[1] - a[1] * b[0]
    return result


def rotate(R: Array, v: Array, out: Array | None = None) -> Array:
    """Return R v: from the moved frame to the one before it."""
    result: Array = np.einsum("ikb,k...b->i...b", R, v, out=out)
    return result


def unrotate(R: Array, v: Array, out: Array | None = None) -> Array:
    """Return Rᵀ v: from the frame before to the moved one."""
    result: Array = np.einsum("kib,k...b->i...b", R, v, out=out)
    return result


def all_finite(*arrays: Array | None) -> bool:
    """Return whether results and inputs are finite."""
    return all(bool(np.isfinite(array).all()) for array in arrays if array is not None)


def series_of(values: Array | None, block: slice, dof: int) -> Array:
    """Return the block of a (samples, joints) array as (joints, block); zeros where there is none."""
    if values is None:
        return np.zeros((dof, block.stop - block.start))
    return np.ascontiguousarray(values[block].T)


def placed(chain: Chain, q: Array) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of samples with T = [R p] of every frame in the one before it, (joints, 3, 4, block).

    ``R = R0 Rot_z(q), p = p0`` or ``R = R0, p = p0 + R0 e_z q``. The next block is written over T.
    """
    fixed = np.concatenate([chain.rotations, chain.translations[:, :, None]], axis=2)[..., None]
    memory = fixed + np.zeros(min(BLOCK, len(q)))
    for first in range(0, len(q), BLOCK):
        block = slice(first, min(first + BLOCK, len(q)))
        qs = series_of(q, block, chain.dof)
        c, s = np.cos(qs), np.sin(qs)
        T = memory[..., : qs.shape[1]]
        for j, (x, y, z, p) in enumerate(fixed.swapaxes(1, 2)):
            if chain.revolute[j]:
                T[j, :, 0] = x * c[j] + y * s[j]
                T[j, :, 1] = y * c[j] - x * s[j]
            else:
                T[j, :, 3] = p + z * qs[j]
        yield block, T


class Motions:
    """Motion of every link, block by block in the same memory.

    `turn` (joints, 3, 2, block) holds ω and ω̇; `push` (joints, 4, 3, block) the columns of U = [ω̇]× + [ω]×[ω]× and
    the acceleration a of the origin less gravity: a point c of the link accelerates by U c + a.
    """

    def __init__(self, chain: Chain, samples: int) -> None:
        size = min(BLOCK, samples)
        self.chain = chain
        self.turn = np.empty((chain.dof, 3, 2, size))
        self.push = np.empty((chain.dof, 4, 3, size))

    def outward(self, T: Array, qd: Array, qdd: Array) -> tuple[Array, Array]:
        """Return `turn` and `push` of every link, base to tip (Newton-Euler).

        ::

            ω_j = Rᵀ ω + z q̇        ω̇_j = Rᵀ ω̇ + (Rᵀ ω) × z q̇ + z q̈        a_j = Rᵀ (a + U p)

        and for a prismatic joint a_j += 2 (Rᵀ ω) × z q̇ + z q̈ instead of the terms of q̇, q̈ above.
        """
        size = qd.shape[1]
        turns, pushes = self.turn[..., :size], self.push[..., :size]
        turn, push = np.zeros((3, 2, size)), np.zeros((4, 3, size))
        push[3] -= self.chain.gravity[:, None]
        for j, revolute in enumerate(self.chain.revolute):
            R, p = T[j, :, :3], T[j, :, 3]
            turn = unrotate(R, turn, out=turns[j])
            a = unrotate(R, push[3] + unrotate(push[:3], p), out=pushes[j, 3])
            w, wd = turn[:, 0], turn[:, 1]
            twice, moved = (1.0, wd) if revolute else (2.0, a)
            moved[0] += twice * w[1] * qd[j]
            moved[1] -= twice * w[0] * qd[j]
            moved[2] += qdd[j]
            if revolute:
                w[2] += qd[j]
            push = pushes[j]
            _write_spin(w, wd, push)
        return turns, pushes


def _write_spin(w: Array, wd: Array, U: Array) -> None:
    """Write the columns of [ω̇]× + [ω]×[ω]×."""
    xx, yy, zz = w * w
    for (i, j, k), squares in (((0, 1, 2), yy + zz), ((1, 2, 0), zz + xx), ((2, 0, 1), xx + yy)):
        product = w[i] * w[j]
        np.negative(squares, out=U[i, i])
        np.add(product, wd[k], out=U[i, j])
        np.subtract(product, wd[k], out=U[j, i])


def body_wrench(J: Array, push: Array) -> Array:
    """Return n and f of a body of pseudo-inertia J, (3, [n f], block).

    ``∫ r (U r + a)ᵀ dm`` is the upper part G of ``J [U a]ᵀ``, whose lower row is ``f = U mc + m a``; n is the axial
    vector of G, the same as I ω̇ + ω × (I ω) + mc × a.
    """
    size = push.shape[2]
    G = (J @ push.reshape(4, -1)).reshape(4, 3, size)
    wrench = np.empty((3, 2, size))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        np.subtract(G[j, k], G[k, j], out=wrench[i, 0])
    wrench[:, 1] = G[3]
    return wrench


def pass_inward(T: Array, wrench: Array, out: Array | None = None) -> Array:
    """Return wrenches (3, [n f], ..., block) of link j at the origin and in the axes of {j-1}."""
    moved = rotate(T[:, :3], wrench, out=out)
    f = moved[:, 1]
    moved[:, 0] += cross(T[:, 3].reshape(3, *(1,) * (f.ndim - 2), -1), f)
    return moved


def torques(motions: Motions, bodies: list[Array], T: Array, qd: Array, qdd: Array) -> Array:
    """Return the joint torques of a block, (joints, block), Nm or N; `bodies` are the pseudo-inertias."""
    chain, torque = motions.chain, np.empty_like(qd)
    _, pushes = motions.outward(T, qd, qdd)
    wrench = np.zeros((3, 2, qd.shape[1]))
    for j in reversed(range(chain.dof)):
        wrench += body_wrench(bodies[j], pushes[j])
        torque[j] = wrench[2, 0 if chain.revolute[j] else 1] + chain.rotors[j] * qdd[j]
        wrench = pass_inward(T[j], wrench)
    return torque


@_quiet()
def inverse_dynamics(chain: Chain, q: Array, qd: Array | None, qdd: Array | None, out: Array) -> bool:
    """Write the joint torques ``τ = M(q) q̈ + C(q, q̇) q̇ + g(q)``, by the recursive Newton-Euler algorithm.

    `out` (samples, joints) is in Nm or N; the other arguments and the result are those of `regressor`.
    """
    bodies, motions = pseudo_inertias(chain), Motions(chain, len(q))
    for block, T in placed(chain, q):
        qds, qdds = series_of(qd, block, chain.dof), series_of(qdd, block, chain.dof)
        out[block] = torques(motions, bodies, T, qds, qdds).T
    return all_finite(out, q, qd, qdd)


def pseudo_inertias(chain: Chain) -> list[Array]:
    """Return the pseudo-inertia of every link."""
    return [pseudo_inertia(inertial) for inertial in chain.inertials]


def moment_basis(turn: Array, U: Array) -> Array:
    """Return the moment I ω̇ + ω × (I ω) for a unit of each entry of I, shape (3, 6, block), Nm per kg m².

    `turn` (3, 2, block) holds ω and ω̇, `U` (3, 3, block) the columns of [ω̇]× + [ω]×[ω]×.
    """
    (wx, dx), (wy, dy), (wz, dz) = turn
    xy = wx * wy
    xz = wx * wz
    yz = wy * wz
    moments = (
        (dx, xz, -xy),  # XX
        (-U[0, 2], U[1, 2], U[0, 0] - U[1, 1]),  # XY
        (U[0, 1], U[2, 2] - U[0, 0], -U[2, 1]),  # XZ
        (-yz, dy, xy),  # YY
        (U[1, 1] - U[2, 2], -U[1, 0], U[2, 0]),  # YZ
        (yz, -xz, dz),  # ZZ
    )
    basis = np.empty((3, 6, wx.size))
    for k, moment in enumerate(moments):
        for axis, component in enumerate(moment):
            basis[axis, k] = component
    return basis


def write_rows(turn: Array, push: Array, arms: Array, rows: Array) -> None:
    """Write u·n + v·f for each of the ten parameters of a link into `rows` (joints, 10, block).

    `arms` (3, [u v], joints, block): u is the axis of a joint, v its moment arm (axis × (link origin - joint origin)),
    both in the link's frame.
    """
    u, v = arms[:, 0], arms[:, 1]
    U, a = push[:3], push[3]
    np.einsum("cib,ckb->ikb", u, moment_basis(turn, U), out=rows[:, :6])
    np.einsum("cib,kcb->ikb", v, U, out=rows[:, 6:9])
    rows[:, 6:9] += cross(a[:, None], u).swapaxes(0, 1)
    np.einsum("cib,cb->ib", v, a, out=rows[:, 9])


@_quiet()
def regressor(
    chain: Chain, q: Array, qd: Array | None, qdd: Array | None, places: bytes | NDArray[np.int32], out: Array
) -> bool:
    """Write the structurally non-zero entries of Y in ``τ = Y(q, q̇, q̈) π``.

    The torque of joint i due to link j is ``u·n + v·f``, with the axis u of joint i and its moment arm v about the
    origin of link j, and the moment n and force f that accelerate link j. Both are linear in the ten parameters.

    Args:
        chain: Kinematics and gravity.
        q: Positions (samples, joints), rad or m.
        qd: Speeds, rad/s or m/s; None for zero.
        qdd: Accelerations, rad/s² or m/s²; None for zero.
        places: Index of the series of row i, link j, parameter k, shape (joints, joints, 10); -1 for a zero.
        out: Result, shape (samples, series). The return value is whether results and inputs are finite.

    """
    n, size = chain.dof, min(BLOCK, len(q))
    index = np.frombuffer(places, dtype=np.int32).reshape(n, n, 10)
    motions = Motions(chain, len(q))
    rows = np.empty((n, 10, size))
    spare = np.empty((2, 3, 2, n, size))
    for block, T in placed(chain, q):
        turns, pushes = motions.outward(T, series_of(qd, block, n), series_of(qdd, block, n))
        size = block.stop - block.start
        arms, moved = spare[..., :size]
        for j in range(n):
            arms[:, 1, :j] += cross(arms[:, 0, :j], T[j, :, 3, None])
            unrotate(T[j, :, :3], arms[:, :, :j], out=moved[:, :, :j])
            arms, moved = moved, arms
            arms[:, :, j] = 0.0
            arms[2, 0 if chain.revolute[j] else 1, j] = 1.0
            write_rows(turns[j], pushes[j], arms[:, :, : j + 1], rows[: j + 1, :, :size])
            for row, place in zip(rows[: j + 1, :, :size], index[: j + 1, j], strict=True):
                out.T[place[place >= 0], block] = row[place >= 0]
    return all_finite(out, q, qd, qdd)


@_quiet()
def kinematics(chain: Chain, q: Array, qd: None, qdd: None, out: Array) -> bool:
    """Write R (row by row) and origin of every frame in the base into `out` (samples, 12 joints)."""
    del qd, qdd
    for block, T in placed(chain, q):
        R, o = np.eye(3)[:, :, None] + np.zeros(T.shape[-1]), np.zeros((3, T.shape[-1]))
        for j in range(chain.dof):
            o = o + rotate(R, T[j, :, 3])
            R = rotate(R, T[j, :, :3])
            out[block, 12 * j : 12 * j + 9] = R.reshape(9, -1).T
            out[block, 12 * j + 9 : 12 * j + 12] = o.T
    return all_finite(out, q)


def masses(chain: Chain, bodies: list[Array], T: Array, spare: Array) -> Array:
    """Return the mass matrix of a block by composite rigid bodies.

    M_ij for i <= j is the momentum of all links behind joint j under unit speed of joint j, at the axis of joint i. The
    pseudo-inertia J of these links is moved to {j-1} by the congruence ``T J Tᵀ``. `spare` is memory for two sets of
    momenta, (2, 3, 2, joints, block). M has the shape (joints, joints, block), kg m² for revolute joints.
    """
    n, size = chain.dof, T.shape[-1]
    M, J = np.empty((n, n, size)), np.zeros((4, 4, size))
    momenta, moved = spare[..., :size]
    for j in reversed(range(n)):
        J += bodies[j][:, :, None]
        momenta[:, :, j] = _unit_momentum(J, bool(chain.revolute[j]))
        M[j, j:] = M[j:, j] = momenta[2, 0 if chain.revolute[j] else 1, j:]
        M[j, j] += chain.rotors[j]
        pass_inward(T[j], momenta[:, :, j:], out=moved[:, :, j:])
        momenta, moved = moved, momenta
        J = _congruence(T[j], J)
    return M


@_quiet()
def mass_matrix(chain: Chain, q: Array, qd: None, qdd: None, out: Array) -> bool:
    """Write M(q) into `out` (samples, joints²)."""
    del qd, qdd
    bodies, spare = pseudo_inertias(chain), np.empty((2, 3, 2, chain.dof, min(BLOCK, len(q))))
    for block, T in placed(chain, q):
        out[block] = masses(chain, bodies, T, spare).reshape(chain.dof**2, -1).T
    return all_finite(out, q)


def _unit_momentum(J: Array, revolute: bool) -> Array:
    """Return the momentum [n f] (3, 2, block) of a body under unit speed along or about z."""
    momentum = np.zeros((3, 2, J.shape[2]))
    angular, linear = momentum[:, 0], momentum[:, 1]
    x, y, z, mass = 0, 1, 2, 3
    if revolute:
        angular[x] = -J[x, z]
        angular[y] = -J[y, z]
        angular[z] = J[x, x] + J[y, y]
        linear[x] = -J[y, mass]
        linear[y] = J[x, mass]
    else:
        angular[x] = J[y, mass]
        angular[y] = -J[x, mass]
        linear[z] = J[mass, mass]
    return momentum


def _congruence(T: Array, J: Array) -> Array:
    """Return the pseudo-inertia seen from {j-1}, T J Tᵀ with T completed by the row [0 0 0 1]."""
    moved = np.empty_like(J)
    half = np.einsum("ikb,klb->ilb", T, J)
    np.einsum("ilb,klb->ikb", half, T, out=moved[:3, :3])
    moved[:3, 3] = moved[3, :3] = half[:, 3]
    moved[3, 3] = J[3, 3]
    return moved


@_quiet()
def forward_dynamics(chain: Chain, q: Array, qd: Array | None, torque: Array, out: Array) -> bool:
    """Write the accelerations ``q̈ = M(q)⁻¹ (τ - C(q, q̇) q̇ - g(q))``, by a Cholesky factor of M.

    `torque` (samples, joints) is in Nm or N, `out` in rad/s² or m/s²; the rest as in `regressor`.
    """
    bodies, motions = pseudo_inertias(chain), Motions(chain, len(q))
    spare = np.empty((2, 3, 2, chain.dof, min(BLOCK, len(q))))
    for block, T in placed(chain, q):
        qds, rest = series_of(qd, block, chain.dof), series_of(None, block, chain.dof)
        push = series_of(torque, block, chain.dof) - torques(motions, bodies, T, qds, rest)
        out[block] = _cholesky_solve(masses(chain, bodies, T, spare), push).T
    return all_finite(out, q, qd, torque)


def _cholesky_solve(M: Array, b: Array) -> Array:
    """Solve M x = b for symmetric positive M (n, n, block) and b (n, block)."""
    n = len(b)
    L, x = np.zeros_like(M), b.copy()
    for j in range(n):
        L[j, j] = np.sqrt(M[j, j] - (L[j, :j] ** 2).sum(0))
        L[j + 1 :, j] = (M[j + 1 :, j] - (L[j + 1 :, :j] * L[j, :j]).sum(1)) / L[j, j]
        x[j] = (x[j] - (L[j, :j] * x[:j]).sum(0)) / L[j, j]
    for j in reversed(range(n)):
        x[j] = (x[j] - (L[j + 1 :, j] * x[j + 1 :]).sum(0)) / L[j, j]
    return x


@_quiet()
def energy_regressors(chain: Chain, q: Array, qd: Array | None, kinetic: Array, potential: Array) -> bool:
    """Write energy per unit of each parameter, (samples, 10 joints) each; potential is zero at the base origin.

    ``½ ωᵀ I ω + mc·(v × ω) + ½ m v²`` and ``-g·(m o + R mc)``.
    """
    for block, T in placed(chain, q):
        qds = series_of(qd, block, chain.dof)
        w = v = np.zeros((3, T.shape[-1]))
        g = chain.gravity[:, None] + w
        height = np.zeros(T.shape[-1])
        for j in range(chain.dof):
            R, p = T[j, :, :3], T[j, :, 3]
            height = height - (g * p).sum(0)
            g, v, w = unrotate(R, g), unrotate(R, v + cross(w, p)), unrotate(R, w)
            (w if chain.revolute[j] else v)[2] += qds[j]
            columns = slice(10 * j, 10 * j + 10)
            kinetic[block, columns] = np.stack(
                [
                    0.5 * w[0] ** 2, w[0] * w[1], w[0] * w[2], 0.5 * w[1] ** 2, w[1] * w[2], 0.5 * w[2] ** 2,
                    *cross(v, w), 0.5 * (v * v).sum(0),
                ],
                axis=1,
            )  # fmt: skip
            potential[block, columns] = np.vstack([np.zeros((6, len(height))), -g, height]).T
    return all_finite(kinetic, potential, q, qd)
