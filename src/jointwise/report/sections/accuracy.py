"""Accuracy tables: every metric of every joint, training and unseen data kept apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise.report.evidence import Evidence, Exhibit
from jointwise.report.markup import Html, element, join, paragraph, table
from jointwise.report.numbers import NOTHING, fixed, number
from jointwise.result.validation import MOVING_SPEED, JointMetrics

ID, TITLE = "accuracy", "Accuracy"

NOTES = {
    "unseen": "The model has never met these samples: this is the proof.",
    "training": "The model was fitted to these samples: this is no proof.",
    "seen": "These samples are among those the model was fitted to: this is no proof.",
}


def body(evidence: Evidence) -> Html:
    """Return two tables a log, unseen data first."""
    return join([*(_exhibit(own) for own in evidence.all), _legend()])


def _exhibit(exhibit: Exhibit) -> Html:
    role = element("span", exhibit.label, class_=f"role {exhibit.role}")
    unit = exhibit.validation.unit
    return element(
        "article",
        element("h3", element("span", exhibit.name, class_="file"), " ", role),
        paragraph(NOTES[exhibit.role], class_="small"),
        _table(f"All samples, {exhibit.label}", exhibit.validation.joints, unit),
        _table(f"Moving samples (|speed| > {MOVING_SPEED:g} rad/s), {exhibit.label}", exhibit.validation.moving, unit),
        class_="log",
    )


def _table(caption: str, joints: Sequence[JointMetrics | None], unit: str) -> Html:
    head = (
        "Joint",
        "R²",
        "NMSE",
        "Fit %",
        f"RMSE [{unit}]",
        f"MSE [{unit}²]",
        f"Mean |e| [{unit}]",
        f"Max |e| [{unit}]",
        "Samples",
    )
    rows = [_row(j, own) for j, own in enumerate(joints)]
    return table(caption, head, [*rows, _mean_row(joints)])


def _row(j: int, own: JointMetrics | None) -> Sequence[object]:
    if own is None:
        return (j + 1, *[NOTHING] * 8)
    return (
        j + 1,
        fixed(own.r2, 4),
        fixed(own.nmse, 5),
        fixed(own.nrmse_percent, 2),
        number(own.rmse),
        number(own.mse),
        number(own.mean),
        number(own.max),
        f"{own.samples:,}",
    )


def _mean_row(joints: Sequence[JointMetrics | None]) -> Sequence[object]:
    known = [own for own in joints if own is not None and own.nmse is not None]
    names = (("r2", 4), ("nmse", 5), ("nrmse_percent", 2))
    means = [fixed(float(np.mean([getattr(own, name) for own in known])), d) if known else NOTHING for name, d in names]
    return (element("strong", "mean"), *(element("strong", own) for own in means), *[""] * 5)


def _legend() -> Html:
    return paragraph(
        "e = measured − predicted. NMSE = MSE / variance of the measurement; R² = 1 − NMSE; fit = 100 (1 − ‖e‖ / "
        "‖measured − mean‖) %, 100 is perfect, 0 no better than the mean.",
        class_="small",
    )
