"""Piecewise polynomial motions: standstills and straight moves in joint space that speed up, coast and slow down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked
from jointwise.description.robot import Robot, check_joint
from jointwise.design.clearance import Clearance, draw_target
from jointwise.design.limits import MotionLimits, check_limits, default_posture, motion_limits, upright_posture
from jointwise.design.trajectory import Differentiable, DurationError, check_positive, random_numbers
from jointwise.errors import ModelError, ShapeError
from jointwise.spatial import Array

ROUNDING = 1e-9
"""Standstills shorter than this (s) are rounding errors and are dropped."""

Ramp = Literal["constant", "smooth"]
"""Profile of the acceleration: constant (trapezoidal speed), or smooth up to snap."""

RAMPS: dict[Ramp, tuple[float, ...]] = {
    "constant": (0.0, 0.0, 0.5),
    "smooth": (0.0, 0.0, 0.0, 0.0, 0.0, 7.0, -14.0, 10.0, -2.5),
}
"""Distance r(x) covered while the speed rises from 0 to 1 over x in [0, 1], coefficients from the lowest power.

The smooth speed is 35 x⁴ - 84 x⁵ + 70 x⁶ - 20 x⁷: acceleration, jerk and snap vanish at both ends.
"""
PEAKS: dict[Ramp, float] = {"constant": 1.0, "smooth": 35.0 / 16.0}
"""Largest r''(x) of each ramp."""


@dataclass(frozen=True)
class Piece:
    """A polynomial ``q = Σ_k powers[k] τᵏ`` with τ from 0.

    Attributes:
        length: Duration, s.
        powers: Coefficients, (degree + 1, joints), rad/s^k or m/s^k.
    """

    length: float
    powers: Array

    @property
    def end(self) -> Array:
        """Position (joints,) at the end."""
        return np.asarray(np.polynomial.polynomial.polyval(self.length, self.powers), dtype=float)


@dataclass(frozen=True)
class Piecewise(Differentiable):
    """Polynomials in a row.

    In piece i ``q(t) = Σ_k coefficients[k, i] (t - breaks[i])^(degree - k)``, highest power first.

    Attributes:
        duration: Duration, s.
        breaks: Times at which pieces begin and end, from 0, (pieces + 1,), s.
        coefficients: Coefficients, (degree + 1, pieces, joints), rad/s^(degree - k) or m/s^(degree - k).
        smooth: Whether acceleration, jerk and snap are continuous.
    """

    duration: float
    breaks: Array
    coefficients: Array
    smooth: bool

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.coefficients.shape[2])

    @cached_property
    def _polynomial(self) -> Any:
        from scipy.interpolate import PPoly

        return PPoly(self.coefficients, self.breaks)

    def curve(self, t: Array, order: int) -> Array:
        """Return the derivative of an order within [0, duration], (samples, joints)."""
        return np.asarray(self._polynomial(t, nu=order), dtype=float)


def join(pieces: Sequence[Piece], smooth: bool, duration: float | None = None) -> Piecewise:
    """Return pieces as one motion; a `duration` (s) beyond their total is filled by a standstill."""
    rows = [piece for piece in pieces if piece.length > ROUNDING]
    total = float(sum(piece.length for piece in rows))
    if duration is not None and duration > total + ROUNDING:
        rows.append(rest(rows[-1].end, duration - total))
    breaks = np.concatenate([[0.0], np.cumsum([piece.length for piece in rows])])
    degree = max(len(piece.powers) for piece in rows) - 1
    coefficients = np.zeros((degree + 1, len(rows), rows[0].powers.shape[1]))
    for i, piece in enumerate(rows):
        coefficients[degree + 1 - len(piece.powers) :, i] = piece.powers[::-1]
    if duration is not None:
        breaks[-1] = duration
    return Piecewise(float(breaks[-1]), breaks, coefficients, smooth)


def rest(position: Array, length: float) -> Piece:
    """Return a standstill at `position` (joints,) for `length` (s)."""
    return Piece(length, np.asarray(position, dtype=float)[None])


@checked
def hold(position: Array, duration: float) -> Piecewise:
    """Return a motion that stands at `position` (joints,) for `duration` (s)."""
    if np.ndim(position) != 1 or not np.size(position):
        raise ShapeError(f"position must have shape (joints,). Got {np.shape(position)} instead.")
    check_positive(duration=duration)
    return join([rest(position, duration)], smooth=True)


def move(begin: Array, end: Array, velocity: Array, acceleration: Array, ramp: Ramp = "constant") -> list[Piece]:
    """Return the fastest straight move between two postures (joints,) within limits (joints,).

    ``q = begin + s(t) step``: with ``v = min velocity / |step|`` and ``a = min acceleration / |step|`` (joint by joint)
    the path speed ṡ rises to v (or √a if the move is too short to coast) over v/a, stays, and falls again.
    """
    step = np.asarray(end, dtype=float) - begin
    distance = np.maximum(np.abs(step), 1e-300)
    if np.abs(step).max() == 0.0:
        return []
    a = float(np.min(acceleration / distance)) / PEAKS[ramp]
    v = min(float(np.min(velocity / distance)), np.sqrt(a))
    return run(np.asarray(begin, dtype=float), step, v, v / a, ramp)


def run(begin: Array, step: Array, speed: float, ramp_time: float, ramp: Ramp) -> list[Piece]:
    """Return a move by `step` (joints,) with a path speed (1/s) reached and left over `ramp_time` (s)."""
    ramped = 0.5 * speed * ramp_time
    coast = max(0.0, (1.0 - 2.0 * ramped) / speed)
    up = _scaled(RAMPS[ramp], speed, ramp_time)
    down = _scaled(_backwards(RAMPS[ramp]), speed, ramp_time)
    cruise = np.array([0.0, speed])
    parts = [(ramp_time, up, 0.0), (coast, cruise, ramped), (ramp_time, down, ramped + speed * coast)]
    return [Piece(length, _along(begin, step, s, offset)) for length, s, offset in parts]


def _scaled(profile: Sequence[float] | Array, speed: float, time: float) -> Array:
    """Return the powers of t of ``speed · time · r(t / time)``."""
    powers = np.asarray(profile, dtype=float)
    return speed * time * powers / time ** np.arange(len(powers))


def _backwards(profile: Sequence[float]) -> Array:
    """Return the powers of x of r(1) - r(1 - x): the distance covered while the speed falls from 1 to 0."""
    composed = np.polynomial.Polynomial(profile)(np.polynomial.Polynomial([1.0, -1.0]))
    powers = -np.asarray(composed.coef, dtype=float)
    powers[0] = 0.0
    return powers


def _along(begin: Array, step: Array, s: Array, offset: float) -> Array:
    """Return the powers (degree + 1, joints) of ``begin + (offset + s(t)) step``."""
    powers = np.multiply.outer(s, step)
    powers[0] += begin + offset * step
    return powers


@checked
def joint_moves(
    points: Array,
    velocity: Array,
    acceleration: Array,
    waits: float | Sequence[float] = 0.0,
    ramp: Ramp = "constant",
) -> Piecewise:
    """Return moves through `points` (points, joints) that stop at each, with `waits` (s) after every move."""
    _check_moves(points, velocity, acceleration, waits)
    pieces: list[Piece] = []
    pauses = np.broadcast_to(np.asarray(waits, dtype=float), (len(points) - 1,))
    for begin, end, pause in zip(points[:-1], points[1:], pauses, strict=True):
        pieces += [*move(begin, end, velocity, acceleration, ramp), rest(end, float(pause))]
    return join(pieces or [rest(points[0], 1.0)], smooth=ramp == "smooth")


def _check_moves(points: Array, velocity: Array, acceleration: Array, waits: float | Sequence[float]) -> None:
    """Reject points, limits and waits of `joint_moves` that do not belong together."""
    if np.ndim(points) != 2 or not np.size(points) or not np.isfinite(points).all():
        raise ShapeError(f"points must be finite, of shape (points, joints). Got {np.shape(points)} instead.")
    for name, limit in (("velocity", velocity), ("acceleration", acceleration)):
        if np.shape(limit) not in ((), points.shape[1:]) or not np.all(np.greater(limit, 0.0)):
            found = np.asarray(limit).tolist()
            raise ShapeError(f"{name} must be {points.shape[1]} positive numbers, one for each joint. Got {found}.")
    moves = len(points) - 1
    if np.shape(waits) not in ((), (moves,)) or not np.all(np.greater_equal(waits, 0.0)):
        raise ShapeError(f"waits must be one number >= 0, or {moves}, one for each move. Got {waits} instead.")


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
