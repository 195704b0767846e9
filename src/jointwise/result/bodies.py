"""The bodies of a calibrated model, standing under any gravity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise.description.payload import Payload
from jointwise.model.base import null_space
from jointwise.model.dynamics import Dynamics
from jointwise.model.rigid import compute_regressor, inverse_dynamics
from jointwise.result.calibration import Calibration
from jointwise.spatial import Array

STATES = 40
"""Random states at which a model is asked whether it tells a load."""
TOLD = 1e-7
"""Part of a load up to which parameters that the model does not know may change it."""


@dataclass(frozen=True, eq=False)
class CalibratedBodies:
    """Bodies and rotors of a `calibration` under a gravity (3,), m/s², with another `payload` than its own if given.

    A calibration knows combinations of its bodies' parameters, those that its own gravity shows. ``τ = Y(g) L β``: L β
    is one set of bodies with these combinations, which is as good as any where the load depends on nothing else.
    """

    calibration: Calibration
    gravity: Array
    payload: Payload | None = None

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return what bodies and rotors ask of the joints, (samples, joints), Nm."""
        model = self._model
        Y = compute_regressor(model.robot, q, qd, qdd, gravity=self.gravity, rotors=model.rotors)
        columns = [Y.joint(j) for j in range(model.robot.dof)]
        torque = np.column_stack([own @ self._bodies[which] for own, which in columns])
        return torque if self.payload is None else torque + self._carried(q, qd, qdd)

    def tells(self, joint: int) -> bool:
        """Tell whether the load of a joint (0-based) under this gravity follows from what the calibration knows."""
        model = self._model
        q, qd, qdd = np.random.default_rng(0).uniform(-np.pi, np.pi, (3, STATES, model.robot.dof))
        Y = compute_regressor(model.robot, q, qd, qdd, gravity=self.gravity, rotors=model.rotors).matrices()[:, joint]
        unknown = null_space(model.base.projection)
        return bool(np.abs(Y @ unknown).max(initial=0.0) <= TOLD * np.abs(Y).max())

    @property
    def _model(self) -> Dynamics:
        return self.calibration.model

    @cached_property
    def _bodies(self) -> Array:
        base = self._model.base
        return base.to_standard(self.calibration.estimate.values[: base.count])

    def _carried(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return what the payload asks for more than the one that the calibration has among its bodies."""
        own = self.calibration.provenance.payload
        before = None if own is None else Payload(own[0], own[1:])
        after, less = (
            inverse_dynamics(self._model.robot, q, qd, qdd, gravity=self.gravity, payload=payload)
            for payload in (self.payload, before)
        )
        return after - less
