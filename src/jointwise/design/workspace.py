"""Paths of the tool in the workspace: an ellipse, by inverse kinematics.

The joint positions are solved on a grid of the path parameter σ and joined by a periodic quintic spline q(σ); a
polynomial time law σ(t) starts and stops at rest. Derivatives follow by the chain rule, snap included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked
from jointwise.description.robot import Robot
from jointwise.design.limits import check_limits, motion_limits
from jointwise.design.piecewise import PEAKS, Piecewise, join, joint_moves, run
from jointwise.design.trajectory import Differentiable, DurationError, Succession, check_positive, succession
from jointwise.errors import JointwiseError, ModelError, ShapeError
from jointwise.model.inverse_kinematics import ReachError, all_solutions, follow_path
from jointwise.spatial import Array, rotation_x, rotation_y

GRID = 400
"""Intervals of σ on which a path is solved."""
COARSE_GRID = 32
"""Intervals of a first, coarse solution, which rejects impossible paths quickly."""
BRANCHES = 8
"""Largest number of solutions at the first point from which a path is followed."""
CENTER = (0.4, 0.0, 0.65)
"""Centre of the default ellipse, m, for an arm of `LENGTH` or longer; it is scaled down for shorter arms."""
AXES = (0.1, 0.15)
"""Its half axes along x and y, m."""
LENGTH = 0.9
"""Length (m) of the shortest arm that draws the default ellipse at full size."""
PERIOD = 2.0
"""Time of one turn, s."""
TOOLS = (rotation_x(np.pi), rotation_y(0.5 * np.pi), np.eye(3))
"""Tool orientations tested in this order by default: down, forwards along x, up."""

Path = Callable[[Array], Array]
"""Positions (samples, 3), m, at path parameters σ (samples,)."""


@dataclass(frozen=True)
class PathMotion(Differentiable):
    """A motion q(σ(t)) along a closed path.

    Attributes:
        duration: Duration, s.
        spline: q (rad or m) and its derivatives as a function of σ.
        law: σ(t), one column.
        period: Period of σ after which the path is closed.
        smooth: Whether acceleration, jerk and snap are continuous.
    """

    duration: float
    spline: Any
    law: Piecewise
    period: float
    smooth: bool = True

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.spline.c.shape[1])

    def curve(self, t: Array, order: int) -> Array:
        """Return dᵏ/dtᵏ q(σ(t)), k = `order`, within [0, duration], (samples, joints) (Faà di Bruno)."""
        s = [self.law.derivative(t, k) for k in range(order + 1)]
        at = np.mod(s[0][:, 0], self.period)
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


@checked
def ellipse_trajectory(
    robot: Robot,
    duration: float = 10.0,
    *,
    center: ArrayLike | None = None,
    axes: ArrayLike | None = None,
    home: ArrayLike | None = None,
    period: float = PERIOD,
) -> Differentiable:
    """Return turns on an ellipse in a plane z = constant with a fixed tool, one turn in `period` (s) once at speed.

    ``x = center + (a cos σ, b sin σ, 0)`` with `center` (3,) and half `axes` (2,), m; the defaults (z = 0.65 m) are
    scaled down for arms shorter than 0.9 m. The tool points in the first of the directions down, forwards and up that
    is possible. σ starts from rest and stops at rest over one period.
    From `home` (joints,), if any, a smooth joint move leads to the first point; `duration` (s) includes it. Solutions
    of the inverse kinematics are tested from the nearest to home; the first within all limits is used.
    """
    check_positive(duration=duration, period=period)
    middle, half = _ellipse(robot, center, axes)

    def path(sigma: Array) -> Array:
        offsets: Array = np.stack([half[0] * np.cos(sigma), half[1] * np.sin(sigma), 0.0 * sigma], axis=1)
        return middle + offsets

    def law(time: float) -> Piecewise:
        return _turns(time, 2.0 * np.pi / period, min(period, 0.45 * time))

    return _first_feasible(robot, path, 2.0 * np.pi, law, duration, home)


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
        raise ShapeError(f"{name} must be {size} finite numbers in m. Got {point.tolist()} instead.")
    return point


def _turns(time: float, speed: float, fade: float) -> Piecewise:
    """Return σ(t) that turns at `speed` (rad/s), from rest and to rest within `time` (s)."""
    distance = speed * (time - fade)
    return join(run(np.zeros(1), np.array([distance]), speed / distance, fade, "smooth"), True, time)


def _first_feasible(
    robot: Robot,
    path: Path,
    extent: float,
    law: Callable[[float], Piecewise],
    duration: float,
    home: ArrayLike | None,
) -> Differentiable:
    """Return the motion on the first branch of solutions that is continuous and within all limits."""
    errors: list[JointwiseError] = []
    for tool in TOOLS:
        for start in all_solutions(robot, path(np.zeros(1))[0], tool, home, tries=64)[:BRANCHES]:
            try:
                for grid in (COARSE_GRID, GRID):
                    spline = _solved(robot, path, extent, tool, start, grid)
                    motion = _from_home(robot, spline, extent, law, duration, home)
                    check_limits(robot, motion, 100.0 if grid == COARSE_GRID else 500.0)
            except ReachError as error:
                errors.append(error)
            except ModelError as error:  # reachable but too fast: other solutions with this tool are no better
                errors.append(error)
                break
            else:
                return motion
    raise _path_error(robot, path, home, errors)


def _path_error(robot: Robot, path: Path, home: ArrayLike | None, errors: list[JointwiseError]) -> JointwiseError:
    """Return the most informative error: a violated limit, else the first point out of reach."""
    informative = [error for error in errors if isinstance(error, ModelError)] or errors
    if informative:
        return informative[0]
    follow_path(robot, path(np.zeros(1)), TOOLS[0], home)  # raises with the reason if the first point is out of reach
    return ReachError("no solution at the first point of the path was found.")


def _solved(robot: Robot, path: Path, extent: float, tool: Array, start: Array, grid: int) -> Any:
    """Return the periodic quintic spline q(σ) through solutions on a grid of σ from 0 to `extent`."""
    sigma = np.linspace(0.0, extent, grid + 1)
    q = follow_path(robot, path(sigma), tool, start, largest_step=0.25 if grid == GRID else 1.0)
    gap = float(np.abs(q[-1] - q[0]).max())
    if gap > 1e-9:
        raise ReachError(f"the joints do not come back after one turn of the path: they are off by {gap:.3g}.")
    q[-1] = q[0]
    from scipy.interpolate import make_interp_spline

    return make_interp_spline(sigma, q, k=5, bc_type="periodic")


def _from_home(
    robot: Robot,
    spline: Any,
    extent: float,
    law: Callable[[float], Piecewise],
    duration: float,
    home: ArrayLike | None,
) -> PathMotion | Succession:
    """Return the motion along a solved path, after a smooth move from home if any."""
    first = np.asarray(spline(0.0), dtype=float)
    if home is None or np.abs(first - home).max() < 1e-12:
        return PathMotion(duration, spline, law(duration), extent)
    limits = motion_limits(robot, 0.5)
    points = np.stack([np.asarray(home, dtype=float), first])
    approach = joint_moves(points, limits.velocity, limits.acceleration / PEAKS["smooth"], ramp="smooth")
    remaining = duration - approach.duration
    if remaining <= 0.0:
        raise DurationError("the approach from home", approach.duration, duration)
    return succession([approach, PathMotion(remaining, spline, law(remaining), extent)])
