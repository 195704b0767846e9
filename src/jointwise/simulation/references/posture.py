"""Postures and mountings for experiments on one joint: its axis along gravity, or across it with a large load."""

from __future__ import annotations

import numpy as np

from jointwise.description.mounting import STANDARD_GRAVITY, gravity_vector
from jointwise.description.robot import Robot
from jointwise.model.rigid import forward_kinematics, gravity_torque
from jointwise.simulation.references.clearance import RESERVE, ClearanceError, is_clear, lowest_heights
from jointwise.simulation.references.room import Room, room_of
from jointwise.spatial import Array

ANGLES = 25
"""Positions tried of every joint in the search for a large load."""
SWEEPS = 2
"""Rounds of that search over the joints."""
STEP = np.deg2rad(15.0)
"""Angles (rad) between the positions tried of every joint in the search for the upright posture."""
PLACES = 721
"""Positions of a joint at which the arm is looked at for being clear: every degree of two turns."""
FEW_PLACES = 145
"""The same for the search of a posture: every five degrees."""
TURN = 2.0 * np.pi + 0.25
"""Range (rad) that is enough for every experiment: a turn, and the way back of the last reversal."""


def usual_posture(robot: Robot) -> Array:
    """Return the posture (joints,) nearest to zero within the limits and a margin of 2 %."""
    room = room_of(robot, 1.0)
    return np.clip(np.zeros(robot.dof), room.lower, room.upper)


def upright_posture(robot: Robot) -> Array:
    """Return the posture (joints,) in which the frames of an arm stand highest on the whole: stretched away from z = 0.

    Found joint by joint at multiples of 15 degrees; of equals the one nearest to the usual posture.
    """
    posture, room = usual_posture(robot), room_of(robot, 1.0)
    for _ in range(SWEEPS):
        for joint in range(robot.dof):
            tried = _tried(room, joint, posture[joint])
            rows = np.repeat(posture[None], len(tried), axis=0)
            rows[:, joint] = tried
            heights = np.round(forward_kinematics(robot, rows).position[:, :, 2].mean(axis=1), 6)
            posture = rows[int(np.argmax(heights))]
    return posture


def _tried(room: Room, joint: int, own: float) -> Array:
    """Return multiples of `STEP` within half a turn and the room, and a joint's own position; the nearest first."""
    steps = STEP * np.arange(-12, 13)
    inside = steps[(steps >= room.lower[joint]) & (steps <= room.upper[joint])]
    tried: Array = np.append(own, inside)
    return tried[np.argsort(np.abs(tried - own), kind="stable")]


def standing_posture(robot: Robot, clearance: float | None) -> Array:
    """Return a posture (joints,) to stand in: the usual one, or the upright one where that is not clear (m)."""
    postures = [usual_posture(robot)] if clearance is None else [usual_posture(robot), upright_posture(robot)]
    for posture in postures:
        if clearance is None or is_clear(robot, posture[None], clearance):
            return posture
    lowest = float(lowest_heights(robot, postures[-1][None])[0])
    raise ClearanceError(f"robot '{robot.name}' upright", lowest, clearance or 0.0)


Interval = tuple[float, float]
"""Least and largest position of a joint, rad or m."""


def clear_intervals(robot: Robot, joint: int, posture: Array, clearance: float, count: int = PLACES) -> list[Interval]:
    """Return the intervals of a joint's room in which the arm is clear (m) with the others at a posture (joints,).

    The room is looked at in `count` positions; the ends of the intervals are among them.
    """
    room = room_of(robot, 1.0)
    places = np.linspace(room.lower[joint], room.upper[joint], count)
    rows = np.repeat(posture[None], count, axis=0)
    rows[:, joint] = places
    clear = lowest_heights(robot, rows) >= clearance + RESERVE
    edges = np.flatnonzero(np.diff(np.concatenate([[False], clear, [False]]).astype(int)))
    return [(float(places[a]), float(places[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def widest_interval(robot: Robot, joint: int, posture: Array, clearance: float) -> Interval | None:
    """Return the widest clear interval of a joint, of equals the one nearest to its posture; None if there is none."""
    intervals = clear_intervals(robot, joint, posture, clearance)
    return min(intervals, key=lambda own: (-round(_width(own), 6), abs(sum(own) / 2 - posture[joint])), default=None)


def clear_stand(robot: Robot, joint: int, clearance: float) -> tuple[Array, Interval]:
    """Return posture (joints,) and clear interval of a joint: the usual posture if a turn is clear, else the wider.

    The other choice is the upright posture.
    """
    postures = [usual_posture(robot), upright_posture(robot)]
    intervals = [widest_interval(robot, joint, posture, clearance) for posture in postures]
    widths = [min(TURN, 0.0 if own is None else _width(own)) for own in intervals]
    best = int(np.argmax(np.round(widths, 6)))
    interval = intervals[best]
    if interval is None or widths[best] <= 0.0:
        lowest = max(float(lowest_heights(robot, posture[None])[0]) for posture in postures)
        raise ClearanceError(f"joint {joint + 1} of robot '{robot.name}'", lowest, clearance)
    return postures[best], interval


def _width(interval: Interval) -> float:
    return interval[1] - interval[0]


def joint_axis(robot: Robot, joint: int, posture: Array) -> Array:
    """Return the axis (3,) of a joint (0-based) in the base; it does not depend on the joint's own position."""
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

    That is the table if the axis is horizontal there, as the joints after the first of most arms; else the wall, or
    what is left of the table's gravity across the axis.
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


def loaded_posture(robot: Robot, joint: int, begin: Array | None = None, clearance: float | None = None) -> Array:
    """Return the posture (joints,) near the usual one in which the links after a joint load it most (stretched out).

    `begin` (joints,) replaces the usual one. With a `clearance` (m) only the load counts that is met above it.
    """
    posture, room = usual_posture(robot) if begin is None else begin, room_of(robot, 1.0)
    for _ in range(SWEEPS):
        for other in range(joint + 1, robot.dof):
            tried = _places(room, other, posture[other], clearance)
            amplitudes = [_load(robot, joint, _with(posture, other, value), clearance) for value in tried]
            if max(amplitudes) > 1.001 * amplitudes[-1]:
                posture = _with(posture, other, tried[int(np.argmax(amplitudes))])
    return posture


def _places(room: Room, joint: int, own: float, clearance: float | None) -> Array:
    """Return the positions tried of a joint, its own last."""
    if clearance is not None:
        return _tried(room, joint, own)[::-1]
    return np.append(np.linspace(room.lower[joint], room.upper[joint], ANGLES), own)


def loaded_stand(robot: Robot, joint: int, clearance: float) -> tuple[Array, float, Interval]:
    """Return posture (joints,), unloaded position and clear interval for a run into the largest load above the plane.

    Tried are the usual and the upright posture of the joints before it. For a sliding joint the position is the middle.
    """
    before = (usual_posture(robot), upright_posture(robot))
    stands = [loaded_posture(robot, joint, posture, clearance) for posture in before]
    runs = [_runs(robot, joint, stand, clearance) for stand in stands]
    loads = [max((run[0] for run in own), default=-1.0) for own in runs]
    best = int(loads[1] > loads[0] + 0.05 * abs(loads[0]))
    if not runs[best]:
        lowest = max(float(lowest_heights(robot, stand[None])[0]) for stand in stands)
        raise ClearanceError(f"a load run of joint {joint + 1}", lowest, clearance)
    _, begin, interval = max(runs[best], key=lambda run: (run[0], -abs(run[1])))
    return stands[best], begin, interval


def _runs(
    robot: Robot, joint: int, posture: Array, clearance: float, count: int = PLACES
) -> list[tuple[float, float, Interval]]:
    """Return largest load (Nm), unloaded position and interval of all clear runs from no load into it."""
    intervals = clear_intervals(robot, joint, posture, clearance, count)
    amplitude, zero = load_phase(robot, joint, posture, gravity_across(robot, joint, posture))
    if not robot.revolute[joint]:
        return [(amplitude, 0.5 * sum(own), own) for own in intervals]
    return [
        (round(amplitude * _largest_sine(own, begin), 6), float(begin), own)
        for own in intervals
        for begin in zero + np.pi * np.arange(-4, 5)
        if own[0] <= begin <= own[1]
    ]


def _largest_sine(interval: Interval, begin: float) -> float:
    """Return the largest |sin(q - begin)| on the longer side of an interval."""
    way = max(interval[1] - begin, begin - interval[0])
    return float(np.sin(min(way, 0.5 * np.pi)))


def _load(robot: Robot, joint: int, posture: Array, clearance: float | None = None) -> float:
    if clearance is not None:
        return max((run[0] for run in _runs(robot, joint, posture, clearance, FEW_PLACES)), default=0.0)
    return load_phase(robot, joint, posture, gravity_across(robot, joint, posture))[0]


def _with(posture: Array, joint: int, value: float) -> Array:
    changed = posture.copy()
    changed[joint] = value
    return changed
