"""Second moments of the columns of a declaration: all that its evidence needs of the samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.description.transmission import Transmission
from jointwise.model.transmission import motor_regressor
from jointwise.result.plausibility.declaration import (
    Declaration,
    motor_columns,
    motor_torques,
    transmission_of,
    with_motor_friction,
)
from jointwise.result.plausibility.samples import FRICTION, Samples
from jointwise.spatial import Array

ALONG_SPEED = 0.5
"""Correlation with the speed from which a declared term is friction, so that it must dissipate; others store energy."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of the columns ``[Y_j | F_j | outputs]`` of every joint, and the friction power.

    Attributes:
        matrices: Means of the products of all columns, (joints, columns, columns).
        bodies: Number of columns of bodies and rotors, Y_j.
        friction: Number of columns of friction, declared terms, spring and offset, F_j.
        power: Mean of column times speed of the columns that are friction, (joints, friction); 0 for others.
        duration: Time in motion, s.
        lags: Indices of the lags of the outputs in `Samples.lags`.
    """

    matrices: Array
    bodies: int
    friction: int
    power: Array
    duration: float
    lags: tuple[int, ...]


def make_moments(samples: Samples, declaration: Declaration, lags: tuple[int, ...] = ()) -> Moments:
    """Return the second moments of a declaration's columns with every output, at its declared lag or at all `lags`."""
    lags = lags or tuple(sorted(set(declaration.lag)))
    robot, gravity = declaration.robot, tuple(float(x) for x in declaration.gravity)
    q, qd, qdd, friction, output = _declared_signals(samples, declaration, lags)
    regressor = motor_regressor(robot, q, qd, qdd, gravity=gravity, rotors=True).matrices()
    transmission = transmission_of(declaration.couplings, robot.dof) if declaration.couplings else robot.transmission
    speed = qd if transmission is None else transmission.motor(qd)
    if declaration.couplings and transmission is not None:
        regressor = motor_columns(regressor, qdd, transmission)
        friction = with_motor_friction(friction, speed, declaration.couplings)
        output = motor_torques(output, transmission) if declaration.joint_torques else output
    friction = np.concatenate([friction[:, :, :-1], q.T[:, :, None], friction[:, :, -1:]], axis=2)
    power = np.stack([_power(columns, v) for columns, v in zip(friction, speed.T, strict=True)])
    matrices = _products(regressor, friction, output.reshape(len(q), -1), transmission)
    duration = float(samples.duration[list(declaration.logs) or slice(None)].sum())
    return Moments(matrices, regressor.shape[2], friction.shape[2], power, duration, lags)


def _power(columns: Array, speed: Array) -> Array:
    """Return the mean power (columns,) of the columns (samples, columns) of a joint that are friction; 0 for others."""
    power = columns.T @ speed / len(speed)
    power[-2:] = 0.0
    if (declared := columns[:, FRICTION:-2]).shape[1]:
        size = np.sqrt(np.mean(declared**2, axis=0) * np.mean(speed**2))
        power[FRICTION:-2] *= np.abs(power[FRICTION:-2]) > ALONG_SPEED * size
    return np.asarray(power)


def _declared_signals(
    samples: Samples, declaration: Declaration, lags: tuple[int, ...]
) -> tuple[Array, Array, Array, Array, Array]:
    """Return q, qd, qdd, columns of friction and outputs at `lags`, in the order and signs of a declaration."""
    order, sign = list(declaration.order), np.array(declaration.sign)
    keep = samples.of_logs(declaration.logs) if declaration.logs else slice(None)
    q, qd, qdd = (np.ascontiguousarray(x[keep][:, order] * sign) for x in (samples.q, samples.qd, samples.qdd))
    friction = samples.friction[order][:, keep].copy()
    friction[:, :, :-1] *= sign[:, None, None]
    output = samples.output[keep][:, :, list(lags)]
    coupling = declaration.robot.transmission
    if declaration.other_coordinates and coupling is not None and samples.other_friction is not None:
        change = coupling.inverse if coupling.coordinates == "joint" else coupling.matrix
        q, qd, qdd = (x @ change.T for x in (q, qd, qdd))
        friction = samples.other_friction[:, keep]
        output = np.linalg.inv(change).T @ output if declaration.joint_torques else output
    return q + np.array(declaration.offset), qd, qdd, friction, output


def _products(regressor: Array, friction: Array, outputs: Array, transmission: Transmission | None) -> Array:
    """Return the means of the products of all columns, (joints, columns, columns).

    The torque of joint j depends on no link before it, and that of a motor on no link before its first joint: their
    columns are zero.
    """
    count, joints, bodies = regressor.shape
    size = bodies + friction.shape[2] + outputs.shape[1]
    result = np.zeros((joints, size, size))
    for j in range(joints):
        first = 10 * (j if transmission is None else int(np.flatnonzero(transmission.inverse[:, j])[0]))
        columns = np.concatenate([regressor[:, j, first:], friction[j], outputs], axis=1)
        result[j, first:, first:] = columns.T @ columns / count
    return result
