"""Fusion of several estimates of one torque by their inverse variances, which come from their differences.

With independent errors of variance v_i, the mean squares of the differences are ``d_ij = v_i + v_j``. Three estimates
determine all of them (the three-cornered hat), ``v_i = (d_ij + d_ik - d_jk) / 2``; more do so by least squares. The
fused torque is ``Σ τ_i / v_i / Σ 1 / v_i`` with the variance ``1 / Σ 1 / v_i``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointwise.backend import native
from jointwise.data.filters import leaky_sum
from jointwise.errors import ModelError, ShapeError
from jointwise.runtime.motion import checked_rate
from jointwise.spatial import Array

MEMORY = 5.0
"""Time (s) over which differences are averaged: several moves of an arm."""
LEAST_SHARE = 1e-3
"""Smallest variance as a share of the largest: no estimate is trusted without limit."""
MOST_NATIVE = 16
"""Estimates that the native kernel fuses."""
SETTLING = 0.1
"""Time (s) of differences from which on variances are used; before, all estimates count alike."""


def fuse(estimates: Array, variances: Array) -> tuple[Array, Array]:
    """Return the inverse-variance mean and its variance.

    Args:
        estimates: Estimates (..., count), NaN where one is missing.
        variances: Their variances (..., count) > 0.

    Returns:
        Fused value and variance (...,); NaN and infinite where no estimate is there.

    """
    known = np.isfinite(estimates)
    weights = np.where(known, 1.0 / np.asarray(variances, dtype=np.float64), 0.0)
    total = weights.sum(axis=-1)
    there = total > 0.0
    value = (weights * np.where(known, estimates, 0.0)).sum(axis=-1) / np.where(there, total, 1.0)
    return np.where(there, value, np.nan), np.where(there, 1.0 / np.where(there, total, 1.0), np.inf)


@dataclass(frozen=True, eq=False)
class FusionState:
    """Sums by pair of estimates, (pairs,) each, that decay with time.

    Attributes:
        squares: Sum of the squared averages of the differences, Nm².
        weights: Its weights, samples.
        averages: Sum of the differences, Nm.
        counts: Its weights, samples.
    """

    squares: Array
    weights: Array
    averages: Array
    counts: Array


class FusedTorque(NamedTuple):
    """A fused torque with its variance, without the axis of samples for one sample.

    Attributes:
        torque: Fused torque, (samples,), Nm.
        variance: Its variance, (samples,), Nm².
        variances: Variances of the estimates, (samples, estimates), Nm².
    """

    torque: Array
    variance: Array
    variances: Array


@dataclass(frozen=True)
class TorqueFusion:
    """Fusion of `count` estimates of a torque at a sampling `rate` (Hz).

    Attributes:
        count: Number of estimates.
        rate: Sampling rate, Hz.
        variances: Known variances, Nm²; () estimates them from the differences (3 estimates or more).
        memory: Time over which squared differences are averaged, s.
        averaging: Time over which differences are averaged before they are squared, s: noise that an application
            averages out anyway then does not count, errors that last do. 0: every difference counts.

    """

    count: int
    rate: float
    variances: tuple[float, ...] = ()
    memory: float = MEMORY
    averaging: float = 0.0

    def __post_init__(self) -> None:
        """Reject settings that determine no variances."""
        checked_rate(self.rate)
        if not (math.isfinite(self.memory) and self.memory > 0.0):
            raise ModelError(f"memory must be > 0 s. Got {self.memory} instead.")
        if not self.variances and self.count < 3:
            raise ModelError(
                "variances of fewer than 3 estimates must be given: differences do not determine them. Got "
                f"{self.count} estimates."
            )
        if self.variances and (len(self.variances) != self.count or not all(v > 0.0 for v in self.variances)):
            raise ModelError(f"variances must be {self.count} numbers > 0. Got {self.variances} instead.")

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of estimates, in the order of the state."""
        return list(combinations(range(self.count), 2))

    def init(self) -> FusionState:
        """Return the state before the first sample."""
        return FusionState(*np.zeros((4, len(self.pairs))))

    def step(self, state: FusionState, estimates: Sequence[float] | Array) -> tuple[FusedTorque, FusionState]:
        """Return the fusion of one sample, estimates (count,), and the state after it."""
        fused, state = self.steps(state, np.asarray(estimates, dtype=np.float64)[None])
        return FusedTorque(*(part[0] for part in fused)), state

    def steps(self, state: FusionState, estimates: Array) -> tuple[FusedTorque, FusionState]:
        """Return the fusion of consecutive samples, estimates (samples, count), and the state after the last.

        A sample uses the variances of the samples before it. NaN marks an estimate that is missing.
        """
        values = np.asarray(estimates, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != self.count:
            raise ShapeError(f"estimates must be (samples, {self.count}). Got {values.shape} instead.")
        if self.variances:
            variances = np.broadcast_to(np.array(self.variances), values.shape)
            return FusedTorque(*fuse(values, variances), variances), state
        if (kernel := native()) is None or self.count > MOST_NATIVE:
            sums, weights, after = self._sums(state, values)
            variances = self._solved(sums, weights)
            return FusedTorque(*fuse(values, variances), variances), after
        rows = np.ascontiguousarray(values)
        numbers = np.array([state.squares, state.weights, state.averages, state.counts])
        variances, fused = np.empty(rows.shape), np.empty((len(rows), 2))
        options = np.array([*self.decays, SETTLING * self.rate, LEAST_SHARE])
        kernel.fusion_steps(options, self._solution, numbers, rows, fused, variances)
        return FusedTorque(fused[:, 0], fused[:, 1], variances), FusionState(*numbers)

    def observe(self, state: FusionState, estimates: Array) -> FusionState:
        """Return the state after consecutive samples, as `steps` does, without fusing them."""
        return state if self.variances else self._sums(state, estimates)[2]

    def variances_of(self, state: FusionState) -> Array:
        """Return the variances (count,) of the next sample, Nm²."""
        if self.variances:
            return np.array(self.variances)
        result: Array = self._solved(state.squares[None], state.weights[None])[0]
        return result

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Indices of the first and of the second estimate of every pair, (pairs,) each."""
        first, second = np.array(self.pairs).T
        return first, second

    @cached_property
    def _solution(self) -> Array:
        """Matrix (pairs, count) from mean squared differences to variances, by least squares."""
        design = np.zeros((len(self.pairs), self.count))
        for row, pair in zip(design, self.pairs, strict=True):
            row[list(pair)] = 1.0
        result: Array = np.ascontiguousarray(np.linalg.pinv(design).T, dtype=np.float64)
        return result

    @property
    def decays(self) -> tuple[float, float]:
        """Shares of the sums of squares and of the averaged differences that remain after a sample."""
        short = math.exp(-1.0 / (self.averaging * self.rate)) if self.averaging > 0.0 else 0.0
        return math.exp(-1.0 / (self.memory * self.rate)), short

    def _sums(self, state: FusionState, values: Array) -> tuple[Array, Array, FusionState]:
        """Return the sums before every sample, (samples, pairs) each, and the state after the last."""
        first, second = self._ends
        differences = values[:, first] - values[:, second]
        known = np.isfinite(differences)
        decay, short = self.decays
        totals, counts = _decaying(np.where(known, differences, 0.0), known, state.averages, state.counts, short)
        means = totals[1:] / np.maximum(counts[1:], 1e-300)
        sums, weights = _decaying(np.where(known, np.square(means), 0.0), known, state.squares, state.weights, decay)
        return sums[:-1], weights[:-1], FusionState(sums[-1], weights[-1], totals[-1], counts[-1])

    def _solved(self, sums: Array, weights: Array) -> Array:
        """Return variances (samples, count) from mean squared differences; ones before they have settled."""
        variances = (sums / np.maximum(weights, 1.0)) @ self._solution
        variances = np.maximum(variances, LEAST_SHARE * variances.max(axis=1, keepdims=True))
        settled = (weights.min(axis=1) >= SETTLING * self.rate) & (variances.min(axis=1) > 0.0)
        return np.where(settled[:, None], variances, 1.0)


def _decaying(
    values: Array, known: NDArray[np.bool_], sums: Array, weights: Array, decay: float
) -> tuple[Array, Array]:
    """Return sums ``s[k] = decay s[k-1] + x[k]`` of values and of flags, (samples + 1, columns) each.

    The first rows are the states `sums` and `weights`, (columns,).
    """
    columns = len(sums)
    table = np.empty((len(values) + 1, 2 * columns))
    table[0, :columns], table[0, columns:] = sums, weights
    table[1:, :columns], table[1:, columns:] = values, known
    table = leaky_sum(table, decay)
    return table[:, :columns], table[:, columns:]
