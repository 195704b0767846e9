"""The page of the monitor: status and reasons, a timeline of every log, contacts, payload, friction and history."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jointwise.report.figure import RESIDUAL, Figure, axis, downsample, joint_color, line, packed, stacked_layout
from jointwise.report.page import (
    Html,
    Section,
    badge,
    compose,
    element,
    facts,
    items,
    join,
    paragraph,
    table,
    write_page,
)
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
    sections: list[Section] = [("overview", "Overview", _overview(results))]
    for number, (result, timeline) in enumerate(zip(results, timelines, strict=True), start=1):
        title = Path(str(result["file"])).name if len(results) > 1 else "Timeline"
        sections.append((f"log{number}", title, _log(result, timeline)))
    if history:
        sections.append(("history", "History", _history(history, changes)))
    noun = "log" if len(results) == 1 else "logs"
    origin = f"{len(results)} {noun}, {sum(r['duration'] for r in results):.0f} s, {datetime.now(UTC):%Y-%m-%d}"
    return write_page(compose("Monitor", str(results[0]["robot"]), origin, sections), path, FILE)


def _badge(status: str) -> Html:
    return badge(status, TONES[status])


def _overview(results: Sequence[Result]) -> Html:
    """Return one row for every log."""
    rows = [
        [
            Path(str(result["file"])).name,
            _badge(result["status"]),
            f"{result['duration']:.0f}",
            str(len(result["contacts"])),
            _mass(result["payload"]),
            element("span", "; ".join(result["reasons"]) or "nothing found", class_="wrap"),
        ]
        for result in results
    ]
    head = ["log", "status", "duration [s]", "contacts", "payload [kg]", "what was found"]
    return Html(table("Logs", head, rows, text_columns=(0, 1, 5)) + paragraph(_thresholds(results[0])))


def _thresholds(result: Result) -> str:
    origin = {
        "training": "the residuals of the model on its training logs",
        "validation": "the residuals of the model on its validation logs",
        "assumed": "assumed values: the model file has no residuals",
    }[result["thresholds"]]
    return f"Thresholds are computed from {origin}; they depend on the speed and the acceleration of the joints."


def _mass(payload: Mapping[str, Any]) -> str:
    low, high = payload["mass_interval"]
    text = f"{payload['mass']:.2f} [{low:.2f}, {high:.2f}]"
    return f"not determined ({text})" if payload["status"] == "unknown" else text


def _log(result: Result, timeline: TimelineData) -> Html:
    parts = [_timeline(result, timeline), _facts(result)]
    if result["contacts"]:
        parts.append(_contacts(result["contacts"]))
    parts.append(_joints(result))
    if result["stiffness"]:
        parts.append(_stiffness(result["stiffness"]))
    if result["missing"]:
        parts.append(Html(paragraph("Not monitored with the channels of this log:") + items(result["missing"])))
    return join(parts)


def _timeline(result: Result, timeline: TimelineData) -> Html:
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
    caption = "External torque of the joints. Above a ratio of 1 there is a contact (shaded)."
    return Figure(traces, layout, "external torque over time", height=480, x=packed(t - start)).html(caption)


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


def _facts(result: Result) -> Html:
    payload, data = result["payload"], result["data"]
    pairs: list[tuple[object, object]] = [
        ("Status", _badge(result["status"])),
        ("Payload", join([_badge(payload["status"]), f" {_mass(payload)} kg, declared {payload['declared']:.2f} kg"])),
        ("Data", join([_badge(data["status"]), f" {data['samples']} samples at {result['rate']:g} Hz"])),
    ]
    lost = {**data["dropped"], **({"malformed": data["malformed"]} if data["malformed"] else {}), **data["breaks"]}
    if lost:
        pairs.append(("Dropped samples and breaks", ", ".join(f"{count} {name}" for name, count in lost.items())))
    if payload["com"] is not None:
        pairs.append(("Centre of mass", ", ".join(f"{value:.3f}" for value in payload["com"]) + " m in the tool frame"))
    if result["temperature"] is not None:
        low, high = min(result["temperature"]["lowest"]), max(result["temperature"]["highest"])
        badge_ = _badge(result["temperature"]["status"])
        pairs.append(("Temperature", join([badge_, f" {low:.0f} to {high:.0f} °C"])))
    return facts(pairs)


def _contacts(contacts: Sequence[Mapping[str, Any]]) -> Html:
    rows = [
        [
            f"{contact['start']:.3f}",
            "" if contact["end"] is None else f"{contact['end'] - contact['start']:.3f}",
            str(contact["joint"]),
            f"{contact['peak']:+.1f} ± {1.96 * contact['deviation']:.1f}",
            f"{contact['ratio']:.2f}",
            _force(contact),
        ]
        for contact in contacts[:SHOWN]
    ]
    head = ["start [s]", "duration [s]", "joint", "peak [Nm]", "ratio to threshold", "tool force x y z (size) [N]"]
    note = "The force is that at the tool, in the base frame, which explains the torques best; a contact elsewhere has "
    note += "another one. It is not determined near singular poses, and where dry friction may hold much of it."
    return Html(table("Contacts", head, rows, text_columns=()) + paragraph(note))


def _force(contact: Mapping[str, Any]) -> str:
    """Return the force at the tool with the interval of its size, N."""
    if contact["force"] is None:
        return "not determined"
    axes, size = " ".join(f"{value:.0f}" for value in contact["force"]), math.hypot(*contact["force"])
    return f"{axes} ({size:.0f} ± {1.96 * contact['force_deviation']:.0f})"


def _joints(result: Result) -> Html:
    rows = []
    for k, joint in enumerate(result["friction"]):
        a1 = f"{joint['a1']:.3f} ± {1.96 * joint['a1_deviation']:.3f}" if joint["moved"] > 0.0 else "does not move"
        a2 = f"{joint['a2']:+.2f} ± {1.96 * joint['a2_deviation']:.2f}" if joint["moved"] > 0.0 else ""
        change = f"{joint['change']:+.1%} ± {1.96 * joint['change_error']:.1%}" if joint["moved"] > 0.0 else ""
        torque, spread = (
            "-" if (value := result[f"external_torque_{name}"][k]) is None else f"{value:.2f}"
            for name in ("rms", "deviation")
        )
        rows.append(
            [
                str(joint["joint"]),
                _badge(joint["status"]),
                torque,
                spread,
                change,
                a1,
                a2,
                f"{joint['moved']:.0f}",
            ]
        )
    head = [
        "joint", "friction", "external torque rms [Nm]", "without contact (1 σ) [Nm]",
        "friction change / dry friction", "dry friction / model", "viscous change [Nm s/rad]", "in motion [s]",
    ]  # fmt: skip
    found = table("Joints", head, rows, text_columns=(0, 1))
    unknown = [f"joint {joint['joint']}: {joint['reason']}" for joint in result["friction"] if joint["reason"]]
    return (
        Html(found + paragraph("Friction is unknown where 10 % more would not be seen:") + items(unknown))
        if unknown
        else found
    )


def _stiffness(joints: Sequence[Mapping[str, Any]]) -> Html:
    rows = [
        [
            f"joint {joint['joint']}",
            _badge(joint["status"]),
            _interval(joint["stiffness"], joint["interval"], "{:.0f}"),
            f"{joint['stored']:.0f}",
            _interval(joint["loss"], joint["loss_interval"], "{:+.1%}"),
            _interval(joint["secant_loss"], joint["secant_loss_interval"], "{:+.1%}"),
        ]
        for joint in joints
    ]
    head = ["", "stiffness", "k(0) [Nm/rad]", "stored [Nm/rad]", "loss of k(0)", "loss of the secant"]
    note = "95 % intervals. The loss is relative to the joint file; the status is the worse of the two."
    return Html(table("Stiffness", head, rows, text_columns=(0, 1)) + paragraph(note))


def _interval(value: float, limits: Sequence[float | None], form: str) -> str:
    low, high = ("unknown" if limit is None else form.format(limit) for limit in limits)
    return f"{form.format(value)} [{low}, {high}]"


HISTORIES = {
    "friction": ("change of friction / dry friction", "Friction of the joints against the model, 95 % intervals."),
    "stiffness": ("stiffness k(0) [Nm/rad]", "Stiffness of the joints, 95 % intervals."),
}
"""Axis and caption of the history of a quantity."""


def _history(history: Sequence[HistorySeries], changes: str) -> Html:
    names = [name for name in HISTORIES if any(series.quantity == name for series in history)]
    figures = [_course([series for series in history if series.quantity == name], *HISTORIES[name]) for name in names]
    return Html(join([items(changes.splitlines()) if changes else "", *figures]))


def _course(history: Sequence[HistorySeries], label: str, caption: str) -> Html:
    """Return the figure of one quantity over all runs."""
    traces = []
    for series in history:
        dates = [datetime.fromtimestamp(date, UTC).isoformat() for date in series.dates]
        color = joint_color(series.joint - 1)
        errors = {"type": "data", "array": [1.96 * value for value in series.deviations], "thickness": 1}
        trace = line(f"joint {series.joint}", dates, list(series.values), color, mode="lines+markers", error_y=errors)
        traces.append(trace)
    layout = {"xaxis": {"type": "date"}, "yaxis": axis(label)}
    return Figure(traces, layout, f"{label} over all runs").html(caption)
