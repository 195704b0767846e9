"""Limits of a planned motion, with defaults where the description has none, and the check of a motion against them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.description.robot import Joint, Limits, Robot
from jointwise.design.trajectory import States, Trajectory
from jointwise.errors import ModelError, ShapeError
from jointwise.spatial import Array

SCALE_RESERVE = 0.995
"""Share of every limit that a scaled motion may use: its extremes are found from samples within 0.2 %."""
SLACK = 1e-9
"""Relative excess over a limit that is a rounding error."""


DEFAULTS = {
    "revolute": Limits(lower=-np.pi, upper=np.pi, velocity=2.0, acceleration=6.0),
    "prismatic": Limits(lower=-0.3, upper=0.3, velocity=0.5, acceleration=3.0),
}
"""Limits of a joint whose description has none: moderate values for a small arm."""


@dataclass(frozen=True)
class MotionLimits:
    """Limits of a planned motion, (joints,) each: lowest and highest position (rad, m), speed, acceleration."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array

    def largest_scale(self, states: States, extent: Array, amplitude: float) -> Array:
        """Return the factor (joints,) that brings a motion about zero to the first of its limits.

        `extent` (joints,) is the range that it covers and must fit between the position limits; `amplitude` (rad, m)
        limits |q|. Joints that do not move get 0.
        """
        peaks = [
            (amplitude, np.abs(states.q).max(axis=0)),
            (self.upper - self.lower, extent),
            (self.velocity, np.abs(states.qd).max(axis=0)),
            (self.acceleration, np.abs(states.qdd).max(axis=0)),
        ]
        scale: Array = SCALE_RESERVE * np.min([limit / np.maximum(peak, 1e-12) for limit, peak in peaks], axis=0)
        return np.where(extent > 0.0, scale, 0.0)

    def draw_center(self, rng: np.random.Generator, below: Array, above: Array) -> Array:
        """Return a random position (joints,) at least `below` and `above` (rad, >= 0) away from the position limits."""
        return rng.uniform(self.lower + below, np.maximum(self.upper - above, self.lower + below))


def motion_limits(robot: Robot, speed_fraction: float, margin: float = 0.02) -> MotionLimits:
    """Return a fraction of the speed limits, and the position limits less a `margin` (share of the range) per side."""
    rows = np.array([_limits(joint) for joint in robot.joints])
    lower, upper, velocity, acceleration = rows.T
    free = margin * (upper - lower)
    return MotionLimits(lower + free, upper - free, speed_fraction * velocity, acceleration)


def _limits(joint: Joint) -> tuple[float, ...]:
    names = ("lower", "upper", "velocity", "acceleration")
    described, default = joint.limits, DEFAULTS[joint.kind]
    values = [getattr(default if getattr(described, name) is None else described, name) for name in names]
    return tuple(float(value) for value in values)


def check_limits(robot: Robot, motion: Trajectory, rate: float = 500.0) -> None:
    """Raise `ModelError` with the first joint and time at which a motion, sampled at `rate` (Hz), leaves a limit.

    Position, speed and acceleration are checked where the description has a limit.
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
        _check_bound(robot, states.t, (what, unit), side, values, limit)


def _check_bound(robot: Robot, t: Array, what: tuple[str, str], side: float, values: Array, limit: Array) -> None:
    """Reject samples above (`side` 1) or below (-1) the limits (joints,); `what` is name and unit of the quantity."""
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


def check_joint(robot: Robot, joint: int) -> int:
    """Return the index of a joint if the robot has it; else raise a `ModelError`."""
    if not 0 <= joint < robot.dof:
        raise ModelError(f"joint must be 0 to {robot.dof - 1}. Got {joint} instead.")
    return joint


def unit_of(robot: Robot, joint: int) -> str:
    """Return the unit of a joint's position (0-based): rad, or m for a prismatic joint."""
    return "rad" if robot.revolute[joint] else "m"
