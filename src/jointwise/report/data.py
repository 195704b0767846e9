"""The data of a calibration report: every log with its inspection, prediction and errors, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from jointwise.data.log import Log
from jointwise.data.quality import DataQuality, check_quality
from jointwise.description.robot import Robot
from jointwise.result.calibration import Calibration
from jointwise.result.diagnostics import FrictionSamples, friction_samples
from jointwise.result.metrics import Validation
from jointwise.result.validation import validate
from jointwise.spatial import Array

Role = Literal["training", "validation", "overlap"]
"""training: used for the estimate; validation: held out; overlap: intended for validation, but it
shares samples with the training data."""
ROLES: dict[Role, str] = {
    "training": "training data",
    "validation": "validation data",
    "overlap": "overlaps the training data",
}


@dataclass(frozen=True)
class EvaluatedLog:
    """A log with the errors of the model on it.

    Attributes:
        role: Role of the log, a key of `ROLES`.
        log: The log.
        inspection: Its quality.
        validation: Errors of the model, with the prediction.
    """

    role: Role
    log: Log
    inspection: DataQuality
    validation: Validation

    @property
    def predicted(self) -> Array:
        """Predicted output, (samples, joints)."""
        assert self.validation.prediction is not None
        return self.validation.prediction

    @property
    def name(self) -> str:
        """File name, with the range of samples if the log is only a part of the file."""
        origin, log = self.log.origin, self.log
        name = Path(origin.path).name
        if log.samples == origin.rows:
            return name
        return f"{name} (samples {origin.start}–{origin.start + log.samples - 1})"

    @property
    def label(self) -> str:
        """The role in words."""
        return ROLES[self.role]

    @property
    def at_rest(self) -> bool:
        """Whether no joint moves in this log."""
        return all(joint.still for joint in self.validation.joints)


@dataclass(frozen=True)
class ReportData:
    """A calibration with its logs.

    Attributes:
        calibration: The calibration.
        training: Training logs.
        validation: Logs for validation.
        command: Command line that reproduces the calibration; None if it is not known.
        file: Name of the model file.
    """

    calibration: Calibration
    training: tuple[EvaluatedLog, ...]
    validation: tuple[EvaluatedLog, ...]
    command: str | None = None
    file: str = "model.json"

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.calibration.model.robot

    @property
    def held_out(self) -> tuple[EvaluatedLog, ...]:
        """The validation logs that do not overlap the training data."""
        return tuple(log for log in self.validation if log.role == "validation")

    @property
    def logs(self) -> tuple[EvaluatedLog, ...]:
        """All logs, those for validation first."""
        return (*self.validation, *self.training)

    @cached_property
    def friction(self) -> FrictionSamples:
        """Measured friction from the training logs, or from the validation logs if there are no training logs."""
        return friction_samples(self.calibration, [item.log for item in self.training or self.validation])


def collect(
    calibration: Calibration,
    training: Sequence[Log | Validation],
    validation: Sequence[Log | Validation] = (),
    command: str | None = None,
    file: str | None = None,
) -> ReportData:
    """Return a calibration with its evaluated logs; existing validations are not computed again."""
    seen, other = (
        [item if isinstance(item, Validation) else validate(calibration, item) for item in group]
        for group in (training, validation)
    )
    return ReportData(
        calibration,
        tuple(_evaluated(calibration, item, "training") for item in seen),
        tuple(_evaluated(calibration, item, "validation" if item.held_out else "overlap") for item in other),
        command,
        file or "model.json",
    )


def _evaluated(calibration: Calibration, validation: Validation, role: Role) -> EvaluatedLog:
    log = _log(validation)
    return EvaluatedLog(role, log, check_quality(log, calibration.model.robot), validation)


def _log(validation: Validation) -> Log:
    assert validation.log is not None
    return validation.log
