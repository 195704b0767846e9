"""The regressor as its structurally non-zero series: ``τ = Y(q, q̇, q̈) π`` without the half that is zero."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from jointwise.description.mounting import Mounting
from jointwise.description.robot import Robot
from jointwise.errors import ShapeError
from jointwise.model.rigid.chain import checked_out, checked_states, kernels, kinematic_chain, refuse_non_finite
from jointwise.spatial import INERTIAL_NAMES, Array

_CACHE_LINE = 64
_PAGE = 4096
_DOUBLE = 8


def standard_names(dof: int, rotors: bool = False) -> tuple[str, ...]:
    """Return `XX1 XY1 ... m1 XX2 ... mN`, and with rotors `Ia1 .. IaN` (reflected rotor inertia) after them."""
    names = [f"{name}{j + 1}" for j in range(dof) for name in INERTIAL_NAMES]
    return tuple(names + ([f"Ia{j + 1}" for j in range(dof)] if rotors else []))


@dataclass(frozen=True)
class RegressorStructure:
    """Which entries of Y can be non-zero at all.

    Attributes:
        dof: Number of joints.
        rotors: Whether rotor inertias are parameters.
        rows: Row (joint) of every series, (series,).
        columns: Column (parameter) of every series, (series,).
    """

    dof: int
    rotors: bool
    rows: NDArray[np.int32]
    columns: NDArray[np.int32]

    @property
    def parameters(self) -> int:
        """Number of columns of Y."""
        return self.dof * (11 if self.rotors else 10)

    @cached_property
    def inertial_count(self) -> int:
        """Number of series that belong to link parameters; those of the rotors follow them."""
        return int(np.count_nonzero(self.columns < 10 * self.dof))

    @cached_property
    def places(self) -> bytes:
        """Index of the series of (row, link, parameter) as int32, -1 for a structural zero; what the kernel reads."""
        index = np.full((self.dof, 10 * self.dof), -1, dtype=np.int32)
        count = self.inertial_count
        index[self.rows[:count], self.columns[:count]] = np.arange(count, dtype=np.int32)
        return index.tobytes()


@dataclass(frozen=True)
class Regressor:
    """Y as time series: `series[k]` (samples,) is the entry (structure.rows[k], structure.columns[k])."""

    structure: RegressorStructure
    series: Array

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self.series.shape[1])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return standard_names(self.structure.dof, self.structure.rotors)

    def matrices(self) -> Array:
        """Return Y sample by sample, shape (samples, joints, parameters), zeros filled in."""
        full = np.zeros((self.samples, self.structure.dof, self.structure.parameters))
        full[:, self.structure.rows, self.structure.columns] = self.series.T
        return full

    def stacked(self) -> Array:
        """Return the observation matrix, shape (samples · joints, parameters), joints of a sample together."""
        return self.matrices().reshape(-1, self.structure.parameters)

    def joint(self, j: int) -> tuple[Array, NDArray[np.int32]]:
        """Return the non-zero columns of joint j (0-based), (samples, count), and which columns of Y they are."""
        mine = np.flatnonzero(self.structure.rows == j)
        return self.series[mine].T, self.structure.columns[mine]

    def torque(self, parameters: Array) -> Array:
        """Return Y π, shape (samples, joints), Nm or N."""
        values = np.asarray(parameters, dtype=float).ravel()
        if values.size != self.structure.parameters:
            raise ShapeError(f"parameters must have {self.structure.parameters} entries. Got {values.size} instead.")
        result = np.zeros((self.samples, self.structure.dof))
        for j in range(self.structure.dof):
            columns, which = self.joint(j)
            result[:, j] = columns @ values[which]
        return result


def regressor_structure(robot: Robot, gravity: Mounting = "table", rotors: bool = False) -> RegressorStructure:
    """Return which entries of Y are not zero for every motion of this robot under this gravity."""
    return _structure(KinematicKey(robot, gravity, coupled=False), rotors)


def compute_regressor(
    robot: Robot,
    q: Array,
    qd: Array | None = None,
    qdd: Array | None = None,
    *,
    gravity: Mounting = "table",
    rotors: bool = False,
    out: Regressor | None = None,
) -> Regressor:
    """Return the regressor Y of ``τ = Y(q, q̇, q̈) π`` for the standard parameters π.

    Args:
        robot: The robot; only its kinematics are used.
        q: Positions (samples, joints), rad or m.
        qd: Speeds (samples, joints), rad/s or m/s; None for zero.
        qdd: Accelerations (samples, joints), rad/s² or m/s²; None for zero.
        gravity: Mounting of the base, or gravity in the base frame, m/s².
        rotors: Append columns of the reflected rotor inertias, ``τ_j += Ia_j q̈_j``.
        out: A regressor of the same structure and length whose memory is reused.

    Returns:
        Y as time series of its structurally non-zero entries.

    """
    key = KinematicKey(robot, gravity, coupled=False)
    q, qd, qdd = checked_states(robot, q, qd, qdd)
    structure = _structure(key, rotors)
    series = empty_series(len(structure.rows), len(q)) if out is None else _storage(out, structure, len(q))
    count = structure.inertial_count
    if not kernels().regressor(key.chain, q, qd, qdd, structure.places, series[:count].T):
        refuse_non_finite(q=q, qd=qd, qdd=qdd)
    if rotors:
        series[count:] = 0.0 if qdd is None else qdd.T
    return Regressor(structure, series)


def empty_series(count: int, samples: int) -> Array:
    """Return uninitialised (count, samples), each series contiguous and on a cache line of its own.

    The distance between series is kept off multiples of a page: such strides fall into the same cache sets and cost
    a factor of two.
    """
    stride = -(-samples * _DOUBLE // _CACHE_LINE) * _CACHE_LINE
    if stride % _PAGE == 0:
        stride += _CACHE_LINE
    memory = np.empty(count * stride // _DOUBLE + _CACHE_LINE // _DOUBLE)
    skip = (-memory.ctypes.data % _CACHE_LINE) // _DOUBLE
    return memory[skip : skip + count * stride // _DOUBLE].reshape(count, -1)[:, :samples]


def _storage(out: Regressor, structure: RegressorStructure, samples: int) -> Array:
    if not isinstance(out, Regressor) or not _same(out.structure, structure) or out.samples != samples:
        raise ShapeError(f"out must be a regressor of the same robot, gravity, rotors and {samples} samples.")
    return checked_out(out.series, (len(structure.rows), samples))


def _same(one: RegressorStructure, other: RegressorStructure) -> bool:
    return one is other or (
        (one.dof, one.rotors) == (other.dof, other.rotors)
        and np.array_equal(one.rows, other.rows)
        and np.array_equal(one.columns, other.columns)
    )


class KinematicKey:
    """Hashable identity of a robot's kinematics, gravity and (if `coupled`) coupling, for caches of what follows."""

    def __init__(self, robot: Robot, gravity: Mounting, coupled: bool = True) -> None:
        """Remember the robot, which a cache needs to compute its entry."""
        self.robot, self.gravity, self.chain = robot, gravity, kinematic_chain(robot, gravity)
        chain, coupling = self.chain, robot.transmission if coupled else None
        parts = (chain.rotations, chain.translations, chain.gravity, *([] if coupling is None else [coupling.matrix]))
        self.identity = (chain.revolute, *(part.tobytes() for part in parts))

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KinematicKey) and self.identity == other.identity


@lru_cache(maxsize=64)
def _structure(key: KinematicKey, rotors: bool) -> RegressorStructure:
    """Find the entries that vanish at random states: a generic state shows every entry that can be non-zero."""
    chain, n = key.chain, key.chain.dof
    random = np.random.default_rng(0)
    q, qd, qdd = random.uniform(-np.pi, np.pi, (3, 16, n))
    upper = np.kron(np.triu(np.ones((n, n))), np.ones(10)).astype(bool)
    places = np.where(upper, np.cumsum(upper).reshape(n, 10 * n) - 1, -1).astype(np.int32)
    series = empty_series(int(upper.sum()), len(q))
    kernels().regressor(chain, q, qd, qdd, places.tobytes(), series.T)
    size = np.zeros((n, 10 * n))
    size[upper] = np.abs(series).max(axis=1)
    rows, columns = np.nonzero(size > 1e-12 * max(1.0, float(size.max())))
    if rotors:
        rows = np.concatenate([rows, np.arange(n)])
        columns = np.concatenate([columns, 10 * n + np.arange(n)])
    return RegressorStructure(n, rotors, rows.astype(np.int32), columns.astype(np.int32))
