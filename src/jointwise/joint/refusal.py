"""Saying no: which data cannot answer, and which experiment would."""

from __future__ import annotations

from jointwise.errors import EstimationError
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.joint.record import JointRecord


def refuse(record: JointRecord, phenomenon: str, what: str) -> EstimationError:
    """Return the error that says what is missing (`what`, without a full stop) and which experiment would tell."""
    experiment = PHENOMENA[phenomenon].experiment
    return EstimationError(
        f"{record.place}: {what}; {phenomenon} is not fitted. The experiment '{experiment}' would tell: "
        f"jointwise joint plan --robot {record.robot} --joint {record.joint + 1}"
    )


def few_reversals(count: int, least: int) -> str:
    """Return what to say of so few reversals."""
    found = "no reversals" if count == 0 else f"only {count} reversal{'s' if count > 1 else ''}"
    return f"{found} in the log, at least {least} are needed"
