"""Position-dependent properties of a gear: backlash map and kinematic error (theory 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.simulation.robot.checks import check_finite, check_range
from jointwise.spatial import Array

MOST_HARMONICS = 8
MOST_POINTS = 100_000


@dataclass(frozen=True)
class Backlash:
    """B(θ) > 0 in rad, the scale of the slip elements: one number, or equally spaced over one turn from θ = 0.

    Between the points it is linear; it repeats every turn.
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
        angle = 2.0 * np.pi * np.arange(points) / points
        wave = (2.0 * np.sin(angle + phase) + np.sin(3.0 * angle + 2.0 * phase)) / 3.0
        return cls(tuple((mean * (1.0 + variation * wave)).tolist()))

    @property
    def mean(self) -> float:
        """Mean over a turn, rad."""
        return float(np.mean(self.values))

    def resampled(self, points: int) -> Array:
        """Return the map at `points` equally spaced angles, (points,)."""
        own = len(self.values)
        place = np.arange(points) * (own / points)
        values: Array = np.interp(place, np.arange(own + 1), [*self.values, self.values[0]])
        return values


@dataclass(frozen=True)
class Harmonic:
    """One wave of the kinematic error e(θ) = Σ a sin(m θ + p): `amplitude` a (rad), `order` m (1/turn), `phase` p."""

    amplitude: float
    order: float
    phase: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a wave that turns the gear backwards."""
        check_finite("kinematic error", amplitude=self.amplitude, order=self.order, phase=self.phase)


def check_harmonics(harmonics: tuple[Harmonic, ...]) -> None:
    """Refuse too many waves, and waves that together could reverse the gear (Σ a m >= 1)."""
    if len(harmonics) > MOST_HARMONICS:
        raise ModelError(f"kinematic error: at most {MOST_HARMONICS} harmonics. Got {len(harmonics)} instead.")
    slope = sum(abs(wave.amplitude * wave.order) for wave in harmonics)
    if slope >= 1.0:
        raise ModelError(f"kinematic error: Σ amplitude · order must be below 1. Got {slope:.3g} instead.")


def kinematic_error(harmonics: tuple[Harmonic, ...], theta: Array) -> Array:
    """Return e(θ) in rad, of the shape of θ."""
    error = np.zeros_like(theta)
    for wave in harmonics:
        error = error + wave.amplitude * np.sin(wave.order * theta + wave.phase)
    return error
