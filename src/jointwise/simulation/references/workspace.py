"""Paths of the tool in the workspace: ellipse and line, by inverse kinematics.

The joint positions are solved on a grid of the path parameter σ and joined by a quintic spline q(σ), periodic for a
closed path; a polynomial time law σ(t) starts and stops at rest. Derivatives follow by the chain rule, snap included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from jointwise.description.robot import Robot
from jointwise.errors import JointwiseError, ModelError, ShapeError
from jointwise.model.inverse_kinematics import ReachError, all_solutions, follow_path
from jointwise.simulation.references.differentiable import Differentiable
from jointwise.simulation.references.limits import refuse_outside_limits
from jointwise.simulation.references.moves import PEAKS, joint_moves, run
from jointwise.simulation.references.piecewise import Piece, Piecewise, join
from jointwise.simulation.references.room import room_of
from jointwise.simulation.references.succession import Succession, succession
from jointwise.simulation.references.trajectory import DurationError, refuse_unless_positive
from jointwise.spatial import Array, rotation_x, rotation_y

GRID = 400
"""Intervals of σ on which a path is solved."""
COARSE_GRID = 32
"""Intervals on which it is tried first, to refuse quickly what cannot be followed."""
BRANCHES = 8
"""Most solutions at the first point from which it is tried."""
CENTER = (0.4, 0.0, 0.65)
"""Centre of the usual ellipse, m, for an arm as long as `LENGTH` or longer; smaller arms draw it in proportion."""
AXES = (0.1, 0.15)
"""Its half axes along x and y, m."""
LENGTH = 0.9
"""Length (m) of the shortest arm that draws the usual ellipse in full size."""
PERIOD = 2.0
"""Time of one turn, s."""
TOOLS = (rotation_x(np.pi), rotation_y(0.5 * np.pi), np.eye(3))
"""Orientations of the tool that are tried in this order where none is given: down, forwards along x, up."""

Path = Callable[[Array], Array]
"""Positions (samples, 3), m, at path parameters σ (samples,)."""


@dataclass(frozen=True)
class PathMotion(Differentiable):
    """A motion q(σ(t)): `spline` gives q and its derivatives at σ, `law` (one column) gives σ(t)."""

    duration: float
    spline: Any
    law: Piecewise
    period: float | None
    smooth: bool = True

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.spline.c.shape[1])

    def curve(self, t: Array, order: int) -> Array:
        """Return dᵏ/dtᵏ q(σ(t)), k = `order`, within [0, duration], (samples, joints) (Faà di Bruno)."""
        s = [self.law.derivative(t, k) for k in range(order + 1)]
        at = s[0][:, 0] if self.period is None else np.mod(s[0][:, 0], self.period)
        q = [np.asarray(self.spline(at, nu=k), dtype=float) for k in range(order + 1)]
        return _chain_rule(q, s)


def _chain_rule(q: list[Array], s: list[Array]) -> Array:
    """Return the highest derivative of q(σ(t)) from those of q by σ and of σ by t, orders 0 to 4."""
    match len(q) - 1:
        case 0:
            return q[0]
        case 1:
            return q[1] * s[1]
        case 2:
            return q[2] * s[1] ** 2 + q[1] * s[2]
        case 3:
            return q[3] * s[1] ** 3 + 3.0 * q[2] * s[1] * s[2] + q[1] * s[3]
        case _:
            second = 4.0 * s[1] * s[3] + 3.0 * s[2] ** 2
            return q[4] * s[1] ** 4 + 6.0 * q[3] * s[1] ** 2 * s[2] + q[2] * second + q[1] * s[4]


def ellipse_trajectory(
    robot: Robot,
    duration: float = 10.0,
    *,
    center: ArrayLike | None = None,
    axes: ArrayLike | None = None,
    rotation: ArrayLike | None = None,
    home: ArrayLike | None = None,
    period: float = PERIOD,
    fade: float | None = None,
) -> Differentiable:
    """Return turns on an ellipse in a plane z = constant with a fixed tool, one turn in `period` (s) once at speed.

    ``x = center + (a cos σ, b sin σ, 0)`` with `center` (3,) and half `axes` (2,), m; the usual ones (z = 0.65 m)
    unless given, in proportion for arms shorter than 0.9 m. `rotation` (3, 3) holds the tool; else it points down,
    forwards or up, whatever can be followed first. σ starts from rest and stops at rest over `fade` (s, one period).
    From `home` (joints,) a smooth joint move leads to the first point; without it the motion begins there. The
    `duration` (s) includes that. Solutions are tried from the nearest to home; one that keeps every limit is taken.
    """
    refuse_unless_positive(duration=duration, period=period)
    middle, half = _ellipse(robot, center, axes)

    def path(sigma: Array) -> Array:
        offsets: Array = np.stack([half[0] * np.cos(sigma), half[1] * np.sin(sigma), 0.0 * sigma], axis=1)
        return middle + offsets

    def law(time: float) -> Piecewise:
        return _turns(time, 2.0 * np.pi / period, min(period if fade is None else fade, 0.45 * time))

    return _first_that_works(robot, path, (2.0 * np.pi, True), law, duration, rotation, home)


def line_trajectory(
    robot: Robot,
    begin: ArrayLike,
    end: ArrayLike,
    duration: float = 10.0,
    *,
    rotation: ArrayLike | None = None,
    home: ArrayLike | None = None,
    period: float = PERIOD,
) -> Differentiable:
    """Return motions to and fro on a straight line between two points (3,), m, with a fixed tool, in `period` (s) each.

    As many as fit into `duration` (s); the tool stops smoothly at both ends. The rest as for the ellipse.
    """
    refuse_unless_positive(duration=duration, period=period)
    first, last = (_point(values, 3, name) for values, name in ((begin, "begin"), (end, "end")))

    def path(sigma: Array) -> Array:
        return first + np.multiply.outer(sigma, last - first)

    def law(time: float) -> Piecewise:
        return _to_and_fro(time, period)

    return _first_that_works(robot, path, (1.0, False), law, duration, rotation, home)


def arm_length(robot: Robot) -> float:
    """Return the sum of the distances from joint to joint to tool, m, without the pedestal below the second joint."""
    parts = [*robot.translations[2:], robot.tool_translation]
    return float(sum(np.linalg.norm(part) for part in parts))


def _ellipse(robot: Robot, center: ArrayLike | None, axes: ArrayLike | None) -> tuple[Array, Array]:
    """Return centre (3,) and half axes (2,), m."""
    scale = min(1.0, arm_length(robot) / LENGTH)
    middle = scale * np.array(CENTER) if center is None else _point(center, 3, "center")
    half = scale * np.array(AXES) if axes is None else _point(axes, 2, "axes")
    if (half <= 0.0).any():
        raise ModelError(f"axes must be two positive lengths in m. Got {half.tolist()} instead.")
    return middle, half


def _point(values: ArrayLike, size: int, name: str) -> Array:
    point = np.asarray(values, dtype=float)
    if point.shape != (size,) or not np.isfinite(point).all():
        raise ShapeError(f"{name} must be {size} finite numbers in m. Got {values!r} instead.")
    return point


def _turns(time: float, speed: float, fade: float) -> Piecewise:
    """Return σ(t) that turns at `speed` (rad/s), from rest and to rest within `time` (s)."""
    way = speed * (time - fade)
    return join(run(np.zeros(1), np.array([way]), speed / way, fade, "smooth"), True, time)


def _to_and_fro(time: float, period: float) -> Piecewise:
    """Return σ(t) between 0 and 1, half a `period` (s) each way, as often as fits into `time` (s)."""
    count = int(time / period + 1e-9)
    if count < 1:
        raise ModelError(f"duration must hold the approach and one period, {period} s. {time:.3g} s are left.")
    speed = 2.0 * 2.0 / period
    pieces: list[Piece] = []
    for begin, step in ((0.0, 1.0), (1.0, -1.0)) * count:
        pieces += run(np.array([begin]), np.array([step]), speed, 0.25 * period, "smooth")
    return join(pieces, True, time)


def _first_that_works(
    robot: Robot,
    path: Path,
    extent: tuple[float, bool],
    law: Callable[[float], Piecewise],
    duration: float,
    rotation: ArrayLike | None,
    home: ArrayLike | None,
) -> Differentiable:
    """Return the motion on the first branch of solutions that is continuous and within all limits."""
    refusals: list[JointwiseError] = []
    tools = TOOLS if rotation is None else (np.asarray(rotation, dtype=float),)
    for tool in tools:
        for start in all_solutions(robot, path(np.zeros(1))[0], tool, home, tries=64)[:BRANCHES]:
            try:
                for grid in (COARSE_GRID, GRID):
                    spline = _solved(robot, path, extent, tool, start, grid)
                    motion = _from_home(robot, spline, extent, law, duration, home)
                    refuse_outside_limits(robot, motion, 100.0 if grid == COARSE_GRID else 500.0)
            except ReachError as refusal:
                refusals.append(refusal)
            except ModelError as refusal:  # reached, but not so fast: with this tool other solutions do no better
                refusals.append(refusal)
                break
            else:
                return motion
    return _refuse(robot, path, tools[0], home, refusals)


def _refuse(robot: Robot, path: Path, tool: Array, home: ArrayLike | None, refusals: list[JointwiseError]) -> NoReturn:
    """Raise the most telling refusal: a limit, else the first point out of reach."""
    telling = [refusal for refusal in refusals if isinstance(refusal, ModelError)] or refusals
    if telling:
        raise telling[0]
    follow_path(robot, path(np.zeros(1)), tool, home)
    raise ReachError("no solution at the first point of the path was found.")


def _solved(robot: Robot, path: Path, extent: tuple[float, bool], tool: Array, start: Array, grid: int) -> Any:
    """Return the quintic spline q(σ) through solutions on a grid of σ from 0 to `extent`, periodic or not."""
    far, closed = extent
    sigma = np.linspace(0.0, far, grid + 1)
    q = follow_path(robot, path(sigma), tool, start, largest_step=0.25 if grid == GRID else 1.0)
    if closed:
        gap = float(np.abs(q[-1] - q[0]).max())
        if gap > 1e-9:
            raise ReachError(f"the joints do not come back after one turn of the path: they are {gap:.3g} away.")
        q[-1] = q[0]
    from scipy.interpolate import make_interp_spline

    return make_interp_spline(sigma, q, k=5, bc_type="periodic" if closed else None)


def _from_home(
    robot: Robot,
    spline: Any,
    extent: tuple[float, bool],
    law: Callable[[float], Piecewise],
    duration: float,
    home: ArrayLike | None,
) -> PathMotion | Succession:
    """Return the motion along a solved path, after a smooth move from home if there is one."""
    period = extent[0] if extent[1] else None
    first = np.asarray(spline(0.0), dtype=float)
    if home is None or np.abs(first - home).max() < 1e-12:
        return PathMotion(duration, spline, law(duration), period)
    room = room_of(robot, 0.5)
    points = np.stack([np.asarray(home, dtype=float), first])
    approach = joint_moves(points, room.velocity, room.acceleration / PEAKS["smooth"], ramp="smooth")
    left = duration - approach.duration
    if left <= 0.0:
        raise DurationError("the approach from home", approach.duration, duration)
    return succession([approach, PathMotion(left, spline, law(left), period)])
