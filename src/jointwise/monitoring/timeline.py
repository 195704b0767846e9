"""External torque and ratio to the threshold over time, thinned so that memory stays flat."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jointwise.monitoring.core import Reports
from jointwise.spatial import Array

MOST = 4000
"""Most points of a timeline; when there are more, neighbours are merged."""


@dataclass
class Timeline:
    """Points of a stream: stamp (s), external torque (Nm) and largest ratio of every joint, and whether in contact.

    Every point stands for `every` samples, of which the torque farthest from zero and the largest ratio remain.
    """

    every: int = 1
    t: list[float] = field(default_factory=list)
    torque: list[Array] = field(default_factory=list)
    ratio: list[Array] = field(default_factory=list)
    contact: list[bool] = field(default_factory=list)
    _rest: tuple[Array, Array, Array, Array] | None = field(default=None, repr=False)

    def add(self, t: Array, reports: Reports) -> None:
        """Add samples."""
        arrays = (np.asarray(t), np.asarray(reports.residual), np.asarray(reports.ratio), reports.contact != 0.0)
        if self._rest is not None:
            arrays = tuple(np.concatenate(pair) for pair in zip(self._rest, arrays, strict=True))  # type: ignore[assignment]
        whole = len(arrays[0]) // self.every * self.every
        self._rest = tuple(array[whole:] for array in arrays)  # type: ignore[assignment]
        if whole:
            self._append(*(array[:whole] for array in arrays))
        while len(self.t) > MOST:
            self._halve()

    def _append(self, t: Array, torque: Array, ratio: Array, contact: Array) -> None:
        blocks = torque.reshape(-1, self.every, torque.shape[1])
        self.t += t[:: self.every].tolist()
        self.torque += list(_farthest(blocks))
        self.ratio += list(ratio.reshape(blocks.shape).max(axis=1))
        self.contact += list(map(bool, contact.reshape(-1, self.every).max(axis=1)))

    def _halve(self) -> None:
        """Merge neighbours."""
        last = len(self.t) // 2 * 2
        pairs = np.array(self.torque[:last]).reshape(last // 2, 2, -1)
        tails = (self.t[last:], self.torque[last:], self.ratio[last:], self.contact[last:])
        self.t = self.t[:last:2] + tails[0]
        self.ratio = [*np.array(self.ratio[:last]).reshape(pairs.shape).max(axis=1), *tails[2]]
        self.contact = [a or b for a, b in zip(self.contact[:last:2], self.contact[1:last:2], strict=True)] + tails[3]
        self.torque = [*_farthest(pairs), *tails[1]]
        self.every *= 2


def _farthest(blocks: Array) -> Array:
    """Return of (blocks, samples, joints) the value farthest from zero in every block, (blocks, joints)."""
    index = np.abs(blocks).argmax(axis=1)[:, None]
    result: Array = np.take_along_axis(blocks, index, axis=1)[:, 0]
    return result
