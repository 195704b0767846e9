"""The unit of `effort` in a joint state: newton metres or amperes, decided by the gravity torque of the robot.

Drivers put either into the same field. At rest and in slow motion the effort of a joint is its gravity torque (in Nm)
or the gravity torque over the drive gain (in A), plus friction that changes sign with the direction of motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointwise.description.mounting import gravity_vector
from jointwise.description.robot import Robot
from jointwise.errors import DataError
from jointwise.model.rigid import gravity_torque
from jointwise.spatial import Array

EffortUnit = Literal["A", "Nm"]
CHANNELS: dict[str, Literal["current", "torque"]] = {"A": "current", "Nm": "torque"}
LEAST_GRAVITY = 3.0
"""Standard deviation (Nm) of a gravity torque that a slope can be read from; friction is of this size."""
LEAST_CORRELATION = 0.6
"""Correlation of effort and gravity torque below which there is no evidence."""
TOLERANCE = 1.8
"""Factor by which a slope may miss its expected value: masses of a description, payloads and friction."""
MOST_SAMPLES = 5000
"""Samples that are compared, evenly thinned."""


@dataclass(frozen=True)
class Effort:
    """Channel of the effort (None: left out) and a note with the evidence."""

    channel: Literal["current", "torque"] | None
    note: str


def effort_channel(q: Array, effort: Array, robot: Robot | None, unit: EffortUnit | None, where: str) -> Effort:
    """Return whether an effort (samples, joints) is a current or a torque.

    Args:
        q: Positions (samples, joints), rad.
        effort: Values in A or Nm.
        robot: The robot, with bodies; None if it is not known.
        unit: Unit stated by the user; None to decide.
        where: The file, for messages.

    Raises:
        DataError: If the evidence does not decide.
    """
    if unit is not None:
        return Effort(CHANNELS[unit], f"effort is in {unit}, as stated")
    if robot is None:
        return Effort(None, "effort left out: state its unit with --effort-unit A or Nm, or the robot")
    remedy = "State it with --effort-unit A or --effort-unit Nm."
    if robot.inertials[:, 9].max() <= 0.0:
        raise DataError(
            f"{where}: the unit of effort is unknown: the description has no masses to compare with. {remedy}"
        )
    slopes = _slopes(q, effort, robot)
    if not slopes:
        raise DataError(f"{where}: the unit of effort is unknown: it does not follow the gravity torque. {remedy}")
    units = {_unit(slope, robot.joints[j].motor.joint_gain) for j, slope in slopes.items()}
    text = ", ".join(f"joint {j + 1}: {slope:.3g} of the gravity torque" for j, slope in slopes.items())
    if len(units) != 1 or None in units:
        raise DataError(f"{where}: the unit of effort is uncertain ({text}). {remedy}")
    found = str(units.pop())
    return Effort(CHANNELS[found], f"effort is in {found} ({text})")


def _slopes(q: Array, effort: Array, robot: Robot) -> dict[int, float]:
    """Return the slope of effort over gravity torque for joints whose gravity torque varies enough."""
    step = max(len(q) // MOST_SAMPLES, 1)
    torque = gravity_torque(robot, q[::step], gravity=gravity_vector())
    values = effort[::step]
    slopes: dict[int, float] = {}
    for j in range(robot.dof):
        if torque[:, j].std() < LEAST_GRAVITY or values[:, j].std() == 0.0:
            continue
        if np.corrcoef(torque[:, j], values[:, j])[0, 1] >= LEAST_CORRELATION:
            slopes[j] = float(np.polyfit(torque[:, j], values[:, j], 1)[0])
    return slopes


def _unit(slope: float, gain: float | None) -> EffortUnit | None:
    """Return the unit that explains a slope: 1 in Nm, 1 / gain in A; None if neither or both do."""
    torque = 1.0 / TOLERANCE < slope < TOLERANCE
    current = slope <= 1.0 / TOLERANCE if gain is None else 1.0 / TOLERANCE < slope * gain < TOLERANCE
    if torque == current:
        return None
    return "Nm" if torque else "A"
