"""The logs of a report: verdicts for every use, every metric of every joint, and the findings of the inspection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise.data.statistics import MOVING_SPEED
from jointwise.formatting import fixed, number, r2_text
from jointwise.report.data import ReportData, Role
from jointwise.report.page import Html, element, fragment
from jointwise.result.metrics import JointMetrics
from jointwise.result.verdict import log_verdict, parameter_verdict

NOTES: dict[Role, str] = {
    "validation": "Validation error: these samples were not used for training.",
    "training": "Training error: the model was fitted to these samples.",
    "overlap": "Training error: the model was fitted to some or all of these samples.",
}


def accuracy_section(data: ReportData) -> Html:
    """Return two tables per log, validation data first."""
    unit = data.calibration.unit
    errors = (f"RMSE [{unit}]", f"MSE [{unit}²]", f"Mean |e| [{unit}]", f"Max |e| [{unit}]", f"Mean e [{unit}]")
    head = ("Joint", "R²", "NMSE", "Fit %", *errors, "Samples")
    logs = []
    for item in data.logs:
        tables = [(f"All samples, {item.label}", _rows(item.validation.joints))]
        moves = any(joint is not None for joint in item.validation.moving)
        if moves:
            caption = f"Moving samples (|speed| > {MOVING_SPEED:g} rad/s), {item.label}"
            tables.append((caption, _rows(item.validation.moving)))
        about = {"name": item.name, "role": item.role, "label": item.label, "note": NOTES[item.role]}
        logs.append({**about, "head": head, "tables": tables, "at_rest": not moves})
    return fragment("accuracy.html", logs=logs)


def _rows(joints: Sequence[JointMetrics | None]) -> list[Sequence[object]]:
    """Return the errors of the joints, and the mean of those that have one."""
    rows = [_row(j, joint) for j, joint in enumerate(joints) if joint is not None]
    known = [joint for joint in joints if joint is not None and joint.nmse is not None]
    return [*rows, *([_mean_row(known)] if known else [])]


def _row(j: int, joint: JointMetrics) -> Sequence[object]:
    return (
        f"{j + 1}, at rest" if joint.still else j + 1,
        r2_text(joint.r2),
        number(joint.nmse, 3),
        fixed(joint.nrmse_percent, 1),
        number(joint.rmse, 3),
        number(joint.mse, 3),
        number(joint.mean, 3),
        number(joint.max, 3),
        number(joint.offset, 2),
        f"{joint.samples:,}",
    )


def _mean_row(known: Sequence[JointMetrics]) -> Sequence[object]:
    r2, nmse, fit = (
        float(np.mean([getattr(joint, name) for joint in known])) for name in ("r2", "nmse", "nrmse_percent")
    )
    means = (r2_text(r2), number(nmse, 3), fixed(fit, 1))
    return (element("strong", "mean"), *(element("strong", mean) for mean in means), *[""] * 6)


def quality_section(data: ReportData) -> Html:
    """Return one article per log; for training logs that are not available, the facts stored in the model file."""
    calibration = data.calibration
    stored = () if data.training else calibration.provenance.logs
    return fragment("quality.html", logs=data.logs, stored=stored, output=calibration.output, unit=calibration.unit)


LOG_KINDS = {
    "motion": "motion",
    "payload": "another payload",
    "standstill": "standstill",
    "contradiction": "contradicts the model",
}


def uses(data: ReportData) -> Html:
    """Return one row per log: its kind, its errors and a grade for every use; below it causes and next steps."""
    if not data.logs:
        return Html("")
    logs = [(item.name, item.label, log_verdict(item.validation)) for item in data.logs]
    return fragment("uses.html", logs=logs, kinds=LOG_KINDS, parameters=parameter_verdict(data.calibration))
