"""A calibration: the model, its parameters with their uncertainty, and its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from scipy.special import stdtrit

from jointwise.arguments import checked
from jointwise.data.conditioning import Filters
from jointwise.data.log import Log
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.errors import ModelError
from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.essential import Essential
from jointwise.estimation.fit import LoadIteration
from jointwise.estimation.jackknife import CONFIDENCE
from jointwise.estimation.physical import PhysicalParameters
from jointwise.estimation.structure import Structure
from jointwise.finding import Finding
from jointwise.model.dynamics import Dynamics
from jointwise.motion import Motion, with_substitutes
from jointwise.result.metrics import TrainingErrors, Validation
from jointwise.result.plausibility import Setup, setup_of
from jointwise.result.predict import FeedForward, Use, for_use, predict
from jointwise.result.provenance import Provenance
from jointwise.result.spread import ResidualSpread
from jointwise.spatial import Array

if TYPE_CHECKING:
    from pandas import DataFrame

Status = Literal["determined", "weak", "at bound", "undetermined", "given", "dropped"]
"""determined: the 95 % confidence interval does not contain zero; weak: it does; at bound: the estimate is zero, its
lower bound; undetermined: not identifiable from the data; given: fixed at a known value; dropped: set to zero because
it is not essential."""

UNITS = {"current": "A", "torque": "Nm"}
SCALE_UNKNOWN = (
    "The scale of the drive gains is unknown: every parameter is relative to it (unit x gain), without absolute "
    "intervals. Predictions of the output are not affected."
)


@dataclass(frozen=True)
class Estimate:
    """Values of all parameters with their uncertainty.

    Attributes:
        values: Values, (parameters,).
        covariance: Covariance, (parameters, parameters).
        factor: Half-width of a 95 % confidence interval per standard error (Student).
        status: Status of every parameter.
        sigma: Residual standard deviation, Nm, (joints,).
        condition: Condition number of the weighted observation matrix.
        condition_scaled: The same with columns of unit length.
        method: Method of the fit.
        shares: Mean shares of the variance of body parameters by cause: independent noise, correlated residuals, model
            selection, filters, neglected effects, drive gains.
    """

    values: Array
    covariance: Array
    factor: float
    status: tuple[Status, ...]
    sigma: Array
    condition: float
    condition_scaled: float
    method: str
    shares: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def deviation(self) -> Array:
        """Standard errors, shape (parameters,)."""
        return np.sqrt(np.diag(self.covariance))

    @cached_property
    def relative(self) -> Array:
        """Relative standard error in %, 100 σ/|β|; infinite where the value is zero."""
        size = np.abs(self.values)
        return 100.0 * np.divide(self.deviation, size, out=np.full_like(size, np.inf), where=size > 0.0)

    def factor_at(self, level: float) -> float:
        """Return the Student quantile of another confidence level, with the degrees of freedom of `factor`."""
        if level == CONFIDENCE:
            return self.factor
        low, high = 1.0, 1e6
        for _ in range(60):  # bisection: the quantile falls with the degrees of freedom
            middle = np.sqrt(low * high)
            low, high = (middle, high) if stdtrit(middle, 0.5 + 0.5 * CONFIDENCE) > self.factor else (low, middle)
        return float(stdtrit(low, 0.5 + 0.5 * level))

    def worst_partner(self, k: int) -> tuple[int, float]:
        """Return the parameter most correlated with parameter k, and the correlation; (k, 0) where there is none."""
        scale = self.deviation[k] * self.deviation
        row = np.divide(self.covariance[k], scale, out=np.zeros_like(scale), where=scale > 0.0)
        row[k] = 0.0
        partner = int(np.argmax(np.abs(row)))
        return (partner, float(row[partner])) if row[partner] != 0.0 else (k, 0.0)


@dataclass(frozen=True)
class Calibration:
    """A calibrated model; predicts the output that was measured.

    Attributes:
        model: Robot, base parameters and terms.
        estimate: Values, covariance and status of the parameters.
        filters: Filters of the training data.
        output: Measured output, `current` (A) or `torque` (Nm).
        gains: Drive gains, Nm per unit of the output, (joints,).
        gain_source: Where the gains come from, in words.
        structure: Joint model.
        structure_text: Joint model in words.
        choices: Automatic selections with their candidates and held-out errors.
        load: Outcome of the iteration for load-dependent friction.
        training: Training errors.
        fastest: Highest speed of each joint in the training data, (joints,), rad/s.
        provenance: Training logs, payload and mounting.
        plausibility: Results of the set-up check.
        scale_known: False if only ratios of the gains are known: parameters are then relative to an unknown gain, and
            there are no absolute confidence intervals.
        validation: Errors on the logs for validation.
        physical: Physically consistent bodies; None if they were not estimated.
        feed_forward: Friction for predictions from positions only; None if the model uses no other channel.
        essential: Base parameters that were set to zero; None if all were kept.
        spread: Standard deviations of the residuals without contact; None in models of earlier versions.

    """

    model: Dynamics
    estimate: Estimate
    filters: Filters
    output: Literal["current", "torque"]
    gains: Array
    gain_source: str
    structure: Structure
    structure_text: str
    choices: tuple[Choice, ...]
    load: LoadIteration
    training: TrainingErrors
    fastest: Array
    provenance: Provenance
    plausibility: tuple[Finding, ...] = ()
    scale_known: bool = True
    validation: tuple[Validation, ...] = ()
    physical: PhysicalParameters | None = None
    feed_forward: FeedForward | None = None
    essential: Essential | None = None
    spread: ResidualSpread | None = None

    def __post_init__(self) -> None:
        """Reject values and gains whose shape does not match the model; mark the described bodies as superseded."""
        if self.physical is not None and self.physical.values.shape != self.estimate.values.shape:
            raise ModelError("the physical parameters do not belong to this model.")
        if self.estimate.values.shape != (self.model.count,) or self.gains.shape != (self.model.robot.dof,):
            raise ModelError("the number of values or gains does not match the model.")
        if not self.model.robot.superseded:
            object.__setattr__(self, "model", self.model.superseding())

    def __repr__(self) -> str:
        """Return robot, output, size and training logs in one line."""
        robot, logs = self.model.robot, len(self.provenance.logs)
        size, words = f"{robot.dof} joints, {self.model.count} parameters", "1 log" if logs == 1 else f"{logs} logs"
        return f"Calibration({robot.name!r}, {size}, {self.output} in {self.unit}, trained on {words})"

    def robot_identified(self) -> Robot:
        """Return the robot with the identified bodies and rotor inertias, physically consistent.

        The bodies include the payload of the training logs. Rotor inertias are reflected to the joints: where no gear
        ratio is described, it becomes 1.

        Raises:
            ModelError: The calibration has no physical parameters.
        """
        bodies = self._physical()
        links = tuple(
            replace(link, region=described.region)
            for link, described in zip(bodies.links, self.model.robot.links, strict=True)
        )
        joints = tuple(
            replace(joint, motor=joint.motor.with_reflected_inertia(float(inertia)))
            for joint, inertia in zip(self.model.robot.joints, bodies.rotor_inertias, strict=True)
        )
        return replace(self.model.robot, joints=joints, links=links, superseded=False)

    def consistent(self) -> Calibration:
        """Return the calibration with the parameters of the physically consistent bodies.

        It predicts with the bodies of `physical` and the joint terms that were fitted together with them.

        Raises:
            ModelError: The calibration has no physical parameters.
        """
        return replace(self, estimate=replace(self.estimate, values=self._physical().values))

    def _physical(self) -> PhysicalParameters:
        if self.physical is None:
            raise ModelError("the calibration has no physical parameters. Calibrate without --no-physical.")
        return self.physical

    @property
    def scale_text(self) -> str:
        """What an unknown scale of the gains means for the parameters; empty where the scale is known."""
        return "" if self.scale_known else SCALE_UNKNOWN

    def unit_of(self, k: int) -> str:
        """Return the unit of a parameter, relative to the gain where its scale is not known."""
        unit = self.model.parameters[k].unit
        return unit if self.scale_known else f"{unit} x gain"

    @property
    def setup(self) -> Setup:
        """Whether the training data agree with the declared set-up: `ok`, `suspect` or `contradicted`."""
        return setup_of(self.plausibility)

    @property
    def implausible(self) -> bool:
        """Whether the training data contradict the declared set-up, which the user accepted."""
        return self.setup == "contradicted"

    @property
    def unit(self) -> str:
        """Unit of the output."""
        return UNITS[self.output]

    @property
    def ignored(self) -> tuple[int, ...]:
        """Joints (0-based) whose output was not used for training: the model does not predict it."""
        return self.training.ignored

    @property
    def extras(self) -> tuple[str, ...]:
        """Channels that the model uses in addition to positions: `qd` (measured speed), `theta` (rotor positions)."""
        terms = [term for terms in self.model.terms for term in terms]
        rotor = self.model.rotor_side or any(term.uses_rotor() for term in terms)
        used = {"qd": any(term.uses_speed() for term in terms), "theta": rotor}
        return tuple(name for name, needed in used.items() if needed)

    def torque(self, motion: Motion) -> Array:
        """Return the torque of a measured or planned motion, (samples, joints), Nm.

        Where the motion has no measured speed or rotor position that the model uses, it is the feed-forward estimate.
        """
        lacking = {"qd": motion.track is None, "theta": motion.rotor is None}
        chosen = self.for_use("feed-forward" if any(lacking[name] for name in self.extras) else "sensor")
        return chosen.model.torque(with_substitutes(motion), chosen.estimate.values)

    def for_use(self, use: Use) -> Calibration:
        """Return the calibration with one estimate: that of `sensor` (all channels) or `feed-forward` (positions)."""
        return for_use(self, use)

    def with_payload(self, payload: Payload | None) -> Calibration:
        """Return the calibration with a payload in place of the one that its parameters include; see `transfer`."""
        from jointwise.result.transfer import with_payload

        return with_payload(self, payload)

    def with_mounting(self, mounting: Mounting) -> Calibration:
        """Return the calibration under another gravity, if its parameters determine that model; see `transfer`."""
        from jointwise.result.transfer import with_mounting

        return with_mounting(self, mounting)

    def body_torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return the torque of bodies and rotors without friction, (samples, joints), Nm."""
        bodies = self.model.rigid_columns(Motion(1.0, q, qd, qdd))
        return self.model.body_torque(bodies, self.estimate.values)

    def predict(self, log: Log, *, use: Use | None = None) -> Array:
        """Return the predicted output at every stamp of a log, (samples, joints); see `jointwise.predict`."""
        return predict(self, log, use=use)

    @checked
    def residuals(self, log: Log) -> Array:
        """Return measured minus predicted output at every stamp of a log.

        Args:
            log: A log with positions and with the output of the model (currents or torques).

        Returns:
            Residuals in the unit of the output, shape (samples, joints).

        Raises:
            JointwiseError: The log has no such output, or another number of joints.
        """
        return np.asarray(log.channel(self.output) - self.predict(log))

    @checked
    def conf_int(self, level: float = 0.95) -> Array:
        """Return the confidence intervals of all parameters, in the order of ``model.parameters``.

        Args:
            level: Confidence level between 0 and 1.

        Returns:
            Lower and upper ends, shape (parameters, 2); NaN where a parameter is undetermined, and for all of them
            where the scale of the gains is unknown.

        Raises:
            ModelError: The level is not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise ModelError(f"level must be between 0 and 1. Got {level} instead.")
        half = self.estimate.factor_at(level) * self.estimate.deviation
        ends = np.column_stack([self.estimate.values - half, self.estimate.values + half])
        ends[[status == "undetermined" or not self.scale_known for status in self.estimate.status]] = np.nan
        return ends

    def to_dataframe(self) -> DataFrame:
        """Return the parameters as a pandas data frame, one row per parameter with its name as the index.

        Returns:
            Columns ``joint`` (from 1; missing for bodies), ``unit``, ``value``, ``std_error``, ``low`` and ``high``
            (95 % confidence interval), and ``status``.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from jointwise.result.text import calibration_frame

        return calibration_frame(self)

    def undetermined(self) -> tuple[str, ...]:
        """Return the names of the parameters that are not identifiable from the data."""
        return tuple(
            info.name
            for info, status in zip(self.model.parameters, self.estimate.status, strict=True)
            if status == "undetermined"
        )

    def counts(self) -> list[tuple[str, int, str]]:
        """Return the status of the parameters of links and joints: group, number, text "35 determined, 5 weak"."""
        kinds = get_args(Status)
        count, status = self.model.base.count, self.estimate.status
        return [
            (group, len(part), ", ".join(f"{part.count(kind)} {kind}" for kind in kinds if kind in part))
            for group, part in (("bodies", status[:count]), ("joints", status[count:]))
            if part
        ]

    def summary(self, full: bool = False) -> str:
        """Return the calibration as text, with the most precise parameters of bodies and joints.

        Args:
            full: List every parameter with its confidence interval and status.

        """
        from jointwise.result.text import calibration_text

        return calibration_text(self, full)


@runtime_checkable
class HasCalibration(Protocol):
    """An object with a calibration, such as `RobotModel`."""

    @property
    def calibration(self) -> Calibration:
        """The calibration."""


CalibratedModel = Calibration | HasCalibration
"""A calibrated model: the calibration itself, or a `RobotModel`."""


def calibration_of(model: CalibratedModel) -> Calibration:
    """Return the calibration of a calibrated model."""
    return model if isinstance(model, Calibration) else model.calibration
