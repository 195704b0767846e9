"""Feedback gains from a bandwidth and a damping ratio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.arguments import checked, checked_fields
from jointwise.control.joint_drive import JointDrive
from jointwise.description.robot import Payload, Robot
from jointwise.errors import ModelError, ShapeError
from jointwise.model.rigid import mass_matrix
from jointwise.model.transmission import motor_inertia
from jointwise.spatial import Array

FASTEST = 8.0
"""Default bandwidth (Hz) unless a spring or the rate limits it."""
TYPICAL_ACCELERATION = 100.0
"""rad/s² at which the effort limit of a joint accelerates its rotor, where the rotor is not described."""
POSES = 64
"""Poses of a reference at which inertias are taken."""


@checked_fields
@dataclass(frozen=True)
class Gains:
    """PID gains for a unit of inertia: ``ë + kd ė + kp e + ki ∫e = 0``; each a number or (joints,).

    Attributes:
        kp: Gain of the position error, 1/s².
        kd: Gain of the speed error, 1/s.
        ki: Gain of the integral, 1/s³.
    """

    kp: float | Array
    kd: float | Array
    ki: float | Array = 0.0

    def __post_init__(self) -> None:
        """Reject negative gains."""
        for name in ("kp", "kd", "ki"):
            value = np.asarray(getattr(self, name), dtype=float)
            if not (np.isfinite(value).all() and (value >= 0.0).all()):
                raise ModelError(f"{name} must be finite and >= 0. Got {value.tolist()} instead.")


@checked
def bandwidth_gains(bandwidth: float | Array, damping: float = 1.0, integral: float = 0.0) -> Gains:
    """Return gains that put the poles at ``(s² + 2 ζ ω s + ω²)(s + r ω)``, ω = 2π · bandwidth.

    Args:
        bandwidth: Bandwidth, Hz, one number or (joints,).
        damping: ζ.
        integral: r, speed of the integral relative to the rest; 0 for no integral.
    """
    w = 2.0 * np.pi * np.asarray(bandwidth, dtype=float)
    if not (w.size and np.isfinite(w).all() and (w > 0.0).all()):
        raise ModelError(f"bandwidth must be positive, in Hz. Got {np.asarray(bandwidth).tolist()} instead.")
    r = integral * w
    return Gains(w**2 + 2.0 * damping * w * r, 2.0 * damping * w + r, r * w**2)


def drives_for(robot: Robot, drives: Sequence[JointDrive] | None) -> tuple[JointDrive, ...]:
    """Return one drive a joint; without any, rigid ones with the rotors that the description gives."""
    if drives is None:
        return tuple(JointDrive(inertia=float(rotor)) for rotor in robot.rotor_inertias)
    if len(drives) != robot.dof:
        raise ModelError(f"drives must have one entry for each of {robot.dof} joints. Got {len(drives)} instead.")
    return tuple(drives)


def rotor_inertias(drives: Sequence[JointDrive]) -> Array:
    """Return B of every joint, kg m², (joints,)."""
    return np.array([drive.inertia for drive in drives])


def feedback_rotors(robot: Robot, drives: Sequence[JointDrive] | None) -> Array:
    """Return B by which gains are scaled, kg m², (joints,): that of the drives, or of the description.

    If neither has it, B is the inertia that the effort limit accelerates at 100 rad/s²: a rotor behind a large gear is
    most of the inertia of a wrist, and gains without it would not overcome its friction. No feed-forward uses it.
    """
    if drives is not None:
        return rotor_inertias(drives)
    guessed = [(joint.limits.effort or 0.0) / TYPICAL_ACCELERATION for joint in robot.joints]
    known = [joint.motor.reflected_inertia for joint in robot.joints]
    return np.array([guess if value is None else value for value, guess in zip(known, guessed, strict=True)])


@checked
def effective_inertias(robot: Robot, q: Array, payload: Payload | None = None) -> Array:
    """Return the effective inertias ``J_i = mean M_ii(q)`` along a motion, without rotors.

    They are those of the motors where a transmission couples them with the joints.

    Args:
        robot: The robot.
        q: Positions along the motion, (samples, joints).
        payload: Payload at the tool; None for none.

    Returns:
        J, (joints,), kg m².
    """
    if np.ndim(q) != 2 or not len(q):
        raise ShapeError(f"q must have shape (samples, {robot.dof}). Got {np.shape(q)} instead.")
    rows = q[np.unique(np.linspace(0, len(q) - 1, min(len(q), POSES)).astype(int))]
    M = motor_inertia(robot, mass_matrix(robot, rows, payload=payload))
    diagonal: Array = np.einsum("kii->ki", M).mean(axis=0)
    return diagonal


@checked
def default_bandwidth(inertias: Array, drives: Sequence[JointDrive], rate: float) -> Array:
    """Return bandwidths (joints,) in Hz that suit the arm: half the frequency of the link on its spring, at most 8 Hz.

    ``f = ½ √(k / J) / 2π`` with J the effective inertia and k the stiffness at rest; and at most a 60th of `rate`.
    """
    if np.shape(inertias) != (len(drives),):
        raise ShapeError(f"inertias must have one entry for each of {len(drives)} drives. Got {np.shape(inertias)}.")
    free = [np.inf if d.spring is None else float(d.spring.stiffness(np.zeros(()))) for d in drives]
    springs = 0.5 * np.sqrt(np.array(free) / inertias) / (2.0 * np.pi)
    result: Array = np.minimum(np.minimum(springs, FASTEST), rate / 60.0)
    return result


@checked
def default_gains(inertias: Array, drives: Sequence[JointDrive], rate: float, integral: float = 0.0) -> Gains:
    """Return critically damped gains at the default bandwidth of the slowest joint.

    One bandwidth for all, as joints that are scaled by a full M(q) share it.
    """
    return bandwidth_gains(float(default_bandwidth(inertias, drives, rate).min()), 1.0, integral)
