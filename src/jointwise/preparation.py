"""The training data of a calibration: inspected logs, and their regression before anything is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from jointwise.data.conditioning import CleanLog, Filters, clean_log
from jointwise.data.coordinates import model_log
from jointwise.data.log import Log, check_joints
from jointwise.data.overlap import refuse_repeated_samples
from jointwise.data.quality import DataQuality, check_quality
from jointwise.data.repetition import motion_period
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot
from jointwise.errors import DataError, EstimationError, ModelError
from jointwise.estimation.drive_gains import known_gains
from jointwise.estimation.identifiability import check_excitation
from jointwise.estimation.instruments import refuse_unrelated_reference
from jointwise.estimation.regression import Regression
from jointwise.estimation.select_filters import FIRST_CUTOFF
from jointwise.model.dynamics import Dynamics
from jointwise.options import Options

ROW_RATE = 120.0
"""Rows a second that a fit needs: of faster logs every n-th sample makes a row."""
SLOWEST = 1e-3
"""Greatest speed (rad/s) of a joint up to which it does not move."""

Output = Literal["current", "torque"]


@dataclass(frozen=True)
class Setup:
    """The declared set-up of a calibration.

    Attributes:
        logs: Training logs.
        robot: The robot.
        mounting: Its mounting.
        payload: Payload of all logs; None for none.
        options: Options of the calibration.
    """

    logs: Sequence[Log]
    robot: Robot
    mounting: Mounting
    payload: Payload | None
    options: Options


@dataclass(frozen=True)
class TrainingData:
    """The training logs of a set-up.

    Attributes:
        inspections: Quality of every log.
        output: Output to model, "current" (A) or "torque" (Nm).
        regression: Regression of the logs.
        notes: Warnings for the user.
    """

    inspections: list[DataQuality]
    output: Output
    regression: Regression
    notes: list[str]


def prepare(setup: Setup) -> TrainingData:
    """Return the training data of a set-up.

    Raises:
        DataError: A log is unsuitable: wrong units, damaged channels, samples of another log, no measured output.
        EstimationError: The motion cannot carry the parameters, or a channel that the joint model needs is missing.
        ModelError: The options contradict each other.

    """
    inspections = [inspected(log, setup.robot) for log in setup.logs]
    output = setup.options.output or common_output(setup.logs)
    refuse_repeated_samples(setup.logs)
    regression = make_regression(setup.logs, setup.robot, setup.mounting, output, setup.options)
    data = TrainingData(inspections, output, regression, warnings_of(inspections))
    every_joint_moves = bool(np.any([each.numbers.moved for each in inspections], axis=0).all())
    notes = check_excitation(_without_noise_at_rest(data, setup), every_joint_moves)
    refuse_missing_channels(regression, setup.options)
    if setup.options.method == "iv":
        refuse_without_instruments(setup.logs, setup.options)
        regression = regression.from_positions()  # the reference has no measured speeds or rotors
    return replace(data, regression=_without_payloads(regression, setup, output), notes=[*data.notes, *notes])


def inspected(log: Log, robot: Robot) -> DataQuality:
    """Return the quality of a training log; reject one that is unsuitable."""
    check_joints(log, robot)
    inspection = check_quality(model_log(log, robot), robot)
    if inspection.verdict == "refused":
        gravest = next(finding for finding in inspection.findings if finding.severity == "error")
        raise DataError(f"{log.origin.path}: {gravest.sentence}")
    return inspection


def warnings_of(inspections: Sequence[DataQuality]) -> list[str]:
    """Return the warnings of the inspection of some logs, each with the name of its file."""
    return [
        f"{Path(inspection.log.origin.path).name}: {finding.sentence}"
        for inspection in inspections
        for finding in inspection.findings
        if finding.severity == "warning"
    ]


def held_still(inspection: DataQuality) -> Log:
    """Return the log with joints that never move held still: the noise of their encoders is no excitation."""
    log, moved = inspection.log, inspection.numbers.moved
    return log if moved.all() else log.with_channels(q=np.where(moved, log.q, log.q[0]), pages=None)


def _without_noise_at_rest(data: TrainingData, setup: Setup) -> Regression:
    """Return the regression under neutral filters, joints that never move without the noise of their encoders."""
    regression = replace(data.regression, filters=first_filters(setup.logs, Options()))
    if all(inspection.numbers.moved.all() for inspection in data.inspections):
        return regression
    return replace(
        regression, logs=_clean_logs([held_still(inspection) for inspection in data.inspections], setup.robot)
    )


def _without_payloads(regression: Regression, setup: Setup, output: Output) -> Regression:
    """Return the regression without the known payloads of single logs."""
    if all(log.payload is None for log in setup.logs):
        return regression
    gains = known_gains(setup.robot, output, setup.options.gains)
    if gains is None:
        raise EstimationError("payloads of single logs need known drive gains in Nm/A: state them with --gains.")
    change = replace(regression.bodies, terms=((),) * setup.robot.dof).payload_values
    carried = tuple(None if log.payload is None else change(log.payload, setup.payload) for log in setup.logs)
    return replace(regression, carried=carried, gains=gains)


def loaded_logs(logs: Sequence[Log], payloads: Sequence[Payload | None]) -> list[Log]:
    """Return logs with their payloads, none where it is None."""
    if len(logs) != len(payloads):
        raise ModelError(f"payload must be one for each of {len(logs)} logs. Got {len(payloads)} instead.")
    return [log.with_payload(payload or Payload(0.0)) for log, payload in zip(logs, payloads, strict=True)]


def common_output(logs: Sequence[Log]) -> Output:
    """Return the output that every log has measured: torque if there, else current."""
    for name in ("torque", "current"):
        if all(getattr(log, name) is not None for log in logs):
            return name
    missing = next(log for log in logs if log.torque is None and log.current is None)
    raise DataError(
        f"{missing.origin.path}: neither current (i1..) nor torque (tau1..) found: nothing to calibrate with."
    )


def make_regression(logs: Sequence[Log], robot: Robot, mounting: Mounting, output: str, options: Options) -> Regression:
    """Return the regression of some logs: cleaned logs, their periods, bodies, and filters before any choice."""
    clean = _clean_logs(logs, robot)
    gravity = gravity_vector(mounting)
    bodies = Dynamics(
        robot,
        (float(gravity[0]), float(gravity[1]), float(gravity[2])),
        options.rotors,
        ((),) * robot.dof,
        options.load_basis,
    )
    filters, periods = first_filters(logs, options), tuple(map(motion_period, clean))
    return Regression(clean, output, bodies, filters, extra=options.structure.extra, periods=periods)


def _clean_logs(logs: Sequence[Log], robot: Robot) -> tuple[CleanLog, ...]:
    """Return cleaned logs in the coordinates of the model; reject logs in which nothing moves."""
    clean = tuple(clean_log(model_log(log, robot)) for log in logs)
    for part in clean:
        if not (part.fastest > SLOWEST).any():
            raise EstimationError(f"{part.log.origin.path}: no joint moves: nothing can be identified.")
    return clean


def first_filters(logs: Sequence[Log], options: Options) -> Filters:
    """Return the filters before any choice: the clock from the logs, the rest from the options or neutral."""
    native = float(np.median([log.clock.uniform_rate for log in logs]))
    uneven = any(log.clock.uneven for log in logs)
    rate = options.rate or (2.0 * native if uneven and native < 4.0 * ROW_RATE else native)
    step = options.decimation or max(round(rate / ROW_RATE), 1)
    return Filters(
        rate, options.position_cutoff or FIRST_CUTOFF, options.parallel_cutoff or None, step, options.lag or 0.0
    )


def refuse_missing_channels(regression: Regression, options: Options) -> None:
    """Reject logs without a channel that the joint model of the options needs."""
    if options.structure.needs_speed and not regression.has_speed:
        raise EstimationError("the joint model needs a measured speed (ripple, track), but a log has no column qd1.")
    if options.structure.needs_rotor and not regression.has_rotor:
        raise EstimationError("the joint model needs rotor positions, but a log has no column theta1.")
    terms = [term for single in options.joints.values() for term in single.terms]
    terms += options.structure.extra_terms()
    if any(term.uses_temperature() for term in terms):
        for clean in regression.logs:
            _refuse_missing_temperature(clean.log)


def refuse_without_instruments(logs: Sequence[Log], options: Options) -> None:
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
        raise EstimationError(
            f"{log.origin.path}: the joint model needs a temperature: columns temp1.., or --temperature [LOG=]DEGC."
        )
