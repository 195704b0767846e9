"""Measured against predicted, with the residual beneath, for every joint and log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointwise.report.evidence import Evidence, Exhibit
from jointwise.report.figure import MEASURED, PREDICTED, RESIDUAL, Figure, axis, line, packed
from jointwise.report.markup import Html, element, join, paragraph, tabs
from jointwise.report.numbers import joint_title, r2_text
from jointwise.report.thinning import thin
from jointwise.result.validation import JointMetrics
from jointwise.spatial import Array

ID, TITLE = "prediction", "Measured and predicted"

POINTS, FEWEST = 4000, 500
BYTES = 2_400_000
"""What all curves together may weigh in the page."""
BYTES_A_POINT = 4 * 16 / 3
LOGS = 4
"""Most logs of a kind that are drawn."""


def body(evidence: Evidence) -> Html:
    """Return a panel a joint with a figure a log, unseen data first."""
    shown = [*evidence.validation[:LOGS], *evidence.training[:LOGS]]
    if not shown:
        return paragraph("No log was given.")
    figures = len(shown) * evidence.robot.dof
    most = int(np.clip(BYTES / BYTES_A_POINT / figures, FEWEST, POINTS))
    panels = [
        (joint_title(evidence.robot, j), join(_drawn(evidence, exhibit, j, most) for exhibit in shown))
        for j in range(evidence.robot.dof)
    ]
    left = len(evidence.all) - len(shown)
    more = paragraph(f"{left} more logs are in the tables only.", class_="small") if left else ""
    return join([_explanation(), tabs("Joint", panels), more])


def _explanation() -> Html:
    return paragraph(
        "The residual beneath is measured minus predicted. A good model leaves noise; a pattern that follows the "
        "motion is physics the model does not have. Drag to zoom, double-click to reset, move the handles of the "
        "strip below a plot (the way on a touch screen) to choose a stretch of time.",
        class_="hint",
    )


def _drawn(evidence: Evidence, exhibit: Exhibit, j: int, most: int) -> Html:
    role = element("span", exhibit.label, class_=f"role {exhibit.role}")
    errors = exhibit.validation.joints[j]
    unit = evidence.calibration.unit
    title = element("span", exhibit.name, class_="file")
    caption = join([role, " ", title, f" · RMSE {errors.rmse:.3g} {unit} · {_fit(errors)}"])
    return prediction_figure(evidence, exhibit, j, most).html(caption)


def _fit(errors: JointMetrics) -> str:
    return f"{errors.offset:.2g} off on average, at rest" if errors.still else f"R² {r2_text(errors.r2)}"


def prediction_figure(evidence: Evidence, exhibit: Exhibit, j: int, most: int) -> Figure:
    """Return measured, predicted and residual of a joint on one time axis."""
    calibration, log = evidence.calibration, exhibit.log
    measured, predicted = np.asarray(log.channel(calibration.output)[:, j]), exhibit.predicted[:, j]
    residual = measured - predicted
    rows = thin(measured, residual, most=most)
    gaps = exhibit.examination.numbers.clock.gaps
    t, *series = _broken(rows, gaps, log.t[rows] - log.t[0], measured[rows], predicted[rows], residual[rows])
    unit = calibration.unit
    show = f"%{{y:.3f}} {unit}"
    traces = [
        line("measured", "shared", packed(series[0]), MEASURED, 1.2, hovertemplate=show),
        line("predicted", "shared", packed(series[1]), PREDICTED, 1.4, hovertemplate=show),
        line("residual", "shared", packed(series[2]), RESIDUAL, 1.0, hovertemplate=show, yaxis="y2"),
    ]
    layout = {
        "xaxis": {"anchor": "y2", "rangeslider": {"thickness": 0.07}, "ticksuffix": " s", "hoverformat": ".2f"},
        "yaxis": axis(f"{calibration.output} [{unit}]", domain=[0.36, 1.0], fixedrange=False),
        "yaxis2": axis(f"residual [{unit}]", domain=[0.0, 0.28], fixedrange=False),
        "hovermode": "x unified",
        "hoversubplots": "axis",
    }
    alt = (
        f"{joint_title(evidence.robot, j)}, {exhibit.label}: measured and predicted {calibration.output} over time, "
        f"residual beneath; root mean square error {exhibit.validation.joints[j].rmse:.3g} {unit}."
    )
    return Figure(traces, layout, alt, 470, packed(t))


def _broken(rows: NDArray[np.intp], gaps: NDArray[np.intp], *series: Array) -> list[Array]:
    """Return series with a NaN where a gap of the log lies between two of the drawn samples."""
    places = np.unique(np.searchsorted(rows, gaps))
    places = places[(places > 0) & (places < len(rows))]
    t = np.insert(series[0], places, series[0][places])
    return [t, *(np.insert(own, places, np.nan) for own in series[1:])]
