"""How small a step must be: the integrator applied to the linearised arm on its springs must not grow."""

from __future__ import annotations

import numpy as np

from jointwise.description.payload import Payload
from jointwise.description.robot import Robot
from jointwise.model.rigid import mass_matrix
from jointwise.model.spring import Spring
from jointwise.simulation.robot.joint import JointPlant
from jointwise.spatial import Array

POSES = 32
LARGEST_STEP = 1e-3
"""Longest step (s) of a rigid arm."""
FRICTION_STEP = 5e-4
"""Longest step (s) where friction can reverse."""
SMALLEST_STEP = 1e-6
USUAL_LOAD = 100.0


def largest_step(robot: Robot, joints: tuple[JointPlant, ...], payload: Payload | None) -> float:
    """Return the longest stable step (s) of links, springs and rotors, at seeded poses.

    Springs are taken as stiff as under the full effort limit, which is the margin.
    """
    longest = FRICTION_STEP if any(joint.friction.is_dry for joint in joints) else LARGEST_STEP
    if all(joint.is_rigid for joint in joints):
        return longest
    systems = linearised(robot, joints, payload)
    while longest > SMALLEST_STEP and not all(_is_stable(A, C, longest) for A, C in systems):
        longest *= 0.95
    return longest


def linearised(robot: Robot, joints: tuple[JointPlant, ...], payload: Payload | None) -> list[tuple[Array, Array]]:
    """Return A, C of ``z'' = A z + C z'``, z = (q, θ of the elastic joints), at every pose."""
    elastic = [k for k, joint in enumerate(joints) if not joint.is_rigid]
    load = np.array([joint.limits.effort or USUAL_LOAD for joint in robot.joints])
    K = np.diag([0.0 if j.is_rigid else _stiffness(j.stiffness, t) for j, t in zip(joints, load, strict=True)])
    D = np.diag([0.0 if joint.is_rigid else joint.damping for joint in joints])
    B = np.array([joints[k].inertia for k in elastic])
    rotors = np.array([joint.inertia if joint.is_rigid else 0.0 for joint in joints])
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (POSES, robot.dof))
    pick = np.eye(robot.dof)[elastic]
    apart = np.hstack([-np.eye(robot.dof), pick.T])  # φ of every joint from (q, θ)
    systems = []
    for M in mass_matrix(robot, q, payload=payload, rotor_inertias=rotors):
        push = np.vstack([np.linalg.inv(M), -pick / B[:, None]])  # accelerations from transmitted torques
        systems.append((push @ K @ apart, push @ D @ apart))
    return systems


def _stiffness(spring: Spring, torque: Array) -> float:
    """Return dτ_J/dφ (Nm/rad) where the spring carries a torque (Nm)."""
    return float(spring.stiffness(spring.deformation(torque)))


def _is_stable(A: Array, C: Array, h: float) -> bool:
    """Tell whether a step of h (s) does not grow; rigid motion, whose eigenvalues are 1 twice, may drift."""
    radius = np.abs(np.linalg.eigvals(_step_matrix(A, C, h))).max()
    return bool(radius <= 1.0 + 1e-6)


def _step_matrix(A: Array, C: Array, h: float) -> Array:
    """Return the matrix of one step of plant.h on (z, z'): Nyström's method of fourth order."""
    n = len(A)
    one, none = np.eye(n), np.zeros((n, n))
    z, v = np.hstack([one, none]), np.hstack([none, one])
    k1 = A @ z + C @ v
    middle = z + h / 2 * v + h**2 / 8 * k1
    k2 = A @ middle + C @ (v + h / 2 * k1)
    k3 = A @ middle + C @ (v + h / 2 * k2)
    k4 = A @ (z + h * v + h**2 / 2 * k3) + C @ (v + h * k3)
    return np.vstack([z + h * v + h**2 / 6 * (k1 + k2 + k3), v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])


def usual_substeps(period: float, longest: float) -> int:
    """Return how many steps of at most `longest` s make a control period (s)."""
    return max(1, int(np.ceil(period / longest - 1e-9)))
