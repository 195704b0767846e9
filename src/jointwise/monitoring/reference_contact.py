"""Contacts of the NumPy monitor: residuals against their limits, pushes, sudden changes, begin and end.

The equations, the constants and the order of the steps are those of `runtime/core/monitor.c`.
"""

from __future__ import annotations

import numpy as np

from jointwise.monitoring import reference_constants as c
from jointwise.monitoring.core import MOMENTS, SHARES, CoreMonitor
from jointwise.monitoring.reference_state import DRY, HELD, JointMemory, Moment, WatchMemory, index_of, share_of
from jointwise.spatial import Array, Mask


class ReferenceContact:
    """Decides at every time of the clock whether there is a contact.

    Three detectors compare what is seen with what it is without contact: both residuals with their standard deviations
    (`_ratios`), their changes within a second over all joints (`_push`), and sudden changes of the momentum observer
    (`_sudden_change`).
    """

    def __init__(self, numbers: CoreMonitor) -> None:
        """Keep the numbers of a monitor."""
        self.numbers, self.n, self.T = numbers, len(numbers.joints), numbers.period
        self.measured: Mask = np.array([joint.measured for joint in numbers.joints])
        self.held = np.array([joint.held for joint in numbers.joints])
        self.friction = c.COULOMB * self.held
        spreads = [joint.spread for joint in numbers.joints]
        self.spread_fast = np.array([spread.fast for spread in spreads])
        self.spread_slow = np.array([spread.slow for spread in spreads])
        self.rest_fast = np.array([spread.rest_fast for spread in spreads])
        self.rest_slow = np.array([spread.rest_slow for spread in spreads])
        self.predictor = np.array([joint.predictor for joint in numbers.joints])
        self.change = np.array([joint.change for joint in numbers.joints])
        self.fastest = np.array([joint.fastest for joint in numbers.joints])

    def step(self, m: WatchMemory, now: Moment) -> Array:
        """Advance contacts and report by one period; return standard deviations of the slow residuals (joints,), Nm."""
        spread = self._compare(m, now)
        above = bool((m.report["ratio"] > 1.0).any())
        if self.numbers.limit_change > 0.0:
            m.report["change"] = self._sudden_change(m)
            above = above or m.report["change"] > self.numbers.limit_change
        self._decide(m, above)
        m.report["contact"] = float(m.contact)
        return spread

    def rows(self, m: WatchMemory) -> Array:
        """Return the rows h of the slow residuals ``r = hᵀ x``, (joints, unknowns): payload, dry and viscous, held."""
        s, rows = m.joints, np.zeros((self.n, len(m.x)))
        rows[:, :MOMENTS] = s.columns
        dry = np.where(s.at_rest, 0.0, s.dry)
        for j in range(self.n):
            first = index_of(j, DRY)
            rows[j, first : first + SHARES] = dry[j], s.slow_speed[j], s.slow_grip[j]
        return rows

    def explained(self, m: WatchMemory) -> Array:
        """Return what payload and friction in motion explain of the slow residuals (joints,), Nm.

        The torque that friction holds at rest is not part of it.
        """
        held = np.where(m.joints.at_rest, m.joints.slow_grip * m.x[MOMENTS + HELD :: SHARES], 0.0)
        result: Array = self.rows(m) @ m.x - held
        return result

    def forget_payload(self, m: WatchMemory, share: float) -> None:
        """Add a share of the variance of an unknown payload."""
        variances = np.array([self.numbers.mass**2, *[self.numbers.moment**2] * 3])
        m.P[np.arange(MOMENTS), np.arange(MOMENTS)] += share * variances

    # -- residuals --

    def _compare(self, m: WatchMemory, now: Moment) -> Array:
        """Compare both residuals with their limits; return the deviations σ of the slow residuals (joints,), Nm."""
        s, held, rows = m.joints, m.x[MOMENTS + HELD :: SHARES], self.rows(m)
        fast = s.fast - s.expected - s.grip * held
        slow = s.slow - rows @ m.x
        m.report |= {"external": -fast * self.measured, "residual": -slow * self.measured}
        with_held = s.slow - self.explained(m)
        fast_spread, spread = self._spreads(m, now)
        hunts, fast_bound, slow_bound = self._bounds(m)
        fast = np.where(hunts, fast + held + s.dry, fast)
        slow = np.where(hunts, slow + s.slow_grip * held + s.dry, slow)
        for j in np.flatnonzero(hunts).tolist():
            rows[j, index_of(j, HELD)] = 0.0
        known = np.maximum(np.einsum("ji,ik,jk->j", rows, m.P, rows), 0.0)
        fast_deviation, deviation = np.sqrt(fast_spread**2 + known), np.sqrt(spread**2 + known)
        beyond_fast = np.maximum(np.abs(fast) - fast_bound, 0.0) / fast_deviation
        beyond_slow = np.maximum(np.abs(slow) - slow_bound, 0.0) / deviation
        ratio = self._ratios(m, beyond_fast, beyond_slow)
        square = self._relative_change(m, self._recent_change(m, with_held), spread, known)
        self._follow_scale(m, np.abs(slow) / deviation)
        m.report["deviation"] = np.where(self.measured, deviation, c.NOT_MEASURED)
        m.report["ratio"] = self._push(m, square, ratio)
        m.report |= {"speed": s.speed, "inertia": now.inertia, "shock": s.shock, "rest": s.at_rest.astype(float)}
        m.report |= {"bound_fast": fast_bound, "bound_slow": slow_bound, "dry": s.dry}
        m.report["joint"] = float(np.argmax(m.report["ratio"]))
        return spread

    def _spreads(self, m: WatchMemory, now: Moment) -> tuple[Array, Array]:
        """Return the standard deviations (joints,), Nm, of both residuals without contact.

        In motion ``σ = Σ_k s_k φ_k`` with the features φ = 1, |q̇|, |M q̈|, slowness and shock; at least their values
        filtered like the residuals, which remember what was before, and wider with the torque of a payload.
        """
        s, speed = m.joints, np.abs(m.joints.speed)
        slowness = np.exp(-((speed / c.SLOWNESS) ** 2))
        features = np.column_stack([np.ones(self.n), speed, np.abs(now.inertia), slowness, s.shock])
        carried = c.PAYLOAD_ERROR * np.abs(s.columns @ m.x[:MOMENTS])
        fast, slow = (
            np.where(s.at_rest, rest + factors[:, 4] * s.shock, (features * factors).sum(axis=1))
            for factors, rest in ((self.spread_fast, self.rest_fast), (self.spread_slow, self.rest_slow))
        )
        s.mean_fast = s.mean_fast + share_of(self.T, c.FAST_TIME) * (fast - s.mean_fast)
        s.mean_slow = s.mean_slow + share_of(self.T, c.SLOW_TIME) * (slow - s.mean_slow)
        return np.maximum(fast, s.mean_fast) + carried, np.maximum(slow, s.mean_slow) + carried

    def _bounds(self, m: WatchMemory) -> tuple[Mask, Array, Array]:
        """Return which joints may hold any torque within their friction, and bounds (Nm) of both residuals.

        A joint at rest takes up any torque within its static friction as long as another joint moves. A push bends the
        arm: the farther a joint is from where it stopped, the more of its friction may have changed.
        """
        s = m.joints
        hunts: Mask = s.at_rest & (m.calm < c.CALM_TIME)
        bend = (s.position - s.anchor) / c.LEAVE_RANGE
        if m.calm >= c.CALM_TIME and m.still >= c.STILL_TIME:
            calm = self.friction * (c.STILL_SHARE + c.STATIC * bend**4)
        else:
            calm = self.friction * (c.CALM_SHARE + c.STATIC * bend**2)
        whole = np.maximum(c.STATIC * self.friction, s.loose_slow)
        fast = c.JUMP_SHARE * s.jump + np.where(s.at_rest, whole, s.loose_fast)
        slow = np.where(hunts, whole, np.where(s.at_rest, calm, s.loose_slow))
        return hunts, fast, slow

    def _ratios(self, m: WatchMemory, beyond_fast: Array, beyond_slow: Array) -> Array:
        """Return the larger ratio of both residuals to its limit; at most 1 until it has lasted.

        Args:
            m: The memory, which is changed.
            beyond_fast: Fast residuals beyond their bounds, in standard deviations, (joints,).
            beyond_slow: The same of the slow residuals.

        """
        s, scale = m.joints, np.maximum(m.joints.scale, 1.0)
        u = beyond_fast / (self.numbers.limit_fast * scale) * (not self.numbers.derived)
        w = beyond_slow / (self.numbers.limit_slow * scale)
        s.over = np.where(u > 1.0, s.over + 1.0, 0.0)
        s.above = np.where((w > 1.0) & s.at_rest, s.above + self.T, 0.0)
        fast = np.where(s.over >= c.PERSISTENCE, u, np.minimum(u, 1.0))
        slow = np.where(~s.at_rest | (s.above >= c.PUSH_TIME), w, np.minimum(w, 1.0))
        return np.where(self.measured, np.maximum(fast, slow), 0.0)

    def _follow_scale(self, m: WatchMemory, size: Array) -> None:
        """Advance the usual size of the slow residuals in motion, in standard deviations; not during a contact."""
        s = m.joints
        usual = s.scale + share_of(self.T, c.SCALE_TIME) * (np.minimum(c.SCALE * size, c.SCALE_CAP) - s.scale)
        s.scale = np.where(s.at_rest | m.contact, s.scale, usual)

    # -- pushes: changes of the slow residuals within a second --

    def _recent_change(self, m: WatchMemory, y: Array) -> Array:
        """Return the changes (joints,), Nm, of slow residuals y within about `FOLLOW_TIME`.

        A push that reverses a joint is followed until the contact begins. Of a joint in motion a change is at most the
        residual itself: one that returns to zero is the end of an error of the model or of a contact.
        """
        s, share = m.joints, 0.0 if m.contact else share_of(self.T, c.FOLLOW_TIME)
        loose = ~s.at_rest & (s.loose_slow > c.LOOSE_SHARE * self.friction) & (not m.contact)
        shares = np.where((s.settled < c.SETTLED) | loose, 1.0, share)
        s.followed = s.followed + shares * (y - s.followed)
        s.followed_load = s.followed_load + shares * (s.slow_load - s.followed_load)
        change = y - s.followed
        return np.where(~s.at_rest & (np.abs(y) < np.abs(change)), y, change)

    def _friction_change(self, s: JointMemory) -> Array:
        """Return the changes (joints,), Nm, that dry friction may add.

        Of a joint at rest it takes up a load that changes, as far as it can.
        """
        taken_up = np.minimum(np.abs(s.slow_load - s.followed_load), c.LOOSE * self.friction)
        return np.where(s.at_rest, taken_up, s.loose_slow)

    def _relative_change(self, m: WatchMemory, change: Array, spread: Array, known: Array) -> Array:
        """Return the squares of changes relative to the usual ones (joints,), beyond what dry friction may add.

        Args:
            m: The memory, which is changed.
            change: Changes of the slow residuals (joints,), Nm.
            spread: Standard deviations of the slow residuals (joints,), Nm.
            known: Variances of what the filter explains of them (joints,), Nm².

        """
        s, rests = m.joints, m.joints.at_rest
        starts = np.where(rests, m.still == 0.0 and m.moved < c.SETTLED, s.settled < c.SETTLED)
        start = np.where(rests, c.RISE_START * self.friction, c.RISE_FIRST * spread)
        at_rest = np.maximum(c.RISE_REST * self.friction, c.RISE_STILL * self.rest_slow)
        least = np.where(rests, at_rest, c.RISE_PART * spread)
        usual = np.where(starts, np.maximum(s.usual, start**2), s.usual)
        size = np.maximum(np.abs(change) - self._friction_change(s), 0.0)
        seen = np.where(rests, np.abs(change), size)
        s.usual = usual if m.contact else usual + share_of(self.T, c.RISE_USUAL) * (seen**2 - usual)
        used = self.measured & ~(rests & (m.moved < c.START_WAIT))
        return np.where(used, size**2 / (least**2 + usual + np.where(rests, 0.0, known)), 0.0)

    def _push(self, m: WatchMemory, square: Array, ratio: Array) -> Array:
        """Return the ratios (joints,), raised where the changes of all joints together are those of a push.

        Where a joint stands that is not yet at rest, it stops or turns round: friction of the joints at rest settles as
        after a stop, which is known only `REST_TIME` later.
        """
        s = m.joints
        total = float(square.sum())
        m.rising = m.rising + self.T if total > c.RISE_LIMIT**2 else 0.0
        m.highest_rise = max(m.highest_rise, total**0.5) if m.contact else 0.0
        most = int(np.argmax(square))
        stands = bool((~s.at_rest & (s.resting > 0.0)).any())
        waits = m.still > 0.0 or (bool(s.at_rest[most]) and stands)
        lasts = m.rising > (c.PUSH_TIME if waits else c.RISE_TIME_LEAST)
        largest = np.arange(self.n) == most
        rise = np.sqrt(np.where(largest, total, square)) / max(c.RISE_LIMIT, c.RISE_END * m.highest_rise)
        return np.maximum(ratio, rise if lasts else np.minimum(rise, 1.0))

    # -- sudden changes of the momentum observer --

    def _sudden_change(self, m: WatchMemory) -> float:
        """Return the sudden change of the momentum observer over all joints, in standard deviations.

        It is ``sqrt(mean over CHANGES samples of Σ_j (e_j / σ_j)² / level_j)`` with the error e of a prediction from
        the last two values, and the size of the changes of the joint in the last `LEVEL_TIME`.
        """
        s = m.joints
        value = s.expected - s.fast
        error = value - self.predictor[:, 0] * s.observer[0] - self.predictor[:, 1] * s.observer[1]
        s.observer = [value, s.observer[0]]
        s.steady = np.where(s.rested == s.at_rest, s.steady + 1.0, 0.0)
        s.rested = s.at_rest
        shock = c.CHANGE_SHOCK * s.shock + c.JUMP_CHANGE * s.jump
        loose = shock + np.where(s.at_rest, 0.0, s.loose_fast)
        squares = error**2 / (self.change**2 + loose**2) / np.maximum(s.level, 1.0)
        used = self.measured & (s.steady >= c.STEADY) & bool((np.abs(s.speed) <= self.fastest).all())
        m.changes = [float(squares[used].sum()), *m.changes[:-1]]
        size = np.minimum(error**2 / (self.change**2 + shock**2), c.LEVEL_CAP)
        s.level = s.level + share_of(self.T, c.LEVEL_TIME) * (size - s.level)
        return float(np.sqrt(sum(m.changes) / c.CHANGES))

    # -- begin and end --

    def _decide(self, m: WatchMemory, above: bool) -> None:
        """Begin a contact where a detector is above its limit, and end it."""
        if not m.contact:
            if not above or m.age < c.START_TIME:
                return
            m.contact, m.lasted, m.quiet, m.peak = True, 0.0, 0.0, 0.0
        self._end(m)

    def _end(self, m: WatchMemory) -> None:
        """End a contact whose residual fell, or that lasts so long that it is another state."""
        ratios = m.report["ratio"]
        ratio = float(ratios.max())
        moves = bool(((ratios > 1.0) & ~m.joints.at_rest).any())
        m.peak = max(m.peak, ratio)
        m.lasted += self.T
        ends = ratio < c.END_RATIO
        released = not moves and ratio < c.END_SHARE * m.peak
        m.quiet = m.quiet + self.T if ends or released else 0.0
        if ends and m.quiet >= c.END_TIME:
            m.contact, m.joints.settled = False, np.zeros(self.n)
        elif released and m.quiet >= c.RELEASE_TIME:
            self._adopt(m)
        elif m.lasted >= c.LONGEST:
            self._adopt(m)
            self.forget_payload(m, 1.0)
            m.adopted += 1

    def _adopt(self, m: WatchMemory) -> None:
        """Take what remains as the new state: another payload, another torque that friction holds at rest."""
        for j in np.flatnonzero(m.joints.at_rest).tolist():
            m.forget(index_of(j, HELD), self.held[j] ** 2)
        m.joints.settled = np.zeros(self.n)
        m.contact = False
