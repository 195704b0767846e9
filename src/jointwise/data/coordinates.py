"""Logs of robots with a coupled transmission: positions of the joints, torques of the motors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jointwise.data.log import Log
from jointwise.description.robot import Robot
from jointwise.description.transmission import Transmission
from jointwise.spatial import Array

POSITIONS = ("q", "qd", "q_des", "qd_des", "qdd_des")
TORQUES = ("torque", "torque_des")


def model_log(log: Log, robot: Robot) -> Log:
    """Return a log in the coordinates of the model: positions of the joints, torques of the motors.

    Currents and rotor positions are those of the motors in every log. A log that is in these coordinates already, or
    of a robot without coupling, is returned as it is.

    Args:
        log: A log in the coordinates that the transmission of the robot states.
        robot: The robot.

    Returns:
        The log.
    """
    return log if robot.transmission is None else uncoupled_log(log, robot.transmission)


def uncoupled_log(log: Log, coupling: Transmission) -> Log:
    """Return a log with positions of the joints and torques of the motors, as `model_log`."""
    if log.joints != len(coupling.matrix):
        return log
    channels = {name: x for name in (*POSITIONS, *TORQUES) if (x := getattr(log, name)) is not None}
    changed: dict[str, Any] = uncoupled_channels(channels, coupling)
    return replace(log, **changed, pages=None)


def uncoupled_channels(channels: Mapping[str, Array], coupling: Transmission) -> dict[str, Array]:
    """Return those of some channels (samples, joints) of a log that change: positions of the joints, motor torques."""
    if coupling.coordinates == "motor":
        return {name: coupling.joint(channels[name]) for name in POSITIONS if name in channels}
    return {name: _combined(channels[name], coupling.inverse.T) for name in TORQUES if name in channels}


def logged_output(output: Array, signal: str, robot: Robot) -> Array:
    """Return a predicted output (samples, joints) of the motors in the coordinates of the log."""
    coupling = robot.transmission
    if coupling is None or signal != "torque" or coupling.coordinates == "motor":
        return output
    return _combined(output, coupling.matrix.T)


def logged_position(position: Array, robot: Robot) -> Array:
    """Return positions, speeds or accelerations of the joints (samples, joints) in the coordinates of the log."""
    coupling = robot.transmission
    return position if coupling is None or coupling.coordinates == "joint" else coupling.motor(position)


def _combined(values: Array, shares: Array) -> Array:
    """Return ``values @ shares'`` in which a column that was not measured (NaN) affects only those that contain it."""
    missing = np.isnan(values[0])
    result = np.where(missing, 0.0, values) @ shares.T
    result[:, (np.abs(shares[:, missing]) > 0.0).any(axis=1)] = np.nan
    return np.asarray(result)
