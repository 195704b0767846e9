"""The smooth motion behind positions that were rounded or measured: a spline with the fewest knots that do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointwise.data.statistics import quantum
from jointwise.simulation.references.bspline import DEGREE
from jointwise.spatial import Array

ORDER = 10
"""Order of the differences that tell noise from motion: what moves slowly vanishes in them."""
SLOWEST_RATE = 100.0
"""Least rate (Hz) at which these differences count; below, only rounding does."""
NEGLIGIBLE = 1e-11
"""Noise (rad, m) that is no more than the rounding of the computer."""
CHANCE = 3.0
"""Standard deviations by which the residual of a span may exceed the noise before the span is cut in two."""
LONGEST = 128
"""Samples between two knots at first."""


def noise_of(t: Array, q: Array) -> Array:
    """Return the noise (joints,) of positions q (samples, joints) at times t (samples,), rms, in the unit of q.

    It is what divided differences of order 10 leave, of the samples at which they leave anything: ``1.48 median |Σ w q|
    / √(Σ w²)`` with ``w_i = 1 / Π_{k≠i} (t_i - t_k)``. On a slow clock they see the motion too; there it is at most
    half a step of the rounding.
    """
    if len(t) <= ORDER:
        return np.zeros(q.shape[1])
    windows = np.lib.stride_tricks.sliding_window_view(t, ORDER + 1)
    period = float(np.median(np.diff(t)))
    weights = np.stack([1.0 / _distances(windows, i, ORDER * period) for i in range(ORDER + 1)])
    weights /= np.sqrt(np.square(weights).sum(axis=0))
    count = len(t) - ORDER
    left = sum(weights[i][:, None] * (q[i : i + count] - q[:count]) for i in range(ORDER + 1))
    noise = np.array([_typical(np.abs(column)) for column in np.asarray(left).T])
    return noise if period * SLOWEST_RATE <= 1.0 else np.minimum(noise, 0.5 * quantum(q))


def _distances(windows: Array, own: int, unit: float) -> Array:
    """Return Π (t_own - t_k) over the other times of each window (windows, times), in a unit (s) that suits floats."""
    others = np.delete(windows, own, axis=1)
    product: Array = np.prod((windows[:, own, None] - others) / unit, axis=1)
    return product


def _typical(left: Array) -> float:
    """Return the rms of normal numbers whose sizes are `left`, from their median; rests, which leave none, are out."""
    some = left[left > NEGLIGIBLE]
    return 1.4826 * float(np.median(some)) if len(some) else 0.0


def smooth_spline(t: Array, q: Array, noise: Array) -> tuple[Array, Array]:
    """Return knots and control points of the quintic spline with few knots that leaves no more than the noise.

    It starts and ends at rest. Spans between knots are halved as long as the mean square that they
    leave of their m positions q (samples, joints) is more than chance: ``noise² (1 + 3 √(2/m))``, `noise` (joints,).
    """
    places = np.unique(np.linspace(0, len(t) - 1, max(2, (len(t) - 1) // LONGEST + 1)).astype(np.intp))
    allowed = np.square(np.maximum(noise, NEGLIGIBLE))
    while True:
        knots, control, residual = _fitted(t, q, places)
        m = np.diff(places)[:, None]
        squares = np.add.reduceat(np.square(residual[:-1]), places[:-1]) / m
        cut = (squares > allowed * (1.0 + CHANCE * np.sqrt(2.0 / m))).any(axis=1) & (m[:, 0] > 1)
        if not cut.any():
            return knots, control
        places = np.sort(np.append(places, (places[:-1] + places[1:])[cut] // 2))


def _fitted(t: Array, q: Array, places: NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """Return knots at some samples, control points and residual of the spline nearest to q, at rest at both ends.

    The first three control points are the same, and the last three: speed and acceleration vanish there.
    """
    from scipy.interpolate import BSpline
    from scipy.linalg import solveh_banded
    from scipy.sparse import csr_array

    knots = np.concatenate([np.full(DEGREE, t[0]), t[places], np.full(DEGREE, t[-1])])
    count = len(knots) - DEGREE - 1
    own = np.clip(np.arange(count) - 2, 0, count - 5)
    ends = csr_array((np.ones(count), (np.arange(count), own)))
    basis = BSpline.design_matrix(t, knots, DEGREE) @ ends
    normal = basis.T @ basis
    band = np.array([np.pad(normal.diagonal(k), (0, k)) for k in range(min(DEGREE + 1, count - 4))])
    control = solveh_banded(band, basis.T @ q, lower=True)
    return knots, control[own], q - basis @ control
