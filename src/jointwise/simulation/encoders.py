"""Encoders: positions in whole counts, and speeds as what controllers make of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.errors import ShapeError
from jointwise.spatial import Array


@dataclass(frozen=True)
class Encoders:
    """The encoders that a controller reads: one count of those of `links` and of `rotors`, (joints,) rad; 0 for none.

    Both at the joint side: a motor's encoder has its counts of a turn times the gear ratio.
    """

    links: Array
    rotors: Array

    def __post_init__(self) -> None:
        """Take the counts as arrays; refuse those below zero."""
        for name in ("links", "rotors"):
            counts = np.array(getattr(self, name), dtype=np.float64)
            if counts.ndim != 1 or not (np.isfinite(counts).all() and (counts >= 0.0).all()):
                raise ShapeError(f"{name} must be one count a joint, finite and not negative. Got {counts} instead.")
            object.__setattr__(self, name, counts)
        if self.links.shape != self.rotors.shape:
            raise ShapeError(f"links and rotors must be equally many. Got {len(self.links)}, {len(self.rotors)}.")

    def counts(self, dof: int) -> Array:
        """Return the counts as (2, joints) for the native side, or say that they are those of another robot."""
        if len(self.links) != dof:
            raise ShapeError(f"encoders must be given for {dof} joints. Got {len(self.links)} instead.")
        return np.stack([self.links, self.rotors])


def read(count: Array, now: Array, before: Array, period: float) -> tuple[Array, Array]:
    """Return position and speed that a controller has: ``x = c [x/c]``, ``v = c ([x/c] - [x_before/c]) / period``.

    `count` c in rad, 0 for none (then nothing is rounded), positions (joints,) now and one control `period` (s) ago.
    """
    own = np.where(count > 0.0, count, 1.0)
    place, last = now / own, before / own
    place, last = (np.where(count > 0.0, np.round(x), x) for x in (place, last))
    return place * own, (place - last) * own / period


def quantised(values: Array, step: float | Array | None) -> Array:
    """Return the values as whole multiples of a step (one, or one a joint); as they are without a step."""
    return values if step is None or np.all(step == 0.0) else np.round(values / step) * step
