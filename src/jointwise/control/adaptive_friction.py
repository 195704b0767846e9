"""Computed torque with adaptive feed-forward of friction with hysteresis, its parameters estimated on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked
from jointwise.backend import native
from jointwise.control.computed_torque import computed_torque
from jointwise.control.controller import AffineController, ControlSample, ControlState
from jointwise.control.gains import drives_for, rotor_inertias
from jointwise.control.joint_drive import JointDrive
from jointwise.control.links import FeedbackOptions, Links, deformations, lead_time
from jointwise.control.reference import Reference, part_of
from jointwise.description.robot import Robot
from jointwise.errors import ModelError, ShapeError
from jointwise.runtime.friction_adaptation import AdaptationOptions, Adapted
from jointwise.runtime.friction_estimator import (
    CalibratedFriction,
    DescribedFriction,
    DriveSample,
    EstimatorState,
    FrictionEstimator,
    FrictionModel,
    Measurement,
    friction_estimator,
)
from jointwise.runtime.motion import checked_rate
from jointwise.runtime.slip_friction import SlipFriction
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel

BLOCK = 4096
"""Control periods whose reference is computed at once: memory stays bounded."""
POSES = 64
"""Poses of the motion from which default gains are computed."""


class AdaptiveState(NamedTuple):
    """Memory of an adaptive controller.

    Attributes:
        period: Control period to come.
        integral: ∫ (q - q_d) dt, (joints,), rad s.
        estimator: State of the estimator, with the friction state of the delayed measurement.
        planned: Friction state along the reference.
        adapted: Parameters and prediction error now.
    """

    period: int
    integral: Array
    estimator: EstimatorState
    planned: Any
    adapted: Adapted


class _Block(NamedTuple):
    """Some control periods of the reference: the controller without friction, and the motion of the drives.

    `packed` is both as the native kernel takes them.
    """

    controller: AffineController
    motion: DriveSample
    packed: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class AdaptiveController:
    """``u = f̂(q_d) + M q̈_d + C q̇_d + g + F_v(q̇_d, T) + M(q_d) PID``, ``f̂ = a1 F(τ_J,d) H(q_d) + a2 q̇_d``.

    Made by `adaptive`. A step estimates a1 and a2 from what is measured and adds the friction of the reference with
    them, at the temperature of the estimator's filter; the integral is held while a motor saturates. What is measured
    and not finite is not fed back; `state.estimator.phase.dropped` counts it.

    Attributes:
        make: Returns computed torque without friction for a part of the reference.
        motion: The motion to follow.
        links: Links as mounted and loaded.
        drives: One drive per joint.
        estimator: Estimator of a1 and a2.
        motor_gains: Joint torque per ampere, (joints,), Nm/A.
        rate: Control rate, Hz.
        periods: Number of control periods of the motion.
        poses: Poses of the motion from which inertias are taken, (any, joints), rad.
        start: a1 and a2 (Nm s/rad) to start from, one number or one per joint.
        release: Time from which the parameters may change, s.
    """

    make: Callable[[Reference], AffineController] = field(repr=False)
    motion: Any = field(repr=False)
    links: Links = field(repr=False)
    drives: tuple[JointDrive, ...] = field(repr=False)
    estimator: FrictionEstimator = field(repr=False)
    motor_gains: Array
    rate: float
    periods: int
    poses: Array = field(repr=False)
    start: tuple[ArrayLike, ArrayLike] = (1.0, 0.0)
    release: float = 0.0
    _blocks: dict[int, _Block] = field(default_factory=dict, repr=False)

    @property
    def model(self) -> FrictionModel:
        """Bodies and friction of the robot."""
        return self.estimator.model

    @cached_property
    def _limits(self) -> Array:
        """Largest torques of the motors, Nm, (joints,)."""
        return np.array([drive.limit for drive in self.drives])

    def init(self, sample: ControlSample) -> AdaptiveState:
        """Return the memory at the start of the reference; the robot stands."""
        n = len(sample.q)
        none = Adapted(*(np.zeros(n) for _ in range(3)))
        first = self._block(0).motion
        return AdaptiveState(
            0, np.zeros(n), self.estimator.init(self._measured(sample), *self.start),
            self.model.init(first.q[0], first.theta[0]), none,
        )  # fmt: skip

    def step(self, state: AdaptiveState, sample: ControlSample) -> tuple[Array, AdaptiveState]:
        """Return the torque (joints,), Nm, of this period and the memory for the next."""
        k = state.period
        if k >= self.periods:
            raise ModelError(f"the reference lasts {self.periods} periods. Give it a longer duration.")
        step = self._numpy_step if self.estimator.handle is None else self._native_step
        return step(state, sample, self._block(k // BLOCK), k >= self.release * self.rate)

    def _native_step(
        self, state: AdaptiveState, sample: ControlSample, block: _Block, enabled: bool
    ) -> tuple[Array, AdaptiveState]:
        k, n, estimator = state.period, len(self.drives), state.estimator.copy()
        planned, integral, torque, error = state.planned.copy(), state.integral.copy(), np.empty(n), np.empty(n)
        native().adaptive_step(  # type: ignore[union-attr]
            self.estimator.handle, *estimator.arrays, k % BLOCK, *block.packed, sample.arrays,
            self.motor_gains, self._limits, enabled, planned, integral, error, torque,
        )  # fmt: skip
        adapted = Adapted(estimator.adaptation.factor, estimator.adaptation.viscous, error)
        return torque, AdaptiveState(k + 1, integral, estimator, planned, adapted)

    def _numpy_step(
        self, state: AdaptiveState, sample: ControlSample, block: _Block, enabled: bool
    ) -> tuple[Array, AdaptiveState]:
        row = state.period % BLOCK
        adapted, estimator = self.estimator.step(state.estimator, self._measured(sample), enabled=enabled)
        temperature = self.estimator.temperatures(estimator)
        planned = DriveSample(*(x[row] for x in block.motion))._replace(temperature=temperature)
        signals, memory = self.model.follow(state.planned, planned.theta)
        parts, memory = self.model.parts(memory, planned, signals)
        friction = parts.friction + (adapted.factor - 1.0) * parts.dry + adapted.viscous * planned.speed
        torque, control = block.controller.step(ControlState(row, state.integral), sample)
        total = torque + friction
        limits = self._limits
        integral = np.where(np.abs(total) > limits, state.integral, control.integral)
        after = AdaptiveState(state.period + 1, integral, estimator, memory, adapted)
        return np.minimum(np.maximum(total, -limits), limits), after

    def parameters(self, state: AdaptiveState) -> tuple[Array, Array]:
        """Return a1 and a2 (Nm s/rad), (joints,) each, after the samples so far."""
        return state.adapted.factor, state.adapted.viscous

    def notes(self, state: AdaptiveState) -> list[str]:
        """Return what is to be checked: joints whose friction parameters are at their bounds."""
        return state.estimator.adaptation.notes()

    def _measured(self, sample: ControlSample) -> Measurement:
        return Measurement(sample.q, sample.theta, self.motor_gains * sample.current, sample.temperature)

    def _block(self, number: int) -> _Block:
        """Return a block of the reference; the last one is kept."""
        if number not in self._blocks:
            self._blocks.clear()
            times = np.arange(number * BLOCK, min((number + 1) * BLOCK, self.periods)) / self.rate
            reference = part_of(self.motion, self.rate, times, self.poses)
            ahead = reference.shifted(lead_time(self.drives, self.rate))
            motors = self.links.reference(ahead)
            theta = motors.q + deformations(self.drives, self.links.torque(motors.q, motors.qd, motors.qdd))
            temperature = np.zeros_like(theta)
            motion = DriveSample(ahead.q, ahead.qd, ahead.qdd, theta, motors.qd, motors.qdd, temperature)
            controller = self.make(reference)
            plan = tuple(np.ascontiguousarray(x) for x in motion[:6])
            packed = (len(times), controller.law.native(theta.shape[1]), plan)
            self._blocks[number] = _Block(controller, motion, packed)
        return self._blocks[number]


@checked
def adaptive(
    robot: Robot | RobotModel,
    motion: Any,
    rate: float = 1000.0,
    *,
    motor_gains: ArrayLike | None = None,
    friction: SlipFriction | None = None,
    options: AdaptationOptions | None = None,
    start: tuple[ArrayLike, ArrayLike] = (1.0, 0.0),
    release: float = 0.0,
    **setting: Unpack[FeedbackOptions],
) -> AdaptiveController:
    """Return computed torque with an adaptive friction feed-forward.

    ``u = a1 F(τ_J) H + a2 q̇_d + M q̈_d + C q̇_d + g + F_v(q̇_d, T) - M(q_d) (kd ė + kp e + ki ∫ (q - q_d) dt)``

    Two friction states run in parallel: one along the reference, whose torque is fed forward, and one along the
    measurement, delayed by 51 samples, whose prediction error drives a1 and a2.

    Args:
        robot: A calibrated robot, whose friction terms are adapted, or a described one with `friction`.
        motion: The motion to follow, as for the other controllers.
        rate: Control rate, Hz.
        motor_gains: Joint torque per ampere, Nm/A, (joints,); None for those of the calibrated robot.
        friction: Friction of a described robot.
        options: Adaptation law, bounds and dead zone.
        start: a1 and a2 (Nm s/rad) to start from, one number or one for each joint.
        release: Time (s) from which the parameters may change; infinity for never.
        setting: Gains, drives (a motor's `limit` bounds the torque), side, mounting, payload and duration; see
            `FeedbackOptions`.

    Raises:
        ModelError: The robot has no friction to adapt, its motor gains are unknown, or `release` is not a time.

    """
    if not release >= 0.0:
        raise ModelError(f"release must be a time >= 0 s. Got {release} instead.")
    links = Links.of(robot, setting.get("gravity"), setting.get("payload"))
    periods = _periods(motion, rate, setting.get("duration"))
    poses = part_of(motion, rate, np.linspace(0, periods - 1, POSES).astype(np.intp) / rate, np.empty(0)).q
    chosen = drives_for(links.robot, setting.get("drives"))
    model = make_friction_model(robot, links, chosen, friction, rate)
    setting["gravity"] = links.gravity

    def make(reference: Reference) -> AffineController:
        return computed_torque(links.robot, reference, rate, **setting)

    return AdaptiveController(
        make, motion, links, chosen, friction_estimator(model, rate, options), _motor_gains(robot, links, motor_gains),
        rate, periods, poses, start, release,
    )  # fmt: skip


def _periods(motion: Any, rate: float, duration: float | None) -> int:
    """Return the number of control periods of a motion."""
    if isinstance(motion, Reference):
        raise ModelError("the adaptive controller needs a motion that is known at all times, not samples of one.")
    time = getattr(motion, "duration", None) if duration is None else duration
    if time is None or not (np.isfinite(time) and time > 0.0):
        raise ModelError(f"duration must be a positive number of s. Got {time} instead.")
    return max(1, round(time * checked_rate(rate)))


def make_friction_model(
    robot: Robot | RobotModel, links: Links, drives: Sequence[JointDrive], friction: SlipFriction | None, rate: float
) -> FrictionModel:
    """Return bodies and friction of a calibrated robot, or of a described one with its friction."""
    from jointwise.runtime import RobotModel
    from jointwise.runtime.torque_parts import model_parts

    if friction is not None:
        return DescribedFriction(links.robot, friction, rotor_inertias(drives), links.gravity, links.payload)
    if not isinstance(robot, RobotModel):
        raise ModelError("friction must be given for a described robot, or use a calibrated one. Got none instead.")
    if links.payload is not None:
        raise ModelError("payload must be None for a calibrated robot: use its with_payload().")
    return CalibratedFriction(model_parts(robot, rate, "feed-forward"))


def _motor_gains(robot: Robot | RobotModel, links: Links, gains: ArrayLike | None) -> Array:
    """Return joint torque per ampere (joints,), Nm/A."""
    from jointwise.runtime import RobotModel

    if gains is None:
        if not isinstance(robot, RobotModel) or robot.output != "current":
            raise ModelError("motor_gains must be given: torques per ampere (Nm/A) of every joint. Got none instead.")
        return robot.gains
    values = np.asarray(gains, dtype=float)
    if values.shape != (links.robot.dof,) or not (np.isfinite(values).all() and (values != 0.0).all()):
        raise ShapeError(
            f"motor_gains must be {links.robot.dof} finite numbers in Nm/A. Got {values.tolist()} instead."
        )
    return values
