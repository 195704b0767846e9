"""Status of a joint: its stiffness against what was known when it was new, if the deflection explains its torque."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from jointwise.arguments import checked, checked_fields
from jointwise.call_settings import StiffnessSettings
from jointwise.errors import ModelError
from jointwise.joint.gear import StiffnessLaw
from jointwise.joint.part import nrmse_of_error
from jointwise.model.spring import Spring
from jointwise.monitoring.stiffness.estimate import StiffnessEstimate
from jointwise.spatial import Array

Level = Literal["unknown", "ok", "watch", "worn"]
LEVELS: tuple[Level, ...] = get_args(Level)
WIDEST = 0.25
"""Half-width of the interval of a loss beyond which it is unknown."""
AVERAGING = 0.1
"""Time (s) over which residuals are averaged to judge a deflection: noise and ripple average out; lost motion and slow
errors of the gear remain, which shift a stiffness."""
CONSTANT = 1e-12
"""Variance of a torque, relative to its mean square, that rounding may leave of a constant."""
PARTS = 256
"""Parts of a stream, at least, to which the beginning of its second half is known."""


@checked_fields
@dataclass(frozen=True)
class StiffnessLimits:
    """Losses of stiffness relative to the stored one from which a joint is to be watched, and counts as worn.

    No thresholds are published: relate them to the failures of the gears at hand.

    Attributes:
        watch: Relative loss from which a joint is to be watched.
        worn: Relative loss from which it counts as worn.
        deflection: Deflection at which the secant stiffness is compared, rad; None for half of the largest one of the
            data.
    """

    watch: float = StiffnessSettings.watch / 100.0
    worn: float = StiffnessSettings.worn / 100.0
    deflection: float | None = None

    def __post_init__(self) -> None:
        """Reject limits out of order."""
        if not 0.0 < self.watch < self.worn < 1.0:
            raise ModelError(f"limits must be 0 < watch < worn < 1. Got {self.watch} and {self.worn} instead.")
        if self.deflection is not None and not (math.isfinite(self.deflection) and self.deflection > 0.0):
            raise ModelError(f"deflection must be > 0 rad. Got {self.deflection} instead.")


@dataclass
class PredictionFit:
    """NRMSE fit of predicted torques over the second half of a stream whose end is not known, in bounded memory.

    Parts of `size` samples are summed: count, Σ y, Σ y², Σ (y - ŷ)². Where there are more than ``2 PARTS`` of them, two
    neighbours become one. The fit of a stream is the same whatever the pieces in which its samples are added.
    """

    size: int = 1
    parts: Array = field(default_factory=lambda: np.zeros((0, 4)), repr=False)

    def add(self, measured: Array, predicted: Array) -> None:
        """Add torques y and ŷ (samples,), Nm."""
        rows: Array = np.column_stack([np.ones(len(measured)), measured, measured**2, (measured - predicted) ** 2])
        if len(self.parts) and self.parts[-1, 0] < self.size:
            free = self.size - int(self.parts[-1, 0])
            self.parts[-1] += rows[:free].sum(axis=0)
            rows = rows[free:]
        if len(rows):
            self.parts = np.vstack([self.parts, np.add.reduceat(rows, np.arange(0, len(rows), self.size))])
        while len(self.parts) > 2 * PARTS:
            self.parts = np.add.reduceat(self.parts, np.arange(0, len(self.parts), 2))
            self.size *= 2

    def percent(self) -> float | None:
        """Return the fit in %; None where the torque of the second half does not vary."""
        count, total, squares, errors = self.parts[len(self.parts) // 2 :].sum(axis=0)
        spread = squares - total**2 / max(count, 1.0)
        return nrmse_of_error(errors, spread) if spread > CONSTANT * squares else None


@dataclass
class TorqueFit:
    """Fit of the torques that an estimator predicted on its way.

    Attributes:
        window: Samples of one mean, `AVERAGING` at the rate of the stream.
        samples: Fit of the samples.
        means: Fit of the means over `window` samples.
        rest: Measured and predicted torques (samples, 2), Nm, that are not yet part of a mean.

    """

    window: int
    samples: PredictionFit = field(default_factory=PredictionFit)
    means: PredictionFit = field(default_factory=PredictionFit)
    rest: Array = field(default_factory=lambda: np.zeros((0, 2)), repr=False)

    def add(self, measured: Array, predicted: Array) -> None:
        """Add torques y and ŷ (samples,), Nm."""
        self.samples.add(measured, predicted)
        rows = np.vstack([self.rest, np.column_stack([measured, predicted])])
        whole = len(rows) // self.window * self.window
        self.rest = rows[whole:]
        if whole:
            self.means.add(*rows[:whole].reshape(-1, self.window, 2).mean(axis=1).T)

    def largest_bias(self) -> float:
        """Return how much of a stiffness k the unexplained torque r may be: ``|Σ φ r / Σ φ²| / k <= |r| / |k φ|``.

        Kinematic errors and lost motion of a gear that its joint file lacks repeat with the motion: more samples do not
        reduce this error.
        """
        fit = self.means.percent()
        return math.inf if fit is None else 1.0 - 0.01 * fit


def torque_fit(rate: float) -> TorqueFit:
    """Return the empty fit of a stream of a sampling rate (Hz)."""
    return TorqueFit(max(round(AVERAGING * rate), 1))


@dataclass(frozen=True)
class StiffnessStatus:
    """The status and the numbers behind it.

    Attributes:
        status: "ok", "watch", "worn", or "unknown" where the data do not determine the stiffness or contradict it.
        deflection: Deflection of the secant stiffness, rad.
        at_rest: k(0), and its 95 % confidence interval, Nm/rad.
        secant: Secant stiffness, and its interval, Nm/rad.
        stored_at_rest: Stored k(0), Nm/rad; None where no knowledge is stored.
        stored_secant: Stored secant stiffness, Nm/rad.
        loss: Relative loss of the secant stiffness, and its interval, which contains `TorqueFit.largest_bias` and the
            uncertainty of the stored stiffness.
        loss_at_rest: Relative loss of k(0), where wear begins, and its interval.
        prediction: NRMSE fit (%) of τ_E predicted from the deflection before each update, over the second half of the
            samples in use; None where it is not known.
        is_stiffer: Whether the joint is significantly stiffer than stored, by the watch limit or more: a wrong payload,
            drive gain or joint file.

    """

    status: Level
    deflection: float
    at_rest: tuple[float, float, float]
    secant: tuple[float, float, float]
    stored_at_rest: float | None = None
    stored_secant: float | None = None
    loss: tuple[float, float, float] | None = None
    loss_at_rest: tuple[float, float, float] | None = None
    prediction: float | None = None
    is_stiffer: bool = False


@checked
def stiffness_status(
    estimate: StiffnessEstimate,
    stored: Spring | None = None,
    limits: StiffnessLimits | None = None,
    fit: TorqueFit | None = None,
) -> StiffnessStatus:
    """Return the status of a joint.

    A joint is "watch" or "worn" where the loss of the secant stiffness, or of k(0), reaches the limit and its 95 %
    confidence interval excludes no loss at all ("watch"), or a loss below the watch limit ("worn"). The intervals are
    wider by the bias that the unexplained part of the torque may cause, and by the uncertainty of the stored stiffness
    (`StiffnessLaw.uncertainty`; other springs are taken as exact). The status is "unknown" where they are wide,
    and where a joint that would be "ok" is stiffer than stored by the watch limit: gears do not become stiffer.

    Args:
        estimate: Estimate of the stiffness.
        stored: The spring as it was identified when the joint was new; None where it is not known.
        limits: Losses from which on a joint is to be watched or worn.
        fit: Fit of the torques that the estimate predicted on its way; None for an estimate without one, as of pairs.

    """
    limits = limits or StiffnessLimits()
    deflection = limits.deflection or 0.5 * estimate.largest
    prediction = None if fit is None else fit.samples.percent()
    at_rest = _with_interval(float(estimate.stiffness(0.0)), estimate.conf_int(0.0))
    secant = _with_interval(float(estimate.secant(deflection)), estimate.secant_conf_int(deflection))
    if stored is None or not deflection > 0.0:
        return StiffnessStatus("unknown", deflection, at_rest, secant, prediction=prediction)
    new_at_rest, new_secant = _stored(stored, deflection)
    bias = 0.0 if fit is None else fit.largest_bias()
    stored_error = stored.uncertainty if isinstance(stored, StiffnessLaw) else 0.0
    loss, loss_at_rest = (
        _loss(now, new, bias, stored_error) for now, new in ((secant, new_secant), (at_rest, new_at_rest))
    )
    known = [each for each in (loss, loss_at_rest) if each[2] - each[1] <= 2.0 * WIDEST]
    worst: Level = max((_level(each, limits) for each in known), default="unknown", key=LEVELS.index)
    stiffer = worst == "ok" and any(value <= -limits.watch and high < 0.0 for value, _, high in known)
    return StiffnessStatus(
        "unknown" if stiffer else worst, deflection, at_rest, secant, new_at_rest, new_secant, loss, loss_at_rest,
        prediction, stiffer,
    )  # fmt: skip


def _with_interval(value: float, bounds: tuple[float | Array, float | Array]) -> tuple[float, float, float]:
    return value, float(bounds[0]), float(bounds[1])


def _stored(spring: Spring, deflection: float) -> tuple[float, float]:
    phi = np.array([0.0, deflection])
    return float(spring.stiffness(phi)[0]), float(spring.torque(phi)[1]) / deflection


def _loss(now: tuple[float, float, float], new: float, bias: float, stored_error: float) -> tuple[float, float, float]:
    """Return the relative loss with its interval: errors of both stiffnesses, and the largest bias."""
    value, low, high = (each / new for each in now)
    loss, wider = 1.0 - value, math.hypot(bias, stored_error * value)
    return loss, loss - math.hypot(high - value, wider), loss + math.hypot(value - low, wider)


def _level(loss: tuple[float, float, float], limits: StiffnessLimits) -> Level:
    value, low, _ = loss
    if value >= limits.worn and low >= limits.watch:
        return "worn"
    return "watch" if value >= limits.watch and low > 0.0 else "ok"
