"""Recursive least squares: parameters of ``y = ψᵀ a`` sample by sample, with six ways to forget.

With the error ``ε = y - ψᵀ a`` before the update, ``r = ψᵀ P ψ`` and the weight w of a sample (1 / its variance; ψ and
y are multiplied by √w below):

    a += P ψ ε / (λ + r)
    P  = (P - P ψ ψᵀ P / (λ + r)) / λ + Δ          plain, exponential, reset, on-off
    P -= P ψ ψᵀ P β / (1 + β r), then + Δ          directional: β = μ - (1 - μ) / r, λ = 1 in the gain

- ``plain``: λ = 1, all samples count alike.
- ``exponential``: λ = memory; a sample k steps old counts λ^k.
- ``reset``: plain, and P returns to P(0) after every `period` samples.
- ``on-off``: λ = memory while ``ψᵀ P(0) ψ ≥ threshold``, else 1: nothing is forgotten without excitation.
- ``directional``: μ = memory; only what the present ψ measures is forgotten. Since ``1 + β r = μ (1 + r) > 0`` the
  update is never singular.
- ``directional-floor``: directional with the increment Δ = diag(floor), which keeps P above a floor, so that the
  estimate never becomes insensitive.

**Digits.** P is updated by differences. With a prior that is a million times wider than the noise of a sample,
``ψᵀ P(0) ψ = 1e12``, values differ from those of least squares on all rows by less than 0.3 of their standard error;
with 1e10, by less than 0.005. Beyond 1e13 rounding makes P indefinite. Where ``ψᵀ P ψ`` shows it by its sign, P starts
at P(0) again. Such a prior says no more than one of 1e10: it should be chosen narrower.

P is relative to the variance of the noise of a sample of weight 1 (`RecursiveState.noise`) and never exceeds P(0) on
its diagonal, so that nothing grows without bound. A sample of weight 0 changes nothing; one that is not finite is
counted and changes nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from jointwise.backend import native
from jointwise.call_settings import Variant
from jointwise.errors import EstimationError, ShapeError
from jointwise.spatial import Array

VARIANTS: tuple[Variant, ...] = get_args(Variant)
MOST_PARAMETERS = 32
"""Most parameters of the native kernel, which keeps P on the stack."""
_KINDS = {"plain": 0, "exponential": 1, "reset": 2, "on-off": 3, "directional": 4, "directional-floor": 4}


@dataclass(frozen=True)
class RecursiveState:
    """State of an estimate between samples.

    Attributes:
        values: a, (n,).
        covariance: P, (n, n), relative to the variance of the noise.
        squares: Sum of ``w ε² / (1 + r)``, with the memory of the variant.
        freedom: Its degrees of freedom: the samples after the first n, which determine the values.
        used: Samples that changed the estimate.
        rejected: Samples that were not finite.
        since_reset: Samples since P was P(0) (variant "reset").

    """

    values: Array
    covariance: Array
    squares: float = 0.0
    freedom: float = 0.0
    used: int = 0
    rejected: int = 0
    since_reset: int = 0

    @property
    def noise(self) -> float:
        """Variance of the noise of a sample of weight 1; infinite before the first sample beyond the parameters."""
        return self.squares / self.freedom if self.freedom >= 1.0 else math.inf

    @property
    def standard_errors(self) -> Array:
        """Standard errors of the values for white noise, ``√(σ² P_ii)``, (n,)."""
        return np.sqrt(self.noise * np.diag(self.covariance))

    @property
    def numbers(self) -> Array:
        """The state as the native kernel stores it, (n + n² + 5,)."""
        rest = (self.squares, self.freedom, self.used, self.rejected, self.since_reset)
        return np.concatenate([self.values, self.covariance.ravel(), np.array(rest, dtype=np.float64)])

    @classmethod
    def of(cls, numbers: Array, n: int) -> RecursiveState:
        """Return the state of `numbers` with n parameters; values and covariance are views."""
        squares, freedom, used, rejected, since = numbers[n + n * n :].tolist()
        covariance = numbers[n : n + n * n].reshape(n, n)
        return cls(numbers[:n], covariance, squares, freedom, int(used), int(rejected), int(since))


@dataclass(frozen=True)
class RecursiveLeastSquares:
    """A recursive least-squares estimator; `init` and `step` sample by sample, or `run` over many samples.

    Attributes:
        prior: Diagonal of P(0), (n,): squares of the expected sizes of the values over the variance of the noise.
        variant: How old samples are forgotten; see the module.
        memory: λ or μ in (0, 1], the share of a sample that remains after one more.
        floor: Diagonal of Δ of "directional-floor", one number or (n,), in the units of P.
        threshold: Excitation ``ψᵀ P(0) ψ`` from which "on-off" forgets.
        period: Samples between two resets of "reset".

    """

    prior: Array
    variant: Variant = "directional-floor"
    memory: float = 0.99995
    floor: float | Array = 0.1
    threshold: float = 1.0
    period: int = 10_000

    def __post_init__(self) -> None:
        """Convert to arrays; reject values that describe no estimator."""
        prior, floor = np.array(self.prior, dtype=np.float64), np.asarray(self.floor, dtype=np.float64)
        if prior.ndim != 1 or not 1 <= prior.size <= MOST_PARAMETERS or not (np.isfinite(prior) & (prior > 0.0)).all():
            raise EstimationError(f"prior must be 1 to {MOST_PARAMETERS} finite numbers > 0. Got {self.prior} instead.")
        self._check_scalars()
        if floor.shape not in ((), prior.shape) or not (np.isfinite(floor) & (floor >= 0.0)).all():
            raise EstimationError(f"floor must be finite and >= 0, one number or one each. Got {self.floor} instead.")
        object.__setattr__(self, "prior", prior)
        used = floor if self.variant == "directional-floor" else np.zeros(())
        object.__setattr__(self, "floor", np.ascontiguousarray(np.broadcast_to(used, prior.shape)))

    def _check_scalars(self) -> None:
        if self.variant not in VARIANTS:
            raise EstimationError(f"variant must be one of {', '.join(VARIANTS)}. Got '{self.variant}' instead.")
        if not 0.0 < self.memory <= 1.0:
            raise EstimationError(f"memory must be in (0, 1]. Got {self.memory} instead.")
        if not (math.isfinite(self.threshold) and self.threshold >= 0.0 and self.period >= 1):
            raise EstimationError(
                f"threshold must be >= 0 and period >= 1. Got {self.threshold}, {self.period} instead."
            )

    @property
    def count(self) -> int:
        """Number of parameters."""
        return len(self.prior)

    @property
    def options(self) -> tuple[int, float, float, float]:
        """Number of the variant, memory, threshold and period, as the native kernel reads them."""
        return _KINDS[self.variant], self.memory, self.threshold, float(self.period)

    def init(self, values: Array | None = None) -> RecursiveState:
        """Return the state before the first sample, from values a(0), (n,); None for 0."""
        start = np.zeros(self.count) if values is None else np.array(values, dtype=np.float64)
        if start.shape != (self.count,) or not np.isfinite(start).all():
            raise ShapeError(f"values must be {self.count} finite numbers. Got {values} instead.")
        return RecursiveState(start, np.diag(self.prior))

    def step(self, state: RecursiveState, row: Array, y: float, weight: float = 1.0) -> tuple[float, RecursiveState]:
        """Return the error before the update and the state after it (NumPy, the reference of `run`).

        Args:
            state: From `init` or the last step.
            row: ψ, (n,).
            y: Measurement.
            weight: 1 / variance relative to a sample of weight 1; 0 freezes the estimate.

        """
        row = np.asarray(row, dtype=np.float64)
        with np.errstate(all="ignore"):  # a sample that overflows is rejected below
            error = float(y - row @ state.values)
            if weight == 0.0:
                return error, state
            P, since, r = self._covariance_before(state, row)
            keep, scaled = self._forgetting(row), weight * r
            gain = P @ row
            values = state.values + weight * gain / (keep + scaled) * error
            shrink = weight * self._shrinkage(keep, scaled)
            P = self._capped((P - shrink * np.outer(gain, gain)) / keep + np.diag(self.floor))
            square = weight * np.square(error)
        if not (weight > 0.0 and all(np.isfinite(numbers).all() for numbers in (square, values, P))):
            return error, replace(state, rejected=state.rejected + 1)
        memory = self.memory if self._is_directional else keep
        squares = memory * state.squares + float(square) / (1.0 + scaled)
        freedom = memory * state.freedom + float(state.used >= self.count)
        return error, RecursiveState(values, P, squares, freedom, state.used + 1, state.rejected, since + 1)

    def run(
        self, state: RecursiveState, rows: Array, y: Array, weights: Array | None = None
    ) -> tuple[Array, Array, RecursiveState]:
        """Return errors (samples,), values after every sample (samples, n), and the state after the last.

        The native kernel computes the steps; without it NumPy does.

        Args:
            state: From `init` or the last call.
            rows: ψ of every sample, (samples, n).
            y: Measurements, (samples,).
            weights: 1 / variance of every sample, (samples,); None for 1. 0 freezes the estimate.

        Raises:
            ShapeError: The shapes do not match, or a weight is negative.

        """
        rows, y, weights = self._checked(rows, y, weights)
        errors, values = np.empty(len(y)), np.empty(rows.shape)
        if (kernel := native()) is not None:
            numbers = state.numbers
            kernel.recursive(*self.options, self.prior, self.floor, rows, y, weights, numbers, errors, values)
            return errors, values, RecursiveState.of(numbers, self.count)
        for k in range(len(y)):
            errors[k], state = self.step(state, rows[k], y[k], 1.0 if weights is None else weights[k])
            values[k] = state.values
        return errors, values, state

    @property
    def _is_directional(self) -> bool:
        return self.variant in ("directional", "directional-floor")

    def _checked(self, rows: Array, y: Array, weights: Array | None) -> tuple[Array, Array, Array | None]:
        rows, y = (np.ascontiguousarray(values, dtype=np.float64) for values in (rows, y))
        if y.ndim != 1 or rows.shape != (len(y), self.count):
            raise ShapeError(
                f"rows must be (samples, {self.count}) and y (samples,). Got {rows.shape} and {y.shape} instead."
            )
        if weights is None:
            return rows, y, None
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        if weights.shape != y.shape or (weights < 0.0).any():
            raise ShapeError(f"weights must be {len(y)} numbers >= 0. Got shape {weights.shape} instead.")
        return rows, y, weights

    def _covariance_before(self, state: RecursiveState, row: Array) -> tuple[Array, int, float]:
        """Return P before the update, the samples since the last reset, and ψᵀ P ψ.

        A P that is due for a reset, or that rounding made indefinite, is P(0) again.
        """
        due = self.variant == "reset" and state.since_reset >= self.period
        r = float(row @ state.covariance @ row)
        if due or r < 0.0:
            P = np.diag(self.prior)
            return P, 0 if due else state.since_reset, float(row @ P @ row)
        return state.covariance, state.since_reset, r

    def _forgetting(self, row: Array) -> float:
        """Return λ of a sample."""
        if self.variant == "exponential":
            return self.memory
        if self.variant == "on-off" and self.prior @ np.square(row) >= self.threshold:
            return self.memory
        return 1.0

    def _shrinkage(self, keep: float, r: float) -> float:
        """Return the factor of P ψ ψᵀ P in the update of λ P; for directional forgetting ``β / (1 + β r)``."""
        if not self._is_directional:
            return 1.0 / (keep + r)
        return (self.memory - (1.0 - self.memory) / r) / (self.memory * (1.0 + r)) if r > 0.0 else 1.0

    def _capped(self, P: Array) -> Array:
        """Return P with a diagonal of at most P(0); rows and columns are scaled, so that P stays positive definite."""
        scale = np.sqrt(np.minimum(1.0, self.prior / np.diag(P)))
        result: Array = scale[:, None] * P * scale
        return result
