"""Maxwell-slip elements whose slip depends on the rate: they contain the Stribeck effect."""

from __future__ import annotations

import numpy as np

from jointwise.backend import native
from jointwise.model.terms.maxwell_slip import along_path, flat, optional
from jointwise.spatial import Array


def rate_slip_state(position: float, elements: int) -> Array:
    """Return the state of relaxed rate-dependent elements at a position (rad), (2 elements + 2,).

    It holds u_i, the direction of slip of every element (0: sticking), the last b and the last position.
    """
    return np.concatenate([np.zeros(2 * elements), [1.0, position]])


def rate_slip(
    path: Array, level: Array, limits: Array, rate: float, state: Array, *, backlash: Array | None = None
) -> tuple[Array, Array]:
    """Return the relative forces ``u_i = F_i / W_i`` of rate-dependent elements along a path.

    Stick: ``δ_i = b D_i u_i`` follows the path until |u_i| reaches h(ω). Slip: ``du_i/dt = c (sgn ω - u_i / h(ω))``,
    stepped exactly, until ω changes its sign. With h = 1 these are the elements of `slip_elements`.

    Args:
        path: Positions θ (samples,) rad.
        level: h(ω) (samples,), dry friction in steady sliding relative to F_C (`steady_level`).
        limits: D_i (elements,) rad, at b = 1.
        rate: c times the sampling period.
        state: From `rate_slip_state` or an earlier call; it is not changed.
        backlash: b(θ) along the path (samples,); None for 1.

    Returns:
        u_i, shape (samples, elements), and the state after the last sample.

    """
    out, state, count = np.empty((len(path), len(limits))), state.copy(), len(limits)
    if (kernel := native()) is not None:
        kernel.rate_slip(flat(path), flat(level), optional(backlash), flat(limits), rate, state, out)
        return out, state
    u, slipping, (last_b, last) = state[:count], state[count:-2], state[-2:]
    for k, (position, h, b) in enumerate(zip(path, level, along_path(path, backlash), strict=True)):
        side, stuck = np.sign(position - last), (u * last_b + (position - last) / limits) / b
        slides = (slipping != 0.0) & (slipping == side)
        reached = (side != 0.0) & (side * stuck >= h)
        slipped = side * h + (u - side * h) * np.exp(-rate / h)
        u = np.where(slides, slipped, np.where(reached, side * h, stuck))
        slipping = np.where(slides | reached, side, 0.0) if side != 0.0 else slipping
        last_b, last, out[k] = b, position, u
    return out, np.concatenate([u, slipping, [last_b, last]])
