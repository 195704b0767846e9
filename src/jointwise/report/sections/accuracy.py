"""Accuracy tables: every metric of every joint, training and unseen data kept apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise.report.evidence import Evidence, Exhibit
from jointwise.report.markup import Html, element, join, paragraph, table
from jointwise.report.numbers import fixed, number, r2_text
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
        _moving(exhibit),
        class_="log",
    )


def _moving(exhibit: Exhibit) -> Html:
    """Return the table of moving samples, or a word where there are none."""
    own = exhibit.validation
    if all(joint is None for joint in own.moving):
        return paragraph("No joint moves in this log: the errors are those at rest, and have no R².", class_="small")
    return _table(f"Moving samples (|speed| > {MOVING_SPEED:g} rad/s), {exhibit.label}", own.moving, own.unit)


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
        f"Mean e [{unit}]",
        "Samples",
    )
    rows = [_row(j, own) for j, own in enumerate(joints) if own is not None]
    means = [_mean_row(joints)] if any(own is not None and own.nmse is not None for own in joints) else []
    return table(caption, head, [*rows, *means])


def _row(j: int, own: JointMetrics) -> Sequence[object]:
    return (
        f"{j + 1}, at rest" if own.still else j + 1,
        r2_text(own.r2),
        number(own.nmse, 3),
        fixed(own.nrmse_percent, 1),
        number(own.rmse, 3),
        number(own.mse, 3),
        number(own.mean, 3),
        number(own.max, 3),
        number(own.offset, 2),
        f"{own.samples:,}",
    )


def _mean_row(joints: Sequence[JointMetrics | None]) -> Sequence[object]:
    known = [own for own in joints if own is not None and own.nmse is not None]
    r2, nmse, fit = (float(np.mean([getattr(own, name) for own in known])) for name in ("r2", "nmse", "nrmse_percent"))
    means = (r2_text(r2), number(nmse, 3), fixed(fit, 1))
    return (element("strong", "mean"), *(element("strong", own) for own in means), *[""] * 6)


def _legend() -> Html:
    return paragraph(
        "e = measured − predicted. NMSE = MSE / variance of the measurement; R² = 1 − NMSE; fit = 100 (1 − ‖e‖ / "
        "‖measured − mean‖) %, 100 is perfect, 0 no better than the mean. A joint at rest has none of them: "
        "friction may hold anything up to break-away there, whatever the motion says.",
        class_="small",
    )
