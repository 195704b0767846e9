"""The recursions of friction with memory along a path; native, with NumPy twins."""

from __future__ import annotations

import numpy as np

from jointwise.backend import native
from jointwise.spatial import Array


def maxwell_state(position: float, elements: int) -> Array:
    """Return relaxed slip elements at a position (rad): δ_i, ∂δ_i/∂D_i and the last position, (2 elements + 1,)."""
    state = np.zeros(2 * elements + 1)
    state[-1] = position
    return state


def maxwell_slip(x: Array, scale: Array | None, limits: Array, state: Array) -> Array:
    """Return g_i = δ_i / (b D_i) in [-1, 1] along the positions x (samples,) rad: (samples, elements).

    ``s = x[k] - x[k-1] + δ_i``, ``δ_i = sgn(s) min(|s|, b D_i)``: `limits` D_i (elements,) rad, `scale` b
    (samples,) the backlash relative to its mean, None for 1. `state` (see `maxwell_state`) is carried on, in place.
    """
    out = np.empty((len(x), len(limits)))
    if (kernel := native()) is not None:
        kernel.maxwell(_flat(x), None if scale is None else _flat(scale), _flat(limits), state, out, None)
        return out
    return _maxwell(x, scale, limits, state, out, None)


def maxwell_slopes(x: Array, scale: Array | None, limits: Array, state: Array) -> tuple[Array, Array]:
    """Return g_i as `maxwell_slip` does, and ∂g_i/∂ln D_i, (samples, elements) each."""
    out, slopes = np.empty((2, len(x), len(limits)))
    if (kernel := native()) is not None:
        kernel.maxwell(_flat(x), None if scale is None else _flat(scale), _flat(limits), state, out, slopes)
    else:
        _maxwell(x, scale, limits, state, out, slopes)
    return out, slopes


def _maxwell(x: Array, scale: Array | None, limits: Array, state: Array, out: Array, slopes: Array | None) -> Array:
    count = len(limits)
    delta, side, last = state[:count].copy(), state[count:-1].copy(), state[-1]
    b = np.ones(len(x)) if scale is None else scale
    for k, position in enumerate(x):
        limit, s = b[k] * limits, delta + (position - last)
        last = position
        side = np.where(s > limit, b[k], np.where(s < -limit, -b[k], side))
        delta = np.clip(s, -limit, limit)
        out[k] = delta / limit
        if slopes is not None:
            slopes[k] = side / b[k] - out[k]
    state[:count], state[-1] = delta, last
    if slopes is not None:
        state[count:-1] = side
    return out


def _flat(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)
