"""Torque and power of a planned motion, with their exact gradient: what a minimum-energy motion is computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise.arguments import checked
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot, loaded_inertials
from jointwise.design.information import Rule, derivative_rule, exact_gradient
from jointwise.energy.power_model import PowerModel
from jointwise.errors import ModelError
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.terms import direction
from jointwise.model.transmission import joint_torque, joint_values, motor_torque, motor_values
from jointwise.result.calibration import CalibratedModel, calibration_of
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

WIDTH = 0.01
"""Speed (rad/s) over which friction rises from rest: a planned motion has no friction at standstill."""
SPEED_STEP, LOAD_STEP = 1e-6, 1e-4
"""Steps (rad/s, Nm) of the slopes of the friction laws, which are smooth in speed and load away from rest."""

FrictionLaw = Callable[[Array, Array], Array]
"""Friction of the motors (samples, joints), Nm, in steady sliding at their speeds (rad/s) and load torques (Nm)."""


@dataclass(frozen=True, eq=False)
class PowerEvaluation:
    """A motion evaluated: torques, their slopes, and the power on the bus.

    Attributes:
        body: Torque of bodies and rotors (samples, joints), Nm.
        torque: Torque of the motors (samples, joints), Nm.
        by_speed: Slope of the friction over the speed (samples, joints), Nm s/rad.
        by_load: Slope of the friction over the load (samples, joints).
        power: Power on the bus (samples,), W, with the standing power.

    """

    body: Array
    torque: Array
    by_speed: Array
    by_load: Array
    power: Array


@dataclass(frozen=True, eq=False)
class MotionPower:
    """Torque ``τ = M q̈ + C q̇ + g + tanh(|q̇|/w) f(q̇, load) + offset`` and power ``P(τ / K, q̇)`` of planned motions.

    Where a transmission couples motors and joints, torques, rotors, friction and power are those of the motors; motions
    are those of the joints.

    Attributes:
        robot: The robot.
        inertials: Inertial parameters of the bodies with the payload (joints, 10).
        gravity: Gravity in the base frame (3,), m/s².
        rotors: Reflected inertias of the rotors (joints,), kg m².
        friction: Friction law of all joints.
        offset: Constant torque of the joints (joints,), Nm.
        power: Power model.

    """

    robot: Robot
    inertials: Array
    gravity: Array
    rotors: Array
    friction: FrictionLaw
    offset: Array
    power: PowerModel

    def body_torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return the torque of bodies and rotors (samples, joints), Nm."""
        links = inverse_dynamics(self.robot, q, qd, qdd, gravity=self.gravity, inertials=self.inertials)
        result: Array = motor_torque(self.robot, links) + self.rotors * motor_values(self.robot, qdd)
        return result

    def evaluate(self, q: Array, qd: Array, qdd: Array) -> PowerEvaluation:
        """Return torques and power of a motion (samples, joints), rad, rad/s, rad/s²."""
        body, speed = self.body_torque(q, qd, qdd), motor_values(self.robot, qd)
        friction, by_speed, by_load = self._friction(speed, body)
        torque = body + friction + self.offset
        return PowerEvaluation(body, torque, by_speed, by_load, self.power.power(torque / self._gains, speed))

    def gradient(
        self, q: Array, qd: Array, qdd: Array, at: PowerEvaluation, by_power: Array, by_torque: Array
    ) -> tuple[Array, Array, Array]:
        """Return the gradient (samples, joints) with respect to q, q̇, q̈ of a function of powers and torques.

        Args:
            q: Positions (samples, joints), rad.
            qd: Speeds, rad/s.
            qdd: Accelerations, rad/s².
            at: The motion evaluated.
            by_power: Derivative of the function with respect to the powers (samples,).
            by_torque: Derivative with respect to the torques (samples, joints).

        """
        by_current, by_speed = self.power.slopes(at.torque / self._gains, motor_values(self.robot, qd))
        weight = by_torque + by_power[:, None] * by_current / self._gains
        body_weight = weight * (1.0 + at.by_load)
        samples, dof = q.shape

        def contracted(*motion: Array) -> Array:
            result: Array = np.einsum("usj,sj->us", self.body_torque(*motion).reshape(-1, samples, dof), body_weight)
            return result

        gradient = exact_gradient(self._rule, q, qd, qdd, contracted)
        by_motor_speed = by_power[:, None] * by_speed + weight * at.by_speed
        return gradient[0], gradient[1] + joint_torque(self.robot, by_motor_speed), gradient[2]

    def _friction(self, speed: Array, load: Array) -> tuple[Array, Array, Array]:
        """Return friction (Nm) and its slopes over speed and load, (samples, joints) each."""
        steps = (SPEED_STEP, -SPEED_STEP, 0.0, 0.0, 0.0)
        loads = (0.0, 0.0, LOAD_STEP, -LOAD_STEP, 0.0)
        away = np.where(speed < 0.0, -1.0, 1.0) * np.maximum(np.abs(speed), 2.0 * SPEED_STEP)
        rows = self.friction(
            np.concatenate([away + step for step in steps]), np.concatenate([load + step for step in loads])
        ).reshape(5, *speed.shape)
        law, rise = rows[4], direction(np.abs(speed), WIDTH)
        steep = (1.0 - rise**2) / WIDTH * np.sign(speed)
        by_speed = rise * (rows[0] - rows[1]) / (2.0 * SPEED_STEP) + steep * law
        return rise * law, by_speed, rise * (rows[2] - rows[3]) / (2.0 * LOAD_STEP)

    @cached_property
    def _rule(self) -> Rule:
        return derivative_rule(self.robot.revolute)

    @cached_property
    def _gains(self) -> Array:
        return np.array(self.power.gains)


@checked
def motion_power(
    model: CalibratedModel | Robot,
    power: PowerModel,
    *,
    payload: Payload | None = None,
    mounting: Mounting | None = None,
) -> MotionPower:
    """Return torque and power of planned motions of a calibrated or described robot.

    Args:
        model: Calibrated model (bodies, rotors, friction in steady sliding), or a robot, whose description then has
            bodies, rotor inertias and Coulomb and viscous friction.
        power: Power model of the robot.
        payload: What the robot carries; None for what the model includes.
        mounting: Mounting of the base; None for that of the model, or on a table.

    Raises:
        ModelError: Model and power model have different numbers of joints.

    """
    if isinstance(model, Robot):
        result = _described(model, power, payload, mounting)
    else:
        result = _calibrated(RobotModel(calibration_of(model)), power, payload, mounting)
    if result.robot.dof != power.dof:
        raise ModelError(f"the power model has {power.dof} joints, robot '{result.robot.name}' {result.robot.dof}.")
    return result


def _calibrated(
    model: RobotModel, power: PowerModel, payload: Payload | None, mounting: Mounting | None
) -> MotionPower:
    if payload is not None:
        model = model.with_payload(payload.mass, payload.center_of_mass, payload.inertia)
    if mounting is not None:
        model = model.with_mounting(mounting)
    robot = model.robot
    rest, slow = np.zeros((1, model.dof)), np.full((1, model.dof), 0.1)
    load = model.body_torque(rest, slow, rest)
    offset = model.torque(rest, slow, rest, friction="steady") - load - model.friction(slow, load=load)

    def friction(speed: Array, load: Array) -> Array:
        at_joints = model.friction(joint_values(robot, speed), load=joint_torque(robot, load))
        return motor_torque(robot, at_joints)

    return MotionPower(
        robot=robot,
        inertials=robot.inertials,
        gravity=np.array(model.gravity_vector),
        rotors=np.array([joint.motor.reflected_inertia or 0.0 for joint in robot.joints]),
        friction=friction,
        offset=motor_torque(robot, offset[0]),
        power=power,
    )


def _described(robot: Robot, power: PowerModel, payload: Payload | None, mounting: Mounting | None) -> MotionPower:
    coulomb, viscous = (
        np.array([getattr(joint.motor, name) or 0.0 for joint in robot.joints]) for name in ("coulomb", "viscous")
    )
    return MotionPower(
        robot=robot,
        inertials=loaded_inertials(robot, payload),
        gravity=gravity_vector("table" if mounting is None else mounting),
        rotors=np.array([joint.motor.reflected_inertia or 0.0 for joint in robot.joints]),
        friction=lambda speed, load: coulomb * direction(speed) + viscous * speed,
        offset=np.zeros(robot.dof),
        power=power,
    )
