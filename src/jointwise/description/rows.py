"""Robots from DH and MDH rows: the three ways people write them, one canonical chain.

With ``A_j = Trans_x(a_j) Rot_x(alpha_j)`` and ``B_j(q) = Rot_z(theta_j + q) Trans_z(d_j)``::

    dh             row j holds B_j then A_j:  T = B_1 A_1 B_2 A_2 ... B_n A_n       (distal, Universal Robots)
    mdh            row j holds A_{j-1} then B_j:  T = A_0 B_1 A_1 B_2 ... B_n       (Craig, Khalil)
    mdh-following  mdh with row j holding d_j and the A_j that follows, A_0 = 1     (AURT's file)

All three are the same product, so frame {j} (on axis j, after B_j) is the same whichever way a robot is written; only
the place of the A in the rows and the frame of the inertials differ. Where rows end with A_n, it is part of the tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from jointwise import spatial
from jointwise.description.robot import Joint, JointKind, Limits, Link, Motor, Robot
from jointwise.spatial import Array

Convention = Literal["dh", "mdh", "mdh-following"]
CONVENTIONS: tuple[str, ...] = get_args(Convention)


@dataclass(frozen=True)
class Placement:
    """A fixed transform ``x' = R x + p``."""

    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))

    def __matmul__(self, other: Placement) -> Placement:
        """Return self followed by other: the product of the two transforms."""
        return Placement(self.rotation @ other.rotation, self.rotation @ other.translation + self.translation)

    def moved(self, inertial: Array) -> Array:
        """Return ten parameters given in the inner frame as seen from the outer one."""
        return spatial.move_inertial(inertial, self.rotation, self.translation)


@dataclass(frozen=True)
class Row:
    """One row of a table (m, rad) with the body it carries: ten parameters in the row's own frame."""

    a: float
    alpha: float
    d: float
    theta: float = 0.0
    name: str = ""
    kind: JointKind = "revolute"
    inertial: Array = field(default_factory=lambda: np.zeros(10))
    limits: Limits = field(default_factory=Limits)
    motor: Motor = field(default_factory=Motor)

    @property
    def across(self) -> Placement:
        """``Trans_x(a) Rot_x(alpha)``."""
        return Placement(spatial.rotation_x(self.alpha), np.array([self.a, 0.0, 0.0]))

    @property
    def along(self) -> Placement:
        """``Rot_z(theta) Trans_z(d)`` at q = 0."""
        return Placement(spatial.rotation_z(self.theta), np.array([0.0, 0.0, self.d]))


def robot_from_rows(
    name: str,
    rows: Sequence[Row],
    convention: Convention,
    *,
    base: Placement | None = None,
    tool: Placement | None = None,
    title: str = "",
    sources: dict[str, str] | None = None,
) -> Robot:
    """Return the robot of a table; `base` stands before the first row, `tool` after the last."""
    follows = convention != "mdh"
    before = base or Placement()
    joints, links = [], []
    for number, row in enumerate(rows, start=1):
        placed = before @ row.along if follows else before @ row.across @ row.along
        joints.append(
            Joint(row.name or f"joint{number}", row.kind, placed.rotation, placed.translation, row.limits, row.motor)
        )
        own = row.across.moved(row.inertial) if convention == "dh" else row.inertial
        links.append(Link(f"link{number}", own))
        before = row.across if follows else Placement()
    end = before @ (tool or Placement())
    return Robot(name, tuple(joints), tuple(links), end.rotation, end.translation, title, sources or {})
