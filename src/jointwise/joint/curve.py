"""Curves and surfaces of an identified phenomenon as plain numbers, for files and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from jointwise.errors import ModelError
from jointwise.spatial import Array

MOST_POINTS = 2000
"""Most points of a curve: a plot shows no more."""
SURFACE_POINTS = 41
"""Points of a surface along each axis."""
CURVE_BINS = 60
"""Bins of a curve of means."""
LINE_POINTS = 201
"""Points of the line of a model in a curve."""


@dataclass(frozen=True)
class Curve:
    """A plot: measured points and the model's line with its 95 % band, as plain numbers.

    Tuples are empty where there is nothing to show; units are those of the labels.

    Attributes:
        title: Title.
        x_label, y_label: Labels with units.
        x, y: Measured points, (points,).
        line_x, line_y: Line of the model, (line points,).
        low, high: Lower and upper end of the 95 % band, (line points,).
        residual: `y` minus the model, (points,).
        kind: How measurements are drawn: "points", or "line" for loops and spectra.
        scale: Scale of x, "linear" or "log".
    """

    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    line_x: tuple[float, ...] = ()
    line_y: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    residual: tuple[float, ...] = ()
    kind: Literal["points", "line"] = "points"
    scale: Literal["linear", "log"] = "linear"

    def __post_init__(self) -> None:
        """Reject lines of different lengths."""
        for key, other in (("y", "x"), ("residual", "x"), ("line_y", "line_x"), ("low", "line_x"), ("high", "line_x")):
            points, expected = len(getattr(self, key)), len(getattr(self, other))
            if points != expected and (points or key in ("y", "line_y")):
                raise ModelError(f"{key} of '{self.title}' must have as many points as {other}. Got {points} instead.")


def make_curve(
    labels: tuple[str, str, str],
    points: tuple[Array, Array],
    line: tuple[Array, Array] | None = None,
    band: Array | tuple[Array, Array] | None = None,
    *,
    residual: Array | None = None,
    kind: Literal["points", "line"] = "points",
    scale: Literal["linear", "log"] = "linear",
) -> Curve:
    """Return a curve of arrays.

    Args:
        labels: Title, and labels of x and y with their units.
        points: x and y of the measured points.
        line: x and y of the model.
        band: Its 95 % band at the x of the line: half its width, or its lower and upper end.
        residual: y minus the model at the measured points.
        kind: Whether the measured values are points or a line.
        scale: Scale of x.
    """
    if line is not None and isinstance(band, np.ndarray):
        band = line[1] - band, line[1] + band
    pairs = (points, line or ((), ()), band or ((), ()))
    x, y, line_x, line_y, low, high = (plain(values) for pair in pairs for values in pair)
    beside = () if residual is None else plain(residual)
    return Curve(*labels, x, y, line_x, line_y, low, high, beside, kind, scale)


def slope_curve(
    labels: tuple[str, str, str],
    points: tuple[Array, Array],
    slope: float,
    bounds: tuple[float, float],
    *,
    offset: float = 0.0,
    residual: Array | None = None,
) -> Curve:
    """Return a curve of the line ``slope (x - offset)`` over measured points, with the band between two slopes."""
    line = np.linspace(points[0].min(), points[0].max(), LINE_POINTS)
    low, high = (bound * (line - offset) for bound in bounds)
    band = np.minimum(low, high), np.maximum(low, high)
    return make_curve(labels, points, (line, slope * (line - offset)), band, residual=residual)


@dataclass(frozen=True)
class Surface:
    """A map over two quantities, as plain numbers in the units of the labels.

    Attributes:
        title: Title.
        x_label, y_label, z_label: Labels with units.
        x: Grid of the first quantity, (columns,).
        y: Grid of the second quantity, (rows,).
        z: Values, (rows, columns).
    """

    title: str
    x_label: str
    y_label: str
    z_label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    z: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        """Reject a table of another shape."""
        if len(self.z) != len(self.y) or any(len(row) != len(self.x) for row in self.z):
            raise ModelError(f"z of '{self.title}' must be {len(self.y)} rows of {len(self.x)} numbers.")


def plain(values: ArrayLike, most: int = MOST_POINTS) -> tuple[float, ...]:
    """Return numbers (points,) for a curve: six digits, evenly thinned to at most `most`."""
    array = np.asarray(values, dtype=float).ravel()
    chosen = array if len(array) <= most else array[np.linspace(0, len(array) - 1, most).astype(np.intp)]
    return tuple(float(f"{value:.6g}") for value in chosen)
