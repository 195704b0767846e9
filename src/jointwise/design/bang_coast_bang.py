"""Bang-coast-bang: random moves at 30 to 100 % of the limits, with waits between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jointwise.description.robot import Robot
from jointwise.design.clearance import Clearance
from jointwise.design.limits import MotionLimits, check_joint, motion_limits
from jointwise.design.piecewise import Piece, Piecewise, Ramp, join, move, rest
from jointwise.design.placement import draw_target
from jointwise.design.posture import default_posture, upright_posture
from jointwise.design.trajectory import DurationError, check_positive
from jointwise.spatial import Array

SMALLEST_SHARE = 0.3
"""Smallest share of the largest distance, speed and acceleration that a move uses."""


def bang_coast_bang(
    robot: Robot,
    duration: float = 35.0,
    seed: int = 0,
    *,
    joint: int | None = None,
    reach: float = 1.5,
    longest_wait: float = 1.0,
    ramp: Ramp = "constant",
    clearance: Clearance | None = None,
) -> Piecewise:
    """Return random synchronised moves with waits of 0 to `longest_wait` (s), as many as fit into `duration` (s).

    Every move goes to the other side of the centre, 30 to 100 % of `reach` (rad, m; less where the limits are closer)
    away from it, with 30 to 100 % of the limits of speed and acceleration. `joint` (0-based) moves alone; None moves
    all. With a `clearance` the centre is the upright posture, and targets are drawn until the path to them is clear.
    """
    check_positive(duration=duration, reach=reach)
    rng, limits = np.random.default_rng(seed), motion_limits(robot, 1.0)
    size = np.minimum(reach, 0.5 * (limits.upper - limits.lower))
    if joint is not None:
        size = np.where(np.arange(robot.dof) == check_joint(robot, joint), size, 0.0)
    posture = default_posture(robot) if clearance is None else upright_posture(robot)
    center = np.clip(posture, limits.lower + size, limits.upper - size)
    pieces = _moves(rng, limits, (center, size), duration, longest_wait, ramp, _target_choice(robot, clearance))
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
    longest_wait: float,
    ramp: Ramp,
    choose: TargetChoice,
) -> list[Piece]:
    """Return moves and waits about a place (centre and size, (joints,) each) that fill the duration."""
    center, size = place
    position, clock, side = center, 0.0, np.where(rng.random(len(center)) < 0.5, -1.0, 1.0)
    pieces: list[Piece] = []
    while True:
        wait, speed, effort = (
            longest_wait * rng.random(),
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
