"""Motions with derivatives of any order, as the feed-forward of flexible joints needs them."""

from __future__ import annotations

from abc import abstractmethod
from math import comb

import numpy as np

from jointwise.errors import ModelError
from jointwise.simulation.references.fourier import FadedSeries
from jointwise.simulation.references.trajectory import States, Trajectory
from jointwise.spatial import Array


class Differentiable(Trajectory):
    """A motion that also gives jerk (order 3) and snap (order 4); at rest before 0 and from `duration` (s) on.

    `smooth` tells whether q̈, jerk and snap are continuous. Where it is False they jump between pieces, and the value of
    the piece that begins there is returned.
    """

    smooth: bool

    @abstractmethod
    def curve(self, t: Array, order: int) -> Array:
        """Return the derivative of an order (0 for q) at times (samples,) within [0, duration], (samples, joints)."""

    def derivative(self, t: Array, order: int) -> Array:
        """Return dᵏq/dtᵏ, k = `order` from 0 (q) to 4 (snap), at any times (samples,), s: (samples, joints)."""
        if not 0 <= order <= 4:
            raise ModelError(f"order must be 0 to 4. Got {order} instead.")
        values = self.curve(np.clip(t, 0.0, self.duration), order)
        outside = (t < 0.0) | (t >= self.duration)
        return np.where(outside[:, None], 0.0, values) if order else values

    def position(self, t: Array) -> Array:
        """Return q (samples, joints)."""
        return self.derivative(np.asarray(t, dtype=float), 0)

    def at(self, t: Array) -> States:
        """Return q, q̇ and q̈ at the times t (samples,), s."""
        times = np.asarray(t, dtype=float)
        return States(times, *(self.derivative(times, order) for order in range(3)))


def derivative(motion: Trajectory, t: Array, order: int) -> Array:
    """Return dᵏq/dtᵏ (samples, joints), k = `order` up to 4, of any motion that has closed formulas for it.

    A faded Fourier series has continuous q̈; its jerk and snap jump where the fading begins and ends.
    """
    times = np.asarray(t, dtype=float)
    if isinstance(motion, Differentiable):
        return motion.derivative(times, order)
    if isinstance(motion, FadedSeries) and 0 <= order <= 4:
        return _faded_derivative(motion, times, order)
    if 0 <= order <= 2:
        states = motion.at(times)
        return (states.q, states.qd, states.qdd)[order]
    raise ModelError(f"{type(motion).__name__} has no derivative of order {order}.")


def _faded_derivative(motion: FadedSeries, t: Array, order: int) -> Array:
    """Return Σ_i C(k, i) w⁽ⁱ⁾ f⁽ᵏ⁻ⁱ⁾ of ``q = center + w f`` (Leibniz)."""
    parts = [
        comb(order, i) * _window_derivative(motion, t, i)[:, None] * _series_derivative(motion, t, order - i)
        for i in range(order + 1)
    ]
    total: Array = np.sum(parts, axis=0)
    return total + motion.center if order == 0 else total


def _series_derivative(motion: FadedSeries, t: Array, order: int) -> Array:
    """Return the derivative of Σ a sin k ω t + b cos k ω t: each turns the phase by a right angle."""
    k = 2.0 * np.pi * motion.base_frequency * np.arange(1.0, len(motion.sine) + 1.0)
    phase = np.multiply.outer(t, k) + 0.5 * np.pi * order
    result: Array = (k**order * np.sin(phase)) @ motion.sine + (k**order * np.cos(phase)) @ motion.cosine
    return result


def _window_derivative(motion: FadedSeries, t: Array, order: int) -> Array:
    """Return the derivative of the quintic window, (samples,)."""
    rise = np.polynomial.Polynomial([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
    near = np.minimum(t, motion.duration - t) / motion.fade
    side = np.where(t < 0.5 * motion.duration, 1.0, -1.0) / motion.fade
    if order == 0:
        return np.asarray(rise(np.clip(near, 0.0, 1.0)), dtype=float)
    value = rise.deriv(order)(near) * side**order
    return np.where((near < 0.0) | (near >= 1.0), 0.0, value)
