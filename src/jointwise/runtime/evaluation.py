"""One estimate of a calibration, evaluated along motions, and the prediction intervals of its torque.

    τ = Y_b(q, q̇, q̈) β + C^T f(θ̇, load, T),    θ = C q,    load = C^-T Y_b β

with the base parameters β, the friction terms f at the motors and the coupling C of the transmission (1 without one).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from jointwise.arguments import checked
from jointwise.backend import native
from jointwise.data.log import Log
from jointwise.errors import ModelError
from jointwise.model.dynamics import Dynamics
from jointwise.model.terms import Offset, has_core_law
from jointwise.model.transmission import joint_torque, motor_motion, motor_torque, motor_values
from jointwise.motion import Motion
from jointwise.result.calibration import Calibration
from jointwise.result.predict import applicable_use, motion_function_chunks
from jointwise.runtime.bodies import Bodies
from jointwise.runtime.motion import at_rest_torques, checked_rate, make_motion, steady_torques, term_torques
from jointwise.runtime.packing import core_model
from jointwise.runtime.stream import NativeCore, NumpyCore
from jointwise.spatial import Array

Friction = Literal["motion", "steady", "none"]
ITERATIONS = 100
"""Most steps of the iteration for friction that depends on the load."""
SMALL_STEP = 1e-8
"""Relative change of the load for the slope of friction."""
STEEPEST_FALL = -0.9
"""Least slope of friction over the load: one that falls as fast as the load grows has no solution."""
CONVERGED = 1e-13
"""Change of the load torque, relative to its size, at which the iteration ends."""


class Channels(TypedDict, total=False):
    """Signals that a motion may have in addition to positions, speeds and accelerations; see `RobotModel.torque`.

    Attributes:
        temperature: Joint temperatures, °C, one number or of the shape of the positions; None for the temperature for
            which the parameters hold.
        measured_speed: Measured speeds, rad/s, of the shape of the positions; None for a planned motion.
        rotor: Measured rotor positions at the joint side, rad, of the shape of the positions; None for those of the
            joints.
    """

    temperature: ArrayLike | float | None
    measured_speed: ArrayLike | None
    rotor: ArrayLike | None


class MotionSignals(Channels, total=False):
    """The signals and the sampling rate, Hz."""

    rate: float | None


class TorqueOptions(MotionSignals, total=False):
    """Options of `RobotModel.torque`."""

    friction: Friction | None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The bodies and the friction of a calibration's main estimate; arrays are (samples, joints)."""

    calibration: Calibration

    @property
    def model(self) -> Dynamics:
        """The model."""
        return self.calibration.model

    @property
    def values(self) -> Array:
        """The parameters of the model."""
        return self.calibration.estimate.values

    @cached_property
    def bodies(self) -> Bodies:
        """The identified bodies."""
        return Bodies.of(self.calibration)

    def at_motors(self, torque: Array) -> Array:
        """Return the torques of the motors, C^-T τ; those of the joints without a coupled transmission."""
        return motor_torque(self.model.robot, torque)

    def _at_joints(self, torque: Array) -> Array:
        return joint_torque(self.model.robot, torque)

    def _motor_speed(self, qd: Array) -> Array:
        return motor_values(self.model.robot, qd)

    def core(self, rate: float) -> NativeCore | NumpyCore:
        """Return the evaluator of single samples at a rate (Hz): in C, or in NumPy for terms that C does not have."""
        terms = [term for terms in self.model.terms for term in terms]
        if native() is None or not all(map(has_core_law, terms)):
            return NumpyCore(self.model, self.values, self.bodies, rate)
        return NativeCore(core_model(self.calibration, self.bodies, rate))

    def torque(self, motion: Motion, friction: Friction) -> Array:
        """Return the torque of a motion with friction along it, in steady sliding, or none; Nm."""
        body, motor = self.bodies.torque(motion.q, motion.qd, motion.qdd), motor_motion(self.model.robot, motion)
        if friction == "none":
            return body + self._at_joints(self.bodies.terms * motor.qdd)
        load = self.load(motion, body)
        if friction == "motion":
            return body + self._at_joints(term_torques(self.model, motor, self.values, load)[0])
        still = at_rest_torques(self.model, motor, self.values)
        steady = steady_torques(self.model, motor.qd, self.values, load, motion.temperature)
        return body + self._at_joints(still + steady)

    def load(self, motion: Motion, body: Array | None = None) -> Array:
        """Return the load torque of the friction terms at the motors, Nm.

        `body` is the torque of the bodies at the joints where it is known.
        """
        if self.model.load_basis == "model" or not self.model.needs_load:
            body = self.bodies.torque(motion.q, motion.qd, motion.qdd) if body is None else body.copy()
            return self.at_motors(body)
        return self.model.load_torque(self.model.rigid_columns(motion), self.values)

    def friction(self, speed: Array, load: Array, temperature: Array | None) -> Array:
        """Return friction in steady sliding without the offsets of the joints, Nm; speeds and loads of the joints."""
        speed, load = self._motor_speed(speed), self.at_motors(load)
        return self._at_joints(steady_torques(self.model, speed, self.values, load, temperature, without=(Offset,)))

    def body_share(self, q: Array, qd: Array, torque: Array, temperature: Array | None) -> Array:
        """Return the part of a joint torque that accelerates the bodies, where friction depends on the load.

        Solves ``load + f(q̇, load) = torque`` for the load by Newton's method. A fixed-point iteration would diverge
        where friction grows faster than the load.

        Args:
            q: Positions (samples, joints), rad or m.
            qd: Speeds (samples, joints), rad/s or m/s.
            torque: Joint torques (samples, joints), Nm or N.
            temperature: Temperatures (samples, joints), °C; None for the reference temperature.

        Returns:
            Torque of bodies and rotors (samples, joints), Nm or N.

        Raises:
            ModelError: There is no solution.

        """
        resting = motor_motion(self.model.robot, Motion(1.0, q, qd, np.zeros_like(q)))
        still, torque = at_rest_torques(self.model, resting, self.values), self.at_motors(torque)

        def body(load: Array) -> Array:
            return torque - still - steady_torques(self.model, resting.qd, self.values, load, temperature)

        load = torque
        for _ in range(ITERATIONS):
            share = body(load)
            if not self.model.needs_load:
                return self._at_joints(share)
            step = self._load_step(q, qd, load, share, body)
            load = load + step
            if np.abs(step).max(initial=0.0) <= CONVERGED * (1.0 + np.abs(load).max(initial=0.0)):
                return self._at_joints(share)
        raise ModelError("friction grows so fast with the load that these torques determine no acceleration.")

    def _load_step(self, q: Array, qd: Array, load: Array, share: Array, body: Callable[[Array], Array]) -> Array:
        """Return the change of the load torque in one step of Newton's method."""
        qdd = self.bodies.accelerate(q, qd, self._at_joints(share))
        links = self._at_joints(share - self.bodies.terms * self._motor_speed(qdd))
        rest = self.load(Motion(1.0, q, qd, qdd), links) - load
        if self.model.load_basis != "model":
            return rest
        beside = SMALL_STEP * (1.0 + np.abs(load))
        slope = (share - body(load + beside)) / beside
        result: Array = rest / (1.0 + np.maximum(slope, STEEPEST_FALL))
        return result


@dataclass(frozen=True, eq=False)
class Estimates:
    """The sensor-based and the feed-forward estimate of a calibration; the bodies are those of both."""

    calibration: Calibration

    @cached_property
    def sensor(self) -> Evaluation:
        """The estimate for motions with the measured channels that the model uses."""
        return Evaluation(self.calibration)

    @cached_property
    def planned(self) -> Evaluation:
        """The estimate for planned positions."""
        return Evaluation(self.calibration.for_use("feed-forward"))

    def motion(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, rate: float | None = None, **channels: Unpack[Channels]
    ) -> tuple[Evaluation, Motion]:
        """Return the estimate for the channels that are measured, and the motion; arguments as in `RobotModel.torque`.

        Raises:
            ModelError: The rotor positions of a model of two encoders do not suffice.

        """
        lacking = {"qd": channels.get("measured_speed") is None, "theta": channels.get("rotor") is None}
        chosen = self.planned if any(lacking[name] for name in self.calibration.extras) else self.sensor
        if chosen is self.sensor and self.calibration.model.rotor_side and not lacking["theta"]:
            raise ModelError("a model of two encoders needs the measured motion of the rotors: use predict(log).")
        used = checked_rate(self.calibration.filters.rate if rate is None else rate)
        return chosen, make_motion(chosen.model, used, q, qd, qdd, **channels)


@checked
def half_widths(calibration: Calibration, motion: Motion, load: Array, level: float, observation: bool) -> Array:
    """Return half the width of the confidence or prediction interval of the torque along a motion.

        h = √(t² w C wᵀ + z² σ²)

    with the regressor row w of a sample and joint, the covariance C of the parameters, the Student quantile t, and for
    an observation the residual standard deviation σ and the normal quantile z (N. Draper and H. Smith, "Applied
    Regression Analysis", 1998). The estimate of σ has many degrees of freedom.

    Args:
        calibration: The calibration.
        motion: A motion with all signals that the terms need.
        load: Load torque of the terms (samples, joints), Nm.
        level: Probability, between 0 and 1.
        observation: Whether σ is included: a prediction interval of the measured torque.

    Returns:
        h, shape (samples, joints), Nm; infinite where a parameter that is not identifiable has an effect.

    Raises:
        ModelError: The level is not between 0 and 1.

    """
    if not 0.0 < level < 1.0:
        raise ModelError(f"level must be between 0 and 1. Got {level} instead.")
    model, estimate = calibration.model, calibration.estimate
    undetermined = np.array([status == "undetermined" for status in estimate.status])
    variance = np.empty((motion.samples, motion.joints))
    motor = motor_motion(model.robot, motion, model.rotor_side)
    for j, rigid in enumerate(model.rigid_columns(motion)):
        rows = np.column_stack([rigid.T, model.term_columns(motor, j, load)])
        index = model.joint_index(j)
        variance[:, j] = np.einsum("ij,jk,ik->i", rows, estimate.covariance[np.ix_(index, index)], rows, optimize=True)
        variance[np.abs(rows[:, undetermined[index]]).max(axis=1, initial=0.0) > 0.0, j] = np.inf
    t, z = estimate.factor_at(level), float(ndtri(0.5 + 0.5 * level)) if observation else 0.0
    half: Array = np.sqrt(np.square(t) * np.maximum(variance, 0.0) + np.square(z * estimate.sigma))
    return half


@checked
def log_half_widths(calibration: Calibration, log: Log, level: float) -> Array:
    """Return half the width of the interval of the measured output at every stamp of a log, (samples, joints)."""
    if log.run_in is not None:
        return log_half_widths(calibration, log.run_in, level)[-log.samples :]
    if applicable_use(calibration, log.available) == "feed-forward":
        log = log.without([name for name in calibration.extras if name in log.available])
        calibration = calibration.for_use("feed-forward")
    model, values = calibration.model, calibration.estimate.values

    def widths(motion: Motion) -> Array:
        load = model.load_torque(model.rigid_columns(motion), values)
        half: Array = half_widths(calibration, motion, load, level, observation=True) / np.abs(calibration.gains)
        return half

    result = np.empty((log.samples, log.joints))
    for rows, part in motion_function_chunks(widths, log, calibration.filters):
        result[rows] = part
    return result
