"""The result of identifying an arm with elastic joints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.model.base import BaseParameters
from jointwise.model.elastic import ElasticModel, units_of
from jointwise.spatial import Array


@dataclass(frozen=True, eq=False)
class ElasticCalibration:
    """Parameters of an arm with elastic joints: identifiable combinations of 14 parameters per joint.

    Attributes:
        robot: The robot.
        model: "reduced" or "complete"; the latter has the coupling of rotors and links.
        base: Identifiable combinations.
        values: Their values, (parameters,), in `units`.
        deviation: Standard errors, (parameters,), in `units`.
        factor: Half-width of a 95 % confidence interval per standard error.
        sigma: Residual standard deviations of the equations of links and motors, (2, joints), Nm; NaN for a link whose
            joint shows no stiffness.
        nmse: MSE / variance of the motor torque of the training data, (joints,).
        lag: The motor torque of time t belongs to the positions at t + lag, s.
    """

    robot: Robot
    model: ElasticModel
    base: BaseParameters
    values: Array
    deviation: Array
    factor: float
    sigma: Array
    nmse: Array
    lag: float

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Units of the parameters."""
        return units_of(self.base.names, self.base)

    def __getitem__(self, name: str) -> float:
        """Return the value of a parameter."""
        if name not in self.base.names:
            raise ModelError(f"'{name}' is not an identifiable parameter. Known: {', '.join(self.base.names)}.")
        return float(self.values[self.base.names.index(name)])

    def conf_int(self) -> Array:
        """Return the 95 % confidence intervals, shape (parameters, 2)."""
        half = self.factor * self.deviation
        return np.column_stack([self.values - half, self.values + half])

    @cached_property
    def undetermined(self) -> tuple[str, ...]:
        """Parameters whose 95 % confidence interval contains zero: the model has them, these data do not show them."""
        low, high = self.conf_int().T
        return tuple(name for name, open_ in zip(self.base.names, (low <= 0.0) & (high >= 0.0), strict=True) if open_)

    @cached_property
    def at_bound(self) -> tuple[str, ...]:
        """Parameters at their lower bound of zero: the interval of such a value has no width and means nothing."""
        pairs = zip(self.base.names, self.values, self.deviation, strict=True)
        return tuple(name for name, value, deviation in pairs if value == 0.0 and deviation == 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        numbers = (self.values, self.deviation, self.conf_int(), self.units)
        rows = zip(self.base.names, self.base.formulas, *numbers, strict=True)
        return {
            "robot": self.robot.name,
            "model": self.model,
            "parameters": [
                {
                    "name": name,
                    "formula": formula,
                    "value": float(value),
                    "std_error": float(error),
                    "conf_int": [float(low), float(high)],
                    "unit": unit,
                }
                for name, formula, value, error, (low, high), unit in rows
            ],
            "classification": dict(self.base.classification),
            "undetermined": list(self.undetermined),
            "at_bound": list(self.at_bound),
            "residual": {
                "links": [None if np.isnan(s) else float(s) for s in self.sigma[0]],
                "motors": self.sigma[1].tolist(),
                "unit": "Nm",
            },
            "nmse": self.nmse.tolist(),
            "lag_s": self.lag,
        }

    def summary(self) -> str:
        """Return all parameters with confidence intervals, how many of the 14 of each joint they are, and residuals."""
        kinds = self.base.classification
        counts = {kind: sum(value == kind for value in kinds.values()) for kind in ("alone", "combination", "none")}
        rows = [
            f"{name:>8} {_value_text(value, low, high, name not in self.undetermined)} {unit}"
            for name, value, (low, high), unit in zip(
                self.base.names, self.values, self.conf_int(), self.units, strict=True
            )
        ]
        return "\n".join(
            [
                f"{self.robot.title or self.robot.name}: elastic joints, {self.model} model",
                f"of {len(kinds)} parameters {counts['alone']} are identifiable alone, {counts['combination']} in "
                f"combinations, {counts['none']} have no effect",
                "parameter        value          95 % confidence interval",
                *rows,
                *self._residual_lines(),
                f"lag of the motor torque: {1e3 * self.lag:.2f} ms",
                *([f"not determined by these data: {', '.join(self.undetermined)}"] if self.undetermined else []),
            ]
        )

    def _residual_lines(self) -> list[str]:
        """Return the residuals of both equations, and the joints whose link has none."""
        rigid = [str(joint) for joint in np.flatnonzero(np.isnan(self.sigma[0])) + 1]
        return [
            "  j  residual of the link [Nm]  of the motor [Nm]  MSE/variance of the motor torque (training)",
            *(
                f"{joint:3d}  {'-' if np.isnan(link) else f'{link:.3g}':>25}  {motor:>17.3g}  {part:12.3g}"
                for joint, (link, motor, part) in enumerate(zip(*self.sigma, self.nmse, strict=True), 1)
            ),
            *(
                [f"joint {', '.join(rigid)}: too stiff for these data; the equation of the link is not used"]
                if rigid
                else []
            ),
        ]


def _value_text(value: float, low: float, high: float, determined: bool) -> str:
    """Return a value with its confidence interval, or that it is at its bound or not determined."""
    if high > low:
        return f"{value:12.5g} [{low:12.5g}, {high:12.5g}]"
    return f"{value:12.5g} {'at its lower bound':^28}" if determined else f"{'-':>12} {'not determined':^28}"
