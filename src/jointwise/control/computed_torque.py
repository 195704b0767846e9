"""Computed torque: the model's torque along the reference, and a PID scaled by the mass matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jointwise.control.controller import AffineController
from jointwise.control.gains import Gains, drives_for, effective_inertias, feedback_rotors, rotor_inertias, usual_gains
from jointwise.control.links import Links, checked_joints, deformations, lead_time, plus_friction
from jointwise.control.pd import Side, feedback_law, integral_law
from jointwise.control.reference import as_reference
from jointwise.description.mounting import Mounting
from jointwise.description.payload import Payload
from jointwise.description.robot import Robot
from jointwise.model.control_law import AffineControl
from jointwise.model.joint_drive import JointDrive
from jointwise.spatial import Array


def computed_torque(
    robot: Robot,
    motion: Any,
    rate: float = 1000.0,
    *,
    gains: Gains | None = None,
    drives: Sequence[JointDrive] | None = None,
    friction: Array | None = None,
    gravity: Mounting = "table",
    payload: Payload | None = None,
    side: Side = "motor",
    duration: float | None = None,
) -> AffineController:
    """Return ``u = M(q_d) q̈_d + C q̇_d + g + f - M(q_d) (kd ė + kp e + ki ∫ (q - q_d) dt)``, rotors in M.

    ``e = θ - θ_d`` with ``θ_d = q_d + φ(τ_d)``, the spring's deformation under the torque of the links; on the `link`
    side ``e = q - q_d``. `friction` (periods, joints) is a feed-forward f in Nm (see `friction_torques`). On a rigid
    arm with a matching model the error obeys ``ë + kd ė + kp e + ki ∫e = 0``.
    """
    reference, own = as_reference(motion, rate, duration), drives_for(robot, drives)
    checked_joints(robot, reference.q.shape[1])
    links, rotors = Links(robot, gravity, payload), rotor_inertias(own)
    ahead = reference.shifted(lead_time(own, rate))
    feed = links.torque(ahead.q, ahead.qd, ahead.qdd) + rotors * ahead.qdd
    M = links.inertia(reference.q, feedback_rotors(robot, drives))
    chosen = gains or usual_gains(effective_inertias(robot, reference.inertia_poses, payload), own, rate)
    loads = links.torque(reference.q, reference.qd, reference.qdd)
    position = reference.q + deformations(own, loads) if side == "motor" else reference.q
    feedback = feedback_law(side, position, reference.qd, _scaled(M, chosen.kp), _scaled(M, chosen.kd))
    integral = integral_law(reference.q, _scaled(M, chosen.ki))
    return AffineController(AffineControl(torque=plus_friction(feed, friction), **(feedback | integral)), rate)


def _scaled(M: Array, gain: float | Array) -> Array:
    """Return M(q) diag(gain), (periods, joints, joints)."""
    scaled: Array = M * np.broadcast_to(np.asarray(gain, dtype=float), M.shape[1])
    return scaled
