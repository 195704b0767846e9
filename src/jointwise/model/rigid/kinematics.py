"""Where the links are and how they move: frames and Jacobian, batched over samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.description.robot import Robot
from jointwise.errors import ShapeError
from jointwise.model.rigid.chain import checked_states, kernels, kinematic_chain, refuse_non_finite
from jointwise.spatial import Array


@dataclass(frozen=True)
class Frames:
    """Frames {1} .. {n} and the tool in the base.

    Attributes:
        rotation: Rotations, (samples, n + 1, 3, 3).
        position: Positions of the origins, (samples, n + 1, 3), m.
    """

    rotation: Array
    position: Array

    @property
    def tool(self) -> tuple[Array, Array]:
        """Rotation (samples, 3, 3) and position (samples, 3) of the tool."""
        return self.rotation[:, -1], self.position[:, -1]


def forward_kinematics(robot: Robot, q: Array) -> Frames:
    """Return every frame of the arm in the base for positions q (samples, joints)."""
    q, _, _ = checked_states(robot, q)
    flat = np.empty((len(q), 12 * robot.dof))
    if not kernels().kinematics(kinematic_chain(robot), q, None, None, flat):
        refuse_non_finite(q=q)
    links = flat.reshape(len(q), robot.dof, 12)
    rotation = np.empty((len(q), robot.dof + 1, 3, 3))
    position = np.empty((len(q), robot.dof + 1, 3))
    rotation[:, :-1], position[:, :-1] = links[..., :9].reshape(len(q), robot.dof, 3, 3), links[..., 9:]
    rotation[:, -1] = rotation[:, -2] @ robot.tool_rotation
    position[:, -1] = position[:, -2] + rotation[:, -2] @ robot.tool_translation
    return Frames(rotation, position)


def jacobian(robot: Robot, q: Array) -> Array:
    """Return J with ``[v; ω] = J q̇`` of the tool in base axes, shape (samples, 6, joints).

    Column j is ``[z × (p_tool - o_j); z]`` for a revolute joint, ``[z; 0]`` for a prismatic one.
    """
    frames = forward_kinematics(robot, q)
    axes, origins = frames.rotation[:, :-1, :, 2], frames.position[:, :-1]
    arms = np.cross(axes, frames.position[:, -1:] - origins)
    turns = robot.revolute[None, :, None]
    columns = np.concatenate([np.where(turns, arms, axes), np.where(turns, axes, 0.0)], axis=2)
    return columns.transpose(0, 2, 1)


def wrench_torque(robot: Robot, q: Array, wrench: Array) -> Array:
    """Return Jᵀ w, shape (samples, joints): joint torques equivalent to a wrench on the tool.

    `wrench` (samples, 6) or (6,): force (N) and moment (Nm) at the tool's origin in base axes.
    """
    q, _, _ = checked_states(robot, q)
    w = np.asarray(wrench, dtype=float)
    if w.shape not in ((6,), (len(q), 6)) or not np.isfinite(w).all():
        raise ShapeError(f"wrench must be finite, of shape (6,) or ({len(q)}, 6). Got {w.shape} instead.")
    torque: Array = np.einsum("sij,si->sj", jacobian(robot, q), np.broadcast_to(w, (len(q), 6)))
    return torque
