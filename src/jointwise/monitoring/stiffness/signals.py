"""Signals of one joint with a common delay, and which of their samples can be used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ShapeError
from jointwise.runtime.phase import PhaseFilter, PhaseState
from jointwise.spatial import Array

Flags = NDArray[np.bool_]

WINDOW = 0.02
"""Time (s) of the smoothing filter: short enough to keep the vibration of a joint (10 to 20 Hz), long enough to
differentiate the counts of common encoders twice."""
SHORTEST_WINDOW = 5
"""Samples of the shortest filter whose cubic smooths at all."""
SLOWEST = 0.01
"""Speed (rad/s) below which a joint counts as standing: its friction is not known then."""
STANDING = 0.05
"""Time (s) after which a joint below `SLOWEST` counts as standing."""
FROZEN = 0.05
"""Time (s) after which an encoder that does not change while the joint moves counts as frozen; longer than the filter
takes to see that the joint stopped."""
FROZEN_CURRENT = 0.25
"""The same for the current, which may be coarse."""
FASTEST = 30.0
"""Speed (rad/s) that no joint reaches: a larger step between two samples is a jump of the channel."""


@dataclass(frozen=True, eq=False)
class JointSamples:
    """Consecutive samples of one joint of a robot.

    Attributes:
        theta: Rotor positions after the gear (samples,), rad.
        q: Positions of all links (samples, joints), rad.
        current: Motor currents of the joint (samples,), A.
        temperature: Its temperatures (samples,), °C; None where they are not measured.

    """

    theta: Array
    q: Array
    current: Array
    temperature: Array | None = None

    def __post_init__(self) -> None:
        """Convert to float64; reject different lengths."""
        for name in ("theta", "q", "current", "temperature"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, np.asarray(values, dtype=np.float64))
        shapes = [np.shape(values) for values in (self.theta, self.current, self.temperature) if values is not None]
        count = len(self.theta) if np.ndim(self.theta) == 1 else -1
        if any(shape != (count,) for shape in shapes) or self.q.ndim != 2 or len(self.q) != count:
            raise ShapeError(
                f"theta, current and temperature must be (samples,), q (samples, joints). Got {shapes}, {self.q.shape}."
            )

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.theta)

    def part(self, rows: slice) -> JointSamples:
        """Return some of the samples."""
        T = self.temperature
        return JointSamples(self.theta[rows], self.q[rows], self.current[rows], None if T is None else T[rows])


class JointSignals(NamedTuple):
    """Signals of `delay` samples ago, (samples,): rotor, deflection θ - q, current, links (samples, joints).

    `usable` flags samples that are whole and in motion.
    """

    theta: Array
    speed: Array
    acceleration: Array
    phi: Array
    phi_rate: Array
    current: Array
    temperature: Array | None
    q: Array
    qd: Array
    qdd: Array
    usable: Flags


@dataclass(frozen=True, eq=False)
class SignalState:
    """State between samples.

    Attributes:
        filter: Buffers of the filter.
        last: Last raw rotor position, link position and current.
        since: Samples since a faulty sample, since the joint was fast, and since each raw signal changed, (5,).
        dropped: Faulty samples so far: not finite, jumping or frozen.

    """

    filter: PhaseState
    last: tuple[float, float, float]
    since: tuple[int, int, int, int, int]
    dropped: int = 0


@dataclass(frozen=True)
class SignalPath:
    """Conditioning of one joint (0-based) of a robot with some joints at a rate (Hz).

    NaN, jumps and frozen encoders are faults: what a filter made of them is not used until it has left the filter.
    """

    joint: int
    joints: int
    rate: float
    temperature: bool = False

    @cached_property
    def filter(self) -> PhaseFilter:
        """The filter of all signals: rotor, current, temperature, links."""
        length = max(SHORTEST_WINDOW, 2 * round(0.5 * WINDOW * self.rate) + 1)
        return PhaseFilter(2 + self.temperature + self.joints, self.rate, length)

    @property
    def delay(self) -> int:
        """Delay of the signals, samples."""
        return self.filter.delay

    def init(self, samples: JointSamples) -> SignalState:
        """Return the state before the first sample, as if the joint had stood there; that sample must be finite."""
        if len(samples) == 0:
            raise ShapeError("the start must be at least one sample. Got none.")
        table = self._table(samples.part(slice(0, 1)))
        last = (float(samples.theta[0]), float(samples.q[0, self.joint]), float(samples.current[0]))
        return SignalState(self.filter.init(table[0]), last, (0, 10**9, 0, 0, 0))

    def steps(self, state: SignalState, samples: JointSamples) -> tuple[JointSignals, SignalState]:
        """Return the signals of consecutive samples and the state after the last."""
        table = self._table(samples)
        out, after = self.filter.steps(state.filter, table)
        links = slice(table.shape[1] - self.joints, table.shape[1])
        q, qd, qdd = (values[:, links] for values in out)
        theta, speed, acceleration = (values[:, 0] for values in out)
        finite = np.isfinite(table)
        raw = np.where(finite, table, np.nan)[:, [0, links.start + self.joint, 1]]
        steps = raw - np.concatenate([[state.last], raw[:-1]])
        fast = np.abs(speed) >= SLOWEST
        since = _since(np.concatenate([fast[:, None], steps != 0.0], axis=1), np.array(state.since[1:]))
        faults = self._faults(finite, steps, since[:, 1:], fast | (np.abs(qd[:, self.joint]) >= SLOWEST))
        whole = _since(faults[:, None], np.array(state.since[:1]))
        usable = (whole[:, 0] > self.filter.warm_up) & (since[:, 0] <= STANDING * self.rate)
        signals = JointSignals(
            theta, speed, acceleration, theta - q[:, self.joint], speed - qd[:, self.joint], out.value[:, 1],
            out.value[:, 2] if self.temperature else None, q, qd, qdd, usable,
        )  # fmt: skip
        last = tuple(_last_finite(values, old) for values, old in zip(raw.T, state.last, strict=True))
        counts = (*whole[-1].tolist(), *since[-1].tolist())
        return signals, SignalState(after, last, counts, state.dropped + int(np.count_nonzero(faults)))  # type: ignore[arg-type]

    def _table(self, samples: JointSamples) -> Array:
        """Return the channels of the filter (samples, channels)."""
        if samples.q.shape[1] != self.joints:
            raise ShapeError(f"q must be (samples, {self.joints}). Got {samples.q.shape} instead.")
        if self.temperature and samples.temperature is None:
            raise ShapeError("temperature must be there in every sample. Got none.")
        columns = [samples.theta, samples.current]
        if self.temperature and samples.temperature is not None:
            columns.append(samples.temperature)
        return np.concatenate([*(column[:, None] for column in columns), samples.q], axis=1)

    def _faults(self, finite: Flags, steps: Array, same: NDArray[np.intp], moving: Flags) -> Flags:
        """Return flags of faulty samples, (samples,).

        Args:
            finite: Which values of the filter's channels are finite, (samples, channels).
            steps: Differences of the raw signals to the samples before, (samples, 3).
            same: Samples since each raw signal changed, (samples, 3).
            moving: Whether rotor or link moves, (samples,).

        """
        broken = np.logical_not(finite.all(axis=1))
        jumps = (np.abs(steps[:, :2]) * self.rate > FASTEST).any(axis=1)
        frozen = moving & (same > np.multiply((FROZEN, FROZEN, FROZEN_CURRENT), self.rate)).any(axis=1)
        result: Flags = broken | jumps | frozen
        return result


def _since(flags: Flags, before: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many samples ago a flag was last set, (samples, columns).

    Args:
        flags: Flags, (samples, columns).
        before: The same of the sample before the first, (columns,).

    """
    if len(flags) == 1:
        return np.where(flags, 0, before + 1)
    place = np.arange(1, len(flags) + 1)[:, None]
    last = np.maximum.accumulate(np.where(flags, place, 0), axis=0)
    return np.where(last > 0, place - last, before + place)


def _last_finite(values: Array, old: float) -> float:
    if len(values) and math.isfinite(values[-1]):
        return float(values[-1])
    known = values[np.isfinite(values)]
    return float(known[-1]) if known.size else old
