"""The robot behind a synthetic log: parameters that are known because they were chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.description import Robot
from jointwise.design import States, Trajectory
from jointwise.model.dynamics import Dynamics
from jointwise.model.rigid import inverse_dynamics
from jointwise.spatial import Array
from synthetic.friction import JointFriction, LoadDependence, friction_torque, hysteresis_state


@dataclass(frozen=True)
class Plant:
    """Known parameters of a robot.

    `gravity` (3,) m/s² in the base frame; `inertials` (joints, 10) with the payload in the last link; `rotor_inertias`
    (joints,) kg m²; `friction` of each joint, whose H is a `hysteresis` state or else sgn(v), and whose load function
    is `load_dependence`; `gains` (joints,) Nm/A.
    """

    robot: Robot
    gravity: Array
    inertials: Array
    rotor_inertias: Array
    friction: tuple[JointFriction, ...]
    hysteresis: bool
    load_dependence: LoadDependence
    gains: Array

    @property
    def standard(self) -> Array:
        """Standard parameters with rotor inertias last, (11 joints,), in the order of `rigid.standard_names`."""
        return np.concatenate([self.inertials.ravel(), self.rotor_inertias])

    def rigid_torque(self, states: States) -> Array:
        """Return M q̈ + C q̇ + g with the rotors, (samples, joints), Nm."""
        return inverse_dynamics(
            self.robot, states.q, states.qd, states.qdd,
            gravity=self.gravity, inertials=self.inertials, rotor_inertias=self.rotor_inertias,
        )  # fmt: skip

    def friction_torque(self, motion: Trajectory, states: States, load: Array, rate: float) -> Array:
        """Return friction (samples, joints), Nm, at states of a motion about 1 / `rate` s apart, under a load (Nm)."""
        H = hysteresis_state(self.friction, motion, states.t, rate) if self.hysteresis else np.sign(states.qd)
        return friction_torque(self.friction, H, states.qd, load, self.load_dependence)

    def dynamics(self) -> Dynamics:
        """Return the linear model that has exactly this structure."""
        terms = tuple(f.terms(self.hysteresis, self.load_dependence) for f in self.friction)
        x, y, z = self.gravity.tolist()
        return Dynamics(self.robot, (x, y, z), True, terms)

    def values(self) -> Array:
        """Return the true parameters of `dynamics()`, in its order."""
        joints = [f.values(self.hysteresis, self.load_dependence) for f in self.friction]
        return np.concatenate([self.dynamics().base.from_standard(self.standard), *joints])
