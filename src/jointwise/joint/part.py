"""One identified phenomenon of one joint: parameters with confidence intervals, quality, ranges, curves and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from jointwise.arguments import checked
from jointwise.document import decode, plain_json
from jointwise.errors import EstimationError, ModelError
from jointwise.estimation.jackknife import NORMAL_FACTOR
from jointwise.estimation.linear_fit import JackknifeFit
from jointwise.joint.curve import Curve, Surface
from jointwise.joint.part_text import common_notes, part_frame, part_text
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")
Ranges = Mapping[str, Array | tuple[float, float]]

DIGITS = (4, 9)
"""Fewest and most significant digits of a printed value."""
MAX_LOG_ERROR = 50.0
"""Standard error of a logarithm above which it is written as this one: its exponential must fit into a file."""
TEST_EVERY = 4
"""Every fourth run, cycle or block is held out for the test where models are selected on the others."""
STARTS = 3
"""Best starts of a grid from which a non-linear search is refined."""
TINY = float(np.finfo(np.float64).tiny)
"""Smallest positive number: a denominator that is at least this large is never zero."""
MIN_QUALITY = 30.0
"""NRMSE % on held-out data below which a torque does not depend on what should explain it."""


@dataclass(frozen=True)
class Value:
    """An estimated parameter with its uncertainty.

    Attributes:
        name: Name of the parameter.
        unit: Unit of all numbers.
        value: Estimate.
        deviation: Standard error.
        low: Lower end of the 95 % confidence interval.
        high: Upper end of the 95 % confidence interval.
    """

    name: str
    unit: str
    value: float
    deviation: float
    low: float
    high: float

    def __post_init__(self) -> None:
        """Reject a negative deviation and an interval from high to low."""
        if self.deviation < 0.0:
            raise ModelError(f"deviation of {self.name} must be at least 0. Got {self.deviation} instead.")
        _check_interval((self.low, self.high), f"interval of {self.name}")

    @property
    def digits(self) -> int:
        """Significant digits to print: four, or as many as show two digits of the standard error."""
        if not (self.deviation > 0.0 and self.value != 0.0):
            return DIGITS[0]
        return int(np.clip(math.ceil(math.log10(abs(self.value) / self.deviation)) + 2, *DIGITS))

    def covers(self, truth: float) -> bool:
        """Return whether a number lies inside the confidence interval."""
        return self.low <= truth <= self.high


def value_of(name: str, unit: str, value: float, deviation: float, factor: float = NORMAL_FACTOR) -> Value:
    """Return a parameter with the 95 % confidence interval ``value ± factor · deviation``.

    Args:
        name: Name of the parameter.
        unit: Its unit.
        value: Estimate.
        deviation: Standard error.
        factor: Half width of the interval in standard errors; the normal quantile by default.
    """
    half = factor * deviation
    return Value(name, unit, float(value), float(deviation), float(value - half), float(value + half))


def fit_value(name: str, unit: str, fit: JackknifeFit, index: int) -> Value:
    """Return a parameter of a fit."""
    return value_of(name, unit, fit.values[index], fit.deviations[index], fit.factor)


def positive_value(name: str, unit: str, value: float, log_error: float, factor: float = NORMAL_FACTOR) -> Value:
    """Return a positive parameter whose logarithm has a standard error, with the interval ``value exp(± factor s)``."""
    error = min(log_error, MAX_LOG_ERROR)
    ratio = math.exp(min(factor * error, MAX_LOG_ERROR))
    return Value(name, unit, float(value), float(value * error), float(value / ratio), float(value * ratio))


@dataclass(frozen=True)
class TriedModel:
    """A model that was tried.

    Attributes:
        model: Name of the model.
        fitted: NRMSE on the data of the fit, %.
        held_out: NRMSE on held-out data, %; None if it was not tested there.
        note: Remark for the user.
    """

    model: str
    fitted: float
    held_out: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Part:
    """One identified phenomenon.

    Attributes:
        phenomenon: Name of the phenomenon, a key of `PHENOMENA`.
        model: Name of the law.
        values: Parameters of the law.
        fitted: NRMSE on all data, %.
        held_out: NRMSE on held-out data, %; None if there are none.
        settings: Everything without a standard error (tables, shapes, choices) as plain JSON; `settings_as` returns it
            as the dataclass of the phenomenon.
        ranges: Identified range (low, high) of every input, by name, SI units and °C.
        alternatives: Candidate models, including this one.
        curves: Plots of the fit.
        surfaces: Maps over two inputs.
        notes: Remarks for the user.
        logs: Files.
    """

    phenomenon: str
    model: str
    values: tuple[Value, ...]
    fitted: float
    held_out: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    alternatives: tuple[TriedModel, ...] = ()
    curves: tuple[Curve, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    notes: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject an unknown phenomenon, values that are not finite, and ranges from high to low."""
        if self.phenomenon not in PHENOMENA:
            raise ModelError(f"phenomenon must be one of {', '.join(PHENOMENA)}. Got '{self.phenomenon}' instead.")
        for value in self.values:
            if not math.isfinite(value.value):
                raise ModelError(f"{self.phenomenon}: {value.name} must be finite. Got {value.value} instead.")
        for name, interval in self.ranges.items():
            _check_interval(interval, f"range of {name}")

    def __repr__(self) -> str:
        """Return phenomenon, law, values and quality in one line."""
        values = ", ".join(f"{value.name} {value.value:.4g} {value.unit}".rstrip() for value in self.values)
        return f"Part({self.phenomenon!r}, {self.model!r}, {values}, NRMSE fit {self.fitted:.1f} %)"

    def __getitem__(self, name: str) -> float:
        """Return the value of a parameter by its name."""
        for value in self.values:
            if value.name == name:
                return value.value
        raise ModelError(f"{self.phenomenon} has no value '{name}'. Known: {', '.join(v.name for v in self.values)}.")

    def get(self, name: str, default: float = 0.0) -> float:
        """Return the value of a parameter by its name, or the default if there is none."""
        return next((value.value for value in self.values if value.name == name), default)

    def settings_as(self, phenomenon: str, type_: type[T]) -> T:
        """Return the settings as the dataclass of a phenomenon, such as `FrictionSettings`.

        Args:
            phenomenon: Phenomenon that the part must be of.
            type_: Dataclass of its settings; entries that it does not have are ignored.

        Raises:
            ModelError: For a part of another phenomenon, and for an entry that is missing or wrong.
        """
        if self.phenomenon != phenomenon:
            raise ModelError(f"part must be of {phenomenon}. Got '{self.phenomenon}' instead.")
        known = {item.name for item in fields(type_)}  # type: ignore[arg-type]
        try:
            return decode({name: value for name, value in self.settings.items() if name in known}, type_)
        except ModelError as problem:
            raise ModelError(f"{phenomenon}: settings: {problem}") from None

    @checked
    def value(self, name: str) -> Value:
        """Return a parameter with its confidence interval by its name."""
        self[name]
        return next(value for value in self.values if value.name == name)

    @property
    def tried_on(self) -> str:
        """Data behind `fitted` of the alternatives: all data if each block was held out in turn, else a part."""
        fits = [item.fitted for item in self.alternatives if item.held_out == self.held_out]
        return "all data" if self.fitted in fits else "training part"

    def conf_int(self) -> Array:
        """Return the 95 % confidence intervals of all `values`: lower and upper ends, (values, 2)."""
        return np.array([(value.low, value.high) for value in self.values], dtype=float).reshape(-1, 2)

    def summary(self) -> str:
        """Return parameters, their confidence intervals, candidate models and notes as text, as `jointwise joint`."""
        return part_text(self)

    def to_dataframe(self) -> DataFrame:
        """Return the parameters as a pandas data frame, one row per parameter with its name as the index.

        Returns:
            Columns ``unit``, ``value``, ``std_error``, and ``low`` and ``high`` (95 % confidence interval).

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return part_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the part as a document of plain JSON."""
        document = asdict(self)
        document["settings"], document["ranges"] = dict(self.settings), {k: list(v) for k, v in self.ranges.items()}
        return document

    @classmethod
    def from_dict(cls, document: Any) -> Part:
        """Return the part of a document of plain JSON; ModelError names the entry that is wrong."""
        return decode(document, cls)


def _check_interval(interval: tuple[float, float], name: str) -> None:
    low, high = interval
    if low > high:
        raise ModelError(f"{name} must be from low to high. Got {low} and {high} instead.")


def nrmse_percent(measured: Array, modelled: Array) -> float:
    """Return ``100 (1 - |y - ŷ| / |y - mean y|)`` of (samples,): 100 for a perfect model, 0 for the mean."""
    spread = float(np.linalg.norm(measured - measured.mean()))
    if spread == 0.0:
        raise EstimationError("the measurement must vary for a fit to have a quality. Got a constant instead.")
    return 100.0 * (1.0 - float(np.linalg.norm(measured - modelled)) / spread)


def nrmse_of_error(error: float, variance: float) -> float:
    """Return ``100 (1 - √(error / variance))``, the NRMSE % of a mean squared error of a signal with a variance."""
    return 100.0 * (1.0 - math.sqrt(error / variance))


def percent_off(value: float, known: float) -> float:
    """Return the relative difference of a value from a known one, %."""
    return 100.0 * (value / known - 1.0)


def rms(values: Array) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


def rounding_error(step: float) -> float:
    """Return the standard deviation ``step / √12`` of the error of a value that is recorded in steps."""
    return step / math.sqrt(12.0)


def tried_model(model: str, quality: Callable[[T], float], training: T, held_out: T, note: str = "") -> TriedModel:
    """Return a candidate that was fitted to training data, with its NRMSE % on these and on held-out data."""
    return TriedModel(model, quality(training), quality(held_out), note)


def identified_part(record: JointRecord, phenomenon: str, *, settings: object, ranges: Ranges, **entries: Any) -> Part:
    """Return the part of an identification, with notes that apply to every phenomenon.

    These are a better alternative, the drive gain behind every torque, and missing masses.

    Args:
        record: Record that was used.
        phenomenon: Name of the phenomenon.
        settings: Dataclass of its settings, or a dictionary.
        ranges: Measured values of every input, or their range (low, high).
        **entries: Other entries of `Part`.

    """
    ends = {name: (float(np.min(values)), float(np.max(values))) for name, values in ranges.items()}
    part = Part(phenomenon, settings=plain_json(settings), ranges=ends, logs=record.logs, **entries)
    return replace(part, notes=(*part.notes, *common_notes(part, record)))
