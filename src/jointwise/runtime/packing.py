"""The calibrated robot as the numbers of the C core (`core/runtime.h`), for a sampling rate.

`pack` lists them in the order in which `src/native/runtime_module.c` reads them; exports print the same objects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from jointwise.data.conditioning import TRACK_TIME
from jointwise.description.transmission import Transmission
from jointwise.errors import ModelError
from jointwise.model import terms
from jointwise.model.rigid.chain import Chain
from jointwise.result.calibration import Calibration
from jointwise.runtime.bodies import Bodies
from jointwise.runtime.motion import reference_temperatures, term_values
from jointwise.spatial import Array

KINDS = (
    "JW_OFFSET",
    "JW_COULOMB",
    "JW_STRIBECK",
    "JW_VISCOUS",
    "JW_POWER_FLOW",
    "JW_TEMPERATURE",
    "JW_RIPPLE",
    "JW_HYSTERESIS",
    "JW_LUGRE",
    "JW_RATE_SLIP",
    "JW_SPRING",
    "JW_INERTIA",
)
"""Names of the kinds of terms in runtime.h, in their order."""
LOADS = {"none": "JW_LOAD_NONE", "absolute": "JW_LOAD_ABSOLUTE", "square": "JW_LOAD_SQUARE"}
DRIVERS = {"q": "JW_DRIVER_Q", "track": "JW_DRIVER_TRACK", "rotor": "JW_DRIVER_ROTOR"}
NUMBERS = 8
"""Numbers of a term, JW_NUMBERS."""
MOST_JOINTS = 16
"""Joints of a model, JW_MOST_JOINTS."""
LONGEST_HISTORY = 64
"""Samples that a ripple term may look back."""


@dataclass(frozen=True)
class CoreTerm:
    """A term as `jw_term` of `core/runtime.h`, which lists the numbers of every kind.

    Attributes:
        kind: Name of the kind, one of `KINDS`.
        number: Its numbers, at most `NUMBERS`, in SI units.
        load: How it grows with the load, a key of `LOADS`.
        driver: Position that drives its memory, a key of `DRIVERS`.
        count: Number of its elements.
        elements: Columns of the elements, one after the other, `count` numbers each.
        backlash: Relative backlash over a turn, equally spaced, (points,); () for 1 everywhere.
    """

    kind: str
    number: tuple[float, ...]
    load: str = "none"
    driver: str = "q"
    count: int = 0
    elements: tuple[float, ...] = ()
    backlash: tuple[float, ...] = ()

    def packed(self) -> list[float]:
        """Return the numbers in the order of the native reader."""
        heads = [KINDS.index(self.kind), list(LOADS).index(self.load), list(DRIVERS).index(self.driver), self.count]
        padded = [*self.number, *(0.0,) * (NUMBERS - len(self.number))]
        return [*map(float, heads), float(len(self.backlash)), *padded, *self.elements, *self.backlash]


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
            terms=tuple(core_term(t, value, rate) for t, value in term_values(model, j, calibration.estimate.values)),
        )
        for j in range(n)
    )
    return CoreModel(1.0 / rate, model.gravity, other, joints, robot.transmission)


def has_core_term(term: terms.Term) -> bool:
    """Return whether a term is implemented in the C core."""
    return type(term) in _CONVERTERS


def core_term(term: terms.Term, values: Array, rate: float) -> CoreTerm:
    """Return a term with its parameter values for a sampling rate (Hz)."""
    for kind, convert in _CONVERTERS.items():
        if type(term) is kind:
            return convert(term, values.tolist(), rate)
    raise ModelError(f"term '{term.kind}' is not implemented in the C runtime: it can be evaluated on arrays only.")


def _coulomb(term: terms.Coulomb, values: list[float], rate: float) -> CoreTerm:
    width = term.width if term.direction == "tanh" else 0.0
    return CoreTerm("JW_COULOMB", (values[0], _load_factor(values, 1), width), term.load)


def _viscous(term: terms.Viscous, values: list[float], rate: float) -> CoreTerm:
    return CoreTerm("JW_VISCOUS", (term.known,), count=len(values), elements=(*term.powers, *values))


def _ripple(term: terms.SpeedRipple, values: list[float], rate: float) -> CoreTerm:
    lag = term.step * rate
    if lag > LONGEST_HISTORY:
        raise ModelError(
            f"rate must be at most {LONGEST_HISTORY / term.step:g} Hz for this model. Got {rate:g} instead."
        )
    return CoreTerm("JW_RIPPLE", (*values, lag, term.known), count=math.ceil(lag))


def _hysteresis(term: terms.Hysteresis, values: list[float], rate: float) -> CoreTerm:
    count, decay = len(term.limits), math.exp(-1.0 / (rate * term.relaxation)) if term.relaxation > 0.0 else 1.0
    shares: Sequence[float] = term.shape or (0.0,) * count
    columns = (*term.limits, *values[:count], *shares)
    numbers = (_load_factor(values, count), decay)
    return CoreTerm("JW_HYSTERESIS", numbers, term.load, term.driver, count, columns, term.backlash)


def _rated(term: terms.Rated, values: list[float], rate: float) -> CoreTerm:
    if term.model == "lugre":
        return CoreTerm(
            "JW_LUGRE",
            _rated_numbers(term, values, term.limits[0], rate),
            term.load,
            term.driver,
            backlash=term.backlash,
        )
    numbers = _rated_numbers(term, values, term.rate / rate, rate)
    return CoreTerm(
        "JW_RATE_SLIP", numbers, term.load, term.driver, len(term.limits), (*term.limits, *term.shares), term.backlash
    )


def _rated_numbers(term: terms.Rated, values: list[float], third: float, rate: float) -> tuple[float, ...]:
    level = (term.extra, term.speed, term.exponent)
    return (values[0], _load_factor(values, 1), third, *level, term.damping * rate)


def _load_factor(values: list[float], index: int) -> float:
    """Return F_C1, 0 where the term has none."""
    return values[index] if len(values) > index else 0.0


_CONVERTERS: dict[type[terms.Term], Callable[..., CoreTerm]] = {
    terms.Offset: lambda term, values, rate: CoreTerm("JW_OFFSET", tuple(values)),
    terms.Coulomb: _coulomb,
    terms.Stribeck: lambda term, values, rate: CoreTerm(
        "JW_STRIBECK", (*values, term.velocity, term.exponent, term.width)
    ),
    terms.Viscous: _viscous,
    terms.PowerFlow: lambda term, values, rate: CoreTerm("JW_POWER_FLOW", (*values, term.width)),
    terms.Temperature: lambda term, values, rate: CoreTerm(
        "JW_TEMPERATURE", (*values, term.reference, term.coldest, term.hottest)
    ),
    terms.Spring: lambda term, values, rate: CoreTerm("JW_SPRING", tuple(values)),
    terms.Inertia: lambda term, values, rate: CoreTerm("JW_INERTIA", tuple(values)),
    terms.SpeedRipple: _ripple,
    terms.Hysteresis: _hysteresis,
    terms.Rated: _rated,
}
"""How the terms that the C core has become its numbers."""
