"""One time of the uniform clock of the NumPy monitor: residuals, what dry friction may add, filter, contact.

The equations, the constants and the order of the steps are those of `runtime/core/monitor.c`; signals and torques are
those of the motors where a transmission couples them with the joints.
"""

from __future__ import annotations

import numpy as np

from jointwise.estimation.least_squares import Mask
from jointwise.model.dynamics import joint_signals
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.terms import Inertia, Offset, Spring, Temperature, Viscous
from jointwise.model.transmission import joint_values, motor_torque
from jointwise.monitoring.core import COLUMNS, MOMENTS, SHARES, CoreMonitor
from jointwise.monitoring.reference_state import JointsAt, Moment, WatchMemory, forget, index_of, share_of
from jointwise.motion import Motion
from jointwise.runtime.bodies import Bodies
from jointwise.runtime.motion import term_values
from jointwise.runtime.stream import NumpyCore, Sample
from jointwise.spatial import Array

FAST_TIME, SLOW_TIME, RISE_TIME, PATH_TIME, TORQUE_TIME, JUMP_TIME = 0.008, 0.1, 0.02, 1.0, 0.05, 0.004
SHOCK_TIME, SLOWNESS, REST_RANGE, LEAVE_RANGE, REST_TIME, REST_SPEED = 0.1, 0.05, 4e-4, 1e-3, 0.3, 0.003
COULOMB, LOOSE, STOP_SPEED, BREAKAWAY_RANGE, STATIC, CALM_SHARE = 1.7320508, 2.0, 0.02, 2e-3, 1.6, 0.2
JUMP_SHARE, JUMP_CHANGE, SCALE, SCALE_TIME, SCALE_CAP = 1.0, 0.3, 2.0, 20.0, 3.0
STILL_SHARE, STILL_TIME = 0.05, 1.0
FOLLOW_TIME, SETTLED, LOOSE_SHARE, START_WAIT, HARD_STOP = 0.7, 0.3, 0.1, 2.0, 0.6
RISE_REST, RISE_PART, RISE_STILL, RISE_USUAL, RISE_START, RISE_FIRST = 0.02, 0.3, 0.5, 10.0, 0.09, 0.5
RISE_LIMIT, RISE_TIME_LEAST, RISE_END = 6.5, 0.05, 0.3
HELD_DRIFT, HELD_HUNTING, CALM_LOAD, CALM_TIME, START_TIME = 0.1, 2.0, 0.5, 3.0, 0.5
FRICTION_SHARE, FRICTION_TIME, PAYLOAD_TIME, PAYLOAD_ERROR, UPDATE_TIME, CORRELATION = 0.15, 600.0, 1e5, 0.05, 0.05, 2.0
PERSISTENCE, PUSH_TIME, END_RATIO, END_SHARE, END_TIME, RELEASE_TIME, LONGEST = 3, 0.3, 0.7, 0.5, 0.2, 0.5, 10.0
STEADY, CHANGE_SHOCK, LEVEL_TIME, LEVEL_CAP, CHANGES = 4, 0.2, 0.1, 24.0, 3
SMOOTH = (Offset, Viscous, Temperature, Spring, Inertia)
"""Terms that are not dry friction."""


class ReferenceTick:
    """The monitor at the times of its uniform clock."""

    def __init__(self, core: NumpyCore, numbers: CoreMonitor) -> None:
        """Keep the numbers of a monitor and the evaluator of the model."""
        self.core, self.numbers, self.n, self.T = core, numbers, len(numbers.joints), numbers.period
        self.bodies: Bodies = core.bodies
        self.robot = core.model.robot
        self.held = np.array([joint.held for joint in numbers.joints])
        self.friction = COULOMB * self.held
        self.viscous = np.array([joint.viscous for joint in numbers.joints])
        self.measured = np.array([joint.measured for joint in numbers.joints])
        spreads = [joint.spread for joint in numbers.joints]
        self.spread_fast, self.spread_slow = np.array([s.fast for s in spreads]), np.array([s.slow for s in spreads])
        self.rest_fast, self.rest_slow = np.array([(s.rest_fast, s.rest_slow) for s in spreads]).T

    def init(self) -> WatchMemory:
        """Return the memory before the first sample."""
        memory, count = WatchMemory(self.n), MOMENTS + SHARES * self.n
        memory.x, memory.P = np.zeros(count), np.zeros((count, count))
        self._forget_payload(memory, 1.0)
        for j in range(self.n):
            memory.P[index_of(j, 0), index_of(j, 0)] = FRICTION_SHARE**2
            memory.P[index_of(j, 1), index_of(j, 1)] = self.viscous[j] ** 2
        counted = ("same_q", "same_output", "highest", "direction", "mean_fast", "mean_slow", "scale", "calm_load")
        smooth = ("followed", "expected", "fast", "slow", "dry", "slow_speed", "slow_grip", "loose_fast", "loose_slow")
        memory.s = {name: np.zeros(self.n) for name in (*counted, *smooth)} | {"columns": np.zeros((self.n, MOMENTS))}
        memory.report = {name: np.zeros(self.n) for name in COLUMNS}
        memory.report |= {"contact": 0.0, "joint": 0.0, "verdict": 0.0, "change": 0.0}
        return memory

    def tick(self, m: WatchMemory, q: Array, qd: Array, torque: Array, warm: Array) -> None:
        """Advance the memory by one period."""
        if m.fresh:
            self._begin(m, q, qd, torque)
        now = self._advance(m, q, qd, torque, warm)
        if m.fresh:
            m.s["calm_load"] = now.load
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

    def _begin(self, m: WatchMemory, q: Array, qd: Array, torque: Array) -> None:
        m.friction = self.core.init(joint_values(self.robot, q), None)
        zeros = np.zeros(self.n)
        m.before = m.before or [zeros, zeros]
        m.changes, m.level, m.steady = [0.0] * CHANGES, np.ones(self.n), zeros
        m.rested = m.rested if len(m.rested) else zeros
        m.s |= {"position": q, "path": q, "anchor": q, "speed": qd, "mean_torque": torque, "base_torque": torque}
        m.s |= dict.fromkeys(("acceleration", "shock", "over", "above", "travel", "jump", "usual", "settled"), zeros)
        rests = np.abs(qd) < REST_SPEED
        m.s["resting"] = np.where(rests, REST_TIME, 0.0)
        m.s |= dict.fromkeys(("at_rest", "grip", "slow_grip"), rests.astype(float))
        m.s["scale"] = np.maximum(m.s["scale"], 1.0)
        for j in range(self.n):
            forget(m, index_of(j, 2), self.held[j] ** 2 if rests[j] else 0.0)
        m.contact, m.lasted, m.quiet, m.peak, m.calm, m.age = False, 0.0, 0.0, 0.0, CALM_TIME, 0.0
        m.still = m.moved = m.rising = 0.0

    def _advance(self, m: WatchMemory, q: Array, qd: Array, torque: Array, warm: Array) -> Moment:
        s, T = m.s, self.T
        ahead = s["path"] + 0.5 * T * (qd + s["speed"])
        s["path"] = np.where(s["at_rest"] == 0.0, ahead + min(T / PATH_TIME, 1.0) * (q - ahead), s["path"])
        change = (qd - s["speed"]) / T
        s["acceleration"] = s["acceleration"] + share_of(T, RISE_TIME) * (change - s["acceleration"])
        a, sliding = s["acceleration"], np.where((s["at_rest"] != 0.0) | (np.abs(qd) < REST_SPEED), 0.0, qd)
        joints = JointsAt(*(joint_values(self.robot, x) for x in (q, qd, sliding, a, s["path"])))
        total, m.friction = self.core.step(
            m.friction, Sample(joints.q, joints.sliding, joints.qdd, temperature=warm), joints.path
        )
        total = motor_torque(self.robot, total)
        load = motor_torque(
            self.robot, self.bodies.torque(*(x[None] for x in (joints.q, joints.sliding, joints.qdd)))[0]
        )
        inertia, momentum = self._inertia(q, a), self._inertia(s["position"], change)
        s["mean_torque"] = s["mean_torque"] + share_of(T, TORQUE_TIME) * (torque - s["mean_torque"])
        sudden = np.minimum(np.abs(momentum - inertia), np.abs(torque - s["mean_torque"]))
        s["shock"] = np.maximum(sudden, np.exp(-T / SHOCK_TIME) * s["shock"])
        s["jump"] = np.maximum(np.abs(torque - s["base_torque"]), np.exp(-T / SHOCK_TIME) * s["jump"])
        s["base_torque"] = s["base_torque"] + share_of(T, max(JUMP_TIME, T)) * (torque - s["base_torque"])
        s["position"], s["speed"] = q, qd
        dry = total - load - self._smooth_torque(q, sliding, a, warm)
        raw = torque - (total - inertia + momentum)
        return Moment(self._columns(joints), dry, raw, torque - total, inertia, load)

    def _inertia(self, q: Array, x: Array) -> Array:
        """Return M(q) x of the motors at positions of the motors."""
        M = self.bodies.mass_matrix(joint_values(self.robot, q)[None])[0]
        return motor_torque(self.robot, M @ joint_values(self.robot, x))

    def _columns(self, at: JointsAt) -> Array:
        """Return the torques of unit mass and unit first moments of a payload, (joints, 4)."""
        columns = []
        for body in self.numbers.bodies:
            inertials = np.zeros((self.n, 10))
            inertials[-1] = body
            options = {"gravity": self.bodies.gravity, "inertials": inertials, "rotor_inertias": np.zeros(self.n)}
            torque = inverse_dynamics(self.bodies.frame, at.q[None], at.qd[None], at.qdd[None], **options)[0]  # type: ignore[arg-type]
            columns.append(motor_torque(self.robot, torque))
        return np.column_stack(columns)

    def _smooth_torque(self, q: Array, qd: Array, a: Array, warm: Array) -> Array:
        motion = Motion(1.0 / self.T, q[None], qd[None], a[None], temperature=warm[None])
        result = np.zeros(self.n)
        for j in range(self.n):
            signals = joint_signals(motion, j)
            for term, value in term_values(self.core.model, j, self.core.values):
                if isinstance(term, SMOOTH):
                    result[j] += float((term.columns(signals)[0] @ value)[0])
        return result

    def _rest(self, m: WatchMemory, now: Moment) -> None:
        s, rests, path = m.s, m.s["at_rest"] != 0.0, self.T * np.abs(m.s["speed"])
        near = np.abs(s["position"] - s["anchor"]) < np.where(rests, LEAVE_RANGE, REST_RANGE)
        near &= np.abs(s["speed"]) < STOP_SPEED
        s["resting"] = np.where(near, s["resting"] + self.T, 0.0)
        s["anchor"] = np.where(near, s["anchor"], s["position"])
        turns = self._turned(m)
        s["travel"] = np.where(rests | turns, 0.0, s["travel"] + path)
        stops, leaves = ~rests & (s["resting"] >= REST_TIME), rests & ~near
        s["at_rest"] = np.where(stops, 1.0, np.where(leaves, 0.0, s["at_rest"]))
        sliding = np.where(rests, 1.0, np.exp(-path / BREAKAWAY_RANGE))
        left = np.where(leaves, np.exp(-LEAVE_RANGE / BREAKAWAY_RANGE), s["grip"] * sliding)
        s["grip"] = np.where(stops, 1.0, left)
        for j in np.flatnonzero(stops).tolist():
            forget(m, index_of(j, 2), self.held[j] ** 2)
        changed = np.abs(now.load - s["calm_load"]) > CALM_LOAD * self.friction
        s["calm_load"] = np.where(changed, now.load, s["calm_load"])
        m.calm = 0.0 if (changed | turns | leaves).any() else m.calm + self.T
        s["settled"] = np.where(stops | leaves, 0.0, s["settled"] + self.T)
        hard = s["shock"] > HARD_STOP * self.friction
        m.moved = (0.0 if (stops | leaves | hard).any() else m.moved) + self.T
        m.still = m.still + self.T if (s["at_rest"] != 0.0).all() else 0.0
        m.age += self.T

    def _turned(self, m: WatchMemory) -> Mask:
        """Return which joints turned round since their speed last was above the least one."""
        speed = m.s["speed"]
        known = (m.s["at_rest"] == 0.0) & (np.abs(speed) >= REST_SPEED)
        other: Mask = known & (speed * m.s["direction"] < 0.0)
        m.s["direction"] = np.where(known, speed, m.s["direction"])
        return other

    def _loose(self, m: WatchMemory) -> Array:
        """Return bounds (Nm) of the error of dry friction where joints stop, turn round or break away."""
        s = m.s
        turns = np.maximum(np.exp(-((s["speed"] / STOP_SPEED) ** 2)), np.exp(-s["travel"] / BREAKAWAY_RANGE))
        left = 1.0 - s["grip"]
        moving = LOOSE * np.maximum(left * turns, 4.0 * left * s["grip"])
        result: Array = self.friction * np.where(s["at_rest"] != 0.0, STATIC, moving)
        return result

    def _smooth(self, m: WatchMemory, now: Moment) -> None:
        s, x = m.s, m.x
        fast, slow = share_of(self.T, max(FAST_TIME, self.T)), share_of(self.T, SLOW_TIME)
        fast, slow = (1.0, 1.0) if m.fresh else (fast, slow)
        dry, bound = np.where(s["at_rest"] != 0.0, 0.0, x[MOMENTS::SHARES] * now.dry), self._loose(m)
        expected = now.columns @ x[:MOMENTS] + dry + x[MOMENTS + 1 :: SHARES] * s["speed"]
        targets = {"expected": (expected, fast), "fast": (now.raw, fast), "slow": (now.direct, slow)}
        targets |= {"dry": (now.dry, slow), "slow_speed": (s["speed"], slow), "columns": (now.columns, slow)}
        targets |= {"slow_grip": (s["grip"], slow), "loose_fast": (bound, fast), "loose_slow": (bound, slow)}
        for name, (value, share) in targets.items():
            s[name] = s[name] + share * (value - s[name])
        s["loose_fast"] = np.maximum(s["loose_fast"], bound)
        m.fresh = False

    # -- filter --

    def _row(self, m: WatchMemory, j: int) -> Array:
        s, row = m.s, np.zeros(len(m.x))
        row[:MOMENTS] = s["columns"][j]
        dry = 0.0 if s["at_rest"][j] != 0.0 else s["dry"][j]
        row[index_of(j, 0) : index_of(j, 0) + SHARES] = dry, s["slow_speed"][j], s["slow_grip"][j]
        return row

    def _forget_payload(self, m: WatchMemory, share: float) -> None:
        variances = [self.numbers.mass**2, *[self.numbers.moment**2] * 3]
        m.P[np.arange(MOMENTS), np.arange(MOMENTS)] += share * np.array(variances)

    def _update(self, m: WatchMemory, time: float, spread: Array) -> None:
        drift = HELD_DRIFT if m.calm >= CALM_TIME else HELD_HUNTING
        self._forget_payload(m, time / PAYLOAD_TIME)
        for j in range(self.n):
            m.P[index_of(j, 0), index_of(j, 0)] += FRICTION_SHARE**2 * time / FRICTION_TIME
            m.P[index_of(j, 1), index_of(j, 1)] += self.viscous[j] ** 2 * time / FRICTION_TIME
            if m.s["at_rest"][j]:
                m.P[index_of(j, 2), index_of(j, 2)] += (drift * self.held[j]) ** 2 * time
        for j in np.flatnonzero(self.measured & (m.s["above"] == 0.0)).tolist():
            row = self._row(m, j)
            PH = m.P @ row
            S = (CORRELATION * spread[j]) ** 2 + row @ PH
            if S > 0.0:
                m.x = m.x + PH * (m.s["slow"][j] - row @ m.x) / S
                m.P = m.P - np.outer(PH, PH) / S

    # -- contact --

    def _spreads(self, m: WatchMemory, now: Moment) -> tuple[Array, Array]:
        """Return the spreads of both residuals with what a payload adds, at least as smoothed, (joints,) each."""
        s, rests, v = m.s, m.s["at_rest"] != 0.0, np.abs(m.s["speed"])
        columns = [np.ones(self.n), v, np.abs(now.inertia), np.exp(-((v / SLOWNESS) ** 2)), s["shock"]]
        carried = PAYLOAD_ERROR * np.abs(s["columns"] @ m.x[:MOMENTS])
        result = []
        for name, factors, rest, time in (
            ("mean_fast", self.spread_fast, self.rest_fast, FAST_TIME),
            ("mean_slow", self.spread_slow, self.rest_slow, SLOW_TIME),
        ):
            spread = np.where(
                rests, rest + factors[:, 4] * s["shock"], (np.column_stack(columns) * factors).sum(axis=1)
            )
            s[name] = s[name] + share_of(self.T, time) * (spread - s[name])
            result.append(np.maximum(spread, s[name]) + carried)
        return result[0], result[1]

    def _bounds(self, m: WatchMemory) -> tuple[Mask, Array, Array]:
        """Return which joints take up any torque within their friction, and bounds (Nm) of both residuals."""
        s, rests = m.s, m.s["at_rest"] != 0.0
        hunts = rests & (m.calm < CALM_TIME)
        part = (s["position"] - s["anchor"]) / LEAVE_RANGE
        whole = np.maximum(STATIC * self.friction, s["loose_slow"])
        still = m.calm >= CALM_TIME and m.still >= STILL_TIME
        calm = self.friction * (STILL_SHARE + STATIC * part**4 if still else CALM_SHARE + STATIC * part**2)
        fast = JUMP_SHARE * s["jump"] + np.where(rests, whole, s["loose_fast"])
        return hunts, fast, np.where(hunts, whole, np.where(rests, calm, s["loose_slow"]))

    def _compare(self, m: WatchMemory, now: Moment) -> Array:
        s, numbers = m.s, self.numbers
        held, rows = m.x[MOMENTS + 2 :: SHARES], np.array([self._row(m, j) for j in range(self.n)])
        fast, slow = s["fast"] - s["expected"] - s["grip"] * held, s["slow"] - rows @ m.x
        m.report |= {"external": -fast, "residual": -slow}
        whole = slow + np.where(s["at_rest"] != 0.0, s["slow_grip"] * held, 0.0)
        fast_spread, spread = self._spreads(m, now)
        hunts, fast_bound, slow_bound = self._bounds(m)
        fast = np.where(hunts, fast + held + s["dry"], fast)
        slow = np.where(hunts, slow + s["slow_grip"] * held + s["dry"], slow)
        for j in np.flatnonzero(hunts).tolist():
            rows[j, index_of(j, 2)] = 0.0
        known = np.maximum(np.einsum("ji,ik,jk->j", rows, m.P, rows), 0.0)
        scale, deviation = np.maximum(s["scale"], 1.0), np.sqrt(spread**2 + known)
        u = np.maximum(np.abs(fast) - fast_bound, 0.0) / (numbers.limit_fast * scale * np.sqrt(fast_spread**2 + known))
        w = np.maximum(np.abs(slow) - slow_bound, 0.0) / (numbers.limit_slow * scale * deviation)
        square = self._relative_change(m, self._recent_change(m, whole), spread)
        if not m.contact:
            usual = s["scale"] + share_of(self.T, SCALE_TIME) * (
                np.minimum(SCALE * np.abs(slow) / deviation, SCALE_CAP) - s["scale"]
            )
            s["scale"] = np.where(s["at_rest"] == 0.0, usual, s["scale"])
        lasting = self._lasting(m, np.zeros(self.n) if numbers.derived else u, w)
        m.report |= {"deviation": deviation, "ratio": np.where(self.measured, lasting, 0.0)}
        m.report |= {"speed": s["speed"], "inertia": now.inertia, "shock": s["shock"], "rest": s["at_rest"]}
        m.report |= {"bound_fast": fast_bound, "bound_slow": slow_bound, "dry": s["dry"]}
        self._push(m, square)
        m.report["joint"] = float(np.argmax(m.report["ratio"]))
        return spread

    def _lasting(self, m: WatchMemory, u: Array, w: Array) -> Array:
        """Return the larger ratio of the fast (u) and slow (w) residuals; at most 1 until they have lasted."""
        s, rests = m.s, m.s["at_rest"] != 0.0
        s["over"] = np.where(u > 1.0, s["over"] + 1.0, 0.0)
        s["above"] = np.where((w > 1.0) & rests, s["above"] + self.T, 0.0)
        fast = np.where(s["over"] >= PERSISTENCE, u, np.minimum(u, 1.0))
        slow = np.where(~rests | (s["above"] >= PUSH_TIME), w, np.minimum(w, 1.0))
        return np.maximum(fast, slow)

    def _recent_change(self, m: WatchMemory, y: Array) -> Array:
        """Return the changes (Nm) of slow residuals within about `FOLLOW_TIME`."""
        s, share = m.s, 0.0 if m.contact else share_of(self.T, FOLLOW_TIME)
        loose = (not m.contact) & (s["at_rest"] == 0.0) & (s["loose_slow"] > LOOSE_SHARE * self.friction)
        before = np.where((s["settled"] < SETTLED) | loose, y, s["followed"])
        s["followed"] = before + share * (y - before)
        return y - s["followed"]

    def _relative_change(self, m: WatchMemory, change: Array, spread: Array) -> Array:
        """Return their squares relative to the usual ones, beyond what dry friction may add; `spread` in Nm."""
        s, rests = m.s, m.s["at_rest"] != 0.0
        starts = np.where(rests, m.still == 0.0 and m.moved < SETTLED, s["settled"] < SETTLED)
        start = np.where(rests, RISE_START * self.friction, RISE_FIRST * spread)
        usual = np.where(starts, np.maximum(s["usual"], start**2), s["usual"])
        least = np.where(rests, np.maximum(RISE_REST * self.friction, RISE_STILL * self.rest_slow), RISE_PART * spread)
        size = np.maximum(np.abs(change) - np.where(rests, 0.0, s["loose_slow"]), 0.0)
        s["usual"] = usual if m.contact else usual + share_of(self.T, RISE_USUAL) * (size**2 - usual)
        known = self.measured & ~(rests & (m.moved < START_WAIT))
        return np.where(known, size**2 / (least**2 + usual), 0.0)

    def _push(self, m: WatchMemory, square: Array) -> None:
        """Raise the ratios where the changes of all joints together are those of a push."""
        total = float(square.sum())
        m.rising = m.rising + self.T if total > RISE_LIMIT**2 else 0.0
        lasts = m.rising > (PUSH_TIME if m.still > 0.0 else RISE_TIME_LEAST)
        m.highest_rise = max(m.highest_rise, total**0.5) if m.contact else 0.0
        most = np.arange(self.n) == np.argmax(square)
        ratio = np.sqrt(np.where(most, total, square)) / max(RISE_LIMIT, RISE_END * m.highest_rise)
        m.report["ratio"] = np.maximum(m.report["ratio"], ratio if lasts else np.minimum(ratio, 1.0))

    def _changed(self, m: WatchMemory) -> float:
        now, used = m.s["expected"] - m.s["fast"], self.measured
        first, second = np.array([joint.predictor for joint in self.numbers.joints]).T
        deviation, fastest = np.array([(joint.change, joint.fastest) for joint in self.numbers.joints]).T
        error = now - first * m.before[0] - second * m.before[1]
        m.steady = np.where(m.rested == m.s["at_rest"], m.steady + 1, 0)
        m.rested = m.s["at_rest"]
        shock = CHANGE_SHOCK * m.s["shock"] + JUMP_CHANGE * m.s["jump"]
        usual = np.minimum(error**2 / (deviation**2 + shock**2), LEVEL_CAP)
        loose = shock + np.where(m.s["at_rest"] != 0.0, 0.0, m.s["loose_fast"])
        squares = error**2 / (deviation**2 + loose**2) / np.maximum(m.level, 1.0)
        known = bool((np.abs(m.s["speed"]) <= fastest).all())
        m.before = [now, m.before[0]]
        m.changes = [float(squares[used & (m.steady >= STEADY)].sum()) if known else 0.0, *m.changes[:-1]]
        m.level = m.level + share_of(self.T, LEVEL_TIME) * (usual - m.level)
        return float(np.sqrt(sum(m.changes) / CHANGES))

    def _decide(self, m: WatchMemory, above: bool) -> None:
        if not m.contact:
            if not above or m.age < START_TIME:
                return
            m.contact, m.lasted, m.quiet, m.peak = True, 0.0, 0.0, 0.0
        self._end(m)

    def _end(self, m: WatchMemory) -> None:
        """End a contact whose residual fell, or that lasts so long that it is another state."""
        ratios = m.report["ratio"]
        ratio, moves = float(ratios.max()), bool(((ratios > 1.0) & (m.s["at_rest"] == 0.0)).any())
        m.peak, m.lasted = max(m.peak, ratio), m.lasted + self.T
        ends, released = ratio < END_RATIO, not moves and ratio < END_SHARE * m.peak
        m.quiet = m.quiet + self.T if ends or released else 0.0
        if ends and m.quiet >= END_TIME:
            m.contact, m.s["settled"] = False, np.zeros(self.n)
        elif released and m.quiet >= RELEASE_TIME:
            self._adopt(m)
        elif m.lasted >= LONGEST:
            self._adopt(m)
            self._forget_payload(m, 1.0)
            m.adopted += 1

    def _adopt(self, m: WatchMemory) -> None:
        for j in np.flatnonzero(m.s["at_rest"]).tolist():
            forget(m, index_of(j, 2), self.held[j] ** 2)
        m.s["settled"] = np.zeros(self.n)
        m.contact = False
