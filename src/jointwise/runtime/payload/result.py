"""The identified payload: mass, centre of mass and inertia with 95 % confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jointwise.description.robot import Payload
from jointwise.errors import EstimationError
from jointwise.spatial import Array


@dataclass(frozen=True, eq=False)
class IdentifiedPayload:
    """A payload in the tool frame; NaN where the logs do not determine a number.

    Attributes:
        mass: Mass, kg.
        mass_interval: Its 95 % confidence interval (2,), kg; it begins at 0 at the lowest.
        com: Centre of mass (3,), m.
        com_interval: Intervals of its coordinates (3, 2), m.
        inertia: Inertia tensor about the centre of mass (3, 3), kg m², of a body that can exist.
        inertia_interval: Intervals of its entries (3, 3, 2), kg m².
        undetermined: What the logs do not determine, in words.
        friction_change: Relative change of friction against the model (logs, joints); 0 for a log at rest.
        residual: Residual standard deviation (logs, joints), Nm.
        trained: Residual standard deviation of the training data of the model (joints,), Nm.
        logs: Paths of the logs.
        assumed_inertia: Tensor (3, 3) that `payload` uses where the logs determine none.

    """

    mass: float
    mass_interval: Array
    com: Array
    com_interval: Array
    inertia: Array
    inertia_interval: Array
    undetermined: tuple[str, ...]
    friction_change: Array
    residual: Array
    trained: Array
    logs: tuple[str, ...]
    assumed_inertia: Array

    @property
    def payload(self) -> Payload:
        """The payload for a model or a simulation; one of mass 0 if the interval of the mass contains 0.

        Raises:
            EstimationError: The logs do not determine mass and centre.

        """
        if self.is_absent:
            return Payload(0.0)
        if np.isnan([self.mass, *self.com]).any():
            raise EstimationError(f"the payload is not determined: {' '.join(self.undetermined)}")
        return Payload(self.mass, self.com, self.assumed_inertia if np.isnan(self.inertia).any() else self.inertia)

    @property
    def is_absent(self) -> bool:
        """Whether the interval of the mass contains 0."""
        return bool(self.mass_interval[0] <= 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the payload for JSON: value and interval of mass, com, inertia; null where it is not determined."""
        return {
            "mass": {"value": _plain(self.mass), "interval": _plain(self.mass_interval), "unit": "kg"},
            "com": {"value": _plain(self.com), "interval": _plain(self.com_interval), "unit": "m"},
            "inertia": {"value": _plain(self.inertia), "interval": _plain(self.inertia_interval), "unit": "kg m^2"},
            "undetermined": list(self.undetermined),
            "friction_change": self.friction_change.tolist(),
            "residual": self.residual.tolist(),
            "training_residual": self.trained.tolist(),
            "logs": list(self.logs),
        }

    def summary(self) -> str:
        """Return the payload as text."""
        rows = [_row("mass", self.mass, self.mass_interval, "kg")]
        rows += [_row(f"com {axis}", self.com[k], self.com_interval[k], "m") for k, axis in enumerate("xyz")]
        rows += [
            _row(f"inertia {'xyz'[i]}{'xyz'[j]}", self.inertia[i, j], self.inertia_interval[i, j], "kg m^2")
            for i in range(3)
            for j in range(i, 3)
            if np.isfinite(self.inertia[i, j])
        ]
        head = "payload in the tool frame, inertia about the centre of mass; 95 % confidence intervals"
        return "\n".join([head, *rows, *self.undetermined])


def _row(name: str, value: float, interval: Array, unit: str) -> str:
    if np.isnan(value):
        return f"  {name:<11} {'-':>10}"
    return f"  {name:<11} {value:10.4f}  [{interval[0]:9.4f}, {interval[1]:9.4f}] {unit}"


def _plain(value: float | Array) -> Any:
    """Return numbers as nested lists, NaN as None."""
    array = np.asarray(value, dtype=float)
    if array.ndim:
        return [_plain(item) for item in array]
    return float(array) if np.isfinite(array) else None
