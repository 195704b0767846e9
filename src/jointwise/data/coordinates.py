"""Coordinates of logs: joints or motors of a coupled transmission, and the gravity vector in the base, where stated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jointwise.data.log import Log
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Robot
from jointwise.description.transmission import Transmission
from jointwise.document import decode, parse_json
from jointwise.errors import DataError, ModelError
from jointwise.spatial import Array

POSITIONS = ("q", "qd", "q_des", "qd_des", "qdd_des")
TORQUES = ("torque", "torque_des")
KEY = b"jointwise.gravity"
"""Name of the gravity, three numbers as JSON (m/s² in the base), among the metadata of a Parquet file."""
LONGEST_ENTRY = 1000
"""Bytes of that entry that are read."""
SAME = 0.1
"""Largest difference (m/s²) of two vectors that count as equal: gravity varies by half as much over the earth."""


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
    return log.with_channels(**changed, pages=None)


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


def mounting_of_logs(logs: Sequence[Log], requested: Mounting | None = None) -> Mounting:
    """Return the requested mounting, else the gravity (m/s²) that the logs state, else the table.

    Raises:
        DataError: Two logs state different gravities, or one contradicts the requested mounting.
    """
    stating = [log for log in logs if log.origin.gravity is not None]
    if not stating:
        return "table" if requested is None else requested
    first = gravity_vector(stating[0].origin.gravity or ())
    for log in stating[1:]:
        refuse_other_gravity(log, first, f"{stating[0].origin.path} is under")
    if requested is None:
        return "table" if is_same(first, gravity_vector("table")) else first.tolist()
    refuse_other_gravity(stating[0], gravity_vector(requested), "the one given is")
    return requested


def refuse_other_gravity(log: Log, gravity: Array, whose: str) -> None:
    """Raise `DataError` if a log states another gravity.

    Args:
        log: The log.
        gravity: Gravity that it must not contradict, (3,), m/s².
        whose: Text that introduces this gravity in the message.
    """
    if log.origin.gravity is not None and not is_same(log.origin.gravity, gravity):
        raise DataError(
            f"{log.origin.path}: recorded under gravity {gravity_text(log.origin.gravity)} m/s^2, but {whose} "
            f"{gravity_text(gravity)}. One of them is wrong."
        )


def is_same(a: Sequence[float] | Array, b: Sequence[float] | Array) -> bool:
    """Return whether two gravity vectors are equal within the variation over the earth."""
    return float(np.linalg.norm(np.subtract(a, b))) <= SAME


def gravity_text(gravity: Sequence[float] | Array) -> str:
    """Return a vector as `--gravity` takes it."""
    return " ".join(f"{round(float(value), 9) + 0.0:.6g}" for value in gravity)


def gravity_bytes(gravity: Sequence[float]) -> bytes:
    """Return the entry of a file's metadata."""
    return json.dumps([float(value) for value in gravity]).encode()


def gravity_from_bytes(entry: bytes | None, where: str) -> tuple[float, ...] | None:
    """Return the gravity in an entry of a file's metadata; reject an entry that is not a gravity vector."""
    if entry is None:
        return None
    try:
        return decode(parse_json(entry[:LONGEST_ENTRY]), tuple[float, float, float])
    except ModelError:
        raise DataError(f"{where}: '{KEY.decode()}' must be three finite numbers in m/s^2.") from None
