"""Signals of joints: motions on a uniform clock, on which the model is evaluated, and joints with their drives."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from jointwise.errors import ShapeError
from jointwise.spatial import Array


@dataclass(frozen=True)
class Signals:
    """Uniformly sampled signals of joints, shape (samples, joints), or (samples,) of one joint.

    Attributes:
        rate: Sampling rate, Hz.
        q: Filtered positions, rad or m.
        qd: Speeds of the filtered positions, rad/s or m/s.
        qdd: Accelerations of the filtered positions, rad/s² or m/s².
        path: Position without overshoot at a stop, which drives hysteresis, rad; None for `q`.
        track: Integral of the measured speed with its fast part, which drives hysteresis, rad; None if not measured.
        ripple: Part of the measured speed above the bandwidth of `qd`, rad/s; None if not measured.
        temperature: Temperatures, °C; None if not measured.
        rotor: Filtered rotor position at the joint side, where friction acts, rad; None if not measured.

    """

    rate: float
    q: Array
    qd: Array
    qdd: Array
    path: Array | None = None
    track: Array | None = None
    ripple: Array | None = None
    temperature: Array | None = None
    rotor: Array | None = None

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.q)


@dataclass(frozen=True)
class Motion(Signals):
    """Signals of all joints, each (samples, joints); see `Signals`.

    Attributes:
        rotor_speed: Rotor speed, filtered like `qd`, rad/s; None where no rotor position was measured.
        rotor_acceleration: Rotor acceleration, filtered like `qdd`, rad/s²; None likewise.
        start: Time of the first sample, s.
    """

    rotor_speed: Array | None = None
    rotor_acceleration: Array | None = None
    start: float = 0.0

    def __post_init__(self) -> None:
        """Check that the signals have one shape."""
        for name, value in self._arrays().items():
            if value.shape != self.q.shape:
                raise ShapeError(f"{name} must have shape {self.q.shape}. Got {value.shape} instead.")

    def __repr__(self) -> str:
        """Return size and rate in one line."""
        return f"Motion({len(self.q)} samples, {self.joints} joints, {self.rate:g} Hz)"

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.q.shape[1])

    @property
    def t(self) -> Array:
        """Times of the samples, s, shape (samples,)."""
        return self.start + np.arange(self.samples) / self.rate

    def part(self, inner: slice) -> Motion:
        """Return the samples of a slice (without step) as a motion of its own."""
        first = inner.indices(self.samples)[0]
        arrays = {name: value[inner] for name, value in self._arrays().items()}
        return replace(self, **arrays, start=self.start + first / self.rate)

    def _arrays(self) -> dict[str, Any]:
        """Return the signals that there are, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if name not in ("rate", "start") and value is not None}


@dataclass(frozen=True)
class DriveSignals:
    """Signals of joints and their drives, each (joints,) or (samples, joints).

    Attributes:
        q: Positions of the links, rad.
        qd: Speeds of the links, rad/s.
        theta: Positions of the rotors after the gear, rad.
        speed: Speeds of the rotors after the gear, rad/s.
        current: Motor currents, A.
        temperature: Temperatures of the motors, °C.
    """

    q: Array
    qd: Array
    theta: Array
    speed: Array
    current: Array
    temperature: Array


def with_substitutes(motion: Motion) -> Motion:
    """Return a motion in which the path stands in for a measured speed that is missing."""
    if motion.track is not None:
        return motion
    return replace(motion, track=motion.q if motion.path is None else motion.path, ripple=np.zeros_like(motion.q))
