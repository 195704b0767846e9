"""Bang-coast-bang: random moves and waits at 30 to 100 % of what is allowed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jointwise.description.robot import Robot
from jointwise.simulation.references.clearance import Clearance
from jointwise.simulation.references.limits import checked_joint
from jointwise.simulation.references.moves import Ramp, move
from jointwise.simulation.references.piecewise import Piece, Piecewise, join, rest
from jointwise.simulation.references.redraw import drawn_way
from jointwise.simulation.references.room import Room, room_of
from jointwise.simulation.references.stance import upright_posture, usual_posture
from jointwise.simulation.references.trajectory import DurationError, refuse_unless_positive
from jointwise.spatial import Array

LEAST = 0.3
"""Smallest part of the largest position, speed and acceleration that a move uses."""


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
    all. With a `clearance` the centre is the upright posture, and targets are drawn until the way to them is clear.
    """
    refuse_unless_positive(duration=duration, reach=reach)
    rng, room = np.random.default_rng(seed), room_of(robot, 1.0)
    size = np.minimum(reach, 0.5 * (room.upper - room.lower))
    if joint is not None:
        size = np.where(np.arange(robot.dof) == checked_joint(robot, joint), size, 0.0)
    usual = usual_posture(robot) if clearance is None else upright_posture(robot)
    center = np.clip(usual, room.lower + size, room.upper - size)
    pieces = _moves(rng, room, (center, size), duration, longest_wait, ramp, _way(robot, clearance))
    return join(pieces, ramp == "smooth", duration)


Way = Callable[[Array, Callable[[], Array]], Array]
"""Returns a target (joints,) that may be gone to from a posture, of those that are drawn."""


def _way(robot: Robot, clearance: Clearance | None) -> Way:
    if clearance is None:
        return lambda begin, draw: draw()
    return lambda begin, draw: drawn_way(robot, begin, draw, clearance)


def _moves(
    rng: np.random.Generator,
    room: Room,
    place: tuple[Array, Array],
    duration: float,
    longest_wait: float,
    ramp: Ramp,
    way: Way,
) -> list[Piece]:
    """Return moves and waits about a place (centre and size, (joints,) each) until the time is used up."""
    center, size = place
    position, clock, side = center, 0.0, np.where(rng.random(len(center)) < 0.5, -1.0, 1.0)
    pieces: list[Piece] = []
    while True:
        wait, speed, effort = longest_wait * rng.random(), rng.uniform(LEAST, 1.0), rng.uniform(LEAST, 1.0)
        target = way(position, lambda to=side: center + to * rng.uniform(LEAST, 1.0, len(center)) * size)  # type: ignore[misc]
        new = [rest(position, wait), *move(position, target, speed * room.velocity, effort * room.acceleration, ramp)]
        clock += sum(piece.length for piece in new)
        if clock > duration:
            break
        pieces += new
        position, side = target, -side
    if not pieces:
        raise DurationError("the first move", clock, duration)
    return pieces
