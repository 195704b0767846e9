"""How far straight pieces are from each other."""

from __future__ import annotations

import numpy as np

from jointwise.spatial import Array

PARALLEL = 1e-12
"""Squared sine below which two pieces count as parallel."""
SMALLEST = 1e-30
"""Squared length (m²) below which a piece is a point."""


def segment_distance(a: Array, b: Array, c: Array, d: Array) -> Array:
    """Return the least distance (...,) of the pieces a b and c d, their ends (..., 3), all in m.

    ``|a + s (b - a) - c - t (d - c)|`` is least at the s of the two lines, brought into [0, 1], the t that suits it,
    brought into [0, 1], and the s that suits that. Pieces may be points.
    """
    u, v, w = b - a, d - c, a - c
    uu, vv, uv, uw, vw = _dot(u, u), _dot(v, v), _dot(u, v), _dot(u, w), _dot(v, w)
    sine2 = uu * vv - uv**2
    crossed = sine2 > PARALLEL * uu * vv
    s = np.where(crossed, np.clip((uv * vw - uw * vv) / np.where(crossed, sine2, 1.0), 0.0, 1.0), 0.0)
    t = np.clip((uv * s + vw) / np.maximum(vv, SMALLEST), 0.0, 1.0)
    s = np.clip((uv * t - uw) / np.maximum(uu, SMALLEST), 0.0, 1.0)
    between = w + s[..., None] * u - t[..., None] * v
    distance: Array = np.sqrt(_dot(between, between))
    return distance


def _dot(x: Array, y: Array) -> Array:
    """Return the scalar products (...,) of vectors (..., 3); twice as fast as a sum over the last axis."""
    product: Array = x[..., 0] * y[..., 0] + x[..., 1] * y[..., 1] + x[..., 2] * y[..., 2]
    return product
