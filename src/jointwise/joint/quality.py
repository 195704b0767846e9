"""Quality of a fit, and the notes on it that all phenomena share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from jointwise.document import plain_json
from jointwise.errors import EstimationError
from jointwise.joint.part import Part, TriedModel
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

D = TypeVar("D")
Ranges = Mapping[str, Array | tuple[float, float]]

TEST_EVERY = 4
"""Every fourth run, cycle or block is held out for the test where models are selected on the others."""
STARTS = 3
"""Best starts of a grid from which a non-linear search is refined."""
TINY = float(np.finfo(np.float64).tiny)
"""Smallest positive number: a denominator that is at least this large is never zero."""
PERFECT = 100.0
"""NRMSE % of a model without error."""
MIN_QUALITY = 30.0
"""NRMSE % on held-out data below which a torque does not depend on what should explain it."""


def nrmse_percent(measured: Array, modelled: Array) -> float:
    """Return ``100 (1 - |y - ŷ| / |y - mean y|)`` of (samples,): 100 for a perfect model, 0 for the mean."""
    spread = float(np.linalg.norm(measured - measured.mean()))
    if spread == 0.0:
        raise EstimationError("the measurement must vary for a fit to have a quality. Got a constant instead.")
    return PERFECT * (1.0 - float(np.linalg.norm(measured - modelled)) / spread)


def nrmse_of_error(error: float, variance: float) -> float:
    """Return ``100 (1 - √(error / variance))``, the NRMSE % of a mean squared error of a signal with a variance."""
    return PERFECT * (1.0 - math.sqrt(error / variance))


def percent_off(value: float, known: float) -> float:
    """Return the relative difference of a value from a known one, %."""
    return PERFECT * (value / known - 1.0)


def rms(values: Array) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


def rounding_error(step: float) -> float:
    """Return the standard deviation ``step / √12`` of the error of a value that is recorded in steps."""
    return step / math.sqrt(12.0)


def fit_text(fitted: float, held_out: float | None) -> str:
    """Return the fit (`nrmse_percent`) on all data and on held-out data as a text for people."""
    held = "" if held_out is None else f", {held_out:z.1f} % on held-out data"
    return f"fit {fitted:z.1f} % on all data{held} (100 is perfect)"


def tried_model(model: str, quality: Callable[[D], float], training: D, held_out: D, note: str = "") -> TriedModel:
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
    notes = [note for note in (_alternative_note(part), _gain_note(part, record), _mass_note(part, record)) if note]
    return replace(part, notes=(*part.notes, *notes))


def _alternative_note(part: Part) -> str:
    """Return a note if another model fits the held-out data better; they are not used for selection."""
    figures = {tried.model: round(tried.held_out, 1) for tried in part.alternatives if tried.held_out is not None}
    if part.held_out is None or part.tried_on == "all data" or not figures:
        return ""
    best, chosen = max(figures, key=lambda model: figures[model]), round(part.held_out, 1)
    if figures[best] <= chosen:
        return ""
    return (
        f"'{best}' fits the data held out better ({figures[best]} against {chosen} %); the model was selected by "
        "cross-validation within the training data."
    )


def _gain_note(part: Part, record: JointRecord) -> str:
    """Return a note on the drive gain behind every torque: confidence intervals do not include its error."""
    if not record.has_current or record.unit != "Nm" or part.phenomenon in ("motor", "transmission"):
        return ""
    return f"torque is current times a drive gain of {record.gain:.5g} Nm/A: an error of it scales every torque alike"


def _mass_note(part: Part, record: JointRecord) -> str:
    """Return a note where the described bodies load nothing: then torque includes gravity and inertia of the links."""
    if record.gravity is None or record.load.any() or part.phenomenon == "transmission":
        return ""
    return (
        "gravity and inertia of the links were not removed, as the description has no masses: they are part of the "
        f"{part.phenomenon}. Describe the masses, or give a calibrated model (--model)"
    )
