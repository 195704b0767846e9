"""Measured and predicted output with the residual below, for every joint and log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointwise.formatting import r2_text
from jointwise.report.data import EvaluatedLog, ReportData
from jointwise.report.figure import MEASURED, PREDICTED, RESIDUAL, Figure, axis, downsample, line, packed
from jointwise.report.motion import motion_view
from jointwise.report.page import Html, element, join, joint_title, paragraph, tabs
from jointwise.result.metrics import JointMetrics
from jointwise.spatial import Array

MOST_POINTS, LEAST_POINTS = 1500, 300
"""Limits of the number of points of a curve."""
MOST_BYTES = 250_000
"""Size of all curves in the page."""
BYTES_PER_POINT = 4 * 8 / 3
"""Four 16-bit numbers in base64."""
MOST_LOGS = 4
"""Largest number of training logs, and of validation logs, that are drawn."""


def prediction_section(data: ReportData) -> Html:
    """Return one panel per joint with one figure per log, validation data first."""
    shown = [*data.validation[:MOST_LOGS], *data.training[:MOST_LOGS]]
    if not shown:
        return paragraph("No log is available.")
    figures = len(shown) * data.robot.dof
    most = int(np.clip(MOST_BYTES / BYTES_PER_POINT / figures, LEAST_POINTS, MOST_POINTS))
    panels = [
        (joint_title(data.robot, j), element("div", *(_figure(data, item, j, most) for item in shown), class_="series"))
        for j in range(data.robot.dof)
    ]
    omitted = len(data.logs) - len(shown)
    note = paragraph(f"{omitted} more logs appear in the tables only.", class_="small") if omitted else ""
    return join([_explanation(), tabs("Joint", panels), note])


def _explanation() -> Html:
    return paragraph(
        "The residual (measured minus predicted) of a good model is noise; a pattern that follows the motion is an "
        "effect that the model does not describe. Drag to zoom, double-click to reset; the strip below a plot selects "
        "a time interval, also on a touch screen.",
        class_="hint",
    )


def _figure(data: ReportData, item: EvaluatedLog, j: int, most: int) -> Html:
    role = element("span", item.label, class_=f"role {item.role}")
    name, errors = element("span", item.name, class_="file"), item.validation.joints[j]
    caption = join(
        [role, " ", name, f" · RMSE {errors.rmse:.3g} {data.calibration.unit} · {_fit(errors)}, all samples"]
    )
    return prediction_figure(data, item, j, most).html(caption)


def _fit(errors: JointMetrics) -> str:
    return f"mean error {errors.offset:.2g}, at rest" if errors.still else f"R² {r2_text(errors.r2)}"


def prediction_figure(data: ReportData, item: EvaluatedLog, j: int, most: int) -> Figure:
    """Return measured, predicted and residual of a joint on one time axis."""
    calibration, log = data.calibration, item.log
    measured, predicted = np.asarray(log.channel(calibration.output)[:, j]), item.predicted[:, j]
    residual = measured - predicted
    rows = downsample(measured, residual, most=most)
    gaps = item.inspection.numbers.clock.gaps
    t, *series = _interrupted(rows, gaps, log.t[rows] - log.t[0], measured[rows], predicted[rows], residual[rows])
    unit = calibration.unit
    hover = f"%{{y:.3f}} {unit}"
    traces = [
        line("measured", "shared", packed(series[0]), MEASURED, 1.2, hovertemplate=hover),
        line("predicted", "shared", packed(series[1]), PREDICTED, 1.4, hovertemplate=hover),
        line("residual", "shared", packed(series[2]), RESIDUAL, 1.0, hovertemplate=hover, yaxis="y2"),
    ]
    layout = {
        "xaxis": {"anchor": "y2", "rangeslider": {"thickness": 0.07}, "ticksuffix": " s", "hoverformat": ".2f"},
        "yaxis": axis(f"{calibration.output} [{unit}]", domain=[0.36, 1.0], fixedrange=False),
        "yaxis2": axis(f"residual [{unit}]", domain=[0.0, 0.28], fixedrange=False),
        "hovermode": "x unified",
        "hoversubplots": "axis",
    }
    alt = (
        f"{joint_title(data.robot, j)}, {item.label}: measured and predicted {calibration.output} over time, residual "
        f"below; RMS error {item.validation.joints[j].rmse:.3g} {unit}."
    )
    return Figure(traces, layout, alt, 470, packed(t))


def _interrupted(rows: NDArray[np.intp], gaps: NDArray[np.intp], *series: Array) -> list[Array]:
    """Return series with a NaN wherever a gap of the log lies between two drawn samples."""
    indices = np.unique(np.searchsorted(rows, gaps))
    indices = indices[(indices > 0) & (indices < len(rows))]
    t = np.insert(series[0], indices, series[0][indices])
    return [t, *(np.insert(values, indices, np.nan) for values in series[1:])]


# -- motion --


def motion_section(data: ReportData) -> Html:
    """Return the animation of the first training log, or of the first validation log if there is none."""
    item = next(iter((*data.training, *data.validation)), None)
    if item is None:
        return paragraph("No log is available.")
    role = element("span", item.label, class_=f"role {item.role}")
    name = element("span", item.name, class_="file")
    title = paragraph(role, " ", name, f" · {item.log.duration:.1f} s", class_="small")
    rows = _increasing(item.log.t)
    view = motion_view(data.robot, item.log.t[rows], item.log.q[rows], data.calibration.model.gravity)
    return join([title, view])


def _increasing(t: Array) -> NDArray[np.bool_]:
    """Return which samples are later than all samples before them; a clock may stall or jump back."""
    return np.concatenate([[True], t[1:] > np.maximum.accumulate(t)[:-1]])
