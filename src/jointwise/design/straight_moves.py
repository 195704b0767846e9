"""Straight moves in joint space: through waypoints with a stop at each, and bang-coast-bang to random targets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked
from jointwise.description.robot import Robot, check_joint
from jointwise.design.clearance import Clearance
from jointwise.design.limits import (
    MotionLimits,
    check_limits,
    default_posture,
    motion_limits,
    upright_posture,
)
from jointwise.design.piecewise import Piece, Piecewise, Ramp, join, joint_moves, move, rest
from jointwise.design.placement import draw_target
from jointwise.design.trajectory import DurationError, check_positive, random_numbers
from jointwise.errors import ModelError, ShapeError
from jointwise.spatial import Array

THESIS_POINTS = np.deg2rad(
    [
        (-110, 0, 0, -90, 90, 0),
        (-70, -30, -90, -130, 50, 120),
        (-140, -10, -130, -40, 125, 10),
        (-45, -55, 100, -90, 45, 150),
        (-45, -90, 0, -90, 0, 0),
        (-220, -90, 0, -90, 0, 0),
    ]
)
"""Six waypoints (6, 6), rad, from a thesis on UR robots."""
THESIS_POINTS.setflags(write=False)
SPEED = np.pi
"""Default of the largest speed between waypoints, rad/s."""
ACCELERATION = 2.0 * np.pi / 3.0
"""Default of the largest acceleration between waypoints, rad/s²."""
THESIS_CYCLE = 13.458
"""Time of one round of the six waypoints, s. The moves alone take 13.250 s; the rest are stops at the points."""


@checked
def waypoint_trajectory(
    robot: Robot,
    points: ArrayLike,
    duration: float | None = None,
    *,
    cycle: float | None = None,
    speed: float = SPEED,
    acceleration: float = ACCELERATION,
    ramp: Ramp = "constant",
) -> Piecewise:
    """Return rounds of straight moves through `points` (points, joints), rad, with a stop at each.

    Speeds and accelerations are at most `speed` (rad/s) and `acceleration` (rad/s²), or the limits of the joint if
    lower. A round returns to the first point; as many as fit into `duration` (s) are made, one if it is None. `cycle`
    (s) prolongs a round by equal stops at the points.
    """
    check_positive(speed=speed, acceleration=acceleration)
    corners = _checked_points(robot, points)
    route = np.concatenate([corners, corners[:1]])
    limits = motion_limits(robot, 1.0)
    fastest, strongest = np.minimum(speed, limits.velocity), np.minimum(acceleration, limits.acceleration)
    moving = sum(piece.length for begin, end in pairwise(route) for piece in move(begin, end, fastest, strongest, ramp))
    wait = max(0.0, (cycle or 0.0) - moving) / (len(route) - 1)
    rounds = _rounds(duration, moving + wait * (len(route) - 1))
    path = np.concatenate([route, *[route[1:]] * (rounds - 1)])
    motion = joint_moves(path, fastest, strongest, wait, ramp)
    check_limits(robot, motion)
    return motion


@checked
def thesis_waypoints(robot: Robot, duration: float | None = None, *, ramp: Ramp = "constant") -> Piecewise:
    """Return rounds of `THESIS_POINTS`: six waypoints, π rad/s, 2π/3 rad/s², 13.458 s per round."""
    return waypoint_trajectory(robot, THESIS_POINTS, duration, cycle=THESIS_CYCLE, ramp=ramp)


def random_points(robot: Robot, seed: int = 0, count: int = 6, reach: float = 1.5) -> Array:
    """Return random waypoints (count, joints) within `reach` (rad, m) of the middle of the limits."""
    limits = motion_limits(robot, 1.0)
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    size = np.minimum(reach, half)
    return middle + random_numbers(seed).uniform(-size, size, (count, robot.dof))


def clear_points(robot: Robot, clearance: Clearance, seed: int = 0, count: int = 6, reach: float = 1.5) -> Array:
    """Return random waypoints (count, joints) about the upright posture; all paths of the closed round are clear."""
    limits, rng, upright = motion_limits(robot, 1.0), random_numbers(seed, 1), upright_posture(robot)
    lower, upper = np.maximum(upright - reach, limits.lower), np.minimum(upright + reach, limits.upper)
    points: list[Array] = []
    begin = upright
    for number in range(count):
        then = points[0] if number == count - 1 else None
        begin = draw_target(robot, begin, lambda: rng.uniform(lower, upper), clearance, then)
        points.append(begin)
    return np.array(points)


def _checked_points(robot: Robot, points: ArrayLike) -> Array:
    """Return waypoints (points, joints) of the right shape that differ from their neighbours."""
    corners = np.asarray(points, dtype=float)
    if corners.ndim != 2 or corners.shape[1] != robot.dof or len(corners) < 2 or not np.isfinite(corners).all():
        raise ShapeError(f"waypoints must be finite, of shape (2 or more, {robot.dof}). Got {corners.shape} instead.")
    if not np.ptp(corners, axis=0).any():
        raise ModelError("waypoints must differ. Got equal ones instead.")
    return corners


def _rounds(duration: float | None, cycle: float) -> int:
    """Return the number of rounds."""
    if duration is None:
        return 1
    check_positive(duration=duration)
    if duration < cycle - 1e-9:
        raise DurationError("one round of the waypoints", cycle, duration)
    return int(duration / cycle + 1e-9)


# -- bang-coast-bang: random moves at 30 to 100 % of the limits, with waits between them --

REACH = 1.5
"""Largest distance of a target from the centre, rad or m."""
LONGEST_WAIT = 1.0
"""Longest wait between two moves, s."""
SMALLEST_SHARE = 0.3
"""Smallest share of the largest distance, speed and acceleration that a move uses."""


@checked
def bang_coast_bang(
    robot: Robot,
    duration: float = 35.0,
    seed: int = 0,
    *,
    joint: int | None = None,
    ramp: Ramp = "constant",
    clearance: Clearance | None = None,
) -> Piecewise:
    """Return random synchronised moves with waits of up to 1 s, as many as fit into `duration` (s).

    Every move goes to the other side of the centre, 30 to 100 % of 1.5 rad or m (less where the limits are closer) away
    from it, with 30 to 100 % of the limits of speed and acceleration. `joint` (0-based) moves alone; None moves
    all. With a `clearance` the centre is the upright posture, and targets are drawn until the path to them is clear.
    """
    check_positive(duration=duration)
    rng, limits = random_numbers(seed), motion_limits(robot, 1.0)
    size = np.minimum(REACH, 0.5 * (limits.upper - limits.lower))
    if joint is not None:
        size = np.where(np.arange(robot.dof) == check_joint(robot, joint), size, 0.0)
    posture = default_posture(robot) if clearance is None else upright_posture(robot)
    center = np.clip(posture, limits.lower + size, limits.upper - size)
    pieces = _moves(rng, limits, (center, size), duration, ramp, _target_choice(robot, clearance))
    return join(pieces, ramp == "smooth", duration)


TargetChoice = Callable[[Array, Callable[[], Array]], Array]
"""Returns the first drawn target (joints,) that may be reached from a posture."""


def _target_choice(robot: Robot, clearance: Clearance | None) -> TargetChoice:
    if clearance is None:
        return lambda begin, draw: draw()
    return lambda begin, draw: draw_target(robot, begin, draw, clearance)


def _moves(
    rng: np.random.Generator,
    limits: MotionLimits,
    place: tuple[Array, Array],
    duration: float,
    ramp: Ramp,
    choose: TargetChoice,
) -> list[Piece]:
    """Return moves and waits about a place (centre and size, (joints,) each) that fill the duration."""
    center, size = place
    position, clock, side = center, 0.0, np.where(rng.random(len(center)) < 0.5, -1.0, 1.0)
    pieces: list[Piece] = []
    while True:
        wait, speed, effort = (
            LONGEST_WAIT * rng.random(),
            rng.uniform(SMALLEST_SHARE, 1.0),
            rng.uniform(SMALLEST_SHARE, 1.0),
        )
        target = choose(position, lambda to=side: center + to * rng.uniform(SMALLEST_SHARE, 1.0, len(center)) * size)  # type: ignore[misc]
        new = [
            rest(position, wait),
            *move(position, target, speed * limits.velocity, effort * limits.acceleration, ramp),
        ]
        clock += sum(piece.length for piece in new)
        if clock > duration:
            break
        pieces += new
        position, side = target, -side
    if not pieces:
        raise DurationError("the first move", clock, duration)
    return pieces
