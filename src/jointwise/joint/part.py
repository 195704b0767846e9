"""What is known about one phenomenon of one joint: numbers with deviations, quality, range, and curves to look at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from jointwise.errors import ModelError
from jointwise.joint import typed
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.spatial import Array

MOST_POINTS = 2000
"""Points that a curve keeps for its plot."""
LABELS = ("title", "x_label", "y_label", "z_label")
LINES = ("x", "y", "line_x", "line_y", "low", "high", "residual")


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

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Value:
        """Return the number that a document of the part `place` describes."""
        own = typed.entries(document, cls, f"{place}: a value")
        name = typed.text(own["name"], f"{place}: name of a value")
        deviation = typed.number(own["deviation"], f"{place}: deviation of {name}", least=0.0)
        low, high = _interval([own["low"], own["high"]], f"{place}: interval of {name}")
        value = typed.number(own["value"], f"{place}: {name}")
        return cls(name, typed.text(own["unit"], f"{place}: unit of {name}"), value, deviation, low, high)


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

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Alternative:
        """Return the model that a document of the part `place` describes."""
        own = typed.entries(document, cls, f"{place}: an alternative")
        return cls(
            model=typed.text(own["model"], f"{place}: model of an alternative"),
            fitted=typed.number(own["fitted"], f"{place}: fitted of an alternative"),
            held_out=_optional(own.get("held_out"), f"{place}: held_out of an alternative"),
            note=typed.text(own.get("note", ""), f"{place}: note of an alternative"),
        )


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

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Curve:
        """Return the plot that a document of the part `place` describes."""
        own = typed.entries(document, cls, f"{place}: a curve")
        title, x_label, y_label = (typed.text(own[key], f"{place}: {key} of a curve") for key in LABELS[:3])
        lines = {key: typed.numbers(own.get(key, []), f"{place}: {key} of '{title}'") for key in LINES}
        for key, other in (("y", "x"), ("residual", "x"), ("line_y", "line_x"), ("low", "line_x"), ("high", "line_x")):
            if len(lines[key]) != len(lines[other]) and (lines[key] or key in ("y", "line_y")):
                raise ModelError(f"{place}: {key} of '{title}' must have as many points as {other}.")
        kind = typed.choice(own.get("kind", "points"), f"{place}: kind of '{title}'", ("points", "line"))
        scale = typed.choice(own.get("scale", "linear"), f"{place}: scale of '{title}'", ("linear", "log"))
        return cls(title, x_label, y_label, **lines, kind=kind, scale=scale)


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

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Surface:
        """Return the map that a document of the part `place` describes."""
        own = typed.entries(document, cls, f"{place}: a surface")
        labels = {key: typed.text(own[key], f"{place}: {key} of a surface") for key in LABELS}
        name = f"of '{labels['title']}'"
        x, y = (typed.numbers(own[key], f"{place}: {key} {name}") for key in ("x", "y"))
        z = tuple(
            typed.numbers(row, f"{place}: z {name}", len(x)) for row in typed.items(own["z"], f"{place}: z {name}")
        )
        if len(z) != len(y):
            raise ModelError(f"{place}: z {name} must have as many rows as y.")
        return cls(**labels, x=x, y=y, z=z)


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

    @property
    def tried_on(self) -> str:
        """What the `fitted` of the alternatives stands for: all data where each was left out in turn, else a part."""
        fits = [own.fitted for own in self.alternatives if own.held_out == self.held_out]
        return "all data" if self.fitted in fits else "training part"

    def to_dict(self) -> dict[str, Any]:
        """Return the part as a document of plain JSON."""
        document = asdict(self)
        document["settings"], document["ranges"] = dict(self.settings), {k: list(v) for k, v in self.ranges.items()}
        return document

    @classmethod
    def from_dict(cls, document: Any) -> Part:
        """Return the part that a document describes; what is damaged in it is refused by its name."""
        own = typed.entries(document, cls, "a part")
        place = typed.choice(own["phenomenon"], "phenomenon", tuple(PHENOMENA))
        return cls(
            phenomenon=place,
            values=tuple(Value.from_dict(row, place) for row in _rows(own, "values", place)),
            alternatives=tuple(Alternative.from_dict(row, place) for row in _rows(own, "alternatives", place)),
            curves=tuple(Curve.from_dict(row, place) for row in _rows(own, "curves", place)),
            surfaces=tuple(Surface.from_dict(row, place) for row in _rows(own, "surfaces", place)),
            **_plain_entries(own, place),
        )


def _rows(own: dict[str, Any], name: str, place: str) -> list[Any]:
    return typed.items(own.get(name, []), f"{place}: {name}")


def _plain_entries(own: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the entries of a part that are no dataclasses, checked."""
    ranges = typed.table(own.get("ranges", {}), f"{place}: ranges")
    return {
        "model": typed.text(own["model"], f"{place}: model"),
        "fitted": typed.number(own["fitted"], f"{place}: fitted"),
        "held_out": _optional(own.get("held_out"), f"{place}: held_out"),
        "settings": typed.plain_json(typed.table(own.get("settings", {}), f"{place}: settings"), f"{place}: settings"),
        "ranges": {name: _interval(pair, f"{place}: range of {name}") for name, pair in ranges.items()},
        "notes": typed.texts(own.get("notes", []), f"{place}: notes"),
        "logs": typed.texts(own.get("logs", []), f"{place}: logs"),
    }


def _optional(value: Any, name: str) -> float | None:
    return None if value is None else typed.number(value, name)


def _interval(value: Any, name: str) -> tuple[float, float]:
    low, high = typed.numbers(value, name, count=2)
    if low > high:
        raise typed.wrong(name, "from low to high", value)
    return low, high


def plain(values: Array, most: int = MOST_POINTS) -> tuple[float, ...]:
    """Return numbers (points,) for a curve: six digits, evenly thinned to at most `most`."""
    array = np.asarray(values, dtype=float).ravel()
    chosen = array if len(array) <= most else array[np.linspace(0, len(array) - 1, most).astype(np.intp)]
    return tuple(float(f"{value:.6g}") for value in chosen)
