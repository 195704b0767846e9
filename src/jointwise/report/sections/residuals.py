"""Residuals: the mean residual over position, speed, temperature and time, and the deformation of the gears."""

from __future__ import annotations

import numpy as np

from jointwise.description.robot import Joint
from jointwise.formatting import percent
from jointwise.report.data import EvaluatedLog, ReportData
from jointwise.report.figure import MEASURED, RESIDUAL, Figure, axis, band, line, packed, scatter_figure
from jointwise.report.page import Html, effort_unit, element, items, join, joint_title, length_unit, paragraph, tabs
from jointwise.result.diagnostics import ResidualTrend, residual_trends
from jointwise.spatial import Array

NOTEWORTHY = 0.05
"""Share of the residual variance from which a trend is mentioned in the text."""
CAUSES = {
    "position": "kinematic error of the gear, position-dependent backlash, an undeclared payload or cable forces",
    "speed": "a friction curve of a different shape",
    "temperature": "friction that changes with temperature",
    "time": "warm-up, wear or sensor drift",
}
"""Quantities, and the usual causes of a trend along each."""

DEFORMATION_POINTS = 800
"""Largest number of points of a deformation plot."""


def residuals_section(data: ReportData) -> Html:
    """Return a list of significant trends, and one panel of plots per joint."""
    item = next(iter(data.held_out or data.logs), None)
    if item is None:
        return paragraph("No log is available.")
    trends = [residual_trends(data.calibration, item.log, item.predicted, j) for j in range(data.robot.dof)]
    panels = [
        (joint_title(data.robot, j), join([_figures(data, found, j), _deformation(data, item, j)]))
        for j, found in enumerate(trends)
    ]
    return join([_explanation(item), _significant(data, trends), tabs("Joint", panels)])


def _explanation(item: EvaluatedLog) -> Html:
    return paragraph(
        f"Mean residual (measured minus predicted) on {item.name} ({item.label}) while the joint moves, with its 95 % "
        "confidence interval. A flat curve indicates noise, a significant trend an effect that the model does not "
        "describe.",
        class_="hint",
    )


def _significant(data: ReportData, trends: list[list[ResidualTrend]]) -> Html:
    lines = [
        f"{joint_title(data.robot, j)}: {percent(trend.share, 0)} of the residual variance depends on "
        f"{trend.quantity}. Possible causes: {CAUSES[trend.quantity]}."
        for j, found in enumerate(trends)
        for trend in found
        if trend.share >= NOTEWORTHY
    ]
    return items(lines) if lines else paragraph("The residuals show no significant trend.")


def _figures(data: ReportData, trends: list[ResidualTrend], j: int) -> Html:
    unit = data.calibration.unit
    figures = (trend_figure(trend, unit, j).html(_caption(trend)) for trend in trends)
    return element("div", *figures, class_="pair")


def _caption(trend: ResidualTrend) -> str:
    sign = ", times the sign of the speed" if trend.quantity == "temperature" else ""
    return f"Residual over {trend.quantity}{sign}: {percent(max(trend.share, 0.0), 0)} of its variance"


def trend_figure(trend: ResidualTrend, unit: str, j: int) -> Figure:
    """Return the mean residual over a quantity with its confidence band."""
    low, high = trend.mean - trend.half_width, trend.mean + trend.half_width
    traces = [
        band("95 % interval", trend.x, low, high, RESIDUAL, showlegend=False),
        line("mean residual", packed(trend.x), packed(trend.mean), RESIDUAL, 1.8, showlegend=False),
    ]
    layout = {
        "xaxis": axis(f"{trend.quantity} [{trend.unit}]"),
        "yaxis": axis(f"residual [{unit}]", zeroline=True),
        "hovermode": "closest",
    }
    return Figure(traces, layout, f"Joint {j + 1}: mean residual over {trend.quantity}.", 300)


def _deformation(data: ReportData, item: EvaluatedLog, j: int) -> Html:
    """Return θ - q over torque (slope: compliance) and over position (kinematic error), if θ was logged."""
    log = item.log
    if log.theta is None:
        return Html("")
    rows = np.linspace(0, log.samples - 1, min(DEFORMATION_POINTS, log.samples)).astype(np.intp)
    joint, q = data.robot.joints[j], np.asarray(log.q[rows, j])
    torque = item.predicted[rows, j] * data.calibration.gains[j]
    deformation = 1e3 * (np.asarray(log.theta[rows, j]) - q)
    over_torque = _scatter(torque, deformation, f"predicted torque [{effort_unit(joint)}]", joint, j)
    over_position = _scatter(q, deformation, f"position [{length_unit(joint)}]", joint, j)
    return element(
        "div",
        over_torque.html("Deformation of the gear over torque; the slope is its compliance"),
        over_position.html("Deformation of the gear over position; shows its kinematic error where the load is small"),
        class_="pair",
    )


def _scatter(x: Array, deformation: Array, title: str, joint: Joint, j: int) -> Figure:
    titles, marker = (title, f"θ - q [m{length_unit(joint)}]"), {"size": 3.5, "color": MEASURED, "opacity": 0.6}
    return scatter_figure(x, deformation, titles, f"Joint {j + 1}: deformation of the gear over {title}.", marker, 320)
