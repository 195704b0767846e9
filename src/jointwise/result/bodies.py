"""The bodies of a calibrated model, standing under any gravity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise.data.coordinates import gravity_text, is_same, mounting_of_logs
from jointwise.data.log import Log
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot
from jointwise.errors import ModelError
from jointwise.model.base import null_space
from jointwise.model.dynamics import Dynamics
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.transmission import motor_regressor, motor_torque
from jointwise.result.calibration import Calibration
from jointwise.result.transfer import refuse_unknown_scale
from jointwise.spatial import Array

STATES = 40
"""Number of random states at which it is tested whether the load is identifiable."""
LOAD_TOLERANCE = 1e-7
"""Part of a load up to which parameters that the model does not know may change it."""


@dataclass(frozen=True, eq=False)
class CalibratedBodies:
    """Bodies and rotors of a calibration under a gravity, with a different payload if there is one.

    A calibration determines the combinations of body parameters that its gravity shows. ``τ = Y(g) L β``: L β is one
    set of bodies with these combinations, which is as good as any where the load depends on nothing else.

    Attributes:
        calibration: The calibration.
        gravity: Gravity in the base frame, (3,), m/s².
        payload: Payload in place of that of the calibration; None for the same.
    """

    calibration: Calibration
    gravity: Array
    payload: Payload | None = None

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return the torque of bodies and rotors at the motors, (samples, joints), Nm."""
        model = self._model
        Y = motor_regressor(model.robot, q, qd, qdd, gravity=self.gravity, rotors=model.rotors)
        columns = [Y.joint(j) for j in range(model.robot.dof)]
        torque = np.column_stack([block @ self._bodies[which] for block, which in columns])
        return torque if self.payload is None else torque + self._carried(q, qd, qdd)

    def determines_load(self, joint: int) -> bool:
        """Return whether the calibration determines the load of a joint (0-based) under this gravity."""
        model = self._model
        q, qd, qdd = np.random.default_rng(0).uniform(-np.pi, np.pi, (3, STATES, model.robot.dof))
        Y = motor_regressor(model.robot, q, qd, qdd, gravity=self.gravity, rotors=model.rotors).matrices()[:, joint]
        unknown = null_space(model.base.projection)
        return bool(np.abs(Y @ unknown).max(initial=0.0) <= LOAD_TOLERANCE * np.abs(Y).max())

    @property
    def _model(self) -> Dynamics:
        return self.calibration.model

    @cached_property
    def _bodies(self) -> Array:
        base = self._model.base
        return base.to_standard(self.calibration.estimate.values[: base.count])

    def _carried(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return the torque of the payload minus that of the payload that the parameters of the calibration include."""
        robot, nothing = self._model.robot, np.zeros((self._model.robot.dof, 10))
        after, less = (
            inverse_dynamics(robot, q, qd, qdd, gravity=self.gravity, payload=payload, inertials=nothing)
            for payload in (self.payload, self.calibration.provenance.carried)
        )
        return motor_torque(robot, after - less)


def calibrated_load(
    calibration: Calibration,
    robot: Robot,
    joint: int,
    logs: Sequence[Log],
    *,
    mounting: Mounting | None = None,
    payload: Payload | None = None,
) -> CalibratedBodies:
    """Return the load model of a calibration for the logs of one joint; pass it to `joint_record` as `load`.

    The gravity is that of the `mounting` or of the logs where either states one, else that of the calibration. The
    model includes the rotors: pass ``inertia=0`` with it.

    Args:
        calibration: Calibrated model of the robot.
        robot: The robot.
        joint: Index of the joint, from 0.
        logs: Logs of the experiment.
        mounting: Mounting of the base in the logs, or gravity in the base frame, m/s².
        payload: Payload carried in the logs.

    Returns:
        The load model under the gravity of the logs.

    Raises:
        ModelError: If the calibration is of another robot, has drive gains of unknown scale, or does not determine the
            load of this joint under the gravity of the logs.

    """
    if calibration.model.robot.name != robot.name:
        raise ModelError(f"the model must be of {robot.name}. Got one of {calibration.model.robot.name} instead.")
    refuse_unknown_scale(calibration, "the load of a joint in Nm")
    calibrated = gravity_vector(calibration.model.gravity)
    is_stated = mounting is not None or any(log.origin.gravity is not None for log in logs)
    gravity = gravity_vector(mounting_of_logs(logs, mounting)) if is_stated else calibrated
    bodies = CalibratedBodies(calibration, calibrated if is_same(calibrated, gravity) else gravity, payload)
    if not bodies.determines_load(joint):
        raise ModelError(
            f"calibrated under gravity {gravity_text(calibrated)} m/s^2, does not determine the load of joint "
            f"{joint + 1} under {gravity_text(gravity)}. Leave --model out, or use a model of that gravity."
        )
    return bodies
