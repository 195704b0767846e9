"""Elastic joints as a linear model: both equations of every joint in 14 parameters each.

    link  : Y(q, q̇, q̈) π + [h(θ̇, θ̈)] + K (q - θ) = 0
    motor : Υ θ̈ + F_s sgn θ̇ + F_v θ̇ + K (θ - q) + [Υ / r  z·ω̇] = τ_m

θ is the rotor position divided by the gear ratio r. Without brackets: the reduced model (Spong). The complete model
adds the spin of rotor j, which the link before it carries: its angular momentum Υ_j / r_j θ̇_j z_j changes by
``Υ_j / r_j (θ̈_j z_j + θ̇_j ω × z_j)``, a torque about the axes of all joints before j, and the acceleration of that link
about z_j acts on the rotor. All terms are linear in the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointwise.description.mounting import Mounting
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.model.base import BaseParameters, group_columns
from jointwise.model.rigid import compute_regressor, forward_kinematics
from jointwise.model.rigid.regressor import standard_names
from jointwise.spatial import Array

ElasticModel = Literal["reduced", "complete"]
MOTOR_NAMES = ("Ia", "Fs", "Fv", "K")
MOTOR_UNITS = {"Ia": "kg m^2", "Fs": "Nm", "Fv": "Nm s/rad", "K": "Nm/rad"}
STATES = 60
"""Random states per joint at which the structure of the model is determined."""
DEFLECTION = 0.05
"""rad; size of θ - q at these states."""


@dataclass(frozen=True)
class ElasticStates:
    """States of links and rotors, (samples, joints) each; rotors after the gear.

    Attributes:
        q: Positions of the links, rad.
        qd: Speeds of the links, rad/s.
        qdd: Accelerations of the links, rad/s².
        theta: Positions of the rotors, rad.
        theta_d: Speeds of the rotors, rad/s.
        theta_dd: Accelerations of the rotors, rad/s².
    """

    q: Array
    qd: Array
    qdd: Array
    theta: Array
    theta_d: Array
    theta_dd: Array


def elastic_names(joints: int) -> tuple[str, ...]:
    """Return the names of all parameters: ten a link, then rotor inertia, friction and stiffness of the joints."""
    motors = tuple(f"{name}{j + 1}" for j in range(joints) for name in MOTOR_NAMES)
    return (*standard_names(joints, False), *motors)


def elastic_columns(robot: Robot, states: ElasticStates, gravity: Mounting, model: ElasticModel) -> tuple[Array, Array]:
    """Return the columns of all parameters in the equations of the links and of the motors.

    Args:
        robot: The robot; the complete model needs its gear ratios.
        states: States of links and rotors.
        gravity: Mounting of the base, or gravity in m/s².
        model: reduced or complete.

    Returns:
        Two arrays (joints, samples, 14 joints): those of the links, whose equations have the right side zero, and
        those of the motors, whose right side is the motor torque.

    """
    n, samples = robot.dof, len(states.q)
    link, motor = np.zeros((2, n, samples, 14 * n))
    Y = compute_regressor(robot, states.q, states.qd, states.qdd, gravity=gravity, rotors=False).matrices()
    link[:, :, : 10 * n] = Y.transpose(1, 0, 2)
    for j in range(n):
        start, deflection = 10 * n + 4 * j, states.theta[:, j] - states.q[:, j]
        speed = states.theta_d[:, j]
        link[j, :, start + 3] = -deflection
        motor[j, :, start : start + 4] = np.column_stack([states.theta_dd[:, j], np.sign(speed), speed, deflection])
    if model == "complete":
        _add_spin(robot, states, link, motor)
    return link, motor


def _add_spin(robot: Robot, states: ElasticStates, link: Array, motor: Array) -> None:
    """Add the columns of the rotor inertias that the spin of the rotors makes."""
    n, ratios = robot.dof, gear_ratios(robot)
    axes = forward_kinematics(robot, states.q).rotation[:, :n, :, 2]
    turn, change = np.zeros((2, len(states.q), 3))  # speed and acceleration of the link before
    for j in range(n):
        z = axes[:, j]
        column = 10 * n + 4 * j
        spin = states.theta_dd[:, j, None] * z + states.theta_d[:, j, None] * np.cross(turn, z)
        for i in range(j):
            link[i, :, column] += np.sum(axes[:, i] * spin, axis=1) / ratios[j]
        motor[j, :, column] += np.sum(z * change, axis=1) / ratios[j]
        if robot.revolute[j]:
            change = change + states.qdd[:, j, None] * z + states.qd[:, j, None] * np.cross(turn, z)
            turn = turn + states.qd[:, j, None] * z


def gear_ratios(robot: Robot) -> Array:
    """Return the gear ratios; the complete model needs them."""
    ratios = [joint.motor.gear_ratio for joint in robot.joints]
    missing = [str(j + 1) for j, ratio in enumerate(ratios) if ratio is None]
    if missing:
        raise ModelError(
            f"robot '{robot.name}': the complete elastic model needs gear_ratio of joint {', '.join(missing)}. "
            "Describe it, or use the reduced model."
        )
    return np.array(ratios, dtype=float)


def elastic_base(robot: Robot, gravity: Mounting, model: ElasticModel) -> BaseParameters:
    """Return the identifiable combinations of the 14 parameters of every joint, and the class of each parameter."""
    rng = np.random.default_rng(20_240_521)
    shape = (STATES * robot.dof, robot.dof)
    q, qd, qdd, theta_d, theta_dd = rng.uniform(-np.pi, np.pi, (5, *shape))
    states = ElasticStates(q, qd, qdd, q + rng.uniform(-DEFLECTION, DEFLECTION, shape), theta_d, theta_dd)
    link, motor = elastic_columns(robot, states, gravity, model)
    rows = np.concatenate([link.reshape(-1, link.shape[2]), motor.reshape(-1, motor.shape[2])])
    triangle: Array = np.asarray(np.linalg.qr(rows, mode="r"))
    return group_columns(triangle, elastic_names(robot.dof))


def units_of(names: Sequence[str], base: BaseParameters) -> tuple[str, ...]:
    """Return the units of base parameters by the standard parameter that heads each."""
    stems = [base.standard_names[k].rstrip("0123456789") for k in base.kept]
    bodies = {"m": "kg", "mX": "kg m", "mY": "kg m", "mZ": "kg m"}
    return tuple(MOTOR_UNITS.get(stem) or bodies.get(stem, "kg m^2") for stem in stems[: len(names)])
