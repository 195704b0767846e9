"""The monitor in NumPy: reference of the C core, and its substitute for models that C does not have.

The equations, the constants and the order of the steps are those of `runtime/core/monitor.c`. The residual of a joint
is ``r = τ_measured - τ_model``; the generalised-momentum observer filters ``τ - (C q̇ + g + friction) - M(q) Δq̇/T``, in
which the change of momentum less ``Ṁ q̇`` is ``M(q) Δq̇``; the direct residual filters ``τ - τ_model(q, q̇, q̈)``. A Kalman
filter explains it: ``r = Y_payload π + Δa1 f_dry + a2 q̇ + b``, where b is what static friction holds at rest.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jointwise.model.dynamics import joint_signals
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.terms import Inertia, Offset, Spring, Temperature, Viscous
from jointwise.monitoring.core import MOMENTS, SHARES, VERDICTS, CoreMonitor, Known, Reports, Samples
from jointwise.motion import Motion
from jointwise.runtime import RobotModel
from jointwise.runtime.bodies import Bodies
from jointwise.runtime.motion import reference_temperatures, term_values
from jointwise.runtime.stream import NumpyCore, Sample
from jointwise.spatial import Array

FAST_TIME, SLOW_TIME, RISE_TIME, SPEED_TIME, PATH_TIME, TORQUE_TIME = 0.008, 0.1, 0.02, 0.03, 1.0, 0.05
SHOCK_TIME, SLOWNESS, REST_RANGE, REST_TIME, REST_SPEED = 0.1, 0.05, 4e-4, 0.3, 0.003
BREAKAWAY_SHARE, BREAKAWAY_RANGE, HELD_SHARE, HELD_DRIFT, HELD_HUNTING = 1.0, 2e-3, 0.3, 0.05, 2.0
CALM_TIME, START_TIME = 2.0, 0.5
FRICTION_SHARE, FRICTION_TIME, PAYLOAD_TIME, PAYLOAD_ERROR, UPDATE_TIME, CORRELATION = 0.15, 600.0, 1e5, 0.05, 0.05, 2.0
PERSISTENCE, END_RATIO, END_SHARE, END_TIME, RELEASE_TIME, LONGEST = 3, 0.7, 0.5, 0.2, 0.5, 10.0
GAP_STEPS, GAP_TIME, JUMP, RESTART_TIME, RESTART_COUNT, ON_TIME = 5.0, 0.05, 0.5, 1.0, 10, 1e-3
STEADY, CHANGE_SHOCK, LEVEL_TIME, LEVEL_CAP, CHANGES = 4, 0.2, 0.1, 24.0, 3
FROZEN_TIME, FROZEN_SPEED, SATURATED = 0.25, 0.05, 0.999
NOT_FINITE, REPEATED, REORDERED, GAP, JUMPED, RESTART, GOOD = range(7)
SMOOTH = (Offset, Viscous, Temperature, Spring, Inertia)
"""Terms that are not dry friction."""


@dataclass
class _Memory:
    """Memory of the reference, see `jw_watch_state`; arrays are (joints,)."""

    joints: int
    friction: Any = None
    started: bool = False
    fresh: bool = True
    origin: float = 0.0
    stamp: float = 0.0
    grid: float = 0.0
    backwards: int = 0
    last: dict[str, Array] = field(default_factory=dict)
    s: dict[str, Array] = field(default_factory=dict)
    x: Array = field(default_factory=lambda: np.zeros(0))
    P: Array = field(default_factory=lambda: np.zeros((0, 0)))
    contact: bool = False
    lasted: float = 0.0
    quiet: float = 0.0
    peak: float = 0.0
    calm: float = 0.0
    age: float = 0.0
    since: int = 0
    adopted: int = 0
    delayed: list[Array] = field(default_factory=list)
    before: list[Array] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    level: float = 1.0
    steady: Array = field(default_factory=lambda: np.zeros(0))
    rested: Array = field(default_factory=lambda: np.zeros(0))
    counts: Array = field(default_factory=lambda: np.zeros(len(VERDICTS)))
    report: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Moment:
    """What is computed at a time of the uniform clock and not remembered."""

    columns: Array
    dry: Array
    raw: Array
    direct: Array
    inertia: Array
    load: Array


class ReferenceWatch:
    """The monitor in NumPy."""

    def __init__(self, model: RobotModel, core: NumpyCore, numbers: CoreMonitor) -> None:
        """Keep the numbers of a monitor and the evaluator of the model."""
        self.core, self.numbers, self.n, self.T = core, numbers, model.dof, numbers.period
        self.bodies: Bodies = core.bodies
        self.held = np.array([joint.held for joint in numbers.joints])
        self.viscous = np.array([joint.viscous for joint in numbers.joints])
        self.gain = np.array([joint.gain for joint in numbers.joints])
        self.measured = np.array([joint.measured for joint in numbers.joints])

    # -- protocol --

    def init(self) -> _Memory:
        """Return the memory before the first sample."""
        memory, count = _Memory(self.n), MOMENTS + SHARES * self.n
        memory.x, memory.P = np.zeros(count), np.zeros((count, count))
        self._forget_payload(memory, 1.0)
        for j in range(self.n):
            memory.P[_index(j, 0), _index(j, 0)] = FRICTION_SHARE**2
            memory.P[_index(j, 1), _index(j, 1)] = self.viscous[j] ** 2
        zeros = ("same_q", "same_output", "highest")
        memory.s = {name: np.zeros(self.n) for name in zeros}
        per_joint = ("external", "residual", "deviation", "ratio", "frozen", "speed", "inertia", "shock", "rest")
        memory.report = {name: np.zeros(self.n) for name in per_joint} | {
            "contact": 0.0,
            "joint": 0.0,
            "verdict": 0.0,
            "change": 0.0,
        }
        return memory

    def steps(self, memory: _Memory, samples: Samples) -> tuple[Reports, _Memory]:
        """Return the reports of samples and the memory after them."""
        after, rows = deepcopy(memory), []
        for k in range(len(samples)):
            qd = None if samples.qd is None else samples.qd[k]
            warm = None if samples.temperature is None else samples.temperature[k]
            self._watch(after, float(samples.t[k]), samples.q[k], samples.output[k], qd, warm)
            rows.append(deepcopy(after.report))
        names = Reports.__dataclass_fields__
        return Reports(*(np.array([row[name] for row in rows]) for name in names)), after

    def known(self, memory: _Memory) -> Known:
        """Return what the monitor knows."""
        rest = memory.s.get("at_rest", np.zeros(self.n))
        counts = dict(zip(VERDICTS, memory.counts.astype(int).tolist(), strict=True))
        return Known(memory.x.copy(), memory.P.copy(), rest != 0.0, counts, memory.adopted)

    # -- samples as they come --

    def _watch(self, m: _Memory, t: float, q: Array, output: Array, qd: Array | None, warm: Array | None) -> None:
        whole = np.isfinite(t) and np.isfinite(q).all() and (qd is None or np.isfinite(qd).all())
        if not (whole and np.isfinite(output[self.measured]).all()):
            m.counts[NOT_FINITE] += 1
            m.report["verdict"] = float(NOT_FINITE)
            return
        first = not m.started
        m.origin = t if first else m.origin
        t -= m.origin
        verdict = GOOD if first else self._judge(m, t, q)
        m.counts[verdict] += 1
        m.report["verdict"] = float(verdict)
        if verdict <= REORDERED:
            return
        begins = first or verdict != GOOD
        sample = self._completed(m, 0.0 if begins else t - m.stamp, q, output, qd, warm)
        self._watch_channels(m, 0.0 if begins else t - m.stamp, sample)
        if begins:
            m.last, m.stamp, m.grid = sample, t, t
            m.backwards, m.fresh, m.started = 0, True, True
        self._ticks(m, t, sample)
        m.last, m.stamp = sample, t

    def _judge(self, m: _Memory, t: float, q: Array) -> int:
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
        self, m: _Memory, step: float, q: Array, output: Array, qd: Array | None, warm: Array | None
    ) -> dict[str, Array]:
        if qd is None:
            before = m.last["qd"] if step > 0.0 else np.zeros(self.n)
            difference = (q - m.last["q"]) / step if step > 0.0 else np.zeros(self.n)
            qd = before + _share(step, SPEED_TIME) * (difference - before)
        known = m.last["warm"] if m.started else reference_temperatures(self.core.model)
        warm = known if warm is None else np.where(np.isfinite(warm), warm, known)
        return {"q": q.copy(), "qd": qd.copy(), "output": np.where(self.measured, output, 0.0), "warm": warm}

    def _watch_channels(self, m: _Memory, step: float, sample: dict[str, Array]) -> None:
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

    def _ticks(self, m: _Memory, t: float, sample: dict[str, Array]) -> None:
        while m.grid <= t + ON_TIME * self.T:
            part = min((m.grid - m.stamp) / (t - m.stamp), 1.0) if t > m.stamp else 1.0
            q, qd, output = (m.last[name] + part * (sample[name] - m.last[name]) for name in ("q", "qd", "output"))
            torque = self._delayed(m, self.gain * output)
            self._tick(m, q, qd, torque, sample["warm"])
            m.grid += self.T

    def _delayed(self, m: _Memory, torque: Array) -> Array:
        lag = self.numbers.lag / self.T
        whole = int(np.floor(lag))
        if not lag > 0.0 or whole + 1 >= 64:
            return torque
        if m.fresh:
            m.delayed = [torque] * 64
        m.delayed = [torque, *m.delayed[:-1]]
        return m.delayed[whole] + (lag - whole) * (m.delayed[whole + 1] - m.delayed[whole])

    # -- one time of the uniform clock --

    def _tick(self, m: _Memory, q: Array, qd: Array, torque: Array, warm: Array) -> None:
        if m.fresh:
            self._begin(m, q, qd, torque)
        now = self._advance(m, q, qd, torque, warm)
        if m.fresh:
            m.s["load"] = now.load
        self._rest(m, now)
        self._smooth(m, now)
        spread = self._compare(m, now)
        above = bool((m.report["ratio"] > 1.0).any())
        if self.numbers.limit_change > 0.0:
            m.report["change"] = self._changed(m)
            above = above or m.report["change"] > self.numbers.limit_change
        self._decide(m, above)
        m.report["contact"] = float(m.contact)
        m.since += 1
        if m.since >= max(int(np.floor(UPDATE_TIME / self.T + 0.5)), 1):
            if not m.contact:
                self._update(m, m.since * self.T, spread)
            m.since = 0

    def _begin(self, m: _Memory, q: Array, qd: Array, torque: Array) -> None:
        m.friction = self.core.init(q, None)
        zeros = np.zeros(self.n)
        m.before = m.before or [zeros, zeros]
        m.changes, m.level, m.steady = [0.0] * CHANGES, 1.0, zeros
        m.rested = m.rested if len(m.rested) else zeros
        m.s |= {"position": q, "path": q, "anchor": q, "speed": qd, "mean_torque": torque}
        m.s |= dict.fromkeys(("acceleration", "shock", "over", "travel", "load"), zeros)
        rests = np.abs(qd) < REST_SPEED
        m.s["resting"], m.s["at_rest"] = np.where(rests, REST_TIME, 0.0), rests.astype(float)
        filtered = ("expected", "fast", "slow", "dry", "slow_speed")
        m.s |= {name: m.s.get(name, zeros) for name in filtered}
        m.s["columns"] = m.s.get("columns", np.zeros((self.n, MOMENTS)))
        for j in range(self.n):
            _forget(m, _index(j, 2), self.held[j] ** 2 if rests[j] else 0.0)
        m.contact, m.lasted, m.quiet, m.peak, m.calm, m.age = False, 0.0, 0.0, 0.0, CALM_TIME, 0.0

    def _advance(self, m: _Memory, q: Array, qd: Array, torque: Array, warm: Array) -> _Moment:
        s, T = m.s, self.T
        ahead = s["path"] + 0.5 * T * (qd + s["speed"])
        s["path"] = np.where(s["at_rest"] == 0.0, ahead + min(T / PATH_TIME, 1.0) * (q - ahead), s["path"])
        change = (qd - s["speed"]) / T
        s["acceleration"] = s["acceleration"] + _share(T, RISE_TIME) * (change - s["acceleration"])
        a, sliding = s["acceleration"], np.where((s["at_rest"] != 0.0) | (np.abs(qd) < REST_SPEED), 0.0, qd)
        total, m.friction = self.core.step(m.friction, Sample(q, sliding, a, temperature=warm), s["path"])
        load = self.bodies.torque(q[None], sliding[None], a[None])[0]
        inertia = self.bodies.mass_matrix(q[None])[0] @ a
        momentum = self.bodies.mass_matrix(s["position"][None])[0] @ change
        s["mean_torque"] = s["mean_torque"] + _share(T, TORQUE_TIME) * (torque - s["mean_torque"])
        sudden = np.minimum(np.abs(momentum - inertia), np.abs(torque - s["mean_torque"]))
        s["shock"] = np.maximum(sudden, np.exp(-T / SHOCK_TIME) * s["shock"])
        s["position"], s["speed"] = q, qd
        dry = total - load - self._smooth_torque(q, sliding, a, warm)
        raw = torque - (total - inertia + momentum)
        return _Moment(self._columns(q, qd, a), dry, raw, torque - total, inertia, load)

    def _columns(self, q: Array, qd: Array, a: Array) -> Array:
        """Return the torques of unit mass and unit first moments of a payload, (joints, 4)."""
        columns = []
        for body in self.numbers.bodies:
            inertials = np.zeros((self.n, 10))
            inertials[-1] = body
            options = {"gravity": self.bodies.gravity, "inertials": inertials, "rotor_inertias": np.zeros(self.n)}
            columns.append(inverse_dynamics(self.bodies.frame, q[None], qd[None], a[None], **options)[0])  # type: ignore[arg-type]
        return np.column_stack(columns)

    def _smooth_torque(self, q: Array, qd: Array, a: Array, warm: Array) -> Array:
        motion = Motion(0.0, 1.0 / self.T, q[None], qd[None], a[None], temperature=warm[None])
        result = np.zeros(self.n)
        for j in range(self.n):
            signals = joint_signals(motion, j)
            for term, value in term_values(self.core.model, j, self.core.values):
                if isinstance(term, SMOOTH):
                    result[j] += float((term.columns(signals)[0] @ value)[0])
        return result

    def _rest(self, m: _Memory, now: _Moment) -> None:
        s = m.s
        s["resting"], s["anchor"] = s["resting"].copy(), s["anchor"].copy()
        s["at_rest"], s["travel"] = s["at_rest"].copy(), s["travel"].copy()
        for j in range(self.n):
            near, b = abs(s["position"][j] - s["anchor"][j]) < REST_RANGE, _index(j, 2)
            deviation = np.sqrt(max(m.P[b, b], 0.0))
            s["resting"][j] = s["resting"][j] + self.T if near else 0.0
            s["anchor"][j] = s["anchor"][j] if near else s["position"][j]
            s["travel"][j] = 0.0 if s["at_rest"][j] else s["travel"][j] + self.T * abs(s["speed"][j])
            if not s["at_rest"][j] and s["resting"][j] >= REST_TIME:
                s["at_rest"][j] = 1.0
                _forget(m, b, self.held[j] ** 2)
            elif s["at_rest"][j] and not near:
                s["at_rest"][j] = 0.0
                _forget(m, b, 0.0)
            elif s["at_rest"][j]:
                taken = deviation + HELD_SHARE * abs(now.load[j] - s["load"][j])
                m.P[b, b] = min(taken, max(deviation, self.held[j])) ** 2
        s["load"] = now.load
        m.calm = m.calm + self.T if s["at_rest"].all() else 0.0
        m.age += self.T

    def _smooth(self, m: _Memory, now: _Moment) -> None:
        s, x = m.s, m.x
        fast, slow = _share(self.T, max(FAST_TIME, self.T)), _share(self.T, SLOW_TIME)
        fast, slow = (1.0, 1.0) if m.fresh else (fast, slow)
        dry = np.where(s["at_rest"] != 0.0, 0.0, x[MOMENTS::SHARES] * now.dry)
        expected = now.columns @ x[:MOMENTS] + dry + x[MOMENTS + 1 :: SHARES] * s["speed"]
        targets = {"expected": (expected, fast), "fast": (now.raw, fast), "slow": (now.direct, slow)}
        targets |= {"dry": (now.dry, slow), "slow_speed": (s["speed"], slow), "columns": (now.columns, slow)}
        for name, (value, share) in targets.items():
            s[name] = s[name] + share * (value - s[name])
        m.fresh = False

    # -- filter --

    def _row(self, m: _Memory, j: int) -> Array:
        s, row = m.s, np.zeros(len(m.x))
        row[:MOMENTS] = s["columns"][j]
        rests = s["at_rest"][j] != 0.0
        row[_index(j, 0) : _index(j, 0) + SHARES] = 0.0 if rests else s["dry"][j], s["slow_speed"][j], rests
        return row

    def _forget_payload(self, m: _Memory, share: float) -> None:
        variances = [self.numbers.mass**2, *[self.numbers.moment**2] * 3]
        m.P[np.arange(MOMENTS), np.arange(MOMENTS)] += share * np.array(variances)

    def _update(self, m: _Memory, time: float, spread: Array) -> None:
        drift = HELD_DRIFT if m.calm >= CALM_TIME else HELD_HUNTING
        self._forget_payload(m, time / PAYLOAD_TIME)
        for j in range(self.n):
            m.P[_index(j, 0), _index(j, 0)] += FRICTION_SHARE**2 * time / FRICTION_TIME
            m.P[_index(j, 1), _index(j, 1)] += self.viscous[j] ** 2 * time / FRICTION_TIME
            if m.s["at_rest"][j]:
                m.P[_index(j, 2), _index(j, 2)] += (drift * self.held[j]) ** 2 * time
        for j in np.flatnonzero(self.measured).tolist():
            row = self._row(m, j)
            PH = m.P @ row
            S = (CORRELATION * spread[j]) ** 2 + row @ PH
            if S > 0.0:
                m.x = m.x + PH * (m.s["slow"][j] - row @ m.x) / S
                m.P = m.P - np.outer(PH, PH) / S

    # -- contact --

    def _spreads(self, m: _Memory, now: _Moment, j: int) -> tuple[float, float]:
        s, w = m.s, self.numbers.joints[j].spread
        fast, slow = np.array(w.fast), np.array(w.slow)
        if s["at_rest"][j]:
            part = (s["position"][j] - s["anchor"][j]) / REST_RANGE
            moved = BREAKAWAY_SHARE * self.held[j] * part**2
            shock = s["shock"][j]
            return w.rest_fast + fast[4] * shock + moved, w.rest_slow + slow[4] * shock + moved
        v = abs(s["speed"][j])
        features = np.array([1.0, v, abs(now.inertia[j]), np.exp(-((v / SLOWNESS) ** 2)), s["shock"][j]])
        start = BREAKAWAY_SHARE * self.held[j] * np.exp(-s["travel"][j] / BREAKAWAY_RANGE)
        return float(start + fast @ features), float(start + slow @ features)

    def _compare(self, m: _Memory, now: _Moment) -> Array:
        s, report, spread = m.s, m.report, np.zeros(self.n)
        over, numbers = s["over"].copy(), self.numbers
        new = {name: np.zeros(self.n) for name in ("external", "residual", "deviation", "ratio")}
        for j in range(self.n):
            row = self._row(m, j)
            held = m.x[_index(j, 2)] if s["at_rest"][j] else 0.0
            fast, slow = s["fast"][j] - s["expected"][j] - held, s["slow"][j] - row @ m.x
            known, carried = max(row @ m.P @ row, 0.0), abs(s["columns"][j] @ m.x[:MOMENTS])
            fast_spread, spread[j] = (value + PAYLOAD_ERROR * carried for value in self._spreads(m, now, j))
            u = abs(fast) / (numbers.limit_fast * np.sqrt(fast_spread**2 + known))
            w = abs(slow) / (numbers.limit_slow * np.sqrt(spread[j] ** 2 + known))
            u = 0.0 if numbers.derived else u
            over[j] = over[j] + 1.0 if u > 1.0 else 0.0
            u = u if over[j] >= PERSISTENCE else min(u, 1.0)
            new["external"][j], new["residual"][j] = -fast, -slow
            new["deviation"][j] = np.sqrt(spread[j] ** 2 + known)
            new["ratio"][j] = max(u, w) if self.measured[j] else 0.0
        s["over"] = over
        report |= new
        report |= {"speed": s["speed"], "inertia": now.inertia, "shock": s["shock"], "rest": s["at_rest"]}
        report["joint"] = float(np.argmax(new["ratio"]))
        return spread

    def _changed(self, m: _Memory) -> float:
        now, used = m.report["external"], self.measured
        first, second = np.array([joint.predictor for joint in self.numbers.joints]).T
        deviation, fastest = np.array([(joint.change, joint.fastest) for joint in self.numbers.joints]).T
        error = now - first * m.before[0] - second * m.before[1]
        m.steady = np.where(m.rested == m.s["at_rest"], m.steady + 1, 0)
        m.rested = m.s["at_rest"]
        squares = error**2 / (deviation**2 + (CHANGE_SHOCK * m.s["shock"]) ** 2)
        known = bool((np.abs(m.s["speed"]) <= fastest).all())
        m.before = [now, m.before[0]]
        m.changes = [float(squares[used & (m.steady >= STEADY)].sum()) if known else 0.0, *m.changes[:-1]]
        mean = sum(m.changes) / CHANGES
        change = float(np.sqrt(mean / max(m.level, 1.0)))
        m.level += _share(self.T, LEVEL_TIME) * (min(mean / max(used.sum(), 1), LEVEL_CAP) - m.level)
        return change

    def _decide(self, m: _Memory, above: bool) -> None:
        ratios = m.report["ratio"]
        ratio = float(ratios.max())
        if not m.contact:
            if not above or m.age < START_TIME:
                return
            m.contact, m.lasted, m.quiet, m.peak = True, 0.0, 0.0, 0.0
        moves = bool(((ratios > 1.0) & (m.s["at_rest"] == 0.0)).any())
        m.peak, m.lasted = max(m.peak, ratio), m.lasted + self.T
        ends, released = ratio < END_RATIO, not moves and ratio < END_SHARE * m.peak
        m.quiet = m.quiet + self.T if ends or released else 0.0
        if ends and m.quiet >= END_TIME:
            m.contact = False
        elif released and m.quiet >= RELEASE_TIME:
            self._adopt(m)
        elif m.lasted >= LONGEST:
            self._adopt(m)
            self._forget_payload(m, 1.0)
            m.adopted += 1

    def _adopt(self, m: _Memory) -> None:
        for j in np.flatnonzero(m.s["at_rest"]).tolist():
            _forget(m, _index(j, 2), self.held[j] ** 2)
        m.contact = False


def _index(joint: int, share: int) -> int:
    """Return the index of an unknown of a joint."""
    return MOMENTS + SHARES * joint + share


def _share(period: float, time: float) -> float:
    """Return the share of a new value in a first-order filter."""
    return float(1.0 - np.exp(-period / time))


def _forget(m: _Memory, k: int, variance: float) -> None:
    """Forget an unknown; then it has this variance."""
    m.P[k, :] = m.P[:, k] = 0.0
    m.x[k], m.P[k, k] = 0.0, variance
