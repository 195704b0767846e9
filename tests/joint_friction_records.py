"""Records of one joint with a known friction, made in a moment: for the tests of friction, load and temperature."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jointwise.joint.laws import VelocityLaw
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

RATE = 200.0
LAW = VelocityLaw(
    coulomb=10.0, static=12.0, stribeck_speed=0.05, viscous=10.0, square=-1.1, asymmetry=0.05, slowest=0.0
)
SPEEDS = tuple(np.geomspace(0.03, 2.8, 10))

Friction = Callable[[Array, Array, Array], Array]
"""From speed, load and temperature (samples,) to friction (samples,)."""


def to_and_fro(speeds: Sequence[float], seconds: float = 3.0, rise: float = 0.2, pause: float = 0.25) -> Array:
    """Return a speed (samples,): every one of `speeds` forwards and back, with ramps and pauses."""
    coast, ramp = int(seconds * RATE), int(rise * RATE)
    up = np.arange(ramp) / ramp
    one = np.concatenate([up, np.ones(coast), up[::-1], np.zeros(int(pause * RATE))])
    return np.concatenate([side * speed * one for speed in speeds for side in (1.0, -1.0)])


def record_of(
    speed: Array,
    friction: Friction | VelocityLaw = LAW,
    *,
    noise: float = 0.3,
    seed: int = 0,
    load: Callable[[Array], Array] | None = None,
    unknown: Callable[[Array, Array], Array] | None = None,
    temperature: Array | None = None,
    start: float = 0.0,
) -> JointRecord:
    """Return the record of a joint without hysteresis: motor = load(q) + friction + noise (+ unknown(q, q̈))."""
    t = np.arange(len(speed)) / RATE
    q = start + np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1])) / RATE])
    acceleration = np.gradient(speed, 1.0 / RATE)
    required = np.zeros_like(q) if load is None else load(q)
    warm = np.full_like(q, 20.0) if temperature is None else temperature
    dissipated = friction.torque(speed) if isinstance(friction, VelocityLaw) else friction(speed, required, warm)
    beside = 0.0 if unknown is None else unknown(q, acceleration)
    motor = required + dissipated + beside + noise * np.random.default_rng(seed).normal(size=len(q))
    return JointRecord(
        robot="arm",
        joint=0,
        logs=("made.csv",),
        rate=RATE,
        unit="Nm",
        gain=10.0,
        inertia=0.0,
        t=t,
        segment=np.zeros(len(t), dtype=np.intp),
        q=q,
        qd=speed,
        qdd=acceleration,
        position=q,
        speed=speed,
        acceleration=acceleration,
        path=q,
        motor=motor,
        load=required,
        temperature=temperature,
    )


def sinusoid(amplitude: float = 1.0, period: float = 10.0, cycles: float = 6.0) -> Array:
    """Return the speed (samples,) of a sinusoid, rad/s at its top `amplitude`."""
    return amplitude * np.sin(2.0 * np.pi / period * np.arange(int(cycles * period * RATE)) / RATE)
