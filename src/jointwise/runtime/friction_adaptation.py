"""Adaptation of friction to age and temperature: two parameters per joint, estimated while the robot works.

The virtual friction ``f = τ_m - τ_body - F_v(ω, T)`` is the motor torque without that of the bodies and of the viscous
friction of the model. It is predicted as ``f̂ = a1 Y1 + a2 ω`` with ``Y1 = F(τ_J) H``, the dry friction of the nominal
model; a1 = 1 and a2 = 0 (Nm s/rad) are nominal. The prediction error drives

    gradient:      a ← a + T Γ Y (f - f̂)
    normalised:    a ← a + T Γ Y (f - f̂) / (1 + T Yᵀ Γ Y)
    rls:           a ← a + L (f - f̂),  L = P Y / (λ + Yᵀ P Y),  P ← (P - L Yᵀ P) / λ

with leakage towards the nominal values, a projection onto bounds, and a dead zone: nothing changes while the joint has
been slower than `slowest` for `hold` s, nor for a sample that is not finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked_fields
from jointwise.backend import native
from jointwise.errors import ModelError, ShapeError
from jointwise.runtime.motion import checked_rate
from jointwise.spatial import Array

Method = Literal["gradient", "normalised", "rls"]
METHODS: tuple[Method, ...] = ("gradient", "normalised", "rls")
"""Names of the adaptation laws, in the order of adaptation.h."""
NOMINAL = (1.0, 0.0)
"""a1 and a2 (Nm s/rad) of the nominal model."""
STABLE = 2.0
"""T Yᵀ Γ Y must stay below this for the gradient law to be stable."""
TYPICAL_SPEED = 1.0
"""rad/s at which the time constants hold: a common speed of an arm at work."""
PEAK_LOAD = 4.0
"""Largest dry friction over the scale that the gradient law must be stable for."""
PEAK_SPEED = 4.0
"""Largest speed over `TYPICAL_SPEED` that it must be stable for."""
QUICK_START = 10.0
"""Recursive least squares starts this many times faster than its time constants; its variances never grow beyond."""
RECENT = 10.0
"""Time of motion (s) over which the share of time at a bound is averaged: several moves."""
OFTEN = 0.1
"""Share of the recent time of motion at a bound of a1 from which on it is reported."""
_STATE = 8
"""Numbers of the state of a joint: a1, a2, P11, P12, P22, samples since it moved, samples dropped, share at a bound."""


@checked_fields
@dataclass(frozen=True)
class AdaptationOptions:
    """How the friction parameters follow the data.

    Attributes:
        method: `gradient`, `normalised` (stable for any gain) or `rls` (recursive least squares with forgetting).
        time_constants: Time (s) in which a1 and a2 alone would settle at typical friction and speed; smaller follows
            faster and is noisier. For `rls` the time constant of forgetting is the first.
        factor_limits: Bounds of a1.
        viscous_limits: Bounds of a2 relative to the viscous coefficient of the joint.
        slowest: Speed (rad/s) below which a joint counts as standing.
        hold: Time (s) of standing after which adaptation stops.
        leakage: Rate (1/s) at which the parameters return to the nominal values while the joint moves (σ-modification);
            0 for never.

    """

    method: Method = "gradient"
    time_constants: tuple[float, float] = (1.0, 1.0)
    factor_limits: tuple[float, float] = (0.4, 1.5)
    viscous_limits: tuple[float, float] = (-0.5, 0.5)
    slowest: float = 0.01
    hold: float = 0.05
    leakage: float = 0.0

    def __post_init__(self) -> None:
        """Reject options that no adaptation can have."""
        if self.method not in METHODS:
            raise ModelError(f"method must be {', '.join(METHODS)}. Got '{self.method}' instead.")
        if not (len(self.time_constants) == 2 and all(0.0 < value < np.inf for value in self.time_constants)):
            raise ModelError(f"time_constants must be two times in s, > 0. Got {self.time_constants} instead.")
        _check_limits("factor_limits", self.factor_limits, 1.0)
        _check_limits("viscous_limits", self.viscous_limits, 0.0)
        for name in ("slowest", "hold", "leakage"):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise ModelError(f"{name} must be finite and >= 0. Got {getattr(self, name)} instead.")


def _check_limits(name: str, limits: tuple[float, float], nominal: float) -> None:
    """Reject limits that do not include the nominal value."""
    low, high = limits
    if not (np.isfinite([low, high]).all() and low <= nominal <= high and low < high):
        raise ModelError(f"{name} must be two numbers about {nominal:g}. Got {low}, {high} instead.")


@dataclass(frozen=True, eq=False)
class AdaptationState:
    """The friction parameters so far and what the law remembers; a step does not change it."""

    numbers: Array

    @property
    def factor(self) -> Array:
        """a1 of every joint, (joints,)."""
        return self.numbers[:, 0]

    @property
    def viscous(self) -> Array:
        """a2 of every joint, Nm s/rad, (joints,)."""
        return self.numbers[:, 1]

    @property
    def dropped(self) -> Array:
        """Samples of every joint that were not finite, (joints,)."""
        return self.numbers[:, 6]

    @property
    def at_bound(self) -> Array:
        """Share of the last 10 s of motion of every joint in which a1 was at a bound, (joints,)."""
        return self.numbers[:, 7]

    def notes(self) -> list[str]:
        """Return a line for the joints whose a1 was often at a bound; none if friction explains the torque."""
        joints = [str(j + 1) for j, share in enumerate(self.at_bound) if share > OFTEN]
        if not joints:
            return []
        return [
            f"a1 at its bound: joint {', '.join(joints)}. Check the payload, mounting and drive gains; if they are as "
            "declared, friction has changed by more than the bounds allow."
        ]


@dataclass(frozen=True)
class Adapted:
    """Parameters after every sample and prediction errors before it: (joints,) or (samples, joints).

    Attributes:
        factor: a1.
        viscous: a2, Nm s/rad.
        error: f - f̂ with the parameters before the sample, Nm; 0 for a sample that was dropped.

    """

    factor: Array
    viscous: Array
    error: Array


@dataclass(frozen=True, eq=False)
class FrictionAdaptation:
    """The adaptation law of all joints at a sampling rate.

    Attributes:
        rate: Sampling rate, Hz.
        dry: Typical dry friction of every joint, Nm, (joints,), which scales the gains.
        damping: Nominal viscous coefficient of every joint, Nm s/rad, (joints,), which scales the bounds of a2.
        options: Law, gains, bounds and dead zone.

    """

    rate: float
    dry: Array
    damping: Array
    options: AdaptationOptions = AdaptationOptions()

    def __post_init__(self) -> None:
        """Take the scales as arrays; reject those that are not positive, and gains that are not stable."""
        checked_rate(self.rate)
        for name in ("dry", "damping"):
            values = np.atleast_1d(np.array(getattr(self, name), dtype=np.float64))
            if values.ndim != 1 or not (np.isfinite(values).all() and (values > 0.0).all()):
                raise ModelError(f"{name} must be a positive number for every joint. Got {values.tolist()} instead.")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if self.dry.shape != self.damping.shape:
            raise ShapeError(f"dry and damping must be of as many joints. Got {self.dry.shape}, {self.damping.shape}.")
        self._check_gain()

    def _check_gain(self) -> None:
        slowest = min(self.options.time_constants)
        step = (PEAK_LOAD**2 + PEAK_SPEED**2) / (slowest * self.rate)
        if self.options.method == "gradient" and step >= STABLE:
            least = (PEAK_LOAD**2 + PEAK_SPEED**2) / (STABLE * self.rate)
            raise ModelError(
                f"time_constants must exceed {least:.3g} s at {self.rate:g} Hz for the gradient law to be stable. Got "
                f"{self.options.time_constants} instead: use larger ones, or method 'normalised'."
            )

    @property
    def joints(self) -> int:
        """Number of joints."""
        return len(self.dry)

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Lower and upper bounds of a1 and a2 (joints, 2)."""
        options, ones = self.options, np.ones(self.joints)
        low, high = (
            np.stack([options.factor_limits[k] * ones, options.viscous_limits[k] * self.damping], axis=1)
            for k in (0, 1)
        )
        return low, high

    @cached_property
    def _gains(self) -> Array:
        """T Γ of the gradient laws; variances at the start of recursive least squares: (joints, 2)."""
        scale = np.stack([self.dry, np.full(self.joints, TYPICAL_SPEED)], axis=1)
        quicker = QUICK_START if self.options.method == "rls" else 1.0
        result: Array = quicker / (np.array(self.options.time_constants) * self.rate * np.square(scale))
        return result

    @cached_property
    def laws(self) -> Array:
        """The numbers of `jw_adaptation`, (joints, numbers)."""
        options, n = self.options, self.joints
        low, high = self.limits
        rows = [
            np.full((n, 1), float(METHODS.index(options.method))),
            self._gains, low, high,
            np.tile(NOMINAL, (n, 1)),
            np.full((n, 2), options.leakage / self.rate),
            np.full((n, 1), options.slowest),
            np.full((n, 1), max(1.0, np.round(options.hold * self.rate))),
            np.full((n, 1), np.exp(-1.0 / (options.time_constants[0] * self.rate))),
            np.full((n, 1), min(1.0 / (RECENT * self.rate), 1.0)),
        ]  # fmt: skip
        return np.ascontiguousarray(np.concatenate(rows, axis=1))

    def init(self, factor: ArrayLike = 1.0, viscous: ArrayLike = 0.0) -> AdaptationState:
        """Return the state before the first sample.

        Args:
            factor: a1, one number or (joints,), within its bounds.
            viscous: a2, Nm s/rad, likewise.

        Raises:
            ModelError: A value lies outside its bounds.

        """
        try:
            start = np.stack([np.broadcast_to(np.asarray(v, float), self.joints) for v in (factor, viscous)], axis=1)
        except ValueError:
            raise ShapeError(f"factor and viscous must be one number, or {self.joints}.") from None
        low, high = self.limits
        if not ((start >= low) & (start <= high)).all():
            j, k = np.argwhere(~((start >= low) & (start <= high)))[0]
            raise ModelError(
                f"a{k + 1} of joint {j + 1} must lie in [{low[j, k]:g}, {high[j, k]:g}]. Got {start[j, k]:g} instead."
            )
        numbers = np.zeros((self.joints, _STATE))
        numbers[:, :2], numbers[:, 2], numbers[:, 4] = start, self._gains[:, 0], self._gains[:, 1]
        numbers[:, 5] = self.laws[:, 12]  # standing until it moves
        return AdaptationState(numbers)

    def step(
        self, state: AdaptationState, friction: ArrayLike, dry: ArrayLike, speed: ArrayLike, *, enabled: bool = True
    ) -> tuple[Adapted, AdaptationState]:
        """Return parameters and prediction error of one sample, or of consecutive ones, and the state after it.

        Args:
            state: From `init` or the samples before; it is not changed.
            friction: Virtual friction f, Nm, (joints,) or (samples, joints).
            dry: Y1, dry friction of the nominal model, Nm.
            speed: ω, rad/s.
            enabled: Whether parameters may change; the prediction error is computed in any case.

        """
        shape, rows = self._checked(friction, dry, speed)
        numbers, samples = state.numbers.copy(), len(rows[0])
        parameters, error = np.empty((samples, 2, self.joints)), np.empty((samples, self.joints))
        if (kernel := native()) is not None:
            kernel.adapt_steps(self.laws, numbers, *rows, enabled, parameters, error)
        else:
            for k in range(samples):
                error[k] = _numpy_step(self.laws, numbers, np.stack([row[k] for row in rows]), enabled)
                parameters[k] = numbers[:, :2].T
        a1, a2 = (np.ascontiguousarray(parameters[:, k]).reshape(shape) for k in (0, 1))
        return Adapted(a1, a2, error.reshape(shape)), AdaptationState(numbers)

    def _checked(self, *signals: ArrayLike) -> tuple[tuple[int, ...], list[Array]]:
        """Return the common shape of friction, dry friction and speed, and each as (samples, joints)."""
        inputs = [np.ascontiguousarray(values, dtype=np.float64) for values in signals]
        shape = inputs[0].shape
        if not shape or shape[-1] != self.joints or len(shape) > 2 or any(v.shape != shape for v in inputs):
            raise ShapeError(
                f"friction, dry and speed must have shape ({self.joints},) or (samples, {self.joints}). "
                f"Got {[v.shape for v in inputs]} instead."
            )
        return shape, [values.reshape(-1, self.joints) for values in inputs]


def _numpy_step(laws: Array, numbers: Array, signals: Array, enabled: bool) -> Array:
    """Return the prediction errors (joints,) of one sample of f, dry friction and speed; the numbers are updated."""
    f, dry, speed = signals
    method, gain, low, high = laws[0, 0], laws[:, 1:3], laws[:, 3:5], laws[:, 5:7]
    nominal, leakage, slowest, hold, forgetting = laws[:, 7:9], laws[:, 9:11], laws[:, 11], laws[:, 12], laws[:, 13]
    Y, a = np.stack([dry, speed], axis=1), numbers[:, :2]
    error = f - (a * Y).sum(axis=1)
    fine = np.isfinite(error)
    numbers[:, 6] += ~fine
    Y, safe = np.where(fine[:, None], Y, 0.0), np.where(fine, error, 0.0)
    still = np.where(np.abs(speed) >= slowest, 0.0, numbers[:, 5] + 1.0)
    numbers[:, 5] = np.where(fine, still, numbers[:, 5])
    active = fine & (numbers[:, 5] < hold) & enabled
    if METHODS[int(method)] == "rls":
        L = _recursive_gain(numbers, Y, gain, forgetting, active)
    else:
        L = gain * Y
        if METHODS[int(method)] == "normalised":
            L = L / (1.0 + (L * Y).sum(axis=1))[:, None]
    moved = a + L * safe[:, None] - leakage * (a - nominal)
    numbers[:, :2] = np.where(active[:, None], _projected(moved, numbers[:, 2:5], low, high), a)
    reached = (numbers[:, 0] <= low[:, 0]) | (numbers[:, 0] >= high[:, 0])
    numbers[:, 7] += np.where(active, laws[:, 14] * (reached - numbers[:, 7]), 0.0)
    return safe


def _projected(a: Array, P: Array, low: Array, high: Array) -> Array:
    """Return parameters (joints, 2) within their bounds, nearest in the metric of the covariance P11, P12, P22."""
    out, variance, rows = np.clip(a, low, high) - a, P[:, [0, 2]], np.arange(len(a))
    worst = np.where(out[:, 0] ** 2 * variance[:, 1] >= out[:, 1] ** 2 * variance[:, 0], 0, 1)
    shift = out[rows, worst] * P[:, 1] / variance[rows, worst]
    moved = a.copy()
    moved[rows, 1 - worst] += shift
    result: Array = np.clip(moved, low, high)
    return result


def _recursive_gain(numbers: Array, Y: Array, most: Array, forgetting: Array, active: Array) -> Array:
    """Return the gains (joints, 2) of recursive least squares; the covariances of active joints are updated."""
    P = numbers[:, [2, 3, 3, 4]].reshape(-1, 2, 2)
    u = np.einsum("jab,jb->ja", P, Y)
    L: Array = u / (forgetting + (Y * u).sum(axis=1))[:, None]
    after = (P - L[:, :, None] * u[:, None, :]) / forgetting[:, None, None]
    within = active & (after[:, 0, 0] <= most[:, 0]) & (after[:, 1, 1] <= most[:, 1])
    numbers[:, 2:5] = np.where(within[:, None], after.reshape(-1, 4)[:, [0, 1, 3]], numbers[:, 2:5])
    return L
