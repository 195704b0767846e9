"""What a calibration can be used for: its assessment over all logs, a verdict for each log and each kind of use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from jointwise.finding import Finding, Severity, with_severity
from jointwise.result.calibration import Calibration
from jointwise.result.metrics import JointMetrics, Pooled, Validation, pool
from jointwise.result.plausibility import Setup, undecided_text

Grade = Literal["good", "fair", "poor", "plain", "unvalidated", "contradicted"]
"""plain: there are no data to judge by; unvalidated: only training data, whose errors show no more than that the model
is not poor; contradicted: the training data contradict the set-up of the model, whose errors then mean nothing."""
GRADE_TEXT: dict[Grade, str] = {
    "good": "good",
    "fair": "fair",
    "poor": "poor",
    "plain": "not judged",
    "unvalidated": "not validated",
    "contradicted": "do not use: set-up contradicted",
}
Kind = Literal["motion", "payload", "standstill", "contradiction"]
"""What a log is: a motion of the arm as the model describes it; with another payload; without motion; or recorded with
other signs, order or mounting than the model's."""

Basis = Literal["validation", "cross-validation", "training"]
"""The data behind an assessment: validation logs, folds of the training logs, or the training data themselves."""

GOOD, FAIR = 0.02, 0.10
"""Limits of MSE / variance, mean over the joints."""
WELL_DETERMINED = 0.75
"""Share of the body parameters whose interval excludes zero from which parameters are good."""


SEVERITY_OF_GRADE: dict[Grade, Severity] = {
    "good": "ok",
    "fair": "warning",
    "poor": "error",
    "plain": "info",
    "unvalidated": "info",
    "contradicted": "error",
}
USES = ("feed-forward", "monitoring", "simulation")
"""What a model is judged for on a log."""


def graded(subject: str, grade: Grade, evidence: str = "") -> Finding:
    """Return a grade as a finding whose code is the grade; its evidence is the grade in words, or what led to it."""
    return Finding(SEVERITY_OF_GRADE[grade], subject, evidence or GRADE_TEXT[grade], code=grade)


@dataclass(frozen=True)
class LogVerdict:
    """The verdict on one log.

    Attributes:
        kind: What the log is for the model.
        error: Mean MSE / variance from the first to the last movement; NaN where no joint moves.
        all_samples: The same with standstill before and after.
        uses: A finding for each of `USES`.
        cause: Why the log is no plain motion, in words; empty for one.
    """

    kind: Kind
    error: float
    all_samples: float
    uses: tuple[Finding, ...]
    cause: str = ""

    def to_dict(self) -> dict[str, object]:
        """Return the verdict for JSON."""
        uses = {each.subject.replace("-", "_"): each.evidence for each in self.uses}
        return {
            "kind": self.kind,
            "uses": uses,
            "findings": [each.to_dict() for each in self.uses],
            "cause": self.cause,
        }

    def line(self) -> str:
        """Return the verdict in one line."""
        first = self.uses[0]
        uses = ", ".join(f"{each.subject} {each.evidence}" for each in self.uses)
        if len({each.code for each in self.uses}) == 1 and first.code in ("plain", "unvalidated", "contradicted"):
            uses = f"{first.evidence} ({', '.join(USES)})"
        return f"verdict ({self.kind}): {uses}" + (f"; {self.cause}" if self.cause else "")


@dataclass(frozen=True)
class Assessment:
    """MSE / variance of a model and the data behind it.

    A joint that moves in none of the logs does not count. A joint whose error is close to the sensor noise counts as
    good.

    Attributes:
        basis: The data: validation logs, folds of the training logs, or the training data themselves.
        mean: Mean of MSE / variance over the joints.
        joints: Errors of every joint over the logs; those of the training data for cross-validation.
    """

    basis: Basis
    mean: float
    joints: tuple[Pooled, ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """MSE / variance of the joints that have one."""
        return tuple(joint.nmse for joint in self.joints if joint.nmse is not None)

    @property
    def grade(self) -> Grade:
        """The overall grade: "good" requires validation data and no joint worse than fair."""
        effective = [error for error in map(effective_error, self.joints) if error is not None]
        mean = float(np.mean(effective)) if effective and self.basis != "cross-validation" else self.mean
        worst = max(effective, default=mean)
        if not mean <= FAIR:
            return "poor"
        return "good" if self.basis == "validation" and mean <= GOOD and worst <= FAIR else "fair"

    @property
    def relative_error(self) -> float:
        """RMS error divided by the standard deviation of the measurement, mean over the joints where known."""
        return relative_error(self.errors) if self.basis != "cross-validation" and self.errors else self.mean**0.5


def log_kind(validation: Validation) -> Kind:
    """Return what a log is for the model."""
    if validation.reason is not None:
        return "standstill"
    found = {each.subject for each in with_severity(validation.plausibility, "error")}
    if not found:
        return "motion"
    return "payload" if found == {"payload"} else "contradiction"


def log_verdict(validation: Validation) -> LogVerdict:
    """Return the verdict on one log.

    Feed-forward is judged by the prediction from positions only, from the first to the last movement; monitoring by
    the worst joint of the sensor-based prediction; simulation by all samples, predicted from positions only. A log with
    another payload, without motion, or that contradicts the model is not judged: it says nothing about these uses.
    Training data validate nothing, a model with a suspect set-up is at most fair, and one whose training data
    contradict its set-up is for no use, whatever its errors are.

    Args:
        validation: The errors on the log.

    Returns:
        The verdict.

    """
    bare = validation.from_positions or validation
    kind = log_kind(validation)
    grades = (_grade(bare.in_motion), _worst_grade(validation.in_motion), _grade(bare.joints))
    usable = [
        usable_grade(each if kind == "motion" else "plain", validation.setup, validation.held_out) for each in grades
    ]
    uses = tuple(graded(use, grade) for use, grade in zip(USES, usable, strict=True))
    return LogVerdict(kind, validation.motion_nmse, validation.mean_nmse, uses, _cause(validation, kind))


def usable_grade(grade: Grade, setup: Setup, held_out: bool) -> Grade:
    """Return the grade of a use or a joint.

    Args:
        grade: The grade of the errors alone.
        setup: The set-up of the model.
        held_out: Whether the errors are those on held-out data.

    """
    if setup == "contradicted":
        return "contradicted"
    if not held_out and grade in ("good", "fair"):
        return "unvalidated"
    return "fair" if grade == "good" and setup == "suspect" else grade


def judged_validation(validation: Validation) -> dict[str, object]:
    """Return the errors on a log with the verdict for JSON."""
    return {**validation.to_dict(), "verdict": log_verdict(validation).to_dict()}


def judged_parameters(calibration: Calibration) -> dict[str, str]:
    """Return the verdict on the parameters for JSON: the grade in words, and why."""
    found = parameter_verdict(calibration)
    return {"verdict": GRADE_TEXT[cast(Grade, found.code)], "reason": found.evidence}


def parameters_line(calibration: Calibration) -> str:
    """Return the verdict on the parameters in one line, without what the data cannot decide (see the set-up)."""
    found = _parameter_verdict(calibration)
    return f"{found.subject}: {GRADE_TEXT[cast(Grade, found.code)]}; {found.evidence}"


def parameter_verdict(calibration: Calibration) -> Finding:
    """Return whether the parameters of the bodies can be read as physical numbers; the code is the grade."""
    found = _parameter_verdict(calibration)
    if calibration.setup != "ok" or not calibration.scale_known:
        return found
    undecided = undecided_text(calibration.plausibility)
    return replace(found, evidence="; ".join(filter(None, [found.evidence, undecided])))


def _parameter_verdict(calibration: Calibration) -> Finding:
    """Return the same without what the data cannot decide."""
    subject = "parameters as physical numbers"
    if calibration.implausible:
        return graded(subject, "contradicted", "the training data contradict the declared set-up")
    if not calibration.scale_known:
        return graded(subject, "poor", "the scale of the drive gains is unknown: parameters are relative to it")
    status = calibration.estimate.status[: calibration.model.base.count]
    share = sum(each == "determined" for each in status) / max(len(status), 1)
    text = f"{100.0 * share:.0f} % of the body parameters have an interval that excludes zero"
    if calibration.setup == "suspect":
        return graded(subject, "fair", f"the set-up is suspect; {text}")
    robot_known = not any((each.subject, each.code) == ("robot", "undecided") for each in calibration.plausibility)
    return graded(subject, "good" if share >= WELL_DETERMINED and robot_known else "fair", text)


def effective_error(joint: Pooled) -> float | None:
    """Return the MSE / variance that counts for a grade: at most that of a good joint if the error is sensor noise."""
    return joint.nmse if joint.nmse is None or not joint.at_noise else min(joint.nmse, GOOD)


def joint_grade(joint: Pooled) -> Grade:
    """Return the grade of one joint."""
    error = effective_error(joint)
    if error is None:
        return "plain"
    return _graded(error)


def _graded(error: float) -> Grade:
    """Return the grade of an MSE / variance."""
    return "good" if error <= GOOD else "fair" if error <= FAIR else "poor"


def relative_error(errors: Sequence[float]) -> float:
    """Return the mean over the joints of the RMS error relative to the standard deviation, from MSE / variance."""
    return float(np.mean(np.sqrt(errors)))


def pooled_assessment(basis: Basis, rows: Sequence[Sequence[JointMetrics]]) -> Assessment | None:
    """Return the assessment on some logs, each a row of joints; None if no joint moves in any of them."""
    joints = tuple(pool(column) for column in zip(*rows, strict=True))
    known = [joint.nmse for joint in joints if joint.nmse is not None]
    return Assessment(basis, float(np.mean(known)), joints) if known else None


def cross_validation_error(calibration: Calibration) -> float | None:
    """Return the cross-validation error of the last selection, None if nothing was selected automatically."""
    scores = [dict(choice.alternatives).get(choice.taken) for choice in calibration.choices]
    return next((score for score in reversed(scores) if score is not None), None)


def _errors(joints: Sequence[JointMetrics | None]) -> list[float]:
    pooled = [pool([joint]) for joint in joints if joint is not None and not joint.ignored]
    return [error for error in map(effective_error, pooled) if error is not None]


def _grade(joints: Sequence[JointMetrics | None]) -> Grade:
    """Return the grade of the mean over the joints; good only where no joint is poor."""
    errors = _errors(joints)
    if not errors:
        return "plain"
    mean, worst = float(np.mean(errors)), max(errors)
    return "good" if mean <= GOOD and worst <= FAIR else "fair" if mean <= FAIR else "poor"


def _worst_grade(joints: Sequence[JointMetrics | None]) -> Grade:
    """Return the grade of the worst joint: a monitor must not raise an alarm at any of them."""
    errors = _errors(joints)
    if not errors:
        return "plain"
    return _graded(max(errors))


def _cause(validation: Validation, kind: Kind) -> str:
    if kind == "standstill":
        return "no joint moves: the errors are those at rest"
    return "; ".join(each.sentence for each in validation.plausibility)
