"""A page about joints: every identified phenomenon with its numbers, data, band and residual."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.joint.model import JointModel
from jointwise.joint.part import Alternative, Curve, Part, Surface, Value
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.report.figure import MEASURED, PREDICTED, RESIDUAL, Figure, Trace, axis, faint, line, packed
from jointwise.report.markup import Html, element, items, join, paragraph, table
from jointwise.report.numbers import fixed, number
from jointwise.report.write import Section, compose, page_path, plotly_script, write_page

FILE = "joint.html"
UNITS = {
    **dict.fromkeys(("load", "gauge", "motor", "links"), "Nm"),
    **dict.fromkeys(("phi", "theta", "position", "limit"), "rad"),
    "speed": "rad/s",
    "temperature": "°C",
}
"""Units of the quantities over which a model was identified."""


def write_joint_report(models: Sequence[JointModel], path: str | Path) -> Path:
    """Write a page about joints and return its path; `path` is a page (.html) or a directory, made if missing.

    The page needs nothing else: no file, no network.
    """
    return write_page(render_joints(models, plotly_script()), page_path(path, FILE))


def render_joints(models: Sequence[JointModel], library: str) -> str:
    """Return the whole page; `library` is the source of plotly.js."""
    from jointwise import __version__

    robots = ", ".join(dict.fromkeys(model.robot for model in models))
    heading = f"{robots}, joint{'s'[: len(models) > 1]} {', '.join(str(model.joint + 1) for model in models)}"
    return compose(
        title=heading,
        kind="Joint dynamics",
        heading=heading,
        origin=f"Identified with Jointwise {__version__}",
        sections=joint_sections(models),
        library=library,
    )


def joint_sections(models: Sequence[JointModel]) -> list[Section]:
    """Return a section for every phenomenon of every joint."""
    several = len(models) > 1
    return [
        (
            f"joint{model.joint + 1}-{name}",
            f"{f'Joint {model.joint + 1}: ' if several else ''}{PHENOMENA[name].title}",
            part_body(part),
        )
        for model in models
        for name, part in model.parts.items()
    ]


def part_body(part: Part) -> Html:
    """Return a phenomenon: what was found, how good it is, and its curves."""
    figures = [curve_figure(curve).html(curve.title) for curve in part.curves]
    surfaces = [surface_figure(surface).html(surface.title) for surface in part.surfaces]
    pieces: list[object] = [
        paragraph(element("strong", part.model), f". {_quality(part)} From {', '.join(part.logs) or 'memory'}."),
        _values(part.values) if part.values else "",
        _alternatives(part.alternatives) if part.alternatives else "",
        items(part.notes, class_="hint") if part.notes else "",
        *figures,
        *surfaces,
        _ranges(part),
    ]
    return join(pieces)


def _quality(part: Part) -> str:
    fitted = f"NRMSE {fixed(part.fitted, 1)} % on the data of the fit"
    return f"{fitted}." if part.held_out is None else f"{fitted}, {fixed(part.held_out, 1)} % on data held out."


def _values(values: Sequence[Value]) -> Html:
    rows = [
        (v.name, *(number(x, v.digits) for x in (v.value, v.low, v.high)), number(v.deviation, 2), v.unit)
        for v in values
    ]
    head = ("parameter", "value", "95 % from", "to", "deviation", "unit")
    return table("Parameters", head, rows, words=(0, 5))


def _alternatives(alternatives: Sequence[Alternative]) -> Html:
    rows = [(own.model, fixed(own.fitted, 1), fixed(own.held_out, 1), own.note) for own in alternatives]
    return table("Models that were tried, NRMSE %", ("model", "fitted", "held out", ""), rows, words=(0, 3))


def _ranges(part: Part) -> Html:
    if not part.ranges:
        return Html("")
    told = ", ".join(
        f"{name} {number(low)} to {number(high)} {UNITS.get(name, '')}".rstrip()
        for name, (low, high) in part.ranges.items()
    )
    return paragraph(f"Identified for {told}; beyond that the model is held at the edge.", class_="hint")


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
        layout["yaxis2"] = axis("residual", domain=[0.0, 0.24])
        layout["xaxis"] |= {"anchor": "y2"}
    return Figure(
        traces, layout, f"{curve.title}: {curve.y_label} over {curve.x_label}.", 460 if curve.residual else 380
    )


def surface_figure(surface: Surface) -> Figure:
    """Return a map as a contour plot: it can be read off, and printed."""
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
    layout = {"xaxis": axis(surface.x_label), "yaxis": axis(surface.y_label)}
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
    return [line("model", _packed(curve.line_x), _packed(curve.line_y), PREDICTED, 2.2)] if curve.line_x else []


def _band(curve: Curve) -> list[Trace]:
    if not (curve.low and curve.high):
        return []
    around = (*curve.line_x, *curve.line_x[::-1])
    edge = (*curve.high, *curve.low[::-1])
    style = {"fill": "toself", "fillcolor": faint(PREDICTED, 0.18), "hoverinfo": "skip"}
    return [line("95 % band", _packed(around), _packed(edge), PREDICTED, 0.0, **style)]


def _residual(curve: Curve) -> Trace:
    marker = {"size": 3, "color": RESIDUAL, "opacity": 0.7}
    return _points("residual", curve.x, curve.residual, marker) | {"yaxis": "y2", "showlegend": False}


def _points(name: str, x: Sequence[float], y: Sequence[float], marker: dict[str, Any]) -> Trace:
    return {"type": "scatter", "mode": "markers", "name": name, "x": _packed(x), "y": _packed(y), "marker": marker}


def _packed(values: Sequence[float]) -> dict[str, str]:
    return packed(np.array(values, dtype=float))
