"""The whole story: logs in, a calibrated model out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from jointwise.data.conditioning import Filters
from jointwise.data.gravity import mounting_of_logs
from jointwise.data.log import Log
from jointwise.data.quality import Examination, examine
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.payload import Payload
from jointwise.description.robot import Robot
from jointwise.errors import DataError, EstimationError, ModelError
from jointwise.estimation.coupled import Uncertainty, jackknife
from jointwise.estimation.drive_gains import drive_gains, gains_again
from jointwise.estimation.fit import Fit, fit_structure, known_totals, known_values
from jointwise.estimation.given import GivenTerms
from jointwise.estimation.problem import Problem, record
from jointwise.estimation.rivals import Moves, with_choices
from jointwise.estimation.select import (
    FIRST_CUTOFF,
    Choice,
    choose_filters,
    choose_scales,
    choose_structure,
    filter_rivals,
)
from jointwise.estimation.structure import Structure
from jointwise.estimation.weigh import weigh_given
from jointwise.joint.model import JointModel
from jointwise.joint.plug import USED, drive_gain, given_terms
from jointwise.model.dynamics import Dynamics
from jointwise.model.terms import SpeedRipple, Term, Viscous
from jointwise.result.calibration import Calibration, Estimate, Provenance, Source, Status
from jointwise.result.validation import positions_alone
from jointwise.spatial import Array

ROW_RATE = 120.0
"""Rows a second that a fit needs: of faster logs every n-th sample makes a row."""
AUTOMATIC = ("ripple", "direction", "powers", "stribeck", "load")
EXPLAINED = 0.5
"""A fit that leaves more than this part of the variance unexplained on held-out stretches is no model."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What a user may decide; None leaves the decision to the data.

    `output`: current or torque; `structure`: the joint model, of which only the fields named in `free` are chosen;
    `position_cutoff` (Hz), `lag` (s), `parallel_cutoff` (Hz; none unless given: a model is to predict the raw output),
    `decimation`, `rate` (Hz) of the filters; `gains` (Nm per unit of output) and where they are from; `rotors`:
    reflected rotor inertias; `method`: wls, ols, huber; `load_basis`: model or row_sum; `scaled`: choose the scale of
    the slip limits joint by joint (for limits that are no ladder); `joints`: terms of single joints (0-based) that come
    from their own experiments and take the place of the structure's where they predict held-out stretches as well
    or are firm, their known values held.
    """

    output: Literal["current", "torque"] | None = None
    structure: Structure = field(default_factory=Structure)
    free: tuple[str, ...] = AUTOMATIC
    position_cutoff: float | None = None
    lag: float | None = None
    parallel_cutoff: float | None = None
    decimation: int | None = None
    rate: float | None = None
    gains: Sequence[float] | None = None
    gain_source: str = "given"
    rotors: bool = True
    method: str = "wls"
    load_basis: str = "model"
    scaled: bool = False
    joints: Mapping[int, GivenTerms] = field(default_factory=dict)

    def with_joints(self, models: Sequence[JointModel], robot: Robot, *, rotor: bool, known: bool) -> Options:
        """Return the options with the friction and the drive gains of joints that were identified by themselves.

        `rotor`: the logs have rotor positions; `known`: the values of the friction are held, else estimated again.
        """
        used = [own for own in models if any(name in own.parts for name in USED)]
        joints = {own.joint: given_terms(own, known, rotor) for own in used}
        found = {own.joint: own for own in models if "motor" in own.parts}
        if not found or self.gains is not None:
            return replace(self, joints=joints)
        described = [joint.motor.joint_gain for joint in robot.joints]
        gains = [drive_gain(found[j], own) if j in found else own for j, own in enumerate(described)]
        complete = [gain for gain in gains if gain is not None]
        if len(complete) < robot.dof:
            raise ModelError("the gains of some joints only are known: give all of them with --gains.")
        return replace(self, joints=joints, gains=complete, gain_source="joint files, else the description")


def calibrate(
    logs: Log | Sequence[Log],
    robot: Robot,
    *,
    mounting: Mounting | None = None,
    payload: Payload | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Return the calibrated model of a robot from one or more logs.

    With no options the program chooses: filters from the clock and by cross-validation, the joint model by
    cross-validation inside the logs. `mounting` is the one that the logs tell, else the table, unless given. The
    `payload` that the tool carries in the logs becomes part of the parameters; drive gains that nobody knows take their
    scale from the described bodies with it. `progress` is told what is being done.
    """
    recordings = [logs] if isinstance(logs, Log) else list(logs)
    tell = progress or (lambda step: None)
    with threadpool_limits(limits=1, user_api="blas"):  # hundreds of small factors: threads cost more than they give
        standing = mounting_of_logs(recordings, mounting)
        return _calibrate(recordings, robot, standing, payload, options or Options(), tell)


def _calibrate(
    recordings: Sequence[Log],
    robot: Robot,
    mounting: Mounting,
    payload: Payload | None,
    options: Options,
    tell: Progress,
) -> Calibration:
    started = time.perf_counter()
    tell("examining the log")
    examinations = [_examined(log, robot) for log in recordings]
    output = options.output or common_output(recordings)
    problem = make_problem(recordings, robot, mounting, output, options)
    if options.structure.needs_speed and not problem.has_speed:
        raise EstimationError("the joint model asks for a measured speed (ripple, track), but a log has no column qd1.")
    if options.structure.needs_rotor and not problem.has_rotor:
        raise EstimationError("the joint model asks for rotor positions, but a log has no column theta1.")
    _refuse_cold(recordings, options)
    tell("drive gains")
    drives = drive_gains(problem, robot, output, options.gains, options.gain_source, payload)
    tell("choosing filters")
    problem, filter_choices = choose_filters(problem, drives.values, options.lag, options.position_cutoff)
    if drives.estimated:
        drives = drive_gains(problem, robot, output, None, "", payload)
    gains = drives.values
    start = options.structure
    free = options.free
    if options.parallel_cutoff:  # what a filter takes out cannot tell how the drive answers to ripple
        free = tuple(name for name in free if name != "ripple")
    choices: list[Choice] = []
    moves: list[Moves] = []
    if free:
        tell("choosing the joint model")
        start, choices, moves = choose_structure(problem, gains, start, free)
        moves += filter_rivals(problem, gains, start, options.lag is None, options.position_cutoff is None)
    if drives.estimated:
        drives = gains_again(problem, robot, start, drives, payload)
        gains = drives.values
    if options.scaled and start.direction == "hysteresis":
        start, choice = choose_scales(problem, gains, start)
        choices.append(choice)
    options, verdicts = _weighed(problem, start, gains, options, tell)
    choices += verdicts
    tell("fitting")
    fit = fit_structure(problem, start, gains, options.method, options.joints)
    uncertainty = with_choices(jackknife(fit.factors, fit.layout, fit.solution), moves + drives.moves(fit))
    ripple = problem.greatest_ripple() if fit.structure.ripple else np.zeros(robot.dof)
    fastest = np.max([recording.fastest for recording in problem.recordings], axis=0)
    training = _training_figures(fit)
    calibration = Calibration(
        model=_bounded_model(fit.model, fastest, ripple),
        estimate=_estimate(fit, uncertainty, options),
        filters=problem.filters,
        output=output,
        gains=gains,
        gain_source=drives.source,
        structure=fit.structure.to_dict(),
        structure_text=_described(fit, options),
        choices=(*filter_choices, *choices),
        load=asdict(fit.load),
        training=training,
        fastest=fastest,
        provenance=_provenance(recordings, examinations, mounting, payload, time.perf_counter() - started),
    )
    if not calibration.extras:
        return calibration
    tell("from positions alone")
    alone = positions_alone(calibration, recordings)
    return replace(calibration, training={**training, "positions_alone": alone})


def _weighed(
    problem: Problem, structure: Structure, gains: Array, options: Options, tell: Progress
) -> tuple[Options, list[Choice]]:
    """Return the options with the given joints completed, those that predict worse than the automatic ones left out."""
    given = {j: own.completed(structure) for j, own in options.joints.items()}
    if given:
        tell("weighing the known joints")
    verdicts = weigh_given(problem, structure, gains, options.method, given)
    kept = {own.joint: given[own.joint] for own in verdicts if own.kept}
    return replace(options, joints=kept), [own.choice() for own in verdicts]


def _refuse_cold(logs: Sequence[Log], options: Options) -> None:
    """Refuse logs without the temperature that a given joint model asks for."""
    if any(term.uses_temperature() for own in options.joints.values() for term in own.terms):
        for log in logs:
            if log.temperature is None:
                raise EstimationError(f"{log.origin.path}: the joint model asks for a temperature (temp1..).")


def _described(fit: Fit, options: Options) -> str:
    """Return the joint model in words, and which joints have their own."""
    own = ", ".join(str(joint + 1) for joint in sorted(options.joints))
    return fit.structure.describe() + (f"; joint {own} as identified by itself" if own else "")


def common_output(logs: Sequence[Log]) -> Literal["current", "torque"]:
    """Return the output that every log has measured: torque if there, else current."""
    for name in ("torque", "current"):
        if all(getattr(log, name) is not None for log in logs):
            return name
    missing = next(log for log in logs if log.torque is None and log.current is None)
    raise DataError(
        f"{missing.origin.path}: neither current (i1..) nor torque (tau1..) found: nothing to calibrate with."
    )


def make_problem(logs: Sequence[Log], robot: Robot, mounting: Mounting, output: str, options: Options) -> Problem:
    """Return the estimation problem of some logs: recordings, bodies, and filters before any choice."""
    recordings = tuple(record(log, output) for log in logs)
    for recording in recordings:
        if not (recording.fastest > 1e-3).any():
            raise EstimationError(f"{recording.log.origin.path}: no joint moves: nothing can be identified.")
    gravity = gravity_vector(mounting)
    bodies = Dynamics(
        robot,
        (float(gravity[0]), float(gravity[1]), float(gravity[2])),
        options.rotors,
        ((),) * robot.dof,
        options.load_basis,
    )
    return Problem(recordings, bodies, first_filters([recording.log for recording in recordings], options))


def first_filters(logs: Sequence[Log], options: Options) -> Filters:
    """Return the filters before any choice: the clock from the logs, the rest from the options or neutral."""
    steps = np.concatenate([np.diff(log.t) for log in logs])
    steps = steps[steps > 0.0]
    period = float(np.median(steps))
    uneven = float(np.mean(np.abs(steps - period) > 0.05 * period)) > 0.05
    native = 1.0 / period
    rate = options.rate or (2.0 * native if uneven and native < 4.0 * ROW_RATE else native)
    step = options.decimation or max(round(rate / ROW_RATE), 1)
    return Filters(
        rate, options.position_cutoff or FIRST_CUTOFF, options.parallel_cutoff or None, step, options.lag or 0.0
    )


def _examined(log: Log, robot: Robot) -> Examination:
    if log.joints != robot.dof:
        raise DataError(f"{log.origin.path}: the log has {log.joints} joints, {robot.name} has {robot.dof}.")
    examination = examine(log, robot)
    if examination.verdict == "refused":
        gravest = next(finding for finding in examination.findings if finding.severity == "error")
        raise DataError(f"{log.origin.path}: {gravest.message} {gravest.advice}")
    return examination


def _bounded_model(model: Dynamics, fastest: Array, ripple: Array) -> Dynamics:
    """Return the model with the range of the training data in its terms: greatest speed and speed ripple."""

    def bounded(term: Term, joint: int) -> Term:
        if isinstance(term, Viscous):
            return replace(term, known=float(fastest[joint]))
        return replace(term, known=float(ripple[joint])) if isinstance(term, SpeedRipple) else term

    return replace(model, terms=tuple(tuple(bounded(term, j) for term in own) for j, own in enumerate(model.terms)))


def _estimate(fit: Fit, uncertainty: Uncertainty, options: Options) -> Estimate:
    solution = fit.solution
    given, deviation = known_values(fit.model, options.joints)
    known = ~np.isnan(given)
    covariance = uncertainty.covariance.copy()
    covariance[known, known] = deviation[known] ** 2
    for own in known_totals(fit.model, options.joints):
        shares = solution.values[own.places] / own.value if own.value else np.zeros(len(own.places))
        covariance[np.ix_(own.places, own.places)] += own.deviation**2 * np.outer(shares, shares)
    half = uncertainty.factor * uncertainty.deviation
    status: list[Status] = [
        "given"
        if own
        else "undetermined"
        if lost
        else "at bound"
        if held
        else "determined"
        if abs(x) > width
        else "weak"
        for x, width, lost, held, own in zip(
            solution.values, half, uncertainty.undetermined, uncertainty.at_bound, known, strict=True
        )
    ]
    return Estimate(
        values=solution.values,
        covariance=covariance,
        factor=uncertainty.factor,
        status=tuple(status),
        sigma=solution.sigma,
        condition=solution.condition,
        condition_scaled=solution.condition_scaled,
        method=options.method,
    )


def _training_figures(fit: Fit) -> dict[str, object]:
    """Return MSE / variance on the training rows; refuse a fit that explains next to nothing."""
    nmse = [float(sigma**2 / own.variance) for sigma, own in zip(fit.solution.sigma, fit.factors, strict=True)]
    if np.median(nmse) > EXPLAINED:
        raise EstimationError(
            f"not identifiable: the best model explains only {100 * (1 - float(np.median(nmse))):.0f} % of the output. "
            "Do positions and output belong together (same clock, same joints, right mounting)?"
        )
    return {"nmse": nmse}


def _provenance(
    logs: Sequence[Log],
    examinations: Sequence[Examination],
    mounting: Mounting,
    payload: Payload | None,
    seconds: float,
) -> Provenance:
    from jointwise import __version__

    sources = tuple(
        Source(
            Path(log.origin.path).name,
            log.origin.sha256,
            log.samples,
            log.duration,
            own.verdict,
            tuple(finding.line() for finding in own.findings),
        )
        for log, own in zip(logs, examinations, strict=True)
    )
    named = mounting if isinstance(mounting, str) else " ".join(f"{float(g):g}" for g in mounting)
    carried = None if payload is None else (payload.mass, *np.asarray(payload.center_of_mass).tolist())
    return Provenance(__version__, datetime.now(UTC).isoformat(timespec="seconds"), named, sources, seconds, carried)
