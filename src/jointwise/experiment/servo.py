"""The servo of an industrial arm: feed-forward of the rigid model, and a cascade on the rotors' encoders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.control_law import AffineControl
from jointwise.model.rigid import mass_matrix
from jointwise.simulation.references.trajectory import States
from jointwise.simulation.robot import DigitalRobot
from jointwise.spatial import Array

BANDWIDTH = 2.0 * np.pi * 10.0
"""Natural frequency of the loop around a joint, rad/s; at most that of the link on its spring."""
DAMPING = 0.9
INTEGRATION = 4.0
"""Integral gain over proportional gain, 1/s."""
POSES = 32


@dataclass(frozen=True)
class Servo:
    """``u = u_model - Kθ (θ - θ_d) - Kω (ω - ω_d) - Ki ∫ (q - q_d) dt``, ``θ_d = q_d + τ_load / K``.

    `k_theta` (Nm/rad), `k_speed` (Nm s/rad), `ki` (Nm/(rad s)); `compliance` 1/K of the gears (rad/Nm) and
    `rotor_inertias` (kg m²) that the servo knows; all (joints,). Position and speed are taken at the rotor, where
    feedback cannot shake the gear's spring; only the slow integral looks at the link.
    """

    k_theta: Array
    k_speed: Array
    ki: Array
    compliance: Array
    rotor_inertias: Array

    def law(self, periods: object, states: States, torque: Array) -> AffineControl:
        """Return the law along some states; `torque` (periods, joints) of the rigid model at each, Nm."""
        load = torque - self.rotor_inertias * states.qdd
        return AffineControl(
            torque=torque, q=states.q, theta=states.q + self.compliance * load, speed=states.qd,
            k_theta=self.k_theta, k_speed=self.k_speed, ki=self.ki,
        )  # fmt: skip

    def to_dict(self) -> dict[str, list[float]]:
        """Return the gains as a document."""
        return {name: values.tolist() for name, values in vars(self).items()}


def make_servo(digital: DigitalRobot, q: Array, bandwidth: float | None = None) -> Servo:
    """Return a servo for motions about positions q (samples, joints), rad, of a bandwidth (rad/s; None: the usual)."""
    poses = q[np.linspace(0, len(q) - 1, POSES).astype(int)]
    links = np.diagonal(mass_matrix(digital.robot, poses, payload=digital.payload), axis1=1, axis2=2).mean(axis=0)
    rotors = np.array([joint.inertia for joint in digital.joints])
    stiffness = np.array([float(joint.stiffness.stiffness(np.zeros(()))) for joint in digital.joints])
    omega = np.minimum(BANDWIDTH, np.sqrt(stiffness / links)) if bandwidth is None else bandwidth
    k_theta = (links + rotors) * omega**2
    return Servo(
        k_theta=k_theta,
        k_speed=2.0 * DAMPING * omega * (links + rotors),
        ki=INTEGRATION * k_theta,
        compliance=1.0 / stiffness,
        rotor_inertias=rotors,
    )
