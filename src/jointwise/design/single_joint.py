"""Experiments on one joint while the others stand still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.arguments import checked
from jointwise.description.mounting import STANDARD_GRAVITY, gravity_vector
from jointwise.description.robot import Robot, check_joint
from jointwise.design.clearance import RESERVE, Clearance, straight_path
from jointwise.design.limits import (
    SWEEPS,
    MotionLimits,
    candidate_positions,
    default_posture,
    motion_limits,
    unit_of,
    upright_posture,
)
from jointwise.design.piecewise import Piece, Piecewise, join, rest, run
from jointwise.design.trajectory import DurationError, check_positive
from jointwise.errors import ModelError, ShapeError, check_finite
from jointwise.model.rigid import forward_kinematics, gravity_torque
from jointwise.spatial import Array

LOAD_POSITIONS = 25
"""Positions tested of every joint in the search for a large load."""
NO_LOAD = 1e-9
"""Load (Nm) credited to a feasible run, so that one without load is preferred to none."""
CLEARANCE_POSITIONS = 721
"""Positions of a joint at which the clearance is checked: every degree of two turns."""
SEARCH_POSITIONS = 145
"""The same during the search for a posture: every five degrees."""
TURN = 2.0 * np.pi + 0.25
"""Range (rad) sufficient for every experiment: a turn and the backward stroke of the last reversal."""


def standing_posture(robot: Robot, clearance: Clearance | None) -> Array:
    """Return a clear posture (joints,): the default one, or else the upright one."""
    if clearance is None:
        return default_posture(robot)
    for posture in (default_posture(robot), upright_posture(robot)):
        if clearance.is_clear(posture[None]):
            return posture
    raise clearance.error(f"robot '{robot.name}' upright", upright_posture(robot)[None])


Interval = tuple[float, float]
"""Lowest and highest position of a joint, rad or m."""


def clear_intervals(
    robot: Robot, joint: int, posture: Array, clearance: Clearance, count: int = CLEARANCE_POSITIONS
) -> list[Interval]:
    """Return the intervals of a joint in which the arm is clear, with the other joints at a posture (joints,).

    The range is checked at `count` positions, which include the ends of the intervals.
    """
    limits = motion_limits(robot, 1.0)
    positions = np.linspace(limits.lower[joint], limits.upper[joint], count)
    rows = np.repeat(posture[None], count, axis=0)
    rows[:, joint] = positions
    clear = clearance.clear(rows, RESERVE)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], clear, [False]]).astype(int)))
    return [(float(positions[a]), float(positions[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def widest_interval(robot: Robot, joint: int, posture: Array, clearance: Clearance) -> Interval | None:
    """Return the widest clear interval of a joint, of equal ones the nearest to its posture; None if there is none."""
    intervals = clear_intervals(robot, joint, posture, clearance)
    return min(intervals, key=lambda ends: (-round(_width(ends), 6), abs(sum(ends) / 2 - posture[joint])), default=None)


def clear_posture(robot: Robot, joint: int, clearance: Clearance) -> tuple[Array, Interval]:
    """Return the default or the upright posture (joints,), and the clear interval of a joint in it.

    The default one if a whole turn is clear there, else the one with the wider interval.
    """
    postures = [default_posture(robot), upright_posture(robot)]
    intervals = [widest_interval(robot, joint, posture, clearance) for posture in postures]
    widths = [min(TURN, 0.0 if ends is None else _width(ends)) for ends in intervals]
    best = int(np.argmax(np.round(widths, 6)))
    interval = intervals[best]
    if interval is None or widths[best] <= 0.0:
        raise clearance.error(f"joint {joint + 1} of robot '{robot.name}'", clearance.highest(np.array(postures)))
    return postures[best], interval


def _width(interval: Interval) -> float:
    return interval[1] - interval[0]


def joint_axis(robot: Robot, joint: int, posture: Array) -> Array:
    """Return the axis of a joint in the base, (3,); it does not depend on the position of that joint.

    Args:
        robot: The robot.
        joint: Joint, 0-based.
        posture: Positions, (joints,), rad or m.
    """
    axis: Array = forward_kinematics(robot, posture[None]).rotation[0, joint, :, 2]
    return axis


def gravity_along(robot: Robot, joint: int, posture: Array) -> Array:
    """Return the gravity (3,), m/s² in the base, of a mounting in which the axis of a joint is vertical."""
    axis = joint_axis(robot, joint, posture)
    table = gravity_vector("table")
    direction = axis if axis @ table > 0.0 else -axis
    return np.asarray(STANDARD_GRAVITY * direction + 0.0, dtype=float)


def gravity_across(robot: Robot, joint: int, posture: Array) -> Array:
    """Return the gravity (3,), m/s² in the base, of a mounting in which the axis of a joint is horizontal.

    That is the table if the axis is horizontal there, as for the joints after the first of most arms; else the wall,
    or the component of gravity across the axis.
    """
    axis = joint_axis(robot, joint, posture)
    choices = [gravity_vector("table"), gravity_vector("wall"), gravity_vector((STANDARD_GRAVITY, 0.0, 0.0))]
    across = [choice - (choice @ axis) * axis for choice in choices]
    lengths = np.array([np.linalg.norm(part) for part in across])
    best = int(np.flatnonzero(lengths > 0.5 * STANDARD_GRAVITY)[0])
    result: Array = STANDARD_GRAVITY * across[best] / lengths[best]
    return result


def load_phase(robot: Robot, joint: int, posture: Array, gravity: Array) -> tuple[float, float]:
    """Return A (Nm) and z (rad) of a revolute joint's load ``g(q) = A sin(q - z)`` with the other joints at rest."""
    rows = np.repeat(posture[None], 2, axis=0)
    rows[:, joint] = 0.0, 0.5 * np.pi
    at_zero, at_quarter = gravity_torque(robot, rows, gravity=gravity)[:, joint]
    return float(np.hypot(at_zero, at_quarter)), float(np.arctan2(-at_zero, at_quarter))


def loaded_posture(robot: Robot, joint: int, begin: Array | None = None, clearance: Clearance | None = None) -> Array:
    """Return the posture (joints,) near the default one in which the links after a joint load it most (extended).

    `begin` (joints,) replaces the default posture. With a `clearance` only loads at clear positions count.
    """
    posture, limits = default_posture(robot) if begin is None else begin, motion_limits(robot, 1.0)
    for _ in range(SWEEPS):
        for other in range(joint + 1, robot.dof):
            candidates = _candidates(limits, other, posture[other], clearance)
            amplitudes = [_load(robot, joint, _with(posture, other, value), clearance) for value in candidates]
            if max(amplitudes) > 1.001 * amplitudes[-1]:
                posture = _with(posture, other, candidates[_largest(amplitudes, nearest=clearance is not None)])
    return posture


def _largest(amplitudes: list[float], nearest: bool) -> int:
    """Return the index of the largest amplitude, of equal ones the first; the last if candidates end `nearest`."""
    equal = np.flatnonzero(np.array(amplitudes) >= (1.0 - 1e-6) * max(amplitudes))
    return int(equal[-1] if nearest else np.argmax(amplitudes))


def _candidates(limits: MotionLimits, joint: int, current: float, clearance: Clearance | None) -> Array:
    """Return the positions to test of a joint, the current one last."""
    if clearance is not None:
        return candidate_positions(limits, joint, current)[::-1]
    return np.append(np.linspace(limits.lower[joint], limits.upper[joint], LOAD_POSITIONS), current)


def clear_loaded_posture(robot: Robot, joint: int, clearance: Clearance) -> tuple[Array, float, Interval]:
    """Return posture (joints,), unloaded position and clear interval for a run into the largest load above the plane.

    The joints before it are in the default or the upright posture; a posture that is reached from the upright one by a
    clear path is preferred.
    """
    before = (default_posture(robot), upright_posture(robot))
    postures = [loaded_posture(robot, joint, posture, clearance) for posture in before]
    runs = [max(_runs(robot, joint, posture, clearance), key=_preference, default=None) for posture in postures]
    default, upright = (0.0 if run is None else run[0] + NO_LOAD for run in runs)
    reached = [_is_reached(robot, joint, posture, run, clearance) for posture, run in zip(postures, runs, strict=True)]
    better = upright > 1.05 * default
    best = int(reached[1] > reached[0] or (reached[1] == reached[0] and better))
    run = runs[best]
    if run is None:
        raise clearance.error(f"a load run of joint {joint + 1}", clearance.highest(np.array(postures)))
    return postures[best], run[1], run[2]


LoadRun = tuple[float, float, Interval]
"""Largest load (Nm), unloaded position and clear interval of a joint."""


def _preference(run: LoadRun) -> tuple[float, float]:
    return run[0], -abs(run[1])


def _is_reached(robot: Robot, joint: int, posture: Array, run: LoadRun | None, clearance: Clearance) -> bool:
    """Return whether the straight path from the upright posture to the start of a run is clear."""
    if run is None:
        return False
    return clearance.is_clear(straight_path(upright_posture(robot), _with(posture, joint, run[1])))


def _runs(
    robot: Robot, joint: int, posture: Array, clearance: Clearance, count: int = CLEARANCE_POSITIONS
) -> list[LoadRun]:
    """Return largest load (Nm), unloaded position and interval of all clear runs from no load into it."""
    intervals = clear_intervals(robot, joint, posture, clearance, count)
    amplitude, zero = load_phase(robot, joint, posture, gravity_across(robot, joint, posture))
    return [
        (round(amplitude * _largest_sine(interval, begin), 6), float(begin), interval)
        for interval in intervals
        for begin in zero + np.pi * np.arange(-4, 5)
        if interval[0] <= begin <= interval[1]
    ]


def _largest_sine(interval: Interval, begin: float) -> float:
    """Return the largest |sin(q - begin)| on the longer side of an interval."""
    angle = max(interval[1] - begin, begin - interval[0])
    return float(np.sin(min(angle, 0.5 * np.pi)))


def _load(robot: Robot, joint: int, posture: Array, clearance: Clearance | None = None) -> float:
    if clearance is not None:
        return max((run[0] for run in _runs(robot, joint, posture, clearance, SEARCH_POSITIONS)), default=0.0)
    return load_phase(robot, joint, posture, gravity_across(robot, joint, posture))[0]


def _with(posture: Array, joint: int, value: float) -> Array:
    changed = posture.copy()
    changed[joint] = value
    return changed


SPEEDS = 10
"""Number of speeds of a friction curve by default."""
PAUSE = 0.25
"""Standstill after every run, s: oscillations of the arm decay."""
SHORTEST_COAST = 0.2
"""Shortest time at constant speed in a run, s."""
SHORTEST_RISE = 0.1
"""Shortest time in which a run reaches its speed, s."""
REDUCTIONS = 100
"""Largest number of 5 % steps by which speeds are reduced."""
LOAD_SPEED = 0.05
"""Speed of load runs, rad/s."""
WARM_UP_SPEEDS = (0.2, 0.5, 0.8)
"""Speeds of a warm-up as shares of the limit, changing every `WARM_UP_SLOT` s."""
WARM_UP_SLOT = 20.0
RECIPROCATION_ACCELERATION = 0.05
"""Acceleration of the slow reciprocation, rad/s²."""
RECIPROCATION_NET = np.deg2rad(3.0)
"""Net motion of one of its cycles, rad: 120 cycles and 240 reversals per turn."""
CYCLE_PIECES = 4
"""Polynomial pieces of a cycle: two strokes, each speeding up and slowing down."""
RECIPROCATION_LEAD = 0.5
"""Time by which a forward stroke is longer than a backward one, s: a turn takes 1,005 s."""


@dataclass(frozen=True)
class _TestedJoint:
    """The joint under test: its limits and the posture of the other joints.

    Attributes:
        number: Joint, 0-based.
        lower: Lowest position, rad or m.
        upper: Highest position, rad or m.
        speed: Largest speed, rad/s or m/s.
        acceleration: Largest acceleration, rad/s² or m/s².
        posture: Posture of all joints, (joints,), rad or m.
        unit: Unit of its positions.
    """

    number: int
    lower: float
    upper: float
    speed: float
    acceleration: float
    posture: Array
    unit: str

    def at(self, position: float) -> Array:
        """Return the posture (joints,) with this joint at a position."""
        posture = self.posture.copy()
        posture[self.number] = position
        return posture

    @property
    def axis(self) -> Array:
        """Unit step of this joint (joints,)."""
        unit: Array = np.eye(len(self.posture))[self.number]
        return unit


def _joint(robot: Robot, joint: int, posture: Array | None, clearance: Clearance | None = None) -> _TestedJoint:
    """Return a joint with its limits; with a `clearance` its position limits are those of the clear interval."""
    number, limits = check_joint(robot, joint), motion_limits(robot, 1.0)
    lower, upper, speed, acceleration = (
        float(values[number]) for values in (limits.lower, limits.upper, limits.velocity, limits.acceleration)
    )
    others = default_posture(robot) if posture is None else _within(limits, robot, posture)
    if clearance is not None:
        others, (lower, upper) = _clear(robot, number, None if posture is None else others, clearance)
    return _TestedJoint(number, lower, upper, speed, acceleration, others, unit_of(robot, number))


def _within(limits: MotionLimits, robot: Robot, posture: Array) -> Array:
    """Return a posture (joints,) moved into the position limits."""
    if np.shape(posture) != (robot.dof,) or not np.isfinite(posture).all():
        raise ShapeError(f"posture must be {robot.dof} finite numbers. Got {np.asarray(posture).tolist()} instead.")
    return np.clip(posture, limits.lower, limits.upper)


def _clear(robot: Robot, joint: int, posture: Array | None, clearance: Clearance) -> tuple[Array, Interval]:
    """Return a posture (joints,), chosen if it is None, and the clear interval of a joint in it."""
    if posture is None:
        return clear_posture(robot, joint, clearance)
    interval = widest_interval(robot, joint, posture, clearance)
    if interval is None:
        raise clearance.error(f"joint {joint + 1} at this posture", posture[None])
    return posture, interval


def _fastest(tested: _TestedJoint, share: float, slot: float) -> float:
    """Return the speed limit (rad/s), reduced until runs at a `share` of it fit into the range and a slot (s)."""
    top = tested.speed
    for _ in range(REDUCTIONS):
        if _fits(_timing(tested, share * top, slot, tested.upper - tested.lower)):
            break
        top *= 0.95
    return top


def default_speeds(robot: Robot, joint: int, top: float | None = None) -> Array:
    """Return ten speeds (10,) from 1 to 90 % of a joint's limit (or of `top`) in equal ratios, rad/s."""
    top = motion_limits(robot, 1.0).velocity[check_joint(robot, joint)] if top is None else top
    return np.geomspace(0.01 * top, 0.9 * top, SPEEDS)


@checked
def constant_speed_runs(
    robot: Robot,
    duration: float = 120.0,
    *,
    joint: int = 0,
    speeds: Sequence[float] | Array | None = None,
    posture: Array | None = None,
    begin: float | None = None,
    clearance: Clearance | None = None,
) -> Piecewise:
    """Return runs of a joint (0-based) at constant `speeds` (rad/s), each forwards and back, as often as fits.

    Every speed gets an equal share of `duration` (s), filled with equal runs as long as the limits allow: a run of time
    T at speed v with acceleration a covers ``v (T - v / a)``. All begin and end at `begin` (rad), by default such that
    they are in the middle of the range. Friction is identified best with the axis vertical. With a `clearance` the runs
    stay within the clear positions, and default speeds are reduced to fit.
    """
    tested = _joint(robot, joint, posture, clearance)
    top = None if clearance is None else _fastest(tested, 0.9, duration / SPEEDS)
    rates = [float(v) for v in np.ravel(default_speeds(robot, joint, top=top) if speeds is None else speeds)]
    if begin is not None:
        check_finite("constant_speed_runs", begin=begin)
    return _speed_runs(tested, duration, rates, begin)


def _speed_runs(tested: _TestedJoint, duration: float, rates: list[float], begin: float | None = None) -> Piecewise:
    """Return runs at speeds (rad/s); see `constant_speed_runs`."""
    check_positive(duration=duration)
    _check_speeds(tested, rates)
    slot = duration / len(rates)
    span = tested.upper - tested.lower if begin is None else max(tested.upper - begin, begin - tested.lower)
    _check_duration(tested, max(rates), duration, len(rates))
    timings = [_checked_timing(tested, rate, slot, span) for rate in rates]
    longest = max(rate * (time - rise) for rate, time, rise, _ in timings)
    start, side = _placed(tested, begin, longest)
    pieces = [piece for timing in timings for piece in _slot(tested, timing, start, side)]
    return join(pieces, False, duration)


RunTiming = tuple[float, float, float, int]
"""Speed (rad/s), time of a run without pause (s), time of its ramps (s), pairs of runs."""


def _check_speeds(tested: _TestedJoint, rates: list[float]) -> None:
    if not rates:
        raise ModelError("speeds must contain at least one speed.")
    for rate in rates:
        if not 0.0 < rate <= tested.speed * (1.0 + 1e-12):
            raise ModelError(
                f"speeds of joint {tested.number + 1} must be above 0 and up to {tested.speed:.4g} {tested.unit}/s. "
                f"Got {rate} instead."
            )


def _rise(tested: _TestedJoint, rate: float) -> float:
    """Return the time (s) in which a run reaches its speed."""
    return max(rate / tested.acceleration, SHORTEST_RISE)


def _check_duration(tested: _TestedJoint, rate: float, duration: float, speeds: int) -> None:
    """Reject a duration (s) too short for one run back and forth at each of `speeds` speeds."""
    least = speeds * 2.0 * (2.0 * _rise(tested, rate) + SHORTEST_COAST + PAUSE)
    if duration < least - 1e-9:
        runs = f"one run back and forth at each of {speeds} speeds" if speeds > 1 else "one run back and forth"
        raise DurationError(f"{runs} of joint {tested.number + 1}, up to {rate:.3g} {tested.unit}/s", least, duration)


def _checked_timing(tested: _TestedJoint, rate: float, slot: float, span: float) -> RunTiming:
    """Return the fewest pairs of runs that fill a slot (s) within the span (rad); raise `ModelError` if none do."""
    timing = _timing(tested, rate, slot, span)
    if not _fits(timing):
        least = rate * (timing[2] + SHORTEST_COAST)
        raise ModelError(
            f"joint {tested.number + 1} cannot run at {rate:.4g} {tested.unit}/s: a run takes {least:.3g} "
            f"{tested.unit}, its range is {span:.3g} {tested.unit}. Choose a lower speed."
        )
    return timing


def _timing(tested: _TestedJoint, rate: float, slot: float, span: float) -> RunTiming:
    """Return the fewest pairs of runs that fill a slot (s) within the span (rad), however short they are."""
    rise = _rise(tested, rate)
    longest = span / rate + rise
    pairs = max(1, int(np.ceil(slot / (2.0 * (longest + PAUSE)) - 1e-9)))
    return rate, slot / (2.0 * pairs) - PAUSE, rise, pairs


def _fits(timing: RunTiming) -> bool:
    """Return whether runs reach their speed and keep it long enough."""
    _, time, rise, _ = timing
    return time >= 2.0 * rise + SHORTEST_COAST


def _placed(tested: _TestedJoint, begin: float | None, longest: float) -> tuple[float, float]:
    """Return where runs begin and their first direction (+1, -1)."""
    if begin is None:
        return 0.5 * (tested.lower + tested.upper - longest), 1.0
    if not tested.lower <= begin <= tested.upper:
        raise ModelError(f"begin must lie within {tested.lower:.4g} to {tested.upper:.4g}. Got {begin} instead.")
    return begin, 1.0 if tested.upper - begin >= longest * (1.0 - 1e-12) else -1.0


def _slot(tested: _TestedJoint, timing: RunTiming, start: float, side: float) -> list[Piece]:
    """Return the runs of one speed."""
    rate, time, rise, pairs = timing
    distance = side * rate * (time - rise)
    there, back = tested.at(start), tested.at(start + distance)
    step, speed = distance * tested.axis, rate / abs(distance)
    forwards = [*run(there, step, speed, rise, "constant"), rest(back, PAUSE)]
    return [*forwards, *run(back, -step, speed, rise, "constant"), rest(there, PAUSE)] * pairs


@checked
def load_runs(
    robot: Robot,
    duration: float = 120.0,
    *,
    joint: int = 1,
    posture: Array | None = None,
    clearance: Clearance | None = None,
) -> Piecewise:
    """Return slow runs of a joint that begin where gravity does not load it and turn it into the load and back.

    The mounting is that of `gravity_across`, the posture of the other joints `loaded_posture`. With a
    `clearance` the posture is that of the largest load above the mounting plane: upright to horizontal.
    """
    check_revolute(robot, check_joint(robot, joint))
    if clearance is not None:
        return _clear_load_runs(robot, duration, check_joint(robot, joint), clearance)
    others = loaded_posture(robot, check_joint(robot, joint)) if posture is None else posture
    tested = _joint(robot, joint, others)
    _, zero = load_phase(robot, joint, others, gravity_across(robot, joint, others))
    begin = _unloaded(tested, zero)
    return constant_speed_runs(robot, duration, joint=joint, speeds=[LOAD_SPEED], posture=others, begin=begin)


def _clear_load_runs(robot: Robot, duration: float, joint: int, clearance: Clearance) -> Piecewise:
    posture, begin, (lower, upper) = clear_loaded_posture(robot, joint, clearance)
    tested = replace(_joint(robot, joint, posture), lower=lower, upper=upper)
    return _speed_runs(tested, duration, [LOAD_SPEED], begin)


def check_revolute(robot: Robot, joint: int) -> None:
    """Reject a prismatic joint (0-based), whose gravity load does not depend on its position."""
    if not robot.revolute[joint]:
        raise ModelError(
            f"load needs a revolute joint: the gravity load of joint {joint + 1}, a prismatic one, is constant. Record "
            "constant-speed with different payloads, along gravity, instead."
        )


def _unloaded(tested: _TestedJoint, zero: float) -> float:
    """Return the unloaded position, zero + k π, nearest to 0, or the nearer end of the range."""
    turns = zero + np.pi * np.arange(-4, 5)
    inside = turns[(turns >= tested.lower) & (turns <= tested.upper)]
    if not inside.size:
        return tested.lower if abs(tested.lower - zero) < abs(tested.upper - zero) else tested.upper
    return float(inside[np.argmin(np.abs(inside))])


@checked
def warm_up(robot: Robot, duration: float = 1800.0, *, joint: int = 0, clearance: Clearance | None = None) -> Piecewise:
    """Return long runs back and forth at 20, 50 and 80 % of the speed limit in turn, about 20 s each.

    With a `clearance` the speeds are reduced to those that fit into the clear range.
    """
    check_positive(duration=duration)
    tested = _joint(robot, joint, None, clearance)
    rounds = max(1, round(duration / (WARM_UP_SLOT * len(WARM_UP_SPEEDS))))
    slot = duration / (rounds * len(WARM_UP_SPEEDS))
    top = (
        motion_limits(robot, 1.0).velocity[tested.number]
        if clearance is None
        else _fastest(tested, max(WARM_UP_SPEEDS), slot)
    )
    return _speed_runs(tested, duration, [float(v) for v in top * np.tile(WARM_UP_SPEEDS, rounds)])


@checked
def reciprocation(
    robot: Robot,
    duration: float | None = None,
    *,
    joint: int = 0,
    acceleration: float = RECIPROCATION_ACCELERATION,
    net: float = RECIPROCATION_NET,
    clearance: Clearance | None = None,
) -> Piecewise:
    """Return the slow reciprocation over a turn: 120 cycles with two reversals each in 1,005 s.

    q̈ is ±`acceleration` (rad/s²); a forward stroke takes T, a backward one T - 0.5 s, so that a cycle of ``net = a
    (T² - (T - 0.5)²) / 4`` (rad) lasts 8.38 s. A joint with less than a turn covers its range, with a `clearance` its
    clear range. `duration` (s) sets the number of cycles; beyond a turn the motion returns. The axis should be
    vertical.
    """
    check_positive(acceleration=acceleration, net=net, duration=1.0 if duration is None else duration)
    tested = _joint(robot, joint, None, clearance)
    cycle = 4.0 * net / (acceleration * RECIPROCATION_LEAD)
    times = 0.5 * (cycle + RECIPROCATION_LEAD), 0.5 * (cycle - RECIPROCATION_LEAD)
    if times[1] <= 0.0:
        raise ModelError(f"net must be larger than {acceleration * RECIPROCATION_LEAD**2 / 4:.3g}. Got {net} instead.")
    strokes = tuple(0.25 * acceleration * time**2 for time in times)
    turn = min(round(2.0 * np.pi / net), int((tested.upper - tested.lower - strokes[1]) / net))
    cycles = turn if duration is None else int(duration / cycle + 1e-9)
    if turn < 1:
        raise ModelError(f"the range of joint {joint + 1} must contain one cycle, {strokes[0]:.3g} {tested.unit}.")
    if duration is not None and cycles < 1:
        raise DurationError("one cycle", cycle, duration)
    start = 0.5 * (tested.lower + tested.upper - net * turn - strokes[1])
    pieces = _cycles(tested, start, turn, cycles, (times, (strokes[0], strokes[1])))
    return join(pieces, False, duration)


def _cycles(
    tested: _TestedJoint, start: float, turn: int, cycles: int, shape: tuple[tuple[float, float], tuple[float, float]]
) -> list[Piece]:
    """Return cycles that advance over one turn and then return, mirrored in time, and so on."""
    (forth, back), (far, near) = shape
    there, home = ((forth, far), (back, -near)), ((back, near), (forth, -far))
    pieces: list[Piece] = []
    position = start
    for k in range(cycles):
        for time, stroke in there if (k // turn) % 2 == 0 else home:
            pieces += run(tested.at(position), stroke * tested.axis, 2.0 / time, 0.5 * time, "constant")
            position += stroke
    return pieces


def cycles_of(motion: Piecewise, joint: int) -> tuple[int, float]:
    """Return the number of cycles of a reciprocation of a joint (0-based) and its net range, rad."""
    cycles = (len(motion.breaks) - 1) // CYCLE_PIECES
    starts = motion.breaks[: CYCLE_PIECES * cycles + 1 : CYCLE_PIECES]
    return cycles, float(np.ptp(motion.position(starts)[:, joint]))


LEVELS = (0.25, 0.5, 0.75, 1.0)
"""Peaks of the ramps as shares of the largest torque."""
EFFORT_SHARE = 0.8
"""Default of the largest torque as a share of the joint's effort limit."""
DEFAULT_EFFORT = 100.0
"""Effort limit (Nm) of a joint whose description has none."""


@dataclass(frozen=True)
class TorqueProfile:
    """A torque on one joint, linear between points and 0 outside.

    Attributes:
        joint: Joint, 0-based.
        joints: Number of joints of the robot.
        times: Times of the points, (points,), s.
        torques: Torques at the points, (points,), Nm.
    """

    joint: int
    joints: int
    times: Array
    torques: Array

    @property
    def duration(self) -> float:
        """Time of the last point, s."""
        return float(self.times[-1])

    def at(self, t: Array) -> Array:
        """Return the torques of all joints (samples, joints), Nm, at times (samples,), s."""
        result = np.zeros((len(t), self.joints))
        result[:, self.joint] = np.interp(t, self.times, self.torques, left=0.0, right=0.0)
        return result


@checked
def torque_ramps(
    robot: Robot,
    duration: float = 40.0,
    *,
    joint: int = 0,
    largest: float | None = None,
) -> TorqueProfile:
    """Return ramps 0, +τ, 0, -τ, 0 with peaks τ at `LEVELS` of the `largest` torque (Nm), equally long.

    By default `largest` is 80 % of the effort limit, which it must not exceed.
    """
    check_positive(duration=duration)
    effort = robot.joints[check_joint(robot, joint)].limits.effort
    top = EFFORT_SHARE * (effort or DEFAULT_EFFORT) if largest is None else largest
    if not 0.0 < top <= (effort or np.inf):
        raise ModelError(
            f"the largest torque of joint {joint + 1} must be above 0 and up to {effort or np.inf:.4g} Nm. Got "
            f"{top:.4g} Nm instead."
        )
    signs = np.array([0.0, 1.0, 0.0, -1.0])
    torques = np.append(np.concatenate([level * top * signs for level in LEVELS]), 0.0)
    return TorqueProfile(joint, robot.dof, np.linspace(0.0, duration, len(torques)), torques)
