"""The digital twin: the simulated robot with identified bodies, friction and joints in place of default values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

from jointwise.arguments import checked
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.joint.calibration_terms import joint_terms
from jointwise.joint.gear import stiffness_of, transmission_of
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part
from jointwise.model import joint_friction as plant
from jointwise.model import terms as laws
from jointwise.model.periodic_table import TURN
from jointwise.model.spring import Cubic, Segments
from jointwise.model.terms import Hysteresis, JointLaw, Stribeck, Temperature, Term, has_core_law
from jointwise.result.calibration import CalibratedModel, Calibration, calibration_of
from jointwise.runtime.motion import term_values
from jointwise.simulation.robot import default_joints
from jointwise.simulation.robot.joint import (
    MOST_HARMONICS,
    Backlash,
    Elasticity,
    Harmonic,
    JointPlant,
    LostMotion,
)
from jointwise.spatial import Array

SPEEDS = 60
"""Speeds at which the friction of the twin is fitted to that of the model."""
SLOWEST = 0.03
"""Slowest of these speeds as a part of the greatest speed of the training data: above it smoothed signs are 1."""
STRIBECK_SPEEDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Stribeck speeds (rad/s) that are tried where the model has none."""
LOAD = 0.3
"""Load torque, as a part of the effort limit, at which another load law than the square is matched."""
SMALLEST_ROTOR = 0.02
"""Part of the default rotor inertia below which an identified one is not used: the integrator resolves its spring."""
LARGEST_ASYMMETRY = 0.9
"""Limit of the asymmetry that stands for a constant offset."""
MAP_POINTS = 2048
"""Points of a turn from which the waves of a gear are computed."""
BACKLASH_POINTS = 240
"""Points of a turn of the backlash map, as those of the default joints."""

TermValues = list[tuple[Term, Array]]
"""Terms of a joint with the values of their parameters."""


@dataclass(frozen=True, eq=False)
class Twin:
    """A digital robot made of identified parameters.

    Attributes:
        robot: The robot with the identified bodies.
        joints: Its joints.
        gravity: Gravity in the base frame, m/s².
        notes: What comes from default values, what is approximated, and what is not simulated.
    """

    robot: Robot
    joints: tuple[JointPlant, ...]
    gravity: tuple[float, float, float]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the notes for the truth of a simulation; the parameters are there already."""
        return {"notes": list(self.notes)}


@checked
def make_twin(model: CalibratedModel, joints: Iterable[JointModel] = ()) -> Twin:
    """Return the digital robot of a calibrated model; pass it to `simulate`.

    Bodies, rotors, drive gains and friction are those of the model. Friction is the terms of its feed-forward estimate
    as they are, driven by the rotors. Joint files add stiffness, kinematic error, lost motion, drive and temperature
    behaviour, and their friction in place of that of the model. What neither contains is typical for the size of the
    joints and listed in the notes.

    Args:
        model: The calibrated model, a `Calibration` or a `RobotModel`, with physical parameters.
        joints: Identified joints of the same robot.

    Raises:
        ModelError: The model has no physical parameters, or a joint is of another robot.
    """
    calibration = calibration_of(model).for_use("feed-forward")
    robot = calibration.robot_identified()
    known = {joint.joint: joint for joint in joints}
    for joint in known.values():
        if joint.robot != robot.name or not 0 <= joint.joint < robot.dof:
            named = f"joint {joint.joint + 1} of {joint.robot}"
            raise ModelError(f"joint files must be of {robot.name}. Got {named} instead.")
    made = [
        _Builder(calibration, j, usual, known.get(j)).build()
        for j, usual in enumerate(default_joints(calibration.model.robot))
    ]
    notes = _merged([note for _, note in made])
    if calibration.provenance.carried is not None:
        notes.append(f"bodies: with the payload of the training logs ({calibration.provenance.payload_text()})")
    return Twin(robot, tuple(plant for plant, _ in made), calibration.model.gravity, tuple(notes))


def _merged(notes: Sequence[dict[str, str]]) -> list[str]:
    """Return notes of all joints, equal ones once with the joints that they are of."""
    found: dict[tuple[str, str], list[int]] = {}
    for j, joint in enumerate(notes):
        for topic, text in joint.items():
            found.setdefault((topic, text), []).append(j + 1)
    return [
        f"{topic}: {text}" if len(which) == len(notes) else f"{topic}: {text} (joint {', '.join(map(str, which))})"
        for (topic, text), which in found.items()
    ]


@dataclass(frozen=True, eq=False)
class _Builder:
    """One joint of the twin: `usual` values, those of the calibration, and of an identified joint if there is one."""

    calibration: Calibration
    joint: int
    usual: JointPlant
    known: JointModel | None

    def build(self) -> tuple[JointPlant, dict[str, str]]:
        """Return the joint, and notes by topic."""
        notes: dict[str, str] = {}
        made = replace(self.usual, inertia=self._inertia(notes))
        made = self._with_gear(made, notes)
        made = self._with_motor(made, notes)
        return replace(made, friction=self._friction(made, notes), terms=self._law(notes)), notes

    def _part(self, name: str) -> Part | None:
        return None if self.known is None else self.known.parts.get(name)

    def _inertia(self, notes: dict[str, str]) -> float:
        physical = self.calibration.physical
        found = 0.0 if physical is None else float(physical.rotor_inertias[self.joint])
        if found > SMALLEST_ROTOR * self.usual.inertia:
            return found
        notes["rotor inertia"] = "typical value, as the identified one is too small to simulate"
        return self.usual.inertia

    def _with_gear(self, made: JointPlant, notes: dict[str, str]) -> JointPlant:
        """Return the joint with identified spring, kinematic error and lost motion."""
        spring, gear = self._part("stiffness"), self._part("transmission")
        if spring is None:
            notes["stiffness"] = "typical value"
        else:
            law = stiffness_of(spring)
            made = replace(made, stiffness=_spring(spring), damping=law.damping or made.damping)
        if gear is None:
            notes["kinematic error and lost motion"] = "typical values"
            return made
        maps = transmission_of(gear)
        angles = TURN * np.arange(BACKLASH_POINTS) / BACKLASH_POINTS
        lost = np.maximum(maps.backlash(angles), 1e-3 * made.backlash.mean)
        reach = maps.reach or made.lost_motion.reach
        return replace(
            made,
            kinematic_error=_waves(maps.error(TURN * np.arange(MAP_POINTS) / MAP_POINTS)),
            backlash=Backlash(tuple(lost.tolist())),
            lost_motion=LostMotion(1.0, reach),
        )

    def _with_motor(self, made: JointPlant, notes: dict[str, str]) -> JointPlant:
        """Return the joint with the drive gain of the model, and an identified current loop."""
        motor = made.motor
        if self.calibration.output == "current":
            gain = float(abs(self.calibration.gains[self.joint]))
            motor = replace(motor, gain=gain, limit=motor.limit * motor.gain / gain)
        else:
            notes["drive gain"] = "described or typical value, as the model is of torques"
        part = self._part("motor")
        values = {} if part is None else {value.name: value.value for value in part.values}
        if "lag" not in values:
            notes["current loop"] = "typical lag and limit"
        lag, limit = max(values.get("lag", motor.lag), 0.0), values.get("limit", motor.limit)
        return replace(made, motor=replace(motor, lag=lag, limit=limit))

    # -- friction --

    def _law(self, notes: dict[str, str]) -> JointLaw:
        """Return the friction terms as they are; those of the drive's measurement act on no rotor."""
        pairs = self._terms()
        if self._part("temperature") is not None and not any(isinstance(term, Temperature) for term, _ in pairs):
            known = _known_terms(self.known)  # type: ignore[arg-type]
            pairs = [*pairs, *((term, values) for term, values in known if isinstance(term, Temperature))]
        apart = ("inertia", "drive")
        kept = [(term, values) for term, values in pairs if term.role not in apart and has_core_law(term)]
        names = {term.kind for term, _ in kept} | {"inertia"}
        if left_out := sorted({term.kind for term, _ in pairs} - names):
            notes["not simulated"] = ", ".join(left_out)
        return JointLaw(tuple(term for term, _ in kept), tuple(values for _, values in kept))

    def _friction(self, made: JointPlant, notes: dict[str, str]) -> plant.Friction:
        """Return the coefficients closest to the terms: what controllers know of the friction."""
        pairs = self._terms()
        fastest = max(float(self.calibration.fastest[self.joint]), 0.1)
        steady, _ = _steady_law(pairs, fastest)
        slip, _ = _slip(pairs, made.backlash.mean)
        effort = self.calibration.model.robot.joints[self.joint].limits.effort or 100.0
        thermal = self._thermal(pairs, notes)
        return replace(steady, load=_load_growth(pairs, LOAD * effort, fastest), slip=slip, thermal=thermal)

    def _terms(self) -> TermValues:
        """Return the friction terms of an identified joint, else those of the model."""
        if self.known is not None and "friction" in self.known.parts:
            return _known_terms(self.known)
        return list(term_values(self.calibration.model, self.joint, self.calibration.estimate.values))

    def _thermal(self, pairs: TermValues, notes: dict[str, str]) -> plant.ThermalFriction:
        if self._part("temperature") is not None and not any(isinstance(term, Temperature) for term, _ in pairs):
            pairs = _known_terms(self.known)  # type: ignore[arg-type]
        for term, (linear, cold) in ((t, v) for t, v in pairs if isinstance(t, Temperature)):
            return plant.ThermalFriction(float(linear), float(cold), term.reference, term.coldest, term.hottest)
        notes["temperature"] = "friction does not depend on it; heat capacity and conductance are typical values"
        return plant.ThermalFriction()


def _known_terms(joint: JointModel) -> TermValues:
    """Return the friction terms of an identified joint with their values, 0 where a value is not known."""
    single = joint_terms(joint, known=True)
    return [
        (term, np.array([single.known.get(p.name, (0.0, 0.0))[0] for p in term.parameters()])) for term in single.terms
    ]


def _steady(pairs: TermValues, speed: Array, load: float = 0.0) -> Array:
    """Return the friction of terms at constant speeds (samples,), rad/s, under a load (Nm), in Nm."""
    torque = np.zeros(len(speed))
    for term, values in pairs:
        torque += term.steady(speed, np.full(len(speed), load)) @ values
    return torque


def _steady_law(pairs: TermValues, fastest: float) -> tuple[plant.Friction, float]:
    """Return ``F_C + (F_S - F_C) e^(-(v/V_S)^μ) + F_V1 v + F_V2 v² + F_V3 v³`` closest to terms, and the misfit, Nm.

    The mean of both directions is matched; half of their difference becomes the asymmetry of dry friction.
    """
    v = np.linspace(SLOWEST, 1.0, SPEEDS) * fastest
    forward, backward = _steady(pairs, v), -_steady(pairs, -v)
    odd, even = 0.5 * (forward + backward), 0.5 * (forward - backward)
    known = [(term.velocity, term.exponent) for term, _ in pairs if isinstance(term, Stribeck)]
    fits = {curve: _bounded_fit(v, odd, *curve) for curve in known[:1] or [(speed, 1.0) for speed in STRIBECK_SPEEDS]}
    curve = min(fits, key=lambda shape: fits[shape][1])
    (coulomb, extra, viscous, square, cube), misfit = fits[curve]
    level = max(coulomb, 1e-9)
    asymmetry = float(np.clip(even.mean() / level, -LARGEST_ASYMMETRY, LARGEST_ASYMMETRY))
    law = plant.Friction(
        coulomb=float(coulomb), viscous=float(viscous), square=float(square), cube=float(cube), asymmetry=asymmetry,
        stribeck=plant.Stribeck(float(extra), *curve),
    )  # fmt: skip
    return law, misfit


def _bounded_fit(v: Array, torque: Array, speed: float, exponent: float) -> tuple[Array, float]:
    """Return coefficients of Coulomb, Stribeck (V_S = `speed`, rad/s, μ) and viscous friction, and the misfit, Nm."""
    A = np.column_stack([np.ones_like(v), laws.stribeck(v, speed, exponent), laws.viscous_columns(v, (1, 2, 3))])
    found = lsq_linear(A, torque, bounds=([0.0, 0.0, 0.0, -np.inf, -np.inf], np.inf))
    return found.x, float(np.sqrt(np.mean(np.square(A @ found.x - torque))))


def _load_growth(pairs: TermValues, load: float, fastest: float) -> float:
    """Return F_C1 (1/Nm) with which friction grows by ``F_C1 τ²`` as that of the terms does at a load (Nm)."""
    v = np.array([0.5 * fastest])
    return max(float(_steady(pairs, v, load)[0] - _steady(pairs, v)[0]) / load**2, 0.0)


def _slip(pairs: TermValues, backlash: float) -> tuple[plant.Slip, dict[str, str]]:
    """Return the slip elements of the terms, and notes; those of different drivers with one limit act together."""
    elements = [(term, values) for term, values in pairs if isinstance(term, Hysteresis)]
    used = _largest(_slip_forces(elements))
    if not used:
        return plant.Slip.polynomial(), {"hysteresis": "typical slip elements"}
    limits, total = sorted(used), sum(used.values())
    relaxes = any(term.relaxation > 0.0 for term, _ in elements)
    note = {"hysteresis": "relaxation at standstill is not simulated"} if relaxes else {}
    shares = np.array([used[limit] for limit in limits]) / total
    return plant.Slip(tuple((np.array(limits) / backlash).tolist()), tuple((shares / shares.sum()).tolist())), note


def _slip_forces(elements: list[tuple[Hysteresis, Array]]) -> dict[float, float]:
    """Return the total force (Nm) of the elements with each limit (rad), where it is positive."""
    forces: dict[float, float] = {}
    for term, values in elements:
        for limit, force in zip(term.limits, values[: len(term.limits)], strict=True):
            forces[limit] = forces.get(limit, 0.0) + max(float(force), 0.0)
    return {limit: force for limit, force in forces.items() if force > 0.0}


def _largest(forces: dict[float, float]) -> dict[float, float]:
    """Return the strongest elements, at most as many as the simulated joint can have."""
    kept = sorted(forces, key=lambda limit: -forces[limit])[: plant.MOST_ELEMENTS]
    return {limit: forces[limit] for limit in kept}


# -- gear --


def _spring(part: Part) -> Elasticity:
    """Return the identified spring as one that the simulated joint has; a polynomial by its first two terms."""
    law = stiffness_of(part)
    if isinstance(law.spring, Segments):
        return law.spring
    phi = np.linspace(0.05, 1.0, SPEEDS) * law.largest
    A = np.column_stack([phi / law.largest, (phi / law.largest) ** 3])
    linear, cubic = lsq_linear(A, law.torque(phi), bounds=(0.0, np.inf)).x
    return Cubic(float(linear / law.largest), float(cubic / law.largest**3))


def _waves(error: Array) -> tuple[Harmonic, ...]:
    """Return the strongest waves of a kinematic error over one turn (points,), rad."""
    spectrum = np.fft.rfft(error - error.mean()) / len(error)
    strongest = np.argsort(-np.abs(spectrum))[:MOST_HARMONICS].tolist()
    return tuple(
        Harmonic(2.0 * float(abs(spectrum[m])), float(m), float(np.angle(spectrum[m]) + 0.5 * np.pi))
        for m in sorted(strongest)
        if m > 0 and abs(spectrum[m]) > 0.0
    )
