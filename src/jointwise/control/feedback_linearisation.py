"""Feedback linearisation of elastic joints from link and rotor states: the error obeys a linear equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointwise.control.control_law import ControlSample
from jointwise.control.flexible import drive_motion, friction_feed
from jointwise.control.gains import rotor_inertias
from jointwise.control.joint_drive import JointDrive
from jointwise.control.links import Links, make_task, plus_friction
from jointwise.control.reference import Reference
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.errors import ModelError
from jointwise.model.rigid.backend import kernels
from jointwise.model.rigid.chain import Chain
from jointwise.model.spring import Spring
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.runtime import RobotModel

STEP = 3e-4
"""Time (s) over which torques are differenced along the motion: errors of its square, rounding of 1e-4 Nm/s²."""
OBSERVER_SHARE = 0.3
"""Speed of the observer relative to the poles of the error: slow enough not to disturb them."""
DEFAULT_BANDWIDTH = 16.0
"""Hz of the four poles: fast enough to overcome the friction of wrists, slow for a rate of 1 kHz."""
DEFAULT_INTEGRAL = 0.5
"""Speed of the integral relative to the poles."""


@dataclass(frozen=True)
class ChainGains:
    """``e⁽⁴⁾ + k3 e⁽³⁾ + k2 ë + k1 ė + k0 e + ki ∫e = 0``; 1/s, 1/s², 1/s³, 1/s⁴, 1/s⁵, each a number or (joints,)."""

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


def chain_gains(bandwidth: float | Array, integral: float = 0.0) -> ChainGains:
    """Return gains with the poles (s + ω)⁴ (s + r ω), ω = 2π `bandwidth` (Hz), r the `integral` (0: none)."""
    w = 2.0 * np.pi * np.asarray(bandwidth, dtype=float)
    if not (np.isfinite(w).all() and (w > 0.0).all() and integral >= 0.0):
        raise ModelError(f"bandwidth must be positive, in Hz, and integral >= 0. Got {bandwidth}, {integral} instead.")
    r = integral * w
    return ChainGains(
        w**4 + 4.0 * w**3 * r, 4.0 * w**3 + 6.0 * w**2 * r, 6.0 * w**2 + 4.0 * w * r, 4.0 * w + r, r * w**4
    )


class LinearisationState(NamedTuple):
    """Memory of the controller.

    The `period` to come, `integral` ∫ (q - q_d) dt, (joints,) rad s, and `speed`, the observed speed of the links,
    (joints,) rad/s.
    """

    period: int
    integral: Array
    speed: Array


@dataclass(frozen=True, eq=False)
class FeedbackLinearisation:
    """``u = B θ̈ + τ_J + f`` such that ``q⁽⁴⁾ = v = q_d⁽⁴⁾ - Σ k_i (q⁽ⁱ⁾ - q_d⁽ⁱ⁾) - ki ∫ (q - q_d) dt``.

    Acceleration and jerk of the links follow from the springs, ``M q̈ = τ_J - C q̇ - g`` and its time derivative with
    ``τ̇_J = k(φ) (ω - q̇)``; then ``τ̈_J = M v + c(q, q̇, q̈, q⁽³⁾)``, ``φ̈ = τ̈_J / k - k' τ̇_J² / k³``, ``θ̈ = q̈ + φ̈``.
    Springs that are not as modelled give a wrong acceleration; an observer corrects it slowly by the measured speed:
    ``q̈ = q̈_springs + L (q̇ - q̇_o)``, ``dq̇_o/dt = q̈``. `feed` (periods, joints), Nm, is friction and the change of the
    torque until it acts; `observer` is L in rad/s.
    """

    reference: Reference = field(repr=False)
    links: Links = field(repr=False)
    drives: tuple[JointDrive, ...] = field(repr=False)
    gains: ChainGains
    feed: Array = field(repr=False)
    observer: float

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
        return _Model(self.links, self.links.chain, self.drives, rotor_inertias(self.drives))

    def init(self, sample: ControlSample) -> LinearisationState:
        """Return the memory at the start of the reference."""
        return LinearisationState(0, np.zeros_like(sample.q), sample.qd.copy())

    def step(self, state: LinearisationState, sample: ControlSample) -> tuple[Array, LinearisationState]:
        """Return the torque (joints,), Nm, of this period and the memory for the next."""
        k, wanted, gains = state.period, self.reference, self.gains
        if k >= self.periods:
            raise ModelError(f"the reference lasts {self.periods} periods. Give it a longer duration.")
        assert wanted.jerk is not None and wanted.snap is not None
        springs = self._model.springs(sample)
        sprung, jerk = self._model.link_motion(sample.q, sample.qd, springs)
        qdd = sprung + self.observer * (sample.qd - state.speed)
        errors = (
            sample.q - wanted.q[k], sample.qd - wanted.qd[k], qdd - wanted.qdd[k], jerk - wanted.jerk[k],
        )  # fmt: skip
        feedback = [gain * e for gain, e in zip((gains.k0, gains.k1, gains.k2, gains.k3), errors, strict=True)]
        v = wanted.snap[k] - sum(feedback) - gains.ki * state.integral
        u = self._model.motor_torque((sample.q, sample.qd, qdd, jerk, v), springs) + self.feed[k]
        limits = self._model.limits
        total: Array = np.minimum(np.maximum(u, -limits), limits)
        integral = np.where(total == u, state.integral + errors[0] / self.rate, state.integral)
        return total, LinearisationState(k + 1, integral, state.speed + qdd / self.rate)


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
    chain: Chain
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
        """Return τ_J = spring(φ) + D φ̇ and what its derivatives need."""
        phi, phi_d = sample.theta - sample.q, sample.speed - sample.qd
        rows = [
            (spring.torque(p), spring.stiffness(p), spring.curvature(p))
            for spring, p in zip(self._elastic, phi, strict=True)
        ]
        static, k, slope = np.array(rows, dtype=float).T
        return _Springs(static + self._damping * phi_d, k * phi_d, k, slope)

    def link_motion(self, q: Array, qd: Array, springs: _Springs) -> tuple[Array, Array]:
        """Return q̈ and q⁽³⁾ (joints,) of links that springs pull."""
        none = np.zeros_like(q)
        M = self.links.inertia(q[None], none)[0]
        qdd = np.linalg.solve(M, springs.torque - self._torques((q, qd, none, none, none), (0.0,))[0])
        before, after = self._torques((q, qd, qdd, none, none), (-STEP, STEP))
        return qdd, np.linalg.solve(M, springs.rate - (after - before) / (2.0 * STEP))

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
        torque = np.empty_like(position)
        kernels().inverse_dynamics(self.chain, position, speed, acceleration, torque)
        return torque


def feedback_linearisation(
    robot: Robot | RobotModel,
    motion: Any,
    rate: float = 1000.0,
    *,
    drives: Sequence[JointDrive],
    gains: ChainGains | None = None,
    observer: float | None = None,
    friction: Array | bool = True,
    gravity: Mounting | None = None,
    payload: Payload | None = None,
    duration: float | None = None,
) -> FeedbackLinearisation:
    """Return a controller under which the links obey ``e⁽⁴⁾ + k3 e⁽³⁾ + k2 ë + k1 ė + k0 e + ki ∫e = 0``.

    It feeds back q, q̇, θ and ω; acceleration and jerk of the links come from the deformation of the springs, corrected
    slowly by the measured speed. Light links on stiff springs need a high rate, and a stiffness that is modelled too
    low is safer than one too high. The spring's damping counts in the torque, not in its derivatives.

    Args:
        robot: A described or calibrated robot.
        motion: The motion to follow, with derivatives up to snap.
        rate: Control rate, Hz.
        drives: Rotors, springs (all joints elastic), friction and motors.
        gains: Gains of the error equation; None for poles at 16 Hz, at most a 60th of the rate, and an
            integral.
        observer: L, rad/s, by which the measured speed corrects the acceleration; 0 for never, None for 0.3 times the
            bandwidth of the gains.
        friction: As in `flexible_feedforward`.
        gravity: Mounting; None for that of the model, or the table.
        payload: Payload at the tool.
        duration: Duration of the motion, s; None for its own.

    Raises:
        ModelError: A joint has no spring, or the motion no snap.

    """
    task = make_task(Links.of(robot, gravity, payload), motion, rate, duration, drives)
    rigid = [j for j, drive in enumerate(task.drives) if drive.spring is None]
    if rigid:
        raise ModelError(f"joint {rigid[0] + 1} must have a spring: feedback linearisation is for elastic joints.")
    wanted, ahead = (drive_motion(task.links, task.drives, part) for part in (task.reference, task.ahead))
    held = ahead.torque - wanted.torque  # a torque is held over a period and lags: it must be that of a later time
    feed = plus_friction(held, friction_feed(task.drives, ahead.speed, friction))
    chosen = gains or chain_gains(min(DEFAULT_BANDWIDTH, rate / 60.0), DEFAULT_INTEGRAL)
    speed = OBSERVER_SHARE * float(np.min(chosen.k0)) ** 0.25 if observer is None else observer
    if not 0.0 <= speed < rate:
        raise ModelError(f"observer must be 0 to the rate of {rate:g}, in rad/s. Got {observer} instead.")
    return FeedbackLinearisation(task.reference, task.links, task.drives, chosen, feed, speed)
