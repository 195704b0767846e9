"""Identification of a payload from a calibrated model and logs, moving or at rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jointwise.arguments import checked
from jointwise.data.coordinates import refuse_other_gravity
from jointwise.data.log import Log, log_list
from jointwise.data.overlap import refuse_repeated_samples
from jointwise.errors import EstimationError, ImplausibleError, ModelError
from jointwise.estimation.jackknife import BLOCK_DURATION, MIN_BLOCKS
from jointwise.estimation.uncertainty import OPEN_SHARE, open_directions
from jointwise.result.calibration import CalibratedModel, Calibration, calibration_of
from jointwise.result.predict import applicable_use
from jointwise.result.transfer import refuse_unknown_scale
from jointwise.runtime.payload.fit import GYRATION, PayloadFit, fit_payload, payload_columns
from jointwise.runtime.payload.result import IdentifiedPayload
from jointwise.runtime.payload.rows import LogRows, cleaned, is_at_rest, log_rows
from jointwise.spatial import Array, Mask, split_inertial, tensor_to_six

ITERATIONS = 8
"""Most passes over the logs, as friction depends on the load; three are usual."""
CONVERGED = 1e-3
"""Change of the mass (kg) at which the passes end."""
UNEXPLAINED = 0.1
"""Part of the variance of an output that may remain with a payload ..."""
LARGER = 3.0
"""... if the residual is larger than this times that of the training data (of static friction, for poses at rest)."""
WIDEST = 0.5
"""Half width (m) of an interval above which a coordinate of the centre of mass is not determined: longer than tools."""
NEGLIGIBLE = 0.1
"""Mass (kg) below zero that is not a contradiction: models of one arm from different days differ by less."""
STEP = 1e-6
"""Relative step of the differences by which intervals are propagated."""


@checked
def identify_payload(
    model: CalibratedModel, logs: Log | Sequence[Log], *, progress: Callable[[str], object] | None = None
) -> IdentifiedPayload:
    """Return the payload at the tool in some logs: everything that the arm without payload does not contain.

    Args:
        model: The calibrated model, a `Calibration` or a `RobotModel`. A payload that it includes is removed first.
        logs: One or more logs with the output of the model, all with the same payload. A log in which no joint moves
            is one pose at rest; moving logs must have 12 s together.
        progress: Called with the name of every stage.

    Returns:
        Mass, centre of mass and inertia with 95 % confidence intervals, and what the logs do not determine.

    Raises:
        DataError: A log has no such output, or belongs to another gravity.
        ModelError: A log has another number of joints than the model, or the scale of its drive gains is unknown.
        EstimationError: The logs are too short.
        ImplausibleError: No payload explains the logs.

    """
    calibration = calibration_of(model).with_payload(None)
    refuse_unknown_scale(calibration, "the mass of a payload")
    recordings = log_list(logs)
    _check_logs(calibration, recordings)
    report = progress or (lambda stage: None)
    if any(applicable_use(calibration, log.available) == "feed-forward" for log in recordings):
        recordings = [log.without([name for name in calibration.extras if name in log.available]) for log in recordings]
        calibration = calibration.for_use("feed-forward")
    rows, fit = _converged(calibration, recordings, report)
    report("uncertainty")
    _refuse_unexplained(calibration, rows, fit)
    free = fit_payload(calibration, rows, prior=False)
    return _result(calibration, rows, fit, free)


def _check_logs(calibration: Calibration, logs: Sequence[Log]) -> None:
    robot = calibration.model.robot
    for log in logs:
        if log.joints != robot.dof:
            path = log.origin.path
            raise ModelError(f"{path}: the log has {log.joints} joints, the model {robot.dof} ({robot.name}).")
        log.channel(calibration.output)
        refuse_other_gravity(log, np.array(calibration.model.gravity), "the model is for")
    refuse_repeated_samples(logs)
    moving = [log for log in logs if not is_at_rest(log)]
    duration, least = sum(float(log.t[-1] - log.t[0]) for log in moving), MIN_BLOCKS * BLOCK_DURATION
    if moving and duration < least:
        raise EstimationError(f"moving logs must have {least:g} s together. Got {duration:.3f} s instead.")


def _converged(
    calibration: Calibration, logs: Sequence[Log], report: Callable[[str], object]
) -> tuple[list[LogRows], PayloadFit]:
    """Return rows and fit in which the load torque of the friction contains the payload."""
    values, before = calibration.estimate.values.copy(), 0.0
    sources = [cleaned(calibration, log) for log in logs]
    for number in range(ITERATIONS):
        report(f"pass {number + 1}")
        rows = [log_rows(calibration, source, values) for source in sources]
        fit = fit_payload(calibration, rows)
        mass = float(fit.inertial[9])
        if not calibration.model.needs_load or abs(mass - before) < CONVERGED:
            break
        before = mass
        count = calibration.model.base.count
        values[:count] = calibration.estimate.values[:count] + payload_columns(calibration) @ fit.inertial
    return rows, fit


# -- contradictions --


def _refuse_unexplained(calibration: Calibration, logs: Sequence[LogRows], fit: PayloadFit) -> None:
    """Reject logs that no payload explains: shuffled, of another robot, with wrong signs."""
    for k, rows in enumerate(logs):
        bad = [j for j in range(len(rows.factors)) if _is_unexplained(calibration, rows, fit, k, j)]
        if bad:
            joints = ", ".join(str(j + 1) for j in bad)
            raise ImplausibleError(
                f"{rows.path}: no payload explains the {calibration.output} of joint {joints}. Check that the log is "
                f"of this robot ({calibration.model.robot.name}), and the signs, order and units of its columns "
                "(jointwise inspect, jointwise validate)."
            )


def _is_unexplained(calibration: Calibration, rows: LogRows, fit: PayloadFit, log: int, joint: int) -> bool:
    factors, left = rows.factors[joint], float(fit.residual[log, joint])
    if factors.empty:
        return False
    if rows.deviation is not None:
        return left > LARGER * float(rows.deviation[joint])
    is_larger = left > LARGER * float(calibration.estimate.sigma[joint])
    return is_larger and left**2 > UNEXPLAINED * factors.variance


# -- result --


def _result(calibration: Calibration, logs: Sequence[LogRows], fit: PayloadFit, free: PayloadFit) -> IdentifiedPayload:
    numbers, half = _mass_center_inertia(fit.inertial), _half_widths(fit)
    lost = _open_parameters(fit)
    mass, mass_interval = float(numbers[0]), numbers[0] + half[0] * np.array([-1.0, 1.0])
    if not lost[0] and mass_interval[1] < -NEGLIGIBLE:
        raise ImplausibleError(
            f"the logs show {mass:.2f} kg [{mass_interval[0]:.2f}, {mass_interval[1]:.2f}] at the tool: the model "
            "contains a load that the logs do not. Declare it (jointwise calibrate --payload), or check the robot."
        )
    absent = bool(lost[0] or mass_interval[0] <= 0.0)
    com = np.where(absent | lost[1:] | (half[1:4] > WIDEST), np.nan, numbers[1:4])
    inertia, inertia_interval = _inertia(free, absent or bool(np.isnan(com).any()), max(mass, 0.0))
    return IdentifiedPayload(
        mass=np.nan if lost[0] else max(mass, 0.0),
        mass_interval=np.full(2, np.nan) if lost[0] else np.maximum(mass_interval, 0.0),
        com=com,
        com_interval=com[:, None] + np.outer(half[1:4], [-1.0, 1.0]),
        inertia=inertia,
        inertia_interval=inertia_interval,
        undetermined=tuple(_undetermined(lost, absent, com, inertia, calibration)),
        friction_change=fit.friction,
        residual=fit.residual,
        trained=calibration.estimate.sigma,
        logs=tuple(rows.path for rows in logs),
        assumed_inertia=np.zeros((3, 3)) if absent else physical_tensor(split_inertial(fit.inertial)[2]),
    )


def _mass_center_inertia(inertial: Array) -> Array:
    """Return mass, centre of mass and the six entries of the tensor about it, (10,)."""
    mass, center, tensor = split_inertial(inertial)
    return np.concatenate([[mass], center, tensor_to_six(tensor)])


def _half_widths(fit: PayloadFit) -> Array:
    """Return half widths of the intervals of `_mass_center_inertia`, (10,), by linear propagation."""
    size = STEP * np.maximum(np.abs(fit.inertial), 1e-3)
    J = np.column_stack(
        [
            (_mass_center_inertia(fit.inertial + step) - _mass_center_inertia(fit.inertial - step)) / (2.0 * step.sum())
            for step in np.diag(size)
        ]
    )
    result: Array = fit.factor * np.sqrt(np.maximum(np.diag(J @ fit.covariance @ J.T), 0.0))
    return result


def _open_parameters(fit: PayloadFit) -> Mask:
    """Return which of mass and first moments the rows do not determine, (4,)."""
    columns = fit.columns[:, [9, 6, 7, 8]]
    lengths = np.linalg.norm(columns, axis=0)
    seen = lengths > 1e-9 * max(float(lengths.max()), 1e-300)
    lost: Mask = ~seen
    lost[seen] |= np.abs(open_directions(columns[:, seen] / lengths[seen])).max(axis=1, initial=0.0) > OPEN_SHARE
    return lost


def _inertia(free: PayloadFit, unknown: bool, mass: float) -> tuple[Array, Array]:
    """Return the tensor and its intervals from the data alone, NaN unless all entries are determined."""
    half = _half_widths(free)[4:]
    if unknown or (half > mass * GYRATION**2).any():
        return np.full((3, 3), np.nan), np.full((3, 3, 2), np.nan)
    tensor = split_inertial(free.inertial)[2]
    value = physical_tensor(tensor)
    width = np.zeros((3, 3))
    width[np.triu_indices(3)] = half
    width = np.maximum(width, width.T)
    ends = np.stack([np.minimum(tensor - width, value), np.maximum(tensor + width, value)], axis=-1)
    return value, ends


def physical_tensor(tensor: Array) -> Array:
    """Return the nearest tensor (3, 3) of a body: ``S = tr(I)/2 E - I`` without negative eigenvalues."""
    sizes, axes = np.linalg.eigh(0.5 * np.trace(tensor) * np.eye(3) - tensor)
    S = (axes * np.maximum(sizes, 0.0)) @ axes.T
    result: Array = np.trace(S) * np.eye(3) - 0.5 * (S + S.T)
    return result


def _undetermined(lost: Mask, absent: bool, com: Array, inertia: Array, calibration: Calibration) -> list[str]:
    """Return what the logs do not determine, and why."""
    names = np.array(["mass", "com x", "com y", "com z"])
    found = []
    if lost.any():
        found.append(
            f"The logs determine only combinations of {', '.join(names[lost])}: add logs or poses with other "
            "directions of the tool."
        )
    elif absent:
        found.append("The interval of the mass contains 0: there is no payload, or it is too light to have a centre.")
    elif wide := [name for name, value in zip(names[1:], com, strict=True) if np.isnan(value)]:
        found.append(f"The logs do not determine {', '.join(wide)}: turn the tool to more directions.")
    if np.isnan(inertia).any() and not absent:
        found.append("The logs do not determine the inertia: it needs fast motions of the wrist.")
    return found
