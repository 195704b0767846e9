"""Calibration: from logs and a robot to a calibrated model, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from jointwise.arguments import checked
from jointwise.data.coordinates import mounting_of_logs
from jointwise.data.log import Log, log_list
from jointwise.description.files import as_robot
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.errors import ImplausibleError
from jointwise.estimation.body_prior import body_prior
from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.drive_gains import DriveGains, drive_gains, gains_again
from jointwise.estimation.essential import Essential, essential_fit
from jointwise.estimation.feed_forward import (
    fit_feed_forward,
    positions_structure,
    rest_regression,
    testable_candidates,
)
from jointwise.estimation.fit import Fit, fit_structure, known_values
from jointwise.estimation.instruments import instrumental_fit
from jointwise.estimation.physical import PhysicalParameters, physical_parameters
from jointwise.estimation.regression import Regression
from jointwise.estimation.select_filters import alternative_filters, refine_lag, select_filters
from jointwise.estimation.select_structure import Selection, compare_joint_terms, select_scales, select_structure
from jointwise.estimation.structure import JointTerms, Structure
from jointwise.estimation.uncertainty import (
    Alternatives,
    Uncertainty,
    neglected_effects,
    uncertainty_of,
    with_selection,
)
from jointwise.finding import Finding, worst
from jointwise.monitoring.learn import residual_spread
from jointwise.options import Options
from jointwise.preparation import Setup, TrainingData, loaded_logs, prepare
from jointwise.result.assembly import bounded_model, estimate_of, explained_output, feed_forward_of, structure_text
from jointwise.result.calibration import Calibration
from jointwise.result.metrics import TrainingErrors
from jointwise.result.plausibility import refusal
from jointwise.result.plausibility.setup import check_setup
from jointwise.result.provenance import provenance_of
from jointwise.result.validation import validate, with_feed_forward_errors
from jointwise.runtime import RobotModel

if TYPE_CHECKING:
    from jointwise.joint.model import JointModel

LEAST_VALIDATION = 60.0
"""Duration (s) of validation logs from which the tail of the residuals can be estimated."""

Progress = Callable[[str], None]


@checked
def calibrate(
    logs: Log | Sequence[Log],
    robot: Robot | str | Path,
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
        robot: The robot, its name or the path of its description; one without inertia (a DH table) is enough.
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
    robot = as_robot(robot)
    if joints:
        rotor = all(log.theta is not None for log in recordings)
        options = options.with_joints(
            joints, robot, rotor=rotor, known=joint_values == "known", accept_implausible=accept_implausible
        )
    if payload is not None and not isinstance(payload, Payload):
        recordings, payload = loaded_logs(recordings, payload), None
    progress = progress or (lambda stage: None)
    with threadpool_limits(limits=1, user_api="blas"):  # hundreds of small factors: threads cost more than they save
        setup = Setup(recordings, robot, mounting_of_logs(recordings, mounting), payload, options)
        calibration = _calibrated(setup, physical, accept_implausible, progress)
        progress("validating")
        return _validated(calibration, log_list(validation) if validation else [])


def _calibrated(setup: Setup, physical: bool, accept_implausible: bool, progress: Progress) -> Calibration:
    """Return the calibration of a set-up, stage by stage."""
    started = time.perf_counter()
    progress("examining the log")
    data = prepare(setup)
    drives, links, choices = _select_filters(data, setup, progress)
    regression, choices = _at_rotors(links, drives, choices, setup)
    progress("checking the set-up")
    plausibility = _check_setup(regression, drives, setup, accept_implausible)
    joint_model = _select_joint_model(regression, drives, setup, progress)
    progress("fitting")
    found = _fit(regression, joint_model, setup, progress)
    drives, terms, fit = joint_model.drives, joint_model.joint_terms, found.fit
    contradicted = worst(plausibility) == "error"
    explained = explained_output(fit, data.inspections, data.output, drives.values, contradicted)
    bodies = _physical(found, setup, progress) if physical and drives.scale_known else None
    notes, seconds = [*data.notes, *explained.notes], time.perf_counter() - started
    calibration = Calibration(
        model=bounded_model(fit, regression),
        estimate=estimate_of(fit, found.uncertainty, setup.options.method, terms, found.essential),
        filters=regression.filters,
        output=data.output,
        gains=drives.values,
        gain_source=drives.source,
        scale_known=drives.scale_known,
        structure=fit.structure,
        structure_text=structure_text(fit, terms),
        choices=(*choices, *joint_model.choices),
        load=fit.load,
        training=TrainingErrors(explained.nmse),
        fastest=regression.fastest,
        physical=bodies,
        essential=found.essential,
        provenance=provenance_of(
            data.inspections, data.output, setup.mounting, setup.payload, notes, regression.periods, seconds
        ),
        plausibility=plausibility,
    )
    smooth = regression.filtered(position_cutoff=links.filters.position_cutoff)  # differences of q alone are noise
    return _with_spread(_with_feed_forward(calibration, smooth, terms, setup, progress), setup)


def _select_filters(
    data: TrainingData, setup: Setup, progress: Progress
) -> tuple[DriveGains, Regression, list[Choice]]:
    """Return the drive gains, and the regression with its filters selected, friction on the side of the links."""
    options, robot, payload = setup.options, setup.robot, setup.payload
    progress("drive gains")
    drives = drive_gains(data.regression, robot, data.output, options.gains, options.gain_source, payload)
    progress("choosing filters")
    regression, choices = select_filters(data.regression, drives.values, options.lag, options.position_cutoff)
    if drives.estimated:
        drives = drive_gains(regression, robot, data.output, None, "", payload)
    return drives, regression, choices


def _at_rotors(
    links: Regression, drives: DriveGains, choices: list[Choice], setup: Setup
) -> tuple[Regression, list[Choice]]:
    """Return the regression with friction and rotor inertia at the rotors, where the joint model has them there.

    Gains stay those of the link side; only the right lag and a high position cut-off separate the accelerations of both
    sides.
    """
    if not setup.options.structure.rotor_side:
        return links, choices
    regression = replace(links, bodies=replace(links.bodies, rotors=False, rotor_side=True))
    again = []
    if setup.options.lag is None:
        regression, choice = refine_lag(regression, drives.values)
        again.append(choice)
    regression, cutoffs = select_filters(
        regression, drives.values, regression.filters.lag, setup.options.position_cutoff
    )
    again += cutoffs
    return regression, [*choices[: len(choices) - len(again)], *again]


def _check_setup(
    regression: Regression, drives: DriveGains, setup: Setup, accept_implausible: bool
) -> tuple[Finding, ...]:
    """Return whether the logs and the declared set-up belong together; reject a contradiction."""
    checks = check_setup(regression, drives, setup.payload, lag_known=setup.options.lag is not None)
    if worst(checks) == "error" and not accept_implausible:
        raise ImplausibleError(f"{refusal(checks)} To calibrate anyway: --accept-implausible.")
    return checks


@dataclass(frozen=True)
class _SelectedJointModel:
    """The selected structure, the drive gains under it, terms of single joints, and the selections behind them."""

    structure: Structure
    drives: DriveGains
    joint_terms: dict[int, JointTerms]
    choices: list[Choice]
    alternatives: list[Alternatives]


def _select_joint_model(
    regression: Regression, drives: DriveGains, setup: Setup, progress: Progress
) -> _SelectedJointModel:
    """Return the joint model: free fields by cross-validation, gains again under it, terms of single joints."""
    options, choices = setup.options, list[Choice]()
    structure, alternatives = options.structure, list[Alternatives]()
    free = [name for name in options.free if name != "ripple" or not options.parallel_cutoff]  # it removes ripple
    if free:
        progress("choosing the joint model")
        structure, selection = _selected(regression, drives, structure, free)
        choices, alternatives = selection.choices, selection.alternatives(structure)
    chosen = options.lag is None, options.position_cutoff is None
    if any(chosen):
        alternatives += alternative_filters(regression, drives.values, structure, *chosen)
    if drives.estimated:
        drives = gains_again(regression, setup.robot, structure, drives, setup.payload)
    if options.scaled and structure.direction == "hysteresis":
        structure, choice = select_scales(regression, drives.values, structure)
        choices.append(choice)
    kept, compared = _known_joints(regression, structure, drives, options, progress)
    return _SelectedJointModel(structure, drives, kept, choices + compared, alternatives)


def _known_joints(
    regression: Regression, structure: Structure, drives: DriveGains, options: Options, progress: Progress
) -> tuple[dict[int, JointTerms], list[Choice]]:
    """Return the terms of joints that were identified alone, where they beat those of the structure."""
    terms = {j: single.completed(structure) for j, single in options.joints.items()}
    if terms:
        progress("comparing the known joints")
    compared = compare_joint_terms(regression, structure, drives.values, _fit_method(options), terms)
    return {each.joint: terms[each.joint] for each in compared if each.kept}, [each.choice() for each in compared]


def _selected(
    regression: Regression, drives: DriveGains, structure: Structure, free: Sequence[str]
) -> tuple[Structure, Selection]:
    """Return the structure by cross-validation; from positions only, it is that of a feed-forward model."""
    if regression.has_speed or regression.has_rotor:
        return select_structure(regression, drives.values, structure, free)
    structure = positions_structure(regression, structure, "direction" in free)
    candidates = testable_candidates(regression, rest_regression(regression))
    return select_structure(regression, drives.values, structure, free, candidates)


@dataclass(frozen=True)
class _Fitted:
    """The `full` fit, the one with only the essential parameters (if requested), and its uncertainty."""

    full: Fit
    fit: Fit
    essential: Essential | None
    uncertainty: Uncertainty


def _fit(regression: Regression, joint_model: _SelectedJointModel, setup: Setup, progress: Progress) -> _Fitted:
    """Return the fit of the joint model, and its uncertainty with that of all selections."""
    options, terms, drives = setup.options, joint_model.joint_terms, joint_model.drives
    full = fit_structure(regression, joint_model.structure, drives.values, _fit_method(options), terms)
    fit, essential = full, None
    if options.essential is not None:
        progress("essential parameters")
        fit, essential = essential_fit(full, known_values(full.model, terms)[0], options.essential)
    if options.method == "iv":
        progress("instrumental variables")
        fit, uncertainty = instrumental_fit(regression, fit, drives.values)
    else:
        uncertainty = uncertainty_of(fit.problem, fit.solution)
    neglected = neglected_effects(regression, fit, drives.values, terms)
    alternatives = [*joint_model.alternatives, *drives.alternatives(fit), *neglected]
    return _Fitted(full, fit, essential, with_selection(uncertainty, alternatives))


def _fit_method(options: Options) -> str:
    """Return the method of the fit: instrumental variables start from weighted least squares."""
    return "wls" if options.method == "iv" else options.method


def _physical(found: _Fitted, setup: Setup, progress: Progress) -> PhysicalParameters:
    """Return the physically consistent bodies of the full fit, or nearest to the values of instrumental variables."""
    progress("physically consistent bodies")
    fit, options = found.full, setup.options
    projection = fit.model.base.projection
    prior = body_prior(setup.robot, setup.payload, fit.model.rotors, projection, fit.problem, fit.solution)
    estimate = found.fit.solution.values if options.method == "iv" else None
    bodies = physical_parameters(fit.problem, fit.solution, projection, prior, options.body_prior, estimate)
    if not fit.model.rotor_side:
        return bodies
    places = [k for k, info in enumerate(fit.model.parameters) if info.joint is not None and info.name[:3] == "Ia_"]
    return replace(bodies, rotor_inertias=bodies.values[places], rotor_share=np.ones(len(places)))


def _with_feed_forward(
    calibration: Calibration, regression: Regression, terms: dict[int, JointTerms], setup: Setup, progress: Progress
) -> Calibration:
    """Return the calibration with friction for predictions from positions only, where it uses other channels.

    Terms of single joints that need rotor positions have no such friction: the joint position replaces the rotor's.
    """
    if not calibration.extras:
        return calibration
    progress("feed-forward model")
    options, joints = setup.options, {j: setup.options.joints[j] for j in terms}
    if not any(term.uses_rotor() for single in joints.values() for term in single.terms):
        structure = calibration.structure
        if options.free:
            structure = replace(options.structure, scales=structure.scales)
        bodies = calibration.estimate.values[: calibration.model.base.count]
        found = fit_feed_forward(regression, structure, calibration.gains, bodies, options.free, options.method, joints)
        calibration = replace(calibration, feed_forward=feed_forward_of(found, regression, joints))
    return with_feed_forward_errors(calibration, setup.logs)


def _with_spread(calibration: Calibration, setup: Setup) -> Calibration:
    """Return the calibration with the spread of its residuals, from which monitoring computes its thresholds."""
    if calibration.implausible:
        return calibration
    logs = [log for log in setup.logs if log.payload is None]
    return replace(calibration, spread=residual_spread(RobotModel(calibration), logs, "training"))


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
