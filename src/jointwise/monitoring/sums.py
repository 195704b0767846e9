"""Sums along a monitored stream, and which of its channels may be declared wrongly."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jointwise.data.statistics import MOVING_SPEED
from jointwise.monitoring.core import DROPPED, VERDICTS, Reports, Samples
from jointwise.spatial import Array, Mask

ALIKE = 0.8
"""Correlation of two torques from which one may be the other."""
SCALED = 3.0
"""Factor between measured and predicted torques from which their units differ."""
MOST_POSES = 128
"""Positions of a stream that are kept."""
RESTART = VERDICTS.index("restart")
"""Verdict on a sample after which the clock of the stream has started again."""


@dataclass
class OutputPairs:
    """Sums of measured torques y and of those that the model predicts p, over the samples so far.

    Attributes:
        count: Number of samples.
        sums: Sums of [y, p], (2 joints,), Nm; None before the first sample.
        products: Sums of the products of [y, p], (2 joints, 2 joints), Nm²; None before the first sample.
    """

    count: int = 0
    sums: Array | None = None
    products: Array | None = None

    def add(self, measured: Array, external: Array) -> None:
        """Add measured torques and what the model does not explain, external torques, (samples, joints), Nm."""
        both = np.hstack([measured, measured + external])
        both = both[np.isfinite(both).all(axis=1)]
        sums, products = both.sum(axis=0), both.T @ both
        self.count += len(both)
        self.sums = sums if self.sums is None else self.sums + sums
        self.products = products if self.products is None else self.products + products

    def hint(self) -> str:
        """Return which channel may be declared wrongly; empty where nothing says so."""
        if self.sums is None or self.products is None or self.count < 2:
            return ""
        mean, n = self.sums / self.count, len(self.sums) // 2
        covariance = self.products / self.count - np.outer(mean, mean)
        deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
        alike = (covariance / np.outer(deviation, deviation))[:n, n:]
        factor = float(np.median(deviation[:n] / deviation[n:]))
        return _sign_hint(alike) or _order_hint(alike) or _unit_hint(factor)


def _sign_hint(alike: Array) -> str:
    """Return the joints whose measured torque is opposite to the predicted one; `alike` are correlations."""
    turned = [str(j + 1) for j in range(len(alike)) if alike[j, j] < -ALIKE]
    return f"; the sign of joint {', '.join(turned)} may be wrong" if turned else ""


def _order_hint(alike: Array) -> str:
    """Return the joints whose measured torque is like the predicted one of another joint."""
    best = np.abs(alike).argmax(axis=1)
    moved = [j for j in range(len(alike)) if best[j] != j and abs(alike[j, best[j]]) > ALIKE > abs(alike[j, j])]
    return "; " + ", ".join(f"joint {j + 1} looks like joint {best[j] + 1}" for j in moved) if moved else ""


def _unit_hint(factor: float) -> str:
    """Return the factor between measured and predicted torques where it is far from 1."""
    far = not 1.0 / SCALED < factor < SCALED
    return f"; the output is about {factor:.2g} times the expected one" if far else ""


@dataclass
class StreamSums:
    """Sums over a stream so far; arrays are (joints,).

    Attributes:
        joints: Number of joints.
        start: First stamp, s.
        period: Sampling period, s.
        gains: Drive gains, Nm per unit of the output.
        last: Last stamp, s.
        duration: Time from the first to the last stamp, without jumps of a clock that starts again, s.
        q: Last positions, rad; None before the first sample.
        poses: Positions spread over the stream, at most `MOST_POSES` of (joints,), rad.
        every: Number of samples from one of them to the next.
        samples: Number of samples.
        in_contact: Number of samples in contact.
        square: Sum of the squared direct residual, Nm².
        deviation: Sum of its standard deviation without contact, Nm.
        moved: Time in motion, s.
        rested: Time at rest since the last motion, s.
        path: Integral of |q̇| over the time in motion, rad.
        dry: Integral of the size of the model's dry friction over the time in motion, Nm s.
        temperatures: Lowest, highest and last temperatures, °C; empty where they are not measured.
        pairs: Measured and predicted torques.
    """

    joints: int
    start: float
    period: float
    gains: Array
    last: float = 0.0
    duration: float = 0.0
    q: Array | None = None
    poses: list[Array] = field(default_factory=list)
    every: int = 1
    samples: int = 0
    in_contact: int = 0
    square: Array = field(default_factory=lambda: np.zeros(0))
    deviation: Array = field(default_factory=lambda: np.zeros(0))
    moved: Array = field(default_factory=lambda: np.zeros(0))
    rested: Array = field(default_factory=lambda: np.zeros(0))
    path: Array = field(default_factory=lambda: np.zeros(0))
    dry: Array = field(default_factory=lambda: np.zeros(0))
    temperatures: list[Array] = field(default_factory=list)
    pairs: OutputPairs = field(default_factory=OutputPairs)

    def __post_init__(self) -> None:
        """Start all sums at zero."""
        self.square, self.deviation, self.path, self.dry = (np.zeros(self.joints) for _ in range(4))
        self.moved, self.rested = np.zeros(self.joints), np.zeros(self.joints)
        self.last = self.start

    def add(self, samples: Samples, reports: Reports) -> None:
        """Add samples."""
        if not len(samples):
            return
        self._add_poses(samples.q)
        self.samples += len(samples)
        self._add_time(samples.t, reports.verdict)
        self.q = samples.q[-1]
        self.in_contact += int((reports.contact != 0.0).sum())
        self.square += np.square(reports.residual).sum(axis=0)
        self.deviation += reports.deviation.sum(axis=0)
        self.pairs.add(np.nan_to_num(samples.output) * self.gains, reports.residual)
        moves = np.abs(reports.speed) > MOVING_SPEED
        self.moved += self.period * moves.sum(axis=0)
        self._add_rest(reports.rest != 0.0)
        self.path += self.period * np.abs(reports.speed * moves).sum(axis=0)
        self.dry += self.period * np.abs(reports.dry * moves).sum(axis=0)
        self._add_temperatures(samples.temperature)

    def _add_poses(self, q: Array) -> None:
        """Keep positions at equal steps; where there are too many, every other one."""
        self.poses += list(q[-self.samples % self.every :: self.every])
        while len(self.poses) > MOST_POSES:
            self.poses, self.every = self.poses[::2], 2 * self.every

    def _add_rest(self, rests: Mask) -> None:
        """Add the time since the last sample at which a joint was not at rest, (samples, joints)."""
        moves = ~rests.all(axis=0)
        since = np.where(moves, np.argmax(~rests[::-1], axis=0), len(rests))
        self.rested = np.where(moves, 0.0, self.rested) + self.period * since

    def _add_time(self, t: Array, verdict: Array) -> None:
        """Add the steps between the stamps (s) of samples that were not dropped; a restart adds none."""
        used = verdict >= len(DROPPED)
        stamps = np.concatenate([[self.last], t[used]])
        self.duration += float(np.diff(stamps)[verdict[used] != RESTART].sum())
        self.last = float(stamps[-1])

    def _add_temperatures(self, temperature: Array | None) -> None:
        """Keep the lowest, highest and last temperatures (joints,)."""
        warm = np.zeros((0, self.joints)) if temperature is None else temperature
        warm = warm[np.isfinite(warm).all(axis=1)]
        if not len(warm):
            return
        low, high = warm.min(axis=0), warm.max(axis=0)
        if self.temperatures:
            low, high = np.minimum(low, self.temperatures[0]), np.maximum(high, self.temperatures[1])
        self.temperatures = [low, high, warm[-1]]
