"""The monitor in NumPy: reference of the C core, and its substitute for models that C does not have.

The equations, the constants and the order of the steps are those of `runtime/core/monitor.c`. The residual of a joint
is ``r = τ_measured - τ_model``; the generalised-momentum observer filters ``τ - (C q̇ + g + friction) - M(q) Δq̇/T``, in
which the change of momentum less ``Ṁ q̇`` is ``M(q) Δq̇``; the direct residual filters ``τ - τ_model(q, q̇, q̈)``. A Kalman
filter explains it: ``r = Y_payload π + Δa1 f_dry + a2 q̇ + b``, where b is what static friction holds at rest. This
module takes samples as they come; `reference_tick` evaluates the times of the uniform clock between them.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from jointwise.model.transmission import motor_values
from jointwise.monitoring.core import VERDICTS, CoreMonitor, Known, Reports, Samples
from jointwise.monitoring.reference_state import WatchMemory, share_of
from jointwise.monitoring.reference_tick import ReferenceTick
from jointwise.runtime import RobotModel
from jointwise.runtime.motion import reference_temperatures
from jointwise.runtime.stream import NumpyCore
from jointwise.spatial import Array

SPEED_TIME, ON_TIME = 0.03, 1e-3
GAP_STEPS, GAP_TIME, JUMP, RESTART_TIME, RESTART_COUNT = 5.0, 0.05, 0.5, 1.0, 10
FROZEN_TIME, FROZEN_SPEED, SATURATED, MOST_DELAY = 0.25, 0.05, 0.999, 64
NOT_FINITE, REPEATED, REORDERED, GAP, JUMPED, RESTART, GOOD = range(7)


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
            q, qd = motor_values(self.robot, samples.q[k]), None if samples.qd is None else samples.qd[k]
            qd = None if qd is None else motor_values(self.robot, qd)
            warm = None if samples.temperature is None else samples.temperature[k]
            self._watch(after, float(samples.t[k]), q, samples.output[k], qd, warm)
            rows.append(deepcopy(after.report))
        names = Reports.__dataclass_fields__
        return Reports(*(np.array([row[name] for row in rows]) for name in names)), after

    def known(self, memory: WatchMemory) -> Known:
        """Return what the monitor knows."""
        rest = memory.s.get("at_rest", np.zeros(self.n))
        counts = dict(zip(VERDICTS, memory.counts.astype(int).tolist(), strict=True))
        return Known(memory.x.copy(), memory.P.copy(), rest != 0.0, counts, memory.adopted)

    # -- samples as they come --

    def _watch(self, m: WatchMemory, t: float, q: Array, output: Array, qd: Array | None, warm: Array | None) -> None:
        known = [np.array([t]), q, output[self.measured], *([] if qd is None else [qd])]
        if not all(np.isfinite(values).all() for values in known):
            m.counts[NOT_FINITE] += 1
            m.report["verdict"] = float(NOT_FINITE)
            return
        m.origin = m.origin if m.started else t
        t -= m.origin
        verdict = self._judge(m, t, q) if m.started else GOOD
        m.counts[verdict] += 1
        m.report["verdict"] = float(verdict)
        if verdict > REORDERED:
            self._take(m, t, not m.started or verdict != GOOD, (q, output, qd, warm))

    def _take(
        self, m: WatchMemory, t: float, begins: bool, channels: tuple[Array, Array, Array | None, Array | None]
    ) -> None:
        """Take a sample that is whole; at a break the signals begin again."""
        step = 0.0 if begins else t - m.stamp
        sample = self._completed(m, step, *channels)
        self._watch_channels(m, step, sample)
        if begins:
            m.last, m.stamp, m.grid = sample, t, t
            m.backwards, m.fresh, m.started = 0, True, True
        self._ticks(m, t, sample)
        m.last, m.stamp = sample, t

    def _judge(self, m: WatchMemory, t: float, q: Array) -> int:
        step = t - m.stamp
        if step > 0.0:
            m.backwards = 0
            if step > max(GAP_STEPS * self.T, GAP_TIME):
                return GAP
            return JUMPED if (np.abs(q - m.last["q"] - step * m.last["qd"]) > JUMP).any() else GOOD
        if step == 0.0:
            return REPEATED
        m.backwards += 1
        return RESTART if step < -RESTART_TIME or m.backwards >= RESTART_COUNT else REORDERED

    def _completed(
        self, m: WatchMemory, step: float, q: Array, output: Array, qd: Array | None, warm: Array | None
    ) -> dict[str, Array]:
        if qd is None:
            before = m.last["qd"] if step > 0.0 else np.zeros(self.n)
            difference = (q - m.last["q"]) / step if step > 0.0 else np.zeros(self.n)
            qd = before + share_of(step, SPEED_TIME) * (difference - before)
        known = m.last["warm"] if m.started else reference_temperatures(self.core.model)
        warm = known if warm is None else np.where(np.isfinite(warm), warm, known)
        return {"q": q.copy(), "qd": qd.copy(), "output": np.where(self.measured, output, 0.0), "warm": warm}

    def _watch_channels(self, m: WatchMemory, step: float, sample: dict[str, Array]) -> None:
        moves, s = np.abs(sample["qd"]) > FROZEN_SPEED, m.s
        before = m.last or {"q": np.full(self.n, np.nan), "output": np.full(self.n, np.nan)}
        same_q = moves & (sample["q"] == before["q"]) & (not self.numbers.derived)
        same_output = moves & self.measured & (sample["output"] == before["output"])
        s["same_q"] = np.where(same_q, s["same_q"] + step, 0.0)
        s["same_output"] = np.where(same_output, s["same_output"] + step, 0.0)
        size = np.abs(sample["output"])
        s["highest"] = np.maximum(s["highest"], size)
        repeats = np.where(size >= SATURATED * s["highest"], 4.0, 2.0)
        frozen = (s["same_q"] >= FROZEN_TIME) + np.where(s["same_output"] >= FROZEN_TIME, repeats, 0.0)
        m.report["frozen"] = frozen

    def _ticks(self, m: WatchMemory, t: float, sample: dict[str, Array]) -> None:
        while m.grid <= t + ON_TIME * self.T:
            part = min((m.grid - m.stamp) / (t - m.stamp), 1.0) if t > m.stamp else 1.0
            q, qd, output = (m.last[name] + part * (sample[name] - m.last[name]) for name in ("q", "qd", "output"))
            torque = self._delayed(m, self.gain * output)
            self.clock.tick(m, q, qd, torque, sample["warm"])
            m.grid += self.T

    def _delayed(self, m: WatchMemory, torque: Array) -> Array:
        lag = self.numbers.lag / self.T
        whole = int(np.floor(lag))
        if not lag > 0.0 or whole + 1 >= MOST_DELAY:
            return torque
        if m.fresh:
            m.delayed = [torque] * MOST_DELAY
        m.delayed = [torque, *m.delayed[:-1]]
        return m.delayed[whole] + (lag - whole) * (m.delayed[whole + 1] - m.delayed[whole])
