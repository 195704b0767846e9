"""Postures and mountings for experiments on one joint: axis along gravity, or across it with a large load."""

from __future__ import annotations

import numpy as np

from jointwise.description.mounting import STANDARD_GRAVITY, gravity_vector
from jointwise.description.robot import Robot
from jointwise.design.body import RESERVE
from jointwise.design.clearance import Clearance, straight_path
from jointwise.design.limits import (
    SWEEPS,
    MotionLimits,
    candidate_positions,
    default_posture,
    motion_limits,
    upright_posture,
)
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
