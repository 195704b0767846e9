"""The calibrated robot as the numbers of the C core (`core/runtime.h`), for a sampling rate.

`pack` lists them in the order in which `src/native/runtime_module.c` reads them; exports print the same objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jointwise.data.conditioning import TRACK_TIME
from jointwise.description.transmission import Transmission
from jointwise.model.rigid.chain import Chain
from jointwise.model.terms import CoreTerm, core_terms
from jointwise.result.calibration import Calibration
from jointwise.runtime.bodies import Bodies
from jointwise.runtime.motion import reference_temperatures, term_values
from jointwise.spatial import Array

MOST_JOINTS = 16
"""Joints of a model, JW_MOST_JOINTS."""


@dataclass(frozen=True, eq=False)
class CoreJoint:
    """A joint as `jw_joint` of `core/runtime.h`.

    Attributes:
        revolute: Whether the joint turns; else it slides.
        rotation: Rotation of frame j in frame j - 1 at q = 0, (3, 3); z is the joint axis.
        translation: Translation of frame j in frame j - 1 at q = 0, (3,), m.
        inertial: Body in frame j, (10,): XX XY XZ YY YZ ZZ in kg m², mX mY mZ in kg m, m in kg.
        rotor: Reflected rotor inertia, kg m².
        load_inertial: As `inertial`, for the load torque on which friction depends; zeros unless
            `CoreModel.other_load`.
        load_rotor: As `rotor`, for the same load torque.
        gain: Drive gain, Nm per unit of the measured output.
        reference: Temperature where none is measured, °C.
        terms: Terms of the joint.
    """

    revolute: bool
    rotation: Array
    translation: Array
    inertial: Array
    rotor: float
    load_inertial: Array
    load_rotor: float
    gain: float
    reference: float
    terms: tuple[CoreTerm, ...]

    def packed(self) -> list[float]:
        """Return the numbers in the order of the native reader."""
        bodies = [*self.inertial.tolist(), self.rotor, *self.load_inertial.tolist(), self.load_rotor]
        placement = [*self.rotation.ravel().tolist(), *self.translation.tolist()]
        heads = [self.gain, self.reference, float(len(self.terms))]
        return [float(self.revolute), *placement, *bodies, *heads, *(x for term in self.terms for x in term.packed())]


@dataclass(frozen=True, eq=False)
class CoreModel:
    """A model as `jw_model` of `core/runtime.h`.

    Attributes:
        period: Sampling period for which the numbers of the terms hold, s.
        gravity: Gravity in the base frame, (3,), m/s².
        other_load: Whether the load torque on which friction depends is that of other bodies than the model's.
        joints: Joints from the base to the tool.
        transmission: Coupling of motors and joints; None without one.
    """

    period: float
    gravity: tuple[float, float, float]
    other_load: bool
    joints: tuple[CoreJoint, ...] = field(repr=False)
    transmission: Transmission | None = None

    @property
    def track(self) -> float:
        """Share of the encoder in the integrated measured speed after one sample."""
        return min(self.period / TRACK_TIME, 1.0)

    def packed(self) -> Array:
        """Return all numbers in the order of the native reader."""
        heads = [float(len(self.joints)), float(self.other_load), self.period, self.track, *self.gravity]
        matrices = [x for matrix in self.matrices for x in matrix.ravel().tolist()]
        return np.array(
            [*heads, float(bool(matrices)), *matrices, *(x for joint in self.joints for x in joint.packed())]
        )

    @property
    def matrices(self) -> tuple[Array, ...]:
        """The matrices C of ``theta = C q`` and C⁻¹, (joints, joints) each; none without coupling."""
        return () if self.transmission is None else (self.transmission.matrix, self.transmission.inverse)


def core_bodies(chain: Chain, transmission: Transmission | None = None) -> CoreModel:
    """Return the numbers of a chain: its bodies and rotors without friction, and its coupled transmission."""
    none = np.zeros(10)
    joints = tuple(
        CoreJoint(bool(kind), rotation, translation, inertial, float(rotor), none, 0.0, 1.0, 0.0, ())
        for kind, rotation, translation, inertial, rotor in zip(*chain[:5], strict=True)
    )
    return CoreModel(1.0, tuple(chain.gravity.tolist()), False, joints, transmission=transmission)


def core_model(calibration: Calibration, bodies: Bodies, rate: float) -> CoreModel:
    """Return the numbers of a calibrated robot for a sampling rate.

    Args:
        calibration: The calibration.
        bodies: Its bodies.
        rate: Sampling rate, Hz.

    Raises:
        ModelError: A term is not implemented in C.

    """
    model, robot = calibration.model, calibration.model.robot
    n, references = robot.dof, reference_temperatures(model)
    other = model.load_basis != "model"
    load = model.base.to_standard(np.ones(model.base.count)) if other else np.zeros(0)
    load = np.concatenate([load, np.zeros(11 * n - len(load))])
    joints = tuple(
        CoreJoint(
            revolute=bool(robot.revolute[j]),
            rotation=robot.rotations[j],
            translation=robot.translations[j],
            inertial=bodies.inertials[j],
            rotor=float(bodies.rotors[j]),
            load_inertial=load[10 * j : 10 * j + 10],
            load_rotor=float(load[10 * n + j]),
            gain=float(calibration.gains[j]),
            reference=float(references[j]),
            terms=tuple(
                law
                for term, value in term_values(model, j, calibration.estimate.values)
                for law in core_terms(term, value, 1.0 / rate)
            ),
        )
        for j in range(n)
    )
    return CoreModel(1.0 / rate, model.gravity, other, joints, robot.transmission)
