"""Postures and mountings for experiments on one joint: its axis along gravity, or across it with a large load."""

from __future__ import annotations

import numpy as np

from jointwise.description.mounting import STANDARD_GRAVITY, gravity_vector
from jointwise.description.robot import Robot
from jointwise.model.rigid import forward_kinematics, gravity_torque
from jointwise.simulation.references.body import RESERVE
from jointwise.simulation.references.clearance import Clearance, straight_way
from jointwise.simulation.references.room import Room, room_of
from jointwise.simulation.references.stance import SWEEPS, tried_positions, upright_posture, usual_posture
from jointwise.spatial import Array

ANGLES = 25
"""Positions tried of every joint in the search for a large load."""
SMALL = 1e-9
"""Load (Nm) by which a run without load is better than none."""
PLACES = 721
"""Positions of a joint at which the arm is looked at for being clear: every degree of two turns."""
FEW_PLACES = 145
"""The same for the search of a posture: every five degrees."""
TURN = 2.0 * np.pi + 0.25
"""Range (rad) that is enough for every experiment: a turn, and the way back of the last reversal."""


def standing_posture(robot: Robot, clearance: Clearance | None) -> Array:
    """Return a posture (joints,) to stand in: the usual one, or the upright one where that is not clear."""
    if clearance is None:
        return usual_posture(robot)
    for posture in (usual_posture(robot), upright_posture(robot)):
        if clearance.is_clear(posture[None]):
            return posture
    raise clearance.refusal(f"robot '{robot.name}' upright", upright_posture(robot)[None])


Interval = tuple[float, float]
"""Least and largest position of a joint, rad or m."""


def clear_intervals(
    robot: Robot, joint: int, posture: Array, clearance: Clearance, count: int = PLACES
) -> list[Interval]:
    """Return the intervals of a joint's room in which the arm is clear with the others at a posture (joints,).

    The room is looked at in `count` positions; the ends of the intervals are among them.
    """
    room = room_of(robot, 1.0)
    places = np.linspace(room.lower[joint], room.upper[joint], count)
    rows = np.repeat(posture[None], count, axis=0)
    rows[:, joint] = places
    clear = clearance.clear(rows, RESERVE)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], clear, [False]]).astype(int)))
    return [(float(places[a]), float(places[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def widest_interval(robot: Robot, joint: int, posture: Array, clearance: Clearance) -> Interval | None:
    """Return the widest clear interval of a joint, of equals the one nearest to its posture; None if there is none."""
    intervals = clear_intervals(robot, joint, posture, clearance)
    return min(intervals, key=lambda own: (-round(_width(own), 6), abs(sum(own) / 2 - posture[joint])), default=None)


def clear_stand(robot: Robot, joint: int, clearance: Clearance) -> tuple[Array, Interval]:
    """Return posture (joints,) and clear interval of a joint: the usual posture if a turn is clear, else the wider.

    The other choice is the upright posture.
    """
    postures = [usual_posture(robot), upright_posture(robot)]
    intervals = [widest_interval(robot, joint, posture, clearance) for posture in postures]
    widths = [min(TURN, 0.0 if own is None else _width(own)) for own in intervals]
    best = int(np.argmax(np.round(widths, 6)))
    interval = intervals[best]
    if interval is None or widths[best] <= 0.0:
        raise clearance.refusal(f"joint {joint + 1} of robot '{robot.name}'", clearance.highest(np.array(postures)))
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


def loaded_posture(robot: Robot, joint: int, begin: Array | None = None, clearance: Clearance | None = None) -> Array:
    """Return the posture (joints,) near the usual one in which the links after a joint load it most (stretched out).

    `begin` (joints,) replaces the usual one. With a `clearance` only the load counts that is met where all is clear.
    """
    posture, room = usual_posture(robot) if begin is None else begin, room_of(robot, 1.0)
    for _ in range(SWEEPS):
        for other in range(joint + 1, robot.dof):
            tried = _places(room, other, posture[other], clearance)
            amplitudes = [_load(robot, joint, _with(posture, other, value), clearance) for value in tried]
            if max(amplitudes) > 1.001 * amplitudes[-1]:
                posture = _with(posture, other, tried[_largest(amplitudes, nearest=clearance is not None)])
    return posture


def _largest(amplitudes: list[float], nearest: bool) -> int:
    """Return the number of the largest of amplitudes; of equals the first or, as positions end `nearest`, the last."""
    equal = np.flatnonzero(np.array(amplitudes) >= (1.0 - 1e-6) * max(amplitudes))
    return int(equal[-1] if nearest else np.argmax(amplitudes))


def _places(room: Room, joint: int, own: float, clearance: Clearance | None) -> Array:
    """Return the positions tried of a joint, its own last."""
    if clearance is not None:
        return tried_positions(room, joint, own)[::-1]
    return np.append(np.linspace(room.lower[joint], room.upper[joint], ANGLES), own)


def loaded_stand(robot: Robot, joint: int, clearance: Clearance) -> tuple[Array, float, Interval]:
    """Return posture (joints,), unloaded position and clear interval for a run into the largest load above the plane.

    Tried are the usual and the upright posture of the joints before it; one that a clear way leads to from the upright
    posture is preferred.
    """
    before = (usual_posture(robot), upright_posture(robot))
    stands = [loaded_posture(robot, joint, posture, clearance) for posture in before]
    runs = [max(_runs(robot, joint, stand, clearance), key=_preference, default=None) for stand in stands]
    usual, upright = (0.0 if own is None else own[0] + SMALL for own in runs)
    ways = [_reached(robot, joint, stand, own, clearance) for stand, own in zip(stands, runs, strict=True)]
    better = upright > usual + 0.05 * usual
    best = int(ways[1] > ways[0] or (ways[1] == ways[0] and better))
    run = runs[best]
    if run is None:
        raise clearance.refusal(f"a load run of joint {joint + 1}", clearance.highest(np.array(stands)))
    return stands[best], run[1], run[2]


Run = tuple[float, float, Interval]
"""Largest load (Nm), unloaded position and clear interval of a joint."""


def _preference(run: Run) -> tuple[float, float]:
    return run[0], -abs(run[1])


def _reached(robot: Robot, joint: int, stand: Array, run: Run | None, clearance: Clearance) -> bool:
    """Tell whether the straight way from the upright posture to the begin of a run is clear."""
    if run is None:
        return False
    return clearance.is_clear(straight_way(upright_posture(robot), _with(stand, joint, run[1])))


def _runs(robot: Robot, joint: int, posture: Array, clearance: Clearance, count: int = PLACES) -> list[Run]:
    """Return largest load (Nm), unloaded position and interval of all clear runs from no load into it."""
    intervals = clear_intervals(robot, joint, posture, clearance, count)
    amplitude, zero = load_phase(robot, joint, posture, gravity_across(robot, joint, posture))
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


def _load(robot: Robot, joint: int, posture: Array, clearance: Clearance | None = None) -> float:
    if clearance is not None:
        return max((run[0] for run in _runs(robot, joint, posture, clearance, FEW_PLACES)), default=0.0)
    return load_phase(robot, joint, posture, gravity_across(robot, joint, posture))[0]


def _with(posture: Array, joint: int, value: float) -> Array:
    changed = posture.copy()
    changed[joint] = value
    return changed
