"""Generalised Maxwell-Slip (GMS): parallel spring-slip elements, friction with memory.

An element is a spring of the deformation δ_i (rad) that slips at its limit D_i. A position-dependent backlash map b(θ),
relative to its mean over a turn, scales the limits, and the output is relative to the scaled limit:

    s = λ δ_i[k-1] + θ[k] - θ[k-1]
    δ_i[k] = sgn(s) min(|s|, b(θ[k]) D_i)
    u_i[k] = δ_i[k] / (b(θ[k]) D_i)

so that a slipping element has u_i = ±1 whatever b does. ``H = Σ_i W_i u_i`` with shares W_i of sum one replaces sgn(ω).

The functions evaluate the native kernels (slip.h) or, without them, the NumPy code beside them.

References: F. Al-Bender, V. Lampaert and J. Swevers, "The generalized Maxwell-slip model: a novel model for friction
simulation and compensation", IEEE Trans. Automatic Control 50(11), 2005; J. Swevers, F. Al-Bender, C. G. Ganseman and
T. Prajogo, "An integrated friction model structure with improved presliding behavior for accurate friction
compensation", IEEE Trans. Automatic Control 45(4), 2000.
"""

from __future__ import annotations

import numpy as np

from jointwise.backend import native
from jointwise.spatial import Array

# -- pre-assigned elements -------------------------------------------------------------------------------------------


def linear_limits(elements: int, scale: float) -> Array:
    """Return the limits ``D_i = B i / M``, (elements,) rad, of a scale B (rad)."""
    return scale * np.arange(1, elements + 1) / elements


def polynomial_limits(elements: int, scale: float, power: float = 4.0) -> Array:
    """Return deformation limits that lie close together near zero, ``D_i = B (i / M)^r``, (elements,), rad.

    Args:
        elements: M.
        scale: B, rad.
        power: r.
    """
    result: Array = scale * (np.arange(1, elements + 1) / elements) ** power
    return result


def geometric_limits(elements: int, smallest: float, largest: float) -> Array:
    """Return limits (elements,) rad in equal ratios from the smallest to the largest."""
    return np.geomspace(smallest, largest, elements)


def polynomial_shares(elements: int, power: float = 2.0) -> Array:
    """Return the shares ``W_i = (M + 1 - i)^r / Σ_i i^r``, (elements,), of sum one."""
    shares = np.arange(elements, 0, -1.0) ** power
    result: Array = shares / shares.sum()
    return result


# -- rate-independent elements ---------------------------------------------------------------------------------------


def slip_state(position: float, elements: int) -> Array:
    """Return the state of relaxed elements at a position (rad): δ_i and the last position, (elements + 1,)."""
    return np.append(np.zeros(elements), position)


def slip_elements(
    path: Array, limits: Array, state: Array, *, backlash: Array | None = None, decay: float = 1.0
) -> tuple[Array, Array]:
    """Return the relative deformations of slip elements along a path.

    Args:
        path: Positions θ (samples,) rad.
        limits: D_i (elements,) rad, at b = 1.
        state: From `slip_state`, or from the call for the samples before; it is not changed.
        backlash: b(θ) along the path (samples,), relative to its mean; None for 1.
        decay: λ in (0, 1], the fraction of a deformation that remains after one sample (1: no relaxation).

    Returns:
        u_i in [-1, 1], shape (samples, elements), and the state after the last sample.

    """
    out, state = np.empty((len(path), len(limits))), state.copy()
    if (kernel := native()) is not None:
        kernel.slip(_flat(path), _optional(backlash), _flat(limits), decay, state, out, None)
        return out, state
    delta, last = state[:-1], state[-1]
    for k, (position, b) in enumerate(zip(path, _along(path, backlash), strict=True)):
        limit = b * limits
        delta, last = np.clip(decay * delta + (position - last), -limit, limit), position
        out[k] = delta / limit
    return out, np.append(delta, last)


def slip_after_reversal(travel: Array, limits: Array) -> Array:
    """Return ``u_i = clip(s / D_i - 1, -1, 1)`` after a travel s since a reversal from full slip.

    Args:
        travel: s (points,) rad.
        limits: D_i (elements,) rad.

    Returns:
        u_i in the new direction, shape (points, elements): from -1 to 1 over a travel of 2 D_i.

    """
    result: Array = np.clip(travel[:, None] / limits - 1.0, -1.0, 1.0)
    return result


def slip_slope_state(position: float, elements: int) -> Array:
    """Return the state of relaxed elements for `slip_slopes`: δ_i, ∂δ_i/∂D_i and the last position, (2 M + 1,)."""
    return np.append(np.zeros(2 * elements), position)


def slip_slopes(
    path: Array, limits: Array, state: Array, *, backlash: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return u_i as `slip_elements` does, ∂u_i/∂ln D_i, (samples, elements) each, and the state after the last sample.

    ∂δ_i/∂D_i is ±b at the last slip of an element and stays while it sticks.
    """
    (out, slopes), state, count = np.empty((2, len(path), len(limits))), state.copy(), len(limits)
    if (kernel := native()) is not None:
        kernel.slip(_flat(path), _optional(backlash), _flat(limits), 1.0, state, out, slopes)
        return out, slopes, state
    delta, side, last = state[:count], state[count:-1], state[-1]
    for k, (position, b) in enumerate(zip(path, _along(path, backlash), strict=True)):
        limit, s, last = b * limits, delta + (position - last), position
        side = np.where(s > limit, b, np.where(s < -limit, -b, side))
        delta = np.clip(s, -limit, limit)
        out[k] = delta / limit
        slopes[k] = side / b - out[k]
    return out, slopes, np.concatenate([delta, side, [last]])


# -- rate-dependent elements -----------------------------------------------------------------------------------------


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
        kernel.rate_slip(_flat(path), _flat(level), _optional(backlash), _flat(limits), rate, state, out)
        return out, state
    u, slipping, (last_b, last) = state[:count], state[count:-2], state[-2:]
    for k, (position, h, b) in enumerate(zip(path, level, _along(path, backlash), strict=True)):
        side, stuck = np.sign(position - last), (u * last_b + (position - last) / limits) / b
        slides = (slipping != 0.0) & (slipping == side)
        reached = (side != 0.0) & (side * stuck >= h)
        slipped = side * h + (u - side * h) * np.exp(-rate / h)
        u = np.where(slides, slipped, np.where(reached, side * h, stuck))
        slipping = np.where(slides | reached, side, 0.0) if side != 0.0 else slipping
        last_b, last, out[k] = b, position, u
    return out, np.concatenate([u, slipping, [last_b, last]])


def _along(path: Array, backlash: Array | None) -> Array:
    return np.ones(len(path)) if backlash is None else backlash


def _flat(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def _optional(values: Array | None) -> Array | None:
    return None if values is None else _flat(values)
