"""The LuGre model: the mean deflection of bristles, friction with memory and rate.

``dz/dt = ω - s0 |ω| z / g(ω)`` with g = F_C h(ω). In the relative deflection ``u = s0 z / F_C`` and the bristle length
``D = F_C / s0`` (rad) this is ``du = (dθ - |dθ| u / h) / D``. A backlash map b(θ), relative to its mean, scales the
length as it scales the limits of slip elements: ``du = (dθ - |dθ| u / h) / (b(θ) D)``. The state is the relative
deflection, so that steady sliding gives u = ±h(ω) whatever b does, as slip elements do.

Reference: C. Canudas de Wit, H. Olsson, K. J. Åström and P. Lischinsky, "A new model for control of systems with
friction", IEEE Trans. Automatic Control 40(3), 1995.
"""

from __future__ import annotations

import math

import numpy as np

from jointwise.backend import native
from jointwise.spatial import Array


def lugre_state(position: float) -> Array:
    """Return the state of relaxed bristles at a position (rad): u and the last position, (2,)."""
    return np.array([0.0, position])


def lugre_deflection(
    path: Array, level: Array, length: float, state: Array, *, backlash: Array | None = None
) -> tuple[Array, Array]:
    """Return the relative deflection u along a path, exact over the displacement of a sample.

    Args:
        path: Positions θ (samples,) rad.
        level: h(ω) (samples,), dry friction in steady sliding relative to F_C (`steady_level`).
        length: D = F_C / s0, rad.
        state: From `lugre_state` or an earlier call; it is not changed.
        backlash: b(θ) along the path (samples,), relative to its mean; None for 1.

    Returns:
        u (samples,) and the state after the last sample.

    """
    out, state = np.empty(len(path)), state.copy()
    lengths = length * level if backlash is None else length * backlash * level
    if (kernel := native()) is not None:
        flat = [np.ascontiguousarray(values, dtype=np.float64) for values in (path, level, lengths)]
        kernel.lugre(*flat, state, out)
        return out, state
    u, last = state
    for k, position in enumerate(path):
        move, last = position - last, position
        target = math.copysign(level[k], move)
        u = target + (u - target) * math.exp(-abs(move) / lengths[k])
        out[k] = u
    return out, np.array([u, last])
