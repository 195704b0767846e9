"""A planned motion: positions, speeds and accelerations as closed formulas of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ModelError
from jointwise.spatial import Array


@dataclass(frozen=True)
class States:
    """A motion at given times: `t` (samples,) s; `q`, `qd`, `qdd` (samples, joints) in rad, rad/s, rad/s²."""

    t: Array
    q: Array
    qd: Array
    qdd: Array

    def take(self, index: NDArray[np.intp]) -> States:
        """Return the states of some samples."""
        return States(self.t[index], self.q[index], self.qd[index], self.qdd[index])


class Trajectory(ABC):
    """A motion that can be asked at any time; at rest before 0 and after `duration` (s)."""

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


def smooth_step(u: Array) -> tuple[Array, Array, Array]:
    """Return s = 10 u³ - 15 u⁴ + 6 u⁵ and its first two derivatives; 0 to 1 with rest of all three at both ends."""
    s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    return s, 30.0 * (u * (1.0 - u)) ** 2, 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u)


class DurationError(ModelError):
    """A motion does not fit into its time: `what` must be held, which takes `least` (s)."""

    def __init__(self, what: str, least: float, duration: float) -> None:
        """Say what must fit, and the time that would do."""
        super().__init__(f"duration must hold {what}: at least {_up(least):.4g} s. Got {duration:.6g} s instead.")
        self.what = what
        self.least = least


def _up(seconds: float) -> float:
    """Return the next larger number of four digits, so that what a message names does suffice."""
    step = 10.0 ** (np.floor(np.log10(seconds)) - 3)
    return float(np.ceil(seconds / step - 1e-6) * step)


def refuse_unless_positive(**settings: float) -> None:
    """Refuse settings of a motion that are not finite positive numbers."""
    for name, value in settings.items():
        if not (np.isfinite(value) and value > 0.0):
            raise ModelError(f"{name} must be a positive number. Got {value} instead.")
