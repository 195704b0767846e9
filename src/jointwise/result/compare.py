"""Models against each other on the same log."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jointwise.data.log import Log
from jointwise.result.calibration import CalibratedModel, calibration_of
from jointwise.result.metrics import Validation
from jointwise.result.validation import validate


@dataclass(frozen=True)
class Ranked:
    """A model in a comparison: its name, its joint model in words, its number of parameters, and its errors."""

    name: str
    structure: str
    parameters: int
    validation: Validation

    def to_dict(self) -> dict[str, Any]:
        """Return the entry for JSON."""
        return {
            "model": self.name,
            "structure": self.structure,
            "parameters": self.parameters,
            "seen": not self.validation.held_out,
            **self.validation.to_dict(),
        }


def compare(models: Mapping[str, CalibratedModel], log: Log) -> tuple[Ranked, ...]:
    """Return named models from best to worst: by the mean over the joints of MSE / variance on a log.

    A log in which no joint moves has no such figure: there the mean over the joints of the RMSE decides.
    """
    calibrations = {name: calibration_of(model) for name, model in models.items()}
    ranked = [
        Ranked(
            name,
            model.structure_text,
            model.model.count,
            _without_prediction(validate(model, log)),
        )
        for name, model in calibrations.items()
    ]
    return tuple(sorted(ranked, key=_error))


def _without_prediction(validation: Validation) -> Validation:
    """Return a validation without its arrays: many models on a long log need no more memory than one."""
    return replace(validation, prediction=None)


def _error(ranked: Ranked) -> tuple[float, float]:
    error = ranked.validation.mean_nmse
    return (math.inf if math.isnan(error) else error, ranked.validation.mean_rmse)
