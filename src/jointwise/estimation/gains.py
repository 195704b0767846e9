"""Drive gains from the data: how many Nm an ampere is worth at each joint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from jointwise.estimation.coupled import Layout, stacked
from jointwise.estimation.factors import Index, JointFactors
from jointwise.estimation.solve import bounded_least_squares, triangle
from jointwise.spatial import Array

ALIKE = 0.01
"""Weight of the belief that joints of one arm have gains of one size: decides where a joint carries next to nothing."""


def relative_gains(factors: Sequence[JointFactors], layout: Layout, known: Array) -> Array:
    """Return gains (joints,) with the unknown ones (NaN in `known`) estimated.

    Bodies push on several joints at once, so one set of base parameters must explain them all: this fixes the ratios
    between the gains. Where none is known, the mean of their logarithms is zero: the scale is the caller's. The error
    of joint j is measured in units of its own output, so a gain cannot shrink it.
    """
    merged = [own.merged() for own in factors]
    spread = np.sqrt([own.variance for own in factors])
    unknown = np.flatnonzero(np.isnan(known))

    def gains_of(logarithms: Array) -> Array:
        gains = known.copy()
        gains[unknown] = np.exp(logarithms if len(unknown) < len(known) else logarithms - logarithms.mean())
        return gains

    def misfit(logarithms: Array) -> float:
        gains = gains_of(logarithms)
        rows = [_outputs_times(R, gain) for R, gain in zip(merged, gains, strict=True)]
        R = triangle(stacked(rows, layout, gains * spread))
        x = bounded_least_squares(R, np.zeros(layout.count, dtype=bool))
        residual = R[:, :-1] @ x - R[:, -1]
        scatter = np.log(gains) - np.log(gains).mean()
        return float(np.log(residual @ residual) + ALIKE * scatter @ scatter)

    if unknown.size == 0 or (unknown.size == 1 and len(known) == 1):
        return gains_of(np.zeros(unknown.size))
    start = np.full(unknown.size, 0.0 if np.isnan(known).all() else float(np.log(np.nanmean(known))))
    found = minimize(misfit, start, method="BFGS", options={"gtol": 1e-4, "maxiter": 40})
    return gains_of(found.x)


def gain_scale(rigid: Sequence[Array], places: Sequence[Index], values: Array, nominal: Array) -> float:
    """Return the factor that brings identified base parameters to the nominal bodies: least squares of load torques.

    `rigid` are factors of the rigid columns of each joint, `places` their base parameters; 1 where the nominal bodies
    are unknown (all zero).
    """
    cross = size = 0.0
    for R, which in zip(rigid, places, strict=True):
        own, wanted = R @ values[which], R @ nominal[which]
        cross += float(own @ wanted)
        size += float(own @ own)
    return cross / size if size > 0.0 and cross > 0.0 else 1.0


def _outputs_times(R: Array, gain: float) -> Array:
    scaled = R.copy()
    scaled[:, -1] *= gain
    return scaled
