"""Summary: the grade of the model, its error in one sentence, its range of validity, and a card for each joint."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jointwise.formatting import listed, number, percent, r2_text
from jointwise.report.data import ReportData
from jointwise.report.page import Html, fragment, joint_title, length_unit, robot_title
from jointwise.report.sections.logs import uses
from jointwise.result.calibration import Calibration
from jointwise.result.metrics import AT_NOISE, Pooled, Validation, pool
from jointwise.result.predict import EXTRAS
from jointwise.result.verdict import (
    GOOD,
    Assessment,
    Basis,
    Grade,
    cross_validation_error,
    graded,
    joint_grade,
    log_kind,
    pooled_assessment,
    relative_error,
    usable_grade,
)


def assess(data: ReportData) -> Assessment:
    """Return the assessment on the best available data: validation logs, those in the model file, or folds.

    Logs are pooled joint by joint, from the first to the last movement. Of a log in which no joint moves only the error
    at rest is kept. Logs with another payload, and logs that contradict the model, are judged in the table of logs.
    """
    held_out = [log.validation for log in data.held_out]
    held_out = held_out or [stored for stored in data.calibration.validation if stored.held_out]
    rows = [log.in_motion for log in held_out if log_kind(log) in ("motion", "standstill")]
    return pooled_assessment("validation", rows) or _training_assessment(data)


def _training_assessment(data: ReportData) -> Assessment:
    """Return the worse of the training error and the cross-validation error."""
    fitted = pooled_assessment("training", [log.validation.in_motion for log in data.training])
    if fitted is None:
        known = data.calibration.training.known
        joints = tuple(Pooled(error) for error in data.calibration.training.nmse)
        fitted = Assessment("training", float(np.mean(known)) if known else 0.0, joints)
    held_out = cross_validation_error(data.calibration)
    if held_out is None or held_out < fitted.mean:
        return fitted
    return Assessment("cross-validation", held_out, fitted.joints)


STILL = 1e-3
"""A joint whose greatest speed (rad/s) in the training data is below this did not move."""
HEADLINES: dict[Grade, str] = {"good": "Good", "fair": "Use with care", "poor": "Do not use"}
NOT_VALIDATED = "Not validated"
SIGNALS = {"current": "motor current", "torque": "joint torque"}
DATA: dict[Basis, str] = {
    "validation": "validation data, which were not used for training",
    "cross-validation": "folds of the training data (cross-validation)",
    "training": "its training data",
}


def summary_section(data: ReportData) -> Html:
    """Return the headline, the recommended use and its limits, and one card per joint."""
    result, calibration = assess(data), data.calibration
    grade, headline = _headline(calibration, result)
    cards = [_card(data, j, joint, result.basis) for j, joint in enumerate(result.joints)]
    return fragment(
        "summary.html",
        calibration=calibration,
        doubts=[finding for finding in calibration.plausibility if finding.severity != "ok"],
        grade=grade,
        headline=headline,
        signal=SIGNALS[calibration.output],
        robot=robot_title(data.robot),
        result=result,
        data_text=DATA[result.basis],
        feed_forward=_feed_forward(data),
        validated_on=listed(_validation_names(data)),
        not_validated=_not_validated(data),
        same_recording=_same_recording(data),
        at_rest=_at_rest(data),
        uses=uses(data),
        cards=cards,
        small_signal=f"{AT_NOISE:g}" if any(map(_is_small_signal, result.joints)) else "",
        valid_title=_valid_title(data, result),
        valid=_valid(data, result),
        limitations=_limitations(data, result),
    )


def _headline(calibration: Calibration, result: Assessment) -> tuple[Grade, str]:
    """Return grade and headline; a suspect set-up is never good, one that the data contradict never usable."""
    if calibration.implausible:
        return "poor", "Do not use: set-up contradicted"
    if calibration.setup == "suspect" and result.grade == "good":
        return "fair", "Use with care: suspect set-up"
    unproven = result.basis != "validation" and result.grade != "poor"
    return result.grade, NOT_VALIDATED if unproven else HEADLINES[result.grade]


def _feed_forward(data: ReportData) -> dict[str, object] | None:
    """Return the error of the feed-forward prediction, if the model also uses other channels than positions."""
    calibration, logs = data.calibration, data.held_out or data.training
    judged = [log.validation for log in logs if log_kind(log.validation) == "motion"]
    rows = [log.from_positions for log in judged if log.from_positions is not None]
    error = pooled_assessment("validation", [row.in_motion for row in rows]) if calibration.extras else None
    if error is None:
        return None
    channels = listed(EXTRAS[name] for name in calibration.extras)
    return {"error": error, "moving": _while_moving(rows), "channels": channels, "training": not data.held_out}


def _while_moving(rows: Sequence[Validation]) -> str:
    """Return the error over the samples at which the joints move, in parentheses; empty if no joint moves."""
    columns = zip(*(row.moving for row in rows), strict=True)
    pooled = [pool([joint for joint in column if joint]) for column in columns]
    known = [joint.nmse for joint in pooled if joint.nmse is not None]
    return f" ({percent(relative_error(known))} while moving)" if known else ""


def _not_validated(data: ReportData) -> str:
    """Return that the model was not validated, and what to do."""
    stored = any(not log.held_out for log in data.calibration.validation)
    overlap = stored or any(log.role == "overlap" for log in data.validation)
    reason = "The validation log overlaps the training data. " if overlap else ""
    motion = " in which a joint moves" if data.held_out else ""
    error = cross_validation_error(data.calibration)
    folds = (
        ""
        if error is None
        else f" Cross-validation within the training data gives R² {r2_text(1.0 - error)} (geometric mean of the "
        "errors of the joints, samples at rest have less weight)."
    )
    return (
        f"{reason}The model was not validated on held-out data{motion}. Record another motion and run: "
        f"jointwise validate {shlex.quote(data.file)} OTHER_LOG.{folds}"
    )


def _validation_names(data: ReportData) -> list[str]:
    """Return the names of the validation logs in which a joint moves, given now or stored in the model file."""
    if data.held_out:
        return [log.name for log in data.held_out if log_kind(log.validation) == "motion"]
    stored = [log for log in data.calibration.validation if log.held_out]
    return [Path(log.file).name for log in stored if log_kind(log) == "motion"]


def _at_rest(data: ReportData) -> str:
    """Return the errors on validation logs in which no joint moves, which have no R²."""
    still = [log for log in data.held_out if log.at_rest]
    if not still:
        return ""
    columns = zip(*(log.validation.joints for log in still), strict=True)
    greatest = max(pool(column).rest or 0.0 for column in columns)
    return (
        f" No joint moves in {listed(log.name for log in still)}: the RMS error there is up to {number(greatest, 2)} "
        f"{data.calibration.unit}. It does not count above, because static friction can hold any torque up to "
        "break-away."
    )


def _same_recording(data: ReportData) -> str:
    """Return a note if the validation data are another part of a training file."""
    hashes = {log.log.origin.sha256 for log in data.training} - {""}
    if not any(log.log.origin.sha256 in hashes for log in data.held_out):
        return ""
    return " These data are another part of the training recording; a different motion would be a stricter test."


def _joints_text(indices: list[int]) -> str:
    return f"joint{'s' * (len(indices) > 1)} {listed(str(j + 1) for j in indices)}"


def _valid_title(data: ReportData, result: Assessment) -> str:
    """Return the title of the range of validity; without validation data it is only that of the training data."""
    proven = result.basis == "validation" or data.calibration.implausible or result.grade == "poor"
    return "Valid for" if proven else "Range of the training data (not validated)"


def _valid(data: ReportData, result: Assessment) -> list[str]:
    calibration, robot = data.calibration, data.robot
    if calibration.implausible:
        return ["No use: the training data contradict the declared set-up. Correct it and calibrate again"]
    usable = [j for j, joint in enumerate(result.joints) if joint_grade(joint) in ("good", "fair")]
    if result.grade == "poor" or not usable:
        return ["No use yet: see the data quality below and record again"]
    joints = "all joints" if len(usable) == robot.dof else _joints_text(usable)
    signal = "Currents" if calibration.output == "current" else "Torques"
    speeds = ", ".join(f"{speed:.2g}" for speed in calibration.fastest)
    unit = length_unit(robot.joints[-1])
    return [
        f"{signal} of {joints}, with the payload and the mounting ({calibration.provenance.mounting}) of the training "
        "data",
        f"Logs with {listed(['positions (q)', *(EXTRAS[name] for name in calibration.extras)])}"
        + ("; with positions only, the feed-forward error above applies" if calibration.extras else ""),
        f"Speeds up to those of the training data: {speeds} {unit}/s",
        "Temperatures similar to those of the training data, because friction depends on temperature",
    ]


def _limitations(data: ReportData, result: Assessment) -> list[str]:
    calibration, robot = data.calibration, data.robot
    poor = [j for j, joint in enumerate(result.joints) if joint_grade(joint) == "poor"]
    unproven = [j for j, joint in enumerate(result.joints) if joint.nmse is None]
    still = [joint_title(robot, j) for j in np.flatnonzero(calibration.fastest < STILL).tolist()]
    remarks = (
        (True, "Another payload or mounting, contact forces, collisions"),
        (True, "Faster motion: viscous friction is extrapolated linearly beyond the speeds of the training data"),
        (poor, f"{_joints_text(poor).capitalize()}: the residual is too large"),
        (unproven, f"{_joints_text(unproven).capitalize()}: no motion in any validation log"),
        (still, f"{listed(still)}: no motion in the training data"),
    )
    notes = [f"Warning: {note}" for note in calibration.provenance.notes]
    return [*notes, *(text for applies, text in remarks if applies), *_weak_parameters(calibration)]


def _weak_parameters(calibration: Calibration) -> list[str]:
    status = calibration.estimate.status
    weak = sum(each in ("weak", "undetermined") for each in status)
    text = (
        f"{weak} of {len(status)} individual parameters are weakly identifiable or not at all: their combination "
        "predicts well, but do not interpret them one by one"
    )
    return [text] if weak else []


def _is_small_signal(joint: Pooled) -> bool:
    """Return whether a joint is good despite a low R²."""
    return joint.at_noise and joint.nmse is not None and joint.nmse > GOOD


def _card(data: ReportData, j: int, joint: Pooled, basis: Basis) -> dict[str, object]:
    """Return what the card of a joint shows."""
    held_out, unit = basis == "validation", data.calibration.unit
    grade = usable_grade(joint_grade(joint), data.calibration.setup, held_out=held_out)
    label = "validation data" if held_out else "training data"
    facts = [] if joint.rmse is None else [f"RMSE {number(joint.rmse, 2)} {unit}"]
    facts += [f"noise floor {number(joint.noise, 2)} {unit}"] if joint.noise else []
    facts += [] if joint.rest is None else [f"RMSE at rest {number(joint.rest, 2)} {unit}"]
    facts += ["error at sensor noise"] if _is_small_signal(joint) else []
    title = joint_title(data.robot, j)
    return {
        "title": title,
        "r2": None if joint.nmse is None else 1.0 - joint.nmse,
        "facts": [*facts, label if joint.rmse is None else f"{label}, first to last movement"],
        "verdict": graded(title, grade),
    }
