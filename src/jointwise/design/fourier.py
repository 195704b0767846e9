"""Finite Fourier series that fade in from rest and out to rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from jointwise.arguments import checked
from jointwise.description.robot import Robot
from jointwise.design.limits import SCALE_RESERVE, MotionLimits, motion_limits
from jointwise.design.trajectory import Differentiable, States, check_positive, random_numbers, smooth_step
from jointwise.spatial import Array

POINTS_PER_PERIOD = 60
"""Points per shortest period at which a series is sampled to find its extremes (within 0.2 %)."""


@dataclass(frozen=True)
class FadedSeries(Differentiable):
    """``q(t) = center + w(t) Σ_k (a_k sin k ω t + b_k cos k ω t)``, w rising and falling as quintics.

    Attributes:
        duration: Duration, s.
        fade: Time over which w rises and falls, s.
        base_frequency: ω / 2π, Hz.
        center: Position at rest, (joints,), rad or m.
        sine: a_k, (harmonics, joints), rad or m.
        cosine: b_k, (harmonics, joints), rad or m.
        smooth: Whether acceleration, jerk and snap are continuous.
    """

    duration: float
    fade: float
    base_frequency: float
    center: Array
    sine: Array
    cosine: Array
    smooth: bool = False

    @property
    def joints(self) -> int:
        """Number of joints."""
        return len(self.center)

    def position(self, t: Array) -> Array:
        """Return q (samples, joints)."""
        sin, cos, _ = self._waves(t)
        return self.center + self._window(t)[0] * (sin @ self.sine + cos @ self.cosine)

    def at(self, t: Array) -> States:
        """Return q, ``q̇ = ẇ f + w ḟ`` and ``q̈ = ẅ f + 2 ẇ ḟ + w f̈``."""
        sin, cos, k = self._waves(t)
        f = sin @ self.sine + cos @ self.cosine
        fd = cos @ (k * self.sine) - sin @ (k * self.cosine)
        fdd = -(sin @ (k**2 * self.sine) + cos @ (k**2 * self.cosine))
        w, wd, wdd = self._window(t)
        return States(t, self.center + w * f, wd * f + w * fd, wdd * f + 2.0 * wd * fd + w * fdd)

    def curve(self, t: Array, order: int) -> Array:
        """Return Σ_i C(k, i) w⁽ⁱ⁾ f⁽ᵏ⁻ⁱ⁾ of ``q = center + w f`` (Leibniz); jerk and snap jump where a fade ends."""
        parts = [
            comb(order, i) * self._window_derivative(t, i)[:, None] * self._series_derivative(t, order - i)
            for i in range(order + 1)
        ]
        total: Array = np.sum(parts, axis=0)
        return total + self.center if order == 0 else total

    def _series_derivative(self, t: Array, order: int) -> Array:
        """Return the derivative of Σ a sin k ω t + b cos k ω t: each order advances the phase by a right angle."""
        k = 2.0 * np.pi * self.base_frequency * np.arange(1.0, len(self.sine) + 1.0)
        phase = np.multiply.outer(t, k) + 0.5 * np.pi * order
        return (k**order * np.sin(phase)) @ self.sine + (k**order * np.cos(phase)) @ self.cosine

    def _window_derivative(self, t: Array, order: int) -> Array:
        """Return the derivative of the quintic window, (samples,)."""
        rise = np.polynomial.Polynomial([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
        near = np.minimum(t, self.duration - t) / self.fade
        side = np.where(t < 0.5 * self.duration, 1.0, -1.0) / self.fade
        if order == 0:
            return np.asarray(rise(np.clip(near, 0.0, 1.0)), dtype=float)
        value = rise.deriv(order)(near) * side**order
        return np.where((near < 0.0) | (near >= 1.0), 0.0, value)

    def about(self, center: Array, size: float) -> FadedSeries:
        """Return the series about another centre (joints,), `size` times as large."""
        return replace(self, center=center, sine=size * self.sine, cosine=size * self.cosine)

    def _waves(self, t: Array) -> tuple[Array, Array, Array]:
        """Return sin k ω t and cos k ω t, (samples, harmonics), and k ω (harmonics, 1) in rad/s."""
        k: Array = 2.0 * np.pi * self.base_frequency * np.arange(1.0, len(self.sine) + 1.0)
        phase: Array = np.multiply.outer(t, k)
        return np.sin(phase), np.cos(phase), k[:, None]

    def _window(self, t: Array) -> tuple[Array, Array, Array]:
        """Return w, ẇ, ẅ, (samples, 1): 0 outside the motion, 1 between the fades."""
        nearest_end = np.clip(np.minimum(t, self.duration - t) / self.fade, 0.0, 1.0)[:, None]
        side = np.where(t < 0.5 * self.duration, 1.0, -1.0)[:, None]
        w, wd, wdd = smooth_step(nearest_end)
        return w, side * wd / self.fade, wdd / self.fade**2


@checked
def fourier_trajectory(
    robot: Robot,
    duration: float,
    seed: int = 0,
    *,
    harmonics: int = 5,
    base_frequency: float = 0.1,
    amplitude: float = 1.5,
    speed_fraction: float = 0.6,
) -> FadedSeries:
    """Return a random Fourier series of all joints within their limits, from rest to rest.

    The amplitude of every joint is the largest within `amplitude` (rad, m) about its centre, its position limits,
    `speed_fraction` of its speed limit and its acceleration limit (6 rad/s² if it has none). The centre is random
    within the position limits.
    """
    check_positive(
        duration=duration, harmonics=harmonics, base_frequency=base_frequency,
        amplitude=amplitude, speed_fraction=speed_fraction,
    )  # fmt: skip
    rng = random_numbers(seed)
    weights = 1.0 / np.arange(1, harmonics + 1)[:, None]
    sine, cosine = weights * rng.normal(size=(2, harmonics, robot.dof))
    shape = FadedSeries(duration, fade_time(duration), base_frequency, np.zeros(robot.dof), sine, cosine)
    scaled, below, above = _scaled(shape, limits := motion_limits(robot, speed_fraction), amplitude)
    return replace(scaled, center=limits.draw_center(rng, below, above))


def fade_time(duration: float) -> float:
    """Return the time of fading in or out, s."""
    return min(2.0, 0.25 * duration)


def _scaled(shape: FadedSeries, limits: MotionLimits, amplitude: float) -> tuple[FadedSeries, Array, Array]:
    """Return a series about zero scaled to its limits, and how far (rad) it extends below and above zero."""
    rate = POINTS_PER_PERIOD * max(len(shape.sine) * shape.base_frequency, 1.0 / shape.fade)
    states = shape.sample(rate)
    lowest, highest = -states.q.min(axis=0), states.q.max(axis=0)
    scale = limits.largest_scale(states, lowest + highest, amplitude)
    series = replace(shape, sine=scale * shape.sine, cosine=scale * shape.cosine)
    return series, scale * lowest / SCALE_RESERVE, scale * highest / SCALE_RESERVE
