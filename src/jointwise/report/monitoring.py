"""The page of the monitor: status and reasons, a timeline of every log, contacts, payload, friction and history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jointwise.report.figure import RESIDUAL, Figure, axis, downsample, joint_color, line, packed, stacked_layout
from jointwise.report.page import render, write_page
from jointwise.spatial import Array

FILE = "monitor.html"
POINTS = 3000
"""Largest number of points of a curve."""
SHOWN = 200
"""Contacts in the table of a log."""
TONES = {"ok": "good", "watch": "fair", "worn": "poor", "contact": "poor", "fault": "poor", "unknown": "plain"}
"""Tone of a status."""

Result = Mapping[str, Any]
"""What the monitor found in a log, `MonitorResult.to_dict()`."""


@dataclass(frozen=True, eq=False)
class TimelineData:
    """Points of a monitored log for a plot.

    Attributes:
        t: Time stamps, (points,), s.
        torque: External torques, (points, joints), Nm.
        ratio: Largest ratios to the thresholds, (points, joints).
    """

    t: Array
    torque: Array
    ratio: Array


@dataclass(frozen=True)
class HistorySeries:
    """A quantity of a joint over the runs of a robot.

    Attributes:
        joint: Joint, 1-based.
        dates: Date of every run, s since 1970.
        values: Value in every run, relative for friction, Nm/rad for stiffness.
        deviations: Standard errors, in the same unit.
        quantity: "friction", its change relative to dry friction, or "stiffness", k(0).
    """

    joint: int
    dates: Sequence[float]
    values: Sequence[float]
    deviations: Sequence[float]
    quantity: str = "friction"


def write_monitoring_page(
    results: Sequence[Result],
    timelines: Sequence[TimelineData],
    path: str | Path,
    history: Sequence[HistorySeries] = (),
    changes: str = "",
) -> Path:
    """Write the page of the monitor and return its path. The page is self-contained and needs no network.

    Args:
        results: What was found in every log.
        timelines: Their timelines.
        path: A page (.html) or a directory, which is created if it does not exist.
        history: Friction and stiffness of the joints over all runs in a history.
        changes: What changed since commissioning, as text.

    """
    figures = map(_timeline, results, timelines)
    names = [Path(str(result["file"])).name for result in results]
    noun = "log" if len(results) == 1 else "logs"
    page = render(
        "monitoring.html",
        kind="Monitor",
        heading=str(results[0]["robot"]),
        origin=f"{len(results)} {noun}, {sum(r['duration'] for r in results):.0f} s, {datetime.now(UTC):%Y-%m-%d}",
        tones=TONES,
        shown=SHOWN,
        logs=list(zip(names, results, figures, strict=True)),
        history=[
            (_course([series for series in history if series.quantity == name], label), caption)
            for name, (label, caption) in HISTORIES.items()
            if any(series.quantity == name for series in history)
        ],
        changes=changes.splitlines(),
    )
    return write_page(page, path, FILE)


def _timeline(result: Result, timeline: TimelineData) -> Figure:
    """Return external torques above, ratios to the thresholds below; contacts are shaded."""
    largest = timeline.ratio.max(axis=1)
    rows = downsample(*timeline.torque.T, largest, most=POINTS)
    t, start = timeline.t[rows], float(timeline.t[0])
    traces = [
        line(f"joint {j + 1}", "shared", packed(timeline.torque[rows, j]), joint_color(j), 1.2)
        for j in range(timeline.torque.shape[1])
    ]
    traces.append(line("largest ratio", "shared", packed(largest[rows]), RESIDUAL, yaxis="y2", showlegend=False))
    layout = {
        **stacked_layout("external torque [Nm]", "ratio to threshold"),
        "showlegend": True,
        "shapes": [_shade(contact, start, float(timeline.t[-1])) for contact in result["contacts"][:SHOWN]],
    }
    layout["shapes"].append(
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y2", "y0": 1, "y1": 1,
         "line": {"color": "#555555", "width": 1, "dash": "dot"}}
    )  # fmt: skip
    layout["yaxis2"] = {**layout["yaxis2"], "rangemode": "tozero"}
    return Figure(traces, layout, "external torque over time", height=480, x=packed(t - start))


def _shade(contact: Mapping[str, Any], start: float, last: float) -> dict[str, Any]:
    end = last if contact["end"] is None else contact["end"]
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": contact["start"] - start,
        "x1": end - start,
        "y0": 0,
        "y1": 1,
        "fillcolor": "rgba(180,71,15,0.18)",
        "line": {"width": 0},
    }


HISTORIES = {
    "friction": ("change of friction / dry friction", "Friction of the joints against the model, 95 % intervals."),
    "stiffness": ("stiffness k(0) [Nm/rad]", "Stiffness of the joints, 95 % intervals."),
}
"""Axis and caption of the history of a quantity."""


def _course(history: Sequence[HistorySeries], label: str) -> Figure:
    """Return the figure of one quantity over all runs."""
    traces = []
    for series in history:
        dates = [datetime.fromtimestamp(date, UTC).isoformat() for date in series.dates]
        color = joint_color(series.joint - 1)
        errors = {"type": "data", "array": [1.96 * value for value in series.deviations], "thickness": 1}
        trace = line(f"joint {series.joint}", dates, list(series.values), color, mode="lines+markers", error_y=errors)
        traces.append(trace)
    layout = {"xaxis": {"type": "date"}, "yaxis": axis(label)}
    return Figure(traces, layout, f"{label} over all runs")
