"""The report of identified joints: every phenomenon with its parameters, data, confidence band and residual."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.description import list_robots, load_robot
from jointwise.formatting import listed, number, percent, superscript_unit
from jointwise.joint.curve import Curve, Surface
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part, Value, rms
from jointwise.joint.part_text import fit_text
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.report.figure import MEASURED, PREDICTED, RESIDUAL, Figure, Trace, axis, band, line, packed, scatter
from jointwise.report.joint_text import covers_turn, finding, fit_grade, meaning, range_text, scaled
from jointwise.report.page import Html, Section, fragment, render, robot_title, write_page
from jointwise.result.diagnostics import smooth_share
from jointwise.spatial import Array

FILE = "joint.html"
GREY = "rgba(235,237,240,0.82)"
"""Covers the parts of a map without data."""
GREY_AREAS = "Grey areas contain no data; the map there combines the effects measured separately in the other areas."
PART_OF_TURN = "; it is not known at other angles"
EXTRAPOLATION = {
    **dict.fromkeys(("friction", "load", "temperature"), "; outside this range the value at its end is used"),
    "stiffness": "; outside this range the curve is extrapolated",
    "transmission": "; it repeats every turn",
    "hysteresis": "",
    "motor": "",
}
"""What a model does outside the range of its data."""
JUMP = 3.0
"""A step of a line this many times as long as both its neighbours is a jump, at which the line is interrupted."""
LEAST_WIDTH = 0.01
"""Least width of a measured area of a map, relative to the map; thinner ones would be invisible."""
Range = tuple[float, float]
Area = tuple[Range, Range]
"""A rectangle of a map: ranges along x and y."""


def write_joint_report(models: Sequence[JointModel], path: str | Path, source: str | None = None) -> Path:
    """Write the report of some joints and return its path. The page is self-contained and needs no network.

    Args:
        models: The joints.
        path: A page (.html) or a directory, which is created if it does not exist.
        source: Name of the joint file, for the example of use.

    """
    return write_page(render_joints(models, source), path, FILE)


def render_joints(models: Sequence[JointModel], source: str | None = None) -> str:
    """Return the complete page."""
    from jointwise import __version__

    robots = ", ".join(dict.fromkeys(_title(model.robot) for model in models))
    heading = f"{robots}, joint{'s'[: len(models) > 1]} {', '.join(str(model.joint + 1) for model in models)}"
    return render(
        "joint.html",
        kind="Joint identification report",
        heading=heading,
        origin=f"Identified with Jointwise {__version__}",
        sections=joint_sections(models),
        robot=shlex.quote(models[0].robot if models else "ROBOT"),
        file=shlex.quote(source or "FILE"),
    )


def _title(name: str) -> str:
    return robot_title(load_robot(name)) if name in list_robots() else name


def joint_sections(models: Sequence[JointModel]) -> list[Section]:
    """Return a section for every phenomenon of every joint."""
    several = len(models) > 1
    return [
        (
            f"joint{model.joint + 1}-{name}",
            f"{f'Joint {model.joint + 1}: ' if several else ''}{PHENOMENA[name].title}",
            part_body(part, model),
        )
        for model in models
        for name, part in model.parts.items()
    ]


def part_body(part: Part, model: JointModel) -> Html:
    """Return a phenomenon of a joint: main result, quality, parameters and figures."""
    figures = [(curve.title, curve_figure(curve), _smooth_residual(curve)) for curve in part.curves]
    for surface in part.surfaces:
        figure = surface_figure(surface, measured_areas(surface, part, model))
        figures.append((surface.title, figure, GREY_AREAS if figure.layout.get("shapes") else ""))
    return fragment(
        "part.html",
        part=part,
        finding=finding(part),
        grade=fit_grade(part),
        validity=_validity(part),
        fit=fit_text(part.fitted, part.held_out),
        values=[_row(part, value) for value in part.values],
        figures=figures,
    )


def _row(part: Part, value: Value) -> tuple[object, ...]:
    scale, unit = scaled(value)
    x, low, high = (number(scale * size, value.digits) for size in (value.value, value.low, value.high))
    error, text = number(scale * value.deviation, 2), meaning(part.phenomenon, value.name)
    return (value.name, x, superscript_unit(unit), f"[{low}, {high}]", error, text)


def _validity(part: Part) -> str:
    """Return the range of validity of a model."""
    if not part.ranges:
        return ""
    ranges = listed(range_text(name, low, high) for name, (low, high) in part.ranges.items())
    partial = part.phenomenon == "transmission" and not covers_turn(part)
    return f"It is valid for {ranges}{PART_OF_TURN if partial else EXTRAPOLATION[part.phenomenon]}."


def _smooth_residual(curve: Curve) -> str:
    """Return a remark if the residual is not noise."""
    if curve.kind != "points" or not curve.residual:
        return ""
    residual = np.array(curve.residual)
    share = smooth_share(np.array(curve.x), residual)
    if share is None:
        return ""
    quantity = curve.x_label.partition(" [")[0]
    size = f"{number(share**0.5 * rms(residual), 2)} {_unit(curve.y_label)}".rstrip()
    return (
        f"The residual is not white noise: {percent(share, 0)} of its variance is a smooth function of {quantity} "
        f"({size} RMS) that the model does not describe."
    )


def _unit(label: str) -> str:
    """Return the unit of an axis label such as `friction [Nm]`; empty if it has none."""
    return label.rpartition("[")[2].rstrip("]") if label.endswith("]") else ""


def curve_figure(curve: Curve) -> Figure:
    """Return data, model and confidence band, with the residual below if there is one."""
    traces = [*_band(curve), *_measured(curve), *_line(curve)]
    unit = _unit(curve.y_label)
    layout: dict[str, Any] = {
        "xaxis": axis(curve.x_label, type=curve.scale),
        "yaxis": axis(curve.y_label),
        "hovermode": "closest",
    }
    if curve.residual:
        traces.append(_residual(curve))
        layout["yaxis"] |= {"domain": [0.32, 1.0]}
        layout["yaxis2"] = axis(f"residual [{unit}]" if unit else "residual", domain=[0.0, 0.24])
        layout["xaxis"] |= {"anchor": "y2"}
    alt = f"{curve.title}: {curve.y_label} over {curve.x_label}."
    return Figure(traces, layout, alt, 460 if curve.residual else 380)


def measured_areas(surface: Surface, part: Part, model: JointModel) -> list[Area]:
    """Return the rectangles with data of a map over speed and load or temperature."""
    quantity = part.phenomenon
    if quantity not in surface.y_label or "speed" not in surface.x_label:
        return []
    sources = [part, *([model.parts["friction"]] if "friction" in model.parts else [])]
    known = [source.ranges for source in sources if {"speed", quantity} <= set(source.ranges)]
    return [
        (ranges["speed"], _magnitudes(ranges[quantity]) if quantity == "load" else ranges[quantity]) for ranges in known
    ]


def _magnitudes(span: Range) -> Range:
    """Return the range of |x| for x in a range."""
    low, high = sorted(map(abs, span))
    return (0.0 if span[0] <= 0.0 <= span[1] else low, high)


def _unmeasured(surface: Surface, areas: Sequence[Area]) -> list[dict[str, Any]]:
    """Return grey rectangles over the parts of a map that no area covers."""
    if not areas:
        return []
    x_end, y_end = (surface.x[0], surface.x[-1]), (surface.y[0], surface.y[-1])
    wide = [(_widened(x, x_end), _widened(y, y_end)) for x, y in areas]
    cells = product(_intervals(x_end, [x for x, _ in wide]), _intervals(y_end, [y for _, y in wide]))
    return [
        {"type": "rect", "x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1], "fillcolor": GREY, "line": {"width": 0}}
        for x, y in cells
        if not any(_contains(area[0], x) and _contains(area[1], y) for area in wide)
    ]


def _intervals(end: Range, ranges: Sequence[Range]) -> list[Range]:
    """Return the intervals into which the ends of some ranges divide the range `end`."""
    return list(pairwise(sorted({*end, *(edge for each in ranges for edge in each)})))


def _contains(outer: Range, inner: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _widened(span: Range, end: Range) -> Range:
    """Return a range inside `end`, widened to at least `LEAST_WIDTH` of it."""
    least = LEAST_WIDTH * (end[1] - end[0])
    low = min(max(span[0], end[0]), end[1] - least)
    return low, min(max(span[1], low + least), end[1])


def surface_figure(surface: Surface, areas: Sequence[Area] = ()) -> Figure:
    """Return a map as a contour plot; the parts outside `areas` are covered in grey."""
    trace = {
        "type": "contour",
        "x": list(surface.x),
        "y": list(surface.y),
        "z": [list(row) for row in surface.z],
        "colorscale": "Viridis",
        "contours": {"showlabels": True},
        "colorbar": {"title": {"text": surface.z_label, "side": "right"}},
        "hovertemplate": f"{surface.x_label} %{{x:.3g}}<br>{surface.y_label} %{{y:.3g}}<br>%{{z:.3g}}<extra></extra>",
    }
    layout: dict[str, Any] = {"xaxis": axis(surface.x_label), "yaxis": axis(surface.y_label)}
    if shapes := _unmeasured(surface, areas):
        layout["shapes"] = shapes
    alt = f"{surface.title}: {surface.z_label} over {surface.x_label} and {surface.y_label}."
    return Figure([trace], layout, alt, 420)


def _measured(curve: Curve) -> list[Trace]:
    if not curve.x:
        return []
    x, y = packed(np.array(curve.x)), packed(np.array(curve.y))
    if curve.kind == "line":
        return [line("measured", x, y, MEASURED, 1.2)]
    size = 5 if len(curve.x) < 200 else 3.5
    return [scatter("measured", x, y, {"size": size, "color": MEASURED, "opacity": 0.8})]


def _line(curve: Curve) -> list[Trace]:
    if not curve.line_x:
        return []
    x, y = (_interrupted(values, _pieces(curve)) for values in (curve.line_x, curve.line_y))
    return [line("model", packed(x), packed(y), PREDICTED, 2.2)]


def _band(curve: Curve) -> list[Trace]:
    if not (curve.low and curve.high):
        return []
    x, low, high = (np.array(values) for values in (curve.line_x, curve.low, curve.high))
    return [
        band("95 % confidence band", x[piece], low[piece], high[piece], PREDICTED, legendgroup="band", showlegend=not k)
        for k, piece in enumerate(_pieces(curve))
    ]


def _pieces(curve: Curve) -> list[slice]:
    """Return the continuous pieces of a line, which is interrupted at jumps such as that of friction at standstill."""
    steps = np.abs(np.diff(np.array(curve.line_x)))
    if curve.scale != "linear" or len(steps) < 3:
        return [slice(None)]
    jumps = 2 + np.flatnonzero(steps[1:-1] > JUMP * np.maximum(steps[:-2], steps[2:]))
    edges = [0, *jumps.tolist(), len(curve.line_x)]
    return [slice(first, last) for first, last in pairwise(edges)]


def _interrupted(values: Sequence[float], pieces: Sequence[slice]) -> Array:
    """Return the pieces of a line one after another with a NaN between them."""
    parts = [part for piece in pieces for part in (np.array(values[piece]), [np.nan])]
    return np.concatenate(parts[:-1])


def _residual(curve: Curve) -> Trace:
    marker = {"size": 3, "color": RESIDUAL, "opacity": 0.7}
    x, residual = packed(np.array(curve.x)), packed(np.array(curve.residual))
    return scatter("residual", x, residual, marker, yaxis="y2", showlegend=False)
