"""Stiffness of the joints of a stream while its samples arrive, by the estimators of `log_wear`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from jointwise.data.clock import GAP_SECONDS, GAP_STEPS
from jointwise.data.conditioning import ON_TIME
from jointwise.errors import EstimationError
from jointwise.joint.model import JointModel
from jointwise.monitoring.core import Samples
from jointwise.monitoring.stiffness import JointSamples, StiffnessEstimator, StiffnessState
from jointwise.monitoring.stiffness.status import TorqueFit, stiffness_status, torque_fit
from jointwise.monitoring.wear import (
    JointStiffness,
    Wear,
    joint_stiffness,
    known_and_missing,
    outside_lines,
    wear_estimator,
)
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

BLOCK = 0.05
"""Time (s) of samples that are evaluated together: a call for each would cost ten times as much, and nobody waits."""
RESTART = 1.0
"""Time (s) by which stamps fall where the clock of the stream starts again; by less, a sample is late and dropped."""


@dataclass
class StreamClock:
    """Values of a stream on a uniform clock of a rate (Hz), by linear interpolation between its samples.

    The clock begins anew after a gap, which is that of logs, and where the stamps start again. Samples whose stamps
    repeat, go back or are not finite are dropped.
    """

    rate: float
    _start: float = 0.0
    _count: int = 0
    _last: tuple[float, Array] | None = field(default=None, repr=False)

    def take(self, t: Array, values: Array) -> Iterator[tuple[bool, Array]]:
        """Yield parts without a gap: whether the clock begins there, and values on it (times, columns).

        Args:
            t: Stamps (samples,), s.
            values: Values (samples, columns); NaN where they are missing.

        """
        stamps, rows = ([], []) if self._last is None else ([self._last[0]], [self._last[1]])
        gap, begins = max(GAP_STEPS / self.rate, GAP_SECONDS), self._last is None
        for stamp, row in zip(t.tolist(), values, strict=True):
            step = stamp - stamps[-1] if stamps else np.inf
            if not np.isfinite(stamp) or -RESTART < step <= 0.0:
                continue
            if stamps and (step > gap or step <= 0.0):
                yield begins, self._part(stamps, rows, begins)
                stamps, rows, begins = [], [], True
            stamps.append(stamp)
            rows.append(row)
        if stamps:
            yield begins, self._part(stamps, rows, begins)
            self._last = stamps[-1], rows[-1]

    def _part(self, stamps: list[float], rows: list[Array], begins: bool) -> Array:
        """Return the values at the times of the clock up to the last stamp that were not returned before."""
        if begins:
            self._start, self._count = stamps[0], 0
        place = (np.array(stamps) - self._start) * self.rate  # in periods
        place = np.where(np.abs(place - np.rint(place)) < ON_TIME, np.rint(place), place)
        times = np.arange(self._count, int(place[-1]) + 1)
        self._count += len(times)
        table = np.array(rows)
        if np.array_equal(times, place[len(place) - len(times) :]):
            return table[len(table) - len(times) :]
        return np.stack([np.interp(times, place, column) for column in table.T], axis=1)


@dataclass
class _Joint:
    """The estimator of a joint with its state.

    Attributes:
        estimator: The estimator.
        state: Its state; None before the first whole sample.
        running: Whether the clock goes on from the samples before.
        samples: Samples so far.
        outside: Samples so far at angles that the gear maps of the joint do not cover.
        fit: Fit of the torques that were predicted.

    """

    estimator: StiffnessEstimator
    state: StiffnessState | None = None
    running: bool = False
    samples: int = 0
    outside: int = 0
    fit: TorqueFit = field(init=False)

    def __post_init__(self) -> None:
        """Begin the fit."""
        self.fit = torque_fit(self.estimator.rate)

    def feed(self, samples: JointSamples, begins: bool) -> None:
        """Take samples of the uniform clock; the estimate is kept where the clock begins anew."""
        self.running = self.running and not begins
        self.samples += len(samples)
        self.outside += self.estimator.outside(samples.theta)
        if not self.running:
            channels = (samples.theta, samples.current, samples.q.sum(axis=1), samples.temperature)
            whole = np.all([np.isfinite(x) for x in channels if x is not None], axis=0)
            if not whole.any():
                return
            samples = samples.part(slice(int(np.argmax(whole)), None))
            self.state, self.running = self.estimator.init(samples, self.state), True
        if len(samples) and self.state is not None:
            trace, self.state = self.estimator.steps(self.state, samples)
            self.fit.add(trace.measured[trace.used], trace.predicted[trace.used])

    def result(self) -> JointStiffness:
        """Return the stiffness so far.

        Raises:
            EstimationError: No sample was used yet.

        """
        if self.state is None:
            raise EstimationError("no whole sample in the stream.")
        spring = self.estimator.joint.spring
        status = stiffness_status(self.estimator.estimate(self.state), spring, fit=self.fit)
        return joint_stiffness(self.estimator.index, status)


@dataclass
class WearStream:
    """Stiffness of the joints of a stream; `feed` samples as they come, `wear` at any time.

    Attributes:
        clock: Uniform clock of the stream.
        temperature: Whether temperatures are measured.
        joints: Joints that are monitored.
        missing: Why others are not.

    """

    clock: StreamClock
    temperature: bool
    joints: tuple[_Joint, ...]
    missing: tuple[str, ...]
    _waiting: list[Samples] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, model: RobotModel, joints: Sequence[JointModel], rate: float, first: Samples) -> WearStream:
        """Return the monitor of a stream for the channels that its first samples have.

        Args:
            model: The calibrated robot, with its payload.
            joints: What is known of its joints.
            rate: Rate of the stream, Hz.
            first: The first samples.

        """
        warm = first.temperature is not None
        known, missing = known_and_missing(model, joints, first.theta is not None, first.current is not None)
        made = tuple(_Joint(wear_estimator(model, joint, rate, temperature=warm)) for joint in known)
        return cls(StreamClock(rate), warm, made, missing)

    def feed(self, samples: Samples) -> None:
        """Take the next samples."""
        if not self.joints:
            return
        self._waiting.append(samples)
        if sum(map(len, self._waiting)) >= BLOCK * self.clock.rate:
            self._evaluate()

    def wear(self) -> Wear:
        """Return what is known so far."""
        self._evaluate()
        found, missing = [], []
        for joint in self.joints:
            missing.extend(outside_lines(joint.estimator.index, joint.outside / max(joint.samples, 1)))
            try:
                found.append(joint.result())
            except EstimationError as problem:
                missing.append(f"stiffness of joint {joint.estimator.index + 1}: {problem}")
        return Wear(tuple(found), (*missing, *self.missing))

    def _evaluate(self) -> None:
        """Evaluate the samples that wait."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        names = ("theta", "q", "current", *(("temperature",) if self.temperature else ()))
        table = [np.concatenate([getattr(part, name) for name in names], axis=1) for part in waiting]
        t = np.concatenate([part.t for part in waiting])
        for begins, values in self.clock.take(t, np.concatenate(table)):
            channels = np.split(values, len(names), axis=1)
            for joint in self.joints:
                joint.feed(_of_joint(channels, joint.estimator.index), begins)


def _of_joint(channels: Sequence[Array], j: int) -> JointSamples:
    """Return the samples of a joint from theta, q, current and, where it is measured, temperature of all joints."""
    theta, q, current, *rest = channels
    return JointSamples(theta[:, j], q, current[:, j], rest[0][:, j] if rest else None)
