"""Calibration: from logs and a robot to a calibrated model, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from jointwise.data.gravity import mounting_of_logs
from jointwise.data.log import Log, log_list
from jointwise.data.overlap import refuse_repeated_samples
from jointwise.data.quality import DataQuality
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.errors import EstimationError, ImplausibleError
from jointwise.estimation.body_prior import body_prior
from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.drive_gains import DriveGains, drive_gains, gains_again, known_gains
from jointwise.estimation.essential import Essential, essential_parameters
from jointwise.estimation.explained import Explained, check_explained
from jointwise.estimation.feed_forward import (
    fit_feed_forward,
    positions_structure,
    testable_menu,
)
from jointwise.estimation.fit import Fit, fit_structure, known_values
from jointwise.estimation.identifiability import check_excitation
from jointwise.estimation.instruments import instrumental_fit
from jointwise.estimation.neglected_effects import neglected_effects
from jointwise.estimation.physical import PhysicalParameters, physical_parameters
from jointwise.estimation.regression import Regression
from jointwise.estimation.select_filters import alternative_filters, select_filters
from jointwise.estimation.select_structure import compare_joint_terms, select_scales, select_structure
from jointwise.estimation.structure import JointTerms, Structure
from jointwise.estimation.training_data import held_still, inspected, warnings_of
from jointwise.estimation.uncertainty import Alternatives, Uncertainty, uncertainty_of, with_selection
from jointwise.monitoring.learn import residual_spread
from jointwise.options import Options
from jointwise.preparation import (
    common_output,
    loaded_logs,
    make_regression,
    refuse_missing_channels,
    refuse_without_instruments,
)
from jointwise.result.assembly import bounded_model, estimate_of, feed_forward_of, source_of, structure_text
from jointwise.result.calibration import (
    Calibration,
    Provenance,
    TrainingErrors,
    payload_numbers,
)
from jointwise.result.metrics import AT_NOISE
from jointwise.result.plausibility import Check, refusal, worst_status
from jointwise.result.plausibility.setup import check_setup
from jointwise.result.validation import errors_from_positions, validate
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.joint.model import JointModel

LEAST_VALIDATION = 60.0
"""Duration (s) of validation logs from which the tail of the residuals can be estimated."""

Progress = Callable[[str], None]


def calibrate(
    logs: Log | Sequence[Log],
    robot: Robot,
    *,
    mounting: Mounting | None = None,
    payload: Payload | Sequence[Payload | None] | None = None,
    options: Options | None = None,
    physical: bool = True,
    progress: Progress | None = None,
    accept_implausible: bool = False,
    validation: Log | Sequence[Log] = (),
    joints: Sequence[JointModel] = (),
    joint_values: Literal["start", "known"] = "start",
) -> Calibration:
    """Return the calibrated model of a robot from one or more logs, with its errors on logs for validation.

    Filters and joint model are selected by cross-validation inside the logs unless the options fix them. It does what
    ``jointwise calibrate`` does: `holdout` divides a log for training and validation (``--holdout``).

    Args:
        logs: Training logs with a measured current or torque.
        robot: The robot; a description without inertia (a DH table) is enough.
        mounting: How the base is mounted (table, wall, ceiling, or gravity in m/s²); that of the logs if None, else
            the table.
        payload: What the tool carries in the logs; it becomes part of the parameters. Drive gains that are not
            described take their scale from the described bodies with it. A sequence has the payload of every log, None
            for none: these are known and removed, as those of `Log.with_payload`, and the parameters are those of the
            arm without payload.
        options: What to fix instead of selecting it.
        physical: Estimate physically consistent bodies too (`Calibration.physical`).
        progress: Called with the name of every stage.
        accept_implausible: Return a model, marked as implausible, even if the logs contradict the declared set-up.
        validation: Logs that are not used for training, without contacts: `Calibration.validation` has the errors on
            them, and monitoring takes its thresholds from them if they are long enough.
        joints: Joints that were identified alone (`read_joints`); their friction and drive gains are used.
        joint_values: Whether the values of their friction are estimated again or held.

    Returns:
        The calibrated model with confidence intervals, choices, provenance and validations.

    Raises:
        DataError: A log is unsuitable: wrong units, damaged channels, no measured output.
        EstimationError: The data do not determine a model.
        ImplausibleError: The logs contradict the declared set-up (signs, order, zeros, mounting, robot, payload).
        ModelError: The options contradict the robot.

    """
    recordings, options = log_list(logs), options or Options()
    if joints:
        rotor = all(log.theta is not None for log in recordings)
        options = options.with_joints(
            joints, robot, rotor=rotor, known=joint_values == "known", accept_implausible=accept_implausible
        )
    if payload is not None and not isinstance(payload, Payload):
        recordings, payload = loaded_logs(recordings, payload), None
    progress = progress or (lambda stage: None)
    with threadpool_limits(limits=1, user_api="blas"):  # hundreds of small factors: threads cost more than they save
        mounting = mounting_of_logs(recordings, mounting)
        stages = _Stages(recordings, robot, mounting, payload, options, physical, progress, accept_implausible)
        calibration = stages.run()
        progress("validating")
        return _validated(calibration, log_list(validation) if validation else [])


def _validated(calibration: Calibration, logs: Sequence[Log]) -> Calibration:
    """Return the calibration with its errors on validation logs, and the spread of its residuals on them."""
    validations = tuple(validate(calibration, log) for log in logs)
    return replace(validated_spread(calibration, logs), validation=validations)


def validated_spread(calibration: Calibration, logs: Sequence[Log]) -> Calibration:
    """Return the calibration with the spread of its residuals on validation logs, if they are long enough.

    Monitoring computes its thresholds from it; the training logs are what remains for short validation logs.

    Args:
        calibration: The calibration, with the spread on its training logs.
        logs: Logs that were not used for training, without contacts.

    """
    loaded = any(log.payload is not None for log in logs)
    if calibration.spread is None or loaded or sum(log.duration for log in logs) < LEAST_VALIDATION:
        return calibration
    spread = residual_spread(RobotModel(calibration), logs, "validation")
    return calibration if spread is None else replace(calibration, spread=spread)


@dataclass(frozen=True)
class _Stages:
    """The stages of a calibration: data quality, gains, filters, structure, fit, uncertainty, result."""

    logs: Sequence[Log]
    robot: Robot
    mounting: Mounting
    payload: Payload | None
    options: Options
    physical: bool
    progress: Progress
    accept_implausible: bool = False

    def run(self) -> Calibration:
        """Return the calibration."""
        started = time.perf_counter()
        self.progress("examining the log")
        inspections = [inspected(log, self.robot) for log in self.logs]
        output = self.options.output or common_output(self.logs)
        refuse_repeated_samples(self.logs)
        notes = [*warnings_of(inspections), *self._excitation(inspections, output)]
        regression = make_regression(self.logs, self.robot, self.mounting, output, self.options)
        refuse_missing_channels(regression, self.options)
        if self.options.method == "iv":
            refuse_without_instruments(self.logs, self.options)
            regression = regression.from_positions()  # the reference has no measured speeds or rotors
        regression = self._without_payloads(regression, output)
        drives, regression, choices = self._filters(regression, output)
        if self.options.structure.rotor_side:  # filters and gains are chosen by the link side
            regression = replace(regression, bodies=replace(regression.bodies, rotors=False, rotor_side=True))
        plausibility = self._plausibility(regression, drives)
        structure, drives, selected, alternatives = self._structure(regression, drives)
        terms_by_joint, compared = self._joint_terms(regression, structure, drives)
        self.progress("fitting")
        full = fit_structure(regression, structure, drives.values, self._fit_method, terms_by_joint)
        fit, essential = self._essential(full, terms_by_joint)
        fit, found = self._estimated(fit, regression, drives)
        alternatives += [*drives.alternatives(fit), *neglected_effects(regression, fit, drives.values, terms_by_joint)]
        uncertainty = with_selection(found, alternatives)
        explained = _explained(fit, inspections, output, drives.values, worst_status(plausibility) == "contradicted")
        calibration = Calibration(
            model=bounded_model(fit, regression),
            estimate=estimate_of(fit, uncertainty, self.options.method, terms_by_joint, essential),
            filters=regression.filters,
            output=output,
            gains=drives.values,
            gain_source=drives.source,
            scale_known=drives.scale_known,
            structure=fit.structure,
            structure_text=structure_text(fit, terms_by_joint),
            choices=(*choices, *selected, *compared),
            load=fit.load,
            training=TrainingErrors(explained.nmse),
            fastest=regression.fastest,
            physical=self._physical(full) if drives.scale_known else None,
            essential=essential,
            provenance=self._provenance(inspections, output, [*notes, *explained.notes], started),
            plausibility=plausibility,
        )
        return self._with_spread(self._with_feed_forward(calibration, regression, terms_by_joint))

    def _with_spread(self, calibration: Calibration) -> Calibration:
        """Return the calibration with the spread of its residuals, from which monitoring computes its thresholds."""
        if self.robot.transmission is not None or calibration.implausible:
            return calibration
        logs = [log for log in self.logs if log.payload is None]
        return replace(calibration, spread=residual_spread(RobotModel(calibration), logs, "training"))

    def _without_payloads(self, regression: Regression, output: str) -> Regression:
        """Return the regression without the known payloads of single logs."""
        if all(log.payload is None for log in self.logs):
            return regression
        gains = known_gains(self.robot, output, self.options.gains)
        if gains is None:
            raise EstimationError("payloads of single logs need known drive gains in Nm/A: state them with --gains.")
        change = replace(regression.bodies, terms=((),) * self.robot.dof).payload_values
        carried = tuple(None if log.payload is None else change(log.payload, self.payload) for log in self.logs)
        return replace(regression, carried=carried, gains=gains)

    def _filters(self, regression: Regression, output: str) -> tuple[DriveGains, Regression, list[Choice]]:
        """Return the drive gains, and the regression with its filters selected."""
        options = self.options
        self.progress("drive gains")
        drives = drive_gains(regression, self.robot, output, options.gains, options.gain_source, self.payload)
        self.progress("choosing filters")
        regression, choices = select_filters(regression, drives.values, options.lag, options.position_cutoff)
        if drives.estimated:
            drives = drive_gains(regression, self.robot, output, None, "", self.payload)
        return drives, regression, choices

    def _plausibility(self, regression: Regression, drives: DriveGains) -> tuple[Check, ...]:
        """Return whether the logs and the declared set-up belong together; reject a contradiction."""
        self.progress("checking the set-up")
        checks = check_setup(regression, drives, self.payload, lag_known=self.options.lag is not None)
        if worst_status(checks) == "contradicted" and not self.accept_implausible:
            raise ImplausibleError(f"{refusal(checks)} To calibrate all the same: --accept-implausible.")
        return checks

    def _structure(
        self, regression: Regression, drives: DriveGains
    ) -> tuple[Structure, DriveGains, list[Choice], list[Alternatives]]:
        """Return the selected structure and the drive gains under it."""
        options, structure = self.options, self.options.structure
        free = [name for name in options.free if name != "ripple" or not options.parallel_cutoff]  # it removes ripple
        choices, alternatives = list[Choice](), list[Alternatives]()
        if free:
            self.progress("choosing the joint model")
            structure, choices, alternatives = self._selected(regression, drives, free)
        selected = options.lag is None, options.position_cutoff is None
        if any(selected):
            alternatives += alternative_filters(regression, drives.values, structure, *selected)
        if drives.estimated:
            drives = gains_again(regression, self.robot, structure, drives, self.payload)
        if options.scaled and structure.direction == "hysteresis":
            structure, choice = select_scales(regression, drives.values, structure)
            choices.append(choice)
        return structure, drives, choices, alternatives

    def _selected(
        self, regression: Regression, drives: DriveGains, free: Sequence[str]
    ) -> tuple[Structure, list[Choice], list[Alternatives]]:
        """Return the structure by cross-validation; from positions only, it is that of a feed-forward model."""
        structure = self.options.structure
        if regression.has_speed or regression.has_rotor:
            return select_structure(regression, drives.values, structure, free)
        structure = positions_structure(regression, structure, "direction" in free)
        return select_structure(regression, drives.values, structure, free, *testable_menu(regression))

    def _joint_terms(
        self, regression: Regression, structure: Structure, drives: DriveGains
    ) -> tuple[dict[int, JointTerms], list[Choice]]:
        """Return the terms from experiments on single joints, without those that the automatic ones beat."""
        terms = {j: single.completed(structure) for j, single in self.options.joints.items()}
        if terms:
            self.progress("comparing the known joints")
        compared = compare_joint_terms(regression, structure, drives.values, self._fit_method, terms)
        return {c.joint: terms[c.joint] for c in compared if c.kept}, [c.choice() for c in compared]

    @property
    def _fit_method(self) -> str:
        """The method of the fit: instrumental variables start from weighted least squares."""
        return "wls" if self.options.method == "iv" else self.options.method

    def _estimated(self, fit: Fit, regression: Regression, drives: DriveGains) -> tuple[Fit, Uncertainty]:
        """Return the fit with its uncertainty, by instrumental variables if they are requested."""
        if self.options.method != "iv":
            return fit, uncertainty_of(fit.problem, fit.solution)
        self.progress("instrumental variables")
        return instrumental_fit(regression, fit, drives.values)

    def _essential(self, fit: Fit, terms_by_joint: Mapping[int, JointTerms]) -> tuple[Fit, Essential | None]:
        """Return the fit with only the essential base parameters if they are requested."""
        if self.options.essential is None:
            return fit, None
        self.progress("essential parameters")
        problem, solution, essential = essential_parameters(
            fit.problem, fit.solution, fit.model.base.names, self.options.essential
        )
        known = known_values(fit.model, terms_by_joint)[0]
        solution = replace(solution, values=np.where(np.isnan(known), solution.values, known))
        return replace(fit, problem=problem, solution=solution), essential

    def _physical(self, fit: Fit) -> PhysicalParameters | None:
        """Return the physically consistent bodies unless they are left out."""
        if not self.physical or self.options.method == "iv":  # the factors of the programme are those of least squares
            return None
        self.progress("physically consistent bodies")
        projection = fit.model.base.projection
        prior = body_prior(self.robot, self.payload, fit.model.rotors, projection, fit.problem, fit.solution)
        found = physical_parameters(fit.problem, fit.solution, projection, prior, self.options.body_prior)
        if not fit.model.rotor_side:
            return found
        places = [k for k, info in enumerate(fit.model.parameters) if info.joint is not None and info.name[:3] == "Ia_"]
        return replace(found, rotor_inertias=found.values[places], rotor_share=np.ones(len(places)))

    def _excitation(self, inspections: Sequence[DataQuality], output: str) -> list[str]:
        """Reject logs whose motion cannot carry the parameters; return warnings."""
        logs = [held_still(inspection) for inspection in inspections]
        moves = np.any([inspection.numbers.moved for inspection in inspections], axis=0)
        regression = make_regression(logs, self.robot, self.mounting, output, Options(rotors=self.options.rotors))
        return check_excitation(regression, bool(moves.all()))

    def _provenance(
        self, inspections: Sequence[DataQuality], output: str, notes: Sequence[str], started: float
    ) -> Provenance:
        from jointwise import __version__

        mounting, payload = self.mounting, self.payload
        named = mounting if isinstance(mounting, str) else " ".join(f"{float(g):g}" for g in mounting)
        sources = tuple(source_of(inspection, output) for inspection in inspections)
        date = datetime.now(UTC).isoformat(timespec="seconds")
        seconds = time.perf_counter() - started
        return Provenance(__version__, date, named, sources, seconds, payload_numbers(payload), tuple(notes))

    def _with_feed_forward(
        self, calibration: Calibration, regression: Regression, terms_by_joint: Mapping[int, JointTerms]
    ) -> Calibration:
        """Return the calibration with friction for predictions from positions only, where it uses other channels.

        Terms of single joints that need rotor positions have no such friction: the joint position replaces the rotor's.
        """
        if not calibration.extras:
            return calibration
        self.progress("feed-forward model")
        joints = {j: self.options.joints[j] for j in terms_by_joint}
        if not any(term.uses_rotor() for single in joints.values() for term in single.terms):
            bodies = calibration.estimate.values[: calibration.model.base.count]
            found = fit_feed_forward(
                regression,
                replace(self.options.structure, scales=calibration.structure.scales)
                if self.options.free
                else calibration.structure,
                calibration.gains,
                bodies,
                self.options.free,
                self.options.method,
                joints,
            )
            calibration = replace(calibration, feed_forward=feed_forward_of(found, regression, joints))
        bare = errors_from_positions(calibration, self.logs)
        return replace(calibration, training=replace(calibration.training, from_positions=bare))


def _explained(
    fit: Fit, inspections: Sequence[DataQuality], output: str, gains: Array, contradicted: bool
) -> Explained:
    """Return MSE / variance on the training rows with warnings; reject a fit that explains next to nothing.

    Single joints are not judged where the user accepts a set-up that the logs have `contradicted`.
    """
    joints = zip(fit.solution.sigma, fit.problem.factors, strict=True)
    nmse = tuple(None if joint.empty else float(sigma**2 / joint.variance) for sigma, joint in joints)
    noise = np.median([inspection.numbers.channels[output].noise for inspection in inspections], axis=0)
    moved = np.any([inspection.numbers.moved for inspection in inspections], axis=0)
    judged = moved & ~(fit.solution.sigma / gains <= AT_NOISE * noise) & (not contradicted)
    names = [f"joint {j} ({joint.name})" for j, joint in enumerate(fit.model.robot.joints, start=1)]
    return check_explained(nmse, names, judged.tolist())
