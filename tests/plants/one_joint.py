"""One elastic joint written apart from the package: rotor with LuGre or Stribeck friction, spring, link under gravity.

    B dw/dt = u - F(w) - k (θ - q) - d (w - qd),    M dqd/dt = k (θ - q) + d (w - qd) - m sin q

All quantities at the joint side; integrated by SciPy. It imports nothing of `jointwise`, so that an estimator that
recovers its parameters does so without sharing a law with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

Array = NDArray[np.float64]
Reference = Callable[[float], tuple[float, float, float]]
"""From time (s) to position (rad), speed (rad/s) and acceleration (rad/s²) of the rotor."""


@dataclass(frozen=True)
class LuGre:
    """``F = s0 z + s1 dz/dt + F_V w``, ``dz/dt = w - s0 |w| z / g(w)``, ``g = F_C + (F_S - F_C) exp(-(w/V_S)²)``.

    Canudas de Wit, Olsson, Astrom, Lischinsky: A new model for control of systems with friction, IEEE Trans. Automatic
    Control 40(3), 1995.
    """

    coulomb: float = 6.5
    static: float = 8.6
    stribeck_speed: float = 0.02
    viscous: float = 10.0
    stiffness: float = 2.2e4
    damping: float = 20.0

    def forces(self, speed: float, z: float) -> tuple[float, float]:
        """Return friction, Nm, and dz/dt, rad/s."""
        level = self.coulomb + (self.static - self.coulomb) * np.exp(-((speed / self.stribeck_speed) ** 2))
        rate = speed - self.stiffness * abs(speed) * z / level
        return self.stiffness * z + self.damping * rate + self.viscous * speed, rate

    def steady(self, speed: Array) -> Array:
        """Return the friction of sliding (samples,), Nm."""
        level = self.coulomb + (self.static - self.coulomb) * np.exp(-((speed / self.stribeck_speed) ** 2))
        return np.sign(speed) * level + self.viscous * speed


@dataclass(frozen=True)
class Stribeck:
    """``F = tanh(w / width) (F_C + (F_S - F_C) exp(-(|w|/V_S)^mu)) + F_V w``: no memory."""

    coulomb: float = 6.5
    static: float = 8.6
    stribeck_speed: float = 0.05
    exponent: float = 1.0
    viscous: float = 10.0
    width: float = 2e-4

    def forces(self, speed: float, z: float) -> tuple[float, float]:
        """Return friction, Nm, and 0: there is no state."""
        return float(self._at(speed, np.tanh(speed / self.width))), 0.0

    def steady(self, speed: Array) -> Array:
        """Return the friction of sliding (samples,), Nm."""
        return self._at(speed, np.sign(speed))

    def _at(self, speed, side):  # type: ignore[no-untyped-def]
        rise = np.exp(-((np.abs(speed) / self.stribeck_speed) ** self.exponent))
        return side * (self.coulomb + (self.static - self.coulomb) * rise) + self.viscous * speed


@dataclass(frozen=True)
class Motion:
    """A run, (samples,): time, rotor and link position, their speeds, motor torque (Nm) and friction (Nm)."""

    t: Array
    theta: Array
    q: Array
    speed: Array
    torque: Array
    friction: Array


@dataclass(frozen=True)
class OneJoint:
    """The joint and its controller, a PD with feed-forward of the inertia on the rotor (bandwidth in rad/s)."""

    friction: LuGre | Stribeck
    rotor: float = 1.5
    link: float = 2.0
    stiffness: float = 2.5e4
    damping: float = 20.0
    weight: float = 0.0
    bandwidth: float = 40.0

    def run(self, reference: Reference, duration: float, rate: float = 500.0) -> Motion:
        """Return the run along a reference from rest."""

        def control(t: float, theta: float, speed: float) -> float:
            at, velocity, acceleration = reference(t)
            inertia = self.rotor + self.link
            feedback = 2.0 * self.bandwidth * (velocity - speed) + self.bandwidth**2 * (at - theta)
            return inertia * (acceleration + feedback) + self.weight * float(np.sin(at))

        def derivative(t: float, x: Array) -> list[float]:
            theta, speed, q, qd, z = x.tolist()
            spring = self.stiffness * (theta - q) + self.damping * (speed - qd)
            friction, rate_z = self.friction.forces(speed, z)
            drive = control(t, theta, speed) - friction - spring
            return [speed, drive / self.rotor, qd, (spring - self.weight * np.sin(q)) / self.link, rate_z]

        t = np.arange(round(duration * rate)) / rate
        start = reference(0.0)[0]
        found = solve_ivp(derivative, (0.0, t[-1]), [start, 0.0, start, 0.0, 0.0], "LSODA", t, rtol=1e-6, atol=1e-9)
        theta, speed, q, _, z = found.y
        rows = zip(t.tolist(), theta.tolist(), speed.tolist(), strict=True)
        torque = np.array([control(*row) for row in rows])
        friction = np.array([self.friction.forces(w, s)[0] for w, s in zip(speed.tolist(), z.tolist(), strict=True)])
        return Motion(t, theta, q, speed, torque, friction)


def swings(amplitude: float, period: float, drift: float = 0.0) -> Reference:
    """Return a sinusoid (rad, s) whose middle moves at `drift` (rad/s)."""
    w = 2.0 * np.pi / period

    def at(t: float) -> tuple[float, float, float]:
        s, c = float(np.sin(w * t)), float(np.cos(w * t))
        return amplitude * (1.0 - c) + drift * t, amplitude * w * s + drift, amplitude * w * w * c

    return at


def runs(speeds: tuple[float, ...], seconds: float = 3.0, rise: float = 0.3, pause: float = 0.3) -> Reference:
    """Return runs forth and back at constant speeds (rad/s) with smooth ramps, one after the other."""
    length = seconds + 2.0 * rise + pause

    def at(t: float) -> tuple[float, float, float]:
        number = min(int(t // length), 2 * len(speeds) - 1)
        side, speed = 1.0 - 2.0 * (number % 2), speeds[number // 2]
        position, velocity, acceleration = _run(t - number * length, seconds, rise)
        away = seconds + rise if number % 2 else 0.0
        return speed * (away + side * position), side * speed * velocity, side * speed * acceleration

    return at


def _run(t: float, seconds: float, rise: float) -> tuple[float, float, float]:
    """Return position, speed and acceleration of a run at unit speed, with half a cosine up and one down."""

    def ramp(s: float) -> tuple[float, float, float]:
        x = min(max(s / rise, 0.0), 1.0)
        area = rise * (0.5 * x - np.sin(np.pi * x) / (2.0 * np.pi))
        return float(area), float(0.5 - 0.5 * np.cos(np.pi * x)), float(0.5 * np.pi / rise * np.sin(np.pi * x))

    up, down = ramp(t), ramp(t - rise - seconds)
    full, flat = max(t - rise, 0.0), max(t - 2.0 * rise - seconds, 0.0)
    position = up[0] + full - (down[0] + flat)
    return position, up[1] - down[1], up[2] - down[2]
