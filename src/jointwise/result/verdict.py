"""What a calibration can be used for: a verdict for each log and each kind of use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointwise.result.calibration import Calibration
from jointwise.result.metrics import JointMetrics, Pooled, Validation, pool
from jointwise.result.plausibility import undecided_text, worst_status

Grade = Literal["good", "fair", "poor", "plain"]
"""plain: there are no data to judge by."""
Kind = Literal["motion", "payload", "standstill", "contradiction"]
"""What a log is: a motion of the arm as the model describes it; with another payload; without motion; or recorded with
other signs, order or mounting than the model's."""

GOOD, FAIR = 0.02, 0.10
"""Limits of MSE / variance, mean over the joints."""
WELL_DETERMINED = 0.75
"""Share of the body parameters whose interval excludes zero from which parameters are good."""


@dataclass(frozen=True)
class LogVerdict:
    """The verdict on one log: its kind, a grade for every use, and the cause in words where the log is no plain motion.

    `error`: mean MSE / variance from the first to the last movement; `all_samples`: the same with standstill before and
    after; NaN where no joint moves.
    """

    file: str
    kind: Kind
    error: float
    all_samples: float
    feed_forward: Grade
    monitoring: Grade
    simulation: Grade
    cause: str = ""

    def to_dict(self) -> dict[str, object]:
        """Return the verdict for JSON."""
        uses = {"feed_forward": self.feed_forward, "monitoring": self.monitoring, "simulation": self.simulation}
        return {"kind": self.kind, "uses": uses, "cause": self.cause}

    def line(self) -> str:
        """Return the verdict in one line."""
        uses = f"feed-forward {self.feed_forward}, monitoring {self.monitoring}, simulation {self.simulation}"
        judged = "not judged" if self.kind != "motion" else uses
        return f"verdict ({self.kind}): {judged}" + (f"; {self.cause}" if self.cause else "")


def log_kind(validation: Validation) -> Kind:
    """Return what a log is for the model."""
    if validation.reason is not None:
        return "standstill"
    found = {check.check for check in validation.plausibility if check.status == "contradicted"}
    if not found:
        return "motion"
    return "payload" if found == {"payload"} else "contradiction"


def log_verdict(validation: Validation) -> LogVerdict:
    """Return the verdict on one log.

    Feed-forward is judged by the prediction from positions only, from the first to the last movement; monitoring by
    the worst joint of the sensor-based prediction; simulation by all samples, predicted from positions only. A log with
    another payload, without motion, or that contradicts the model is not judged: it says nothing about these uses.

    Args:
        validation: The errors on the log.

    Returns:
        The verdict.

    """
    bare = validation.from_positions or validation
    kind = log_kind(validation)
    judged = kind == "motion"
    return LogVerdict(
        validation.file,
        kind,
        validation.motion_nmse,
        validation.mean_nmse,
        _grade(bare.in_motion) if judged else "plain",
        _worst_grade(validation.in_motion) if judged else "plain",
        _grade(bare.joints) if judged else "plain",
        _cause(validation, kind),
    )


def parameter_verdict(calibration: Calibration) -> tuple[Grade, str]:
    """Return whether the parameters of the bodies can be read as physical numbers, and why."""
    if calibration.implausible:
        return "poor", "the training data contradict the declared set-up"
    if not calibration.scale_known:
        return "poor", "the scale of the drive gains is unknown: parameters are relative to it"
    status = calibration.estimate.status[: calibration.model.base.count]
    share = sum(each == "determined" for each in status) / max(len(status), 1)
    text = f"{100.0 * share:.0f} % of the body parameters have an interval that excludes zero"
    if worst_status(calibration.plausibility) == "suspect":
        return "fair", f"the set-up is suspect; {text}"
    robot_known = not any(check.check == "robot" and check.undecided for check in calibration.plausibility)
    text = "; ".join(filter(None, [text, undecided_text(calibration.plausibility)]))
    return ("good" if share >= WELL_DETERMINED and robot_known else "fair"), text


def effective_error(joint: Pooled) -> float | None:
    """Return the MSE / variance that counts for a grade: at most that of a good joint if the error is sensor noise."""
    return joint.nmse if joint.nmse is None or not joint.at_noise else min(joint.nmse, GOOD)


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
    return "good" if max(errors) <= GOOD else "fair" if max(errors) <= FAIR else "poor"


def _cause(validation: Validation, kind: Kind) -> str:
    if kind == "standstill":
        return "no joint moves: the errors are those at rest"
    return "; ".join(check.line() for check in validation.plausibility)
