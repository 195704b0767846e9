"""Validation: the errors of a calibration on logs with a measured output; models ranked by them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.data import statistics
from jointwise.data.log import Log
from jointwise.errors import ModelError, ShapeError
from jointwise.estimation.regression import EXCERPT
from jointwise.result.calibration import CalibratedModel, Calibration, calibration_of
from jointwise.result.metrics import (
    IGNORED_METRICS,
    JointMetrics,
    TrainingErrors,
    Validation,
    metrics,
    pool,
)
from jointwise.result.plausibility.against_model import check_log
from jointwise.result.predict import Use, applicable_use
from jointwise.spatial import Array


@checked
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
    return _validated(calibration_of(model), log, prediction=prediction, use=use)


def _validated(
    calibration: Calibration,
    log: Log,
    from_positions: Validation | None = None,
    *,
    prediction: Array | None = None,
    use: Use | None = None,
) -> Validation:
    """Return the errors on a log; see `validate`. Those of the feed-forward model may be known."""
    if prediction is not None and np.shape(prediction) != log.q.shape:
        raise ShapeError(f"prediction must have shape {log.q.shape}. Got {np.shape(prediction)} instead.")
    used = applicable_use(calibration, log.available, use)
    prediction = calibration.predict(log, use=used) if prediction is None else prediction
    shared = calibration.provenance.shared_fraction(log, calibration.output)
    checks, errors = check_log(calibration, log, prediction), _errors(calibration, log, prediction)
    errors = replace(errors, use=used, shared=shared, setup=calibration.setup)
    result = replace(errors, plausibility=checks, log=log, prediction=prediction)
    if used == "feed-forward":
        return result
    from_positions = from_positions or feed_forward_errors(calibration, log)
    return replace(result, from_positions=replace(from_positions, setup=calibration.setup))


def feed_forward_errors(calibration: Calibration, log: Log) -> Validation:
    """Return the errors on a log, predicted from positions only."""
    return replace(_errors(calibration, log, calibration.predict(log, use="feed-forward")), use="feed-forward")


def with_feed_forward_errors(calibration: Calibration, logs: Sequence[Log]) -> Calibration:
    """Return a calibration with the errors on its training logs, predicted from positions only (long logs cut).

    They count from the first to the last movement, where there is any; those of several logs are pooled.
    """
    parts = [log if log.samples <= EXCERPT else log.slice(0, EXCERPT) for log in logs]
    found = [feed_forward_errors(calibration, part) for part in parts]
    pooled = tuple(pool(column).nmse for column in zip(*(errors.in_motion for errors in found), strict=True))
    whole = tuple(errors if part is log else None for errors, part, log in zip(found, parts, logs, strict=True))
    return replace(calibration, training=TrainingErrors(calibration.training.nmse, pooled, whole))


def validate_training(calibration: Calibration, logs: Sequence[Log]) -> list[Validation]:
    """Return the errors of a new calibration on its training logs; those from positions only are known already."""
    known = calibration.training.of_logs or (None,) * len(logs)
    return [_validated(calibration, log, errors) for log, errors in zip(logs, known, strict=True)]


def _errors(calibration: Calibration, log: Log, estimate: Array) -> Validation:
    measured = np.asarray(log.channel(calibration.output))
    moving, still = statistics.moving_samples(log), statistics.standing_joints(log)
    noise = np.median([statistics.noise(part.channel(calibration.output)) for part in statistics.windows(log)], axis=0)
    joints, used = range(log.joints), np.isfinite(measured[0]) & np.isfinite(estimate[0])

    def errors(rows: slice) -> tuple[JointMetrics, ...]:
        return tuple(
            metrics(measured[rows, j], estimate[rows, j], float(noise[j]), bool(still[j]))
            if used[j]
            else IGNORED_METRICS
            for j in joints
        )

    window = statistics.motion_window(moving & ~still)
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


@dataclass(frozen=True)
class Ranked:
    """A model in a comparison of `compare`.

    Attributes:
        name: Name of the model.
        structure: Its joint model in words.
        parameters: Number of its parameters.
        validation: Its errors on the log.
    """

    name: str
    structure: str
    parameters: int
    validation: Validation

    def to_dict(self) -> dict[str, Any]:
        """Return the entry for JSON."""
        return {
            "model": self.name,
            "structure": self.structure,
            "parameters": self.parameters,
            "seen": not self.validation.held_out,
            **self.validation.to_dict(),
        }


@checked
def compare(models: Mapping[str, CalibratedModel], log: Log) -> tuple[Ranked, ...]:
    """Return named models from best to worst: by the mean over the joints of MSE / variance on a log.

    A log in which no joint moves has no such figure: there the mean over the joints of the RMSE decides.

    Args:
        models: The calibrated models by name, such as ``{"old": load_model("old.json"), "new": calibration}``.
        log: A log with the measured output (current or torque) that the models predict.

    Raises:
        DataError: The log has no such output, or its stamps run backwards.
        ModelError: There is no model, or one has another number of joints than the log.

    """
    if not models:
        raise ModelError("models must have at least one model by name. Got none.")
    calibrations = {name: calibration_of(model) for name, model in models.items()}
    ranked = [
        Ranked(
            name,
            model.structure_text,
            model.model.count,
            replace(validate(model, log), prediction=None),  # many models on a long log: the memory of one
        )
        for name, model in calibrations.items()
    ]
    return tuple(sorted(ranked, key=_error))


def _error(ranked: Ranked) -> tuple[float, float]:
    error = ranked.validation.mean_nmse
    return (math.inf if math.isnan(error) else error, ranked.validation.mean_rmse)
