"""Everything about one joint of the digital robot."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from jointwise.errors import ModelError
from jointwise.model.spring import Rigid
from jointwise.simulation.robot.checks import check_range
from jointwise.simulation.robot.elasticity import Elasticity
from jointwise.simulation.robot.friction import Friction
from jointwise.simulation.robot.gear import Backlash, Harmonic, LostMotion, check_gear

COLDEST, HOTTEST = -60.0, 200.0
"""Temperatures (°C) of the surroundings, and between which a joint can start."""


@dataclass(frozen=True)
class MotorPlant:
    """A motor with its current loop: ``τ_m = gain · i``, ``di/dt = (i_cmd - i) / lag``, ``|i_cmd| <= limit``.

    `gain` Nm/A at the joint side; `limit` A (inf: none); `lag` s (0: none).
    """

    gain: float = 10.0
    limit: float = math.inf
    lag: float = 0.0

    def __post_init__(self) -> None:
        """Refuse motors that cannot turn."""
        check_range("motor", 0.0, above=True, gain=self.gain)
        check_range("motor", 0.0, lag=self.lag)
        if not self.limit > 0.0:
            raise ModelError(f"motor: limit must be > 0 A. Got {self.limit} instead.")


@dataclass(frozen=True)
class Thermal:
    """Heat of a joint: ``C dT/dt = P_friction + P_damping - G (T - T_ambient)``.

    `capacity` C in J/K (0: the temperature stays), `conductance` G in W/K, `ambient` in °C.
    """

    capacity: float = 0.0
    conductance: float = 0.0
    ambient: float = 20.0

    def __post_init__(self) -> None:
        """Refuse what heats up by cooling."""
        check_range("thermal", 0.0, capacity=self.capacity, conductance=self.conductance)
        if not COLDEST <= self.ambient <= HOTTEST:
            raise ModelError(f"thermal: ambient must be {COLDEST:g} to {HOTTEST:g} °C. Got {self.ambient} instead.")


@dataclass(frozen=True)
class JointPlant:
    """One joint, all quantities at the joint side (after the gear).

    `inertia` B = r² (J_m + J_r), kg m²; `gear_ratio` r, motor turns a joint turn (used by the complete model only);
    `stiffness` of the gear; `damping` D of it, Nm s/rad; `friction` of the rotor; `backlash` B(θ), the scale of the
    friction's slip elements and of the `lost_motion`; `kinematic_error`, its harmonics; `motor`; `thermal`. A rigid
    joint has neither lost motion nor kinematic error.
    """

    inertia: float
    gear_ratio: float = 100.0
    stiffness: Elasticity = field(default_factory=Rigid)
    damping: float = 0.0
    friction: Friction = field(default_factory=Friction)
    backlash: Backlash = field(default_factory=Backlash)
    kinematic_error: tuple[Harmonic, ...] = ()
    lost_motion: LostMotion = field(default_factory=LostMotion)
    motor: MotorPlant = field(default_factory=MotorPlant)
    thermal: Thermal = field(default_factory=Thermal)

    def __post_init__(self) -> None:
        """Refuse joints that cannot be integrated."""
        check_range("joint", 0.0, above=not self.is_rigid, inertia=self.inertia)
        check_range("joint", 0.0, damping=self.damping)
        check_range("joint", 0.0, above=True, gear_ratio=self.gear_ratio)
        check_gear(self.kinematic_error, self.lost_motion, self.backlash)

    @property
    def is_rigid(self) -> bool:
        """Tell whether rotor and link move as one."""
        return isinstance(self.stiffness, Rigid)
