"""Calibration: from logs and a robot to a calibrated model, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from jointwise.data.conditioning import Filters, clean_log
from jointwise.data.coordinates import model_log
from jointwise.data.gravity import mounting_of_logs
from jointwise.data.log import Log, log_list
from jointwise.data.overlap import refuse_repeated_samples, sketch
from jointwise.data.quality import DataQuality
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot
from jointwise.errors import DataError, EstimationError, ImplausibleError, ModelError
from jointwise.estimation.body_prior import body_prior
from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.drive_gains import DriveGains, drive_gains, gains_again, known_gains
from jointwise.estimation.essential import Essential, essential_parameters
from jointwise.estimation.explained import Explained, check_explained
from jointwise.estimation.feed_forward import (
    FeedForwardFit,
    fit_feed_forward,
    positions_structure,
    testable_menu,
)
from jointwise.estimation.fit import Fit, fit_structure, known_sums, known_values
from jointwise.estimation.identifiability import check_excitation
from jointwise.estimation.instruments import instrumental_variables, refuse_unrelated_reference
from jointwise.estimation.least_squares import Mask
from jointwise.estimation.neglected_effects import neglected_effects
from jointwise.estimation.physical import PhysicalParameters, physical_parameters
from jointwise.estimation.regression import Regression
from jointwise.estimation.select_filters import FIRST_CUTOFF, alternative_filters, select_filters
from jointwise.estimation.select_structure import compare_joint_terms, select_scales, select_structure
from jointwise.estimation.structure import JointTerms, Structure
from jointwise.estimation.training_data import held_still, inspected, warnings_of
from jointwise.estimation.uncertainty import Alternatives, Uncertainty, uncertainty_of, with_selection
from jointwise.model.dynamics import Dynamics
from jointwise.model.terms import SpeedRipple, Term, Viscous
from jointwise.monitoring.learn import residual_spread
from jointwise.options import Options
from jointwise.result.calibration import (
    Calibration,
    Estimate,
    Provenance,
    Source,
    Status,
    TrainingErrors,
    payload_numbers,
)
from jointwise.result.feed_forward import FeedForward
from jointwise.result.metrics import AT_NOISE
from jointwise.result.plausibility import Check, refusal, worst_status
from jointwise.result.plausibility.setup import check_setup
from jointwise.result.validation import errors_from_positions
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

ROW_RATE = 120.0
"""Rows a second that a fit needs: of faster logs every n-th sample makes a row."""

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
) -> Calibration:
    """Return the calibrated model of a robot from one or more logs.

    Filters and joint model are selected by cross-validation inside the logs unless the options fix them.

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

    Returns:
        The calibrated model with confidence intervals, choices and provenance.

    Raises:
        DataError: A log is unsuitable: wrong units, damaged channels, no measured output.
        EstimationError: The data do not determine a model.
        ImplausibleError: The logs contradict the declared set-up (signs, order, zeros, mounting, robot, payload).
        ModelError: The options contradict the robot.

    """
    recordings = log_list(logs)
    if payload is not None and not isinstance(payload, Payload):
        recordings, payload = _loaded_logs(recordings, payload), None
    with threadpool_limits(limits=1, user_api="blas"):  # hundreds of small factors: threads cost more than they save
        stages = _Stages(
            recordings,
            robot,
            mounting_of_logs(recordings, mounting),
            payload,
            options or Options(),
            physical,
            progress or (lambda stage: None),
            accept_implausible,
        )
        return stages.run()


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
        _refuse_missing_channels(regression, self.options)
        if self.options.method == "iv":
            _refuse_without_instruments(self.logs, self.options)
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
            model=_bounded_model(fit, regression),
            estimate=_estimate(fit, uncertainty, self.options.method, terms_by_joint, essential),
            filters=regression.filters,
            output=output,
            gains=drives.values,
            gain_source=drives.source,
            scale_known=drives.scale_known,
            structure=fit.structure,
            structure_text=_description(fit, terms_by_joint),
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
        uncertainty = uncertainty_of(fit.problem, fit.solution)
        if self.options.method != "iv":
            return fit, uncertainty
        self.progress("instrumental variables")
        values = fit.solution.values
        load_of = (lambda rigid: fit.model.load_torque(rigid, values)) if fit.model.needs_load else None
        factors = regression.instrument_factors(fit.model.terms, load_of)
        scaled = [joint.scaled(float(gain)) for joint, gain in zip(factors, drives.values, strict=True)]
        values, uncertainty = instrumental_variables(scaled, fit.problem.layout, fit.solution, uncertainty.undetermined)
        return replace(fit, solution=replace(fit.solution, values=values)), uncertainty

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
        sources = tuple(_source(inspection, output) for inspection in inspections)
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
            calibration = replace(calibration, feed_forward=_feed_forward(found, regression, joints))
        bare = errors_from_positions(calibration, self.logs)
        return replace(calibration, training=replace(calibration.training, from_positions=bare))


def _loaded_logs(logs: Sequence[Log], payloads: Sequence[Payload | None]) -> list[Log]:
    """Return logs with their payloads, none where it is None."""
    if len(logs) != len(payloads):
        raise ModelError(f"payload must be one for each of {len(logs)} logs. Got {len(payloads)} instead.")
    return [log.with_payload(payload or Payload(0.0)) for log, payload in zip(logs, payloads, strict=True)]


def common_output(logs: Sequence[Log]) -> Literal["current", "torque"]:
    """Return the output that every log has measured: torque if there, else current."""
    for name in ("torque", "current"):
        if all(getattr(log, name) is not None for log in logs):
            return name
    missing = next(log for log in logs if log.torque is None and log.current is None)
    raise DataError(
        f"{missing.origin.path}: neither current (i1..) nor torque (tau1..) found: nothing to calibrate with."
    )


def make_regression(logs: Sequence[Log], robot: Robot, mounting: Mounting, output: str, options: Options) -> Regression:
    """Return the regression of some logs: cleaned logs, bodies, and filters before any choice."""
    clean = tuple(clean_log(model_log(log, robot)) for log in logs)
    for part in clean:
        if not (part.fastest > 1e-3).any():
            raise EstimationError(f"{part.log.origin.path}: no joint moves: nothing can be identified.")
    gravity = gravity_vector(mounting)
    bodies = Dynamics(
        robot,
        (float(gravity[0]), float(gravity[1]), float(gravity[2])),
        options.rotors,
        ((),) * robot.dof,
        options.load_basis,
    )
    return Regression(clean, output, bodies, first_filters(logs, options), extra=options.structure.extra)


def first_filters(logs: Sequence[Log], options: Options) -> Filters:
    """Return the filters before any choice: the clock from the logs, the rest from the options or neutral."""
    native = float(np.median([log.clock.uniform_rate for log in logs]))
    uneven = any(log.clock.uneven for log in logs)
    rate = options.rate or (2.0 * native if uneven and native < 4.0 * ROW_RATE else native)
    step = options.decimation or max(round(rate / ROW_RATE), 1)
    return Filters(
        rate, options.position_cutoff or FIRST_CUTOFF, options.parallel_cutoff or None, step, options.lag or 0.0
    )


def _refuse_missing_channels(regression: Regression, options: Options) -> None:
    """Reject logs without a channel that the joint model of the options needs."""
    if options.structure.needs_speed and not regression.has_speed:
        raise EstimationError("the joint model needs a measured speed (ripple, track), but a log has no column qd1.")
    if options.structure.needs_rotor and not regression.has_rotor:
        raise EstimationError("the joint model needs rotor positions, but a log has no column theta1.")
    terms = [term for single in options.joints.values() for term in single.terms]
    if any(term.uses_temperature() for term in terms):
        for clean in regression.logs:
            _refuse_missing_temperature(clean.log)


def _refuse_without_instruments(logs: Sequence[Log], options: Options) -> None:
    """Reject what instrumental variables cannot use."""
    for log in logs:
        if log.q_des is None:
            raise DataError(f"{log.origin.path}: no reference positions (q_des1..), which --method iv needs.")
        refuse_unrelated_reference(log)
        if log.payload is not None:
            raise ModelError("payloads of single logs do not go with --method iv.")
    if options.parallel_cutoff or options.essential is not None or options.joints or options.structure.rotor_side:
        raise ModelError(
            "--method iv does not go with --parallel-cutoff, --essential, --joint or --two-encoders: leave them out."
        )


def _refuse_missing_temperature(log: Log) -> None:
    if log.temperature is None:
        raise EstimationError(f"{log.origin.path}: the joint model needs a temperature (temp1..).")


def _source(inspection: DataQuality, output: str) -> Source:
    log, findings = inspection.log, tuple(finding.line() for finding in inspection.findings)
    name = Path(log.origin.path).name
    known, T = sketch(log, output), log.temperature
    warm = None if T is None or not np.isfinite(T).any(axis=0).all() else tuple(np.nanmean(T, axis=0).tolist())
    return Source(name, log.origin.sha256, log.samples, log.duration, inspection.verdict, findings, known, warm)


def _description(fit: Fit, terms_by_joint: Mapping[int, JointTerms]) -> str:
    """Return the joint model in words, and which joints have terms from single-joint experiments."""
    joints = ", ".join(str(joint + 1) for joint in sorted(terms_by_joint))
    return fit.structure.describe() + (f"; joint {joints} as identified by itself" if joints else "")


def _bounded_model(fit: Fit, regression: Regression) -> Dynamics:
    """Return the model with the range of the training data in its terms: greatest speed and speed ripple."""
    fastest = regression.fastest
    ripple = regression.greatest_ripple() if fit.structure.ripple else np.zeros(len(fastest))

    def bounded(term: Term, joint: int) -> Term:
        if isinstance(term, Viscous):
            return replace(term, known=float(fastest[joint]))
        return replace(term, known=float(ripple[joint])) if isinstance(term, SpeedRipple) else term

    terms = (tuple(bounded(term, j) for term in joint) for j, joint in enumerate(fit.model.terms))
    return replace(fit.model, terms=tuple(terms))


def _feed_forward(
    found: FeedForwardFit, regression: Regression, terms_by_joint: Mapping[int, JointTerms]
) -> FeedForward:
    fit, base = found.fit, found.fit.model.base.count
    uncertainty = uncertainty_of(fit.problem, fit.solution)
    known = ~np.isnan(known_values(fit.model, terms_by_joint)[0])
    return FeedForward(
        terms=_bounded_model(fit, regression).terms,
        values=fit.solution.values[base:],
        deviation=uncertainty.deviation[base:],
        status=_statuses(fit.solution.values, uncertainty, known, np.zeros_like(known))[base:],
        sigma=fit.solution.sigma,
        structure=fit.structure,
        structure_text=_description(fit, terms_by_joint),
        choices=found.choices,
    )


def _estimate(
    fit: Fit,
    uncertainty: Uncertainty,
    method: str,
    terms_by_joint: Mapping[int, JointTerms],
    essential: Essential | None,
) -> Estimate:
    solution = fit.solution
    values, deviation = known_values(fit.model, terms_by_joint)
    known = ~np.isnan(values)
    covariance = uncertainty.covariance.copy()
    covariance[known, known] = deviation[known] ** 2
    for total in known_sums(fit.model, terms_by_joint):
        shares = solution.values[total.index] / total.value if total.value else np.zeros(len(total.index))
        covariance[np.ix_(total.index, total.index)] += total.deviation**2 * np.outer(shares, shares)
    dropped = np.zeros(fit.model.count, dtype=bool)
    if essential is not None:
        dropped[[fit.model.base.names.index(item.name) for item in essential.dropped]] = True
        covariance[dropped] = covariance[:, dropped] = 0.0
    return Estimate(
        values=solution.values,
        covariance=covariance,
        factor=uncertainty.factor,
        status=_statuses(solution.values, uncertainty, known, dropped),
        sigma=solution.sigma,
        condition=solution.condition,
        condition_scaled=solution.condition_scaled,
        method=method,
        shares=uncertainty.shares(fit.model.base.count),
    )


def _statuses(values: Array, uncertainty: Uncertainty, known: Mask, dropped: Mask) -> tuple[Status, ...]:
    """Return how well every parameter is known; see `Status`."""
    status = np.where(np.abs(values) > uncertainty.factor * uncertainty.deviation, "determined", "weak").astype(object)
    status[uncertainty.at_bound] = "at bound"
    status[uncertainty.undetermined] = "undetermined"
    status[known] = "given"
    status[dropped] = "dropped"
    return tuple(status.tolist())


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
