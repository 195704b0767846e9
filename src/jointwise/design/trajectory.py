"""Planned motions: positions and their derivatives as closed-form functions of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked
from jointwise.errors import ModelError, ShapeError
from jointwise.spatial import Array


@dataclass(frozen=True)
class States:
    """A motion at some times.

    Attributes:
        t: Times, (samples,), s.
        q: Positions, (samples, joints), rad or m.
        qd: Speeds, (samples, joints), rad/s or m/s.
        qdd: Accelerations, (samples, joints), rad/s² or m/s².
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array

    def take(self, index: NDArray[np.intp]) -> States:
        """Return the states of some samples."""
        return States(self.t[index], self.q[index], self.qd[index], self.qdd[index])


class Trajectory(ABC):
    """A motion that can be evaluated at any time; at rest before 0 and after `duration` (s)."""

    duration: float

    @property
    @abstractmethod
    def joints(self) -> int:
        """Number of joints."""

    @abstractmethod
    def at(self, t: Array) -> States:
        """Return the motion at the times t (samples,), s; any clock, in any order."""

    @abstractmethod
    def position(self, t: Array) -> Array:
        """Return q alone, (samples, joints): cheaper than `at`."""

    def sample(self, rate: float) -> States:
        """Return the motion on the uniform clock k / rate (Hz), from 0 to the end."""
        return self.at(np.arange(int(self.duration * rate) + 1) / rate)


class Differentiable(Trajectory):
    """A motion that also gives jerk (order 3) and snap (order 4); at rest before 0 and from `duration` (s) on.

    `smooth` is True if q̈, jerk and snap are continuous. Otherwise they jump between pieces, and the value of the piece
    that begins there is returned.
    """

    smooth: bool

    @abstractmethod
    def curve(self, t: Array, order: int) -> Array:
        """Return the derivative of an order (0 for q) at times (samples,) within [0, duration], (samples, joints)."""

    def derivative(self, t: Array, order: int) -> Array:
        """Return dᵏq/dtᵏ of an order k, (samples, joints).

        Args:
            t: Any times, (samples,), s.
            order: k, from 0 (q) to 4 (snap).
        """
        if not 0 <= order <= 4:
            raise ModelError(f"order must be 0 to 4. Got {order} instead.")
        if np.ndim(t) != 1:
            raise ShapeError(f"t must have shape (samples,). Got {np.shape(t)} instead.")
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


@checked
def derivative(motion: Trajectory, t: Array, order: int) -> Array:
    """Return dᵏq/dtᵏ of an order k, (samples, joints).

    Args:
        motion: The motion; orders 3 and 4 need a `Differentiable` one.
        t: Times, (samples,), s.
        order: k, from 0 (q) to 4 (snap).
    """
    times = np.asarray(t, dtype=float)
    if isinstance(motion, Differentiable):
        return motion.derivative(times, order)
    if 0 <= order <= 2:
        states = motion.at(times)
        return (states.q, states.qd, states.qdd)[order]
    raise ModelError(f"{type(motion).__name__} has no derivative of order {order}.")


@dataclass(frozen=True)
class Succession(Differentiable):
    """A sequence of motions, each of which begins where the previous one stops.

    Attributes:
        duration: Duration of all parts, s.
        parts: The motions.
        starts: Times at which they begin, (parts,), s.
        smooth: Whether acceleration, jerk and snap are continuous.
    """

    duration: float
    parts: tuple[Differentiable, ...]
    starts: Array
    smooth: bool

    @property
    def joints(self) -> int:
        """Number of joints."""
        return self.parts[0].joints

    def curve(self, t: Array, order: int) -> Array:
        """Return the derivative of an order within [0, duration], (samples, joints)."""
        which = np.maximum(np.searchsorted(self.starts, t, side="right") - 1, 0)
        values = np.empty((len(t), self.joints))
        for k, part in enumerate(self.parts):
            rows = which == k
            values[rows] = part.derivative(t[rows] - self.starts[k], order)
        return values


@checked
def succession(parts: Sequence[Differentiable], gap: float = 1e-9) -> Succession:
    """Return a sequence of motions; each must begin within `gap` (rad, m) of where the previous one stops."""
    if not parts:
        raise ModelError("parts must have at least one motion. Got none.")
    for k, (before, after) in enumerate(pairwise(parts), start=1):
        jump = np.abs(after.position(np.zeros(1)) - before.position(np.array([before.duration]))).max()
        if jump > gap:
            raise ModelError(f"motion {k + 1} must begin where motion {k} stops. It begins {jump:.3g} away.")
    ends = np.cumsum([part.duration for part in parts])
    starts = np.concatenate([[0.0], ends[:-1]])
    return Succession(float(ends[-1]), tuple(parts), starts, all(part.smooth for part in parts))


def smooth_step(u: Array) -> tuple[Array, Array, Array]:
    """Return ``s = 10 u³ - 15 u⁴ + 6 u⁵`` and its first two derivatives; 0 to 1 with rest of all three at both ends."""
    s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    return s, 30.0 * (u * (1.0 - u)) ** 2, 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u)


class DurationError(ModelError):
    """A motion does not fit into its duration: `what` must fit, which takes `least` (s)."""

    def __init__(self, what: str, least: float, duration: float) -> None:
        """Describe what must fit and the shortest sufficient duration."""
        super().__init__(f"duration must hold {what}: at least {_up(least):.4g} s. Got {duration:.6g} s instead.")
        self.what = what
        self.least = least


def _up(seconds: float) -> float:
    """Return the next larger number of four digits, so that the duration in a message is sufficient."""
    step = 10.0 ** (np.floor(np.log10(seconds)) - 3)
    return float(np.ceil(seconds / step - 1e-6) * step)


def random_numbers(seed: int, *more: int) -> np.random.Generator:
    """Return the random numbers of a seed, or raise `ModelError` for a negative one.

    Args:
        seed: Seed of a motion.
        more: Further numbers, for random numbers that are independent of those of the seed alone.
    """
    if seed < 0:
        raise ModelError(f"seed must not be negative. Got {seed} instead.")
    return np.random.default_rng([seed, *more] if more else seed)


def check_positive(**settings: float) -> None:
    """Reject settings of a motion that are not finite positive numbers."""
    for name, value in settings.items():
        if not (np.isfinite(value) and value > 0.0):
            raise ModelError(f"{name} must be a positive number. Got {value} instead.")
