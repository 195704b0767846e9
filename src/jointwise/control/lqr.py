"""Decentralised LQR with feed-forward: each joint on its spring is controlled separately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from jointwise.arguments import checked, checked_fields
from jointwise.control.controller import AffineControl, AffineController
from jointwise.control.flexible import friction_feed
from jointwise.control.joint_drive import JointDrive
from jointwise.control.links import Links, TaskOptions, make_task, plus_friction
from jointwise.control.reference import Reference
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel

DEFAULT_EFFORT = 100.0
"""Torque tolerance (Nm) of a joint whose description has no effort limit."""


@checked_fields
@dataclass(frozen=True)
class Tolerances:
    """Weights by Bryson's rule, 1 / tolerance²: deviations that cost as much as the full torque of the joint.

    Each is a number or (joints,).

    Attributes:
        position: Deviation of the positions of link and rotor, rad.
        speed: Deviation of their speeds, rad/s.
        integral: Integral of the link's position error, rad s; None for no integral.
        torque: Torque, Nm; None for the effort limit of each joint.
    """

    position: float | Array = 2e-2
    speed: float | Array = 0.5
    integral: float | Array | None = None
    torque: float | Array | None = None

    def __post_init__(self) -> None:
        """Reject values that are not positive."""
        for name in ("position", "speed", "integral", "torque"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value).all() and (np.asarray(value) > 0.0).all()):
                raise ModelError(f"{name} must be finite and > 0. Got {value} instead.")


@checked
def joint_system(drive: JointDrive, inertia: float, integral: bool = False) -> tuple[Array, Array]:
    """Return A and B of ``x' = A x + B u`` for one joint with a link of `inertia` J (kg m²), u its motor torque (Nm).

    ``x = (θ, ω, q, q̇)``: ``B θ̈ = u - F_V ω - k (θ - q) - D (ω - q̇)``, ``J q̈ = k (θ - q) + D (ω - q̇)``, k the
    stiffness at rest; ``x = (q, q̇)`` with the inertia J + B for a rigid joint. `integral` appends ∫q dt.
    """
    A, B = _rigid_system(drive, inertia) if drive.spring is None else _elastic_system(drive, inertia)
    if not integral:
        return A, B
    at = 0 if drive.spring is None else 2
    A = np.pad(A, ((0, 1), (0, 1)))
    A[-1, at] = 1.0
    return A, np.append(B, [[0.0]], axis=0)


def _rigid_system(drive: JointDrive, inertia: float) -> tuple[Array, Array]:
    total = inertia + drive.inertia
    return np.array([[0.0, 1.0], [0.0, -drive.viscous / total]]), np.array([[0.0], [1.0 / total]])


def _elastic_system(drive: JointDrive, inertia: float) -> tuple[Array, Array]:
    assert drive.spring is not None
    k, D = float(drive.spring.stiffness(np.zeros(()))), drive.damping
    rotor = np.array([-k, -drive.viscous - D, k, D]) / drive.inertia
    link = np.array([k, D, -k, -D]) / inertia
    A = np.array([[0.0, 1.0, 0.0, 0.0], rotor, [0.0, 0.0, 0.0, 1.0], link])
    return A, np.array([[0.0], [1.0 / drive.inertia], [0.0], [0.0]])


@checked
def lqr_gain(A: Array, B: Array, Q: Array, R: Array, period: float | None = None) -> Array:
    """Return K of ``u = -K x`` that minimises ``∫ xᵀ Q x + uᵀ R u dt``, (inputs, states).

    With a `period` (s) u is held over each: system and cost are sampled exactly; without, u is continuous.
    """
    from scipy.linalg import solve_continuous_are, solve_discrete_are

    try:
        if period is None:
            P = solve_continuous_are(A, B, Q, R)
            return np.asarray(np.linalg.solve(R, B.T @ P))
        Ad, Bd, Qd, Rd, Nd = sampled_cost(A, B, Q, R, period)
        P = solve_discrete_are(Ad, Bd, Qd, Rd, s=Nd)
        return np.asarray(np.linalg.solve(Rd + Bd.T @ P @ Bd, Bd.T @ P @ Ad + Nd.T))
    except (np.linalg.LinAlgError, ValueError):
        raise ModelError("no LQR gain exists: weights must be positive and the motor must move the joint.") from None


def sampled_cost(A: Array, B: Array, Q: Array, R: Array, period: float) -> tuple[Array, Array, Array, Array, Array]:
    """Return A, B of the sampled system and Q, R, N of its cost ``Σ xᵀQx + uᵀRu + 2 xᵀNu`` (Van Loan)."""
    from scipy.linalg import expm

    n, m = B.shape
    F = np.block([[A, B], [np.zeros((m, n + m))]])
    W = np.block([[Q, np.zeros((n, m))], [np.zeros((m, n)), R]])
    big = expm(np.block([[-F.T, W], [np.zeros_like(F), F]]) * period)
    step = big[n + m :, n + m :]
    cost = step.T @ big[: n + m, n + m :]
    cost = 0.5 * (cost + cost.T)
    return step[:n, :n], step[:n, n:], cost[:n, :n], cost[n:, n:], cost[:n, n:]


@checked
def lqr(
    robot: Robot | RobotModel,
    motion: Any,
    rate: float = 1000.0,
    *,
    drives: Sequence[JointDrive],
    tolerances: Tolerances | None = None,
    friction: Array | bool = True,
    **options: Unpack[TaskOptions],
) -> AffineController:
    """Return ``u = u_ff - K (x - x_d)`` of every joint alone, ``x = (θ, ω, q, q̇)`` and ∫q dt if it has a tolerance.

    ``θ_d = q_d + (J q̈_d + g) / k``, ``u_ff = B θ̈_d + k (θ_d - q_d) + f``: J is the mean of M_ii along the motion, g
    gravity along it, k the stiffness at rest. Coupling between the joints is left to the feedback. `friction` as in
    `flexible_feedforward`. Stiffness that grows with load enters through the deformation of the spring.
    """
    task = make_task(robot, motion, rate, drives, **options)
    theta, speed, _ = decentralised_motion(task.links, task.drives, task.inertias, task.reference)
    _, speed_ahead, torque = decentralised_motion(task.links, task.drives, task.inertias, task.ahead)
    feed = plus_friction(torque, friction_feed(task.drives, speed_ahead, friction))
    gains = decentralised_gains(task.links.robot, task.drives, task.inertias, tolerances or Tolerances(), rate)
    law = AffineControl(torque=feed, theta=theta, speed=speed, q=task.reference.q, qd=task.reference.qd, **gains)
    return AffineController(task.links.law(law), rate)


def decentralised_gains(
    robot: Robot, drives: Sequence[JointDrive], inertias: Array, tolerances: Tolerances, rate: float
) -> dict[str, Any]:
    """Return the LQR gains of all joints as `AffineControl` takes them, (joints,) each."""
    n, has_integral = robot.dof, tolerances.integral is not None
    names = ("k_theta", "k_speed", "kp", "kd", *(("ki",) if has_integral else ()))
    gains = {name: np.zeros(n) for name in names}
    effort = [joint.limits.effort or DEFAULT_EFFORT for joint in robot.joints]
    for j, drive in enumerate(drives):
        A, B = joint_system(drive, float(inertias[j]), has_integral)
        Q, R = _weights(tolerances, j, drive.spring is None, effort[j])
        row = lqr_gain(A, B, Q, R, 1.0 / rate)[0]
        present = names if drive.spring is not None else tuple(name for name in names if name[:2] != "k_")
        for name, value in zip(present, row, strict=True):
            gains[name][j] = value
    return gains


def _weights(tolerances: Tolerances, j: int, rigid: bool, effort: float) -> tuple[Array, Array]:
    """Return Q and R of joint j."""
    position, speed = _of(tolerances.position, j), _of(tolerances.speed, j)
    scales = [position, speed] if rigid else [position, speed, position, speed]
    if tolerances.integral is not None:
        scales.append(_of(tolerances.integral, j))
    torque = effort if tolerances.torque is None else _of(tolerances.torque, j)
    return np.diag(1.0 / np.square(scales)), np.array([[1.0 / torque**2]])


def _of(value: float | Array, j: int) -> float:
    return float(np.asarray(value).flat[j]) if np.ndim(value) else float(value)


def decentralised_motion(
    links: Links, drives: Sequence[JointDrive], inertias: Array, reference: Reference
) -> tuple[Array, Array, Array]:
    """Return θ_d, ω_d and u_ff (periods, joints) with ``τ = J q̈ + g(q)`` for the torque of the links.

    The derivatives of g along the path are central differences of g(q ± q̇ h + q̈ h²/2); those of J q̈ are jerk and snap
    where the motion has them, else zero.
    """
    q, qd, qdd = reference.q, reference.qd, reference.qdd
    g, g_d, g_dd = _weight_rates(links, q, qd, qdd)
    jerk = np.zeros_like(q) if reference.jerk is None else reference.jerk
    snap = np.zeros_like(q) if reference.snap is None else reference.snap
    torque, first, second = inertias * qdd + g, inertias * jerk + g_d, inertias * snap + g_dd
    theta, speed, acceleration = q.copy(), qd.copy(), qdd.copy()
    for j, drive in enumerate(drives):
        if drive.spring is not None:
            phi = drive.spring.deformation(torque[:, j])
            k = drive.spring.stiffness(phi)
            theta[:, j] += phi
            speed[:, j] += first[:, j] / k
            acceleration[:, j] += second[:, j] / k
    rotors = np.array([drive.inertia for drive in drives])
    return theta, speed, rotors * acceleration + torque


def _weight_rates(links: Links, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
    """Return g and its first two time derivatives along a motion, by differences over h = 1 ms."""
    h = 1e-3
    before, at, after = (links.weight(q + s * qd + 0.5 * s**2 * qdd) for s in (-h, 0.0, h))
    return at, (after - before) / (2.0 * h), (after - 2.0 * at + before) / h**2
