"""The joint model as a handful of choices, and the terms that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from jointwise.arguments import checked_fields
from jointwise.errors import ModelError
from jointwise.model.terms import (
    Coulomb,
    Hysteresis,
    Inertia,
    Offset,
    PowerFlow,
    Rated,
    SpeedRipple,
    Stribeck,
    Term,
    Viscous,
    term_class,
)
from jointwise.spatial import Array

LADDER = Hysteresis.geometric_limits(9, 4e-6, 4e-2)
"""Deformation limits (rad) that non-negative least squares chooses from: below an encoder count to a wide backlash."""


@checked_fields
@dataclass(frozen=True)
class Structure:
    """What friction a joint model has; the same for all joints, the numbers differ.

    Attributes:
        direction: Sign of dry friction: `sign` or `tanh` of the speed, or `hysteresis` (slip elements).
        load: Dependence of dry friction on the load torque: `none`, `square` or `absolute`.
        powers: Exponents of the speed in viscous friction.
        drivers: Positions that drive the slip elements: `q` (measured), `track` (integral of the measured speed) or
            `rotor` (measured rotor position).
        relaxation: Time constant (s) with which the slip elements relax at rest; 0 for none.
        limits: Deformation limits of the slip elements, rad.
        scales: Factor of `limits` for each joint; empty for 1.
        width: Speed (rad/s) over which `tanh` changes its sign.
        stribeck: Stribeck velocity, rad/s; 0 for no Stribeck term.
        power_flow: Separate dry friction for motoring and back-driving.
        ripple: Time step (s) of the drive's response to ripple of the measured speed; 0 for none.
        offset: A constant torque.
        extra: Kinds of additional terms with default settings, such as `spring` or a registered term of another
            package. They must not depend on the load.
        rotor_side: Friction and rotor inertia follow the measured motion of the rotors (two encoders).
        rotor_inertias: Known rotor inertias, kg m² at the joint, one value per joint; empty to estimate them.

    """

    direction: str = "sign"
    load: str = "none"
    powers: tuple[float, ...] = (1.0,)
    drivers: tuple[str, ...] = ("q",)
    relaxation: float = 0.0
    limits: tuple[float, ...] = LADDER
    scales: tuple[float, ...] = ()
    width: float = 0.01
    stribeck: float = 0.0
    power_flow: bool = False
    ripple: float = 0.0
    offset: bool = True
    extra: tuple[str, ...] = ()
    rotor_side: bool = False
    rotor_inertias: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse unknown choices."""
        if self.direction not in ("sign", "tanh", "hysteresis"):
            raise ModelError(f"direction must be sign, tanh or hysteresis. Got '{self.direction}' instead.")
        try:
            for joint in range(max(len(self.rotor_inertias), 1)):
                self._friction_terms((), joint)
        except ValueError as problem:
            raise ModelError(f"{str(problem).rstrip('.')}.") from None

    @property
    def needs_load(self) -> bool:
        """Whether a load torque must be known."""
        return self.load != "none" or self.power_flow

    @property
    def needs_speed(self) -> bool:
        """Whether a measured speed must be in the log."""
        return self.ripple > 0.0 or (self.direction == "hysteresis" and "track" in self.drivers)

    @property
    def needs_rotor(self) -> bool:
        """Whether the position of the rotors must be in the log."""
        return self.rotor_side or (self.direction == "hysteresis" and "rotor" in self.drivers)

    def without_load(self) -> Structure:
        """Return the same structure with nothing that depends on load, where a fit starts."""
        return replace(self, load="none", power_flow=False)

    def terms(self, shapes: tuple[tuple[float, ...], ...] = (), joint: int = 0) -> tuple[Term, ...]:
        """Return the terms of a joint (0-based); `shapes` are the shares of the slip elements, one tuple a driver."""
        return (*self._friction_terms(shapes, joint), *self.extra_terms())

    def extra_terms(self) -> list[Term]:
        """Return the terms of `extra`."""
        terms = [term_class(kind)() for kind in self.extra]
        for term in terms:
            if term.uses_load():
                raise ModelError(f"an extra term must not depend on the load. '{term.kind}' does.")
        return terms

    def _friction_terms(self, shapes: tuple[tuple[float, ...], ...], joint: int) -> list[Term]:
        terms: list[Term] = [Offset()] if self.offset else []
        if self.rotor_side:
            terms.append(Inertia(self.rotor_inertias[joint] if self.rotor_inertias else None))
        terms += [Viscous(self.powers)] if self.powers else []
        terms += [Stribeck(self.stribeck, width=self.width)] if self.stribeck > 0.0 else []
        terms += [PowerFlow(self.width)] if self.power_flow else []
        terms += self._dry_friction(shapes, joint)
        terms += [SpeedRipple(self.ripple)] if self.ripple > 0.0 else []
        return terms

    def _dry_friction(self, shapes: tuple[tuple[float, ...], ...], joint: int) -> list[Term]:
        if self.direction != "hysteresis":
            return [] if self.power_flow else [Coulomb(self.load, self.direction, self.width)]
        even = (1.0 / len(self.limits),) * len(self.limits)
        scale = self.scales[joint] if self.scales else 1.0
        limits = tuple(scale * limit for limit in self.limits)
        return [
            Hysteresis(limits, self.relaxation, driver, self.load, shape if self.load != "none" else ())
            for driver, shape in zip(self.drivers, shapes or (even,) * len(self.drivers), strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the choices as a document."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    def describe(self) -> str:
        """Return the choices in a few words."""
        parts = [f"viscous powers {', '.join(f'{p:g}' for p in self.powers)}" if self.powers else "no viscous friction"]
        if self.direction == "hysteresis":
            memory = f", relaxing in {self.relaxation:g} s" if self.relaxation else ""
            parts.append(
                f"hysteresis of {len(self.limits)} slip elements driven by {listed_drivers(self.drivers)}{memory}"
            )
        elif self.power_flow:
            parts.append("dry friction by direction of power")
        else:
            parts.append(f"Coulomb friction by {self.direction}")
        parts.append("no load dependence" if self.load == "none" else f"{self.load} load dependence")
        parts += ["Stribeck"] * (self.stribeck > 0.0) + ["speed-ripple response"] * (self.ripple > 0.0)
        parts += ["two encoders"] * self.rotor_side
        return ", ".join([*parts, *self.extra])


DRIVERS = {"q": "position", "track": "integrated speed", "rotor": "rotor position"}
"""Positions that drive slip elements, in words."""


def listed_drivers(drivers: Sequence[str]) -> str:
    """Return the positions that drive slip elements, in words."""
    return " and ".join(DRIVERS[driver] for driver in drivers)


def element_shapes(terms: Sequence[Term], values: Array) -> tuple[tuple[float, ...], ...]:
    """Return the share of every slip element in each driver's hysteresis, from the term values of one joint."""
    shapes, place = [], 0
    for term in terms:
        size = len(term.parameters())
        if isinstance(term, Hysteresis):
            forces = np.maximum(values[place : place + len(term.limits)], 0.0)
            total = float(forces.sum())
            even = np.full(len(forces), 1.0 / len(forces))
            shapes.append(tuple((forces / total if total > 0.0 else even).tolist()))
        place += size
    return tuple(shapes)


SUMS = ("FC0", "FC1")
"""Magnitude of dry friction, and of its growth with the load, which slip elements share."""


@dataclass(frozen=True)
class JointTerms:
    """Terms of one joint from experiments on that joint.

    Attributes:
        terms: The terms.
        known: Value and standard error of parameters that are not estimated, by name (without the joint).
        open: Effects that the experiments did not determine (`direction`, `drivers`, `relaxation`, `load`, `viscous`,
            `stribeck`, `ripple`); they are those of the calibration.
        firm: Whether the terms are kept even if the automatic ones predict better.
        sums: Value and standard error that the slip elements share: of `FC0`, the sum of their forces, and of `FC1`,
            that of their growth with the load.

    """

    terms: tuple[Term, ...]
    known: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    open: tuple[str, ...] = ()
    firm: bool = False
    sums: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def without_load(self) -> tuple[Term, ...]:
        """Return the terms as long as no load torque is known."""
        return tuple(_unloaded(term) for term in self.terms if not term.needs_load)

    def completed(self, structure: Structure) -> JointTerms:
        """Return the terms with the open effects as in a structure."""
        terms = [filled for term in self.terms for filled in self._filled(term, structure)]
        terms += self._added(structure)
        slips = "direction" in self.open and structure.direction == "hysteresis"
        shared = set(SUMS) & set(self.known) if slips else set()
        sums = {name: self.known[name] for name in shared}
        known = {name: pair for name, pair in self.known.items() if name not in shared}
        return replace(self, terms=tuple(terms), open=(), known=known, sums=sums)

    def _added(self, structure: Structure) -> list[Term]:
        """Return the terms of a structure for open effects that no term of the joint has."""
        terms: list[Term] = []
        if "viscous" in self.open and structure.powers:
            terms.append(Viscous(structure.powers))
        if "stribeck" in self.open and structure.stribeck:
            terms.append(Stribeck(structure.stribeck, width=structure.width))
        if "ripple" in self.open and structure.ripple:
            terms.append(SpeedRipple(structure.ripple))
        return terms + structure.extra_terms()

    def _filled(self, term: Term, structure: Structure) -> list[Term]:
        """Return dry friction as in the structure where that is open; other terms as they are."""
        if not isinstance(term, Coulomb | Hysteresis | Rated):
            return [term]
        load = structure.load if "load" in self.open else term.load
        if isinstance(term, Rated):
            return [replace(term, load=load)]
        if "direction" in self.open:
            dry = replace(structure, load=load, powers=(), stribeck=0.0, ripple=0.0, offset=False, extra=())
            return list(dry.terms())
        if isinstance(term, Coulomb) or structure.direction != "hysteresis":
            return [replace(term, load=load)]
        drivers = structure.drivers if "drivers" in self.open else (term.driver,)
        relaxation = structure.relaxation if "relaxation" in self.open else term.relaxation
        return [replace(term, load=load, driver=driver, relaxation=relaxation) for driver in drivers]


def _unloaded(term: Term) -> Term:
    return replace(term, load="none") if isinstance(term, Coulomb | Hysteresis | Rated) else term


NO_JOINT_TERMS: Mapping[int, JointTerms] = MappingProxyType({})
