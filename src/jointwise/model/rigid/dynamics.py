"""Rigid-body dynamics of a serial arm, batched over samples.

Arrays are (samples, joints) in rad, rad/s, rad/s² (m, m/s, m/s² for a prismatic joint); torques in Nm (N).
`gravity` is a mounting or a vector in the base frame; the bodies are those of the robot unless `BodyOptions` say else.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

import numpy as np

from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.model.rigid.chain import (
    checked_out,
    checked_samples,
    checked_states,
    kernels,
    kinematic_chain,
    make_chain,
    refuse_non_finite,
)
from jointwise.model.rigid.kinematics import wrench_torque
from jointwise.spatial import Array


class BodyOptions(TypedDict, total=False):
    """What moves in addition to, or instead of, the described bodies; None for what does not.

    Attributes:
        payload: Body at the tool.
        inertials: Bodies in place of the described ones, (joints, 10): XX XY XZ YY YZ ZZ in kg m², mX mY mZ in kg m, m
            in kg.
        rotor_inertias: Rotor inertias Ia that add ``Ia q̈`` to each joint, (joints,), kg m².
    """

    payload: Payload | None
    inertials: Array | None
    rotor_inertias: Array | None


def inverse_dynamics(
    robot: Robot,
    q: Array,
    qd: Array | None = None,
    qdd: Array | None = None,
    *,
    gravity: Mounting = "table",
    wrench: Array | None = None,
    out: Array | None = None,
    **bodies: Unpack[BodyOptions],
) -> Array:
    """Return ``τ = M q̈ + C q̇ + g - Jᵀ w``, shape (samples, joints).

    `wrench` (samples, 6) or (6,): force (N) and moment (Nm) of the environment *on* the tool, at the tool's origin
    in base axes. `out` receives the result.
    """
    chain = make_chain(robot, gravity, **bodies)
    q, qd, qdd = checked_states(robot, q, qd, qdd)
    torque = np.empty((len(q), robot.dof)) if out is None else checked_out(out, (len(q), robot.dof))
    if not kernels().inverse_dynamics(chain, q, qd, qdd, torque):
        refuse_non_finite(q=q, qd=qd, qdd=qdd)
    if wrench is not None:
        torque -= wrench_torque(robot, q, wrench)
    return torque


def gravity_torque(robot: Robot, q: Array, *, gravity: Mounting = "table", **bodies: Unpack[BodyOptions]) -> Array:
    """Return g(q), shape (samples, joints)."""
    return inverse_dynamics(robot, q, gravity=gravity, **bodies)


def coriolis_vector(robot: Robot, q: Array, qd: Array, **bodies: Unpack[BodyOptions]) -> Array:
    """Return C(q, q̇) q̇, shape (samples, joints)."""
    return inverse_dynamics(robot, q, qd, gravity=np.zeros(3), **bodies)


def coriolis_matrix(robot: Robot, q: Array, qd: Array, **bodies: Unpack[BodyOptions]) -> Array:
    """Return C(q, q̇) of Christoffel's symbols, (samples, joints, joints).

    Ṁ - 2 C is skew-symmetric. The vector ``c(q, q̇) = C q̇`` is a quadratic form in q̇; column j of C is its polarisation
    with a speed s of joint j: ``C e_j = (c(q̇ + s e_j) - c(q̇ - s e_j)) / 4 s``. s is the largest speed of the sample,
    so that the difference keeps its digits at any speed.
    """
    q, speed, _ = checked_states(robot, q, qd)
    assert speed is not None
    largest = np.abs(speed).max(axis=1)
    step = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)

    def c(velocity: Array) -> Array:
        return coriolis_vector(robot, q, velocity, **bodies)

    matrix = np.empty((len(q), robot.dof, robot.dof))
    for j in range(robot.dof):
        along = np.zeros_like(speed)
        along[:, j] = step
        matrix[:, :, j] = (c(speed + along) - c(speed - along)) / (4.0 * step[:, None])
    return matrix


def mass_matrix(robot: Robot, q: Array, **bodies: Unpack[BodyOptions]) -> Array:
    """Return M(q), shape (samples, joints, joints), kg m² (composite rigid bodies)."""
    chain = make_chain(robot, np.zeros(3), **bodies)
    q, _, _ = checked_states(robot, q)
    M = np.empty((len(q), robot.dof**2))
    if not kernels().mass_matrix(chain, q, None, None, M):
        refuse_non_finite(q=q)
    return M.reshape(len(q), robot.dof, robot.dof)


def forward_dynamics(
    robot: Robot,
    q: Array,
    qd: Array | None,
    torque: Array,
    *,
    gravity: Mounting = "table",
    wrench: Array | None = None,
    out: Array | None = None,
    **bodies: Unpack[BodyOptions],
) -> Array:
    """Return ``q̈ = M⁻¹ (τ + Jᵀ w - C q̇ - g)``, shape (samples, joints) (articulated bodies)."""
    chain = make_chain(robot, gravity, **bodies)
    q, qd, _ = checked_states(robot, q, qd)
    applied = checked_samples(torque, robot.dof, "torque", len(q))
    if wrench is not None:
        applied = applied + wrench_torque(robot, q, wrench)
    acceleration = np.empty((len(q), robot.dof)) if out is None else checked_out(out, (len(q), robot.dof))
    if not kernels().forward_dynamics(chain, q, qd, applied, acceleration):
        refuse_non_finite(q=q, qd=qd, torque=applied)
    return acceleration


def energy_regressors(
    robot: Robot, q: Array, qd: Array | None = None, *, gravity: Mounting = "table"
) -> tuple[Array, Array]:
    """Return kinetic and potential energy per unit of each standard parameter, (samples, 10 joints) each.

    ``E_kin = K π`` and ``E_pot = U π`` in J; potential energy is zero at the base origin.
    """
    chain = kinematic_chain(robot, gravity)
    q, qd, _ = checked_states(robot, q, qd)
    kinetic, potential = (np.empty((10 * robot.dof, len(q))).T for _ in range(2))
    if not kernels().energy_regressors(chain, q, qd, kinetic, potential):
        refuse_non_finite(q=q, qd=qd)
    return kinetic, potential


def kinetic_energy(robot: Robot, q: Array, qd: Array, **bodies: Unpack[BodyOptions]) -> Array:
    """Return ½ q̇ᵀ M q̇ in J, shape (samples,)."""
    chain = make_chain(robot, **bodies)
    kinetic, _ = energy_regressors(robot, q, qd)
    energy: Array = kinetic @ chain.inertials.ravel() + 0.5 * np.square(qd) @ chain.rotors
    return energy


def potential_energy(robot: Robot, q: Array, *, gravity: Mounting = "table", **bodies: Unpack[BodyOptions]) -> Array:
    """Return -Σ m g·c in J, zero at the base origin, shape (samples,)."""
    chain = make_chain(robot, gravity, **bodies)
    _, potential = energy_regressors(robot, q, gravity=gravity)
    energy: Array = potential @ chain.inertials.ravel()
    return energy
