"""Payload, friction and data quality from what a monitor knows: the numbers behind a result, and their status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.description.robot import Payload
from jointwise.monitoring.core import DROPPED, MOMENTS, SHARES, Known
from jointwise.monitoring.events import Fault
from jointwise.monitoring.reference_constants import FRICTION_SHARE, FRICTION_TIME
from jointwise.monitoring.summary import (
    LEAST_MOTION,
    DataQuality,
    FrictionEstimate,
    PayloadEstimate,
    Status,
    TemperatureRange,
    repetition,
)
from jointwise.spatial import Array, Mask

NORMAL = 1.959964
"""Quantile of a 95 % confidence interval."""
GAIN_ERROR = 0.01
"""Standard deviation of the relative error of drive gains: the spread of torque constants of motors of one type."""
LIGHTEST = 0.15
"""Change of the payload (kg) that is one: models of one arm from different days differ by less."""
UNKNOWN = 0.3
"""Standard error (kg) above which a payload is not determined: the tool has not turned enough yet."""
MORE_FRICTION, LESS_FRICTION = 0.045, 0.12
"""Changes of friction, relative to dry friction, that are watched: models of one log of a minute are wrong by up to
3 % upwards, so that 10 % more friction exceeds the first and errors do not; joints that run in have less ..."""
FRICTION_RATIO = 2.0
"""... if it is larger than this many standard errors, which include changes within minutes and errors that repeat
in short motions (`repetition`)."""
VAGUE = 0.3
"""Standard error of a change of friction (part of the dry friction) from which it is neither judged nor shown."""
VISIBLE = 0.1
"""Change of friction, relative to dry friction, that must be visible for friction to be ok; else it is unknown: the
standard errors are too large, or warming or cooling may hide it."""
WARMING_DRY, WARMING_VISCOUS = (0.005, 0.01), (0.02, 0.04)
"""Least and largest relative loss of dry and viscous friction with every kelvin (1/K) that warming explains where the
model does not have the effect of temperature; the least ones are those of the digital robot above 20 °C ..."""
WARMING_RANGE = 5.0
"""... for a difference of this many kelvins; friction falls less in warm joints."""


@dataclass(frozen=True, eq=False)
class FrictionMotion:
    """The motion in which friction was measured, (joints,) each.

    Attributes:
        moved: Times in motion, s.
        speed: Mean speeds in motion, rad/s.
        dry: Mean dry friction of the model in motion, Nm.
        viscous: Viscous coefficients of the model, Nm s/rad.
        warmer: Temperatures above those of the calibration, K, as far as the model does not describe their effect; NaN
            where they are not known.

    """

    moved: Array
    speed: Array
    dry: Array
    viscous: Array
    warmer: Array

    @property
    def per_viscous(self) -> Array:
        """Change of friction relative to dry friction with the viscous coefficient, rad/(Nm s)."""
        return np.where(self.dry > 0.0, self.speed / np.maximum(self.dry, 1e-12), 0.0)

    def explained(self, joint: int) -> tuple[float, float]:
        """Return the least and the largest change relative to dry friction that a known temperature explains."""
        warmer, viscous = float(np.nan_to_num(self.warmer[joint])), float((self.per_viscous * self.viscous)[joint])
        near = min(max(warmer, -WARMING_RANGE), WARMING_RANGE)
        least, most = (dry + slope * viscous for dry, slope in zip(WARMING_DRY, WARMING_VISCOUS, strict=True))
        low, high = sorted((-most * warmer, -least * near))
        return low, high

    def hidden(self, joint: int) -> float:
        """Return the change relative to dry friction that warming or cooling may hide; any if it is not measured."""
        low, high = self.explained(joint)
        return np.inf if np.isnan(self.warmer[joint]) else high - low


def payload_estimate(known: Known, carried: Payload | None, current: bool, moved: float) -> PayloadEstimate:
    """Return the payload of what a monitor knows; its errors repeat at the few poses of a short motion.

    Args:
        known: What the monitor knows: the change against the payload of the model.
        carried: The payload that the model includes.
        current: Whether the output is a current, whose gain has an error.
        moved: Time in motion of the joint that moved longest, s.

    """
    before = np.zeros(MOMENTS)
    if carried is not None:
        before = carried.mass * np.array([1.0, *carried.center_of_mass])
    total, P = before + known.x[:MOMENTS], repetition(moved) ** 2 * known.P[:MOMENTS, :MOMENTS]
    error = float(np.sqrt(P[0, 0] + (GAIN_ERROR * total[0] if current else 0.0) ** 2))
    half, change = NORMAL * error, abs(float(known.x[0]))
    interval = (float(total[0] - half), float(total[0] + half))
    vague = known.P[0, 0] > UNKNOWN**2
    status: Status = "unknown" if vague else "watch" if change > max(half, LIGHTEST) else "ok"
    com, limits = _center(total, P) if interval[0] > LIGHTEST else (None, None)
    return PayloadEstimate(status, float(total[0]), interval, com, limits, float(before[0]))


def _center(total: Array, P: Array) -> tuple[tuple[float, ...], tuple[tuple[float, float], ...]]:
    """Return the centre of mass (m) and the intervals of its coordinates, by linear propagation."""
    com = total[1:] / total[0]
    jacobian = np.column_stack([-com / total[0], np.eye(3) / total[0]])
    half = NORMAL * np.sqrt(np.maximum(np.diag(jacobian @ P @ jacobian.T), 0.0))
    return tuple(com.tolist()), tuple(zip((com - half).tolist(), (com + half).tolist(), strict=True))


def friction_estimates(known: Known, motion: FrictionMotion, measured: Mask) -> tuple[FrictionEstimate, ...]:
    """Return the friction of every joint.

    Args:
        known: What the monitor knows.
        motion: The motion in which it was measured: less friction of a warmer joint, or more of a colder one, is not a
            change as far as the temperature explains it.
        measured: Whether a joint is watched, (joints,).

    """
    deviations, result = np.sqrt(np.maximum(np.diag(known.P), 0.0)), []
    for j, time in enumerate(motion.moved.tolist()):
        dry, viscous = MOMENTS + SHARES * j, MOMENTS + SHARES * j + 1
        weights = np.array([1.0, motion.per_viscous[j]])
        change = float(weights @ known.x[[dry, viscous]])
        error = float(np.sqrt(max(weights @ known.P[dry : viscous + 1, dry : viscous + 1] @ weights, 0.0)))
        low, high = motion.explained(j)
        unexplained = change - min(max(change, low), high)
        judged = time >= LEAST_MOTION and bool(measured[j]) and error < VAGUE
        status: Status = "unknown"
        if judged:
            status = friction_status(unexplained, repetition(time) * error, motion.hidden(j))
        reason = _unknown_reason(bool(measured[j]), time, error, motion.hidden(j)) if status == "unknown" else ""
        a1, a2 = (
            (float(known.x[dry]) + 1.0, float(deviations[dry])),
            (float(known.x[viscous]), float(deviations[viscous])),
        )
        result.append(FrictionEstimate(j + 1, status, *a1, *a2, time, change, error, unexplained, reason))
    return tuple(result)


def _unknown_reason(measured: bool, time: float, error: float, hidden: float) -> str:
    """Return why friction is not judged after a time in motion (s) with a standard error of its change."""
    if not measured:
        return "its output is not measured"
    if time == 0.0:
        return "it does not move"
    if hidden >= VISIBLE:
        return "temperatures are not measured" if np.isinf(hidden) else "temperatures may hide 10 % more"
    more = more_motion(time, error, hidden)
    if more is None:
        return "10 % more would not be seen within an hour of this motion"
    return f"about {10.0 * np.ceil(max(more, 1.0) / 10.0):.0f} s more of this motion are needed"


def more_motion(time: float, error: float, hidden: float) -> float | None:
    """Return the further time in motion (s) after which a change of `VISIBLE` is expected to be seen.

    The standard error e falls with the square root of the time T in motion, down to what the filter forgets again, as
    friction drifts with the variance q in every second: ``(q e² time)^(1/4)``. The result is the least T with
    ``2 e (1 + 60 s / T) + hidden <= VISIBLE``.

    Args:
        time: Time in motion so far, s.
        error: Standard error e of the change so far, without those that repeat.
        hidden: Change that temperatures may hide.

    Returns:
        The time; None where an hour is not enough.

    """
    times = np.geomspace(max(time, LEAST_MOTION), max(time, LEAST_MOTION) + 3600.0, 500)
    least = min(error, (FRICTION_SHARE**2 / FRICTION_TIME * error**2 * time) ** 0.25)
    errors = np.maximum(error * np.sqrt(time / times), least)
    factors = np.array([repetition(value) for value in times.tolist()])
    seen = np.flatnonzero(FRICTION_RATIO * factors * errors + hidden <= VISIBLE)
    return float(times[seen[0]] - time) if len(seen) else None


def friction_status(change: float, error: float, hidden: float = 0.0) -> Status:
    """Return whether a change of friction relative to dry friction is watched; unknown if one of `VISIBLE` is not seen.

    Args:
        change: The change against the model, or between runs, without what temperatures explain.
        error: Its standard error, with the errors that repeat in short motions.
        hidden: Change that temperatures may hide (`FrictionMotion.hidden`).

    """
    limit = MORE_FRICTION if change > 0.0 else LESS_FRICTION
    if abs(change) > max(limit, FRICTION_RATIO * error):
        return "watch"
    return "ok" if FRICTION_RATIO * error + hidden <= VISIBLE else "unknown"


def colder_hint(friction: Sequence[FrictionEstimate], temperature: TemperatureRange | None) -> str:
    """Return the watched joints whose friction grew with speed alone, as that of cold grease, if temperatures lack."""
    found = [
        str(j.joint)
        for j in friction
        if j.status == "watch" and j.a2 > FRICTION_RATIO * j.a2_deviation and j.a1 - 1 < FRICTION_RATIO * j.a1_deviation
    ]
    if not found or temperature is not None:
        return ""
    return f" (joint {', '.join(found)}: with speed only, as of a colder joint; temperatures are not measured)"


def where_measured(values: Array, measured: Mask) -> tuple[float | None, ...]:
    """Return numbers (joints,), None where a joint has no measured output."""
    return tuple(value if known else None for value, known in zip(values.tolist(), measured.tolist(), strict=True))


def data_quality(known: Known, faults: Sequence[Fault], malformed: int) -> DataQuality:
    """Return the quality of the data: a fault where a channel is frozen, something to watch where samples are lost."""
    dropped = {name: count for name, count in known.counts.items() if name in DROPPED and count}
    breaks = {name: known.counts[name] for name in ("gap", "jump", "restart") if known.counts[name]}
    used = sum(known.counts.values()) - known.dropped
    status: Status = "fault" if faults else "watch" if dropped or breaks or malformed else "ok"
    return DataQuality(status, used, dropped, breaks, malformed, tuple(faults))
