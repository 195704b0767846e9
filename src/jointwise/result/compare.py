"""Models against each other on the same log."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jointwise.data.log import Log
from jointwise.result.calibration import Calibration
from jointwise.result.validation import Validation, validate


@dataclass(frozen=True)
class Ranked:
    """A model in a comparison: its name, its joint model in words, its number of parameters, and its errors."""

    name: str
    structure: str
    parameters: int
    seen: bool
    """Whether the log is one that the model was trained on: its errors are then no proof."""
    validation: Validation

    def to_dict(self) -> dict[str, Any]:
        """Return the entry for JSON."""
        return {
            "model": self.name,
            "structure": self.structure,
            "parameters": self.parameters,
            "seen": self.seen,
            **self.validation.to_dict(),
        }


def compare(models: Mapping[str, Calibration], log: Log) -> tuple[Ranked, ...]:
    """Return named models from best to worst: by the mean over the joints of MSE / variance on a log.

    A log in which no joint moves has no such figure: there the mean over the joints of the RMSE decides.
    """
    ranked = [
        Ranked(name, own.structure_text, own.model.count, trained_on(own, log), validate(own, log))
        for name, own in models.items()
    ]
    return tuple(sorted(ranked, key=_error))


def trained_on(calibration: Calibration, log: Log) -> bool:
    """Tell whether a log comes from a file that the model was trained on, by its SHA-256."""
    return bool(log.origin.sha256) and any(log.origin.sha256 == own.sha256 for own in calibration.provenance.logs)


def _error(ranked: Ranked) -> tuple[float, float]:
    error = ranked.validation.mean_nmse
    return (math.inf if math.isnan(error) else error, ranked.validation.mean_rmse)
