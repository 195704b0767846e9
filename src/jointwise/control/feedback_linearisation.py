"""Feedback linearisation of elastic joints from link and rotor states: the error obeys a linear equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked, checked_fields
from jointwise.backend import native
from jointwise.control.controller import ControlSample
from jointwise.control.flexible import drive_motion, friction_feed
from jointwise.control.gains import POSES, Gains, rotor_inertias
from jointwise.control.joint_drive import JointDrive
from jointwise.control.links import Links, Task, TaskOptions, make_task, plus_friction
from jointwise.control.reference import Reference
from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.model.spring import Spring, can_pack, packed_spring
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel

STEP = 3e-4
"""Time (s) over which torques are differenced along the motion: errors of its square, rounding of 1e-4 Nm/s²."""
OBSERVER_SHARE = 0.3
"""Speed of the observer relative to the poles of the error: slow enough not to disturb them."""
DEFAULT_BANDWIDTH = 16.0
"""Hz of the four poles at most, and a 60th of the rate: fast enough to overcome the friction of wrists, and slower than
the sampled loop allows by a factor of 2.5."""
FASTEST = 1.0 / 18.0
"""Largest k0^(1/4) / 2π relative to the rate: beyond, the sampled loop of a UR5e at 0.5 to 2 kHz is unstable."""
DEFAULT_INTEGRAL = 0.5
"""Speed of the integral relative to the poles."""
STIFF = 3.0
"""Frequency of a link on its spring, in units of k0^(1/4), above which the joint is controlled as a rigid one. To
cancel a spring is positive feedback: with a stiffness 20 % off the loop is stable up to about 3.5, at any rate."""


@checked_fields
@dataclass(frozen=True)
class ChainGains:
    """``e⁽⁴⁾ + k3 e⁽³⁾ + k2 ë + k1 ė + k0 e + ki ∫e = 0``; each gain is a number or (joints,).

    Attributes:
        k0: Gain of the position error, 1/s⁴.
        k1: Gain of the speed error, 1/s³.
        k2: Gain of the acceleration error, 1/s².
        k3: Gain of the jerk error, 1/s.
        ki: Gain of the integral, 1/s⁵.
    """

    k0: float | Array
    k1: float | Array
    k2: float | Array
    k3: float | Array
    ki: float | Array = 0.0

    def __post_init__(self) -> None:
        """Reject gains of an unstable error equation."""
        for name in ("k0", "k1", "k2", "k3", "ki"):
            value = np.asarray(getattr(self, name), dtype=float)
            if not (np.isfinite(value).all() and (value > 0.0 if name != "ki" else value >= 0.0).all()):
                raise ModelError(f"{name} must be finite and > 0. Got {value.tolist()} instead.")


@checked
def chain_gains(bandwidth: float | Array, integral: float = 0.0) -> ChainGains:
    """Return gains with the poles ``(s + ω)⁴ (s + r ω)``, ω = 2π · bandwidth.

    Args:
        bandwidth: Bandwidth, Hz, one number or (joints,).
        integral: r, speed of the integral relative to the rest; 0 for none.
    """
    w = 2.0 * np.pi * np.asarray(bandwidth, dtype=float)
    if not (w.size and np.isfinite(w).all() and (w > 0.0).all() and integral >= 0.0):
        found = f"{np.asarray(bandwidth).tolist()}, {integral}"
        raise ModelError(f"bandwidth must be positive, in Hz, and integral >= 0. Got {found} instead.")
    r = integral * w
    return ChainGains(
        w**4 + 4.0 * w**3 * r, 4.0 * w**3 + 6.0 * w**2 * r, 6.0 * w**2 + 4.0 * w * r, 4.0 * w + r, r * w**4
    )


def link_frequencies(task: Task) -> Array:
    """Return ``√(k_j (M⁻¹)_jj)``, rad/s, (joints,): links on their springs, the largest along the motion.

    The other joints give way.
    """
    poses = task.reference.inertia_poses
    few = poses[np.unique(np.linspace(0, len(poses) - 1, min(len(poses), POSES)).astype(int))]
    inverse = np.linalg.inv(task.links.inertia(few, np.zeros(len(task.drives))))
    k = [np.inf if drive.spring is None else float(drive.spring.stiffness(np.zeros(()))) for drive in task.drives]
    result: Array = np.sqrt(np.array(k) * np.einsum("kjj->kj", inverse).max(axis=0))
    return result


class LinearisationState(NamedTuple):
    """Memory of the controller.

    Attributes:
        period: Control period to come.
        integral: ∫ (q - q_d) dt, (joints,), rad s.
        speed: Observed speed of the links, (joints,), rad/s.
        dropped: Number of samples with a value that was not finite.
    """

    period: int
    integral: Array
    speed: Array
    dropped: int = 0


@dataclass(frozen=True, eq=False)
class FeedbackLinearisation:
    """``u = B θ̈ + τ_J + f`` such that ``q⁽⁴⁾ = v = q_d⁽⁴⁾ - Σ k_i (q⁽ⁱ⁾ - q_d⁽ⁱ⁾) - ki ∫ (q - q_d) dt``.

    Acceleration and jerk of the links follow from the springs, ``M q̈ = τ_J - C q̇ - g`` and its time derivative with
    ``τ̇_J = k(φ) (ω - q̇)``; then ``τ̈_J = M v + c(q, q̇, q̈, q⁽³⁾)``, ``φ̈ = τ̈_J / k - k' τ̇_J² / k³``,
    ``θ̈ = q̈ + φ̈``. Springs that are not as modelled give a wrong acceleration; an observer corrects it slowly by the
    measured speed: ``q̈ = q̈_springs + L (q̇ - q̇_o)``, ``dq̇_o/dt = q̈``.

    Joints that are not elastic follow ``q̈ = q̈_d - kd ė - kp e - ki ∫ e`` instead, with the rotor's angle and speed
    less the planned deformation as those of the link.

    Attributes:
        reference: Reference with jerk and snap.
        links: Links as mounted and loaded.
        drives: One drive per joint.
        gains: Gains of the elastic joints.
        feed: Friction, and the change of the torque until it acts, (periods, joints), Nm.
        observer: L, rad/s.
        elastic: Whether a joint is controlled as an elastic one, (joints,).
        rigid: Gains of the other joints.
        sag: Planned deformation (rad) and its rate (rad/s), (periods, joints) each.
    """

    reference: Reference = field(repr=False)
    links: Links = field(repr=False)
    drives: tuple[JointDrive, ...] = field(repr=False)
    gains: ChainGains
    feed: Array = field(repr=False)
    observer: float
    elastic: NDArray[np.bool_]
    rigid: Gains
    sag: tuple[Array, Array] = field(repr=False)

    @property
    def rate(self) -> float:
        """Control rate, Hz."""
        return self.reference.rate

    @property
    def periods(self) -> int:
        """Control periods that the reference lasts."""
        return self.reference.periods

    @cached_property
    def _model(self) -> _Model:
        return _Model(self.links, self.drives, rotor_inertias(self.drives))

    def init(self, sample: ControlSample) -> LinearisationState:
        """Return the memory at the start of the reference."""
        return LinearisationState(0, np.zeros_like(sample.q), self.links.sample(sample).qd.copy())

    @cached_property
    def _packed(self) -> tuple[tuple[Array, ...], Array] | None:
        """Plan and drives as the native kernel takes them; None where NumPy does the same."""
        if self.links.core is None or not all(can_pack(drive.spring) for drive in self.drives):
            return None
        wanted, n = self.reference, len(self.drives)
        plan = (wanted.q, wanted.qd, wanted.qdd, wanted.jerk, wanted.snap, self.feed, *self.sag)
        gains = (getattr(self.gains, name) for name in ("k0", "k1", "k2", "k3", "ki"))
        columns = [self.elastic, *gains, self.rigid.kp, self.rigid.kd, self.rigid.ki]
        numbers = [np.broadcast_to(np.asarray(column, dtype=float), n) for column in columns]
        rows = [(*packed_spring(drive.spring), drive.damping, drive.inertia, drive.limit) for drive in self.drives]
        return tuple(np.ascontiguousarray(x) for x in plan), np.column_stack([np.array(rows), *numbers])

    def step(self, state: LinearisationState, sample: ControlSample) -> tuple[Array, LinearisationState]:
        """Return the torque (joints,), Nm, of this period and the memory for the next.

        A joint with a value that is not finite is taken to be where it is planned to be.
        """
        k, packed, kernel = state.period, self._packed, native()
        if k >= self.periods:
            raise ModelError(f"the reference lasts {self.periods} periods. Give it a longer duration.")
        if packed is None or kernel is None:
            return self._numpy_step(state, sample)
        integral, speed, torque = state.integral.copy(), state.speed.copy(), np.empty(len(self.drives))
        used = kernel.linearisation_step(
            self.links.core, k, self.periods, self.rate, self.observer, STEP, sample.arrays[:4], *packed,
            integral, speed, torque,
        )  # fmt: skip
        return torque, LinearisationState(k + 1, integral, speed, state.dropped + (not used))

    def _measured(self, k: int, sample: ControlSample) -> tuple[ControlSample, bool]:
        """Return a sample with the plan for joints that have a value that is not finite, and whether there was none."""
        q, qd = self.reference.q[k], self.reference.qd[k]
        fine = np.isfinite(sample.q + sample.qd + sample.theta + sample.speed)
        planned = {"q": q, "qd": qd, "theta": q + self.sag[0][k], "speed": qd + self.sag[1][k]}
        values = {name: np.where(fine, getattr(sample, name), x) for name, x in planned.items()}
        return replace(sample, **values), bool(fine.all())

    def _numpy_step(self, state: LinearisationState, sample: ControlSample) -> tuple[Array, LinearisationState]:
        k, wanted, gains = state.period, self.reference, self.gains
        assert wanted.jerk is not None and wanted.snap is not None
        sample, used = self._measured(k, self.links.sample(sample))
        springs, elastic = self._model.springs(sample), self.elastic
        q = np.where(elastic, sample.q, sample.theta - self.sag[0][k])
        qd = np.where(elastic, sample.qd, sample.speed - self.sag[1][k])
        e, rate = q - wanted.q[k], qd - wanted.qd[k]
        planned = self._rigid_motion(k, (e, rate), state.integral)
        sprung, jerk = self._model.link_motion(q, qd, springs, elastic, planned)
        qdd = np.where(elastic, sprung + self.observer * (qd - state.speed), sprung)
        terms = ((gains.k0, e), (gains.k1, rate), (gains.k2, qdd - wanted.qdd[k]), (gains.k3, jerk - wanted.jerk[k]))
        v = wanted.snap[k] - sum(gain * error for gain, error in terms) - gains.ki * state.integral
        snap = np.where(elastic, v, planned[2])
        u = self._model.motor_torque((q, qd, qdd, jerk, snap), springs) + self.feed[k]
        limits = self._model.limits
        total: Array = np.minimum(np.maximum(u, -limits), limits)
        integral = np.where(total == u, state.integral + e / self.rate, state.integral)
        speed = np.where(elastic, state.speed + qdd / self.rate, qd)
        return total, LinearisationState(k + 1, integral, speed, state.dropped + (not used))

    def _rigid_motion(self, k: int, errors: tuple[Array, Array], integral: Array) -> tuple[Array, Array, Array]:
        """Return q̈, q⁽³⁾ and q⁽⁴⁾ (joints,) of joints that obey the rigid error equation."""
        wanted, g, (e, first) = self.reference, self.rigid, errors
        assert wanted.jerk is not None and wanted.snap is not None
        second = -g.kd * first - g.kp * e - g.ki * integral
        third = -g.kd * second - g.kp * first - g.ki * e
        fourth = -g.kd * third - g.kp * second - g.ki * first
        return wanted.qdd[k] + second, wanted.jerk[k] + third, wanted.snap[k] + fourth


class _Springs(NamedTuple):
    """Springs at an instant, (joints,): τ_J (Nm), its derivative (Nm/s), stiffness k (Nm/rad) and dk/dφ (Nm/rad²)."""

    torque: Array
    rate: Array
    stiffness: Array
    curvature: Array


@dataclass(frozen=True, eq=False)
class _Model:
    """Links on springs, one sample at a time."""

    links: Links
    drives: tuple[JointDrive, ...]
    rotors: Array

    @cached_property
    def limits(self) -> Array:
        """Largest motor torques, Nm, (joints,)."""
        return np.array([drive.limit for drive in self.drives])

    @cached_property
    def _elastic(self) -> list[Spring]:
        return [drive.spring for drive in self.drives if drive.spring is not None]

    @cached_property
    def _damping(self) -> Array:
        return np.array([drive.damping for drive in self.drives])

    def springs(self, sample: ControlSample) -> _Springs:
        """Return ``τ_J = spring(φ) + D φ̇`` and what its derivatives need."""
        phi, phi_d = sample.theta - sample.q, sample.speed - sample.qd
        rows = [
            (spring.torque(p), spring.stiffness(p), spring.curvature(p))
            for spring, p in zip(self._elastic, phi, strict=True)
        ]
        static, k, slope = np.array(rows, dtype=float).T
        return _Springs(static + self._damping * phi_d, k * phi_d, k, slope)

    def link_motion(
        self, q: Array, qd: Array, springs: _Springs, elastic: NDArray[np.bool_], planned: tuple[Array, Array, Array]
    ) -> tuple[Array, Array]:
        """Return q̈ and q⁽³⁾ (joints,) of links that springs pull; `planned` are those of the other joints."""
        none = np.zeros_like(q)
        M = self.links.inertia(q[None], none)[0]
        known, known_jerk = (np.where(elastic, 0.0, values) for values in planned[:2])
        pull, free = M[elastic], M[np.ix_(elastic, elastic)]
        torque = springs.torque - self._torques((q, qd, none, none, none), (0.0,))[0]
        qdd, jerk = known.copy(), known_jerk.copy()
        qdd[elastic] = np.linalg.solve(free, torque[elastic] - pull @ known)
        before, after = self._torques((q, qd, qdd, none, none), (-STEP, STEP))
        rate = springs.rate - (after - before) / (2.0 * STEP)
        jerk[elastic] = np.linalg.solve(free, rate[elastic] - pull @ known_jerk)
        return qdd, jerk

    def motor_torque(self, motion: tuple[Array, ...], springs: _Springs) -> Array:
        """Return u (joints,), Nm, that gives the links a motion q .. q⁽⁴⁾."""
        before, at, after = self._torques(motion, (-STEP, 0.0, STEP))
        second, k = (after - 2.0 * at + before) / STEP**2, springs.stiffness
        acceleration = motion[2] + second / k - springs.curvature * springs.rate**2 / k**3
        result: Array = self.rotors * acceleration + at
        return result

    def _torques(self, motion: tuple[Array, ...], times: tuple[float, ...]) -> Array:
        """Return M q̈ + C q̇ + g (times, joints), Nm, along the Taylor series of a motion q .. q⁽⁴⁾."""
        s = np.array(times)[:, None]
        q, qd, qdd, jerk, snap = motion
        acceleration = qdd + s * (jerk + s / 2.0 * snap)
        speed = qd + s * (qdd + s / 2.0 * (jerk + s / 3.0 * snap))
        position = q + s * (qd + s / 2.0 * (qdd + s / 3.0 * (jerk + s / 4.0 * snap)))
        return self.links.sample_torque(position, speed, acceleration)


@checked
def feedback_linearisation(
    robot: Robot | RobotModel,
    motion: Any,
    rate: float = 1000.0,
    *,
    drives: Sequence[JointDrive],
    gains: ChainGains | None = None,
    observer: float | None = None,
    elastic: Sequence[bool] | bool | None = None,
    friction: Array | bool = True,
    **options: Unpack[TaskOptions],
) -> FeedbackLinearisation:
    """Return a controller under which the links obey ``e⁽⁴⁾ + k3 e⁽³⁾ + k2 ë + k1 ė + k0 e + ki ∫e = 0``.

    It feeds back q, q̇, θ and ω; acceleration and jerk of the links come from the deformation of the springs, corrected
    slowly by the measured speed. A light link on a stiff spring cannot be linearised: it would have to be cancelled far
    more exactly than a stiffness is known. Such joints are controlled as rigid ones by their rotors, with poles as
    fast. The spring's damping counts in the torque, not in its derivatives.

    Args:
        robot: A described or calibrated robot.
        motion: The motion to follow, with derivatives up to snap.
        rate: Control rate, Hz.
        drives: Rotors, springs (all joints elastic), friction and motors.
        gains: Gains of the error equation; None for poles at a 60th of the rate, at most 16 Hz, and an integral.
        observer: L, rad/s, by which the measured speed corrects the acceleration; 0 for never, None for 0.3 times the
            bandwidth of the gains.
        elastic: Which joints are linearised with their springs, one flag or one for each; None for those whose link
            swings on its spring at up to 3 k0^(1/4).
        friction: As in `flexible_feedforward`.
        options: Mounting, payload and duration; see `TaskOptions`.

    Raises:
        ModelError: A joint has no spring, the motion no snap, or the gains are too high for the rate.

    """
    task = make_task(robot, motion, rate, drives, **options)
    rigid = [j for j, drive in enumerate(task.drives) if drive.spring is None]
    if rigid:
        raise ModelError(f"joint {rigid[0] + 1} must have a spring: feedback linearisation is for elastic joints.")
    wanted, ahead = (drive_motion(task.links, task.drives, part) for part in (task.reference, task.ahead))
    held = ahead.torque - wanted.torque  # a torque is held over a period and lags: it must be that of a later time
    feed = plus_friction(held, friction_feed(task.drives, ahead.speed, friction))
    chosen = chain_gains(min(DEFAULT_BANDWIDTH, rate / 60.0), DEFAULT_INTEGRAL) if gains is None else gains
    w = _checked_poles(chosen, rate)
    speed = OBSERVER_SHARE * float(np.min(w)) if observer is None else observer
    if not 0.0 <= speed < rate:
        raise ModelError(f"observer must be 0 to the rate of {rate:g}, in rad/s. Got {observer} instead.")
    flags = link_frequencies(task) <= STIFF * w if elastic is None else _checked_flags(elastic, len(task.drives))
    sag = (wanted.theta - task.reference.q, wanted.speed - task.reference.qd)
    as_fast = Gains(w**2, 2.0 * w, np.asarray(chosen.ki) / np.asarray(chosen.k0) * w**2)
    return FeedbackLinearisation(task.reference, task.links, task.drives, chosen, feed, speed, flags, as_fast, sag)


def _checked_poles(gains: ChainGains, rate: float) -> Array:
    """Return k0^(1/4), rad/s, one number or (joints,), of gains that the sampled loop at a rate (Hz) can have."""
    w: Array = np.asarray(gains.k0, dtype=float) ** 0.25
    if np.max(w) > 2.0 * np.pi * FASTEST * rate:
        raise ModelError(
            f"gains must be for a bandwidth of at most about {rate / 25.0:.3g} Hz at {rate:g} Hz: the loop is "
            f"unstable. Got k0^(1/4) = {np.max(w) / (2.0 * np.pi):.3g} Hz."
        )
    return w


def _checked_flags(elastic: Sequence[bool] | bool, joints: int) -> NDArray[np.bool_]:
    """Return one flag for each joint."""
    flags = np.asarray(elastic, dtype=bool)
    if flags.shape not in ((), (joints,)):
        raise ModelError(f"elastic must be one flag, or {joints}. Got {elastic} instead.")
    return np.broadcast_to(flags, joints)
