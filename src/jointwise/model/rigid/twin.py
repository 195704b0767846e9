"""The rigid-body kernels in NumPy: oracle of the native ones, and their fall-back.

Same functions and arguments as `jointwise._native`, same algorithms as `src/native/rigid.h`, samples in blocks that
stay in the cache. Vectors are (3, block), rotations (3, 3, block); those of link j are in frame {j}.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointwise.model.rigid.chain import Chain
from jointwise.spatial import Array

BLOCK = 1024

_quiet = partial(np.errstate, over="ignore", invalid="ignore", divide="ignore")
"""Every kernel reports by its return value whether its results are finite; NumPy need not warn as well."""


class LinkState(NamedTuple):
    """Placement of {j} in {j-1} and motion of link j: ω, ω̇ and the acceleration of its origin less gravity."""

    R: Array
    p: Array
    w: Array
    wd: Array
    a: Array


def cross(a: Array, b: Array) -> Array:
    """Return a × b of (3, block) vectors."""
    result = np.empty(np.broadcast_shapes(a.shape, b.shape))
    result[0] = a[1] * b[2] - a[2] * b[1]
    result[1] = a[2] * b[0] - a[0] * b[2]
    result[2] = a[0] * b[1] - a[1] * b[0]
    return result


def rotate(R: Array, v: Array) -> Array:
    """Return R v: from the moved frame to the one before it."""
    result: Array = R[:, 0] * v[0] + R[:, 1] * v[1] + R[:, 2] * v[2]
    return result


def unrotate(R: Array, v: Array) -> Array:
    """Return Rᵀ v: from the frame before to the moved one."""
    result: Array = R[0] * v[0] + R[1] * v[1] + R[2] * v[2]
    return result


def place(chain: Chain, j: int, q: Array) -> tuple[Array, Array]:
    """Return R0 Rot_z(q) and p0, or R0 and p0 + R0 e_z q."""
    R0, p0 = chain.rotations[j], chain.translations[j]
    R = np.empty((3, 3, q.size))
    R[:, 2] = R0[:, 2, None]
    if not chain.revolute[j]:
        R[:, :2] = R0[:, :2, None]
        return R, p0[:, None] + R0[:, 2, None] * q
    c, s = np.cos(q), np.sin(q)
    R[:, 0] = R0[:, 0, None] * c + R0[:, 1, None] * s
    R[:, 1] = R0[:, 1, None] * c - R0[:, 0, None] * s
    return R, np.broadcast_to(p0[:, None], (3, q.size))


def blocks(samples: int) -> Iterator[slice]:
    """Yield slices of BLOCK samples."""
    for first in range(0, samples, BLOCK):
        yield slice(first, min(first + BLOCK, samples))


def series_of(values: Array | None, block: slice, dof: int) -> Array:
    """Return the block of a (samples, joints) array as (joints, block); zeros where there is none."""
    if values is None:
        return np.zeros((dof, block.stop - block.start))
    return np.ascontiguousarray(values[block].T)


def outward(chain: Chain, q: Array, qd: Array, qdd: Array) -> list[LinkState]:
    """Return the motion of every link, base to tip (Newton-Euler).

    ::

        ω_j = Rᵀ ω + z q̇        ω̇_j = Rᵀ ω̇ + (Rᵀ ω) × z q̇ + z q̈        a_j = Rᵀ (a + ω̇ × p + ω × (ω × p))

    and for a prismatic joint a_j += 2 (Rᵀ ω) × z q̇ + z q̈ instead of the terms of q̇, q̈ above.
    """
    zero = np.zeros((3, q.shape[1]))
    w, wd, a = zero, zero, zero - chain.gravity[:, None]
    links = []
    for j in range(chain.dof):
        R, p = place(chain, j, q[j])
        a = unrotate(R, a + cross(wd, p) + cross(w, cross(w, p)))
        w, wd = unrotate(R, w), unrotate(R, wd)
        twice = 1.0 if chain.revolute[j] else 2.0
        moved = wd if chain.revolute[j] else a
        moved[0] += twice * w[1] * qd[j]
        moved[1] -= twice * w[0] * qd[j]
        moved[2] += qdd[j]
        if chain.revolute[j]:
            w[2] += qd[j]
        links.append(LinkState(R, p, w, wd, a))
    return links


def body_wrench(inertial: Array, link: LinkState) -> tuple[Array, Array]:
    """Return n = I ω̇ + ω × (I ω) + mc × a and f = m a + ω̇ × mc + ω × (ω × mc), each (3, block)."""
    xx, xy, xz, yy, yz, zz = inertial[:6]
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    mc = inertial[6:9, None] + np.zeros_like(link.w)
    n = tensor @ link.wd + cross(link.w, tensor @ link.w) + cross(mc, link.a)
    f = inertial[9] * link.a + cross(link.wd, mc) + cross(link.w, cross(link.w, mc))
    return n, f


def pass_inward(R: Array, p: Array, n: Array, f: Array) -> tuple[Array, Array]:
    """Return the wrench of link j at the origin and in the axes of {j-1}."""
    f = rotate(R, f)
    return rotate(R, n) + cross(p, f), f


@_quiet()
def inverse_dynamics(chain: Chain, q: Array, qd: Array | None, qdd: Array | None, out: Array) -> bool:
    """Write joint torques into `out` (samples, joints), Nm or N; tell whether they are finite."""
    for block in blocks(len(q)):
        qdds = series_of(qdd, block, chain.dof)
        links = outward(chain, series_of(q, block, chain.dof), series_of(qd, block, chain.dof), qdds)
        n = f = np.zeros((3, block.stop - block.start))
        for j in reversed(range(chain.dof)):
            own_n, own_f = body_wrench(chain.inertials[j], links[j])
            n, f = n + own_n, f + own_f
            out[block, j] = (n if chain.revolute[j] else f)[2] + chain.rotors[j] * qdds[j]
            n, f = pass_inward(links[j].R, links[j].p, n, f)
    return bool(np.isfinite(out).all())


def regressor_block(link: LinkState, u: Array, v: Array) -> tuple[Array, ...]:
    """Return u·n + v·f for each of the ten parameters of a link, ten (block,) series.

    u is the axis of the joint, v its moment arm (axis × (link origin - joint origin)), both in the link's frame.
    """
    (wx, wy, wz), (dx, dy, dz), a = link.w, link.wd, link.a
    kx, ky, kz = cross(u, link.w)
    mc = cross(v, link.wd) + cross(a, u) + link.w * (link.w * v).sum(0) - v * (link.w * link.w).sum(0)
    return (
        u[0] * dx + kx * wx,
        u[0] * dy + u[1] * dx + kx * wy + ky * wx,
        u[0] * dz + u[2] * dx + kx * wz + kz * wx,
        u[1] * dy + ky * wy,
        u[1] * dz + u[2] * dy + ky * wz + kz * wy,
        u[2] * dz + kz * wz,
        mc[0],
        mc[1],
        mc[2],
        (v * a).sum(0),
    )


@_quiet()
def regressor(
    chain: Chain, q: Array, qd: Array | None, qdd: Array | None, places: bytes | NDArray[np.int32], out: Array
) -> bool:
    """Write the structurally non-zero series into `out` (samples, series).

    `places` (joints, joints, 10): index of the series of row i, link j, parameter k, or -1 for a zero.
    """
    n = chain.dof
    index = np.frombuffer(places, dtype=np.int32).reshape(n, n, 10)
    for block in blocks(len(q)):
        links = outward(chain, series_of(q, block, n), series_of(qd, block, n), series_of(qdd, block, n))
        zero, axis = np.zeros((3, block.stop - block.start)), np.zeros((3, block.stop - block.start))
        axis[2] = 1.0
        arms: list[tuple[Array, Array]] = []
        for j, link in enumerate(links):
            arms = [(unrotate(link.R, u), unrotate(link.R, v + cross(u, link.p))) for u, v in arms]
            arms.append((axis, zero) if chain.revolute[j] else (zero, axis))
            for i, (u, v) in enumerate(arms):
                for k, values in zip(index[i, j], regressor_block(link, u, v), strict=True):
                    if k >= 0:
                        out[block, k] = values
    return bool(np.isfinite(out).all())


@_quiet()
def kinematics(chain: Chain, q: Array, qd: None, qdd: None, out: Array) -> bool:
    """Write R (row by row) and origin of every frame in the base into `out` (samples, 12 joints)."""
    del qd, qdd
    for block in blocks(len(q)):
        qs = series_of(q, block, chain.dof)
        T, o = np.eye(3)[:, :, None] + np.zeros(qs.shape[1]), np.zeros((3, qs.shape[1]))
        for j in range(chain.dof):
            R, p = place(chain, j, qs[j])
            o = o + rotate(T, p)
            T = np.stack([rotate(T, R[:, k]) for k in range(3)], axis=1)
            out[block, 12 * j : 12 * j + 9] = T.reshape(9, -1).T
            out[block, 12 * j + 9 : 12 * j + 12] = o.T
    return bool(np.isfinite(out).all())


@_quiet()
def mass_matrix(chain: Chain, q: Array, qd: None, qdd: None, out: Array) -> bool:
    """Write M(q) into `out` (samples, joints²): the momentum of link j.. under unit speed of joint j, at axis i <= j.

    Composite bodies: the pseudo-inertia of link j moves to {j-1} by the congruence T J Tᵀ.
    """
    del qd, qdd
    n = chain.dof
    for block in blocks(len(q)):
        qs = series_of(q, block, n)
        placements = [place(chain, j, qs[j]) for j in range(n)]
        body = np.zeros((10, qs.shape[1]))
        for j in reversed(range(n)):
            body = body + chain.inertials[j][:, None]
            momentum = _unit_momentum(body, bool(chain.revolute[j]))
            for i in reversed(range(j + 1)):
                entry = momentum[0][2] if chain.revolute[i] else momentum[1][2]
                out[block, i * n + j] = out[block, j * n + i] = entry + (chain.rotors[j] if i == j else 0.0)
                momentum = pass_inward(*placements[i], *momentum)
            body = _composite_inward(*placements[j], body)
    return bool(np.isfinite(out).all() and np.isfinite(q).all())


def _unit_momentum(body: Array, revolute: bool) -> tuple[Array, Array]:
    zero = np.zeros_like(body[0])
    if revolute:
        return np.stack([body[2], body[4], body[5]]), np.stack([-body[7], body[6], zero])
    return np.stack([body[7], -body[6], zero]), np.stack([zero, zero, body[9]])


def _composite_inward(R: Array, p: Array, body: Array) -> Array:
    """Return the ten parameters (10, block) seen from {j-1}: c' = R c + p, parallel axes."""
    xx, xy, xz, yy, yz, zz = body[:6]
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    h, m = rotate(R, body[6:9]), body[9]
    RI = np.stack([rotate(R, tensor[:, k]) for k in range(3)], axis=1)
    turned = np.stack([rotate(R, RI[k]) for k in range(3)], axis=0)
    diagonal = 2.0 * (p * h).sum(0) + m * (p * p).sum(0)
    six = [
        turned[r, c] - p[r] * h[c] - h[r] * p[c] - m * p[r] * p[c] + (diagonal if r == c else 0.0)
        for r, c in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    ]
    return np.stack([*six, *(h + m * p), m])


@_quiet()
def forward_dynamics(chain: Chain, q: Array, qd: Array | None, torque: Array, out: Array) -> bool:
    """Write accelerations into `out` (samples, joints): q̈ = M⁻¹ (τ - C q̇ - g), by Cholesky of M."""
    n = chain.dof
    bias, M = np.empty((len(q), n)), np.empty((n * n, len(q))).T
    inverse_dynamics(chain, q, qd, None, bias)
    mass_matrix(chain, q, None, None, M)
    for block in blocks(len(q)):
        out[block] = _cholesky_solve(M[block].T.reshape(n, n, -1), (torque[block] - bias[block]).T).T
    return bool(np.isfinite(out).all())


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
    for block in blocks(len(q)):
        qs, qds = series_of(q, block, chain.dof), series_of(qd, block, chain.dof)
        w = v = np.zeros((3, qs.shape[1]))
        g = chain.gravity[:, None] + w
        height = np.zeros(qs.shape[1])
        for j in range(chain.dof):
            R, p = place(chain, j, qs[j])
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
            potential[block, 10 * j : 10 * j + 6] = 0.0
            potential[block, 10 * j + 6 : 10 * j + 9] = -g.T
            potential[block, 10 * j + 9] = height
    return bool(np.isfinite(kinetic).all() and np.isfinite(potential).all())
