"""Checks of a record before a fit: motion, saturation of the drive, direction of gravity."""

from __future__ import annotations

import shlex

import numpy as np
from numpy.typing import NDArray

from jointwise.data.coordinates import gravity_text
from jointwise.data.statistics import intervals, limited, noise
from jointwise.errors import EstimationError
from jointwise.estimation.linear_fit import scaled_solution
from jointwise.joint.part import TINY, rms
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.joint.record import MIN_TRAVEL, JointRecord
from jointwise.model.terms import direction, viscous_columns
from jointwise.spatial import Array

Flags = NDArray[np.bool_]


def refuse(record: JointRecord, phenomenon: str, reason: str) -> EstimationError:
    """Return the error for a record from which a phenomenon cannot be identified; `reason` has no full stop."""
    experiment = PHENOMENA[phenomenon].experiment
    return EstimationError(
        f"{record.place}: {reason}; {phenomenon} is not fitted. The experiment '{experiment}' can identify it: "
        f"jointwise joint plan --robot {shlex.quote(record.robot)} --joint {record.joint + 1}"
    )


MIN_REVERSALS = 4
"""Fewest reversals, two cycles: leave-one-out standard errors need several loops."""


def few_reversals(count: int) -> str:
    """Return the reason for rejecting a record with too few reversals."""
    found = "no reversals" if count == 0 else f"only {count} reversal{'s' if count > 1 else ''}"
    return f"{found} in the log, at least {MIN_REVERSALS} are needed"


def check_record(record: JointRecord, phenomenon: str) -> None:
    """Raise if the torque contradicts gravity, the joint does not move, or its current is at a limit."""
    check_gravity(record)
    travel = float(np.ptp(record.position))
    if travel < MIN_TRAVEL:
        raise refuse(record, phenomenon, f"the joint does not move (it covers {travel:.2g} rad)")
    check_unsaturated(record, phenomenon)


# -- gravity --

MAX_DEVIATION = 0.4
"""Deviation of the estimated gravity, as a fraction of g, from which the log contradicts the mounting: bodies and
payload can be wrong by less, another mounting deviates by at least the full g."""
SCALE_RANGE = (0.5, 1.5)
"""Factors of the modelled load that a wrong drive gain, payload or body can explain."""
MAX_RESIDUAL_RATIO = 0.5
"""The estimated gravity must reduce the residual to this fraction before the assumed one is rejected."""


def check_gravity(record: JointRecord) -> None:
    """Raise if the torque of a record contradicts the gravity that its load was computed with.

    ``motor - B θ̈ - inertial load = P g + F_C sgn ω + F_V ω``, where P (samples, 3) is the torque per unit of gravity
    along each base axis. g is estimated where P exceeds friction, and compared with the assumed one up to a scale
    factor. Joints that stand or that gravity hardly loads pass.
    """
    if record.pull is None or record.gravity is None or record.unit != "Nm" or np.ptp(record.position) < MIN_TRAVEL:
        return
    assumed = np.array(record.gravity)
    found = _estimated_gravity(record, record.pull, assumed)
    if found is None:
        return
    estimated, visible = found
    scale = np.clip(estimated @ visible / max(float(visible @ visible), TINY), *SCALE_RANGE)
    if np.linalg.norm(estimated - scale * visible) > MAX_DEVIATION * np.linalg.norm(assumed):
        raise EstimationError(
            f"{record.place}: the log does not fit gravity along {gravity_text(assumed)}: give --gravity or --mounting "
            "(or --payload, if it carried one)."
        )


def _estimated_gravity(record: JointRecord, pull: Array, assumed: Array) -> tuple[Array, Array] | None:
    """Return the best-fitting gravity (3,) and the identifiable component of the assumed one; None if undetermined."""
    size = float(np.linalg.norm(assumed))
    rows = record.is_sliding
    if not (size > 0.0 and rows.any()):
        return None
    torque = (record.motor - record.inertia * record.acceleration - record.load)[rows] + pull[rows] @ assumed
    friction = np.column_stack([direction(record.speed), record.speed])[rows]
    y = np.column_stack([pull[rows], torque])
    coefficients = np.linalg.lstsq(friction, y, rcond=None)[0]
    without_friction = y - friction @ coefficients
    P, y = without_friction[:, :3], without_friction[:, 3]
    U, s, Vt = np.linalg.svd(P, full_matrices=False)
    kept = s / np.sqrt(len(y)) * size > rms(friction @ coefficients[:, 3])
    if not kept.any():
        return None
    estimated = Vt[kept].T @ ((U[:, kept].T @ y) / s[kept])
    estimated *= min(1.0, size / max(float(np.linalg.norm(estimated)), TINY))
    visible = Vt[kept].T @ (Vt[kept] @ assumed)
    is_better = rms(y - P @ estimated) < MAX_RESIDUAL_RATIO * rms(y - P @ visible)
    return (estimated, visible) if is_better else None


# -- saturation --

MAX_SATURATED = 0.002
"""Fraction of samples at the limit above which nothing is fitted."""
MIN_RUN = 5
"""Samples in a row at an extreme that show a limit: a peak of a smooth signal has fewer."""
AVERAGING_TIME = 0.05
"""Time (s) over which a noisy torque is averaged."""
MIN_WINDOWS = 10
"""Averaging windows at a limit that are needed to call it one..."""
MIN_WINDOW_RATIO = 4
"""...and this many times as many in the record."""
NEAR_LIMIT = 6.0
"""Windows within this many standard deviations of the noise from the largest may be at a limit..."""
EXCESS_RATIO = 3.0
"""...if the motion requires more than they show, by this many times the residual elsewhere..."""
EXCESS_SHARE = 0.05
"""...and by this fraction of the largest torque..."""
VARIATION = 0.5
"""...and the required torque varies by this fraction of that: a steady run at the largest torque is no limit."""


PILE = 4.0
"""Windows within the noise of a limit, relative to those in the next band of that width: a smooth peak has 2.4."""


def check_unsaturated(record: JointRecord, phenomenon: str) -> None:
    """Raise if the current (or torque) of a record is at a limit."""
    share = saturated_share(record)
    if share > MAX_SATURATED:
        name, unit = ("current", "A") if record.has_current else ("torque", record.unit)
        top = np.abs(record.motor).max() / record.gain
        reason = f"the {name} is saturated in {100.0 * share:.1f} % of the samples, at about {top:.3g} {unit}"
        raise refuse(record, phenomenon, reason)


def saturated_share(record: JointRecord) -> float:
    """Return the fraction of samples at a limit: repeated extremes, clipping below noise, or below the target current.

    A limit below noise shows only where the motion requires different torques beyond it: friction that never varies
    looks the same.
    """
    if not np.ptp(record.motor) > 0.0:
        return 1.0
    return max(_repeated_share(record.motor), _clipped_share(record), _flat_share(record), _denied_share(record))


def _denied_share(record: JointRecord) -> float:
    """Return the fraction of samples with the current at its maximum while its target is clearly higher."""
    if record.target_current is None or not record.has_current:
        return 0.0
    current = record.motor / record.gain
    return float(limited(current[:, None], record.target_current[:, None]).mean())


def _repeated_share(motor: Array) -> float:
    """Return the fraction of samples that repeat an extreme at least `MIN_RUN` times in a row.

    They are close to it, not equal: resampling to a uniform clock changes the last digits.
    """
    runs = [run for extreme in (motor.max(), motor.min()) for run in intervals(np.isclose(motor, extreme))]
    return sum(stop - first for first, stop in runs if stop - first >= MIN_RUN) / len(motor)


def _clipped_share(record: JointRecord) -> float:
    """Return the fraction of windows at an extreme of the torque while the motion requires more."""
    means = _window_means(record, np.column_stack([_explanatory_columns(record), record.motor]))
    columns, torque = means[:, :-1], means[:, -1]
    if len(torque) < MIN_WINDOW_RATIO * MIN_WINDOWS:
        return 0.0
    near = NEAR_LIMIT * float(noise(torque[:, None])[0])
    at_top, at_bottom = torque >= torque.max() - near, torque <= torque.min() + near
    free = ~(at_top | at_bottom)
    if free.sum() < MIN_WINDOW_RATIO * columns.shape[1]:
        return 0.0
    excess = columns @ scaled_solution(columns[free], torque[free]) - torque
    least = max(EXCESS_RATIO * rms(excess[free]), EXCESS_SHARE * float(np.abs(torque).max()))
    clipped = [flags & (sign * excess > least) for flags, sign in ((at_top, 1.0), (at_bottom, -1.0))]
    return sum(_count_if_varied(flags, excess, VARIATION * least) for flags in clipped) / len(torque)


def _flat_share(record: JointRecord) -> float:
    """Return the fraction of windows at an extreme of the torque whatever rotor and links require for acceleration.

    Needs no window away from the limit: the windows pile up within their noise, and the torque required there varies by
    more than the noise of both, by a fraction of the largest torque, and by about as much as elsewhere. Without a drive
    gain they cannot be compared.
    """
    if record.unit != "Nm":
        return 0.0
    means = _window_means(record, np.column_stack([_inertial_torque(record), record.motor]))
    if len(means) < MIN_WINDOW_RATIO * MIN_WINDOWS:
        return 0.0
    required, torque = means.T
    least = max(
        *(NEAR_LIMIT * noise(means)), EXCESS_SHARE * float(np.abs(torque).max()), VARIATION * float(required.std())
    )
    band = NEAR_LIMIT * float(noise(record.motor[:, None])[0]) / np.sqrt(_window_size(record))
    piles = [_pile(sign * torque, band) for sign in (1.0, -1.0)]
    return sum(_count_if_varied(flags, required, least) for flags in piles) / len(torque)


def _pile(torque: Array, band: float) -> Flags:
    """Return flags of windows (windows,) within a `band` (Nm) of the largest torque, none if they do not pile up."""
    below = torque.max() - torque
    flags: Flags = below <= band
    return flags & np.bool_(flags.sum() > PILE * np.sum((below > band) & (below <= 2.0 * band)))


def _count_if_varied(flags: Flags, values: Array, least: float) -> int:
    """Return the number of flagged windows if there are enough and their values vary by more than `least`."""
    count = int(flags.sum())
    return count if count >= MIN_WINDOWS and values[flags].std() > least else 0


def _inertial_torque(record: JointRecord) -> Array:
    """Return the torque (samples,), Nm, that accelerates rotor and links; includes gravity if it is not separable."""
    torque: Array = record.load + record.inertia * record.acceleration
    return torque if record.pull is None or record.gravity is None else torque - record.pull @ np.array(record.gravity)


def _explanatory_columns(record: JointRecord) -> Array:
    """Return columns (samples, n) that explain a motor torque: links, rotor, friction, wind-up of the gear."""
    v = record.speed
    columns = [np.ones_like(v), record.load, record.acceleration, direction(v), viscous_columns(v, (1, 2))]
    wind_up = [signal for signal in (record.phi, record.gauge) if signal is not None]
    return np.column_stack([*columns, *wind_up])


def _window_means(record: JointRecord, values: Array) -> Array:
    """Return means over `AVERAGING_TIME`, (windows, columns)."""
    size = _window_size(record)
    count = len(values) // size
    result: Array = values[: count * size].reshape(count, size, -1).mean(axis=1)
    return result


def _window_size(record: JointRecord) -> int:
    return max(1, round(AVERAGING_TIME * record.rate))
