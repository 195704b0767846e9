"""Experiments on one joint while the others stand still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.simulation.references.clearance import Clearance
from jointwise.simulation.references.limits import checked_joint, unit_of
from jointwise.simulation.references.moves import PEAKS, Ramp, run
from jointwise.simulation.references.piecewise import Piece, Piecewise, join, rest
from jointwise.simulation.references.posture import (
    Interval,
    clear_stand,
    gravity_across,
    load_phase,
    loaded_posture,
    loaded_stand,
    widest_interval,
)
from jointwise.simulation.references.room import room_of
from jointwise.simulation.references.stance import usual_posture
from jointwise.simulation.references.trajectory import DurationError, refuse_unless_positive
from jointwise.spatial import Array

PAUSE = 0.25
"""Standstill after every run, s."""
SHORTEST_COAST = 0.2
"""Least time at constant speed in a run, s."""
SHORTEST_RISE = 0.1
"""Least time in which a run gains its speed, s."""
LOWERED = 100
"""Steps of 5 % by which speeds are lowered at most."""
LOAD_SPEED = 0.05
"""Speed of load runs, rad/s."""
WARM_UP_SPEEDS = (0.2, 0.5, 0.8)
"""Speeds of a warm-up as parts of the limit, changing every `WARM_UP_SLOT` s."""
WARM_UP_SLOT = 20.0
RECIPROCATION_ACCELERATION = 0.05
"""Acceleration of the slow reciprocation, rad/s²."""
RECIPROCATION_NET = np.deg2rad(3.0)
"""Net motion of one of its cycles, rad: 120 cycles, 240 reversals a turn."""
PIECES = 4
"""Pieces of a cycle: two ways that speed up and slow down."""
RECIPROCATION_LEAD = 0.5
"""Time by which its way forwards is longer than its way back, s: a turn takes 1,005 s."""


@dataclass(frozen=True)
class _Joint:
    """One joint of a robot: its room and the posture of the others."""

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


def _joint(robot: Robot, joint: int, posture: Array | None, clearance: Clearance | None = None) -> _Joint:
    """Return a joint with the room of its limits or, with a `clearance`, the part of it that is clear."""
    number, room = checked_joint(robot, joint), room_of(robot, 1.0)
    lower, upper, speed, acceleration = (
        float(values[number]) for values in (room.lower, room.upper, room.velocity, room.acceleration)
    )
    stand = usual_posture(robot) if posture is None else np.clip(posture, room.lower, room.upper)
    if clearance is not None:
        stand, (lower, upper) = _clear(robot, number, None if posture is None else stand, clearance)
    return _Joint(number, lower, upper, speed, acceleration, stand, unit_of(robot, number))


def _clear(robot: Robot, joint: int, posture: Array | None, clearance: Clearance) -> tuple[Array, Interval]:
    """Return a posture (joints,), the given one if there is one, and the interval of a joint that is clear there."""
    if posture is None:
        return clear_stand(robot, joint, clearance)
    interval = widest_interval(robot, joint, posture, clearance)
    if interval is None:
        raise clearance.refusal(f"joint {joint + 1} at this posture", posture[None])
    return posture, interval


def _fastest(own: _Joint, part: float, slot: float, ramp: Ramp = "constant") -> float:
    """Return the speed limit (rad/s), lowered until runs at a `part` of it fit into the range and a slot (s)."""
    top = own.speed
    for _ in range(LOWERED):
        if _fits(_timed(own, part * top, slot, own.upper - own.lower, ramp)):
            break
        top *= 0.95
    return top


def usual_speeds(robot: Robot, joint: int, count: int = 10, top: float | None = None) -> Array:
    """Return speeds (count,) from 1 to 90 % of a joint's limit (or of `top`) in equal ratios, rad/s."""
    top = room_of(robot, 1.0).velocity[checked_joint(robot, joint)] if top is None else top
    return np.geomspace(0.01 * top, 0.9 * top, count)


def constant_speed_runs(
    robot: Robot,
    duration: float = 120.0,
    *,
    joint: int = 0,
    speeds: Sequence[float] | Array | None = None,
    posture: Array | None = None,
    begin: float | None = None,
    ramp: Ramp = "constant",
    clearance: Clearance | None = None,
) -> Piecewise:
    """Return runs of a joint (0-based) at constant `speeds` (rad/s), each forwards and back, as often as fits.

    Every speed gets an equal part of `duration` (s) and fills it with equal runs, as long as the limits allow: a run of
    time T at speed v with acceleration a covers ``v (T - v / a)``. All begin and end at `begin` (rad); without it they
    lie in the middle of the range. Friction is told best with the axis vertical. With a `clearance`
    the runs keep to the positions that are clear and, unless `speeds` are given, to speeds that fit.
    """
    own = _joint(robot, joint, posture, clearance)
    top = None if clearance is None else _fastest(own, 0.9, 0.1 * duration, ramp)
    rates = [float(v) for v in (usual_speeds(robot, joint, top=top) if speeds is None else speeds)]
    return _speed_runs(own, duration, rates, begin, ramp)


def _speed_runs(
    own: _Joint, duration: float, rates: list[float], begin: float | None = None, ramp: Ramp = "constant"
) -> Piecewise:
    """Return runs at speeds (rad/s), see `constant_speed_runs`."""
    refuse_unless_positive(duration=duration)
    _refuse_speeds(own, rates)
    slot = duration / len(rates)
    room = own.upper - own.lower if begin is None else max(own.upper - begin, begin - own.lower)
    _refuse_short(own, max(rates), duration, len(rates), ramp)
    plans = [_plan(own, rate, slot, room, ramp) for rate in rates]
    longest = max(rate * (time - rise) for rate, time, rise, _ in plans)
    start, side = _placed(own, begin, longest)
    pieces = [piece for plan in plans for piece in _slot(own, plan, start, side, ramp)]
    return join(pieces, ramp == "smooth", duration)


Plan = tuple[float, float, float, int]
"""Speed (rad/s), time of a run without pause (s), time of its ramps (s), pairs of runs."""


def _refuse_speeds(own: _Joint, rates: list[float]) -> None:
    if not rates:
        raise ModelError("speeds must hold at least one speed.")
    for rate in rates:
        if not 0.0 < rate <= own.speed * (1.0 + 1e-12):
            raise ModelError(
                f"speeds of joint {own.number + 1} must be above 0 and up to {own.speed:.4g} {own.unit}/s. Got {rate}."
            )


def _rise(own: _Joint, rate: float, ramp: Ramp) -> float:
    """Return the time (s) in which a run gains its speed."""
    return max(PEAKS[ramp] * rate / own.acceleration, SHORTEST_RISE)


def _refuse_short(own: _Joint, rate: float, duration: float, speeds: int, ramp: Ramp) -> None:
    """Refuse a duration (s) whose share, one of `speeds`, is too short for one run to and fro."""
    least = speeds * 2.0 * (2.0 * _rise(own, rate, ramp) + SHORTEST_COAST + PAUSE)
    if duration < least - 1e-9:
        runs = f"one run to and fro at each of {speeds} speeds" if speeds > 1 else "one run to and fro"
        raise DurationError(f"{runs} of joint {own.number + 1}, up to {rate:.3g} {own.unit}/s", least, duration)


def _plan(own: _Joint, rate: float, slot: float, room: float, ramp: Ramp) -> Plan:
    """Return the fewest pairs of runs that fill a slot (s) without leaving the room (rad), or say that none do."""
    plan = _timed(own, rate, slot, room, ramp)
    if not _fits(plan):
        least = rate * (plan[2] + SHORTEST_COAST)
        raise ModelError(
            f"joint {own.number + 1} cannot run at {rate:.4g} {own.unit}/s: a run takes {least:.3g} {own.unit}, its "
            f"range is {room:.3g} {own.unit}. Choose a lower speed."
        )
    return plan


def _timed(own: _Joint, rate: float, slot: float, room: float, ramp: Ramp) -> Plan:
    """Return the fewest pairs of runs that fill a slot (s) without leaving the room (rad), however short they are."""
    rise = _rise(own, rate, ramp)
    longest = room / rate + rise
    pairs = max(1, int(np.ceil(slot / (2.0 * (longest + PAUSE)) - 1e-9)))
    return rate, slot / (2.0 * pairs) - PAUSE, rise, pairs


def _fits(plan: Plan) -> bool:
    """Tell whether runs reach their speed and keep it for a while."""
    _, time, rise, _ = plan
    return time >= 2.0 * rise + SHORTEST_COAST


def _placed(own: _Joint, begin: float | None, longest: float) -> tuple[float, float]:
    """Return where runs begin and to which side (+1, -1) they go first."""
    if begin is None:
        return 0.5 * (own.lower + own.upper - longest), 1.0
    if not own.lower <= begin <= own.upper:
        raise ModelError(f"begin must lie within {own.lower:.4g} to {own.upper:.4g}. Got {begin} instead.")
    return begin, 1.0 if own.upper - begin >= longest * (1.0 - 1e-12) else -1.0


def _slot(own: _Joint, plan: Plan, start: float, side: float, ramp: Ramp) -> list[Piece]:
    """Return the runs of one speed."""
    rate, time, rise, pairs = plan
    way = side * rate * (time - rise)
    there, back = own.at(start), own.at(start + way)
    step, speed = way * own.axis, rate / abs(way)
    forwards = [*run(there, step, speed, rise, ramp), rest(back, PAUSE)]
    return [*forwards, *run(back, -step, speed, rise, ramp), rest(there, PAUSE)] * pairs


def load_runs(
    robot: Robot,
    duration: float = 120.0,
    *,
    joint: int = 1,
    speed: float = LOAD_SPEED,
    posture: Array | None = None,
    clearance: Clearance | None = None,
) -> Piecewise:
    """Return slow runs of a joint that begin where gravity does not load it and turn it into the load and back.

    The mounting is `posture.gravity_across`, the posture of the other joints `posture.loaded_posture`. With a
    `clearance` the posture is chosen for the largest load above the mounting plane: upright to horizontal.
    """
    refuse_slide(robot, checked_joint(robot, joint))
    if clearance is not None:
        return _clear_load_runs(robot, duration, checked_joint(robot, joint), speed, clearance)
    stand = loaded_posture(robot, checked_joint(robot, joint)) if posture is None else posture
    own = _joint(robot, joint, stand)
    _, zero = load_phase(robot, joint, stand, gravity_across(robot, joint, stand))
    begin = _unloaded(own, zero)
    return constant_speed_runs(robot, duration, joint=joint, speeds=[speed], posture=stand, begin=begin)


def _clear_load_runs(robot: Robot, duration: float, joint: int, speed: float, clearance: Clearance) -> Piecewise:
    stand, begin, (lower, upper) = loaded_stand(robot, joint, clearance)
    own = replace(_joint(robot, joint, stand), lower=lower, upper=upper)
    return _speed_runs(own, duration, [speed], begin)


def refuse_slide(robot: Robot, joint: int) -> None:
    """Refuse a joint that slides (0-based) where the load shall change along the way."""
    if not robot.revolute[joint]:
        raise ModelError(
            f"load needs a joint that turns: gravity loads a slide, joint {joint + 1}, alike everywhere. Record "
            "constant-speed with different payloads, along gravity, instead."
        )


def _unloaded(own: _Joint, zero: float) -> float:
    """Return the position without load, zero + k π, nearest to 0, or the end of the range next to it."""
    turns = zero + np.pi * np.arange(-4, 5)
    inside = turns[(turns >= own.lower) & (turns <= own.upper)]
    if not inside.size:
        return own.lower if abs(own.lower - zero) < abs(own.upper - zero) else own.upper
    return float(inside[np.argmin(np.abs(inside))])


def warm_up(
    robot: Robot,
    duration: float = 1800.0,
    *,
    joint: int = 0,
    posture: Array | None = None,
    clearance: Clearance | None = None,
) -> Piecewise:
    """Return minutes of to and fro at 20, 50 and 80 % of the speed limit in turn, about 20 s each.

    With a `clearance` the limit is what fits where the arm is clear, if that is less.
    """
    own = _joint(robot, joint, posture, clearance)
    rounds = max(1, round(duration / (WARM_UP_SLOT * len(WARM_UP_SPEEDS))))
    slot = duration / (rounds * len(WARM_UP_SPEEDS))
    top = room_of(robot, 1.0).velocity[own.number] if clearance is None else _fastest(own, max(WARM_UP_SPEEDS), slot)
    return _speed_runs(own, duration, [float(v) for v in top * np.tile(WARM_UP_SPEEDS, rounds)])


def reciprocation(
    robot: Robot,
    duration: float | None = None,
    *,
    joint: int = 0,
    acceleration: float = RECIPROCATION_ACCELERATION,
    net: float = RECIPROCATION_NET,
    posture: Array | None = None,
    clearance: Clearance | None = None,
) -> Piecewise:
    """Return the slow reciprocation over a turn: 120 cycles with two reversals each in 1,005 s.

    q̈ is ±`acceleration` (rad/s²); a way forwards takes T, one back T - 0.5 s, so that a cycle of ``net = a (T² -
    (T - 0.5)²) / 4`` (rad) lasts 8.38 s. A joint that cannot turn once covers what its limits allow. `duration` (s)
    makes fewer cycles; beyond a turn it goes back the way it came. The axis should be vertical. With a `clearance` it
    covers what is clear.
    """
    refuse_unless_positive(acceleration=acceleration, net=net)
    own = _joint(robot, joint, posture, clearance)
    cycle = 4.0 * net / (acceleration * RECIPROCATION_LEAD)
    times = 0.5 * (cycle + RECIPROCATION_LEAD), 0.5 * (cycle - RECIPROCATION_LEAD)
    if times[1] <= 0.0:
        raise ModelError(f"net must be larger than {acceleration * RECIPROCATION_LEAD**2 / 4:.3g}. Got {net} instead.")
    ways = tuple(0.25 * acceleration * time**2 for time in times)
    turn = min(round(2.0 * np.pi / net), int((own.upper - own.lower - ways[1]) / net))
    cycles = turn if duration is None else int(duration / cycle + 1e-9)
    if turn < 1:
        raise ModelError(f"the range of joint {joint + 1} must hold one cycle, {ways[0]:.3g} {own.unit}.")
    if duration is not None and cycles < 1:
        raise DurationError("one cycle", cycle, duration)
    start = 0.5 * (own.lower + own.upper - net * turn - ways[1])
    pieces = _cycles(own, start, turn, cycles, (times, (ways[0], ways[1])))
    return join(pieces, False, duration)


def _cycles(
    own: _Joint, start: float, turn: int, cycles: int, shape: tuple[tuple[float, float], tuple[float, float]]
) -> list[Piece]:
    """Return cycles that advance for one turn and then go back as they came, mirrored in time, and so on."""
    (forth, back), (far, near) = shape
    there, home = ((forth, far), (back, -near)), ((back, near), (forth, -far))
    pieces: list[Piece] = []
    position = start
    for k in range(cycles):
        for time, way in there if (k // turn) % 2 == 0 else home:
            pieces += run(own.at(position), way * own.axis, 2.0 / time, 0.5 * time, "constant")
            position += way
    return pieces


def cycles_of(motion: Piecewise, joint: int) -> tuple[int, float]:
    """Return how many cycles a reciprocation of a joint (0-based) makes, and its net way from end to end, rad."""
    cycles = (len(motion.breaks) - 1) // PIECES
    starts = motion.breaks[: PIECES * cycles + 1 : PIECES]
    return cycles, float(np.ptp(motion.position(starts)[:, joint]))
