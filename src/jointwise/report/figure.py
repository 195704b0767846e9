"""Interactive figures as JSON documents: numbers packed in binary, nothing that a browser could execute."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.report.page import Html, element
from jointwise.spatial import Array

MEASURED, PREDICTED, RESIDUAL = "#8b9bb0", "#0b5cad", "#b4470f"
LOADED, UNLOADED = "#b4470f", "#0b5cad"
LOOPS = ("#7fb0dc", "#2f7cc0", "#0a3f78")
JOINT_COLORS = ("#0b5cad", "#b4470f", "#2b7a3d", "#7a3b9c", "#8a6d00", "#0f7f86", "#a3265f")

Trace = dict[str, Any]
"""A trace of a Plotly figure."""


@dataclass(frozen=True)
class Figure:
    """A Plotly figure.

    A trace whose `x` is the string "shared" uses the `x` of the figure, which is stored once.

    Attributes:
        traces: Traces as Plotly takes them.
        layout: Layout as Plotly takes it.
        alt: Description for screen readers.
        height: Height, px.
        x: Shared numbers as `packed` returns them; None for none.
    """

    traces: list[Trace]
    layout: dict[str, Any]
    alt: str
    height: int = 360
    x: dict[str, Any] | None = field(default=None)

    @property
    def document(self) -> Html:
        """The figure as a JSON document for the script of the page."""
        return safe_json({"data": self.traces, "layout": self.layout, "x": self.x})

    def html(self, caption: object = "") -> Html:
        """Return an element that contains the document; the script of the page draws it when it becomes visible."""
        script = element("script", self.document, type="application/json")
        plot = element("div", script, class_="plot", role="img", aria_label=self.alt, style=f"height:{self.height}px")
        return element("figure", plot, element("figcaption", caption) if caption else "")


LEVELS = 65534
"""Numbers of a plot are stored as 16-bit integers: steps of this part of their range, far below a pixel."""

DECADES = 2
"""With 2, a number on a logarithmic axis is off by at most 0.08 % of itself; with 4 by 8 %, which is visible."""


def packed(values: Array) -> dict[str, Any]:
    """Return numbers of a plot as base64 of 16-bit integers k that stand for ``low + step k``.

    65535 is NaN, which interrupts a line. The error is at most half a step, 1/131068 of the range. Positive numbers
    over more than `DECADES` decades may be drawn on a logarithmic axis and stay floats: the smallest would lose digits.
    """
    values = np.asarray(values, dtype=np.float64)
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 0.0)
    if 0.0 < low * 10.0**DECADES < high:
        return packed_floats(values)
    step = (high - low) / LEVELS
    levels = np.rint(np.where(known, values - low, 0.0) / (step or 1.0))
    return {"low": low, "step": step, **packed_integers(np.where(known, levels, LEVELS + 1).astype(np.int64))}


def packed_floats(values: Array) -> dict[str, str]:
    """Return numbers as base64 of 32-bit floats."""
    return {"dtype": "f4", "bdata": base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode("ascii")}


def packed_integers(values: NDArray[np.int64]) -> dict[str, str]:
    """Return integers from 0 to 65535 as base64 of 16-bit integers."""
    return {"dtype": "u2", "bdata": base64.b64encode(values.astype("<u2").tobytes()).decode("ascii")}


def safe_json(document: object) -> Html:
    """Return a JSON document for a script element: it cannot close the element and contains no NaN."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))  # ASCII: no U+2028 either
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Html(text)


def line(name: str, x: Any, y: Any, color: str, width: float = 1.5, **more: Any) -> Trace:
    """Return a line of packed or plain numbers."""
    style = {"color": color, "width": width, **more.pop("line", {})}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": style, **more}


def scatter(name: str, x: Any, y: Any, marker: dict[str, Any], **more: Any) -> Trace:
    """Return markers of packed or plain numbers."""
    return {"type": "scatter", "mode": "markers", "name": name, "x": x, "y": y, "marker": marker, **more}


def band(name: str, x: Array, low: Array, high: Array, color: str, **more: Any) -> Trace:
    """Return the filled area between two curves (points,) over `x`; NaN separates areas."""
    edge = packed(np.concatenate([high, low[::-1]]))
    red, green, blue = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    style = {"fill": "toself", "fillcolor": f"rgba({red},{green},{blue},0.17)", "hoverinfo": "skip"}
    return line(name, packed(np.concatenate([x, x[::-1]])), edge, color, 0.0, **style, **more)


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis with a title."""
    return {"title": {"text": title}, **more}


def joint_color(j: int) -> str:
    """Return the colour of joint j, counted from 0."""
    return JOINT_COLORS[j % len(JOINT_COLORS)]


def time_figure(t: Array, series: Sequence[tuple[str, Array, str]], title: str, alt: str, most: int) -> Figure:
    """Return curves over one time axis.

    Args:
        t: Times (samples,), s; the axis begins at the first one.
        series: Name, values (samples,) and colour of every curve.
        title: Title of the vertical axis.
        alt: Description for screen readers.
        most: Largest number of points of a curve.

    """
    rows = downsample(*(values for _, values, _ in series), most=most)
    traces = [line(name, "shared", packed(values[rows]), color) for name, values, color in series]
    layout = {"xaxis": {"ticksuffix": " s"}, "yaxis": axis(title), "hovermode": "x unified"}
    return Figure(traces, layout, alt, x=packed((t - t[0])[rows]))


def scatter_figure(
    x: Array, y: Array, titles: tuple[str, str], alt: str, marker: dict[str, Any], height: int
) -> Figure:
    """Return points y over x (points,) with the titles of both axes."""
    trace = scatter(titles[1], packed(x), packed(y), marker, hoverinfo="x+y")
    return Figure([trace], {"xaxis": axis(titles[0]), "yaxis": axis(titles[1]), "showlegend": False}, alt, height)


def stacked_figure(
    t: Array,
    upper: tuple[str, Array, str],
    lower: tuple[str, Array, str],
    alt: str,
    marks: dict[str, Any] | None = None,
) -> Figure:
    """Return two curves on one time axis, one above the other.

    Args:
        t: Times (points,), s.
        upper: Title of the vertical axis, values (points,) and colour of the upper curve.
        lower: The same of the lower curve.
        alt: Description for screen readers.
        marks: Shapes and annotations of the layout.

    """
    traces = [
        line(title.partition(" [")[0], "shared", packed(values), color, 1.2, yaxis=name)
        for (title, values, color), name in ((upper, "y"), (lower, "y2"))
    ]
    return Figure(traces, stacked_layout(upper[0], lower[0]) | (marks or {}), alt, 420, packed(t))


def stacked_layout(upper: str, lower: str) -> dict[str, Any]:
    """Return the layout of two plots on one time axis, with the titles of their vertical axes."""
    return {
        "xaxis": {"anchor": "y2", "ticksuffix": " s", "hoverformat": ".2f"},
        "yaxis": axis(upper, domain=[0.42, 1.0]),
        "yaxis2": axis(lower, domain=[0.0, 0.34]),
        "showlegend": False,
        "hovermode": "x unified",
    }


def downsample(*series: Array, most: int) -> NDArray[np.intp]:
    """Return the indices of at most `most` samples that preserve every peak (min-max decimation).

    The samples are divided into intervals of equal length; the least and greatest value of every series in each
    interval are kept, as are the first and the last sample.

    Args:
        series: Arrays of equal length, (samples,).
        most: Largest number of indices.

    """
    samples = len(series[0])
    if samples <= most:
        return np.arange(samples)
    intervals = max((most - 2) // (2 * len(series)), 1)
    width = -(-samples // intervals)
    chosen = [np.array([0, samples - 1])]
    for values in series:
        chosen += _extremes(values, width)
    return np.unique(np.concatenate(chosen))


def _extremes(values: Array, width: int) -> list[NDArray[np.intp]]:
    """Return the indices of the least and the greatest value in every interval of `width` samples."""
    missing = -len(values) % width
    padded = np.concatenate([values, np.full(missing, values[-1])]).reshape(-1, width)
    starts = np.arange(len(padded)) * width
    last = len(values) - 1
    return [np.minimum(starts + index, last) for index in (padded.argmin(axis=1), padded.argmax(axis=1))]
