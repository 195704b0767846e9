"""URScript programs of planned experiments for the controllers of Universal Robots.

Runs from standstill to standstill become `movej` with speed and acceleration of the leading axis, and `sleep`; a
Fourier series or a spline is computed in the program and tracked by `servoj`; a locked joint is held in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap

import numpy as np

from jointwise.arguments import checked
from jointwise.description.robot import Robot
from jointwise.design.bspline import DEGREE, SplineMotion, uniform_weights
from jointwise.design.fourier import FadedSeries
from jointwise.design.piecewise import Piecewise
from jointwise.design.plan import PlannedExperiment
from jointwise.errors import ModelError
from jointwise.spatial import Array

AXES = 6
APPROACH_SPEED = 0.3
"""Speed (rad/s) and acceleration (rad/s²) of the move to the first pose: slow enough to intervene."""
APPROACH_ACCELERATION = 0.5
TICK = 0.008
"""Time (s) of a `servoj`: four periods of an e-Series, one of a CB-series controller."""
LOOKAHEAD, GAIN = 0.1, 300
"""Default lookahead_time (s, 0.03 to 0.2) and gain (100 to 2000) of `servoj`."""
STANDING = 1e-9
"""Speed (rad/s) below which a joint is at rest."""
COMMENT_WIDTH = 100
"""Characters per line of the comments."""


def supports_urscript(robot: Robot) -> bool:
    """Return whether a robot has six revolute joints and a controller that runs URScript, by its title."""
    return robot.dof == AXES and bool(robot.revolute.all()) and robot.title.startswith("Universal Robots")


@checked
def urscript(step: PlannedExperiment) -> str:
    """Return the program of one experiment for a six-axis arm."""
    if step.robot.dof != AXES or not step.robot.revolute.all():
        raise ModelError(f"URScript needs six revolute joints. Robot '{step.robot.name}' has {step.robot.dof}.")
    if step.rejection is not None:
        raise ModelError(f"no program is written for {step.purpose.name}: {step.rejection}.")
    name = f"jointwise_{step.purpose.name}"
    lines = [*_header(step, name), f"def {name}():", *(f"  {line}" for line in _body(step)), "end"]
    return "\n".join(lines) + "\n"


def motion_script(
    robot: Robot, motion: FadedSeries | SplineMotion, home: Array, name: str, notes: Sequence[str], returns: bool = True
) -> str:
    """Return the URScript program of a Fourier series or spline.

    Args:
        robot: Arm with six revolute joints.
        motion: The motion.
        home: Pose (joints,), rad, in which the program begins.
        name: Name of the program.
        notes: Paragraphs of the comment at the top.
        returns: Whether the program also ends in the pose `home`.

    Raises:
        ModelError: For an arm of other joints.
    """
    if robot.dof != AXES or not robot.revolute.all():
        raise ModelError(f"URScript needs six revolute joints. Robot '{robot.name}' has {robot.dof}.")
    header = [f"# {line}" for row in notes for line in wrap(row, COMMENT_WIDTH)]
    approach = _approaches(name, home, motion.center)
    followed = _series(motion) if isinstance(motion, FadedSeries) else _spline(motion)
    body = [*approach, *followed, *(["sleep(2.0)", _approach(home)] if returns else [])]
    return "\n".join([*header, f"def {name}():", *(f"  {line}" for line in body), "end"]) + "\n"


def _header(step: PlannedExperiment, name: str) -> list[str]:
    purpose, facts = step.purpose, step.facts()
    pose = np.rad2deg(facts["pose_rad"])
    fastest = max(facts["fastest_rad_s"])
    mounting = "any" if purpose.axis == "any" else f"axis of joint {step.joint + 1} {purpose.axis}"
    rows = [
        f"{purpose.title}.",
        f"Robot {step.robot.name}, joint {step.joint + 1}: {step.experiment.note}.",
        f"Why: {purpose.why}",
        f"Prepare: {purpose.prepare}",
        f"Mounting: {mounting}; set it in the installation. The planned mounting "
        f"{'is' if step.suits else 'is NOT'} suitable.",
        f"First pose [deg]: {', '.join(f'{angle:.1f}' for angle in pose)}.",
        f"Duration {facts['duration_s']:.0f} s, at most {fastest:.3g} rad/s.",
        f"Log {', '.join(purpose.log)} (better also {', '.join(purpose.helps)}) at {purpose.rate:g} Hz, "
        "beginning before the start.",
        *_plane(step),
        *_links(step),
        "Joint limits are checked. COLLISIONS WITH THE CELL ARE NOT, nor of cables and payload: test at 10 % speed "
        "with a hand on the stop button.",
        f"In a Script node of a program call it by {name}(); sent to the controller it starts at once.",
    ]
    return [f"# {line}" for row in rows for line in wrap(row, COMMENT_WIDTH)]


def _plane(step: PlannedExperiment) -> list[str]:
    """Return notes on the mounting plane and on the paths to and from the motion."""
    height, reach = f"{abs(step.lowest):.2f} m", f"reach {step.reach:.2f} m from the axis of the base"
    home = ", ".join(f"{angle:.1f}" for angle in np.rad2deg(step.home) + 0.0)
    side = "above" if step.lowest >= 0.0 else "BELOW"
    unseen = " THE MOUNTING PLANE IS NOT CHECKED." if step.clearance is None else ""
    return [
        f"Lowest point {height} {side} the mounting plane, {reach}.{unseen}",
        f"It begins and ends upright [deg]: {home}. The path from there is checked, the path from the current "
        "pose to there is not: move the arm near that pose first.",
    ]


def _links(step: PlannedExperiment) -> list[str]:
    """Return notes on the distance between the links."""
    if step.nearest is None:
        return []
    parts, tool = " and ".join(step.nearest.parts), step.experiment.tool
    carried = "without a tool" if tool is None else f"with a tool of {tool.length:g} m"
    return [f"Links come within {step.nearest.distance:.3f} m of each other ({parts}), {carried}."]


def _body(step: PlannedExperiment) -> list[str]:
    motion = step.experiment.motion
    first = motion.position(np.zeros(1))[0]
    lines = _approaches(step.purpose.name, step.home, first)
    if step.experiment.torque is not None:
        lines += _held(step)
    elif isinstance(motion, FadedSeries):
        lines += _series(motion)
    elif isinstance(motion, Piecewise):
        lines += _runs(motion)
    else:
        raise ModelError(f"{step.purpose.name}: no program can be generated for a {type(motion).__name__}.")
    return [*lines, "sleep(2.0)", _approach(step.home)]


def _approaches(name: str, home: Array, first: Array) -> list[str]:
    """Return the question and the slow moves over `home` to the `first` pose, (joints,) each."""
    ask = "Is the path clear? The robot moves slowly upright, then to the first pose, then starts."
    return [
        f'popup("{ask}", title="Jointwise: {name}", warning=True, blocking=True)',
        _approach(home),
        _approach(first),
        "sleep(2.0)",
    ]


def _approach(pose: Array) -> str:
    """Return the slow move to a pose (joints,)."""
    return f"movej({_list(pose)}, a={APPROACH_ACCELERATION:g}, v={APPROACH_SPEED:g})"


def _held(step: PlannedExperiment) -> list[str]:
    """Return prompts for every corner of the torque profile: the controller holds, the operator pulls at the output."""
    assert step.experiment.torque is not None
    profile = step.experiment.torque
    lines = ["# the joint is held; pull at its link with the force gauge as the messages say, slowly and evenly"]
    for begin, end, torque in zip(profile.times[:-1], profile.times[1:], profile.torques[1:], strict=True):
        lines += [f'textmsg("go evenly to [Nm] ", {torque:.1f})', f"sleep({end - begin:.3f})"]
    return lines


def _runs(motion: Piecewise) -> list[str]:
    """Return the moves between standstills: `movej` to the end of each with its speed and acceleration, `sleep`."""
    lines: list[str] = []
    for begin, end in standstills(motion):
        lines += _run(motion, begin, end)
    return lines


def standstills(motion: Piecewise) -> list[tuple[float, float]]:
    """Return the intervals (s) between times at which every joint stands."""
    speeds = motion.derivative(motion.breaks, 1)
    at_rest = motion.breaks[np.abs(speeds).max(axis=1) < STANDING]
    edges = np.unique(np.concatenate([[0.0], at_rest, [motion.duration]]))
    return [(float(a), float(b)) for a, b in pairwise(edges)]


def _run(motion: Piecewise, begin: float, end: float) -> list[str]:
    inner = motion.at(np.linspace(begin, end, 101)[:-1])
    target = motion.position(np.array([end]))[0]
    speed, acceleration = float(np.abs(inner.qd).max()), float(np.abs(inner.qdd).max())
    if speed < STANDING:
        return [f"sleep({end - begin:.3f})"]
    return [f"movej({_list(target)}, a={acceleration:.5f}, v={speed:.5f})"]


def _series(motion: FadedSeries) -> list[str]:
    """Return a loop that follows the series tick by tick, fading in and out by a quintic."""
    omega = 2.0 * np.pi * motion.base_frequency
    window = [
        f"near = elapsed / {motion.fade:.6f}",
        f"if elapsed > {0.5 * motion.duration:.3f}:",
        f"  near = ({motion.duration:.3f} - elapsed) / {motion.fade:.6f}",
        "end",
        "if near > 1.0:",
        "  near = 1.0",
        "end",
        "w = near * near * near * (10.0 - 15.0 * near + 6.0 * near * near)",
        f"x = {omega:.9f} * elapsed",
    ]
    return _loop(motion.duration, window, [_wave(motion, j) for j in range(motion.joints)])


def _loop(duration: float, before: Sequence[str], positions: Sequence[str]) -> list[str]:
    """Return a loop over `elapsed` (s) that computes positions (expressions by joint) and follows them."""
    names = ", ".join(f"q{j + 1}" for j in range(len(positions)))
    return [
        "elapsed = 0.0",
        f"while elapsed < {duration:.3f}:",
        *(f"  {line}" for line in before),
        *(f"  q{j + 1} = {text}" for j, text in enumerate(positions)),
        f"  servoj([{names}], 0, 0, {TICK:g}, {LOOKAHEAD:g}, {GAIN})",
        f"  elapsed = elapsed + {TICK:g}",
        "end",
        "stopj(2.0)",
    ]


def _spline(motion: SplineMotion) -> list[str]:
    """Return a loop that follows a spline tick by tick: six control points, weighted by polynomials of the local time.

    The knots are equally spaced and the control points at both ends zero, so that the weights are the same everywhere.
    """
    spacing = motion.duration / (len(motion.control) - DEGREE)
    points = [f"c{j + 1} = {_list(column)}" for j, column in enumerate(motion.control.T)]
    local = [
        f"if elapsed >= (k + 1) * {spacing:.9f}:",
        "  k = k + 1",
        "end",
        f"u = elapsed / {spacing:.9f} - k",
        *(f"w{i} = {_horner(row)}" for i, row in enumerate(uniform_weights())),
    ]
    positions = [
        f"{motion.center[j]:.7f} + " + " + ".join(f"w{i} * c{j + 1}[k + {i}]" for i in range(DEGREE + 1))
        for j in range(motion.joints)
    ]
    return [*points, "k = 0", *_loop(motion.duration, local, positions)]


def _horner(coefficients: Array) -> str:
    """Return a polynomial of u with ascending coefficients."""
    text = f"{coefficients[-1]:.12f}"
    for value in coefficients[-2::-1]:
        text = f"({text}) * u + {value:.12f}"
    return text


def _wave(motion: FadedSeries, joint: int) -> str:
    terms = [
        f"{_signed(a)} * sin({k} * x) {_signed(b)} * cos({k} * x)"
        for k, (a, b) in enumerate(zip(motion.sine[:, joint], motion.cosine[:, joint], strict=True), start=1)
    ]
    return f"{motion.center[joint]:.7f} + w * (0.0 {' '.join(terms)})"


def _signed(value: float) -> str:
    return f"{'-' if value < 0.0 else '+'} {abs(value):.7f}"


def _list(position: Array) -> str:
    return f"[{', '.join(f'{value + 0.0:.6f}' for value in position)}]"
