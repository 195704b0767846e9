"""Largest stable integration step: the integrator applied to the linearised elastic arm must not grow."""

from __future__ import annotations

import numpy as np

from jointwise.description.robot import Joint, Payload, Robot
from jointwise.errors import ModelError
from jointwise.model.rigid import mass_matrix
from jointwise.simulation.robot.joint import JointPlant
from jointwise.spatial import Array

POSES = 32
"""Poses tested: the fastest mode is that of a light rotor on its spring, which the pose of the links changes little."""
STROKE = 2.0
"""Stroke (m) of a prismatic joint without limits: that of a long linear axis."""
LARGEST_STEP = 1e-3
"""Longest step (s) of a rigid arm: the error of the fourth-order method is below 1 nrad."""
FRICTION_STEP = 5e-4
"""Longest step (s) with dry friction: at 1 rad/s half of a typical backlash of 1 mrad."""
SMALLEST_STEP = 1e-6
"""Shortest step (s) that is chosen: only modes above 400 kHz, which no gear has, would need shorter ones."""
SHORTER = 0.95
"""Ratio of consecutive candidate steps: the result is at most 5 % below the longest stable step."""
DEFAULT_LOAD = 100.0
"""Load (Nm; N) of a joint without effort limit, that of a middle joint of an arm that carries some kilograms."""
ROUNDING = 1e-6
"""Growth over a step within rounding errors: rigid motion has a double eigenvalue 1, which rounding perturbs so far."""


@np.errstate(over="ignore", invalid="ignore")
def largest_step(robot: Robot, joints: tuple[JointPlant, ...], payload: Payload | None) -> float:
    """Return the longest step (s) of links, springs and rotors that is stable at `POSES` seeded poses.

    The poses lie within the limits of the joints (`pose_range`). Springs are taken as stiff as under the full effort
    limit, which is the margin for the poses that are not tested. Joints too fast for `SMALLEST_STEP` are rejected.
    """
    longest = FRICTION_STEP if any(joint.law.is_dry for joint in joints) else LARGEST_STEP
    if all(joint.is_rigid for joint in joints):
        return longest
    systems = linearised(robot, joints, payload)
    if not _all_stable(systems, SMALLEST_STEP):
        raise _too_fast(robot, joints, systems)
    while longest > SMALLEST_STEP and not _all_stable(systems, longest):
        longest *= SHORTER
    return max(longest, SMALLEST_STEP)


def linearised(robot: Robot, joints: tuple[JointPlant, ...], payload: Payload | None) -> list[tuple[Array, Array]]:
    """Return A, C of ``z'' = A z + C z'``, z = (q, θ of the elastic joints), at every pose that is tested."""
    elastic, rigid = _elastic(joints), np.array([joint.is_rigid for joint in joints])
    loads = [joint.limits.effort or DEFAULT_LOAD for joint in robot.joints]
    K = np.diag([_stiffness(joint, load) for joint, load in zip(joints, loads, strict=True)])
    D = np.diag(np.where(rigid, 0.0, [joint.damping for joint in joints]))
    inertias = np.array([joint.inertia for joint in joints])
    B, rotors = inertias[elastic], np.where(rigid, inertias, 0.0)
    low, high = np.transpose([pose_range(joint) for joint in robot.joints])
    q = np.random.default_rng(0).uniform(low, high, (POSES, robot.dof))
    pick = np.eye(robot.dof)[elastic]
    C = np.eye(robot.dof) if robot.transmission is None else robot.transmission.matrix
    apart = np.hstack([-C, pick.T])  # φ of every gear from (q, θ)
    systems = []
    for M in mass_matrix(robot, q, payload=payload, rotor_inertias=rotors):
        push = np.vstack([np.linalg.solve(M, C.T), -pick / B[:, None]])  # accelerations from transmitted torques
        systems.append((push @ K @ apart, push @ D @ apart))
    return systems


def pose_range(joint: Joint) -> tuple[float, float]:
    """Return the positions (rad or m) between which poses are tested: the limits of the joint, or a default.

    The default is a turn about zero for a revolute joint, also if its limits allow more, or `STROKE`.
    """
    is_revolute = joint.kind == "revolute"
    wide = 2.0 * np.pi if is_revolute else STROKE
    lower, upper = joint.limits.lower, joint.limits.upper
    if lower is None or upper is None:
        start = -wide / 2.0 if lower is None and upper is None else (upper or 0.0) - wide if lower is None else lower
        return start, start + wide
    return (-np.pi, np.pi) if is_revolute and upper - lower >= wide else (lower, upper)


def _too_fast(robot: Robot, joints: tuple[JointPlant, ...], systems: list[tuple[Array, Array]]) -> ModelError:
    """Return the error for the joint whose rotor and link oscillate fastest against each other."""
    n, elastic = robot.dof, _elastic(joints)
    rotors = np.arange(n, n + len(elastic))
    rates = [
        [-(X[elastic, elastic] + X[rotors, rotors]) for X in pair] for pair in systems
    ]  # k (1/B + 1/M), D (1/B + 1/M)
    swing, decay = np.max(rates, axis=0)
    fastest = np.nan_to_num(np.maximum(np.sqrt(swing), decay) / (2.0 * np.pi), nan=np.inf)
    worst = int(np.argmax(fastest))
    joint = joints[elastic[worst]]
    return ModelError(
        f"joint '{robot.joints[elastic[worst]].name}' is too fast to integrate: its rotor of {joint.inertia:.3g} kg m² "
        f"on spring and damper moves at {fastest[worst]:.3g} Hz, which needs steps below {SMALLEST_STEP:g} s. Use "
        "more inertia, a softer spring or less damping, switch off 'stiffness', or set substeps yourself."
    )


def _elastic(joints: tuple[JointPlant, ...]) -> list[int]:
    return [k for k, joint in enumerate(joints) if not joint.is_rigid]


def _stiffness(joint: JointPlant, torque: float) -> float:
    """Return dτ_J/dφ (Nm/rad) where the spring carries a torque (Nm); 0 for a rigid joint."""
    if joint.is_rigid:
        return 0.0
    return float(joint.stiffness.stiffness(joint.stiffness.deformation(np.asarray(torque))))


def _all_stable(systems: list[tuple[Array, Array]], h: float) -> bool:
    """Return whether a step of h (s) is stable at every pose; rigid motion may drift."""
    steps = np.array([_step_matrix(A, C, h) for A, C in systems])
    return bool(np.isfinite(steps).all() and np.abs(np.linalg.eigvals(steps)).max() <= 1.0 + ROUNDING)


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


def required_substeps(period: float, longest: float) -> int:
    """Return the number of steps of at most `longest` (s) in a control period (s)."""
    return max(1, int(np.ceil(period / longest - 1e-9)))
