"""PD with gravity, and PID: joint by joint, without the rest of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from jointwise.arguments import checked
from jointwise.control.controller import AffineControl, AffineController
from jointwise.control.links import FeedbackOptions, Side, deformations, make_task
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel


@checked
def pd_gravity(
    robot: Robot | RobotModel, motion: Any, rate: float = 1000.0, **options: Unpack[FeedbackOptions]
) -> AffineController:
    """Return ``u = g(q) - J kp (θ - θ_d) - J kd (ω - q̇_d)``, ``θ_d = q_d + φ(g(q_d))``.

    J is the effective inertia of each joint with its rotor along the motion, φ the deformation of the spring under
    gravity. On the `link` side q and q_d stand for θ and θ_d: no elastic joint is stiff then, and none may be fast.
    """
    task = make_task(robot, motion, rate, **options)
    q, chosen = task.reference.q, task.gains()
    total = task.inertias + task.rotors
    theta = q + deformations(task.drives, task.links.weight(q)) if task.side == "motor" else q
    feedback = feedback_law(task.side, theta, task.reference.qd, total * chosen.kp, total * chosen.kd)
    return AffineController(task.links.law(AffineControl(**feedback, gravity=task.links.chain)), rate)


@checked
def pid(
    robot: Robot | RobotModel, motion: Any, rate: float = 1000.0, **options: Unpack[FeedbackOptions]
) -> AffineController:
    """Return ``u = -J (kp e + kd ė + ki ∫ (q - q_d) dt)``, ``e = θ - q_d`` (q - q_d on the `link` side).

    No model but the effective inertias J that scale the gains: gravity is left to the integral, which is that of the
    link whatever the side, so that springs cause no steady-state error. The option `gravity` has no effect.
    """
    task = make_task(robot, motion, rate, **options)
    reference, chosen = task.reference, task.gains(integral=0.3)
    total = task.inertias + task.rotors
    feedback = feedback_law(task.side, reference.q, reference.qd, total * chosen.kp, total * chosen.kd)
    law = AffineControl(**(feedback | integral_law(reference.q, total * chosen.ki)))
    return AffineController(task.links.law(law), rate)


def feedback_law(side: Side, position: Array, speed: Array, kp: Array, kd: Array) -> dict[str, Any]:
    """Return references and gains of a proportional-derivative feedback on one side of the gear."""
    if side == "motor":
        return {"theta": position, "speed": speed, "k_theta": kp, "k_speed": kd}
    if side == "link":
        return {"q": position, "qd": speed, "kp": kp, "kd": kd}
    raise ModelError(f"side must be 'motor' or 'link'. Got '{side}' instead.")


def integral_law(q: Array, ki: Array) -> dict[str, Any]:
    """Return reference and gain of the integral, nothing for a gain of zero."""
    return {"q": q, "ki": ki} if np.any(ki) else {}
