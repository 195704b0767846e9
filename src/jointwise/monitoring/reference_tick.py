"""One time of the uniform clock of the NumPy monitor: residuals, joints at rest, and the Kalman filter.

The equations, the constants and the order of the steps are those of `runtime/core/monitor.c`; signals and torques are
those of the motors where a transmission couples them with the joints.
"""

from __future__ import annotations

import numpy as np

from jointwise.model.dynamics import joint_signals
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.terms import Inertia, Offset, Spring, Temperature, Viscous
from jointwise.model.transmission import joint_values, motor_torque
from jointwise.monitoring import reference_constants as c
from jointwise.monitoring.core import MOMENTS, SHARES, CoreMonitor
from jointwise.monitoring.reference_contact import ReferenceContact
from jointwise.monitoring.reference_state import (
    DRY,
    HELD,
    VISCOUS,
    JointMemory,
    JointsAt,
    Moment,
    WatchMemory,
    index_of,
    share_of,
)
from jointwise.motion import Motion
from jointwise.runtime.bodies import Bodies
from jointwise.runtime.motion import term_values
from jointwise.runtime.stream import NumpyCore, Sample
from jointwise.spatial import Array, Mask

SMOOTH = (Offset, Viscous, Temperature, Spring, Inertia)
"""Terms that are not dry friction."""


class ReferenceTick:
    """The monitor at the times of its uniform clock, a period T apart."""

    def __init__(self, core: NumpyCore, numbers: CoreMonitor) -> None:
        """Keep the numbers of a monitor and the evaluator of the model."""
        self.core, self.numbers, self.n, self.T = core, numbers, len(numbers.joints), numbers.period
        self.bodies: Bodies = core.bodies
        self.robot = core.model.robot
        self.contact = ReferenceContact(numbers)
        self.measured = self.contact.measured
        self.held, self.friction = self.contact.held, self.contact.friction
        self.viscous = np.array([joint.viscous for joint in numbers.joints])

    def init(self) -> WatchMemory:
        """Return the memory before the first sample."""
        memory = WatchMemory.empty(self.n)
        self.contact.forget_payload(memory, 1.0)
        for j in range(self.n):
            memory.forget(index_of(j, DRY), c.FRICTION_SHARE**2)
            memory.forget(index_of(j, VISCOUS), float(self.viscous[j] ** 2))
        return memory

    def tick(self, m: WatchMemory, q: Array, qd: Array, torque: Array, temperature: Array) -> None:
        """Advance the memory by one period.

        Args:
            m: The memory, which is changed.
            q: Positions of the motors (joints,), rad.
            qd: Their speeds (joints,), rad/s.
            torque: Measured torques of the motors (joints,), Nm.
            temperature: Joint temperatures (joints,), °C.

        """
        if m.fresh:
            self._begin(m, q, qd, torque)
        now = self._residuals(m, q, qd, torque, temperature)
        if m.fresh:
            m.joints.calm_load = now.load
        self._update_rest(m, now)
        self._filter(m, now)
        spread = self.contact.step(m, now)
        m.since += 1
        if m.since >= max(int(np.floor(c.UPDATE_TIME / self.T + 0.5)), 1):
            if not m.contact and m.age >= c.LEARN_TIME:
                self._update(m, m.since * self.T, spread)
            m.since = 0

    def _begin(self, m: WatchMemory, q: Array, qd: Array, torque: Array) -> None:
        """Begin all signals at a sample; what was learned of payload and friction in motion remains."""
        m.friction = self.core.init(joint_values(self.robot, q), None)
        s, zeros, rests = m.joints, np.zeros(self.n), np.abs(qd) < c.REST_SPEED
        s.position = s.path = s.anchor = q
        s.speed = qd
        s.mean_torque = s.base_torque = torque
        s.acceleration = s.shock = s.jump = s.travel = s.settled = zeros
        s.over = s.above = s.usual = s.steady = zeros
        s.resting = np.where(rests, c.REST_TIME, 0.0)
        s.at_rest = rests
        s.grip = s.slow_grip = rests.astype(float)
        s.scale = np.maximum(s.scale, 1.0)
        s.level = np.ones(self.n)
        for j in range(self.n):
            m.forget(index_of(j, HELD), self.held[j] ** 2 if rests[j] else 0.0)
        m.contact, m.lasted, m.quiet, m.peak = False, 0.0, 0.0, 0.0
        m.calm, m.age, m.still, m.moved, m.rising = 0.0, 0.0, 0.0, 0.0, 0.0
        m.changes = [0.0] * c.CHANGES

    # -- residuals --

    def _residuals(self, m: WatchMemory, q: Array, qd: Array, torque: Array, temperature: Array) -> Moment:
        """Return the residuals at a time of the clock, and advance the signals that they need.

        With the model torque ``τ_m = M q̈ + h(q, q̇) + f`` and ``Δq̇/T`` instead of the filtered acceleration q̈, the
        residual is ``τ - (τ_m - M(q) q̈ + M(q⁻) Δq̇/T)`` (q⁻: one period before), which the momentum observer and the
        direct residual filter. A. De Luca and R. Mattone, "Sensorless robot collision detection and hybrid force/motion
        control", IEEE Int. Conf. on Robotics and Automation (ICRA), 2005.
        """
        s = m.joints
        acceleration = (qd - s.speed) / self.T
        self._follow_motion(s, q, qd, acceleration)
        # friction of a joint at rest does not follow the sign of the noise of its speed
        sliding = np.where(s.at_rest | (np.abs(qd) < c.REST_SPEED), 0.0, qd)
        at = JointsAt(*(joint_values(self.robot, x) for x in (q, qd, sliding, s.acceleration, s.path)))
        sample = Sample(at.q, at.sliding, at.qdd, temperature=temperature)
        joint_torque, m.friction = self.core.step(m.friction, sample, at.path)
        total = motor_torque(self.robot, joint_torque)
        load = motor_torque(self.robot, self.bodies.torque(at.q[None], at.sliding[None], at.qdd[None])[0])
        inertia = self._inertia_torque(q, s.acceleration)
        momentum = self._inertia_torque(s.position, acceleration)
        self._follow_torque(s, torque, momentum - inertia)
        s.position, s.speed = q, qd
        dry = total - load - self._smooth_torque(q, sliding, s.acceleration, temperature)
        net = torque - (total - inertia)
        return Moment(self._payload_columns(at), dry, net, momentum, inertia, load)

    def _follow_motion(self, s: JointMemory, q: Array, qd: Array, acceleration: Array) -> None:
        """Advance the path that deforms friction, and the filtered acceleration."""
        integrated = s.path + 0.5 * self.T * (qd + s.speed)
        moving = integrated + min(self.T / c.PATH_TIME, 1.0) * (q - integrated)
        s.path = np.where(s.at_rest, s.path, moving)
        s.acceleration = s.acceleration + share_of(self.T, c.RISE_TIME) * (acceleration - s.acceleration)

    def _follow_torque(self, s: JointMemory, torque: Array, change: Array) -> None:
        """Advance the shock and the step of the motor torque (Nm) that still count.

        A shock is a change of the momentum that the motor itself makes: the smaller of both.
        """
        fades = np.exp(-self.T / c.SHOCK_TIME)
        s.mean_torque = s.mean_torque + share_of(self.T, c.TORQUE_TIME) * (torque - s.mean_torque)
        s.shock = np.maximum(np.minimum(np.abs(change), np.abs(torque - s.mean_torque)), fades * s.shock)
        s.jump = np.maximum(np.abs(torque - s.base_torque), fades * s.jump)
        s.base_torque = s.base_torque + share_of(self.T, max(c.JUMP_TIME, self.T)) * (torque - s.base_torque)

    def _inertia_torque(self, q: Array, qdd: Array) -> Array:
        """Return M(q) q̈ of the motors (joints,), Nm."""
        M = self.bodies.mass_matrix(joint_values(self.robot, q)[None])[0]
        return motor_torque(self.robot, M @ joint_values(self.robot, qdd))

    def _payload_columns(self, at: JointsAt) -> Array:
        """Return the torques of unit mass and unit first moments of a payload, (joints, 4)."""
        columns = []
        for body in self.numbers.bodies:
            inertials = np.zeros((self.n, 10))
            inertials[-1] = body
            torque = inverse_dynamics(
                self.bodies.frame,
                at.q[None],
                at.qd[None],
                at.qdd[None],
                gravity=self.bodies.gravity,
                inertials=inertials,
                rotor_inertias=np.zeros(self.n),
            )[0]
            columns.append(motor_torque(self.robot, torque))
        return np.column_stack(columns)

    def _smooth_torque(self, q: Array, qd: Array, qdd: Array, temperature: Array) -> Array:
        """Return the torque of the terms that are not dry friction (joints,), Nm."""
        motion = Motion(1.0 / self.T, q[None], qd[None], qdd[None], temperature=temperature[None])
        result = np.zeros(self.n)
        for j in range(self.n):
            signals = joint_signals(motion, j)
            for term, value in term_values(self.core.model, j, self.core.values):
                if isinstance(term, SMOOTH):
                    result[j] += float((term.columns(signals)[0] @ value)[0])
        return result

    # -- rest --

    def _update_rest(self, m: WatchMemory, now: Moment) -> None:
        """Advance which joints are at rest, and how long nothing has changed.

        A joint near one position for `REST_TIME` is at rest; it departs when it is farther away.
        """
        s, rests = m.joints, m.joints.at_rest
        near = np.abs(s.position - s.anchor) < np.where(rests, c.LEAVE_RANGE, c.REST_RANGE)
        near &= np.abs(s.speed) < c.STOP_SPEED
        s.resting = np.where(near, s.resting + self.T, 0.0)
        s.anchor = np.where(near, s.anchor, s.position)
        reversals = self._reversals(s)
        stops, departs = ~rests & (s.resting >= c.REST_TIME), rests & ~near
        self._follow_grip(s, reversals, stops, departs)
        s.at_rest = (rests | stops) & ~departs
        s.settled = np.where(stops | departs, 0.0, s.settled + self.T)
        for j in np.flatnonzero(stops).tolist():
            m.forget(index_of(j, HELD), self.held[j] ** 2)
        changed = np.abs(now.load - s.calm_load) > c.CALM_LOAD * self.friction
        s.calm_load = np.where(changed, now.load, s.calm_load)
        hard = s.shock > c.HARD_STOP * self.friction
        m.calm = 0.0 if (changed | reversals | departs).any() else m.calm + self.T
        m.moved = (0.0 if (stops | departs | hard).any() else m.moved) + self.T
        m.still = m.still + self.T if s.at_rest.all() else 0.0
        m.age += self.T

    def _reversals(self, s: JointMemory) -> Mask:
        """Return which joints have reversed since their speed was last above `REST_SPEED`."""
        known = ~s.at_rest & (np.abs(s.speed) >= c.REST_SPEED)
        reversals: Mask = known & (s.speed * s.direction < 0.0)
        s.direction = np.where(known, s.speed, s.direction)
        return reversals

    def _follow_grip(self, s: JointMemory, reversals: Mask, stops: Mask, departs: Mask) -> None:
        """Advance the travel since a rest or reversal, and the share of the torque held at rest that remains.

        It fades with the travel d of a joint that breaks away, ``exp(-d / BREAKAWAY_RANGE)``.
        """
        step = self.T * np.abs(s.speed)
        s.travel = np.where(s.at_rest | reversals, 0.0, s.travel + step)
        fading = np.where(s.at_rest, s.grip, s.grip * np.exp(-step / c.BREAKAWAY_RANGE))
        left = np.where(departs, np.exp(-c.LEAVE_RANGE / c.BREAKAWAY_RANGE), fading)
        s.grip = np.where(stops, 1.0, left)

    # -- filters --

    def _filter(self, m: WatchMemory, now: Moment) -> None:
        """Pass residuals and regressors through their low-pass filters; the first sample is where they begin.

        The direct residual is filtered as a whole, not its acceleration alone, whose delay δ would turn the inertia M
        of a sinusoidal motion of frequency ω into a viscous friction of -M δ ω². The change of speed of a period is
        that of its middle, as the mean of the other torques.
        """
        s = m.joints
        fast = 1.0 if m.fresh else share_of(self.T, max(c.FAST_TIME, self.T))
        slow = 1.0 if m.fresh else share_of(self.T, c.SLOW_TIME)
        rise = 1.0 if m.fresh else share_of(self.T, c.RISE_TIME)
        dry = np.where(s.at_rest, 0.0, m.x[MOMENTS + DRY :: SHARES] * now.dry)
        expected = now.columns @ m.x[:MOMENTS] + dry + m.x[MOMENTS + VISCOUS :: SHARES] * s.speed
        bound = self._friction_bound(s)
        s.expected = s.expected + fast * (expected - s.expected)
        s.fast = s.fast + fast * (now.net - now.momentum - s.fast)
        s.loose_fast = np.maximum(s.loose_fast + fast * (bound - s.loose_fast), bound)
        middle = now.net if m.fresh else 0.5 * (now.net + s.net)
        s.direct, s.net = s.direct + rise * (middle - now.momentum - s.direct), now.net
        s.slow = s.slow + slow * (s.direct - s.slow)
        s.columns = s.columns + slow * (now.columns - s.columns)
        s.dry = s.dry + slow * (now.dry - s.dry)
        s.slow_load = s.slow_load + slow * (now.load - s.slow_load)
        s.slow_speed = s.slow_speed + slow * (s.speed - s.slow_speed)
        s.slow_grip = s.slow_grip + slow * (s.grip - s.slow_grip)
        s.loose_slow = s.loose_slow + slow * (bound - s.loose_slow)
        m.fresh = False

    def _friction_bound(self, s: JointMemory) -> Array:
        """Return bounds (joints,), Nm, of the unknown part of dry friction where joints stop, reverse or break away."""
        stopping = np.exp(-((s.speed / c.STOP_SPEED) ** 2))
        reversing = np.exp(-s.travel / c.BREAKAWAY_RANGE)
        sliding = 1.0 - s.grip
        breaking_away = 4.0 * sliding * s.grip  # largest halfway between what was held and sliding
        moving = c.LOOSE * np.maximum(sliding * np.maximum(stopping, reversing), breaking_away)
        result: Array = self.friction * np.where(s.at_rest, c.STATIC, moving)
        return result

    # -- Kalman filter --

    def _update(self, m: WatchMemory, time: float, spread: Array) -> None:
        """Update payload and friction after `time` s without contact.

        Every slow residual is a measurement ``r = hᵀ x`` with variance ``R = (CORRELATION σ)² + b²``, one joint after
        the other: ``S = hᵀ P h + R``, ``x += P h (r - hᵀ x) / S``, ``P -= P h hᵀ P / S``. Where a joint breaks away,
        reverses or stops, b is the bound of its unknown dry friction, of which nothing is learned. A residual that
        changes because the filter explains it differently is not a push: what is followed changes with it.

        Args:
            m: The memory, which is changed.
            time: Time since the last update, s.
            spread: Standard deviations σ of the slow residuals (joints,), Nm.

        """
        self._drift(m, time)
        rows, before = self.contact.rows(m), self.contact.explained(m)
        loose = np.where(m.joints.at_rest, 0.0, m.joints.loose_slow)
        variances = (c.CORRELATION * spread) ** 2 + loose**2
        for j in np.flatnonzero(self.measured & (m.joints.above == 0.0)).tolist():
            h = rows[j]
            Ph = m.P @ h
            S = variances[j] + h @ Ph
            if S > 0.0:
                m.x = m.x + Ph * (m.joints.slow[j] - h @ m.x) / S
                m.P = m.P - np.outer(Ph, Ph) / S
        m.joints.followed = m.joints.followed + before - self.contact.explained(m)

    def _drift(self, m: WatchMemory, time: float) -> None:
        """Add the variance of what payload, friction and the torque held at rest may have changed in `time` s."""
        self.contact.forget_payload(m, time / c.PAYLOAD_TIME)
        drift = c.HELD_DRIFT if m.calm >= c.CALM_TIME else c.HELD_HUNTING
        added = np.zeros((self.n, SHARES))
        added[:, DRY] = c.FRICTION_SHARE**2 * time / c.FRICTION_TIME
        added[:, VISCOUS] = self.viscous**2 * time / c.FRICTION_TIME
        added[:, HELD] = np.where(m.joints.at_rest, (drift * self.held) ** 2 * time, 0.0)
        unknowns = np.arange(MOMENTS, len(m.x))
        m.P[unknowns, unknowns] += added.ravel()
