"""The skeleton of an arm from its kinematics alone: line segments from the base to the tip of the tool.

Between two joint axes a link is its common normal (a limb) and the remaining distance along the next axis (a column).
Where the axes are parallel the common normal is not unique: it is placed at the height of the centre of mass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.model.rigid import forward_kinematics
from jointwise.spatial import Array

THICK, THIN = 0.048, 0.032
"""Radius of the first and of the last link, in lengths of the arm."""
SLENDER = 0.86
"""Radius of a limb, in radii of its joint."""
NEAR = 1e-6
"""Squared sine below which two axes are parallel."""


@dataclass(frozen=True)
class Tool:
    """A tool on the flange: a cylinder along z.

    Attributes:
        length: Length, m.
        radius: Radius, m; None for that of the last link.
    """

    length: float
    radius: float | None = None

    def __post_init__(self) -> None:
        """Check the sizes."""
        if not (np.isfinite(self.length) and self.length > 0.0):
            raise ModelError(f"the length of a tool must be a positive number of m. Got {self.length} instead.")
        if self.radius is not None and not (np.isfinite(self.radius) and self.radius > 0.0):
            raise ModelError(f"the radius of a tool must be a positive number of m. Got {self.radius} instead.")


@dataclass(frozen=True)
class Span:
    """A link between its axis and the next, in the frame of the link: from `start` over `end` to `origin` along `axis`.

    Attributes:
        start: Point on the axis of the link, (3,), m.
        end: Point on the next axis that is closest to it, (3,), m.
        origin: Origin of the next frame, (3,), m.
        axis: Direction of the next axis, (3,), of length 1.
    """

    start: Array
    end: Array
    origin: Array
    axis: Array

    @property
    def limb(self) -> float:
        """Length across the axes, m."""
        return float(np.linalg.norm(self.end - self.start))

    @property
    def entry(self) -> float:
        """Position of the end of the limb on the next axis, m."""
        return float((self.end - self.origin) @ self.axis)

    @property
    def exit(self) -> float:
        """Position of the start of the limb on the axis of the link, m."""
        return float(self.start[2])


def link_spans(robot: Robot) -> list[Span]:
    """Return the spans of base, links 1 .. n-1 and the last link up to the tool."""
    rotations = [*robot.rotations, robot.tool_rotation]
    origins = [*robot.translations, robot.tool_translation]
    heights = [0.0, *(float(link.center_of_mass[2]) if link.mass > 0.0 else 0.0 for link in robot.links)]
    heights[-1] = 0.0  # no joint follows the last link
    return [_span(R[:, 2], p, h) for R, p, h in zip(rotations, origins, heights, strict=True)]


def arm_length(robot: Robot) -> float:
    """Return the length of limbs and columns from base to tool, m; 1 for an arm without any."""
    return sum(span.limb + abs(span.entry) for span in link_spans(robot)) or 1.0


def arm_radii(robot: Robot) -> Array:
    """Return the radii of base, links and tool, (joints + 2,) in m."""
    return arm_length(robot) * np.linspace(THICK, THIN, robot.dof + 2)


def _span(axis: Array, origin: Array, height: float) -> Span:
    """Return the common normal of the z axis and the line ``origin + s · axis``, at `height` if they are parallel."""
    z = np.array([0.0, 0.0, 1.0])
    sine2 = 1.0 - axis[2] ** 2
    if sine2 > NEAR:
        s = (origin[2] * axis[2] - origin @ axis) / sine2
        end = origin + s * axis
        return Span(end[2] * z, end, origin, axis)
    apart = float(np.hypot(origin[0], origin[1])) > NEAR
    start = height * z if apart else np.zeros(3)
    return Span(start, origin + ((start - origin) @ axis) * axis, origin, axis)


@dataclass(frozen=True)
class Skeleton:
    """A robot and its tool as line segments from corner to corner.

    The corners, in order: start and end of the limb of the base and of every link, the flange, the tip of the tool (the
    flange again if there is none). A column, also that of a prismatic joint, lies between the end of a limb and the
    next start.
    """

    robot: Robot
    tool: Tool | None = None

    @cached_property
    def radii(self) -> Array:
        """Radii (2 joints + 3,), m, of the segments between the corners: limbs and columns in turn, the tool."""
        radii, tool = arm_radii(self.robot), self.tool
        arm = np.stack([SLENDER * radii[:-1], radii[1:]], axis=1).ravel()  # a column is the joint before the next link
        return np.append(arm, radii[-1] if tool is None or tool.radius is None else tool.radius)

    @cached_property
    def _limbs(self) -> Array:
        """Starts and ends of the limbs in the frames of their links, (joints + 1, 2, 3) in m."""
        return np.array([[span.start, span.end] for span in link_spans(self.robot)])

    def corners(self, q: Array) -> Array:
        """Return the corners in the base, (samples, 2 joints + 4, 3) in m, for q (samples, joints)."""
        frames, limbs, n = forward_kinematics(self.robot, q), self._limbs, self.robot.dof
        placed = np.empty((len(q), 2 * n + 4, 3))
        placed[:, :2] = limbs[0]
        for j in range(n):
            rotated = limbs[j + 1] @ frames.rotation[:, j].swapaxes(1, 2)
            placed[:, 2 * j + 2 : 2 * j + 4] = frames.position[:, j, None] + rotated
        placed[:, -2] = frames.position[:, -1]
        length = 0.0 if self.tool is None else self.tool.length
        placed[:, -1] = frames.position[:, -1] + length * frames.rotation[:, -1, :, 2]
        return placed
