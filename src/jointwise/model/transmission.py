"""Dynamics at the motors of a coupled transmission: regressor and motion in motor coordinates.

With ``theta = C q`` and torques ``tau_motor = C^-T tau_joint``: rows of the regressor are combined by C^-T, rotor
inertias act on the motor accelerations C q̈, and friction sees the motor speeds C q̇. Without coupling nothing changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np

from jointwise.description.mounting import Mounting
from jointwise.description.robot import Robot
from jointwise.description.transmission import Transmission
from jointwise.model.rigid.regressor import Regressor, RegressorStructure, compute_regressor, regressor_structure
from jointwise.motion import Motion
from jointwise.spatial import Array

NO_COUPLING = 1e-12
"""Entries of an inverse coupling matrix below this are rounding errors."""


def motor_structure(robot: Robot, gravity: Mounting = "table", rotors: bool = False) -> RegressorStructure:
    """Return which entries of the regressor at the motors are not zero for every motion."""
    at_joints = regressor_structure(robot, gravity, rotors)
    return at_joints if robot.transmission is None else _coupled(at_joints, robot.transmission)


class RegressorOptions(TypedDict, total=False):
    """Options of `compute_regressor`: the mounting, and whether reflected rotor inertias follow the bodies."""

    gravity: Mounting
    rotors: bool


def motor_regressor(
    robot: Robot, q: Array, qd: Array | None = None, qdd: Array | None = None, **options: Unpack[RegressorOptions]
) -> Regressor:
    """Return Y with ``tau_motor = Y π``; arguments as those of `compute_regressor`, in joint coordinates."""
    at_joints = compute_regressor(robot, q, qd, qdd, **options)
    if robot.transmission is None:
        return at_joints
    structure = _coupled(at_joints.structure, robot.transmission)
    shares = _shares(robot.transmission)
    series = np.zeros((len(structure.rows), at_joints.samples))
    places = {key: k for k, key in enumerate(zip(structure.rows.tolist(), structure.columns.tolist(), strict=True))}
    count = at_joints.structure.inertial_count
    for k in range(count):
        row, column = int(at_joints.structure.rows[k]), int(at_joints.structure.columns[k])
        for motor in np.flatnonzero(shares[:, row]):
            series[places[int(motor), column]] += shares[motor, row] * at_joints.series[k]
    if structure.rotors:
        series[structure.inertial_count :] = 0.0 if qdd is None else robot.transmission.motor(qdd).T
    return Regressor(structure, series)


def motor_motion(robot: Robot, motion: Motion, rotor_side: bool = False) -> Motion:
    """Return a motion as the motors make it, for the terms of friction; measured rotor positions are already theirs.

    With `rotor_side` it is the measured motion of the rotors; where there is none, rotors follow the links.
    """
    if rotor_side and motion.rotor_speed is not None and motion.rotor_acceleration is not None:
        rotor = {"q": motion.rotor, "path": motion.rotor}
        return replace(motion, **rotor, qd=motion.rotor_speed, qdd=motion.rotor_acceleration)  # type: ignore[arg-type]
    coupling = robot.transmission
    names = () if coupling is None else ("q", "qd", "qdd", "path", "track", "ripple")
    changed: dict[str, Any] = {
        name: motor_values(robot, x) for name in names if (x := getattr(motion, name)) is not None
    }
    moved = replace(motion, **changed) if changed else motion
    if moved.rotor is not None:
        return moved
    return replace(moved, rotor=moved.q if moved.path is None else moved.path)


def motor_values(robot: Robot, values: Array) -> Array:
    """Return positions, speeds or accelerations of the motors, C x; those of the joints without coupling."""
    return values if robot.transmission is None else robot.transmission.motor(values)


def joint_values(robot: Robot, values: Array) -> Array:
    """Return positions, speeds or accelerations of the joints, C⁻¹ θ, from those of the motors."""
    return values if robot.transmission is None else robot.transmission.joint(values)


def motor_torque(robot: Robot, torque: Array) -> Array:
    """Return the torques of the motors, C^-T τ; those of the joints without coupling."""
    return torque if robot.transmission is None else robot.transmission.motor_torque(torque)


def motor_inertia(robot: Robot, M: Array) -> Array:
    """Return mass matrices in coordinates of the motors, ``C⁻ᵀ M C⁻¹``, (samples, joints, joints).

    They are M itself without a coupling.
    """
    if robot.transmission is None:
        return M
    inverse = robot.transmission.inverse
    return np.asarray(inverse.T @ M @ inverse)


def joint_torque(robot: Robot, torque: Array) -> Array:
    """Return the torques of the joints, Cᵀ τ, from those of the motors."""
    return torque if robot.transmission is None else robot.transmission.joint_torque(torque)


def _coupled(structure: RegressorStructure, transmission: Transmission) -> RegressorStructure:
    """Return the structure of the rows combined by C^-T; every rotor acts on its own motor."""
    dof, count = structure.dof, structure.inertial_count
    pattern = np.zeros((dof, 10 * dof), dtype=bool)
    pattern[structure.rows[:count], structure.columns[:count]] = True
    rows, columns = np.nonzero((_shares(transmission) != 0.0).astype(int) @ pattern.astype(int))
    rows = np.concatenate([rows, structure.rows[count:]])
    columns = np.concatenate([columns, structure.columns[count:]])
    return RegressorStructure(dof, structure.rotors, rows.astype(np.int32), columns.astype(np.int32))


def _shares(transmission: Transmission) -> Array:
    """Return C^-T: the share of every joint torque (columns) in every motor torque (rows)."""
    inverse = transmission.inverse.T
    return np.where(np.abs(inverse) < NO_COUPLING, 0.0, inverse)
