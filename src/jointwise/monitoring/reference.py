"""The monitor in NumPy: reference of the C core, and its substitute for models that C does not have.

The equations, the constants and the order of the steps are those of `runtime/core/monitor.c`. The residual of a joint
is ``r = τ_measured - τ_model``; the generalised-momentum observer filters ``τ - (C q̇ + g + friction) - M(q) Δq̇/T``, in
which the change of momentum less ``Ṁ q̇`` is ``M(q) Δq̇``; the direct residual filters the same for longer. A Kalman
filter explains it: ``r = Y_payload π + Δa1 f_dry + a2 q̇ + b``, where b is what static friction holds at rest. This
module takes samples as they come; `reference_tick` evaluates the times of the uniform clock between them, and
`reference_contact` decides there whether there is a contact.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from jointwise.model.transmission import motor_values
from jointwise.monitoring import reference_constants as c
from jointwise.monitoring.core import VERDICTS, CoreMonitor, Known, Reports, Samples
from jointwise.monitoring.reference_state import Measured, WatchMemory, share_of
from jointwise.monitoring.reference_tick import ReferenceTick
from jointwise.runtime import RobotModel
from jointwise.runtime.motion import reference_temperatures
from jointwise.runtime.stream import NumpyCore
from jointwise.spatial import Array

NOT_FINITE, REPEATED, REORDERED, GAP, JUMPED, RESTART, GOOD = range(7)
Channels = tuple[Array, Array, Array | None, Array | None]
"""Positions (rad), outputs, speeds (rad/s) and temperatures (°C) of a sample, (joints,) each; None if not measured."""


class ReferenceWatch:
    """The monitor in NumPy."""

    def __init__(self, model: RobotModel, core: NumpyCore, numbers: CoreMonitor) -> None:
        """Keep the numbers of a monitor and the evaluator of the model."""
        self.core, self.numbers, self.n, self.T = core, numbers, model.dof, numbers.period
        self.robot = model.calibration.model.robot
        self.clock = ReferenceTick(core, numbers)
        self.gain = np.array([joint.gain for joint in numbers.joints])
        self.measured = self.clock.measured

    def init(self) -> WatchMemory:
        """Return the memory before the first sample."""
        return self.clock.init()

    def steps(self, memory: WatchMemory, samples: Samples) -> tuple[Reports, WatchMemory]:
        """Return the reports of samples and the memory after them."""
        after, rows = deepcopy(memory), []
        for k in range(len(samples)):
            q = motor_values(self.robot, samples.q[k])
            qd = None if samples.qd is None else motor_values(self.robot, samples.qd[k])
            temperature = None if samples.temperature is None else samples.temperature[k]
            self._watch(after, float(samples.t[k]), (q, samples.output[k], qd, temperature))
            rows.append(deepcopy(after.report))
        names = Reports.__dataclass_fields__
        return Reports(*(np.array([row[name] for row in rows]) for name in names)), after

    def known(self, memory: WatchMemory) -> Known:
        """Return what the monitor knows."""
        counts = dict(zip(VERDICTS, memory.counts.astype(int).tolist(), strict=True))
        return Known(memory.x.copy(), memory.P.copy(), memory.joints.at_rest.copy(), counts, memory.adopted)

    # -- samples as they come --

    def _watch(self, m: WatchMemory, t: float, channels: Channels) -> None:
        """Classify a sample and take it, unless it is not finite, repeated or reordered."""
        q, output, qd, _ = channels
        known = [np.array([t]), q, output[self.measured], *([] if qd is None else [qd])]
        if not all(np.isfinite(values).all() for values in known):
            m.counts[NOT_FINITE] += 1
            m.report["verdict"] = float(NOT_FINITE)
            return
        m.origin = m.origin if m.started else t
        t -= m.origin
        verdict = GOOD if m.last is None else self._judge(m, m.last, t, q)
        m.counts[verdict] += 1
        m.report["verdict"] = float(verdict)
        if verdict > REORDERED:
            self._take(m, t, not m.started or verdict != GOOD, channels)

    def _judge(self, m: WatchMemory, last: Measured, t: float, q: Array) -> int:
        """Return what a sample is from its stamp, and from its distance to where the last speed leads."""
        step = t - m.stamp
        if step > 0.0:
            m.backwards = 0
            if step > max(c.GAP_STEPS * self.T, c.GAP_TIME):
                return GAP
            return JUMPED if (np.abs(q - last.q - step * last.qd) > c.JUMP).any() else GOOD
        if step == 0.0:
            return REPEATED
        m.backwards += 1
        return RESTART if step < -c.RESTART_TIME or m.backwards >= c.RESTART_COUNT else REORDERED

    def _take(self, m: WatchMemory, t: float, begins: bool, channels: Channels) -> None:
        """Take a sample that is whole; at a break the signals begin again, without speeds with the next one."""
        step = 0.0 if begins else t - m.stamp
        sample = self._completed(m, step, channels)
        self._watch_channels(m, step, sample)
        if begins or m.last is None:
            m.last, m.stamp, m.grid = sample, t, t
            m.backwards, m.fresh, m.started = 0, True, True
            if self.numbers.derived:
                return
        if self.numbers.derived and m.fresh:
            m.last.qd = sample.qd
        self._ticks(m, m.last, t, sample)
        m.last, m.stamp = sample, t

    def _completed(self, m: WatchMemory, step: float, channels: Channels) -> Measured:
        """Return a sample with all its channels: speeds as filtered differences, temperatures as they last were.

        The first difference begins the filter.
        """
        q, output, qd, temperature = channels
        last = m.last
        if qd is None:
            difference = (q - last.q) / step if last is not None and step > 0.0 else np.zeros(self.n)
            before = difference if last is None or m.fresh else last.qd
            qd = before + share_of(step, c.SPEED_TIME) * (difference - before)
        known = reference_temperatures(self.core.model) if last is None else last.temperature
        if temperature is not None:
            known = np.where(np.isfinite(temperature), temperature, known)
        return Measured(q.copy(), qd.copy(), np.where(self.measured, output, 0.0), known)

    def _watch_channels(self, m: WatchMemory, step: float, sample: Measured) -> None:
        """Report channels that repeat their value while the joint moves, and outputs that repeat their largest one."""
        s, moves = m.joints, np.abs(sample.qd) > c.FROZEN_SPEED
        never = np.full(self.n, np.nan)
        last_q, last_qd, last_output = (never,) * 3 if m.last is None else (m.last.q, m.last.qd, m.last.output)
        same_q = moves & (sample.q == last_q) & (not self.numbers.derived)
        same_output = moves & self.measured & (sample.output == last_output)
        s.same_q = np.where(same_q, s.same_q + step, 0.0)
        s.same_output = np.where(same_output, s.same_output + step, 0.0)
        size = np.abs(sample.output)
        s.highest = np.maximum(s.highest, size)
        repeats = np.where(size >= c.SATURATED * s.highest, 4.0, 2.0)
        same_qd = (sample.qd == last_qd) & (not self.numbers.derived)
        s.same_qd = np.where(same_qd, s.same_qd + step, 0.0)
        s.apart = np.where(same_qd & (step > 0.0), s.apart + sample.q - last_q - step * sample.qd, 0.0)
        wrong = (s.same_qd >= c.FROZEN_TIME) & (np.abs(s.apart) > c.FROZEN_SPEED * s.same_qd)
        m.report["frozen"] = (
            (s.same_q >= c.FROZEN_TIME) + np.where(s.same_output >= c.FROZEN_TIME, repeats, 0.0) + 8 * wrong
        )

    def _ticks(self, m: WatchMemory, last: Measured, t: float, sample: Measured) -> None:
        """Evaluate the times of the uniform clock up to a sample, with signals linear between samples."""
        while m.grid <= t + c.ON_TIME * self.T:
            part = min((m.grid - m.stamp) / (t - m.stamp), 1.0) if t > m.stamp else 1.0
            q = last.q + part * (sample.q - last.q)
            qd = last.qd + part * (sample.qd - last.qd)
            output = last.output + part * (sample.output - last.output)
            torque = self._delayed(m, self.gain * output)
            q, torque = self._matched(m, q, torque) if self.numbers.derived else (q, torque)
            self.clock.tick(m, q, qd, torque, sample.temperature)
            m.grid += self.T

    def _delayed(self, m: WatchMemory, torque: Array) -> Array:
        """Return the motor torque (joints,) that belongs to the motion: the one measured a lag before."""
        lag = self.numbers.lag / self.T
        whole = int(np.floor(lag))
        if not lag > 0.0 or whole + 1 >= c.MOST_DELAY:
            return torque
        if m.fresh:
            m.delayed = [torque] * c.MOST_DELAY
        m.delayed = [torque, *m.delayed[:-1]]
        return m.delayed[whole] + (lag - whole) * (m.delayed[whole + 1] - m.delayed[whole])

    def _matched(self, m: WatchMemory, *signals: Array) -> tuple[Array, ...]:
        """Return positions and torques as late as speeds that are differences of positions.

        They pass the same filter, and are means over a period, as a difference is that of its middle. Otherwise the
        inertia M of a sinusoidal motion of frequency ω appears as a viscous friction of -M `SPEED_TIME` ω².
        """
        share = share_of(self.T, c.SPEED_TIME)
        before = signals if m.fresh else m.late
        m.late = tuple(late + share * (signal - late) for late, signal in zip(before, signals, strict=True))
        return tuple(0.5 * (one + other) for one, other in zip(before, m.late, strict=True))
