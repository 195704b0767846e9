"""Limits of a planned motion, the check of a motion against them, and reference postures within them.

Where a description has no limit a default is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.arguments import checked
from jointwise.description.robot import Joint, Limits, Robot
from jointwise.design.trajectory import States, Trajectory, check_positive
from jointwise.errors import ModelError, ShapeError
from jointwise.model.rigid import forward_kinematics
from jointwise.spatial import Array

SCALE_RESERVE = 0.995
"""Share of every limit that a scaled motion may use: its extremes are found from samples within 0.2 %."""
SLACK = 1e-9
"""Relative excess over a limit that is a rounding error."""


CHUNK = 65536
"""Samples of a motion that are checked at once, which bounds the memory."""
DEFAULTS = {
    "revolute": Limits(lower=-np.pi, upper=np.pi, velocity=2.0, acceleration=6.0),
    "prismatic": Limits(lower=-0.3, upper=0.3, velocity=0.5, acceleration=3.0),
}
"""Limits of a joint whose description has none: moderate values for a small arm."""


@dataclass(frozen=True)
class MotionLimits:
    """Limits of a planned motion, (joints,) each.

    Attributes:
        lower: Lowest positions, rad or m.
        upper: Highest positions, rad or m.
        velocity: Largest speeds, rad/s or m/s.
        acceleration: Largest accelerations, rad/s² or m/s².
    """

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


@checked
def check_limits(robot: Robot, motion: Trajectory, rate: float = 500.0) -> None:
    """Raise `ModelError` with the first joint and time at which a motion, sampled at `rate` (Hz), leaves a limit.

    Position, speed and acceleration are checked where the description has a limit.
    """
    if motion.joints != robot.dof:
        raise ShapeError(f"motion must have {robot.dof} joints. Got {motion.joints} instead.")
    check_positive(rate=rate)
    limits = [joint.limits for joint in robot.joints]
    bounds = [
        _Bound("position", "", 1.0, _values([x.upper for x in limits], np.inf)),
        _Bound("position", "", -1.0, _values([x.lower for x in limits], -np.inf)),
        _Bound("speed", "/s", 1.0, _values([x.velocity for x in limits], np.inf)),
        _Bound("acceleration", "/s²", 1.0, _values([x.acceleration for x in limits], np.inf)),
    ]
    count = int(motion.duration * rate) + 1
    for start in range(0, count, CHUNK):
        states = motion.at(np.arange(start, min(start + CHUNK, count)) / rate)
        for bound, values in zip(bounds, (states.q, states.q, np.abs(states.qd), np.abs(states.qdd)), strict=True):
            bound.compare(states.t, values)
    for bound in bounds:
        bound.refuse(robot)


def _values(limits: list[float | None], missing: float) -> Array:
    return np.array([missing if limit is None else limit for limit in limits])


class _Bound:
    """An upper (`side` 1) or lower (-1) limit of all joints, and where a motion exceeds it.

    `worst` is the extreme value of each joint, `since` the first time (s) beyond the limit, infinite if there is none.
    """

    def __init__(self, name: str, unit: str, side: float, limit: Array) -> None:
        self.name, self.unit, self.side, self.limit = name, unit, side, limit
        self.worst, self.since = np.full(len(limit), -np.inf), np.full(len(limit), np.inf)

    def compare(self, t: Array, values: Array) -> None:
        """Take in values (samples, joints) at the times t (samples,), s."""
        excess = self.side * (values - self.limit) > SLACK * np.maximum(1.0, np.abs(self.limit))
        self.worst = np.maximum(self.worst, (self.side * values).max(axis=0))
        self.since = np.minimum(self.since, np.where(excess.any(axis=0), t[excess.argmax(axis=0)], np.inf))

    def refuse(self, robot: Robot) -> None:
        """Reject a motion that left the limit."""
        joint = int(self.since.argmin())
        if self.since[joint] < np.inf:
            raise ModelError(
                f"the {self.name} of joint {joint + 1} '{robot.joints[joint].name}' must be at "
                f"{'most' if self.side > 0 else 'least'} {self.limit[joint]:.4g} {unit_of(robot, joint)}{self.unit}. "
                f"The motion reaches {self.side * self.worst[joint]:.4g}, beyond it from {self.since[joint]:.3f} s on."
            )


def unit_of(robot: Robot, joint: int) -> str:
    """Return the unit of a joint's position (0-based): rad, or m for a prismatic joint."""
    return "rad" if robot.revolute[joint] else "m"


# -- reference postures: the default one near zero, and the upright one --

SWEEPS = 2
"""Rounds over all joints in the search for a posture; a third does not change the result on the catalogue."""
STEP = np.deg2rad(15.0)
"""Step (rad) between the positions tested of every joint in the search for the upright posture."""


def default_posture(robot: Robot) -> Array:
    """Return the posture (joints,) nearest to zero within the limits and a margin of 2 %."""
    limits = motion_limits(robot, 1.0)
    return np.clip(np.zeros(robot.dof), limits.lower, limits.upper)


@checked
def upright_posture(robot: Robot) -> Array:
    """Return the posture (joints,) with the largest mean height of the frames: extended away from z = 0.

    Searched joint by joint at multiples of 15 degrees; of equal postures the one nearest to the default one.
    """
    posture, limits = default_posture(robot), motion_limits(robot, 1.0)
    for _ in range(SWEEPS):
        for joint in range(robot.dof):
            candidates = candidate_positions(limits, joint, posture[joint])
            rows = np.repeat(posture[None], len(candidates), axis=0)
            rows[:, joint] = candidates
            heights = np.round(forward_kinematics(robot, rows).position[:, :, 2].mean(axis=1), 6)
            posture = rows[int(np.argmax(heights))]
    return posture


def candidate_positions(limits: MotionLimits, joint: int, current: float) -> Array:
    """Return multiples of `STEP` within half a turn and the limits, and the current position; the nearest first."""
    steps = STEP * np.arange(-12, 13)
    inside = steps[(steps >= limits.lower[joint]) & (steps <= limits.upper[joint])]
    candidates: Array = np.append(current, inside)
    return candidates[np.argsort(np.abs(candidates - current), kind="stable")]
