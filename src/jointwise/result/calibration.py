"""A calibration: the model, its numbers, how sure they are, and how they came about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from jointwise.data.conditioning import Filters
from jointwise.data.log import Log
from jointwise.errors import ModelError
from jointwise.estimation.problem import predicted_pieces, record
from jointwise.estimation.select import Choice
from jointwise.model.dynamics import Dynamics
from jointwise.motion import Motion
from jointwise.spatial import Array

Status = Literal["determined", "weak", "at bound", "undetermined", "given"]
"""determined: zero lies outside the 95 % interval; weak: inside it; at bound: held at zero; undetermined: the data
leave it open; given: known from elsewhere and held."""

SHOWN = 8
"""Parameters of bodies, and of joints, that a short summary shows."""
UNITS = {"current": "A", "torque": "Nm"}
EXTRAS = {"qd": "measured speed (qd)", "theta": "rotor positions (theta)"}
"""Channels beyond positions that a model can make use of, in words."""


@dataclass(frozen=True)
class Source:
    """A training log: file name, SHA-256, samples, duration (s), and the verdict of the data doctor."""

    file: str
    sha256: str
    samples: int
    duration: float
    verdict: str
    findings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """Where a calibration comes from; `payload` (kg, x, y, z in m) was carried in the logs and is in its parameters."""

    version: str
    date: str
    mounting: str
    logs: tuple[Source, ...]
    seconds: float = 0.0
    payload: tuple[float, ...] | None = None

    def payload_text(self) -> str:
        """Return what the parameters include besides the robot, empty if nothing."""
        if self.payload is None:
            return ""
        mass, x, y, z = self.payload
        return f"the parameters include the payload: {mass:g} kg at {x:g}, {y:g}, {z:g} m in the tool frame"


@dataclass(frozen=True)
class Estimate:
    """Values with covariance; `factor` times a deviation is half a 95 % interval.

    `sigma` (joints,) is the residual standard deviation in Nm; the condition numbers are those of the weighted
    observation matrix as it is, and with columns of unit length.
    """

    values: Array
    covariance: Array
    factor: float
    status: tuple[Status, ...]
    sigma: Array
    condition: float
    condition_scaled: float
    method: str

    @cached_property
    def deviation(self) -> Array:
        """Standard deviations, shape (parameters,)."""
        return np.sqrt(np.diag(self.covariance))

    @cached_property
    def relative(self) -> Array:
        """Relative standard deviation in %, 100 σ/|β|; infinite where the value is zero."""
        size = np.abs(self.values)
        return 100.0 * np.divide(self.deviation, size, out=np.full_like(size, np.inf), where=size > 0.0)

    def worst_partner(self, k: int) -> tuple[int, float]:
        """Return the parameter most correlated with parameter k, and the correlation; (k, 0) where there is none."""
        scale = self.deviation[k] * self.deviation
        row = np.divide(self.covariance[k], scale, out=np.zeros_like(scale), where=scale > 0.0)
        row[k] = 0.0
        partner = int(np.argmax(np.abs(row)))
        return (partner, float(row[partner])) if row[partner] != 0.0 else (k, 0.0)


@dataclass(frozen=True)
class Calibration:
    """A calibrated model; predicts the output that was measured (`output`: current in A or torque in Nm).

    `gains` (joints,) are Nm per unit of the output, `gain_source` where they come from; `structure` the choices of the
    joint model, `choices` the automatic decisions with their alternatives; `load` how the load iteration ended;
    `training` figures on the training data (never a proof); `fastest` (joints,) rad/s the speeds seen in training.
    """

    model: Dynamics
    estimate: Estimate
    filters: Filters
    output: Literal["current", "torque"]
    gains: Array
    gain_source: str
    structure: dict[str, Any]
    structure_text: str
    choices: tuple[Choice, ...]
    load: dict[str, Any]
    training: dict[str, Any]
    fastest: Array
    provenance: Provenance
    validation: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that do not fit the model."""
        if self.estimate.values.shape != (self.model.count,) or self.gains.shape != (self.model.robot.dof,):
            raise ModelError("the values or gains do not fit the model.")

    @property
    def unit(self) -> str:
        """Unit of the output."""
        return UNITS[self.output]

    @property
    def extras(self) -> tuple[str, ...]:
        """Channels beyond positions that the model makes use of: `qd` (measured speed), `theta` (rotor positions)."""
        terms = [term for own in self.model.terms for term in own]
        used = {"qd": any(term.uses_speed() for term in terms), "theta": any(term.uses_rotor() for term in terms)}
        return tuple(name for name, needed in used.items() if needed)

    def torque(self, motion: Motion) -> Array:
        """Return the torque of a motion, (samples, joints), Nm."""
        return self.model.torque(motion, self.estimate.values)

    def body_torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return what bodies and rotors ask of the joints, (samples, joints), Nm, friction left out."""
        bodies = self.model.rigid_columns(Motion(0.0, 1.0, q, qd, qdd))
        return self.model.body_torque(bodies, self.estimate.values)

    def predict(self, log: Log) -> Array:
        """Return the predicted output at every stamp of a log, (samples, joints).

        From its positions, and the speeds and rotor positions that the model makes use of (`extras`). Without them the
        prediction is worse, most of all at rest: how friction is wound up shows in the rotor, hardly in the joint.
        """
        result = np.empty((log.samples, log.joints))
        for piece, values in self.predict_pieces(log):
            result[piece] = values
        return result

    def predict_pieces(self, log: Log) -> Iterator[tuple[slice, Array]]:
        """Yield the prediction piece by piece: samples of the log and (samples, joints)."""
        if log.joints != self.model.robot.dof:
            raise ModelError(
                f"{log.origin.path}: the log has {log.joints} joints, the model {self.model.robot.dof} "
                f"({self.model.robot.name})."
            )
        recording = record(log, "q")
        yield from predicted_pieces(self.model, self.estimate.values, recording, self.filters, self.gains)

    def interval(self, k: int) -> tuple[float, float]:
        """Return the 95 % interval of parameter k."""
        half = self.estimate.factor * self.estimate.deviation[k]
        return float(self.estimate.values[k] - half), float(self.estimate.values[k] + half)

    def undetermined(self) -> tuple[str, ...]:
        """Return the names of the parameters that the data leave open."""
        return tuple(
            info.name
            for info, status in zip(self.model.parameters, self.estimate.status, strict=True)
            if status == "undetermined"
        )

    def counts(self) -> list[tuple[str, int, str]]:
        """Return how well bodies and joints are known: whose, number of parameters, "35 determined, 5 weak"."""
        kinds = get_args(Status)
        count, status = self.model.base.count, self.estimate.status
        return [
            (whose, len(own), ", ".join(f"{own.count(kind)} {kind}" for kind in kinds if kind in own))
            for whose, own in (("bodies", status[:count]), ("joints", status[count:]))
            if own
        ]

    def summary(self, full: bool = False) -> str:
        """Return the calibration as text: what it is, and the best known parameters of bodies and joints.

        `full` lists every parameter with its interval and status; the report has them with their meaning.
        """
        head = (
            f"{self.model.robot.title or self.model.robot.name}, output {self.output} ({self.unit}), "
            f"{self.estimate.method.upper()}\njoint model: {self.structure_text}\n"
            f"{self.provenance.payload_text()}{chr(10) * bool(self.provenance.payload)}"
            f"condition number {self.estimate.condition:.3g} (scaled {self.estimate.condition_scaled:.3g})\n"
        )
        rows = [f"{'parameter':>10} {'value':>12} {'95 % interval':>27} {'rel. sd %':>9}  status"]
        if full:
            return head + "\n".join([*rows, *map(self._line, range(self.model.count))])
        split = self.model.base.count
        for (whose, number, kinds), own in zip(
            self.counts(), (range(split), range(split, self.model.count)), strict=False
        ):
            best = sorted(own, key=self._unsure)[:SHOWN]
            rows += [f"{whose}: {number} parameters, {kinds}; the best known:", *map(self._line, sorted(best))]
        return head + "\n".join([*rows, "all of them: summary(full=True), or the report (jointwise report)"])

    def _unsure(self, k: int) -> float:
        """Return how badly a parameter is known, for sorting."""
        return float(self.estimate.relative[k]) if self.estimate.status[k] in ("determined", "weak") else np.inf

    def _line(self, k: int) -> str:
        info, status = self.model.parameters[k], self.estimate.status[k]
        if status == "undetermined":
            return f"{info.name:>10} {'-':>12} {'-':>27} {'-':>9}  undetermined [{info.unit}]"
        low, high = self.interval(k)
        value, relative = self.estimate.values[k], self.estimate.relative[k]
        return f"{info.name:>10} {value:12.5g} [{low:12.5g}, {high:11.5g}] {relative:9.3g}  {status} [{info.unit}]"
