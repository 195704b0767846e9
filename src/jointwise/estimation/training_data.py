"""The training logs of a calibration: inspected, without repeated samples, joints at rest without noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jointwise.data.coordinates import model_log
from jointwise.data.log import Log, check_joints
from jointwise.data.quality import DataQuality, check_quality
from jointwise.description.robot import Robot
from jointwise.errors import DataError


def inspected(log: Log, robot: Robot) -> DataQuality:
    """Return the quality of a training log; reject one that is unsuitable."""
    check_joints(log, robot)
    inspection = check_quality(model_log(log, robot), robot)
    if inspection.verdict == "refused":
        gravest = next(finding for finding in inspection.findings if finding.severity == "error")
        raise DataError(f"{log.origin.path}: {gravest.message} {gravest.advice}")
    return inspection


def held_still(inspection: DataQuality) -> Log:
    """Return the log with joints that never move held still: the noise of their encoders is no excitation."""
    log, moved = inspection.log, inspection.numbers.moved
    return log if moved.all() else replace(log, q=np.where(moved, log.q, log.q[0]), pages=None)


def warnings_of(inspections: Sequence[DataQuality]) -> list[str]:
    """Return the warnings of the inspection of some logs, each with the name of its file."""
    return [
        f"{Path(inspection.log.origin.path).name}: {finding.message} {finding.advice}".rstrip()
        for inspection in inspections
        for finding in inspection.findings
        if finding.severity == "warning"
    ]
