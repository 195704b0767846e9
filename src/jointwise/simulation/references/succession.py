"""Motions one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from jointwise.errors import ModelError
from jointwise.simulation.references.differentiable import Differentiable
from jointwise.spatial import Array


@dataclass(frozen=True)
class Succession(Differentiable):
    """Motions `parts` that begin at `starts` (parts,), s, each where the one before stops."""

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


def succession(parts: Sequence[Differentiable], gap: float = 1e-9) -> Succession:
    """Return motions in a row; each must begin within `gap` (rad, m) of where the one before stops."""
    for k, (before, after) in enumerate(pairwise(parts), start=1):
        jump = np.abs(after.position(np.zeros(1)) - before.position(np.array([before.duration]))).max()
        if jump > gap:
            raise ModelError(f"motion {k + 1} must begin where motion {k} stops. It begins {jump:.3g} away.")
    ends = np.cumsum([part.duration for part in parts])
    starts = np.concatenate([[0.0], ends[:-1]])
    return Succession(float(ends[-1]), tuple(parts), starts, all(part.smooth for part in parts))
