"""Experiments by name: a motion, the mounting it needs, and a prescribed torque where the output is locked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from jointwise.description.mounting import gravity_vector
from jointwise.description.robot import Robot
from jointwise.errors import ModelError, nearest
from jointwise.model.inverse_kinematics import position_limits
from jointwise.model.skeleton import Tool
from jointwise.simulation.references.bang_coast_bang import bang_coast_bang
from jointwise.simulation.references.body import Body
from jointwise.simulation.references.bspline import bspline_trajectory
from jointwise.simulation.references.clearance import Clearance, straight_way
from jointwise.simulation.references.fourier import fourier_trajectory
from jointwise.simulation.references.limits import checked_joint, refuse_outside_limits, unit_of
from jointwise.simulation.references.locked import TorqueProfile, torque_ramps
from jointwise.simulation.references.piecewise import Piecewise, hold
from jointwise.simulation.references.posture import (
    gravity_across,
    gravity_along,
    loaded_posture,
    loaded_stand,
    standing_posture,
)
from jointwise.simulation.references.redraw import drawn_clear
from jointwise.simulation.references.room import room_of
from jointwise.simulation.references.single_joint import (
    RECIPROCATION_NET,
    constant_speed_runs,
    cycles_of,
    load_runs,
    reciprocation,
    refuse_slide,
    warm_up,
)
from jointwise.simulation.references.trajectory import Trajectory, refuse_unless_positive
from jointwise.simulation.references.waypoints import (
    THESIS_POINTS,
    clear_points,
    random_points,
    thesis_waypoints,
    waypoint_trajectory,
)
from jointwise.simulation.references.workspace import ellipse_trajectory
from jointwise.spatial import Array


@dataclass(frozen=True)
class Experiment:
    """What to run: a `motion`, the `gravity` (3,), m/s² in the base frame, of the mounting it is meant for, and a note.

    `joint` (0-based) is the one under test, None if all are. `torque` is prescribed where the output of that joint is
    locked at the (constant) motion; it is None elsewhere. `clearance` (m) above the mounting plane is kept, if given,
    and links keep apart then (see `make_experiment`), `tool` and all.
    `source` tells where the motion of a file came from.
    """

    name: str
    motion: Trajectory
    gravity: Array
    note: str
    joint: int | None = None
    torque: TorqueProfile | None = None
    clearance: float | None = None
    tool: Tool | None = None
    source: Mapping[str, Any] | None = None


class Maker(Protocol):
    """Makes an experiment of one kind."""

    def __call__(
        self,
        robot: Robot,
        duration: float | None,
        seed: int,
        joint: int | None = None,
        clearance: Clearance | None = None,
    ) -> Experiment:
        """Return it for a robot, a duration (s; None for the usual one), a seed and a joint (0-based; None: usual)."""


def make_experiment(
    name: str,
    robot: Robot,
    duration: float | None = None,
    seed: int = 0,
    *,
    joint: int | None = None,
    clearance: float | None = None,
    tool: Tool | None = None,
) -> Experiment:
    """Return an experiment by name, checked against the limits of the robot.

    `duration` (s) and `joint` (0-based) are the usual ones of the experiment unless given. With a `clearance` (m) the
    arm and its `tool` stay that high above the mounting plane, z = 0 of the base; below 0 for an arm on a pedestal,
    -inf where the plane does not matter. Links that can meet stay `body.APART` apart then. Without it nobody looks.
    """
    if name not in EXPERIMENTS:
        raise ModelError(f"unknown experiment '{name}'. {nearest(name, EXPERIMENTS)}")
    if duration is not None:
        refuse_unless_positive(duration=duration)
    if joint is not None:
        checked_joint(robot, joint)
    keep = None if clearance is None else Clearance(Body(robot, tool), clearance)
    experiment = EXPERIMENTS[name](robot, duration, seed, joint, keep)
    refuse_outside_limits(robot, experiment.motion)
    if keep is not None:
        keep.refuse_unclear(experiment.motion, name)
    return replace(experiment, clearance=clearance, tool=tool)


def _excitation(
    robot: Robot, duration: float | None, seed: int, joint: int | None = None, clearance: Clearance | None = None
) -> Experiment:
    motion = fourier_trajectory(robot, duration or 60.0, seed)
    if joint is not None:
        alone = np.arange(robot.dof) == joint
        motion = replace(motion, sine=alone * motion.sine, cosine=alone * motion.cosine)
    if clearance is not None:
        motion = drawn_clear(robot, motion, seed, clearance)
    note = "Fourier series of five harmonics of 0.1 Hz"
    return Experiment("excitation", motion, gravity_vector(), note, joint)


def _bspline(
    robot: Robot, duration: float | None, seed: int, joint: int | None = None, clearance: Clearance | None = None
) -> Experiment:
    motion = bspline_trajectory(robot, duration or 60.0, seed, joint=joint)
    if clearance is not None:
        motion = drawn_clear(robot, motion, seed, clearance)
    return Experiment("bspline", motion, gravity_vector(), "quintic B-spline, a knot a second", joint)


def _waypoints(
    robot: Robot, duration: float | None, seed: int, joint: int | None = None, clearance: Clearance | None = None
) -> Experiment:
    _refuse_joint("waypoints", joint)
    if _can_stand_at(robot, THESIS_POINTS) and (clearance is None or _clear_round(THESIS_POINTS, clearance)):
        motion, note = thesis_waypoints(robot, duration), "six waypoints, a stop at each"
    elif clearance is not None:
        motion = waypoint_trajectory(robot, clear_points(robot, clearance, seed), duration)
        note = "six random waypoints that keep clear, a stop at each"
    else:
        motion = waypoint_trajectory(robot, random_points(robot, seed), duration)
        note = "six random waypoints: the usual ones do not suit this robot"
    return Experiment("waypoints", motion, gravity_vector(), note)


def _can_stand_at(robot: Robot, points: Array) -> bool:
    """Tell whether postures (points, joints) suit a robot."""
    if robot.dof != points.shape[1] or not robot.revolute.all():
        return False
    lower, upper = position_limits(robot)
    return bool(((points >= lower) & (points <= upper)).all())


def _clear_round(points: Array, clearance: Clearance) -> bool:
    """Tell whether the straight ways around postures (points, joints) are clear."""
    ways = [straight_way(begin, end) for begin, end in zip(points, np.roll(points, -1, axis=0), strict=True)]
    return clearance.is_clear(np.concatenate(ways))


def _bang_coast_bang(
    robot: Robot, duration: float | None, seed: int, joint: int | None = None, clearance: Clearance | None = None
) -> Experiment:
    motion = bang_coast_bang(robot, duration or 35.0, seed, joint=joint, clearance=clearance)
    note = "random moves at 30 to 100 % of the limits, waits up to 1 s"
    return Experiment("bang-coast-bang", motion, gravity_vector(), note, joint)


def _ellipse(
    robot: Robot, duration: float | None, seed: int, joint: int | None = None, clearance: Clearance | None = None
) -> Experiment:
    _refuse_joint("ellipse", joint)
    if robot.dof < 6:
        raise ModelError(f"ellipse needs six joints or more to hold the tool. Robot '{robot.name}' has {robot.dof}.")
    motion = ellipse_trajectory(robot, duration or 10.0)
    return Experiment("ellipse", motion, gravity_vector(), "ellipse of the tool in a horizontal plane, 2 s a turn")


def _constant_speed(
    robot: Robot, duration: float | None, seed: int, joint: int | None = None, clearance: Clearance | None = None
) -> Experiment:
    own = joint or 0
    motion = constant_speed_runs(robot, duration or 120.0, joint=own, clearance=clearance)
    note = f"ten speeds to and fro, {_axis(robot, own)}" + _lowered(robot, motion, own, 0.9)
    return _unloaded(robot, "constant-speed", motion, own, note)


def _load(
    robot: Robot, duration: float | None, seed: int, joint: int | None = None, clearance: Clearance | None = None
) -> Experiment:
    own = min(1, robot.dof - 1) if joint is None else joint
    refuse_slide(robot, own)
    posture = loaded_posture(robot, own) if clearance is None else loaded_stand(robot, own, clearance)[0]
    motion = load_runs(robot, duration or 120.0, joint=own, posture=posture, clearance=clearance)
    gravity = gravity_across(robot, own, posture)
    note = "0.05 rad/s from no load into gravity and back, axis horizontal"
    return Experiment("load", motion, gravity, note, own)


def _warm_up(
    robot: Robot, duration: float | None, seed: int, joint: int | None = None, clearance: Clearance | None = None
) -> Experiment:
    own = joint or 0
    motion = warm_up(robot, duration or 1800.0, joint=own, clearance=clearance)
    note = f"to and fro at 20, 50 and 80 % of the speed limit, {_axis(robot, own)}" + _lowered(robot, motion, own, 0.8)
    return _unloaded(robot, "warm-up", motion, own, note)


def _lowered(robot: Robot, motion: Piecewise, joint: int, part: float) -> str:
    """Return what is to be said of speeds that end below a `part` of the limit: nothing if they do not."""
    top = float(np.abs(motion.derivative(motion.breaks, 1)[:, joint]).max())
    if top > 0.99 * part * room_of(robot, 1.0).velocity[joint]:
        return ""
    return f", lowered to {top:.3g} {unit_of(robot, joint)}/s: faster runs do not fit where the arm is clear"


def _reciprocate(
    robot: Robot, duration: float | None, seed: int, joint: int | None = None, clearance: Clearance | None = None
) -> Experiment:
    own = joint or 0
    motion = reciprocation(robot, duration, joint=own, clearance=clearance)
    note = f"slow reciprocation, net {_way(robot, own, RECIPROCATION_NET)} a cycle, {_axis(robot, own)}"
    return _unloaded(robot, "reciprocate", motion, own, note + _part_of_a_turn(robot, motion, own, duration))


def _part_of_a_turn(robot: Robot, motion: Piecewise, joint: int, duration: float | None) -> str:
    """Return what is to be said of a reciprocation that goes back before a whole turn: nothing of others."""
    cycles, way = cycles_of(motion, joint)
    over = round(way / RECIPROCATION_NET)
    if over >= round(2.0 * np.pi / RECIPROCATION_NET) or (duration is not None and cycles <= over):
        return ""
    covered = _way(robot, joint, float(np.ptp(motion.position(motion.breaks)[:, joint])))
    more = "a whole turn" if robot.revolute[joint] else "more"
    return f", over {covered}, {2 * cycles} reversals: {more} does not fit"


def _way(robot: Robot, joint: int, way: float) -> str:
    """Return a way (rad, m) in degrees, or mm of a joint that slides."""
    return f"{np.rad2deg(way):.0f} degrees" if robot.revolute[joint] else f"{1e3 * way:.0f} mm"


def _locked(
    robot: Robot, duration: float | None, seed: int, joint: int | None = None, clearance: Clearance | None = None
) -> Experiment:
    own = joint or 0
    torque = torque_ramps(robot, duration or 40.0, joint=own)
    experiment = _unloaded(
        robot, "locked", hold(standing_posture(robot, clearance), torque.duration), own, "output locked, torque ramps"
    )
    return replace(experiment, torque=torque)


def _axis(robot: Robot, joint: int) -> str:
    return "axis vertical" if robot.revolute[joint] else "axis horizontal"


def _unloaded(robot: Robot, name: str, motion: Trajectory, joint: int, note: str) -> Experiment:
    """Return an experiment with the axis of a joint along gravity, of one that slides across: without load."""
    posture = motion.position(np.zeros(1))[0]
    gravity = gravity_along(robot, joint, posture) if robot.revolute[joint] else gravity_across(robot, joint, posture)
    return Experiment(name, motion, gravity, note, joint)


def _refuse_joint(name: str, joint: int | None) -> None:
    if joint is not None:
        raise ModelError(f"{name} moves all joints: leave out the joint.")


EXPERIMENTS: dict[str, Maker] = {
    "excitation": _excitation,
    "bspline": _bspline,
    "waypoints": _waypoints,
    "bang-coast-bang": _bang_coast_bang,
    "ellipse": _ellipse,
    "constant-speed": _constant_speed,
    "load": _load,
    "warm-up": _warm_up,
    "reciprocate": _reciprocate,
    "locked": _locked,
}
"""Makers of experiments by name; `make_experiment` also checks the limits."""

SUMMARIES = {
    "excitation": "all joints by Fourier series (60 s)",
    "bspline": "all joints by a random quintic B-spline (60 s)",
    "waypoints": "all joints through six waypoints (about 13 s)",
    "bang-coast-bang": "random moves at 30 to 100 % of the limits, with waits (35 s)",
    "ellipse": "the tool on an ellipse, by inverse kinematics (10 s)",
    "constant-speed": "one joint to and fro at ten speeds, axis vertical: friction over speed (120 s)",
    "load": "one joint slowly into gravity and back, axis horizontal: friction over load (120 s)",
    "warm-up": "one joint to and fro for long, axis vertical: friction over temperature (30 min)",
    "reciprocate": "one joint slowly to and fro over a turn if it fits, 240 reversals: hysteresis, backlash (1005 s)",
    "locked": "one joint locked at its output, torque ramps: stiffness (40 s)",
}
"""One line about each experiment, with its usual duration."""
