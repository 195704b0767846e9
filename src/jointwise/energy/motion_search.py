"""Search for the motion with the least electrical energy: variables, value, exact gradient, and iterations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from jointwise.design.excitation_limits import USED, ExcitationLimits
from jointwise.design.search_journal import Step
from jointwise.design.trajectory import Differentiable, States, succession
from jointwise.energy.motion_power import MotionPower
from jointwise.energy.motion_space import FreeLeg, Leg
from jointwise.spatial import Array

GAP = 1e-6
"""Distance (rad, m) between the end of a leg and the start of the next that is rounding."""

TOLERANCE = 1e-8
"""Relative decrease of the value in an iteration at which the search ends."""


@dataclass(frozen=True, eq=False)
class MotionSearch:
    """Variables of all legs, the shares of the legs in the duration, and the logarithm of the duration (s).

    The value is the energy from the bus relative to `scale` (J), plus a penalty of the limits. Samples are Gauss points
    of the splines, so that the integral over a leg is ``T Σ w P``.

    Attributes:
        power: Torque and power of motions.
        limits: Limits of position, speed, acceleration, torque and clearance.
        legs: Legs of the motion.
        shortest: Shortest duration, s.
        longest: Longest duration, s; the same for a fixed one.
        power_limit: Largest power on the bus, W; infinite for none.
        scale: Energy by which the value is divided, J.

    """

    power: MotionPower
    limits: ExcitationLimits
    legs: tuple[Leg, ...]
    shortest: float
    longest: float
    power_limit: float
    scale: float

    @cached_property
    def _slices(self) -> list[slice]:
        edges = np.concatenate([[0], np.cumsum([leg.size for leg in self.legs])])
        return [slice(int(a), int(b)) for a, b in pairwise(edges)]

    def pack(self, variables: list[Array], durations: Array) -> Array:
        """Return the variables of all legs with their durations (legs,), s, as one array."""
        shares = np.log(durations / durations[0])[1:]
        return np.concatenate([*variables, shares, [np.log(durations.sum())]])

    def durations(self, x: Array) -> Array:
        """Return the durations of the legs (legs,), s."""
        shares = np.exp(np.concatenate([[0.0], x[self._slices[-1].stop : -1]]))
        result: Array = np.exp(x[-1]) * shares / shares.sum()
        return result

    def motion(self, x: Array) -> Differentiable:
        """Return the motion of variables."""
        parts = [
            leg.trajectory(x[rows], float(T))
            for leg, rows, T in zip(self.legs, self._slices, self.durations(x), strict=True)
        ]
        return parts[0] if len(parts) == 1 else succession(parts, gap=GAP)

    def value(self, x: Array, weight: float) -> tuple[float, Array]:
        """Return energy over `scale` plus `weight` times the penalty, and the gradient."""
        durations = self.durations(x)
        rows = [leg.motion(x[part]) for leg, part in zip(self.legs, self._slices, strict=True)]
        q, first, second = (np.concatenate(each) for each in zip(*rows, strict=True))
        T = np.repeat(durations, self._counts)[:, None]
        qd, qdd = first / T, second / T**2
        at = self.power.evaluate(q, qd, qdd)
        w = self._weights * T[:, 0] / self.scale
        value, by_power, by_motion, by_torque = self._penalty(States(self._weights, q, qd, qdd), at.torque, at.power)
        exact = self.power.gradient(q, qd, qdd, at, w + weight * by_power, weight * by_torque)
        by = [e + weight * p for e, p in zip(exact, by_motion, strict=True)]
        by_length = w * at.power - (by[1] * qd + 2.0 * by[2] * qdd).sum(axis=1)
        gradient = self._gradient(x, durations, (by[0], by[1] / T, by[2] / T**2), by_length)
        return float(w @ at.power) + weight * value, gradient

    def _gradient(self, x: Array, durations: Array, by: tuple[Array, Array, Array], by_length: Array) -> Array:
        """Return the gradient; `by_length` (samples,) is that with respect to the logarithm of the leg's duration."""
        parts, lengths, first = [], np.empty(len(self.legs)), 0
        for k, (leg, part, count) in enumerate(zip(self.legs, self._slices, self._counts, strict=True)):
            rows = slice(first, first + count)
            parts.append(leg.gradient(x[part], by[0][rows], by[1][rows], by[2][rows]))
            lengths[k] = by_length[rows].sum()
            first += count
        shares = durations / durations.sum()
        by_shares = lengths - shares * lengths.sum()
        return np.concatenate([*parts, by_shares[1:], [lengths.sum()]])

    def _penalty(self, states: States, torque: Array, power: Array) -> tuple[float, Array, list[Array], Array]:
        """Return the penalty and its gradient with respect to powers, q, q̇, q̈ and torques."""
        total, by = self.limits.excess(states, torque)
        if self._free:  # a fixed path is as clear as it is, however it is timed
            close, slope = self.limits.closeness(states.q)
            total, by[0] = total + close, by[0] + slope
        over = np.maximum(power / self.power_limit - USED, 0.0)
        total += float(np.square(over).sum())
        return total, 2.0 * over / self.power_limit, by[:3], by[3]

    @cached_property
    def _free(self) -> bool:
        return any(isinstance(leg, FreeLeg) for leg in self.legs)

    @cached_property
    def _counts(self) -> list[int]:
        return [len(leg.spline.quadrature[0]) for leg in self.legs]

    @cached_property
    def _weights(self) -> Array:
        return np.concatenate([leg.spline.quadrature[1] for leg in self.legs])

    def improve(self, x: Array, weight: float, iterations: int) -> Step:
        """Return the result of some iterations of L-BFGS within the bounds of the duration."""
        from scipy.optimize import minimize

        bounds = [(None, None)] * (len(x) - 1) + [(np.log(self.shortest), np.log(self.longest))]
        result = minimize(
            self.value, x, args=(weight,), jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": iterations, "maxcor": 30, "ftol": TOLERANCE},
        )  # fmt: skip
        return Step(float(result.fun), result.x.tolist())
