"""What is known about one phenomenon of one joint: numbers with deviations, quality, range, and curves to look at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from jointwise.errors import ModelError
from jointwise.spatial import Array

PHENOMENA = ("stiffness", "friction", "load", "temperature", "transmission", "hysteresis", "motor")
"""What can be identified, in the order of a report."""
MOST_POINTS = 2000
"""Points that a curve keeps for its plot."""


@dataclass(frozen=True)
class Value:
    """An estimated number: name, unit, value, its standard deviation, and the bounds of its 95 % interval."""

    name: str
    unit: str
    value: float
    deviation: float
    low: float
    high: float

    @property
    def digits(self) -> int:
        """Significant digits that show the interval: four, or two of the deviation where that takes more."""
        if not (self.deviation > 0.0 and self.value != 0.0):
            return 4
        return int(np.clip(math.ceil(math.log10(abs(self.value) / self.deviation)) + 2, 4, 9))

    def covers(self, truth: float) -> bool:
        """Tell whether a number lies inside the interval."""
        return self.low <= truth <= self.high


def value_of(name: str, unit: str, value: float, deviation: float, factor: float = 1.96) -> Value:
    """Return a number with the interval ``value ± factor · deviation``."""
    half = factor * deviation
    return Value(name, unit, float(value), float(deviation), float(value - half), float(value + half))


@dataclass(frozen=True)
class Alternative:
    """A model that was tried: its NRMSE % on the data of the fit and on data held out (None: not tested there)."""

    model: str
    fitted: float
    held_out: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """A plot: measured points and the model's line with its 95 % band, as plain numbers.

    `x`, `y` (points,) measured; `line_x`, `line_y`, `low`, `high` (line points,), all empty where there are none.
    Residuals are `y` minus the model: `residual` (points,) or empty. `kind` is "points" or "line" (measured as a line:
    loops, spectra); `scale` of x is "linear" or "log".
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
    kind: str = "points"
    scale: str = "linear"


@dataclass(frozen=True)
class Surface:
    """A map over two quantities: z (rows of y, columns of x)."""

    title: str
    x_label: str
    y_label: str
    z_label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    z: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Part:
    """One identified phenomenon.

    `model` names the law; `values` its numbers; `settings` what is not a number with a deviation (tables, shapes,
    choices) as plain JSON; `ranges` the identified range of every input (low, high); `fitted` and `held_out` NRMSE %;
    `alternatives` the models tried, this one among them; `logs` the files.
    """

    phenomenon: str
    model: str
    values: tuple[Value, ...]
    fitted: float
    held_out: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    alternatives: tuple[Alternative, ...] = ()
    curves: tuple[Curve, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    notes: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is no phenomenon, and numbers that are none."""
        if self.phenomenon not in PHENOMENA:
            raise ModelError(f"phenomenon must be one of {', '.join(PHENOMENA)}. Got '{self.phenomenon}' instead.")
        for value in self.values:
            if not math.isfinite(value.value):
                raise ModelError(f"{self.phenomenon}: {value.name} must be finite. Got {value.value} instead.")

    def __getitem__(self, name: str) -> float:
        """Return the value of a number by its name."""
        for value in self.values:
            if value.name == name:
                return value.value
        raise ModelError(f"{self.phenomenon} has no value '{name}'. Known: {', '.join(v.name for v in self.values)}.")

    def value(self, name: str) -> Value:
        """Return a number with its interval by its name."""
        self[name]
        return next(value for value in self.values if value.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return the part as a document of plain JSON."""
        document = asdict(self)
        document["settings"], document["ranges"] = dict(self.settings), {k: list(v) for k, v in self.ranges.items()}
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Part:
        """Return the part that a document describes."""
        try:
            rest = dict(document)
            rest["values"] = tuple(Value(**own) for own in rest.get("values", ()))
            rest["alternatives"] = tuple(Alternative(**own) for own in rest.get("alternatives", ()))
            rest["curves"] = tuple(Curve(**_tuples(own)) for own in rest.get("curves", ()))
            rest["surfaces"] = tuple(Surface(**_tuples(own)) for own in rest.get("surfaces", ()))
            rest["ranges"] = {key: (float(low), float(high)) for key, (low, high) in rest.get("ranges", {}).items()}
            rest["notes"], rest["logs"] = tuple(rest.get("notes", ())), tuple(rest.get("logs", ()))
            return cls(**rest)
        except (TypeError, ValueError, AttributeError) as problem:
            raise ModelError(f"not a part of a joint model: {problem}.") from None


def plain(values: Array, most: int = MOST_POINTS) -> tuple[float, ...]:
    """Return numbers (points,) for a curve: six digits, evenly thinned to at most `most`."""
    array = np.asarray(values, dtype=float).ravel()
    chosen = array if len(array) <= most else array[np.linspace(0, len(array) - 1, most).astype(np.intp)]
    return tuple(float(f"{value:.6g}") for value in chosen)


def _tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _tuple(value) for key, value in document.items()}


def _tuple(value: Any) -> Any:
    return tuple(_tuple(own) for own in value) if isinstance(value, list) else value
