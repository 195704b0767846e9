"""Logs that a calibrated model predicts: read and checked against the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.data import check_quality, read_log
from jointwise.data.coordinates import refuse_other_gravity
from jointwise.data.effort import EffortUnit
from jointwise.data.log import Log, check_joints
from jointwise.description.robot import Robot
from jointwise.errors import DataError
from jointwise.formatting import rounded
from jointwise.result.calibration import CalibratedModel, Calibration, calibration_of
from jointwise.result.predict import EXTRAS

FATAL = ("degrees", "motor-side", "time-unit")
"""Findings of the inspection that make a log useless for any model; other findings only warn."""


@checked
def read_log_for(
    model: CalibratedModel,
    path: str | Path,
    *,
    columns: str | Path | Mapping[str, Any] | None = None,
    measured: bool = True,
    warn: Callable[[str], object] = warnings.warn,
    topic: str | None = None,
    effort_unit: EffortUnit | None = None,
) -> Log:
    """Return a log for a model to predict.

    Args:
        model: The calibrated model, a `Calibration` or a `RobotModel`.
        path: CSV or Parquet file, or a ROS 2 bag.
        columns: Meaning of the columns where their names do not say it, as in `read_log`.
        measured: Whether the measured output (current or torque) is needed.
        warn: Called with one line for everything unusual that does not prevent a prediction.
        topic: Topic of the joint states in a bag, as in `read_log`.
        effort_unit: Unit of the effort in a bag; that of the model's output if None.

    Returns:
        The log.

    Raises:
        DataError: The file cannot be read, or it belongs to another gravity or unit than the model.

    """
    calibration = calibration_of(model)
    robot = calibration.model.robot
    needed = (calibration.output,) if measured else ()
    unit = effort_unit or ("A" if calibration.output == "current" else "Nm")
    log = read_log(
        path, columns=columns, joints=robot, needed=needed, ignore_output=calibration.ignored,
        topic=topic, effort_unit=unit,
    )  # fmt: skip
    check_log_for(calibration, log, warn)
    return log


def check_log_for(model: CalibratedModel, log: Log, warn: Callable[[str], object] = warnings.warn) -> None:
    """Check that a log can be predicted by a model; see `read_log_for`, which does it.

    Args:
        model: The calibrated model, a `Calibration` or a `RobotModel`.
        log: The log.
        warn: Called with one line for everything unusual that does not prevent a prediction.

    Raises:
        DataError: The log has another number of joints than the model, or belongs to another gravity or unit.

    """
    calibration = calibration_of(model)
    check_joints(log, calibration.model.robot)
    refuse_other_gravity(log, np.array(calibration.model.gravity), "the model is for")
    _check(log, calibration.model.robot, warn)
    lacking = [EXTRAS[name] for name in calibration.extras if name not in log.available]
    if lacking:
        warn(f"{log.origin.path}: no {' and no '.join(lacking)}, which the model uses. {_loss(calibration)}")


def _check(log: Log, robot: Robot, warn: Callable[[str], object]) -> None:
    """Reject a log with a fatal error; warn of every other error but a lack of motion."""
    inspection = check_quality(log, robot)
    clock = inspection.numbers.clock.findings
    errors = [finding for finding in inspection.findings if finding.severity == "error"]
    for finding in errors:
        if finding.code in FATAL or finding in clock:
            raise DataError(f"{log.origin.path}: {finding.sentence}")
    for finding in errors:
        if finding.code != "no-motion":
            warn(f"{log.origin.path}: {finding.sentence}")


def _loss(calibration: Calibration) -> str:
    """Return how much larger the error is from positions only, on the logs that the model was validated on."""
    for log in calibration.validation:
        bare = log.from_positions
        if bare is not None and not np.isnan(bare.mean_nmse):
            return _comparison(bare.mean_nmse, log.mean_nmse, f"on {Path(log.file).name}")
    known = [error for error in calibration.training.from_positions or () if error is not None]
    if not known:
        return "The prediction is less accurate without it."
    fitted = calibration.training.known
    return _comparison(sum(known) / len(known), sum(fitted) / len(fitted), "on its training data")


def _comparison(bare: float, full: float, where: str) -> str:
    return (
        f"From positions only, MSE/variance was {rounded(bare, 2)} {where} instead of {rounded(full, 2)}; the loss can "
        "be larger in a motion with stops."
    )
