"""Accuracy: every metric of every joint, for each log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise.formatting import fixed, number, r2_text
from jointwise.report.data import EvaluatedLog, ReportData, Role
from jointwise.report.markup import Html, element, join, paragraph, table
from jointwise.result.metrics import MOVING_SPEED, JointMetrics

ID, TITLE = "accuracy", "Accuracy"

NOTES: dict[Role, str] = {
    "validation": "Validation error: these samples were not used for training.",
    "training": "Training error: the model was fitted to these samples.",
    "overlap": "Training error: the model was fitted to some or all of these samples.",
}


def body(data: ReportData) -> Html:
    """Return two tables per log, validation data first."""
    return join([*(_log(item) for item in data.logs), _legend()])


def _log(item: EvaluatedLog) -> Html:
    role = element("span", item.label, class_=f"role {item.role}")
    return element(
        "article",
        element("h3", element("span", item.name, class_="file"), " ", role),
        paragraph(NOTES[item.role], class_="small"),
        _table(f"All samples, {item.label}", item.validation.joints, item.validation.unit),
        _moving(item),
        class_="log",
    )


def _moving(item: EvaluatedLog) -> Html:
    """Return the table of moving samples, or a note if there are none."""
    moving, unit = item.validation.moving, item.validation.unit
    if all(joint is None for joint in moving):
        return paragraph(
            "No joint moves in this log: the errors are those at rest, and there is no R².", class_="small"
        )
    return _table(f"Moving samples (|speed| > {MOVING_SPEED:g} rad/s), {item.label}", moving, unit)


def _table(caption: str, joints: Sequence[JointMetrics | None], unit: str) -> Html:
    errors = (f"RMSE [{unit}]", f"MSE [{unit}²]", f"Mean |e| [{unit}]", f"Max |e| [{unit}]", f"Mean e [{unit}]")
    head = ("Joint", "R²", "NMSE", "Fit %", *errors, "Samples")
    rows = [_row(j, joint) for j, joint in enumerate(joints) if joint is not None]
    known = [joint for joint in joints if joint is not None and joint.nmse is not None]
    return table(caption, head, [*rows, *([_mean_row(known)] if known else [])])


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


def _legend() -> Html:
    return paragraph(
        "e = measured − predicted. NMSE = MSE / variance of the measurement; R² = 1 − NMSE; fit = 100 (1 − ‖e‖ / "
        "‖measured − mean‖) %: 100 is perfect, 0 is no better than the mean. They are not defined for a joint at rest, "
        "where static friction can hold any torque up to break-away.",
        class_="small",
    )
