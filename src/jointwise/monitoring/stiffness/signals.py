"""Signals of one joint with a common delay, and which of their samples can be used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointwise.backend import native
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
LONG_AGO = 1e9
"""Samples since the joint was fast before the first sample: it stood."""


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


@dataclass(frozen=True, eq=False)
class JointSignals:
    """Signals of `delay` samples ago, from the filter of a `SignalPath`.

    Attributes:
        path: The path.
        filtered: Value, first and second derivative of every channel, (samples, 3, channels).
        usable: 1 where a sample is whole and in motion, else 0, (samples,).

    """

    path: SignalPath
    filtered: Array
    usable: Array

    @property
    def theta(self) -> Array:
        """Rotor positions (samples,), rad."""
        return self.filtered[:, 0, 0]

    @property
    def speed(self) -> Array:
        """Rotor speeds (samples,), rad/s."""
        return self.filtered[:, 1, 0]

    @property
    def acceleration(self) -> Array:
        """Rotor accelerations (samples,), rad/s²."""
        return self.filtered[:, 2, 0]

    @property
    def current(self) -> Array:
        """Motor currents (samples,), A."""
        return self.filtered[:, 0, 1]

    @property
    def temperature(self) -> Array | None:
        """Temperatures (samples,), °C; None where they are not measured."""
        return self.filtered[:, 0, 2] if self.path.temperature else None

    @property
    def deflection(self) -> tuple[Array, Array]:
        """θ - q (rad) and its rate (rad/s), (samples,) each."""
        value, first = self.filtered[:, 0], self.filtered[:, 1]
        return value[:, 0] - value[:, self.path.link], first[:, 0] - first[:, self.path.link]

    @property
    def links(self) -> tuple[Array, Array, Array]:
        """q, q̇, q̈ of all links, (samples, joints) each."""
        q, qd, qdd = self.filtered[:, :, self.path.first_link :].transpose(1, 0, 2)
        return q, qd, qdd


MEMORY = 9
"""Numbers of a state after those of the filter: last finite rotor position, link position and current; samples since a
fault, since the joint was fast, and since each of the three changed; faulty samples."""


@dataclass(frozen=True, eq=False)
class SignalState:
    """State between samples: the `numbers` of the filter and the `MEMORY` of faults; a step does not change them."""

    numbers: Array

    @property
    def dropped(self) -> int:
        """Faulty samples so far: not finite, jumping or frozen."""
        return int(self.numbers[-1])


@dataclass(frozen=True)
class SignalPath:
    """Conditioning of the signals of one joint.

    NaN, jumps and frozen encoders are faults: what a filter made of them is not used until it has left the filter.

    Attributes:
        joint: Joint, 0-based.
        joints: Number of joints of the robot.
        rate: Sampling rate, Hz.
        temperature: Whether the temperature of the joint is a signal too.
    """

    joint: int
    joints: int
    rate: float
    temperature: bool = False

    @cached_property
    def filter(self) -> PhaseFilter:
        """The filter of all signals: rotor, current, temperature, links."""
        length = max(SHORTEST_WINDOW, 2 * round(0.5 * WINDOW * self.rate) + 1)
        return PhaseFilter(self.first_link + self.joints, self.rate, length)

    @property
    def delay(self) -> int:
        """Delay of the signals, samples."""
        return self.filter.delay

    @property
    def first_link(self) -> int:
        """Column of the first link's position."""
        return 2 + self.temperature

    @property
    def link(self) -> int:
        """Column of the joint's link position."""
        return self.first_link + self.joint

    @cached_property
    def packed(self) -> Array:
        """The settings as `path_options` of the native kernel."""
        frozen = [FROZEN * self.rate, FROZEN * self.rate, FROZEN_CURRENT * self.rate]
        head = [self.rate, self.link, SLOWEST, STANDING * self.rate]
        return np.array([*head, *frozen, FASTEST / self.rate, self.filter.warm_up], dtype=np.float64)

    def init(self, samples: JointSamples) -> SignalState:
        """Return the state before the first sample, as if the joint had stood there; that sample must be finite."""
        if len(samples) == 0:
            raise ShapeError("the start must be at least one sample. Got none.")
        row = self._table(samples.part(slice(0, 1)))[0]
        memory = [*row[[0, self.link, 1]], 0.0, LONG_AGO, 0.0, 0.0, 0.0, 0.0]
        return SignalState(np.concatenate([self.filter.init(row).numbers, memory]))

    def steps(self, state: SignalState, samples: JointSamples) -> tuple[JointSignals, SignalState]:
        """Return the signals of consecutive samples and the state after the last."""
        table, numbers = self._table(samples), state.numbers.copy()
        filtered, usable = np.empty((len(table), 3, table.shape[1])), np.empty(len(table))
        if (kernel := native()) is not None:
            kernel.joint_signals(self.filter.taps, self.packed, numbers, table, filtered, usable)
        else:
            self._numpy_steps(numbers, table, filtered, usable)
        return JointSignals(self, filtered, usable), SignalState(numbers)

    def _table(self, samples: JointSamples) -> Array:
        """Return the channels of the filter (samples, channels)."""
        if samples.q.shape[1] != self.joints:
            raise ShapeError(f"q must be (samples, {self.joints}). Got {samples.q.shape} instead.")
        table = np.empty((len(samples), self.first_link + self.joints))
        table[:, 0], table[:, 1], table[:, self.first_link :] = samples.theta, samples.current, samples.q
        if self.temperature:
            if samples.temperature is None:
                raise ShapeError("temperature must be there in every sample. Got none.")
            table[:, 2] = samples.temperature
        return table

    # -- reference of the native kernel --

    def _numpy_steps(self, numbers: Array, table: Array, filtered: Array, usable: Array) -> None:
        """Write filtered signals and flags; the numbers of the state are updated."""
        memory = numbers[-MEMORY:]
        out, after = self.filter.steps(PhaseState(numbers[:-MEMORY]), table)
        filtered[:] = np.stack(out, axis=1)
        numbers[:-MEMORY] = after.numbers
        raw = table[:, [0, self.link, 1]]
        known = _last_finite(raw, memory[:3])
        steps = raw - known[:-1]
        fast, moving = (np.abs(filtered[:, 1, column]) >= SLOWEST for column in (0, self.link))
        changed = (steps != 0.0) | ~np.isfinite(raw)
        since = _since(np.concatenate([fast[:, None], changed], axis=1), memory[4:8])
        faults = self._faults(table, steps, since[:, 1:], fast | moving)
        whole = _since(faults[:, None], memory[3:4])[:, 0]
        usable[:] = (whole > self.filter.warm_up) & (since[:, 0] <= STANDING * self.rate)
        dropped = memory[8] + np.count_nonzero(faults)
        memory[:] = *known[-1], whole[-1], *since[-1], dropped

    def _faults(self, table: Array, steps: Array, same: Array, moving: Flags) -> Flags:
        """Return flags of faulty samples, (samples,).

        Args:
            table: Channels of the filter, (samples, channels).
            steps: Differences of the raw signals to the last finite ones, (samples, 3).
            same: Samples since each raw signal changed, (samples, 3).
            moving: Whether rotor or link moves, (samples,).

        """
        broken = np.logical_not(np.isfinite(table).all(axis=1))
        jumps = (np.abs(steps[:, :2]) > FASTEST / self.rate).any(axis=1)
        frozen = moving & (same > np.multiply((FROZEN, FROZEN, FROZEN_CURRENT), self.rate)).any(axis=1)
        result: Flags = broken | jumps | frozen
        return result


def _since(flags: Flags, before: Array) -> Array:
    """Return how many samples ago a flag was last set, (samples, columns).

    Args:
        flags: Flags, (samples, columns).
        before: The same of the sample before the first, (columns,).

    """
    place = np.arange(1, len(flags) + 1)[:, None]
    last = np.maximum.accumulate(np.where(flags, place, 0), axis=0)
    return np.where(last > 0, place - last, before + place)


def _last_finite(values: Array, before: Array) -> Array:
    """Return the last finite value so far of every column, (samples + 1, columns); the first row is `before`."""
    table = np.concatenate([before[None], values])
    rows = np.arange(len(table))[:, None]
    known = np.maximum.accumulate(np.where(np.isfinite(table), rows, 0), axis=0)
    return np.take_along_axis(table, known, axis=0)
