"""Position-dependent properties of a gear: backlash map, lost motion and kinematic error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.model.periodic_table import TURN, PeriodicTable
from jointwise.simulation.robot.checks import check_finite, check_range
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
        """Refuse an empty map and values that are no size."""
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

    The play P in [-1, 1] follows the rotor, ``dP = dθ / L`` until it rests on a flank; `reach` L in rad: the teeth
    change flank over 2 L, progressively while the wave generator turns. It depends on the way alone, not on speed or
    load, and the gear stays lossless: ``dφ/dθ = 1 - e' - (d P)'`` is also its torque ratio. In slow reciprocation
    without load e is the midpoint of θ - q by direction and d half the difference. `fraction` 0: none.
    """

    fraction: float = 0.0
    reach: float = math.pi / 100.0

    def __post_init__(self) -> None:
        """Refuse gears that run ahead or change flank at once."""
        check_range("lost motion", 0.0, fraction=self.fraction)
        check_range("lost motion", 0.0, above=True, reach=self.reach)

    def steepest(self, backlash: Backlash) -> float:
        """Return the largest |d(d P)/dθ| on a map."""
        return self.fraction * (max(backlash.values) / self.reach + backlash.steepest)


@dataclass(frozen=True)
class Harmonic:
    """One wave of the kinematic error e(θ) = Σ a sin(m θ + p): `amplitude` a (rad), `order` m (1/turn), `phase` p."""

    amplitude: float
    order: float
    phase: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a wave that turns the gear backwards."""
        check_finite("kinematic error", amplitude=self.amplitude, order=self.order, phase=self.phase)


def check_gear(harmonics: tuple[Harmonic, ...], lost_motion: LostMotion, backlash: Backlash) -> None:
    """Refuse too many waves, and slopes that together could reverse the gear (Σ a m + max |(d P)'| >= 1)."""
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
