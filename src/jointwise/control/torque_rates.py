"""Time derivatives of the inverse dynamics, exactly: the Newton-Euler recursion on truncated Taylor series.

A series holds the coefficients of ε⁰, ε¹, ε² of a quantity at t + ε in its first axis; products are truncated Cauchy
products, so that no difference quotient is taken. Scalars are (3, samples), vectors (3, 3, samples) with the components
in the middle; those of link j are in frame {j}.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointwise.arguments import checked
from jointwise.model.rigid.chain import Chain
from jointwise.spatial import Array, six_to_tensor, skew

BLOCK = 2000
"""Samples that are computed at once: they stay in the cache."""
Vectors = tuple[Array, Array, Array]


@checked
def torque_rates(chain: Chain, q: Array, qd: Array, qdd: Array, jerk: Array, snap: Array) -> tuple[Array, Array, Array]:
    """Return τ, τ̇ and τ̈ (samples, joints) of ``τ = M q̈ + C q̇ + g`` along a motion with its first four derivatives.

    ::

        ω_j = Rᵀ ω + z q̇        ω̇_j = Rᵀ ω̇ + (Rᵀ ω) × z q̇ + z q̈        a_j = Rᵀ (a + ω̇ × p + ω × (ω × p))
        f = m a + ω̇ × mc + ω × (ω × mc)        n = I ω̇ + ω × I ω + mc × a

    and inwards the sums of f and n, each as a series in time; rotors add ``Ia q̈``.
    """
    rates = np.empty((3, *q.shape))
    for first in range(0, len(q), BLOCK):
        rows = slice(first, first + BLOCK)
        rates[:, rows] = _block_rates(chain, *(values[rows] for values in (q, qd, qdd, jerk, snap)))
    return rates[0], rates[1], rates[2]


def _block_rates(chain: Chain, q: Array, qd: Array, qdd: Array, jerk: Array, snap: Array) -> Array:
    angle, speed, pull = (_series(*rows) for rows in ((q, qd, qdd), (qd, qdd, jerk), (qdd, jerk, snap)))
    frames = [_Frame.of(chain, j, angle[:, j]) for j in range(chain.dof)]
    wrenches = _outward(chain, frames, speed, pull)
    torque = _inward(chain, frames, wrenches) + chain.rotors[:, None] * pull
    torque[2] *= 2.0
    result: Array = torque.transpose(0, 2, 1)
    return result


def _series(value: Array, first: Array, second: Array) -> Array:
    """Return the Taylor coefficients (3, joints, samples) of a signal and its derivatives."""
    return np.stack([value.T, first.T, 0.5 * second.T])


def _times(a: Array, b: Array) -> Array:
    """Return the truncated Cauchy product ``c_k = Σ_i a_i b_{k-i}``."""
    return np.stack([a[0] * b[0], a[0] * b[1] + a[1] * b[0], a[0] * b[2] + a[1] * b[1] + a[2] * b[0]])


def _cross(a: Array, b: Array) -> Array:
    """Return a × b of vector series."""
    (ax, ay, az), (bx, by, bz) = a.swapaxes(0, 1), b.swapaxes(0, 1)
    rows = [_times(ay, bz) - _times(az, by), _times(az, bx) - _times(ax, bz), _times(ax, by) - _times(ay, bx)]
    return np.stack(rows, axis=1)


class _Frame(NamedTuple):
    """Frame {j} in the one before it: R = R0 Rot_z(q) with the series of sin and cos, None for a prismatic joint; p."""

    R0: Array
    sine: Array | None
    cosine: Array | None
    p: Array

    @classmethod
    def of(cls, chain: Chain, j: int, angle: Array) -> _Frame:
        """Return the frame at positions (3, samples)."""
        R0, p = chain.rotations[j], np.zeros((3, 3, angle.shape[1]))
        p[0] = chain.translations[j][:, None]
        if chain.revolute[j]:
            return cls(R0, *_sine_cosine(angle), p)
        return cls(R0, None, None, p + R0[:, 2][:, None] * angle[:, None])

    def into(self, v: Array) -> Array:
        """Return Rᵀ v: from the frame before to this one."""
        return self._turned(np.matmul(self.R0.T, v), 1.0)

    def out(self, v: Array) -> Array:
        """Return R v: from this frame to the one before."""
        back: Array = np.matmul(self.R0, self._turned(v, -1.0))
        return back

    def _turned(self, v: Array, sign: float) -> Array:
        """Return Rot_z(-q) v for sign +1, Rot_z(q) v for -1."""
        if self.sine is None or self.cosine is None:
            return v
        s, c = sign * self.sine, self.cosine
        x, y, z = v.swapaxes(0, 1)
        return np.stack([_times(c, x) + _times(s, y), _times(c, y) - _times(s, x), z], axis=1)


def _sine_cosine(angle: Array) -> tuple[Array, Array]:
    """Return the series of sin and cos of a series."""
    s, c = np.sin(angle[0]), np.cos(angle[0])
    half = 0.5 * angle[1] ** 2
    sine = np.stack([s, c * angle[1], c * angle[2] - s * half])
    return sine, np.stack([c, -s * angle[1], -s * angle[2] - c * half])


def _outward(chain: Chain, frames: list[_Frame], speed: Array, pull: Array) -> list[tuple[Array, Array]]:
    """Return force and moment (f, n) of every body at its frame's origin, base to tip."""
    w, wd, a = (np.zeros_like(frames[0].p) for _ in range(3))
    a[0] = -chain.gravity[:, None]
    wrenches = []
    for j, frame in enumerate(frames):
        w, wd, a = _moved(bool(chain.revolute[j]), frame, (w, wd, a), speed[:, j], pull[:, j])
        wrenches.append(_wrench(chain.inertials[j], w, wd, a))
    return wrenches


def _moved(revolute: bool, frame: _Frame, before: Vectors, speed: Array, pull: Array) -> Vectors:
    """Return ω, ω̇ and a of a frame from those of the one before it."""
    w, wd, a = before
    at_origin = a + _cross(wd, frame.p) + _cross(w, _cross(w, frame.p))
    w, wd, a = (frame.into(v) for v in (w, wd, at_origin))
    twice, moved = (1.0, wd) if revolute else (2.0, a)
    moved[:, 0] += twice * _times(w[:, 1], speed)
    moved[:, 1] -= twice * _times(w[:, 0], speed)
    moved[:, 2] += pull
    if revolute:
        w[:, 2] += speed
    return w, wd, a


def _wrench(inertial: Array, w: Array, wd: Array, a: Array) -> tuple[Array, Array]:
    """Return ``f = m a + ω̇ × mc + ω × (ω × mc)`` and ``n = I ω̇ + ω × I ω + mc × a``."""
    inertia, around = six_to_tensor(inertial[:6]), skew(inertial[6:9])  # mc × v = around v
    f = inertial[9] * a - np.matmul(around, wd) - _cross(w, np.matmul(around, w))
    n = np.matmul(inertia, wd) + _cross(w, np.matmul(inertia, w)) + np.matmul(around, a)
    return f, n


def _inward(chain: Chain, frames: list[_Frame], wrenches: list[tuple[Array, Array]]) -> Array:
    """Return the series of the torques (3, joints, samples), tip to base."""
    rows: list[Array] = []
    f, n = (np.zeros_like(frames[0].p) for _ in range(2))
    for j in reversed(range(chain.dof)):
        f, n = f + wrenches[j][0], n + wrenches[j][1]
        rows.append((n if chain.revolute[j] else f)[:, 2])
        f, n = frames[j].out(f), frames[j].out(n)
        n = n + _cross(frames[j].p, f)
    return np.stack(rows[::-1], axis=1)
