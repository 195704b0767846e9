"""The identified bodies and rotors: rigid-body dynamics with the parameters of a calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from jointwise.description.robot import Link, Robot
from jointwise.model import rigid
from jointwise.model.terms import Inertia
from jointwise.result.calibration import Calibration
from jointwise.result.transfer import standard_parameters
from jointwise.runtime.motion import term_values
from jointwise.spatial import Array


class Energy(NamedTuple):
    """Energy of bodies and rotors, (samples,) or numbers.

    Attributes:
        kinetic: Kinetic energy, J.
        potential: Potential energy, zero at q = 0, J.
    """

    kinetic: Array
    potential: Array


@dataclass(frozen=True, eq=False)
class Bodies:
    """Bodies and rotors of a calibrated robot under a gravity; arrays of motions are (samples, joints).

    The load torque of friction is that of `inertials` and `rotors`, motion needs `terms` too. Where a transmission C
    couples motors and joints, rotors turn by C q and add Cᵀ I_a C to the inertia of the joints.

    Attributes:
        frame: Robot with the kinematics.
        gravity: Gravity in the base frame, (3,), m/s².
        inertials: Identified bodies, (joints, 10): XX XY XZ YY YZ ZZ in kg m², mX mY mZ in kg m, m in kg.
        rotors: Rotor inertias among the body parameters, (joints,), kg m².
        terms: Rotor inertias of the joint terms, (joints,), kg m².
    """

    frame: Robot
    gravity: tuple[float, float, float]
    inertials: Array
    rotors: Array
    terms: Array

    @classmethod
    def of(cls, calibration: Calibration) -> Bodies:
        """Return the bodies of a calibration."""
        model, n = calibration.model, calibration.model.robot.dof
        standard = standard_parameters(calibration)
        values = calibration.estimate.values
        found = [
            [value[0] for term, value in term_values(model, j, values) if isinstance(term, Inertia)] for j in range(n)
        ]
        terms = np.array([sum(inertias) for inertias in found], dtype=float)
        return cls(model.robot, model.gravity, standard[: 10 * n].reshape(n, 10), standard[10 * n :], terms)

    @property
    def all_rotors(self) -> Array:
        """Reflected rotor inertias, kg m², (joints,)."""
        return self.rotors + self.terms

    def robot(self) -> Robot:
        """Return the robot with these bodies and rotors instead of the described ones."""
        described = self.frame
        links = zip(described.links, self.inertials, strict=True)
        joints = zip(described.joints, self.all_rotors.tolist(), strict=True)
        return replace(
            described,
            joints=tuple(
                replace(joint, motor=joint.motor.with_reflected_inertia(inertia)) for joint, inertia in joints
            ),
            links=tuple(Link(link.name, inertial) for link, inertial in links),
            superseded=False,
        )

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return M q̈ + C q̇ + g, Nm, without the rotor inertias of the joint terms."""
        coupled = self.frame.transmission is not None
        bodies = {"inertials": self.inertials, "rotor_inertias": np.zeros_like(self.rotors) if coupled else self.rotors}
        links = rigid.inverse_dynamics(self.frame, q, qd, qdd, gravity=self.gravity, **bodies)  # type: ignore[arg-type]
        return links + qdd @ self._coupled_inertia(self.rotors) if coupled else links

    def _coupled_inertia(self, rotors: Array) -> Array:
        """Return Cᵀ I_a C (joints, joints), kg m², of rotors (joints,) behind a coupled transmission."""
        C = np.eye(len(rotors)) if self.frame.transmission is None else self.frame.transmission.matrix
        result: Array = (C.T * rotors) @ C
        return result

    def mass_matrix(self, q: Array) -> Array:
        """Return M(q) with all rotors, kg m², (samples, joints, joints)."""
        links = rigid.mass_matrix(self.frame, q, inertials=self.inertials, rotor_inertias=np.zeros_like(self.rotors))
        return links + self._coupled_inertia(self.all_rotors)

    def coriolis(self, q: Array, qd: Array) -> Array:
        """Return C(q, q̇) q̇, Nm."""
        return rigid.coriolis_vector(self.frame, q, qd, inertials=self.inertials)

    def coriolis_matrix(self, q: Array, qd: Array) -> Array:
        """Return C(q, q̇) of Christoffel's symbols, (samples, joints, joints)."""
        return rigid.coriolis_matrix(self.frame, q, qd, inertials=self.inertials)

    def weight(self, q: Array) -> Array:
        """Return g(q), Nm."""
        return rigid.gravity_torque(self.frame, q, gravity=self.gravity, inertials=self.inertials)

    def accelerate(self, q: Array, qd: Array, torque: Array) -> Array:
        """Return q̈ under torques (Nm) without friction, rad/s²."""
        if self.frame.transmission is not None:
            rest = torque - self.torque(q, qd, np.zeros_like(q))
            return np.asarray(np.linalg.solve(self.mass_matrix(q), rest[:, :, None])[:, :, 0])
        bodies = {"inertials": self.inertials, "rotor_inertias": self.all_rotors}
        return rigid.forward_dynamics(self.frame, q, qd, torque, gravity=self.gravity, **bodies)  # type: ignore[arg-type]

    def energy(self, q: Array, qd: Array) -> Energy:
        """Return kinetic energy with the rotors, and potential energy above that at q = 0, J."""
        nothing = np.zeros_like(self.rotors)
        kinetic = rigid.kinetic_energy(self.frame, q, qd, inertials=self.inertials, rotor_inertias=nothing)
        kinetic = kinetic + 0.5 * np.sum((qd @ self._coupled_inertia(self.all_rotors)) * qd, axis=1)
        with_zero = np.vstack([np.zeros(q.shape[1]), q])
        potential = rigid.potential_energy(self.frame, with_zero, gravity=self.gravity, inertials=self.inertials)
        return Energy(kinetic, potential[1:] - potential[0])
