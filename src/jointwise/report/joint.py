"""A page about joints: every identified phenomenon with its numbers, data, band and residual."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.description.catalog import catalog_names, catalog_robot
from jointwise.joint.model import JointModel
from jointwise.joint.part import Curve, Part, Surface, Value
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.joint.quality import fit_text, rms
from jointwise.report.figure import MEASURED, PREDICTED, RESIDUAL, Figure, Trace, axis, faint, line, packed
from jointwise.report.joint_words import graded, meaning, range_text, scaled, told, whole_turn
from jointwise.report.markup import Html, element, items, join, paragraph, table
from jointwise.report.numbers import fixed, listed, number, percent, robot_title, written_unit
from jointwise.report.structure import structure_share
from jointwise.report.write import Section, compose, page_path, plotly_script, write_page

FILE = "joint.html"
GREY = "rgba(235,237,240,0.82)"
"""Laid over what was not measured."""
ARC = "; at other angles of a turn nothing is known"
BEYOND = {
    **dict.fromkeys(("friction", "load", "temperature"), "; beyond that it is kept at the edge"),
    "stiffness": "; beyond that the curve is continued, not measured",
    "transmission": "; it repeats every turn",
    "hysteresis": "",
    "motor": "",
}
"""What a model does outside what it was identified over."""
LEAP = 3.0
"""Steps of a line that make a leap: over zero, or over what was not seen."""
Range = tuple[float, float]
Area = tuple[Range, Range]
"""A rectangle of a map: from, to along x and y."""


def write_joint_report(models: Sequence[JointModel], path: str | Path, source: str | None = None) -> Path:
    """Write a page about joints and return its path; `path` is a page (.html) or a directory, made if missing.

    `source` is the joint file that holds them, if there is one. The page needs nothing else: no file, no network.
    """
    return write_page(render_joints(models, plotly_script(), source), page_path(path, FILE))


def render_joints(models: Sequence[JointModel], library: str, source: str | None = None) -> str:
    """Return the whole page; `library` is the source of plotly.js."""
    from jointwise import __version__

    robots = ", ".join(dict.fromkeys(_title(model.robot) for model in models))
    heading = f"{robots}, joint{'s'[: len(models) > 1]} {', '.join(str(model.joint + 1) for model in models)}"
    return compose(
        title=heading,
        kind="Joint dynamics",
        heading=heading,
        origin=f"Identified with Jointwise {__version__}",
        sections=[*joint_sections(models), ("use", "Use it", _use(models, source))],
        library=library,
    )


def _title(name: str) -> str:
    return robot_title(catalog_robot(name)) if name in catalog_names() else name


def _use(models: Sequence[JointModel], source: str | None) -> Html:
    command = f"jointwise calibrate LOG --robot {models[0].robot if models else 'ROBOT'} --joint {source or 'FILE'}"
    return join(
        [
            paragraph("A calibration takes the friction and the drive gain of this joint from its file:"),
            element("pre", element("code", f"{command} --output model.json")),
            paragraph(
                "Stiffness and kinematic error do not enter a calibration: they serve simulation and controllers.",
                class_="hint",
            ),
        ]
    )


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
    """Return a phenomenon of a joint: what was found in plain words, how good it is, its numbers and its curves."""
    figures = [join([curve_figure(curve).html(curve.title), _structure(curve)]) for curve in part.curves]
    surfaces = [_map(surface, measured_areas(surface, part, model)) for surface in part.surfaces]
    pieces: list[object] = [
        paragraph(element("strong", told(part)), f" {graded(part)} {_ranges(part)}"),
        paragraph(
            f"Model {part.model}, {fit_text(part.fitted, part.held_out)}, from {', '.join(part.logs) or 'memory'}.",
            class_="hint",
        ),
        _values(part) if part.values else "",
        _alternatives(part) if part.alternatives else "",
        items(part.notes, class_="hint") if part.notes else "",
        *figures,
        *surfaces,
    ]
    return join(pieces)


def _values(part: Part) -> Html:
    rows = [_row(part, value) for value in part.values]
    head = ("parameter", "value", "95 % from", "to", "deviation", "unit", "meaning")
    return table("Parameters", head, rows, words=(0, 5, 6))


def _row(part: Part, value: Value) -> tuple[object, ...]:
    scale, unit = scaled(value)
    numbers = (number(scale * x, value.digits) for x in (value.value, value.low, value.high))
    own = element("span", meaning(part.phenomenon, value.name), class_="wrap")
    return (value.name, *numbers, number(scale * value.deviation, 2), written_unit(unit), own)


def _alternatives(part: Part) -> Html:
    rows = [(own.model, fixed(own.fitted, 1), fixed(own.held_out, 1), own.note) for own in part.alternatives]
    head = ("model", part.tried_on, "held out", "")
    return table("Models that were tried, fit % (100 is perfect)", head, rows, words=(0, 3))


def _ranges(part: Part) -> str:
    """Return over what a model was identified."""
    if not part.ranges:
        return ""
    ranges = listed(range_text(name, low, high) for name, (low, high) in part.ranges.items())
    arc = part.phenomenon == "transmission" and not whole_turn(part)
    return f"It holds for {ranges}{ARC if arc else BEYOND[part.phenomenon]}."


def _structure(curve: Curve) -> Html:
    """Return a word about a residual that is no noise, else nothing."""
    if curve.kind != "points" or not curve.residual:
        return Html("")
    share = structure_share(np.array(curve.x), np.array(curve.residual))
    if share is None:
        return Html("")
    over = curve.x_label.partition(" [")[0]
    return paragraph(
        f"The residual is no noise: {percent(share, 0)} of its variance follows the {over}. The model leaves something "
        f"out there, of {number(share**0.5 * rms(np.array(curve.residual)), 2)} {_unit(curve.y_label)} rms.",
        class_="hint",
    )


def _unit(label: str) -> str:
    """Return the unit of an axis `friction [Nm]`, nothing if it has none."""
    return label.rpartition("[")[2].rstrip("]") if label.endswith("]") else ""


def curve_figure(curve: Curve) -> Figure:
    """Return data, line and band, with the residual beneath where there is one."""
    traces = [*_band(curve), *_measured(curve), *_line(curve)]
    layout: dict[str, Any] = {
        "xaxis": axis(curve.x_label, type=curve.scale),
        "yaxis": axis(curve.y_label),
        "hovermode": "closest",
    }
    if curve.residual:
        traces.append(_residual(curve))
        layout["yaxis"] |= {"domain": [0.32, 1.0]}
        layout["yaxis2"] = axis(
            f"residual [{_unit(curve.y_label)}]" if _unit(curve.y_label) else "residual", domain=[0.0, 0.24]
        )
        layout["xaxis"] |= {"anchor": "y2"}
    return Figure(
        traces, layout, f"{curve.title}: {curve.y_label} over {curve.x_label}.", 460 if curve.residual else 380
    )


def _map(surface: Surface, areas: Sequence[Area]) -> Html:
    hint = "Grey: no data there; the map adds up what was measured apart, along the clear parts."
    figure = surface_figure(surface, areas)
    return join([figure.html(surface.title), paragraph(hint, class_="hint") if figure.layout.get("shapes") else ""])


def measured_areas(surface: Surface, part: Part, model: JointModel) -> list[Area]:
    """Return the rectangles of a map over speed and load or temperature in which there were data."""
    quantity = part.phenomenon
    if quantity not in surface.y_label or "speed" not in surface.x_label:
        return []
    sources = [part, *([model.parts["friction"]] if "friction" in model.parts else [])]
    known = [own.ranges for own in sources if {"speed", quantity} <= set(own.ranges)]
    return [(own["speed"], _sizes(own[quantity]) if quantity == "load" else own[quantity]) for own in known]


def _sizes(span: Range) -> Range:
    """Return the range of |x| for x in a range."""
    low, high = sorted(map(abs, span))
    return (0.0 if span[0] <= 0.0 <= span[1] else low, high)


def _unmeasured(surface: Surface, areas: Sequence[Area]) -> list[dict[str, Any]]:
    """Return grey rectangles over what no area covers; an area too thin to be seen is drawn a hundredth wide."""
    if not areas:
        return []
    ends = [(surface.x[0], surface.x[-1]), (surface.y[0], surface.y[-1])]
    wide = [tuple(_widened(own, end) for own, end in zip(area, ends, strict=True)) for area in areas]
    across, upwards = (sorted({*end, *(x for area in wide for x in area[k])}) for k, end in enumerate(ends))
    return [
        {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "fillcolor": GREY, "line": {"width": 0}}
        for x0, x1 in pairwise(across)
        for y0, y1 in pairwise(upwards)
        if not any(x[0] <= x0 and x1 <= x[1] and y[0] <= y0 and y1 <= y[1] for x, y in wide)
    ]


def _widened(span: Range, end: Range) -> Range:
    """Return a range inside `end` that is at least a hundredth of it."""
    least = 0.01 * (end[1] - end[0])
    low = min(max(span[0], end[0]), end[1] - least)
    return low, min(max(span[1], low + least), end[1])


def surface_figure(surface: Surface, areas: Sequence[Area] = ()) -> Figure:
    """Return a map as a contour plot: it can be read off, and printed; what lies outside `areas` is greyed."""
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
    if curve.kind == "line":
        return [line("measured", _packed(curve.x), _packed(curve.y), MEASURED, 1.2)]
    marker = {"size": 5 if len(curve.x) < 200 else 3.5, "color": MEASURED, "opacity": 0.8}
    return [_points("measured", curve.x, curve.y, marker)]


def _line(curve: Curve) -> list[Trace]:
    if not curve.line_x:
        return []
    pieces = _pieces(curve)
    x, y = (_broken([values[own] for own in pieces]) for values in (curve.line_x, curve.line_y))
    return [line("model", _packed(x), _packed(y), PREDICTED, 2.2)]


def _pieces(curve: Curve) -> list[slice]:
    """Return the parts of a line that are drawn: it is broken where it leaps, as friction does over standstill."""
    steps = np.abs(np.diff(np.array(curve.line_x)))
    if curve.scale != "linear" or len(steps) < 3:
        return [slice(None)]
    leaps = 2 + np.flatnonzero(steps[1:-1] > LEAP * np.maximum(steps[:-2], steps[2:]))
    edges = [0, *leaps.tolist(), len(curve.line_x)]
    return [slice(first, last) for first, last in pairwise(edges)]


def _broken(pieces: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return pieces one after another with a break between them."""
    first, *rest = pieces
    return (*first, *(x for piece in rest for x in (np.nan, *piece)))


def _band(curve: Curve) -> list[Trace]:
    if not (curve.low and curve.high):
        return []
    pieces = _pieces(curve)
    around = _broken([(*curve.line_x[own], *curve.line_x[own][::-1]) for own in pieces])
    edge = _broken([(*curve.high[own], *curve.low[own][::-1]) for own in pieces])
    style = {"fill": "toself", "fillcolor": faint(PREDICTED, 0.18), "hoverinfo": "skip"}
    return [line("95 % band", _packed(around), _packed(edge), PREDICTED, 0.0, **style)]


def _residual(curve: Curve) -> Trace:
    marker = {"size": 3, "color": RESIDUAL, "opacity": 0.7}
    return _points("residual", curve.x, curve.residual, marker) | {"yaxis": "y2", "showlegend": False}


def _points(name: str, x: Sequence[float], y: Sequence[float], marker: dict[str, Any]) -> Trace:
    return {"type": "scatter", "mode": "markers", "name": name, "x": _packed(x), "y": _packed(y), "marker": marker}


def _packed(values: Sequence[float]) -> dict[str, str]:
    return packed(np.array(values, dtype=float))
