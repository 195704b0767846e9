"""A motion on a uniform clock: what the model is evaluated on."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from jointwise.errors import ShapeError
from jointwise.spatial import Array


@dataclass(frozen=True)
class Motion:
    """Uniformly sampled signals, each (samples, joints), SI and rad.

    `start` (s) is the time of the first sample and `rate` (Hz) their number a second. `q`, `qd`, `qdd` are smooth.
    `path` (rad) is a position that never swings past a stop and drives hysteresis (`q` where it is None). `track` (rad)
    keeps the fast part of a measured speed and drives hysteresis too; `ripple` (rad/s) is the part of the measured
    speed above the bandwidth of `qd`. Both are None where no speed was measured. `temperature` in °C and
    `rotor` (rad, the smoothed position of the rotor after the gear, which rubs) are None likewise.
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

    def __post_init__(self) -> None:
        """Refuse signals of different shapes."""
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
            None if own is None else own[inner]
            for own in (self.path, self.track, self.ripple, self.temperature, self.rotor)
        ]
        return Motion(self.start + first / self.rate, self.rate, self.q[inner], self.qd[inner], self.qdd[inner], *rest)
