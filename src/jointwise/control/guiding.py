"""Hand guiding: gravity and friction compensated, so that a person moves the arm with little force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked
from jointwise.backend import native
from jointwise.control.adaptive_friction import make_friction_model
from jointwise.control.controller import ControlSample
from jointwise.control.gains import drives_for
from jointwise.control.joint_drive import JointDrive
from jointwise.control.links import Links
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.errors import ModelError
from jointwise.runtime.friction_estimator import DriveSample, FrictionModel
from jointwise.runtime.slip_friction import SlipFriction
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel

SHARE = 0.85
"""Share of friction that is compensated: what is left holds the arm where it is released."""
LARGEST_SHARE = 0.95
"""More would be as much as friction varies: the arm could move by itself."""


class GuidingState(NamedTuple):
    """Memory of hand guiding.

    Attributes:
        friction: State of friction along the measured motion.
        last: Last finite measurements, (6, joints), in the order of `ControlSample.arrays`.
        dropped: Number of samples with a value that was not finite.
    """

    friction: Any
    last: Array
    dropped: int = 0


@dataclass(frozen=True, eq=False)
class HandGuiding:
    """``u = g(q) + C q̇ + s f(θ, ω, τ_J, T) - d ω``: gravity and the share s of friction; d is extra damping.

    Friction is that of slip elements along the measured path: its sign is known before the joint slides, from the first
    micrometres that a hand moves it, and at rest nothing switches. A value that is not finite counts as the last one
    that was: the arm is carried on. With the native kernel a step is one call of C.

    Attributes:
        model: Torque of the robot in parts.
        limits: Largest torques of the motors, (joints,), Nm.
        rate: Control rate, Hz.
        share: s.
        damping: d, (joints,), Nm s/rad.
        periods: Number of control periods; None for no end.
    """

    model: FrictionModel = field(repr=False)
    limits: Array
    rate: float
    share: float
    damping: Array
    periods: int | None = None

    def init(self, sample: ControlSample) -> GuidingState:
        """Return the memory at the start: gears relaxed."""
        last = np.array(sample.arrays)
        if not np.isfinite(last).all():
            raise ModelError("the first sample of hand guiding must be finite: gravity is not known without positions.")
        return GuidingState(self.model.init(sample.q, sample.theta), last)

    def step(self, state: GuidingState, sample: ControlSample) -> tuple[Array, GuidingState]:
        """Return the torque (joints,), Nm, of this period and the memory for the next."""
        kernel, handle = native(), self.model.handle
        if kernel is None or handle is None:
            return self._numpy_step(state, sample)
        memory, last, torque = state.friction.copy(), state.last.copy(), np.empty_like(self.limits)
        whole = kernel.guiding_step(handle, memory, last, sample.arrays, self.share, self.damping, self.limits, torque)
        return torque, GuidingState(memory, last, state.dropped + (not whole))

    def _numpy_step(self, state: GuidingState, sample: ControlSample) -> tuple[Array, GuidingState]:
        rows = np.array(sample.arrays)
        finite = np.isfinite(rows)
        last = np.where(finite, rows, state.last)
        q, qd, theta, speed, _, temperature = last
        still = np.zeros_like(q)
        signals, memory = self.model.follow(state.friction, theta)
        motion = DriveSample(q, qd, still, theta, speed, still, temperature)
        parts, memory = self.model.parts(memory, motion, signals)
        torque = parts.body + self.share * parts.friction - self.damping * speed
        after = GuidingState(memory, last, state.dropped + (not finite.all()))
        return np.minimum(np.maximum(torque, -self.limits), self.limits), after


@checked
def hand_guiding(
    robot: Robot | RobotModel,
    rate: float = 1000.0,
    *,
    friction: SlipFriction | None = None,
    share: float = SHARE,
    damping: ArrayLike = 0.0,
    drives: Sequence[JointDrive] | None = None,
    gravity: Mounting | None = None,
    payload: Payload | None = None,
) -> HandGuiding:
    """Return a controller that carries the arm and compensates its friction, so that it can be led by hand.

    Args:
        robot: A calibrated robot, or a described one with `friction`.
        rate: Control rate, Hz.
        friction: Friction of a described robot.
        share: Share of friction that is compensated, 0 to 0.95; the rest keeps the arm at rest when it is released.
        damping: Extra damping, Nm s/rad, one number or (joints,), >= 0: slows the arm when it is thrown.
        drives: Rotors and motors; a motor's `limit` bounds the torque.
        gravity: Mounting; None for that of the model, or the table.
        payload: Payload at the tool; a wrong one lets the arm sink or rise.

    Raises:
        ModelError: The share would let the arm move by itself, or the friction is unknown.

    """
    if not 0.0 <= share <= LARGEST_SHARE:
        raise ModelError(
            f"share must lie in [0, {LARGEST_SHARE}]: more would let the arm move by itself. Got {share} instead."
        )
    links = Links.of(robot, gravity, payload)
    chosen, extra = drives_for(links.robot, drives), np.asarray(damping, dtype=float)
    if extra.shape not in ((), (links.robot.dof,)) or not (np.isfinite(extra).all() and (extra >= 0.0).all()):
        raise ModelError(
            f"damping must be >= 0 Nm s/rad, one number or {links.robot.dof}. Got {extra.tolist()} instead."
        )
    model = make_friction_model(robot, links, chosen, friction, rate)
    limits = np.array([drive.limit for drive in chosen])
    return HandGuiding(model, limits, rate, share, np.broadcast_to(extra, limits.shape).copy())
