"""One joint of the digital robot: gear, friction, spring, motor and temperature; phenomena switched off, and wear."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from jointwise.errors import ModelError, check_finite, check_range, nearest
from jointwise.model.joint_friction import COULOMB_LIMIT, Friction, Slip, Stribeck, ThermalFriction
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.model.spring import Cubic, Rigid, Segments
from jointwise.model.terms import DRY, JointLaw, Role
from jointwise.spatial import Array

MOST_HARMONICS = 8
MOST_POINTS = 100_000


@dataclass(frozen=True)
class Backlash(PeriodicTable):
    """B(θ) > 0 in rad, the scale of slip elements and lost motion: one number, or equally spaced over one turn.

    The first is that of θ = 0.
    """

    values: tuple[float, ...] = (1e-3,)

    def __post_init__(self) -> None:
        """Check that there are values and that all are positive."""
        if not 1 <= len(self.values) <= MOST_POINTS:
            raise ModelError(f"backlash must have 1 to {MOST_POINTS} values. Got {len(self.values)} instead.")
        check_range("backlash", 0.0, above=True, smallest=min(self.values), largest=max(self.values))

    @classmethod
    def wavy(cls, mean: float, variation: float, phase: float = 0.0, points: int = 240) -> Backlash:
        """Return ``B (1 + v (⅔ sin(θ + p) + ⅓ sin(3 θ + 2 p)))``: mean B (rad), variation v in [0, 1)."""
        check_range("backlash", 0.0, above=True, mean=mean)
        if not 0.0 <= variation < 1.0:
            raise ModelError(f"backlash: variation must lie in [0, 1). Got {variation} instead.")
        angle = TURN * np.arange(points) / points
        wave = (2.0 * np.sin(angle + phase) + np.sin(3.0 * angle + 2.0 * phase)) / 3.0
        return cls(tuple((mean * (1.0 + variation * wave)).tolist()))

    @property
    def mean(self) -> float:
        """Mean over a turn, rad."""
        return float(np.mean(self.values))

    @property
    def steepest(self) -> float:
        """Largest |dB/dθ|, rad/rad."""
        return float(np.abs(self.slopes).max())


@dataclass(frozen=True)
class LostMotion:
    """Lag of the gear by direction: ``φ = θ - e(θ) - d(θ) P - q``, ``d(θ) = fraction · B(θ)``.

    The play P in [-1, 1] follows the rotor, ``dP = dθ / L`` until it rests on a flank: the teeth change flank over 2 L,
    progressively while the wave generator turns. It depends on the path alone, not on speed or load, and the gear stays
    lossless: ``dφ/dθ = 1 - e' - (d P)'`` is also its torque ratio. In slow reciprocation without load e is the midpoint
    of θ - q by direction and d half the difference.

    Attributes:
        fraction: d(θ) relative to the backlash B(θ); 0 for none.
        reach: L, rad.
    """

    fraction: float = 0.0
    reach: float = math.pi / 100.0

    def __post_init__(self) -> None:
        """Check that the fraction is not negative and the reach positive."""
        check_range("lost motion", 0.0, fraction=self.fraction)
        check_range("lost motion", 0.0, above=True, reach=self.reach)

    def steepest(self, backlash: Backlash) -> float:
        """Return the largest |d(d P)/dθ| on a map."""
        return self.fraction * (max(backlash.values) / self.reach + backlash.steepest)


@dataclass(frozen=True)
class Harmonic:
    """One wave of the kinematic error ``e(θ) = Σ a sin(m θ + p)``.

    Attributes:
        amplitude: a, rad.
        order: m, cycles per turn.
        phase: p, rad.
    """

    amplitude: float
    order: float
    phase: float = 0.0

    def __post_init__(self) -> None:
        """Check that the numbers are finite."""
        check_finite("kinematic error", amplitude=self.amplitude, order=self.order, phase=self.phase)


def check_gear(harmonics: tuple[Harmonic, ...], lost_motion: LostMotion, backlash: Backlash) -> None:
    """Reject too many waves, and slopes that together could reverse the gear (Σ a m + max |(d P)'| >= 1)."""
    if len(harmonics) > MOST_HARMONICS:
        raise ModelError(f"kinematic error: at most {MOST_HARMONICS} harmonics. Got {len(harmonics)} instead.")
    waves = sum(abs(wave.amplitude * wave.order) for wave in harmonics)
    if waves >= 1.0:
        raise ModelError(f"kinematic error: Σ amplitude · order must be below 1. Got {waves:.3g} instead.")
    slope = waves + lost_motion.steepest(backlash)
    if slope >= 1.0:
        raise ModelError(f"lost motion: slopes of the gear must sum to below 1. Got {slope:.3g} instead: longer reach.")


def kinematic_error(harmonics: tuple[Harmonic, ...], theta: Array) -> Array:
    """Return e(θ) in rad, of the shape of θ."""
    error = np.zeros_like(theta)
    for wave in harmonics:
        error = error + wave.amplitude * np.sin(wave.order * theta + wave.phase)
    return error


Elasticity = Cubic | Segments | Rigid
"""The springs of the native plant."""
COLDEST, HOTTEST = -60.0, 200.0
"""Temperatures (°C) of the surroundings, and between which a joint can start."""


@dataclass(frozen=True)
class MotorPlant:
    """A motor with its current loop: ``τ_m = gain · i``, ``di/dt = (i_cmd - i) / lag``, ``|i_cmd| <= limit``.

    Electrically it is a synchronous motor with i_d = 0 and the quadrature current i; the voltage times the current is
    ``(R i + L di/dt + gain ω) i``. An inductance needs a lag: a current that jumps would need an infinite voltage.

    Attributes:
        gain: Torque at the joint side per ampere, Nm/A.
        limit: Greatest current, A; inf for none.
        lag: Time constant of the current loop, s; 0 for none.
        resistance: R of the equivalent DC motor (3/2 of a phase), Ω.
        inductance: L of the equivalent DC motor (3/2 of a phase), H.
        pole_pairs: Number of pole pairs.
    """

    gain: float = 10.0
    limit: float = math.inf
    lag: float = 0.0
    resistance: float = 0.0
    inductance: float = 0.0
    pole_pairs: int = 1

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        check_range("motor", 0.0, above=True, gain=self.gain)
        check_range("motor", 0.0, lag=self.lag, resistance=self.resistance, inductance=self.inductance)
        check_range("motor", 1.0, pole_pairs=self.pole_pairs)
        if self.inductance > 0.0 and self.lag == 0.0:
            raise ModelError("motor: an inductance needs a lag > 0 s: its current cannot jump. Got a lag of 0 instead.")
        if not self.limit > 0.0:
            raise ModelError(f"motor: limit must be > 0 A. Got {self.limit} instead.")


@dataclass(frozen=True)
class Thermal:
    """Heat of a joint: ``C dT/dt = P_friction + P_damping - G (T - T_ambient)``.

    Attributes:
        capacity: C, J/K; 0 for a temperature that stays.
        conductance: G, W/K.
        ambient: T_ambient, °C.
    """

    capacity: float = 0.0
    conductance: float = 0.0
    ambient: float = 20.0

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        check_range("thermal", 0.0, capacity=self.capacity, conductance=self.conductance)
        if not COLDEST <= self.ambient <= HOTTEST:
            raise ModelError(f"thermal: ambient must be {COLDEST:g} to {HOTTEST:g} °C. Got {self.ambient} instead.")


@dataclass(frozen=True)
class JointPlant:
    """One joint, all quantities at the joint side (after the gear).

    A rigid joint has neither lost motion nor kinematic error.

    Attributes:
        inertia: Inertia of the rotor B = r² (J_m + J_r), kg m².
        gear_ratio: r, motor turns a joint turn; used by the complete model only.
        stiffness: Spring of the gear.
        damping: Damping D of the gear, Nm s/rad.
        friction: Friction of the rotor by its coefficients, which is also what controllers know of it.
        terms: Friction as terms, in place of the coefficients: that of a calibrated model as it is. None without.
        backlash: B(θ), the scale of the slip elements of friction and of the lost motion.
        kinematic_error: Harmonics of the kinematic error e(θ).
        lost_motion: Lost motion d(θ) P.
        motor: Motor with its current loop.
        thermal: Heating by losses.
    """

    inertia: float
    gear_ratio: float = 100.0
    stiffness: Elasticity = field(default_factory=Rigid)
    damping: float = 0.0
    friction: Friction = field(default_factory=Friction)
    terms: JointLaw | None = None
    backlash: Backlash = field(default_factory=Backlash)
    kinematic_error: tuple[Harmonic, ...] = ()
    lost_motion: LostMotion = field(default_factory=LostMotion)
    motor: MotorPlant = field(default_factory=MotorPlant)
    thermal: Thermal = field(default_factory=Thermal)

    def __post_init__(self) -> None:
        """Reject values that cannot be integrated."""
        check_range("joint", 0.0, above=not self.is_rigid, inertia=self.inertia)
        check_range("joint", 0.0, damping=self.damping)
        check_range("joint", 0.0, above=True, gear_ratio=self.gear_ratio)
        check_gear(self.kinematic_error, self.lost_motion, self.backlash)

    @cached_property
    def law(self) -> JointLaw:
        """Friction as terms, which the integrator runs."""
        return self.friction.law(self.backlash) if self.terms is None else self.terms

    @property
    def is_rigid(self) -> bool:
        """Whether rotor and link are rigidly connected."""
        return isinstance(self.stiffness, Rigid)


Switch = Callable[[JointPlant], JointPlant]
"""Returns a joint without a phenomenon."""


def _friction(**changes: object) -> Switch:
    def switch(joint: JointPlant) -> JointPlant:
        return replace(joint, friction=replace(joint.friction, **changes))  # type: ignore[arg-type]

    return switch


def _without_hysteresis(joint: JointPlant) -> JointPlant:
    """Reduce hysteresis to sgn ω: one element that slips after 10 µrad of the mean backlash."""
    slip = Slip((COULOMB_LIMIT / joint.backlash.mean,), (1.0,))
    return replace(joint, friction=replace(joint.friction, slip=slip))


def _rigid(joint: JointPlant) -> JointPlant:
    return replace(joint, stiffness=Rigid(), damping=0.0, kinematic_error=(), lost_motion=LostMotion())


SWITCHES: dict[str, tuple[str, Switch]] = {
    "stiffness": ("elastic gears; damping, kinematic error and lost motion go with it", _rigid),
    "damping": ("damping of the gears", lambda joint: replace(joint, damping=0.0)),
    "coulomb": ("dry friction that never varies", _friction(coulomb=0.0, flow=0.0)),
    "hysteresis": ("memory of dry friction: sgn of the speed is left", _without_hysteresis),
    "load": ("growth of dry friction with the load", _friction(load=0.0)),
    "stribeck": ("more dry friction at low speed", _friction(stribeck=Stribeck())),
    "viscous": ("friction that grows with the speed", _friction(viscous=0.0, square=0.0, cube=0.0)),
    "temperature": ("friction by temperature: that at the reference is left", _friction(thermal=ThermalFriction())),
    "asymmetry": ("dry friction that differs by direction", _friction(asymmetry=0.0)),
    "backlash": (
        "backlash that varies over a turn: its mean is left",
        lambda joint: replace(joint, backlash=Backlash((joint.backlash.mean,))),
    ),
    "kinematic_error": ("gears that lead and lag over a turn", lambda joint: replace(joint, kinematic_error=())),
    "lost_motion": ("play between the flanks of the teeth", lambda joint: replace(joint, lost_motion=LostMotion())),
    "current_limit": (
        "largest current of the motors",
        lambda joint: replace(joint, motor=replace(joint.motor, limit=math.inf)),
    ),
    "current_lag": (
        "time that a current takes to follow",
        lambda joint: replace(joint, motor=replace(joint.motor, lag=0.0, inductance=0.0)),
    ),
    "winding": (
        "resistance and inductance of the motors",
        lambda joint: replace(joint, motor=replace(joint.motor, resistance=0.0, inductance=0.0, pole_pairs=1)),
    ),
    "thermal": (
        "warming: joints stay as warm as they start",
        lambda joint: replace(joint, thermal=replace(joint.thermal, capacity=0.0)),
    ),
}
"""One line about each phenomenon, and how it is switched off."""

TERM_ROLES: dict[str, Role] = {"viscous": "viscous", "temperature": "thermal"}
"""Roles of the terms of a calibrated model that make a phenomenon alone."""
DRY_PHENOMENA = ("coulomb", "hysteresis", "load", "stribeck", "asymmetry", "backlash")
"""Phenomena of dry friction: without one of them, a twin has the coefficients closest to its terms instead."""

PHENOMENA = tuple(SWITCHES)
"""What can be switched off; without all of them the arm is rigid and its rotors are part of its inertia."""

GROUPS: dict[str, tuple[str, ...]] = {
    "friction": ("coulomb", "hysteresis", "load", "stribeck", "viscous", "temperature", "asymmetry"),
    "all": PHENOMENA,
}
"""Several phenomena by one name."""


def switched_off(joint: JointPlant, names: tuple[str, ...]) -> JointPlant:
    """Return the joint without the named phenomena or groups of them."""
    for name in names:
        if name not in SWITCHES and name not in GROUPS:
            raise ModelError(f"unknown phenomenon '{name}'. {nearest(name, [*SWITCHES, *GROUPS])}")
        for phenomenon in GROUPS.get(name, (name,)):
            joint = replace(SWITCHES[phenomenon][1](joint), terms=_terms_without(joint.terms, phenomenon))
    return joint


def _terms_without(law: JointLaw | None, phenomenon: str) -> JointLaw | None:
    """Return terms without a phenomenon; None for the coefficients, where it is no term alone."""
    if law is None or phenomenon in DRY_PHENOMENA:
        return None
    return law.without(TERM_ROLES[phenomenon]) if phenomenon in TERM_ROLES else law


def aged_joint(joint: JointPlant, friction: float = 0.0, stiffness: float = 0.0) -> JointPlant:
    """Return the joint with all friction times 1 + `friction` and the spring's torque times 1 + `stiffness`."""
    check_range("ageing", -1.0, above=True, friction=friction, stiffness=stiffness)
    return replace(
        joint,
        friction=_scaled_friction(joint.friction, 1.0 + friction),
        terms=None if joint.terms is None else joint.terms.scaled(1.0 + friction, (*DRY, "viscous", "thermal")),
        stiffness=_scaled_spring(joint.stiffness, 1.0 + stiffness),
    )


def _scaled_friction(f: Friction, by: float) -> Friction:
    return replace(
        f,
        coulomb=by * f.coulomb,
        load=by * f.load,
        viscous=by * f.viscous,
        square=by * f.square,
        cube=by * f.cube,
        stribeck=replace(f.stribeck, extra=by * f.stribeck.extra),
        thermal=replace(f.thermal, linear=by * f.thermal.linear, cold=by * f.thermal.cold),
    )


def _scaled_spring(spring: Elasticity, by: float) -> Elasticity:
    """Scale torques at equal deformation."""
    if isinstance(spring, Rigid):
        return spring
    if isinstance(spring, Cubic):
        return Cubic(by * spring.linear, by * spring.cubic)
    return Segments(by * spring.K1, by * spring.K2, by * spring.K3, by * spring.T1, by * spring.T2)
