"""Interactive figures as plain documents: numbers packed in binary, nothing that a browser could execute."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jointwise.report.markup import Html, element
from jointwise.spatial import Array

MEASURED, PREDICTED, RESIDUAL = "#8b9bb0", "#0b5cad", "#b4470f"
LOADED, UNLOADED = "#b4470f", "#0b5cad"
LOOPS = ("#7fb0dc", "#2f7cc0", "#0a3f78")

Trace = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A plotly figure: traces, what its layout has of its own, what it shows in words, its height in px.

    Traces whose `x` is the word "shared" take the one of the figure.
    """

    traces: list[Trace]
    layout: dict[str, Any]
    alt: str
    height: int = 360
    x: dict[str, str] | None = field(default=None)

    def html(self, caption: object = "") -> Html:
        """Return the place of the figure with its document inside; the page's script draws it when it comes in view."""
        document = {"data": self.traces, "layout": self.layout, "x": self.x}
        script = element("script", safe_json(document), type="application/json")
        plot = element("div", script, class_="plot", role="img", aria_label=self.alt, style=f"height:{self.height}px")
        return element("figure", plot, element("figcaption", caption) if caption else "")


def packed(values: Array) -> dict[str, str]:
    """Return numbers as base64 of 32-bit floats, as plotly reads them; NaN interrupts a line."""
    return {"dtype": "f4", "bdata": base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode("ascii")}


def safe_json(document: object) -> Html:
    """Return a JSON document that can stand inside a script element: it cannot close it, and has no NaN."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))  # ASCII: no U+2028 either
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Html(text)


def line(name: str, x: Any, y: Any, color: str, width: float = 1.5, **more: Any) -> Trace:
    """Return a line of packed or plain numbers."""
    style = {"color": color, "width": width, **more.pop("line", {})}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": style, **more}


def faint(color: str, share: float) -> str:
    """Return a colour `#rrggbb` that lets most of the ground through."""
    red, green, blue = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share:g})"


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis with a title."""
    return {"title": {"text": title}, **more}
