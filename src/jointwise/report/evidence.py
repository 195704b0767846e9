"""What a report tells about: every log with its examination, prediction and errors, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from jointwise.data.log import Log
from jointwise.data.quality import Examination, examine
from jointwise.description.robot import Robot
from jointwise.report.friction import FrictionData, friction_data
from jointwise.result.calibration import Calibration
from jointwise.result.validation import Validation, validate
from jointwise.spatial import Array

Role = Literal["training", "unseen", "seen"]
ROLES: dict[Role, str] = {"training": "training data", "unseen": "unseen data", "seen": "part of the training data"}


@dataclass(frozen=True)
class Exhibit:
    """A log under the model; `seen` is a log given for validation that overlaps the training data."""

    role: Role
    log: Log
    examination: Examination
    predicted: Array
    validation: Validation

    @property
    def name(self) -> str:
        """File name, and the samples where it is only a part of the file."""
        origin, log = self.log.origin, self.log
        name = Path(origin.path).name
        if log.samples == origin.rows:
            return name
        return f"{name} (samples {origin.start}–{origin.start + log.samples - 1})"

    @property
    def label(self) -> str:
        """What part the log plays."""
        return ROLES[self.role]


@dataclass(frozen=True)
class Evidence:
    """A calibration and the logs that speak for or against it; `command` reproduces it, if known; `file` holds it."""

    calibration: Calibration
    training: tuple[Exhibit, ...]
    validation: tuple[Exhibit, ...]
    command: str | None = None
    file: str = "model.json"

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.calibration.model.robot

    @property
    def unseen(self) -> tuple[Exhibit, ...]:
        """The logs that prove something."""
        return tuple(own for own in self.validation if own.role == "unseen")

    @property
    def all(self) -> tuple[Exhibit, ...]:
        """Every log, unseen ones first."""
        return (*self.validation, *self.training)

    @cached_property
    def friction(self) -> FrictionData:
        """Measured friction over speed, from the training logs (the others where there are none)."""
        return friction_data(self.calibration, [own.log for own in self.training or self.validation])


def gather(
    calibration: Calibration,
    training: Sequence[Log],
    validation: Sequence[Log],
    command: str | None,
    file: str | None = None,
) -> Evidence:
    """Return the evidence of a calibration and its logs."""
    return Evidence(
        calibration,
        tuple(_exhibit(calibration, log, "training") for log in training),
        tuple(_exhibit(calibration, log, _role(calibration, log, training)) for log in validation),
        command,
        file or "model.json",
    )


def _exhibit(calibration: Calibration, log: Log, role: Role) -> Exhibit:
    predicted = calibration.predict(log)
    errors = validate(calibration, log, predicted)
    return Exhibit(role, log, examine(log, calibration.model.robot), predicted, errors)


def _role(calibration: Calibration, log: Log, training: Sequence[Log]) -> Role:
    """Return whether a log for validation is unseen: it must not share samples with the training data."""
    if training:
        return "seen" if any(_overlap(log, other) for other in training) else "unseen"
    known = {source.sha256: source.samples for source in calibration.provenance.logs if source.sha256}
    return "seen" if log.origin.start < known.get(log.origin.sha256, 0) else "unseen"


def _overlap(log: Log, other: Log) -> bool:
    if log.origin.sha256 != other.origin.sha256 or not log.origin.sha256:
        return _equal(log, other)
    first, second = log.origin.start, other.origin.start
    return first < second + other.samples and second < first + log.samples


def _equal(log: Log, other: Log) -> bool:
    """Return whether two logs without a file behind them are the same."""
    return log is other or (log.q.shape == other.q.shape and bool(np.array_equal(log.q, other.q)))
