"""Summary: the grade of the model, its error in one sentence, its range of validity, and a card for each joint."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jointwise.formatting import listed, number, percent, r2_text
from jointwise.report.data import ReportData
from jointwise.report.page import (
    Html,
    badge,
    element,
    items,
    join,
    joint_title,
    length_unit,
    paragraph,
    robot_title,
)
from jointwise.report.sections.logs import use_badge, uses
from jointwise.result.calibration import Calibration
from jointwise.result.metrics import AT_NOISE, Pooled, Validation, pool
from jointwise.result.plausibility.wording import SETUP
from jointwise.result.predict import EXTRAS
from jointwise.result.verdict import (
    GOOD,
    Assessment,
    Basis,
    Grade,
    cross_validation_error,
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
    result = assess(data)
    grade, headline_text = _headline(data.calibration, result)
    headline = element("p", badge(headline_text, grade), class_="light")
    sentence = paragraph(*_sentence(data, result), class_="sentence")
    head = element("div", headline, sentence, _feed_forward(data), _basis(data, result), class_=f"verdict {grade}")
    valid = element("div", element("h3", _valid_title(data, result)), items(_valid(data, result)))
    limits = element("div", element("h3", "Limitations"), items(_limitations(data, result)))
    pair = element("div", valid, limits, class_="pair")
    scale = data.calibration.scale_text
    first = paragraph(scale, class_="warning") if scale else Html("")
    return join([first, _plausibility(data.calibration), head, uses(data), _cards(data, result), pair])


def _plausibility(calibration: Calibration) -> Html:
    """Return what contradicts the declared set-up, in red, or makes it suspect; empty if nothing does."""
    found = [check for check in calibration.plausibility if check.severity != "ok"]
    if not found:
        return Html("")
    grade: Grade = "poor" if calibration.implausible else "fair"
    title = "Implausible set-up" if calibration.implausible else "Suspect set-up"
    meaning = (
        "The training data contradict the declared set-up. The model was written because this was accepted "
        "(--accept-implausible)."
        if calibration.implausible
        else "Something else explains the training data better than the declared set-up."
    )
    lines = items([f"{check.subject} ({SETUP[check.severity]}): {check.sentence}" for check in found])
    headline = element("p", badge(title, grade), class_="light")
    return element("div", headline, paragraph(meaning, class_="sentence"), lines, class_=f"verdict {grade}")


def _headline(calibration: Calibration, result: Assessment) -> tuple[Grade, str]:
    """Return grade and headline; a suspect set-up is never good, one that the data contradict never usable."""
    if calibration.implausible:
        return "poor", "Do not use: set-up contradicted"
    if calibration.setup == "suspect" and result.grade == "good":
        return "fair", "Use with care: suspect set-up"
    unproven = result.basis != "validation" and result.grade != "poor"
    return result.grade, NOT_VALIDATED if unproven else HEADLINES[result.grade]


def _sentence(data: ReportData, result: Assessment) -> list[object]:
    signal, mean = SIGNALS[data.calibration.output], "" if result.basis == "cross-validation" else "mean "
    return [
        f"The model predicts the {signal} of the {robot_title(data.robot)} with an RMS error of ",
        element("strong", percent(result.relative_error)),
        f" of the signal’s standard deviation ({mean}R² ",
        element("strong", r2_text(1.0 - result.mean)),
        f") on {DATA[result.basis]}.",
    ]


def _feed_forward(data: ReportData) -> Html:
    """Return the error of the feed-forward prediction, if the model also uses other channels than positions."""
    calibration, logs = data.calibration, data.held_out or data.training
    judged = [log.validation for log in logs if log_kind(log.validation) == "motion"]
    rows = [log.from_positions for log in judged if log.from_positions is not None]
    result = pooled_assessment("validation", [row.in_motion for row in rows]) if calibration.extras else None
    if result is None:
        return Html("")
    return paragraph(
        "Feed-forward (from positions only): ",
        element("strong", percent(result.relative_error)),
        f"{_while_moving(rows)}, R² {r2_text(1.0 - result.mean)}. The figure above is for the sensor-based "
        f"model, which also uses {_channels(calibration)}; a planned motion does not provide it.",
        "" if data.held_out else " This is a training error.",
        class_="small",
    )


def _while_moving(rows: Sequence[Validation]) -> str:
    """Return the error over the samples at which the joints move, in parentheses; empty if no joint moves."""
    columns = zip(*(row.moving for row in rows), strict=True)
    pooled = [pool([joint for joint in column if joint]) for column in columns]
    known = [joint.nmse for joint in pooled if joint.nmse is not None]
    return f" ({percent(relative_error(known))} while moving)" if known else ""


def _channels(calibration: Calibration) -> str:
    """Return the channels that the model uses in addition to positions."""
    return listed(EXTRAS[name] for name in calibration.extras)


def _basis(data: ReportData, result: Assessment) -> Html:
    """Return the data behind the headline, or a warning that there are no validation data."""
    if result.basis != "validation":
        return _not_validated(data)
    return paragraph(
        f"Validated on {listed(_validation_names(data))}. Root-mean-square error divided by the standard deviation of "
        "the measurement, from the first to the last movement, all logs pooled, mean over the joints.",
        _same_recording(data),
        _at_rest(data),
        class_="small",
    )


def _not_validated(data: ReportData) -> Html:
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
    advice = (
        f"{reason}The model was not validated on held-out data{motion}. Record another motion and run: "
        f"jointwise validate {shlex.quote(data.file)} OTHER_LOG.{folds}"
    )
    return paragraph(element("strong", "Warning: "), advice, _at_rest(data), class_="warning")


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


def _cards(data: ReportData, result: Assessment) -> Html:
    """Return one card per joint."""
    if not result.joints:
        return Html("")
    label = "validation data" if result.basis == "validation" else "training data"
    cards = [_card(data, j, joint, result.basis, label) for j, joint in enumerate(result.joints)]
    note = paragraph(
        f"Error at sensor noise: at most {AT_NOISE:g} times the noise floor. R² is low because the signal is small; no "
        "model could be much better.",
        class_="small",
    )
    return join([element("div", *cards, class_="cards"), note if any(map(_is_small_signal, result.joints)) else ""])


def _is_small_signal(joint: Pooled) -> bool:
    """Return whether a joint is good despite a low R²."""
    return joint.at_noise and joint.nmse is not None and joint.nmse > GOOD


def _card(data: ReportData, j: int, joint: Pooled, basis: Basis, label: str) -> Html:
    grade = usable_grade(joint_grade(joint), data.calibration.setup, held_out=basis == "validation")
    samples = label if joint.rmse is None else f"{label}, first to last movement"
    return element(
        "div",
        element("div", joint_title(data.robot, j), class_="card-title"),
        _figure(joint),
        *(element("div", fact, class_="small") for fact in (*_facts(joint, data.calibration.unit), samples)),
        use_badge(grade),
        class_="card",
    )


def _facts(joint: Pooled, unit: str) -> list[str]:
    """Return the errors of a joint as short texts."""
    facts = [] if joint.rmse is None else [f"RMSE {number(joint.rmse, 2)} {unit}"]
    facts += [f"noise floor {number(joint.noise, 2)} {unit}"] if joint.noise else []
    facts += [] if joint.rest is None else [f"RMSE at rest {number(joint.rest, 2)} {unit}"]
    return [*facts, "error at sensor noise"] if _is_small_signal(joint) else facts


def _figure(joint: Pooled) -> Html:
    if joint.nmse is None:
        return element("div", "at rest", class_="card-number")
    return element("div", element("span", "R² ", class_="unit"), r2_text(1.0 - joint.nmse), class_="card-number")
