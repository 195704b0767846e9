"""Whether a log can be believed: wrong units and damaged channels are refused before anything is fitted."""

from __future__ import annotations

from jointwise.data.finding import Finding
from jointwise.data.log import Log
from jointwise.data.quality import Examination, examine
from jointwise.description.robot import Robot
from jointwise.errors import DataError

LEAST_TRAVEL = 0.1
"""Travel (rad) below which the wind-up of a gear may move the rotor otherwise than the link."""


def refuse_faulty(log: Log, robot: Robot, joint: int | None = None) -> None:
    """Refuse a log with an error of the data doctor that concerns a joint (0-based), or any joint if None.

    Stamps and positions of every joint count, as the load of one joint depends on them. That nothing moves is no error
    here: the output of a joint may be locked.
    """
    examination = examine(log, robot)
    for finding in examination.findings:
        if finding.severity == "error" and _concerns(finding, examination, joint):
            raise DataError(f"{log.origin.path}: {finding.message} {finding.advice}")


def _concerns(finding: Finding, examination: Examination, joint: int | None) -> bool:
    """Tell whether a finding says something about a joint."""
    if finding.code == "no-motion":
        return False
    if finding.code == "theta-side" and _travel(finding, examination) < LEAST_TRAVEL:
        return False
    return joint is None or finding.joint in (None, joint) or finding.channel == "q"


def _travel(finding: Finding, examination: Examination) -> float:
    """Return how far (rad) the joint of a finding moved."""
    assert finding.joint is not None
    return float(examination.numbers.travel[finding.joint])
