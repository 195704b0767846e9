"""Feed-forward of elastic joints: rotor motion and motor torque from the link's motion alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from jointwise.arguments import checked
from jointwise.control.controller import AffineControl, AffineController
from jointwise.control.gains import Gains, drives_for, rotor_inertias
from jointwise.control.joint_drive import JointDrive
from jointwise.control.links import Links, TaskOptions, friction_torques, make_task, plus_friction
from jointwise.control.pd import feedback_law, integral_law
from jointwise.control.reference import Reference
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel


@dataclass(frozen=True)
class DriveMotion:
    """What the drives must do for the links to move as wanted, (samples, joints) each.

    Attributes:
        theta: Rotor positions after the gear, rad.
        speed: Rotor speeds after the gear, rad/s.
        acceleration: Rotor accelerations after the gear, rad/s².
        torque: Torques of the motors without friction, Nm.
    """

    theta: Array
    speed: Array
    acceleration: Array
    torque: Array


@checked
def drive_motion(links: Links, drives: Sequence[JointDrive], reference: Reference) -> DriveMotion:
    """Return the motion of the rotors and the torque of the motors that a motion of the links needs.

    ``τ = M q̈ + C q̇ + g``, ``θ = q + φ(τ - D φ̇)``, ``τ_m = B θ̈ + τ`` with ``φ̇ = τ̇ / k`` and
    ``φ̈ = τ̈ / k - k' τ̇² / k³``, ``k = dτ_J/dφ`` at φ(τ): snap enters through τ̈. The spring's damping D counts to first
    order, in the position alone; at the knees of a segmented spring φ̇ jumps.
    """
    if reference.jerk is None or reference.snap is None:
        raise ModelError("elastic joints need jerk and snap. Use a motion with derivative(t, order) up to 4.")
    drives_for(links.robot, drives)
    torque, first, second = links.torque_rates(reference)
    phi, phi_d, phi_dd = (np.zeros_like(torque) for _ in range(3))
    for j, drive in enumerate(drives):
        if drive.spring is not None:
            phi[:, j], phi_d[:, j], phi_dd[:, j] = _deformation(drive, torque[:, j], first[:, j], second[:, j])
    acceleration = reference.qdd + phi_dd
    needed = rotor_inertias(drives) * acceleration + torque
    return DriveMotion(reference.q + phi, reference.qd + phi_d, acceleration, needed)


def _deformation(drive: JointDrive, torque: Array, first: Array, second: Array) -> tuple[Array, Array, Array]:
    """Return φ, φ̇ and φ̈ (samples,) of a spring that transmits a torque with its derivatives."""
    spring = drive.spring
    assert spring is not None
    phi = spring.deformation(torque)
    k, slope = spring.stiffness(phi), spring.curvature(phi)
    phi_d = first / k
    phi_dd = second / k - slope * first**2 / k**3
    return spring.deformation(torque - drive.damping * phi_d), phi_d, phi_dd


@checked
def flexible_feedforward(
    robot: Robot | RobotModel,
    motion: Any,
    rate: float = 1000.0,
    *,
    drives: Sequence[JointDrive],
    gains: Gains | None = None,
    friction: Array | bool = True,
    **options: Unpack[TaskOptions],
) -> AffineController:
    """Return ``u = τ_m(q_d .. q_d⁽⁴⁾) + f - J (kp (θ - θ_d) + kd (ω - θ̇_d) + ki ∫ (q - q_d) dt)``.

    τ_m, θ_d and θ̇_d are those of `drive_motion`; J the effective inertia of each joint with its rotor. `friction` is
    the steady friction of the drives at the planned speed, an array (periods, joints) in Nm instead of it, or False.
    `Gains(0, 0)` is feed-forward only.
    """
    task = make_task(robot, motion, rate, drives, gains=gains, **options)
    chosen = task.gains()
    total = task.inertias + rotor_inertias(task.drives)
    wanted, ahead = (drive_motion(task.links, task.drives, part) for part in (task.reference, task.ahead))
    feed = plus_friction(ahead.torque, friction_feed(task.drives, ahead.speed, friction))
    feedback = feedback_law("motor", wanted.theta, wanted.speed, total * chosen.kp, total * chosen.kd)
    law = AffineControl(torque=feed, **(feedback | integral_law(task.reference.q, total * chosen.ki)))
    return AffineController(task.links.law(law), rate)


def friction_feed(drives: Sequence[JointDrive], speed: Array, friction: Array | bool) -> Array | None:
    """Return the friction feed-forward: that of the drives (True), the array itself, or none (False)."""
    if isinstance(friction, bool):
        return friction_torques(drives, speed) if friction else None
    return friction
