"""Does a control law hold an elastic arm? The sampled closed loop, linearised at poses of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.description.mounting import Mounting
from jointwise.description.payload import Payload
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.model.control_law import GAINS, AffineControl
from jointwise.model.joint_drive import JointDrive
from jointwise.model.rigid import gravity_torque, mass_matrix
from jointwise.model.rigid.backend import kernels
from jointwise.spatial import Array

POSES = 12
"""Poses of a reference that are tried."""
SLOWEST = 0.02
"""Growth (1/s) that counts: less, doubling in half a minute, is what any friction holds."""
NUDGE = 1e-5
"""Step (rad) of the central differences of g(q)."""
FASTER = (2, 4, 8, 20, 50, 100, 200)
"""Multiples of the rate that are tried, in search of one that would do."""
FASTEST = 20_000.0
"""Rate (Hz) above which nobody is sent."""
SCALES = (0.5, 0.25, 0.1, 0.01, 2.0, 10.0, 100.0)
"""Multiples of the gains that are tried then."""


@dataclass(frozen=True)
class Stability:
    """The worst pose: `radius` of the largest eigenvalue of a period, `joint` (0-based) that swings most.

    `period` of the reference in which it lies, `rate` of the loop (Hz).
    """

    radius: float
    joint: int
    period: int
    rate: float

    @property
    def is_stable(self) -> bool:
        """Tell whether nothing grows."""
        return self.radius <= 1.0 + SLOWEST / self.rate


@dataclass(frozen=True)
class _Plant:
    """The arm at one pose: ``x' = A x + B u``, x = (q, θ of elastic joints, q̇, ω, motor torques that lag).

    `sides` give q, q̇, θ and ω of every joint from x; `weights` √inertia of (q, θ) and `owners` their joints.
    """

    A: Array
    B: Array
    sides: tuple[Array, Array, Array, Array]
    weights: Array
    owners: tuple[int, ...]


class UnstableError(ModelError):
    """Gains that do not hold an arm: `what` is wrong, and the advice."""

    def __init__(self, what: str, advice: str) -> None:
        """Say both."""
        super().__init__(f"{what} {advice}")
        self.what = what


def closed_loop_stability(
    robot: Robot,
    law: AffineControl,
    rate: float,
    drives: Sequence[JointDrive],
    *,
    gravity: Mounting = "table",
    payload: Payload | None = None,
    differenced: bool = False,
) -> Stability:
    """Return how the closed loop fares at the worst of some poses along the reference of a law, sampled at `rate` (Hz).

    ``M q̈ = τ_J - G q``, ``B θ̈ = τ_m - F_V ω - τ_J``, ``τ_J = k φ + D φ̇``, motors that lag, G = ∂g/∂q, k the
    stiffness under gravity; the law's torque is held over each period. Dry friction is left out: it would hide growth.
    With `differenced` speeds, ``q̇ = (q[k] - q[k-1]) / period`` and ω likewise: half a period late.
    """
    worst = Stability(0.0, 0, 0, rate)
    periods = np.unique(np.linspace(0, law.periods - 1, POSES).astype(int))
    poses = _poses(law)[periods]
    plants = _plants(robot, poses, drives, gravity, payload)
    for period, pose, plant in zip(periods, poses, plants, strict=True):
        found = _largest(plant, _feedback(law, int(period), pose), 1.0 / rate, differenced)
        if found[0] > worst.radius:
            worst = Stability(*found, int(period), rate)
    return worst


def refuse_unstable(
    robot: Robot,
    law: AffineControl,
    rate: float,
    drives: Sequence[JointDrive],
    *,
    gravity: Mounting = "table",
    payload: Payload | None = None,
    times: Array | None = None,
    differenced: bool = False,
) -> None:
    """Raise `UnstableError` with the joint and what to do if the gains of a law do not hold the arm at `rate` (Hz).

    A law without gains is feed-forward alone, and passes. `times` (periods,) s are those of a law that is only part of
    a motion; without them its periods follow each other from 0. `differenced`: as for `closed_loop_stability`.
    """
    if not any(np.any(value) for name in GAINS if (value := getattr(law, name)) is not None):
        return

    def stability(hertz: float, scale: float) -> Stability:
        other = law if scale == 1.0 else _scaled(law, scale)
        return closed_loop_stability(
            robot, other, hertz, drives, gravity=gravity, payload=payload, differenced=differenced
        )

    found = stability(rate, 1.0)
    if found.is_stable:
        return
    time = found.period / rate if times is None else times[found.period]
    where = f"joint {found.joint + 1} '{robot.joints[found.joint].name}' at t = {time:.3g} s"
    grows = f"errors grow by {100.0 * (found.radius - 1.0):.3g} % a period in {where}"
    faster = next((rate * r for r in FASTER if rate * r <= FASTEST and stability(rate * r, 1.0).is_stable), None)
    if faster is not None:
        does = f"Lower the gains, or raise the rate ({faster:g} Hz would do)."
        raise UnstableError(f"the rate of {rate:g} Hz is too low for the gains: {grows}.", does)
    scale = next((x for x in SCALES if stability(rate, x).is_stable), None)
    less = "Lower the bandwidth, or feed back the motor side with more damping."
    does = less if scale is None else f"Try {scale:g} times the gains."
    raise UnstableError(f"the gains do not hold the arm: {grows}.", does)


def _scaled(law: AffineControl, scale: float) -> AffineControl:
    """Return a law with all gains times a number."""
    gains = {name: value * scale for name in GAINS if (value := getattr(law, name)) is not None}
    return replace(law, **gains)


def _poses(law: AffineControl) -> Array:
    """Return the positions (periods, joints) of the reference."""
    for rows in (law.q, law.theta):
        if rows is not None:
            return rows
    raise ModelError("stability needs a law with a reference of positions, q or theta.")


def _plants(
    robot: Robot, poses: Array, drives: Sequence[JointDrive], gravity: Mounting, payload: Payload | None
) -> list[_Plant]:
    rigid = np.array([drive.inertia if drive.spring is None else 0.0 for drive in drives])
    M = mass_matrix(robot, poses, payload=payload, rotor_inertias=rigid)
    weight = gravity_torque(robot, poses, gravity=gravity, payload=payload)
    steps = [
        gravity_torque(robot, poses + s * row, gravity=gravity, payload=payload)
        for row in np.eye(robot.dof)
        for s in (NUDGE, -NUDGE)
    ]
    columns = [(after - before) / (2.0 * NUDGE) for after, before in zip(steps[::2], steps[1::2], strict=True)]
    slopes = np.stack(columns, axis=2)
    return [_plant(m, g, w, drives) for m, g, w in zip(M, slopes, weight, strict=True)]


def _plant(M: Array, G: Array, weight: Array, drives: Sequence[JointDrive]) -> _Plant:
    """Return the arm at a pose with mass matrix, gravity stiffness and gravity torque."""
    n = len(drives)
    elastic = [j for j, drive in enumerate(drives) if drive.spring is not None]
    lagging = [j for j, drive in enumerate(drives) if drive.lag > 0.0]
    m, eye = len(elastic), np.eye(n)
    pick = eye[elastic]
    stiff = [
        float(d.spring.stiffness(d.spring.deformation(w))) for d, w in zip(drives, weight, strict=True) if d.spring
    ]
    K, D = (np.diag(x) for x in (stiff, [drives[j].damping for j in elastic]))
    drag = np.array([drive.viscous for drive in drives])
    is_rigid = np.array([drive.spring is None for drive in drives], dtype=float)
    apart = np.hstack([-pick, np.eye(m)])  # φ of the elastic joints from (q, θ)
    net = np.vstack([pick.T, -np.eye(m)])  # torques on (q, θ) from the transmitted ones
    stiffness = net @ K.reshape(m, m) @ apart
    stiffness[:n, :n] -= G
    damping = net @ D.reshape(m, m) @ apart - np.diag([*(is_rigid * drag), *drag[elastic]])
    enter = np.vstack([np.diag(is_rigid), pick])  # torques on (q, θ) from the motors
    inertia = np.block([[M, np.zeros((n, m))], [np.zeros((m, n)), np.diag([drives[j].inertia for j in elastic])]])
    A, B = _first_order(inertia, stiffness, damping, enter, lagging, [drives[j].lag for j in lagging])
    rotor = np.hstack([np.diag(is_rigid), pick.T])  # θ of every joint from (q, θ)
    none, rest = np.zeros((n, n + m)), np.zeros((n, len(lagging)))
    sides = (
        np.hstack([eye, np.zeros((n, m)), none, rest]),
        np.hstack([none, eye, np.zeros((n, m)), rest]),
        np.hstack([rotor, none, rest]),
        np.hstack([none, rotor, rest]),
    )
    return _Plant(A, B, sides, np.sqrt(np.diag(inertia)), (*range(n), *elastic))


def _first_order(
    inertia: Array, stiffness: Array, damping: Array, enter: Array, lagging: list[int], lags: list[float]
) -> tuple[Array, Array]:
    """Return A and B of ``inertia z'' = stiffness z + damping z' + enter τ_m``, ``τ_m' = (u - τ_m) / lag``."""
    size, n, late = len(inertia), enter.shape[1], len(lagging)
    push = np.linalg.solve(inertia, np.hstack([stiffness, damping, enter]))
    A = np.zeros((2 * size + late, 2 * size + late))
    A[:size, size : 2 * size] = np.eye(size)
    A[size : 2 * size, : 2 * size] = push[:, : 2 * size]
    A[size : 2 * size, 2 * size :] = push[:, 2 * size :][:, lagging]
    A[2 * size :, 2 * size :] = -np.diag(1.0 / np.array(lags)).reshape(late, late) if late else 0.0
    B = np.zeros((2 * size + late, n))
    direct = [j for j in range(n) if j not in lagging]
    B[size : 2 * size, direct] = push[:, 2 * size :][:, direct]
    B[range(2 * size, 2 * size + late), lagging] = 1.0 / np.array(lags) if late else 0.0
    return A, B


def _feedback(law: AffineControl, period: int, pose: Array) -> list[Array | None]:
    """Return gains (joints, joints) of q, q̇, θ, ω and the integral; gravity at the measured q takes from that of q."""
    n = len(pose)
    gains: list[Array | None] = []
    for name in GAINS:
        value = law.gain_at(name, period)
        gains.append(value if value is None or value.ndim == 2 else np.diag(value))
    if law.gravity is not None:
        G = np.empty((n, n))
        for j, row in enumerate(NUDGE * np.eye(n)):
            torque = np.empty((2, n))
            kernels().inverse_dynamics(law.gravity, np.stack([pose + row, pose - row]), None, None, torque)
            G[:, j] = (torque[0] - torque[1]) / (2.0 * NUDGE)
        gains[0] = -G if gains[0] is None else gains[0] - G
    return gains


def _largest(plant: _Plant, gains: list[Array | None], period: float, differenced: bool) -> tuple[float, int]:
    """Return the radius of the largest eigenvalue over a period and the joint that moves most in it."""
    step = _period_matrix(plant, gains, period, differenced)
    values, vectors = np.linalg.eig(step)
    worst = int(np.argmax(np.abs(values)))
    moves = np.abs(vectors[: len(plant.weights), worst]) * plant.weights
    return float(np.abs(values[worst])), plant.owners[int(np.argmax(moves))]


def _period_matrix(plant: _Plant, gains: list[Array | None], period: float, differenced: bool) -> Array:
    """Return the matrix of one control period on (x, what the law remembers).

    ``x <- Ad x - Bd (K x + L m)``, ``m <- N x + P m``: m holds the integral, and q and θ of the period before where
    speeds are differences.
    """
    from scipy.linalg import block_diag, expm

    size, n = plant.B.shape
    held = expm(np.block([[plant.A, plant.B], [np.zeros((n, size + n))]]) * period)
    Ad, Bd = held[:size, :size], held[:size, size:]
    none = np.zeros((n, n))
    Kp, Kd, Kt, Kw, Ki = (none if gain is None else gain for gain in gains)
    q, qd, theta, speed = plant.sides
    memories: list[tuple[Array, Array, Array]] = []  # columns of L, rows of N, blocks of P
    if differenced:
        K = (Kp + Kd / period) @ q + (Kt + Kw / period) @ theta
        memories += [(-Kd / period, q, none), (-Kw / period, theta, none)]
    else:
        K = Kp @ q + Kd @ qd + Kt @ theta + Kw @ speed
    if gains[4] is not None:
        memories.append((Ki, period * q, np.eye(n)))
    if not memories:
        return np.asarray(Ad - Bd @ K)
    reads, writes, stays = zip(*memories, strict=True)
    return np.block([[Ad - Bd @ K, -Bd @ np.hstack(reads)], [np.vstack(writes), block_diag(*stays)]])
