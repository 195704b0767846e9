"""Stability of a control law on an elastic arm: the sampled closed loop, linearised at poses of the reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.control.controller import GAINS, AffineControl
from jointwise.control.joint_drive import JointDrive
from jointwise.control.links import Links
from jointwise.errors import ModelError
from jointwise.model.rigid.chain import kernels
from jointwise.model.transmission import motor_torque
from jointwise.spatial import Array

POSES = 12
"""Poses of a reference at which the loop is linearised; more do not change the verdict on the catalogue's arms."""
SLOWEST = 0.02
"""Growth rate (1/s) up to which a loop counts as stable: it doubles in half a minute, which any friction prevents."""
NUDGE = 1e-5
"""Step (rad) of the central differences of g(q): truncation and rounding errors are both below 1e-9 relative."""
FASTER = (2, 4, 8, 20, 50, 100, 200)
"""Multiples of the rate tested to suggest a stable one."""
FASTEST = 20_000.0
"""Highest rate (Hz) that is suggested: beyond what servo drives offer."""
SCALES = (0.5, 0.25, 0.1, 0.01, 2.0, 10.0, 100.0)
"""Multiples of the gains tested if no higher rate is stable."""


@dataclass(frozen=True)
class Stability:
    """The least stable pose of a reference.

    Attributes:
        radius: Spectral radius of the map over one control period.
        joint: Joint that moves most in that mode, 0-based.
        period: Control period of the reference at which it occurs.
        rate: Control rate, Hz.
    """

    radius: float
    joint: int
    period: int
    rate: float

    @property
    def is_stable(self) -> bool:
        """Whether no mode grows."""
        return self.radius <= 1.0 + SLOWEST / self.rate


@dataclass(frozen=True)
class _Plant:
    """The arm at one pose: ``x' = A x + B u``, x = (q, θ of elastic joints, q̇, ω, motor torques that lag).

    Attributes:
        A: A, (states, states).
        B: B, (states, joints).
        sides: Maps from x to q, q̇, θ and ω of every joint, (joints, states) each.
        weights: √inertia of (q, θ).
        owners: Joints of (q, θ), 0-based.
    """

    A: Array
    B: Array
    sides: tuple[Array, Array, Array, Array]
    weights: Array
    owners: tuple[int, ...]


class UnstableError(ModelError):
    """A closed loop that is unstable: `what` describes the instability, the message adds a remedy."""

    def __init__(self, what: str, remedy: str) -> None:
        """Join both to the message."""
        super().__init__(f"{what} {remedy}")
        self.what = what


def closed_loop_stability(
    links: Links, law: AffineControl, rate: float, drives: Sequence[JointDrive], *, differenced: bool = False
) -> Stability:
    """Return the stability of the closed loop at the worst of `POSES` poses along the reference, at a `rate` (Hz).

    ``M q̈ = τ_J - G q``, ``B θ̈ = τ_m - F_V ω - τ_J``, ``τ_J = k φ + D φ̇``, motors that lag, G = ∂g/∂q, k the
    stiffness under gravity; the law's torque is held over each period. Dry friction is omitted because it hides growth.
    With `differenced` speeds, ``q̇ = (q[k] - q[k-1]) / period`` and ω likewise: delayed by half a period.
    """
    worst = Stability(0.0, 0, 0, rate)
    periods = np.unique(np.linspace(0, law.periods - 1, POSES).astype(int))
    poses = _poses(law)[periods]
    plants = _plants(links, poses, drives)
    for period, pose, plant in zip(periods, poses, plants, strict=True):
        radius, joint = _spectral_radius(plant, _feedback(law, int(period), pose), 1.0 / rate, differenced)
        if radius > worst.radius:
            worst = Stability(radius, joint, int(period), rate)
    return worst


def check_stability(
    links: Links,
    law: AffineControl,
    rate: float,
    drives: Sequence[JointDrive],
    *,
    times: Array | None = None,
    differenced: bool = False,
) -> None:
    """Raise `UnstableError` if the closed loop of a law at `rate` (Hz) is unstable, naming the joint and a remedy.

    A law without gains is feed-forward only and passes. `times` (periods,) s are those of a law that is sampled from a
    longer motion; by default its periods follow each other from 0. `differenced` as for `closed_loop_stability`.
    """
    if not any(np.any(value) for name in GAINS if (value := getattr(law, name)) is not None):
        return

    def stability(hertz: float, scale: float) -> Stability:
        scaled = law if scale == 1.0 else _scaled(law, scale)
        return closed_loop_stability(links, scaled, hertz, drives, differenced=differenced)

    worst = stability(rate, 1.0)
    if worst.is_stable:
        return
    time = worst.period / rate if times is None else times[worst.period]
    where = f"joint {worst.joint + 1} '{links.robot.joints[worst.joint].name}' at t = {time:.3g} s"
    growth = f"errors grow by {100.0 * (worst.radius - 1.0):.3g} % per period in {where}"
    raise _unstable(growth, rate, stability)


def _unstable(growth: str, rate: float, stability: Callable[[float, float], Stability]) -> UnstableError:
    """Return the error for a growth at a rate (Hz), with a higher rate or a scale of the gains that is stable."""
    for hertz in (rate * ratio for ratio in FASTER if rate * ratio <= FASTEST):
        if stability(hertz, 1.0).is_stable:
            remedy = f"Lower the gains, or raise the rate ({hertz:g} Hz would do)."
            return UnstableError(f"the rate of {rate:g} Hz is too low for the gains: {growth}.", remedy)
    scale = next((scale for scale in SCALES if stability(rate, scale).is_stable), None)
    remedy = "Lower the bandwidth, or feed back the motor side with more damping."
    if scale is not None:
        remedy = f"Try {scale:g} times the gains."
    return UnstableError(f"the gains make the closed loop unstable: {growth}.", remedy)


def _scaled(law: AffineControl, scale: float) -> AffineControl:
    """Return a law with all gains multiplied by a number."""
    gains = {name: value * scale for name in GAINS if (value := getattr(law, name)) is not None}
    return replace(law, **gains)


def _poses(law: AffineControl) -> Array:
    """Return the reference positions (periods, joints)."""
    for rows in (law.q, law.theta):
        if rows is not None:
            return rows
    raise ModelError("the law must have a position reference, q or theta, for a stability check.")


def _plants(links: Links, poses: Array, drives: Sequence[JointDrive]) -> list[_Plant]:
    rigid = np.array([drive.inertia if drive.spring is None else 0.0 for drive in drives])
    M, weight = links.inertia(poses, rigid), links.weight(poses)
    steps = [links.weight(poses + s * row) for row in np.eye(links.robot.dof) for s in (NUDGE, -NUDGE)]
    columns = [(after - before) / (2.0 * NUDGE) for after, before in zip(steps[::2], steps[1::2], strict=True)]
    slopes, robot = np.stack(columns, axis=2), links.robot
    C = np.eye(robot.dof) if robot.transmission is None else robot.transmission.matrix
    loads = motor_torque(robot, weight)
    return [_plant(m, g, w, drives, C) for m, g, w in zip(M, slopes, loads, strict=True)]


def _plant(M: Array, G: Array, load: Array, drives: Sequence[JointDrive], C: Array) -> _Plant:
    """Return the arm at a pose with mass matrix, gravity stiffness and gravity torque at the motors ``theta = C q``."""
    n = len(drives)
    elastic = [j for j, drive in enumerate(drives) if drive.spring is not None]
    pick = np.eye(n)[elastic]
    inertia, stiffness, damping = _second_order(M, G, load, drives, elastic, C)
    is_rigid = np.array([drive.spring is None for drive in drives], dtype=float)
    enter = np.vstack([np.diag(is_rigid), pick])  # torques on (q, θ) from the motors
    A, B = _first_order(inertia, stiffness, damping, enter, drives)
    links = np.hstack([np.eye(n), np.zeros((n, len(elastic)))])  # q of every joint from (q, θ)
    rotors = np.hstack([np.diag(is_rigid), pick.T])  # θ of every joint from (q, θ)
    none, rest = np.zeros_like(links), np.zeros((n, len(A) - 2 * len(inertia)))
    sides = (
        np.hstack([links, none, rest]),
        np.hstack([none, links, rest]),
        np.hstack([rotors, none, rest]),
        np.hstack([none, rotors, rest]),
    )
    return _Plant(A, B, sides, np.sqrt(np.diag(inertia)), (*range(n), *elastic))


def _second_order(
    M: Array, G: Array, load: Array, drives: Sequence[JointDrive], elastic: list[int], C: Array
) -> tuple[Array, Array, Array]:
    """Return inertia, stiffness and damping of ``inertia z'' = stiffness z + damping z' + torques``, z = (q, θ)."""
    n, m = len(drives), len(elastic)
    pick = C[elastic]
    stiff = [float(d.spring.stiffness(d.spring.deformation(w))) for d, w in zip(drives, load, strict=True) if d.spring]
    K = np.diag(stiff).reshape(m, m)
    D = np.diag([drives[j].damping for j in elastic]).reshape(m, m)
    deformation = np.hstack([-pick, np.eye(m)])  # φ of the elastic gears from (q, θ)
    net = np.vstack([pick.T, -np.eye(m)])  # torques on (q, θ) from the transmitted ones
    stiffness = net @ K @ deformation
    stiffness[:n, :n] -= G
    drag = [drive.viscous if drive.spring is None else 0.0 for drive in drives]
    damping = net @ D @ deformation - np.diag([*drag, *(drives[j].viscous for j in elastic)])
    rotors = np.diag([drives[j].inertia for j in elastic]).reshape(m, m)
    inertia = np.block([[M, np.zeros((n, m))], [np.zeros((m, n)), rotors]])
    return inertia, stiffness, damping


def _first_order(
    inertia: Array, stiffness: Array, damping: Array, enter: Array, drives: Sequence[JointDrive]
) -> tuple[Array, Array]:
    """Return A and B of ``inertia z'' = stiffness z + damping z' + enter τ_m``, ``τ_m' = (u - τ_m) / lag``."""
    lagging = [j for j, drive in enumerate(drives) if drive.lag > 0.0]
    direct = [j for j, drive in enumerate(drives) if not drive.lag > 0.0]
    rates = 1.0 / np.array([drives[j].lag for j in lagging])
    size, n, states = len(inertia), len(drives), 2 * len(inertia)
    accelerations = np.linalg.solve(inertia, np.hstack([stiffness, damping, enter]))
    A = np.zeros((states + len(lagging), states + len(lagging)))
    A[:size, size:states] = np.eye(size)
    A[size:states, :states] = accelerations[:, :states]
    A[size:states, states:] = accelerations[:, states:][:, lagging]
    A[range(states, len(A)), range(states, len(A))] = -rates
    B = np.zeros((len(A), n))
    B[size:states, direct] = accelerations[:, states:][:, direct]
    B[range(states, len(A)), lagging] = rates
    return A, B


def _feedback(law: AffineControl, period: int, pose: Array) -> list[Array | None]:
    """Return gains (joints, joints) of q, q̇, θ, ω, ∫q; gravity compensation at the measured q reduces that of q."""
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
        G = G if law.gravity_shares is None else law.gravity_shares @ G
        gains[0] = -G if gains[0] is None else gains[0] - G
    return gains


def _spectral_radius(plant: _Plant, gains: list[Array | None], period: float, differenced: bool) -> tuple[float, int]:
    """Return the spectral radius of the map over a period and the joint that moves most in its mode."""
    with np.errstate(over="ignore", invalid="ignore"):
        step = _period_matrix(plant, gains, period, differenced)
    if not np.isfinite(step).all():  # a mode grows beyond the largest number within one period
        return np.inf, plant.owners[0]
    values, vectors = np.linalg.eig(step)
    worst = int(np.argmax(np.abs(values)))
    moves = np.abs(vectors[: len(plant.weights), worst]) * plant.weights
    return float(np.abs(values[worst])), plant.owners[int(np.argmax(moves))]


def _period_matrix(plant: _Plant, gains: list[Array | None], period: float, differenced: bool) -> Array:
    """Return the matrix of one control period on (x, memory m of the law).

    ``x <- Ad x - Bd (K x + L m)``, ``m <- N x + P m``: m holds the integral, and q and θ of the previous period where
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
