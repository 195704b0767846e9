"""Motions that are linear in their coefficients: Fourier series that fade in and out, and quintic B-splines.

``q(t) = center + Σ_i coefficients[i] φ_i(t)`` with functions φ_i that vanish with their first two derivatives at both
ends: the motion begins and ends at rest in the pose `center`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from jointwise.description.robot import Robot
from jointwise.design.bspline import DEGREE, SplineMotion, bspline_trajectory, span_count
from jointwise.design.fourier import FadedSeries, fade_time, fourier_trajectory
from jointwise.spatial import Array

ExcitationMotion = FadedSeries | SplineMotion

LOWEST_FREQUENCY = 0.1
"""Base frequency (Hz) of series of 10 s and more; shorter ones use that of one period."""
POINTS_PER_PERIOD = 16
"""Samples of the shortest period: extremes between them exceed a limit by at most 2 %, what the penalty reserves."""
SPACING = 0.5
"""Time (s) between the knots of a spline: half the shortest period of a series with ten harmonics."""
POINTS_PER_SPAN = 8
"""Samples between two knots, as many as in half the shortest period of a series."""


class MotionBasis(ABC):
    """Functions φ_i (s), and the times of samples (s) that resolve them."""

    duration: float

    @property
    @abstractmethod
    def times(self) -> Array:
        """Times at which motions are sampled, (samples,) s."""

    @property
    @abstractmethod
    def scale(self) -> Array:
        """Sizes of the coefficients, (coefficients,), with which all of them change the speed alike."""

    @abstractmethod
    def motion(self, center: Array, coefficients: Array) -> ExcitationMotion:
        """Return the motion of a first pose (joints,) and coefficients (coefficients, joints), rad or m."""

    @abstractmethod
    def random(self, robot: Robot, seed: int, speed: float) -> Array:
        """Return random coefficients (coefficients, joints) at a share of the speed limits."""

    def functions(self) -> Array:
        """Return q, q̇, q̈ at `times` as linear functions of center and coefficients, (3, samples, 1 + coefficients)."""
        count = len(self.scale)
        states = self.motion(np.zeros(count), np.eye(count)).at(self.times)
        constant = np.ones((len(self.times), 1))
        pairs = ((constant, states.q), (0.0 * constant, states.qd), (0.0 * constant, states.qdd))
        return np.stack([np.hstack(pair) for pair in pairs])


@dataclass(frozen=True)
class FourierBasis(MotionBasis):
    """Sines, then cosines, of `harmonics` times the base frequency (Hz), faded in and out."""

    duration: float
    harmonics: int

    @property
    def base_frequency(self) -> float:
        """Base frequency, Hz."""
        return max(LOWEST_FREQUENCY, 1.0 / self.duration)

    @property
    def times(self) -> Array:
        """Times at which motions are sampled, (samples,) s."""
        rate = POINTS_PER_PERIOD * self.harmonics * self.base_frequency
        return np.arange(int(self.duration * rate) + 1) / rate

    @property
    def scale(self) -> Array:
        """1/k of harmonic k."""
        k = 1.0 / np.arange(1.0, self.harmonics + 1.0)
        return np.concatenate([k, k])

    def motion(self, center: Array, coefficients: Array) -> FadedSeries:
        """Return the series."""
        sine, cosine = coefficients[: self.harmonics], coefficients[self.harmonics :]
        return FadedSeries(self.duration, fade_time(self.duration), self.base_frequency, center, sine, cosine)

    def random(self, robot: Robot, seed: int, speed: float) -> Array:
        """Return the coefficients of a random series."""
        series = fourier_trajectory(
            robot, self.duration, seed,
            harmonics=self.harmonics, base_frequency=self.base_frequency, speed_fraction=speed,
        )  # fmt: skip
        return np.vstack([series.sine, series.cosine])


@dataclass(frozen=True)
class SplineBasis(MotionBasis):
    """Quintic B-splines on knots about `SPACING` (s) apart, without the five at each end that do not begin at rest."""

    duration: float

    @property
    def spans(self) -> int:
        """Number of intervals between knots."""
        return span_count(self.duration, SPACING)

    @property
    def times(self) -> Array:
        """Times at which motions are sampled, (samples,) s."""
        return np.linspace(0.0, self.duration, POINTS_PER_SPAN * self.spans + 1)

    @property
    def scale(self) -> Array:
        """All coefficients alike."""
        return np.ones(self.spans - DEGREE)

    def motion(self, center: Array, coefficients: Array) -> SplineMotion:
        """Return the spline."""
        ends = np.zeros((DEGREE, coefficients.shape[1]))
        return SplineMotion.uniform(self.duration, center, np.vstack([ends, coefficients, ends]))

    def random(self, robot: Robot, seed: int, speed: float) -> Array:
        """Return the inner control points of a random spline."""
        spline = bspline_trajectory(robot, self.duration, seed, spacing=SPACING, speed_fraction=speed)
        return spline.control[DEGREE:-DEGREE]
