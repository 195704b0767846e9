"""Validation: the errors of a calibration on logs with a measured output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jointwise.data import statistics
from jointwise.data.log import Log
from jointwise.estimation.regression import EXCERPT
from jointwise.result.calibration import CalibratedModel, Calibration, calibration_of
from jointwise.result.feed_forward import Use, applicable_use
from jointwise.result.metrics import (
    IGNORED_METRICS,
    JointMetrics,
    Validation,
    metrics,
    motion_window,
    moving_samples,
    pool,
    standing_joints,
)
from jointwise.result.plausibility.against_model import check_log
from jointwise.spatial import Array


def validate(
    model: CalibratedModel, log: Log, *, prediction: Array | None = None, use: Use | None = None
) -> Validation:
    """Return the errors of a calibrated model on a log.

    Args:
        model: The calibrated model, a `Calibration` or a `RobotModel`.
        log: A log with the measured output (current or torque) that the model predicts.
        prediction: Predicted output (samples, joints) to compare with the measured one; None for that of the model.
        use: `sensor` or `feed-forward`, as in `predict`.

    Returns:
        The errors joint by joint, with the prediction that they were computed from; `shared` says whether the log
        has samples that the model was trained on.

    Raises:
        DataError: The log has no such output, or its stamps run backwards.
        ModelError: The log has another number of joints than the model.

    """
    calibration = calibration_of(model)
    used = applicable_use(calibration, log.available, use)
    prediction = calibration.predict(log, use=used) if prediction is None else prediction
    shared = calibration.provenance.shared_fraction(log, calibration.output)
    checks, errors = check_log(calibration, log, prediction), _errors(calibration, log, prediction)
    result = replace(errors, plausibility=checks, log=log, prediction=prediction, use=used, shared=shared)
    if used == "feed-forward":
        return result
    planned = _errors(calibration, log, calibration.predict(log, use="feed-forward"))
    return replace(result, from_positions=replace(planned, use="feed-forward"))


def errors_from_positions(calibration: Calibration, logs: Sequence[Log]) -> tuple[float | None, ...]:
    """Return MSE / variance of every joint predicted from positions only, logs pooled (long ones cut)."""
    parts = [log.slice(0, min(log.samples, EXCERPT)) for log in logs]
    rows = [_errors(calibration, part, calibration.predict(part, use="feed-forward")).joints for part in parts]
    return tuple(pool(column).nmse for column in zip(*rows, strict=True))


def _errors(calibration: Calibration, log: Log, estimate: Array) -> Validation:
    measured = np.asarray(log.channel(calibration.output))
    moving, still = moving_samples(log), standing_joints(log)
    noise = np.median([statistics.noise(part.channel(calibration.output)) for part in statistics.windows(log)], axis=0)
    joints, used = range(log.joints), np.isfinite(measured[0]) & np.isfinite(estimate[0])

    def errors(rows: slice) -> tuple[JointMetrics, ...]:
        return tuple(
            metrics(measured[rows, j], estimate[rows, j], float(noise[j]), bool(still[j]))
            if used[j]
            else IGNORED_METRICS
            for j in joints
        )

    window = motion_window(moving & ~still)
    return Validation(
        joints=errors(slice(None)),
        motion=None if window is None else errors(window),
        moving=tuple(
            metrics(measured[moving[:, j], j], estimate[moving[:, j], j], float(noise[j]))
            if moving[:, j].sum() > 1 and not still[j] and used[j]
            else None
            for j in joints
        ),
        unit=calibration.unit,
        file=log.origin.path,
    )
