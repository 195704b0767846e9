"""Named experiments: a motion, the mounting it requires, and prescribed torques where the output is locked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.description.mounting import gravity_vector
from jointwise.description.robot import Robot, check_joint
from jointwise.design.bspline import bspline_trajectory
from jointwise.design.clearance import Body, Clearance, place_clear, straight_path
from jointwise.design.fourier import fourier_trajectory
from jointwise.design.limits import check_limits, motion_limits, unit_of
from jointwise.design.piecewise import (
    THESIS_POINTS,
    Piecewise,
    bang_coast_bang,
    clear_points,
    hold,
    random_points,
    thesis_waypoints,
    waypoint_trajectory,
)
from jointwise.design.single_joint import (
    RECIPROCATION_NET,
    TorqueProfile,
    check_revolute,
    clear_loaded_posture,
    constant_speed_runs,
    cycles_of,
    gravity_across,
    gravity_along,
    load_runs,
    loaded_posture,
    reciprocation,
    standing_posture,
    torque_ramps,
    warm_up,
)
from jointwise.design.trajectory import Trajectory, check_positive
from jointwise.design.workspace import ellipse_trajectory
from jointwise.errors import ModelError, nearest
from jointwise.model.inverse_kinematics import position_limits
from jointwise.model.skeleton import Tool
from jointwise.spatial import Array

ELLIPSE_PERIODS = (2.0, 3.0, 4.5)
"""Time (s) per turn of the ellipse: the first that keeps the speed limits of the robot."""


@dataclass(frozen=True)
class Experiment:
    """An experiment to perform on a robot.

    Attributes:
        name: Name, as `EXPERIMENTS` lists it.
        motion: The trajectory of all joints.
        gravity: Gravity (3,), m/s² in the base frame, of the mounting that the experiment is meant for.
        note: One-line description.
        joint: Index of the joint under test (0-based); None if all joints are.
        torque: Prescribed torque if the output of that joint is locked; the motion is a standstill then.
        clearance: Height (m) above the mounting plane that is kept, with the links apart; None if not checked.
        tool: Geometry of the tool for the clearance.
        source: Origin of a motion that was read from a file.
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


@dataclass(frozen=True)
class ExperimentRequest:
    """Arguments of an experiment.

    Attributes:
        robot: The robot.
        duration: Duration, s; None for the default of the experiment.
        seed: Seed of random motions.
        joint: Joint under test, 0-based; None for the default of the experiment.
        clearance: Distances to keep; None if they are not checked.
    """

    robot: Robot
    duration: float | None
    seed: int
    joint: int | None
    clearance: Clearance | None


@checked
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
    """Return a named experiment within the limits of a robot.

    Args:
        name: One of `EXPERIMENTS`.
        robot: The robot.
        duration: Duration in s; None for the default of the experiment.
        seed: Seed of random motions.
        joint: Index of the joint under test (0-based); None for the default of the experiment.
        clearance: Height in m that the arm and its tool keep above the mounting plane, z = 0 of the base frame
            (negative for an arm on a pedestal, -inf to ignore the plane); links keep `body.APART` from each other.
            None checks neither.
        tool: Geometry of the tool.

    Raises:
        ModelError: If the name is unknown, or the motion leaves the limits or does not keep the clearance.
    """
    if name not in EXPERIMENTS:
        raise ModelError(f"unknown experiment '{name}'. {nearest(name, EXPERIMENTS)}")
    if duration is not None:
        check_positive(duration=duration)
    if joint is not None:
        check_joint(robot, joint)
    keep = None if clearance is None else Clearance(Body(robot, tool), clearance)
    experiment = EXPERIMENTS[name](ExperimentRequest(robot, duration, seed, joint, keep))
    check_limits(robot, experiment.motion)
    if keep is not None:
        keep.check(experiment.motion, name)
    return replace(experiment, clearance=clearance, tool=tool)


def _excitation(request: ExperimentRequest) -> Experiment:
    robot, seed, joint = request.robot, request.seed, request.joint
    motion = fourier_trajectory(robot, request.duration or 60.0, seed)
    if joint is not None:
        alone = np.arange(robot.dof) == joint
        motion = replace(motion, sine=alone * motion.sine, cosine=alone * motion.cosine)
    if request.clearance is not None:
        motion = place_clear(robot, motion, seed, request.clearance)
    note = "Fourier series of five harmonics of 0.1 Hz"
    return Experiment("excitation", motion, gravity_vector(), note, joint)


def _bspline(request: ExperimentRequest) -> Experiment:
    motion = bspline_trajectory(request.robot, request.duration or 60.0, request.seed, joint=request.joint)
    if request.clearance is not None:
        motion = place_clear(request.robot, motion, request.seed, request.clearance)
    return Experiment("bspline", motion, gravity_vector(), "quintic B-spline, one knot per second", request.joint)


def _waypoints(request: ExperimentRequest) -> Experiment:
    _reject_joint("waypoints", request.joint)
    robot, duration, seed, clearance = request.robot, request.duration, request.seed, request.clearance
    if _within_limits(robot, THESIS_POINTS) and (clearance is None or _is_clear_round(THESIS_POINTS, clearance)):
        motion, note = thesis_waypoints(robot, duration), "six waypoints, a stop at each"
    elif clearance is not None:
        motion = waypoint_trajectory(robot, clear_points(robot, clearance, seed), duration)
        note = "six random waypoints that keep the clearance, a stop at each"
    else:
        motion = waypoint_trajectory(robot, random_points(robot, seed), duration)
        note = "six random waypoints: the default ones are outside the limits of this robot"
    return Experiment("waypoints", motion, gravity_vector(), note)


def _within_limits(robot: Robot, points: Array) -> bool:
    """Return whether postures (points, joints) are within the position limits of a robot."""
    if robot.dof != points.shape[1] or not robot.revolute.all():
        return False
    lower, upper = position_limits(robot)
    return bool(((points >= lower) & (points <= upper)).all())


def _is_clear_round(points: Array, clearance: Clearance) -> bool:
    """Return whether the closed polygon of straight paths through postures (points, joints) is clear."""
    paths = [straight_path(begin, end) for begin, end in zip(points, np.roll(points, -1, axis=0), strict=True)]
    return clearance.is_clear(np.concatenate(paths))


def _bang_coast_bang(request: ExperimentRequest) -> Experiment:
    motion = bang_coast_bang(
        request.robot, request.duration or 35.0, request.seed, joint=request.joint, clearance=request.clearance
    )
    note = "random moves at 30 to 100 % of the limits, waits up to 1 s"
    return Experiment("bang-coast-bang", motion, gravity_vector(), note, request.joint)


def _ellipse(request: ExperimentRequest) -> Experiment:
    _reject_joint("ellipse", request.joint)
    robot = request.robot
    if robot.dof < 6:
        raise ModelError(f"ellipse needs six joints or more to hold the tool. Robot '{robot.name}' has {robot.dof}.")
    *quick, slowest = ELLIPSE_PERIODS
    for period in quick:
        with suppress(ModelError):
            return _ellipse_of(robot, request.duration or 10.0, period)
    return _ellipse_of(robot, request.duration or 10.0, slowest)


def _ellipse_of(robot: Robot, duration: float, period: float) -> Experiment:
    motion = ellipse_trajectory(robot, duration, period=period)
    check_limits(robot, motion)
    note = f"ellipse of the tool in a horizontal plane, {period:g} s per turn"
    return Experiment("ellipse", motion, gravity_vector(), note)


def _constant_speed(request: ExperimentRequest) -> Experiment:
    robot, joint = request.robot, request.joint or 0
    motion = constant_speed_runs(robot, request.duration or 120.0, joint=joint, clearance=request.clearance)
    note = f"ten speeds back and forth, {_axis(robot, joint)}" + _speed_note(robot, motion, joint, 0.9)
    return _unloaded(robot, "constant-speed", motion, joint, note)


def _load(request: ExperimentRequest) -> Experiment:
    robot, clearance = request.robot, request.clearance
    joint = min(1, robot.dof - 1) if request.joint is None else request.joint
    check_revolute(robot, joint)
    posture = loaded_posture(robot, joint) if clearance is None else clear_loaded_posture(robot, joint, clearance)[0]
    motion = load_runs(robot, request.duration or 120.0, joint=joint, posture=posture, clearance=clearance)
    note = "0.05 rad/s from no load into gravity and back, axis horizontal"
    return Experiment("load", motion, gravity_across(robot, joint, posture), note, joint)


def _warm_up(request: ExperimentRequest) -> Experiment:
    robot, joint = request.robot, request.joint or 0
    motion = warm_up(robot, request.duration or 1800.0, joint=joint, clearance=request.clearance)
    note = f"back and forth at 20, 50 and 80 % of the speed limit, {_axis(robot, joint)}"
    return _unloaded(robot, "warm-up", motion, joint, note + _speed_note(robot, motion, joint, 0.8))


def _speed_note(robot: Robot, motion: Piecewise, joint: int, share: float) -> str:
    """Return a note on speeds that stay below a `share` of the limit; empty otherwise."""
    top = float(np.abs(motion.derivative(motion.breaks, 1)[:, joint]).max())
    if top > 0.99 * share * motion_limits(robot, 1.0).velocity[joint]:
        return ""
    return f", reduced to {top:.3g} {unit_of(robot, joint)}/s: faster runs do not fit into the clear range"


def _reciprocate(request: ExperimentRequest) -> Experiment:
    robot, joint = request.robot, request.joint or 0
    motion = reciprocation(robot, request.duration, joint=joint, clearance=request.clearance)
    net = _distance(robot, joint, RECIPROCATION_NET)
    note = f"slow reciprocation, net {net} per cycle, {_axis(robot, joint)}"
    return _unloaded(robot, "reciprocate", motion, joint, note + _range_note(robot, motion, joint, request.duration))


def _range_note(robot: Robot, motion: Piecewise, joint: int, duration: float | None) -> str:
    """Return a note on a reciprocation that turns back before a whole turn; empty otherwise."""
    cycles, net = cycles_of(motion, joint)
    advanced = round(net / RECIPROCATION_NET)
    if advanced >= round(2.0 * np.pi / RECIPROCATION_NET) or (duration is not None and cycles <= advanced):
        return ""
    covered = _distance(robot, joint, float(np.ptp(motion.position(motion.breaks)[:, joint])))
    more = "a whole turn" if robot.revolute[joint] else "more"
    return f", over {covered}, {2 * cycles} reversals: {more} does not fit"


def _distance(robot: Robot, joint: int, distance: float) -> str:
    """Return a distance (rad, m) of a joint in degrees, or in mm for a prismatic joint."""
    return f"{np.rad2deg(distance):.0f} degrees" if robot.revolute[joint] else f"{1e3 * distance:.0f} mm"


def _locked(request: ExperimentRequest) -> Experiment:
    robot, joint = request.robot, request.joint or 0
    torque = torque_ramps(robot, request.duration or 40.0, joint=joint)
    motion = hold(standing_posture(robot, request.clearance), torque.duration)
    return replace(_unloaded(robot, "locked", motion, joint, "output locked, torque ramps"), torque=torque)


def _axis(robot: Robot, joint: int) -> str:
    return "axis vertical" if robot.revolute[joint] else "axis horizontal"


def _unloaded(robot: Robot, name: str, motion: Trajectory, joint: int, note: str) -> Experiment:
    """Return an experiment without gravity load: a revolute axis is vertical, a prismatic one horizontal."""
    posture = motion.position(np.zeros(1))[0]
    gravity = gravity_along(robot, joint, posture) if robot.revolute[joint] else gravity_across(robot, joint, posture)
    return Experiment(name, motion, gravity, note, joint)


def _reject_joint(name: str, joint: int | None) -> None:
    if joint is not None:
        raise ModelError(f"{name} moves all joints: leave out the joint.")


EXPERIMENTS: dict[str, Callable[[ExperimentRequest], Experiment]] = {
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
"""Functions that make each experiment, by name; `make_experiment` checks limits and clearance as well."""

SUMMARIES = {
    "excitation": "all joints by Fourier series (60 s)",
    "bspline": "all joints by a random quintic B-spline (60 s)",
    "waypoints": "all joints through six waypoints (about 13 s)",
    "bang-coast-bang": "random moves at 30 to 100 % of the limits, with waits (35 s)",
    "ellipse": "the tool on an ellipse, by inverse kinematics (10 s)",
    "constant-speed": "one joint back and forth at ten speeds, axis vertical: friction over speed (120 s)",
    "load": "one joint slowly into gravity and back, axis horizontal: friction over load (120 s)",
    "warm-up": "one joint back and forth for long, axis vertical: friction over temperature (30 min)",
    "reciprocate": "one joint slowly back and forth over one turn, 240 reversals: hysteresis, backlash (1005 s)",
    "locked": "one joint locked at its output, torque ramps: stiffness (40 s)",
}
"""One-line description of each experiment, with its default duration."""
