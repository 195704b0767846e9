"""Refuses motions that leave the limits of a robot, before anything runs."""

from __future__ import annotations

import numpy as np

from jointwise.description.robot import Robot
from jointwise.errors import ModelError, ShapeError
from jointwise.simulation.references.trajectory import Trajectory
from jointwise.spatial import Array

SLACK = 1e-9
"""Relative excess over a limit that counts as rounding."""


def refuse_outside_limits(robot: Robot, motion: Trajectory, rate: float = 500.0) -> None:
    """Raise `ModelError` with the first joint and time at which a motion, sampled at `rate` (Hz), leaves a limit.

    Checked are position, speed and acceleration, each where the description gives a limit.
    """
    if motion.joints != robot.dof:
        raise ShapeError(f"motion must have {robot.dof} joints. Got {motion.joints} instead.")
    states = motion.sample(rate)
    limits = [joint.limits for joint in robot.joints]
    signals = [
        ("position", "", 1.0, states.q, [x.upper for x in limits]),
        ("position", "", -1.0, states.q, [x.lower for x in limits]),
        ("speed", "/s", 1.0, np.abs(states.qd), [x.velocity for x in limits]),
        ("acceleration", "/s²", 1.0, np.abs(states.qdd), [x.acceleration for x in limits]),
    ]
    for what, unit, side, values, bounds in signals:
        limit = np.array([side * np.inf if bound is None else bound for bound in bounds])
        _refuse_beyond(robot, states.t, (what, unit), side, values, limit)


def _refuse_beyond(robot: Robot, t: Array, what: tuple[str, str], side: float, values: Array, limit: Array) -> None:
    """Raise with the first sample above (`side` 1) or below (-1) the limits (joints,); `what` is name and unit."""
    excess = side * (values - limit) > SLACK * np.maximum(1.0, np.abs(limit))
    if excess.any():
        sample, joint = np.argwhere(excess)[0]
        name, unit = what
        worst = side * (side * values[:, joint]).max()
        raise ModelError(
            f"the {name} of joint {joint + 1} '{robot.joints[joint].name}' must be at "
            f"{'most' if side > 0 else 'least'} {limit[joint]:.4g} {unit_of(robot, joint)}{unit}. "
            f"The motion reaches {worst:.4g}, beyond it from {t[sample]:.3f} s on."
        )


def checked_joint(robot: Robot, joint: int) -> int:
    """Return the 0-based number of a joint, or say which there are."""
    if not 0 <= joint < robot.dof:
        raise ModelError(f"joint must be 0 to {robot.dof - 1}. Got {joint} instead.")
    return joint


def unit_of(robot: Robot, joint: int) -> str:
    """Return the unit of a joint's position (0-based): rad, or m of one that slides."""
    return "rad" if robot.revolute[joint] else "m"
