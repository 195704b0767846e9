"""Model files: their entries as dataclasses with types and ranges, from a calibration and back, and earlier schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from msgspec import Meta

from jointwise.arguments import checked
from jointwise.data.conditioning import Filters
from jointwise.description.files import RobotDocument, Ten, robot_to_dict
from jointwise.document import (
    Kind,
    content_hash,
    decode,
    finite_or_none,
    load_document,
    plain_json,
    write_document,
)
from jointwise.errors import ModelError
from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.essential import Essential
from jointwise.estimation.fit import LoadIteration
from jointwise.estimation.physical import PRIOR_WEIGHTS, Consistency, PhysicalParameters
from jointwise.estimation.semidefinite import PriorKind
from jointwise.estimation.structure import Structure
from jointwise.model.dynamics import Dynamics
from jointwise.model.terms import Term, term_from_dict
from jointwise.result.calibration import CalibratedModel, Calibration, Estimate, Status, calibration_of
from jointwise.result.metrics import JointMetrics, TrainingErrors, Validation
from jointwise.result.plausibility import setup_entry, setup_of
from jointwise.result.plausibility.wording import SetupEntry
from jointwise.result.predict import FeedForward, Use
from jointwise.result.provenance import Provenance, Source
from jointwise.result.spread import ResidualSpread
from jointwise.spatial import Array, pseudo_inertia

FASTEST_RATE = 1e5
"""Hz; no log is sampled faster, and conditioning a log takes memory in proportion."""
LONGEST_LAG = 10.0
"""s; the lag of a drive is some milliseconds."""

T = TypeVar("T")
Positive = Annotated[float, Meta(gt=0.0)]
NonNegative = Annotated[float, Meta(ge=0.0)]
Frequency = Annotated[float, Meta(gt=0.0, le=FASTEST_RATE)]


@dataclass(frozen=True)
class _Model:
    """Gravity (m/s²) in the base frame, and the terms of every joint."""

    gravity: tuple[float, float, float]
    rotors: bool
    load_basis: Literal["model", "row_sum"]
    terms: tuple[tuple[dict[str, Any], ...], ...]
    rotor_side: bool = False


@dataclass(frozen=True)
class _Filters:
    """The conditioning of the signals, within the ranges that memory allows."""

    rate: Frequency
    position_cutoff: Frequency
    parallel_cutoff: Frequency | None = None
    decimation: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    lag: Annotated[float, Meta(ge=-LONGEST_LAG, le=LONGEST_LAG)] = 0.0


@dataclass(frozen=True)
class _Output:
    """The signal that the model predicts, and the drive gains, Nm per unit of it."""

    signal: Literal["current", "torque"]
    gains: tuple[Positive, ...]
    gain_source: str
    unit: str = ""
    scale_known: bool = True


@dataclass(frozen=True)
class _Parameter:
    """An estimated parameter; `joint` counts from 1, None for bodies."""

    name: str
    value: float
    status: Status
    deviation: NonNegative = 0.0
    unit: str = ""
    joint: int | None = None

    @classmethod
    def all_of(cls, calibration: Calibration) -> tuple[_Parameter, ...]:
        """Return the parameters of a calibration."""
        estimate = calibration.estimate
        return tuple(
            cls(
                name=info.name,
                value=float(estimate.values[k]),
                status=estimate.status[k],
                deviation=float(estimate.deviation[k]),
                unit=calibration.unit_of(k),
                joint=None if info.joint is None else info.joint + 1,
            )
            for k, info in enumerate(calibration.model.parameters)
        )


@dataclass(frozen=True)
class _Estimate:
    """How the parameters were estimated; `covariance` is the lower triangle row by row."""

    method: str
    factor: Positive
    sigma: tuple[NonNegative, ...]
    covariance: tuple[tuple[float, ...], ...]
    condition: float | None = None
    condition_scaled: float | None = None
    shares: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject what is not a triangle."""
        for k, row in enumerate(self.covariance, start=1):
            if len(row) != k:
                raise ModelError(f"covariance[{k - 1}] must be a list of length {k}. Got {len(row)} numbers instead.")

    @classmethod
    def of(cls, estimate: Estimate) -> _Estimate:
        """Return how an estimate was made."""
        return cls(
            method=estimate.method,
            factor=estimate.factor,
            sigma=tuple(estimate.sigma.tolist()),
            covariance=tuple(tuple(row[: k + 1].tolist()) for k, row in enumerate(estimate.covariance)),
            condition=finite_or_none(estimate.condition),
            condition_scaled=finite_or_none(estimate.condition_scaled),
            shares=dict(estimate.shares),
        )

    def estimate(self, parameters: tuple[_Parameter, ...]) -> Estimate:
        """Return the estimate of these parameters."""
        if len(self.covariance) != len(parameters):
            raise ModelError(f"covariance must be {len(parameters)} rows. Got {len(self.covariance)} instead.")
        covariance = np.zeros((len(parameters), len(parameters)))
        for k, row in enumerate(self.covariance):
            covariance[k, : k + 1] = covariance[: k + 1, k] = row
        return Estimate(
            values=np.array([row.value for row in parameters]),
            covariance=covariance,
            factor=self.factor,
            status=tuple(row.status for row in parameters),
            sigma=np.array(self.sigma),
            condition=np.inf if self.condition is None else self.condition,
            condition_scaled=np.inf if self.condition_scaled is None else self.condition_scaled,
            method=self.method,
            shares=self.shares,
        )


@dataclass(frozen=True)
class _Training:
    """MSE / variance of every joint on the training data, and that from positions only."""

    nmse: tuple[float | None, ...]
    positions_alone: tuple[float | None, ...] | None = None


@dataclass(frozen=True)
class _ValidationEntry:
    """The errors on one log; what follows from them (means, reasons) is written too and not read."""

    file: str
    unit: str
    joints: tuple[dict[str, Any], ...]
    shared: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.0
    positions_alone: dict[str, Any] | None = None
    use: Use | None = None
    plausibility: tuple[SetupEntry, ...] = ()
    motion: tuple[dict[str, Any], ...] | None = None

    @property
    def validation(self) -> Validation:
        """The validation, without its log and prediction."""
        moving = [row.get("moving") for row in self.joints]
        bare = self.positions_alone
        return Validation(
            joints=tuple(_selected(row, JointMetrics) for row in self.joints),
            moving=tuple(None if row is None else _selected(row, JointMetrics) for row in moving),
            unit=self.unit,
            file=self.file,
            use=self.use,
            plausibility=tuple(entry.finding for entry in self.plausibility),
            shared=self.shared,
            motion=None if self.motion is None else tuple(_selected(row, JointMetrics) for row in self.motion),
            from_positions=None if bare is None else _selected(bare, _ValidationEntry).validation,
        )


@dataclass(frozen=True)
class _Validations:
    """The errors on logs that were not used for training."""

    logs: tuple[dict[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Reject entries that are no validations."""
        assert self.validations is not None

    @cached_property
    def validations(self) -> tuple[Validation, ...]:
        """The validations themselves."""
        return tuple(_selected(log, _ValidationEntry).validation for log in self.logs)


@dataclass(frozen=True)
class _Body:
    """A physically consistent link; see `PhysicalParameters`."""

    name: str
    inertial: Ten
    share: Ten
    rotor_inertia: NonNegative
    rotor_share: float
    eigenvalue: Positive
    at_boundary: bool = False
    described_mass: Positive | None = None


@dataclass(frozen=True)
class _Physical:
    """The physically consistent parameters."""

    links: tuple[_Body, ...]
    values: tuple[float, ...]
    prior: PriorKind
    prior_source: str
    prior_weight: Positive = PRIOR_WEIGHTS[0]
    held_out: Consistency | None = None

    def __post_init__(self) -> None:
        """Reject bodies that cannot exist."""
        for body in self.links:
            if not np.linalg.eigvalsh(pseudo_inertia(body.inertial))[0] > 0.0:
                raise ModelError(f"physical: link '{body.name}' cannot exist: its pseudo-inertia is not positive.")

    @classmethod
    def of(cls, physical: PhysicalParameters) -> _Physical:
        """Return the entries of consistent parameters."""
        columns = (physical.inertials, physical.share, physical.rotor_inertias, physical.rotor_share)
        lists: list[list[Any]] = [column.tolist() for column in (*columns, physical.eigenvalues)]
        masses = [float(mass) if mass > 0.0 else None for mass in physical.described_masses]
        return cls(
            links=tuple(
                _Body(name, *(each[j] for each in lists), j in physical.boundary, masses[j])  # type: ignore[call-arg]
                for j, name in enumerate(physical.names)
            ),
            values=tuple(physical.values.tolist()),
            prior=physical.prior,
            prior_source=physical.prior_source,
            prior_weight=physical.prior_weight,
            held_out=physical.held_out,
        )

    def parameters(self) -> PhysicalParameters:
        """Return the parameters themselves."""

        def each(name: str) -> Array:
            return np.array([getattr(body, name) for body in self.links])

        return PhysicalParameters(
            names=tuple(body.name for body in self.links),
            inertials=each("inertial"),
            rotor_inertias=each("rotor_inertia"),
            values=np.array(self.values),
            share=each("share"),
            rotor_share=each("rotor_share"),
            eigenvalues=each("eigenvalue"),
            boundary=tuple(j for j, body in enumerate(self.links) if body.at_boundary),
            prior=self.prior,
            prior_source=self.prior_source,
            prior_weight=self.prior_weight,
            held_out=self.held_out,
            described_masses=np.array([body.described_mass or np.nan for body in self.links]),
        )


@dataclass(frozen=True)
class _FeedForward:
    """The friction for predictions from positions only."""

    terms: tuple[tuple[dict[str, Any], ...], ...]
    values: tuple[float, ...]
    deviation: tuple[NonNegative, ...]
    status: tuple[Status, ...]
    sigma: tuple[NonNegative, ...]
    structure: Structure
    structure_text: str
    choices: tuple[Choice, ...]
    position_cutoff: Frequency | None = None

    def __post_init__(self) -> None:
        """Reject entries that do not belong together."""
        assert self.friction is not None

    @classmethod
    def of(cls, friction: FeedForward) -> _FeedForward:
        """Return the entries of the friction."""
        arrays = (friction.values, friction.deviation, friction.sigma)
        values, deviation, sigma = (tuple(array.tolist()) for array in arrays)
        return cls(
            terms=_term_entries(friction.terms),
            values=values,
            deviation=deviation,
            status=friction.status,
            sigma=sigma,
            structure=friction.structure,
            structure_text=friction.structure_text,
            choices=friction.choices,
            position_cutoff=friction.position_cutoff,
        )

    @cached_property
    def friction(self) -> FeedForward:
        """The friction itself."""
        return FeedForward(
            terms=_terms(self.terms),
            values=np.array(self.values),
            deviation=np.array(self.deviation),
            status=self.status,
            sigma=np.array(self.sigma),
            structure=self.structure,
            structure_text=self.structure_text,
            choices=self.choices,
            position_cutoff=self.position_cutoff,
        )


def _term_entries(terms: Sequence[Sequence[Term]]) -> tuple[tuple[dict[str, Any], ...], ...]:
    return tuple(tuple(term.to_dict() for term in of_joint) for of_joint in terms)


def _terms(document: tuple[tuple[dict[str, Any], ...], ...]) -> tuple[tuple[Term, ...], ...]:
    return tuple(tuple(term_from_dict(term) for term in terms) for terms in document)


@dataclass(frozen=True)
class _Run:
    """The run that made the model: what matters only once; see `Provenance`."""

    version: str
    date: str
    seconds: float = 0.0


@dataclass(frozen=True)
class _Provenance:
    """Where the model comes from; see `Provenance`."""

    mounting: str
    logs: tuple[Source, ...]
    payload: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelFile:
    """The entries of a model file beside its format and schema.

    Attributes:
        robot: Description of the robot.
        model: Gravity, rotors, terms of every joint, and the load on which friction depends.
        filters: Filters of the training data.
        output: Measured output, drive gains and their origin.
        parameters: Name, value, status and uncertainty of every parameter.
        estimate: Covariance, residual standard deviations and condition numbers.
        structure: Joint model.
        structure_text: Joint model in words.
        choices: Automatic selections with their candidates and held-out errors.
        load: Outcome of the iteration for load-dependent friction.
        training: Training errors.
        fastest: Highest speed of each joint in the training data, (joints,), rad/s.
        provenance: Training logs, payload and mounting.
        run: Version of Jointwise, date and computing time.
        plausibility: Results of the set-up check.
        validation: Errors on the logs for validation.
        physical: Physically consistent bodies; None if they were not estimated.
        feed_forward: Friction for predictions from positions only; None if the model uses no other channel.
        essential: Base parameters that were set to zero; None if all were kept.
        spread: Standard deviations of the residuals without contact; None in files of earlier versions.
    """

    robot: RobotDocument
    model: _Model
    filters: _Filters
    output: _Output
    parameters: tuple[_Parameter, ...]
    estimate: _Estimate
    structure: Structure
    structure_text: str
    choices: tuple[Choice, ...]
    load: LoadIteration
    training: _Training
    fastest: tuple[NonNegative, ...]
    provenance: _Provenance
    run: _Run
    plausibility: tuple[SetupEntry, ...] = ()
    validation: _Validations = field(default_factory=_Validations)
    physical: _Physical | None = None
    feed_forward: _FeedForward | None = None
    essential: Essential | None = None
    spread: ResidualSpread | None = None

    def __post_init__(self) -> None:
        """Reject entries that do not belong together."""
        if self.spread is not None and len(self.spread.joints) != self.robot.robot.dof:
            raise ModelError(f"spread.joints must be {self.robot.robot.dof} joints.")
        self._check_counts()
        if self.provenance.payload is not None and len(self.provenance.payload) not in (4, 10):
            raise ModelError("provenance.payload must be kg and x, y, z in m, or these and six moments of inertia.")
        if [row.name for row in self.parameters] != [info.name for info in self.calibration.model.parameters]:
            raise ModelError("the parameters do not belong to this model.")

    @classmethod
    def of(cls, calibration: Calibration) -> ModelFile:
        """Return the entries of a calibration."""
        model, origin, physical, friction = (
            calibration.model,
            calibration.provenance,
            calibration.physical,
            calibration.feed_forward,
        )
        return cls(
            robot=decode(robot_to_dict(model.robot), RobotDocument),
            model=_Model(
                gravity=tuple(map(float, model.gravity)),  # type: ignore[arg-type]
                rotors=model.rotors,
                load_basis=model.load_basis,  # type: ignore[arg-type]
                terms=_term_entries(model.terms),
                rotor_side=model.rotor_side,
            ),
            filters=_Filters(**asdict(calibration.filters)),
            output=_Output(
                signal=calibration.output,
                gains=tuple(calibration.gains.tolist()),
                gain_source=calibration.gain_source,
                unit=calibration.unit,
                scale_known=calibration.scale_known,
            ),
            parameters=_Parameter.all_of(calibration),
            estimate=_Estimate.of(calibration.estimate),
            structure=calibration.structure,
            structure_text=calibration.structure_text,
            choices=calibration.choices,
            load=calibration.load,
            training=decode(calibration.training.to_dict(), _Training),
            fastest=tuple(calibration.fastest.tolist()),
            provenance=_Provenance(origin.mounting, origin.logs, origin.payload, origin.notes),
            run=_Run(origin.version, origin.date, origin.seconds),
            plausibility=tuple(decode(setup_entry(finding), SetupEntry) for finding in calibration.plausibility),
            validation=_Validations(tuple(each.to_dict() for each in calibration.validation)),
            physical=None if physical is None else _Physical.of(physical),
            feed_forward=None if friction is None else _FeedForward.of(friction),
            essential=calibration.essential,
            spread=calibration.spread,
        )

    def _check_counts(self) -> None:
        """Reject lists that have another number of entries than the robot has joints."""
        joints = self.robot.robot.dof
        counts = {"estimate.sigma": self.estimate.sigma, "training.nmse": self.training.nmse, "fastest": self.fastest}
        for name, numbers in counts.items():
            if len(numbers) != joints:
                raise ModelError(f"{name} must be {joints} numbers. Got {len(numbers)} instead.")
        if self.physical is not None and len(self.physical.links) != joints:
            raise ModelError(f"physical.links must be {joints} links.")
        friction = self.feed_forward
        if friction is not None and not len(friction.terms) == len(friction.sigma) == joints:
            raise ModelError(f"feed_forward.terms and .sigma must have {joints} entries.")

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration itself."""
        terms = _terms(self.model.terms)
        setup = setup_of(entry.finding for entry in self.plausibility)
        return Calibration(
            model=Dynamics(
                self.robot.robot,
                self.model.gravity,
                self.model.rotors,
                terms,
                self.model.load_basis,
                self.model.rotor_side,
            ),
            estimate=self.estimate.estimate(self.parameters),
            filters=Filters(**vars(self.filters)),
            output=self.output.signal,
            gains=np.array(self.output.gains),
            gain_source=self.output.gain_source,
            scale_known=self.output.scale_known,
            structure=self.structure,
            structure_text=self.structure_text,
            choices=self.choices,
            load=self.load,
            training=TrainingErrors(self.training.nmse, self.training.positions_alone),
            fastest=np.array(self.fastest),
            provenance=Provenance(**vars(self.run), **vars(self.provenance)),
            plausibility=tuple(entry.finding for entry in self.plausibility),
            validation=tuple(replace(log, setup=setup) for log in self.validation.validations),
            physical=None if self.physical is None else self.physical.parameters(),
            feed_forward=None if self.feed_forward is None else self.feed_forward.friction,
            essential=self.essential,
            spread=self.spread,
        )


def _selected(document: Any, type_: type[T]) -> T:
    """Return the entries of a document that a dataclass has, as that dataclass; others follow from them."""
    known = {entry.name for entry in fields(type_)}  # type: ignore[arg-type]
    chosen = {key: value for key, value in document.items() if key in known} if isinstance(document, dict) else document
    return decode(chosen, type_)


def _with_run(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of schema 1 as one of schema 2: what matters only once has its own entry."""
    origin = document.get("provenance")
    if not isinstance(origin, Mapping):
        return dict(document)
    passing = {"version", "date", "seconds"}
    kept = {key: value for key, value in origin.items() if key not in passing}
    return {**document, "provenance": kept, "run": {key: origin[key] for key in passing & origin.keys()}}


SCHEMA = 2
KIND = Kind(
    format="jointwise calibration",
    schema=SCHEMA,
    name="a Jointwise calibration",
    noun="model",
    remedy="Calibrate again.",
    migrations={1: _with_run},
    passing=("run",),
)


@checked
def save_model(model: CalibratedModel, path: str | Path) -> None:
    """Write a calibrated model (`Calibration` or `RobotModel`) to a JSON file."""
    write_document(to_document(calibration_of(model)), path)


@checked
def load_calibration(path: str | Path) -> Calibration:
    """Return the calibration of a JSON file; the original logs and descriptions are not needed.

    Raises:
        ModelError: The file is not a model, or an entry is missing, unknown or wrong; names the file and the entry.

    """
    return load_document(path, KIND, ModelFile).calibration


def to_document(calibration: Calibration) -> dict[str, Any]:
    """Return the calibration as a document of numbers and texts, without what it does not have."""
    content = plain_json(ModelFile.of(calibration)) | {"robot": robot_to_dict(calibration.model.robot)}
    return KIND.stamped({key: value for key, value in content.items() if value is not None})


def hash_of(calibration: Calibration) -> str:
    """Return a hash of what a calibration says: two runs on the same logs with the same options have the same."""
    return content_hash(to_document(calibration), KIND)


def physical_entry(physical: PhysicalParameters) -> dict[str, Any]:
    """Return the physically consistent parameters as a document."""
    entry: dict[str, Any] = plain_json(_Physical.of(physical))
    return entry
