"""The recursions of friction whose memory depends on the rate; native, with NumPy twins."""

from __future__ import annotations

import numpy as np

from jointwise.backend import native
from jointwise.spatial import Array


def steady_rise(speed: Array, extra: float, fall: float) -> Array:
    """Return h(ω) = 1 + e exp(-(ω/V)²) at speeds (samples,) rad/s: `extra` e, `fall` V (rad/s)."""
    result: Array = 1.0 + extra * np.exp(-((speed / fall) ** 2))
    return result


def rate_slip(x: Array, h: Array, limits: Array, rate: float, state: Array) -> Array:
    """Return u_i = F_i / W_i of rate-dependent slip elements along x (samples,) rad: (samples, elements).

    Stick: ``du_i = dx / D_i`` until |u_i| = h(ω); slip: ``du_i/dt = c (sgn ω - u_i / h(ω))`` until ω changes sign
    (with F_i = W_i u_i, s = F_C h). `h` (samples,) is the steady curve relative to F_C, `rate` = c · period.
    """
    out = np.empty((len(x), len(limits)))
    if (kernel := native()) is not None:
        kernel.rate_maxwell(_flat(x), _flat(h), _flat(limits), rate, state, out)
        return out
    count = len(limits)
    u, slipping, last = state[:count].copy(), state[count:-1].copy(), state[-1]
    for k, position in enumerate(x):
        way, dx, last = np.sign(position - last), position - last, position
        aim, stuck = way * h[k], u + dx / limits
        reached = way * stuck >= h[k]
        slides = (slipping != 0.0) & (slipping == way)
        moved = np.where(slides, aim + (u - aim) * np.exp(-rate / h[k]), np.where(reached, aim, stuck))
        if way != 0.0:
            u, slipping = moved, np.where(slides | reached, way, 0.0)
        out[k] = u
    state[:count], state[count:-1], state[-1] = u, slipping, last
    return out


def bristle(x: Array, h: Array, length: float, state: Array) -> Array:
    """Return u = s0 z / F_C of the LuGre bristle along x (samples,) rad: (samples,).

    ``ż = ω - s0 |ω| z / g(ω)`` with g = F_C h and the length D = F_C / s0 (rad) is ``du = (dx - |dx| u / h) / D``,
    stepped exactly over the way of a sample. `state` (2,) is u and the last position, carried on in place.
    """
    out = np.empty(len(x))
    if (kernel := native()) is not None:
        kernel.bristle(_flat(x), _flat(h), length, state, out)
        return out
    u, last = state
    for k, position in enumerate(x):
        dx, last = position - last, position
        aim = -h[k] if dx < 0.0 else h[k]
        u = aim + (u - aim) * np.exp(-abs(dx) / (length * h[k]))
        out[k] = u
    state[:] = u, last
    return out


def _flat(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)
