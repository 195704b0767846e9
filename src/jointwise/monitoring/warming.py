"""Temperatures of a monitored robot against those for which its model knows the friction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise.model.terms import Temperature
from jointwise.monitoring.summary import TemperatureRange
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

NOTED = 5.0
"""Difference to the temperature of the calibration (K) that is worth a line."""


def temperature_range(model: RobotModel, temperatures: Sequence[Array]) -> TemperatureRange | None:
    """Return the temperatures; watch where a joint leaves the range for which its friction is known.

    Args:
        model: The calibrated robot.
        temperatures: Lowest, highest and last temperatures (joints,), °C; empty where they are not measured.

    """
    if not temperatures:
        return None
    low, high, last = temperatures
    outside = False
    for j, terms in enumerate(model.calibration.model.terms):
        for term in terms:
            if isinstance(term, Temperature):
                outside |= bool(low[j] < term.coldest or high[j] > term.hottest)
    numbers = (tuple(values.tolist()) for values in (low, high, last))
    return TemperatureRange("watch" if outside else "ok", *numbers)


def warmer_than_known(model: RobotModel, temperatures: Sequence[Array]) -> Array:
    """Return by how much the joints are warmer at the end than in the training logs (joints,), K.

    Zero within the range of these logs, for joints whose terms include the temperature, and where temperatures are not
    known.

    Args:
        model: The calibrated robot.
        temperatures: As in `temperature_range`.

    """
    known = model.calibration.provenance.temperatures
    if known is None or not temperatures:
        return np.zeros(model.dof)
    last = temperatures[2]
    described = [any(isinstance(term, Temperature) for term in terms) for terms in model.calibration.model.terms]
    return np.where(described, 0.0, last - np.clip(last, *known))


def thermal_note(warmer: Array) -> list[str]:
    """Return a line where joints are much warmer (K) or colder than the model knows."""
    largest = float(warmer[np.argmax(np.abs(warmer))])
    if abs(largest) < NOTED:
        return []
    word = "warmer" if largest > 0.0 else "colder"
    return [
        f"friction by temperature: joints are up to {abs(largest):.0f} K {word} than at calibration and the model has "
        "no temperature; a change that this may explain is not reported"
    ]
