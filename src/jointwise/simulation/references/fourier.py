"""Finite Fourier series that fade in from rest and out to rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointwise.description.robot import Robot
from jointwise.errors import ModelError, ShapeError
from jointwise.simulation.references.room import Room, room_of
from jointwise.simulation.references.trajectory import States, Trajectory, refuse_unless_positive, smooth_step
from jointwise.spatial import Array

POINTS_A_PERIOD = 60
"""Points in the shortest period at which a series is looked at for its extremes (found within 0.2 %)."""
RESERVE = 0.995
"""Part of every limit that a series scaled by those points may use."""


@dataclass(frozen=True)
class FadedSeries(Trajectory):
    """``q(t) = center + w(t) Σ_k (a_k sin k ω t + b_k cos k ω t)``, w rising and falling as quintics over `fade` (s).

    `base_frequency` (Hz) is ω / 2π; `center` (joints,) rad; `sine` and `cosine` (harmonics, joints) rad.
    """

    duration: float
    fade: float
    base_frequency: float
    center: Array
    sine: Array
    cosine: Array

    @property
    def joints(self) -> int:
        """Number of joints."""
        return len(self.center)

    def position(self, t: Array) -> Array:
        """Return q (samples, joints)."""
        sin, cos, _ = self._waves(t)
        result: Array = self.center + self._window(t)[0] * (sin @ self.sine + cos @ self.cosine)
        return result

    def at(self, t: Array) -> States:
        """Return q, q̇ = ẇ f + w ḟ and q̈ = ẅ f + 2 ẇ ḟ + w f̈."""
        sin, cos, k = self._waves(t)
        f = sin @ self.sine + cos @ self.cosine
        fd = cos @ (k * self.sine) - sin @ (k * self.cosine)
        fdd = -(sin @ (k**2 * self.sine) + cos @ (k**2 * self.cosine))
        w, wd, wdd = self._window(t)
        return States(t, self.center + w * f, wd * f + w * fd, wdd * f + 2.0 * wd * fd + w * fdd)

    def about(self, center: Array, size: float) -> FadedSeries:
        """Return the series about another centre (joints,), `size` times as large."""
        return replace(self, center=center, sine=size * self.sine, cosine=size * self.cosine)

    def _waves(self, t: Array) -> tuple[Array, Array, Array]:
        """Return sin k ω t and cos k ω t, (samples, harmonics), and k ω (harmonics, 1) in rad/s."""
        k: Array = 2.0 * np.pi * self.base_frequency * np.arange(1.0, len(self.sine) + 1.0)
        phase: Array = np.multiply.outer(t, k)
        return np.sin(phase), np.cos(phase), k[:, None]

    def _window(self, t: Array) -> tuple[Array, Array, Array]:
        """Return w, ẇ, ẅ, (samples, 1): 0 outside the motion, 1 between the fades."""
        nearest_end = np.clip(np.minimum(t, self.duration - t) / self.fade, 0.0, 1.0)[:, None]
        side = np.where(t < 0.5 * self.duration, 1.0, -1.0)[:, None]
        w, wd, wdd = smooth_step(nearest_end)
        return w, side * wd / self.fade, wdd / self.fade**2


def fourier_trajectory(
    robot: Robot,
    duration: float,
    seed: int = 0,
    *,
    harmonics: int = 5,
    base_frequency: float = 0.1,
    amplitude: float = 1.5,
    speed_fraction: float = 0.6,
) -> FadedSeries:
    """Return a random Fourier series of all joints within their limits, from rest to rest.

    Every joint moves as far as the first of these allows: `amplitude` (rad, m) about its centre, its position limits,
    `speed_fraction` of its speed limit, its acceleration limit (6 rad/s² where none is given). The centre is random
    within what the limits leave.
    """
    refuse_unless_positive(
        duration=duration, harmonics=harmonics, base_frequency=base_frequency,
        amplitude=amplitude, speed_fraction=speed_fraction,
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, harmonics + 1)[:, None]
    sine, cosine = weights * rng.normal(size=(2, harmonics, robot.dof))
    shape = FadedSeries(duration, _fade(duration), base_frequency, np.zeros(robot.dof), sine, cosine)
    scaled, below, above = _scaled(shape, room := room_of(robot, speed_fraction), amplitude)
    return replace(scaled, center=room.draw_center(rng, below, above))


def single_joint_trajectory(
    robot: Robot,
    joint: int,
    duration: float,
    *,
    frequency: float = 0.1,
    amplitude: float = 1.0,
    posture: Array | None = None,
) -> FadedSeries:
    """Return a sinusoid of one joint (0-based) about a `posture` (joints,), rad, while the others stand still.

    Without a posture it is q = 0. A posture outside the limits is moved inside, an amplitude (rad) too large for the
    limits of position, speed and acceleration is made smaller.
    """
    refuse_unless_positive(duration=duration, frequency=frequency, amplitude=amplitude)
    if not 0 <= joint < robot.dof:
        raise ModelError(f"joint must be 0 to {robot.dof - 1}. Got {joint} instead.")
    center = np.zeros(robot.dof) if posture is None else np.array(posture, dtype=float)
    if center.shape != (robot.dof,):
        raise ShapeError(f"posture must have shape ({robot.dof},). Got {center.shape} instead.")
    sine = np.zeros((1, robot.dof))
    sine[0, joint] = amplitude
    shape = FadedSeries(duration, _fade(duration), frequency, np.zeros(robot.dof), sine, np.zeros_like(sine))
    scaled, below, above = _scaled(shape, room := room_of(robot, 1.0), amplitude)
    return replace(scaled, center=np.clip(center, room.lower + below, room.upper - above))


def _fade(duration: float) -> float:
    """Return the time of fading in or out, s."""
    return min(2.0, 0.25 * duration)


def _scaled(shape: FadedSeries, room: Room, amplitude: float) -> tuple[FadedSeries, Array, Array]:
    """Return a series about zero made as large as it may be, and how far (rad) it goes below and above zero."""
    rate = POINTS_A_PERIOD * max(len(shape.sine) * shape.base_frequency, 1.0 / shape.fade)
    states = shape.sample(rate)
    lowest, highest = -states.q.min(axis=0), states.q.max(axis=0)
    allowed = [
        (amplitude, np.abs(states.q).max(axis=0)),
        (room.upper - room.lower, lowest + highest),
        (room.velocity, np.abs(states.qd).max(axis=0)),
        (room.acceleration, np.abs(states.qdd).max(axis=0)),
    ]
    scale = RESERVE * np.min([limit / np.maximum(peak, 1e-12) for limit, peak in allowed], axis=0)
    scale = np.where(lowest + highest > 0.0, scale, 0.0)
    series = replace(shape, sine=scale * shape.sine, cosine=scale * shape.cosine)
    return series, scale * lowest / RESERVE, scale * highest / RESERVE
