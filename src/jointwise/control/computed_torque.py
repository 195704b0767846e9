"""Computed torque: the model's torque along the reference, and a PID scaled by the mass matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from jointwise.arguments import checked
from jointwise.control.controller import AffineControl, AffineController
from jointwise.control.gains import rotor_inertias
from jointwise.control.links import FeedbackOptions, deformations, make_task, plus_friction
from jointwise.control.pd import feedback_law, integral_law
from jointwise.description.robot import Robot
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel


@checked
def computed_torque(
    robot: Robot | RobotModel,
    motion: Any,
    rate: float = 1000.0,
    *,
    friction: Array | None = None,
    **options: Unpack[FeedbackOptions],
) -> AffineController:
    """Return ``u = M(q_d) q̈_d + C q̇_d + g + f - M(q_d) (kd ė + kp e + ki ∫ (q - q_d) dt)``, rotors in M.

    ``e = θ - θ_d`` with ``θ_d = q_d + φ(τ_d)``, the spring's deformation under the torque of the links; on the `link`
    side ``e = q - q_d``. `friction` (periods, joints) is a feed-forward f in Nm (see `friction_torques`). On a rigid
    arm with a matching model the error obeys ``ë + kd ė + kp e + ki ∫e = 0``.
    """
    task = make_task(robot, motion, rate, **options)
    links, reference, ahead = task.links, task.reference, task.ahead
    feed = links.torque(ahead.q, ahead.qd, ahead.qdd) + rotor_inertias(task.drives) * ahead.qdd
    M = links.inertia(reference.q, task.rotors)
    chosen = task.gains()
    loads = links.torque(reference.q, reference.qd, reference.qdd)
    position = reference.q + deformations(task.drives, loads) if task.side == "motor" else reference.q
    feedback = feedback_law(task.side, position, reference.qd, _scaled(M, chosen.kp), _scaled(M, chosen.kd))
    integral = integral_law(reference.q, _scaled(M, chosen.ki))
    law = AffineControl(torque=plus_friction(feed, friction), **(feedback | integral))
    return AffineController(links.law(law), rate)


def _scaled(M: Array, gain: float | Array) -> Array:
    """Return M(q) diag(gain), (periods, joints, joints)."""
    scaled: Array = M * np.broadcast_to(np.asarray(gain, dtype=float), M.shape[1])
    return scaled
