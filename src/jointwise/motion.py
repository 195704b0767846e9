"""A motion on a uniform clock, on which the model is evaluated."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from jointwise.errors import ShapeError
from jointwise.spatial import Array


@dataclass(frozen=True)
class Motion:
    """Uniformly sampled signals, each (samples, joints), SI and rad.

    `start` (s) is the time of the first sample and `rate` (Hz) the sampling rate. `q`, `qd`, `qdd` are smooth.
    `path` (rad) is a position that never swings past a stop and drives hysteresis (`q` where it is None). `track` (rad)
    keeps the fast part of a measured speed and drives hysteresis too; `ripple` (rad/s) is the part of the measured
    speed above the bandwidth of `qd`. Both are None where no speed was measured. `temperature` in °C and
    `rotor` (rad, the smoothed position of the rotor at the joint side, where friction acts) are None likewise;
    `rotor_speed` (rad/s) and `rotor_acceleration` (rad/s²) are filtered like `qd` and `qdd`.
    """

    start: float
    rate: float
    q: Array
    qd: Array
    qdd: Array
    path: Array | None = None
    track: Array | None = None
    ripple: Array | None = None
    temperature: Array | None = None
    rotor: Array | None = None
    rotor_speed: Array | None = None
    rotor_acceleration: Array | None = None

    def __post_init__(self) -> None:
        """Check that the signals have one shape."""
        for field in fields(self)[3:]:
            value = getattr(self, field.name)
            if value is not None and value.shape != self.q.shape:
                raise ShapeError(f"{field.name} must have shape {self.q.shape}. Got {value.shape} instead.")

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.q)

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
        rest = [
            None if signal is None else signal[inner]
            for signal in (
                self.path,
                self.track,
                self.ripple,
                self.temperature,
                self.rotor,
                self.rotor_speed,
                self.rotor_acceleration,
            )
        ]
        return Motion(self.start + first / self.rate, self.rate, self.q[inner], self.qd[inner], self.qdd[inner], *rest)


def with_substitutes(motion: Motion) -> Motion:
    """Return a motion in which the path stands in for a measured speed and rotor positions that are missing."""
    path = motion.q if motion.path is None else motion.path
    if motion.track is None:
        motion = replace(motion, track=path, ripple=np.zeros_like(motion.q))
    return motion if motion.rotor is not None else replace(motion, rotor=path)
