"""Rotations, transforms and the ten inertial parameters of a body; pure functions.

The ten standard parameters of a body, in this order everywhere in Jointwise::

    XX XY XZ YY YZ ZZ mX mY mZ m

XX..ZZ are the entries of the inertia tensor about the *frame origin* in kg m², mX mY mZ the first moments
in kg m, m the mass in kg. The tensor is ``∫ (|r|² E - r rᵀ) dm``, so XY is ``-∫ x y dm``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

INERTIAL_NAMES = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "mX", "mY", "mZ", "m")
INERTIAL_UNITS = ("kg m^2",) * 6 + ("kg m",) * 3 + ("kg",)

_TENSOR_INDEX = ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])


def _cos_sin(angle: float) -> tuple[float, float]:
    """Return cosine and sine, exact at quarter turns so that a structural zero stays zero."""
    c, s = float(np.cos(angle)), float(np.sin(angle))
    return (0.0 if abs(c) < 1e-15 else c), (0.0 if abs(s) < 1e-15 else s)


def rotation_x(angle: float) -> Array:
    """Return the rotation by `angle` (rad) about x, shape (3, 3)."""
    c, s = _cos_sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_y(angle: float) -> Array:
    """Return the rotation by `angle` (rad) about y, shape (3, 3)."""
    c, s = _cos_sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def rotation_z(angle: float) -> Array:
    """Return the rotation by `angle` (rad) about z, shape (3, 3)."""
    c, s = _cos_sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def rotation_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Return Rz(yaw) Ry(pitch) Rx(roll), the fixed-axis convention of URDF, shape (3, 3)."""
    return rotation_z(yaw) @ rotation_y(pitch) @ rotation_x(roll)


def rotation_axis_angle(axis: ArrayLike, angle: float) -> Array:
    """Return the rotation by `angle` (rad) about the direction `axis` (Rodrigues), shape (3, 3)."""
    direction = np.asarray(axis, dtype=float)
    K = skew(direction / np.linalg.norm(direction))
    rotation: Array = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)
    return rotation


def rotation_z_to(direction: ArrayLike) -> Array:
    """Return a rotation R with ``R e_z = direction``: the shortest one, and exact for the six unit axes."""
    vector = np.asarray(direction, dtype=float)
    x, y, z = vector / np.linalg.norm(vector)
    off = x * x + y * y
    if z < 0.0 and off < 1e-200:
        return np.diag([1.0, -1.0, -1.0])
    k = (1.0 - z) / off if z < 0.0 else 1.0 / (1.0 + z)  # 1 / (1 + z), without its cancellation near -z
    return np.array([[1.0 - k * x * x, -k * x * y, x], [-k * x * y, 1.0 - k * y * y, y], [-x, -y, z]]) + 0.0


def skew(vector: ArrayLike) -> Array:
    """Return the matrix [v]× with ``[v]× u = v × u``, shape (3, 3)."""
    x, y, z = np.asarray(vector, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def is_rotation(matrix: ArrayLike, tolerance: float = 1e-8) -> bool:
    """Return whether a (3, 3) matrix is orthonormal with determinant +1."""
    R = np.asarray(matrix, dtype=float)
    return bool(np.allclose(R @ R.T, np.eye(3), atol=tolerance) and np.linalg.det(R) > 0.0)


def tensor_to_six(tensor: ArrayLike) -> Array:
    """Return XX XY XZ YY YZ ZZ of a symmetric (3, 3) tensor."""
    return np.asarray(tensor, dtype=float)[_TENSOR_INDEX]


def six_to_tensor(six: ArrayLike) -> Array:
    """Return the symmetric (3, 3) tensor of XX XY XZ YY YZ ZZ."""
    xx, xy, xz, yy, yz, zz = np.asarray(six, dtype=float)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def steiner(mass: float, offset: ArrayLike) -> Array:
    """Return ``m (|c|² E - c cᵀ)``, the parallel-axis term of a mass (kg) at `offset` (m), shape (3, 3)."""
    c = np.asarray(offset, dtype=float)
    return mass * (float(c @ c) * np.eye(3) - np.outer(c, c))


def inertial_vector(mass: float, center: ArrayLike, inertia_at_center: ArrayLike) -> Array:
    """Return the ten parameters of a body.

    ``I_origin = I_com + m (|c|² E - c cᵀ)`` with mass in kg, `center` (3,) in m and the tensor about the centre
    of mass (3, 3) in kg m².
    """
    c = np.asarray(center, dtype=float)
    tensor = np.asarray(inertia_at_center, dtype=float) + steiner(mass, c)
    return np.concatenate([tensor_to_six(tensor), mass * c, [mass]])


def split_inertial(vector: ArrayLike) -> tuple[float, Array, Array]:
    """Return mass (kg), centre of mass (m) and the tensor about it (kg m²) of ten parameters."""
    v = np.asarray(vector, dtype=float)
    mass = float(v[9])
    center = v[6:9] / mass if mass != 0.0 else np.zeros(3)
    return mass, center, six_to_tensor(v[:6]) - steiner(mass, center)


def pseudo_inertia(vector: ArrayLike) -> Array:
    """Return ``[[S, mc], [mcᵀ, m]]``, ``S = tr(I)/2 E - I``, shape (4, 4): positive definite iff physical."""
    v = np.asarray(vector, dtype=float)
    tensor = six_to_tensor(v[:6])
    J = np.empty((4, 4))
    J[:3, :3] = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    J[:3, 3] = J[3, :3] = v[6:9]
    J[3, 3] = v[9]
    return J


def from_pseudo_inertia(J: ArrayLike) -> Array:
    """Return the ten parameters of a (4, 4) pseudo-inertia: ``I = tr(S) E - S``."""
    P = np.asarray(J, dtype=float)
    S = P[:3, :3]
    return np.concatenate([tensor_to_six(np.trace(S) * np.eye(3) - S), P[:3, 3], [P[3, 3]]])


def move_inertial(vector: ArrayLike, rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Return the ten parameters seen from another frame.

    `rotation` (3, 3) and `translation` (3,) place the body's present frame in the new one: ``x' = R x + p``.
    On the pseudo-inertia this is the congruence ``J' = T J Tᵀ``.
    """
    T = np.eye(4)
    T[:3, :3] = rotation
    T[:3, 3] = translation
    return from_pseudo_inertia(T @ pseudo_inertia(vector) @ T.T)


def move_inertial_matrix(rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Return the (10, 10) matrix of the linear map `move_inertial`."""
    return np.column_stack([move_inertial(e, rotation, translation) for e in np.eye(10)])


_PARALLEL = 1e-12
"""Squared sine below which two line segments count as parallel."""
_POINT = 1e-30
"""Squared length (m²) below which a line segment is a point."""


def segment_distance(a: Array, b: Array, c: Array, d: Array) -> Array:
    """Return the distance (...,) of the line segments a b and c d, their ends (..., 3), all in m.

    ``|a + s (b - a) - c - t (d - c)|`` is smallest at the s of the two lines, clipped to [0, 1], the t that is best for
    it, clipped to [0, 1], and the s that is best for that. Segments may be points.
    """
    u, v, w = b - a, d - c, a - c
    uu, vv, uv, uw, vw = _dot(u, u), _dot(v, v), _dot(u, v), _dot(u, w), _dot(v, w)
    sine2 = uu * vv - uv**2
    crossed = sine2 > _PARALLEL * uu * vv
    s = np.where(crossed, np.clip((uv * vw - uw * vv) / np.where(crossed, sine2, 1.0), 0.0, 1.0), 0.0)
    t = np.clip((uv * s + vw) / np.maximum(vv, _POINT), 0.0, 1.0)
    s = np.clip((uv * t - uw) / np.maximum(uu, _POINT), 0.0, 1.0)
    between = w + s[..., None] * u - t[..., None] * v
    distance: Array = np.sqrt(_dot(between, between))
    return distance


def _dot(x: Array, y: Array) -> Array:
    """Return the scalar products (...,) of vectors (..., 3); twice as fast as a sum over the last axis."""
    product: Array = x[..., 0] * y[..., 0] + x[..., 1] * y[..., 1] + x[..., 2] * y[..., 2]
    return product
