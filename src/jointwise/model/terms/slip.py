"""Slip elements: the recursion behind Generalised Maxwell-Slip hysteresis."""

from __future__ import annotations

import numpy as np

from jointwise.backend import native
from jointwise.spatial import Array


def slip_elements(x: Array, limits: Array, decay: float, state: Array) -> Array:
    """Return δ_i/D_i in [-1, 1] of parallel spring-slip elements, shape (samples, elements); updates `state`.

    ``s = decay δ_i + x[k] - x[k-1]``, ``δ_i = sgn(s) min(|s|, D_i)``. `x` (samples,) is the driving position (rad),
    `limits` (elements,) the D_i, `decay` in (0, 1] the part of a deformation that is left after one sample, `state`
    (elements + 1,) the δ_i and the last position.
    """
    out = np.empty((len(x), len(limits)))
    x, limits = np.ascontiguousarray(x), np.ascontiguousarray(limits)
    kernel = native()
    if kernel is not None:
        kernel.slip(x, limits, decay, state, out)
        return out
    delta, last = state[:-1].copy(), state[-1]
    for k, position in enumerate(x):
        delta = np.clip(decay * delta + (position - last), -limits, limits)
        last = position
        out[k] = delta / limits
    state[:-1], state[-1] = delta, last
    return out


def rest_state(x: Array, elements: int) -> Array:
    """Return the state of undeformed elements at the first position of x."""
    state = np.zeros(elements + 1)
    state[-1] = x[0]
    return state
